/* Hierarchical jobs: whose edge a site is at, and the rounds behind whose steps the edges meet. */
#include "chain/audit/record.h"

uint32_t kedgei_first_group(const struct kedgei_audit *a, const struct kedgei_job *job,
                            const struct kedgei_log *log)
{
    if (!kedge_job_spec_has_edges(&job->spec)) {
        return 0;
    }
    for (uint32_t i = 0; i < job->spec.tenant_count; i++) {
        if (job->tenants[i] != UINT32_MAX && &a->tenants[job->tenants[i]] == log) {
            return kedge_job_spec_edge(i);
        }
    }
    return 0; /* not of the job, which is said elsewhere */
}

bool kedgei_meets(const struct kedgei_job *job, const struct kedgei_round *round)
{
    return kedge_job_spec_meets(&job->spec, round->number);
}

void kedgei_check_meeting(struct kedgei_audit *a, const struct kedgei_job *job,
                          const struct kedgei_round *round, const struct kedgei_fact *fact)
{
    const struct kedge_st_step *s = fact->body;
    for (uint32_t g = 1; kedgei_meets(job, round) && g < s->group_count; g++) {
        if (!kedge_hash_eq(&s->groups[g].after, &s->groups[0].after)) {
            kedgei_error(&a->findings, KEDGE_AUDIT_STEP, &a->main, fact->index,
                         "group %u: the edges met and left with different models", g);
        }
    }
}
