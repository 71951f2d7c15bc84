/* Block by block: up to eight sources per pass, the last pass divides and writes. Sums are taken modulo
 * 2^64 in unsigned arithmetic, so that even values that were never checked behave alike on every path. */
#include "aggregation/mean.h"

#include <string.h>

#include "aggregation/mean_impl.h"
#include "aggregation/quantise.h"
#include "aggregation/simd.h"

typedef void mean_kernel(const struct kedgei_mean_pass *pass, size_t n, int64_t *acc);

int kedge_mean_weight_sum(const struct kedge_mean_source *sources, size_t count, int32_t limit,
                          uint64_t *ret_sum)
{
    if (limit <= 0) {
        return KEDGE_E_ARG;
    }
    const uint64_t most = ((UINT64_C(1) << 62) - 1) / (uint64_t)limit;
    uint64_t sum = 0;
    for (size_t k = 0; k < count; k++) {
        if (sources[k].weight > most - sum) {
            return KEDGE_E_OVERFLOW;
        }
        sum += sources[k].weight;
    }
    if (sum == 0) {
        return KEDGE_E_ARG;
    }
    *ret_sum = sum;
    return KEDGE_OK;
}

static void mean_scalar(const struct kedgei_mean_pass *pass, size_t n, int64_t *acc)
{
    if (pass->opens) {
        memset(acc, 0, n * sizeof *acc);
    }
    for (unsigned k = 0; k < pass->count; k++) {
        const int32_t *values = pass->values[k];
        const uint64_t weight = pass->weight[k];
        for (size_t i = 0; i < n; i++) {
            acc[i] = (int64_t)((uint64_t)acc[i] + weight * (uint64_t)(int64_t)values[i]);
        }
    }
    if (pass->closes) {
        for (size_t i = 0; i < n; i++) {
            pass->out[i] = (float)((double)pass->base[i] + (double)acc[i] / pass->divisor);
        }
    }
}

static mean_kernel *choose_kernel(const struct kedge_mean_source *sources, size_t count)
{
#if defined(__x86_64__)
    for (size_t k = 0; k < count; k++) {
        if (sources[k].weight >= UINT64_C(1) << 31) {
            return mean_scalar; /* no 32 x 32 -> 64 multiplication will do */
        }
    }
    switch (kedge_simd_get()) {
    case KEDGE_SIMD_AVX2:
        return kedgei_mean_avx2;
    case KEDGE_SIMD_SSE2:
        return kedgei_mean_sse2;
    case KEDGE_SIMD_AUTO:
    case KEDGE_SIMD_SCALAR:
        break;
    }
#else
    (void)sources;
    (void)count;
#endif
    return mean_scalar;
}

/* All sources over one block of n coordinates from `at` on. */
static void run_block(mean_kernel *kernel, const struct kedge_mean_source *sources, size_t count, size_t at,
                      size_t n, struct kedgei_mean_pass *pass)
{
    _Alignas(32) int64_t acc[KEDGEI_MEAN_BLOCK];
    size_t done = 0;
    do {
        size_t left = count - done;
        pass->count = left < KEDGEI_MEAN_FUSE ? (unsigned)left : KEDGEI_MEAN_FUSE;
        for (unsigned k = 0; k < pass->count; k++) {
            pass->values[k] = sources[done + k].values + at;
            pass->weight[k] = sources[done + k].weight;
        }
        pass->opens = done == 0;
        done += pass->count;
        pass->closes = done == count;
        kernel(pass, n, acc);
    } while (done < count);
}

int kedge_mean_tile(const float *base, const struct kedge_mean_source *sources, size_t count, size_t first,
                    size_t n, unsigned scale_bits, uint64_t weight_sum, float *out)
{
    if (weight_sum == 0 || weight_sum > UINT64_C(1) << 62 || scale_bits > KEDGE_SCALE_BITS_MAX) {
        return KEDGE_E_ARG;
    }
    struct kedgei_mean_pass pass = {.divisor = (double)weight_sum * (double)(UINT64_C(1) << scale_bits)};
    mean_kernel *kernel = choose_kernel(sources, count);
    size_t done = 0;
    while (done < n) {
        size_t block = n - done < KEDGEI_MEAN_BLOCK ? n - done : KEDGEI_MEAN_BLOCK;
        mean_kernel *use = kernel;
        if (block >= 16) {
            block -= block % 16; /* what is left of the last block follows on the scalar path */
        } else {
            use = mean_scalar;
        }
        pass.base = base + first + done;
        pass.out = out + done;
        run_block(use, sources, count, first + done, block, &pass);
        done += block;
    }
    return KEDGE_OK;
}
