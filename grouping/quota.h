/* One tenant's many sites must not decide the others' groups. The default policy, in three rules:
 *  1. Selection: of the n sites of a cold start each tenant gives as equal a number as its sites allow
 *     (kedge_quota).
 *  2. Clustering: an update counts 1 / (usable updates of its tenant), so that tenants count alike in k-means
 *     (kedge_quota_weights).
 *  3. Directions: a group's direction is the mean of its members' UNIT updates, no tenant with more than a
 * third of the weight (fewer than three tenants in the group: all alike) (kedge_quota_direction,
 * direction.h). What rule 3 holds: with a hostile share s < 1/2 of a direction's weight and h the mean of the
 * others' unit updates, the angle between the direction and h is at most arcsin(s / ((1 − s) · ‖h‖)): a third
 * of the weight turns a coherent group (‖h‖ near 1) by at most 30°, whatever its updates and however many its
 * sites. Whole numbers and binary64 in a fixed order. Pure. */
#ifndef KEDGE_GROUPING_QUOTA_H
#define KEDGE_GROUPING_QUOTA_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

enum { KEDGE_QUOTA_SHARE_MAX = 333333 }; /* default of rule 3, in millionths */

/* take[t] of available[t] sites, want in all where there are as many: the largest level L with Σ
 * min(available, L) ≤ want, and one more each for the first tenants that have more, in order. Rule "by
 * quota". KEDGE_E_ARG: tenants 0. */
KEDGE_NODISCARD int kedge_quota(const uint64_t *available, size_t tenants, uint64_t want, uint64_t *take);

/* weight[i] = 1 / (usable updates of i's tenant); 1 where maxima[i] is 0 (left out anyway). tenant[i] <
 * KEDGE_SHARE_TENANTS_MAX, else KEDGE_E_ARG. For struct kedge_flexcfl_params. */
KEDGE_NODISCARD int kedge_quota_weights(const uint32_t *tenant, const uint32_t *maxima, size_t count,
                                        double *weight);

/* Whole-number weights of one group's members for kedge_direction_unit_tile: each update's weight is its
 * tenant's share, as aggregation/share_cap.h has it of equal weights, over its norm; the largest becomes
 * 2^20, a zero update has 0. square[i]: A_ii of the 12-bit scaled update (gram.h), 0 for a zero one.
 * tenant[i] as above; members of one tenant in the order of their sites' names. share_max:
 * KEDGE_QUOTA_SHARE_MAX, or the job's. KEDGE_E_ARG; KEDGE_E_NO_DIRECTION: all are zero; KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedge_quota_direction(const uint32_t *tenant, const int64_t *square, size_t count,
                                          uint32_t share_max, uint64_t *weight);

#endif
