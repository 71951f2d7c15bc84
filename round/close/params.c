#include "round/close/params.h"

#include <assert.h>
#include <string.h>

uint32_t kedge_close_labels(struct kedge_view labels, struct kedge_coord_label ret[KEDGE_LABEL_COUNT_MAX])
{
    struct kedge_view label;
    uint32_t count = 0;
    while (count < KEDGE_LABEL_COUNT_MAX && kedge_labels_next(&labels, &label)) {
        struct kedge_hash hash;
        struct kedge_coord_label number;
        kedge_sha256(label, &hash);
        static_assert(sizeof number <= sizeof hash.b, "a part of the hash");
        memcpy(&number, hash.b, sizeof number);
        uint32_t at = count++;
        for (; at > 0 && kedge_coord_label_cmp(&ret[at - 1], &number) > 0; at--) {
            ret[at] = ret[at - 1];
        }
        ret[at] = number;
    }
    return count;
}

/* The core is told numbers only, and never sees a spec: what a key means is decided here, once for daemon
 * and simulators. Times become nanoseconds, which are the core's unit. Options that mean nothing in an
 * ungrouped job are 0. */
void kedge_close_params(const struct kedge_job_spec *s, const uint32_t *tenants,
                        struct kedge_coord_job_params *ret)
{
    const uint64_t second = 1000000000;
    struct kedge_coord_job_params p = {.id = s->name, .tenant_count = s->tenant_count};
    memcpy(p.tenants, tenants, s->tenant_count * sizeof *tenants);
    p.rounds = s->rounds;
    p.sites_per_round = s->sites_per_round;
    p.sites_min = s->sites_min;
    p.priority = s->priority;
    p.elastic = s->sites_least > 0;
    p.quorum = s->quorum;
    p.round_timeout_ns = s->round_timeout_s * second;
    p.enrol_within_ns = s->enrol_within_s * second;
    p.seed = s->seed;
    p.groups = kedge_job_spec_groups_most(s);
    p.pretrain_sites = s->pretrain_sites;
    p.regroup_every = s->groups > 1 ? s->regroup_every : 0;
    p.migrate_every = s->groups > 1 && s->shift != KEDGE_SHIFT_TEST_NONE ? s->migration_pause : 0;
    p.entry = kedge_job_spec_entry(s);
    p.by_charge = s->by_charge;
    p.need_count = kedge_close_labels(kedge_view_str(s->needs.text), p.needs);
    p.evaluate_every = s->evaluate_every;
    p.has_targets = s->target_count > 0;
    p.weight_max = s->weight_max;
    p.buffer = kedge_job_spec_buffer(s);
    p.staleness_max = s->staleness_max;
    p.has_root = s->rule->needs_root;
    p.root_tenant = p.has_root ? p.tenants[s->root_tenant] : 0;
    p.root_site = s->root_site;
    *ret = p;
}

/* Of fewer evaluations than the job's quorum nothing follows: a target must not be reached because only those
 * were there who are served well. */
uint32_t kedge_close_test(const struct kedge_job_spec *s, const struct kedge_st_round_tested *counts,
                          struct kedge_schedule_held *io)
{
    struct kedge_schedule_targets targets = {.count = s->target_count, .hold = s->hold};
    memcpy(targets.millionths, s->targets, sizeof targets.millionths);
    kedge_schedule_tested(&targets, counts->correct, counts->evaluations < s->quorum ? 0 : counts->samples,
                          io);
    return kedge_schedule_tier(&targets, io);
}

bool kedge_close_releases(const struct kedge_job_spec *s, uint32_t before, uint32_t after)
{
    return after > before && after < s->target_count;
}
