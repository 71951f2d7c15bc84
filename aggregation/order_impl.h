/* Inside order*.c: one block of columns. Row k of a block holds KEDGEI_ORDER_LANES (or, of more than
 * KEDGEI_ORDER_ROWS vectors, KEDGEI_ORDER_LANES_MANY) neighbouring values of vector k, so that a
 * compare-exchange of two rows is one of as many columns. The bodies are plain C that compilers turn into
 * minima and maxima of whole vectors; each instruction set compiles them once more. */
#ifndef KEDGE_AGGREGATION_ORDER_IMPL_H
#define KEDGE_AGGREGATION_ORDER_IMPL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregation/order.h"

enum {
    KEDGEI_ORDER_LANES = 64,
    KEDGEI_ORDER_ROWS = 128, /* so that a block is at most 32 KiB */
    KEDGEI_ORDER_LANES_MANY = 16,
    KEDGEI_ORDER_LINE = 16,                                      /* values of a cache line */
    KEDGEI_ORDER_LANES_KEYS = 8,                                 /* of 64 bits */
    KEDGEI_ORDER_BLOCK = KEDGEI_ORDER_LANES * KEDGEI_ORDER_ROWS, /* values of a block: 32 KiB */
    KEDGEI_ORDER_PAIRS_MAX = 9727, /* of KEDGE_ORDER_VECTORS_MAX rows: (t² − t + 4) · 2^(t−2) − 1, t = 9 */
};

/* Compare-exchanges: afterwards row low holds the lesser, row high the greater. */
struct kedgei_order_network {
    size_t count;
    struct {
        uint16_t low, high;
    } pair[KEDGEI_ORDER_PAIRS_MAX];
};

/* Everything after the rows are filled. */
struct kedgei_order_block {
    const struct kedgei_order_network *network;
    int32_t *rows; /* count × lanes, 64-byte aligned */
    size_t count;
    size_t from, to; /* rows whose sum is wanted once sorted */
    size_t keep;     /* if not 0, the sum of as many values nearest to the median instead */
    const float *base;
    double divisor;
    float *out; /* lanes elements */
    /* What comes after this block, asked for while it is sorted: `lanes` values of each of count vectors from
     * coordinate `next` on. NULL for none. */
    const int32_t *const *vectors;
    size_t next;
};

void kedgei_order_avx2(const struct kedgei_order_block *block);
void kedgei_order_many_avx2(const struct kedgei_order_block *block);
void kedgei_order_keys_avx2(const struct kedgei_order_network *network, int64_t *rows);

/* Shared by order*.c: whether the columns' numbers are in range; the network for count rows, whole. */
bool kedgei_order_is_valid(const struct kedge_order_columns *columns);
void kedgei_order_draw(struct kedgei_order_network *network, size_t count);

#define KEDGEI_ORDER_INLINE static inline __attribute__((always_inline))

KEDGEI_ORDER_INLINE void kedgei_order_exchange(int32_t *restrict low, int32_t *restrict high, size_t lanes)
{
    for (size_t i = 0; i < lanes; i++) {
        const int32_t a = low[i];
        const int32_t b = high[i];
        low[i] = a < b ? a : b;
        high[i] = a < b ? b : a;
    }
}

/* The sums stay below 512 · 2^31 < 2^53: exact in binary64. */
KEDGEI_ORDER_INLINE void kedgei_order_close(const struct kedgei_order_block *block, size_t lanes)
{
    double sum[KEDGEI_ORDER_LANES] = {0};
    for (size_t k = block->from; k < block->to; k++) {
        const int32_t *row = block->rows + k * lanes;
        for (size_t i = 0; i < lanes; i++) {
            sum[i] += (double)row[i];
        }
    }
    for (size_t i = 0; i < lanes; i++) {
        block->out[i] = (float)((double)block->base[i] + sum[i] / block->divisor);
    }
}

/* The nearest values lie side by side: a window of them begins at the least and moves up as long as the value
 * that it gains is nearer to the median than the one that it loses, which, once it is not so, is not so
 * again. Everything is a whole number below 2^41, exact in binary64. */
KEDGEI_ORDER_INLINE void kedgei_order_close_nearest(const struct kedgei_order_block *block, size_t lanes)
{
    int64_t sum[KEDGEI_ORDER_LANES] = {0};
    int64_t twice[KEDGEI_ORDER_LANES]; /* the median times two */
    const int32_t *low = block->rows + (block->count - 1) / 2 * lanes;
    const int32_t *high = block->rows + block->count / 2 * lanes;
    for (size_t i = 0; i < lanes; i++) {
        twice[i] = (int64_t)low[i] + (int64_t)high[i];
    }
    for (size_t k = 0; k < block->keep; k++) {
        const int32_t *row = block->rows + k * lanes;
        for (size_t i = 0; i < lanes; i++) {
            sum[i] += row[i];
        }
    }
    for (size_t k = block->keep; k < block->count; k++) {
        const int32_t *gained = block->rows + k * lanes;
        const int32_t *lost = gained - block->keep * lanes;
        for (size_t i = 0; i < lanes; i++) {
            const int64_t a = lost[i];
            const int64_t b = gained[i];
            const int64_t moves = a + b < twice[i] ? -1 : 0;
            sum[i] += (b - a) & moves;
        }
    }
    for (size_t i = 0; i < lanes; i++) {
        block->out[i] = (float)((double)block->base[i] + (double)sum[i] / block->divisor);
    }
}

/* lanes is a constant at each call. */
KEDGEI_ORDER_INLINE void kedgei_order_block_body(const struct kedgei_order_block *block, size_t lanes)
{
    const struct kedgei_order_network *network = block->network;
    const size_t lines = lanes / KEDGEI_ORDER_LINE;
    const size_t asked = block->vectors ? block->count * lines : 0;
    for (size_t p = 0; p < network->count; p++) {
        if (p < asked) {
            __builtin_prefetch(block->vectors[p / lines] + block->next + p % lines * KEDGEI_ORDER_LINE);
        }
        kedgei_order_exchange(block->rows + network->pair[p].low * lanes,
                              block->rows + network->pair[p].high * lanes, lanes);
    }
    if (block->keep > 0) {
        kedgei_order_close_nearest(block, lanes);
    } else {
        kedgei_order_close(block, lanes);
    }
}

KEDGEI_ORDER_INLINE void kedgei_order_keys_body(const struct kedgei_order_network *network, int64_t *rows)
{
    for (size_t p = 0; p < network->count; p++) {
        int64_t *restrict low = rows + (size_t)network->pair[p].low * KEDGEI_ORDER_LANES_KEYS;
        int64_t *restrict high = rows + (size_t)network->pair[p].high * KEDGEI_ORDER_LANES_KEYS;
        for (size_t i = 0; i < KEDGEI_ORDER_LANES_KEYS; i++) {
            const int64_t a = low[i];
            const int64_t b = high[i];
            low[i] = a < b ? a : b;
            high[i] = a < b ? b : a;
        }
    }
}

#endif
