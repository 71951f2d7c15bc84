/* New groups continue old ones. The numbers are matched so that the most sites keep theirs: a site that
 * stays with the same others keeps its model's number, and what is written about a group can be followed. */
#include "round/regroup.h"

#include <string.h>

#include "aggregation/share_cap.h"
#include "common/base/mem.h"
#include "grouping/flexcfl.h"
#include "grouping/merge.h"

/* Groups are found as in round 0, then numbered. Only numbers below the number of new groups are given
 * away, so that they have no gaps; sites of a former group with a higher number count as if they had none. */
int kedge_compute_regroup(const struct kedge_layout *layout, const struct kedge_compute_sites *sites,
                          const struct kedge_job_spec *spec, uint32_t round, const uint32_t *then,
                          uint32_t *ret_group, uint32_t *ret_groups, struct kedge_diag *reterr)
{
    const size_t count = sites->count;
    uint32_t slot[KEDGE_GROUPS_MAX], groups = 0;
    uint32_t *from = kedge_mem_new(count + 1, sizeof *from);
    int err = from ? kedge_compute_groups(layout, sites, spec, round, ret_group, &groups, reterr)
                   : kedge_diag_set(reterr, KEDGE_E_NOMEM, "out of memory for groups");
    for (size_t i = 0; i < count && !err; i++) {
        from[i] = then[i] < groups ? then[i] : KEDGE_GROUP_NONE;
    }
    if (!err) {
        err = kedge_match(from, ret_group, count, groups, groups, slot, NULL);
        err = err ? kedge_diag_set(reterr, err, "numbers of %u groups: %s", groups, kedge_strerror(err))
                  : KEDGE_OK;
    }
    for (size_t i = 0; i < count && !err; i++) {
        ret_group[i] = ret_group[i] == KEDGE_GROUP_NONE ? KEDGE_GROUP_NONE : slot[ret_group[i]];
    }
    kedge_mem_free(from);
    if (!err) {
        *ret_groups = groups;
    }
    return err;
}

/* Members without a former group bring no model, so they count only where no member has one and the initial
 * model is taken; the weights are then in the lists for form. The cap is asked for a share that no tenant
 * can keep, which gives all tenants the same (aggregation/share_cap.h). */
int kedge_compute_regroup_weigh(const uint32_t *tenant, const uint32_t *then, const uint32_t *group,
                                size_t count, size_t former_count, uint32_t g, uint64_t *weight)
{
    enum { ALIKE = 1 }; /* a share that no tenant can keep: then all have the same */
    struct kedge_share_input *inputs = kedge_mem_new(count + 1, sizeof *inputs);
    bool had_one = false;
    size_t n = 0, at = 0;
    for (size_t i = 0; i < count; i++) {
        had_one = had_one || (group[i] == g && then[i] < former_count);
    }
    for (size_t i = 0; inputs && i < count; i++) {
        if (group[i] == g && (!had_one || then[i] < former_count)) {
            inputs[n++] = (struct kedge_share_input){.tenant = tenant[i], .weight = 1};
        }
    }
    int err = inputs ? KEDGE_OK : KEDGE_E_NOMEM;
    err = err || n == 0 ? err : kedge_share_cap(inputs, n, ALIKE);
    for (size_t i = 0; i < count && !err; i++) {
        if (group[i] == g) {
            weight[i] = !had_one || then[i] < former_count ? inputs[at++].weight : 0;
        }
    }
    kedge_mem_free(inputs);
    return err;
}

uint32_t kedge_compute_regroup_from(const uint32_t *then, const uint32_t *group, const uint64_t *weight,
                                    size_t count, size_t former_count, uint32_t g,
                                    uint32_t ret_from[KEDGE_GROUPS_MAX],
                                    uint64_t ret_weight[KEDGE_GROUPS_MAX])
{
    uint64_t members[KEDGE_GROUPS_MAX] = {0};
    uint32_t n = 0;
    for (size_t i = 0; i < count; i++) {
        if (group[i] == g && then[i] < former_count && then[i] < KEDGE_GROUPS_MAX) {
            members[then[i]] += weight[i];
        }
    }
    for (uint32_t k = 0; k < former_count && k < KEDGE_GROUPS_MAX; k++) {
        if (members[k] > 0) {
            ret_from[n] = k;
            ret_weight[n++] = members[k];
        }
    }
    return n;
}
