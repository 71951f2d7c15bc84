/* Block by block: up to ten sources per pass, the last pass divides and writes. Sums are taken modulo
 * 2^64 in unsigned arithmetic, so that even values that were never checked behave alike on every path. */
#include "aggregation/mean.h"

#include <string.h>

#include "aggregation/mean_impl.h"
#include "aggregation/neon.h"
#include "aggregation/quantise.h"
#include "aggregation/simd.h"

typedef void mean_kernel(const struct kedgei_mean_pass *pass, size_t n, int64_t *acc);

/* The bound is what makes all later sums safe: no value is above the limit, so no sum of weight times value
 * reaches 2^62, in whatever order it is added up. */
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

/* Such a kernel leaves acc alone in a pass that both opens and closes: the sums never leave its registers. */
static bool keeps_sums(mean_kernel *kernel)
{
#if defined(__x86_64__)
    return kernel == kedgei_mean_avx2 || kernel == kedgei_mean_avx512;
#else
    (void)kernel;
    return false;
#endif
}

static mean_kernel *choose_kernel(const struct kedge_mean_source *sources, size_t count)
{
    for (size_t k = 0; k < count; k++) {
        if (sources[k].weight >= UINT64_C(1) << 31) {
            return mean_scalar; /* no 32 x 32 -> 64 multiplication will do */
        }
    }
#if defined(__x86_64__)
    if (kedge_simd_get() == KEDGE_SIMD_AVX512) {
        return kedgei_mean_avx512;
    }
    if (kedge_simd_avx2()) {
        return kedgei_mean_avx2;
    }
    if (kedge_simd_get() == KEDGE_SIMD_SSE2) {
        return kedgei_mean_sse2;
    }
#elif defined(__aarch64__)
    if (kedge_simd_get() == KEDGE_SIMD_NEON) {
        return kedgei_mean_neon;
    }
#endif
    return mean_scalar;
}

/* How many of the sources that are left the next pass takes: passes as few and as equal as can be. */
static unsigned pass_count(size_t left)
{
    size_t passes = (left + KEDGEI_MEAN_FUSE - 1) / KEDGEI_MEAN_FUSE;
    return passes == 0 ? 0 : (unsigned)((left + passes - 1) / passes);
}

/* All sources over one block of n coordinates from `at` on. Its sums stay in acc, in the first-level cache,
 * while passes of up to KEDGEI_MEAN_FUSE sources go over it: the first pass clears them, the last one
 * divides and writes. */
static void run_block(mean_kernel *kernel, const struct kedge_mean_source *sources, size_t count, size_t at,
                      size_t n, struct kedgei_mean_pass *pass)
{
    _Alignas(64) int64_t acc[KEDGEI_MEAN_BLOCK];
    size_t done = 0;
    do {
        pass->count = pass_count(count - done);
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

/* Blocks end where the memory of the first source has a multiple of a block, and begin on a cache line:
 * updates of one job usually stand alike in their pages, and a vector that straddles two lines costs two
 * loads. What comes before the first line, or is left at the end, is shorter than a line and goes the scalar
 * path. Where one pass takes all sources and keeps its sums in registers, the rest is one block (whole). */
static size_t block_length(const int32_t *values, size_t left, bool whole)
{
    const size_t place = (size_t)((uintptr_t)values / sizeof *values % KEDGEI_MEAN_BLOCK);
    const size_t in_line = place % KEDGEI_MEAN_LINE;
    const size_t block = whole ? left : KEDGEI_MEAN_BLOCK - place;
    const size_t most = in_line != 0 ? KEDGEI_MEAN_LINE - in_line : block;
    const size_t length = left < most ? left : most;
    return length < KEDGEI_MEAN_LINE ? length : length - length % KEDGEI_MEAN_LINE;
}

int kedge_mean_tile(const float *base, const struct kedge_mean_source *sources, size_t count, size_t first,
                    size_t n, unsigned scale_bits, uint64_t weight_sum, float *out)
{
    if (weight_sum == 0 || weight_sum > UINT64_C(1) << 62 || scale_bits > KEDGE_SCALE_BITS_MAX) {
        return KEDGE_E_ARG;
    }
    struct kedgei_mean_pass pass = {.divisor = (double)weight_sum * (double)(UINT64_C(1) << scale_bits)};
    mean_kernel *kernel = choose_kernel(sources, count);
    const bool stream = n >= KEDGEI_MEAN_STREAM && out != base + first;
    const bool whole = count <= KEDGEI_MEAN_FUSE && keeps_sums(kernel);
    size_t done = 0;
    while (done < n) {
        const int32_t *values = count > 0 ? sources[0].values + first + done : NULL;
        const size_t block = block_length(values, n - done, whole);
        pass.base = base + first + done;
        pass.out = out + done;
        pass.stream = stream && (uintptr_t)pass.out % KEDGEI_MEAN_VECTOR == 0;
        run_block(block < KEDGEI_MEAN_LINE ? mean_scalar : kernel, sources, count, first + done, block,
                  &pass);
        done += block;
    }
#if defined(__x86_64__)
    if (stream) {
        kedgei_mean_fence();
    }
#endif
    return KEDGE_OK;
}
