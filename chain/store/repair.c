/* Builds a damaged log anew beside itself with the help of another copy of it, a replica or a backup. The
 * rule is that nothing is believed that the log's own key did not sign: the copy is verified whole, the
 * size that must come out is the largest that is known to be signed, and the built store is opened and
 * checked like any other before it takes the damaged one's place. Until that instant nothing of the
 * folder is changed. */
#include "chain/store/repair.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "chain/log/checkpoint.h"
#include "chain/store/blob/guard.h"
#include "chain/store/repair_impl.h"
#include "common/base/os/clock.h"
#include "common/base/try.h"

enum { CHECK_TIMEOUT_LEAST_MS = 60000, BYTES_PER_MS = 2 << 10 };

/* ---- the other copy ---- */

static int open_copy(const struct kedge_repair *r, struct kedge_kv **ret_kv, struct kedge_ledger **ret,
                     struct kedge_diag *d)
{
    static const struct kedge_kv_lmdb_options options = {.read_only = true, .no_lock = true};
    struct kedge_ledger_options ledger = {.origin = r->origin, .public_key = &r->key->public};
    char path[KEDGE_PATH_MAX];
    int err = kedge_path_join(path, r->from, "ledger.lmdb");
    err = err ? kedge_diag_set(d, err, "%s: path too long", r->from)
              : kedge_kv_lmdb_open(path, &options, ret_kv, d);
    if (!err) {
        err = kedge_ledger_open(*ret_kv, &ledger, ret, d);
        if (err) {
            kedge_kv_close(*ret_kv);
        }
    }
    return err;
}

/* A replica or backup is a file of unknown quality as well, and LMDB maps it: damage there must not kill
 * the repair. */
static int check_in_child(void *arg, struct kedge_buf *ret_out, struct kedge_diag *d)
{
    const struct kedge_repair *r = arg;
    struct kedge_kv *kv;
    struct kedge_ledger *l;
    (void)ret_out;
    KEDGE_TRY(open_copy(r, &kv, &l, d));
    int err = kedge_ledger_check(l, NULL, NULL, d);
    kedge_ledger_close(l);
    kedge_kv_close(kv);
    return err;
}

/* Behind this it may be read without a child. The time grows with the file, because a check that was cut
 * off would refuse a good copy; it is bounded all the same, since a damaged tree can lead in a circle. */
static int check_copy(const struct kedge_repair *r, struct kedge_diag *reterr)
{
    struct kedge_diag d = {.text = ""};
    char path[KEDGE_PATH_MAX];
    int64_t size = kedge_path_join(path, r->from, "ledger.lmdb/data.mdb") ? 0 : kedge_file_size(path);
    int64_t ms = CHECK_TIMEOUT_LEAST_MS + (size > 0 ? size / BYTES_PER_MS : 0);
    int err = kedge_store_guarded(check_in_child, (void *)(uintptr_t)r, ms < INT32_MAX ? (uint32_t)ms : 0,
                                  NULL, &d);
    if (err == KEDGE_E_CORRUPT) {
        (void)kedge_diag_set(reterr, err, "%s: this copy is damaged itself: %s", r->from, d.text);
        (void)kedge_diag_hint(reterr, "name another replica or backup; nothing was changed");
    } else if (err && reterr) {
        *reterr = d;
        if (!d.hint[0] || err == KEDGE_E_STATE || err == KEDGE_E_NOT_FOUND) {
            (void)kedge_diag_hint(reterr, "name a replica or backup of this very log; nothing was changed");
        }
    }
    return err;
}

/* ---- what must come out ---- */

static int refuse(struct kedge_diag *d, int err, const struct kedge_repair *r, const char *format, ...)
    KEDGE_PRINTF(4, 5);
static int refuse(struct kedge_diag *d, int err, const struct kedge_repair *r, const char *format, ...)
{
    char text[KEDGE_DIAG_TEXT_MAX / 2];
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    (void)kedge_diag_set(d, err, "%s: %s", r->from, text);
    (void)kedge_diag_hint(d, err == KEDGE_E_FORK
                                 ? "two histories of one log exist: keep both folders as evidence"
                                 : "name another replica or backup; nothing was changed");
    return err;
}

/* Without a mark nothing tells that the copy is not older than what was once signed, and building from an
 * old copy would fork the log with the next signature. Only the operator can know, so only the option
 * says so. */
static int read_mark(const struct kedge_repair *r, struct kedgei_rebuild *b, struct kedge_diag *reterr)
{
    struct kedgei_high_water *ret = &b->goal;
    int err = kedgei_high_water_read(r->mark, r->origin, ret, reterr);
    if (r->mark_is_lost && (err == KEDGE_E_NOT_FOUND || err == KEDGE_E_CORRUPT)) {
        *ret = (struct kedgei_high_water){0};
        b->mark_is_void = true;
        kedge_merkle_empty_root(&ret->root);
        return KEDGE_OK;
    }
    if (err == KEDGE_E_NOT_FOUND || err == KEDGE_E_CORRUPT) {
        (void)kedge_diag_set(
            reterr, KEDGE_E_CORRUPT,
            "%s: the mark of the largest size that was signed is %s, so nothing here tells whether "
            "the copy is old",
            r->mark, err == KEDGE_E_CORRUPT ? "damaged" : "missing");
        (void)kedge_diag_hint(reterr,
                              "restore the file, or say --mark-lost when you are sure that no larger size "
                              "than the copy's was ever signed");
        return KEDGE_E_CORRUPT;
    }
    return err;
}

/* The size to build and its root: the largest of the mark's, the copy's newest checkpoint's, and that of
 * any checkpoint which the damaged store still has. The root is known to have been signed: a checkpoint
 * of the copy is checked, one from here verified, and a mark is written with its signature. To build less
 * than the largest signed size would make the log shorter than what sites and witnesses hold receipts of.
 * A copy that contradicts the mark at its size is another history: it is refused as a fork, and both
 * folders are evidence. */
static int choose(const struct kedge_repair *r, struct kedge_ledger *copy, struct kedgei_rebuild *b,
                  struct kedge_diag *reterr)
{
    uint64_t size = kedge_ledger_size(copy), signed_size = 0;
    struct kedge_hash root;
    int err = read_mark(r, b, reterr);
    if (err) {
        return err;
    }
    if (b->goal.size <= size) {
        err = kedge_ledger_root(copy, b->goal.size, &root);
        if (!err && !kedge_hash_eq(&root, &b->goal.root)) {
            return refuse(reterr, KEDGE_E_FORK, r,
                          "this copy has another root at size %llu than was signed here before (%s)",
                          (unsigned long long)b->goal.size, r->mark);
        }
    }
    int none = kedge_ledger_checkpoint(copy, NULL, &signed_size);
    if (!err) {
        err = none == KEDGE_E_NOT_FOUND ? KEDGE_OK : none;
    }
    if (!err && signed_size > b->goal.size) {
        b->goal.size = signed_size;
        err = kedge_ledger_root(copy, signed_size, &b->goal.root);
    }
    if (!err) {
        err = kedgei_rebuild_raise(b);
    }
    return err ? kedge_diag_set(reterr, err, "%s: %s", r->from, kedge_strerror(err)) : KEDGE_OK;
}

/* ---- putting it in place ---- */

#ifndef RENAME_EXCHANGE
#define RENAME_EXCHANGE 2
#endif

static int fail(struct kedge_diag *d, const char *what, const char *path)
{
    int e = errno;
    return kedge_diag_set(d, kedge_errno(e), "%s: cannot %s: %s", path, what, strerror(e));
}

/* The new store gets the old one's place and the old one the name `aside`, at one instant where the file
 * system can do that, else at two, between which there is no store and none is made. The damaged store is
 * never deleted: it is what an investigation needs, and what a second attempt takes entries from. The
 * folder is synced last, so after a power cut either name is the old or the new store. */
static int swap(const struct kedge_repair *r, const char *built, const char *store,
                struct kedge_repaired *ret, struct kedge_diag *reterr)
{
    char name[64];
    snprintf(name, sizeof name, "ledger.lmdb.damaged-%llu", (unsigned long long)kedge_os_unix_ms());
    int err = kedge_path_join(ret->aside, r->dir, name);
    if (err) {
        return kedge_diag_set(reterr, err, "%s: path too long", r->dir);
    }
    if (!kedge_file_exists(store)) {
        ret->aside[0] = '\0';
        if (rename(built, store) != 0) {
            return fail(reterr, "rename", built);
        }
    } else {
        if (rename(built, ret->aside) != 0) {
            return fail(reterr, "rename", built);
        }
        if (renameat2(AT_FDCWD, ret->aside, AT_FDCWD, store, RENAME_EXCHANGE) != 0) {
            char old[KEDGE_PATH_MAX + 8];
            snprintf(old, sizeof old, "%s.old", ret->aside);
            if (rename(store, old) != 0 || rename(ret->aside, store) != 0 || rename(old, ret->aside) != 0) {
                return fail(reterr, "rename", store);
            }
        }
    }
    err = kedge_dir_sync(r->dir);
    return err ? kedge_diag_set(reterr, err, "%s: cannot sync the folder", r->dir) : KEDGE_OK;
}

/* The new store as the coordinator will open it, and whole. Opened with the signing key and the mark, as
 * the coordinator will, so a result that the coordinator would refuse never gets the ledger's name. */
static int check_built(const struct kedge_repair *r, const char *built, struct kedge_diag *reterr)
{
    struct kedge_kv_lmdb_options options = {.create = false};
    struct kedge_ledger_options ledger = {
        .origin = r->origin, .key = r->key, .high_water_path = r->mark, .adopt_high_water = r->mark_is_lost};
    struct kedge_kv *kv;
    struct kedge_ledger *l;
    KEDGE_TRY(kedge_kv_lmdb_open(built, &options, &kv, reterr));
    int err = kedge_ledger_open(kv, &ledger, &l, reterr);
    if (!err) {
        err = kedge_ledger_check(l, NULL, NULL, reterr);
        kedge_ledger_close(l);
    }
    kedge_kv_close(kv);
    return err ? err : kedge_dir_sync(built);
}

/* The first walk proves that the entries make the signed root, before a byte is written; only then the
 * second builds. A void mark is removed here, after the check, so that a repair which fails leaves the
 * folder as it was. */
static int build_beside(const struct kedge_repair *r, struct kedgei_rebuild *b, const char *built,
                        struct kedge_diag *reterr)
{
    KEDGE_TRY(choose(r, b->copy, b, reterr));
    KEDGE_TRY(kedgei_rebuild_check(b, reterr));
    KEDGE_TRY(kedge_dir_remove(built)); /* of a repair that was interrupted */
    KEDGE_TRY(kedgei_rebuild_into(b, built, reterr));
    if (b->mark_is_void && unlink(r->mark) != 0 && errno != ENOENT) {
        return fail(reterr, "remove", r->mark); /* what says nothing goes; the new ledger makes its own */
    }
    return check_built(r, built, reterr);
}

static int build(const struct kedge_repair *r, const char *store, struct kedge_repaired *ret,
                 struct kedge_diag *reterr)
{
    struct kedgei_rebuild b = {.r = r, .store = store};
    struct kedge_kv *kv;
    char built[KEDGE_PATH_MAX];
    int err = kedge_path_join(built, r->dir, "ledger.lmdb.building");
    err = err ? kedge_diag_set(reterr, err, "%s: path too long", r->dir) : open_copy(r, &kv, &b.copy, reterr);
    if (err) {
        return err;
    }
    err = build_beside(r, &b, built, reterr);
    kedge_ledger_close(b.copy);
    kedge_kv_close(kv);
    if (err) {
        (void)!kedge_dir_remove(built);
        return err;
    }
    ret->size = b.goal.size;
    ret->from_here = b.from_here;
    return swap(r, built, store, ret, reterr);
}

/* The lock is the coordinator's own. Without it a running coordinator would go on writing to the file
 * that is being renamed. */
int kedge_repair_ledger(const struct kedge_repair *r, struct kedge_repaired *ret, struct kedge_diag *reterr)
{
    char store[KEDGE_PATH_MAX], lock[KEDGE_PATH_MAX];
    int lock_fd = -1;
    *ret = (struct kedge_repaired){0};
    int err = kedge_path_join(store, r->dir, "ledger.lmdb");
    if (!err) {
        err = kedge_path_join(lock, store, "kedge.lock");
    }
    if (err) {
        return kedge_diag_set(reterr, err, "%s: path too long", r->dir);
    }
    if (kedge_file_exists(store)) {
        lock_fd = kedge_file_lock(lock, reterr);
        if (lock_fd < 0) {
            return lock_fd == KEDGE_E_LOCKED
                       ? kedge_diag_wrap(reterr, lock_fd, "%s is in use: stop the coordinator first", store)
                       : lock_fd;
        }
    }
    err = check_copy(r, reterr);
    if (!err) {
        err = build(r, store, ret, reterr);
    }
    if (lock_fd >= 0) {
        close(lock_fd);
    }
    return err;
}
