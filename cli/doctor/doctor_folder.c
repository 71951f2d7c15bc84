/* A coordinator's state folder: settings, keys, logs; a site's is client/doctor's. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "chain/log/checkpoint.h"
#include "cli/doctor/doctor.h"
#include "cli/local.h"
#include "common/base/mem.h"
#include "common/base/os/file.h"
#include "common/base/os/slots.h"
#include "common/base/settings.h"
#include "common/base/try.h"
#include "common/json/json.h"
#include "common/net/web/http.h"
#include "crypto/keyfile.h"

/* A Unix address holds 108 bytes, and the door is reached by it. */
enum {
    FILE_MAX = 65536,
    MEMORY_MAX = KEDGE_SLOT_CONTENT_MAX,
    KEYS_MAX = 1024,
    DOOR_PATH_MAX = 107,
    DATA_FILES_MAX = 256
};

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

/* The address is looked at only for whether it is loopback: no site elsewhere reaches a coordinator that
 * listens on this machine alone. */
static void check_config(struct kedge_doctor *k, const char *state)
{
    struct kedge_diag d = {.text = ""};
    char deployment[KEDGE_DEPLOYMENT_MAX + 1];
    json_t *o = kedge_doctor_settings(k, state, "config.json", kedge_settings_coordinator);
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

/* Runs in a child: opening a damaged log may end the process. */
static int gather_log(void *arg, json_t **ret, struct kedge_diag *d)
{
    struct question *q = arg;
    struct kedge_state_log log;
    KEDGE_TRY(kedge_cli_log_open(q->state, q->log, &log, d));
    *ret = json_pack("{s:I}", "size", (json_int_t)kedge_ledger_size(log.ledger));
    kedge_state_log_close(&log);
    return KEDGE_OK;
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

/* Opening a log looks at its end only. That every entry is intact is the question of kedge ledger fsck, that
 * they hold together of kedge audit verify; both take as long as the record is large. */
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

/* That no coordinator runs is a warning: a folder may be checked before its first start. */
static void check_state(struct kedge_doctor *k, const char *state)
{
    static const char *const wanted[] = {"tls.pem", "statement.pem", "log-main.pem"};
    char door[KEDGE_PATH_MAX] = "";
    check_config(k, state);
    kedge_doctor_keys(k, state, wanted, 3);
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

int kedge_doctor_folder(struct kedge_doctor *k, const char *dir)
{
    char path[KEDGE_PATH_MAX];
    if (kedge_path_join(path, dir, "config.json") == KEDGE_OK && kedge_file_exists(path)) {
        check_state(k, dir);
        return KEDGE_OK;
    }
    if (kedge_path_join(path, dir, "site.json") == KEDGE_OK && kedge_file_exists(path)) {
        kedge_doctor_site(k, dir);
        return KEDGE_OK;
    }
    return KEDGE_E_NOT_FOUND;
}
