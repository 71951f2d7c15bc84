/* kedge witness init, enroll, list, revoke. */
#include <stdio.h>
#include <string.h>

#include "chain/audit/audit.h"
#include "cli/cli.h"
#include "cli/local.h"
#include "cli/witness/witness_folder.h"
#include "common/base/mem.h"
#include "common/base/try.h"

enum { CELL = 32 };

/* TENANT WITNESS from the arguments, `first` being the tenant's; false after a usage error. */
static bool take_names(struct kedge_cli *c, int first, struct kedge_id *tenant, struct kedge_id *witness)
{
    const char *t = kedge_cli_argument(c, first), *w = kedge_cli_argument(c, first + 1);
    if (!t || kedge_id_from(kedge_view_str(t), tenant) != KEDGE_OK) {
        (void)kedge_cli_usage(c, "TENANT: expected a name of a-z, 0-9, '.', '_', '-'");
        return false;
    }
    if (!w || kedge_id_from(kedge_view_str(w), witness) != KEDGE_OK) {
        (void)kedge_cli_usage(c, "WITNESS: expected a name of a-z, 0-9, '.', '_', '-'");
        return false;
    }
    return kedge_cli_no_more(c, first + 2);
}

/* ---- init ---- */

/* What the witness trusts: the logs' keys and the tenant's first admin key, from a file that the tenant has
 * from elsewhere than the coordinator. */
static int take_trust(const char *path, struct kedge_witness_folder *w, struct kedge_diag *d)
{
    struct kedge_trust trust;
    int err = kedge_trust_read(path, &trust, d);
    if (err) {
        return err;
    }
    const struct kedge_trust_tenant *t = kedge_trust_find(&trust, &w->tenant);
    if (!t) {
        err = kedge_diag_set(d, KEDGE_E_USAGE, "%s: does not name tenant %s", path, w->tenant.s);
    } else {
        snprintf(w->deployment, sizeof w->deployment, "%s", trust.deployment);
        w->main_log = trust.main_log;
        w->log = t->log;
        w->admin_key = t->admin_key;
    }
    kedge_trust_deinit(&trust);
    return err;
}

/* Made from the trust file, not from what the coordinator answers: a witness that takes its keys from the one
 * it watches would witness nothing. */
int kedge_cmd_witness_init(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_witness_folder w = {.name = ""};
    struct kedge_vkey vkey;
    char tls[2 * KEDGE_KEY_LEN + 1];
    const char *dir = kedge_cli_argument(c, 0);
    const char *trust = c->trust, *name = kedge_cli_option(c, "name", NULL);
    if (!trust) {
        return kedge_cli_usage(c, "--trust FILE is missing: the logs' keys (kedge audit trust writes it)");
    }
    if (!c->connect || !kedge_cli_is_address(c->connect, 1) || strlen(c->connect) >= sizeof w.address) {
        return kedge_cli_usage(
            c, "--connect: expected the coordinator's address, such as tls+tcp://10.0.0.1:7443");
    }
    if (!c->server_key
        || kedge_hex_decode(kedge_view_str(c->server_key), w.server_key.b, KEDGE_KEY_LEN) != KEDGE_OK) {
        return kedge_cli_usage(c, "--server-key: expected 64 hex digits (see: kedge status)");
    }
    if (!dir) {
        return kedge_cli_usage(c, "DIR is missing: the witness's new folder");
    }
    if (!take_names(c, 1, &w.tenant, &w.witness)) {
        return 2;
    }
    snprintf(w.address, sizeof w.address, "%s", c->connect);
    int err = take_trust(trust, &w, &d);
    int n = name ? snprintf(w.name, sizeof w.name, "%s", name)
                 : snprintf(w.name, sizeof w.name, "%s/witness/%s/%s", w.deployment, w.tenant.s, w.witness.s);
    if (!err && (n >= (int)sizeof w.name || !kedge_key_name_is_valid(kedge_view_str(w.name)))) {
        return kedge_cli_usage(c, "--name: expected 1 to %d bytes without spaces and '+'",
                               KEDGE_KEY_NAME_MAX);
    }
    if (!err) {
        err = kedge_witness_folder_create(dir, &w, &d);
    }
    if (!err) {
        err = kedge_vkey_make(kedge_view_str(w.name), KEDGE_KEY_COSIGNATURE, &w.cosign.public, &vkey);
    }
    kedge_hex_encode(w.tls.public.b, KEDGE_KEY_LEN, tls);
    kedge_witness_folder_wipe(&w);
    if (err) {
        return kedge_cli_fail(c, err, &d);
    }
    json_t *o = json_pack("{s:s,s:s,s:s,s:o}", "tenant", w.tenant.s, "witness", w.witness.s, "tls_key", tls,
                          "vkey", kedge_witness_vkey(&vkey));
    kedge_cli_say(c,
                  "Made %s; its keys stay there. The tenant's admin enrols it:\n"
                  "  kedge witness enroll %s %s --tls-key %s \\\n    --vkey %s --admin-key FILE\n"
                  "Then it watches: kedge ledger follow %s\n",
                  dir, w.tenant.s, w.witness.s, tls, kedge_cli_text(o, "vkey"), dir);
    return kedge_cli_ok(c, o);
}

/* ---- enroll, revoke ---- */

/* The tenant's admin signs who witnesses for it, as it does for sites; the verbs are in
 * coordinator/daemon/admin/admin_witness.c. */
static int send_signed(struct kedge_cli *c, const char *verb, struct kedge_statement *st,
                       const struct kedge_id *tenant, json_t **ret, struct kedge_diag *d)
{
    struct kedge_key_pair admin;
    json_t *envelope = NULL;
    KEDGE_TRY(kedge_cli_key(c->admin_key, false, &admin, d));
    int err = kedge_cli_sign(c, st, &admin, &envelope, d);
    kedge_key_wipe(&admin);
    return err ? err
               : kedge_cli_admin(
                   c, json_pack("{s:s,s:s,s:o}", "verb", verb, "tenant", tenant->s, "envelope", envelope),
                   ret, d);
}

/* Both keys come from what kedge witness init printed at the tenant: one for the connection, one whose
 * cosignatures count. Neither private one leaves that machine. */
int kedge_cmd_witness_enroll(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_id tenant, witness;
    struct kedge_vkey vkey;
    struct kedge_public_key tls;
    json_t *o = NULL;
    const char *hex = kedge_cli_option(c, "tls-key", ""), *text = kedge_cli_option(c, "vkey", "");
    if (!take_names(c, 0, &tenant, &witness)) {
        return 2;
    }
    if (kedge_hex_decode(kedge_view_str(hex), tls.b, KEDGE_KEY_LEN) != KEDGE_OK) {
        return kedge_cli_usage(c, "--tls-key: expected 64 hex digits, as kedge witness init told");
    }
    if (kedge_vkey_decode(kedge_view_str(text), &vkey) != KEDGE_OK || vkey.type != KEDGE_KEY_COSIGNATURE
        || strlen(vkey.name) > KEDGE_ST_NAME_MAX) {
        return kedge_cli_usage(c, "--vkey: expected a cosignature key (type 04), as kedge witness init told");
    }
    struct kedge_statement *st = kedge_mem_new(1, sizeof *st);
    if (!st) {
        return kedge_cli_fail(c, KEDGE_E_NOMEM, NULL);
    }
    st->kind = KEDGE_ST_WITNESS_ENROLLED;
    st->u.witness_enrolled = (struct kedge_st_witness_enrolled){
        .tenant = tenant, .witness = witness, .tls_key = tls, .cosign_key = vkey.key};
    snprintf(st->u.witness_enrolled.name, sizeof st->u.witness_enrolled.name, "%.*s", KEDGE_ST_NAME_MAX,
             vkey.name);
    int err = send_signed(c, "witness.enroll", st, &tenant, &o, &d);
    kedge_mem_free(st);
    if (err) {
        return kedge_cli_fail(c, err, &d);
    }
    kedge_cli_say(c,
                  "Witness %s of tenant %s is enrolled, entry %lld of the tenant's ledger.\n"
                  "For the federation's witness-policy.txt:\n  witness %s.%s %s\n",
                  witness.s, tenant.s, (long long)kedge_cli_int(o, "leaf_index"), tenant.s, witness.s, text);
    json_object_set_new(o, "witness", json_string(witness.s));
    return kedge_cli_ok(c, o);
}

/* The row of a witness in the coordinator's list. */
static int find_row(struct kedge_cli *c, const struct kedge_id *tenant, const struct kedge_id *witness,
                    struct kedge_public_key *ret_key, struct kedge_diag *d)
{
    json_t *o = NULL;
    const json_t *row;
    size_t i;
    KEDGE_TRY(kedge_cli_admin(c, json_pack("{s:s}", "verb", "witness.list"), &o, d));
    int err = KEDGE_E_NOT_FOUND;
    json_array_foreach(json_object_get(o, "witnesses"), i, row)
    {
        if (strcmp(kedge_cli_text(row, "tenant"), tenant->s) == 0
            && strcmp(kedge_cli_text(row, "witness"), witness->s) == 0) {
            err = kedge_hex_decode(kedge_view_str(kedge_cli_text(row, "cosign_key")), ret_key->b,
                                   KEDGE_KEY_LEN);
        }
    }
    json_decref(o);
    if (err) {
        c->told = true;
        (void)kedge_diag_set(d, err, "tenant %s has no witness \"%s\" here", tenant->s, witness->s);
        (void)kedge_diag_hint(d, "kedge witness list tells which there are");
    }
    return err;
}

/* The statement names the key that ends, as the revocation of a site does, and the coordinator is asked which
 * it is. */
int kedge_cmd_witness_revoke(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_id tenant, witness;
    json_t *o = NULL;
    const char *reason = kedge_cli_option(c, "reason", "revoked by the tenant's admin");
    if (!take_names(c, 0, &tenant, &witness)) {
        return 2;
    }
    if (strlen(reason) > KEDGE_ST_REASON_MAX) {
        return kedge_cli_usage(c, "--reason: expected at most %d bytes", KEDGE_ST_REASON_MAX);
    }
    struct kedge_statement *st KEDGE_CLEANUP(kedge_mem_release) = kedge_mem_new(1, sizeof *st);
    if (!st) {
        return kedge_cli_fail(c, KEDGE_E_NOMEM, NULL);
    }
    st->kind = KEDGE_ST_WITNESS_REVOKED;
    st->u.witness_revoked = (struct kedge_st_witness_revoked){.tenant = tenant, .witness = witness};
    snprintf(st->u.witness_revoked.reason, sizeof st->u.witness_revoked.reason, "%s", reason);
    KEDGE_CLI_TRY(c, find_row(c, &tenant, &witness, &st->u.witness_revoked.cosign_key, &d), &d);
    KEDGE_CLI_TRY(c, send_signed(c, "witness.revoke", st, &tenant, &o, &d), &d);
    kedge_cli_say(c, "Witness %s of tenant %s is revoked for good, entry %lld of the tenant's ledger.\n",
                  witness.s, tenant.s, (long long)kedge_cli_int(o, "leaf_index"));
    json_object_set_new(o, "witness", json_string(witness.s));
    return kedge_cli_ok(c, o);
}

/* ---- list ---- */

/* Sizes are what each witness has cosigned, against those of the main chain: how far it is behind can be seen
 * in one line. */
int kedge_cmd_witness_list(struct kedge_cli *c)
{
    static const struct kedge_column columns[] = {{"tenant", -20}, {"witness", -20}, {"state", -9},
                                                  {"main", 9},     {"own", 9},       {"key", -28}};
    struct kedge_diag d = {.text = ""};
    json_t *o = NULL;
    if (!kedge_cli_no_more(c, 0)) {
        return 2;
    }
    int err = kedge_cli_admin(c, json_pack("{s:s}", "verb", "witness.list"), &o, &d);
    if (err) {
        return kedge_cli_fail(c, err, &d);
    }
    const json_t *list = json_object_get(o, "witnesses"), *row;
    size_t i;
    kedge_cli_head(c, columns, 6);
    json_array_foreach(list, i, row)
    {
        char main_size[CELL], own[CELL];
        snprintf(main_size, sizeof main_size, "%lld", (long long)kedge_cli_int(row, "main_size"));
        snprintf(own, sizeof own, "%lld", (long long)kedge_cli_int(row, "own_size"));
        const char *cells[] = {kedge_cli_text(row, "tenant"),
                               kedge_cli_text(row, "witness"),
                               kedge_cli_text(row, "state"),
                               main_size,
                               own,
                               kedge_cli_text(row, "vkey")};
        kedge_cli_row(c, columns, 6, cells);
    }
    kedge_cli_say(c, "The main chain has %lld entries, %lld of them final.\n",
                  (long long)kedge_cli_int(o, "main_size"), (long long)kedge_cli_int(o, "final_size"));
    return kedge_cli_ok(c, o);
}
