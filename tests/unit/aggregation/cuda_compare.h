/* The kernels of aggregation/cuda against the processor's, byte for byte; no test library, so that
 * scripts/gpu-check runs the same on a device. */
#ifndef KEDGE_TESTS_UNIT_AGGREGATION_CUDA_COMPARE_H
#define KEDGE_TESTS_UNIT_AGGREGATION_CUDA_COMPARE_H

#include <string.h>

#include "aggregation/cuda/kernels.h"
#include "aggregation/gram.h"
#include "aggregation/mean.h"
#include "aggregation/order.h"
#include "common/base/err.h"
#include "common/base/rng.h"

enum { CUDA_COUNT = 13, CUDA_LENGTH = 1300, CUDA_SCALE = 20 };

/* What does not compare, or NULL. */
static inline const char *compare_cuda_of(size_t count, size_t n, const int32_t *const *vectors,
                                          const uint64_t *weight, const float *base)
{
    static int64_t gram[2][CUDA_COUNT * CUDA_COUNT];
    static float out[2][CUDA_LENGTH];
    struct kedge_mean_source sources[CUDA_COUNT];
    uint32_t maxima[2][CUDA_COUNT];
    uint64_t sum = 0;
    for (size_t k = 0; k < count; k++) {
        sources[k] = (struct kedge_mean_source){.values = vectors[k], .weight = weight[k]};
        sum += weight[k];
    }
    memset(out, 0x55, sizeof out);
    if (kedge_mean_tile(base, sources, count, 0, n, CUDA_SCALE, sum, out[0])
        || kedge_cuda_mean(base, vectors, weight, count, n, CUDA_SCALE, sum, out[1])
        || memcmp(out[0], out[1], sizeof out[0]) != 0) {
        return "mean";
    }
    memset(gram, 0x55, sizeof gram);
    if (kedge_gram(vectors, count, n, maxima[0], gram[0])
        || kedge_cuda_gram(vectors, count, n, maxima[1], gram[1])
        || memcmp(gram[0], gram[1], sizeof gram[0]) != 0
        || memcmp(maxima[0], maxima[1], count * sizeof maxima[0][0]) != 0) {
        return "gram";
    }
    for (size_t trim = 0; 2 * trim < count; trim++) { /* the mean, trimmed means, the median */
        const struct kedge_order_columns columns = {base, vectors, count, 0, n, CUDA_SCALE, out[0]};
        if (kedge_order_mean(&columns, trim, count - trim)
            || kedge_cuda_order_mean(base, vectors, count, n, trim, count - trim, CUDA_SCALE, out[1])
            || memcmp(out[0], out[1], sizeof out[0]) != 0) {
            return "order statistics";
        }
    }
    return NULL;
}

/* Counts and lengths around the kernels' blocks; extremes, equal values, a zero vector, wide weights. */
static inline const char *compare_cuda(void)
{
    static const size_t lengths[] = {1, 255, 256, 257, 511, 512, 513, 1024, 1025, CUDA_LENGTH};
    static int32_t values[CUDA_COUNT][CUDA_LENGTH];
    static float base[CUDA_LENGTH];
    const int32_t *vectors[CUDA_COUNT];
    uint64_t weight[CUDA_COUNT];
    struct kedge_rng rng;
    kedge_rng_init(&rng, 8, KEDGE_RNG_TEST, 0, 0);
    for (size_t k = 0; k < CUDA_COUNT; k++) {
        vectors[k] = values[k];
        weight[k] = (1 + kedge_rng_below(&rng, 5000)) << (k % 3 * 12);
        for (size_t i = 0; i < CUDA_LENGTH; i++) {
            const int32_t v = (int32_t)(kedge_rng_u64(&rng) >> (33 + k));
            values[k][i] = k == 4 ? 0 : i % 7 == 0 ? -1000 : i % 2 == 0 ? v : -v;
        }
        values[k][k] = k == 4 ? 0 : k % 2 == 0 ? INT32_MAX : -INT32_MAX;
    }
    for (size_t i = 0; i < CUDA_LENGTH; i++) {
        base[i] = (float)(kedge_rng_unit(&rng) - 0.5);
    }
    for (size_t count = 1; count <= CUDA_COUNT; count++) {
        const size_t n = lengths[count % (sizeof lengths / sizeof *lengths)];
        const char *bad = compare_cuda_of(count, n, vectors, weight, base);
        bad = bad ? bad : compare_cuda_of(count, CUDA_LENGTH, vectors, weight, base);
        if (bad) {
            return bad;
        }
    }
    return NULL;
}

#endif
