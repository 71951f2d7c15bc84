/* From the state folder to logs in memory. A child process opens each store, checks it whole and sends its
 * entries, checkpoints and idempotency keys; whatever a damaged file does to LMDB ends there. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "chain/audit/record.h"
#include "chain/store/guard.h"
#include "common/base/mem.h"

enum { TIMEOUT_LEAST_S = 60, BYTES_PER_S = 10 << 20 };
#define DUMP_MAX ((size_t)16 << 30)

/* ---- the child: one message per log ----
 * 32 bytes salted id, u8 is copy, u8 damaged, u16 length, text; then records u8 1, kind 'e' 'w' 'h' 'k', u64
 * number, u32 length, bytes (of a withheld entry its leaf hash); at last u8 0. */

struct reading {
    const char *state;
    const struct kedge_id *tenant;
    bool beside;
    bool unsigned_heads; /* checkpoints will be verified under a trusted key, not under the stored one */
};

struct dump {
    struct kedge_buf *out;
    uint64_t size;
    char kind;
    struct kedge_buf *withheld; /* indexes of entries that are not there; NULL: there are none */
};

static void put_record(struct kedge_buf *out, char kind, uint64_t number, struct kedge_view bytes)
{
    kedge_buf_put_u8(out, 1);
    kedge_buf_put_u8(out, (uint8_t)kind);
    kedge_buf_put_u64(out, number);
    kedge_buf_put_u32(out, (uint32_t)bytes.len);
    kedge_buf_put(out, bytes.ptr, bytes.len);
}

/* Entries below, checkpoints up to the size that this handle sees; a writer may be ahead. */
static int dump_numbered(void *arg, struct kedge_view key, struct kedge_view value)
{
    struct dump *d = arg;
    if (key.len != 8) {
        return KEDGE_E_CORRUPT;
    }
    uint64_t number = kedge_load_be64(key.ptr);
    if (d->kind == 'e' && value.len == 0 && d->withheld && number < d->size) {
        kedge_buf_put_u64(d->withheld, number);
        return d->withheld->err;
    }
    if (d->kind == 'e' ? number < d->size : number <= d->size) {
        put_record(d->out, d->kind, number, value);
    }
    return d->out->err;
}

static int dump_key(void *arg, struct kedge_view key, uint64_t index)
{
    struct dump *d = arg;
    if (index < d->size) {
        put_record(d->out, 'k', index, key);
    }
    return d->out->err;
}

/* The whole check of one log; beside a writer the mark may be ahead of what this handle sees. */
static int check_log(const struct reading *r, struct kedge_state_log *log, struct kedge_diag *damage)
{
    char path[KEDGE_PATH_MAX];
    int err = r->unsigned_heads ? kedge_ledger_check_unsigned(log->ledger, damage)
                                : kedge_ledger_check(log->ledger, NULL, NULL, damage);
    if (err || r->beside) {
        return err;
    }
    err = kedge_state_path(path, damage, r->state, "high-water/%s", r->tenant ? r->tenant->s : "main");
    return err ? err : kedge_ledger_check_high_water(log->ledger, path, damage);
}

static int dump_withheld(struct kedge_ledger *ledger, struct kedge_view indexes, struct kedge_buf *out)
{
    struct kedge_reader reader = kedge_reader_of(indexes);
    int err = KEDGE_OK;
    for (size_t i = 0; i < indexes.len / 8 && !err; i++) {
        uint64_t index = kedge_read_u64(&reader);
        struct kedge_hash leaf;
        err = kedge_ledger_leaf_hash(ledger, index, &leaf);
        if (!err) {
            put_record(out, 'w', index, kedge_view_of(leaf.b, sizeof leaf.b));
        }
    }
    return err;
}

static int dump_log(const struct reading *r, struct kedge_state_log *log, struct kedge_buf *out)
{
    struct kedge_buf withheld KEDGE_CLEANUP(kedge_buf_deinit);
    bool is_copy = kedge_ledger_is_copy(log->ledger);
    struct dump d = {out, kedge_ledger_size(log->ledger), 'e', is_copy ? &withheld : NULL};
    struct kedge_view all = kedge_view_of(NULL, 0);
    struct kedge_diag damage = {.err = KEDGE_OK};
    struct kedge_kv_tx *tx = NULL;
    struct kedge_hash salted;
    kedge_buf_init(&withheld, DUMP_MAX);
    kedge_state_salted_id(log, &salted);
    kedge_buf_put(out, salted.b, sizeof salted.b);
    kedge_buf_put_u8(out, is_copy);
    int checked = check_log(r, log, &damage);
    kedge_buf_put_u8(out, checked != KEDGE_OK);
    kedge_buf_put_u16(out, (uint16_t)strlen(damage.text));
    kedge_buf_put_str(out, damage.text);
    int err = kedge_kv_begin(log->kv, false, &tx, &damage);
    err = err ? err : kedge_kv_scan(tx, KEDGE_KV_ENTRY, all, all, dump_numbered, &d);
    d.kind = 'h';
    err = err ? err : kedge_kv_scan(tx, KEDGE_KV_HEAD, all, all, dump_numbered, &d);
    kedge_kv_abort(tx);
    err = err ? err : dump_withheld(log->ledger, kedge_buf_view(&withheld), out);
    if (!err && !is_copy) {
        int keys = kedge_ledger_scan_keys(log->ledger, all, dump_key, &d);
        err = keys == KEDGE_E_CORRUPT && checked != KEDGE_OK ? KEDGE_OK : keys; /* said already */
    }
    kedge_buf_put_u8(out, 0);
    return err ? err : out->err;
}

static int read_in_child(void *arg, struct kedge_buf *ret_out, struct kedge_diag *reterr)
{
    struct reading *r = arg;
    struct kedge_state_log log = {.kv = NULL};
    enum kedge_state_mode mode = r->beside ? KEDGE_STATE_READ : KEDGE_STATE_COPY;
    int err = kedge_state_log_open(r->state, r->tenant, mode, &log, reterr);
    if (err) {
        return err;
    }
    err = dump_log(r, &log, ret_out);
    kedge_state_log_close(&log);
    return err ? kedge_diag_set(reterr, err, "reading the ledger: %s", kedge_strerror(err)) : KEDGE_OK;
}

/* ---- the parent ---- */

struct counts {
    size_t entries, heads, keys;
};

/* One record; false at the end of the message or when it is cut short (then r->failed). */
static bool next_record(struct kedge_reader *r, char *ret_kind, uint64_t *ret_number,
                        struct kedge_view *ret_bytes)
{
    if (kedge_read_u8(r) != 1) {
        return false;
    }
    *ret_kind = (char)kedge_read_u8(r);
    *ret_number = kedge_read_u64(r);
    *ret_bytes = kedge_read_bytes(r, kedge_read_u32(r));
    return !r->failed;
}

static void count_records(struct kedge_reader r, struct counts *c)
{
    char kind;
    uint64_t number;
    struct kedge_view bytes;
    while (next_record(&r, &kind, &number, &bytes)) {
        c->entries += kind == 'e' || kind == 'w';
        c->heads += kind == 'h';
        c->keys += kind == 'k';
    }
}

static int fill_log(struct kedgei_log *log, struct kedge_reader r)
{
    struct counts c = {0, 0, 0}, at = {0, 0, 0};
    char kind;
    uint64_t number;
    struct kedge_view bytes;
    count_records(r, &c);
    log->entries = kedge_mem_new(c.entries + 1, sizeof *log->entries);
    log->heads = kedge_mem_new(c.heads + 1, sizeof *log->heads);
    log->stored_keys = kedge_mem_new(c.keys + 1, sizeof *log->stored_keys);
    if (!log->entries || !log->heads || !log->stored_keys) {
        return KEDGE_E_NOMEM;
    }
    while (next_record(&r, &kind, &number, &bytes)) {
        if (kind == 'e' && number < c.entries) {
            log->entries[number] = bytes;
        } else if (kind == 'w' && number < c.entries && bytes.len == KEDGE_HASH_LEN) {
            log->entries[number] = kedge_view_of(bytes.ptr, 0);
        } else if (kind == 'h') {
            log->heads[at.heads++] = (struct kedgei_head){number, bytes};
        } else if (kind == 'k') {
            log->stored_keys[at.keys++] = (struct kedgei_key_row){bytes, number};
        }
    }
    while (at.entries < c.entries && log->entries[at.entries].ptr) { /* behind a gap nothing can be placed */
        at.entries++;
    }
    log->count = at.entries;
    log->head_count = at.heads;
    log->stored_key_count = at.keys;
    return KEDGE_OK;
}

static uint32_t read_timeout_ms(const struct kedgei_audit *a, const char *folder)
{
    char path[KEDGE_PATH_MAX];
    if (a->options.read_timeout_s) {
        return a->options.read_timeout_s < UINT32_MAX / 1000 ? a->options.read_timeout_s * 1000 : 0;
    }
    int64_t size = kedge_state_path(path, NULL, a->state, "%s/ledger.lmdb/data.mdb", folder) == KEDGE_OK
                       ? kedge_file_size(path)
                       : 0;
    int64_t seconds = TIMEOUT_LEAST_S + (size > 0 ? size / BYTES_PER_S : 0);
    return seconds < (int64_t)UINT32_MAX / 1000 ? (uint32_t)seconds * 1000 : 0;
}

/* Errors about the machine end the audit; everything else is the record's fault. */
static bool is_our_trouble(int err)
{
    return err == KEDGE_E_NOMEM || err == KEDGE_E_DENIED || err == KEDGE_E_FULL || err == KEDGE_E_DISK_FULL
           || err == KEDGE_E_LOCKED || err == KEDGE_E_BUSY;
}

/* *ret_readable becomes false when the log could not be read. */
static int load_log(struct kedgei_audit *a, struct kedgei_log *log, const char *folder, bool *ret_readable)
{
    struct kedge_diag d = {.err = KEDGE_OK};
    struct reading r = {a->state, log->tenant.s[0] ? &log->tenant : NULL, a->options.beside_coordinator,
                        log->has_vkey};
    kedge_buf_init(&log->dump, DUMP_MAX);
    int err = kedge_store_guarded(read_in_child, &r, read_timeout_ms(a, folder), &log->dump, &d);
    if (is_our_trouble(err)) {
        a->diag = d;
        return err;
    }
    if (err) {
        kedgei_find(&a->findings, KEDGE_AUDIT_ERROR, KEDGE_AUDIT_LEDGER, folder, "%s",
                    d.text[0] ? d.text : kedge_strerror(err));
        *ret_readable = false;
        return KEDGE_OK;
    }
    struct kedge_reader reader = kedge_reader_of(kedge_buf_view(&log->dump));
    struct kedge_view salted = kedge_read_bytes(&reader, KEDGE_HASH_LEN);
    log->is_copy = kedge_read_u8(&reader) != 0;
    bool damaged = kedge_read_u8(&reader) != 0;
    struct kedge_view text = kedge_read_bytes(&reader, kedge_read_u16(&reader));
    if (salted.len == KEDGE_HASH_LEN) {
        memcpy(log->salted.b, salted.ptr, KEDGE_HASH_LEN);
    }
    if (damaged) {
        kedgei_find(&a->findings, KEDGE_AUDIT_ERROR, KEDGE_AUDIT_LEDGER, folder, "%.*s", (int)text.len,
                    (const char *)text.ptr);
    }
    return fill_log(log, reader);
}

static int open_blobs(struct kedgei_audit *a, struct kedgei_log *log, const char *folder)
{
    static const struct kedge_blobs_options options = {.read_only = true};
    char path[KEDGE_PATH_MAX];
    int err = kedge_state_path(path, &a->diag, a->state, "%s", folder);
    return err ? err : kedge_blobs_open(path, &options, &log->blobs, &a->diag);
}

static void set_trusted(struct kedgei_audit *a, struct kedgei_log *log)
{
    if (!a->trust) {
        return;
    }
    log->has_vkey = log->has_authority = true;
    if (!log->tenant.s[0]) {
        log->vkey = a->trust->main_log;
        log->authority = a->trust->statement_key;
        return;
    }
    const struct kedge_trust_tenant *t = kedge_trust_find(a->trust, &log->tenant);
    if (t) {
        log->vkey = t->log;
        log->authority = t->admin_key;
        return;
    }
    log->has_vkey = log->has_authority = false;
}

static int load_tenant(struct kedgei_audit *a, struct kedgei_log *log, const struct kedge_id *id,
                       bool *ret_readable)
{
    char folder[KEDGE_PATH_MAX];
    log->tenant = *id;
    log->name = log->tenant.s;
    snprintf(log->origin, sizeof log->origin, "%s/%s", a->deployment, id->s);
    snprintf(folder, sizeof folder, "tenants/%s", id->s);
    set_trusted(a, log);
    int err = load_log(a, log, folder, ret_readable);
    err = err || !*ret_readable ? err : open_blobs(a, log, folder);
    if (!err && a->trust && !log->has_authority && log->count > 0) {
        kedgei_find(&a->findings, KEDGE_AUDIT_ERROR, KEDGE_AUDIT_TENANT_UNKNOWN, folder,
                    "the trust file does not name tenant \"%s\"", id->s);
    }
    return err;
}

static void demand_tenant(struct kedgei_audit *a, const struct kedge_id *id, bool *ret_readable)
{
    bool found = false;
    for (uint32_t k = 0; k < a->tenant_count; k++) {
        found = found || kedge_id_eq(&a->tenants[k].tenant, id);
    }
    if (!found) {
        kedgei_find(&a->findings, KEDGE_AUDIT_ERROR, KEDGE_AUDIT_TENANT_MISSING, "tenants",
                    "the %s names tenant \"%s\", whose ledger is not here",
                    a->trust ? "trust file" : "command line", id->s);
        *ret_readable = false;
    }
}

static int load_tenants(struct kedgei_audit *a, bool *ret_readable)
{
    struct kedge_id *ids = NULL;
    size_t count = 0;
    int err = kedge_state_tenants(a->state, &ids, &count, &a->diag);
    if (!err) {
        a->tenants = kedge_mem_new(count + 1, sizeof *a->tenants);
        err = a->tenants ? KEDGE_OK : KEDGE_E_NOMEM;
    }
    for (size_t i = 0; i < count && !err; i++) {
        bool readable = true;
        if (!kedgei_holds(a, &ids[i])) {
            continue;
        }
        err = load_tenant(a, &a->tenants[a->tenant_count++], &ids[i], &readable);
        *ret_readable = *ret_readable && readable;
    }
    kedge_mem_free(ids);
    for (uint32_t i = 0; !err && a->trust && i < a->trust->tenant_count; i++) {
        if (kedgei_holds(a, &a->trust->tenants[i].tenant)) {
            demand_tenant(a, &a->trust->tenants[i].tenant, ret_readable);
        }
    }
    for (size_t i = 0; !err && !a->trust && i < a->options.tenant_count; i++) {
        demand_tenant(a, &a->options.tenants[i], ret_readable);
    }
    return err;
}

static bool folder_exists(const char *path)
{
    DIR *d = opendir(path);
    if (d) {
        closedir(d);
    }
    return d != NULL;
}

/* DIR/state with DIR/models, or a state folder itself. */
static int find_folders(struct kedgei_audit *a, const char *dir)
{
    char config[KEDGE_PATH_MAX];
    int err = kedge_path_join(config, dir, "config.json");
    if (err || strlen(dir) + 1 > sizeof a->state) {
        return kedge_diag_set(&a->diag, KEDGE_E_TOO_LONG, "%s: path too long", dir);
    }
    if (kedge_file_exists(config)) {
        snprintf(a->state, sizeof a->state, "%s", dir);
        return KEDGE_OK;
    }
    err = kedge_path_join(a->state, dir, "state");
    err = err ? err : kedge_path_join(a->models, dir, "models");
    err = err ? err : kedge_path_join(config, a->state, "config.json");
    if (err) {
        return kedge_diag_set(&a->diag, err, "%s: path too long", dir);
    }
    if (!folder_exists(a->models)) {
        a->models[0] = '\0';
    }
    if (!kedge_file_exists(config)) {
        (void)kedge_diag_set(&a->diag, KEDGE_E_NOT_FOUND, "%s: no record here: expected %s", dir, config);
        (void)kedge_diag_hint(&a->diag,
                              "name the folder that kedge poc made, or a coordinator's state folder");
        return KEDGE_E_NOT_FOUND;
    }
    return KEDGE_OK;
}

int kedgei_record_load(struct kedgei_audit *a, const char *dir, bool *ret_readable)
{
    struct kedge_diag d = {.err = KEDGE_OK};
    bool readable = true;
    int err = find_folders(a, dir);
    if (err) {
        return err;
    }
    err = kedge_state_deployment(a->state, a->deployment, &d);
    if (is_our_trouble(err)) {
        a->diag = d;
        return err;
    }
    if (err) {
        kedgei_find(&a->findings, KEDGE_AUDIT_ERROR, KEDGE_AUDIT_STATE, "config.json", "%s", d.text);
        *ret_readable = false;
        return KEDGE_OK;
    }
    if (a->trust && strcmp(a->trust->deployment, a->deployment) != 0) {
        kedgei_find(&a->findings, KEDGE_AUDIT_ERROR, KEDGE_AUDIT_STATE, "config.json",
                    "deployment is \"%s\", the trust file says \"%s\"", a->deployment, a->trust->deployment);
    }
    a->main.name = "main";
    snprintf(a->main.origin, sizeof a->main.origin, "%s/main", a->deployment);
    set_trusted(a, &a->main);
    /* The main chain first: in a record that grows meanwhile, tenants' ledgers are then at least as long as
     * it says. */
    err = load_log(a, &a->main, "main", &readable);
    err = err || !readable ? err : open_blobs(a, &a->main, "main");
    err = err ? err : load_tenants(a, &readable);
    *ret_readable = readable;
    return err;
}

void kedgei_log_deinit(struct kedgei_log *log)
{
    for (uint64_t i = 0; log->facts && i < log->count; i++) {
        kedge_mem_free(log->facts[i].body);
    }
    for (size_t i = 0; i < KEDGEI_LEVELS; i++) {
        kedge_mem_free(log->levels[i]);
    }
    kedge_mem_free(log->facts);
    kedge_mem_free(log->entries);
    kedge_mem_free(log->heads);
    kedge_mem_free(log->stored_keys);
    kedge_mem_free(log->keys);
    kedge_mem_free(log->anchors);
    kedge_buf_deinit(&log->key_text);
    kedge_buf_deinit(&log->dump);
    kedge_blobs_close(log->blobs);
}
