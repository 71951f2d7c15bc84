/* kedge ledger tiles: a log as a folder of static files (c2sp.org/tlog-tiles), for tools of transparency logs
 * and for web servers. The store is read in a child process, for a damaged file can crash its library. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "chain/log/checkpoint.h"
#include "chain/store/blob/guard.h"
#include "chain/store/ledger_tiles.h"
#include "cli/local.h"
#include "common/base/try.h"

enum { ANSWER_MAX = 64 * 1024, FOLDER_MODE = 0700, FILE_MODE = 0644 };
static const char staging[] = ".part"; /* after DIR's name: the first export grows there */

struct export
{
    struct kedge_cli *c;
    const char *log;
    char out[KEDGE_PATH_MAX]; /* without a slash at its end */
    const char *checkpoint;   /* file of the one to export; NULL: the newest */
    bool entries;
    char dir[KEDGE_PATH_MAX]; /* where files are put: out, or the staging folder */
    bool is_new;
    bool is_staged; /* dir is the staging folder, made by this command, and goes when anything fails */
    struct kedge_ledger *ledger;
    struct kedge_buf note; /* the checkpoint that is exported */
    uint64_t size;
    uint64_t written, kept, done, total;
    struct kedge_buf bytes, old; /* scratch */
};

/* ---- what is in the folder already ---- */

enum folder { FOLDER_EMPTY, FOLDER_LOG, FOLDER_OTHER };

/* Three answers, because two of them are safe: nothing there, or an export of a log. Anything else is
 * somebody's folder. */
static int look_at(const char *path, enum folder *ret, struct kedge_diag *d)
{
    DIR *dir = opendir(path);
    *ret = FOLDER_EMPTY;
    if (!dir) {
        return kedge_file_exists(path)
                   ? kedge_diag_set(d, KEDGE_E_EXISTS, "%s: not a folder that can be read", path)
                   : KEDGE_OK;
    }
    for (const struct dirent *e = readdir(dir); e && *ret != FOLDER_LOG; e = readdir(dir)) {
        if (strcmp(e->d_name, "checkpoint") == 0) {
            *ret = FOLDER_LOG;
        } else if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) {
            *ret = FOLDER_OTHER;
        }
    }
    closedir(dir);
    return KEDGE_OK;
}

/* The checkpoint in the folder is this log's, and the log has grown out of it. A folder that web servers
 * publish must never go back: what readers have seen of it is a promise. A root that differs is evidence of a
 * fork and is left as it is. */
static int check_ours(const struct export *x, const struct kedge_checkpoint *there, struct kedge_diag *d)
{
    struct kedge_hash root;
    if (!kedge_view_eq(there->origin, kedge_view_str(kedge_ledger_origin(x->ledger)))) {
        (void)kedge_diag_set(d, KEDGE_E_STATE, "%s: holds the log %.*s, not %s", x->out,
                             (int)there->origin.len, (const char *)there->origin.ptr,
                             kedge_ledger_origin(x->ledger));
        return kedge_diag_hint(d, "each log has a folder of its own");
    }
    if (there->size > x->size) {
        (void)kedge_diag_set(d, KEDGE_E_STATE,
                             "%s: its checkpoint has %llu entries, the one of log %s to be written %llu",
                             x->out, (unsigned long long)there->size, x->log, (unsigned long long)x->size);
        return kedge_diag_hint(d, "is this state folder an old backup? Nothing was written");
    }
    int err = kedge_ledger_root(x->ledger, there->size, &root);
    if (!err && !kedge_hash_eq(&root, &there->root)) {
        (void)kedge_diag_set(d, KEDGE_E_FORK,
                             "%s: its checkpoint of %llu entries has another root than log %s at that size",
                             x->out, (unsigned long long)there->size, x->log);
        return kedge_diag_hint(d, "keep both: two checkpoints that do not agree are evidence");
    }
    return err;
}

/* An earlier export is gone on with only when its checkpoint is one of this log: tiles of another log under
 * the same names would make readers see a fork. */
static int check_folder(struct export *x, struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX];
    struct kedge_note note;
    struct kedge_checkpoint there;
    kedge_buf_clear(&x->old);
    KEDGE_TRY(kedge_path_join(path, x->out, "checkpoint"));
    KEDGE_TRY(kedge_file_read(path, &x->old, d));
    int err = kedge_note_parse(kedge_buf_view(&x->old), &note);
    if (!err) {
        err = kedge_checkpoint_parse(note.text, &there);
    }
    if (err) {
        return kedge_diag_set(d, err == KEDGE_E_NOMEM ? err : KEDGE_E_EXISTS,
                              "%s: expected a signed checkpoint; nothing was written", path);
    }
    return check_ours(x, &there, d);
}

/* Where the files go: DIR when it holds an earlier export of this log, else a new folder beside it. */
static int choose_folder(struct export *x, struct kedge_diag *d)
{
    enum folder found, part;
    KEDGE_TRY(look_at(x->out, &found, d));
    if (found == FOLDER_OTHER) {
        (void)kedge_diag_set(d, KEDGE_E_EXISTS, "%s: the folder is not empty and holds no exported log",
                             x->out);
        return kedge_diag_hint(d, "name a new folder");
    }
    x->is_new = found == FOLDER_EMPTY;
    int n = snprintf(x->dir, sizeof x->dir, "%s%s", x->out, x->is_new ? staging : "");
    if (n < 0 || (size_t)n >= sizeof x->dir) {
        return kedge_diag_set(d, KEDGE_E_TOO_LONG, "--out: the folder's name is too long");
    }
    if (!x->is_new) {
        return check_folder(x, d);
    }
    KEDGE_TRY(look_at(x->dir, &part, d));
    if (part != FOLDER_EMPTY || kedge_file_exists(x->dir)) {
        (void)kedge_diag_set(d, KEDGE_E_EXISTS, "%s: another export is under way or was interrupted", x->dir);
        return kedge_diag_hint(d, "if none is running, remove %s", x->dir);
    }
    KEDGE_TRY(kedge_dir_make(x->dir, FOLDER_MODE, d));
    x->is_staged = true;
    return KEDGE_OK;
}

/* ---- writing ---- */

/* Puts one file, unless it is there with these bytes. */
static int put_file(struct export *x, const char *name, struct kedge_view bytes, struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX], folder[KEDGE_PATH_MAX];
    int err = kedge_path_join(path, x->dir, name);
    if (err) {
        return kedge_diag_set(d, err, "--out: the folder's name is too long");
    }
    if (!x->is_new && kedge_file_size(path) == (int64_t)bytes.len) {
        kedge_buf_clear(&x->old);
        if (kedge_file_read(path, &x->old, NULL) == KEDGE_OK
            && kedge_view_eq(kedge_buf_view(&x->old), bytes)) {
            x->kept++;
            return KEDGE_OK;
        }
    }
    memcpy(folder, path, sizeof folder);
    *strrchr(folder, '/') = '\0';
    KEDGE_TRY(kedge_dir_make(folder, FOLDER_MODE, d));
    KEDGE_TRY(kedge_file_write(path, bytes, FILE_MODE, d));
    x->written++;
    return KEDGE_OK;
}

/* A tile of the newest entries is not full and has its width in its name, so one that grows is another file,
 * and readers of the former checkpoint still find theirs. */
static int put_tile(struct export *x, enum kedge_tile_kind kind, unsigned level, uint64_t index,
                    struct kedge_diag *d)
{
    unsigned width = kedge_tile_width(level, index, x->size);
    struct kedge_tile tile = {kind, (uint8_t)level, index, (uint16_t)width};
    char path[KEDGE_TILE_PATH_MAX];
    kedge_tile_path(&tile, path);
    kedge_buf_clear(&x->bytes);
    int err = kedge_ledger_resource(x->ledger, &tile, NULL, NULL, &x->bytes);
    if (err) {
        return kedge_diag_set(d, err, "log %s, %s: %s", x->log, path, kedge_strerror(err));
    }
    kedge_cli_progress(x->c, "writing", ++x->done, x->total, path);
    return put_file(x, path, kedge_buf_view(&x->bytes), d);
}

static uint64_t tile_count(const struct export *x, unsigned level)
{
    return kedge_tile_full_count(level, x->size) + (kedge_tile_partial_width(level, x->size) > 0);
}

/* The folder's new name becomes durable: it stands in the folder above. */
static int sync_name(const char *path, struct kedge_diag *d)
{
    char above[KEDGE_PATH_MAX] = ".";
    const char *slash = strrchr(path, '/');
    if (slash) {
        size_t len = slash == path ? 1 : (size_t)(slash - path);
        memcpy(above, path, len);
        above[len] = '\0';
    }
    int err = kedge_dir_sync(above);
    return err ? kedge_diag_set(d, err, "%s: written, but %s cannot be synced: %s", path, above,
                                kedge_strerror(err))
               : KEDGE_OK;
}

/* Full tiles never change, so a later export keeps those that are there (put_file). */
static int put_tiles(struct export *x, struct kedge_diag *d)
{
    for (uint64_t i = 0; x->entries && i < tile_count(x, 0); i++) {
        KEDGE_TRY(put_tile(x, KEDGE_TILE_ENTRIES, 0, i, d));
    }
    for (unsigned level = 0; level < KEDGE_TILE_LEVELS; level++) {
        for (uint64_t i = 0; i < tile_count(x, level); i++) {
            KEDGE_TRY(put_tile(x, KEDGE_TILE_HASHES, level, i, d));
        }
    }
    return KEDGE_OK;
}

/* Tiles first, the checkpoint last: a reader meanwhile finds every tile of the checkpoint there is. */
static int put_log(struct export *x, struct kedge_diag *d)
{
    x->total = x->entries ? tile_count(x, 0) : 0;
    for (unsigned level = 0; level < KEDGE_TILE_LEVELS; level++) {
        x->total += tile_count(x, level);
    }
    int err = put_tiles(x, d);
    kedge_cli_progress_end(x->c);
    KEDGE_TRY(err);
    KEDGE_TRY(put_file(x, "checkpoint", kedge_buf_view(&x->note), d));
    if (x->is_new && rename(x->dir, x->out) != 0) {
        return kedge_diag_set(d, KEDGE_E_IO, "%s: cannot be renamed to %s", x->dir, x->out);
    }
    x->is_staged = false;
    return x->is_new ? sync_name(x->out, d) : KEDGE_OK;
}

/* ---- the command ---- */

/* A checkpoint that somebody brings, with cosignatures: this log's, and no longer than what the log signed.
 */
static int take_checkpoint(struct export *x, struct kedge_hash *ret_root, struct kedge_diag *d)
{
    struct kedge_vkey vkey;
    struct kedge_checkpoint cp;
    uint64_t newest = x->size;
    kedge_buf_clear(&x->note);
    KEDGE_TRY(kedge_file_read(x->checkpoint, &x->note, d));
    int err = kedge_ledger_vkey(x->ledger, &vkey);
    err =
        err ? err
            : kedge_checkpoint_open(kedge_buf_view(&x->note), kedge_view_str(vkey.name), &vkey, 1, &cp, NULL);
    if (err) {
        return kedge_diag_set(d, err, "%s: no checkpoint that the key of log %s signed: %s", x->checkpoint,
                              x->log, kedge_strerror(err));
    }
    if (cp.size > newest) {
        return kedge_diag_set(d, KEDGE_E_STATE, "%s: of %llu entries, log %s here is signed up to %llu",
                              x->checkpoint, (unsigned long long)cp.size, x->log, (unsigned long long)newest);
    }
    x->size = cp.size;
    err = kedge_ledger_root(x->ledger, cp.size, ret_root);
    return err || kedge_hash_eq(ret_root, &cp.root)
               ? err
               : kedge_diag_set(d, KEDGE_E_FORK, "%s: log %s has another root at %llu entries", x->checkpoint,
                                x->log, (unsigned long long)cp.size);
}

/* The size of the export is fixed before anything is written, by a signed checkpoint: entries that are
 * appended meanwhile are not in it. */
static int export_log(struct export *x, struct kedge_buf *ret_out, struct kedge_diag *d)
{
    struct kedge_hash root;
    char hex[KEDGE_HASH_HEX_LEN + 1];
    int err = kedge_ledger_checkpoint(x->ledger, &x->note, &x->size);
    if (err == KEDGE_E_NOT_FOUND) {
        (void)kedge_diag_set(d, err, "log %s has no signed checkpoint yet", x->log);
        return kedge_diag_hint(d, "a coordinator signs one with the next round or enrolment");
    }
    if (!err) {
        err = x->checkpoint ? take_checkpoint(x, &root, d) : kedge_ledger_root(x->ledger, x->size, &root);
    }
    if (err) {
        return err;
    }
    KEDGE_TRY(choose_folder(x, d));
    err = put_log(x, d);
    if (err) {
        if (x->is_staged) {
            (void)!kedge_dir_remove(x->dir);
        }
        return err;
    }
    kedge_hash_hex(&root, hex);
    json_t *answer =
        json_pack("{s:s,s:s,s:I,s:s,s:s,s:b,s:I,s:I}", "log", x->log, "origin",
                  kedge_ledger_origin(x->ledger), "size", (json_int_t)x->size, "root", hex, "out", x->out,
                  "entries", x->entries, "written", (json_int_t)x->written, "kept", (json_int_t)x->kept);
    err = kedge_cli_dump(answer, JSON_COMPACT, ret_out);
    json_decref(answer);
    return err;
}

/* The child opens the store and writes the files, too; what comes back is the answer alone. */
static int export_in_child(void *arg, struct kedge_buf *ret_out, struct kedge_diag *d)
{
    struct export *x = arg;
    struct kedge_state_log log;
    KEDGE_TRY(kedge_cli_log_open(x->c->state, x->log, &log, d));
    x->ledger = log.ledger;
    kedge_buf_init(&x->note, KEDGE_NOTE_MAX);
    kedge_buf_init(&x->bytes, KEDGE_BUNDLE_BYTES_MAX);
    kedge_buf_init(&x->old, KEDGE_BUNDLE_BYTES_MAX);
    int err = export_log(x, ret_out, d);
    if (err && d && !d->text[0]) {
        (void)kedge_diag_set(d, err, "log %s: %s", x->log, kedge_strerror(err));
    }
    kedge_buf_deinit(&x->note);
    kedge_buf_deinit(&x->bytes);
    kedge_buf_deinit(&x->old);
    kedge_state_log_close(&log);
    return err;
}

static int say_done(struct kedge_cli *c, json_t *answer)
{
    kedge_cli_say(c, "%s: log %s with %lld entries; %lld files written, %lld were there\n",
                  kedge_cli_text(answer, "out"), kedge_cli_text(answer, "origin"),
                  (long long)kedge_cli_int(answer, "size"), (long long)kedge_cli_int(answer, "written"),
                  (long long)kedge_cli_int(answer, "kept"));
    if (!json_is_true(json_object_get(answer, "entries"))) {
        kedge_cli_say(c, "hashes only: the entries were left out (--entries yes puts them in)\n");
    }
    return kedge_cli_ok(c, answer);
}

int kedge_cmd_ledger_tiles(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    struct export x = {.c = c, .checkpoint = kedge_cli_option(c, "checkpoint", NULL)};
    const char *out = kedge_cli_option(c, "out", NULL), *entries = kedge_cli_option(c, "entries", NULL);
    json_error_t at;
    struct kedge_buf text;
    if (!kedge_cli_no_more(c, 1)) {
        return 2;
    }
    x.log = kedge_cli_argument(c, 0);
    if (!x.log || !out) {
        return kedge_cli_usage(c, "expected LOG (main or a tenant's name) and --out DIR");
    }
    if (entries && strcmp(entries, "yes") != 0 && strcmp(entries, "no") != 0) {
        return kedge_cli_usage(c, "--entries %s: expected yes or no", kedge_cli_word(entries).s);
    }
    size_t len = strlen(out);
    while (len > 1 && out[len - 1] == '/') {
        len--;
    }
    if (len >= sizeof x.out) {
        return kedge_cli_usage(c, "--out: the folder's name is too long");
    }
    memcpy(x.out, out, len);
    /* The main chain's entries hold what its tenants must not learn of each other. */
    x.entries = entries ? strcmp(entries, "yes") == 0 : strcmp(x.log, "main") != 0;
    kedge_buf_init(&text, ANSWER_MAX);
    int err = kedge_store_guarded(export_in_child, &x, 0, &text, &d);
    json_t *answer = err ? NULL : json_loadb((const char *)text.ptr, text.len, 0, &at);
    kedge_buf_deinit(&text);
    return err ? kedge_cli_fail(c, err, &d) : say_done(c, answer);
}
