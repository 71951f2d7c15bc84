/* What a job's spec says to the coordinator's core. */
#ifndef KEDGE_ROUND_CLOSE_PARAMS_H
#define KEDGE_ROUND_CLOSE_PARAMS_H

#include "coordinator/core/coord.h"
#include "job/job_spec.h"

/* tenants: handles of the spec's tenants, in its order. All of *ret is set. */
void kedge_close_params(const struct kedge_job_spec *spec, const uint32_t *tenants,
                        struct kedge_coord_job_params *ret);

#endif
