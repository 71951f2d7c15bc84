/* What several strategies share: weights that are whole numbers of themselves, the turning of real ones into
 * whole numbers, and the cap on a tenant's share. */
#include "strategy/weigh.h"

#include <math.h>

#include "aggregation/share_cap.h"
#include "common/base/mem.h"
#include "common/base/try.h"

bool kedgei_inputs_ok(const struct kedge_strategy_input *inputs, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (inputs[i].samples < 1 || inputs[i].samples > INT32_MAX || inputs[i].steps < 1
            || inputs[i].steps > INT32_MAX || !(inputs[i].rate >= 0) || !isfinite(inputs[i].rate)) {
            return false;
        }
    }
    return n > 0 && n <= KEDGE_SHARE_INPUTS_MAX;
}

int kedge_weigh_samples(const struct kedge_strategy_options *options,
                        const struct kedge_strategy_input *inputs, size_t n, double lr, uint64_t *weight,
                        uint64_t *ret_divisor)
{
    (void)options;
    (void)lr;
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        if (inputs[i].samples < 1 || inputs[i].samples > INT32_MAX) {
            return KEDGE_E_ARG;
        }
        sum += inputs[i].samples;
    }
    if (sum == 0 || n > KEDGE_SHARE_INPUTS_MAX) {
        return KEDGE_E_ARG;
    }
    for (size_t i = 0; i < n; i++) {
        weight[i] = inputs[i].samples;
    }
    *ret_divisor = sum;
    return KEDGE_OK;
}

int kedge_weigh_equal(const struct kedge_strategy_options *options, const struct kedge_strategy_input *inputs,
                      size_t n, double lr, uint64_t *weight, uint64_t *ret_divisor)
{
    (void)options;
    (void)lr;
    (void)inputs;
    if (n == 0 || n > KEDGE_SHARE_INPUTS_MAX) {
        return KEDGE_E_ARG;
    }
    for (size_t i = 0; i < n; i++) {
        weight[i] = 1;
    }
    *ret_divisor = n;
    return KEDGE_OK;
}

/* A fault of the released FlexCFL code, kept so that its published figures can be made again (strategy
 * "…-as-released"). */
int kedge_weigh_first(const struct kedge_strategy_options *options, const struct kedge_strategy_input *inputs,
                      size_t n, double lr, uint64_t *weight, uint64_t *ret_divisor)
{
    uint64_t all;
    KEDGE_TRY(kedge_weigh_equal(options, inputs, n, lr, weight, &all));
    for (size_t i = 1; i < n; i++) {
        weight[i] = 0;
    }
    *ret_divisor = 1;
    return KEDGE_OK;
}

/* Shares become whole weights over one divisor, because sums of updates are exact integers. The divisor is
 * as large as lets the largest share stay within 2^20, so that small shares keep as many digits as there is
 * room for. It is rounded first and the weights are made for it, so that its rounding does not bend them. */
int kedgei_weigh_reals(const double *share, size_t n, uint64_t *weight, uint64_t *ret_divisor)
{
    double most = 0;
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(share[i]) || share[i] < 0) {
            return KEDGE_E_ARG;
        }
        most = share[i] > most ? share[i] : most;
    }
    if (most <= 0) {
        return KEDGE_E_ARG;
    }
    const double one = KEDGE_WEIGHT_ONE, limit = (double)KEDGEI_DIVISOR_MAX;
    double divisor = one / most; /* may be infinite */
    divisor = divisor > limit ? limit : divisor < 1 ? 1 : (double)(uint64_t)divisor;
    if (most * divisor > one) { /* most above 2^20: no divisor does it justice */
        return KEDGE_E_ARG;
    }
    for (size_t i = 0; i < n; i++) {
        uint64_t w = (uint64_t)(share[i] * divisor + 0.5);
        weight[i] = w > 0 ? w : 1; /* what was accepted counts */
    }
    *ret_divisor = (uint64_t)divisor;
    return KEDGE_OK;
}

/* floor(a · b / c) for a, b < 2^44 and c ≥ 1 where the quotient fits: long division, bit by bit. */
static uint64_t multiply_divide(uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t quotient = 0, rest = 0;
    for (int bit = 63; bit >= 0; bit--) {
        rest = 2 * rest + ((b >> bit & 1) ? a : 0);
        quotient = 2 * quotient + rest / c;
        rest %= c;
    }
    return quotient;
}

/* The cap changes what weights stand to each other, and by a common factor how large they are. The divisor
 * follows by the ratio of the sums, so that the step stays as long as it was: for FedNova and FedBuff the
 * sum of weights over the divisor is not 1, and means something. */
int kedge_strategy_cap(uint64_t *weight, const uint32_t *tenant, size_t n, uint32_t share_max,
                       uint64_t *divisor)
{
    if (n == 0 || n > KEDGE_SHARE_INPUTS_MAX || *divisor < 1 || *divisor > KEDGEI_DIVISOR_MAX) {
        return KEDGE_E_ARG;
    }
    struct kedge_share_input *inputs KEDGE_CLEANUP(kedge_mem_release) = kedge_mem_new(n, sizeof *inputs);
    KEDGE_TRY_MEM(inputs);
    uint64_t before = 0, after = 0;
    for (size_t i = 0; i < n; i++) {
        inputs[i] = (struct kedge_share_input){.tenant = tenant[i], .weight = weight[i]};
        before += weight[i]; /* below 2^43 where the cap takes them */
    }
    KEDGE_TRY(kedge_share_cap(inputs, n, share_max));
    for (size_t i = 0; i < n; i++) {
        after += inputs[i].weight;
    }
    if (after > KEDGEI_DIVISOR_MAX) {
        return KEDGE_E_OVERFLOW;
    }
    uint64_t scaled = before == *divisor ? after : multiply_divide(*divisor, after, before);
    *divisor = scaled > 0 ? scaled : 1;
    for (size_t i = 0; i < n; i++) {
        weight[i] = inputs[i].weight;
    }
    return KEDGE_OK;
}
