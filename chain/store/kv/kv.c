/* The checks that every implementation relies on, and what can be built from its primitives. */
#include "chain/store/kv/kv.h"

#include <string.h>

#include "chain/store/kv/kv_dir.h"
#include "chain/store/kv/kv_impl.h"
#include "chain/store/kv/kv_together.h"
#include "common/base/try.h"

static const char *const table_names[KEDGE_KV_TABLES] = {
    [KEDGE_KV_ENTRY] = "entry",   [KEDGE_KV_TILE] = "tile",   [KEDGE_KV_HEAD] = "head",
    [KEDGE_KV_META] = "meta",     [KEDGE_KV_IDEM] = "idem",   [KEDGE_KV_REF] = "ref",
    [KEDGE_KV_TENANT] = "tenant", [KEDGE_KV_SITE] = "site",   [KEDGE_KV_TOKEN] = "token",
    [KEDGE_KV_JOB] = "job",       [KEDGE_KV_ROUND] = "round", [KEDGE_KV_STATE] = "state",
};

const char *kedge_kv_table_name(enum kedge_kv_table table)
{
    return (unsigned)table < KEDGE_KV_TABLES ? table_names[table] : "unknown";
}

/* LMDB's own order: by bytes, the shorter one first. The store in memory that tests use and the check of
 * scans must agree with it. */
int kedgei_kv_compare(struct kedge_view a, struct kedge_view b)
{
    size_t common = a.len < b.len ? a.len : b.len;
    int order = common ? memcmp(a.ptr, b.ptr, common) : 0;
    if (order != 0) {
        return order;
    }
    return a.len < b.len ? -1 : a.len > b.len;
}

bool kedgei_kv_has_prefix(struct kedge_view key, struct kedge_view prefix)
{
    return key.len >= prefix.len && (prefix.len == 0 || memcmp(key.ptr, prefix.ptr, prefix.len) == 0);
}

static bool is_key(struct kedge_view key)
{
    return key.ptr && key.len > 0 && key.len <= KEDGE_KV_KEY_MAX;
}

/* Damage that anybody meets makes the file evidence. Once it is noted, closing does not clean the file
 * (kv_lmdb_scrub.c): what lies on its unused bytes may tell how the damage came about. */
static int noting(struct kedge_kv *kv, int err)
{
    if (err == KEDGE_E_CORRUPT || err == KEDGE_E_FORK) {
        kedge_kv_keep(kv);
    }
    return err;
}

int kedge_kv_begin(struct kedge_kv *kv, bool write, struct kedge_kv_tx **ret_tx, struct kedge_diag *reterr)
{
    if (write && kv->read_only) {
        return kedge_diag_set(reterr, KEDGE_E_DISK_FULL, "the store is open for reading only");
    }
    if (write) {
        KEDGE_TRY(kedge_kv_changing(kv, reterr));
    }
    return noting(kv, kv->ops->begin(kv, write, ret_tx, reterr));
}

int kedge_kv_commit(struct kedge_kv_tx *tx, struct kedge_diag *reterr)
{
    KEDGE_ASSERT(tx && tx->write);
    struct kedge_kv *kv = tx->kv;
    return noting(kv, kv->ops->commit(tx, reterr));
}

void kedge_kv_abort(struct kedge_kv_tx *tx)
{
    if (tx) {
        tx->kv->ops->abort(tx);
    }
}

void kedge_kv_drop(struct kedge_kv_tx **tx)
{
    kedge_kv_abort(*tx);
}

int kedge_kv_end(struct kedge_kv_tx *tx, int err, struct kedge_diag *reterr)
{
    if (err) {
        kedge_kv_abort(tx);
        return err;
    }
    return kedge_kv_commit(tx, reterr);
}

int kedge_kv_put(struct kedge_kv_tx *tx, enum kedge_kv_table table, struct kedge_view key,
                 struct kedge_view value, enum kedge_kv_put_mode mode)
{
    KEDGE_ASSERT(tx->write && (unsigned)table < KEDGE_KV_TABLES);
    if (!is_key(key)) {
        return KEDGE_E_ARG;
    }
    if (value.len > KEDGE_KV_VALUE_MAX) {
        return KEDGE_E_TOO_LONG;
    }
    return noting(tx->kv, tx->kv->ops->put(tx, table, key, value, mode));
}

int kedge_kv_del(struct kedge_kv_tx *tx, enum kedge_kv_table table, struct kedge_view key)
{
    KEDGE_ASSERT(tx->write && (unsigned)table < KEDGE_KV_TABLES);
    return is_key(key) ? noting(tx->kv, tx->kv->ops->del(tx, table, key)) : KEDGE_E_ARG;
}

int kedge_kv_peek(struct kedge_kv_tx *tx, enum kedge_kv_table table, struct kedge_view key,
                  struct kedge_view *ret)
{
    KEDGE_ASSERT((unsigned)table < KEDGE_KV_TABLES);
    return is_key(key) ? noting(tx->kv, tx->kv->ops->peek(tx, table, key, ret)) : KEDGE_E_ARG;
}

/* Appends all of v or leaves b as it was. */
static int append_copy(struct kedge_buf *b, struct kedge_view v)
{
    int err = kedge_buf_reserve(b, v.len);
    if (err) {
        b->err = KEDGE_OK;
        return err;
    }
    if (v.len > 0) {
        kedge_buf_put(b, v.ptr, v.len);
    }
    return KEDGE_OK;
}

int kedge_kv_get(struct kedge_kv_tx *tx, enum kedge_kv_table table, struct kedge_view key,
                 struct kedge_buf *ret)
{
    struct kedge_view value;
    int err = kedge_kv_peek(tx, table, key, &value);
    return err ? err : append_copy(ret, value);
}

/* Key and value are appended together or not at all, so a caller that runs out of memory does not go on
 * with a key without its value. */
int kedge_kv_last(struct kedge_kv_tx *tx, enum kedge_kv_table table, struct kedge_buf *ret_key,
                  struct kedge_buf *ret_value)
{
    KEDGE_ASSERT((unsigned)table < KEDGE_KV_TABLES);
    struct kedge_view key, value;
    KEDGE_TRY(noting(tx->kv, tx->kv->ops->last(tx, table, &key, &value)));
    size_t start = ret_key->len;
    int err = append_copy(ret_key, key);
    if (!err && ret_value) {
        err = append_copy(ret_value, value);
        if (err) {
            ret_key->len = start;
        }
    }
    return err;
}

int kedge_kv_scan(struct kedge_kv_tx *tx, enum kedge_kv_table table, struct kedge_view prefix,
                  struct kedge_view from, kedge_kv_visit *visit, void *arg)
{
    KEDGE_ASSERT((unsigned)table < KEDGE_KV_TABLES);
    if (prefix.len > KEDGE_KV_KEY_MAX || from.len > KEDGE_KV_KEY_MAX) {
        return KEDGE_E_ARG;
    }
    return noting(tx->kv, tx->kv->ops->scan(tx, table, prefix, from, visit, arg));
}

int kedge_kv_scan_once(struct kedge_kv *kv, enum kedge_kv_table table, struct kedge_view prefix,
                       kedge_kv_visit *visit, void *arg, struct kedge_diag *reterr)
{
    struct kedge_kv_tx *tx;
    KEDGE_TRY(kedge_kv_begin(kv, false, &tx, reterr));
    int err = kedge_kv_scan(tx, table, prefix, kedge_view_of(NULL, 0), visit, arg);
    kedge_kv_abort(tx);
    return err;
}

int kedge_kv_count(struct kedge_kv_tx *tx, enum kedge_kv_table table, uint64_t *ret_count)
{
    KEDGE_ASSERT((unsigned)table < KEDGE_KV_TABLES);
    return noting(tx->kv, tx->kv->ops->count(tx, table, ret_count));
}

int kedge_kv_reopen(struct kedge_kv *kv, struct kedge_diag *reterr)
{
    return noting(kv, kv->ops->reopen(kv, reterr));
}

bool kedge_kv_was_closed(const struct kedge_kv *kv)
{
    return kv->dir && kv->dir->was_closed;
}

int kedge_kv_changing(struct kedge_kv *kv, struct kedge_diag *reterr)
{
    return kv->dir ? kedgei_kv_dir_changing(kv->dir, reterr) : KEDGE_OK;
}

bool kedge_kv_sync_together(struct kedge_kv *kv, const char *path)
{
    const unsigned together = kv->dir ? kedgei_sync_together(path) : 0;
    if (together) {
        kv->dir->together = together;
    }
    return together != 0;
}

void kedge_kv_doubt(struct kedge_kv *kv)
{
    atomic_store(&kv->doubted, true);
}

void kedge_kv_keep(struct kedge_kv *kv)
{
    atomic_store(&kv->keep, true);
}

void kedge_kv_close(struct kedge_kv *kv)
{
    if (kv) {
        kv->ops->close(kv);
    }
}

bool kedge_kv_is_read_only(const struct kedge_kv *kv)
{
    return kv->read_only;
}
