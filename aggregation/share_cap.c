/* The level L is the largest whole number with 10^6 · L ≤ share_max · Σ min(W, L) over the tenants' sums W.
 * Both sides are 0 at L = 0 and the right one is concave in L, so that all smaller levels fulfil it too, and
 * halving finds it. Tenants above it are brought to it exactly. */
#include "aggregation/share_cap.h"

struct tenants {
    uint64_t sum[KEDGE_SHARE_TENANTS_MAX];
    uint64_t inputs[KEDGE_SHARE_TENANTS_MAX];
    uint64_t least, most; /* of the sums that are not 0 */
};

/* The sum of weights is bounded here, once; all products below fit 64 bits because of it. */
static int add_up(const struct kedge_share_input *inputs, size_t count, struct tenants *t)
{
    uint64_t total = 0;
    if (count > KEDGE_SHARE_INPUTS_MAX) {
        return KEDGE_E_OVERFLOW;
    }
    for (size_t i = 0; i < count; i++) {
        uint32_t at = inputs[i].tenant;
        if (at >= KEDGE_SHARE_TENANTS_MAX || inputs[i].weight == 0) {
            return KEDGE_E_ARG;
        }
        if (inputs[i].weight > KEDGE_SHARE_WEIGHT_MAX - total) {
            return KEDGE_E_OVERFLOW;
        }
        total += inputs[i].weight;
        t->sum[at] += inputs[i].weight;
        t->inputs[at]++;
    }
    t->least = total;
    for (uint32_t at = 0; at < KEDGE_SHARE_TENANTS_MAX; at++) {
        if (t->inputs[at] > 0) {
            t->least = t->sum[at] < t->least ? t->sum[at] : t->least;
            t->most = t->sum[at] > t->most ? t->sum[at] : t->most;
        }
    }
    return KEDGE_OK;
}

/* Both products stay below 2^63: 10^6 < 2^20, and sums are at most 2^43. */
static bool is_within(const struct tenants *t, uint64_t level, uint32_t share_max)
{
    uint64_t total = 0;
    for (uint32_t at = 0; at < KEDGE_SHARE_TENANTS_MAX; at++) {
        total += t->sum[at] < level ? t->sum[at] : level;
    }
    return (uint64_t)KEDGE_SHARE_ONE * level <= (uint64_t)share_max * total;
}

/* The least sum, equal shares, is within when there are tenants enough; when there are not, nothing above it
 * is within either, and it is what remains. */
static uint64_t find_level(const struct tenants *t, uint32_t share_max)
{
    uint64_t low = t->least, high = t->most;
    while (low < high) {
        uint64_t middle = high - (high - low) / 2;
        if (is_within(t, middle, share_max)) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    return low;
}

/* The smallest factor of all weights with which every input of a tenant at the level can count 1 or more. */
static uint64_t find_factor(const struct tenants *t, uint64_t level)
{
    uint64_t factor = 1;
    for (uint32_t at = 0; at < KEDGE_SHARE_TENANTS_MAX; at++) {
        if (t->sum[at] > level) {
            uint64_t need = (t->inputs[at] + level - 1) / level;
            factor = need > factor ? need : factor;
        }
    }
    return factor;
}

/* floor(a · b / d) for a ≤ d < 2^62, whose product may not fit 64 bits: long division, bit by bit. */
static uint64_t multiply_divide(uint64_t a, uint64_t b, uint64_t d)
{
    uint64_t quotient = 0, rest = 0;
    for (int bit = 63; bit >= 0; bit--) {
        rest = 2 * rest + ((b >> bit & 1) ? a : 0); /* below 3 · d */
        quotient *= 2;
        for (int i = 0; i < 2 && rest >= d; i++) {
            rest -= d;
            quotient++;
        }
    }
    return quotient;
}

/* Each input counts 1; what the level leaves beyond that is shared by what the inputs had beyond it. Running
 * sums are rounded, not the shares, so that they add up to the level. */
static void spread(struct kedge_share_input *inputs, size_t count, uint32_t at, const struct tenants *t,
                   uint64_t level, uint64_t factor)
{
    uint64_t all = factor * t->sum[at] - t->inputs[at], room = factor * level - t->inputs[at];
    uint64_t had = 0, given = 0;
    for (size_t i = 0; i < count; i++) {
        if (inputs[i].tenant != at) {
            continue;
        }
        had += factor * inputs[i].weight - 1;
        uint64_t upto = multiply_divide(had, room, all);
        inputs[i].weight = 1 + (upto - given);
        given = upto;
    }
}

/* Weights of tenants below the level are only multiplied by the common factor, so what they stand to each
 * other is exact; rounding falls on the inputs of a tenant above it alone. */
int kedge_share_cap(struct kedge_share_input *inputs, size_t count, uint32_t share_max)
{
    struct tenants t = {.most = 0};
    if (share_max < 1 || share_max > KEDGE_SHARE_ONE) {
        return KEDGE_E_ARG;
    }
    int err = add_up(inputs, count, &t);
    if (err || count == 0) {
        return err;
    }
    uint64_t level = find_level(&t, share_max), factor = find_factor(&t, level);
    for (size_t i = 0; i < count; i++) {
        if (t.sum[inputs[i].tenant] <= level) {
            inputs[i].weight *= factor;
        }
    }
    for (uint32_t at = 0; at < KEDGE_SHARE_TENANTS_MAX; at++) {
        if (t.sum[at] > level) {
            spread(inputs, count, at, &t, level, factor);
        }
    }
    return KEDGE_OK;
}
