/* From groups to other groups: merging those whose directions nearly coincide, and giving the clusters of a
 * new clustering the numbers of the groups that they continue. Pure. */
#ifndef KEDGE_GROUPING_MERGE_H
#define KEDGE_GROUPING_MERGE_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/base/limits.h"

/* Groups all of whose directions have cosines above threshold to each other become one, the nearest first
 * (complete linkage). cosine: groups × groups. into[j]: the lowest of the groups that j is merged with, j
 * itself where it stays; so numbers of groups are never used again for other members. *ret_groups: how many
 * remain. KEDGE_E_ARG: groups 0 or above KEDGE_GROUPS_MAX; KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedge_merge(const double *cosine, size_t groups, double threshold, uint32_t *into,
                                size_t *ret_groups);

/* slot[c] of cluster c: distinct numbers below slots, such that the most sites keep theirs; of equal choices
 * the lexicographically least slot[]. then[i], now[i]: group and cluster of site i, or KEDGE_GROUP_NONE;
 * clusters ≤ slots ≤ KEDGE_GROUPS_MAX. *ret_kept (may be NULL): sites that keep theirs. KEDGE_E_ARG. */
KEDGE_NODISCARD int kedge_match(const uint32_t *then, const uint32_t *now, size_t sites, size_t clusters,
                                size_t slots, uint32_t *slot, size_t *ret_kept);

#endif
