/* A group's direction from unit updates, weighted: what flexcfl.h's plain mean is where sizes of updates and
 * numbers of a tenant's sites must not matter. Only its cosines mean anything. Pure, no heap, any thread. */
#ifndef KEDGE_GROUPING_DIRECTION_H
#define KEDGE_GROUPING_DIRECTION_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

/* With x_k = member k scaled to 12 bits by its own largest magnitude (kedge_scale12), whose norms are at most
 * √d apart whatever a member sends: out[i] = round-half-even(2^12 · Σ weight[k] · x_k[first + i] / Σ weight),
 * exact, i < n. maxima[k]: largest |value| of the WHOLE member (kedge_max_abs). weight:
 * kedge_quota_direction, at most 2^20 each; members of weight 0 are not read. KEDGE_E_ARG: count 0 or above
 * KEDGE_SITES_MAX, a weight out of range or all 0, a member with a weight whose maximum is 0. */
KEDGE_NODISCARD int kedge_direction_unit_tile(const int32_t *const *members, const uint32_t *maxima,
                                              const uint64_t *weight, size_t count, size_t first, size_t n,
                                              int32_t *out);

#endif
