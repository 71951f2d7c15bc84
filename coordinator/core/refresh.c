/* What a row that has changed means for its job: flags, their counts, and who may be selected. rows.c says
 * what a row is, by itself; eligible.c builds on that, and this on both. */
#include "coordinator/core/core.h"

/* Is the site's part in the round settled, well or not? */
static bool is_refused(const struct job *j, const struct row *row)
{
    bool cold = j->kind == KEDGE_TASK_PRETRAIN || row->pub.group == KEDGE_COORD_NONE;
    return row->pub.train.progress == KEDGE_INPUT_REFUSED
           || (cold && row->pub.pretrain.progress == KEDGE_INPUT_REFUSED);
}

static bool is_accepted(const struct job *j, const struct row *row)
{
    const struct kedge_coord_input *in =
        j->kind == KEDGE_TASK_PRETRAIN ? &row->pub.pretrain : &row->pub.train;
    return in->progress == KEDGE_INPUT_ACCEPTED;
}

/* Each count is the number of rows with the flag, so a row is taken out with its old flags and put
 * in with its new ones. */
static void count_flags(struct job *j, const struct row *row, uint32_t by)
{
    j->unresolved_count += row->unresolved ? by : 0; /* by is 1 or, modulo 2^32, -1 */
    j->awaited_count += row->awaited ? by : 0;
    j->testing_count += row->testing ? by : 0;
    j->accepted_count += row->accepted ? by : 0;
    j->refused_count += row->refused ? by : 0;
    j->ended_count += row->ended ? by : 0;
    j->busy_count += row->busy ? by : 0;
    j->in_flight_count += row->in_flight ? by : 0;
}

/* All that the job counts of one site, from the row alone. Flags are never set one by one where something
 * happens: a case that was forgotten there would count a site twice or never. */
static void set_flags(const struct kedge_coord *c, const struct job *j, uint32_t site, struct row *row)
{
    const struct kedge_coord_row *p = &row->pub;
    row->accepted = p->selected && is_accepted(j, row);
    row->refused = p->selected && !row->accepted && is_refused(j, row);
    row->ended = p->selected && !row->accepted && !row->refused && p->ended != KEDGE_TROUBLE_NONE;
    row->unresolved =
        p->selected && !row->accepted && !row->refused && !row->ended && kedgei_is_member(c, j, site);
    bool present = kedgei_is_member(c, j, site) && c->sites[site].presence != PRESENCE_GONE
                   && (p->selected || kedgei_fits(c, j, site));
    row->awaited =
        present
        && ((j->stage == STAGE_COLLECT && row->unresolved)
            || (j->stage == STAGE_EVALUATE && kedgei_evaluation_due(j, row) && !kedgei_is_unable(row)));
    const bool on_way = kedgei_in_flight(&row->evaluation) && row->evaluation_round == j->closed_round;
    row->testing = present && j->stage == STAGE_COLLECT && j->tries && !kedgei_is_unable(row)
                   && (kedgei_evaluation_due(j, row) || on_way);
    row->busy = kedgei_in_flight(&p->pretrain) || kedgei_in_flight(&p->train) || row->assign != ASSIGN_NONE;
    if (MUTANT(MUTANT_CLOSE_WHILE_APPENDING)) {
        row->busy = p->pretrain.progress == KEDGE_INPUT_VERIFYING
                    || p->train.progress == KEDGE_INPUT_VERIFYING || row->assign != ASSIGN_NONE;
    }
    row->in_flight = row->busy || kedgei_in_flight(&row->evaluation);
}

/* Takes the row out of the counts, derives its flags anew and counts it again. So the counts of a job cost
 * nothing to read and cannot drift from its rows. */
void kedgei_row_refresh(struct kedge_coord *c, uint32_t job, uint32_t site)
{
    struct job *j = &c->jobs[job];
    struct row *row = kedgei_row(c, job, site);
    kedgei_touch(j, site);
    kedgei_eligible_update(c, j, site);
    const bool had = row->unresolved;
    count_flags(j, row, UINT32_MAX);
    set_flags(c, j, site, row);
    count_flags(j, row, 1);
    if (row->unresolved != had) {
        kedgei_free_changed(c, job, site);
    }
    KEDGE_ASSERT(j->awaited_count <= c->site_count && j->busy_count <= j->in_flight_count);
    j->dirty = true;
}

void kedgei_rows_refresh_all(struct kedge_coord *c, uint32_t job)
{
    for (uint32_t i = 0; i < c->site_count; i++) {
        kedgei_row_refresh(c, job, i);
    }
}

/* A stage can change the flags of rows that no event has touched: when evaluations begin, all sites
 * are awaited. Otherwise only the touched rows depend on the round. */
void kedgei_rows_refresh(struct kedge_coord *c, uint32_t job)
{
    const struct job *j = &c->jobs[job];
    bool evaluates = j->stage >= STAGE_EVALUATE || (j->stage == STAGE_WAITING_TO_OPEN && j->tested);
    const bool tests = j->testing_count > 0 || (j->stage == STAGE_COLLECT && j->tries);
    if (tests || (evaluates && j->params.evaluate_every > 0)) { /* all sites are awaited, or not any more */
        kedgei_rows_refresh_all(c, job);
        return;
    }
    for (uint32_t i = 0; i < j->touched_count; i++) {
        kedgei_row_refresh(c, job, j->touched[i]);
    }
}
