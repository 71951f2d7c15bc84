/* Clustered federated learning (CFL) in jobs: whether a group whose round's updates pull apart is cut in two,
 * and how (grouping/split.h; docs/record.md, "Groups that part"). Coordinator, auditor and simulator share
 * it. */
#ifndef KEDGE_ROUND_SPLIT_H
#define KEDGE_ROUND_SPLIT_H

#include "round/compute.h"

/* The closes of these rounds may cut groups (option "split_after"); a job has room for
 * kedge_job_spec_groups_most. */
bool kedge_compute_split_is_open(const struct kedge_job_spec *spec, uint32_t round);
/* files: the updates of one group's aggregate, count of them, in site order. *ret_cut: the group is cut,
 * part[i] is 0 or 1 and both occur; else every part[i] is 0. The first KEDGE_GRAM_VECTORS_MAX decide; each of
 * the others goes with the part whose mean update has the larger cosine to its own, with part 0 where they
 * are alike or it is zero. Errors of the files; KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedge_compute_split(const struct kedge_layout *layout, const struct kedge_job_spec *spec,
                                        const struct kedge_blob_at *files, size_t count, uint32_t *part,
                                        bool *ret_cut, struct kedge_diag *reterr);

#endif
