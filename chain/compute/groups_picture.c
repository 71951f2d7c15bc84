/* Where updates and directions lie to each other, in two dimensions: classical scaling of their cosines. For
 * people; nothing is decided by it. */
#include <math.h>

#include "aggregation/gram.h"
#include "chain/compute/groups_view.h"
#include "chain/compute/tensor_files.h"
#include "common/base/mem.h"
#include "grouping/eigen.h"

static int gram_tiles(struct kedgei_tensors *t, uint32_t *maxima, int64_t *gram, struct kedge_diag *d)
{
    int16_t *scratch = kedge_mem_new(kedge_gram_scratch(t->count), sizeof *scratch);
    int err = scratch ? KEDGE_OK : kedge_diag_set(d, KEDGE_E_NOMEM, "out of memory for inner products");
    for (int pass = 0; pass < 2; pass++) { /* the largest values first */
        for (size_t first = 0, n; first < t->layout->values_count && !err; first += n) {
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

int kedge_compute_cosines(const struct kedge_layout *layout, const struct kedge_blob_at *files, size_t count,
                          double *ret_cosine, struct kedge_diag *reterr)
{
    struct kedgei_tensors t = {.count = 0};
    if (count == 0 || count > KEDGE_GRAM_VECTORS_MAX) {
        return kedge_diag_set(reterr, KEDGE_E_ARG, "cosines of %zu updates, expected 1 to %d", count,
                              KEDGE_GRAM_VECTORS_MAX);
    }
    int64_t *gram = kedge_mem_new(count * count, sizeof *gram);
    uint32_t *maxima = kedge_mem_new(count, sizeof *maxima);
    int err = gram && maxima ? KEDGE_OK : kedge_diag_set(reterr, KEDGE_E_NOMEM, "out of memory for cosines");
    err = err ? err : kedgei_tensors_open(layout, KEDGE_DTYPE_I32, files, sizeof *files, count, &t, reterr);
    err = err ? err : gram_tiles(&t, maxima, gram, reterr);
    if (!err) {
        kedge_gram_cosine(gram, count, ret_cosine);
    }
    kedgei_tensors_close(&t);
    kedge_mem_free(gram);
    kedge_mem_free(maxima);
    return err;
}

/* B = J·C·J with J = I − 1/n: the inner products seen from the middle of all. */
static void centre(double *c, size_t n, double *mean)
{
    double all = 0;
    for (size_t i = 0; i < n; i++) {
        double sum = 0;
        for (size_t j = 0; j < n; j++) {
            sum += c[i * n + j];
        }
        mean[i] = sum / (double)n;
        all += mean[i];
    }
    all /= (double)n;
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < n; j++) {
            c[i * n + j] = c[i * n + j] - mean[i] - mean[j] + all;
        }
    }
}

int kedge_compute_coordinates(double *cosine, size_t count, double (*ret_xy)[2], double *ret_shown,
                              struct kedge_diag *reterr)
{
    double *values = kedge_mem_new(count, sizeof *values);
    double *vectors = kedge_mem_new(count * count, sizeof *vectors);
    int err = values && vectors && count > 0 ? KEDGE_OK : KEDGE_E_NOMEM;
    double trace = 0;
    if (!err) {
        centre(cosine, count, values);
        for (size_t i = 0; i < count; i++) {
            trace += cosine[i * count + i];
        }
        err = kedge_eigen_symmetric(cosine, count, values, vectors);
    }
    for (size_t i = 0; i < count && !err; i++) {
        for (size_t k = 0; k < 2; k++) {
            bool is_axis = k < count && values[k] > 0;
            ret_xy[i][k] = is_axis ? sqrt(values[k]) * vectors[k * count + i] : 0;
        }
    }
    if (!err) {
        double two = (values[0] > 0 ? values[0] : 0) + (count > 1 && values[1] > 0 ? values[1] : 0);
        *ret_shown = trace > 0 && two < trace ? two / trace : trace > 0 ? 1 : 0;
    }
    kedge_mem_free(values);
    kedge_mem_free(vectors);
    return err ? kedge_diag_set(reterr, err, "picture of %zu updates: %s", count, kedge_strerror(err))
               : KEDGE_OK;
}
