#include "grouping/split.h"

#include <math.h>

#include "aggregation/gram.h"
#include "common/base/mem.h"
#include "common/base/try.h"
#include "grouping/distance.h"
#include "grouping/linkage.h"
#include "grouping/quality.h"

/* From the Gram matrix alone: |Σ u|² is the sum of all inner products, each brought back from 12 bits by
 * both largest values. No update is read again. */
int kedge_split_norms(const int64_t *gram, const uint32_t *maxima, size_t count, unsigned scale_bits,
                      double *ret_mean, double *ret_max)
{
    if (count == 0 || count > KEDGE_GRAM_VECTORS_MAX || scale_bits > 62) {
        return KEDGE_E_ARG;
    }
    double sum = 0.0, most = 0.0;
    for (size_t i = 0; i < count; i++) {
        double row = 0.0; /* of Σ_ij A_ij max_i max_j, the square of the sum's norm times 2047² */
        for (size_t j = 0; j < count; j++) {
            row += (double)gram[i * count + j] * (double)maxima[j];
        }
        sum += row * (double)maxima[i];
        double own = ((double)gram[i * count + i] * (double)maxima[i]) * (double)maxima[i];
        most = own > most ? own : most;
    }
    const double unit = (double)KEDGE_GRAM_ONE * (double)(UINT64_C(1) << scale_bits);
    *ret_mean = sum > 0.0 ? sqrt(sum) / (unit * (double)count) : 0.0; /* a rounding below 0 is 0 */
    *ret_max = sqrt(most) / unit;
    return KEDGE_OK;
}

bool kedge_split_due(double mean, double max, double split_mean, double split_max, size_t members)
{
    return members > 2 && mean < split_mean && max > split_max;
}

/* 1 − cosine of the n updates that have a direction. */
static void fill_distance(const int64_t *gram, size_t count, const size_t *index, size_t n, double *distance)
{
    for (size_t a = 0; a < n; a++) {
        const size_t i = index[a];
        distance[a * n + a] = 1.0;
        for (size_t b = a + 1; b < n; b++) {
            const size_t j = index[b];
            distance[a * n + b] = ((double)gram[i * count + j] / sqrt((double)gram[i * count + i]))
                                  / sqrt((double)gram[j * count + j]);
        }
    }
    kedge_distance_cosine(distance, n, distance);
}

int kedge_split(const int64_t *gram, const uint32_t *maxima, size_t count, uint32_t *part,
                double *ret_silhouette)
{
    const struct kedge_linkage_cut cut = {.least = 2, .most = 2};
    size_t n = 0, parts = 0;
    if (count < 2 || count > KEDGE_GRAM_VECTORS_MAX) {
        return KEDGE_E_ARG;
    }
    size_t index[KEDGE_GRAM_VECTORS_MAX];
    for (size_t i = 0; i < count; i++) {
        if (maxima[i] != 0 && gram[i * count + i] > 0) {
            index[n++] = i;
        }
    }
    if (n < 2) {
        return KEDGE_E_NO_DIRECTION;
    }
    double *distance KEDGE_CLEANUP(kedge_mem_release) = kedge_mem_new(n * n, sizeof *distance);
    uint32_t *cluster KEDGE_CLEANUP(kedge_mem_release) = kedge_mem_new(n, sizeof *cluster);
    KEDGE_TRY_MEM(distance && cluster);
    fill_distance(gram, count, index, n, distance);
    KEDGE_TRY(kedge_linkage(distance, n, KEDGE_LINKAGE_COMPLETE, &cut, cluster, &parts));
    /* the first that has a direction is in part 0, and so are those that have none */
    for (size_t i = 0; i < count; i++) {
        part[i] = 0;
    }
    for (size_t a = 0; a < n; a++) {
        part[index[a]] = cluster[a];
    }
    if (ret_silhouette) {
        *ret_silhouette = kedge_silhouette(distance, n, cluster, 2, NULL);
    }
    return KEDGE_OK;
}
