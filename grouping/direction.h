/* A group's direction as a weighted mean of pre-training updates (flexcfl.h has the plain one), and what
 * directions have to do with each other. Pure, no heap, any thread. */
#ifndef KEDGE_GROUPING_DIRECTION_H
#define KEDGE_GROUPING_DIRECTION_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

/* out[i] = round-half-even(Σ weight[k] · members[k][first + i] / Σ weight), exact, i < n. With all weights
 * alike the bits of kedge_direction_tile. weight[k] < 2^31; members of weight 0 are not read. KEDGE_E_ARG:
 * count 0 or above KEDGE_SITES_MAX, a weight is out of range or all are 0; KEDGE_E_OVERFLOW: Σ weight · limit
 * ≥ 2^62, limit being the largest |q| (1 … 2^31 − 1). */
KEDGE_NODISCARD int kedge_direction_weighted_tile(const int32_t *const *members, const uint64_t *weight,
                                                  size_t count, int32_t limit, size_t first, size_t n,
                                                  int32_t *out);

#endif
