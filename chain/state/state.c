/* The layout of a state folder, and the order in which it is made. A folder counts as made once
 * config.json is there, a tenant once its tenant.json is: both are written last. A creation that a crash
 * interrupted is repeated and goes on with the keys that it finds, because a ledger is bound to its key.
 *
 * Keys are rotated by a second file, statement-next.pem. The statement that the new key is in force is
 * made durable first, then the file is renamed over the old one: at a crash between the two the start
 * finds both keys, and the main chain says which one counts. */
#include "chain/state/state.h"

#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/limits.h"
#include "common/base/mem.h"
#include "common/base/os/entropy.h"
#include "common/base/try.h"
#include "common/json/json.h"
#include "crypto/hash.h"
#include "crypto/keyfile.h"

enum {
    CONFIG_MAX = 65536,
    TENANT_FILE_MAX = 4096,
    TENANT_MAP = 64 << 20,      /* address space of a small ledger; it grows */
    TENANT_FOLDERS_MAX = 16384, /* of a folder that is read: a coordinator serves KEDGE_TENANTS_MAX of them */
};

int kedge_state_path(char out[KEDGE_PATH_MAX], struct kedge_diag *reterr, const char *state,
                     const char *format, ...)
{
    char name[KEDGE_PATH_MAX];
    va_list ap;
    va_start(ap, format);
    int n = vsnprintf(name, sizeof name, format, ap);
    va_end(ap);
    if (n < 0 || n >= KEDGE_PATH_MAX || kedge_path_join(out, state, name) != KEDGE_OK) {
        return kedge_diag_set(reterr, KEDGE_E_TOO_LONG, "%s: path too long", state);
    }
    return KEDGE_OK;
}

/* The name becomes part of JSON files and of every log's origin, where it is written as it is. So it has
 * only characters that neither a quotation mark in JSON nor a line of a checkpoint could be made of. */
static bool deployment_is_valid(const char *d)
{
    size_t len = strlen(d);
    if (len == 0 || len > KEDGE_DEPLOYMENT_MAX) {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        char c = d[i];
        bool word = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        if (!word && !(i > 0 && (c == '.' || c == '-' || c == '/' || c == ':'))) {
            return false;
        }
    }
    return true;
}

static int make_dirs(const char *state, const char *const *names, size_t count, struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX];
    for (size_t i = 0; i < count; i++) {
        KEDGE_TRY(kedge_state_path(path, d, state, "%s", names[i]));
        KEDGE_TRY(kedge_dir_make(path, 0700, d));
    }
    return KEDGE_OK;
}

static int make_key(const char *state, const char *name, struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX];
    struct kedge_key_pair pair;
    int err = kedge_state_path(path, d, state, "keys/%s.pem", name);
    if (err || kedge_file_exists(path)) {
        return err; /* a creation that a crash interrupted goes on: its ledger is bound to this key */
    }
    kedge_key_generate(&pair);
    err = kedge_keyfile_write_private(path, &pair, d);
    kedge_key_wipe(&pair);
    return err;
}

/* Stores of a log whose folder and key are known; `create` makes the ledger. After an error the caller
 * closes what is open. A log that is opened for writing gets its key and its high-water mark, and is
 * refused when it is shorter than the mark says: it would sign a second history. A reader has neither,
 * and needs no file under keys/. */
static int open_stores(const char *state, const char *folder, const char *mark, enum kedge_state_mode mode,
                       bool create, struct kedge_state_log *log, struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX], high_water[KEDGE_PATH_MAX], keys[KEDGE_PATH_MAX];
    bool write = mode == KEDGE_STATE_WRITE || mode == KEDGE_STATE_TAKE_OVER;
    struct kedge_kv_lmdb_options kv = {.create = create,
                                       .read_only = !write,
                                       .no_lock = mode == KEDGE_STATE_COPY,
                                       .on_demand = write && log->tenant.s[0],
                                       .map_bytes = write && log->tenant.s[0] ? TENANT_MAP : 0,
                                       .lock_wait_ms =
                                           mode == KEDGE_STATE_TAKE_OVER ? KEDGE_LOCK_WAIT_MS : 0};
    struct kedge_blobs_options blobs = {.read_only = !write};
    struct kedge_ledger_options ledger = {.origin = log->origin,
                                          .key = write ? &log->key : NULL,
                                          .high_water_path = write ? high_water : NULL,
                                          .create = create};
    KEDGE_TRY(kedge_state_path(path, d, state, "%s/ledger.lmdb", folder));
    KEDGE_TRY(kedge_state_path(high_water, d, state, "high-water/%s", mark));
    KEDGE_TRY(kedge_kv_lmdb_open(path, &kv, &log->kv, d));
    KEDGE_TRY(kedge_ledger_open(log->kv, &ledger, &log->ledger, d));
    KEDGE_TRY(kedge_state_path(path, d, state, "%s", folder));
    KEDGE_TRY(kedge_state_blob_options(state, log->tenant.s[0] ? &log->tenant : NULL, keys, &blobs, d));
    return kedge_blobs_open(path, &blobs, &log->blobs, d);
}

static int open_parts(const char *state, const char *folder, const char *mark, enum kedge_state_mode mode,
                      bool create, struct kedge_state_log *log, struct kedge_diag *d)
{
    int err = open_stores(state, folder, mark, mode, create, log, d);
    if (err) {
        kedge_state_log_close(log);
        return kedge_diag_wrap(d, err, "log %s", log->origin);
    }
    return KEDGE_OK;
}

static int set_names(const char *state, const struct kedge_id *tenant, struct kedge_state_log *log,
                     struct kedge_diag *d)
{
    char deployment[KEDGE_DEPLOYMENT_MAX + 1];
    KEDGE_TRY(kedge_state_deployment(state, deployment, d));
    if (tenant) {
        log->tenant = *tenant;
    }
    snprintf(log->origin, sizeof log->origin, "%s/%s", deployment, tenant ? tenant->s : "main");
    return KEDGE_OK;
}

static int read_log_key(const char *state, struct kedge_state_log *log, struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX];
    int err = kedge_state_path(path, d, state, "keys/log-%s.pem", log->tenant.s[0] ? log->tenant.s : "main");
    if (!err) {
        err = kedge_keyfile_read_private(path, &log->key, d);
    }
    log->has_key = !err;
    return err;
}

/* An empty ledger under the log's key; log has its names. */
static int make_log(const char *state, const char *folder, const char *mark, struct kedge_state_log *log,
                    struct kedge_diag *d)
{
    int err = read_log_key(state, log, d);
    if (!err) {
        err = open_parts(state, folder, mark, KEDGE_STATE_WRITE, true, log, d);
    }
    kedge_state_log_close(log);
    return err;
}

static int make_state_keys(const char *state, struct kedge_diag *d)
{
    static const char *const names[] = {"tls", "statement", "log-main"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        KEDGE_TRY(make_key(state, names[i], d));
    }
    return KEDGE_OK;
}

int kedge_state_create(const char *state, const char *deployment, struct kedge_diag *reterr)
{
    static const char *const folders[] = {".", "keys", "main", "tenants", "high-water"};
    char config[KEDGE_PATH_MAX], text[512];
    struct kedge_state_log log = {.kv = NULL};
    if (!deployment_is_valid(deployment)) {
        return kedge_diag_set(
            reterr, KEDGE_E_ARG,
            "deployment \"%.60s\": expected a host-like name of a-z 0-9 . - / :", deployment);
    }
    KEDGE_TRY(kedge_state_path(config, reterr, state, "config.json"));
    if (kedge_file_exists(config)) {
        (void)kedge_diag_set(reterr, KEDGE_E_EXISTS, "%s: there is a state folder already", state);
        (void)kedge_diag_hint(reterr, "start it with: kedge-coordinator --state %s", state);
        return KEDGE_E_EXISTS;
    }
    KEDGE_TRY(make_dirs(state, folders, sizeof folders / sizeof folders[0], reterr));
    KEDGE_TRY(make_state_keys(state, reterr));
    snprintf(log.origin, sizeof log.origin, "%s/main", deployment);
    KEDGE_TRY(make_log(state, "main", "main", &log, reterr));
    snprintf(text, sizeof text,
             "{\n  \"deployment\": \"%s\",\n  \"listen\": [\"tls+tcp://127.0.0.1:7443\"],\n"
             "  \"encrypt_blobs\": true,\n  \"pack_blobs\": true\n}\n",
             deployment);
    KEDGE_TRY(
        kedge_file_write(config, kedge_view_str(text), 0600, reterr)); /* last: now the folder is whole */
    return kedge_diag_set(reterr, KEDGE_OK, "%s", ""); /* what was absent before was no fault */
}

int kedge_state_config(const char *state, struct kedge_buf *ret, struct kedge_diag *reterr)
{
    char path[KEDGE_PATH_MAX];
    int err = kedge_state_path(path, reterr, state, "config.json");
    if (!err) {
        err = kedge_file_read(path, ret, reterr);
    }
    if (err == KEDGE_E_NOT_FOUND) {
        (void)kedge_diag_set(reterr, err, "%s: no state folder here (config.json is missing)", state);
        (void)kedge_diag_hint(reterr, "make one with: kedge init %s", state);
    }
    return err;
}

/* Whether new blobs are encrypted and packed is what config.json says. Readers do not ask it: each blob
 * tells by itself how it is stored, so folders with other settings than before stay readable, and so does
 * a copy without the file. */
int kedge_state_blob_options(const char *state, const struct kedge_id *tenant, char keys_dir[KEDGE_PATH_MAX],
                             struct kedge_blobs_options *options, struct kedge_diag *reterr)
{
    struct kedge_buf text;
    json_t *root = NULL;
    KEDGE_TRY(tenant ? kedge_state_path(keys_dir, reterr, state, "keys/updates/%s", tenant->s) : KEDGE_OK);
    options->keys_dir = tenant ? keys_dir : NULL;
    if (options->read_only) {
        return KEDGE_OK;
    }
    kedge_buf_init(&text, CONFIG_MAX);
    int err = kedge_state_config(state, &text, reterr);
    if (err == KEDGE_E_NOT_FOUND && !tenant) { /* the folder is being made */
        kedge_buf_deinit(&text);
        return KEDGE_OK;
    }
    if (!err) {
        err = kedgei_json_load(kedge_buf_view(&text), CONFIG_MAX, "config.json", &root, reterr);
    }
    options->encrypt = !err && tenant && json_is_true(json_object_get(root, "encrypt_blobs"));
    options->pack = !err && json_is_true(json_object_get(root, "pack_blobs"));
    json_decref(root);
    kedge_buf_deinit(&text);
    return err;
}

bool kedge_state_blob_keys_beside(const char *folder, char out[KEDGE_PATH_MAX])
{
    const char *tenant = strrchr(folder, '/');
    static const char parent[] = "tenants";
    size_t len = sizeof parent - 1;
    struct kedge_id id;
    if (!tenant || (size_t)(tenant - folder) < len || memcmp(tenant - len, parent, len) != 0
        || (tenant - len > folder && *(tenant - len - 1) != '/')
        || kedge_id_from(kedge_view_str(tenant + 1), &id) != KEDGE_OK) {
        return false;
    }
    int n = snprintf(out, KEDGE_PATH_MAX, "%.*skeys/updates/%s", (int)(tenant - len - folder), folder, id.s);
    return n > 0 && n < KEDGE_PATH_MAX;
}

/* Copies the string at `key` of a JSON file's object. */
static int json_file_string(const char *path, struct kedge_view text, const char *key, char *out,
                            size_t out_len, struct kedge_diag *d)
{
    json_t *root KEDGE_CLEANUP(json_decrefp) = NULL;
    KEDGE_TRY(kedgei_json_load(text, CONFIG_MAX, path, &root, d));
    const char *s = json_string_value(json_object_get(root, key));
    KEDGE_TRY(s && strlen(s) < out_len
                  ? KEDGE_OK
                  : kedge_diag_set(d, KEDGE_E_FORMAT, "%s: \"%s\" is missing", path, key));
    snprintf(out, out_len, "%s", s);
    return KEDGE_OK;
}

int kedge_state_deployment(const char *state, char out[KEDGE_DEPLOYMENT_MAX + 1], struct kedge_diag *reterr)
{
    struct kedge_buf text;
    kedge_buf_init(&text, CONFIG_MAX);
    int err = kedge_state_config(state, &text, reterr);
    if (!err) {
        err = json_file_string("config.json", kedge_buf_view(&text), "deployment", out,
                               KEDGE_DEPLOYMENT_MAX + 1, reterr);
    }
    kedge_buf_deinit(&text);
    if (!err && !deployment_is_valid(out)) {
        err = kedge_diag_set(reterr, KEDGE_E_FORMAT, "%s/config.json: \"deployment\" is not a host-like name",
                             state);
    }
    return err;
}

int kedge_state_key(const char *state, enum kedge_state_key which, struct kedge_key_pair *ret,
                    struct kedge_diag *reterr)
{
    static const char *const names[] = {"tls", "statement", "statement-next"};
    char path[KEDGE_PATH_MAX];
    int err = kedge_state_path(path, reterr, state, "keys/%s.pem", names[which]);
    return err ? err : kedge_keyfile_read_private(path, ret, reterr);
}

int kedge_state_key_make_next(const char *state, struct kedge_key_pair *ret, struct kedge_diag *reterr)
{
    char path[KEDGE_PATH_MAX], like[KEDGE_PATH_MAX];
    KEDGE_TRY(kedge_state_path(path, reterr, state, "keys/statement-next.pem"));
    KEDGE_TRY(kedge_state_path(like, reterr, state, "keys/statement.pem"));
    return kedge_file_exists(path) ? kedge_keyfile_read_private(path, ret, reterr)
                                   : kedge_keyfile_make_like(path, like, ret, reterr);
}

int kedge_state_key_switch(const char *state, struct kedge_diag *reterr)
{
    char path[KEDGE_PATH_MAX], next[KEDGE_PATH_MAX], folder[KEDGE_PATH_MAX];
    KEDGE_TRY(kedge_state_path(path, reterr, state, "keys/statement.pem"));
    KEDGE_TRY(kedge_state_path(next, reterr, state, "keys/statement-next.pem"));
    KEDGE_TRY(kedge_state_path(folder, reterr, state, "keys"));
    if (rename(next, path) != 0) {
        return kedge_diag_set(reterr, KEDGE_E_IO, "%s: cannot be renamed to %s: %s", next, path,
                              strerror(errno));
    }
    return kedge_dir_sync(folder);
}

/* In the order that the head of this file gives: folder, key, ledger, and tenant.json last. A call that
 * was interrupted is repeated with the same key; the salt is drawn anew, for nothing has been written
 * with it yet. */
int kedge_state_tenant_create(const char *state, const struct kedge_id *tenant, struct kedge_diag *reterr)
{
    char path[KEDGE_PATH_MAX], folder[KEDGE_PATH_MAX], name[KEDGE_ID_MAX + 8],
        salt_hex[2 * KEDGE_SALT_LEN + 1];
    char text[512];
    uint8_t salt[KEDGE_SALT_LEN];
    struct kedge_state_log log = {.kv = NULL};
    if (strcmp(tenant->s, "main") == 0) {
        return kedge_diag_set(reterr, KEDGE_E_ARG, "tenant \"main\": the name belongs to the main chain");
    }
    KEDGE_TRY(kedge_state_path(path, reterr, state, "tenants/%s/tenant.json", tenant->s));
    if (kedge_file_exists(path)) {
        return kedge_diag_set(reterr, KEDGE_E_EXISTS, "tenant \"%s\" exists already", tenant->s);
    }
    snprintf(folder, sizeof folder, "tenants/%s", tenant->s);
    snprintf(name, sizeof name, "log-%s", tenant->s);
    const char *const folders[] = {folder};
    KEDGE_TRY(make_dirs(state, folders, 1, reterr));
    KEDGE_TRY(make_key(state, name, reterr));
    KEDGE_TRY(set_names(state, tenant, &log, reterr));
    KEDGE_TRY(make_log(state, folder, tenant->s, &log, reterr));
    kedge_os_random(salt, sizeof salt);
    kedge_hex_encode(salt, sizeof salt, salt_hex);
    snprintf(text, sizeof text, "{\n  \"tenant\": \"%s\",\n  \"salt\": \"%s\"\n}\n", tenant->s, salt_hex);
    return kedge_file_write(path, kedge_view_str(text), 0600, reterr);
}

static int read_salt(const char *state, struct kedge_state_log *log, struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX], hex[2 * KEDGE_SALT_LEN + 2];
    struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&text, TENANT_FILE_MAX);
    KEDGE_TRY(kedge_state_path(path, d, state, "tenants/%s/tenant.json", log->tenant.s));
    KEDGE_TRY(kedge_file_read(path, &text, d));
    KEDGE_TRY(json_file_string(path, kedge_buf_view(&text), "salt", hex, sizeof hex, d));
    if (kedge_hex_decode(kedge_view_str(hex), log->salt, sizeof log->salt) != KEDGE_OK) {
        return kedge_diag_set(d, KEDGE_E_FORMAT, "%s: \"salt\": expected 64 hex digits", path);
    }
    return KEDGE_OK;
}

int kedge_state_log_open(const char *state, const struct kedge_id *tenant, enum kedge_state_mode mode,
                         struct kedge_state_log *ret, struct kedge_diag *reterr)
{
    struct kedge_state_log log = {.kv = NULL};
    char folder[KEDGE_PATH_MAX];
    snprintf(folder, sizeof folder, tenant ? "tenants/%s" : "main", tenant ? tenant->s : "");
    int err = set_names(state, tenant, &log, reterr);
    if (!err && tenant) {
        err = read_salt(state, &log, reterr);
    }
    if (!err && (mode == KEDGE_STATE_WRITE || mode == KEDGE_STATE_TAKE_OVER)) {
        err = read_log_key(state, &log, reterr);
    }
    if (err) {
        return err;
    }
    /* The ledger borrows the key until it is closed, so it must live where the caller keeps it. */
    *ret = log;
    err = open_parts(state, folder, tenant ? tenant->s : "main", mode, false, ret, reterr);
    return err;
}

void kedge_state_log_close(struct kedge_state_log *log)
{
    kedge_blobs_close(log->blobs);
    kedge_ledger_close(log->ledger);
    kedge_kv_close(log->kv);
    log->blobs = NULL;
    log->ledger = NULL;
    log->kv = NULL;
    kedge_key_wipe(&log->key);
    log->has_key = false;
}

static int compare_ids(const void *a, const void *b)
{
    return kedge_id_cmp(a, b);
}

/* Room for one more; *ids is freed by the caller, after an error, too. */
static int make_room(struct kedge_id **ids, size_t count, size_t *room, const char *path,
                     struct kedge_diag *reterr)
{
    if (count < *room) {
        return KEDGE_OK;
    }
    if (count >= TENANT_FOLDERS_MAX) {
        return kedge_diag_set(reterr, KEDGE_E_FULL, "%s: more than %d tenants", path, TENANT_FOLDERS_MAX);
    }
    struct kedge_id *more = kedge_mem_resize(*ids, *room * 2, sizeof *more);
    if (!more) {
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "%s: cannot list tenants: out of memory", path);
    }
    *ids = more;
    *room *= 2;
    return KEDGE_OK;
}

/* In ascending order, for readdir has none: a snapshot compares two such lists to see whether a tenant
 * came in between, and what is written tenant by tenant must be the same each time. */
int kedge_state_tenants(const char *state, struct kedge_id **ret_ids, size_t *ret_count,
                        struct kedge_diag *reterr)
{
    char path[KEDGE_PATH_MAX], file[KEDGE_PATH_MAX];
    int err = kedge_state_path(path, reterr, state, "tenants");
    if (err) {
        return err;
    }
    size_t count = 0, room = KEDGE_TENANTS_MAX;
    struct kedge_id *ids = kedge_mem_new(room, sizeof *ids);
    DIR *dir = ids ? opendir(path) : NULL;
    if (!dir) {
        kedge_mem_free(ids);
        return kedge_diag_set(reterr, ids ? kedge_errno(errno) : KEDGE_E_NOMEM, "%s: cannot list tenants",
                              path);
    }
    struct dirent *entry;
    while (!err && (entry = readdir(dir)) != NULL) {
        struct kedge_id id;
        if (kedge_id_from(kedge_view_str(entry->d_name), &id) != KEDGE_OK) {
            continue;
        }
        err = kedge_state_path(file, reterr, state, "tenants/%s/tenant.json", id.s);
        if (err || !kedge_file_exists(file)) {
            continue; /* a creation that did not finish */
        }
        err = make_room(&ids, count, &room, path, reterr);
        if (!err) {
            ids[count++] = id;
        }
    }
    closedir(dir);
    if (err) {
        kedge_mem_free(ids);
        return err;
    }
    qsort(ids, count, sizeof *ids, compare_ids);
    *ret_ids = ids;
    *ret_count = count;
    return KEDGE_OK;
}

void kedge_state_salted_id(const struct kedge_state_log *log, struct kedge_hash *ret)
{
    kedge_salted_tenant_id(log->salt, &log->tenant, ret);
}
