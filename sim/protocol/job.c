/* The job of a simulation: the one of its spec, and what only its world says. */
#include "aggregation/quantise.h"
#include "common/base/try.h"
#include "job/keys.h"
#include "sim/protocol/impl.h"
#include "sim/sim.h"

static const char *not_done(const struct kedge_learn_spec *s)
{
    if (s->job.strategy->comparison_only) {
        return "\"strategy\": it is there to be compared with, no job runs it";
    }
    if (s->attack != KEDGE_LEARN_ATTACK_NONE && s->attack != KEDGE_LEARN_ATTACK_LABEL_FLIP
        && s->attack != KEDGE_LEARN_ATTACK_BACKDOOR) {
        return "\"attack\": sites that know each other's updates are in \"through\": \"rounds\" only";
    }
    if (s->job.target_count > 0 || s->job.budget.unit != KEDGE_JOB_BUDGET_NONE) {
        return "\"targets\", \"budget\": the protocol's sites say neither what they cost nor wait for "
               "evaluations; both are in \"through\": \"rounds\"";
    }
    if (s->trace[0]) {
        return "\"trace\": sites are there always, but for \"fail\" and \"faults\"; traces are for "
               "\"rounds\"";
    }
    for (uint32_t k = 0; k < s->device_count; k++) {
        if (s->devices[k].available < 1) {
            return "\"devices\": \"available\": sites are there always, but for \"fail\" and \"faults\"";
        }
    }
    return NULL;
}

int kedgei_protocol_refuse(const struct kedge_learn_spec *spec, struct kedge_diag *d)
{
    const char *why = not_done(spec);
    return why ? kedge_diag_set(d, KEDGE_E_FORMAT, "through: \"protocol\": %s", why) : KEDGE_OK;
}

int kedgei_protocol_job(struct kedgei_protocol *p)
{
    struct kedge_job_spec *job = &p->job;
    const bool has_root = p->spec->job.rule->needs_root;
    kedge_buf_init(&p->job_text, KEDGE_SPEC_MAX);
    if (p->sites > KEDGE_SIM_SITES_MAX || p->spec->job.tenant_count > KEDGE_SIM_TENANTS_MAX) {
        return kedge_diag_set(
            p->d, KEDGE_E_FORMAT, "through: \"protocol\": %u sites of %u tenants, expected at most %d of %d",
            p->sites, p->spec->job.tenant_count, KEDGE_SIM_SITES_MAX, KEDGE_SIM_TENANTS_MAX);
    }
    *job = p->spec->job;
    job->in_world = false;
    job->sites_min = job->sites_min > 0 ? job->sites_min : p->sites;
    job->control_sites = kedge_job_spec_has_control(job) ? p->sites : 0;
    if (has_root) { /* whose update the others are judged by: one more in every round */
        job->root_tenant = p->l->names.tenant[p->sites - 1];
        kedgei_names_site(&p->l->names, p->sites - 1, &job->root_site);
        job->sites_per_round += job->sites_per_round > 0;
    }
    kedge_job_spec_put(job, &p->job_text);
    KEDGE_TRY(p->job_text.err);
    KEDGE_TRY(kedge_job_spec_parse(kedge_buf_view(&p->job_text), job, p->d));
    KEDGE_TRY(kedge_job_spec_check_read(kedge_buf_view(&p->job_text), job, p->d));
    KEDGE_TRY(kedge_job_spec_layout(job, &p->layout, p->d));
    KEDGE_TRY(kedge_job_spec_update_layout(job, &p->layout, &p->update_layout, p->d));
    return kedge_scale_limit(job->bound, job->scale, &p->limit);
}
