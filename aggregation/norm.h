/* The exact sum of an update's squares, Σ q², in whole numbers: equal for every tiling, order and instruction
 * set. The Gram matrix (gram.h) sees updates in 12 bits; this is the length that robust rules go by. Pure,
 * any thread. */
#ifndef KEDGE_AGGREGATION_NORM_H
#define KEDGE_AGGREGATION_NORM_H

#include <stddef.h>
#include <stdint.h>

/* high · 2^32 + low, low < 2^32; starts as {0, 0}. Sums of parts may be taken apart and added up. */
struct kedge_norm {
    uint64_t high, low;
};

/* Adds the squares of n values; any tiles in any order, below 2^64 values of any size in all. */
void kedge_norm_add(struct kedge_norm *norm, const int32_t *q, size_t n);
/* Adds another sum. */
void kedge_norm_join(struct kedge_norm *norm, const struct kedge_norm *other);
/* In binary64: (double)high · 2^32 + (double)low. */
double kedge_norm_value(const struct kedge_norm *norm);

#endif
