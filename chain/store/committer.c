/* Group commit. Producers link their submissions into a list under one mutex; when the ledger's turn comes
 * (commit_pool.h), a thread takes as many as fit into one transaction, in order, commits, calls back. While
 * it commits, the next group gathers by itself; under load it is given a little longer. When nothing waits it
 * stores the newest checkpoint.
 *
 * One thread at a time writes each ledger, so the order of the log is the order of the queue, LMDB's single
 * writer is never waited for, and the ledger's writer side needs no lock. What a commit costs is the sync;
 * group commit shares it among all that wait. */
#include "chain/store/committer.h"

#include <string.h>

#include "chain/store/commit_pool_impl.h"
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
    struct kedgei_member member; /* first: the pool knows no more of it */
    struct kedge_ledger *l;
    struct kedge_committer_options options;
    struct kedge_commit_pool *pool; /* its mutex guards all that follows */
    bool owns_pool;
    struct submission *first, **last;
    size_t waiting, waiting_items, waiting_bytes;
    bool has_lingered; /* waits for company, or has: the next turn commits */
    bool is_flushed;   /* or was tried: an idle disk that is full is not asked again and again */
    bool stopping, is_over;
    bool must_reopen;
    int reopen_err;
    struct kedge_diag *reopen_diag; /* of who waits for it; may be NULL */
    uint64_t commits, entries, linger_ns;
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

/* By others than its thread; the mutex is held. One that is served goes on by itself. */
static void call_turn(struct kedge_committer *c)
{
    if (c->member.place != KEDGEI_MEMBER_SERVED) {
        kedgei_pool_ready(c->pool, &c->member);
        kedgei_pool_wake(c->pool);
    }
}

/* The queue is bounded in entries and bytes. When it is full the producer is told to come back, so that
 * load grows in the producers, which can refuse, and not in memory. While the ledger waits for company it
 * has its turn only when enough are there. What a caller can get wrong is refused here, before anything is
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
    kedgei_pool_lock(c->pool);
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
        bool is_lingering = c->member.place == KEDGEI_MEMBER_LATER && c->has_lingered;
        if (!is_lingering || c->waiting_items >= LINGER_ENOUGH) {
            call_turn(c);
        }
    }
    kedgei_pool_unlock(c->pool);
    if (err) {
        kedge_mem_free(s);
    }
    return err;
}

/* ---- a turn ---- */

/* A commit costs nearly the same for one entry as for a hundred. Where many wait, more are coming: they
 * are waited for in proportion to what the last commit took, and others have their turns meanwhile. Who comes
 * with few never waits. The mutex is held. LINGER_FACTOR 4 means that a ledger under load spends a fifth of
 * its time in commits, so neighbours on the same disk get the rest; LINGER_MAX_US bounds what it adds to an
 * answer. */
static bool should_linger(const struct kedge_committer *c)
{
    return !c->has_lingered && !c->stopping && c->linger_ns > 0 && c->waiting >= LINGER_COMPANY
           && c->waiting_items < LINGER_ENOUGH;
}

/* Takes from the front what fits into one transaction. The mutex is held. In the order of arrival and
 * without looking further back: a large submission at the front is never overtaken, so no producer
 * starves. The first one is always taken, however large; submit has bounded it. */
static size_t take_group(struct kedge_committer *c, struct kedgei_commit_room *room)
{
    size_t taken = 0, items = 0, bytes = 0;
    while (c->first && items + c->first->count <= KEDGE_APPEND_MAX
           && (taken == 0 || bytes + c->first->bytes <= COMMIT_BYTES_MAX)) {
        struct submission *s = c->first;
        c->first = s->next;
        if (!c->first) {
            c->last = &c->first;
        }
        room->group[taken] = s;
        room->batches[taken] = (struct kedge_ledger_batch){
            .items = s->items, .count = s->count, .results = room->results + items};
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
static void call_back(struct kedge_committer *c, const struct kedgei_commit_room *room, size_t taken, int err,
                      struct kedge_diag *diag)
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
        struct submission *s = room->group[i];
        struct kedge_diag own;
        struct kedge_commit_result r = {.err = err ? err : room->batches[i].err, .diag = diag};
        if (!r.err) {
            r.diag = NULL;
            r.items = room->batches[i].results;
            r.count = s->count;
            r.checkpoint = kedge_buf_view(&note);
            r.size = size;
        } else if (!err) {
            kedge_diag_set(&own, r.err, "ledger %s: item %zu: %s", kedge_ledger_origin(c->l),
                           room->batches[i].bad_item,
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
static void commit_group(struct kedge_committer *c, struct kedgei_commit_room *room)
{
    size_t taken = take_group(c, room);
    kedgei_pool_unlock(c->pool);
    struct kedge_diag diag = {.err = KEDGE_OK};
    uint64_t start = kedge_os_now_ns(), entries = 0;
    int err = kedge_ledger_append_batches(c->l, room->batches, taken, &diag);
    uint64_t wait = (kedge_os_now_ns() - start) * LINGER_FACTOR, most = (uint64_t)LINGER_MAX_US * 1000;
    for (size_t i = 0; i < taken && !err; i++) {
        for (size_t k = 0; k < room->batches[i].count && !room->batches[i].err; k++) {
            entries += !room->batches[i].results[k].existing;
        }
    }
    kedgei_pool_lock(c->pool);
    c->linger_ns = wait < most ? wait : most;
    c->commits += entries > 0;
    c->entries += entries;
    kedgei_pool_unlock(c->pool);
    call_back(c, room, taken, err, &diag);
    kedgei_pool_lock(c->pool);
    c->has_lingered = c->is_flushed = false;
}

/* In a turn, because only then nobody else touches the writer's side. What waits in the queue stays there and
 * is committed afterwards; idempotency keys make a repeated submission harmless. */
static void reopen(struct kedge_committer *c)
{
    kedgei_pool_unlock(c->pool);
    int err = kedge_ledger_reopen(c->l, c->reopen_diag); /* its waiter leaves both alone */
    kedgei_pool_lock(c->pool);
    c->reopen_err = err;
    c->must_reopen = false;
    kedgei_pool_changed(c->pool);
}

static void flush(struct kedge_committer *c)
{
    kedgei_pool_unlock(c->pool);
    (void)!kedge_ledger_flush(c->l, NULL); /* the next append or open makes up for a failure */
    kedgei_pool_lock(c->pool);
    c->is_flushed = true;
}

/* Where it goes after a turn. The flush is by time and not after each commit: a checkpoint that the next
 * append stores for nothing would cost a transaction of its own otherwise. On stop the queue is drained
 * first: every submission that was accepted gets its one callback. The last act is a flush, so an orderly end
 * leaves no checkpoint unsaved. */
static void go_on(struct kedge_committer *c)
{
    if (c->must_reopen || c->first || (c->stopping && !c->is_flushed)) {
        kedgei_pool_ready(c->pool, &c->member);
    } else if (c->stopping) {
        c->is_over = true;
        kedgei_pool_changed(c->pool);
    } else if (!c->is_flushed) {
        kedgei_pool_later(c->pool, &c->member, kedge_os_now_ns() + (uint64_t)FLUSH_AFTER_MS * 1000000);
    } else {
        c->member.place = KEDGEI_MEMBER_IDLE;
    }
}

static void turn(struct kedgei_member *m, struct kedgei_commit_room *room)
{
    struct kedge_committer *c = (struct kedge_committer *)m;
    if (c->must_reopen) {
        reopen(c);
    } else if (c->first && should_linger(c)) {
        c->has_lingered = true;
        kedgei_pool_later(c->pool, m, kedge_os_now_ns() + c->linger_ns);
        return;
    } else if (c->first) {
        commit_group(c, room);
    } else {
        flush(c);
    }
    go_on(c);
}

/* ---- life ---- */

int kedge_committer_start(struct kedge_ledger *l, const struct kedge_committer_options *options,
                          struct kedge_committer **ret, struct kedge_diag *reterr)
{
    struct kedge_committer *c = kedge_mem_new(1, sizeof *c);
    if (!c) {
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "cannot start a committer: out of memory");
    }
    c->member.turn = turn;
    c->l = l;
    c->options = options ? *options : (struct kedge_committer_options){0};
    c->options.queue_max = c->options.queue_max ? c->options.queue_max : QUEUE_DEFAULT;
    c->options.queue_bytes = c->options.queue_bytes ? c->options.queue_bytes : QUEUE_BYTES_DEFAULT;
    c->last = &c->first;
    c->is_flushed = true;
    c->pool = c->options.pool;
    c->owns_pool = !c->pool;
    int err = c->owns_pool ? kedge_commit_pool_new(1, &c->pool, reterr) : KEDGE_OK;
    if (err) {
        kedge_mem_free(c);
        return err;
    }
    *ret = c;
    return KEDGE_OK;
}

int kedge_committer_reopen(struct kedge_committer *c, struct kedge_diag *reterr)
{
    kedgei_pool_lock(c->pool);
    c->must_reopen = true;
    c->reopen_diag = reterr;
    call_turn(c);
    while (c->must_reopen) {
        kedgei_pool_wait(c->pool);
    }
    int err = c->reopen_err;
    kedgei_pool_unlock(c->pool);
    return err;
}

void kedge_committer_stats(struct kedge_committer *c, uint64_t *ret_commits, uint64_t *ret_entries,
                           size_t *ret_waiting)
{
    kedgei_pool_lock(c->pool);
    if (ret_commits) {
        *ret_commits = c->commits;
    }
    if (ret_entries) {
        *ret_entries = c->entries;
    }
    if (ret_waiting) {
        *ret_waiting = c->waiting;
    }
    kedgei_pool_unlock(c->pool);
}

void kedge_committer_stop(struct kedge_committer *c)
{
    if (!c) {
        return;
    }
    kedgei_pool_lock(c->pool);
    c->stopping = true;
    c->is_flushed = false;
    call_turn(c);
    while (!c->is_over) {
        kedgei_pool_wait(c->pool);
    }
    kedgei_pool_unlock(c->pool);
    if (c->owns_pool) {
        kedge_commit_pool_free(c->pool);
    }
    kedge_mem_free(c);
}
