/* The effects that are out for a site of a job, and those that failed and are asked for again. */
#include "coordinator/core/core.h"

/* What failed is tried again after a pause, all of the job together: where the disk is full, ten thousand
 * retries at their own times would only keep it busy. */
void kedgei_item_failed(struct kedge_coord *c, uint32_t job, struct item *item, int err)
{
    struct job *j = &c->jobs[job];
    KEDGE_ASSERT(item->out && err != KEDGE_OK);
    item->out = false;
    if (!item->failed) {
        item->failed = true;
        j->failed_count++;
    }
    j->stored_err = err;
    uint64_t pause = KEDGE_RARE(c, RETRY_NOW) ? 1 : c->times.retry;
    j->retry_ns = j->retry_ns != UINT64_MAX ? j->retry_ns : kedgei_after(c, pause);
    j->sweep = kedgei_is_ending(j) ? 0 : j->sweep;
    j->dirty = true;
}

/* The last failed one that succeeds frees the tasks: while something could not be stored none went
 * out. */
void kedgei_item_done(struct job *j, struct item *item)
{
    KEDGE_ASSERT(item->out);
    item->out = false;
    if (item->failed) {
        KEDGE_ASSERT(j->failed_count > 0);
        item->failed = false;
        j->failed_count--;
        if (j->failed_count == 0) {
            kedgei_offer_all(j); /* tasks may go out again */
        }
    }
    j->dirty = true;
}

static enum kedge_task_kind task_kind(enum item_kind kind)
{
    static const enum kedge_task_kind kinds[] = {
        [ITEM_PRETRAIN] = KEDGE_TASK_PRETRAIN,
        [ITEM_TRAIN] = KEDGE_TASK_TRAIN,
        [ITEM_EVALUATE] = KEDGE_TASK_EVALUATE,
        [ITEM_ASSIGN] = KEDGE_TASK_PRETRAIN,
    };
    return kinds[kind];
}

/* An effect for the host: verify, append, find a group. Everything in it comes from the row, so that a
 * repetition after a failure or a restart asks for the same. */
void kedgei_item_emit(struct kedge_coord *c, uint32_t job, uint32_t site, enum item_kind kind)
{
    struct row *row = kedgei_row(c, job, site);
    struct item *item = &row->item[kind];
    KEDGE_ASSERT(!item->out);
    item->out = true;
    if (kind == ITEM_ASSIGN) {
        KEDGE_ASSERT(row->assign != ASSIGN_NONE);
        bool work = row->assign == ASSIGN_WORK;
        struct kedge_coord_effect *fx =
            kedgei_emit_site(c, work ? KEDGE_FX_ASSIGN : KEDGE_FX_APPEND_ASSIGNED, job, site);
        fx->group = work ? KEDGE_COORD_NONE : row->pub.group;
        fx->why = row->why;
        return;
    }
    struct kedge_coord_input *in = kedgei_input(row, kind);
    KEDGE_ASSERT(kedgei_in_flight(in));
    bool verify = in->progress == KEDGE_INPUT_VERIFYING;
    struct kedge_coord_effect *fx =
        kedgei_emit_site(c, verify ? KEDGE_FX_VERIFY : KEDGE_FX_APPEND, job, site);
    fx->kind = task_kind(kind);
    fx->round = kind == ITEM_EVALUATE ? row->evaluation_round
                : kind == ITEM_TRAIN  ? kedgei_task_round(&c->jobs[job], row)
                                      : fx->round;
    fx->group = kind == ITEM_PRETRAIN ? KEDGE_COORD_NONE : in->group;
    fx->request = item->request;
    fx->ticket = in->ticket;
}

/* An update that found no room on the disk is told to the operator, with one site as example, for as long
 * as the round lasts or until that site's next attempt is stored. The round itself goes on without it. */
void kedgei_job_unstored(struct kedge_coord *c, uint32_t job, uint32_t site, int err)
{
    struct job *j = &c->jobs[job];
    bool untold = MUTANT(MUTANT_UNSTORED_UNTOLD), forever = MUTANT(MUTANT_UNSTORED_FOREVER);
    if (err != KEDGE_OK && j->stage == STAGE_COLLECT && j->unstored_site == KEDGE_COORD_NONE && !untold) {
        j->unstored_site = site;
        j->unstored_err = err;
        j->dirty = true;
    } else if (err == KEDGE_OK && j->unstored_site == site && !forever) {
        j->unstored_site = KEDGE_COORD_NONE;
        j->dirty = true;
    }
}
