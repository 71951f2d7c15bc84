/* Receipts of what operators and admins have appended: proven, checked, kept.
 *
 * "It is in the ledger" is a claim of the coordinator, and this command exists because coordinators may lie.
 * So before anything is sent it is decided which key the log has, from a file that the caller had before
 * (pin), and after the answer the coordinator must show the entry with its inclusion proof under that key.
 * What the entry says is compared with what was asked for: with a statement that the admin signed byte for
 * byte, with one that the coordinator makes (roles) member by member. The receipt is then kept, since a proof
 * that is thrown away convicts nobody. */
#include "cli/receipt.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "chain/audit/audit.h"
#include "chain/log/proof.h"
#include "chain/state/state.h"
#include "chain/statement/mainbook.h"
#include "chain/statement/statement_position.h"
#include "chain/store/ledger.h"
#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "common/base/try.h"
#include "crypto/keyfile.h"

enum { POLL_MS = 100, CLOSED_WAIT_MS = 5000 };

/* ---- the log's key, as it was known before ---- */

/* A log's name is the deployment and the tenant, so a key that is right for one tenant opens no checkpoint of
 * another. */
static int pin(struct kedge_cli_append *a, const char *deployment, const struct kedge_public_key *key)
{
    char origin[KEDGE_ORIGIN_MAX + 1];
    snprintf(origin, sizeof origin, "%s/%s", deployment, a->is_main ? "main" : a->tenant.s);
    int err = kedge_vkey_make(kedge_view_str(origin), KEDGE_KEY_ED25519, key, &a->log);
    a->is_pinned = err == KEDGE_OK;
    return err;
}

/* A tenant that is being added cannot be in the trust file yet; its key comes with the answer (pin_new). */
static int pin_by_trust(const char *path, bool is_new, struct kedge_cli_append *a, struct kedge_diag *d)
{
    struct kedge_trust trust;
    int err = kedge_trust_read(path, &trust, d);
    if (err) {
        return kedge_diag_wrap(d, err, "--trust");
    }
    const struct kedge_trust_tenant *t = a->is_main ? NULL : kedge_trust_find(&trust, &a->tenant);
    snprintf(a->deployment, sizeof a->deployment, "%s", trust.deployment);
    if (a->is_main || t) {
        a->log = a->is_main ? trust.main_log : t->log;
        a->is_pinned = true;
    } else if (!is_new) {
        err = kedge_diag_set(d, KEDGE_E_USAGE,
                             "--trust %s: it does not name tenant %s, so that no receipt "
                             "of its ledger can be checked; nothing was sent",
                             kedge_cli_word(path).s, a->tenant.s);
        (void)kedge_diag_hint(d,
                              "take a newer one, made after the tenant came: kedge audit trust --out FILE");
    }
    kedge_trust_deinit(&trust);
    return err;
}

/* A sealed file has the public key in the clear, so nobody is asked for its passphrase. */
static int read_log_key(const char *state, const char *path, char deployment[KEDGE_DEPLOYMENT_MAX + 1],
                        struct kedge_public_key *ret, struct kedge_diag *d)
{
    struct kedge_key_pair pair;
    bool sealed = false;
    KEDGE_TRY(kedge_state_deployment(state, deployment, d));
    KEDGE_TRY(kedge_keyfile_is_sealed(path, &sealed, ret, d));
    if (sealed) {
        return KEDGE_OK;
    }
    KEDGE_TRY(kedge_keyfile_read_private(path, &pair, d));
    *ret = pair.public;
    kedge_key_wipe(&pair);
    return KEDGE_OK;
}

/* On the coordinator's machine the state folder says whose key it is. */
static int pin_by_state(const char *state, bool is_new, struct kedge_cli_append *a, struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX], deployment[KEDGE_DEPLOYMENT_MAX + 1];
    struct kedge_public_key key;
    int err = kedge_state_path(path, d, state, "keys/log-%s.pem", a->is_main ? "main" : a->tenant.s);
    if (!err && is_new && !kedge_file_exists(path)) {
        return KEDGE_OK; /* it comes with the tenant */
    }
    if (!err) {
        err = read_log_key(state, path, deployment, &key, d);
    }
    if (err) {
        (void)kedge_diag_wrap(d, KEDGE_E_USAGE, "no key for checking the receipt");
        (void)kedge_diag_hint(d,
                              "nothing was sent; name the keys: --trust FILE (kedge audit trust makes it)");
        return KEDGE_E_USAGE;
    }
    snprintf(a->deployment, sizeof a->deployment, "%.*s", KEDGE_ST_NAME_MAX, deployment);
    return pin(a, deployment, &key);
}

/* On the coordinator's own machine its state folder says the key: who owns that folder owns the log, and
 * there is nobody to distrust. From elsewhere a trust file is demanded before anything is sent, because
 * afterwards would be too late to refuse. */
static int find_pin(struct kedge_cli *c, bool is_new, struct kedge_cli_append *a, struct kedge_diag *d)
{
    if (c->trust) {
        return pin_by_trust(c->trust, is_new, a, d);
    }
    if (!c->connect) {
        return pin_by_state(c->state, is_new, a, d);
    }
    (void)kedge_diag_set(d, KEDGE_E_USAGE,
                         "--connect needs --trust FILE here: the logs' keys, against which what the "
                         "coordinator proves is checked; nothing was sent");
    (void)kedge_diag_hint(d, "kedge audit trust --out FILE makes it; compare it with what others have");
    return KEDGE_E_USAGE;
}

/* ---- what is about to be appended ---- */

/* With "propose" nothing is appended: the coordinator answers with a statement to be approved. */
static bool is_by_coordinator(const json_t *request, const char *verb)
{
    static const char *const verbs[] = {"role.grant", "role.revoke", "role.quorum", "role.rotate"};
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        if (strcmp(verb, verbs[i]) == 0) {
            return !json_is_true(json_object_get(request, "propose"));
        }
    }
    return false;
}

static int read_statement(const char *text, struct kedge_statement **ret, struct kedge_diag *d)
{
    struct kedge_signed_statement entry;
    struct kedge_statement *st = kedge_mem_new(1, sizeof *st);
    if (!st) {
        return KEDGE_E_NOMEM;
    }
    int err = kedge_statement_read(kedge_view_str(text), st, &entry, d);
    kedge_buf_deinit(&entry.payload);
    if (err) {
        kedge_mem_free(st);
        return err;
    }
    *ret = st;
    return KEDGE_OK;
}

void kedge_cli_append_free(struct kedge_cli_append *a)
{
    if (a) {
        kedge_mem_free(a->sent);
        json_decref(a->request);
        kedge_mem_free(a);
    }
}

/* Requests that append nothing pass. Which do is seen by the signed envelope in them, or by the verbs with
 * which the coordinator signs itself. */
int kedge_cli_append_begin(struct kedge_cli *c, const json_t *request, struct kedge_cli_append **ret,
                           struct kedge_diag *d)
{
    const char *envelope = json_string_value(json_object_get(request, "envelope"));
    const char *verb = kedge_cli_text(request, "verb");
    *ret = NULL;
    if (!envelope && !is_by_coordinator(request, verb)) {
        return KEDGE_OK;
    }
    struct kedge_cli_append *a = kedge_mem_new(1, sizeof *a);
    if (!a) {
        return KEDGE_E_NOMEM;
    }
    a->request = json_deep_copy(request);
    int err = a->request ? KEDGE_OK : KEDGE_E_NOMEM;
    if (!err && envelope) {
        err = read_statement(envelope, &a->sent, d);
    }
    if (!err) {
        a->is_main = !a->sent || kedge_mainbook_concerns(a->sent->kind);
        a->tenant = a->is_main ? (struct kedge_id){.s = ""} : *kedge_statement_tenant(a->sent);
        err = find_pin(c, strcmp(verb, "tenant.add") == 0, a, d);
    }
    if (err) {
        kedge_cli_append_free(a);
        return err;
    }
    *ret = a;
    return KEDGE_OK;
}

/* ---- the receipt ---- */

struct receipt {
    const char *entry, *text;
    struct kedge_proof proof;
    struct kedge_checkpoint checkpoint;
    struct kedge_hash leaf;
    struct kedge_statement *st; /* owned */
};

/* Entry, proof, checkpoint and key belong together. */
static int open_receipt(const struct kedge_cli_append *a, const json_t *shown, struct receipt *r,
                        struct kedge_diag *d)
{
    r->entry = kedge_cli_text(shown, "entry");
    r->text = kedge_cli_text(shown, "receipt");
    if (!r->entry[0] || !r->text[0]) {
        return kedge_diag_set(d, KEDGE_E_VERIFY, "it shows no entry with a proof");
    }
    if (kedge_proof_decode(kedge_view_str(r->text), &r->proof) != KEDGE_OK) {
        return kedge_diag_set(d, KEDGE_E_VERIFY, "what it shows as a receipt is none");
    }
    kedge_merkle_leaf(kedge_view_str(r->entry), &r->leaf);
    int err =
        kedge_proof_verify(&r->proof, &r->leaf, kedge_view_str(a->log.name), &a->log, 1, &r->checkpoint);
    if (err) {
        return err == KEDGE_E_NOMEM
                   ? err
                   : kedge_diag_set(d, KEDGE_E_VERIFY,
                                    "entry, proof and checkpoint do not belong together under the key of %s "
                                    "that was known before",
                                    a->log.name);
    }
    return read_statement(r->entry, &r->st, d);
}

/* Compared as text: the request holds what the operator typed. */
static bool is_key(const json_t *request, const struct kedge_public_key *key)
{
    char hex[2 * KEDGE_KEY_LEN + 1];
    kedge_hex_encode(key->b, KEDGE_KEY_LEN, hex);
    return strcmp(kedge_cli_text(request, "key"), hex) == 0;
}

/* What the coordinator made of the request. */
static bool is_as_asked(const struct kedge_cli_append *a, const struct kedge_statement *st)
{
    const char *verb = kedge_cli_text(a->request, "verb");
    if (!kedge_mainbook_concerns(st->kind) || st->kind == KEDGE_ST_POLICY
        || !kedge_public_key_eq(&st->u.role_granted.of.main_log_key,
                                &a->log.key)) { /* all four begin with it */
        return false;
    }
    switch ((int)st->kind) {
    case KEDGE_ST_ROLE_GRANTED: {
        bool auditor = st->u.role_granted.role == KEDGE_CHAIN_AUDITOR;
        return strcmp(verb, "role.grant") == 0 && is_key(a->request, &st->u.role_granted.public_key)
               && strcmp(kedge_cli_text(a->request, "role"), auditor ? "auditor" : "operator") == 0
               && strcmp(kedge_cli_text(a->request, "name"), st->u.role_granted.name.s) == 0;
    }
    case KEDGE_ST_ROLE_REVOKED:
        return strcmp(verb, "role.revoke") == 0 && is_key(a->request, &st->u.role_revoked.public_key);
    case KEDGE_ST_POLICY_CHANGED:
        return strcmp(verb, "role.quorum") == 0
               && kedge_cli_int(a->request, "quorum") == st->u.policy_changed.admin_quorum;
    default:
        return strcmp(verb, "role.rotate") == 0
               && strcmp(kedge_cli_text(a->request, "reason"), st->u.statement_key_rotated.reason) == 0;
    }
}

/* A coordinator could show a true entry of another request. What was signed here must be there member by
 * member; what it signed itself must be what was asked for. */
static int check_said(const struct kedge_cli_append *a, const struct receipt *r, struct kedge_diag *d)
{
    bool same = a->sent ? kedge_statement_says_same(a->sent, r->st) : is_as_asked(a, r->st);
    return same ? KEDGE_OK
                : kedge_diag_set(d, KEDGE_E_VERIFY,
                                 "entry %" PRIu64 " of %s, which it names, says something else",
                                 r->proof.index, a->log.name);
}

/* ---- keeping it ---- */

/* Beside the key that signed or spoke; else in the state folder. */
static int find_folder(const struct kedge_cli *c, char out[KEDGE_PATH_MAX])
{
    const char *key = c->admin_key ? c->admin_key : c->connect ? c->key : NULL;
    if (c->receipts) {
        return (size_t)snprintf(out, KEDGE_PATH_MAX, "%s", c->receipts) < KEDGE_PATH_MAX ? KEDGE_OK
                                                                                         : KEDGE_E_TOO_LONG;
    }
    const char *slash = key ? strrchr(key, '/') : NULL;
    int n = !key    ? snprintf(out, KEDGE_PATH_MAX, "%s/receipts", c->state)
            : slash ? snprintf(out, KEDGE_PATH_MAX, "%.*s/receipts", (int)(slash - key), key)
                    : snprintf(out, KEDGE_PATH_MAX, "receipts");
    return n < KEDGE_PATH_MAX ? KEDGE_OK : KEDGE_E_TOO_LONG;
}

/* The name has the leaf's hash: what was kept before is of the same entry, and stays. */
static int write_files(struct kedge_cli *c, const struct kedge_cli_append *a, const struct receipt *r,
                       char ret_receipt[KEDGE_PATH_MAX], struct kedge_diag *d)
{
    char folder[KEDGE_PATH_MAX], name[KEDGE_ID_MAX + KEDGE_HASH_HEX_LEN + 64], hex[KEDGE_HASH_HEX_LEN + 1];
    char entry[KEDGE_PATH_MAX];
    const char *log = a->is_main ? "main" : a->tenant.s;
    kedge_hash_hex(&r->leaf, hex);
    KEDGE_TRY(find_folder(c, folder));
    KEDGE_TRY(kedge_dir_make(folder, 0700, d));
    snprintf(name, sizeof name, "%s-%" PRIu64 "-%.16s.json", log, r->proof.index, hex);
    KEDGE_TRY(kedge_path_join(entry, folder, name));
    snprintf(name, sizeof name, "%s-%" PRIu64 "-%.16s.tlog-proof", log, r->proof.index, hex);
    KEDGE_TRY(kedge_path_join(ret_receipt, folder, name));
    if (!kedge_file_exists(entry)) {
        KEDGE_TRY(kedge_file_write(entry, kedge_view_str(r->entry), 0600, d));
    }
    return kedge_file_exists(ret_receipt) ? KEDGE_OK
                                          : kedge_file_write(ret_receipt, kedge_view_str(r->text), 0600, d);
}

/* From here on an error is about keeping, not about the entry: it is appended and proven, and the words say
 * so. The answer gets the file's name, which scripts hand on to auditors. */
static int keep(struct kedge_cli *c, const struct kedge_cli_append *a, const struct receipt *r,
                json_t *answer, struct kedge_diag *d)
{
    char receipt[KEDGE_PATH_MAX];
    int err = write_files(c, a, r, receipt, d);
    if (err) {
        (void)kedge_diag_wrap(d, err, "it is appended and proven, but the receipt is not kept");
        return kedge_diag_hint(d, "--receipts DIR names another folder; say the same again");
    }
    json_object_set_new(answer, "receipt", json_string(receipt));
    json_object_set_new(answer, "checkpoint_size", json_integer((json_int_t)r->checkpoint.size));
    if (!c->receipts_untold) {
        kedge_cli_say(c,
                      "Receipt: %s: entry %" PRIu64 " of %s, under a checkpoint of %" PRIu64 " entries%s.\n",
                      receipt, r->proof.index, a->log.name, r->checkpoint.size,
                      a->is_pinned ? "" : ", whose key was told with it");
    }
    return KEDGE_OK;
}

/* ---- after the answer ---- */

/* A tenant that has just come brings its log's key with it: the state folder has it now; from elsewhere there
 * is nothing to hold it to, but what is told now is kept. */
static int pin_new(struct kedge_cli *c, struct kedge_cli_append *a, const json_t *shown, struct kedge_diag *d)
{
    char origin[KEDGE_ORIGIN_MAX + 1];
    if (!c->trust) {
        return pin_by_state(c->state, false, a, d);
    }
    snprintf(origin, sizeof origin, "%s/%s", a->deployment, a->tenant.s);
    if (kedge_vkey_decode(kedge_view_str(kedge_cli_text(shown, "log_key")), &a->log) != KEDGE_OK
        || strcmp(a->log.name, origin) != 0) {
        return kedge_diag_set(d, KEDGE_E_VERIFY, "it tells no key of %s", origin);
    }
    return KEDGE_OK;
}

/* No entry, or one that does not prove what was said, is the same to the person who asked: they do not know.
 * The code is therefore "unknown" and never "refused": it may be in the log, and a script that took it for a
 * refusal would do it twice. */
static int not_proven(struct kedge_cli *c, int err, struct kedge_diag *d)
{
    if (!err || err == KEDGE_E_NOMEM || err == KEDGE_E_USAGE || err == KEDGE_E_UNREACHABLE) {
        return err;
    }
    c->told = false;
    (void)kedge_diag_wrap(d, KEDGE_E_UNKNOWN,
                          "the coordinator says that it appended this, and nothing proves it");
    (void)kedge_diag_hint(d, "do not rely on it: ask again, and ask others what the log shows (kedge ledger "
                             "show, kedge audit verify)");
    return KEDGE_E_UNKNOWN;
}

/* What the entry says is compared with what was asked for, unless the caller wants to judge that itself. */
static int check_receipt(struct kedge_cli *c, struct kedge_cli_append *a, const json_t *shown,
                         bool caller_judges, struct receipt *r, struct kedge_diag *d)
{
    KEDGE_TRY(a->is_pinned ? KEDGE_OK : pin_new(c, a, shown, d));
    KEDGE_TRY(open_receipt(a, shown, r, d));
    return caller_judges ? KEDGE_OK : check_said(a, r, d);
}

/* A caller that wants the statement gets it only when it is proven and the receipt is kept. */
static int take(struct kedge_cli *c, struct kedge_cli_append *a, const json_t *shown, json_t *answer,
                struct kedge_statement **ret_st, struct kedge_diag *d)
{
    struct receipt *r = kedge_mem_new(1, sizeof *r);
    if (!r) {
        return KEDGE_E_NOMEM;
    }
    int err = not_proven(c, check_receipt(c, a, shown, ret_st != NULL, r, d), d);
    if (!err) {
        err = keep(c, a, r, answer, d);
    }
    if (!err && ret_st) {
        *ret_st = r->st;
        r->st = NULL;
    }
    kedge_mem_free(r->st);
    kedge_mem_free(r);
    return err;
}

/* The receipt is asked for by the index that the answer told. Without one the index is 0, and the entry there
 * says something else, which is "not proven". */
int kedge_cli_append_end(struct kedge_cli *c, const struct kedge_cli_append *begun, json_t *answer,
                         struct kedge_diag *d)
{
    struct kedge_cli_append a = *begun;
    json_t *shown = NULL;
    json_t *question =
        json_pack("{s:s,s:s,s:I}", "verb", "ledger.receipt", "log", a.is_main ? "main" : a.tenant.s, "index",
                  (json_int_t)kedge_cli_int(answer, "leaf_index"));
    int err = not_proven(c, kedge_cli_ask(c, question, &shown, d), d);
    if (!err) {
        err = take(c, &a, shown, answer, NULL, d);
    }
    json_decref(shown);
    return err;
}

/* For commands that have to know before they ask that a receipt could be checked afterwards; the key itself
 * is looked up again then. */
int kedge_cli_main_pin(struct kedge_cli *c, struct kedge_diag *d)
{
    struct kedge_vkey log;
    return kedge_cli_main_vkey(c, &log, d);
}

int kedge_cli_main_vkey(struct kedge_cli *c, struct kedge_vkey *ret, struct kedge_diag *d)
{
    struct kedge_cli_append a = {.is_main = true};
    KEDGE_TRY(find_pin(c, false, &a, d));
    *ret = a.log;
    return KEDGE_OK;
}

/* A coordinator names the main chain for which something is to be signed. Another one than the known could be
 * a deployment in which the tenant never meant to take part. */
int kedge_cli_check_deployment(struct kedge_cli *c, const struct kedge_public_key *main_log_key,
                               struct kedge_diag *d)
{
    struct kedge_cli_append a = {.is_main = true};
    int err = find_pin(c, false, &a, d);
    if (!err && !kedge_public_key_eq(&a.log.key, main_log_key)) {
        c->told = false;
        err = kedge_diag_set(d, KEDGE_E_POSITION,
                             "the coordinator names another main chain than %s, whose key was known before: "
                             "nothing was signed",
                             a.log.name);
        (void)kedge_diag_hint(d,
                              "what you sign here would hold in another deployment; ask who runs this one");
    }
    return err;
}

/* The coordinator appends some entries a moment after it has answered, when they are durable, so it is asked
 * again for a while. It is asked by the entry's idempotency key: the caller knows what it asked for but not
 * yet the index. */
int kedge_cli_main_receipt(struct kedge_cli *c, const char *idem_key, uint32_t wait_ms,
                           struct kedge_statement *ret_st, json_t *answer, struct kedge_diag *d)
{
    struct kedge_cli_append a = {.is_main = true};
    struct kedge_statement *st = NULL;
    json_t *shown = NULL;
    const uint64_t end = kedge_os_now_ns() + (uint64_t)wait_ms * 1000000u;
    int err = find_pin(c, false, &a, d);
    if (err) {
        return err;
    }
    do {
        err = kedge_cli_ask(
            c, json_pack("{s:s,s:s,s:s}", "verb", "ledger.receipt", "log", "main", "key", idem_key), &shown,
            d);
    } while (err == KEDGE_E_NOT_FOUND && kedge_os_now_ns() < end && !kedge_cli_pause(POLL_MS));
    if (err == KEDGE_E_NOT_FOUND) {
        return err;
    }
    err = not_proven(c, err, d);
    if (!err) {
        err = take(c, &a, shown, answer, &st, d);
    }
    json_decref(shown);
    if (!err) {
        *ret_st = *st;
    }
    kedge_mem_free(st);
    return err;
}

/* What the main chain says of the end, for "ended for good" is not for the coordinator to promise. */
int kedge_cli_cancel_receipt(struct kedge_cli *c, const struct kedge_id *job, json_t *answer,
                             struct kedge_diag *d)
{
    char key[KEDGE_IDEM_KEY_MAX + 1];
    struct kedge_statement *st = kedge_mem_new(1, sizeof *st);
    if (!st) {
        return KEDGE_E_NOMEM;
    }
    snprintf(key, sizeof key, "job-closed/%s", job->s);
    int err = kedge_cli_main_receipt(c, key, CLOSED_WAIT_MS, st, answer, d);
    if (!err
        && (st->kind != KEDGE_ST_JOB_CLOSED || !kedge_id_eq(&st->u.job_closed.job, job)
            || st->u.job_closed.outcome != KEDGE_OUTCOME_CANCELLED)) {
        err = KEDGE_E_UNKNOWN;
    }
    kedge_mem_free(st);
    if (err == KEDGE_E_NOT_FOUND || err == KEDGE_E_UNKNOWN) {
        err = kedge_diag_set(d, KEDGE_E_UNKNOWN,
                             "the coordinator says that job %s is cancelled, and no entry of the main chain "
                             "proves it",
                             job->s);
        c->told = false;
    }
    return err;
}
