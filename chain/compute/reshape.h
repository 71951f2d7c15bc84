/* When groups are cut in two or become one, by their directions and their sites' pre-training updates.
 * Coordinator and auditor share it. */
#ifndef KEDGE_CHAIN_COMPUTE_RESHAPE_H
#define KEDGE_CHAIN_COMPUTE_RESHAPE_H

#include "chain/compute/compute.h"

enum { KEDGE_SPLIT_LEAST = 2 }; /* updates in each part of a group that is cut */

/* into[g]: the lowest of the groups that g becomes one with (option "merge"; grouping/merge.h), g itself
 * where it stays. Groups with a direction of NULL have been merged before, and stay. *ret_any: some do not.
 */
KEDGE_NODISCARD int kedge_compute_merges(const struct kedge_layout *layout, const struct kedge_job_spec *spec,
                                         const char *const *directions, size_t groups, uint32_t *into,
                                         bool *ret_any, struct kedge_diag *reterr);
/* Whether a group of these updates is to be cut (option "silhouette"; grouping/split.h), and how: part[i] is
 * 0 or 1.
 */
KEDGE_NODISCARD int kedge_compute_cut(const struct kedge_layout *layout, const struct kedge_job_spec *spec,
                                      const struct kedge_compute_sites *sites, uint32_t *part, bool *ret_cut,
                                      struct kedge_diag *reterr);

#endif
