/* Releases: a completed job's models are handed out when the main chain is final up to their `release`
 * statements, with the evidence that a stranger checks offline. On the loop thread. */
#ifndef KEDGE_COORDINATOR_DAEMON_ROUNDS_RELEASE_H
#define KEDGE_COORDINATOR_DAEMON_ROUNDS_RELEASE_H

#include "common/base/diag.h"
#include "common/base/text.h"

struct json_t;
struct kedge_host;

/* Whether group's model of the job may be handed out: its last one, or with tier > 0 the one with which so
 * many targets were reached last. KEDGE_E_NOT_FOUND: it is not released (the job runs, or ended without);
 * KEDGE_E_BUSY: the witnesses have not cosigned its release yet, with who is how far. ret_index is the
 * release's entry in the main chain. */
KEDGE_NODISCARD int kedge_host_release_find(struct kedge_host *h, const struct kedge_id *job, uint32_t group,
                                            uint32_t tier, uint64_t *ret_index, struct kedge_diag *d);
/* Sets in o an entry of the main chain (the statement's envelope), such as a release, and its tlog-proof up
 * to the final checkpoint, under these names. */
KEDGE_NODISCARD int kedge_host_main_tell(struct kedge_host *h, uint64_t index, struct json_t *o,
                                         const char *entry_name, const char *proof_name,
                                         struct kedge_diag *d);

/* The same of the job's job-opened, which names its spec, as "opened" and "opened_proof": who checks a model
 * checks both. KEDGE_E_NOT_FOUND: it has not begun. */
KEDGE_NODISCARD int kedge_host_opened_tell(struct kedge_host *h, const struct kedge_id *job, struct json_t *o,
                                           struct kedge_diag *d);

#endif
