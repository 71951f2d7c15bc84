/* Group commit. Callers submit, a thread of a pool appends everything that waits in one durable transaction,
 * then calls back. Submissions are atomic and keep their order (first in, first out). */
#ifndef KEDGE_CHAIN_STORE_COMMITTER_H
#define KEDGE_CHAIN_STORE_COMMITTER_H

#include "chain/store/commit_pool.h"
#include "chain/store/ledger.h"

struct kedge_committer;

struct kedge_committer_options {
    size_t queue_max;   /* submissions that may wait; 0: 4096. Beyond it submit answers KEDGE_E_FULL */
    size_t queue_bytes; /* bytes that may wait; 0: 32 MiB */
    struct kedge_commit_pool *pool; /* whose threads commit; NULL: one of its own, with one thread */
};

/* What the callback gets; everything is valid during the call only. */
struct kedge_commit_result {
    int err;                                   /* KEDGE_OK: durable, signed, marked */
    const struct kedge_diag *diag;             /* text when err is not KEDGE_OK */
    const struct kedge_ledger_appended *items; /* count of them, when KEDGE_OK */
    size_t count;
    struct kedge_view checkpoint; /* signed note of this commit; size covers all items */
    uint64_t size;
};
/* From a thread of the pool; must not block for long nor call kedge_committer_stop. */
typedef void kedge_commit_done(void *arg, const struct kedge_commit_result *result);

/* From now on the committer is the ledger's one writer. `options` may be NULL; the pool must outlive it. */
KEDGE_NODISCARD int kedge_committer_start(struct kedge_ledger *l,
                                          const struct kedge_committer_options *options,
                                          struct kedge_committer **ret, struct kedge_diag *reterr);
/* Any thread. Copies the items; `done` is called exactly once for each KEDGE_OK, never for another
 * answer. count 1…KEDGE_APPEND_MAX. KEDGE_E_FULL: try again later; KEDGE_E_CLOSED after stop;
 * KEDGE_E_ARG, _TOO_LONG. */
KEDGE_NODISCARD int kedge_committer_submit(struct kedge_committer *c, const struct kedge_ledger_append *items,
                                           size_t count, kedge_commit_done *done, void *arg);
/* After the ledger failed with KEDGE_E_IO (every submission is then answered with it): reopens it when its
 * turn comes, waits for that and returns its result. */
KEDGE_NODISCARD int kedge_committer_reopen(struct kedge_committer *c, struct kedge_diag *reterr);
/* Commits that were made, entries in them, and submissions that wait now; any may be NULL. */
void kedge_committer_stats(struct kedge_committer *c, uint64_t *ret_commits, uint64_t *ret_entries,
                           size_t *ret_waiting);
/* Commits what waits, calls back, stores the newest checkpoint, and frees. NULL is fine. */
void kedge_committer_stop(struct kedge_committer *c);

#endif
