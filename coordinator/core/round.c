/* Life of a round: waiting, opening, collecting, computing, closing; then the next one, or the end of the
 * job.
 *
 * Opening and closing are statements of the main chain, and each is durable before what follows from it is
 * visible: no site gets a task of a round whose opening might be lost, and no model is handed out whose
 * close might be. A round closes with its quorum at least, as soon as nobody is awaited any more, its time
 * is over or its buffer is full; while an append is under way it does not, for that update may be in the
 * ledger already.
 *
 * kedgei_advance looks only at what is the case and not at what has just happened, so it may be called as
 * often as one likes, and a restart needs no second way. */
#include <string.h>

#include "coordinator/core/core.h"

/* Does the job still wait for its first round, with nothing that could open it? */
bool kedgei_is_enrolling(const struct job *j)
{
    return j->stage == STAGE_WAITING_TO_OPEN && j->closed_round == KEDGE_COORD_NONE
           && j->ready_since_ns == UINT64_MAX;
}

/* When a job that could open its next round looks again: when the others have had their turn, or the sites
 * time to settle. */
static uint64_t wish_deadline(const struct kedge_coord *c, const struct job *j)
{
    if (j->turn_ns != UINT64_MAX) {
        return j->turn_ns;
    }
    if (j->lacks_free) { /* what others do tells, unless it has already */
        return j->eligible_stale || j->eligible_count >= j->params.sites_min ? c->now_ns : UINT64_MAX;
    }
    return j->ready_since_ns < UINT64_MAX - c->times.settle ? j->ready_since_ns + c->times.settle
                                                            : UINT64_MAX;
}

/* The earliest of all that can happen to the job by the passing of time alone. A halted job has no
 * settle time: it would wake the host for nothing. */
uint64_t kedgei_job_deadline(const struct kedge_coord *c, const struct job *j)
{
    uint64_t at = j->retry_ns < j->deadline_ns ? j->retry_ns : j->deadline_ns;
    bool waits = j->stage == STAGE_WAITING_TO_OPEN && j->ready_since_ns != UINT64_MAX
                 && !j->halted_by_operator && j->failed_count == 0;
    if (waits && !j->cancelling) {
        uint64_t look = wish_deadline(c, j);
        at = look < at ? look : at;
    }
    bool may_expire =
        kedgei_is_enrolling(j) && !j->halted_by_operator && j->failed_count == 0 && !j->cancelling;
    at = may_expire && j->enrol_ns < at ? j->enrol_ns : at;
    return j->able_ns < at && !MUTANT(MUTANT_UNABLE_FOR_GOOD) ? j->able_ns : at;
}

/* Round 0 makes groups where there are none; only later rounds can keep those that there are. */
static bool makes_anew(const struct job *j)
{
    return j->kind == KEDGE_TASK_PRETRAIN && j->round > 0;
}

/* Of too few updates no groups are made anew: then there would be fewer, for nothing but who was away. */
uint32_t kedgei_quorum(const struct job *j)
{
    uint32_t quorum = makes_anew(j) && j->model_count > j->params.quorum ? j->model_count : j->params.quorum;
    return quorum < j->selected_count ? quorum : j->selected_count;
}

/* Marks candidates and the selected among them, and asks for round-opened. */
static void open_round(struct kedge_coord *c, uint32_t job)
{
    struct job *j = &c->jobs[job];
    KEDGE_ASSERT(j->selected_count == 0 || kedgei_is_asynchronous(j));
    KEDGE_ASSERT(j->busy_count == 0 || MUTANT(MUTANT_MOVES_NOT_AWAITED));
    kedgei_select(c, j);
    KEDGE_ASSERT(j->selected_count >= 1);
    kedgei_turn_taken(c, job);
    j->openings++;
    j->quorum = kedgei_quorum(j);
    j->stage = STAGE_ROUND_OPENING;
    j->base = j->round == 0 ? KEDGE_JOB_GROUPING : KEDGE_JOB_TRAINING;
    j->ready_since_ns = UINT64_MAX;
    kedgei_rows_refresh(c, job);
    kedgei_job_tell(c, job);
    kedgei_main_emit(c, job);
    if (MUTANT(MUTANT_TASK_BEFORE_OPENED)) {
        kedgei_offer_all(j);
    }
}

/* Nothing has come to the open round and nobody is left of whom it could come: the sites that can now are
 * drawn, by another round-opened of the same round, in whose place nothing is left of the one before. */
static void draw_again(struct kedge_coord *c, uint32_t job)
{
    struct job *j = &c->jobs[job];
    for (uint32_t i = 0; i < j->touched_count; i++) {
        struct row *row = &j->rows[j->touched[i]];
        row->pub.selected = false;
        row->pub.task_round = KEDGE_COORD_NONE;
        row->pub.ended = KEDGE_TROUBLE_NONE;
        kedgei_row_refresh(c, job, j->touched[i]);
    }
    kedgei_touched_tidy(j);
    j->selected_count = 0;
    j->draw++;
    j->stalled = j->late = j->halted_by_quorum = false;
    j->deadline_ns = UINT64_MAX;
    open_round(c, job);
}

/* Called when round-opened is durable, and at a restart of an open round. The time of the round
 * begins anew then: nobody could work while the coordinator was away. Where evaluations are due
 * every site may have something to do, else only those selected are looked at. */
void kedgei_collect(struct kedge_coord *c, uint32_t job)
{
    struct job *j = &c->jobs[job];
    KEDGE_ASSERT(j->selected_count >= 1 && j->quorum >= 1);
    j->stage = STAGE_COLLECT;
    uint64_t time = KEDGE_RARE(c, SHORT_ROUND) ? j->params.round_timeout_ns / 8 : j->params.round_timeout_ns;
    j->deadline_ns = kedgei_after(c, time);
    j->open_ns = c->now_ns;
    j->supply = kedgei_crowd_of(c, j).active;
    j->late = j->stalled = false;
    kedgei_rows_refresh(c, job);
    kedgei_assign_nearest(c, job);
    if (kedgei_evaluates(j)) {
        kedgei_offer_all(j);
    } else {
        kedgei_offer_touched(j);
    }
}

/* Free or not. Rows of unable sites are touched. */
static uint32_t able_count(const struct kedge_coord *c, const struct job *j)
{
    uint32_t able = kedgei_crowd_of(c, j).online;
    for (uint32_t i = 0; i < j->touched_count; i++) {
        const uint32_t site = j->touched[i];
        able -= kedgei_is_unable(&j->rows[site]) && kedgei_is_member(c, j, site) && kedgei_fits(c, j, site)
                && c->sites[site].presence == PRESENCE_ONLINE;
    }
    return able;
}

/* Enough sites are online: are enough of them able? Those that said they are not are asked all the same where
 * the round could close without them; else nothing would come of it, and it waits for one that is able. */
static bool lacks_able_sites(struct kedge_coord *c, uint32_t job)
{
    struct job *j = &c->jobs[job];
    if (j->able_ns == UINT64_MAX) {
        return false; /* all are */
    }
    uint32_t able = j->params.elastic ? able_count(c, j) : kedgei_eligible_count(c, j);
    if (kedgei_is_asynchronous(j)) { /* who is at work will bring something */
        return able == 0 && j->selected_count == 0;
    }
    if (j->params.has_root && kedgei_is_unable(&j->rows[kedgei_root_find(c, j)])) {
        return true;
    }
    bool few = able < j->params.sites_min;
    if (few && able >= j->params.quorum) {
        kedgei_able_all(c, job);
        return false;
    }
    return few;
}

/* The job wants to open a round. It opens when all tenants have joined and enough sites are online
 * and able, after a short wait (settle) for others that are expected: otherwise each round would
 * open with the first to come alone. Then it may be the turn of other jobs on the same sites. */
static bool advance_wish(struct kedge_coord *c, uint32_t job)
{
    struct job *j = &c->jobs[job];
    struct kedgei_crowd crowd = kedgei_crowd_of(c, j);
    bool enough = j->joined_count == j->params.tenant_count && crowd.online >= j->params.sites_min
                  && kedgei_root_is_there(c, j);
    j->short_of_sites = enough && lacks_able_sites(c, job);
    j->lacks_free = false;
    j->turn_ns = UINT64_MAX;
    if (!enough || j->short_of_sites) {
        j->ready_since_ns = UINT64_MAX;
        if (kedgei_is_enrolling(j) && j->enrol_ns <= c->now_ns) {
            j->failing = KEDGE_E_ENROL_TIME;
            return true; /* the next look ends it */
        }
        return false;
    }
    j->ready_since_ns = j->ready_since_ns != UINT64_MAX ? j->ready_since_ns : c->now_ns;
    /* All that a round needs or none of it: it holds nobody while it waits for the others. */
    j->lacks_free = j->params.elastic && kedgei_eligible_count(c, j) < j->params.sites_min;
    if (j->lacks_free) {
        return false;
    }
    /* The first round waits for sites that were never heard of; later ones not for those long gone. */
    uint32_t expected = j->closed_round == KEDGE_COORD_NONE ? crowd.active : crowd.active - crowd.gone;
    bool unsettled = crowd.online < expected && c->now_ns - j->ready_since_ns < c->times.settle;
    if ((unsettled && !KEDGE_RARE(c, UNSETTLED)) || kedgei_turn_waits(c, job)) {
        return false;
    }
    open_round(c, job);
    return true;
}

static bool has_quorum(const struct job *j)
{
    bool few_will_do = MUTANT(MUTANT_TOO_FEW_TAKEN) && makes_anew(j) && j->late && j->accepted_count > 0;
    return j->accepted_count >= j->quorum || few_will_do;
}

/* A round is done when all who were asked have answered, when nobody is left to wait for, when its
 * time is over, or in an asynchronous job when its buffer is full. Trials also wait for the
 * evaluations that will decide them. */
bool kedgei_is_due(const struct kedge_coord *c, const struct job *j)
{
    bool late = j->late && !MUTANT(MUTANT_NO_DEADLINE);
    const bool tested = j->testing_count == 0;
    bool done = late || (tested && (j->unresolved_count == 0 || j->awaited_count == 0 || kedgei_is_full(j)));
    return j->stage == STAGE_COLLECT && has_quorum(j) && kedgei_root_is_in(c, j) && done;
}

/* Decides whether the open round closes, goes on, is drawn again or halts. A round without its quorum is
 * not closed late but halted: a model of fewer updates than the owners agreed on must not come about
 * because sites were slow. While a statement is on its way (busy) nothing is decided, since whether it is
 * in the round is known only when it is stored. */
static bool advance_collect(struct kedge_coord *c, uint32_t job)
{
    struct job *j = &c->jobs[job];
    bool late = j->late && !MUTANT(MUTANT_NO_DEADLINE);
    bool lacks = !has_quorum(j) || !kedgei_root_is_in(c, j);
    kedgei_stall(c, job, lacks && j->unresolved_count == 0 && j->busy_count == 0 && j->ended_count > 0);
    if (kedgei_is_ending(j)) {
        return true; /* the next look ends it */
    }
    if (!makes_anew(j) && kedgei_may_draw_again(c, job)) {
        draw_again(c, job);
        return true;
    }
    /* Groups that are there are better than to wait for those who are away. */
    bool keeps = (late || j->stalled) && makes_anew(j) && (!has_quorum(j) || MUTANT(MUTANT_KEPT_ANYWAY));
    if (!keeps && (!has_quorum(j) || !kedgei_root_is_in(c, j))) {
        if (late && !j->halted_by_quorum) {
            j->halted_by_quorum = true; /* still collecting; refused sites are asked again */
            kedgei_offer_all(j);
        }
        return false;
    }
    if (j->busy_count > 0 || (!keeps && !kedgei_is_due(c, j))) {
        return false;
    }
    kedgei_turns_pass(c, job);
    j->keeps = keeps;
    j->halted_by_quorum = false;
    j->unstored_site = KEDGE_COORD_NONE; /* the round did without it */
    j->stage = STAGE_COMPUTE;
    j->deadline_ns = UINT64_MAX;
    kedgei_rows_refresh(c, job);
    kedgei_job_tell(c, job);
    kedgei_main_emit(c, job);
    return true;
}

/* Its last statement, once nothing else is on its way: what is stored after the close of a job would belong
 * to nothing. */
static bool end_job(struct kedge_coord *c, uint32_t job)
{
    struct job *j = &c->jobs[job];
    KEDGE_ASSERT(j->in_flight_count == 0 && !j->main.out);
    if (j->main.failed) { /* of a round that the job gives up */
        j->main.failed = false;
        j->failed_count--;
    }
    j->stage = STAGE_JOB_CLOSING;
    kedgei_turns_pass(c, job);
    j->halted_by_operator = j->halted_by_quorum = false; /* nothing is left to halt */
    j->unstored_site = KEDGE_COORD_NONE;
    j->deadline_ns = UINT64_MAX;
    kedgei_rows_refresh(c, job);
    kedgei_job_tell(c, job);
    kedgei_main_emit(c, job);
    return true;
}

/* All evaluations of the round are there, or their time is over: what came of them goes into the record
 * before anything follows from it. */
static bool tell_test(struct kedge_coord *c, uint32_t job)
{
    struct job *j = &c->jobs[job];
    KEDGE_ASSERT(j->in_flight_count == 0 && !j->main.out);
    j->stage = STAGE_TESTING;
    j->deadline_ns = UINT64_MAX;
    j->late = false;
    kedgei_rows_refresh(c, job);
    kedgei_main_emit(c, job);
    return true;
}

/* One step of a job's life; true when it went to another stage. The end comes first, so that a cancelled or
 * failed job gets out of every stage in the same way. Stages that wait for the host have no step: its
 * answer is an event. */
static bool advance_stage(struct kedge_coord *c, uint32_t job)
{
    struct job *j = &c->jobs[job];
    if (kedgei_is_ending(j) && j->stage != STAGE_JOB_CLOSING && j->stage != STAGE_JOB_OPENING) {
        return !j->main.out && j->in_flight_count == 0 && end_job(c, job);
    }
    if (j->halted_by_operator || j->failed_count > 0) {
        return false;
    }
    switch (j->stage) {
    case STAGE_WAITING_TO_OPEN:
        return !j->over_budget && advance_wish(c, job);
    case STAGE_COLLECT:
        return advance_collect(c, job);
    case STAGE_ASSIGNING:
        if (j->busy_count == 0 || MUTANT(MUTANT_MOVES_NOT_AWAITED)) {
            kedgei_next_round(c, job);
            return true;
        }
        return false;
    case STAGE_EVALUATE:
        if (j->in_flight_count > 0 || (!j->late && j->awaited_count > 0)) {
            return false;
        }
        return kedgei_is_to_test(j) ? tell_test(c, job) : end_job(c, job);
    case STAGE_JOB_OPENING:
    case STAGE_ROUND_OPENING:
    case STAGE_COMPUTE:
    case STAGE_ROUND_CLOSING:
    case STAGE_TESTING:
    case STAGE_JOB_CLOSING:
    case STAGE_ENDED:
        break;
    }
    return false;
}

/* Up to four steps: a stage may be done as soon as it begins, and four is more than lead from one that waits
 * to the next that waits. */
void kedgei_advance(struct kedge_coord *c, uint32_t job)
{
    struct job *j = &c->jobs[job];
    if (j->stage == STAGE_ENDED) {
        return;
    }
    if (j->deadline_ns <= c->now_ns) {
        j->deadline_ns = UINT64_MAX;
        j->late = true;
    }
    if (j->retry_ns <= c->now_ns) {
        j->retry_ns = UINT64_MAX;
        j->sweep = 0;
        if (j->main.failed && !j->main.out) {
            kedgei_main_emit(c, job);
        }
    }
    kedgei_able_expire(c, job);
    kedgei_job_tell(c, job); /* each state is told, even one that is left at once */
    for (int i = 0; i < 4 && advance_stage(c, job); i++) {
        kedgei_job_tell(c, job);
    }
    kedgei_job_tell(c, job);
    j->dirty = false; /* what the stages changed is looked at already */
}

/* After the last round sites evaluate the last models for a while; nobody who is away can hold the job
 * longer than that. Where targets are to be reached so they do after every round that is evaluated, before
 * the next one opens: the models that have reached one are then the job's last, and those that are released.
 */
void kedgei_next_round(struct kedge_coord *c, uint32_t job)
{
    struct job *j = &c->jobs[job];
    KEDGE_ASSERT(j->closed_round != KEDGE_COORD_NONE);
    KEDGE_ASSERT(j->busy_count == 0 || MUTANT(MUTANT_MOVES_NOT_AWAITED));
    const bool ends = j->closed_round >= j->params.rounds || j->reached;
    if (ends || kedgei_is_to_test(j)) {
        j->stage = STAGE_EVALUATE;
        j->base = ends ? KEDGE_JOB_STORING : KEDGE_JOB_TRAINING;
        j->deadline_ns = kedgei_after(c, KEDGE_RARE(c, NO_PATIENCE) ? 1 : c->times.evaluate_max);
        j->late = false;
        kedgei_rows_refresh(c, job);
        kedgei_offer_all(j);
        return;
    }
    j->stage = STAGE_WAITING_TO_OPEN;
    j->base = KEDGE_JOB_TRAINING;
    j->round = j->closed_round + 1;
    j->draw = 0;
    j->kind = kedge_coord_round_kind(&j->params, j->round, j->closed_kind, j->regroup);
    j->ready_since_ns = UINT64_MAX;
    j->dirty = true;
}

/* Groups that a close gave are in force only when each site's own ledger has its statement, so the next
 * round waits for them. */
void kedgei_assign_all(struct kedge_coord *c, uint32_t job)
{
    struct job *j = &c->jobs[job];
    j->stage = STAGE_ASSIGNING;
    for (uint32_t i = 0; i < c->site_count; i++) {
        struct row *row = &j->rows[i];
        if (row->pub.group != KEDGE_COORD_NONE && !row->pub.group_durable) {
            KEDGE_ASSERT(row->assign == ASSIGN_NONE && !row->item[ITEM_ASSIGN].out);
            row->assign = ASSIGN_APPEND;
            kedgei_row_refresh(c, job, i);
        }
    }
    j->sweep = 0;
    j->dirty = true;
}

/* Takes what the round was; true when the close gave this site a group. */
static bool close_row(const struct kedge_coord *c, struct job *j, uint32_t site)
{
    struct row *row = &j->rows[site];
    bool moves = row->next_group != KEDGE_COORD_NONE;
    row->pub.selected = kedgei_stays_at_work(c, j, site); /* candidates stay marked until others are */
    row->pub.task_round = row->pub.selected ? row->pub.task_round : KEDGE_COORD_NONE;
    row->pub.away = row->pub.away && row->pub.selected;
    row->pub.ended = row->pub.selected ? row->pub.ended : KEDGE_TROUBLE_NONE;
    j->selected_count += row->pub.selected;
    kedgei_input_clear(&row->pub.pretrain);
    if (!MUTANT(MUTANT_AT_WORK_AGAIN) || !row->pub.selected) {
        kedgei_input_clear(&row->pub.train);
    }
    if (moves) {
        kedgei_group_set(j, row, row->next_group, false);
        row->next_group = KEDGE_COORD_NONE;
        row->why = KEDGE_WHY_CLOSE;
    }
    return moves;
}

/* The close is durable: its models and groups hold, its inputs are history. */
static void round_closed(struct kedge_coord *c, uint32_t job)
{
    struct job *j = &c->jobs[job];
    memcpy(j->prior, j->models, sizeof j->prior);
    memcpy(j->models, j->next, sizeof j->models);
    j->prior_count = j->closed_round == KEDGE_COORD_NONE ? 0 : j->model_count;
    j->prior_round = j->closed_round;
    j->model_count = j->next_count;
    j->closed_round = j->round;
    j->closed_kind = j->kind;
    j->regroup = j->next_regroup;
    j->tries = j->next_tries;
    j->tested = false;
    j->over_budget = j->next_over_budget;
    j->selected_count = 0;
    kedgei_base_keep(j);
    bool moves = j->round == 0;
    for (uint32_t i = 0; i < j->touched_count; i++) {
        moves = close_row(c, j, j->touched[i]) || moves;
        kedgei_row_refresh(c, job, j->touched[i]);
    }
    kedgei_touched_tidy(j);
    KEDGE_ASSERT(j->unresolved_count + j->ended_count == j->selected_count || MUTANT(MUTANT_AT_WORK_AGAIN));
    KEDGE_ASSERT((j->accepted_count == 0 && j->refused_count == 0) || MUTANT(MUTANT_AT_WORK_AGAIN));
    if (moves) {
        kedgei_assign_all(c, job);
    } else {
        kedgei_next_round(c, job);
    }
}

/* It cannot be stored, however often it is tried: the job ends without it. */
static void main_refused(struct kedge_coord *c, uint32_t job, int err)
{
    struct job *j = &c->jobs[job];
    kedgei_item_done(j, &j->main);
    kedgei_job_fail(j, err);
    if (j->stage == STAGE_JOB_OPENING) { /* the main chain knows nothing of it, and there it stays */
        kedgei_job_tell_end(c, job, KEDGE_JOB_FAILED);
    } else if (j->stage == STAGE_JOB_CLOSING) { /* as completed it cannot end */
        kedgei_main_emit(c, job);
    }
}

/* The main chain has the statement, and only now the stage changes. A crash between the two repeats the
 * append, which the chain recognises by its key. */
void kedgei_main_appended(struct kedge_coord *c, const struct kedge_coord_event *ev)
{
    KEDGE_ASSERT(ev->job < c->limits.jobs_max && c->jobs[ev->job].used);
    struct job *j = &c->jobs[ev->job];
    KEDGE_ASSERT(j->main.out && j->stage != STAGE_COMPUTE);
    if (kedgei_is_final(ev->err) && !(j->stage == STAGE_JOB_CLOSING && kedgei_is_ending(j))) {
        main_refused(c, ev->job, ev->err);
        return;
    }
    if (ev->err != KEDGE_OK) {
        kedgei_item_failed(c, ev->job, &j->main, ev->err);
        return;
    }
    kedgei_item_done(j, &j->main);
    switch (j->stage) {
    case STAGE_JOB_OPENING:
        j->stage = STAGE_WAITING_TO_OPEN;
        j->base = KEDGE_JOB_ENROLLING;
        break;
    case STAGE_ROUND_OPENING:
        kedgei_collect(c, ev->job);
        break;
    case STAGE_ROUND_CLOSING:
        round_closed(c, ev->job);
        break;
    case STAGE_TESTING:
        j->tested = true;
        j->reached = ev->reached;
        j->useful = ev->useful;
        kedgei_next_round(c, ev->job);
        j->late = j->reached; /* nobody is waited for once more */
        kedgei_rows_refresh(c, ev->job);
        break;
    case STAGE_JOB_CLOSING:
        kedgei_job_tell_end(c, ev->job, kedgei_outcome(j));
        break;
    case STAGE_WAITING_TO_OPEN:
    case STAGE_COLLECT:
    case STAGE_COMPUTE:
    case STAGE_ASSIGNING:
    case STAGE_EVALUATE:
    case STAGE_ENDED:
        KEDGE_ASSERT(false);
        break; /* no main append */
    }
}

/* What the close will make durable. The host computed it, and it is checked against what this job may do:
 * sites that keep their groups for good keep them, a round that kept its groups assigns nobody, and every
 * site whose group is gone has a new one. */
static void take_close(struct kedge_coord *c, const struct kedge_coord_event *ev)
{
    struct job *j = &c->jobs[ev->job];
    KEDGE_ASSERT(ev->model_count >= 1 && ev->model_count <= j->params.groups && ev->models);
    bool for_good = j->params.entry == KEDGE_ENTRY_CHOICE || j->params.entry == KEDGE_ENTRY_TENANT;
    KEDGE_ASSERT(!for_good || (ev->model_count == j->model_count && ev->assigned_count == 0));
    KEDGE_ASSERT(!j->keeps || (ev->model_count == j->model_count && ev->assigned_count == 0 && !ev->regroup));
    j->next_count = ev->model_count;
    j->next_regroup = ev->regroup;
    j->next_tries = ev->tries;
    j->next_over_budget = ev->over_budget && j->round < j->params.rounds;
    memcpy(j->next, ev->models, ev->model_count * sizeof j->next[0]);
    for (uint32_t i = 0; i < ev->assigned_count; i++) {
        struct row *row = kedgei_row(c, ev->job, ev->assigned_sites[i]);
        KEDGE_ASSERT(row->next_group == KEDGE_COORD_NONE && ev->assigned_groups[i] < ev->model_count);
        row->next_group = ev->assigned_groups[i];
        kedgei_touch(j, ev->assigned_sites[i]);
        bool early = MUTANT(MUTANT_MOVED_BEFORE_CLOSED) && row->pub.group_durable;
        row->pub.group = early ? row->next_group : row->pub.group;
    }
    bool fixed = for_good || j->params.groups == 1;
    for (uint32_t i = 0; i < c->site_count && !fixed; i++) {
        const struct row *row = &j->rows[i];
        bool must = row->pub.group != KEDGE_COORD_NONE
                    && ((j->kind == KEDGE_TASK_PRETRAIN && !j->keeps) || row->pub.group >= ev->model_count);
        KEDGE_ASSERT(!must || row->next_group != KEDGE_COORD_NONE);
    }
}

/* An error that would come again whenever the same inputs are computed ends the job; any other is tried
 * again. The close is not appended after a cancellation, so a cancelled round leaves no model. */
void kedgei_round_computed(struct kedge_coord *c, const struct kedge_coord_event *ev)
{
    KEDGE_ASSERT(ev->job < c->limits.jobs_max && c->jobs[ev->job].used);
    struct job *j = &c->jobs[ev->job];
    KEDGE_ASSERT(j->main.out && j->stage == STAGE_COMPUTE && ev->round == j->round);
    if (ev->err != KEDGE_OK) {
        enum kedge_err_class class = kedge_err_class(ev->err);
        if (class == KEDGE_CLASS_REJECT || class == KEDGE_CLASS_CORRUPT || class == KEDGE_CLASS_BUG) {
            kedgei_item_done(j, &j->main);
            kedgei_job_fail(j, ev->err);
        } else {
            kedgei_item_failed(c, ev->job, &j->main, ev->err);
        }
        return;
    }
    kedgei_item_done(j, &j->main);
    if (j->cancelling) {
        return;
    }
    take_close(c, ev);
    j->stage = STAGE_ROUND_CLOSING;
    kedgei_job_tell(c, ev->job);
    kedgei_main_emit(c, ev->job);
    if (MUTANT(MUTANT_MODEL_BEFORE_CLOSED)) {
        memcpy(j->models, j->next, sizeof j->models);
        j->model_count = j->next_count;
    }
}
