/* Jobs that were promised a deadline, as the main chain says, and whether another one can be. */
#ifndef KEDGE_COORDINATOR_DAEMON_ROUNDS_PROMISED_H
#define KEDGE_COORDINATOR_DAEMON_ROUNDS_PROMISED_H

#include "chain/statement/statement.h"
#include "chain/store/blob/blobs.h"
#include "chain/store/ledger.h"
#include "common/base/diag.h"
#include "job/job_spec.h"

struct kedge_promised_source {
    struct kedge_ledger *main;
    struct kedge_blobs *blobs; /* the main chain's: specs */
    uint64_t now_ms, guard_ms;
};

/* What was decided of the job, if its job-admitted is there: *ret_found. KEDGE_E_EXISTS: there is one of
 * another spec. Any thread. */
KEDGE_NODISCARD int kedge_promised_find(struct kedge_ledger *main, const struct kedge_id *job,
                                        const struct kedge_hash *spec_digest, struct kedge_statement *ret,
                                        bool *ret_found, struct kedge_diag *d);
/* Decides: *ret is job-admitted or job-refused, whole, and not yet in the chain. KEDGE_E_FULL: more jobs with
 * deadlines than are looked at. Any thread; nobody else decides meanwhile. */
KEDGE_NODISCARD int kedge_promised_decide(const struct kedge_promised_source *source,
                                          const struct kedge_job_spec *spec,
                                          const struct kedge_hash *spec_digest, struct kedge_statement *ret,
                                          struct kedge_diag *d);

#endif
