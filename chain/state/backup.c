/* Order of a copy: first the small files, for what follows from a log (an anchor, a cosignature) must not be
 * newer than the log's copy; then one moment of all stores and keys; then blobs, which are written before the
 * entry that names them; at last the updates' keys, which are made before a blob under them. So everything
 * that the copied logs name is there, and nothing is newer than them but keys that nothing is under yet. */
#include "chain/state/backup.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "chain/state/backup_impl.h"
#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "common/base/try.h"

enum { JSON_MAX = 65536, SUM_LINE_MAX = KEDGE_HASH_HEX_LEN + 3 + KEDGE_PATH_MAX };

/* ---- small files ---- */

bool kedgei_ends_with(const char *name, const char *end)
{
    size_t len = strlen(name), end_len = strlen(end);
    return len >= end_len && strcmp(name + len - end_len, end) == 0;
}

static const char *last_part(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash ? slash + 1 : name;
}

/* All but what is copied in a way of its own here (keys, stores, blobs), what is of this machine and
 * process (addresses, sockets, locks, "in-use"), and what is under way (uploads, temporary files). A list
 * of exceptions, so that a kind of file that is added later is backed up without a change here. */
static bool is_small_file(void *arg, const char *name, bool is_dir)
{
    static const char *const not_these[] = {"keys",   "high-water",      "address",         "https-address",
                                            "blobs",  "staging",         "coordinator.ipc", KEDGE_BACKUP_FILE,
                                            "in-use", KEDGE_BACKUP_SUMS, "events"};
    const char *last = last_part(name);
    (void)arg;
    (void)is_dir;
    for (size_t i = 0; i < sizeof not_these / sizeof not_these[0]; i++) {
        if (strcmp(last, not_these[i]) == 0) {
            return false;
        }
    }
    return !strstr(last, ".lmdb") && !kedgei_ends_with(last, ".tmp") && strcmp(last, "lock") != 0;
}

static bool is_update_key(void *arg, const char *name, bool is_dir)
{
    (void)arg;
    return is_dir || kedgei_ends_with(name, ".pem");
}

static int copy_one(const char *from_dir, const char *to_dir, const char *name, struct kedge_diag *d)
{
    char from[KEDGE_PATH_MAX], to[KEDGE_PATH_MAX];
    KEDGE_TRY(kedge_state_path(from, d, from_dir, "%s", name));
    KEDGE_TRY(kedge_state_path(to, d, to_dir, "%s", name));
    KEDGE_TRY(kedge_tree_make_parents(to_dir, name, d));
    return kedge_tree_copy_file(from, to, NULL, NULL, d);
}

/* What is removed while we look (a temporary file, a key whose updates were erased) is no
 * fault. */
int kedgei_copy_tree(const char *from, const char *to, kedge_tree_wanted *wanted, struct kedge_diag *d)
{
    struct kedge_tree tree;
    int err = kedge_tree_list(from, wanted, NULL, &tree, d);
    if (err) {
        return err;
    }
    for (size_t i = 0; i < tree.count && !err; i++) {
        err = copy_one(from, to, tree.names[i], d);
        err = err == KEDGE_E_NOT_FOUND ? KEDGE_OK : err;
    }
    kedge_tree_deinit(&tree);
    return err;
}

int kedgei_copy_update_keys(const char *state, const char *out, struct kedge_diag *d)
{
    char from[KEDGE_PATH_MAX], to[KEDGE_PATH_MAX];
    KEDGE_TRY(kedge_state_path(from, d, state, "keys/updates"));
    int err = kedge_state_path(to, d, out, "keys/updates");
    return err || !kedge_file_exists(from) ? err : kedgei_copy_tree(from, to, is_update_key, d);
}

/* ---- blobs ---- */

struct blob_copy {
    const struct kedge_snapshot *s;
    struct kedge_ledger *main, *own; /* of the copy; own NULL: these are the main chain's blobs */
    const char *out;                 /* the log's folder in the copy */
    struct kedge_blobs *packs;       /* of it */
    int err;
    struct kedge_diag *d;
};

static int find_erased(struct kedge_ledger *l, const struct kedge_hash *digest)
{
    char key[KEDGE_IDEM_KEY_MAX + 1] = "erased/";
    kedge_hash_hex(digest, key + strlen(key));
    return kedge_ledger_find(l, kedge_view_str(key), NULL);
}

/* The same rule by which a coordinator sweeps: what no entry names is not kept, but for the specs of jobs
 * that the main chain does not know yet. Only KEDGE_E_NOT_FOUND says that nothing names a blob: a ledger that
 * cannot be read ends the backup, which would else lack files that it needs. */
static int is_kept(const struct blob_copy *c, const struct kedge_hash *digest, bool *ret)
{
    int err = c->own ? find_erased(c->own, digest) : KEDGE_E_NOT_FOUND;
    if (err != KEDGE_E_NOT_FOUND) {
        *ret = false;
        return err;
    }
    err = kedge_ledger_find_ref(c->main, digest, NULL);
    if (err == KEDGE_E_NOT_FOUND && !c->own) {
        return kedge_snapshot_job_names(c->s, digest, ret);
    }
    if (err == KEDGE_E_NOT_FOUND) {
        err = kedge_ledger_find_ref(c->own, digest, NULL);
    }
    *ret = err == KEDGE_OK;
    return err == KEDGE_E_NOT_FOUND ? KEDGE_OK : err;
}

static enum kedge_blob_verdict copy_blob(void *arg, const struct kedge_hash *digest, uint64_t size,
                                         const char *path)
{
    struct blob_copy *c = arg;
    char hex[KEDGE_HASH_HEX_LEN + 1], name[KEDGE_HASH_HEX_LEN + 16], to[KEDGE_PATH_MAX];
    bool kept = false;
    (void)size;
    c->err = digest ? is_kept(c, digest, &kept) : KEDGE_OK;
    if (c->err) {
        kedge_diag_set(c->d, c->err, "%s: the ledger that may name this file cannot be read: %s", path,
                       kedge_strerror(c->err));
        return KEDGE_BLOB_STOP;
    }
    if (!kept) {
        return KEDGE_BLOB_KEEP;
    }
    c->err = kedge_blobs_take(c->packs, digest, path, c->d);
    if (c->err != KEDGE_E_ARG) { /* erased at this very moment: as below */
        c->err = c->err == KEDGE_E_NOT_FOUND ? KEDGE_OK : c->err;
        return c->err ? KEDGE_BLOB_STOP : KEDGE_BLOB_KEEP;
    }
    kedge_hash_hex(digest, hex);
    snprintf(name, sizeof name, "blobs/%.2s/%s", hex, hex + 2);
    c->err = kedge_path_join(to, c->out, name);
    c->err = c->err ? c->err : kedge_tree_make_parents(c->out, name, c->d);
    c->err = c->err ? c->err : kedge_tree_copy_file(path, to, NULL, NULL, c->d);
    /* One that is erased at this very moment: what names it says so when the copy is verified. */
    c->err = c->err == KEDGE_E_NOT_FOUND ? KEDGE_OK : c->err;
    return c->err ? KEDGE_BLOB_STOP : KEDGE_BLOB_KEEP;
}

/* folder: "main" or "tenants/T". */
static int put_blobs_of(struct blob_copy *c, const char *state, const char *out, const char *folder)
{
    static const struct kedge_blobs_options options = {.read_only = true},
                                            packing = {.pack = true, .sync_later = true};
    char from[KEDGE_PATH_MAX], to[KEDGE_PATH_MAX];
    struct kedge_blobs *blobs;
    KEDGE_TRY(kedge_state_path(from, c->d, state, "%s", folder));
    KEDGE_TRY(kedge_state_path(to, c->d, out, "%s", folder));
    KEDGE_TRY(kedge_blobs_open(from, &options, &blobs, c->d));
    c->out = to;
    int err = kedge_blobs_open(to, &packing, &c->packs, c->d);
    if (!err) {
        err = kedge_blobs_for_each(blobs, copy_blob, c, c->d);
        kedge_blobs_close(c->packs);
    }
    kedge_blobs_close(blobs);
    return c->err ? c->err : err;
}

int kedge_backup_put_blobs(const char *state, const struct kedge_snapshot *s, const char *out,
                           struct kedge_diag *reterr)
{
    struct blob_copy c = {.s = s, .d = reterr};
    struct kedge_state_log main_log, log;
    const struct kedge_id *tenants;
    size_t count = kedge_snapshot_tenants(s, &tenants);
    KEDGE_TRY(kedge_state_log_open(out, NULL, KEDGE_STATE_COPY, &main_log, reterr));
    c.main = main_log.ledger;
    int err = put_blobs_of(&c, state, out, "main");
    for (size_t i = 0; i < count && !err; i++) {
        char folder[KEDGE_ID_MAX + 16];
        snprintf(folder, sizeof folder, "tenants/%s", tenants[i].s);
        err = kedge_state_log_open(out, &tenants[i], KEDGE_STATE_COPY, &log, reterr);
        if (!err) {
            c.own = log.ledger;
            err = put_blobs_of(&c, state, out, folder);
            kedge_state_log_close(&log);
        }
    }
    kedge_state_log_close(&main_log);
    return err;
}

/* ---- the whole ---- */

int kedgei_make_blob_folders(const char *out, const struct kedge_id *tenants, size_t count,
                             struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX];
    KEDGE_TRY(kedge_state_path(path, d, out, "tenants"));
    KEDGE_TRY(kedge_dir_make(path, 0700, d));
    KEDGE_TRY(kedge_state_path(path, d, out, "main/blobs"));
    int err = kedge_dir_make(path, 0700, d);
    if (err) {
        return err;
    }
    for (size_t i = 0; i < count; i++) {
        err = kedge_state_path(path, d, out, "tenants/%s/blobs", tenants[i].s);
        if (err) {
            return err;
        }
        err = kedge_dir_make(path, 0700, d);
        if (err) {
            return err;
        }
    }
    return KEDGE_OK;
}

static int copy_moment(const struct kedge_snapshot *s, const char *state, const char *out,
                       struct kedge_diag *d)
{
    const struct kedge_id *tenants;
    size_t count = kedge_snapshot_tenants(s, &tenants);
    KEDGE_TRY(kedgei_make_blob_folders(out, tenants, count, d));
    KEDGE_TRY(kedge_snapshot_put_keys(s, out, d));
    KEDGE_TRY(kedge_snapshot_put_stores(s, out, true, true, d));
    KEDGE_TRY(kedge_backup_put_blobs(state, s, out, d));
    return kedgei_copy_update_keys(state, out, d);
}

int kedge_backup_copy(const char *state, const char *out, struct kedge_diag *reterr)
{
    struct kedge_snapshot *s;
    if (kedge_backup_is(state)) {
        (void)kedge_diag_set(reterr, KEDGE_E_STATE, "%s is a backup already", state);
        return kedge_diag_hint(reterr, "copy it with cp -a: nothing in it changes");
    }
    KEDGE_TRY(kedgei_copy_tree(state, out, is_small_file, reterr));
    KEDGE_TRY(kedge_snapshot_take(state, &s, reterr));
    int err = copy_moment(s, state, out, reterr);
    kedge_snapshot_free(s);
    return err;
}

/* ---- the seal ---- */

static int count_entries(const char *out, struct kedge_backup *b, struct kedge_diag *d)
{
    struct kedge_state_log log;
    struct kedge_id *ids = NULL;
    size_t count = 0;
    int err = kedge_state_log_open(out, NULL, KEDGE_STATE_COPY, &log, d);
    if (!err) {
        b->entries = b->main_entries = kedge_ledger_size(log.ledger);
        kedge_state_log_close(&log);
        err = kedge_state_tenants(out, &ids, &count, d);
    }
    for (size_t i = 0; i < count && !err; i++) {
        err = kedge_state_log_open(out, &ids[i], KEDGE_STATE_COPY, &log, d);
        if (!err) {
            b->entries += kedge_ledger_size(log.ledger);
            kedge_state_log_close(&log);
        }
    }
    b->tenants = count;
    kedge_mem_free(ids);
    return err ? err : kedge_state_deployment(out, b->deployment, d);
}

/* LMDB's locks are of no use in a copy, and their content depends on the processes that made it. */
int kedgei_drop_locks(const char *out, struct kedge_tree *tree, struct kedge_diag *d)
{
    size_t kept = 0;
    int err = KEDGE_OK;
    for (size_t i = 0; i < tree->count; i++) {
        const char *last = last_part(tree->names[i]);
        bool is_lock = strcmp(last, "lock.mdb") == 0 || strcmp(last, "kedge.lock") == 0;
        char path[KEDGE_PATH_MAX];
        if (!is_lock) {
            tree->names[kept++] = tree->names[i];
            continue;
        }
        if (!err) {
            err = kedge_state_path(path, d, out, "%s", tree->names[i]);
        }
        if (!err && unlink(path) != 0) {
            err = kedge_diag_set(d, KEDGE_E_IO, "%s: cannot be removed", path);
        }
        kedge_mem_free(tree->names[i]);
    }
    tree->count = kept;
    return err;
}

/* The list is what `sha256sum` writes, so that a backup can be checked with `sha256sum -c` where no
 * program of Kedge is at hand. Names are sorted: equal copies have equal lists. */
static int put_sums(const char *out, const struct kedge_tree *tree, struct kedge_backup *b,
                    struct kedge_diag *d)
{
    struct kedge_buf sums KEDGE_CLEANUP(kedge_buf_deinit);
    char path[KEDGE_PATH_MAX], hex[KEDGE_HASH_HEX_LEN + 1];
    kedge_buf_init(&sums, (tree->count + 1) * SUM_LINE_MAX);
    for (size_t i = 0; i < tree->count; i++) {
        struct kedge_hash digest;
        uint64_t bytes;
        KEDGE_TRY(kedge_state_path(path, d, out, "%s", tree->names[i]));
        KEDGE_TRY(kedge_tree_hash_file(path, &digest, &bytes, d));
        kedge_hash_hex(&digest, hex);
        kedge_buf_printf(&sums, "%s  %s\n", hex, tree->names[i]);
        b->files++;
        b->bytes += bytes;
    }
    if (sums.err) {
        return kedge_diag_set(d, sums.err, "%s: %s", out, kedge_strerror(sums.err));
    }
    KEDGE_TRY(kedge_state_path(path, d, out, KEDGE_BACKUP_SUMS));
    return kedge_file_write(path, kedge_buf_view(&sums), 0600, d);
}

static int write_sums(const char *out, struct kedge_backup *b, struct kedge_diag *d)
{
    struct kedge_tree tree;
    KEDGE_TRY(kedge_tree_list(out, NULL, NULL, &tree, d));
    int err = kedgei_drop_locks(out, &tree, d);
    if (!err) {
        err = put_sums(out, &tree, b, d);
    }
    kedge_tree_deinit(&tree);
    return err;
}

/* The description is written last, after the files and the list of their sums are durable. A folder
 * without it is no backup (kedge_backup_is), so a copy that a crash or a full disk cut short is never
 * taken for one. */
int kedge_backup_seal(const char *out, struct kedge_backup *ret, struct kedge_diag *reterr)
{
    struct kedge_backup b = {.made_unix_ms = kedge_os_unix_ms()};
    char path[KEDGE_PATH_MAX];
    struct kedge_buf text;
    KEDGE_TRY(count_entries(out, &b, reterr));
    KEDGE_TRY(write_sums(out, &b, reterr));
    KEDGE_TRY(kedge_tree_sync(out, reterr));
    KEDGE_TRY(kedge_state_path(path, reterr, out, KEDGE_BACKUP_FILE));
    kedge_buf_init(&text, JSON_MAX);
    kedge_buf_printf(&text,
                     "{\n  \"format\": \"" KEDGE_BACKUP_FORMAT "\",\n  \"deployment\": \"%s\",\n"
                     "  \"made_unix_ms\": %" PRIu64 ",\n  \"main_entries\": %" PRIu64
                     ",\n  \"entries\": %" PRIu64 ",\n  \"tenants\": %" PRIu64 ",\n  \"files\": %" PRIu64
                     ",\n  \"bytes\": %" PRIu64 "\n}\n",
                     b.deployment, b.made_unix_ms, b.main_entries, b.entries, b.tenants, b.files, b.bytes);
    int err = text.err ? kedge_diag_set(reterr, text.err, "%s: %s", path, kedge_strerror(text.err))
                       : kedge_file_write(path, kedge_buf_view(&text), 0600, reterr);
    kedge_buf_deinit(&text);
    if (!err) {
        *ret = b;
    }
    return err;
}

bool kedge_backup_is(const char *dir)
{
    char path[KEDGE_PATH_MAX];
    return kedge_path_join(path, dir, KEDGE_BACKUP_FILE) == KEDGE_OK && kedge_file_exists(path);
}
