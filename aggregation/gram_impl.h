/* Inside gram*.c: wide paths. Those that return a number say how far they came, the scalar code does the
 * rest. */
#ifndef KEDGE_AGGREGATION_GRAM_IMPL_H
#define KEDGE_AGGREGATION_GRAM_IMPL_H

#include <stddef.h>
#include <stdint.h>

#include "aggregation/gram.h"

enum {
    /* A block of the matrix is ROWS vectors against COLUMNS vectors, all sums in registers: of AVX2's 16
     * registers 12 hold sums, and eight loads serve twelve products. */
    KEDGEI_GRAM_ROWS = 6,
    KEDGEI_GRAM_COLUMNS = 2,
    KEDGEI_GRAM_CELLS = KEDGEI_GRAM_ROWS * KEDGEI_GRAM_COLUMNS,
    KEDGEI_GRAM_STEP = 32, /* coordinates that a block takes at a time; tiles are filled up with zeros */
    /* Scaled vectors lie this far apart in a tile. One cache line more than the tile, so that equal
     * coordinates of neighbours fall into different sets of the cache. */
    KEDGEI_GRAM_STRIDE = KEDGE_GRAM_TILE + 32,
    KEDGEI_GRAM_LINE = 32,      /* int16 in a cache line */
    KEDGEI_GRAM_LONG = 1 << 14, /* from here on a vector is read in several parts at once */
};

/* cells[r * KEDGEI_GRAM_COLUMNS + c] = inner product of row r (a + r * KEDGEI_GRAM_STRIDE) and column c (b
 * likewise) over n coordinates, n a multiple of KEDGEI_GRAM_STEP up to KEDGE_GRAM_TILE; a and b lie on cache
 * lines. */
typedef void kedgei_gram_block(const int16_t *a, const int16_t *b, size_t n,
                               int64_t cells[KEDGEI_GRAM_CELLS]);

/* Of this process's instructions (simd.h). */
kedgei_gram_block *kedgei_gram_choose_block(void);
kedgei_gram_block kedgei_gram_block_avx2;
kedgei_gram_block kedgei_gram_block_avx512;
size_t kedgei_max_abs_avx2(const int32_t *q, size_t n, uint32_t *max);
size_t kedgei_scale12_avx2(const int32_t *q, size_t n, uint32_t max, int16_t *out);
size_t kedgei_dot12_avx2(const int16_t *a, const int16_t *b, size_t n, int64_t *sum);

#endif
