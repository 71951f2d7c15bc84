/* Jobs that wait are given places: waiting.h has them, schedule/line.h says whose turn it is. A job that gets
 * a place is taken up from its record as at a restart, and submitted to the core as if by its owner just now;
 * enrol_within_s is counted from its submission nevertheless, for its owner waits since then. What has waited
 * for longer ends as failed, and never stood in a chain. On the loop thread. */
#ifndef KEDGE_COORDINATOR_DAEMON_RESTORE_ADMIT_H
#define KEDGE_COORDINATOR_DAEMON_RESTORE_ADMIT_H

#include "common/base/diag.h"
#include "coordinator/daemon/records.h"

struct kedge_host;
struct kedge_waiting_job;

/* Restart: the job of this record, which the main chain does not know, waits. Errors of reading its spec;
 * KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedge_host_admit_later(struct kedge_host *h, const struct kedge_job_record *record,
                                           struct kedge_diag *d);
/* Between two items: gives free places to those whose turn it is, and ends those whose time is over. */
void kedge_host_admit(struct kedge_host *h, uint64_t now_ns);
/* When it has to be called at the latest, unless something happens; KEDGE_TIME_NEVER. */
uint64_t kedge_host_admit_due_ns(const struct kedge_host *h, uint64_t now_ns);
/* What an operator asks of a job in line (not coming): it ends as cancelled, and its row is gone; or it is
 * halted (keeps its turn, and is passed over), or goes on. Durable when this returns. Errors of the store;
 * nothing is changed then. */
KEDGE_NODISCARD int kedge_host_waiting_cancel(struct kedge_host *h, struct kedge_waiting_job *w,
                                              const char *actor, struct kedge_diag *d);
KEDGE_NODISCARD int kedge_host_waiting_hold(struct kedge_host *h, struct kedge_waiting_job *w, bool is_held,
                                            const char *actor, struct kedge_diag *d);

#endif
