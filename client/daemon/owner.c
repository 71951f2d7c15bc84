#include "client/daemon/owner.h"

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

enum { SAID_MAX = 65536 };

static int usage(FILE *out, int code)
{
    fputs("Usage: kedge-client status --site DIR [--format json|text]\n"
          "What the daemon of that folder does: state, task, what its last tasks came to, connection, "
          "energy, policy.\n"
          "Exit codes: 0 it runs, 1 it does not, was signed out, or refuses the main chain; 2 usage, 3 "
          "nothing to read.\n",
          out);
    return code;
}

int kedgei_owner_fail(bool json, int err, const struct kedge_diag *d)
{
    if (json) {
        json_t *o = json_pack("{s:i,s:s,s:{s:s,s:s,s:s}}", "schema_version", 1, "status", "error", "error",
                              "code", kedge_err_code(err), "message", d->text, "hint", d->hint);
        (void)json_dumpf(o, stdout, JSON_COMPACT);
        puts("");
        json_decref(o);
    }
    fprintf(stderr, "kedge-client: %s\n", d->text);
    if (d->hint[0]) {
        fprintf(stderr, "  %s\n", d->hint);
    }
    return kedge_exit_code(err);
}

static int read_status(const char *dir, json_t **ret, struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX], site[KEDGE_PATH_MAX];
    struct kedge_buf text;
    int err = kedge_path_join(path, dir, "status.json");
    err = err ? err : kedge_path_join(site, dir, "site.json");
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
    err = err ? err : kedge_status_decode(kedge_buf_view(&text), path, ret, d);
    kedge_buf_deinit(&text);
    return err;
}

/* The process that wrote the status is there still. */
static bool runs(const json_t *o)
{
    json_int_t pid = json_integer_value(json_object_get(o, "pid"));
    return pid > 1 && pid <= INT32_MAX && (kill((pid_t)pid, 0) == 0 || errno == EPERM)
           && !json_is_true(json_object_get(o, "ended"));
}

static int show(const char *dir, bool json)
{
    struct kedge_diag d = {.text = "", .hint = ""};
    struct kedge_buf text;
    json_t *o = NULL;
    int err = read_status(dir, &o, &d);
    if (err) {
        return kedgei_owner_fail(json, err, &d);
    }
    bool running = runs(o);
    const char *state = json_string_value(json_object_get(o, "state"));
    bool well = running && state && strcmp(state, "stopped") != 0 && strcmp(state, "refusing") != 0;
    kedge_buf_init(&text, SAID_MAX);
    if (json) {
        json_object_set_new(o, "running", json_boolean(running));
        json_t *answer = json_pack("{s:i,s:s,s:O}", "schema_version", 1, "status", "ok", "data", o);
        (void)json_dumpf(answer, stdout, JSON_COMPACT);
        puts("");
        json_decref(answer);
    } else if (kedge_status_tell(o, running, kedge_os_unix_ms(), &text) == KEDGE_OK) {
        (void)fwrite(text.ptr, 1, text.len, stdout);
    }
    kedge_buf_deinit(&text);
    json_decref(o);
    return well ? 0 : 1;
}

bool kedgei_owner_options(int argc, char **argv, const char **ret_dir, bool *ret_json, int *ret_code,
                          int (*usage_of)(FILE *out, int code))
{
    static const struct option options[] = {{"site", required_argument, NULL, 's'},
                                            {"format", required_argument, NULL, 'f'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    const char *dir = NULL;
    int opt;
    *ret_json = false;
    while ((opt = getopt_long(argc, argv, "s:h", options, NULL)) != -1) {
        if (opt == 'h') {
            *ret_code = usage_of(stdout, 0);
            return false;
        }
        bool known =
            opt == 's' || (opt == 'f' && (strcmp(optarg, "json") == 0 || strcmp(optarg, "text") == 0));
        if (!known) {
            *ret_code = usage_of(stderr, 2);
            return false;
        }
        dir = opt == 's' ? optarg : dir;
        *ret_json = opt == 'f' ? strcmp(optarg, "json") == 0 : *ret_json;
    }
    if (!dir || optind != argc) {
        *ret_code = usage_of(stderr, 2);
        return false;
    }
    *ret_dir = dir;
    return true;
}

int kedge_client_status_main(int argc, char **argv)
{
    const char *dir;
    bool json;
    int code;
    return kedgei_owner_options(argc, argv, &dir, &json, &code, usage) ? show(dir, json) : code;
}
