/* Columns with votes: keys of 64 bits carry the vector's index below its value, so that the sorted column
 * still tells whose each value is. */
#include "aggregation/order_impl.h"
#include "aggregation/simd.h"

enum { LANES = KEDGEI_ORDER_LANES_KEYS };

static void fill_keys(const struct kedge_order_columns *columns, size_t at, int64_t *rows)
{
    const size_t n = columns->n - at < LANES ? columns->n - at : LANES;
    for (size_t k = 0; k < columns->count; k++) {
        const int32_t *values = columns->vectors[k] + columns->first + at;
        for (size_t i = 0; i < n; i++) {
            rows[k * LANES + i] = (int64_t)values[i] * (INT64_C(1) << 32) + (int64_t)k;
        }
        for (size_t i = n; i < LANES; i++) {
            rows[k * LANES + i] = (int64_t)k;
        }
    }
}

static void sort_keys(const struct kedgei_order_network *network, int64_t *rows)
{
#if defined(__x86_64__)
    if (kedge_simd_avx2()) {
        kedgei_order_keys_avx2(network, rows);
        return;
    }
#endif
    kedgei_order_keys_body(network, rows);
}

/* Sum of the copies from … to − 1 of one sorted column. A vector of v votes stands for v copies of its
 * value; those in the range are counted by the overlap of two intervals, so no copy is made. */
static int64_t sum_copies(const int64_t *column, size_t count, const uint64_t *votes, uint64_t from,
                          uint64_t to)
{
    int64_t sum = 0;
    uint64_t start = 0;
    for (size_t k = 0; k < count && start < to; k++) {
        const int64_t key = column[k * LANES];
        const size_t index = (size_t)(key & UINT32_MAX);
        const int64_t value = (key - (int64_t)index) / (INT64_C(1) << 32);
        const uint64_t end = start + votes[index];
        const uint64_t low = start > from ? start : from;
        const uint64_t high = end < to ? end : to;
        if (low < high) {
            sum += value * (int64_t)(high - low);
        }
        start = end;
    }
    return sum;
}

int kedge_order_votes(const struct kedge_order_columns *columns, const uint64_t *votes, uint64_t from,
                      uint64_t to)
{
    if (!kedgei_order_is_valid(columns)) {
        return KEDGE_E_ARG;
    }
    uint64_t all = 0;
    for (size_t k = 0; k < columns->count; k++) {
        if (votes[k] > KEDGE_ORDER_VOTES_MAX) {
            return KEDGE_E_ARG;
        }
        all += votes[k];
    }
    if (from >= to || to > all) {
        return KEDGE_E_ARG;
    }
    struct kedgei_order_network network;
    _Alignas(64) int64_t rows[KEDGE_ORDER_VECTORS_MAX * LANES];
    kedgei_order_draw(&network, columns->count);
    const double divisor = (double)(to - from) * (double)(UINT64_C(1) << columns->scale_bits);
    for (size_t at = 0; at < columns->n; at += LANES) {
        fill_keys(columns, at, rows);
        sort_keys(&network, rows);
        for (size_t i = 0; i < LANES && at + i < columns->n; i++) {
            const int64_t sum = sum_copies(rows + i, columns->count, votes, from, to);
            columns->out[at + i] =
                (float)((double)columns->base[columns->first + at + i] + (double)sum / divisor);
        }
    }
    return KEDGE_OK;
}
