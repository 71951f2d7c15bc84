/* Restart: what was durable comes in by LOAD_* events, START derives from it where every job stands. What
 * was not durable never happened; what was durable but not reported is found here.
 *
 * There is one way to begin, after an orderly end and after a crash alike, so it is walked in every test
 * that restarts and cannot rot. Where it is unknown whether something was stored (job-opened, a
 * group-assigned), it is asked for again: the host answers a repeated append of the same statement with
 * its entry. */
#include <string.h>

#include "coordinator/core/core.h"

static void load_job(struct kedge_coord *c, const struct kedge_coord_event *ev)
{
    KEDGE_ASSERT(ev->state < KEDGE_JOB_COMPLETED);
    kedgei_job_reset(c, ev->job, ev);
    struct job *j = &c->jobs[ev->job];
    j->told = ev->state;
    j->told_reason = ev->state == KEDGE_JOB_HALTED ? ev->err : KEDGE_OK;
    j->halted_by_operator = ev->state == KEDGE_JOB_HALTED && ev->err == KEDGE_OK;
    j->stage = STAGE_WAITING_TO_OPEN; /* until LOAD_ROUND says more */
}

static enum kedge_task_kind kind_of(const struct kedge_coord_event *ev)
{
    return ev->round == 0 || ev->kind == KEDGE_TASK_PRETRAIN ? KEDGE_TASK_PRETRAIN : KEDGE_TASK_TRAIN;
}

static void load_round(struct kedge_coord *c, const struct kedge_coord_event *ev)
{
    struct job *j = &c->jobs[ev->job];
    KEDGE_ASSERT(ev->round <= j->params.rounds && ev->round >= kedge_coord_first_round(&j->params));
    if (!ev->closed) {
        j->stage = STAGE_COLLECT;
        j->round = ev->round;
        j->draw = ev->draw;
        j->kind = kind_of(ev);
        return;
    }
    KEDGE_ASSERT(ev->model_count >= 1 && ev->model_count <= j->params.groups && ev->models);
    bool follows = kedgei_is_asynchronous(j) && ev->round == j->closed_round + 1;
    KEDGE_ASSERT(j->closed_round == KEDGE_COORD_NONE || follows);
    j->closed_round = ev->round;
    j->closed_kind = kind_of(ev);
    j->regroup = ev->regroup && !MUTANT(MUTANT_FORGET_REGROUP);
    j->tries = ev->tries;
    j->tested = ev->tested;
    j->reached = ev->reached;
    j->useful = ev->useful;
    j->over_budget = ev->over_budget && ev->round < j->params.rounds;
    j->model_count = ev->model_count;
    memcpy(j->models, ev->models, ev->model_count * sizeof j->models[0]);
    kedgei_base_keep(j);
}

/* Who is at work, also where no round is open: what counts no more in the next one is not told apart. */
static void load_at_work(struct job *j, struct row *row, const struct kedge_coord_event *ev)
{
    bool open = j->stage == STAGE_COLLECT;
    uint32_t next = open ? j->round : j->closed_round + 1;
    bool fresh = ev->round + j->params.staleness_max >= next || MUTANT(MUTANT_STALE_TAKEN);
    KEDGE_ASSERT(ev->round >= 1 && ev->round <= next && (fresh || !open));
    row->pub.candidate = open && ev->round == j->round;
    row->pub.selected = fresh && next <= j->params.rounds && (open || !MUTANT(MUTANT_AT_WORK_FORGOTTEN));
    row->pub.task_round = !row->pub.selected                         ? KEDGE_COORD_NONE
                          : open && MUTANT(MUTANT_FORGET_TASK_ROUND) ? j->round
                                                                     : ev->round;
    j->selected_count += row->pub.selected;
}

static void load_row(struct kedge_coord *c, const struct kedge_coord_event *ev)
{
    struct row *row = kedgei_row(c, ev->job, ev->site);
    KEDGE_ASSERT(!row->pub.selected);
    if (kedgei_is_asynchronous(&c->jobs[ev->job]) && ev->selected) {
        load_at_work(&c->jobs[ev->job], row, ev);
        return;
    }
    row->pub.candidate = true;
    row->pub.selected = ev->selected;
    c->jobs[ev->job].selected_count += ev->selected ? 1 : 0;
}

/* What a site contributed to the open round, with what came of it. */
static void load_input(struct kedge_coord *c, const struct kedge_coord_event *ev)
{
    KEDGE_ASSERT(ev->kind == KEDGE_TASK_PRETRAIN || ev->kind == KEDGE_TASK_TRAIN);
    bool refused = ev->type == KEDGE_EV_LOAD_REFUSED;
    KEDGE_ASSERT(refused == (ev->err != KEDGE_OK));
    struct row *row = kedgei_row(c, ev->job, ev->site);
    struct kedge_coord_input *in =
        kedgei_input(row, ev->kind == KEDGE_TASK_TRAIN ? ITEM_TRAIN : ITEM_PRETRAIN);
    if (MUTANT(refused ? MUTANT_FORGET_REFUSED : MUTANT_FORGET_ACCEPTED)
        || (MUTANT(MUTANT_STALE_FORGOTTEN) && !refused && ev->round < c->jobs[ev->job].round)
        || (refused && in->progress == KEDGE_INPUT_ACCEPTED)) { /* it did better since */
        return;
    }
    in->progress = refused ? KEDGE_INPUT_REFUSED : KEDGE_INPUT_ACCEPTED;
    in->reason = ev->err;
    in->leaf = ev->leaf;
    in->envelope = ev->envelope;
    in->update = ev->update;
    in->weight = MUTANT(MUTANT_FORGET_WEIGHT) ? 1 : ev->weight;
    in->cost = ev->cost;
    in->group = ev->kind == KEDGE_TASK_TRAIN ? ev->group : KEDGE_COORD_NONE;
    if (c->jobs[ev->job].params.entry == KEDGE_ENTRY_CHOICE && !refused) {
        in->group = MUTANT(MUTANT_FORGET_CHOICE) ? 0 : ev->group;
        row->pub.group = in->group;
        row->pub.group_durable = true;
    }
}

/* The group in force, or after that the one that the last close gave and no statement says yet. */
static void load_group(struct kedge_coord *c, const struct kedge_coord_event *ev)
{
    const struct kedge_coord_job_params *p = &c->jobs[ev->job].params;
    struct row *row = kedgei_row(c, ev->job, ev->site);
    KEDGE_ASSERT(ev->group < p->groups);
    bool later = row->pub.group_durable && row->pub.group_round != KEDGE_COORD_NONE
                 && row->pub.group_round > ev->round;
    if (!ev->durable && later) {
        return; /* it has moved since, and nobody moves before all that a close gives is stated */
    }
    if (MUTANT(MUTANT_FORGET_MOVES) && !ev->durable && row->pub.group_durable) {
        return;
    }
    row->pub.group = ev->group;
    row->pub.group_durable = ev->durable || p->groups == 1 || MUTANT(MUTANT_FORGET_ASSIGNED);
    row->why = KEDGE_WHY_CLOSE;
    if (ev->durable && p->groups > 1 && p->entry != KEDGE_ENTRY_CHOICE) {
        row->pub.group_round = ev->round;
    }
}

/* The record is told to an empty core before it starts, in the order in which it was written; no effects
 * come of it. */
void kedgei_load(struct kedge_coord *c, const struct kedge_coord_event *ev)
{
    if (ev->type == KEDGE_EV_LOAD_JOB) {
        load_job(c, ev);
        return;
    }
    KEDGE_ASSERT(ev->job < c->limits.jobs_max && c->jobs[ev->job].used);
    if (ev->type == KEDGE_EV_LOAD_ROUND) {
        load_round(c, ev);
        return;
    }
    struct row *row = kedgei_row(c, ev->job, ev->site);
    if (ev->type == KEDGE_EV_LOAD_ROW) {
        load_row(c, ev);
    } else if (ev->type == KEDGE_EV_LOAD_ACCEPTED || ev->type == KEDGE_EV_LOAD_REFUSED) {
        load_input(c, ev);
    } else if (ev->type == KEDGE_EV_LOAD_GROUP) {
        load_group(c, ev);
    } else {
        KEDGE_ASSERT(ev->type == KEDGE_EV_LOAD_EVALUATED);
        row->pub.evaluated_round = row->evaluation_round = ev->round;
        row->evaluation.progress = KEDGE_INPUT_ACCEPTED;
        row->evaluation.envelope = ev->envelope;
        row->evaluation.leaf = ev->leaf;
    }
}

/* Sites of the open round between their accepted pretrain update and their durable group-assigned of it. */
static void resume_assignments(struct kedge_coord *c, uint32_t job)
{
    struct job *j = &c->jobs[job];
    for (uint32_t i = 0; i < c->site_count; i++) {
        struct row *row = &j->rows[i];
        bool cold = row->pub.group == KEDGE_COORD_NONE;
        bool once = j->params.migrate_every == 0 || row->pub.group_round == j->round;
        bool stated = !cold && row->pub.group_durable && once;
        bool forgotten = MUTANT(cold ? MUTANT_FORGET_ASSIGN_WORK : MUTANT_FORGET_MIGRATION);
        if (stated) {
            row->pub.pretrain.group = row->pub.group;
        } else if (j->kind == KEDGE_TASK_TRAIN && row->pub.pretrain.progress == KEDGE_INPUT_ACCEPTED
                   && !forgotten) {
            row->assign = ASSIGN_WORK;
        }
        kedgei_row_refresh(c, job, i);
    }
    j->sweep = 0;
}

/* Has the last close given groups that no statement says yet? */
static bool is_unstated(const struct kedge_coord *c, const struct job *j)
{
    for (uint32_t i = 0; i < c->site_count; i++) {
        if (j->rows[i].pub.group != KEDGE_COORD_NONE && !j->rows[i].pub.group_durable) {
            return true;
        }
    }
    return false;
}

/* The last round is closed and no other is open. */
static void start_after_close(struct kedge_coord *c, uint32_t job)
{
    struct job *j = &c->jobs[job];
    j->round = j->closed_round;
    j->kind = j->closed_kind;
    j->base = j->round == 0 && j->told != KEDGE_JOB_TRAINING ? KEDGE_JOB_GROUPING : KEDGE_JOB_TRAINING;
    if (j->round == 0 || is_unstated(c, j)) {
        kedgei_assign_all(c, job);
        return;
    }
    if (kedge_job_state_allows(j->told,
                               j->base)) { /* no state was kept: STORING may be next, if all are closed */
        kedgei_job_tell(c, job);
    }
    kedgei_next_round(c, job);
}

/* A round was open when the coordinator stopped: it goes on with the same sites and inputs, since its
 * opening is in the record. */
static void start_collecting(struct kedge_coord *c, uint32_t job)
{
    struct job *j = &c->jobs[job];
    KEDGE_ASSERT(j->closed_round == KEDGE_COORD_NONE || j->round == j->closed_round + 1);
    KEDGE_ASSERT(j->selected_count >= 1);
    j->quorum = kedgei_quorum(j);
    j->quorum = MUTANT(MUTANT_FORGET_QUORUM) ? 1 : j->quorum;
    j->base = j->round == 0 ? KEDGE_JOB_GROUPING : KEDGE_JOB_TRAINING;
    resume_assignments(c, job);
    kedgei_collect(c, job);
}

/* After a restart the stage follows from what is durable: an open round is collected, a closed one goes on
 * to the next. Where the last statement of the job may or may not have been stored it is appended again
 * under the same key. */
static void start_job(struct kedge_coord *c, uint32_t job)
{
    struct job *j = &c->jobs[job];
    KEDGE_ASSERT(!j->main.out && j->failed_count == 0);
    bool opened = j->told != KEDGE_JOB_PENDING && j->told != KEDGE_JOB_QUEUED
                  && !(j->told == KEDGE_JOB_HALTED && !j->halted_by_operator);
    j->eligible_stale = true;
    kedgei_rows_refresh_all(c, job);
    if (j->stage == STAGE_COLLECT) {
        start_collecting(c, job);
    } else if (j->closed_round != KEDGE_COORD_NONE) {
        start_after_close(c, job);
    } else if (opened) { /* no round is durable, but one may have been about to open */
        bool opening = j->told == KEDGE_JOB_GROUPING || j->told == KEDGE_JOB_TRAINING;
        j->base = opening ? j->told : KEDGE_JOB_ENROLLING;
    } else { /* job-opened may or may not be durable: asking again does no harm */
        j->base = KEDGE_JOB_QUEUED;
        j->stage = STAGE_JOB_OPENING;
        kedgei_main_emit(c, job);
    }
    j->dirty = true;
}

void kedgei_start(struct kedge_coord *c)
{
    KEDGE_ASSERT(!c->started);
    c->started = true;
    kedgei_presence_start(c);
    for (uint32_t i = 0; i < c->limits.jobs_max; i++) {
        if (c->jobs[i].used) {
            start_job(c, i);
        }
    }
}
