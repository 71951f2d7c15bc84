/* SCAFFOLD in a job (strategy/scaffold.c): updates that carry the change of their site's control variate
 * behind the change of the model, and the server's step with its own, c. Coordinator and auditor share it. */
#ifndef KEDGE_ROUND_CONTROL_H
#define KEDGE_ROUND_CONTROL_H

#include "round/aggregate.h"

/* The step of a "scaffold" job: `after` gets the model, before + server_lr · (aggregate − before), and
 * `state_after` c, a file of kedge_job_spec_control_layout: c + Σ changes / control_sites over all count
 * inputs of the aggregate, whatever they weigh there, in any order. state NULL: c begins at zero.
 * KEDGE_E_NOT_FINITE; errors of files. */
KEDGE_NODISCARD int kedge_compute_control_step(
    const struct kedge_job_spec *spec, const struct kedge_layout *layout, const struct kedge_blob_at *before,
    const struct kedge_blob_at *aggregate, const struct kedge_blob_at *state,
    const struct kedge_compute_input *inputs, size_t count, struct kedge_sink after,
    struct kedge_sink state_after, struct kedge_diag *reterr);

#endif
