/* The sweep over a job's rows: it asks again for what failed, or gives it up where the job ends. */
#include "coordinator/core/core.h"

static void forget_failure(struct job *j, struct item *item)
{
    KEDGE_ASSERT(!item->out);
    if (item->failed) {
        KEDGE_ASSERT(j->failed_count > 0);
        item->failed = false;
        j->failed_count--;
    }
}

/* What of the site failed and is not out: nobody will ask for it again. At most ITEM_COUNT effects. */
static void row_give_up(struct kedge_coord *c, uint32_t job, uint32_t site)
{
    struct job *j = &c->jobs[job];
    struct row *row = kedgei_row(c, job, site);
    if (MUTANT(MUTANT_CANCEL_WAITS)) {
        return;
    }
    for (enum item_kind kind = ITEM_PRETRAIN; kind < ITEM_ASSIGN; kind++) {
        if (kedgei_in_flight(kedgei_input(row, kind)) && !row->item[kind].out) {
            forget_failure(j, &row->item[kind]);
            kedgei_input_give_up(c, job, site, kind);
        }
    }
    if (row->assign != ASSIGN_NONE && !row->item[ITEM_ASSIGN].out) {
        forget_failure(j, &row->item[ITEM_ASSIGN]);
        row->assign = ASSIGN_NONE;
        kedgei_row_refresh(c, job, site);
    }
}

/* Asks again for what is due and not out: after a restart, a pause or a failure. Of an ending job
 * everything that waits is given up instead. */
void kedgei_sweep_row(struct kedge_coord *c, uint32_t job, uint32_t site)
{
    struct row *row = kedgei_row(c, job, site);
    if (kedgei_is_ending(&c->jobs[job])) {
        row_give_up(c, job, site);
        return;
    }
    for (enum item_kind kind = ITEM_PRETRAIN; kind < ITEM_ASSIGN; kind++) {
        if (kedgei_input(row, kind)->progress == KEDGE_INPUT_APPENDING && !row->item[kind].out) {
            kedgei_item_emit(c, job, site, kind);
        }
    }
    if (row->assign != ASSIGN_NONE && !row->item[ITEM_ASSIGN].out) {
        kedgei_item_emit(c, job, site, ITEM_ASSIGN);
    }
}
