/* Internal to strategy/: real shares of updates as whole numbers. */
#ifndef KEDGE_STRATEGY_WEIGH_H
#define KEDGE_STRATEGY_WEIGH_H

#include <stdbool.h>

#include "strategy/strategy.h"

#define KEDGEI_DIVISOR_MAX (UINT64_C(1) << 44)

/* 1 … 65,536 inputs, their samples and steps in range. */
bool kedgei_inputs_ok(const struct kedge_strategy_input *inputs, size_t n);

/* share[k] ≥ 0: what update k counts in Σ share · update; they need not add up to 1. Largest weight about
 * KEDGE_WEIGHT_ONE, least 1; divisor at most KEDGEI_DIVISOR_MAX. KEDGE_E_ARG: a share is negative, not finite
 * or above KEDGE_WEIGHT_ONE, or all are 0; nothing is written then. */
KEDGE_NODISCARD int kedgei_weigh_reals(const double *share, size_t n, uint64_t *weight,
                                       uint64_t *ret_divisor);

#endif
