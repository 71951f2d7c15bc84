/* What sites found of trials, as a close counts it: rows of its lists against their evaluations.
 *
 * Who writes lists could leave out the evaluations that speak against a join. So of each tenant's ledger a
 * close counts all that came up to the last one that it counts; what came later may have come after it had
 * begun. */
#include <stdio.h>
#include <string.h>

#include "chain/audit/record.h"

/* The trial that the step before has for this group; NULL: none. */
static const struct kedge_hash *trial_of(const struct kedgei_job *job, const struct kedgei_round *round,
                                         uint32_t group)
{
    const struct kedgei_fact *before = round > job->rounds ? round[-1].step : NULL;
    const struct kedge_st_step_group *row = before ? kedgei_step_group(before, group) : NULL;
    return row && row->tried_with > 0 && !kedge_hash_is_zero(&row->trial) ? &row->trial : NULL;
}

/* It says something of the trial that this close judges. */
static bool is_of_trial(const struct kedgei_job *job, const struct kedgei_round *round,
                        const struct kedgei_fact *fact)
{
    const struct kedge_st_evaluation *e = fact->body;
    if (fact->kind != KEDGE_ST_EVALUATION || !kedge_id_eq(&e->job, &job->id)
        || e->round + 1 != round->number) {
        return false;
    }
    const struct kedge_hash *trial = trial_of(job, round, e->group);
    if (trial) {
        return kedge_hash_eq(trial, &e->trial);
    }
    /* of a group that is tried with none: what its training has made of the model */
    const struct kedgei_fact *before = round > job->rounds ? round[-1].step : NULL;
    return before && kedgei_step_group(before, e->group) && kedge_hash_is_zero(&e->trial)
           && e->personal_loss > 0 && kedge_job_spec_asks_own(&job->spec, e->round);
}

/* The row repeats what the signed evaluation says; a row that differs would let the list decide the
 * trial. */
const char *kedgei_trial_row_fault(const struct kedgei_job *job, const struct kedgei_round *round,
                                   const struct kedgei_log *log, const struct kedge_input_row *row)
{
    const struct kedgei_fact *fact = row->leaf < log->count ? kedgei_fact_at(log, row->leaf) : NULL;
    const struct kedge_st_evaluation *e = fact && is_of_trial(job, round, fact) ? fact->body : NULL;
    if (!e || !kedge_id_eq(&e->site, &row->site) || e->group != row->group) {
        return "that entry is no evaluation of the trial of its group by this site";
    }
    if (row->weight != e->samples || row->to != 0 || row->round != 0 || row->reason[0] != '\0'
        || !kedge_hash_is_zero(&row->update)) {
        return "it says something else than its evaluation";
    }
    return NULL;
}

/* From the table of keys, which has a round's evaluations side by side. `last` is the newest that counts;
 * all before it must count as well. */
bool kedgei_trial_rows_whole(const struct kedgei_job *job, const struct kedgei_round *round,
                             const struct kedgei_log *log, uint64_t listed, uint64_t last)
{
    char text[KEDGE_IDEM_KEY_MAX + 2];
    const size_t len = (size_t)snprintf(text, sizeof text, "evaluation/%s/%08u/", job->id.s,
                                        round->number > 0 ? round->number - 1 : 0);
    uint64_t came = 0;
    for (size_t i = kedgei_log_lower(log, kedge_view_of(text, len)); i < log->key_count; i++) {
        const struct kedgei_key_row *row = kedgei_key_at(log, i);
        if (row->key.len <= len || memcmp(row->key.ptr, text, len) != 0) {
            break;
        }
        came += row->index <= last && is_of_trial(job, round, kedgei_fact_at(log, row->index));
    }
    return came == listed;
}
