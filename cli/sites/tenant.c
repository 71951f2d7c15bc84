/* kedge tenant add, list, show, quota, suspend, resume. */
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

/* TENANT; NULL after a usage error. */
static const char *take_tenant(struct kedge_cli *c)
{
    struct kedge_id id;
    const char *tenant = kedge_cli_argument(c, 0);
    if (!tenant || kedge_id_from(kedge_view_str(tenant), &id) != KEDGE_OK) {
        (void)kedge_cli_usage(c, "TENANT: expected a name of a-z, 0-9, '.', '_', '-'");
        return NULL;
    }
    return kedge_cli_no_more(c, 1) ? tenant : NULL;
}

static void say_limit(const struct kedge_cli *c, const char *name, const json_t *row)
{
    const long long most = (long long)kedge_cli_int(row, "most");
    char text[CELL] = "any number";
    if (most > 0) {
        snprintf(text, sizeof text, "%lld", most);
    }
    kedge_cli_say(c, "%-16s %lld of %s\n", name, (long long)kedge_cli_int(row, "used"), text);
}

static void say_rate(const struct kedge_cli *c, const json_t *o, const char *key, const char *name)
{
    const long long most = (long long)kedge_cli_int(o, key);
    char text[CELL] = "any number";
    if (most > 0) {
        snprintf(text, sizeof text, "%lld", most);
    }
    kedge_cli_say(c, "%-16s at most %s\n", name, text);
}

int kedge_cmd_tenant_show(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    const bool is_named = kedge_cli_argument(c, 0) != NULL;
    const char *tenant = is_named ? take_tenant(c) : NULL;
    json_t *o = NULL, *request = json_pack("{s:s,s:s*}", "verb", "tenant.show", "tenant", tenant);
    if (is_named && !tenant) {
        json_decref(request);
        return 2;
    }
    KEDGE_CLI_TRY(c, kedge_cli_admin(c, request, &o, &d), &d);
    kedge_cli_say(c, "%-16s %s\n", "tenant", kedge_cli_text(o, "tenant"));
    if (json_is_true(json_object_get(o, "suspended"))) {
        kedge_cli_say(c, "%-16s yes: %s\n", "suspended", kedge_cli_text(o, "reason"));
    }
    kedge_cli_say(c, "%-16s %lld entries\n", "ledger", (long long)kedge_cli_int(o, "ledger_size"));
    say_limit(c, "sites", json_object_get(o, "sites"));
    say_limit(c, "jobs", json_object_get(o, "jobs"));
    say_limit(c, "tokens", json_object_get(o, "tokens"));
    say_rate(c, o, "statements_per_s", "statements/s");
    say_rate(c, o, "bytes_per_s", "bytes/s");
    return kedge_cli_ok(c, o);
}

static int send_quota(struct kedge_cli *c, json_t *request, json_t **ret)
{
    struct kedge_diag d = {.text = ""};
    KEDGE_CLI_TRY(c, kedge_cli_admin(c, request, ret, &d), &d);
    return 0;
}

/* Only what is named changes. */
int kedge_cmd_tenant_quota(struct kedge_cli *c)
{
    static const struct {
        const char *option, *member;
        uint64_t most;
    } limits[] = {{"sites", "sites", KEDGE_ST_QUOTA_MAX},
                  {"jobs", "jobs", KEDGE_ST_QUOTA_MAX},
                  {"tokens", "tokens", KEDGE_ST_QUOTA_MAX},
                  {"statements-per-s", "statements_per_s", KEDGE_ST_QUOTA_MAX},
                  {"bytes-per-s", "bytes_per_s", KEDGE_ST_QUOTA_BYTES_MAX}};
    json_t *o = NULL, *request = json_pack("{s:s}", "verb", "tenant.quota");
    const char *reason = kedge_cli_option(c, "reason", NULL);
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        uint64_t value;
        if (!kedge_cli_number(c, limits[i].option, 0, limits[i].most, UINT64_MAX, &value)) {
            json_decref(request);
            return 2;
        }
        if (value != UINT64_MAX) {
            json_object_set_new(request, limits[i].member, json_integer((json_int_t)value));
        }
    }
    const bool changes = json_object_size(request) > 1;
    const char *tenant = take_tenant(c);
    if (!tenant || !changes) {
        json_decref(request);
        return tenant ? kedge_cli_usage(
                   c, "expected --sites, --jobs, --tokens, --statements-per-s or --bytes-per-s")
                      : 2;
    }
    json_object_set_new(request, "tenant", json_string(tenant));
    if (reason) {
        json_object_set_new(request, "reason", json_string(reason));
    }
    int code = send_quota(c, request, &o);
    if (code) {
        return code;
    }
    kedge_cli_say(c, "The quota of tenant %s is in force, entry %lld of the main chain.\n", tenant,
                  (long long)kedge_cli_int(o, "leaf_index"));
    return kedge_cli_ok(c, o);
}

static int set_standing(struct kedge_cli *c, bool suspended)
{
    json_t *o = NULL;
    const char *reason = kedge_cli_option(c, "reason", "");
    const char *tenant = take_tenant(c);
    if (!tenant) {
        return 2;
    }
    int code = send_quota(c,
                          json_pack("{s:s,s:s,s:b,s:s}", "verb", "tenant.quota", "tenant", tenant,
                                    "suspended", suspended, "reason", reason),
                          &o);
    if (code) {
        return code;
    }
    kedge_cli_say(c,
                  suspended
                      ? "Tenant %s is suspended, entry %lld of the main chain: its sites are told to come "
                        "back later, its admins read and change nothing.\n"
                      : "Tenant %s is served again, entry %lld of the main chain.\n",
                  tenant, (long long)kedge_cli_int(o, "leaf_index"));
    return kedge_cli_ok(c, o);
}

int kedge_cmd_tenant_suspend(struct kedge_cli *c)
{
    return set_standing(c, true);
}

int kedge_cmd_tenant_resume(struct kedge_cli *c)
{
    return set_standing(c, false);
}
