/* kedge reader add, list, revoke: tokens with which others read logs over HTTPS. */
#include <stdio.h>

#include "cli/cli.h"
#include "cli/local.h"
#include "common/base/os/utc.h"

enum { TTL_DEFAULT_S = 90 * 86400, TTL_MAX_S = 3 * 366 * 86400, CELL = 32 };

/* The request of reader add; NULL after a usage error. */
static json_t *add_request(struct kedge_cli *c, bool auditor, const char *name, uint64_t ttl)
{
    struct kedge_id id;
    const char *tenant = kedge_cli_argument(c, 0);
    if (auditor == (tenant != NULL)) {
        (void)kedge_cli_usage(c, "expected either TENANT or --auditor: whose eyes the token has");
        return NULL;
    }
    if (tenant && kedge_id_from(kedge_view_str(tenant), &id) != KEDGE_OK) {
        (void)kedge_cli_usage(c, "TENANT: expected a name of a-z, 0-9, '.', '_', '-'");
        return NULL;
    }
    if (name && kedge_id_from(kedge_view_str(name), &id) != KEDGE_OK) {
        (void)kedge_cli_usage(c, "--name: expected a name of a-z, 0-9, '.', '_', '-'");
        return NULL;
    }
    if (!kedge_cli_no_more(c, auditor ? 0 : 1)) {
        return NULL;
    }
    json_t *request = json_pack("{s:s,s:I}", "verb", "read.token", "ttl_s", (json_int_t)ttl);
    if (auditor) {
        json_object_set_new(request, "auditor", json_true());
    } else {
        json_object_set_new(request, "tenant", json_string(tenant));
    }
    if (name) {
        json_object_set_new(request, "name", json_string(name));
    }
    return request;
}

/* As with a site's token: the secret alone on stdout, once; what is known of it later is its name. */
int kedge_cmd_reader_add(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    uint64_t ttl;
    json_t *o = NULL;
    bool auditor = kedge_cli_flag(c, "auditor");
    const char *name = kedge_cli_option(c, "name", NULL), *out = kedge_cli_option(c, "out", NULL);
    if (!kedge_cli_number(c, "ttl", 1, TTL_MAX_S, TTL_DEFAULT_S, &ttl)) {
        return 2;
    }
    json_t *request = add_request(c, auditor, name, ttl);
    if (!request) {
        return 2;
    }
    int err = kedge_cli_admin(c, request, &o, &d);
    if (!err) {
        err = kedge_cli_token(c, o, out, &d);
    }
    if (err) {
        json_decref(o);
        return kedge_cli_fail(c, err, &d);
    }
    /* stderr, so that the token alone is on stdout */
    kedge_cli_say_aside(
        "The token%s%s is a secret and shown this once. It reads %s for %s; to end it before:\n"
        "  kedge reader revoke %s\n",
        out ? " in " : "", out ? out : "", auditor ? "all logs" : "this tenant's log, and the main chain",
        kedge_cli_span(ttl).s, kedge_cli_text(o, "name"));
    return kedge_cli_ok(c, o);
}

/* The coordinator keeps hashes of the secrets, so names and times are all that there is to list. */
int kedge_cmd_reader_list(struct kedge_cli *c)
{
    static const struct kedge_column columns[] = {
        {"name", -24}, {"reads as", -24}, {"state", -8}, {"expires", -20}};
    struct kedge_diag d = {.text = ""};
    json_t *o = NULL;
    const char *tenant = kedge_cli_argument(c, 0);
    if (!kedge_cli_no_more(c, tenant ? 1 : 0)) {
        return 2;
    }
    int err = kedge_cli_admin(c, json_pack("{s:s,s:s*}", "verb", "read.list", "tenant", tenant), &o, &d);
    if (err) {
        return kedge_cli_fail(c, err, &d);
    }
    const json_t *list = json_object_get(o, "tokens"), *row;
    size_t i;
    kedge_cli_head(c, columns, 4);
    json_array_foreach(list, i, row)
    {
        struct kedge_utc expires = kedge_utc(kedge_cli_int(row, "expires_s"), KEDGE_UTC_SECONDS, "?");
        bool auditor = json_is_true(json_object_get(row, "auditor"));
        const char *cells[] = {kedge_cli_text(row, "name"),
                               auditor ? "(auditor)" : kedge_cli_text(row, "tenant"),
                               kedge_cli_text(row, "state"), expires.s};
        kedge_cli_row(c, columns, 4, cells);
    }
    return kedge_cli_ok(c, o);
}

/* Answered when it is durable: the next request with this token is refused. */
int kedge_cmd_reader_revoke(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    json_t *o = NULL;
    struct kedge_id id;
    const char *tenant = kedge_cli_option(c, "tenant", NULL), *name = kedge_cli_argument(c, 0);
    if (!name || kedge_id_from(kedge_view_str(name), &id) != KEDGE_OK) {
        return kedge_cli_usage(c, "NAME: expected the name of a token; kedge reader list tells them");
    }
    if (!kedge_cli_no_more(c, 1)) {
        return 2;
    }
    int err = kedge_cli_admin(
        c, json_pack("{s:s,s:s,s:s*}", "verb", "read.revoke", "name", name, "tenant", tenant), &o, &d);
    if (err) {
        return kedge_cli_fail(c, err, &d);
    }
    kedge_cli_say(c, "Token %s is revoked: it reads nothing from now on.\n", id.s);
    return kedge_cli_ok(c, o);
}
