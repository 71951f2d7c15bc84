/* What open rounds turned away, kept until their job has ended. */
#ifndef KEDGE_COORDINATOR_DAEMON_SITES_REFUSALS_H
#define KEDGE_COORDINATOR_DAEMON_SITES_REFUSALS_H

#include "common/base/diag.h"
#include "common/base/text.h"

struct kedge_coord_effect;
struct kedge_host;
struct kedge_job;
struct kedge_kv_tx;

/* Makes the refusal that a TURN_AWAY with a ticket tells durable; when that fails it is only logged. */
void kedge_host_refusal_store(struct kedge_host *h, const struct kedge_coord_effect *fx);
/* Tells the core what the job's open round (job->round) had refused. */
KEDGE_NODISCARD int kedge_host_refusals_load(struct kedge_host *h, const struct kedge_job *job,
                                             struct kedge_diag *d);
/* Removes the job's refusals but those of round `keep`, KEDGE_COORD_NONE: all. */
KEDGE_NODISCARD int kedge_host_refusals_drop(struct kedge_kv_tx *tx, const struct kedge_id *job,
                                             uint32_t keep);
/* At start, when the jobs are loaded: reads every refusal there is, and removes those that no open round
 * needs any more. KEDGE_E_CORRUPT: one is damaged. */
KEDGE_NODISCARD int kedge_host_refusals_sweep(struct kedge_host *h, struct kedge_diag *d);

#endif
