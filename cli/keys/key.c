/* kedge key list, add, rotate, revoke, recover. */
#include "cli/keys/key.h"
#include "cli/login/profile.h"

#include <stdio.h>
#include <string.h>

#include "cli/local.h"
#include "common/base/mem.h"

enum { CELL = 24 };

/* TENANT. False after a usage error. */
static bool take_tenant(struct kedge_cli *c, struct kedge_id *ret)
{
    const char *name = kedge_cli_argument(c, 0);
    if (name && kedge_id_from(kedge_view_str(name), ret) == KEDGE_OK) {
        return true;
    }
    (void)kedge_cli_usage(c, "TENANT: expected a name of a-z, 0-9, '.', '_', '-'");
    return false;
}

/* --role admin|recovery */
static bool take_role(struct kedge_cli *c, enum kedge_key_role *ret)
{
    const char *role = kedge_cli_option(c, "role", "admin");
    *ret = strcmp(role, "recovery") == 0 ? KEDGE_ROLE_RECOVERY : KEDGE_ROLE_ADMIN;
    if (strcmp(role, "admin") != 0 && strcmp(role, "recovery") != 0) {
        (void)kedge_cli_usage(c, "--role %s: expected admin or recovery", kedge_cli_word(role).s);
        return false;
    }
    return true;
}

static bool take_reason(struct kedge_cli *c, const char *fallback, char out[KEDGE_ST_REASON_MAX + 1])
{
    const char *reason = kedge_cli_option(c, "reason", fallback);
    if (strlen(reason) > KEDGE_ST_REASON_MAX) {
        (void)kedge_cli_usage(c, "--reason: expected at most %d bytes", KEDGE_ST_REASON_MAX);
        return false;
    }
    snprintf(out, KEDGE_ST_REASON_MAX + 1, "%s", reason);
    return true;
}

/* The key that signs for what is there: a file of an option. */
static int read_signer(const char *path, const char *option, struct kedge_key_pair *ret, struct kedge_diag *d)
{
    return path ? kedge_cli_key(path, false, ret, d)
                : kedge_diag_set(d, KEDGE_E_USAGE, "%s FILE is missing", option);
}

/* The key that comes: --new-key FILE, made when absent. */
static int make_key(struct kedge_cli *c, const char *path, struct kedge_key_pair *ret, struct kedge_diag *d)
{
    if (!path) {
        return kedge_diag_set(d, KEDGE_E_USAGE, "--new-key FILE is missing; it is made when absent");
    }
    bool made = !kedge_file_exists(path);
    int err = kedge_cli_key(path, true, ret, d);
    if (!err && made) {
        kedge_cli_say(c, "Made the key %s. Back it up.\n", path);
    }
    return err;
}

/* Signs with both (second NULL: with one) and sends, unless `err`. A key that comes signs, too, where it is
 * here: it proves that somebody holds it, so no tenant can register a key that is another's. */
static int finish(struct kedge_cli *c, int err, struct kedge_diag *d, struct kedge_statement *st,
                  struct kedge_key_pair *signer, struct kedge_key_pair *second)
{
    int code = err ? kedge_cli_fail(c, err, d) : kedge_cli_key_change(c, st, signer, second);
    kedge_key_wipe(signer);
    if (second) {
        kedge_key_wipe(second);
    }
    kedge_mem_free(st);
    return code;
}

/* Before the keys exist there is nothing to wipe: finish() cannot be used yet. */
static int no_memory(struct kedge_cli *c)
{
    return kedge_cli_fail(c, KEDGE_E_NOMEM, NULL);
}

/* A key whose holder is elsewhere and signs there. */
static int take_public(const char *hex, struct kedge_public_key *ret, struct kedge_diag *d)
{
    return kedge_hex_decode(kedge_view_str(hex), ret->b, KEDGE_KEY_LEN) == KEDGE_OK
                   && kedge_public_key_is_valid(ret)
               ? KEDGE_OK
               : kedge_diag_set(d, KEDGE_E_USAGE, "--public: expected a key, 64 hex digits");
}

/* A key that is made here can sign for itself at once; of a public one its holder has to sign that he has it,
 * on the machine where it is (kedge key sign). */
int kedge_cmd_key_add(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_key_pair signer, added;
    enum kedge_key_role role;
    struct kedge_id tenant;
    const char *path = kedge_cli_option(c, "new-key", NULL);
    const char *hex = kedge_cli_option(c, "public", NULL);
    if (path && hex) {
        return kedge_cli_usage(
            c, "either --new-key FILE, which signs here, or --public HEX, whose holder signs");
    }
    if (!take_role(c, &role) || !take_tenant(c, &tenant)) {
        return 2;
    }
    struct kedge_statement *st = kedge_mem_new(1, sizeof *st);
    if (!st) {
        return no_memory(c);
    }
    memset(&signer, 0, sizeof signer);
    memset(&added, 0, sizeof added);
    st->kind = KEDGE_ST_KEY_ADDED;
    int err = read_signer(c->admin_key, "--admin-key", &signer, &d);
    if (!err && hex) {
        err = take_public(hex, &added.public, &d);
    } else if (!err) {
        err = make_key(c, path, &added, &d);
    }
    st->u.key_added = (struct kedge_st_key_added){tenant, role, added.public};
    return finish(c, err, &d, st, &signer, hex ? NULL : &added);
}

/* The new key is in its file before the statement is signed: a key in force that was never stored would lock
 * its tenant out. */
int kedge_cmd_key_rotate(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_key_pair old, new;
    enum kedge_key_role role;
    struct kedge_id tenant;
    const char *path = kedge_cli_option(c, "new-key", NULL);
    const char *recovery = kedge_cli_option(c, "recovery-key", NULL);
    if (!take_tenant(c, &tenant)) {
        return 2;
    }
    struct kedge_statement *st = kedge_mem_new(1, sizeof *st);
    if (!st) {
        return no_memory(c);
    }
    memset(&old, 0, sizeof old);
    memset(&new, 0, sizeof new);
    role = recovery ? KEDGE_ROLE_RECOVERY : KEDGE_ROLE_ADMIN;
    st->kind = KEDGE_ST_KEY_ROTATED;
    int err = recovery ? read_signer(recovery, "--recovery-key", &old, &d)
                       : read_signer(c->admin_key, "--admin-key", &old, &d);
    if (!err) {
        err = make_key(c, path, &new, &d);
    }
    st->u.key_rotated = (struct kedge_st_key_rotated){
        .tenant = tenant, .role = role, .old_key = old.public, .new_key = new.public};
    bool speaks = c->connect && !recovery && c->key && c->admin_key && strcmp(c->key, c->admin_key) == 0;
    c->key_after = speaks ? path : NULL;
    int code = finish(c, err, &d, st, &old, &new);
    if (code == 0 && speaks && (err = kedge_profile_use_key(c, path, &d)) != KEDGE_OK) {
        (void)kedge_diag_hint(&d, "the key is rotated; log in with the new one: kedge login");
        return kedge_cli_fail(c, err, &d);
    }
    return code;
}

/* By its public half: the private one may be lost or in wrong hands, which is what revoking is for. */
int kedge_cmd_key_revoke(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_key_pair signer;
    struct kedge_id tenant;
    struct kedge_public_key gone;
    char reason[KEDGE_ST_REASON_MAX + 1];
    enum kedge_key_role role;
    if (!take_role(c, &role) || !take_reason(c, "revoked by the tenant's admins", reason)
        || !take_tenant(c, &tenant)) {
        return 2;
    }
    const char *hex = kedge_cli_argument(c, 1);
    if (!hex || kedge_hex_decode(kedge_view_str(hex), gone.b, KEDGE_KEY_LEN) != KEDGE_OK) {
        return kedge_cli_usage(c, "KEY: expected 64 hex digits (see: kedge key list %s)", tenant.s);
    }
    struct kedge_statement *st = kedge_mem_new(1, sizeof *st);
    if (!st) {
        return no_memory(c);
    }
    memset(&signer, 0, sizeof signer);
    st->kind = KEDGE_ST_KEY_REVOKED;
    st->u.key_revoked = (struct kedge_st_key_revoked){.tenant = tenant, .role = role, .public_key = gone};
    memcpy(st->u.key_revoked.reason, reason, sizeof reason);
    int err = read_signer(c->admin_key, "--admin-key", &signer, &d);
    return finish(c, err, &d, st, &signer, NULL);
}

/* Signed with the recovery key alone: it is for the day on which no quorum of admin keys can be had. All
 * other admin keys end with it. */
int kedge_cmd_key_recover(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_key_pair recovery, new;
    struct kedge_id tenant;
    char reason[KEDGE_ST_REASON_MAX + 1];
    const char *path = kedge_cli_option(c, "new-key", NULL);
    const char *safe = kedge_cli_option(c, "recovery-key", NULL);
    if (!take_reason(c, "admin keys lost", reason) || !take_tenant(c, &tenant)) {
        return 2;
    }
    struct kedge_statement *st = kedge_mem_new(1, sizeof *st);
    if (!st) {
        return no_memory(c);
    }
    memset(&recovery, 0, sizeof recovery);
    memset(&new, 0, sizeof new);
    st->kind = KEDGE_ST_KEY_RECOVERED;
    int err = read_signer(safe, "--recovery-key", &recovery, &d);
    if (!err) {
        err = make_key(c, path, &new, &d);
    }
    st->u.key_recovered = (struct kedge_st_key_recovered){.tenant = tenant, .public_key = new.public};
    memcpy(st->u.key_recovered.reason, reason, sizeof reason);
    return finish(c, err, &d, st, &recovery, &new);
}

/* "from" and "until" are entries of the tenant's ledger and no times: what a signature was worth is decided
 * by where it stands. */
int kedge_cmd_key_list(struct kedge_cli *c)
{
    static const struct kedge_column columns[] = {
        {"key", -64}, {"role", -9}, {"state", -9}, {"from", 6}, {"until", 6}};
    struct kedge_diag d = {.text = ""};
    struct kedge_id tenant;
    json_t *o = NULL;
    if (!take_tenant(c, &tenant) || !kedge_cli_no_more(c, 1)) {
        return 2;
    }
    int err = kedge_cli_admin(c, json_pack("{s:s,s:s}", "verb", "key.list", "tenant", tenant.s), &o, &d);
    if (err) {
        return kedge_cli_fail(c, err, &d);
    }
    const json_t *list = json_object_get(o, "keys"), *row;
    size_t i;
    kedge_cli_head(c, columns, 5);
    json_array_foreach(list, i, row)
    {
        char from[CELL], until[CELL] = "";
        snprintf(from, sizeof from, "%lld", (long long)kedge_cli_int(row, "from"));
        if (json_object_get(row, "until")) {
            snprintf(until, sizeof until, "%lld", (long long)kedge_cli_int(row, "until"));
        }
        const char *cells[] = {kedge_cli_text(row, "key"), kedge_cli_text(row, "role"),
                               kedge_cli_text(row, "state"), from, until};
        kedge_cli_row(c, columns, 5, cells);
    }
    kedge_cli_say(c, "%lld of %lld admin keys change the keys of %s%s\n",
                  (long long)kedge_cli_int(o, "quorum"), (long long)kedge_cli_int(o, "admins"), tenant.s,
                  json_is_true(json_object_get(o, "recovery"))
                      ? "; a recovery key is registered."
                      : "; there is no recovery key (kedge key add --role recovery).");
    return kedge_cli_ok(c, o);
}
