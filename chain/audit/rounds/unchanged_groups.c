/* Rounds in which groups were to be made anew and too few sites pre-trained: the groups stay as they were.
 * Whether that follows from what came. docs/record.md, "Groups kept". */
#include <string.h>

#include "chain/audit/record.h"

bool kedgei_rule_keeps(const char *rule)
{
    return strcmp(rule, KEDGE_RULE_KEPT) == 0;
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
