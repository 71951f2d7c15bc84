/* One moment of many stores, beside a coordinator that writes to them.
 *
 * Each store gives a snapshot by itself: an LMDB read transaction sees the state at which it began. But
 * the main chain refers to the tenants' ledgers, and their transactions begin one after another. So the
 * main chain is pinned first, then keys and all others, and then it is compared with its newest state: if
 * it has grown in between, all are let go and the whole is tried again. What a main chain says about a
 * tenant was in the tenant's ledger before, so tenants that are pinned later have it; that they have more
 * does no harm.
 *
 * A tenant that was added meanwhile changes the list of stores; it is opened and the pinning begins anew.
 * Readers never stop the coordinator: it is the copy that waits. */
#include "chain/state/snapshot.h"

#include <stdio.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "common/base/try.h"
#include "crypto/keyfile.h"

enum {
    TRIES = 500,           /* two seconds beside a coordinator that never rests */
    PAUSE_MS = 4,          /* between two tries */
    STATE_MAX = 8192,      /* bytes of a ledger's state record */
    KEY_FILE_MAX = 8192,   /* bytes of a private key's file */
    COPY_BYTES = 16 << 20, /* of one transaction of a copy: LMDB bounds the pages that one may touch */
};

static const char *const state_keys[] = {"statement-next", "statement", "tls", "log-main"};
enum { STATE_KEYS = sizeof state_keys / sizeof state_keys[0] };

/* One store, pinned. */
struct store {
    char name[KEDGE_ID_MAX + 32]; /* "main/ledger.lmdb" */
    struct kedge_kv *kv;
    struct kedge_kv_tx *tx; /* NULL: not pinned */
};

struct key_file {
    char name[KEDGE_ID_MAX + 16]; /* without ".pem" */
    struct kedge_buf text;
};

struct kedge_snapshot {
    char state[KEDGE_PATH_MAX];
    struct kedge_id *tenants;
    size_t tenant_count;
    struct store main, own; /* own: kv NULL where no coordinator ever started here */
    struct store *logs;     /* of the tenants */
    struct key_file *keys;
    size_t key_count;
};

/* ---- opening ---- */

static int open_store(const struct kedge_snapshot *s, struct store *store, struct kedge_diag *d)
{
    static const struct kedge_kv_lmdb_options options = {.read_only = true};
    char path[KEDGE_PATH_MAX];
    int err = kedge_state_path(path, d, s->state, "%s", store->name);
    return err ? err : kedge_kv_lmdb_open(path, &options, &store->kv, d);
}

static int open_stores(struct kedge_snapshot *s, struct kedge_diag *d)
{
    snprintf(s->main.name, sizeof s->main.name, "main/ledger.lmdb");
    snprintf(s->own.name, sizeof s->own.name, "coordinator.lmdb");
    int err = open_store(s, &s->main, d);
    if (!err) {
        err = open_store(s, &s->own, d);
        err = err == KEDGE_E_NOT_FOUND ? KEDGE_OK : err;
    }
    for (size_t i = 0; i < s->tenant_count && !err; i++) {
        snprintf(s->logs[i].name, sizeof s->logs[i].name, "tenants/%s/ledger.lmdb", s->tenants[i].s);
        err = open_store(s, &s->logs[i], d);
    }
    return err;
}

static void unpin(struct kedge_snapshot *s)
{
    struct store *const first[] = {&s->main, &s->own};
    for (size_t i = 0; i < 2 + s->tenant_count; i++) {
        struct store *store = i < 2 ? first[i] : &s->logs[i - 2];
        kedge_kv_abort(store->tx);
        store->tx = NULL;
    }
}

static void close_stores(struct kedge_snapshot *s)
{
    unpin(s);
    kedge_kv_close(s->main.kv);
    kedge_kv_close(s->own.kv);
    s->main.kv = s->own.kv = NULL;
    for (size_t i = 0; i < s->tenant_count; i++) {
        kedge_kv_close(s->logs[i].kv);
        s->logs[i].kv = NULL;
    }
}

static void drop_keys(struct kedge_snapshot *s)
{
    for (size_t i = 0; i < s->key_count; i++) {
        explicit_bzero(s->keys[i].text.ptr, s->keys[i].text.len);
        kedge_buf_deinit(&s->keys[i].text);
    }
    kedge_mem_free(s->keys);
    s->keys = NULL;
    s->key_count = 0;
}

/* ---- keys ---- */

static int read_key(struct kedge_snapshot *s, const char *name, struct kedge_diag *d)
{
    struct key_file *key = &s->keys[s->key_count];
    char path[KEDGE_PATH_MAX];
    int n = snprintf(key->name, sizeof key->name, "%s", name);
    KEDGE_TRY(n > 0 && (size_t)n < sizeof key->name ? KEDGE_OK : KEDGE_E_TOO_LONG);
    KEDGE_TRY(kedge_state_path(path, d, s->state, "keys/%s.pem", name));
    kedge_buf_init(&key->text, KEY_FILE_MAX);
    int err = kedge_file_read(path, &key->text, d);
    if (err) {
        kedge_buf_deinit(&key->text);
        return err;
    }
    s->key_count++;
    return KEDGE_OK;
}

/* statement-next.pem is read before statement.pem: it takes that one's place, so at either of both moments
 * the reading falls into, the key that the main chain names is among what was read. */
static int read_keys(struct kedge_snapshot *s, struct kedge_diag *d)
{
    s->keys = kedge_mem_new(s->tenant_count + STATE_KEYS, sizeof *s->keys);
    if (!s->keys) {
        return kedge_diag_set(d, KEDGE_E_NOMEM, "out of memory");
    }
    for (size_t i = 0; i < STATE_KEYS; i++) {
        int err = read_key(s, state_keys[i], d);
        if (err && (i > 0 || err != KEDGE_E_NOT_FOUND)) { /* there is hardly ever a next one */
            return err;
        }
    }
    for (size_t i = 0; i < s->tenant_count; i++) {
        char name[KEDGE_ID_MAX + 16];
        snprintf(name, sizeof name, "log-%s", s->tenants[i].s);
        KEDGE_TRY(read_key(s, name, d));
    }
    return KEDGE_OK;
}

/* ---- pinning ---- */

/* What says of the main chain that it has not grown: size, root and counts. */
static int main_state(struct kedge_kv_tx *tx, struct kedge_buf *ret)
{
    return kedge_kv_get(tx, KEDGE_KV_META, kedge_view_str("state"), ret);
}

static int pin(struct store *store, struct kedge_diag *d)
{
    return store->kv ? kedge_kv_begin(store->kv, false, &store->tx, d) : KEDGE_OK;
}

static int pin_all(struct kedge_snapshot *s, struct kedge_diag *d)
{
    KEDGE_TRY(pin(&s->main, d));
    KEDGE_TRY(read_keys(s, d));
    int err = pin(&s->own, d);
    if (err) {
        return err;
    }
    for (size_t i = 0; i < s->tenant_count; i++) {
        err = pin(&s->logs[i], d);
        if (err) {
            return err;
        }
    }
    return KEDGE_OK;
}

/* The newest state of the main chain is read in a second transaction beside the pinned one. The record of
 * a ledger's state changes with each append, so two that are equal mean that no entry came in between. */
static bool has_grown(const struct kedge_snapshot *s, int *ret_err, struct kedge_diag *d)
{
    struct kedge_kv_tx *now;
    struct kedge_buf before, after;
    kedge_buf_init(&before, STATE_MAX);
    kedge_buf_init(&after, STATE_MAX);
    int err = main_state(s->main.tx, &before);
    if (!err) {
        err = kedge_kv_begin(s->main.kv, false, &now, d);
    }
    if (!err) {
        err = main_state(now, &after);
        kedge_kv_abort(now);
    }
    bool grown = !kedge_view_eq(kedge_buf_view(&before), kedge_buf_view(&after));
    kedge_buf_deinit(&before);
    kedge_buf_deinit(&after);
    *ret_err = err == KEDGE_E_NOT_FOUND
                   ? kedge_diag_set(d, KEDGE_E_CORRUPT, "%s/main: no ledger here", s->state)
                   : err;
    return grown;
}

/* A tenant that was added while stores were pinned has to be among them: the pinned main chain may
 * already have an entry of it. The folders are listed again after pinning, and compared with the list
 * that was opened. */
static bool has_others(const struct kedge_snapshot *s, int *ret_err, struct kedge_diag *d)
{
    struct kedge_id *ids = NULL;
    size_t count = 0;
    *ret_err = kedge_state_tenants(s->state, &ids, &count, d);
    bool others = !*ret_err && count != s->tenant_count;
    for (size_t i = 0; i < count && !*ret_err && !others; i++) {
        others = !kedge_id_eq(&ids[i], &s->tenants[i]);
    }
    kedge_mem_free(ids);
    return others;
}

static void drop_tenants(struct kedge_snapshot *s)
{
    close_stores(s);
    kedge_mem_free(s->tenants);
    kedge_mem_free(s->logs);
    s->tenants = NULL;
    s->logs = NULL;
    s->tenant_count = 0;
}

static int find_tenants(struct kedge_snapshot *s, struct kedge_diag *d)
{
    drop_tenants(s);
    KEDGE_TRY(kedge_state_tenants(s->state, &s->tenants, &s->tenant_count, d));
    s->logs = kedge_mem_new(s->tenant_count + 1, sizeof *s->logs);
    if (!s->logs) {
        s->tenant_count = 0; /* close_stores looks at the logs */
        return kedge_diag_set(d, KEDGE_E_NOMEM, "out of memory");
    }
    return open_stores(s, d);
}

/* One try: *ret_still when nothing moved meanwhile. */
static int try_pin(struct kedge_snapshot *s, bool *ret_still, struct kedge_diag *d)
{
    int err = pin_all(s, d);
    if (err == KEDGE_E_BUSY) { /* the map grew, or too many readers: another time */
        return KEDGE_OK;
    }
    bool moved = !err && has_grown(s, &err, d);
    if (err || moved) {
        return err;
    }
    bool others = has_others(s, &err, d);
    if (!err && others) {
        unpin(s);
        return find_tenants(s, d);
    }
    *ret_still = !err;
    return err;
}

int kedge_snapshot_take(const char *state, struct kedge_snapshot **ret, struct kedge_diag *reterr)
{
    char deployment[KEDGE_DEPLOYMENT_MAX + 1];
    struct kedge_snapshot *s = kedge_mem_new(1, sizeof *s);
    if (!s) {
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "out of memory");
    }
    int n = snprintf(s->state, sizeof s->state, "%s", state);
    int err = n >= 0 && (size_t)n < sizeof s->state
                  ? kedge_state_deployment(state, deployment, reterr)
                  : kedge_diag_set(reterr, KEDGE_E_TOO_LONG, "%.60s…: path too long", state);
    if (!err) {
        err = find_tenants(s, reterr);
    }
    bool still = false;
    for (int i = 0; i < TRIES && !err && !still; i++) {
        if (i > 0) {
            kedge_os_sleep_ms(PAUSE_MS);
        }
        unpin(s);
        drop_keys(s);
        err = try_pin(s, &still, reterr);
    }
    if (!err && !still) {
        (void)kedge_diag_set(reterr, KEDGE_E_BUSY, "%s: the main chain never stood still for a moment",
                             state);
        err = kedge_diag_hint(reterr, "try again when less is going on: nothing was changed");
    }
    if (err) {
        kedge_snapshot_free(s);
        return err;
    }
    *ret = s;
    return KEDGE_OK;
}

void kedge_snapshot_free(struct kedge_snapshot *s)
{
    if (s) {
        drop_keys(s);
        drop_tenants(s);
        kedge_mem_free(s);
    }
}

size_t kedge_snapshot_tenants(const struct kedge_snapshot *s, const struct kedge_id **ret_ids)
{
    *ret_ids = s->tenants;
    return s->tenant_count;
}

/* ---- copies ---- */

int kedge_snapshot_put_keys(const struct kedge_snapshot *s, const char *out, struct kedge_diag *reterr)
{
    char path[KEDGE_PATH_MAX];
    KEDGE_TRY(kedge_state_path(path, reterr, out, "keys"));
    int err = kedge_dir_make(path, 0700, reterr);
    if (err) {
        return err;
    }
    for (size_t i = 0; i < s->key_count; i++) {
        err = kedge_state_path(path, reterr, out, "keys/%s.pem", s->keys[i].name);
        if (err) {
            return err;
        }
        err = kedge_file_write(path, kedge_buf_view(&s->keys[i].text), 0600, reterr);
        if (err) {
            return err;
        }
    }
    return KEDGE_OK;
}

struct copying {
    struct kedge_kv *to;
    struct kedge_kv_tx *tx;
    enum kedge_kv_table table;
    size_t bytes; /* of this transaction */
    struct kedge_diag *d;
};

/* LMDB bounds the pages that one transaction may touch, so a large table is written in several. That the
 * copy is not atomic does no harm: nobody uses it before it is whole. Keys come in ascending order, so
 * each is appended and pages are filled from the front. */
static int copy_record(void *arg, struct kedge_view key, struct kedge_view value)
{
    struct copying *c = arg;
    if (c->bytes > COPY_BYTES) {
        int err = kedge_kv_commit(c->tx, c->d);
        c->tx = NULL;
        if (!err) {
            err = kedge_kv_begin(c->to, true, &c->tx, c->d);
        }
        if (err) {
            return err;
        }
        c->bytes = 0;
    }
    c->bytes += key.len + value.len;
    return kedge_kv_put(c->tx, c->table, key, value, KEDGE_KV_APPEND);
}

static int copy_records(const struct store *from, struct copying *c)
{
    struct kedge_view all = kedge_view_of(NULL, 0);
    int err = kedge_kv_begin(c->to, true, &c->tx, c->d);
    for (unsigned i = 0; i < KEDGE_KV_TABLES && !err; i++) {
        c->table = (enum kedge_kv_table)i;
        err = kedge_kv_scan(from->tx, c->table, all, all, copy_record, c);
    }
    if (err) {
        kedge_kv_abort(c->tx);
        return kedge_diag_set(c->d, err, "%s: cannot be copied: %s", from->name,
                              c->d && c->d->text[0] ? c->d->text : kedge_strerror(err));
    }
    return kedge_kv_commit(c->tx, c->d);
}

/* Records are copied one by one from the pinned transaction. LMDB's own mdb_env_copy begins a transaction
 * of its own, which is of another moment than those of the other stores. */
static int put_store(const struct store *from, const char *out, struct kedge_diag *d)
{
    static const struct kedge_kv_lmdb_options options = {.create = true};
    struct kedge_diag inner = {.text = ""};
    struct copying c = {.d = &inner};
    char path[KEDGE_PATH_MAX];
    KEDGE_TRY(kedge_state_path(path, d, out, "%s", from->name));
    KEDGE_TRY(kedge_kv_lmdb_open(path, &options, &c.to, d));
    int err = copy_records(from, &c);
    kedge_kv_close(c.to);
    return err ? kedge_diag_set(d, err, "%s", inner.text) : KEDGE_OK;
}

/* The mark of exactly what the copy holds. What the log itself has signed since is not in it: who restores
 * the copy has to know that. */
static int put_mark(const char *out, const struct kedge_id *tenant, struct kedge_diag *d)
{
    struct kedge_state_log log;
    char path[KEDGE_PATH_MAX];
    KEDGE_TRY(kedge_state_path(path, d, out, "high-water/%s", tenant ? tenant->s : "main"));
    KEDGE_TRY(kedge_state_log_open(out, tenant, KEDGE_STATE_COPY, &log, d));
    int err = kedge_ledger_size(log.ledger) > 0 ? kedge_high_water_set(log.ledger, path, d) : KEDGE_OK;
    kedge_state_log_close(&log);
    return err;
}

static int put_marks(const struct kedge_snapshot *s, const char *out, struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX];
    KEDGE_TRY(kedge_state_path(path, d, out, "high-water"));
    KEDGE_TRY(kedge_dir_make(path, 0700, d));
    int err = put_mark(out, NULL, d);
    if (err) {
        return err;
    }
    for (size_t i = 0; i < s->tenant_count; i++) {
        err = put_mark(out, &s->tenants[i], d);
        if (err) {
            return err;
        }
    }
    return KEDGE_OK;
}

int kedge_snapshot_put_stores(const struct kedge_snapshot *s, const char *out, bool own, bool marks,
                              struct kedge_diag *reterr)
{
    int err = put_store(&s->main, out, reterr);
    for (size_t i = 0; i < s->tenant_count && !err; i++) {
        err = put_store(&s->logs[i], out, reterr);
    }
    if (!err && own && s->own.kv) {
        err = put_store(&s->own, out, reterr);
    }
    return err || !marks ? err : put_marks(s, out, reterr);
}

/* ---- jobs that the main chain does not know yet ---- */

struct naming {
    char hex[KEDGE_HASH_HEX_LEN + 1];
    bool found;
};

/* A job that was submitted and not opened yet stands only in the coordinator's own store, in records that
 * name its spec's digest in hex. Looking for these 64 digits in the bytes needs no knowledge of the
 * records' format; at worst a blob too many is copied. */
static int look_for_name(void *arg, struct kedge_view key, struct kedge_view value)
{
    struct naming *n = arg;
    (void)key;
    n->found = value.len > 0 && memmem(value.ptr, value.len, n->hex, KEDGE_HASH_HEX_LEN) != NULL;
    return n->found ? 1 : 0;
}

int kedge_snapshot_job_names(const struct kedge_snapshot *s, const struct kedge_hash *digest, bool *ret)
{
    struct naming n = {.found = false};
    struct kedge_view all = kedge_view_of(NULL, 0);
    kedge_hash_hex(digest, n.hex);
    int err = s->own.tx ? kedge_kv_scan(s->own.tx, KEDGE_KV_JOB, all, all, look_for_name, &n) : KEDGE_OK;
    if (err && !n.found) {
        return err;
    }
    *ret = n.found;
    return KEDGE_OK;
}
