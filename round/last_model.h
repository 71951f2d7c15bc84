/* The group of a site by its last model (FeSEM): the model that is nearest to what the site made last.
 * Coordinator and auditor share it. */
#ifndef KEDGE_ROUND_LAST_MODEL_H
#define KEDGE_ROUND_LAST_MODEL_H

#include "round/compute.h"

/* The last model: `base` (a model file) and what `update` adds to it, value by value base + q · 2^-scale in
 * binary64, rounded to binary32 once; update NULL: `base` itself. *ret_group is the group of the least
 * Euclidean distance (grouping/closest.h), ties to the lowest number; *ret_similarity is 1 / (1 + distance).
 * Where no distance is finite: group 0, similarity 0. */
KEDGE_NODISCARD int kedge_compute_last_model(
    const struct kedge_job_spec *spec, const struct kedge_layout *layout, const struct kedge_blob_at *base,
    const struct kedge_blob_at *update, const struct kedge_blob_at *models, size_t groups,
    uint32_t *ret_group, double *ret_similarity, struct kedge_diag *reterr);

#endif
