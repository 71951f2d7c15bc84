/* Exact inner products of updates. Each update is scaled to 12-bit integers by its own largest magnitude,
 *     x = round-half-even(q * 2047 / max|q|)  in -2047 … 2047,
 * so products and sums are integers: int32 within a block, int64 in total, equal for every tiling, order,
 * thread count and instruction set. Works from the int32 sources tile by tile: memory does not grow with
 * the dimension. Source: DESIGN §6. Pure, any thread. */
#ifndef KEDGE_AGGREGATION_GRAM_H
#define KEDGE_AGGREGATION_GRAM_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

enum {
    KEDGE_GRAM_ONE = 2047,        /* what the largest magnitude becomes */
    KEDGE_GRAM_TILE = 1024,       /* coordinates of one inner tile */
    KEDGE_GRAM_VECTORS_MAX = 512, /* groups are sought among at most 20 * 16 updates; room for more */
};

/* The larger of seed and every |q[i]|; feed it tile by tile, starting at 0. Up to 2^31. */
uint32_t kedge_max_abs(const int32_t *q, size_t n, uint32_t seed);

/* out[i] = round-half-even(q[i] * 2047 / max), exact. max > 0 and >= every |q[i]|. */
void kedge_scale12(const int32_t *q, size_t n, uint32_t max, int16_t *out);

/* Sum of a[i] * b[i], exact, for values in -2047 … 2047 and any n below 2^40. */
int64_t kedge_dot12(const int16_t *a, const int16_t *b, size_t n);

/* int16 elements of scratch that kedge_gram_tile needs for count vectors. */
size_t kedge_gram_scratch(size_t count);

/* gram[i * count + j] += inner product of scaled vectors i and j over coordinates first … first + n - 1,
 * all i, j. maxima[i] = max|q| over the WHOLE vector i, 0 for a zero vector (its row and column stay as
 * they are). gram: count * count, zeroed by the caller before the first tile, symmetric at every call (what
 * is below the diagonal is copied from above); scratch: kedge_gram_scratch(count) elements. Threads may take
 * disjoint ranges into matrices of their own and add these up. KEDGE_E_ARG: count above the limit. */
KEDGE_NODISCARD int kedge_gram_tile(const int32_t *const *vectors, const uint32_t *maxima, size_t count,
                                    size_t first, size_t n, int16_t *scratch, int64_t *gram);

/* Cosines in binary64: C_ii = 1; for i < j C_ij = (A_ij / sqrt(A_ii)) / sqrt(A_jj), evaluated in this
 * order, and C_ji = C_ij. Rows and columns of zero vectors (A_ii = 0) are 0 throughout. */
void kedge_gram_cosine(const int64_t *gram, size_t count, double *cosine);

#endif
