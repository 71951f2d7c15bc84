/* kedge ledger prove, verify: receipts (c2sp.org/tlog-proof) and consistency proofs. Verifying needs no
 * network, no state folder and no trust in who sent the receipt: only the log's verifier key. */
#include <stdio.h>
#include <string.h>

#include "chain/log/proof.h"
#include "cli/local.h"
#include "cli/witness/witness_policy.h"
#include "common/base/mem.h"
#include "common/base/try.h"
#include "common/json/json.h"

struct question {
    const char *state, *log;
    uint64_t index, from, to; /* from > 0: a consistency proof; to 0: up to the newest checkpoint */
};

static json_t *base64_json(struct kedge_view bytes)
{
    struct kedge_buf text;
    kedge_buf_init(&text, kedge_base64_len(bytes.len));
    kedge_base64_put(&text, bytes);
    json_t *o = json_stringn((const char *)text.ptr, text.len);
    kedge_buf_deinit(&text);
    return o;
}

/* ---- prove ---- */

/* Under the newest checkpoint that is stored, never under a size that is not signed: a receipt without a
 * signature would prove nothing to others. */
static int prove_inclusion(const struct question *q, struct kedge_state_log *log, struct kedge_view note,
                           uint64_t size, json_t **ret, struct kedge_diag *d)
{
    struct kedge_proof *proof KEDGE_CLEANUP(kedge_mem_release) = kedge_mem_new(1, sizeof *proof);
    struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit), entry KEDGE_CLEANUP(kedge_buf_deinit);
    struct kedge_hash leaf;
    kedge_buf_init(&text, KEDGE_PROOF_TEXT_MAX);
    kedge_buf_init(&entry, KEDGE_ENTRY_MAX);
    KEDGE_TRY(proof ? KEDGE_OK : KEDGE_E_NOMEM);
    if (q->index >= size) {
        (void)kedge_diag_set(d, KEDGE_E_NOT_FOUND, "log %s is signed up to %llu entries: none is %llu yet",
                             q->log, (unsigned long long)size, (unsigned long long)q->index);
        return kedge_diag_hint(d, "the next checkpoint covers it, if it is there: kedge ledger list");
    }
    KEDGE_TRY(kedge_ledger_inclusion(log->ledger, q->index, size, &proof->path));
    KEDGE_TRY(kedge_ledger_leaf_hash(log->ledger, q->index, &leaf));
    KEDGE_TRY(kedge_ledger_get(log->ledger, q->index, &entry));
    proof->index = q->index;
    proof->note = note;
    kedge_proof_encode(proof, &text);
    KEDGE_TRY(text.err);
    *ret = json_pack(
        "{s:s,s:s,s:I,s:I,s:o,s:o,s:o}", "log", q->log, "origin", log->origin, "index", (json_int_t)q->index,
        "size", (json_int_t)size, "leaf_hash", kedgei_json_hex(leaf.b, KEDGE_HASH_LEN), "receipt",
        json_stringn((const char *)text.ptr, text.len), "entry", base64_json(kedge_buf_view(&entry)));
    return KEDGE_OK;
}

/* Two roots and the path between them (RFC 6962, section 2.1.2): that the log of `from` entries is the
 * beginning of the one of `to`. Neither root is signed here; who checks it has checkpoints of these sizes
 * from elsewhere. */
static int prove_consistency(const struct question *q, struct kedge_state_log *log, uint64_t size,
                             json_t **ret, struct kedge_diag *d)
{
    struct kedge_hash old_root, root;
    struct kedge_path path;
    uint64_t to = q->to ? q->to : size;
    if (q->from > to || to > kedge_ledger_size(log->ledger)) {
        return kedge_diag_set(d, KEDGE_E_USAGE, "log %s has %llu entries: expected 0 < --from ≤ --to ≤ %llu",
                              q->log, (unsigned long long)kedge_ledger_size(log->ledger),
                              (unsigned long long)kedge_ledger_size(log->ledger));
    }
    KEDGE_TRY(kedge_ledger_root(log->ledger, q->from, &old_root));
    KEDGE_TRY(kedge_ledger_root(log->ledger, to, &root));
    KEDGE_TRY(kedge_ledger_consistency(log->ledger, q->from, to, &path));
    json_t *hashes = json_array();
    for (uint32_t i = 0; i < path.count; i++) {
        json_array_append_new(hashes, kedgei_json_hex(path.hashes[i].b, KEDGE_HASH_LEN));
    }
    *ret = json_pack("{s:s,s:s,s:I,s:I,s:o,s:o,s:o}", "log", q->log, "origin", log->origin, "from",
                     (json_int_t)q->from, "to", (json_int_t)to, "from_root",
                     kedgei_json_hex(old_root.b, KEDGE_HASH_LEN), "to_root",
                     kedgei_json_hex(root.b, KEDGE_HASH_LEN), "path", hashes);
    return KEDGE_OK;
}

/* In a child, as all that opens a store; the proof comes back as JSON. */
static int gather_proof(void *arg, json_t **ret, struct kedge_diag *d)
{
    struct question *q = arg;
    struct kedge_state_log log;
    struct kedge_buf note;
    uint64_t size = 0;
    KEDGE_TRY(kedge_cli_log_open(q->state, q->log, &log, d));
    kedge_buf_init(&note, KEDGE_NOTE_MAX);
    int err = kedge_ledger_checkpoint(log.ledger, &note, &size);
    if (err == KEDGE_E_NOT_FOUND) {
        (void)kedge_diag_set(d, err, "log %s has no signed checkpoint yet", q->log);
        (void)kedge_diag_hint(d, "a coordinator signs one with the next round or enrolment");
    } else if (!err) {
        err = q->from > 0 ? prove_consistency(q, &log, size, ret, d)
                          : prove_inclusion(q, &log, kedge_buf_view(&note), size, ret, d);
    }
    if (err && d && !d->text[0]) {
        (void)kedge_diag_set(d, err, "log %s: %s", q->log, kedge_strerror(err));
    }
    kedge_buf_deinit(&note);
    kedge_state_log_close(&log);
    return err;
}

/* Decodes "entry" and writes the exact bytes, which verify hashes. */
static int write_entry(const json_t *answer, const char *path, struct kedge_diag *d)
{
    struct kedge_buf bytes KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&bytes, KEDGE_ENTRY_MAX);
    KEDGE_TRY(kedge_base64_decode(kedge_view_str(kedge_cli_text(answer, "entry")), false, &bytes));
    return kedge_file_write(path, kedge_buf_view(&bytes), 0644, d);
}

/* A receipt is text of a standard form and is written as it is; a consistency proof has none and is JSON. */
static int put_proof(struct kedge_cli *c, json_t *answer, const char *out, const char *entry_out)
{
    struct kedge_diag d = {.text = ""};
    const char *receipt = kedge_cli_text(answer, "receipt");
    int err = KEDGE_OK;
    if (out) {
        err = receipt[0] ? kedge_file_write(out, kedge_view_str(receipt), 0644, &d)
                         : kedge_cli_put_json(answer, out, &d);
    } else if (!c->json && receipt[0]) {
        kedge_cli_say(c, "%s", receipt);
    } else if (!c->json) {
        err = kedge_cli_put_json(answer, NULL, &d);
    }
    err = !err && entry_out ? write_entry(answer, entry_out, &d) : err;
    if (err) {
        json_decref(answer);
        return kedge_cli_fail(c, err, &d);
    }
    if (out) {
        kedge_cli_say(c, "%s: %s of log %s\n", out, receipt[0] ? "receipt" : "consistency proof",
                      kedge_cli_text(answer, "log"));
    }
    return kedge_cli_ok(c, answer);
}

int kedge_cmd_ledger_prove(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    struct question q = {.state = c->state};
    json_t *answer = NULL;
    const char *out = kedge_cli_option(c, "out", NULL);
    const char *entry_out = kedge_cli_option(c, "entry-out", NULL);
    if (!kedge_cli_number(c, "from", 1, KEDGE_TREE_SIZE_MAX, 0, &q.from)
        || !kedge_cli_number(c, "to", 1, KEDGE_TREE_SIZE_MAX, 0, &q.to) || !kedge_cli_no_more(c, 2)) {
        return 2;
    }
    const char *index = kedge_cli_argument(c, 1);
    q.log = kedge_cli_argument(c, 0);
    if (!q.log) {
        return kedge_cli_usage(c, "LOG is missing: main or a tenant's name");
    }
    if (q.from ? index || entry_out : !index || q.to) {
        return kedge_cli_usage(c, "expected either INDEX (a receipt) or --from SIZE (a consistency proof)");
    }
    if (index && kedge_decimal_decode(kedge_view_str(index), KEDGE_TREE_SIZE_MAX, &q.index) != KEDGE_OK) {
        return kedge_cli_usage(c, "INDEX \"%s\": expected a whole number from 0", kedge_cli_word(index).s);
    }
    int err = kedge_cli_guarded(gather_proof, &q, &answer, &d);
    return err ? kedge_cli_fail(c, err, &d) : put_proof(c, answer, out, entry_out);
}

/* ---- verify ---- */

/* Only where no --entry names the bytes: then the state folder may have them. */
static int gather_entry(void *arg, json_t **ret, struct kedge_diag *d)
{
    struct question *q = arg;
    struct kedge_state_log log;
    struct kedge_buf entry;
    KEDGE_TRY(kedge_cli_log_open(q->state, q->log, &log, d));
    kedge_buf_init(&entry, KEDGE_ENTRY_MAX);
    int err = kedge_ledger_get(log.ledger, q->index, &entry);
    if (err) {
        (void)kedge_diag_set(d, err, "log %s, entry %llu: %s", q->log, (unsigned long long)q->index,
                             kedge_strerror(err));
    } else {
        *ret = json_pack("{s:s,s:o}", "origin", log.origin, "entry", base64_json(kedge_buf_view(&entry)));
    }
    kedge_buf_deinit(&entry);
    kedge_state_log_close(&log);
    return err;
}

/* The entry that the receipt is about: from the file, else from the state folder when it has this log. */
static int find_entry(struct kedge_cli *c, const char *path, const struct kedge_vkey *vkey, uint64_t index,
                      struct kedge_buf *ret, struct kedge_diag *d)
{
    const char *slash = strrchr(vkey->name, '/');
    struct question q = {.state = c->state, .log = slash ? slash + 1 : vkey->name, .index = index};
    json_t *answer = NULL;
    if (path) {
        return strcmp(path, "-") == 0 ? kedge_stdin_read(ret, d) : kedge_file_read(path, ret, d);
    }
    int err = kedge_cli_guarded(gather_entry, &q, &answer, d);
    if (!err && strcmp(kedge_cli_text(answer, "origin"), vkey->name) != 0) {
        err = kedge_diag_set(d, KEDGE_E_NOT_FOUND, "%s: its log %s is %s, the receipt's is %s", c->state,
                             q.log, kedge_cli_text(answer, "origin"), vkey->name);
    }
    if (!err) {
        err = kedge_base64_decode(kedge_view_str(kedge_cli_text(answer, "entry")), false, ret);
    }
    json_decref(answer);
    if (err) {
        (void)kedge_diag_hint(d, "name the file with the entry's exact bytes: --entry FILE");
    }
    return err;
}

static int say_no(struct kedge_cli *c, const struct kedge_vkey *vkey, const char *why)
{
    kedge_cli_say(c, "NOT verified: %s.\n", why);
    return kedge_cli_answer(c, json_pack("{s:b,s:s,s:s}", "verified", 0, "log", vkey->name, "reason", why),
                            1);
}

/* What the entry says is told with the verdict, decoded from the very bytes that were verified: a receipt
 * that is right may still be one of another entry than the reader thinks. */
static int say_yes(struct kedge_cli *c, const struct kedge_proof *proof, const struct kedge_checkpoint *cp,
                   const struct kedge_vkey *vkey, struct kedge_view entry)
{
    struct kedge_hash leaf;
    json_t *row = json_object();
    const char *slash = strrchr(vkey->name, '/');
    kedge_merkle_leaf(entry, &leaf);
    int err = kedge_cli_describe(entry, slash && strcmp(slash, "/main") == 0, false, row);
    if (err) {
        json_decref(row);
        return kedge_cli_fail(c, err, NULL);
    }
    kedge_cli_say(c,
                  "Verified: this entry is number %llu of the log %s, in its signed checkpoint of %llu "
                  "entries.\nIt says: %s  %s  %s\n",
                  (unsigned long long)proof->index, vkey->name, (unsigned long long)cp->size,
                  kedge_cli_text(row, "kind"), kedge_cli_text(row, "who"), kedge_cli_text(row, "what"));
    return kedge_cli_ok(c, json_pack("{s:b,s:s,s:I,s:I,s:o,s:o,s:o}", "verified", 1, "log", vkey->name,
                                     "index", (json_int_t)proof->index, "size", (json_int_t)cp->size, "root",
                                     kedgei_json_hex(cp->root.b, KEDGE_HASH_LEN), "leaf_hash",
                                     kedgei_json_hex(leaf.b, KEDGE_HASH_LEN), "entry", row));
}

/* What is asked of a receipt. */
struct demand {
    const struct kedge_vkey *vkey;
    const char *entry_path;
    const struct kedge_witness_policy *policy; /* NULL: witnesses do not matter */
};

/* The quorum of witnesses behind the receipt's checkpoint; KEDGE_E_DENIED, KEDGE_E_VERIFY with the reason. */
static int check_quorum(const struct demand *q, struct kedge_view note, struct kedge_diag *d)
{
    struct kedge_witness_demand demand = {
        .origin = kedge_view_str(q->vkey->name), .logs = q->vkey, .log_count = 1};
    struct kedge_witness_evaluation *e = kedge_mem_new(1, sizeof *e);
    int err = e ? kedge_witness_policy_evaluate(q->policy, note, &demand, e, d) : KEDGE_E_NOMEM;
    kedge_mem_free(e);
    return err;
}

/* The order is: is it a proof at all, is the entry here, do entry, path, checkpoint and key belong together,
 * is the quorum there. Each "no" is a verdict (exit code 1), also that the file is no proof; an entry that is
 * not to be had leaves the question open, and that is another code. */
static int verify(struct kedge_cli *c, struct kedge_view text, const struct demand *q)
{
    const struct kedge_vkey *vkey = q->vkey;
    struct kedge_diag d = {.text = ""};
    struct kedge_checkpoint cp;
    struct kedge_hash leaf;
    struct kedge_buf entry;
    struct kedge_proof *proof = kedge_mem_new(1, sizeof *proof);
    if (!proof) {
        return kedge_cli_fail(c, KEDGE_E_NOMEM, NULL);
    }
    int code, err = kedge_proof_decode(text, proof);
    if (err) {
        kedge_mem_free(proof);
        return err == KEDGE_E_NOMEM ? kedge_cli_fail(c, err, NULL)
                                    : say_no(c, vkey, "the file is no tlog-proof");
    }
    kedge_buf_init(&entry, KEDGE_ENTRY_MAX);
    err = find_entry(c, q->entry_path, vkey, proof->index, &entry, &d);
    if (err) {
        code = kedge_cli_fail(c, err, &d);
    } else {
        kedge_merkle_leaf(kedge_buf_view(&entry), &leaf);
        err = kedge_proof_verify(proof, &leaf, kedge_view_str(vkey->name), vkey, 1, &cp);
        int quorum = !err && q->policy ? check_quorum(q, proof->note, &d) : KEDGE_OK;
        if (err == KEDGE_E_NOMEM || quorum == KEDGE_E_NOMEM) {
            code = kedge_cli_fail(c, KEDGE_E_NOMEM, NULL);
        } else if (quorum) {
            code = say_no(c, vkey, d.text);
        } else if (err) {
            code = say_no(c, vkey,
                          err == KEDGE_E_VERIFY ? "entry, receipt and log key do not belong together"
                                                : "the receipt's checkpoint is malformed");
        } else {
            code = say_yes(c, proof, &cp, vkey, kedge_buf_view(&entry));
        }
    }
    kedge_buf_deinit(&entry);
    kedge_mem_free(proof);
    return code;
}

int kedge_cmd_ledger_verify(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_vkey vkey;
    struct kedge_buf text;
    struct demand q = {.vkey = &vkey};
    struct kedge_witness_policy *policy = NULL;
    const char *log = kedge_cli_option(c, "log", NULL), *policy_path = kedge_cli_option(c, "policy", NULL);
    q.entry_path = kedge_cli_option(c, "entry", NULL);
    if (!kedge_cli_no_more(c, 1)) {
        return 2;
    }
    const char *path = kedge_cli_argument(c, 0);
    if (!path || !log) {
        return kedge_cli_usage(c, "expected RECEIPT and --log VKEY");
    }
    if (kedge_vkey_decode(kedge_view_str(log), &vkey) != KEDGE_OK || vkey.type != KEDGE_KEY_ED25519) {
        return kedge_cli_usage(
            c, "--log: expected a verifier key, \"name+hash+base64\" (see: kedge audit trust)");
    }
    int err = kedge_cli_read_file(path, KEDGE_PROOF_TEXT_MAX, &text, &d);
    err = err || !policy_path ? err : kedge_cli_witness_policy(policy_path, &policy, &d);
    q.policy = policy;
    int code = err ? kedge_cli_fail(c, err, &d) : verify(c, kedge_buf_view(&text), &q);
    kedge_buf_deinit(&text);
    kedge_witness_policy_free(policy);
    return code;
}
