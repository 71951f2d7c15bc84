/* The arithmetic of a site's control variate (SCAFFOLD), which is whole numbers in units of 2^-scale. Pure.
 */
#ifndef KEDGE_CLIENT_DAEMON_UPDATE_VARIATE_H
#define KEDGE_CLIENT_DAEMON_UPDATE_VARIATE_H

#include "job/job_spec.h"

/* What each step's gradient is freed from: own − server, n values. server NULL: zeros. */
void kedge_variate_drift(const struct kedge_job_spec *spec, const int32_t *own, const float *server, size_t n,
                         float *ret);

/* The change of n values that training from base to out in `steps` steps gives (option II of the paper):
 * (base − out) / (steps · lr) − server, into q; `own` has it added. KEDGE_E_BOUND: beyond the job's bound;
 * KEDGE_E_NOT_FINITE; KEDGE_E_NOMEM. *ret_bad: the value. steps ≥ 1. */
KEDGE_NODISCARD int kedge_variate_change(const struct kedge_job_spec *spec, const float *server,
                                         const float *base, const float *out, uint64_t steps, size_t n,
                                         int32_t *own, int32_t *q, size_t *ret_bad);

#endif
