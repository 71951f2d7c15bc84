/* A job with a deadline, before anything of it is made: is it promised its deadline? The decision is a
 * statement of the main chain, and what follows from it follows once that is durable. */
#ifndef KEDGE_COORDINATOR_DAEMON_ADMIN_PROMISE_H
#define KEDGE_COORDINATOR_DAEMON_ADMIN_PROMISE_H

#include "common/base/diag.h"

struct kedge_hash;
struct kedge_host;
struct kedge_id;
struct kedge_job;

/* Later, or at once, and on the loop: KEDGE_OK, the job is admitted, and its deadline_ms is set;
 * KEDGE_E_FULL: it is refused, with the nearest deadline that would be taken in the text; other errors:
 * nothing is decided, or nobody knows. */
typedef void kedge_promise_decided(struct kedge_host *h, void *arg, int err, const struct kedge_diag *d);
/* spec_text: of the job, which is being submitted; both stay until `then`. One that was admitted before a
 * crash, and of which there is nothing else, is admitted by that. */
void kedge_host_decide_promise(struct kedge_host *h, struct kedge_job *job, const char *spec_text,
                               kedge_promise_decided *then, void *arg);
/* A name that was admitted to a deadline is that job's, also if a crash left nothing else of it: what was
 * promised ends with the job of that name, whether this spec has a deadline or not. KEDGE_E_EXISTS: it is
 * another one. */
KEDGE_NODISCARD int kedge_host_promise_check(struct kedge_host *h, const struct kedge_id *name,
                                             const struct kedge_hash *spec_digest, struct kedge_diag *d);

#endif
