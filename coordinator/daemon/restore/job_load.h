/* A job from its record, as it is taken up: at a restart, and when it has waited for its place. On the loop
 * thread. */
#ifndef KEDGE_COORDINATOR_DAEMON_RESTORE_JOB_LOAD_H
#define KEDGE_COORDINATOR_DAEMON_RESTORE_JOB_LOAD_H

#include "coordinator/daemon/jobs.h"
#include "coordinator/daemon/records.h"

struct kedge_host;

/* A slot for the job of this record, by the spec that it names, with what the record says. KEDGE_E_FULL,
 * KEDGE_E_CORRUPT: the spec is another job's; what reading and parsing it meets. */
KEDGE_NODISCARD int kedge_job_load(struct kedge_host *h, const struct kedge_job_record *record,
                                   struct kedge_job **ret, struct kedge_diag *d);
/* Sets what the record says: state, times, first model, token. */
void kedge_job_load_record(struct kedge_job *job, const struct kedge_job_record *record);
/* Loads the job's history and leads it to `to`, where that is not the state that the job is in.
 * KEDGE_E_CORRUPT: no way leads there. */
KEDGE_NODISCARD int kedge_job_load_moves(struct kedge_host *h, struct kedge_job *job,
                                         const struct kedge_job_record *record, enum kedge_job_state to,
                                         struct kedge_diag *d);
/* Tells the core of the job (JOB_SUBMIT: the main chain does not know it yet) and of the tenants that joined
 * or left: their ledgers say so. */
void kedge_job_load_tell(struct kedge_host *h, struct kedge_job *job, enum kedge_coord_event_type type);
/* A job that is new to the core begins with its first models; if it was cancelled meanwhile it ends at once.
 */
void kedge_job_load_begin(struct kedge_host *h, struct kedge_job *job);

#endif
