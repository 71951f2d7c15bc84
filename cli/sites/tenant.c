/* kedge tenant add, list. */
#include <stdio.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/local.h"

enum { CELL = 24 };

/* A key that is made here is in its file before the coordinator hears of it. If the coordinator refuses for
 * good, the file goes again; if its answer was lost, the file stays, because the tenant may exist with this
 * key. */
int kedge_cmd_tenant_add(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_key_pair admin;
    struct kedge_id tenant;
    json_t *o = NULL;
    const char *name = kedge_cli_argument(c, 0);
    if (!name || kedge_id_from(kedge_view_str(name), &tenant) != KEDGE_OK) {
        return kedge_cli_usage(c, "TENANT: expected a name of a-z, 0-9, '.', '_', '-'");
    }
    if (!kedge_cli_no_more(c, 1)) {
        return 2;
    }
    bool made = c->admin_key && !kedge_file_exists(c->admin_key);
    int err = kedge_cli_key(c->admin_key, true, &admin, &d);
    if (err) {
        return kedge_cli_fail(c, err, &d);
    }
    err = kedge_cli_tenant_add(c, &tenant, &admin, &o, &d);
    kedge_key_wipe(&admin);
    if (err) {
        if (made && !c->told) { /* perhaps it was heard: then the tenant has this key */
            kedge_cli_say(c, "The new admin key %s is kept: say the same again with it.\n", c->admin_key);
        }
        if (made && c->told && kedge_err_class(err) == KEDGE_CLASS_REJECT) {
            (void)unlink(c->admin_key); /* or somebody would take it for this tenant's key */
            (void)kedge_diag_hint(&d,
                                  "nothing was changed, and the new key %s was not kept; see: "
                                  "kedge tenant list",
                                  c->admin_key);
        }
        return kedge_cli_fail(c, err, &d);
    }
    if (made) {
        kedge_cli_say(c, "Made the admin key %s: only its holder enrols sites and joins jobs. Back it up.\n",
                      c->admin_key);
    }
    kedge_cli_say(c, "Tenant %s is added; its ledger is %s.\nNext: kedge site enroll %s SITE\n", tenant.s,
                  kedge_cli_text(o, "origin"), tenant.s);
    json_object_set_new(o, "admin_key_made", json_boolean(made));
    return kedge_cli_ok(c, o);
}

/* Answered from the coordinator's tables (tenant.list); the ledgers themselves are listed by kedge ledger
 * list. */
int kedge_cmd_tenant_list(struct kedge_cli *c)
{
    static const struct kedge_column columns[] = {
        {"tenant", -24}, {"sites", 6}, {"entries", 9}, {"ledger", -32}, {"admin key", -16}};
    struct kedge_diag d = {.text = ""};
    json_t *o = NULL;
    if (!kedge_cli_no_more(c, 0)) {
        return 2;
    }
    int err = kedge_cli_admin(c, json_pack("{s:s}", "verb", "tenant.list"), &o, &d);
    if (err) {
        return kedge_cli_fail(c, err, &d);
    }
    const json_t *list = json_object_get(o, "tenants"), *row;
    size_t i;
    kedge_cli_head(c, columns, 5);
    json_array_foreach(list, i, row)
    {
        char sites[CELL], entries[CELL], key[17];
        snprintf(sites, sizeof sites, "%lld", (long long)kedge_cli_int(row, "sites"));
        snprintf(entries, sizeof entries, "%lld", (long long)kedge_cli_int(row, "ledger_size"));
        snprintf(key, sizeof key, "%.16s", kedge_cli_text(row, "admin_key"));
        const char *cells[] = {kedge_cli_text(row, "tenant"), sites, entries, kedge_cli_text(row, "origin"),
                               key};
        kedge_cli_row(c, columns, 5, cells);
    }
    return kedge_cli_ok(c, o);
}
