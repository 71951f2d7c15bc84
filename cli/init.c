/* kedge init, status: a coordinator's state folder, and what runs on it. */
#include <stdio.h>
#include <string.h>

#include "chain/state/state.h"
#include "cli/cli.h"
#include "cli/local.h"
#include "common/base/try.h"
#include "common/json/json.h"
#include "common/net/client.h"

enum { CONFIG_MAX = 65536 };

/* Sets "listen" in config.json to this one address; everything else in it stays. */
static int set_listen(const char *state, const char *listen, struct kedge_diag *d)
{
    struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit);
    char path[KEDGE_PATH_MAX];
    json_auto_t *config = NULL;
    kedge_buf_init(&text, CONFIG_MAX);
    KEDGE_TRY(kedge_state_path(path, d, state, "config.json"));
    KEDGE_TRY(kedge_state_config(state, &text, d));
    KEDGE_TRY(kedgei_json_load(kedge_buf_view(&text), CONFIG_MAX, path, &config, d));
    if (json_object_set_new(config, "listen", json_pack("[s]", listen)) != 0) {
        return kedge_diag_set(d, KEDGE_E_NOMEM, "out of memory");
    }
    return kedge_cli_put_json(config, path, d);
}

/* The folder is made whole first and its address set afterwards: if the second step fails, there is a valid
 * folder with the usual address. */
int kedge_cmd_init(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    const char *deployment = kedge_cli_option(c, "deployment", "kedge.local");
    const char *listen = kedge_cli_option(c, "listen", NULL);
    const char *dir = kedge_cli_argument(c, 0);
    if (!dir) {
        return kedge_cli_usage(c, "DIR is missing: the folder to make");
    }
    if (!kedge_cli_no_more(c, 1)) {
        return 2;
    }
    if (listen && !kedge_cli_is_address(listen, 0)) {
        return kedge_cli_usage(c, "--listen: expected an address such as tls+tcp://0.0.0.0:7443");
    }
    int err = kedge_state_create(dir, deployment, &d);
    if (!err && listen) {
        err = set_listen(dir, listen, &d);
    }
    if (err) {
        return kedge_cli_fail(c, err, &d);
    }
    kedge_cli_say(c,
                  "Made %s for deployment %s; it listens on %s.\n"
                  "Keep %s/keys secret and backed up: they are this deployment's identity.\n"
                  "Next:\n"
                  "  kedge-coordinator --state %s\n"
                  "  kedge tenant add TENANT --admin-key FILE --state %s\n"
                  "  kedge site enroll TENANT SITE --state %s\n",
                  dir, deployment, listen ? listen : "tls+tcp://127.0.0.1:7443", dir, dir, dir, dir);
    return kedge_cli_ok(c, json_pack("{s:s,s:s,s:s}", "state", dir, "deployment", deployment, "listen",
                                     listen ? listen : "tls+tcp://127.0.0.1:7443"));
}

/* "3 d 4 h", "12 min", "40 s" */
static const char *span(int64_t s, char out[40])
{
    if (s >= 86400) {
        snprintf(out, 40, "%lld d %lld h", (long long)(s / 86400), (long long)(s % 86400 / 3600));
    } else if (s >= 3600) {
        snprintf(out, 40, "%lld h %lld min", (long long)(s / 3600), (long long)(s % 3600 / 60));
    } else {
        snprintf(out, 40, s >= 60 ? "%lld min" : "%lld s", (long long)(s >= 60 ? s / 60 : s));
    }
    return out;
}

/* What the coordinator warns of comes as words and is shown as it is: kinds of warnings can be added without
 * a new kedge. */
static void say_health(const struct kedge_cli *c, const json_t *o)
{
    const json_t *disk = json_object_get(o, "disk"), *warning;
    char text[40];
    size_t i;
    if (kedge_cli_text(o, "version")[0]) {
        kedge_cli_say(c, "version        %s, up for %s\n", kedge_cli_text(o, "version"),
                      span(kedge_cli_int(o, "uptime_s"), text));
    }
    if (disk) {
        kedge_cli_say(c, "disk           %.1f GB of %.1f GB free\n",
                      (double)kedge_cli_int(disk, "free_bytes") / 1e9,
                      (double)kedge_cli_int(disk, "total_bytes") / 1e9);
    }
    json_array_foreach(json_object_get(o, "warnings"), i, warning)
    {
        const char *words = json_string_value(warning);
        kedge_cli_say(c, "WARNING        %s\n", words ? words : "");
    }
}

/* One answer of the coordinator, member by member. Members that an older coordinator does not send are left
 * out or shown as 0, never an error: status is what people ask first when something is wrong. */
int kedge_cmd_status(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    json_t *o = NULL;
    if (!kedge_cli_no_more(c, 0)) {
        return 2;
    }
    int err = kedge_cli_admin(c, json_pack("{s:s}", "verb", "status"), &o, &d);
    if (err) {
        return kedge_cli_fail(c, err, &d);
    }
    const json_t *listen = json_object_get(o, "listen"), *url;
    size_t i;
    kedge_cli_say(c, "deployment     %s\n", kedge_cli_text(o, "deployment"));
    json_array_foreach(listen, i, url)
    {
        const char *text = json_string_value(url);
        kedge_cli_say(c, "listens on     %s\n", text ? text : "");
    }
    if (kedge_cli_text(o, "https")[0]) {
        kedge_cli_say(c, "logs over      %s\n", kedge_cli_text(o, "https"));
    }
    kedge_cli_say(c, "server key     %s\n", kedge_cli_text(o, "fingerprint"));
    kedge_cli_say(c, "statement key  %s\n", kedge_cli_text(o, "statement_key"));
    kedge_cli_say(c, "main log       %s\n", kedge_cli_text(o, "main_log"));
    kedge_cli_say(c, "main chain     %lld entries, root %s\n", (long long)kedge_cli_int(o, "main_size"),
                  kedge_cli_text(o, "main_root"));
    if (kedge_cli_text(o, "tenant")[0]) { /* a tenant's own view */
        kedge_cli_say(c, "tenant         %s, %lld entries in its ledger\n", kedge_cli_text(o, "tenant"),
                      (long long)kedge_cli_int(o, "ledger_size"));
        kedge_cli_say(c, "sites          %lld, %lld online\n", (long long)kedge_cli_int(o, "sites"),
                      (long long)kedge_cli_int(o, "sites_online"));
    } else {
        kedge_cli_say(c, "tenants        %lld\n", (long long)kedge_cli_int(o, "tenants"));
        kedge_cli_say(c, "sites          %lld\n", (long long)kedge_cli_int(o, "sites"));
        kedge_cli_say(c, "connections    %lld\n", (long long)kedge_cli_int(o, "connections"));
    }
    kedge_cli_say(c, "jobs running   %lld\n", (long long)kedge_cli_int(o, "jobs_running"));
    if (kedge_cli_int(o, "jobs_waiting") > 0) {
        kedge_cli_say(c, "jobs waiting   %lld\n", (long long)kedge_cli_int(o, "jobs_waiting"));
    }
    say_health(c, o);
    const long long refusing = (long long)kedge_cli_int(o, "sites_refusing");
    if (refusing > 0) {
        kedge_cli_say(
            c,
            "WARNING        %lld site%s the main chain: they have seen more of it, or another one. Was the "
            "state restored from an older copy?\n               Which: kedge site list. They go on when "
            "the right state is back, or when their owners accept this root\n",
            refusing, refusing == 1 ? " refuses" : "s refuse");
    }
    return kedge_cli_ok(c, o);
}
