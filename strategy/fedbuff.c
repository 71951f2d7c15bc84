/* FedBuff (Nguyen et al., AISTATS 2022): the mean of n buffered updates, each taken at 1 / √(1 + staleness).
 * The sum is divided by n, not by what the factors add up to: a buffer of old updates moves the model less.
 */
#include <math.h>

#include "common/base/mem.h"
#include "common/base/try.h"
#include "strategy/weigh.h"

int kedge_weigh_fedbuff(const struct kedge_strategy_options *options,
                        const struct kedge_strategy_input *inputs, size_t n, double lr, uint64_t *weight,
                        uint64_t *ret_divisor)
{
    (void)options;
    (void)lr;
    if (!kedgei_inputs_ok(inputs, n)) {
        return KEDGE_E_ARG;
    }
    double *share KEDGE_CLEANUP(kedge_mem_release) = kedge_mem_new(n, sizeof *share);
    KEDGE_TRY_MEM(share);
    for (size_t i = 0; i < n; i++) {
        share[i] = (1 / sqrt(1 + (double)inputs[i].staleness)) / (double)n;
    }
    return kedgei_weigh_reals(share, n, weight, ret_divisor);
}
