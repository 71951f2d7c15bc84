/* Why a binary64 division may stand for the exact one when scaling: q * 2047 is exact (below 2^43) and a
 * quotient that is no tie lies at least 1 / (2 max) >= 2^-32 from the nearest tie, while binary64 near
 * 2047 has steps of 2^-42; ties themselves are representable. So rounding the quotient first never moves
 * it onto or across a tie. */
#include "aggregation/gram.h"

#include <math.h>
#include <string.h>

#include "aggregation/gram_impl.h"
#include "aggregation/neon.h"
#include "aggregation/simd.h"
#include "common/base/mem.h"

#if defined(__x86_64__)
#define USE_WIDE kedge_simd_avx2()
#define MAX_ABS_WIDE kedgei_max_abs_avx2
#define SCALE12_WIDE kedgei_scale12_avx2
#define DOT12_WIDE kedgei_dot12_avx2
#elif defined(__aarch64__)
#define USE_WIDE (kedge_simd_get() == KEDGE_SIMD_NEON)
#define MAX_ABS_WIDE kedgei_max_abs_neon
#define SCALE12_WIDE kedgei_scale12_neon
#define DOT12_WIDE(a, b, n, sum) ((size_t)0)
#else
#define USE_WIDE false
#define MAX_ABS_WIDE(q, n, max) ((size_t)0)
#define SCALE12_WIDE(q, n, max, out) ((size_t)0)
#define DOT12_WIDE(a, b, n, sum) ((size_t)0)
#endif

uint32_t kedge_max_abs(const int32_t *q, size_t n, uint32_t seed)
{
    uint32_t max = seed;
    size_t done = USE_WIDE ? MAX_ABS_WIDE(q, n, &max) : 0;
    for (size_t i = done; i < n; i++) {
        uint32_t size = q[i] < 0 ? 0u - (uint32_t)q[i] : (uint32_t)q[i];
        max = size > max ? size : max;
    }
    return max;
}

void kedge_scale12(const int32_t *q, size_t n, uint32_t max, int16_t *out)
{
    const double shift = 0x1.8p52; /* adding and taking it off rounds half to even */
    size_t done = USE_WIDE ? SCALE12_WIDE(q, n, max, out) : 0;
    for (size_t i = done; i < n; i++) {
        double scaled = (double)((int64_t)q[i] * KEDGE_GRAM_ONE) / (double)max;
        out[i] = (int16_t)((scaled + shift) - shift);
    }
}

int64_t kedge_dot12(const int16_t *a, const int16_t *b, size_t n)
{
    enum { BLOCK = 512 }; /* 512 * 2047^2 < 2^31 */
    int64_t total = 0;
    size_t done = USE_WIDE ? DOT12_WIDE(a, b, n, &total) : 0;
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

static size_t padded(size_t count)
{
    return (count + KEDGEI_GRAM_ROWS - 1) / KEDGEI_GRAM_ROWS * KEDGEI_GRAM_ROWS;
}

/* Rows are padded to a whole number of the kernel's rows, and the first begins on a cache line. */
size_t kedge_gram_scratch(size_t count)
{
    return padded(count) * KEDGEI_GRAM_STRIDE + KEDGEI_GRAM_LINE;
}

static int16_t *first_line(int16_t *scratch)
{
    const size_t past = (size_t)((uintptr_t)scratch / sizeof *scratch % KEDGEI_GRAM_LINE);
    return past == 0 ? scratch : scratch + (KEDGEI_GRAM_LINE - past);
}

static void block_scalar(const int16_t *a, const int16_t *b, size_t n, int64_t cells[KEDGEI_GRAM_CELLS])
{
    for (size_t k = 0; k < KEDGEI_GRAM_CELLS; k++) {
        cells[k] = kedge_dot12(a + k / KEDGEI_GRAM_COLUMNS * KEDGEI_GRAM_STRIDE,
                               b + k % KEDGEI_GRAM_COLUMNS * KEDGEI_GRAM_STRIDE, n);
    }
}

/* Sums are of integers, so all kernels give the same bits, and a coordinator and an auditor on different
 * processors agree. */
kedgei_gram_block *kedgei_gram_choose_block(void)
{
#if defined(__x86_64__)
    if (kedge_simd_get() == KEDGE_SIMD_AVX512) {
        return kedgei_gram_block_avx512;
    }
    if (kedge_simd_avx2()) {
        return kedgei_gram_block_avx2;
    }
#elif defined(__aarch64__)
    if (kedge_simd_get() == KEDGE_SIMD_NEON) {
        return kedgei_gram_block_neon;
    }
#endif
    return block_scalar;
}

/* Where the next tile's sources begin: their lines are asked for, a few at a time, while this tile's products
 * keep the processor busy and memory idle. */
struct ahead {
    const int32_t *const *vectors;
    size_t count, at, n; /* vectors; the next tile's first coordinate, its length: 0 at the end */
    size_t vector, done; /* what is asked for next */
};

static void ask_ahead(struct ahead *ahead, size_t lines)
{
    for (; lines > 0 && ahead->n > 0 && ahead->vector < ahead->count; lines--) {
        __builtin_prefetch(ahead->vectors[ahead->vector] + ahead->at + ahead->done, 0, 3);
        ahead->done += 16;
        if (ahead->done >= ahead->n) {
            ahead->done = 0;
            ahead->vector++;
        }
    }
}

/* The upper triangle over one tile, whose vectors lie in x; below it nothing is written. */
static void add_tile(kedgei_gram_block *block, const int16_t *x, size_t count, size_t n, struct ahead *ahead,
                     int64_t *gram)
{
    int64_t cells[KEDGEI_GRAM_CELLS];
    const size_t rows = padded(count) / KEDGEI_GRAM_ROWS;
    const size_t blocks = rows * (rows + 1) / 2 * (KEDGEI_GRAM_ROWS / KEDGEI_GRAM_COLUMNS);
    const size_t lines = blocks > 0 ? count * (ahead->n / 16 + 1) / blocks + 1 : 0;
    for (size_t i = 0; i < count; i += KEDGEI_GRAM_ROWS) {
        for (size_t j = i; j < count; j += KEDGEI_GRAM_COLUMNS) {
            block(x + i * KEDGEI_GRAM_STRIDE, x + j * KEDGEI_GRAM_STRIDE, n, cells);
            ask_ahead(ahead, lines);
            for (size_t k = 0; k < KEDGEI_GRAM_CELLS; k++) {
                const size_t row = i + k / KEDGEI_GRAM_COLUMNS, column = j + k % KEDGEI_GRAM_COLUMNS;
                if (row <= column && column < count) {
                    gram[row * count + column] += cells[k];
                }
            }
        }
    }
}

/* Rows that are not there, zero vectors and the end of a tile are filled with zeros, which add nothing:
 * kernels need no case for them. */
static void scale_tile(const int32_t *const *vectors, const uint32_t *maxima, size_t count, size_t first,
                       size_t n, size_t whole, int16_t *x)
{
    for (size_t i = 0; i < padded(count); i++, x += KEDGEI_GRAM_STRIDE) {
        size_t done = 0;
        if (i < count && maxima[i] != 0) {
            kedge_scale12(vectors[i] + first, n, maxima[i], x);
            done = n;
        }
        memset(x + done, 0, (whole - done) * sizeof *x);
    }
}

/* The tile is scaled once and then used by every pair: n² products of rows that are in the cache, for n
 * readings from memory. */
int kedge_gram_tile(const int32_t *const *vectors, const uint32_t *maxima, size_t count, size_t first,
                    size_t n, int16_t *scratch, int64_t *gram)
{
    if (count > KEDGE_GRAM_VECTORS_MAX) {
        return KEDGE_E_ARG;
    }
    kedgei_gram_block *block = kedgei_gram_choose_block();
    int16_t *x = first_line(scratch);
    for (size_t done = 0, tile; done < n; done += tile) {
        tile = n - done < KEDGE_GRAM_TILE ? n - done : KEDGE_GRAM_TILE;
        const size_t left = n - done - tile;
        struct ahead ahead = {.vectors = vectors,
                              .count = count,
                              .at = first + done + tile,
                              .n = left < KEDGE_GRAM_TILE ? left : KEDGE_GRAM_TILE};
        const size_t whole = (tile + KEDGEI_GRAM_STEP - 1) / KEDGEI_GRAM_STEP * KEDGEI_GRAM_STEP;
        scale_tile(vectors, maxima, count, first + done, tile, whole, x);
        add_tile(block, x, count, whole, &ahead, gram);
    }
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < i; j++) {
            gram[i * count + j] = gram[j * count + i];
        }
    }
    return KEDGE_OK;
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
