/* The row is first in, first out, and who had a turn and has more goes to its end: round robin over the
 * ledgers that have something to commit. Beside it stand those that wait for a time: a ledger under load for
 * company, an idle one for its checkpoint to be stored.
 *
 * Of the threads that have nothing to do one watches the time and the others sleep: if all watched it, all
 * would be woken each time that one is needed. Who goes off to serve a member sees to it first that somebody
 * looks after what is left, and where nobody is free a thread is started, up to the bound. So a coordinator
 * of three tenants has the threads that three need, and one of thousands no more than the bound. */
#include "chain/store/commit_pool.h"

#include <string.h>
#include <time.h>

#include "chain/store/commit_pool_impl.h"
#include "common/base/mem.h"
#include "common/base/os/clock.h"

struct row {
    struct kedgei_member *first, *last;
};

struct kedge_commit_pool {
    pthread_mutex_t mutex;
    pthread_cond_t work, timer, changed;
    struct row ready, later; /* later: by time */
    unsigned threads_max, threads, sleeping;
    bool is_watched; /* a thread waits for the first of `later` */
    bool stopping;
    pthread_t ids[KEDGE_COMMIT_THREADS_MAX];
};

/* ---- rows ---- */

/* Behind `before`; NULL: in front of all. */
static void put_behind(struct row *r, struct kedgei_member *before, struct kedgei_member *m)
{
    m->before = before;
    m->next = before ? before->next : r->first;
    *(m->next ? &m->next->before : &r->last) = m;
    *(before ? &before->next : &r->first) = m;
}

static void take_out(struct row *r, struct kedgei_member *m)
{
    *(m->before ? &m->before->next : &r->first) = m->next;
    *(m->next ? &m->next->before : &r->last) = m->before;
    m->next = m->before = NULL;
}

void kedgei_pool_ready(struct kedge_commit_pool *pool, struct kedgei_member *m)
{
    if (m->place == KEDGEI_MEMBER_READY) {
        return;
    }
    if (m->place == KEDGEI_MEMBER_LATER) {
        take_out(&pool->later, m);
    }
    put_behind(&pool->ready, pool->ready.last, m);
    m->place = KEDGEI_MEMBER_READY;
}

/* Searched from the end: most waits are as long as the one before. */
void kedgei_pool_later(struct kedge_commit_pool *pool, struct kedgei_member *m, uint64_t due_ns)
{
    struct kedgei_member *before = pool->later.last;
    while (before && before->due_ns > due_ns) {
        before = before->before;
    }
    m->due_ns = due_ns;
    put_behind(&pool->later, before, m);
    m->place = KEDGEI_MEMBER_LATER;
    if (!before && pool->is_watched) {
        pthread_cond_signal(&pool->timer); /* it waits for a later time than this */
    }
}

static void take_due(struct kedge_commit_pool *pool)
{
    uint64_t now = pool->later.first ? kedge_os_now_ns() : 0;
    while (pool->later.first && pool->later.first->due_ns <= now) {
        kedgei_pool_ready(pool, pool->later.first);
    }
}

/* ---- threads ---- */

static void *run(void *arg);

static int add_thread(struct kedge_commit_pool *pool)
{
    int rc = pthread_create(&pool->ids[pool->threads], NULL, run, pool);
    pool->threads += rc == 0;
    return rc;
}

/* A thread that cannot be started is not missed: those that there are come back. */
void kedgei_pool_wake(struct kedge_commit_pool *pool)
{
    bool is_left = pool->ready.first || (pool->later.first && !pool->is_watched);
    if (is_left && pool->sleeping > 0) {
        pthread_cond_signal(&pool->work);
    } else if (pool->ready.first && pool->is_watched) {
        pthread_cond_signal(&pool->timer);
    } else if (is_left && pool->threads < pool->threads_max && !pool->stopping) {
        (void)add_thread(pool);
    }
}

static void watch(struct kedge_commit_pool *pool)
{
    uint64_t due = pool->later.first->due_ns; /* the condition's clock is that of kedge_os_now_ns */
    struct timespec deadline = {.tv_sec = (time_t)(due / 1000000000), .tv_nsec = (long)(due % 1000000000)};
    pool->is_watched = true;
    (void)pthread_cond_timedwait(&pool->timer, &pool->mutex, &deadline);
    pool->is_watched = false;
}

static void *run(void *arg)
{
    struct kedge_commit_pool *pool = arg;
    struct kedgei_commit_room room;
    pthread_mutex_lock(&pool->mutex);
    for (;;) {
        take_due(pool);
        struct kedgei_member *m = pool->ready.first;
        if (m) {
            take_out(&pool->ready, m);
            m->place = KEDGEI_MEMBER_SERVED;
            kedgei_pool_wake(pool);
            m->turn(m, &room);
        } else if (pool->stopping) {
            break;
        } else if (pool->later.first && !pool->is_watched) {
            watch(pool);
        } else {
            pool->sleeping++;
            pthread_cond_wait(&pool->work, &pool->mutex);
            pool->sleeping--;
        }
    }
    pthread_mutex_unlock(&pool->mutex);
    return NULL;
}

/* ---- life ---- */

void kedgei_pool_lock(struct kedge_commit_pool *pool)
{
    pthread_mutex_lock(&pool->mutex);
}

void kedgei_pool_unlock(struct kedge_commit_pool *pool)
{
    pthread_mutex_unlock(&pool->mutex);
}

void kedgei_pool_wait(struct kedge_commit_pool *pool)
{
    pthread_cond_wait(&pool->changed, &pool->mutex);
}

void kedgei_pool_changed(struct kedge_commit_pool *pool)
{
    pthread_cond_broadcast(&pool->changed);
}

unsigned kedge_commit_pool_threads(struct kedge_commit_pool *pool)
{
    pthread_mutex_lock(&pool->mutex);
    unsigned threads = pool->threads;
    pthread_mutex_unlock(&pool->mutex);
    return threads;
}

static void destroy(struct kedge_commit_pool *pool)
{
    pthread_cond_destroy(&pool->work);
    pthread_cond_destroy(&pool->timer);
    pthread_cond_destroy(&pool->changed);
    pthread_mutex_destroy(&pool->mutex);
    kedge_mem_free(pool);
}

int kedge_commit_pool_new(unsigned threads, struct kedge_commit_pool **ret, struct kedge_diag *reterr)
{
    KEDGE_ASSERT(threads >= 1 && threads <= KEDGE_COMMIT_THREADS_MAX);
    struct kedge_commit_pool *pool = kedge_mem_new(1, sizeof *pool);
    if (!pool) {
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "cannot make a pool of committers: out of memory");
    }
    pool->threads_max = threads;
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&pool->work, NULL);
    pthread_cond_init(&pool->timer, &monotonic);
    pthread_cond_init(&pool->changed, NULL);
    pthread_condattr_destroy(&monotonic);
    pthread_mutex_lock(&pool->mutex);
    int rc = add_thread(pool);
    pthread_mutex_unlock(&pool->mutex);
    if (rc != 0) {
        destroy(pool);
        return kedge_diag_set(reterr, KEDGE_E_FULL, "cannot start a committer thread: %s", strerror(rc));
    }
    *ret = pool;
    return KEDGE_OK;
}

void kedge_commit_pool_free(struct kedge_commit_pool *pool)
{
    if (!pool) {
        return;
    }
    pthread_mutex_lock(&pool->mutex);
    KEDGE_ASSERT(!pool->ready.first && !pool->later.first);
    pool->stopping = true;
    pthread_cond_broadcast(&pool->work);
    pthread_cond_signal(&pool->timer); /* it may watch a time that nobody waits for any more */
    pthread_mutex_unlock(&pool->mutex);
    for (unsigned i = 0; i < pool->threads; i++) { /* no more are started */
        pthread_join(pool->ids[i], NULL);
    }
    destroy(pool);
}
