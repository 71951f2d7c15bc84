/* When groups are cut in two or become one, by their directions and their sites' pre-training updates.
 * Coordinator and auditor share it. */
#ifndef KEDGE_ROUND_RESHAPE_H
#define KEDGE_ROUND_RESHAPE_H

#include "round/compute.h"

enum {
    KEDGE_SPLIT_LEAST = 2,      /* updates in each part of a group that is cut */
    KEDGE_MERGE_UNIT = 1 << 20, /* what a site weighs before a cap, so that the cap divides finely */
};

/* into[g]: the lowest of the groups that g becomes one with (option "merge"; grouping/merge.h), g itself
 * where it stays. Groups whose direction has no path have been merged before, and stay. *ret_any: some do
 * not.
 */
KEDGE_NODISCARD int kedge_compute_merges(const struct kedge_layout *layout, const struct kedge_job_spec *spec,
                                         const struct kedge_blob_at *directions, size_t groups,
                                         uint32_t *into, bool *ret_any, struct kedge_diag *reterr);
/* What the models of the groups that become g weigh in its model (kedge_compute_blend): ret_weight has an
 * item for each group, 0 for those that do not. tenant[i], group[i] of all sites that have a group: their
 * tenant's place, the group that they were in. A group weighs as much as it has sites; where the job caps a
 * tenant's share, the sites of a tenant in a group are one input of kedge_share_cap, KEDGE_MERGE_UNIT for
 * each of them, in the order of (tenant, group). Where none has sites they count alike. KEDGE_E_ARG,
 * KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedge_compute_merge_weights(const struct kedge_job_spec *spec, const uint32_t *tenant,
                                                const uint32_t *group, size_t count, const uint32_t *into,
                                                size_t groups, uint32_t g, uint64_t *ret_weight);
/* Whether a group of these updates is to be cut (option "silhouette"; grouping/split.h), and how: part[i] is
 * 0 or 1.
 */
KEDGE_NODISCARD int kedge_compute_cut(const struct kedge_layout *layout, const struct kedge_job_spec *spec,
                                      const struct kedge_compute_sites *sites, uint32_t *part, bool *ret_cut,
                                      struct kedge_diag *reterr);

/* How a group of these updates falls into two halves (grouping/halves.h): part[i] is 0 or 1, 0 for
 * updates of zeros. *ret_cut: it does, and each has KEDGE_SPLIT_LEAST updates that are not zero. */
KEDGE_NODISCARD int kedge_compute_halves(const struct kedge_layout *layout, const struct kedge_job_spec *spec,
                                         const struct kedge_compute_sites *sites, uint32_t *part,
                                         bool *ret_cut, struct kedge_diag *reterr);

#endif
