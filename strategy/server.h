/* The server's optimiser: from a group's model and its aggregate to the model after, element by element in
 * binary64 with + − × ÷ √ only, no contraction; rounded to float once per value. State is kept as floats, a
 * vector of the model's shape each, all zero at first; every group has its own. Reddi et al., Adaptive
 * federated optimization, ICLR 2021 (no correction of Adam's bias); Hsu et al. 2019 (momentum); Karimireddy
 * et al., SCAFFOLD, ICML 2020. Pure, any thread. */
#ifndef KEDGE_STRATEGY_SERVER_H
#define KEDGE_STRATEGY_SERVER_H

#include "strategy/strategy.h"

enum { KEDGE_SERVER_STATES_MAX = 2 };

/* State vectors of an optimiser: 0, 1 or 2. SCAFFOLD's one is the control variate c: kedge_server_step does
 * not touch it, kedge_server_control_tile does. */
size_t kedge_server_states(enum kedge_server server);

/* The options as they hold in a round of a job, counted from 1: where `settle` is above 0 the server's step
 * shrinks, server_lr · settle / (settle + round). Steps of one over the round are what makes a mean of all
 * that was seen (Robbins, Monro 1951), while the first ones are still long. */
struct kedge_strategy_options kedge_server_options(const struct kedge_strategy_options *options,
                                                   uint32_t round);

/* n values of one tile: before is the group's model, aggregate the model that the mean gives (D = aggregate −
 * before), state[k] the k-th state vector's tile (in and out; NULL where there are fewer), after the result
 * (may be before or aggregate). With D, m, v in the order of the states:
 *   MOMENTUM  m ← momentum · m + D;                    x ← x + server_lr · m
 *   ADAGRAD   m ← momentum · m + (1 − momentum) · D;   v ← v + D²;  x ← x + server_lr · m / (√v + adaptivity)
 *   YOGI      … v ← v − (1 − second_moment) · D² · sign(v − D²)
 *   ADAM      … v ← second_moment · v + (1 − second_moment) · D²
 *   CONTROL   x ← x + server_lr · D
 * NONE, and CONTROL with server_lr 1, give the aggregate bit for bit. KEDGE_E_NOT_FINITE: a result or a state
 * is not finite (outputs then undefined). */
KEDGE_NODISCARD int kedge_server_step(enum kedge_server server, const struct kedge_strategy_options *options,
                                      const float *before, const float *aggregate,
                                      float *const state[KEDGE_SERVER_STATES_MAX], size_t n, float *after);

/* SCAFFOLD's server control variate: c ← c + Σ change / (sites · 2^scale), coordinates first … first + n − 1
 * of count changes c_k' − c_k that came with the updates of the round (fixed point as an update). sites: all
 * of the job, not those of the round. control points at coordinate 0, out takes n floats and may be control +
 * first. KEDGE_E_ARG: sites 0 or below count; KEDGE_E_NOT_FINITE; KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedge_server_control_tile(const float *control, const int32_t *const *changes,
                                              size_t count, uint64_t sites, unsigned scale_bits, size_t first,
                                              size_t n, float *out);

#endif
