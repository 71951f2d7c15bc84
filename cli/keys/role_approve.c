/* kedge role review, approve, submit; kedge role quorum; kedge key rotate-statement: statements that concern
 * the whole federation, and the organisations that approve them. */
#include <stdio.h>
#include <string.h>

#include "chain/statement/mainbook.h"
#include "cli/cli.h"
#include "cli/keys/role.h"
#include "cli/local.h"
#include "common/base/mem.h"
#include "common/base/text.h"
#include "common/base/try.h"

/* ---- asking for one, or proposing it ---- */

/* A proposal is a file and nothing in the coordinator: until enough organisations have signed it, nothing has
 * changed and nothing has to be taken back. */
static int put_proposal(struct kedge_cli *c, const char *path, json_t *o)
{
    struct kedge_diag d = {.text = ""};
    int err = kedge_file_write(path, kedge_view_str(kedge_cli_text(o, "envelope")), 0644, &d);
    if (err) {
        json_decref(o);
        return kedge_cli_fail(c, err, &d);
    }
    kedge_cli_say(
        c,
        "Wrote %s; nothing has changed yet. %lld organisations have to approve it: one admin of each runs\n"
        "  kedge role approve %s --admin-key FILE\nand then you run\n  kedge role submit %s\n",
        path, (long long)kedge_cli_int(o, "quorum"), path, path);
    json_object_del(o, "envelope");
    json_object_set_new(o, "file", json_string(path));
    return kedge_cli_ok(c, o);
}

/* With --propose the coordinator makes the statement and does not append it. KEDGE_E_CANCELLED: the command
 * ends here, with *ret_code. */
int kedge_cli_role_ask(struct kedge_cli *c, json_t *request, const char *propose, json_t **ret, int *ret_code)
{
    struct kedge_diag d = {.text = ""};
    json_t *o = NULL;
    if (propose) {
        json_object_set_new(request, "propose", json_true());
    }
    int err = kedge_cli_admin(c, request, &o, &d);
    if (!err && propose && !kedge_cli_text(o, "envelope")[0]) {
        json_decref(o);
        err = kedge_diag_set(&d, KEDGE_E_FORMAT, "the coordinator gave no proposal");
    }
    if (err) {
        *ret_code = kedge_cli_fail(c, err, &d);
    } else if (propose) {
        *ret_code = put_proposal(c, propose, o);
    } else {
        *ret = o;
        return KEDGE_OK;
    }
    return err ? err : KEDGE_E_CANCELLED;
}

int kedge_cmd_role_quorum(struct kedge_cli *c)
{
    json_t *o = NULL;
    uint64_t n;
    int code = 0;
    const char *propose = kedge_cli_option(c, "propose", NULL), *text = kedge_cli_argument(c, 0);
    if (!text || kedge_decimal_decode(kedge_view_str(text), KEDGE_ST_QUORUM_MAX, &n) != KEDGE_OK) {
        return kedge_cli_usage(c, "N: expected how many organisations approve, 0 to %d", KEDGE_ST_QUORUM_MAX);
    }
    if (!kedge_cli_no_more(c, 1)) {
        return 2;
    }
    if (kedge_cli_role_ask(c, json_pack("{s:s,s:I}", "verb", "role.quorum", "quorum", (json_int_t)n), propose,
                           &o, &code)) {
        return code;
    }
    kedge_cli_say(
        c, "From entry %lld of the main chain on %llu organisations have to approve such statements.\n",
        (long long)kedge_cli_int(o, "leaf_index"), (unsigned long long)n);
    return kedge_cli_ok(c, o);
}

int kedge_cmd_key_rotate_statement(struct kedge_cli *c)
{
    json_t *o = NULL;
    int code = 0;
    const char *propose = kedge_cli_option(c, "propose", NULL), *reason = kedge_cli_option(c, "reason", "");
    if (!kedge_cli_no_more(c, 0)) {
        return 2;
    }
    if (kedge_cli_role_ask(c, json_pack("{s:s,s:s}", "verb", "role.rotate", "reason", reason), propose, &o,
                           &code)) {
        return code;
    }
    kedge_cli_say(
        c,
        "The coordinator signs with another statement key, entry %lld of the main chain. Trust files stay as "
        "they are.\nBack up keys/statement.pem of the state folder.\n",
        (long long)kedge_cli_int(o, "leaf_index"));
    return kedge_cli_ok(c, o);
}

/* ---- a proposal's file ---- */

/* A proposal on its way: the very bytes that were signed, what they say, and how many have signed. The bytes
 * are sent on as they are; what was decoded is only for people. */
struct proposal {
    struct kedge_buf envelope;
    struct kedge_statement *st;
    uint32_t signatures;
};

static void free_proposal(struct proposal *p)
{
    kedge_buf_deinit(&p->envelope);
    kedge_mem_free(p->st);
}

/* Only the four kinds that organisations can approve are taken. The policy, entry 0 of the main chain, is of
 * the same family and is never proposed. */
static int read_proposal(const char *path, struct proposal *p, struct kedge_diag *d)
{
    struct kedge_signed_statement entry;
    kedge_buf_init(&p->envelope, KEDGE_ENTRY_MAX + 2);
    p->signatures = 0;
    p->st = kedge_mem_new(1, sizeof *p->st);
    int err = p->st ? kedge_cli_read_file(path, KEDGE_ENTRY_MAX + 2, &p->envelope, d) : KEDGE_E_NOMEM;
    while (
        !err && p->envelope.len > 0
        && (p->envelope.ptr[p->envelope.len - 1] == '\n' || p->envelope.ptr[p->envelope.len - 1] == '\r')) {
        p->envelope.len--; /* an editor's */
    }
    if (err) {
        return err;
    }
    err = kedge_statement_read(kedge_buf_view(&p->envelope), p->st, &entry, d);
    kedge_buf_deinit(&entry.payload);
    if (!err && (p->st->kind == KEDGE_ST_POLICY || !kedge_mainbook_concerns(p->st->kind))) {
        err = kedge_diag_set(d, KEDGE_E_USAGE, "a %s statement, expected a proposal that --propose made",
                             kedge_statement_kind_name(p->st->kind));
    }
    p->signatures = err ? 0 : entry.signature_count;
    return err && err != KEDGE_E_NOMEM ? kedge_diag_wrap(d, err, "%s", path) : err;
}

/* What it does, in words, for the person who is about to sign it. */
static void say_proposal(const struct kedge_cli *c, const struct kedge_statement *st)
{
    const struct kedge_st_main_bound *of = &st->u.role_granted.of; /* all four begin with it */
    const struct kedge_st_statement_key_rotated *r = &st->u.statement_key_rotated;
    char key[2 * KEDGE_KEY_LEN + 1], old[2 * KEDGE_KEY_LEN + 1];
    kedge_hex_encode(of->main_log_key.b, KEDGE_KEY_LEN, key);
    kedge_cli_say(c, "In the federation %s (main log key %s),\nbefore entry %llu of its main chain:\n",
                  of->deployment, key, (unsigned long long)of->before);
    switch ((int)st->kind) {
    case KEDGE_ST_ROLE_GRANTED:
        kedge_hex_encode(st->u.role_granted.public_key.b, KEDGE_KEY_LEN, key);
        kedge_cli_say(c, "%s becomes an %s, who %s from elsewhere, with the key\n  %s\n",
                      st->u.role_granted.name.s,
                      st->u.role_granted.role == KEDGE_CHAIN_AUDITOR ? "auditor" : "operator",
                      st->u.role_granted.role == KEDGE_CHAIN_AUDITOR ? "reads" : "runs jobs", key);
        break;
    case KEDGE_ST_ROLE_REVOKED:
        kedge_hex_encode(st->u.role_revoked.public_key.b, KEDGE_KEY_LEN, key);
        kedge_cli_say(c, "an %s loses its role (%s); its key is\n  %s\n",
                      st->u.role_revoked.role == KEDGE_CHAIN_AUDITOR ? "auditor" : "operator",
                      st->u.role_revoked.reason, key);
        break;
    case KEDGE_ST_STATEMENT_KEY_ROTATED:
        kedge_hex_encode(r->new_key.b, KEDGE_KEY_LEN, key);
        kedge_hex_encode(r->old_key.b, KEDGE_KEY_LEN, old);
        kedge_cli_say(c, "the coordinator signs with another key%s%s%s:\n  %s\n  was %s\n",
                      r->reason[0] ? " (" : "", r->reason, r->reason[0] ? ")" : "", key, old);
        break;
    default:
        kedge_cli_say(
            c, "change %llu of the policy: %u organisations have to approve statements such as this one%s\n",
            (unsigned long long)st->u.policy_changed.number, st->u.policy_changed.admin_quorum,
            st->u.policy_changed.admin_quorum ? "" : ": the coordinator alone decides");
        break;
    }
}

static json_t *tell(const char *path, const struct proposal *p)
{
    return json_pack("{s:s,s:s,s:s,s:I,s:i}", "file", path, "statement",
                     kedge_statement_kind_name(p->st->kind), "deployment",
                     p->st->u.role_granted.of.deployment, "before",
                     (json_int_t)p->st->u.role_granted.of.before, "signatures", (int)p->signatures);
}

static const char *take_file(struct kedge_cli *c)
{
    const char *path = kedge_cli_argument(c, 0);
    if (!path) {
        (void)kedge_cli_usage(c, "FILE: expected a proposal that --propose made");
        return NULL;
    }
    return kedge_cli_no_more(c, 1) ? path : NULL;
}

int kedge_cmd_role_review(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    struct proposal p;
    const char *path = take_file(c);
    if (!path) {
        return 2;
    }
    int err = read_proposal(path, &p, &d);
    int code = 0;
    if (err) {
        code = kedge_cli_fail(c, err, &d);
    } else {
        say_proposal(c, p.st);
        kedge_cli_say(c, "%u signatures so far, the coordinator's among them.\n", p.signatures);
        code = kedge_cli_ok(c, tell(path, &p));
    }
    free_proposal(&p);
    return code;
}

/* The file is replaced by the one with one more signature. Whether the key is that of an organisation which
 * counts is the coordinator's to judge (coordinator/daemon/admin/authority_approvals.c): this machine does
 * not know who is in. */
static int add_approval(struct kedge_cli *c, const char *path, struct proposal *p, struct kedge_diag *d)
{
    struct kedge_key_pair admin;
    struct kedge_buf more KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&more, KEDGE_ENTRY_MAX);
    KEDGE_TRY(kedge_cli_key(c->admin_key, false, &admin, d));
    int err = kedge_statement_cosign(kedge_buf_view(&p->envelope), &admin, &more, d);
    kedge_key_wipe(&admin);
    KEDGE_TRY(err);
    KEDGE_TRY(kedge_file_write(path, kedge_buf_view(&more), 0644, d));
    p->signatures++;
    return KEDGE_OK;
}

int kedge_cmd_role_approve(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    struct proposal p;
    const char *path = take_file(c);
    if (!path) {
        return 2;
    }
    int err = read_proposal(path, &p, &d);
    if (!err) {
        say_proposal(c, p.st); /* before the key is asked for its passphrase */
        err = add_approval(c, path, &p, &d);
    }
    int code = 0;
    if (err) {
        code = kedge_cli_fail(c, err, &d);
    } else {
        kedge_cli_say(
            c, "Approved: %s has your signature. Next: kedge role submit %s, where the coordinator runs\n",
            path, path);
        code = kedge_cli_ok(c, tell(path, &p));
    }
    free_proposal(&p);
    return code;
}

/* The coordinator counts the approvals and appends the statement (role.submit). "Before", which the proposal
 * names, makes an old one worthless: it holds only while the main chain is shorter. */
int kedge_cmd_role_submit(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    struct proposal p;
    json_t *o = NULL;
    const char *path = take_file(c);
    if (!path) {
        return 2;
    }
    int err = read_proposal(path, &p, &d);
    if (!err) {
        err = kedge_cli_admin(c,
                              json_pack("{s:s,s:s%}", "verb", "role.submit", "envelope",
                                        (const char *)p.envelope.ptr, (size_t)p.envelope.len),
                              &o, &d);
    }
    int code = 0;
    if (err) {
        code = kedge_cli_fail(c, err, &d);
    } else {
        say_proposal(c, p.st);
        kedge_cli_say(c, "It is in force: entry %lld of the main chain.\n",
                      (long long)kedge_cli_int(o, "leaf_index"));
        code = kedge_cli_ok(c, o);
    }
    free_proposal(&p);
    return code;
}
