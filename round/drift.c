/* Drift from one Gram matrix over both sets of directions, those with which groups were made and those of
 * now: it has the distances between groups and how far each one moved, by the same exact integers. The
 * bound makes the number one that a statement can hold: directions that coincided when groups were made
 * have distance 0, and any move in units of that is infinite. */
#include "round/drift.h"

#include "aggregation/gram.h"
#include "common/base/mem.h"
#include "grouping/shift.h"
#include "round/compute_impl.h"

/* Cosines of the vectors, n × n. */
static int find_cosines(const struct kedge_layout *layout, const struct kedge_blob_at *at, size_t n,
                        double *cosine, struct kedge_diag *d)
{
    struct kedgei_tensors files = {.count = 0};
    int64_t *gram = kedge_mem_new(n * n, sizeof *gram);
    uint32_t *maxima = kedge_mem_new(n, sizeof *maxima);
    int err = gram && maxima ? KEDGE_OK : kedge_diag_set(d, KEDGE_E_NOMEM, "out of memory for cosines");
    if (!err) {
        err = kedgei_tensors_open(layout, KEDGE_DTYPE_I32, at, sizeof *at, n, &files, d);
    }
    if (!err) {
        err = kedgei_gram_of(&files, maxima, gram, d);
    }
    if (!err) {
        kedge_gram_cosine(gram, n, cosine);
    }
    kedgei_tensors_close(&files);
    kedge_mem_free(gram);
    kedge_mem_free(maxima);
    return err;
}

int kedge_compute_drift(const struct kedge_layout *layout, const struct kedge_blob_at *made,
                        const struct kedge_blob_at *now, size_t groups, double *ret_drift,
                        struct kedge_diag *reterr)
{
    struct kedge_blob_at at[2 * KEDGE_GROUPS_MAX];
    double moved[KEDGE_GROUPS_MAX], then[KEDGE_GROUPS_MAX * KEDGE_GROUPS_MAX];
    const size_t n = 2 * groups;
    if (groups == 0 || groups > KEDGE_GROUPS_MAX) {
        return kedge_diag_set(reterr, KEDGE_E_ARG, "drift of %zu groups, expected 1 to %d", groups,
                              KEDGE_GROUPS_MAX);
    }
    for (size_t g = 0; g < groups; g++) {
        at[g] = made[g];
        at[groups + g] = now[g];
    }
    double *cosine = kedge_mem_new(n * n, sizeof *cosine);
    int err = cosine ? find_cosines(layout, at, n, cosine, reterr)
                     : kedge_diag_set(reterr, KEDGE_E_NOMEM, "out of memory for cosines");
    for (size_t g = 0; g < groups && !err; g++) {
        moved[g] = cosine[g * n + groups + g];
        for (size_t k = 0; k < groups; k++) {
            then[g * groups + k] = cosine[g * n + k];
        }
    }
    if (!err) {
        double drift = kedge_group_drift(then, moved, groups);
        *ret_drift = drift < KEDGE_DRIFT_LARGEST ? drift : KEDGE_DRIFT_LARGEST;
    }
    kedge_mem_free(cosine);
    return err;
}
