/* Polls and tasks. A poll is answered at once when there is a task for its site, else parked; parked polls
 * are in a heap by the time at which they are answered by WAIT. Nothing is remembered of a task that went
 * out: a site that asks again (it crashed) gets it again.
 *
 * What a site is to do follows from its row and the job's stage each time it asks. A queue of tasks would
 * have to be corrected with every refusal, close and move, and would be lost in a crash. */
#include "coordinator/core/core.h"
#include "coordinator/schedule/order.h"

struct task {
    uint32_t job, round, group, evaluate_round;
    enum kedge_task_kind kind;
    bool evaluate_base, choice;
    struct kedge_digest base;
    uint64_t remaining_ns;
};

/* May this input be worked on (again)? A refused site is asked again only when the round cannot do without
 * it. */
static bool wants_input(const struct job *j, const struct kedge_coord_input *in)
{
    return in->progress == KEDGE_INPUT_NONE || (in->progress == KEDGE_INPUT_REFUSED && j->halted_by_quorum);
}

/* Is it to pretrain: in a round of that kind, to get its first group, or because its data have shifted? */
static bool wants_pretrain(const struct job *j, const struct row *row)
{
    const struct kedge_coord_row *p = &row->pub;
    bool cold = p->group == KEDGE_COORD_NONE && j->params.entry != KEDGE_ENTRY_CHOICE
                && j->params.entry != KEDGE_ENTRY_NEAREST;
    if (j->kind == KEDGE_TASK_PRETRAIN || cold) {
        return p->selected && wants_input(j, &p->pretrain);
    }
    bool later = MUTANT(MUTANT_TRAINS_BEFORE_MIGRATING) && p->selected && wants_input(j, &p->train);
    /* asked once in a round: the round may need its training more than its moving */
    return p->shifted && p->pretrain.progress == KEDGE_INPUT_NONE && kedgei_may_migrate(j, row) && !later;
}

/* A site's own contribution to the open round. */
static bool find_contribution(const struct job *j, const struct row *row, struct task *ret)
{
    const struct kedge_coord_row *p = &row->pub;
    if (wants_pretrain(j, row)) {
        ret->kind = KEDGE_TASK_PRETRAIN;
        ret->base = j->initial;
        return true;
    }
    bool early = MUTANT(MUTANT_MIGRATES_UNSTATED) && row->assign == ASSIGN_APPEND;
    bool ready = j->params.entry == KEDGE_ENTRY_CHOICE || early
                 || (p->group_durable && row->assign == ASSIGN_NONE && !kedgei_in_flight(&p->pretrain));
    if (j->kind != KEDGE_TASK_TRAIN || !p->selected || !ready || !wants_input(j, &p->train)) {
        return false;
    }
    ret->kind = KEDGE_TASK_TRAIN;
    if (j->params.entry == KEDGE_ENTRY_CHOICE) {
        ret->choice = true;
        return true;
    }
    ret->round = kedgei_task_round(j, row);
    ret->group = p->group;
    ret->base = MUTANT(MUTANT_FOREIGN_TASK) && j->closed_round != KEDGE_COORD_NONE
                    ? j->models[(p->group + 1) % j->model_count]
                    : *kedgei_train_base(j, row);
    ret->evaluate_base = kedgei_evaluation_due(j, row) && ret->round == j->round;
    ret->evaluate_round = ret->evaluate_base ? j->closed_round : KEDGE_COORD_NONE;
    return true;
}

/* What this site is to do for this job now, found anew at each poll. Work for the open round comes before
 * evaluations of the closed one: the round waits for it. Nothing goes out while something of the job could
 * not be stored, since its answer could not be stored either. */
static bool find_task(const struct kedge_coord *c, uint32_t job, uint32_t site, struct task *ret)
{
    const struct job *j = &c->jobs[job];
    bool opened =
        j->stage == STAGE_COLLECT || (MUTANT(MUTANT_TASK_BEFORE_OPENED) && j->stage == STAGE_ROUND_OPENING);
    if (!j->used || j->halted_by_operator || j->cancelling || j->failing != KEDGE_OK || j->failed_count > 0
        || (!opened && j->stage != STAGE_EVALUATE) || !kedgei_is_member(c, j, site)) {
        return false;
    }
    const struct row *row = &j->rows[site];
    if ((kedgei_is_unable(row) && !MUTANT(MUTANT_UNABLE_DRAWN))
        || (!row->pub.selected && !kedgei_fits(c, j, site))) {
        return false;
    }
    *ret = (struct task){
        .job = job, .round = j->round, .group = KEDGE_COORD_NONE, .evaluate_round = KEDGE_COORD_NONE};
    ret->remaining_ns = j->late || j->deadline_ns < c->now_ns ? 0 : j->deadline_ns - c->now_ns;
    if (opened && row->pub.ended == KEDGE_TROUBLE_NONE && find_contribution(j, row, ret)) {
        return true;
    }
    if (!kedgei_evaluation_due(j, row)) {
        return false;
    }
    ret->kind = KEDGE_TASK_EVALUATE;
    ret->round = ret->evaluate_round = j->closed_round;
    ret->group = row->pub.group;
    ret->base = *kedgei_base(j, row->pub.group);
    return true;
}

/* The next search begins after this job: a site that serves several jobs goes round among them, and
 * a job with quick rounds cannot keep it to itself. */
static void emit_task(struct kedge_coord *c, uint32_t site, uint32_t request, const struct task *task)
{
    struct kedge_coord_effect *fx = kedgei_emit_site(c, KEDGE_FX_TASK, task->job, site);
    fx->request = request;
    fx->round = task->round;
    fx->group = task->group;
    fx->kind = task->kind;
    fx->base = task->base;
    fx->choice = task->choice;
    fx->evaluate_base = task->evaluate_base;
    fx->evaluate_round = task->evaluate_round;
    fx->remaining_ns = task->remaining_ns;
    c->sites[site].next_job = (task->job + 1) % c->limits.jobs_max;
    kedgei_turn_begins(c, task->job, site);
}

static void emit_wait(struct kedge_coord *c, uint32_t site, uint32_t request)
{
    struct kedge_coord_effect *fx = kedgei_emit(c, KEDGE_FX_WAIT);
    fx->site = site;
    fx->tenant = c->sites[site].tenant;
    fx->request = request;
}

/* One task of a job at a time: those that the site says it has in hand are left out. */
static bool is_wanted(const struct kedge_coord *c, uint32_t site, uint32_t job)
{
    return (c->sites[site].at_work >> job & 1) == 0 || MUTANT(MUTANT_OFFERS_AT_WORK);
}

/* What the site's tenant has of this job still before it. */
static struct kedge_schedule_claim claim_of(const struct job *j)
{
    const uint32_t closed = j->closed_round == KEDGE_COORD_NONE ? 0 : j->closed_round;
    const uint64_t rounds = j->params.rounds > closed ? j->params.rounds - closed : 0;
    const uint32_t most = j->params.sites_per_round;
    return (struct kedge_schedule_claim){.priority = j->params.priority,
                                         .supply = j->supply,
                                         .remaining =
                                             rounds * (most > 0 && most < j->supply ? most : j->supply),
                                         .overruns = j->openings > (uint64_t)j->params.rounds + 1};
}

/* Answers a request by the task that comes first (coordinator/schedule/order.h); among equals by the first in
 * slot order, beginning after the job that was served last. */
static bool serve(struct kedge_coord *c, uint32_t site, uint32_t request)
{
    struct task task, best;
    struct kedge_schedule_claim claim, least;
    bool found = false;
    uint32_t first = c->sites[site].next_job + (KEDGE_RARE(c, OTHER_JOB) ? 1 : 0);
    for (uint32_t i = 0; i < c->limits.jobs_max; i++) {
        uint32_t job = (first + i) % c->limits.jobs_max;
        if (!is_wanted(c, site, job) || !find_task(c, job, site, &task)) {
            continue;
        }
        claim = claim_of(&c->jobs[job]);
        if (!found || kedge_schedule_before(&claim, &least)) {
            best = task;
            least = claim;
            found = true;
        }
    }
    if (found) {
        emit_task(c, site, request, &best);
    }
    return found;
}

/* Called whenever something may have become due for the site; without a parked poll there is nobody
 * to tell. */
bool kedgei_offer(struct kedge_coord *c, uint32_t site)
{
    if (c->sites[site].request == KEDGE_COORD_NONE || !serve(c, site, c->sites[site].request)) {
        return false;
    }
    kedgei_unpark(c, site);
    return true;
}

void kedgei_poll_expired(struct kedge_coord *c)
{
    KEDGE_ASSERT(c->parked_count > 0);
    uint32_t site = c->heap[0], request = kedgei_unpark(c, site);
    if (!MUTANT(MUTANT_POLL_FORGOTTEN)) {
        emit_wait(c, site, request);
    }
}

/* A site has one poll parked at most. An older one that is still there is of a connection that is gone or
 * about to go, and is answered by WAIT. */
void kedgei_poll(struct kedge_coord *c, const struct kedge_coord_event *ev)
{
    KEDGE_ASSERT(ev->request != KEDGE_COORD_NONE);
    if (ev->site >= c->site_count || !c->sites[ev->site].active) {
        struct kedge_coord_effect *fx = kedgei_emit(c, KEDGE_FX_TURN_AWAY);
        fx->request = ev->request;
        fx->err = ev->site >= c->site_count ? KEDGE_E_NOT_ENROLLED : KEDGE_E_REVOKED;
        return;
    }
    kedgei_presence_touch(c, ev->site);
    struct site *s = &c->sites[ev->site];
    s->charge = s->charge != KEDGE_CHARGE_UNTOLD && MUTANT(MUTANT_CHARGE_KEPT) ? s->charge : ev->charge;
    kedgei_shifted(c, ev);
    if (ev->anew) {
        kedgei_able(c, ev->site);
    }
    if (ev->busy) {
        emit_wait(c, ev->site, ev->request);
        return;
    }
    uint32_t older = kedgei_unpark(c, ev->site);
    if (older != KEDGE_COORD_NONE && older != ev->request) {
        emit_wait(c, ev->site, older);
    }
    uint64_t wait = ev->wait_ns < c->times.poll_max ? ev->wait_ns : c->times.poll_max;
    s->at_work = ev->at_work;
    const bool one = !s->takes_several;
    s->takes_several = s->takes_several || ev->at_work != 0;
    if (one && s->takes_several) {
        kedgei_free_changed(c, KEDGE_COORD_NONE, ev->site);
    }
    kedgei_turns_end(c, ev->site, ev->at_work);
    if (!serve(c, ev->site, ev->request)) {
        wait = KEDGE_RARE(c, POLL_DROPPED) ? 0 : wait;
        kedgei_park(c, ev->site, ev->request,
                    kedgei_after(c, wait)); /* a wait of 0 is answered by the pump */
    }
}

/* Only the poll that is parked now: an older request of the same site may be told gone later. */
void kedgei_request_gone(struct kedge_coord *c, const struct kedge_coord_event *ev)
{
    if (ev->site < c->site_count && ev->request != KEDGE_COORD_NONE
        && c->sites[ev->site].request == ev->request) {
        kedgei_unpark(c, ev->site);
    }
}
