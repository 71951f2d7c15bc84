/* Group commit. Producers link their submissions into a list under one mutex; the thread takes as many as
 * fit into one transaction, in order, commits, calls back. While it commits, the next group gathers by
 * itself; under load it is given a little longer. When nothing waits it stores the newest checkpoint.
 *
 * One thread writes each ledger, so the order of the log is the order of the queue, LMDB's single writer
 * is never waited for, and the ledger's writer side needs no lock. What a commit costs is the sync; group
 * commit shares it among all that wait. */
#include "chain/store/committer.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "common/base/try.h"

enum {
    QUEUE_DEFAULT = 4096,
    QUEUE_BYTES_DEFAULT = 32 << 20,
    LINGER_COMPANY = 4,         /* so many waiting are load */
    LINGER_FACTOR = 4,          /* under load a ledger commits for a fifth of the time at most … */
    LINGER_MAX_US = 20000,      /* … and lets nobody wait longer than this for company */
    LINGER_ENOUGH = 256,        /* entries by which a commit's own cost hardly shows any more */
    FLUSH_AFTER_MS = 50,        /* idle so long, a checkpoint is worth a transaction of its own */
    COMMIT_BYTES_MAX = 8 << 20, /* entries of one transaction: keeps LMDB's dirty pages to a few thousand */
};

/* One allocation: this, the items, their references, their bytes. */
struct submission {
    struct submission *next;
    size_t count, bytes;
    kedge_commit_done *done;
    void *arg;
    struct kedge_ledger_append items[];
};

struct kedge_committer {
    struct kedge_ledger *l;
    struct kedge_committer_options options;
    pthread_t thread;
    pthread_mutex_t mutex; /* guards what follows down to `entries` */
    pthread_cond_t arrived, reopened;
    struct submission *first, **last;
    size_t waiting, waiting_items, waiting_bytes;
    bool stopping, must_reopen, is_reopened, is_lingering;
    int reopen_err;
    struct kedge_diag reopen_diag;
    uint64_t commits, entries;
    /* the thread's own */
    uint64_t linger_ns;
    struct submission *group[KEDGE_APPEND_MAX];
    struct kedge_ledger_batch batches[KEDGE_APPEND_MAX];
    struct kedge_ledger_appended results[KEDGE_APPEND_MAX];
};

/* ---- submitting ---- */

/* One block of memory for everything: the producer may free its bytes at once, and what was taken is freed
 * by one call. */
static struct submission *copy_items(const struct kedge_ledger_append *items, size_t count)
{
    size_t refs = 0, bytes = 0;
    for (size_t i = 0; i < count; i++) {
        refs += items[i].ref_count;
        bytes += items[i].entry.len + items[i].idem_key.len;
    }
    struct submission *s =
        kedge_mem_new(1, sizeof *s + count * sizeof *items + refs * sizeof(struct kedge_hash) + bytes);
    if (!s) {
        return NULL;
    }
    s->count = count;
    s->bytes = bytes;
    struct kedge_hash *ref = (struct kedge_hash *)(void *)(s->items + count);
    uint8_t *at = (uint8_t *)(ref + refs);
    for (size_t i = 0; i < count; i++) {
        s->items[i] = items[i];
        memcpy(at, items[i].entry.ptr, items[i].entry.len);
        s->items[i].entry.ptr = at;
        at += items[i].entry.len;
        if (items[i].idem_key.len > 0) {
            memcpy(at, items[i].idem_key.ptr, items[i].idem_key.len);
            s->items[i].idem_key.ptr = at;
            at += items[i].idem_key.len;
        }
        if (items[i].ref_count > 0) {
            memcpy(ref, items[i].refs, items[i].ref_count * sizeof *ref);
            s->items[i].refs = ref;
            ref += items[i].ref_count;
        }
    }
    return s;
}

/* The queue is bounded in entries and bytes. When it is full the producer is told to come back, so that
 * load grows in the producers, which can refuse, and not in memory. While the thread waits for company it
 * is woken only when enough are there. What a caller can get wrong is refused here, before anything is
 * copied: a submission that the thread cannot take would block the queue for all others. */
int kedge_committer_submit(struct kedge_committer *c, const struct kedge_ledger_append *items, size_t count,
                           kedge_commit_done *done, void *arg)
{
    if (count == 0 || count > KEDGE_APPEND_MAX) {
        return KEDGE_E_ARG;
    }
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        if (items[i].entry.len > KEDGE_ENTRY_MAX || items[i].idem_key.len > KEDGE_IDEM_KEY_MAX) {
            return KEDGE_E_TOO_LONG;
        }
        if (items[i].entry.len == 0 || items[i].ref_count > KEDGE_APPEND_REFS_MAX) {
            return KEDGE_E_ARG;
        }
        bytes += items[i].entry.len;
    }
    if (bytes > COMMIT_BYTES_MAX) {
        return KEDGE_E_TOO_LONG;
    }
    struct submission *s = copy_items(items, count);
    KEDGE_TRY_MEM(s);
    s->done = done;
    s->arg = arg;
    pthread_mutex_lock(&c->mutex);
    int err = c->stopping ? KEDGE_E_CLOSED : KEDGE_OK;
    if (!err
        && (c->waiting >= c->options.queue_max || c->waiting_bytes + s->bytes > c->options.queue_bytes)) {
        err = KEDGE_E_FULL;
    }
    if (!err) {
        *c->last = s;
        c->last = &s->next;
        c->waiting++;
        c->waiting_items += count;
        c->waiting_bytes += s->bytes;
        if (!c->is_lingering || c->waiting_items >= LINGER_ENOUGH) {
            pthread_cond_signal(&c->arrived);
        }
    }
    pthread_mutex_unlock(&c->mutex);
    if (err) {
        kedge_mem_free(s);
    }
    return err;
}

/* ---- the thread ---- */

/* A commit costs nearly the same for one entry as for a hundred. Where many wait, more are coming: they
 * are waited for in proportion to what the last commit took. Who comes with few never waits. The mutex is
 * held. LINGER_FACTOR 4 means that a ledger under load spends a fifth of its time in commits, so
 * neighbours on the same disk get the rest; LINGER_MAX_US bounds what it adds to an answer. */
static void linger(struct kedge_committer *c)
{
    if (c->waiting < LINGER_COMPANY) {
        return;
    }
    uint64_t end_ns = kedge_os_now_ns() + c->linger_ns; /* the conditions' clock too */
    struct timespec deadline = {.tv_sec = (time_t)(end_ns / 1000000000),
                                .tv_nsec = (long)(end_ns % 1000000000)};
    int rc = 0;
    c->is_lingering = true;
    while (rc == 0 && !c->stopping && !c->must_reopen && c->waiting_items < LINGER_ENOUGH) {
        rc = pthread_cond_timedwait(&c->arrived, &c->mutex, &deadline);
    }
    c->is_lingering = false;
}

/* Waits for work, or, with a checkpoint to store, until it has been idle for a while. The mutex is held.
 * The flush is by time and not after each commit: a checkpoint that the next append stores for nothing
 * would cost a transaction of its own otherwise. */
static void await(struct kedge_committer *c, bool is_flushed)
{
    uint64_t end_ns = kedge_os_now_ns() + (uint64_t)FLUSH_AFTER_MS * 1000000;
    struct timespec deadline = {.tv_sec = (time_t)(end_ns / 1000000000),
                                .tv_nsec = (long)(end_ns % 1000000000)};
    int rc = 0;
    while (!c->first && !c->stopping && !c->must_reopen && rc == 0) {
        rc = is_flushed ? pthread_cond_wait(&c->arrived, &c->mutex)
                        : pthread_cond_timedwait(&c->arrived, &c->mutex, &deadline);
    }
}

/* Takes from the front what fits into one transaction. The mutex is held. In the order of arrival and
 * without looking further back: a large submission at the front is never overtaken, so no producer
 * starves. The first one is always taken, however large; submit has bounded it. */
static size_t take_group(struct kedge_committer *c)
{
    size_t taken = 0, items = 0, bytes = 0;
    while (c->first && items + c->first->count <= KEDGE_APPEND_MAX
           && (taken == 0 || bytes + c->first->bytes <= COMMIT_BYTES_MAX)) {
        struct submission *s = c->first;
        c->first = s->next;
        if (!c->first) {
            c->last = &c->first;
        }
        c->group[taken] = s;
        c->batches[taken] =
            (struct kedge_ledger_batch){.items = s->items, .count = s->count, .results = c->results + items};
        taken++;
        items += s->count;
        bytes += s->bytes;
    }
    c->waiting -= taken;
    c->waiting_items -= items;
    c->waiting_bytes -= bytes;
    return taken;
}

/* Answers come after the commit and with a checkpoint that covers it: a receipt that was handed out
 * earlier could be one for an entry that a crash took away. The checkpoint is taken once for the group.
 * Each submission is freed after its callback, so what it points to is valid during the call and not
 * longer. Errors of the store reach all of the group, an error of one submission only that one. */
static void call_back(struct kedge_committer *c, size_t taken, int err, struct kedge_diag *diag)
{
    struct kedge_buf note;
    kedge_buf_init(&note, KEDGE_NOTE_MAX);
    uint64_t size = 0;
    if (!err) {
        err = kedge_ledger_checkpoint(c->l, &note, &size);
        if (err) {
            kedge_diag_set(diag, KEDGE_E_UNKNOWN, "stored, but the checkpoint cannot be handed out: %s",
                           kedge_strerror(err));
            err = KEDGE_E_UNKNOWN;
        }
    }
    for (size_t i = 0; i < taken; i++) {
        struct submission *s = c->group[i];
        struct kedge_diag own;
        struct kedge_commit_result r = {.err = err ? err : c->batches[i].err, .diag = diag};
        if (!r.err) {
            r.diag = NULL;
            r.items = c->batches[i].results;
            r.count = s->count;
            r.checkpoint = kedge_buf_view(&note);
            r.size = size;
        } else if (!err) {
            kedge_diag_set(&own, r.err, "ledger %s: item %zu: %s", kedge_ledger_origin(c->l),
                           c->batches[i].bad_item,
                           r.err == KEDGE_E_EXISTS ? "its idempotency key belongs to another entry"
                                                   : kedge_strerror(r.err));
            r.diag = &own;
        }
        s->done(s->arg, &r);
        kedge_mem_free(s);
    }
    kedge_buf_deinit(&note);
}

/* One transaction for all that were taken. A submission that is at fault fails alone: it was planned
 * before anything of it was put. How long the next group is waited for follows from this commit's own
 * time: a slow disk makes larger groups by itself. */
static void commit_group(struct kedge_committer *c, size_t taken)
{
    struct kedge_diag diag = {.err = KEDGE_OK};
    uint64_t start = kedge_os_now_ns(), entries = 0;
    int err = kedge_ledger_append_batches(c->l, c->batches, taken, &diag);
    uint64_t wait = (kedge_os_now_ns() - start) * LINGER_FACTOR, most = (uint64_t)LINGER_MAX_US * 1000;
    c->linger_ns = wait < most ? wait : most;
    for (size_t i = 0; i < taken && !err; i++) {
        for (size_t k = 0; k < c->group[i]->count && !c->batches[i].err; k++) {
            entries += !c->batches[i].results[k].existing;
        }
    }
    pthread_mutex_lock(&c->mutex);
    c->commits += entries > 0;
    c->entries += entries;
    pthread_mutex_unlock(&c->mutex);
    call_back(c, taken, err, &diag);
}

/* On the committer's thread, because it is the only one that may touch the writer's side. What waits in
 * the queue stays there and is committed afterwards; idempotency keys make a repeated submission
 * harmless. */
static void reopen(struct kedge_committer *c)
{
    struct kedge_diag diag = {.err = KEDGE_OK};
    int err = kedge_ledger_reopen(c->l, &diag);
    pthread_mutex_lock(&c->mutex);
    c->must_reopen = false;
    c->is_reopened = true;
    c->reopen_err = err;
    c->reopen_diag = diag;
    pthread_cond_broadcast(&c->reopened);
    pthread_mutex_unlock(&c->mutex);
}

/* On stop it drains the queue first: every submission that was accepted gets its one callback. The last
 * act is a flush, so an orderly end leaves no checkpoint unsaved. */
static void *run(void *arg)
{
    struct kedge_committer *c = arg;
    bool is_flushed = true; /* or was tried: an idle disk that is full is not asked again and again */
    for (;;) {
        pthread_mutex_lock(&c->mutex);
        await(c, is_flushed);
        bool must_reopen = c->must_reopen, is_idle = !c->first, is_over = c->stopping && is_idle;
        if (!must_reopen && !is_idle) {
            linger(c);
        }
        size_t taken = must_reopen ? 0 : take_group(c);
        pthread_mutex_unlock(&c->mutex);
        if (must_reopen) {
            reopen(c);
        } else if (taken > 0) {
            commit_group(c, taken);
            is_flushed = false;
        } else {
            (void)!kedge_ledger_flush(c->l, NULL); /* the next append or open makes up for a failure */
            is_flushed = true;
            if (is_over) {
                return NULL;
            }
        }
    }
}

/* ---- life ---- */

int kedge_committer_start(struct kedge_ledger *l, const struct kedge_committer_options *options,
                          struct kedge_committer **ret, struct kedge_diag *reterr)
{
    struct kedge_committer *c = kedge_mem_new(1, sizeof *c);
    if (!c) {
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "cannot start a committer: out of memory");
    }
    c->l = l;
    c->options = options ? *options : (struct kedge_committer_options){0};
    c->options.queue_max = c->options.queue_max ? c->options.queue_max : QUEUE_DEFAULT;
    c->options.queue_bytes = c->options.queue_bytes ? c->options.queue_bytes : QUEUE_BYTES_DEFAULT;
    c->last = &c->first;
    pthread_mutex_init(&c->mutex, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&c->arrived, &monotonic);
    pthread_cond_init(&c->reopened, &monotonic);
    pthread_condattr_destroy(&monotonic);
    int rc = pthread_create(&c->thread, NULL, run, c);
    if (rc != 0) {
        kedge_mem_free(c);
        return kedge_diag_set(reterr, KEDGE_E_FULL, "cannot start a committer thread: %s", strerror(rc));
    }
    *ret = c;
    return KEDGE_OK;
}

int kedge_committer_reopen(struct kedge_committer *c, struct kedge_diag *reterr)
{
    pthread_mutex_lock(&c->mutex);
    c->must_reopen = true;
    c->is_reopened = false;
    pthread_cond_signal(&c->arrived);
    while (!c->is_reopened) {
        pthread_cond_wait(&c->reopened, &c->mutex);
    }
    int err = c->reopen_err;
    if (err && reterr) {
        *reterr = c->reopen_diag;
    }
    pthread_mutex_unlock(&c->mutex);
    return err;
}

void kedge_committer_stats(struct kedge_committer *c, uint64_t *ret_commits, uint64_t *ret_entries,
                           size_t *ret_waiting)
{
    pthread_mutex_lock(&c->mutex);
    if (ret_commits) {
        *ret_commits = c->commits;
    }
    if (ret_entries) {
        *ret_entries = c->entries;
    }
    if (ret_waiting) {
        *ret_waiting = c->waiting;
    }
    pthread_mutex_unlock(&c->mutex);
}

void kedge_committer_stop(struct kedge_committer *c)
{
    if (!c) {
        return;
    }
    pthread_mutex_lock(&c->mutex);
    c->stopping = true;
    pthread_cond_signal(&c->arrived);
    pthread_mutex_unlock(&c->mutex);
    pthread_join(c->thread, NULL);
    pthread_cond_destroy(&c->arrived);
    pthread_cond_destroy(&c->reopened);
    pthread_mutex_destroy(&c->mutex);
    kedge_mem_free(c);
}
