/* A backup is put back file by file from its list of SHA-256 sums. Only files that the list names are
 * copied, each is compared while it is copied, and their number must be what the backup's own description
 * says: a list that was cut short would otherwise give a folder with fewer files and no error. The list is
 * input like any other: a name that leads out of the folder is refused.
 *
 * Signatures that were given after the backup was made are not in it. If the former folder is still there,
 * its high-water marks show how far each log had signed; a backup that has fewer entries than one of them
 * says must not sign again, or the log has two histories. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "chain/state/backup.h"
#include "chain/state/backup_impl.h"
#include "chain/state/tree.h"
#include "common/base/mem.h"
#include "common/base/try.h"
#include "common/json/json.h"

enum { JSON_MAX = 65536, SUMS_MAX = 1 << 30 };

static uint64_t number(const json_t *o, const char *key)
{
    json_int_t n = json_integer_value(json_object_get(o, key));
    return n > 0 ? (uint64_t)n : 0;
}

static int take(const json_t *o, const char *path, struct kedge_backup *ret, struct kedge_diag *d)
{
    const char *format = json_string_value(json_object_get(o, "format"));
    const char *deployment = json_string_value(json_object_get(o, "deployment"));
    if (!format || strcmp(format, KEDGE_BACKUP_FORMAT) != 0) {
        (void)kedge_diag_set(d, KEDGE_E_VERSION, "%s: \"format\": expected \"" KEDGE_BACKUP_FORMAT "\"",
                             path);
        return kedge_diag_hint(d, "restore it with the program that made it");
    }
    if (!deployment || strlen(deployment) > KEDGE_DEPLOYMENT_MAX) {
        return kedge_diag_set(d, KEDGE_E_FORMAT, "%s: \"deployment\" is missing", path);
    }
    *ret = (struct kedge_backup){.made_unix_ms = number(o, "made_unix_ms"),
                                 .main_entries = number(o, "main_entries"),
                                 .entries = number(o, "entries"),
                                 .tenants = number(o, "tenants"),
                                 .files = number(o, "files"),
                                 .bytes = number(o, "bytes")};
    snprintf(ret->deployment, sizeof ret->deployment, "%s", deployment);
    return KEDGE_OK;
}

int kedge_backup_read(const char *dir, struct kedge_backup *ret, struct kedge_diag *reterr)
{
    struct kedge_buf text;
    char path[KEDGE_PATH_MAX];
    json_t *o = NULL;
    kedge_buf_init(&text, JSON_MAX);
    int err = kedge_state_path(path, reterr, dir, KEDGE_BACKUP_FILE);
    if (!err) {
        err = kedge_file_read(path, &text, reterr);
    }
    if (err == KEDGE_E_NOT_FOUND) {
        (void)kedge_diag_set(reterr, err, "%s: no backup here (%s is missing)", dir, KEDGE_BACKUP_FILE);
        (void)kedge_diag_hint(reterr, "make one with: kedge backup STATE OUT");
    }
    if (!err) {
        err = kedgei_json_load(kedge_buf_view(&text), JSON_MAX, path, &o, reterr);
    }
    if (!err) {
        err = take(o, path, ret, reterr);
    }
    json_decref(o);
    kedge_buf_deinit(&text);
    return err;
}

/* ---- the files ---- */

/* What a line of the list may name: a path below the backup's folder. An absolute path or a ".." as a
 * part could have files read from, or written to, any place that the operator may write to. */
static bool is_below(const char *name)
{
    size_t len = strlen(name);
    return len > 0 && len < KEDGE_PATH_MAX && name[0] != '/' && strcmp(name, "..") != 0
           && strncmp(name, "../", 3) != 0 && !strstr(name, "/../")
           && (len < 3 || strcmp(name + len - 3, "/..") != 0);
}

static int bad_line(const char *dir, size_t line, struct kedge_diag *d)
{
    return kedge_diag_set(d, KEDGE_E_CORRUPT,
                          "%s/%s: line %zu: expected a SHA-256 in hex, two spaces, a name", dir,
                          KEDGE_BACKUP_SUMS, line);
}

static int restore_file(const char *dir, const char *out, const char *name, const struct kedge_hash *expected,
                        struct kedge_diag *d)
{
    char from[KEDGE_PATH_MAX], to[KEDGE_PATH_MAX];
    struct kedge_hash digest;
    KEDGE_TRY(kedge_state_path(from, d, dir, "%s", name));
    KEDGE_TRY(kedge_state_path(to, d, out, "%s", name));
    int err = kedge_tree_make_parents(out, name, d);
    if (!err) {
        err = kedge_tree_copy_file(from, to, &digest, NULL, d);
    }
    if (err == KEDGE_E_NOT_FOUND || (!err && !kedge_hash_eq(&digest, expected))) {
        (void)kedge_diag_set(d, KEDGE_E_CORRUPT, "%s: %s: the backup is damaged", from,
                             err ? "missing" : "not the file that was backed up");
        return kedge_diag_hint(d, "take another copy of this backup, or an older backup");
    }
    return err;
}

/* One line of SHA256SUMS off the front of *rest. */
static int restore_line(const char *dir, const char *out, struct kedge_view *rest, size_t line,
                        struct kedge_diag *d)
{
    enum { NAME_AT = KEDGE_HASH_HEX_LEN + 2 };
    char name[KEDGE_PATH_MAX];
    struct kedge_hash digest;
    const uint8_t *end = memchr(rest->ptr, '\n', rest->len);
    size_t len = end ? (size_t)(end - rest->ptr) : 0;
    if (len <= NAME_AT || len - NAME_AT >= sizeof name || rest->ptr[NAME_AT - 2] != ' '
        || rest->ptr[NAME_AT - 1] != ' '
        || kedge_hash_from_hex(kedge_view_of(rest->ptr, KEDGE_HASH_HEX_LEN), &digest) != KEDGE_OK
        || memchr(rest->ptr + NAME_AT, 0, len - NAME_AT)) {
        return bad_line(dir, line, d);
    }
    memcpy(name, rest->ptr + NAME_AT, len - NAME_AT);
    name[len - NAME_AT] = '\0';
    *rest = kedge_view_of(end + 1, rest->len - len - 1);
    return is_below(name) ? restore_file(dir, out, name, &digest, d) : bad_line(dir, line, d);
}

/* SHA256SUMS names files: what is empty does not stand there. */
static int make_empty_folders(const char *out, struct kedge_diag *d)
{
    struct kedge_id *tenants KEDGE_CLEANUP(kedge_mem_release) = NULL;
    size_t count = 0;
    KEDGE_TRY(kedgei_make_blob_folders(out, NULL, 0, d));
    KEDGE_TRY(kedge_state_tenants(out, &tenants, &count, d));
    return kedgei_make_blob_folders(out, tenants, count, d);
}

int kedge_backup_restore(const char *dir, const char *out, struct kedge_diag *reterr)
{
    struct kedge_backup b;
    struct kedge_buf sums;
    char path[KEDGE_PATH_MAX];
    KEDGE_TRY(kedge_backup_read(dir, &b, reterr));
    kedge_buf_init(&sums, SUMS_MAX);
    int err = kedge_state_path(path, reterr, dir, KEDGE_BACKUP_SUMS);
    if (!err) {
        err = kedge_file_read(path, &sums, reterr);
    }
    struct kedge_view rest = kedge_buf_view(&sums);
    size_t lines = 0;
    for (; rest.len > 0 && !err; lines++) {
        err = restore_line(dir, out, &rest, lines + 1, reterr);
    }
    kedge_buf_deinit(&sums);
    if (!err && lines != b.files) {
        err = kedge_diag_set(reterr, KEDGE_E_CORRUPT, "%s: %zu files, %s says %llu: the backup is damaged",
                             path, lines, KEDGE_BACKUP_FILE, (unsigned long long)b.files);
    }
    if (err) {
        return err;
    }
    err = make_empty_folders(out, reterr);
    return err ? err : kedge_tree_sync(out, reterr);
}

/* ---- the marks of another folder ---- */

/* Size that the mark of log `name` in a state folder says; 0: it has none. */
static int mark_of(const char *state, const char *deployment, const char *name, uint64_t *ret,
                   struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX], origin[KEDGE_ORIGIN_MAX + 1];
    int err = kedge_state_path(path, d, state, "high-water/%s", name);
    int n = snprintf(origin, sizeof origin, "%s/%s", deployment, name);
    if (err || n < 0 || (size_t)n >= sizeof origin) {
        return err ? err : KEDGE_E_TOO_LONG;
    }
    *ret = 0;
    err = kedge_high_water_size(path, origin, ret, d);
    return err == KEDGE_E_NOT_FOUND ? KEDGE_OK : err;
}

static int compare_mark(const char *dir, const char *former, const struct kedge_backup *b, const char *name,
                        struct kedge_diag *d)
{
    uint64_t here, there;
    KEDGE_TRY(mark_of(dir, b->deployment, name, &here, d));
    KEDGE_TRY(mark_of(former, b->deployment, name, &there, d));
    if (there <= here) {
        return KEDGE_OK;
    }
    (void)kedge_diag_set(
        d, KEDGE_E_SHORTER,
        "%s: log %s has %llu entries, but %llu were signed before %s was left: the backup is older", dir,
        name, (unsigned long long)here, (unsigned long long)there, former);
    return kedge_diag_hint(
        d, "take the newest backup; what it lacks may be in a tenant's copy (kedge ledger repair). "
           "Signing now would make a second history");
}

int kedge_backup_check_marks(const char *dir, const char *former, struct kedge_diag *reterr)
{
    struct kedge_backup b;
    struct kedge_tree marks;
    char path[KEDGE_PATH_MAX];
    int err = kedge_backup_read(dir, &b, reterr);
    if (!err) {
        err = kedge_state_path(path, reterr, former, "high-water");
    }
    if (!err) {
        err = kedge_tree_list(path, NULL, NULL, &marks, reterr);
    }
    if (err == KEDGE_E_NOT_FOUND) {
        (void)kedge_diag_set(reterr, err, "%s: no state folder, or one without its high-water marks", former);
    }
    if (err) {
        return err;
    }
    for (size_t i = 0; i < marks.count && !err; i++) {
        bool is_mark = kedge_id_is_valid(kedge_view_str(marks.names[i]));
        err = is_mark ? compare_mark(dir, former, &b, marks.names[i], reterr) : KEDGE_OK;
    }
    kedge_tree_deinit(&marks);
    return err;
}
