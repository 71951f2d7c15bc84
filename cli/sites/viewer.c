/* kedge viewer add, list, remove: keys that see a tenant and change nothing. */
#include <stdio.h>

#include "cli/cli.h"
#include "cli/local.h"
#include "common/base/os/utc.h"

/* TENANT and NAME; false after a usage error. */
static bool take_names(struct kedge_cli *c, struct kedge_id *ret_tenant, struct kedge_id *ret_name)
{
    const char *tenant = kedge_cli_argument(c, 0), *name = kedge_cli_argument(c, 1);
    if (!tenant || kedge_id_from(kedge_view_str(tenant), ret_tenant) != KEDGE_OK) {
        (void)kedge_cli_usage(c, "TENANT: expected a name of a-z, 0-9, '.', '_', '-'");
        return false;
    }
    if (!name || kedge_id_from(kedge_view_str(name), ret_name) != KEDGE_OK) {
        (void)kedge_cli_usage(c, "NAME: expected a name of a-z, 0-9, '.', '_', '-' for the viewer");
        return false;
    }
    return kedge_cli_no_more(c, 2);
}

/* The key is given by its public half: the viewer's private key stays with the viewer. */
int kedge_cmd_viewer_add(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_id tenant, name;
    json_t *o = NULL;
    const char *hex = kedge_cli_option(c, "public", NULL);
    if (!take_names(c, &tenant, &name)) {
        return 2;
    }
    if (!hex) {
        return kedge_cli_usage(c,
                               "--public HEX is missing: the public key that kedge key public FILE prints");
    }
    KEDGE_CLI_TRY(c,
                  kedge_cli_admin(c,
                                  json_pack("{s:s,s:s,s:s,s:s}", "verb", "viewer.add", "tenant", tenant.s,
                                            "name", name.s, "key", hex),
                                  &o, &d),
                  &d);
    kedge_cli_say(c,
                  "%s sees what tenant %s sees, and changes nothing. Its holder begins with: kedge login URL "
                  "--server-key HEX --key FILE\n",
                  name.s, tenant.s);
    return kedge_cli_ok(c, o);
}

int kedge_cmd_viewer_list(struct kedge_cli *c)
{
    static const struct kedge_column columns[] = {{"name", -24}, {"since", -20}, {"key", -64}};
    struct kedge_diag d = {.text = ""};
    struct kedge_id id;
    json_t *o = NULL;
    const char *tenant = kedge_cli_argument(c, 0);
    if (!tenant || kedge_id_from(kedge_view_str(tenant), &id) != KEDGE_OK) {
        return kedge_cli_usage(c, "TENANT: expected a name of a-z, 0-9, '.', '_', '-'");
    }
    if (!kedge_cli_no_more(c, 1)) {
        return 2;
    }
    KEDGE_CLI_TRY(
        c, kedge_cli_admin(c, json_pack("{s:s,s:s}", "verb", "viewer.list", "tenant", tenant), &o, &d), &d);
    const json_t *row;
    size_t i;
    kedge_cli_head(c, columns, 3);
    json_array_foreach(json_object_get(o, "viewers"), i, row)
    {
        struct kedge_utc since = kedge_utc(kedge_cli_int(row, "since_s"), KEDGE_UTC_SECONDS, "?");
        const char *cells[] = {kedge_cli_text(row, "name"), since.s, kedge_cli_text(row, "key")};
        kedge_cli_row(c, columns, 3, cells);
    }
    return kedge_cli_ok(c, o);
}

int kedge_cmd_viewer_remove(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_id tenant, name;
    json_t *o = NULL;
    if (!take_names(c, &tenant, &name)) {
        return 2;
    }
    KEDGE_CLI_TRY(c,
                  kedge_cli_admin(
                      c,
                      json_pack("{s:s,s:s,s:s}", "verb", "viewer.remove", "tenant", tenant.s, "name", name.s),
                      &o, &d),
                  &d);
    kedge_cli_say(c, "Viewer %s is removed: it sees nothing of tenant %s from now on.\n", name.s, tenant.s);
    return kedge_cli_ok(c, o);
}
