/* What hosts may look at, and the invariants. */
#include <string.h>

#include "coordinator/core/core.h"

static const struct job *job_find(const struct kedge_coord *c, uint32_t job)
{
    return job < c->limits.jobs_max && c->jobs[job].used ? &c->jobs[job] : NULL;
}

bool kedge_coord_job(const struct kedge_coord *c, uint32_t job, struct kedge_coord_job_view *ret)
{
    const struct job *j = job_find(c, job);
    if (!j) {
        return false;
    }
    memset(ret, 0, sizeof *ret);
    ret->params = &j->params;
    ret->state = j->told;
    ret->reason = j->told_reason;
    ret->initial = j->initial;
    ret->round = j->round;
    ret->closed_round = j->closed_round == KEDGE_COORD_NONE ? 0 : j->closed_round;
    ret->round_open =
        j->stage == STAGE_COLLECT || j->stage == STAGE_COMPUTE || j->stage == STAGE_ROUND_CLOSING;
    ret->round_kind = j->kind;
    ret->open_ns = j->open_ns;
    ret->deadline_ns = j->stage == STAGE_COLLECT ? j->deadline_ns : UINT64_MAX;
    ret->enrol_ns = kedgei_is_enrolling(j) && !j->halted_by_operator ? j->enrol_ns : UINT64_MAX;
    ret->lacks_free = j->stage == STAGE_WAITING_TO_OPEN && j->lacks_free;
    ret->free_count = j->eligible_count;
    ret->turn_ns = j->stage == STAGE_WAITING_TO_OPEN ? j->turn_ns : UINT64_MAX;
    ret->model_count = j->model_count;
    ret->models = j->models;
    ret->joined_count = j->joined_count;
    const struct kedgei_crowd crowd = kedgei_crowd_of(c, j);
    ret->online_count = crowd.online;
    ret->fitting_count = crowd.active;
    ret->accepted_count = j->accepted_count;
    ret->selected_count = j->selected_count;
    ret->refused_count = j->refused_count;
    return true;
}

const struct kedge_coord_row *kedge_coord_row(const struct kedge_coord *c, uint32_t job, uint32_t site)
{
    const struct job *j = job_find(c, job);
    return j && site < c->site_count ? &j->rows[site].pub : NULL;
}

bool kedge_coord_is_online(const struct kedge_coord *c, uint32_t site)
{
    return site < c->site_count && c->sites[site].active && c->sites[site].presence == PRESENCE_ONLINE;
}

const uint32_t *kedge_coord_site_order(const struct kedge_coord *c, uint32_t *ret_count)
{
    *ret_count = c->site_count;
    return c->order;
}

static bool is_model(const struct kedge_digest *model, const struct kedge_digest *of)
{
    return memcmp(model, of, sizeof *of) == 0;
}

static bool is_one_of(const struct kedge_digest *model, const struct kedge_digest *of, uint32_t count)
{
    for (uint32_t g = 0; g < count; g++) {
        if (is_model(model, &of[g])) {
            return true;
        }
    }
    return false;
}

/* What a site may fetch follows from its group in force. A model of another group would tell it
 * about sites that it does not train with; the models before the last close stay readable, for an
 * evaluation that was begun may still be under way. */
bool kedge_coord_may_read(const struct kedge_coord *c, uint32_t job, uint32_t site,
                          const struct kedge_digest *model)
{
    const struct job *j = job_find(c, job);
    if (!j || !kedgei_is_member(c, j, site) || j->stage == STAGE_JOB_OPENING) {
        return false;
    }
    if (is_model(model, &j->initial)) {
        return true; /* base of pretrain and of the first round, no secret of any group */
    }
    const struct row *row = &j->rows[site];
    if (j->params.entry == KEDGE_ENTRY_CHOICE || (MUTANT(MUTANT_FOREIGN_MODEL) && row->pub.group_durable)) {
        return is_one_of(model, j->models, j->model_count) || is_one_of(model, j->prior, j->prior_count);
    }
    if (kedgei_is_asynchronous(j) && row->pub.selected && is_model(model, kedgei_train_base(j, row))) {
        return true;
    }
    uint32_t now = row->pub.group_durable ? row->pub.group : KEDGE_COORD_NONE;
    uint32_t before = MUTANT(MUTANT_FORMER_MEMBER) ? now : kedgei_prior_group(j, row);
    return (now < j->model_count && is_model(model, &j->models[now]))
           || (before < j->prior_count && is_model(model, &j->prior[before]));
}

/* Asked before the first byte of an upload is taken: what could not count should not be sent. While
 * a round closes the answer is "busy", since what comes after is known when the close is durable. */
int kedge_coord_may_upload(const struct kedge_coord *c, uint32_t job, uint32_t site, uint32_t round)
{
    const struct job *j = job_find(c, job);
    if (site >= c->site_count || !c->sites[site].active) {
        return site >= c->site_count ? KEDGE_E_NOT_ENROLLED : KEDGE_E_REVOKED;
    }
    if (!j || j->cancelling || j->failing != KEDGE_OK) {
        return KEDGE_E_NO_JOB;
    }
    if (!kedgei_is_member(c, j, site)) {
        return KEDGE_E_NOT_JOINED;
    }
    if (kedgei_is_asynchronous(j) && kedgei_is_on(j, &j->rows[site], round)) {
        return j->stage == STAGE_COLLECT ? KEDGE_OK : KEDGE_E_BUSY;
    }
    if (round < j->round || (j->closed_round != KEDGE_COORD_NONE && round <= j->closed_round)) {
        return KEDGE_E_ROUND_CLOSED;
    }
    bool closing = j->stage == STAGE_COMPUTE || j->stage == STAGE_ROUND_CLOSING;
    if (round != j->round || (j->stage != STAGE_COLLECT && !closing)) {
        return KEDGE_E_ROUND_STALE;
    }
    if (!kedgei_is_on(j, &j->rows[site], round) && !kedgei_migrates(j, &j->rows[site])) {
        return KEDGE_E_NOT_SELECTED;
    }
    return closing ? KEDGE_E_BUSY : KEDGE_OK;
}

/* The invariants (core.h) are computed here from the rows alone and compared with what the tables
 * say. Debug builds and the simulator do this after each step, so a count that drifts is found at
 * the event that made it drift. */
struct counts {
    uint32_t selected, unresolved, awaited, testing, accepted, refused, ended, busy, in_flight, failed;
};

/* A group that is not in force is being stated; what is asked of a site fits the kind of the round. */
static bool groups_are_valid(const struct job *j, const struct row *row)
{
    const struct kedge_coord_row *p = &row->pub;
    bool grouped = p->group != KEDGE_COORD_NONE, closing = j->stage == STAGE_ROUND_CLOSING;
    bool stated =
        !grouped || p->group_durable || row->assign == ASSIGN_APPEND || kedgei_is_ending(j); /* given up */
    bool next = row->next_group == KEDGE_COORD_NONE
                || (row->next_group < j->next_count && (closing || j->stage >= STAGE_JOB_CLOSING));
    bool by_close = row->assign == ASSIGN_NONE || row->why != KEDGE_WHY_CLOSE || row->assign == ASSIGN_WORK
                    || j->stage == STAGE_ASSIGNING;
    bool fits = j->kind == KEDGE_TASK_TRAIN || p->train.progress == KEDGE_INPUT_NONE;
    bool chosen = j->params.entry != KEDGE_ENTRY_CHOICE
                  || (row->assign == ASSIGN_NONE && p->pretrain.progress == KEDGE_INPUT_NONE);
    bool round = p->group_round == KEDGE_COORD_NONE || p->group_round <= j->round;
    return (!grouped || p->group < j->params.groups) && (!p->group_durable || grouped) && stated && next
           && by_close && fits && chosen && round;
}

/* Who is at work has a task that still counts. */
static bool task_is_valid(const struct job *j, const struct row *row)
{
    uint32_t task = row->pub.task_round;
    bool kept = row->pub.selected && task != KEDGE_COORD_NONE && task <= j->round
                && (task + j->params.staleness_max >= j->round || MUTANT(MUTANT_STALE_TAKEN));
    bool none = !row->pub.selected && task == KEDGE_COORD_NONE && !row->pub.away;
    return !kedgei_is_asynchronous(j) || kept || none;
}

/* Rows that no list names are as a closed round leaves them. */
static bool is_at_rest(const struct row *row)
{
    const struct kedge_coord_row *p = &row->pub;
    return !p->selected && !p->shifted && !kedgei_is_unable(row) && p->ended == KEDGE_TROUBLE_NONE
           && p->pretrain.progress == KEDGE_INPUT_NONE && p->train.progress == KEDGE_INPUT_NONE
           && !row->in_flight && row->assign == ASSIGN_NONE && row->next_group == KEDGE_COORD_NONE
           && (p->group == KEDGE_COORD_NONE || p->group_durable);
}

static bool row_is_valid(const struct job *j, const struct row *row, struct counts *n)
{
    n->selected += row->pub.selected;
    n->unresolved += row->unresolved;
    n->awaited += row->awaited;
    n->testing += row->testing;
    n->accepted += row->accepted;
    n->refused += row->refused;
    n->ended += row->ended;
    n->busy += row->busy;
    n->in_flight += row->in_flight;
    for (int i = 0; i < ITEM_COUNT; i++) {
        n->failed += row->item[i].failed;
    }
    return groups_are_valid(j, row) && (row->touched || is_at_rest(row))
           && (!row->pub.selected || row->pub.candidate || kedgei_is_asynchronous(j))
           && (!row->busy || row->in_flight) && task_is_valid(j, row)
           && (!row->awaited || row->unresolved || j->stage == STAGE_EVALUATE);
}

static bool job_is_valid(const struct kedge_coord *c, const struct job *j)
{
    struct counts n = {0};
    for (uint32_t i = 0; i < c->site_count; i++) {
        if (!row_is_valid(j, &j->rows[i], &n)) {
            return false;
        }
    }
    bool closing = j->stage == STAGE_COMPUTE || j->stage == STAGE_ROUND_CLOSING;
    bool enough = (j->accepted_count >= j->quorum && kedgei_root_is_in(c, j)) || j->keeps;
    bool eligible = kedgei_eligible_is_valid(c, j);
    bool order =
        j->closed_round == KEDGE_COORD_NONE || j->round == j->closed_round || j->round == j->closed_round + 1;
    return n.selected == j->selected_count && n.unresolved == j->unresolved_count
           && n.awaited == j->awaited_count && n.testing == j->testing_count
           && n.accepted == j->accepted_count && n.refused == j->refused_count && n.ended == j->ended_count
           && n.busy == j->busy_count && n.in_flight == j->in_flight_count
           && n.failed + j->main.failed == j->failed_count && order
           && (!closing || (j->busy_count == 0 && enough)) && eligible
           && (j->stage != STAGE_ENDED || j->in_flight_count == 0) && j->model_count <= j->params.groups
           && (j->kind == KEDGE_TASK_TRAIN || j->params.groups > 1)
           && (j->turn_ns == UINT64_MAX || j->stage == STAGE_WAITING_TO_OPEN);
}

static bool list_is_valid(const struct kedge_coord *c, const struct site_list *list, enum presence presence,
                          uint32_t *left)
{
    uint64_t last = 0;
    uint32_t prev = KEDGE_COORD_NONE;
    for (uint32_t i = list->head; i != KEDGE_COORD_NONE; i = c->sites[i].next) {
        const struct site *s = &c->sites[i];
        if (*left == 0 || s->presence != presence || !s->active || s->until_ns < last || s->prev != prev) {
            return false;
        }
        (*left)--;
        last = s->until_ns;
        prev = i;
    }
    return list->tail == prev;
}

bool kedge_coord_is_valid(const struct kedge_coord *c)
{
    uint32_t left = 0, parked = 0;
    for (uint32_t i = 0; i < c->site_count; i++) {
        const struct site *s = &c->sites[i];
        left += s->presence != PRESENCE_GONE;
        parked += s->request != KEDGE_COORD_NONE;
        if (s->request != KEDGE_COORD_NONE && (s->heap_pos >= c->parked_count || c->heap[s->heap_pos] != i)) {
            return false;
        }
    }
    for (uint32_t i = 1; i < c->parked_count; i++) {
        if (c->sites[c->heap[i]].park_until_ns < c->sites[c->heap[(i - 1) / 2]].park_until_ns) {
            return false;
        }
    }
    for (uint32_t i = 0; c->started && i < c->limits.jobs_max; i++) {
        if (c->jobs[i].used && !job_is_valid(c, &c->jobs[i])) {
            return false;
        }
    }
    return parked == c->parked_count && list_is_valid(c, &c->online, PRESENCE_ONLINE, &left)
           && list_is_valid(c, &c->offline, PRESENCE_OFFLINE, &left) && left == 0;
}
