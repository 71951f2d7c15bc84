/* What a pool knows of those whom it serves; shared by commit_pool.c and committer.c only. */
#ifndef KEDGE_CHAIN_STORE_COMMIT_POOL_IMPL_H
#define KEDGE_CHAIN_STORE_COMMIT_POOL_IMPL_H

#include <pthread.h>

#include "chain/store/commit_pool.h"
#include "chain/store/ledger.h"

/* A thread's room for the transaction that it makes: as much for a pool of few threads as for thousands of
 * ledgers. */
struct kedgei_commit_room {
    void *group[KEDGE_APPEND_MAX];
    struct kedge_ledger_batch batches[KEDGE_APPEND_MAX];
    struct kedge_ledger_appended results[KEDGE_APPEND_MAX];
};

enum kedgei_member_place {
    KEDGEI_MEMBER_IDLE,   /* nothing to do */
    KEDGEI_MEMBER_READY,  /* waits for a thread */
    KEDGEI_MEMBER_LATER,  /* waits for a time */
    KEDGEI_MEMBER_SERVED, /* a thread has it */
};

struct kedgei_member {
    struct kedgei_member *next, *before;
    enum kedgei_member_place place;
    uint64_t due_ns;
    /* One turn, on a thread of the pool, with the mutex held; it may be let go in between. Nobody else serves
     * the member meanwhile. Says at its end where the member goes, or nothing: then it is idle. */
    void (*turn)(struct kedgei_member *m, struct kedgei_commit_room *room);
};

/* All of a pool and of its members is under one mutex, which is held for moments only. */
void kedgei_pool_lock(struct kedge_commit_pool *pool);
void kedgei_pool_unlock(struct kedge_commit_pool *pool);
/* Under the mutex: behind all that wait for a thread, … */
void kedgei_pool_ready(struct kedge_commit_pool *pool, struct kedgei_member *m);
/* … or not before that time (kedge_os_now_ns). Wherever it is now, but for READY to LATER. */
void kedgei_pool_later(struct kedge_commit_pool *pool, struct kedgei_member *m, uint64_t due_ns);
/* Under the mutex, not from a thread of the pool, after one of the above: sees to it that a thread looks. */
void kedgei_pool_wake(struct kedge_commit_pool *pool);
/* Under the mutex: waits until somebody says that something has changed; says so. */
void kedgei_pool_wait(struct kedge_commit_pool *pool);
void kedgei_pool_changed(struct kedge_commit_pool *pool);

#endif
