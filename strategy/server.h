/* The server's optimiser: from a group's model and its aggregate to the model after, element by element in
 * binary64 with + − × ÷ √ only, no contraction; rounded to float once per value. State is kept as floats, a
 * vector of the model's shape each, all zero at first. Reddi et al., Adaptive federated optimization, ICLR
 * 2021; Hsu et al. 2019 (momentum). Pure, any thread. */
#ifndef KEDGE_STRATEGY_SERVER_H
#define KEDGE_STRATEGY_SERVER_H

#include "strategy/strategy.h"

enum { KEDGE_SERVER_STATES_MAX = 2 };

/* State vectors of an optimiser: 0, 1 or 2. */
size_t kedge_server_states(enum kedge_server server);

/* Values first … first + n − 1 are one tile: before is the group's model, aggregate the model that the mean
 * gives (D = aggregate − before), state[k] the k-th state vector's tile (in and out), after the result (may
 * be before or aggregate). KEDGE_E_NOT_FINITE: a result is not finite (outputs then undefined). */
KEDGE_NODISCARD int kedge_server_step(enum kedge_server server, const struct kedge_strategy_options *options,
                                      const float *before, const float *aggregate,
                                      float *const state[KEDGE_SERVER_STATES_MAX], size_t n, float *after);

#endif
