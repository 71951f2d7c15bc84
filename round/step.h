/* The server's step: from a group's model and its aggregate to the model after, with the optimiser's state as
 * a file of its own (strategy/server.h). */
#ifndef KEDGE_ROUND_STEP_H
#define KEDGE_ROUND_STEP_H

#include "round/compute.h"
#include "strategy/server.h"

/* KEDGE_OK when the file is a canonical state of this job, finite. */
KEDGE_NODISCARD int kedge_compute_check_state(const struct kedge_layout *layout, enum kedge_server server,
                                              const char *path, struct kedge_diag *reterr);

/* round: of the job, the first of training is 1. state_before NULL: it begins at zero. `after` gets the
 * model, `state_after` the state. KEDGE_E_NOT_FINITE: a result is not. Only for servers that keep a state;
 * for SCAFFOLD's see control.h. */
KEDGE_NODISCARD int kedge_compute_server(const struct kedge_job_spec *spec, uint32_t round,
                                         const struct kedge_layout *layout,
                                         const struct kedge_blob_at *before,
                                         const struct kedge_blob_at *aggregate,
                                         const struct kedge_blob_at *state_before, struct kedge_sink after,
                                         struct kedge_sink state_after, struct kedge_diag *reterr);

#endif
