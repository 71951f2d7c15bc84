/* Groups made anew while a job trains: new groups from fresh pre-training updates, under the numbers of the
 * groups that they continue, and what their models begin with. Coordinator and auditor share it. */
#ifndef KEDGE_CHAIN_COMPUTE_REGROUP_H
#define KEDGE_CHAIN_COMPUTE_REGROUP_H

#include "chain/compute/compute.h"

/* As kedge_compute_groups, in this round. then[i]: the group that the site of update i is in,
 * KEDGE_GROUP_NONE: none. The n groups are numbered from 0 so that the most sites keep their number
 * (grouping/merge.h); numbers from n on are free afterwards. */
KEDGE_NODISCARD int kedge_compute_regroup(const struct kedge_layout *layout,
                                          const struct kedge_blob_at *updates, size_t count,
                                          const struct kedge_job_spec *spec, uint32_t round,
                                          const uint32_t *then, uint32_t *ret_group, uint32_t *ret_groups,
                                          struct kedge_diag *reterr);

/* The model of a new group: the mean of the former models of its members (strategy/blend.h); then[i] as
 * above, of those update i with group[i] == g counts. former: models of former_count groups; initial: what it
 * begins with when no member was in a group. */
KEDGE_NODISCARD int kedge_compute_regrouped(const struct kedge_layout *layout, const char *const *former,
                                            size_t former_count, const char *initial, const uint32_t *then,
                                            const uint32_t *group, size_t count, uint32_t g,
                                            struct kedge_sink sink, struct kedge_diag *reterr);

#endif
