/* The store on LMDB 0.9, the one file that knows it. What is done to be safe with it
 * (LMDB's own documentation and CHANGES, and measurements in docs/modules/store.md):
 *  - default sync mode: NOMETASYNC loses acknowledged commits at power loss, NOSYNC the whole file, and
 *    WRITEMAP dies with SIGBUS when the disk is full;
 *  - MDB_NOTLS, so that read transactions do not bind to threads; no DUPSORT, no deletes through cursors;
 *  - never the same environment twice in one process (a registry) nor by two writers (a lock file);
 *  - a sparse map that grows while no transaction is open in this process;
 *  - of the stores that are open on demand a bounded number has an environment (kv_seats.h);
 *  - lengths and the rise of keys are checked before anybody reads what LMDB returns, without a checksum;
 *  - after a commit failed with EIO nothing is written until reopen; a full disk also shows as EIO (short
 *    write), so free space is looked at to tell them apart;
 *  - what its file holds besides the newest state is overwritten at close (kv_lmdb_scrub.c). */
#include <errno.h>
#include <lmdb.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

#include "chain/store/kv/kv_dir.h"
#include "chain/store/kv/kv_impl.h"
#include "chain/store/kv/kv_lmdb_file.h"
#include "chain/store/kv/kv_lmdb_span.h"
#include "chain/store/kv/kv_seats.h"
#include "chain/store/kv/kv_together.h"
#include "common/base/mem.h"
#include "common/base/try.h"

_Static_assert(sizeof(size_t) == 8, "the map needs a 64-bit address space");

enum { READERS_DEFAULT = 510 };
#define MAP_DEFAULT (UINT64_C(64) << 30)
#define MAP_MAX_DEFAULT (UINT64_C(1) << 40)

struct lmdb_kv {
    struct kedge_kv base;
    struct kedgei_kv_dir dir;
    struct kedge_kv_lmdb_options options;
    MDB_env *env; /* NULL after a reopen that failed, and while it is resting */
    MDB_dbi tables[KEDGE_KV_TABLES];
    bool present[KEDGE_KV_TABLES];
    pthread_mutex_t mutex; /* guards open, failed, is_resting, and changes of env */
    unsigned open;         /* transactions */
    bool failed;
    bool is_resting; /* without an environment until it is needed */
    bool has_tables; /* all of them are in the file */
    struct kedgei_kv_seat seat;
    struct kedgei_lmdb_span span; /* read by transactions that have ended; the mutex guards it, too */
};

struct lmdb_tx {
    struct kedge_kv_tx base;
    MDB_txn *txn;
    struct kedgei_lmdb_span span; /* read_only: what it has read */
};

/* LMDB's codes in ours. An input/output error on a full file system is told apart by looking: a short write
 * shows as EIO, and it needs room, not a new disk. */
static int map_error(const struct lmdb_kv *kv, int rc)
{
    switch (rc) {
    case MDB_SUCCESS:
        return KEDGE_OK;
    case MDB_NOTFOUND:
        return KEDGE_E_NOT_FOUND;
    case MDB_KEYEXIST:
        return KEDGE_E_EXISTS;
    case MDB_MAP_FULL:
    case EFBIG:
        return KEDGE_E_DISK_FULL;
    case MDB_TXN_FULL:
        return KEDGE_E_FULL;
    case MDB_READERS_FULL:
    case EAGAIN:
        return KEDGE_E_BUSY;
    case MDB_PANIC: /* a meta page could not be written */
        return KEDGE_E_IO;
    case MDB_PAGE_NOTFOUND:
    case MDB_CORRUPTED:
    case MDB_VERSION_MISMATCH:
    case MDB_INVALID:
    case MDB_CURSOR_FULL:
    case MDB_PAGE_FULL:
    case MDB_INCOMPATIBLE:
    case MDB_BAD_DBI:
    case MDB_BAD_TXN:
        return KEDGE_E_CORRUPT;
    case MDB_BAD_VALSIZE:
        return KEDGE_E_ARG;
    case EIO:
        return kedgei_kv_dir_is_full(&kv->dir) ? KEDGE_E_DISK_FULL : KEDGE_E_IO;
    default:
        return rc > 0 ? kedge_errno(rc) : KEDGE_E_CORRUPT;
    }
}

static int fail(const struct lmdb_kv *kv, int rc, const char *what, struct kedge_diag *reterr)
{
    int err = map_error(kv, rc);
    kedge_diag_set(reterr, err, "%s: cannot %s: %s (%s)", kv->dir.path, what, kedge_strerror(err),
                   mdb_strerror(rc));
    if (err == KEDGE_E_DISK_FULL) {
        kedge_diag_hint(reterr, "free space on this file system, then try again; nothing was changed");
    } else if (err == KEDGE_E_CORRUPT) {
        kedge_diag_hint(reterr, "the folder is damaged or not a store; run kedge audit verify on a copy");
    }
    return err;
}

/* Opens every table; a writer makes those that are missing, a reader takes them as empty. Tables that
 * LMDB has no name for are empty to a reader: a store that an older program made has fewer of them. */
static int open_tables(struct lmdb_kv *kv)
{
    MDB_txn *txn;
    bool read_only = kv->base.read_only || kv->has_tables; /* a writer's transaction would touch its lists */
    int rc = mdb_txn_begin(kv->env, NULL, read_only ? MDB_RDONLY : 0, &txn);
    if (rc) {
        return rc;
    }
    for (unsigned i = 0; i < KEDGE_KV_TABLES; i++) {
        const char *name = kedge_kv_table_name((enum kedge_kv_table)i);
        rc = mdb_dbi_open(txn, name, read_only ? 0 : MDB_CREATE, &kv->tables[i]);
        kv->present[i] = rc == MDB_SUCCESS;
        if (rc && !(kv->base.read_only && rc == MDB_NOTFOUND)) {
            mdb_txn_abort(txn);
            return rc == MDB_NOTFOUND ? MDB_CORRUPTED : rc; /* they were there */
        }
    }
    rc = mdb_txn_commit(txn); /* also for reading: an abort would close the tables */
    kv->has_tables = !rc && !kv->base.read_only;
    return rc;
}

static unsigned env_flags(const struct lmdb_kv *kv)
{
    unsigned flags = MDB_NOTLS;
    if (kv->base.read_only) {
        flags |= MDB_RDONLY;
        if (kv->options.no_lock || !kedgei_kv_dir_can_lock(&kv->dir)) {
            flags |= MDB_NOLOCK;
        }
    } else if (kv->options.unsafe_no_sync) {
        flags |= MDB_NOSYNC;
    }
    return flags;
}

/* The map is at least twice the file, so that a store does not have to grow it soon. Growing needs a
 * moment without transactions (grow_map). Slots of readers that were killed are freed first, because the
 * oldest reader decides which freed pages may be used again: a dead one would make the file grow for
 * ever. For a folder that nobody writes to, the two first pages are then checked against each other
 * (kv_lmdb_meta.c). */
static int open_env(struct lmdb_kv *kv, struct kedge_diag *reterr)
{
    int rc = mdb_env_create(&kv->env);
    if (rc) {
        kv->env = NULL;
        return fail(kv, rc, "prepare the store", reterr);
    }
    uint64_t map = kv->options.map_bytes;
    int64_t size = kedgei_kv_dir_file_size(&kv->dir);
    while (size > 0 && map < (uint64_t)size * 2 && map < kv->options.map_bytes_max) {
        map *= 2;
    }
    rc = mdb_env_set_maxdbs(kv->env, KEDGE_KV_TABLES);
    rc = rc ? rc : mdb_env_set_maxreaders(kv->env, kv->options.readers_max);
    rc = rc || kv->base.read_only ? rc : mdb_env_set_mapsize(kv->env, map);
    kedgei_kv_opening(!kv->base.read_only, true);
    rc = rc ? rc : mdb_env_open(kv->env, kv->dir.path, env_flags(kv), 0600);
    kedgei_kv_opening(!kv->base.read_only, false);
    if (!rc && !(env_flags(kv) & MDB_NOLOCK)) {
        int dead;
        rc = mdb_reader_check(kv->env, &dead); /* slots of readers that were killed pin old pages */
    }
    rc = rc ? rc : open_tables(kv);
    int err = rc ? fail(kv, rc, "open the store", reterr) : KEDGE_OK;
    if (!err && kv->base.read_only && kv->options.no_lock) { /* nobody writes, so the file says one thing */
        err = kedgei_lmdb_check_newest(kv->dir.path, reterr);
    }
    if (err) {
        mdb_env_close(kv->env);
        kv->env = NULL;
        return err;
    }
    kv->failed = false;
    kv->span = (struct kedgei_lmdb_span){.bytes = 0}; /* it was of another map */
    return KEDGE_OK;
}

/* Grows the map while that is possible; the mutex is held. LMDB forbids to move the map while a
 * transaction of this process uses it. So it is grown early, at three quarters, by the first transaction that
 * finds or leaves no other; where none comes, the map serves until it is full and the error says so. */
static void grow_map(struct lmdb_kv *kv)
{
    MDB_envinfo info;
    MDB_stat stat_;
    if (kv->open > 0 || !kv->env || kv->base.read_only || mdb_env_info(kv->env, &info)
        || mdb_env_stat(kv->env, &stat_)) {
        return;
    }
    if (((uint64_t)info.me_last_pgno + 1) * stat_.ms_psize > info.me_mapsize / 4 * 3
        && info.me_mapsize < kv->options.map_bytes_max) {
        uint64_t more = (uint64_t)info.me_mapsize * 2;
        more = more < kv->options.map_bytes_max ? more : kv->options.map_bytes_max;
        (void)mdb_env_set_mapsize(kv->env, more); /* when it fails the old map serves on, until it is full */
    }
}

/* An environment costs memory and descriptors whether it is used or not. One that rests keeps its place in
 * the registry and its lock, so nobody else opens the store meanwhile, and nothing of it has to be written
 * when it goes: each commit was durable by itself. */

static int wake(struct lmdb_kv *kv, struct kedge_diag *reterr)
{
    int err = kedgei_kv_dir_is_there(&kv->dir, reterr);
    err = err ? err : open_env(kv, reterr);
    kv->is_resting = err != KEDGE_OK;
    return err;
}

static int take_seat_and_wake(struct lmdb_kv *kv, struct kedge_diag *reterr)
{
    kedgei_kv_seat_take(&kv->seat); /* it keeps it after an error: the next one asks again */
    return wake(kv, reterr);
}

/* For the seats. Where its mutex is held somebody uses it, or waits for a seat. */
static bool rest(struct kedgei_kv_seat *seat)
{
    struct lmdb_kv *kv = (struct lmdb_kv *)(void *)((char *)seat - offsetof(struct lmdb_kv, seat));
    if (pthread_mutex_trylock(&kv->mutex) != 0) {
        return false;
    }
    bool can = kv->open == 0 && kv->env && !kv->failed;
    if (can) {
        mdb_env_close(kv->env);
        kv->env = NULL;
        kv->is_resting = true;
    }
    pthread_mutex_unlock(&kv->mutex);
    return can;
}

/* When another process has grown the file, LMDB refuses until this process has adopted the new size, which
 * it may only do while none of its own transactions are open. */
static int begin_txn(struct lmdb_kv *kv, bool write, MDB_txn **ret)
{
    int rc = mdb_txn_begin(kv->env, NULL, write ? 0 : MDB_RDONLY, ret);
    if (rc != MDB_MAP_RESIZED) {
        return rc;
    }
    pthread_mutex_lock(&kv->mutex); /* another process has grown the file: adopt its size */
    rc = kv->open > 1 ? EAGAIN : mdb_env_set_mapsize(kv->env, 0);
    pthread_mutex_unlock(&kv->mutex);
    return rc ? rc : mdb_txn_begin(kv->env, NULL, write ? 0 : MDB_RDONLY, ret);
}

/* `failed` stays set until reopen: after a commit whose result is unknown LMDB's memory and its file may
 * differ, and a further commit on it could write over pages that the file still needs. */
static void end_tx(struct lmdb_tx *tx, bool has_failed)
{
    struct lmdb_kv *kv = (struct lmdb_kv *)tx->base.kv;
    pthread_mutex_lock(&kv->mutex);
    kv->open--;
    kv->failed = kv->failed || has_failed;
    kedgei_lmdb_span_join(&kv->span, &tx->span);
    grow_map(kv);
    pthread_mutex_unlock(&kv->mutex);
    kedge_mem_free(tx);
}

/* The count of open transactions is raised before LMDB is asked, under the mutex that grow_map, rest and
 * reopen look under; so the map cannot move between here and the first read. */
static int enter(struct lmdb_kv *kv, bool write, struct kedge_diag *reterr)
{
    pthread_mutex_lock(&kv->mutex);
    int err = kv->is_resting ? take_seat_and_wake(kv, reterr) : KEDGE_OK;
    if (!err && (!kv->env || (write && kv->failed))) {
        err = kedge_diag_set(reterr, KEDGE_E_IO, "%s: a former write failed; reopen the store", kv->dir.path);
        kedge_diag_hint(reterr, "check the disk (dmesg), then restart");
    }
    if (!err && write) {
        grow_map(kv);
    }
    kv->open += err ? 0 : 1;
    pthread_mutex_unlock(&kv->mutex);
    return err;
}

static int lmdb_begin(struct kedge_kv *base, bool write, struct kedge_kv_tx **ret_tx,
                      struct kedge_diag *reterr)
{
    struct lmdb_kv *kv = (struct lmdb_kv *)base;
    struct lmdb_tx *tx = kedge_mem_new(1, sizeof *tx);
    if (!tx) {
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "%s: cannot begin a transaction: out of memory",
                              kv->dir.path);
    }
    tx->base = (struct kedge_kv_tx){base, write};
    int err = enter(kv, write, reterr);
    if (err) {
        kedge_mem_free(tx);
        return err;
    }
    kedgei_kv_seat_use(&kv->seat);
    int rc = begin_txn(kv, write, &tx->txn);
    if (rc) {
        end_tx(tx, false);
        return fail(kv, rc, "begin a transaction", reterr);
    }
    *ret_tx = &tx->base;
    return KEDGE_OK;
}

/* A full disk, no memory and too large a transaction leave the former state whole, and LMDB drops the
 * transaction: the handle stays in use. */
static int lmdb_commit(struct kedge_kv_tx *base, struct kedge_diag *reterr)
{
    struct lmdb_tx *tx = (struct lmdb_tx *)base;
    struct lmdb_kv *kv = (struct lmdb_kv *)base->kv;
    int rc = mdb_txn_commit(tx->txn);
    int err = rc ? fail(kv, rc, "commit", reterr) : KEDGE_OK;
    end_tx(tx, err && err != KEDGE_E_DISK_FULL && err != KEDGE_E_NOMEM && err != KEDGE_E_FULL);
    return err;
}

static void lmdb_abort(struct kedge_kv_tx *base)
{
    struct lmdb_tx *tx = (struct lmdb_tx *)base;
    mdb_txn_abort(tx->txn);
    end_tx(tx, false);
}

/* ---- records ---- */

static MDB_val to_val(struct kedge_view v)
{
    return (MDB_val){.mv_size = v.len, .mv_data = (void *)(uintptr_t)v.ptr};
}

/* A damaged length must not make a caller read far; whether the bytes are the right ones is for hashes to
 * say. */
static bool is_sane(const MDB_val *v, size_t max)
{
    return v->mv_size <= max && (v->mv_size == 0 || v->mv_data);
}

static MDB_dbi dbi_of(const struct kedge_kv_tx *tx, enum kedge_kv_table table)
{
    return ((const struct lmdb_kv *)tx->kv)->tables[table];
}

static bool is_present(const struct kedge_kv_tx *tx, enum kedge_kv_table table)
{
    return ((const struct lmdb_kv *)tx->kv)->present[table];
}

/* APPEND puts the record behind the last key without searching, which fills pages to the brim; it fails
 * if the key does not rise, so a gap or a repetition in the log is noticed here. */
static int lmdb_put(struct kedge_kv_tx *base, enum kedge_kv_table table, struct kedge_view key,
                    struct kedge_view value, enum kedge_kv_put_mode mode)
{
    static const unsigned flags[] = {
        [KEDGE_KV_PUT] = 0,
        [KEDGE_KV_PUT_IF_ABSENT] = MDB_NOOVERWRITE,
        [KEDGE_KV_APPEND] = MDB_APPEND | MDB_NOOVERWRITE,
    };
    MDB_val k = to_val(key), v = to_val(value);
    return map_error((const struct lmdb_kv *)base->kv,
                     mdb_put(((struct lmdb_tx *)base)->txn, dbi_of(base, table), &k, &v, flags[mode]));
}

static int lmdb_del(struct kedge_kv_tx *base, enum kedge_kv_table table, struct kedge_view key)
{
    MDB_val k = to_val(key);
    return map_error((const struct lmdb_kv *)base->kv,
                     mdb_del(((struct lmdb_tx *)base)->txn, dbi_of(base, table), &k, NULL));
}

/* The bytes are LMDB's own map, valid until the transaction ends. A read-only process counts what it has
 * touched and gives it back to the kernel from time to time (kv_lmdb_span.h). */
static int lmdb_peek(struct kedge_kv_tx *base, enum kedge_kv_table table, struct kedge_view key,
                     struct kedge_view *ret)
{
    struct lmdb_tx *tx = (struct lmdb_tx *)base;
    if (!is_present(base, table)) {
        return KEDGE_E_NOT_FOUND;
    }
    MDB_val k = to_val(key), v;
    int err = map_error((const struct lmdb_kv *)base->kv, mdb_get(tx->txn, dbi_of(base, table), &k, &v));
    if (err || !is_sane(&v, KEDGE_KV_VALUE_MAX)) {
        return err ? err : KEDGE_E_CORRUPT;
    }
    kedgei_lmdb_span_add(&tx->span, v.mv_data, base->kv->read_only ? v.mv_size : 0);
    *ret = kedge_view_of(v.mv_data, v.mv_size);
    return KEDGE_OK;
}

static int lmdb_last(struct kedge_kv_tx *base, enum kedge_kv_table table, struct kedge_view *ret_key,
                     struct kedge_view *ret_value)
{
    const struct lmdb_tx *tx = (const struct lmdb_tx *)base;
    const struct lmdb_kv *kv = (const struct lmdb_kv *)base->kv;
    if (!is_present(base, table)) {
        return KEDGE_E_NOT_FOUND;
    }
    MDB_cursor *cursor;
    int rc = mdb_cursor_open(tx->txn, dbi_of(base, table), &cursor);
    if (rc) {
        return map_error(kv, rc);
    }
    MDB_val k, v;
    rc = mdb_cursor_get(cursor, &k, &v, MDB_LAST);
    mdb_cursor_close(cursor);
    if (rc || k.mv_size == 0 || !is_sane(&k, KEDGE_KV_KEY_MAX) || !is_sane(&v, KEDGE_KV_VALUE_MAX)) {
        return rc ? map_error(kv, rc) : KEDGE_E_CORRUPT;
    }
    *ret_key = kedge_view_of(k.mv_data, k.mv_size);
    *ret_value = kedge_view_of(v.mv_data, v.mv_size);
    return KEDGE_OK;
}

/* The loop ends on a damaged tree as well: keys must rise, and there are finitely many. A damaged branch
 * page can lead back to an earlier leaf; without this test a scan would never end. The prefix ends the
 * scan, so no page beyond it is read. */
static int scan_cursor(struct lmdb_tx *tx, MDB_cursor *cursor, struct kedge_view prefix,
                       struct kedge_view start, kedge_kv_visit *visit, void *arg)
{
    uint8_t before[KEDGE_KV_KEY_MAX];
    size_t before_len = 0;
    MDB_val k = to_val(start), v;
    int rc = mdb_cursor_get(cursor, &k, &v, start.len > 0 ? MDB_SET_RANGE : MDB_FIRST);
    for (; rc == MDB_SUCCESS; rc = mdb_cursor_get(cursor, &k, &v, MDB_NEXT)) {
        if (k.mv_size == 0 || !is_sane(&k, KEDGE_KV_KEY_MAX) || !is_sane(&v, KEDGE_KV_VALUE_MAX)) {
            return KEDGE_E_CORRUPT;
        }
        struct kedge_view key = kedge_view_of(k.mv_data, k.mv_size);
        if (kedgei_kv_compare(kedge_view_of(before, before_len), key) >= 0) {
            return KEDGE_E_CORRUPT;
        }
        if (!kedgei_kv_has_prefix(key, prefix)) {
            return KEDGE_OK;
        }
        memcpy(before, key.ptr, key.len);
        before_len = key.len;
        kedgei_lmdb_span_add(&tx->span, v.mv_data, tx->base.kv->read_only ? v.mv_size : 0);
        KEDGE_TRY(visit(arg, key, kedge_view_of(v.mv_data, v.mv_size)));
    }
    return rc == MDB_NOTFOUND ? KEDGE_OK : map_error((const struct lmdb_kv *)tx->base.kv, rc);
}

static int lmdb_scan(struct kedge_kv_tx *base, enum kedge_kv_table table, struct kedge_view prefix,
                     struct kedge_view from, kedge_kv_visit *visit, void *arg)
{
    struct lmdb_tx *tx = (struct lmdb_tx *)base;
    if (!is_present(base, table)) {
        return KEDGE_OK;
    }
    MDB_cursor *cursor;
    int rc = mdb_cursor_open(tx->txn, dbi_of(base, table), &cursor);
    if (rc) {
        return map_error((const struct lmdb_kv *)base->kv, rc);
    }
    struct kedge_view start = kedgei_kv_compare(prefix, from) < 0 ? from : prefix;
    int err = scan_cursor(tx, cursor, prefix, start, visit, arg);
    mdb_cursor_close(cursor);
    return err;
}

static int lmdb_count(struct kedge_kv_tx *base, enum kedge_kv_table table, uint64_t *ret_count)
{
    MDB_stat stat_ = {.ms_entries = 0};
    int rc =
        is_present(base, table) ? mdb_stat(((struct lmdb_tx *)base)->txn, dbi_of(base, table), &stat_) : 0;
    *ret_count = rc ? *ret_count : stat_.ms_entries;
    return map_error((const struct lmdb_kv *)base->kv, rc);
}

bool kedgei_lmdb_layout_known(const char **ret_version)
{
    int major = -1, minor = -1;
    *ret_version = mdb_version(&major, &minor, NULL);
    return major == 0 && minor == 9;
}

uint64_t kedgei_lmdb_number_of(struct kedge_kv_tx *tx)
{
    return mdb_txn_id(((struct lmdb_tx *)tx)->txn);
}

/* ---- life ---- */

static int lmdb_reopen(struct kedge_kv *base, struct kedge_diag *reterr)
{
    struct lmdb_kv *kv = (struct lmdb_kv *)base;
    pthread_mutex_lock(&kv->mutex);
    int err =
        kv->open > 0 ? kedge_diag_set(reterr, KEDGE_E_BUSY, "%s: transactions are open", kv->dir.path) : 0;
    if (!err) {
        mdb_env_close(kv->env); /* NULL is fine */
        kv->env = NULL;
        kv->is_resting = kv->has_tables = false;
        if (kv->options.on_demand) {
            kedgei_kv_seat_take(&kv->seat);
        }
        err = open_env(kv, reterr);
    }
    pthread_mutex_unlock(&kv->mutex);
    return err;
}

/* What goes wrong here is no error: the state is whole, and the next close tries again. Only where
 * everything is known to be well: no failed write, no damage noted, room on the disk, the known layout,
 * and no reader at an older state, for its pages are among those that become zeros. Dead readers are
 * removed from the table first, or one of them would keep the file uncleaned for ever. */
static void scrub(struct lmdb_kv *kv)
{
    struct kedgei_lmdb_readers readers = {.at_older = false};
    MDB_envinfo info;
    const char *version;
    int fd, dead;
    if (kv->base.read_only || kv->base.keep || kv->failed || kedgei_kv_dir_is_full(&kv->dir)
        || !kedgei_lmdb_layout_known(&version) || mdb_env_info(kv->env, &info)
        || mdb_env_get_fd(kv->env, &fd)) {
        return;
    }
    readers.newest = info.me_last_txnid;
    if (mdb_reader_check(kv->env, &dead) == 0
        && mdb_reader_list(kv->env, kedgei_lmdb_see_reader, &readers) >= 0 && !readers.at_older) {
        (void)!kedgei_lmdb_scrub(&kv->base, fd, info.me_last_txnid);
    }
}

static void lmdb_close(struct kedge_kv *base)
{
    struct lmdb_kv *kv = (struct lmdb_kv *)base;
    KEDGE_ASSERT(kv->open == 0);
    kedgei_kv_seat_give(&kv->seat); /* from here on nobody asks it to leave */
    if (kv->is_resting) {
        (void)!wake(kv, NULL); /* to be cleaned; the next close tries again */
    }
    bool in_order =
        kv->env && !kv->failed && !base->keep && !base->doubted && kedgei_synced_together(kv->dir.together);
    if (kv->env) {
        scrub(kv);
        mdb_env_close(kv->env);
    }
    kedgei_kv_dir_close(&kv->dir, in_order);
    pthread_mutex_destroy(&kv->mutex);
    kedge_mem_free(kv);
}

static const struct kedge_kv_ops lmdb_ops = {
    .begin = lmdb_begin,
    .commit = lmdb_commit,
    .abort = lmdb_abort,
    .put = lmdb_put,
    .del = lmdb_del,
    .peek = lmdb_peek,
    .last = lmdb_last,
    .scan = lmdb_scan,
    .count = lmdb_count,
    .reopen = lmdb_reopen,
    .close = lmdb_close,
};

int kedge_kv_lmdb_open(const char *dir, const struct kedge_kv_lmdb_options *options, struct kedge_kv **ret_kv,
                       struct kedge_diag *reterr)
{
    struct lmdb_kv *kv = kedge_mem_new(1, sizeof *kv);
    if (!kv) {
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "%s: out of memory", dir);
    }
    kv->options = *options;
    kv->options.map_bytes = options->map_bytes ? options->map_bytes : MAP_DEFAULT;
    kv->options.map_bytes_max = options->map_bytes_max ? options->map_bytes_max : MAP_MAX_DEFAULT;
    kv->options.readers_max = options->readers_max ? options->readers_max : READERS_DEFAULT;
    kv->base = (struct kedge_kv){.ops = &lmdb_ops, .read_only = options->read_only, .dir = &kv->dir};
    int err =
        kedgei_kv_dir_open(&kv->dir, dir, options->create, options->read_only, options->lock_wait_ms, reterr);
    if (err) {
        kedge_mem_free(kv);
        return err;
    }
    pthread_mutex_init(&kv->mutex, NULL);
    kv->seat.leave = rest;
    pthread_mutex_lock(&kv->mutex); /* with a seat it may be asked to leave */
    if (options->on_demand) {
        kedgei_kv_seat_take(&kv->seat);
    }
    err = kedgei_kv_dir_settle(&kv->dir, open_env(kv, reterr), reterr);
    pthread_mutex_unlock(&kv->mutex);
    if (err) {
        kedge_kv_doubt(&kv->base);
        lmdb_close(&kv->base);
        return err;
    }
    *ret_kv = &kv->base;
    return KEDGE_OK;
}
