/* The cosine matrix, its rows' and columns' means taken out, decomposed: x and y are the first two
 * eigenvectors times the roots of their eigenvalues. */
#include "grouping/picture.h"

#include <math.h>

#include "aggregation/gram.h"
#include "common/base/mem.h"
#include "common/base/try.h"
#include "grouping/eigen.h"

static void fill_centred(const int64_t *gram, size_t count, const size_t *index, size_t n, double *matrix,
                         double *mean)
{
    double all = 0.0;
    for (size_t a = 0; a < n; a++) {
        const double own = sqrt((double)gram[index[a] * count + index[a]]);
        mean[a] = 0.0;
        for (size_t b = 0; b < n; b++) {
            const double other = sqrt((double)gram[index[b] * count + index[b]]);
            double cosine = a == b ? 1.0 : ((double)gram[index[a] * count + index[b]] / own) / other;
            matrix[a * n + b] = cosine;
            mean[a] += cosine;
        }
        mean[a] /= (double)n;
        all += mean[a];
    }
    all /= (double)n;
    for (size_t a = 0; a < n; a++) {
        for (size_t b = 0; b < n; b++) {
            matrix[a * n + b] = (matrix[a * n + b] - (mean[a] + mean[b])) + all;
        }
    }
}

static void write_picture(const double *values, const double *vectors, const size_t *index, size_t n,
                          double *xy, double *ret_share)
{
    double spread = 0.0;
    for (size_t k = 0; k < n; k++) {
        spread += values[k] > 0.0 ? values[k] : 0.0;
    }
    for (size_t axis = 0; axis < 2; axis++) {
        double value = axis < n && values[axis] > 0.0 ? values[axis] : 0.0;
        for (size_t a = 0; axis < n && a < n; a++) {
            xy[2 * index[a] + axis] = sqrt(value) * vectors[axis * n + a];
        }
        if (ret_share) {
            ret_share[axis] = spread > 0.0 ? value / spread : 0.0;
        }
    }
}

int kedge_picture(const int64_t *gram, const uint32_t *maxima, size_t count, double *xy, double *ret_share)
{
    size_t index[KEDGE_GRAM_VECTORS_MAX], n = 0;
    if (count == 0 || count > KEDGE_GRAM_VECTORS_MAX) {
        return KEDGE_E_ARG;
    }
    for (size_t i = 0; i < count; i++) {
        if (maxima[i] != 0 && gram[i * count + i] > 0) {
            index[n++] = i;
        }
    }
    const size_t size = n ? n : 1;
    double *matrix KEDGE_CLEANUP(kedge_mem_release) = kedge_mem_new(size * size, sizeof *matrix);
    double *vectors KEDGE_CLEANUP(kedge_mem_release) = kedge_mem_new(size * size, sizeof *vectors);
    double *values KEDGE_CLEANUP(kedge_mem_release) = kedge_mem_new(size, sizeof *values);
    KEDGE_TRY_MEM(matrix && vectors && values);
    if (n > 0) {
        fill_centred(gram, count, index, n, matrix, values);
        KEDGE_TRY(kedge_eigen_symmetric(matrix, n, values, vectors));
    }
    for (size_t i = 0; i < 2 * count; i++) {
        xy[i] = 0.0;
    }
    write_picture(values, vectors, index, n, xy, ret_share);
    return KEDGE_OK;
}
