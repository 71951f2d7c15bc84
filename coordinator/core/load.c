/* Restart: what was durable comes in by LOAD_* events, START derives from it where every job stands. What was
 * not durable never happened; what was durable but not reported is found here. */
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
    j->stage = STAGE_WISH; /* until LOAD_ROUND says more */
}

static void load_round(struct kedge_coord *c, const struct kedge_coord_event *ev)
{
    struct job *j = &c->jobs[ev->job];
    KEDGE_ASSERT(ev->round <= j->params.rounds && (ev->round > 0 || j->params.groups > 1));
    if (!ev->closed) {
        j->stage = STAGE_COLLECT;
        j->round = ev->round;
        return;
    }
    KEDGE_ASSERT(ev->model_count >= 1 && ev->model_count <= j->params.groups && ev->models);
    KEDGE_ASSERT(j->closed_round == KEDGE_COORD_NONE);
    j->closed_round = ev->round;
    j->model_count = ev->model_count;
    memcpy(j->models, ev->models, ev->model_count * sizeof j->models[0]);
}

static void load_row(struct kedge_coord *c, const struct kedge_coord_event *ev)
{
    struct row *row = kedgei_row(c, ev->job, ev->site);
    KEDGE_ASSERT(!row->pub.selected);
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
        || (refused && in->progress == KEDGE_INPUT_ACCEPTED)) { /* it did better since */
        return;
    }
    in->progress = refused ? KEDGE_INPUT_REFUSED : KEDGE_INPUT_ACCEPTED;
    in->reason = ev->err;
    in->leaf = ev->leaf;
    in->envelope = ev->envelope;
    in->update = ev->update;
    in->weight = MUTANT(MUTANT_FORGET_WEIGHT) ? 1 : ev->weight;
}

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
        KEDGE_ASSERT(ev->group < c->jobs[ev->job].params.groups);
        row->pub.group = ev->group;
        row->pub.group_durable = ev->durable || c->jobs[ev->job].params.groups == 1;
        row->pub.group_durable = row->pub.group_durable || MUTANT(MUTANT_FORGET_ASSIGNED);
    } else {
        KEDGE_ASSERT(ev->type == KEDGE_EV_LOAD_EVALUATED);
        row->pub.evaluated_round = row->evaluation_round = ev->round;
        row->evaluation.progress = KEDGE_INPUT_ACCEPTED;
        row->evaluation.envelope = ev->envelope;
        row->evaluation.leaf = ev->leaf;
    }
}

/* Sites between their accepted pretrain update and their durable group-assigned. */
static void resume_assignments(struct kedge_coord *c, uint32_t job)
{
    struct job *j = &c->jobs[job];
    for (uint32_t i = 0; i < c->site_count; i++) {
        struct row *row = &j->rows[i];
        if (row->pub.group != KEDGE_COORD_NONE && !row->pub.group_durable) {
            row->assign = ASSIGN_APPEND;
        } else if (row->pub.group == KEDGE_COORD_NONE && j->round > 0 && !MUTANT(MUTANT_FORGET_ASSIGN_WORK)
                   && row->pub.pretrain.progress == KEDGE_INPUT_ACCEPTED) {
            row->assign = ASSIGN_WORK;
        }
        kedgei_row_refresh(c, job, i);
    }
    j->sweep = 0;
}

static void start_collecting(struct kedge_coord *c, uint32_t job)
{
    struct job *j = &c->jobs[job];
    KEDGE_ASSERT(j->closed_round == KEDGE_COORD_NONE || j->round == j->closed_round + 1);
    KEDGE_ASSERT(j->selected_count >= 1);
    j->quorum = j->params.quorum < j->selected_count ? j->params.quorum : j->selected_count;
    j->quorum = MUTANT(MUTANT_FORGET_QUORUM) ? 1 : j->quorum;
    j->base = j->round == 0 ? KEDGE_JOB_GROUPING : KEDGE_JOB_TRAINING;
    resume_assignments(c, job);
    kedgei_collect(c, job);
}

static void start_job(struct kedge_coord *c, uint32_t job)
{
    struct job *j = &c->jobs[job];
    KEDGE_ASSERT(!j->main.out && j->failed_count == 0);
    bool opened = j->told != KEDGE_JOB_PENDING && j->told != KEDGE_JOB_QUEUED
                  && !(j->told == KEDGE_JOB_HALTED && !j->halted_by_operator);
    kedgei_rows_refresh(c, job);
    if (j->stage == STAGE_COLLECT) {
        start_collecting(c, job);
    } else if (j->closed_round == 0) {
        j->round = 0;
        j->base = j->told == KEDGE_JOB_TRAINING ? KEDGE_JOB_TRAINING : KEDGE_JOB_GROUPING;
        kedgei_assign_all(c, job);
    } else if (j->closed_round != KEDGE_COORD_NONE) {
        j->round = j->closed_round;
        j->base = KEDGE_JOB_TRAINING;
        if (kedgei_job_allows(j->told,
                              j->base)) { /* no state was kept: STORING may be next, if all are closed */
            kedgei_job_tell(c, job);
        }
        resume_assignments(c, job);
        kedgei_next_round(c, job);
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
