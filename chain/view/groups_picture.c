/* Where updates and directions lie to each other. For people; nothing is decided by it. */
#include "aggregation/gram.h"
#include "chain/view/groups_view.h"
#include "common/base/mem.h"
#include "grouping/picture.h"
#include "round/compute_impl.h"

int kedge_compute_picture(const struct kedge_layout *layout, const struct kedge_blob_at *files, size_t count,
                          double *ret_cosine, double *ret_xy, double *ret_shown, struct kedge_diag *reterr)
{
    struct kedgei_tensors t = {.count = 0};
    double share[2] = {0, 0};
    if (count == 0 || count > KEDGE_GRAM_VECTORS_MAX) {
        return kedge_diag_set(reterr, KEDGE_E_ARG, "cosines of %zu updates, expected 1 to %d", count,
                              KEDGE_GRAM_VECTORS_MAX);
    }
    int64_t *gram = kedge_mem_new(count * count, sizeof *gram);
    uint32_t *maxima = kedge_mem_new(count, sizeof *maxima);
    int err = gram && maxima ? KEDGE_OK : kedge_diag_set(reterr, KEDGE_E_NOMEM, "out of memory for cosines");
    if (!err) {
        err = kedgei_tensors_open(layout, KEDGE_DTYPE_I32, files, sizeof *files, count, &t, reterr);
    }
    if (!err) {
        err = kedgei_gram_of(&t, maxima, gram, reterr);
    }
    if (!err) {
        kedge_gram_cosine(gram, count, ret_cosine);
    }
    if (!err && ret_xy) {
        err = kedge_picture(gram, maxima, count, ret_xy, share);
        err = err ? kedge_diag_set(reterr, err, "picture of %zu updates: %s", count, kedge_strerror(err))
                  : KEDGE_OK;
        *ret_shown = share[0] + share[1];
    }
    kedgei_tensors_close(&t);
    kedge_mem_free(gram);
    kedge_mem_free(maxima);
    return err;
}
