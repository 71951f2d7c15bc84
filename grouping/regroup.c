#include "grouping/regroup.h"

#include "common/base/mem.h"
#include "grouping/merge.h"

/* Clusters into cluster[], their number into r->groups. */
static int cluster_updates(const int64_t *gram, const uint32_t *maxima, size_t count,
                           const struct kedge_flexcfl_params *params, uint32_t *cluster,
                           struct kedge_regroup *r)
{
    struct kedge_flexcfl_result result = {
        .group = cluster,
        .eigenvalues = kedge_mem_new(count, sizeof *result.eigenvalues),
        .embedding = kedge_mem_new(count * params->groups, sizeof *result.embedding),
    };
    int err = result.eigenvalues && result.embedding
                  ? kedge_flexcfl_group_gram(gram, maxima, count, params, &result)
                  : KEDGE_E_NOMEM;
    kedge_mem_free(result.eigenvalues);
    kedge_mem_free(result.embedding);
    if (!err) {
        r->groups = result.groups;
        r->silhouette = result.silhouette;
    }
    return err;
}

/* By numbers of the old groups; who comes from where. */
static void trace_models(const uint32_t *then, const uint32_t *now, size_t count, struct kedge_regroup *r)
{
    for (size_t i = 0; i < count; i++) {
        if (now[i] != KEDGE_GROUP_NONE) {
            r->used[now[i]] = true;
            if (then[i] != KEDGE_GROUP_NONE) {
                r->from[now[i]][then[i]]++;
            }
        }
    }
    for (size_t j = 0; j < KEDGE_GROUPS_MAX; j++) {
        for (size_t k = 0; r->from[j][j] > 0 && k < KEDGE_GROUPS_MAX; k++) {
            r->from[j][k] = k == j ? r->from[j][j] : 0;
        }
    }
}

int kedge_regroup_gram(const int64_t *gram, const uint32_t *maxima, size_t count,
                       const struct kedge_flexcfl_params *params, const uint32_t *then, size_t slots,
                       uint32_t *now, struct kedge_regroup *ret)
{
    struct kedge_regroup r = {.groups = 0};
    uint32_t slot[KEDGE_GROUPS_MAX];
    if (count == 0 || count > KEDGE_GRAM_VECTORS_MAX || params->groups == 0 || params->groups > slots
        || slots > KEDGE_GROUPS_MAX) {
        return KEDGE_E_ARG;
    }
    uint32_t *cluster = kedge_mem_new(count, sizeof *cluster);
    int err = cluster ? cluster_updates(gram, maxima, count, params, cluster, &r) : KEDGE_E_NOMEM;
    err = err ? err : kedge_match(then, cluster, count, r.groups, slots, slot, &r.kept);
    for (size_t i = 0; i < count && !err; i++) {
        now[i] = cluster[i] == KEDGE_GROUP_NONE ? KEDGE_GROUP_NONE : slot[cluster[i]];
    }
    if (!err) {
        trace_models(then, now, count, &r);
        *ret = r;
    }
    kedge_mem_free(cluster);
    return err;
}
