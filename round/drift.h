/* How far the directions of groups have moved. Coordinator and auditor share it. */
#ifndef KEDGE_ROUND_DRIFT_H
#define KEDGE_ROUND_DRIFT_H

#include "round/compute.h"

enum { KEDGE_DRIFT_LARGEST = 1000000 };

/* kedge_group_drift of `groups` directions: made[], with which the groups were made, and now[] (I32 files;
 * the same path where it did not move). At most KEDGE_DRIFT_LARGEST, also where directions that were all
 * alike have moved. */
KEDGE_NODISCARD int kedge_compute_drift(const struct kedge_layout *layout, const struct kedge_blob_at *made,
                                        const struct kedge_blob_at *now, size_t groups, double *ret_drift,
                                        struct kedge_diag *reterr);

#endif
