/* Order statistics of the columns of integer vectors, by coordinate tiles: each column is sorted by a network
 * of compare-exchanges (Batcher's merge exchange: Knuth, TAOCP vol. 3, 5.2.2, Algorithm M), of which only
 * those are run that the result needs. Which values are kept is a matter of whole numbers, so tiles, order of
 * vectors and instruction set change no bit. Pure, no heap, about 96 KiB of stack. */
#ifndef KEDGE_AGGREGATION_ORDER_H
#define KEDGE_AGGREGATION_ORDER_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

enum {
    KEDGE_ORDER_VECTORS_MAX = 512,
    KEDGE_ORDER_VOTES_MAX = 1 << 21, /* of one vector: sums of 512 stay below 2^62 */
};

/* The columns to work on: base, vectors and out as for kedge_mean_tile. */
struct kedge_order_columns {
    const float *base;             /* coordinate 0 */
    const int32_t *const *vectors; /* count pointers to coordinate 0 */
    size_t count;                  /* 1 … KEDGE_ORDER_VECTORS_MAX */
    size_t first, n;               /* coordinates first … first + n − 1 */
    unsigned scale_bits;           /* at most KEDGE_SCALE_BITS_MAX */
    float *out;                    /* n elements, may be base + first */
};

/* out = base + mean of the sorted column's places from … to − 1 (0 = least). KEDGE_E_ARG: a number is out of
 * range, or from >= to or to > count. */
KEDGE_NODISCARD int kedge_order_mean(const struct kedge_order_columns *columns, size_t from, size_t to);

/* The same with each vector k standing for votes[k] copies of itself (at most KEDGE_ORDER_VOTES_MAX, 0
 * allowed); from and to count copies. */
KEDGE_NODISCARD int kedge_order_votes(const struct kedge_order_columns *columns, const uint64_t *votes,
                                      uint64_t from, uint64_t to);

/* out = base + mean of the `keep` values nearest to the column's median (for an even count the mean of the
 * middle two); of two equally near ones the lower. KEDGE_E_ARG: keep is 0 or above count. */
KEDGE_NODISCARD int kedge_order_nearest(const struct kedge_order_columns *columns, size_t keep);

#endif
