/* kedge-client status, and what the owner's verbs share: options, output, whether the daemon runs.
 *
 * These run beside the daemon, as another process and often as another user. They read files of the site and
 * send at most a signal; nothing here takes the site's lock. */
#include "client/daemon/owner/owner.h"

#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "client/daemon/status.h"
#include "common/base/os/clock.h"
#include "common/base/os/file.h"
#include "common/base/text.h"

enum { SAID_MAX = 65536, TRY_SECONDS = 60, TRY_SECONDS_MAX = 86400 };

static int usage(FILE *out, int code)
{
    fputs("Usage: kedge-client status --site DIR [--format json|text]\n"
          "What the daemon of that folder does: state, task, what its last tasks came to, connection, "
          "energy, policy.\n"
          "Exit codes: 0 it runs, 1 it does not, was revoked, or refuses the main chain; 2 usage, 3 "
          "nothing to read.\n",
          out);
    return code;
}

int kedgei_owner_fail(bool json, int err, const struct kedge_diag *d)
{
    if (json) {
        json_t *o = json_pack("{s:i,s:s,s:{s:s,s:s,s:s}}", "schema_version", 1, "status", "error", "error",
                              "code", kedge_err_code(err), "message", d->text, "hint", d->hint);
        (void)json_dumpf(o, stdout, JSON_COMPACT | JSON_ENSURE_ASCII);
        puts("");
        json_decref(o);
    }
    fprintf(stderr, "kedge-client: %s\n", kedge_text_shown(d->text).s);
    if (d->hint[0]) {
        fprintf(stderr, "  %s\n", kedge_text_shown(d->hint).s);
    }
    return kedge_exit_code(err);
}

int kedgei_owner_read_status(const char *dir, json_t **ret, struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX], site[KEDGE_PATH_MAX];
    struct kedge_buf text;
    int err = kedge_path_join(path, dir, "status.json");
    if (!err) {
        err = kedge_path_join(site, dir, "site.json");
    }
    if (err) {
        return kedge_diag_set(d, err, "%.100s: %s", dir, kedge_strerror(err));
    }
    kedge_buf_init(&text, KEDGE_STATUS_FILE_MAX);
    err = kedge_file_read(path, &text, d);
    if (err == KEDGE_E_NOT_FOUND) {
        bool is_site = kedge_file_exists(site);
        (void)kedge_diag_set(d, err, "%s: %s", dir,
                             is_site ? "its daemon has never run" : "no site here (site.json is missing)");
        (void)kedge_diag_hint(d,
                              is_site ? "start it: kedge-client --site %s, or systemctl start kedge-client"
                                      : "enrol it: kedge-client --site %s --enroll-file TOKENFILE",
                              dir);
    }
    if (!err) {
        err = kedge_status_decode(kedge_buf_view(&text), path, ret, d);
    }
    kedge_buf_deinit(&text);
    return err;
}

/* The number of a process that was killed may be another's by now. */
static bool is_client(json_int_t pid)
{
    char path[KEDGE_PATH_MAX], name[32] = "";
    snprintf(path, sizeof path, "/proc/%lld/comm", (long long)pid);
    FILE *f = fopen(path, "re");
    const bool told = f && fgets(name, sizeof name, f);
    if (f) {
        fclose(f);
    }
    return !told || strcmp(name, "kedge-client\n") == 0;
}

/* The process that wrote the status is there still. */
bool kedgei_owner_runs(const json_t *o)
{
    json_int_t pid = json_integer_value(json_object_get(o, "pid"));
    return pid > 0 && pid <= INT32_MAX && (kill((pid_t)pid, 0) == 0 || errno == EPERM) && is_client(pid)
           && !json_is_true(json_object_get(o, "ended"));
}

static int show(const char *dir, bool json)
{
    struct kedge_diag d = {.text = "", .hint = ""};
    struct kedge_buf text;
    json_t *o = NULL;
    int err = kedgei_owner_read_status(dir, &o, &d);
    if (err) {
        return kedgei_owner_fail(json, err, &d);
    }
    bool running = kedgei_owner_runs(o);
    const char *state = json_string_value(json_object_get(o, "state"));
    bool well = running && state && strcmp(state, "stopped") != 0 && strcmp(state, "refusing") != 0;
    kedge_buf_init(&text, SAID_MAX);
    if (json) {
        json_object_set_new(o, "running", json_boolean(running));
        json_t *answer = json_pack("{s:i,s:s,s:O}", "schema_version", 1, "status", "ok", "data", o);
        (void)json_dumpf(answer, stdout, JSON_COMPACT | JSON_ENSURE_ASCII);
        puts("");
        json_decref(answer);
    } else if (kedge_status_tell(o, running, kedge_os_unix_ms(), &text) == KEDGE_OK) {
        struct kedge_buf shown;
        kedge_buf_init(&shown, KEDGE_CHAR_SHOWN_MAX * SAID_MAX);
        kedge_text_put_shown(&shown, kedge_buf_view(&text));
        (void)fwrite(shown.ptr, 1, shown.len, stdout);
        kedge_buf_deinit(&shown);
    }
    kedge_buf_deinit(&text);
    json_decref(o);
    return well ? 0 : 1;
}

/* False: nobody knows the option, or its value is none. */
static bool take(int option, const char *value, struct kedgei_owner_asked *asked)
{
    uint64_t n = 0;
    switch (option) {
    case 's':
        asked->dir = value;
        return true;
    case 'f':
        asked->json = strcmp(value, "json") == 0;
        return asked->json || strcmp(value, "text") == 0;
    case 't':
        asked->try_trainers = asked->may_try;
        return asked->may_try;
    case 'n':
        asked->seconds =
            kedge_decimal_decode(kedge_view_str(value), TRY_SECONDS_MAX, &n) == KEDGE_OK ? (uint32_t)n : 0;
        return asked->may_try && n > 0;
    default:
        return false;
    }
}

bool kedgei_owner_options(int argc, char **argv, struct kedgei_owner_asked *asked, int *ret_code,
                          int (*usage_of)(FILE *out, int code))
{
    static const struct option options[] = {
        {"site", required_argument, NULL, 's'},   {"format", required_argument, NULL, 'f'},
        {"try-trainers", no_argument, NULL, 't'}, {"seconds", required_argument, NULL, 'n'},
        {"help", no_argument, NULL, 'h'},         {NULL, 0, NULL, 0}};
    int opt;
    *asked = (struct kedgei_owner_asked){
        .may_try = asked->may_try, .may_name = asked->may_name, .seconds = TRY_SECONDS};
    while ((opt = getopt_long(argc, argv, "s:h", options, NULL)) != -1) {
        if (opt == 'h') {
            *ret_code = usage_of(stdout, 0);
            return false;
        }
        if (!take(opt, optarg, asked)) {
            *ret_code = usage_of(stderr, 2);
            return false;
        }
    }
    asked->first_name = optind;
    if (!asked->dir || (optind != argc && !asked->may_name)) {
        *ret_code = usage_of(stderr, 2);
        return false;
    }
    return true;
}

int kedge_client_status_main(int argc, char **argv)
{
    struct kedgei_owner_asked asked = {.may_try = false};
    int code;
    return kedgei_owner_options(argc, argv, &asked, &code, usage) ? show(asked.dir, asked.json) : code;
}
