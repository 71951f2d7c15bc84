/* Groups of sites: from an accepted pretrain update to a durable group-assigned statement. Only then is the
 * site warm. A group, once durable, never changes. */
#include "coordinator/core/core.h"

void kedgei_assign_start(struct kedge_coord *c, uint32_t job, uint32_t site, enum assign_step step)
{
    struct row *row = kedgei_row(c, job, site);
    KEDGE_ASSERT(step != ASSIGN_NONE && !row->pub.group_durable);
    KEDGE_ASSERT(!row->item[ITEM_ASSIGN].out);
    row->assign = step;
    kedgei_item_emit(c, job, site, ITEM_ASSIGN);
    kedgei_row_refresh(c, job, site);
}

void kedgei_assigned(struct kedge_coord *c, const struct kedge_coord_event *ev)
{
    struct row *row = kedgei_row(c, ev->job, ev->site);
    struct job *j = &c->jobs[ev->job];
    KEDGE_ASSERT(row->assign == ASSIGN_WORK && row->item[ITEM_ASSIGN].out);
    enum kedge_err_class class = kedge_err_class(ev->err);
    if (class == KEDGE_CLASS_RETRY || class == KEDGE_CLASS_FULL || class == KEDGE_CLASS_UNKNOWN) {
        kedgei_item_failed(c, ev->job, &row->item[ITEM_ASSIGN], ev->err);
        return;
    }
    kedgei_item_done(j, &row->item[ITEM_ASSIGN]);
    if (ev->err == KEDGE_OK) {
        KEDGE_ASSERT(ev->group < j->model_count);
        row->pub.group = ev->group;
        kedgei_assign_start(c, ev->job, ev->site, ASSIGN_APPEND);
        return;
    }
    row->assign = ASSIGN_NONE;
    if (class == KEDGE_CLASS_REJECT) { /* its update fits no group: the round goes on without it */
        row->pub.train.progress = KEDGE_INPUT_REFUSED;
        row->pub.train.reason = ev->err;
    } else {
        j->failing = ev->err;
    }
    kedgei_row_refresh(c, ev->job, ev->site);
}

void kedgei_assign_appended(struct kedge_coord *c, const struct kedge_coord_event *ev)
{
    struct row *row = kedgei_row(c, ev->job, ev->site);
    KEDGE_ASSERT(row->assign == ASSIGN_APPEND && row->item[ITEM_ASSIGN].out);
    if (ev->err != KEDGE_OK) {
        if (MUTANT(MUTANT_GROUP_DRAWN_AGAIN)) {
            row->pub.group = (row->pub.group + 1) % c->jobs[ev->job].model_count;
        }
        kedgei_item_failed(c, ev->job, &row->item[ITEM_ASSIGN], ev->err);
        return;
    }
    KEDGE_ASSERT(row->pub.group != KEDGE_COORD_NONE && !row->pub.group_durable);
    kedgei_item_done(&c->jobs[ev->job], &row->item[ITEM_ASSIGN]);
    row->assign = ASSIGN_NONE;
    row->pub.group_durable = true;
    kedgei_row_refresh(c, ev->job, ev->site);
    kedgei_offer(c, ev->site);
}
