/* Restart: a job's rounds. What is known after the last closed one is folded from the record
 * (round/fold_ledgers.h) and told to the core, and so is what came to the one that is open. */
#ifndef KEDGE_COORDINATOR_DAEMON_RESTORE_RESTORE_ROUNDS_H
#define KEDGE_COORDINATOR_DAEMON_RESTORE_RESTORE_ROUNDS_H

#include "coordinator/core/coord.h"
#include "coordinator/daemon/restore/history.h"
#include "coordinator/daemon/restore/restore_walk.h"

/* Of w->job, of which the core has been told. Fills at, sites, round and classes of it. */
KEDGE_NODISCARD int kedge_restore_rounds(struct kedge_walk *w);

/* Where the job's statements are; ret_logs: KEDGE_SPEC_TENANTS_MAX. */
struct kedge_history_source kedge_restore_source(const struct kedge_host *h, const struct kedge_job *job,
                                                 struct kedge_history_log *ret_logs);
/* Hash of an entry of w->ledger. */
KEDGE_NODISCARD int kedge_restore_envelope(struct kedge_walk *w, uint64_t index, struct kedge_digest *ret);

#endif
