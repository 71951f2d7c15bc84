/* From exact inner products of pre-training updates to groups, by what the job's spec says of them. */
#include <string.h>

#include "aggregation/gram.h"
#include "common/base/mem.h"
#include "grouping/flexcfl.h"
#include "grouping/oneshot.h"
#include "grouping/quota.h"
#include "round/compute_impl.h"
#include "strategy/grouping.h"

/* How many groups are asked for. FIXED: as many as the spec says. Chosen by silhouette or gap: between
 * least and most. MOST (jobs that join groups later): as many as there may be, but at most one for every
 * three updates, so that a direction is made from three on average, and never fewer than the least. */
static int cluster_flexcfl(const struct kedge_job_spec *spec, uint32_t round, const int64_t *gram,
                           const uint32_t *maxima, const uint32_t *tenant, size_t count, uint32_t *ret_group,
                           uint32_t *ret_groups)
{
    uint32_t least, most;
    kedge_job_spec_groups(spec, &least, &most);
    const uint32_t third = (uint32_t)(count / 3) > least ? (uint32_t)(count / 3) : least;
    const bool is_most = spec->choose == KEDGE_CHOOSE_MOST;
    struct kedge_flexcfl_params params = {.edc = spec->strategy->edc,
                                          .groups = is_most ? third < most ? third : most
                                                    : spec->choose == KEDGE_CHOOSE_FIXED ? spec->groups
                                                                                         : most,
                                          .groups_min = least,
                                          .choose = is_most ? KEDGE_CHOOSE_FIXED : spec->choose,
                                          .seed = spec->seed,
                                          .round = round};
    struct kedge_flexcfl_result result = {.group = ret_group,
                                          .eigenvalues = kedge_mem_new(count, sizeof *result.eigenvalues),
                                          .embedding = kedge_mem_new(count * most, sizeof *result.embedding)};
    double *weight = kedge_mem_new(count, sizeof *weight);
    int err = result.eigenvalues && result.embedding && weight ? KEDGE_OK : KEDGE_E_NOMEM;
    if (!err && params.edc != KEDGE_EDC_MADC) { /* tenants count alike; MADC knows no weights */
        err = kedge_quota_weights(tenant, maxima, count, weight);
        params.weight = weight;
    }
    if (!err) {
        err = kedge_flexcfl_group_gram(gram, maxima, count, &params, &result);
    }
    if (!err) {
        *ret_groups = (uint32_t)result.groups;
    }
    kedge_mem_free(result.eigenvalues);
    kedge_mem_free(result.embedding);
    kedge_mem_free(weight);
    return err;
}

/* Joined while they are near, by the coordinates that `gram` is of: FedClust groups by the last layer,
 * whose updates differ most between sites with other labels. The number of groups follows from the
 * threshold. */
static int cluster_oneshot(const struct kedge_job_spec *spec, const int64_t *gram, const uint32_t *maxima,
                           size_t count, uint32_t *ret_group, uint32_t *ret_groups)
{
    uint32_t least, most;
    size_t groups = 0;
    kedge_job_spec_groups(spec, &least, &most);
    int err = kedge_oneshot(gram, maxima, count, spec->options.link, most, ret_group, &groups);
    *ret_groups = err ? *ret_groups : (uint32_t)groups;
    return err;
}

/* One group, of all updates that point anywhere. */
static int cluster_as_one(const uint32_t *maxima, size_t count, uint32_t *ret_group, uint32_t *ret_groups)
{
    bool any = false;
    for (size_t i = 0; i < count; i++) {
        ret_group[i] = maxima[i] > 0 ? 0 : KEDGE_GROUP_NONE;
        any = any || maxima[i] > 0;
    }
    *ret_groups = 1;
    return any ? KEDGE_OK : KEDGE_E_NO_DIRECTION;
}

/* Two passes over the files, since each update is scaled by its own largest value, which is known only
 * after the first. sign_first leaves out the coordinates in front of what sites are grouped by. */
int kedgei_gram_from(struct kedgei_tensors *t, size_t sign_first, uint32_t *maxima, int64_t *gram,
                     struct kedge_diag *d)
{
    int16_t *scratch = kedge_mem_new(kedge_gram_scratch(t->count), sizeof *scratch);
    int err = scratch ? KEDGE_OK : kedge_diag_set(d, KEDGE_E_NOMEM, "out of memory for inner products");
    for (int pass = 0; pass < 2; pass++) { /* their largest values first */
        for (size_t first = sign_first, n; first < t->layout->values_count && !err; first += n) {
            n = kedgei_tensors_tile(t, first);
            err = kedgei_tensors_seek(t, 0, t->count, first, n, d);
            for (size_t i = 0; pass == 0 && i < t->count && !err; i++) {
                maxima[i] = kedge_max_abs(t->tile[i], n, maxima[i]);
            }
            if (pass == 1 && !err) {
                err = kedge_gram_tile((const int32_t *const *)t->tile, maxima, t->count, 0, n, scratch, gram);
            }
        }
    }
    kedge_mem_free(scratch);
    return err;
}

int kedgei_gram_of(struct kedgei_tensors *t, uint32_t *maxima, int64_t *gram, struct kedge_diag *d)
{
    return kedgei_gram_from(t, 0, maxima, gram, d);
}

/* Results go to arrays of its own first: callers keep what they had where grouping fails. */
int kedge_compute_groups(const struct kedge_layout *layout, const struct kedge_compute_sites *sites,
                         const struct kedge_job_spec *spec, uint32_t round, uint32_t *ret_group,
                         uint32_t *ret_groups, struct kedge_diag *reterr)
{
    const size_t count = sites->count;
    struct kedgei_tensors updates = {.count = 0};
    struct kedge_diag why = {.text = ""};
    if (count == 0 || count > KEDGE_GRAM_VECTORS_MAX) {
        return kedge_diag_set(reterr, KEDGE_E_ARG, "grouping of %zu updates, expected 1 to %d", count,
                              KEDGE_GRAM_VECTORS_MAX);
    }
    int64_t *gram = kedge_mem_new(count * count, sizeof *gram);
    uint32_t *maxima = kedge_mem_new(count, sizeof *maxima);
    uint32_t *group = kedge_mem_new(count, sizeof *group), groups = 0;
    int err = gram && maxima && group
                  ? KEDGE_OK
                  : kedge_diag_set(reterr, KEDGE_E_NOMEM, "out of memory for grouping %zu updates", count);
    if (!err) {
        err = kedgei_tensors_open(layout, KEDGE_DTYPE_I32, sites->files, sizeof *sites->files, count,
                                  &updates, reterr);
    }
    if (!err) {
        err = kedgei_gram_from(&updates, (size_t)kedge_job_spec_sign_first(spec, layout), maxima, gram, &why);
        if (!err && kedge_job_spec_begins_as_one(spec)) {
            err = cluster_as_one(maxima, count, group, &groups);
        } else if (!err && kedge_grouping_row(spec->strategy->grouping)->by_last_layer) {
            err = cluster_oneshot(spec, gram, maxima, count, group, &groups);
        } else if (!err) {
            err = cluster_flexcfl(spec, round, gram, maxima, sites->tenant, count, group, &groups);
        }
        if (err == KEDGE_E_NO_DIRECTION) { /* all point nowhere: nothing tells their sites apart */
            memset(group, 0, count * sizeof *group);
            groups = 1;
            err = KEDGE_OK;
        }
        err = err ? kedge_diag_set(reterr, err, "grouping of %zu updates: %s", count,
                                   why.text[0] ? why.text : kedge_strerror(err))
                  : KEDGE_OK;
    }
    if (!err) {
        memcpy(ret_group, group, count * sizeof *ret_group);
        *ret_groups = groups;
    }
    kedgei_tensors_close(&updates);
    kedge_mem_free(gram);
    kedge_mem_free(maxima);
    kedge_mem_free(group);
    return err;
}
