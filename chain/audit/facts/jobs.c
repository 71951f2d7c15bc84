/* Jobs and their rounds: who is who, and which model a group begins a round with. */
#include "chain/audit/record.h"

struct kedgei_job *kedgei_job_find(const struct kedgei_audit *a, const struct kedge_id *id)
{
    for (uint32_t j = 0; j < a->job_count; j++) {
        if (kedge_id_eq(&a->jobs[j]->id, id)) {
            return a->jobs[j];
        }
    }
    return NULL;
}

struct kedgei_round *kedgei_round_find(const struct kedgei_job *job, uint32_t number)
{
    size_t first = job->round_count ? kedgei_round_at(job, 0)->number : 0;
    return number >= first && number - first < job->round_count ? kedgei_round_at(job, number - first) : NULL;
}

struct kedgei_log *kedgei_job_tenant(const struct kedgei_audit *a, const struct kedgei_job *job,
                                     const struct kedge_hash *salted)
{
    for (uint32_t i = 0; i < job->spec.tenant_count; i++) {
        if (job->tenants[i] != UINT32_MAX && kedge_hash_eq(&a->tenants[job->tenants[i]].salted, salted)) {
            return &a->tenants[job->tenants[i]];
        }
    }
    return NULL;
}

const struct kedge_st_step_group *kedgei_step_group(const struct kedgei_fact *step, uint32_t group)
{
    const struct kedge_st_step *s = step ? step->body : NULL;
    return s && group < s->group_count ? &s->groups[group] : NULL;
}

/* False: the round before has no step, so nothing can be demanded. A number that had no group before
 * groups were made anew starts from the job's initial model. */
bool kedgei_model_before(const struct kedgei_job *job, const struct kedgei_round *round, uint32_t group,
                         struct kedge_hash *ret)
{
    if (round == job->rounds) {
        *ret = kedgei_first_model(job, group);
        return true;
    }
    const struct kedge_st_step_group *g = kedgei_step_group(round[-1].step, group);
    if (g) {
        *ret = g->after;
    } else if (round[-1].step && kedgei_regroups(round)) { /* a number that had no group */
        *ret = ((const struct kedge_st_job_opened *)job->opened->body)->initial_model;
        return true;
    }
    return g != NULL;
}

struct kedge_hash kedgei_first_model(const struct kedgei_job *job, uint32_t group)
{
    const struct kedge_st_job_opened *o = job->opened->body;
    bool apart = group > 0 && group - 1 < o->first_model_count;
    return apart ? o->first_models[group - 1].model : o->initial_model;
}

uint32_t kedgei_first_group(const struct kedgei_audit *a, const struct kedgei_job *job,
                            const struct kedgei_log *log)
{
    if (kedge_job_spec_grouped_by(&job->spec) != KEDGE_GROUPED_BY_PLACE) {
        return 0;
    }
    for (uint32_t i = 0; i < job->spec.tenant_count; i++) {
        if (job->tenants[i] != UINT32_MAX && &a->tenants[job->tenants[i]] == log) {
            return kedge_job_spec_edge(i);
        }
    }
    return 0; /* not of the job, which is said elsewhere */
}
