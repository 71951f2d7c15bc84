/* Threads that commit for many ledgers. A ledger that has something to commit waits in one row with the
 * others and has one transaction each time that its turn comes; so its order is kept, a ledger that never
 * rests delays the others by one transaction each round, and one whose disk hangs keeps one thread. */
#ifndef KEDGE_CHAIN_STORE_COMMIT_POOL_H
#define KEDGE_CHAIN_STORE_COMMIT_POOL_H

#include "common/base/diag.h"

struct kedge_commit_pool;

enum { KEDGE_COMMIT_THREADS_MAX = 64 };

/* A pool of at most `threads`, 1…KEDGE_COMMIT_THREADS_MAX; the first is started here, the others when all
 * that there are have work. Errors: KEDGE_E_NOMEM, KEDGE_E_FULL (no thread can be started). */
KEDGE_NODISCARD int kedge_commit_pool_new(unsigned threads, struct kedge_commit_pool **ret,
                                          struct kedge_diag *reterr);
/* Ends the threads. All committers of the pool have been stopped. NULL is fine. */
void kedge_commit_pool_free(struct kedge_commit_pool *pool);
/* Threads that were started; for tests and figures. */
unsigned kedge_commit_pool_threads(struct kedge_commit_pool *pool);

#endif
