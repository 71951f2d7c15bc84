/* Writing of compact updates. The largest values are found by their magnitudes' upper and lower half, each by
 * counting, so that it takes two passes whatever the values are. */
#include <string.h>

#include "aggregation/compact.h"
#include "common/base/mem.h"
#include "common/base/try.h"

enum { HALF = 16, BINS = 1 << HALF, CODE_MAX = 127, SIGNIFICAND_BITS = 8, BIAS = 127 };

static uint32_t size_of(int32_t v)
{
    return v < 0 ? (uint32_t)-v : (uint32_t)v;
}

/* The bin from which on the bins above hold fewer than `most`, and how many those hold. Bin 0 holds the rest.
 */
static uint32_t find_bin(const uint64_t *bins, uint64_t most, uint64_t *ret_above)
{
    uint64_t above = 0;
    uint32_t bin = BINS - 1;
    for (; bin > 0 && above + bins[bin] < most; bin--) {
        above += bins[bin];
    }
    *ret_above = above;
    return bin;
}

/* Which values a sparse update sends: the largest by magnitude, of equal ones the first. A sort would need
 * a copy of the update; here the magnitude at which to stop is found first, its upper 16 bits in one pass
 * over the values and its lower 16 in another, and `ties` says how many values of just that magnitude may
 * be sent. */
int kedge_compact_plan(const struct kedge_compact *c, const int32_t *values, size_t n,
                       struct kedge_compact_plan *ret)
{
    struct kedge_compact_plan plan = {.kind = c->kind};
    if (!kedge_compact_is_sparse(c->kind)) {
        *ret = plan;
        return KEDGE_OK;
    }
    const uint64_t most = kedge_compact_entries_most(c, n);
    uint64_t above_high, above_low;
    uint64_t *bins = kedge_mem_new(BINS, sizeof *bins); /* of up to 2^36 values, most may be alike */
    KEDGE_TRY_MEM(bins);
    for (size_t i = 0; i < n; i++) {
        bins[size_of(values[i]) >> HALF]++;
    }
    const uint32_t high = find_bin(bins, most, &above_high);
    memset(bins, 0, BINS * sizeof *bins);
    for (size_t i = 0; i < n; i++) {
        const uint32_t size = size_of(values[i]);
        bins[size & (BINS - 1)] += size >> HALF == high;
    }
    const uint32_t low = find_bin(bins, most - above_high, &above_low);
    kedge_mem_free(bins);
    plan.least = high << HALF | low;
    plan.ties = plan.least > 0 ? most - above_high - above_low : 0; /* a zero need not be sent */
    *ret = plan;
    return KEDGE_OK;
}

/* What compression left out of the last update is added to this one (error feedback), `carry` of it. The
 * sum is bounded to what an update can hold; what goes beyond is lost, and not wrapped into the opposite
 * sign. */
void kedge_compact_add(const struct kedge_compact *c, const int32_t *left, size_t n, int32_t *values)
{
    for (size_t i = 0; i < n; i++) {
        const int64_t sum = values[i] + (int64_t)left[i] * c->carry / KEDGE_COMPACT_SHARE_ONE;
        values[i] = (int32_t)(sum > INT32_MAX ? INT32_MAX : sum < -INT32_MAX ? -INT32_MAX : sum);
    }
}

static void store32(uint8_t *p, uint32_t v)
{
    for (unsigned i = 0; i < 4; i++) {
        p[i] = (uint8_t)(v >> 8 * i);
    }
}

/* v within ±limit, as a magnitude. */
static uint32_t clip(int32_t v, int32_t limit)
{
    const uint32_t size = size_of(v);
    return size < (uint32_t)limit ? size : (uint32_t)limit;
}

static int32_t with_sign(uint32_t size, int32_t sign)
{
    return sign < 0 ? -(int32_t)size : (int32_t)size;
}

/* The least step by which 127 reach `most`, not 0. */
static uint32_t step_for(uint32_t most)
{
    return most > CODE_MAX ? (uint32_t)(((uint64_t)most + CODE_MAX - 1) / CODE_MAX) : 1;
}

/* Rounded to the nearest code, but never to a value beyond the job's bound: the coordinator refuses an
 * update with such a value. */
static uint32_t code_for(uint32_t size, uint32_t step, int32_t limit)
{
    uint32_t code = (uint32_t)(((uint64_t)size + step / 2) / step);
    return (uint64_t)code * step > (uint32_t)limit ? code - 1 : code;
}

/* The step of the values that are taken: of all, where taken is NULL. */
static uint32_t find_step(const int32_t *values, size_t n, const bool *taken, int32_t limit)
{
    uint32_t most = 0;
    for (size_t i = 0; i < n; i++) {
        const uint32_t size = !taken || taken[i] ? clip(values[i], limit) : 0;
        most = size > most ? size : most;
    }
    return step_for(most);
}

/* Every writer takes off the values what it has written, so that what remains in them is the residual. */
static size_t write_int8(int32_t *values, size_t n, int32_t limit, uint8_t *out)
{
    const uint32_t step = find_step(values, n, NULL, limit);
    store32(out, step);
    for (size_t i = 0; i < n; i++) {
        const int32_t code = with_sign(code_for(clip(values[i], limit), step, limit), values[i]);
        out[4 + i] = (uint8_t)(int8_t)code;
        values[i] -= code * (int32_t)step;
    }
    return 4 + n;
}

/* The bits below the eight leading ones, rounded off: to the nearest, ties to even. Where rounding up would
 * go beyond the job's bound it is down. */
static uint32_t round_bf16(uint32_t size, int32_t limit)
{
    uint32_t drop = 0;
    while (size >> drop >= 1u << SIGNIFICAND_BITS) {
        drop++;
    }
    if (drop == 0) {
        return size;
    }
    const uint32_t down = size >> drop << drop, rest = size - down, half = 1u << (drop - 1);
    const bool up = rest > half || (rest == half && (size >> drop & 1));
    const uint64_t rounded = (uint64_t)down + (up ? (uint64_t)1 << drop : 0);
    return rounded > (uint32_t)limit ? down : (uint32_t)rounded;
}

static size_t write_bf16(int32_t *values, size_t n, int32_t limit, uint8_t *out)
{
    for (size_t i = 0; i < n; i++) {
        const uint32_t size = round_bf16(clip(values[i], limit), limit);
        uint32_t bits = 0, power = 0;
        if (size > 0) {
            while (size >> power > 1) {
                power++;
            }
            const uint32_t whole = power >= 7 ? size >> (power - 7) : size << (7 - power);
            bits = (values[i] < 0 ? 1u << 15 : 0) | (BIAS + power) << 7 | (whole & 127);
        }
        out[2 * i] = (uint8_t)bits;
        out[2 * i + 1] = (uint8_t)(bits >> 8);
        values[i] -= with_sign(size, values[i]);
    }
    return 2 * n;
}

/* A gap is the number of values that are passed over. Seven bits a byte, as in LEB128; two bytes reach
 * further than a block is long. */
static size_t put_gap(uint8_t *out, size_t gap)
{
    if (gap < 128) {
        out[0] = (uint8_t)gap;
        return 1;
    }
    out[0] = (uint8_t)(gap | 128);
    out[1] = (uint8_t)(gap >> 7);
    return 2;
}

static void take(struct kedge_compact_plan *plan, const int32_t *values, size_t n, bool *taken)
{
    for (size_t i = 0; i < n; i++) {
        const uint32_t size = size_of(values[i]);
        const bool tie = size == plan->least && plan->ties > 0;
        plan->ties -= tie;
        taken[i] = size > plan->least || tie;
    }
}

static size_t write_sparse(struct kedge_compact_plan *plan, int32_t *values, size_t n, int32_t limit,
                           uint8_t *out)
{
    bool taken[KEDGE_COMPACT_BLOCK];
    const bool coded = plan->kind == KEDGE_COMPACT_TOPK_INT8;
    take(plan, values, n, taken);
    const uint32_t step = coded ? find_step(values, n, taken, limit) : 1;
    const size_t first = coded ? 6 : 2;
    size_t at = first, next = 0;
    store32(out + 2, step); /* written over where there is none */
    for (size_t i = 0; i < n; i++) {
        const uint32_t size = taken[i] ? clip(values[i], limit) : 0;
        const int32_t code = with_sign(coded ? code_for(size, step, limit) : size, values[i]);
        if (code == 0) {
            continue;
        }
        at += put_gap(out + at, i - next);
        next = i + 1;
        if (coded) {
            out[at++] = (uint8_t)(int8_t)code;
        } else {
            store32(out + at, (uint32_t)code);
            at += 4;
        }
        values[i] -= code * (int32_t)step;
    }
    at = at == first ? 2 : at;
    out[0] = (uint8_t)(at - 2);
    out[1] = (uint8_t)((at - 2) >> 8);
    return at;
}

size_t kedge_compact_block_write(struct kedge_compact_plan *plan, int32_t *values, size_t n, int32_t limit,
                                 uint8_t *out)
{
    KEDGE_ASSERT(n >= 1 && n <= KEDGE_COMPACT_BLOCK && limit >= 1);
    if (kedge_compact_is_sparse(plan->kind)) {
        return write_sparse(plan, values, n, limit, out);
    }
    return plan->kind == KEDGE_COMPACT_BF16 ? write_bf16(values, n, limit, out)
                                            : write_int8(values, n, limit, out);
}
