/* When groups become one or are cut, by exact inner products of directions or updates. Nothing here moves
 * sites or writes models: that is round/close/reshape.c. */
#include "round/reshape.h"

#include "aggregation/gram.h"
#include "aggregation/share_cap.h"
#include "common/base/mem.h"
#include "common/base/try.h"
#include "grouping/halves.h"
#include "grouping/merge.h"
#include "grouping/split.h"
#include "round/compute_impl.h"

int kedgei_gram_of_files(const struct kedge_layout *layout, const struct kedge_blob_at *files, size_t n,
                         int64_t **ret_gram, uint32_t **ret_maxima, struct kedge_diag *d)
{
    struct kedgei_tensors t = {.count = 0};
    *ret_gram = kedge_mem_new(n * n, sizeof **ret_gram);
    *ret_maxima = kedge_mem_new(n, sizeof **ret_maxima);
    if (!*ret_gram || !*ret_maxima) {
        return kedge_diag_set(d, KEDGE_E_NOMEM, "out of memory for inner products");
    }
    KEDGE_TRY(kedgei_tensors_open(layout, KEDGE_DTYPE_I32, files, sizeof *files, n, &t, d));
    int err = kedgei_gram_of(&t, *ret_maxima, *ret_gram, d);
    kedgei_tensors_close(&t);
    return err;
}

/* Groups that are part of others have no path and leave gaps, so the matrix has rows for the n that remain,
 * and number[] leads back from a row to its group. */
int kedge_compute_merges(const struct kedge_layout *layout, const struct kedge_job_spec *spec,
                         const struct kedge_blob_at *directions, size_t groups, uint32_t *into, bool *ret_any,
                         struct kedge_diag *reterr)
{
    struct kedge_blob_at files[KEDGE_GROUPS_MAX];
    uint32_t number[KEDGE_GROUPS_MAX], joined[KEDGE_GROUPS_MAX], *maxima = NULL;
    int64_t *gram = NULL;
    double cosine[KEDGE_GROUPS_MAX * KEDGE_GROUPS_MAX];
    size_t n = 0, left = 0;
    for (size_t g = 0; g < groups && g < KEDGE_GROUPS_MAX; g++) {
        into[g] = (uint32_t)g;
        if (directions[g].path) {
            files[n] = directions[g];
            number[n++] = (uint32_t)g;
        }
    }
    *ret_any = false;
    if (spec->options.merge >= 1 || n < 2) {
        return KEDGE_OK;
    }
    int err = kedgei_gram_of_files(layout, files, n, &gram, &maxima, reterr);
    if (!err) {
        kedge_gram_cosine(gram, n, cosine);
        err = kedge_merge(cosine, n, spec->options.merge, joined, &left);
        err = err ? kedge_diag_set(reterr, err, "merging %zu groups: %s", n, kedge_strerror(err)) : KEDGE_OK;
    }
    for (size_t k = 0; k < n && !err; k++) {
        into[number[k]] = number[joined[k]];
        *ret_any = *ret_any || joined[k] != k;
    }
    kedge_mem_free(gram);
    kedge_mem_free(maxima);
    return err;
}

/* Sites of each tenant in each group, those in groups that become g. The table is by tenant first, because
 * kedge_share_cap gives remainders of rounding in the order of its inputs, and the record fixes that as
 * (tenant, group). */
static int count_sites(const uint32_t *tenant, const uint32_t *group, size_t count, const uint32_t *into,
                       size_t groups, uint32_t g, uint64_t *sites)
{
    for (size_t i = 0; i < count; i++) {
        if (tenant[i] >= KEDGE_SPEC_TENANTS_MAX || group[i] >= groups) {
            return KEDGE_E_ARG;
        }
        sites[(size_t)tenant[i] * groups + group[i]] += into[group[i]] == g;
    }
    return KEDGE_OK;
}

int kedge_compute_merge_weights(const struct kedge_job_spec *spec, const uint32_t *tenant,
                                const uint32_t *group, size_t count, const uint32_t *into, size_t groups,
                                uint32_t g, uint64_t *ret_weight)
{
    const size_t cells = KEDGE_SPEC_TENANTS_MAX * groups;
    uint64_t *sites = kedge_mem_new(cells, sizeof *sites);
    struct kedge_share_input *inputs = kedge_mem_new(cells, sizeof *inputs);
    const bool is_capped = spec->tenant_share_max < KEDGE_SHARE_ONE;
    const uint64_t unit = is_capped ? KEDGE_MERGE_UNIT : 1;
    size_t n = 0, at = 0;
    int err = groups == 0       ? KEDGE_E_ARG
              : sites && inputs ? count_sites(tenant, group, count, into, groups, g, sites)
                                : KEDGE_E_NOMEM;
    for (size_t k = 0; k < cells && !err; k++) {
        if (sites[k] > 0) {
            inputs[n++] = (struct kedge_share_input){(uint32_t)(k / groups), sites[k] * unit};
        }
    }
    if (!err && n > 0 && is_capped) {
        err = kedge_share_cap(inputs, n, spec->tenant_share_max);
    }
    for (size_t k = 0; k < groups && !err; k++) { /* nobody is left in any of them: alike */
        ret_weight[k] = n == 0 && into[k] == g;
    }
    for (size_t k = 0; k < cells && !err; k++) {
        ret_weight[k % groups] += sites[k] > 0 ? inputs[at++].weight : 0;
    }
    kedge_mem_free(sites);
    kedge_mem_free(inputs);
    return err;
}

/* Both conditions guard against cutting by chance: two parts that are well apart, and neither of a single
 * update. Updates without a direction are no error, the group stays whole. */
int kedge_compute_cut(const struct kedge_layout *layout, const struct kedge_job_spec *spec,
                      const struct kedge_compute_sites *sites, uint32_t *part, bool *ret_cut,
                      struct kedge_diag *reterr)
{
    uint32_t *maxima = NULL;
    int64_t *gram = NULL;
    double silhouette = 0;
    size_t count[2] = {0, 0};
    *ret_cut = false;
    if (spec->options.silhouette >= 1 || sites->count < (size_t)2 * KEDGE_SPLIT_LEAST) {
        return KEDGE_OK;
    }
    int err = kedgei_gram_of_files(layout, sites->files, sites->count, &gram, &maxima, reterr);
    if (!err) {
        err = kedge_split(gram, maxima, sites->count, part, &silhouette);
        err = err && err != KEDGE_E_NO_DIRECTION
                  ? kedge_diag_set(reterr, err, "cutting %zu updates: %s", sites->count, kedge_strerror(err))
                  : err;
    }
    for (size_t i = 0; i < sites->count && !err; i++) {
        count[part[i]]++;
    }
    *ret_cut = !err && silhouette >= spec->options.silhouette && count[0] >= KEDGE_SPLIT_LEAST
               && count[1] >= KEDGE_SPLIT_LEAST;
    kedge_mem_free(gram);
    kedge_mem_free(maxima);
    return err == KEDGE_E_NO_DIRECTION ? KEDGE_OK : err;
}

/* How much each update that has a direction counts, in their order: all tenants alike, however many sites
 * they have. By the largest tenant's number, so that where all have as many it is 1, and no division rounds.
 */
static int weigh_tenants(const int64_t *gram, const uint32_t *tenant, size_t count, double *weight)
{
    uint64_t sites[KEDGE_SPEC_TENANTS_MAX] = {0}, most = 0;
    for (size_t i = 0; i < count; i++) {
        if (tenant[i] >= KEDGE_SPEC_TENANTS_MAX) {
            return KEDGE_E_ARG;
        }
        sites[tenant[i]] += gram[i * count + i] > 0;
        most = sites[tenant[i]] > most ? sites[tenant[i]] : most;
    }
    for (size_t i = 0, row = 0; i < count; i++) {
        if (gram[i * count + i] > 0) {
            weight[row++] = (double)most / (double)sites[tenant[i]];
        }
    }
    return KEDGE_OK;
}

/* Updates without a direction tell nothing apart: they go with part 0, and count for neither part's size. */
static int halve(const int64_t *gram, const uint32_t *tenant, size_t count, uint32_t *part, bool *ret_cut)
{
    double *cosine = kedge_mem_new(count * count, sizeof *cosine);
    double *weight = kedge_mem_new(count, sizeof *weight);
    uint32_t *found = kedge_mem_new(count, sizeof *found);
    size_t second = 0, n = 0;
    int err = cosine && weight && found ? weigh_tenants(gram, tenant, count, weight) : KEDGE_E_NOMEM;
    if (!err) {
        kedge_gram_cosine(gram, count, cosine);
    }
    for (size_t i = 0; i < count && !err; i++) {
        n += gram[i * count + i] > 0;
    }
    for (size_t i = 0, row = 0; i < count && !err; i++) { /* rows and columns that are left, moved together */
        if (gram[i * count + i] > 0) {
            for (size_t k = 0, column = 0; k < count; k++) {
                if (gram[k * count + k] > 0) {
                    cosine[row * n + column++] = cosine[i * count + k];
                }
            }
            row++;
        }
    }
    err = err ? err : kedge_halves(cosine, weight, n, found, &second);
    for (size_t i = 0, row = 0; i < count && !err; i++) {
        part[i] = gram[i * count + i] > 0 ? found[row++] : 0;
    }
    *ret_cut = !err && second >= KEDGE_SPLIT_LEAST && n - second >= KEDGE_SPLIT_LEAST;
    kedge_mem_free(cosine);
    kedge_mem_free(weight);
    kedge_mem_free(found);
    return err;
}

int kedge_compute_halves(const struct kedge_layout *layout, const struct kedge_job_spec *spec,
                         const struct kedge_compute_sites *sites, uint32_t *part, bool *ret_cut,
                         struct kedge_diag *reterr)
{
    const size_t n = sites->count;
    uint32_t *maxima = NULL;
    int64_t *gram = NULL;
    (void)spec;
    *ret_cut = false;
    if (n < (size_t)2 * KEDGE_SPLIT_LEAST) {
        return KEDGE_OK;
    }
    int err = kedgei_gram_of_files(layout, sites->files, n, &gram, &maxima, reterr);
    err = err ? err : halve(gram, sites->tenant, n, part, ret_cut);
    kedge_mem_free(gram);
    kedge_mem_free(maxima);
    return err;
}
