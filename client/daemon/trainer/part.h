/* The part of its data on which a planned task has the site train. Pure. */
#ifndef KEDGE_CLIENT_DAEMON_TRAINER_PART_H
#define KEDGE_CLIENT_DAEMON_TRAINER_PART_H

#include "client/core/site.h"
#include "client/daemon/trainer/metrics.h"
#include "job/job_spec.h"

/* The task has a part exactly where the job's spec plans, and no smaller one than the owners agreed on: else
 * KEDGE_E_FORMAT. */
KEDGE_NODISCARD int kedge_client_part_check(const struct kedge_job_spec *spec,
                                            const struct kedge_site_task *task, struct kedge_diag *reterr);
/* The trainer has trained on that part: KEDGE_E_TRAINER where it says another one, or nothing of it. */
KEDGE_NODISCARD int kedge_client_part_trained(const struct kedge_site_task *task,
                                              const struct kedge_metrics *metrics, struct kedge_diag *reterr);

#endif
