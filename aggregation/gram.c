/* Why a binary64 division may stand for the exact one when scaling: q * 2047 is exact (below 2^43) and a
 * quotient that is no tie lies at least 1 / (2 max) >= 2^-32 from the nearest tie, while binary64 near
 * 2047 has steps of 2^-42; ties themselves are representable. So rounding the quotient first never moves
 * it onto or across a tie. */
#include "aggregation/gram.h"

#include <math.h>
#include <string.h>

#include "aggregation/gram_impl.h"
#include "aggregation/simd.h"
#include "common/base/mem.h"

#if defined(__x86_64__)
#define USE_AVX2 kedge_simd_avx2()
#else
#define USE_AVX2 false
#define kedgei_max_abs_avx2(q, n, max) ((size_t)0)
#define kedgei_scale12_avx2(q, n, max, out) ((size_t)0)
#define kedgei_dot12_avx2(a, b, n, sum) ((size_t)0)
#define kedgei_dot12_four_avx2(a, b, n, sum) ((size_t)0)
#endif

uint32_t kedge_max_abs(const int32_t *q, size_t n, uint32_t seed)
{
    uint32_t max = seed;
    size_t done = USE_AVX2 ? kedgei_max_abs_avx2(q, n, &max) : 0;
    for (size_t i = done; i < n; i++) {
        uint32_t size = q[i] < 0 ? 0u - (uint32_t)q[i] : (uint32_t)q[i];
        max = size > max ? size : max;
    }
    return max;
}

void kedge_scale12(const int32_t *q, size_t n, uint32_t max, int16_t *out)
{
    const double shift = 0x1.8p52; /* adding and taking it off rounds half to even */
    size_t done = USE_AVX2 ? kedgei_scale12_avx2(q, n, max, out) : 0;
    for (size_t i = done; i < n; i++) {
        double scaled = (double)((int64_t)q[i] * KEDGE_GRAM_ONE) / (double)max;
        out[i] = (int16_t)((scaled + shift) - shift);
    }
}

int64_t kedge_dot12(const int16_t *a, const int16_t *b, size_t n)
{
    enum { BLOCK = 512 }; /* 512 * 2047^2 < 2^31 */
    int64_t total = 0;
    size_t done = USE_AVX2 ? kedgei_dot12_avx2(a, b, n, &total) : 0;
    while (done < n) {
        size_t end = n - done < BLOCK ? n : done + BLOCK;
        int32_t sum = 0;
        for (; done < end; done++) {
            sum += a[done] * b[done];
        }
        total += sum;
    }
    return total;
}

size_t kedge_gram_scratch(size_t count)
{
    return count * KEDGE_GRAM_TILE;
}

/* Row i of the upper triangle over one tile; vectors lie in x, one after the other. */
static void add_row(const int16_t *x, const uint32_t *maxima, size_t count, size_t i, size_t n, int64_t *gram)
{
    const int16_t *a = x + i * KEDGE_GRAM_TILE;
    size_t j = i;
    while (j < count) {
        const int16_t *b = x + j * KEDGE_GRAM_TILE;
        int64_t sum[4] = {0, 0, 0, 0};
        size_t width = USE_AVX2 && count - j >= 4 ? 4 : 1;
        if (width == 4) {
            const int16_t *const four[4] = {b, b + KEDGE_GRAM_TILE, b + 2 * KEDGE_GRAM_TILE,
                                            b + 3 * KEDGE_GRAM_TILE};
            size_t done = kedgei_dot12_four_avx2(a, four, n, sum);
            for (size_t k = 0; done < n && k < 4; k++) {
                sum[k] += kedge_dot12(a + done, four[k] + done, n - done);
            }
        } else {
            sum[0] = kedge_dot12(a, b, n);
        }
        for (size_t k = 0; k < width; k++, j++) {
            if (maxima[j] == 0) {
                continue; /* its part of x holds nothing */
            }
            gram[i * count + j] += sum[k];
            if (j != i) {
                gram[j * count + i] += sum[k];
            }
        }
    }
}

int kedge_gram_tile(const int32_t *const *vectors, const uint32_t *maxima, size_t count, size_t first,
                    size_t n, int16_t *scratch, int64_t *gram)
{
    if (count > KEDGE_GRAM_VECTORS_MAX) {
        return KEDGE_E_ARG;
    }
    for (size_t done = 0; done < n; done += KEDGE_GRAM_TILE) {
        size_t tile = n - done < KEDGE_GRAM_TILE ? n - done : KEDGE_GRAM_TILE;
        for (size_t i = 0; i < count; i++) {
            int16_t *x = scratch + i * KEDGE_GRAM_TILE;
            if (maxima[i] == 0) {
                memset(x, 0, tile * sizeof *x);
            } else {
                kedge_scale12(vectors[i] + first + done, tile, maxima[i], x);
            }
        }
        for (size_t i = 0; i < count; i++) {
            if (maxima[i] != 0) {
                add_row(scratch, maxima, count, i, tile, gram);
            }
        }
    }
    return KEDGE_OK;
}

int kedge_gram(const int32_t *const *vectors, size_t count, size_t dimension, uint32_t *maxima, int64_t *gram)
{
    if (count > KEDGE_GRAM_VECTORS_MAX) {
        return KEDGE_E_ARG;
    }
    int16_t *scratch = kedge_mem_new(kedge_gram_scratch(count), sizeof *scratch);
    if (!scratch) {
        return KEDGE_E_NOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        maxima[i] = kedge_max_abs(vectors[i], dimension, 0);
    }
    memset(gram, 0, count * count * sizeof *gram);
    int err = kedge_gram_tile(vectors, maxima, count, 0, dimension, scratch, gram);
    kedge_mem_free(scratch);
    return err;
}

void kedge_gram_cosine(const int64_t *gram, size_t count, double *cosine)
{
    for (size_t i = 0; i < count; i++) {
        const double a_ii = (double)gram[i * count + i];
        cosine[i * count + i] = gram[i * count + i] > 0 ? 1.0 : 0.0;
        for (size_t j = i + 1; j < count; j++) {
            const double a_jj = (double)gram[j * count + j];
            double c = 0.0;
            if (a_ii > 0.0 && a_jj > 0.0) {
                c = ((double)gram[i * count + j] / sqrt(a_ii)) / sqrt(a_jj);
            }
            cosine[i * count + j] = c;
            cosine[j * count + i] = c;
        }
    }
}
