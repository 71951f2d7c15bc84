/* Rounds in which groups were to be made anew and too few sites pre-trained: the groups stay as they were.
 * Whether that follows from what came, and whether nothing changed. docs/record.md, "Groups kept". */
#include <string.h>

#include "chain/audit/record.h"

bool kedgei_rule_keeps(const char *rule)
{
    return strcmp(rule, KEDGE_RULE_KEPT) == 0;
}

void kedgei_check_kept(struct kedgei_audit *a, const struct kedgei_job *job, const struct kedgei_round *round,
                       const struct kedgei_fact *fact)
{
    const struct kedge_st_step *now = fact->body;
    const struct kedge_st_step *last = round > job->rounds && round[-1].step ? round[-1].step->body : NULL;
    const struct kedgei_fact *lists = round->aggregates[0];
    bool fits = last && now->group_count == last->group_count && now->drift >= 0 && now->drift <= 0
                && round->aggregate_count == (lists != NULL);
    for (uint32_t g = 0; fits && g < now->group_count; g++) {
        const struct kedge_st_step_group *row = &now->groups[g], *was = &last->groups[g];
        fits = kedge_hash_eq(&row->after, &was->after) && kedge_hash_eq(&row->direction, &was->direction)
               && kedge_hash_eq(&row->made, &was->made) && row->merged_into == was->merged_into
               && row->split_of == 0 && kedge_hash_is_zero(&row->whole) && kedge_hash_is_zero(&row->stepped)
               && kedge_hash_eq(&row->state_after, &was->state_after);
    }
    if (!fits || (lists && ((const struct kedge_st_aggregate *)lists->body)->count > 0)) {
        kedgei_error(&a->findings, KEDGE_AUDIT_STEP, &a->main, fact->index,
                     "round %u keeps the groups of job \"%s\", and changes them", round->number, job->id.s);
    }
}

/* Fewer updates than groups, or than the job's quorum, make no groups, unless no more sites were selected. */
static uint64_t wanted(const struct kedgei_job *job, const struct kedgei_round *round)
{
    const struct kedge_st_round_opened *o = round->opened->body;
    const struct kedge_st_step *last = round > job->rounds && round[-1].step ? round[-1].step->body : NULL;
    uint64_t selected = 0, least = job->spec.quorum;
    for (uint32_t t = 0; t < o->tenant_count; t++) {
        selected += o->tenants[t].selected;
    }
    least = last && last->group_count > least ? last->group_count : least;
    return least < selected ? least : selected;
}

void kedgei_check_enough(const struct kedgei_audit *a, const struct kedgei_job *job,
                         const struct kedgei_round *round, struct kedgei_findings *f)
{
    if (a->skipped || !kedgei_job_whole(job) || !round->pretrain || round->number == 0 || !round->step) {
        return;
    }
    if (round->kept != (round->update_count < wanted(job, round))) {
        kedgei_error(f, KEDGE_AUDIT_ROUND, &a->main, round->step->index,
                     "round %u of job \"%s\" %s: %zu sites pre-trained, new groups want %llu", round->number,
                     job->id.s, round->kept ? "keeps the groups" : "makes groups anew", round->update_count,
                     (unsigned long long)wanted(job, round));
    }
}

const char *kedgei_row_kept(const struct kedgei_job *job, const struct kedgei_round *round,
                            const struct kedgei_log *log, const struct kedge_input_row *row)
{
    const struct kedgei_fact *fact = kedgei_group_behind(log, &job->id, &row->site, row->leaf);
    const struct kedge_st_group_assigned *g = fact ? fact->body : NULL;
    return g && g->round == round->number ? "the round keeps the groups, and the site was given one" : NULL;
}
