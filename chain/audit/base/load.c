/* From the state folder to logs: what spool.c brings out of the stores, and what the trust file says of
 * them.
 *
 * The auditor opens no store itself: a child process does (spool.c), and what arrives here are bytes in a
 * file. Keys come from the trust file if there is one; otherwise each log's own first entry names them,
 * which proves only that the copy agrees with itself. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "chain/audit/base/spool.h"
#include "chain/audit/record.h"
#include "common/base/mem.h"
#include "common/base/try.h"

enum {
    TIMEOUT_LEAST_S = 60,
    BYTES_PER_S = 2 << 20,
    GROWS_MEANWHILE = 64 << 20, /* bytes, beside a coordinator */
};

/* Entries stand where their numbers say; behind a gap nothing can be placed. The counts come from the
 * child's message and the records from its file, and neither is trusted: a record beyond the counts is
 * dropped, and a missing one ends the log there, because the tree is hashed over entries without a gap. */
static int fill_log(struct kedgei_audit *a, struct kedgei_log *log, const struct kedgei_spool *spool)
{
    struct kedge_reader r = kedge_reader_of(spool->records);
    struct kedgei_spool_record record;
    size_t heads = 0, keys = 0;
    log->entries = kedgei_scratch_new(&a->scratch, (size_t)spool->entries + 1, sizeof *log->entries);
    log->heads = kedgei_scratch_new(&a->scratch, (size_t)spool->heads + 1, sizeof *log->heads);
    log->stored_keys = kedgei_scratch_new(&a->scratch, (size_t)spool->keys + 1, sizeof *log->stored_keys);
    if (!log->entries || !log->heads || !log->stored_keys) {
        return kedgei_scratch_error(&a->scratch, &a->diag);
    }
    while (kedgei_spool_next(&r, &record)) {
        if (record.kind == 'e' && record.number < spool->entries) {
            log->entries[record.number] = record.bytes;
        } else if (record.kind == 'w' && record.number < spool->entries
                   && record.bytes.len == KEDGE_HASH_LEN) {
            log->entries[record.number] = kedge_view_of(record.bytes.ptr, 0);
        } else if (record.kind == 'h' && heads < spool->heads) {
            log->heads[heads++] = (struct kedgei_head){.size = record.number, .note = record.bytes};
        } else if (record.kind == 'k' && keys < spool->keys) {
            log->stored_keys[keys++] = (struct kedgei_key_row){record.bytes, record.number};
        }
        kedgei_scratch_evict_if_large(&a->scratch);
    }
    while (log->count < spool->entries && log->entries[log->count].ptr) {
        log->count++;
        kedgei_scratch_evict_if_large(&a->scratch);
    }
    log->head_count = heads;
    log->stored_key_count = keys;
    return KEDGE_OK;
}

/* Bytes of the store's file; 0 when it cannot be looked at. */
static uint64_t store_size(const struct kedgei_audit *a, const char *folder)
{
    char path[KEDGE_PATH_MAX];
    int64_t size = kedge_state_path(path, NULL, a->state, "%s/ledger.lmdb/data.mdb", folder) == KEDGE_OK
                       ? kedge_file_size(path)
                       : 0;
    return size > 0 ? (uint64_t)size : 0;
}

/* A damaged tree can lead the reading child in a circle, so there is always a limit; it grows with the
 * file, for a large record on a slow disk is no damage. */
static uint32_t read_timeout_ms(const struct kedgei_audit *a, const char *folder)
{
    if (a->options.read_timeout_s) {
        return a->options.read_timeout_s < UINT32_MAX / 1000 ? a->options.read_timeout_s * 1000 : 0;
    }
    uint64_t seconds = TIMEOUT_LEAST_S + store_size(a, folder) / BYTES_PER_S;
    return seconds < UINT32_MAX / 1000 ? (uint32_t)seconds * 1000 : 0;
}

/* Errors about the machine, or a record that another program reads, end the audit; everything else is the
 * record's fault. */
static bool is_our_trouble(int err)
{
    return err == KEDGE_E_VERSION || err == KEDGE_E_NOMEM || err == KEDGE_E_DENIED || err == KEDGE_E_FULL
           || err == KEDGE_E_DISK_FULL || err == KEDGE_E_LOCKED || err == KEDGE_E_BUSY;
}

/* *ret_readable becomes false when the log could not be read. What the child may write is bounded by
 * twice the store's size: packed entries are unpacked, but a damaged page that is found again and again
 * must not fill the disk. Beside a coordinator the file may grow meanwhile, hence GROWS_MEANWHILE. */
static int load_log(struct kedgei_audit *a, struct kedgei_log *log, const char *folder, bool *ret_readable)
{
    struct kedge_diag d = {.err = KEDGE_OK};
    struct kedgei_spool spool;
    log->scratch = &a->scratch;
    struct kedgei_spooling what = {.state = a->state,
                                   .tenant = log->tenant.s[0] ? &log->tenant : NULL,
                                   .beside = a->options.beside_coordinator,
                                   .unsigned_heads = log->has_vkey,
                                   .timeout_ms = read_timeout_ms(a, folder),
                                   .most = 2 * store_size(a, folder) + GROWS_MEANWHILE};
    int err = kedgei_spool(&what, &a->scratch, &spool, &d);
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
    log->records = spool.records;
    log->is_copy = spool.is_copy;
    log->salted = spool.salted;
    if (spool.damaged) {
        kedgei_find(&a->findings, KEDGE_AUDIT_ERROR, KEDGE_AUDIT_LEDGER, folder, "%s", spool.damage);
    }
    return fill_log(a, log, &spool);
}

/* Keys that the command line names besides. */
static int add_blob_keys(struct kedgei_audit *a, const struct kedgei_log *log)
{
    for (size_t i = 0; i < a->options.blob_key_count; i++) {
        const struct kedge_audit_blob_key *key = &a->options.blob_keys[i];
        if (kedge_id_eq(&key->tenant, &log->tenant)) {
            KEDGE_TRY(kedge_blob_keys_add(kedge_blobs_keys(log->blobs), key->path, &a->diag));
        }
    }
    return KEDGE_OK;
}

static int open_blobs(struct kedgei_audit *a, struct kedgei_log *log, const char *folder)
{
    struct kedge_blobs_options options = {.read_only = true};
    char path[KEDGE_PATH_MAX], keys[KEDGE_PATH_MAX];
    int err = kedge_state_path(path, &a->diag, a->state, "%s", folder);
    if (err || !log->tenant.s[0]) {
        return err ? err : kedge_blobs_open(path, &options, &log->blobs, &a->diag);
    }
    KEDGE_TRY(kedge_state_blob_options(a->state, &log->tenant, keys, &options, &a->diag));
    KEDGE_TRY(kedge_blobs_open(path, &options, &log->blobs, &a->diag));
    log->own_blob_keys = kedge_blob_keys_count(kedge_blobs_keys(log->blobs));
    return add_blob_keys(a, log);
}

/* A tenant that the trust file does not name has no keys here: its statements are not judged by keys that
 * it brought itself. */
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

/* A record from which a whole ledger was taken away would otherwise look consistent. */
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
    if (kedge_path_join(a->state, dir, "state") || kedge_path_join(a->models, dir, "models")
        || kedge_path_join(config, a->state, "config.json")) {
        return kedge_diag_set(&a->diag, KEDGE_E_TOO_LONG, "%s: path too long", dir);
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

/* A log that cannot be read makes the record unreadable and is named; the other logs are read all the
 * same, so that all such faults are told at once. */
int kedgei_record_load(struct kedgei_audit *a, const char *dir, bool *ret_readable)
{
    struct kedge_diag d = {.err = KEDGE_OK};
    bool readable = true;
    KEDGE_TRY(find_folders(a, dir));
    int err = kedge_state_deployment(a->state, a->deployment, &d);
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
    KEDGE_TRY(load_log(a, &a->main, "main", &readable));
    if (readable) {
        KEDGE_TRY(open_blobs(a, &a->main, "main"));
    }
    KEDGE_TRY(load_tenants(a, &readable));
    *ret_readable = readable;
    return KEDGE_OK;
}

void kedgei_log_deinit(struct kedgei_audit *a, struct kedgei_log *log)
{
    if (log->keys != log->stored_keys) {
        kedgei_scratch_free(&a->scratch, log->keys);
    }
    for (size_t i = 0; i < KEDGEI_LEVELS; i++) {
        kedgei_scratch_free(&a->scratch, log->levels[i]);
    }
    kedgei_scratch_free(&a->scratch, log->facts);
    kedgei_scratch_free(&a->scratch, log->entries);
    kedgei_scratch_free(&a->scratch, log->heads);
    kedgei_scratch_free(&a->scratch, log->stored_keys);
    kedgei_scratch_free(&a->scratch, log->anchors);
    kedgei_scratch_free(&a->scratch, log->key_text);
    kedgei_arena_deinit(&log->bodies);
    kedgei_scratch_unmap(&a->scratch, log->records);
    kedge_blobs_close(log->blobs);
}
