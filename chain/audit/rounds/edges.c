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
