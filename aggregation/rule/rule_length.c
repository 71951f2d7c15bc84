/* Rules that go by an update's length: what is too long is shortened. Weights are rounded down and divisors
 * up, so that rounding lengthens nothing. */
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "aggregation/rule/rule_impl.h"
#include "common/base/mem.h"
#include "common/base/try.h"

/* ---- norm clipping ---- */

/* The longest length that stays, in units of the values. */
static double find_bound(const struct kedge_rule_params *params, const struct kedge_rule_inputs *inputs,
                         double *length, uint16_t *order)
{
    for (size_t i = 0; i < inputs->count; i++) {
        length[i] = sqrt(inputs->norm_sq[i]);
    }
    return params->bound > 0 ? params->bound * (double)(UINT64_C(1) << inputs->scale_bits)
                             : kedgei_rule_median(length, inputs->weight, inputs->count, order);
}

/* As fine as a vote of each update is; coarser where a strategy whose shares add up to more than 1 (FedNova)
 * would take the weights' sum, times any update, out of 62 bits. At 1 they are the strategy's own, or less.
 */
static int find_divisor(const struct kedge_rule_inputs *inputs, uint64_t *ret_divisor)
{
    uint64_t divisor = (uint64_t)inputs->count * KEDGE_RULE_VOTE, sum = UINT64_MAX;
    for (uint64_t next = divisor; sum > INT32_MAX && next > 0; next /= 2) {
        divisor = next;
        sum = 0;
        for (size_t i = 0; i < inputs->count; i++) {
            sum += inputs->weight[i] * divisor / inputs->divisor; /* each below 2^31 · 2^29 */
        }
    }
    *ret_divisor = divisor;
    return sum > INT32_MAX ? KEDGE_E_OVERFLOW : KEDGE_OK;
}

/* Where nothing is too long the weights stay the strategy's own, so that a job without long updates has the
 * mean's bits. */
int kedgei_rule_clip(const struct kedge_rule_params *params, const struct kedge_rule_inputs *inputs,
                     uint64_t *weight, uint64_t *ret_divisor)
{
    double length[KEDGE_RULE_VECTORS_MAX];
    uint16_t order[KEDGE_RULE_VECTORS_MAX];
    uint64_t shortened[KEDGE_RULE_VECTORS_MAX];
    const size_t n = inputs->count;
    const double bound = find_bound(params, inputs, length, order);
    uint64_t divisor;
    bool clips = false;
    KEDGE_TRY(find_divisor(inputs, &divisor));
    for (size_t i = 0; i < n; i++) {
        const uint64_t whole = inputs->weight[i] * divisor / inputs->divisor; /* below 2^31 · 2^29 */
        const bool is_long = length[i] > bound;
        shortened[i] = is_long ? (uint64_t)((double)whole * (bound / length[i])) : whole;
        clips = clips || is_long;
    }
    memcpy(weight, clips ? shortened : inputs->weight, n * sizeof *weight);
    *ret_divisor = clips ? divisor : inputs->divisor;
    return KEDGE_OK;
}

/* ---- trust from root data ---- */

static const double stretch_max =
    256; /* an update far shorter than the root's is not drawn out to its length */

/* What an update counts (its cosine to the root update, if that is positive) and how much it is stretched.
 * Lengths are exact; the inner product is what 12 bits show of it. */
static double find_trust(const struct kedge_rule_inputs *inputs, const double *product, size_t i,
                         double *ret_stretch)
{
    const size_t root = inputs->count;
    const double own = sqrt(inputs->norm_sq[i]);
    const double roots = sqrt(inputs->norm_sq[root]);
    const double inner = product[i * (root + 1) + root];
    *ret_stretch = 0;
    if (!(own > 0 && roots > 0 && inner > 0)) {
        return 0;
    }
    const double cosine = inner / own / roots;
    const double stretch = roots / own;
    *ret_stretch = stretch < stretch_max ? stretch : stretch_max;
    return cosine < 1 ? cosine : 1;
}

static uint64_t round_up(double x)
{
    const uint64_t whole = (uint64_t)x;
    return whole + ((double)whole < x ? 1 : 0);
}

/* Weights in units of 2^-20 / 2^shift votes; false when Σ weight · maxima could pass 2^62, for an update
 * far shorter than the root's is stretched. The caller then halves all of them together (shift), which
 * changes no share. */
static bool weigh_trust(const double *product, const struct kedge_rule_inputs *inputs, int shift,
                        uint64_t *weight, uint64_t *ret_divisor)
{
    const double unit = 1.0 / (double)(UINT64_C(1) << shift);
    double sum = 0;
    *ret_divisor = 0;
    for (size_t i = 0; i < inputs->count; i++) {
        double stretch;
        const double trust = find_trust(inputs, product, i, &stretch);
        const double counts = (double)inputs->weight[i] * unit * trust;
        weight[i] = (uint64_t)(counts * stretch);
        *ret_divisor += round_up(counts);
        sum += (double)weight[i] * (double)inputs->maxima[i];
    }
    return sum < 0x1p61; /* the sum itself is rounded */
}

int kedgei_rule_root(const struct kedge_rule_params *params, const struct kedge_rule_inputs *inputs,
                     uint64_t *weight, uint64_t *ret_divisor)
{
    (void)params;
    const size_t all = inputs->count + 1;
    double *product = kedge_mem_new(all * all, sizeof *product);
    KEDGE_TRY_MEM(product);
    uint64_t divisor = 0;
    kedgei_rule_products(inputs, all, product);
    for (int shift = 0; !weigh_trust(product, inputs, shift, weight, &divisor); shift++) {
        KEDGE_ASSERT(shift < 60); /* all weights are 0 by then */
    }
    kedge_mem_free(product);
    *ret_divisor = divisor > 0 ? divisor : 1; /* nobody is trusted: weights are 0, the model stays */
    return KEDGE_OK;
}
