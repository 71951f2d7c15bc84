/* The store in memory. Each table is a sorted array of pointers to immutable, counted records; a version
 * is one array per table. A transaction holds its tables by count; the writer copies a table's array when
 * it first changes it, and commit swaps the arrays in. So readers never wait and see one state, with no
 * lock but a spin around the swap. Cost: O(table) per write transaction, which is right for tests and
 * simulation. */
#include <stdatomic.h>
#include <string.h>

#include "chain/store/kv/kv_impl.h"
#include "common/base/mem.h"

struct record {
    atomic_uint users;
    size_t key_len, value_len;
    uint8_t bytes[]; /* key, then value */
};

struct table {
    atomic_uint users;
    size_t count, cap;
    struct record **records;
};

struct memory_kv {
    struct kedge_kv base;
    atomic_flag spin; /* guards tables[], writing and open */
    bool writing;
    unsigned open;                         /* transactions */
    struct table *tables[KEDGE_KV_TABLES]; /* NULL: empty */
};

struct memory_tx {
    struct kedge_kv_tx base;
    struct table *tables[KEDGE_KV_TABLES];
    bool own[KEDGE_KV_TABLES]; /* already this writer's copy */
};

static void spin_lock(struct memory_kv *kv)
{
    while (atomic_flag_test_and_set_explicit(&kv->spin, memory_order_acquire)) {
    }
}

static void spin_unlock(struct memory_kv *kv)
{
    atomic_flag_clear_explicit(&kv->spin, memory_order_release);
}

static struct kedge_view key_of(const struct record *r)
{
    return kedge_view_of(r->bytes, r->key_len);
}

static struct kedge_view value_of(const struct record *r)
{
    return kedge_view_of(r->bytes + r->key_len, r->value_len);
}

static void record_drop(struct record *r)
{
    if (atomic_fetch_sub(&r->users, 1) == 1) {
        kedge_mem_free(r);
    }
}

static void table_drop(struct table *t)
{
    if (!t || atomic_fetch_sub(&t->users, 1) != 1) {
        return;
    }
    for (size_t i = 0; i < t->count; i++) {
        record_drop(t->records[i]);
    }
    kedge_mem_free(t->records);
    kedge_mem_free(t);
}

/* First position whose key is not below `key`. */
static size_t lower_bound(const struct table *t, struct kedge_view key)
{
    size_t low = 0, high = t ? t->count : 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (kedgei_kv_compare(key_of(t->records[middle]), key) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static bool is_at(const struct table *t, size_t i, struct kedge_view key)
{
    return t && i < t->count && kedgei_kv_compare(key_of(t->records[i]), key) == 0;
}

static int memory_begin(struct kedge_kv *base, bool write, struct kedge_kv_tx **ret_tx,
                        struct kedge_diag *reterr)
{
    struct memory_kv *kv = (struct memory_kv *)base;
    struct memory_tx *tx = kedge_mem_new(1, sizeof *tx);
    if (!tx) {
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "cannot begin a transaction: out of memory");
    }
    tx->base = (struct kedge_kv_tx){base, write};
    spin_lock(kv);
    bool busy = write && kv->writing;
    if (!busy) {
        kv->writing = kv->writing || write;
        kv->open++;
        for (size_t i = 0; i < KEDGE_KV_TABLES; i++) {
            tx->tables[i] = kv->tables[i];
            if (tx->tables[i]) {
                atomic_fetch_add(&tx->tables[i]->users, 1);
            }
        }
    }
    spin_unlock(kv);
    if (busy) {
        kedge_mem_free(tx);
        return kedge_diag_set(reterr, KEDGE_E_BUSY, "another write transaction is open");
    }
    *ret_tx = &tx->base;
    return KEDGE_OK;
}

static int memory_commit(struct kedge_kv_tx *base, struct kedge_diag *reterr)
{
    (void)reterr;
    struct memory_tx *tx = (struct memory_tx *)base;
    struct memory_kv *kv = (struct memory_kv *)base->kv;
    spin_lock(kv);
    for (size_t i = 0; i < KEDGE_KV_TABLES; i++) {
        struct table *old = kv->tables[i];
        kv->tables[i] = tx->tables[i];
        tx->tables[i] = old;
    }
    kv->writing = false;
    kv->open--;
    spin_unlock(kv);
    for (size_t i = 0; i < KEDGE_KV_TABLES; i++) {
        table_drop(tx->tables[i]);
    }
    kedge_mem_free(tx);
    return KEDGE_OK;
}

static void memory_abort(struct kedge_kv_tx *base)
{
    struct memory_tx *tx = (struct memory_tx *)base;
    struct memory_kv *kv = (struct memory_kv *)base->kv;
    spin_lock(kv);
    if (base->write) {
        kv->writing = false;
    }
    kv->open--;
    spin_unlock(kv);
    for (size_t i = 0; i < KEDGE_KV_TABLES; i++) {
        table_drop(tx->tables[i]);
    }
    kedge_mem_free(tx);
}

/* The writer's own copy of the table with room for one more record. */
static int own_table(struct memory_tx *tx, enum kedge_kv_table table, struct table **ret)
{
    struct table *t = tx->tables[table];
    if (!tx->own[table]) {
        struct table *copy = kedge_mem_new(1, sizeof *copy);
        if (!copy) {
            return KEDGE_E_NOMEM;
        }
        copy->cap = (t ? t->count : 0) + 16;
        copy->records = kedge_mem_new(copy->cap, sizeof *copy->records);
        if (!copy->records) {
            kedge_mem_free(copy);
            return KEDGE_E_NOMEM;
        }
        atomic_init(&copy->users, 1);
        copy->count = t ? t->count : 0;
        for (size_t i = 0; i < copy->count; i++) {
            copy->records[i] = t->records[i];
            atomic_fetch_add(&copy->records[i]->users, 1);
        }
        table_drop(t);
        tx->tables[table] = t = copy;
        tx->own[table] = true;
    }
    if (t->count == t->cap) {
        struct record **more = kedge_mem_resize(t->records, t->cap * 2, sizeof *more);
        if (!more) {
            return KEDGE_E_NOMEM;
        }
        t->records = more;
        t->cap *= 2;
    }
    *ret = t;
    return KEDGE_OK;
}

static int memory_put(struct kedge_kv_tx *base, enum kedge_kv_table table, struct kedge_view key,
                      struct kedge_view value, enum kedge_kv_put_mode mode)
{
    struct memory_tx *tx = (struct memory_tx *)base;
    struct table *t = tx->tables[table];
    size_t at = lower_bound(t, key);
    bool present = is_at(t, at, key);
    if ((present && mode != KEDGE_KV_PUT) || (mode == KEDGE_KV_APPEND && t && at < t->count)) {
        return KEDGE_E_EXISTS;
    }
    struct record *r = kedge_mem_new(1, sizeof *r + key.len + value.len);
    if (!r) {
        return KEDGE_E_NOMEM;
    }
    atomic_init(&r->users, 1);
    r->key_len = key.len;
    r->value_len = value.len;
    memcpy(r->bytes, key.ptr, key.len);
    if (value.len > 0) {
        memcpy(r->bytes + key.len, value.ptr, value.len);
    }
    int err = own_table(tx, table, &t);
    if (err) {
        kedge_mem_free(r);
        return err;
    }
    if (present) {
        record_drop(t->records[at]);
    } else {
        memmove(t->records + at + 1, t->records + at, (t->count - at) * sizeof *t->records);
        t->count++;
    }
    t->records[at] = r;
    return KEDGE_OK;
}

static int memory_del(struct kedge_kv_tx *base, enum kedge_kv_table table, struct kedge_view key)
{
    struct memory_tx *tx = (struct memory_tx *)base;
    struct table *t = tx->tables[table];
    size_t at = lower_bound(t, key);
    if (!is_at(t, at, key)) {
        return KEDGE_E_NOT_FOUND;
    }
    int err = own_table(tx, table, &t);
    if (err) {
        return err;
    }
    record_drop(t->records[at]);
    t->count--;
    memmove(t->records + at, t->records + at + 1, (t->count - at) * sizeof *t->records);
    return KEDGE_OK;
}

static int memory_peek(struct kedge_kv_tx *base, enum kedge_kv_table table, struct kedge_view key,
                       struct kedge_view *ret)
{
    const struct table *t = ((struct memory_tx *)base)->tables[table];
    size_t at = lower_bound(t, key);
    if (!is_at(t, at, key)) {
        return KEDGE_E_NOT_FOUND;
    }
    *ret = value_of(t->records[at]);
    return KEDGE_OK;
}

static int memory_last(struct kedge_kv_tx *base, enum kedge_kv_table table, struct kedge_view *ret_key,
                       struct kedge_view *ret_value)
{
    const struct table *t = ((struct memory_tx *)base)->tables[table];
    if (!t || t->count == 0) {
        return KEDGE_E_NOT_FOUND;
    }
    *ret_key = key_of(t->records[t->count - 1]);
    *ret_value = value_of(t->records[t->count - 1]);
    return KEDGE_OK;
}

static int memory_scan(struct kedge_kv_tx *base, enum kedge_kv_table table, struct kedge_view prefix,
                       struct kedge_view from, kedge_kv_visit *visit, void *arg)
{
    const struct table *t = ((struct memory_tx *)base)->tables[table];
    struct kedge_view start = kedgei_kv_compare(prefix, from) < 0 ? from : prefix;
    for (size_t i = lower_bound(t, start); t && i < t->count; i++) {
        struct kedge_view key = key_of(t->records[i]);
        if (!kedgei_kv_has_prefix(key, prefix)) {
            break;
        }
        int err = visit(arg, key, value_of(t->records[i]));
        if (err) {
            return err;
        }
    }
    return KEDGE_OK;
}

static int memory_count(struct kedge_kv_tx *base, enum kedge_kv_table table, uint64_t *ret_count)
{
    const struct table *t = ((struct memory_tx *)base)->tables[table];
    *ret_count = t ? t->count : 0;
    return KEDGE_OK;
}

static int memory_reopen(struct kedge_kv *base, struct kedge_diag *reterr)
{
    struct memory_kv *kv = (struct memory_kv *)base;
    spin_lock(kv);
    bool busy = kv->open > 0;
    spin_unlock(kv);
    return busy ? kedge_diag_set(reterr, KEDGE_E_BUSY, "transactions are open") : KEDGE_OK;
}

static void memory_close(struct kedge_kv *base)
{
    struct memory_kv *kv = (struct memory_kv *)base;
    KEDGE_ASSERT(kv->open == 0);
    for (size_t i = 0; i < KEDGE_KV_TABLES; i++) {
        table_drop(kv->tables[i]);
    }
    kedge_mem_free(kv);
}

static const struct kedge_kv_ops memory_ops = {
    .begin = memory_begin,
    .commit = memory_commit,
    .abort = memory_abort,
    .put = memory_put,
    .del = memory_del,
    .peek = memory_peek,
    .last = memory_last,
    .scan = memory_scan,
    .count = memory_count,
    .reopen = memory_reopen,
    .close = memory_close,
};

int kedge_kv_memory_new(struct kedge_kv **ret_kv)
{
    struct memory_kv *kv = kedge_mem_new(1, sizeof *kv);
    if (!kv) {
        return KEDGE_E_NOMEM;
    }
    kv->base.ops = &memory_ops;
    atomic_flag_clear(&kv->spin);
    *ret_kv = &kv->base;
    return KEDGE_OK;
}
