/* kedge role grant, list, revoke: whose TLS keys may ask a coordinator from elsewhere. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/keys/role.h"
#include "cli/local.h"

enum { CELL = 24 };

/* The key is given by its public half and is a TLS key: the holder's private one never comes near the
 * coordinator. */
int kedge_cmd_role_grant(struct kedge_cli *c)
{
    struct kedge_id name;
    json_t *o = NULL;
    int code = 0;
    const char *propose = kedge_cli_option(c, "propose", NULL);
    const char *role = kedge_cli_option(c, "role", NULL);
    const char *hex = kedge_cli_option(c, "public", NULL);
    const char *text = kedge_cli_argument(c, 0);
    if (!text || kedge_id_from(kedge_view_str(text), &name) != KEDGE_OK) {
        return kedge_cli_usage(c, "NAME: expected a name of a-z, 0-9, '.', '_', '-'");
    }
    if (!role || (strcmp(role, "operator") != 0 && strcmp(role, "auditor") != 0)) {
        return kedge_cli_usage(c, "--role: expected operator or auditor");
    }
    if (!hex) {
        return kedge_cli_usage(c,
                               "--public HEX is missing: the public key that kedge key public FILE prints");
    }
    if (!kedge_cli_no_more(c, 1)) {
        return 2;
    }
    if (kedge_cli_role_ask(
            c, json_pack("{s:s,s:s,s:s,s:s}", "verb", "role.grant", "role", role, "name", name.s, "key", hex),
            propose, &o, &code)) {
        return code;
    }
    kedge_cli_say(c, "%s is an %s, entry %lld of the main chain. Its holder asks with --connect and --key.\n",
                  name.s, role, (long long)kedge_cli_int(o, "leaf_index"));
    return kedge_cli_ok(c, o);
}

/* Its connections end at once, not at the next request: an answer that is under way may be what it was
 * revoked for. */
int kedge_cmd_role_revoke(struct kedge_cli *c)
{
    json_t *o = NULL;
    int code = 0;
    const char *propose = kedge_cli_option(c, "propose", NULL);
    const char *reason = kedge_cli_option(c, "reason", "revoked by the operator");
    const char *hex = kedge_cli_argument(c, 0);
    if (!hex || !kedge_cli_no_more(c, 1)) {
        return hex ? 2 : kedge_cli_usage(c, "KEY: expected 64 hex digits (see: kedge role list)");
    }
    if (kedge_cli_role_ask(c, json_pack("{s:s,s:s,s:s}", "verb", "role.revoke", "key", hex, "reason", reason),
                           propose, &o, &code)) {
        return code;
    }
    kedge_cli_say(c, "Revoked, entry %lld of the main chain. Its connections are closed.\n",
                  (long long)kedge_cli_int(o, "leaf_index"));
    return kedge_cli_ok(c, o);
}

/* Two lists in one table: keys that may ask, and the keys that the coordinator has signed with. Both change
 * by statements of the main chain, under the same quorum. */
int kedge_cmd_role_list(struct kedge_cli *c)
{
    static const struct kedge_column columns[] = {
        {"key", -64}, {"role", -9}, {"state", -9}, {"from", 6}, {"name", -8}};
    struct kedge_diag d = {.text = ""};
    json_t *o = NULL;
    if (!kedge_cli_no_more(c, 0)) {
        return 2;
    }
    int err = kedge_cli_admin(c, json_pack("{s:s}", "verb", "role.list"), &o, &d);
    if (err) {
        return kedge_cli_fail(c, err, &d);
    }
    const json_t *list = json_object_get(o, "roles"), *row;
    size_t i;
    kedge_cli_head(c, columns, 5);
    json_array_foreach(list, i, row)
    {
        char from[CELL];
        snprintf(from, sizeof from, "%lld", (long long)kedge_cli_int(row, "from"));
        const char *cells[] = {kedge_cli_text(row, "key"), kedge_cli_text(row, "role"),
                               kedge_cli_text(row, "state"), from, kedge_cli_text(row, "name")};
        kedge_cli_row(c, columns, 5, cells);
    }
    list = json_object_get(o, "statement_keys");
    json_array_foreach(list, i, row)
    {
        char from[CELL];
        snprintf(from, sizeof from, "%lld", (long long)kedge_cli_int(row, "from"));
        const char *cells[] = {kedge_cli_text(row, "key"), "statement", kedge_cli_text(row, "state"), from,
                               "coordinator"};
        kedge_cli_row(c, columns, 5, cells);
    }
    kedge_cli_say(c, "%lld organisations have to approve a change of these.\n",
                  (long long)kedge_cli_int(o, "quorum"));
    return kedge_cli_ok(c, o);
}
