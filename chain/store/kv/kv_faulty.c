/* The misbehaving wrapper: everything passes through to the inner store until the ordered fault is due.
 * Whatever it reports as KEDGE_E_IO makes it refuse to write until reopened, as a real store does. */
#include <string.h>

#include "chain/store/kv/kv_impl.h"
#include "common/base/mem.h"

struct faulty_kv {
    struct kedge_kv base;
    struct kedge_kv *inner;
    enum kedge_kv_fault fault;
    uint64_t countdown; /* 0: every time; n: the n-th from now */
    bool once, failed;
};

struct faulty_tx {
    struct kedge_kv_tx base;
    struct kedge_kv_tx *inner;
};

/* Whether the fault strikes at this opportunity. */
static bool is_due(struct faulty_kv *kv, enum kedge_kv_fault fault)
{
    if (kv->fault != fault) {
        return false;
    }
    if (!kv->once) {
        return true;
    }
    if (--kv->countdown > 0) {
        return false;
    }
    kv->fault = KEDGE_KV_FAULT_NONE;
    return true;
}

static struct kedge_kv_tx *inner_of(struct kedge_kv_tx *tx)
{
    return ((struct faulty_tx *)tx)->inner;
}

static int faulty_begin(struct kedge_kv *base, bool write, struct kedge_kv_tx **ret_tx,
                        struct kedge_diag *reterr)
{
    struct faulty_kv *kv = (struct faulty_kv *)base;
    if (write && kv->failed) {
        return kedge_diag_set(reterr, KEDGE_E_IO, "a former commit failed; the store must be reopened");
    }
    if (write && is_due(kv, KEDGE_KV_FAULT_READ_ONLY)) {
        return kedge_diag_set(reterr, KEDGE_E_DISK_FULL, "the store is read-only");
    }
    struct faulty_tx *tx = kedge_mem_new(1, sizeof *tx);
    if (!tx) {
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "cannot begin a transaction: out of memory");
    }
    int err = kedge_kv_begin(kv->inner, write, &tx->inner, reterr);
    if (err) {
        kedge_mem_free(tx);
        return err;
    }
    tx->base = (struct kedge_kv_tx){base, write};
    *ret_tx = &tx->base;
    return KEDGE_OK;
}

static int faulty_commit(struct kedge_kv_tx *tx, struct kedge_diag *reterr)
{
    struct faulty_kv *kv = (struct faulty_kv *)tx->kv;
    struct kedge_kv_tx *inner = inner_of(tx);
    kedge_mem_free(tx);
    if (is_due(kv, KEDGE_KV_FAULT_FAILED)) {
        kedge_kv_abort(inner);
        kv->failed = true;
        return kedge_diag_set(reterr, KEDGE_E_IO, "commit failed");
    }
    if (is_due(kv, KEDGE_KV_FAULT_FULL)) {
        kedge_kv_abort(inner);
        return kedge_diag_set(reterr, KEDGE_E_DISK_FULL, "commit failed: storage full");
    }
    bool lie = is_due(kv, KEDGE_KV_FAULT_FAILED_BUT_DONE);
    int err = kedge_kv_commit(inner, reterr);
    if (!err && lie) {
        kv->failed = true;
        err = kedge_diag_set(reterr, KEDGE_E_IO, "commit failed");
    }
    return err;
}

static void faulty_abort(struct kedge_kv_tx *tx)
{
    kedge_kv_abort(inner_of(tx));
    kedge_mem_free(tx);
}

static int put_flipped(struct kedge_kv_tx *inner, enum kedge_kv_table table, struct kedge_view key,
                       struct kedge_view value, enum kedge_kv_put_mode mode)
{
    uint8_t *copy = kedge_mem_new(value.len, 1);
    if (!copy) {
        return KEDGE_E_NOMEM;
    }
    memcpy(copy, value.ptr, value.len);
    copy[value.len / 2] ^= 0x10;
    int err = kedge_kv_put(inner, table, key, kedge_view_of(copy, value.len), mode);
    kedge_mem_free(copy);
    return err;
}

static int faulty_put(struct kedge_kv_tx *tx, enum kedge_kv_table table, struct kedge_view key,
                      struct kedge_view value, enum kedge_kv_put_mode mode)
{
    struct faulty_kv *kv = (struct faulty_kv *)tx->kv;
    if (is_due(kv, KEDGE_KV_FAULT_PUT_FULL)) {
        return KEDGE_E_DISK_FULL;
    }
    if (table == KEDGE_KV_ENTRY && value.len > 0 && is_due(kv, KEDGE_KV_FAULT_BIT_FLIP)) {
        return put_flipped(inner_of(tx), table, key, value, mode);
    }
    return kedge_kv_put(inner_of(tx), table, key, value, mode);
}

static int faulty_del(struct kedge_kv_tx *tx, enum kedge_kv_table table, struct kedge_view key)
{
    return kedge_kv_del(inner_of(tx), table, key);
}

static int faulty_peek(struct kedge_kv_tx *tx, enum kedge_kv_table table, struct kedge_view key,
                       struct kedge_view *ret)
{
    return kedge_kv_peek(inner_of(tx), table, key, ret);
}

static int faulty_last(struct kedge_kv_tx *tx, enum kedge_kv_table table, struct kedge_view *ret_key,
                       struct kedge_view *ret_value)
{
    struct kedge_kv_tx *inner = inner_of(tx);
    return inner->kv->ops->last(inner, table, ret_key, ret_value);
}

static int faulty_scan(struct kedge_kv_tx *tx, enum kedge_kv_table table, struct kedge_view prefix,
                       struct kedge_view from, kedge_kv_visit *visit, void *arg)
{
    return kedge_kv_scan(inner_of(tx), table, prefix, from, visit, arg);
}

static int faulty_count(struct kedge_kv_tx *tx, enum kedge_kv_table table, uint64_t *ret_count)
{
    return kedge_kv_count(inner_of(tx), table, ret_count);
}

static int faulty_reopen(struct kedge_kv *base, struct kedge_diag *reterr)
{
    struct faulty_kv *kv = (struct faulty_kv *)base;
    int err = kedge_kv_reopen(kv->inner, reterr);
    if (!err) {
        kv->failed = false;
    }
    return err;
}

static void faulty_close(struct kedge_kv *base)
{
    struct faulty_kv *kv = (struct faulty_kv *)base;
    if (base->keep) {
        kedge_kv_keep(kv->inner);
    }
    kedge_kv_close(kv->inner);
    kedge_mem_free(kv);
}

static const struct kedge_kv_ops faulty_ops = {
    .begin = faulty_begin,
    .commit = faulty_commit,
    .abort = faulty_abort,
    .put = faulty_put,
    .del = faulty_del,
    .peek = faulty_peek,
    .last = faulty_last,
    .scan = faulty_scan,
    .count = faulty_count,
    .reopen = faulty_reopen,
    .close = faulty_close,
};

int kedge_kv_faulty_new(struct kedge_kv *inner, struct kedge_kv **ret_kv)
{
    struct faulty_kv *kv = kedge_mem_new(1, sizeof *kv);
    if (!kv) {
        return KEDGE_E_NOMEM;
    }
    kv->base = (struct kedge_kv){.ops = &faulty_ops, .read_only = inner->read_only};
    kv->inner = inner;
    *ret_kv = &kv->base;
    return KEDGE_OK;
}

void kedge_kv_faulty_set(struct kedge_kv *base, enum kedge_kv_fault fault, uint64_t nth)
{
    struct faulty_kv *kv = (struct faulty_kv *)base;
    KEDGE_ASSERT(kv->base.ops == &faulty_ops);
    kv->fault = fault;
    kv->countdown = nth;
    kv->once = nth > 0;
}
