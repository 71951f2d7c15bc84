/* Blocks of columns are copied into rows of one array that stays in the first-level cache, sorted there and
 * closed. A network is cut to what is asked by walking it backwards: a row is, from there on, of no interest,
 * or part of the sum whatever the order, or wanted at its place. A compare-exchange of two rows that are both
 * of no interest, or both part of the sum, changes nothing and is dropped. */
#include "aggregation/order.h"

#include <stdbool.h>
#include <string.h>

#include "aggregation/order_impl.h"
#include "aggregation/quantise.h"
#include "aggregation/simd.h"

_Static_assert(KEDGE_ORDER_VECTORS_MAX *KEDGEI_ORDER_LANES_MANY <= KEDGEI_ORDER_BLOCK, "rows of many fit");

enum interest { NONE, SUMMED, PLACED };

/* ---- networks ---- */

/* Batcher's merge exchange (Knuth, The Art of Computer Programming 3, 5.2.2, algorithm M). A network
 * compares the same places whatever the values are, so that all columns of a block are sorted at once, one
 * in each lane. */
void kedgei_order_draw(struct kedgei_order_network *network, size_t count)
{
    size_t top = 1;
    while (2 * top < count) {
        top *= 2;
    }
    network->count = 0;
    for (size_t p = count > 1 ? top : 0; p > 0; p /= 2) {
        size_t r = 0;
        size_t d = p;
        for (size_t q = top;; q /= 2) {
            for (size_t i = 0; i + d < count; i++) {
                if ((i & p) == r) {
                    network->pair[network->count].low = (uint16_t)i;
                    network->pair[network->count].high = (uint16_t)(i + d);
                    network->count++;
                }
            }
            if (q == p) {
                break;
            }
            d = q - p;
            r = p;
        }
    }
}

/* Keeps what decides the sum of places from … to − 1. */
static void cut_network(struct kedgei_order_network *network, size_t count, size_t from, size_t to)
{
    unsigned char interest[KEDGE_ORDER_VECTORS_MAX];
    for (size_t k = 0; k < count; k++) {
        interest[k] = k >= from && k < to ? SUMMED : NONE;
    }
    size_t kept = network->count; /* the kept ones gather at the end */
    for (size_t p = network->count; p-- > 0;) {
        const size_t low = network->pair[p].low;
        const size_t high = network->pair[p].high;
        if (interest[low] == interest[high] && interest[low] != PLACED) {
            continue;
        }
        interest[low] = PLACED;
        interest[high] = PLACED;
        network->pair[--kept] = network->pair[p];
    }
    network->count -= kept;
    memmove(network->pair, network->pair + kept, network->count * sizeof network->pair[0]);
}

/* ---- one block ---- */

static void run_block(const struct kedgei_order_block *block, size_t lanes)
{
#if defined(__x86_64__)
    if (kedge_simd_avx2()) {
        (lanes == KEDGEI_ORDER_LANES ? kedgei_order_avx2 : kedgei_order_many_avx2)(block);
        return;
    }
#endif
    if (lanes == KEDGEI_ORDER_LANES) {
        kedgei_order_block_body(block, KEDGEI_ORDER_LANES);
    } else {
        kedgei_order_block_body(block, KEDGEI_ORDER_LANES_MANY);
    }
}

/* Rows of a block times lanes is what fits the first-level cache: many updates are sorted in narrower
 * blocks. */
static size_t count_lanes(size_t count)
{
    return count <= KEDGEI_ORDER_ROWS ? KEDGEI_ORDER_LANES : KEDGEI_ORDER_LANES_MANY;
}

/* Rows of the block from coordinate `at` on; what lies beyond the range is filled up with zeros. */
static void fill_rows(const struct kedge_order_columns *columns, size_t at, size_t lanes, int32_t *rows)
{
    const size_t left = columns->n - at;
    for (size_t k = 0; k < columns->count; k++) {
        const int32_t *values = columns->vectors[k] + columns->first + at;
        int32_t *row = rows + k * lanes;
        if (left >= lanes) {
            memcpy(row, values, lanes * sizeof *row);
        } else {
            memcpy(row, values, left * sizeof *row);
            memset(row + left, 0, (lanes - left) * sizeof *row);
        }
    }
}

bool kedgei_order_is_valid(const struct kedge_order_columns *columns)
{
    return columns->count > 0 && columns->count <= KEDGE_ORDER_VECTORS_MAX
           && columns->scale_bits <= KEDGE_SCALE_BITS_MAX;
}

/* ---- columns ---- */

/* Sorts all columns by the block's network and closes them as it says. */
static void run_columns(const struct kedge_order_columns *columns, struct kedgei_order_block block,
                        size_t kept)
{
    _Alignas(64) int32_t rows[KEDGEI_ORDER_BLOCK];
    const size_t lanes = count_lanes(columns->count);
    block.rows = rows;
    block.count = columns->count;
    block.divisor = (double)kept * (double)(UINT64_C(1) << columns->scale_bits);
    for (size_t at = 0; at < columns->n; at += lanes) {
        float base[KEDGEI_ORDER_LANES] = {0};
        float out[KEDGEI_ORDER_LANES];
        const size_t n = columns->n - at < lanes ? columns->n - at : lanes;
        memcpy(base, columns->base + columns->first + at, n * sizeof *base);
        fill_rows(columns, at, lanes, rows);
        block.vectors = columns->n - at >= 2 * lanes ? columns->vectors : NULL;
        block.next = columns->first + at + lanes;
        block.base = base;
        block.out = out;
        run_block(&block, lanes);
        memcpy(columns->out + at, out, n * sizeof *out);
    }
}

int kedge_order_mean(const struct kedge_order_columns *columns, size_t from, size_t to)
{
    if (!kedgei_order_is_valid(columns) || from >= to || to > columns->count) {
        return KEDGE_E_ARG;
    }
    struct kedgei_order_network network;
    kedgei_order_draw(&network, columns->count);
    cut_network(&network, columns->count, from, to);
    struct kedgei_order_block block = {.network = &network, .from = from, .to = to};
    run_columns(columns, block, to - from);
    return KEDGE_OK;
}

int kedge_order_nearest(const struct kedge_order_columns *columns, size_t keep)
{
    if (!kedgei_order_is_valid(columns) || keep == 0 || keep > columns->count) {
        return KEDGE_E_ARG;
    }
    struct kedgei_order_network network;
    kedgei_order_draw(&network, columns->count);
    struct kedgei_order_block block = {.network = &network, .keep = keep};
    run_columns(columns, block, keep);
    return KEDGE_OK;
}
