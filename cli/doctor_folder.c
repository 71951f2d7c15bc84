/* A coordinator's state folder, or the folder of a site: permissions, settings, keys, logs. */
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chain/checkpoint.h"
#include "chain/json.h"
#include "cli/doctor.h"
#include "cli/local.h"
#include "common/base/limits.h"
#include "common/base/mem.h"
#include "common/base/os/file.h"
#include "common/base/os/slots.h"
#include "common/base/settings.h"
#include "common/net/http.h"
#include "crypto/keyfile.h"

/* A Unix address holds 108 bytes, and the door is reached by it. */
enum {
    FILE_MAX = 65536,
    MEMORY_MAX = KEDGE_SLOT_CONTENT_MAX,
    KEYS_MAX = 1024,
    DOOR_PATH_MAX = 107,
    DATA_FILES_MAX = 256
};

/* ---- keys ---- */

static bool ends_with(const char *name, const char *tail)
{
    size_t n = strlen(name), t = strlen(tail);
    return n >= t && strcmp(name + n - t, tail) == 0;
}

/* True when the key is fine; else says what is wrong with it. */
static bool check_key(struct kedge_doctor *k, const char *path)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_key_pair pair;
    char mend[KEDGE_PATH_MAX + 32];
    struct kedge_public_key claimed;
    bool sealed = false;
    int err = kedge_keyfile_is_sealed(path, &sealed, &claimed, &d);
    if (!err && !sealed) { /* a sealed one is whole; what is in it is between its owner and the programs */
        err = kedge_keyfile_read_private(path, &pair, &d);
        kedge_key_wipe(&pair);
    }
    snprintf(mend, sizeof mend, err == KEDGE_E_DENIED ? "chmod 600 %s" : "restore it from its own backup: %s",
             path);
    if (err) {
        kedge_doctor_fail(k, "key", mend, err, &d);
    }
    return err == KEDGE_OK;
}

static void check_keys(struct kedge_doctor *k, const char *folder, const char *const *wanted, size_t count)
{
    char keys[KEDGE_PATH_MAX], path[KEDGE_PATH_MAX];
    unsigned seen = 0, fine = 0;
    struct stat st;
    DIR *dir = kedge_path_join(keys, folder, "keys") == KEDGE_OK ? opendir(keys) : NULL;
    if (!dir) {
        kedge_doctor_say(k, KEDGE_DOCTOR_FAIL, "keys", "restore the folder from its own backup",
                         "%s/keys cannot be "
                         "read",
                         folder);
        return;
    }
    for (struct dirent *e; seen < KEYS_MAX && (e = readdir(dir)) != NULL;) {
        if (ends_with(e->d_name, ".pem") && kedge_path_join(path, keys, e->d_name) == KEDGE_OK) {
            seen++;
            fine += check_key(k, path);
        }
    }
    closedir(dir);
    for (size_t i = 0; i < count; i++) {
        if (kedge_path_join(path, keys, wanted[i]) != KEDGE_OK || !kedge_file_exists(path)) {
            kedge_doctor_say(k, KEDGE_DOCTOR_FAIL, "key", "restore it from its own backup", "%s is missing",
                             path);
        }
    }
    if (stat(keys, &st) == 0 && (st.st_mode & 077) != 0) {
        char mend[KEDGE_PATH_MAX + 32];
        snprintf(mend, sizeof mend, "chmod 700 %s", keys);
        kedge_doctor_say(k, KEDGE_DOCTOR_WARN, "keys", mend, "others may look into %s (mode %03o)", keys,
                         (unsigned)st.st_mode & 0777);
    }
    if (fine == seen && seen > 0) {
        kedge_doctor_say(k, KEDGE_DOCTOR_OK, "keys", "", "%u private keys, readable by their owner only",
                         seen);
    }
}

/* ---- JSON files ---- */

static int check_setting(const char *path, const struct kedge_setting *table, const char *key,
                         const json_t *value, struct kedge_diag *d)
{
    const struct kedge_setting *row = kedge_setting_find(table, key);
    json_int_t n = json_integer_value(value);
    if (!row) {
        return kedge_diag_set(d, KEDGE_E_FORMAT, "%s: unknown key \"%s\"", path, kedge_cli_word(key).s);
    }
    if (row->is_number
        && (!json_is_integer(value) || n < (json_int_t)row->least || n > (json_int_t)row->most)) {
        return kedge_diag_set(d, KEDGE_E_FORMAT, "%s: \"%s\": expected a whole number from %llu to %llu",
                              path, key, (unsigned long long)row->least, (unsigned long long)row->most);
    }
    return KEDGE_OK;
}

/* The object in folder/name with the keys of the table only; says what is wrong. */
static json_t *read_settings(struct kedge_doctor *k, const char *folder, const char *name,
                             const struct kedge_setting *table)
{
    struct kedge_diag d = {.text = ""};
    char path[KEDGE_PATH_MAX];
    struct kedge_buf text;
    json_t *o = NULL, *value;
    const char *key;
    kedge_buf_init(&text, FILE_MAX);
    int err = kedge_path_join(path, folder, name);
    err = err ? err : kedge_file_read(path, &text, &d);
    err = err ? err : kedgei_json_load(kedge_buf_view(&text), FILE_MAX, path, &o, &d);
    kedge_buf_deinit(&text);
    json_object_foreach(o, key, value)
    {
        err = err ? err : check_setting(path, table, key, value, &d);
    }
    if (err) {
        kedge_doctor_fail(k, "settings", "correct the file; the program that reads it says the same", err,
                          &d);
        json_decref(o);
        return NULL;
    }
    return o;
}

/* Where logs are read over HTTPS, and with which certificate. */
static void check_https(struct kedge_doctor *k, const json_t *config)
{
    struct kedge_diag d = {.text = "", .hint = ""};
    const char *listen = kedge_cli_text(config, "https_listen");
    const char *certificate = kedge_cli_text(config, "https_certificate");
    const char *key = kedge_cli_text(config, "https_key");
    if (!listen[0]) {
        return;
    }
    int err = certificate[0] || key[0] ? kedge_http_server_check_certificate(certificate, key, &d) : KEDGE_OK;
    if (err) {
        kedge_doctor_fail(
            k, "https", d.hint[0] ? d.hint : "correct \"https_certificate\" and \"https_key\" in config.json",
            err, &d);
    } else {
        kedge_doctor_say(k, KEDGE_DOCTOR_OK, "https", "", "logs are read at %s, with %s", listen,
                         certificate[0] ? certificate : "a certificate of this coordinator's own key");
    }
}

static void check_config(struct kedge_doctor *k, const char *state)
{
    struct kedge_diag d = {.text = ""};
    char deployment[KEDGE_DEPLOYMENT_MAX + 1];
    json_t *o = read_settings(k, state, "config.json", kedge_settings_coordinator);
    if (!o) {
        return;
    }
    int err = kedge_state_deployment(state, deployment, &d);
    size_t i, outside = 0;
    json_t *url;
    json_array_foreach(json_object_get(o, "listen"), i, url)
    {
        const char *s = json_string_value(url);
        outside += s && !strstr(s, "//127.") && !strstr(s, "//[::1]") && !strstr(s, "//localhost");
    }
    if (err) {
        kedge_doctor_fail(k, "settings", "correct config.json", err, &d);
    } else if (json_is_true(json_object_get(o, "insecure"))) {
        kedge_doctor_say(k, KEDGE_DOCTOR_WARN, "settings",
                         "take \"insecure\" out of config.json: it is for tests",
                         "deployment %s; plain connections are allowed on loopback", deployment);
    } else {
        kedge_doctor_say(k, KEDGE_DOCTOR_OK, "settings", "", "deployment %s, listens %s", deployment,
                         outside ? "to other machines" : "on this machine only");
    }
    check_https(k, o);
    json_decref(o);
}

/* ---- a coordinator's state folder ---- */

struct question {
    const char *state, *log;
};

static int gather_log(void *arg, json_t **ret, struct kedge_diag *d)
{
    struct question *q = arg;
    struct kedge_state_log log;
    int err = kedge_cli_log_open(q->state, q->log, &log, d);
    if (!err) {
        *ret = json_pack("{s:I}", "size", (json_int_t)kedge_ledger_size(log.ledger));
        kedge_state_log_close(&log);
    }
    return err;
}

/* Line 3 of the mark is the size; its meaning is the store's, which refuses to write below it. */
static bool read_mark(const char *state, const char *log, uint64_t *ret_size)
{
    char path[KEDGE_PATH_MAX];
    struct kedge_buf text;
    kedge_buf_init(&text, FILE_MAX);
    bool fine = kedge_state_path(path, NULL, state, "high-water/%s", log) == KEDGE_OK
                && kedge_file_read(path, &text, NULL) == KEDGE_OK;
    struct kedge_view rest = kedge_buf_view(&text);
    for (int line = 0; fine && line < 3; line++) {
        const uint8_t *end = rest.len ? memchr(rest.ptr, '\n', rest.len) : NULL;
        size_t len = end ? (size_t)(end - rest.ptr) : 0;
        fine = end
               && (line < 2
                   || kedge_decimal_decode(kedge_view_of(rest.ptr, len), UINT64_MAX, ret_size) == KEDGE_OK);
        rest = end ? kedge_view_of(end + 1, rest.len - len - 1) : rest;
    }
    kedge_buf_deinit(&text);
    return fine;
}

/* True when the log is fine. */
static bool check_log(struct kedge_doctor *k, const char *state, const char *name)
{
    struct kedge_diag d = {.text = ""};
    struct question q = {state, name};
    json_t *answer = NULL;
    uint64_t mark = 0;
    char what[KEDGE_ID_MAX + 8];
    snprintf(what, sizeof what, "log %s", name);
    int err = kedge_cli_guarded(gather_log, &q, &answer, &d);
    if (err) {
        kedge_doctor_fail(
            k, what, "restore the log's folder; kedge audit verify tells how far the damage goes", err, &d);
        return false;
    }
    uint64_t size = (uint64_t)kedge_cli_int(answer, "size");
    json_decref(answer);
    if (!read_mark(state, name, &mark) && size > 0) {
        kedge_doctor_say(k, KEDGE_DOCTOR_FAIL, what, "restore high-water/ from this machine's own copy",
                         "its high-water mark is missing or malformed: nothing guards against an old backup");
        return false;
    }
    if (mark > size && !kedge_cli_coordinator_runs(state)) { /* a running one is ahead of what was read */
        kedge_doctor_say(k, KEDGE_DOCTOR_FAIL, what,
                         "restore the newest copy of the log: going on would fork it",
                         "%llu entries, but %llu were signed: an old backup", (unsigned long long)size,
                         (unsigned long long)mark);
        return false;
    }
    return true;
}

static void check_logs(struct kedge_doctor *k, const char *state)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_id *ids = NULL;
    size_t count = 0, fine = 0;
    int err = kedge_state_tenants(state, &ids, &count, &d);
    if (err) {
        kedge_doctor_fail(k, "logs", "restore the folder tenants/", err, &d);
        return;
    }
    fine += check_log(k, state, "main");
    for (size_t i = 0; i < count; i++) {
        fine += check_log(k, state, ids[i].s);
    }
    kedge_mem_free(ids);
    if (fine == count + 1) {
        kedge_doctor_say(k, KEDGE_DOCTOR_OK, "logs", "",
                         "%zu open, their ends are whole (kedge audit verify looks at everything)", fine);
    }
}

static void check_state(struct kedge_doctor *k, const char *state)
{
    static const char *const wanted[] = {"tls.pem", "statement.pem", "log-main.pem"};
    char door[KEDGE_PATH_MAX] = "";
    check_config(k, state);
    check_keys(k, state, wanted, 3);
    check_logs(k, state);
    if (kedge_path_join(door, state, "coordinator.ipc") != KEDGE_OK || strlen(door) > DOOR_PATH_MAX) {
        kedge_doctor_say(k, KEDGE_DOCTOR_FAIL, "coordinator", "move the state folder to a shorter path",
                         "the path of its door is longer than %d bytes: %s", DOOR_PATH_MAX, door);
    } else if (kedge_cli_coordinator_runs(state)) {
        kedge_doctor_say(k, KEDGE_DOCTOR_OK, "coordinator", "", "running");
    } else {
        char mend[KEDGE_PATH_MAX + 64];
        snprintf(mend, sizeof mend, "start it: kedge-coordinator --state %s", state);
        kedge_doctor_say(k, KEDGE_DOCTOR_WARN, "coordinator", mend, "not running");
    }
}

/* ---- a site's folder ---- */

/* Every file that a binding names is there. Relative paths begin at the folder where kedge-client runs. */
static void check_binding(struct kedge_doctor *k, const char *name, const json_t *binding, unsigned *files)
{
    static const char *const sources[] = {"train", "test"}, *const keys[] = {"path", "images", "labels"};
    for (size_t s = 0; s < 2; s++) {
        const json_t *source = json_object_get(binding, sources[s]);
        for (size_t i = 0; i < 3 && *files < DATA_FILES_MAX; i++) {
            const char *path = json_string_value(json_object_get(source, keys[i]));
            if (path && access(path, R_OK) == 0) {
                (*files)++;
            } else if (path) {
                kedge_doctor_say(k, path[0] == '/' ? KEDGE_DOCTOR_FAIL : KEDGE_DOCTOR_WARN, "data",
                                 "correct policy.json, best with absolute paths",
                                 "\"%s\": %s cannot be read%s", kedge_cli_word(name).s, path,
                                 path[0] == '/' ? "" : " from here, and the path is relative");
            }
        }
    }
}

static void check_policy(struct kedge_doctor *k, const char *site)
{
    json_t *o = read_settings(k, site, "policy.json", kedge_settings_policy), *binding;
    const json_t *data = json_object_get(o, "data");
    const char *name;
    unsigned files = 0, bindings = 0;
    if (!o) {
        return;
    }
    json_object_foreach((json_t *)data, name, binding)
    {
        bindings++;
        check_binding(k, name, binding, &files);
    }
    kedge_doctor_say(k, bindings ? KEDGE_DOCTOR_OK : KEDGE_DOCTOR_WARN, "policy",
                     bindings ? "" : "bind data in policy.json, or no job can train here",
                     "%u data bindings, %u files readable", bindings, files);
    json_decref(o);
}

/* kedge-client notes it when the coordinator has confirmed the site; the token stays in site.json. */
static bool is_enrolled(const char *site)
{
    char path[KEDGE_PATH_MAX];
    struct kedge_buf text;
    json_t *o = NULL;
    uint64_t sequence;
    kedge_buf_init(&text, MEMORY_MAX);
    int err = kedge_path_join(path, site, "memory");
    err = err ? err : kedge_slots_read(path, &text, &sequence, NULL);
    err = err ? err : kedgei_json_load(kedge_buf_view(&text), MEMORY_MAX, path, &o, NULL);
    bool enrolled = !err && json_is_true(json_object_get(o, "enrolled"));
    json_decref(o);
    kedge_buf_deinit(&text);
    return enrolled;
}

/* Entries that a signed checkpoint in a file counts; 0: there is none to read. */
static uint64_t checkpoint_size(const char *path)
{
    struct kedge_buf text;
    struct kedge_note note;
    struct kedge_checkpoint cp = {.size = 0};
    kedge_buf_init(&text, KEDGE_NOTE_MAX);
    int err = kedge_file_read(path, &text, NULL);
    err = err ? err : kedge_note_parse(kedge_buf_view(&text), &note);
    err = err ? err : kedge_checkpoint_parse(note.text, &cp);
    kedge_buf_deinit(&text);
    return err ? 0 : cp.size;
}

/* kedge-client keeps what it refuses (client/daemon/seen.c). */
static void check_chain(struct kedge_doctor *k, const char *site)
{
    char seen[KEDGE_PATH_MAX], shown[KEDGE_PATH_MAX];
    if (kedge_path_join(shown, site, "refused-main/shown") != KEDGE_OK
        || kedge_path_join(seen, site, "refused-main/seen") != KEDGE_OK || !kedge_file_exists(shown)) {
        return;
    }
    kedge_doctor_say(
        k, KEDGE_DOCTOR_FAIL, "main chain",
        "ask the coordinator's operator. When the right chain is back, remove refused-main; to accept "
        "the one that was shown, remove seen-main as well; then start kedge-client again",
        "the coordinator showed %" PRIu64 " entries of another history than the %" PRIu64
        " that this site has seen, and it trains no more; both checkpoints are in %s/refused-main",
        checkpoint_size(shown), checkpoint_size(seen), site);
}

static void check_site(struct kedge_doctor *k, const char *site)
{
    static const char *const wanted[] = {"tls.pem", "statement.pem"};
    json_t *o = read_settings(k, site, "site.json", kedge_settings_site);
    struct kedge_public_key key;
    if (o) {
        bool whole = kedge_id_is_valid(kedge_view_str(kedge_cli_text(o, "tenant")))
                     && kedge_id_is_valid(kedge_view_str(kedge_cli_text(o, "site")))
                     && kedge_cli_text(o, "server")[0]
                     && kedge_hex_decode(kedge_view_str(kedge_cli_text(o, "server_key")), key.b, sizeof key.b)
                            == KEDGE_OK;
        bool enrolled = is_enrolled(site);
        kedge_doctor_say(k,
                         !whole     ? KEDGE_DOCTOR_FAIL
                         : enrolled ? KEDGE_DOCTOR_OK
                                    : KEDGE_DOCTOR_WARN,
                         "site",
                         !whole     ? "enrol again: site.json needs tenant, site, server and server_key"
                         : enrolled ? ""
                                    : "start kedge-client; the tenant's admin then runs: kedge site approve",
                         "%s/%s at %s%s", kedge_cli_text(o, "tenant"), kedge_cli_text(o, "site"),
                         kedge_cli_text(o, "server"), enrolled ? "" : ", not enrolled yet");
        json_decref(o);
    }
    check_chain(k, site);
    check_policy(k, site);
    check_keys(k, site, wanted, 2);
}

int kedge_doctor_folder(struct kedge_doctor *k, const char *dir)
{
    char path[KEDGE_PATH_MAX];
    if (kedge_path_join(path, dir, "config.json") == KEDGE_OK && kedge_file_exists(path)) {
        check_state(k, dir);
        return KEDGE_OK;
    }
    if (kedge_path_join(path, dir, "site.json") == KEDGE_OK && kedge_file_exists(path)) {
        check_site(k, dir);
        return KEDGE_OK;
    }
    return KEDGE_E_NOT_FOUND;
}
