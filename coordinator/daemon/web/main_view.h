/* What a tenant may read of the main chain: the policy, its own checkpoints, statements of jobs that name it,
 * and the blobs of those. Of everything else it learns that it is there, and its leaf hash. Thread-safe.
 *
 * An entry's answer never changes, for a job's tenants are in its job-opened, which stands before its other
 * statements; so answers are kept. */
#ifndef KEDGE_COORDINATOR_DAEMON_WEB_MAIN_VIEW_H
#define KEDGE_COORDINATOR_DAEMON_WEB_MAIN_VIEW_H

#include "chain/store/ledger.h"

struct kedge_main_view;

/* Who looks; borrowed until the call returns. */
struct kedge_main_viewer {
    const char *origin;              /* of the tenant's own log */
    const struct kedge_hash *salted; /* its name in the main chain */
    struct kedge_ledger *own;        /* its ledger: which jobs it has joined */
};

/* `main` must outlive it. KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedge_main_view_new(struct kedge_ledger *main, struct kedge_main_view **ret);
void kedge_main_view_free(struct kedge_main_view *v); /* NULL is fine */

/* Whether the viewer may read that entry of the main chain. An error is no answer. */
KEDGE_NODISCARD int kedge_main_view_entry(struct kedge_main_view *v, const struct kedge_main_viewer *viewer,
                                          uint64_t index, struct kedge_view entry, bool *ret_may);
/* The same for a blob of the main chain. */
KEDGE_NODISCARD int kedge_main_view_blob(struct kedge_main_view *v, const struct kedge_main_viewer *viewer,
                                         const struct kedge_hash *digest, bool *ret_may);

#endif
