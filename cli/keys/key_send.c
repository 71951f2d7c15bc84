/* kedge key sign, send; and what the other commands do with a statement once it is there. */
#include <stdio.h>
#include <string.h>

#include "chain/statement/keybook.h"
#include "cli/keys/key.h"
#include "cli/ledger/position.h"
#include "cli/local.h"
#include "common/base/mem.h"

/* The envelope of a file, without the line end that an editor may have added. */
static int read_envelope(const char *path, struct kedge_buf *ret, struct kedge_diag *d)
{
    int err = kedge_cli_read_file(path, KEDGE_ENTRY_MAX + 2, ret, d);
    while (!err && ret->len > 0 && (ret->ptr[ret->len - 1] == '\n' || ret->ptr[ret->len - 1] == '\r')) {
        ret->len--;
    }
    return err;
}

/* Errors of what is in a file name the file. */
static int in_file(int err, const char *path, struct kedge_diag *d)
{
    return err && err != KEDGE_E_NOMEM ? kedge_diag_wrap(d, err, "%s", path) : err;
}

static const char *role_name(enum kedge_key_role role)
{
    return role == KEDGE_ROLE_ADMIN ? "admin" : role == KEDGE_ROLE_RECOVERY ? "recovery" : "site";
}

/* What a signature under it would help to do, in words. */
static void say_change(const struct kedge_cli *c, const struct kedge_statement *st)
{
    const struct kedge_st_key_rotated *r = &st->u.key_rotated;
    char key[2 * KEDGE_KEY_LEN + 1], old[2 * KEDGE_KEY_LEN + 1];
    switch ((int)st->kind) {
    case KEDGE_ST_KEY_ADDED:
        kedge_hex_encode(st->u.key_added.public_key.b, KEDGE_KEY_LEN, key);
        kedge_cli_say(c, "Tenant %s gets one more %s key:\n  %s\n", st->u.key_added.tenant.s,
                      role_name(st->u.key_added.role), key);
        break;
    case KEDGE_ST_KEY_ROTATED:
        kedge_hex_encode(r->new_key.b, KEDGE_KEY_LEN, key);
        kedge_hex_encode(r->old_key.b, KEDGE_KEY_LEN, old);
        kedge_cli_say(c, "Tenant %s gets another %s key in the place of one:\n  %s\n  was %s\n", r->tenant.s,
                      role_name(r->role), key, old);
        break;
    case KEDGE_ST_KEY_REVOKED:
        kedge_hex_encode(st->u.key_revoked.public_key.b, KEDGE_KEY_LEN, key);
        kedge_cli_say(c, "Tenant %s revokes the %s key (%s):\n  %s\n", st->u.key_revoked.tenant.s,
                      role_name(st->u.key_revoked.role), st->u.key_revoked.reason, key);
        break;
    case KEDGE_ST_KEY_RECOVERED:
        kedge_hex_encode(st->u.key_recovered.public_key.b, KEDGE_KEY_LEN, key);
        kedge_cli_say(c, "Tenant %s revokes all its admin keys (%s); this one comes:\n  %s\n",
                      st->u.key_recovered.tenant.s, st->u.key_recovered.reason, key);
        break;
    default:
        break;
    }
}

static const struct kedge_id *tenant_of(const struct kedge_statement *st)
{
    return &st->u.key_added.tenant; /* first in all four */
}

/* The coordinator has a verb for each kind. NULL: the statement is about something else than keys. */
static const char *verb_of(enum kedge_statement_kind kind)
{
    switch ((int)kind) {
    case KEDGE_ST_KEY_ADDED:
        return "key.add";
    case KEDGE_ST_KEY_ROTATED:
        return "key.rotate";
    case KEDGE_ST_KEY_REVOKED:
        return "key.revoke";
    case KEDGE_ST_KEY_RECOVERED:
        return "key.recover";
    default:
        return NULL;
    }
}

/* A statement about keys, with any signatures. */
static int read_change(struct kedge_view envelope, struct kedge_statement *st, uint32_t *ret_signatures,
                       struct kedge_diag *d)
{
    struct kedge_signed_statement entry;
    int err = kedge_statement_read(envelope, st, &entry, d);
    kedge_buf_deinit(&entry.payload);
    if (!err && !verb_of(st->kind)) {
        err = kedge_diag_set(d, KEDGE_E_USAGE, "a %s statement, expected one about keys",
                             kedge_statement_kind_name(st->kind));
    }
    *ret_signatures = err ? 0 : entry.signature_count;
    return err;
}

/* Sends an envelope about keys; the verb follows from its kind. */
static int cli_key_send(struct kedge_cli *c, struct kedge_view envelope)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_statement *st = kedge_mem_new(1, sizeof *st);
    json_t *o = NULL;
    uint32_t signatures = 0;
    int err = st ? read_change(envelope, st, &signatures, &d) : KEDGE_E_NOMEM;
    if (!err) {
        err =
            kedge_cli_admin(c,
                            json_pack("{s:s,s:s,s:s%}", "verb", verb_of(st->kind), "tenant", tenant_of(st)->s,
                                      "envelope", (const char *)envelope.ptr, envelope.len),
                            &o, &d);
    }
    if (err) {
        if (err == KEDGE_E_DENIED && c->told) {
            (void)kedge_diag_hint(
                &d, "kedge key list TENANT shows the keys in force; more signatures: --also-key, "
                    "or --out FILE and kedge key sign");
        }
        kedge_mem_free(st);
        return kedge_cli_fail(c, err, &d);
    }
    kedge_cli_say(c, "%s: entry %lld of the ledger of %s; in force for what stands after it.\n",
                  kedge_statement_kind_name(st->kind), (long long)kedge_cli_int(o, "leaf_index"),
                  tenant_of(st)->s);
    json_object_set_new(o, "statement", json_string(kedge_statement_kind_name(st->kind)));
    kedge_mem_free(st);
    return kedge_cli_ok(c, o);
}

/* Signatures are added to the envelope, which grows; none is ever replaced, so several admins can sign one
 * file one after the other, on machines that never meet. */
static int add_signature(struct kedge_buf *envelope, const struct kedge_key_pair *pair, struct kedge_diag *d)
{
    struct kedge_buf more;
    kedge_buf_init(&more, KEDGE_ENTRY_MAX);
    int err = kedge_statement_cosign(kedge_buf_view(envelope), pair, &more, d);
    if (err) {
        kedge_buf_deinit(&more);
        return err == KEDGE_E_EXISTS ? kedge_diag_hint(
                   d, "another holder's key is wanted; when all have signed: kedge key send FILE")
                                     : err;
    }
    kedge_buf_deinit(envelope);
    *envelope = more;
    return KEDGE_OK;
}

/* --also-key is taken as often as it stands on the command line: on one machine all admins of a small tenant
 * can sign at once. */
static int add_others(struct kedge_cli *c, struct kedge_buf *envelope, struct kedge_diag *d)
{
    int err = KEDGE_OK;
    for (int i = 0; i < KEDGE_DSSE_SIGNATURES_MAX && !err; i++) {
        struct kedge_key_pair pair;
        const char *path = kedge_cli_option(c, "also-key", NULL);
        if (!path) {
            break;
        }
        err = kedge_cli_key(path, false, &pair, d);
        if (!err) {
            err = add_signature(envelope, &pair, d);
            kedge_key_wipe(&pair);
        }
    }
    return err;
}

/* The file is made to be handed on: a statement with signatures is no secret. */
static int put_out(struct kedge_cli *c, const char *path, const struct kedge_buf *envelope)
{
    struct kedge_diag d = {.text = ""};
    int err = kedge_file_write(path, kedge_buf_view(envelope), 0644, &d);
    if (err) {
        return kedge_cli_fail(c, err, &d);
    }
    kedge_cli_say(c, "Wrote %s. Next: kedge key sign %s --admin-key FILE, then kedge key send %s\n", path,
                  path, path);
    return kedge_cli_ok(c, json_pack("{s:s}", "file", path));
}

/* The end of all commands that change keys: position, signature, further signatures, and then either a file
 * for other admins or the request. Which arguments are left is the caller's affair, so only unknown options
 * are refused here. */
int kedge_cli_key_change(struct kedge_cli *c, struct kedge_statement *st, const struct kedge_key_pair *pair,
                         const struct kedge_key_pair *second)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_buf envelope KEDGE_CLEANUP(kedge_buf_deinit);
    const char *out = kedge_cli_option(c, "out", NULL);
    kedge_buf_init(&envelope, KEDGE_ENTRY_MAX);
    KEDGE_CLI_TRY(c, kedge_cli_position(c, st, &d), &d);
    KEDGE_CLI_TRY(c, kedge_statement_sign(st, pair, &envelope, &d), &d);
    KEDGE_CLI_TRY(c, second ? add_signature(&envelope, second, &d) : KEDGE_OK, &d);
    KEDGE_CLI_TRY(c, add_others(c, &envelope, &d), &d);
    if (!kedge_cli_no_more(c, c->argc)) {
        return 2;
    }
    return out ? put_out(c, out, &envelope) : cli_key_send(c, kedge_buf_view(&envelope));
}

/* The file is read and shown before the key is: an admin sees what is to be signed before a passphrase is
 * asked for. */
int kedge_cmd_key_sign(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_statement *st KEDGE_CLEANUP(kedge_mem_release) = kedge_mem_new(1, sizeof *st);
    struct kedge_key_pair pair;
    struct kedge_buf envelope KEDGE_CLEANUP(kedge_buf_deinit);
    uint32_t signatures = 0;
    const char *path = kedge_cli_argument(c, 0);
    kedge_buf_init(&envelope, KEDGE_ENTRY_MAX);
    if (!path || !kedge_cli_no_more(c, 1)) {
        return path ? 2 : kedge_cli_usage(c, "FILE: expected a statement that kedge key … --out made");
    }
    KEDGE_CLI_TRY(c, st ? read_envelope(path, &envelope, &d) : KEDGE_E_NOMEM, &d);
    KEDGE_CLI_TRY(c, in_file(read_change(kedge_buf_view(&envelope), st, &signatures, &d), path, &d), &d);
    KEDGE_CLI_TRY(c, kedge_cli_key(c->admin_key, false, &pair, &d), &d);
    say_change(c, st); /* nobody signs what they have not seen */
    int err = add_signature(&envelope, &pair, &d);
    kedge_key_wipe(&pair);
    KEDGE_CLI_TRY(c, err, &d);
    KEDGE_CLI_TRY(c, kedge_file_write(path, kedge_buf_view(&envelope), 0644, &d), &d);
    const char *kind = kedge_statement_kind_name(st->kind);
    kedge_cli_say(c, "Signed %s: a %s of tenant %s with %u signatures. Next: kedge key send %s\n", path, kind,
                  tenant_of(st)->s, signatures + 1, path);
    return kedge_cli_ok(c, json_pack("{s:s,s:s,s:s,s:i}", "file", path, "statement", kind, "tenant",
                                     tenant_of(st)->s, "signatures", (int)signatures + 1));
}

/* Anybody may send a file that is signed: what counts are its signatures, and the connection is only the way.
 */
int kedge_cmd_key_send(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_buf envelope KEDGE_CLEANUP(kedge_buf_deinit);
    uint32_t signatures;
    const char *path = kedge_cli_argument(c, 0);
    kedge_buf_init(&envelope, KEDGE_ENTRY_MAX);
    if (!path || !kedge_cli_no_more(c, 1)) {
        return path ? 2 : kedge_cli_usage(c, "FILE: expected a statement that kedge key … --out made");
    }
    struct kedge_statement *st KEDGE_CLEANUP(kedge_mem_release) = kedge_mem_new(1, sizeof *st);
    KEDGE_CLI_TRY(c, st ? read_envelope(path, &envelope, &d) : KEDGE_E_NOMEM, &d);
    KEDGE_CLI_TRY(c, in_file(read_change(kedge_buf_view(&envelope), st, &signatures, &d), path, &d), &d);
    return cli_key_send(c, kedge_buf_view(&envelope));
}
