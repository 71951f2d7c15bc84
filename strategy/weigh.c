#include "strategy/strategy.h"

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
        weight[i] = inputs[i].samples;
        sum += weight[i];
    }
    if (sum == 0) {
        return KEDGE_E_ARG;
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
    for (size_t i = 0; i < n; i++) {
        weight[i] = 1;
    }
    if (n == 0) {
        return KEDGE_E_ARG;
    }
    *ret_divisor = n;
    return KEDGE_OK;
}
