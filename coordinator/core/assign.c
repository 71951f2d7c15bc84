/* Groups of sites: from an accepted pretrain update, or a close, to a durable group-assigned statement.
 * Only then is the group in force; until then the site is asked for nothing, or an update could count for
 * a group that after a crash the site is not in.
 *
 * The steps are work (the host finds the group), append (the statement is stored), none. Each is repeated
 * after a failure that may pass, with the same group: drawing anew could give a site two groups. */
#include "coordinator/core/core.h"

void kedgei_assign_start(struct kedge_coord *c, uint32_t job, uint32_t site, enum assign_step step)
{
    struct row *row = kedgei_row(c, job, site);
    KEDGE_ASSERT(step == ASSIGN_WORK || (step == ASSIGN_APPEND && !row->pub.group_durable));
    KEDGE_ASSERT(!row->item[ITEM_ASSIGN].out);
    row->assign = step;
    kedgei_item_emit(c, job, site, ITEM_ASSIGN);
    kedgei_row_refresh(c, job, site);
}

/* Before a round opens, the host looks up which model each selected site is nearest to (its last one). What
 * a site has stated in this round already stays. */
void kedgei_assign_nearest(struct kedge_coord *c, uint32_t job)
{
    struct job *j = &c->jobs[job];
    for (uint32_t i = 0; j->params.entry == KEDGE_ENTRY_NEAREST && i < c->site_count; i++) {
        struct row *row = &j->rows[i];
        bool stated = row->pub.group_durable && row->pub.group_round == j->round;
        if (row->pub.selected && row->pub.train.progress != KEDGE_INPUT_ACCEPTED && !stated) {
            KEDGE_ASSERT(row->assign == ASSIGN_NONE && !row->item[ITEM_ASSIGN].out);
            row->assign = ASSIGN_WORK;
            row->why = KEDGE_WHY_NEAREST;
            kedgei_row_refresh(c, job, i);
        }
    }
    j->sweep = j->params.entry == KEDGE_ENTRY_NEAREST ? 0 : j->sweep;
}

/* The group that the site's last model is nearest to: where it is the one in force there is nothing to state.
 */
static void take_nearest(struct kedge_coord *c, const struct kedge_coord_event *ev, struct row *row)
{
    struct job *j = &c->jobs[ev->job];
    if (row->pub.group == ev->group || (MUTANT(MUTANT_NEAREST_ONCE) && row->pub.group_durable)) {
        row->assign = ASSIGN_NONE;
        kedgei_row_refresh(c, ev->job, ev->site);
        kedgei_offer(c, ev->site);
        return;
    }
    kedgei_group_set(j, row, ev->group, false);
    kedgei_assign_start(c, ev->job, ev->site, ASSIGN_APPEND);
}

/* The host has found a group, or none. An error that may pass is tried again with the same input. An update
 * that fits no group is refused, and the site is a newcomer still; one that already has a group stays in
 * it. */
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
        if (j->params.entry == KEDGE_ENTRY_NEAREST) {
            take_nearest(c, ev, row);
            return;
        }
        row->why = row->pub.group == KEDGE_COORD_NONE ? KEDGE_WHY_NEWCOMER : KEDGE_WHY_MIGRATION;
        row->pub.pretrain.group = ev->group;
        kedgei_group_set(j, row, ev->group, false);
        kedgei_assign_start(c, ev->job, ev->site, ASSIGN_APPEND);
        return;
    }
    row->assign = ASSIGN_NONE;
    if (class == KEDGE_CLASS_REJECT) { /* its update fits no group: the round goes on without a newcomer */
        bool warm = row->pub.group_durable;
        row->pub.train.progress = warm ? row->pub.train.progress : KEDGE_INPUT_REFUSED;
        row->pub.train.reason = warm ? row->pub.train.reason : ev->err;
    } else {
        kedgei_job_fail(j, ev->err);
    }
    kedgei_row_refresh(c, ev->job, ev->site);
    kedgei_offer(c, ev->site);
}

void kedgei_assign_appended(struct kedge_coord *c, const struct kedge_coord_event *ev)
{
    struct row *row = kedgei_row(c, ev->job, ev->site);
    KEDGE_ASSERT(row->assign == ASSIGN_APPEND && row->item[ITEM_ASSIGN].out);
    if (kedgei_is_final(ev->err)) { /* the site cannot be told its group, now or later */
        kedgei_item_done(&c->jobs[ev->job], &row->item[ITEM_ASSIGN]);
        kedgei_job_fail(&c->jobs[ev->job], ev->err);
        return;
    }
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
    row->pub.group_round = c->jobs[ev->job].round;
    kedgei_row_refresh(c, ev->job, ev->site);
    kedgei_offer(c, ev->site);
}
