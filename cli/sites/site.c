/* kedge site enroll, approve, list, revoke. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/local.h"
#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "common/base/os/utc.h"
#include "common/base/try.h"

enum {
    TTL_DEFAULT_S = 86400,
    TTL_MAX_S = 30 * 86400,
    WAIT_MAX_S = 7 * 86400,
    POLL_MS = 500,
    CELL = 32,
    CONDITION = 27
};

/* TENANT SITE from the arguments; false after a usage error. */
static bool take_names(struct kedge_cli *c, struct kedge_id *tenant, struct kedge_id *site)
{
    const char *t = kedge_cli_argument(c, 0), *s = kedge_cli_argument(c, 1);
    if (!t || kedge_id_from(kedge_view_str(t), tenant) != KEDGE_OK) {
        (void)kedge_cli_usage(c, "TENANT: expected a name of a-z, 0-9, '.', '_', '-'");
        return false;
    }
    if (!s || kedge_id_from(kedge_view_str(s), site) != KEDGE_OK) {
        (void)kedge_cli_usage(c, "SITE: expected a name of a-z, 0-9, '.', '_', '-'");
        return false;
    }
    return kedge_cli_no_more(c, 2);
}

/* ---- enroll ---- */

/* The token is a secret and shown once; the coordinator keeps its hash. Words for people go to stderr, so
 * that stdout can be piped into a file. */
int kedge_cmd_site_enroll(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_id tenant, site;
    uint64_t ttl;
    json_t *o = NULL;
    const char *address = kedge_cli_option(c, "address", NULL), *out = kedge_cli_option(c, "out", NULL);
    if (!kedge_cli_number(c, "ttl", 1, TTL_MAX_S, TTL_DEFAULT_S, &ttl) || !take_names(c, &tenant, &site)) {
        return 2;
    }
    if (address && !kedge_cli_is_address(address, 1)) {
        return kedge_cli_usage(c,
                               "--address %s: expected where the site finds the coordinator, such as "
                               "tls+tcp://10.0.0.1:7443",
                               kedge_cli_word(address).s);
    }
    json_t *request = json_pack("{s:s,s:s,s:s,s:I}", "verb", "site.token", "tenant", tenant.s, "site", site.s,
                                "ttl_s", (json_int_t)ttl);
    if (address) {
        json_object_set_new(request, "address", json_string(address));
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
        "The token%s%s works once, within %s; it is a secret. Bring it to the device and there "
        "run\n"
        "  kedge-client --site DIR --enroll-file %s\n"
        "Then the tenant's admin enrols the site:\n"
        "  kedge site approve %s %s --admin-key FILE\n",
        out ? " in " : "", out ? out : "", kedge_cli_span(ttl).s, out ? out : "FILE", tenant.s, site.s);
    json_object_set_new(o, "tenant", json_string(tenant.s));
    json_object_set_new(o, "site", json_string(site.s));
    return kedge_cli_ok(c, o);
}

/* ---- approve ---- */

/* The one enrolment of this site that waits for a signature; waits for it until the deadline. Two devices
 * that used tokens of one name are an error and never a choice: one of them was not meant. */
static int await_pending(struct kedge_cli *c, const struct kedge_id *tenant, const struct kedge_id *site,
                         uint64_t deadline_ns, json_t **ret, struct kedge_diag *d)
{
    for (;;) {
        json_t *o = NULL;
        KEDGE_TRY(kedge_cli_admin(
            c, json_pack("{s:s,s:s,s:s}", "verb", "site.pending", "tenant", tenant->s, "site", site->s), &o,
            d));
        const json_t *sites = json_object_get(o, "sites");
        size_t count = json_array_size(sites);
        if (count == 1) {
            *ret = json_incref(json_array_get(sites, 0));
        }
        json_decref(o);
        if (count == 1) {
            return KEDGE_OK;
        }
        if (count > 1) {
            (void)kedge_diag_set(d, KEDGE_E_STATE, "%zu devices used tokens of site %s of tenant %s", count,
                                 site->s, tenant->s);
            (void)kedge_diag_hint(d, "find out why; enrol the right device under another name");
            return KEDGE_E_STATE;
        }
        if (kedge_os_now_ns() >= deadline_ns) {
            (void)kedge_diag_set(d, KEDGE_E_NOT_FOUND,
                                 "no enrolment of site %s of tenant %s waits for a signature", site->s,
                                 tenant->s);
            (void)kedge_diag_hint(
                d,
                "the device must have used its token (--wait SECONDS waits for it); or it is "
                "enrolled already: kedge site list %s",
                tenant->s);
            return KEDGE_E_NOT_FOUND;
        }
        if (kedge_cli_pause(POLL_MS)) {
            return kedge_diag_set(d, KEDGE_E_CANCELLED, "interrupted");
        }
    }
}

/* A key that the admin has from the device itself; false after a usage error. */
static bool take_expected(struct kedge_cli *c, const char *option, struct kedge_public_key *ret,
                          bool *ret_given)
{
    const char *hex = kedge_cli_option(c, option, NULL);
    *ret_given = hex != NULL;
    if (hex && kedge_hex_decode(kedge_view_str(hex), ret->b, KEDGE_KEY_LEN) != KEDGE_OK) {
        (void)kedge_cli_usage(
            c, "--%s: expected 64 hex digits, as kedge key public prints them on the device", option);
        return false;
    }
    return true;
}

/* What the coordinator tells must be it. Before the admin's key signs: a statement with a wrong key would let
 * another device in under this site's name. */
static int check_told(const json_t *pending, const char *member, const struct kedge_public_key *expected,
                      struct kedge_diag *d)
{
    struct kedge_public_key told;
    const char *hex = kedge_cli_text(pending, member);
    if (kedge_hex_decode(kedge_view_str(hex), told.b, KEDGE_KEY_LEN) == KEDGE_OK
        && kedge_public_key_eq(&told, expected)) {
        return KEDGE_OK;
    }
    (void)kedge_diag_set(d, KEDGE_E_KEY, "the coordinator tells another %s of this site: %.64s", member, hex);
    (void)kedge_diag_hint(d, "nothing was signed: another device used the token, or the coordinator lies");
    return KEDGE_E_KEY;
}

/* The key is opened before the waiting begins, so that a passphrase is asked for while somebody is there. A
 * coordinator that names another site than was asked for gets no signature. */
int kedge_cmd_site_approve(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_key_pair admin;
    struct kedge_id tenant, site;
    struct kedge_public_key tls, statement;
    bool knows_tls, knows_statement;
    uint64_t wait_s;
    json_t *pending = NULL, *o = NULL;
    if (!kedge_cli_number(c, "wait", 0, WAIT_MAX_S, 0, &wait_s)
        || !take_expected(c, "tls-key", &tls, &knows_tls)
        || !take_expected(c, "statement-key", &statement, &knows_statement)
        || !take_names(c, &tenant, &site)) {
        return 2;
    }
    int err = kedge_cli_key(c->admin_key, false, &admin, &d);
    if (err) {
        return kedge_cli_fail(c, err, &d);
    }
    kedge_cli_catch_interrupt();
    err = await_pending(c, &tenant, &site, kedge_os_now_ns() + wait_s * 1000000000u, &pending, &d);
    if (!err
        && (strcmp(kedge_cli_text(pending, "tenant"), tenant.s) != 0
            || strcmp(kedge_cli_text(pending, "site"), site.s) != 0)) {
        err = kedge_diag_set(&d, KEDGE_E_FORMAT, "the coordinator told of another site than asked for");
    }
    err = err || !knows_tls ? err : check_told(pending, "tls_key", &tls, &d);
    err = err || !knows_statement ? err : check_told(pending, "statement_key", &statement, &d);
    if (!err) {
        kedge_cli_say(c, "site %s of tenant %s\n  TLS key        %s\n  statement key  %s\n", site.s, tenant.s,
                      kedge_cli_text(pending, "tls_key"), kedge_cli_text(pending, "statement_key"));
        err = kedge_cli_site_sign_in(c, pending, &admin, &o, &d);
    }
    kedge_key_wipe(&admin);
    if (err == KEDGE_E_CANCELLED && kedge_cli_interrupted()) {
        return kedge_cli_interrupt_end(c, "interrupted; nothing was signed",
                                       "the token stays good: the same command waits for the device again");
    }
    if (err) {
        json_decref(pending);
        return kedge_cli_fail(c, err, &d);
    }
    kedge_cli_say(
        c, "Enrolled, entry %lld of the tenant's ledger.%s\n", (long long)kedge_cli_int(o, "leaf_index"),
        knows_tls && knows_statement ? ""
                                     : " Compare these keys with those that kedge-client logs on the device; "
                                       "--tls-key and --statement-key do so before anything is signed.");
    json_object_update_missing(o, pending);
    json_decref(pending);
    return kedge_cli_ok(c, o);
}

/* ---- list ---- */

/* What a site is in, in a word or two: the first that holds. */
static void put_condition(const json_t *row, char out[CONDITION + 1])
{
    const json_t *troubles = json_object_get(row, "troubles"), *first = json_array_get(troubles, 0);
    size_t more = json_array_size(troubles);
    const char *state = kedge_cli_text(row, "state");
    if (strcmp(state, "active") != 0) {
        snprintf(out, CONDITION + 1, "%s", state);
    } else if (kedge_cli_int(row, "refuses_main_since_ms") > 0) {
        snprintf(out, CONDITION + 1, "refuses the main chain");
    } else if (!json_is_true(json_object_get(row, "online"))) {
        snprintf(out, CONDITION + 1, "offline");
    } else if (more > 1) {
        snprintf(out, CONDITION + 1, "in trouble: %.10s, …", kedge_cli_text(first, "reason"));
    } else {
        snprintf(out, CONDITION + 1, more > 0 ? "in trouble: %.15s" : "online",
                 kedge_cli_text(first, "reason"));
    }
}

static const struct kedge_column list_columns[] = {
    {"tenant", -16}, {"site", -16}, {"condition", -CONDITION}, {"last seen", -20}, {"statement key", -13}};

/* Times are the coordinator's; a site that never spoke has none. The key is cut: it is there to be
 * recognised, and the answer in JSON has all of it. */
static void list_row(const struct kedge_cli *c, const json_t *row, const char *condition)
{
    char key[17];
    struct kedge_utc seen = kedge_utc(kedge_cli_int(row, "last_seen_ms") / 1000, KEDGE_UTC_SECONDS, "never");
    snprintf(key, sizeof key, "%.13s", kedge_cli_text(row, "statement_key"));
    const char *cells[] = {kedge_cli_text(row, "tenant"), kedge_cli_text(row, "site"), condition, seen.s,
                           key};
    kedge_cli_row(c, list_columns, 5, cells);
    if (kedge_cli_text(row, "labels")[0]) { /* most sites have none, and a column would take room from all */
        kedge_cli_say(c, "  labels: %.88s\n", kedge_cli_text(row, "labels"));
    }
}

static json_t *list_request(const char *verb, const char *tenant)
{
    json_t *request = json_pack("{s:s}", "verb", verb);
    if (tenant) {
        json_object_set_new(request, "tenant", json_string(tenant));
    }
    return request;
}

int kedge_cmd_site_list(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    const char *tenant = kedge_cli_argument(c, 0);
    json_t *o = NULL, *pending = NULL;
    if (!kedge_cli_no_more(c, 1)) {
        return 2;
    }
    int err = kedge_cli_admin(c, list_request("site.list", tenant), &o, &d);
    if (err) {
        return kedge_cli_fail(c, err, &d);
    }
    const json_t *row;
    size_t i;
    kedge_cli_head(c, list_columns, 5);
    json_array_foreach(json_object_get(o, "sites"), i, row)
    {
        char condition[CONDITION + 1];
        put_condition(row, condition);
        list_row(c, row, condition);
    }
    /* Who may read the list of sites need not be one who approves them. */
    if (kedge_cli_admin(c, list_request("site.pending", tenant), &pending, &d) == KEDGE_OK) {
        json_array_foreach(json_object_get(pending, "sites"), i, row)
        {
            list_row(c, row, "waits for approval");
        }
        json_object_set(o, "pending", json_object_get(pending, "sites"));
        json_decref(pending);
    }
    return kedge_cli_ok(c, o);
}

/* ---- revoke ---- */

/* The statement key by which the coordinator knows the site: the admin's statement names it. */
static int get_statement_key(struct kedge_cli *c, const struct kedge_id *tenant, const struct kedge_id *site,
                             struct kedge_public_key *ret, struct kedge_diag *d)
{
    json_t *o = NULL;
    const json_t *row;
    size_t i;
    KEDGE_TRY(kedge_cli_admin(c, json_pack("{s:s,s:s}", "verb", "site.list", "tenant", tenant->s), &o, d));
    int err = KEDGE_E_NOT_FOUND;
    const json_t *list = json_object_get(o, "sites");
    json_array_foreach(list, i, row)
    {
        if (strcmp(kedge_cli_text(row, "site"), site->s) == 0) {
            err =
                kedge_hex_decode(kedge_view_str(kedge_cli_text(row, "statement_key")), ret->b, KEDGE_KEY_LEN);
            break;
        }
    }
    json_decref(o);
    if (err) {
        c->told = true;
        (void)kedge_diag_set(d, err, "tenant %s: no site \"%s\" with a key here", tenant->s, site->s);
        (void)kedge_diag_hint(d, "kedge site list %s tells which there are", tenant->s);
    }
    return err;
}

/* The statement names the key that ends, which is asked of the coordinator. */
static int sign_revocation(struct kedge_cli *c, const struct kedge_id *tenant, const struct kedge_id *site,
                           const char *reason, json_t **ret_envelope, struct kedge_diag *d)
{
    struct kedge_key_pair admin KEDGE_CLEANUP(kedge_key_wipe);
    struct kedge_statement *st KEDGE_CLEANUP(kedge_mem_release) = kedge_mem_new(1, sizeof *st);
    if (!st) {
        return kedge_diag_set(d, KEDGE_E_NOMEM, "out of memory");
    }
    struct kedge_st_site_revoked *r = &st->u.site_revoked;
    st->kind = KEDGE_ST_SITE_REVOKED;
    r->tenant = *tenant;
    r->site = *site;
    snprintf(r->reason, sizeof r->reason, "%s", reason);
    KEDGE_TRY(kedge_cli_key(c->admin_key, false, &admin, d));
    KEDGE_TRY(get_statement_key(c, tenant, site, &r->statement_key, d));
    return kedge_cli_sign(c, st, &admin, ret_envelope, d);
}

int kedge_cmd_site_revoke(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_id tenant, site;
    json_t *envelope = NULL, *o = NULL;
    const char *reason = kedge_cli_option(c, "reason", "revoked by the tenant's admin");
    if (!take_names(c, &tenant, &site)) {
        return 2;
    }
    if (strlen(reason) > KEDGE_ST_REASON_MAX) {
        return kedge_cli_usage(c, "--reason: expected at most %d bytes", KEDGE_ST_REASON_MAX);
    }
    KEDGE_CLI_TRY(c, sign_revocation(c, &tenant, &site, reason, &envelope, &d), &d);
    KEDGE_CLI_TRY(c,
                  kedge_cli_admin(c,
                                  json_pack("{s:s,s:s,s:o}", "verb", "site.revoke", "tenant", tenant.s,
                                            "envelope", envelope),
                                  &o, &d),
                  &d);
    kedge_cli_say(c, "Site %s of tenant %s is revoked for good, entry %lld of the tenant's ledger.\n", site.s,
                  tenant.s, (long long)kedge_cli_int(o, "leaf_index"));
    json_object_set_new(o, "site", json_string(site.s));
    return kedge_cli_ok(c, o);
}
