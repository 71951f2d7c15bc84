/* Anchors on an Ethereum-compatible chain, as a kind: one file of evidence each. */
#include <inttypes.h>
#include <string.h>

#include "chain/anchor/evm_evidence.h"
#include "chain/anchor/kind.h"
#include "chain/log/checkpoint.h"
#include "common/base/mem.h"
#include "common/base/text.h"
#include "common/base/try.h"

/* The checkpoint that the evidence carries: signed by the log itself, of this size and root. */
static bool is_signed(const struct kedge_anchor_main *main, const struct kedge_evm_evidence *e)
{
    struct kedge_checkpoint c;
    return e->checkpoint.len > 0 && main->vkey
           && kedge_checkpoint_open(e->checkpoint, kedge_view_str(main->origin), main->vkey, 1, &c, NULL)
                  == KEDGE_OK
           && c.size == e->point.size && kedge_hash_eq(&c.root, &e->point.root);
}

/* All three must be those of the trust file: another contract may let anybody rewrite its heads, and on
 * another chain the same key may have said something else. */
static bool is_by(const struct kedge_trust_anchors *t, const struct kedge_evm_evidence *e)
{
    return t->has_evm && t->chain_id == e->chain_id && kedge_evm_address_eq(&t->contract, &e->contract)
           && kedge_evm_address_eq(&t->account, &e->sender);
}

/* Anybody can anchor anything, so a claim tells apart what is known of it: `trusted`, by the account and
 * contract that the trust file names; `vouched`, by these or by a checkpoint that the log itself signed;
 * `proven`, that the head is in the state of the block that is named. */
static int claim_of(const struct kedge_evm_evidence *e, uint64_t number, const struct kedge_anchor_main *main,
                    const struct kedge_trust_anchors *trust, struct kedge_anchor_claim *ret,
                    struct kedge_diag *d)
{
    uint64_t time_s = 0;
    if (strcmp(e->origin, main->origin) != 0) {
        return kedge_diag_set(d, KEDGE_E_VERIFY, "it is about another log");
    }
    if (e->point.seq != number) {
        return kedge_diag_set(d, KEDGE_E_VERIFY, "it is another anchor than its name says");
    }
    const bool named = is_by(trust, e);
    const bool told = kedge_evm_evidence_time(e, &time_s) == KEDGE_OK && time_s <= INT64_MAX;
    *ret = (struct kedge_anchor_claim){.size = e->point.size,
                                       .root = e->point.root,
                                       .time_s = told ? (int64_t)time_s : 0,
                                       .trusted = named,
                                       .proven = kedge_evm_evidence_code_is_ours(e),
                                       .vouched = named || is_signed(main, e),
                                       .chain_id = e->chain_id,
                                       .block = e->block,
                                       .block_hash = e->block_hash};
    kedge_evm_address_text(&e->sender, ret->by);
    return KEDGE_OK;
}

static int claim(const struct kedge_anchor_files *files, const struct kedge_anchor_main *main,
                 const struct kedge_trust_anchors *trust, struct kedge_anchor_claim *ret,
                 struct kedge_diag *reterr)
{
    struct kedge_evm_evidence *e = kedge_mem_new(1, sizeof *e);
    KEDGE_TRY_MEM(e);
    int err = kedge_evm_evidence_read(files->anchor, e, reterr);
    if (!err) {
        err = claim_of(e, files->number, main, trust, ret, reterr);
    }
    kedge_evm_evidence_deinit(e);
    kedge_mem_free(e);
    return err;
}

static int checkpoint(const struct kedge_anchor_files *files, struct kedge_buf *room, struct kedge_view *ret,
                      struct kedge_diag *reterr)
{
    struct kedge_evm_evidence *e = kedge_mem_new(1, sizeof *e);
    if (!e) {
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "out of memory");
    }
    int err = kedge_evm_evidence_read(files->anchor, e, reterr);
    if (!err) {
        kedge_buf_put(room, e->checkpoint.ptr, e->checkpoint.len);
        err = room->err;
        *ret = kedge_buf_view(room);
    }
    kedge_evm_evidence_deinit(e);
    kedge_mem_free(e);
    return err;
}

/* ---- whose word counts ---- */

static bool is_named(const struct kedge_trust_anchors *trust)
{
    return trust->has_evm;
}

static int read_address(const json_t *o, const char *field, struct kedge_evm_address *ret,
                        struct kedge_diag *d)
{
    const char *text = json_string_value(json_object_get(o, field));
    return text && kedge_evm_address_parse(kedge_view_str(text), ret) == KEDGE_OK
               ? KEDGE_OK
               : kedgei_trust_bad(d, field,
                                  "an address: 0x and 40 hex digits, with a right checksum if mixed case");
}

static int trust_read(const json_t *o, struct kedge_trust_anchors *io, struct kedge_diag *d)
{
    static const char *const keys[] = {"chain_id", "contract", "account", NULL};
    const json_t *id = json_object_get(o, "chain_id");
    if (!json_is_object(o)) {
        return kedgei_trust_bad(d, "evm", "an object: chain_id, contract, account");
    }
    int err = kedgei_trust_check_keys(o, keys, "anchors", d);
    if (!err && (!json_is_integer(id) || json_integer_value(id) < 1)) {
        err = kedgei_trust_bad(d, "chain_id", "a whole number from 1 on");
    }
    if (err) {
        return err;
    }
    KEDGE_TRY(read_address(o, "contract", &io->contract, d));
    KEDGE_TRY(read_address(o, "account", &io->account, d));
    io->chain_id = (uint64_t)json_integer_value(id);
    io->has_evm = true;
    return KEDGE_OK;
}

static void trust_tell(const struct kedge_trust_anchors *trust, struct kedge_buf *out)
{
    char contract[KEDGE_EVM_ADDRESS_TEXT], account[KEDGE_EVM_ADDRESS_TEXT];
    kedge_evm_address_text(&trust->contract, contract);
    kedge_evm_address_text(&trust->account, account);
    kedge_buf_printf(out, "- anchors count of: account %s, contract %s, chain %" PRIu64 "\n", account,
                     contract, trust->chain_id);
}

/* CHAIN:CONTRACT:ACCOUNT. *into changes only when all three are sound. */
int kedge_trust_anchor_parse(const char *text, struct kedge_trust_anchors *into)
{
    struct kedge_trust_anchors a = *into;
    const char *contract = strchr(text, ':'), *account = contract ? strchr(contract + 1, ':') : NULL;
    if (!account
        || kedge_decimal_decode(kedge_view_of(text, (size_t)(contract - text)), INT64_MAX, &a.chain_id)
               != KEDGE_OK
        || a.chain_id == 0
        || kedge_evm_address_parse(kedge_view_of(contract + 1, (size_t)(account - contract - 1)), &a.contract)
               != KEDGE_OK
        || kedge_evm_address_parse(kedge_view_str(account + 1), &a.account) != KEDGE_OK) {
        return KEDGE_E_FORMAT;
    }
    a.has_evm = true;
    *into = a;
    return KEDGE_OK;
}

static int option_take(char *text, struct kedge_trust_anchors *io)
{
    return kedge_trust_anchor_parse(text, io);
}

static bool is_others(const struct kedge_anchor_claim *c, const struct kedge_trust_anchors *trust,
                      struct kedge_diag *ret_why)
{
    if (!trust->has_evm || c->trusted) {
        return false;
    }
    (void)kedge_diag_set(
        ret_why, KEDGE_E_VERIFY,
        "does not count: anchored by account %s on chain %llu, or by another contract than the "
        "one that is named",
        c->by, (unsigned long long)c->chain_id);
    return true;
}

/* ---- telling ---- */

static void say(const struct kedge_anchor_claim *c, const char *when, struct kedge_buf *out)
{
    char hash[KEDGE_HASH_HEX_LEN + 1];
    kedge_hash_hex(&c->block_hash, hash);
    if (c->proven) {
        kedge_buf_printf(out,
                         "Anchored: the main chain's first %" PRIu64 " entries existed when block %" PRIu64
                         " of chain %" PRIu64
                         " was made, at %s, if that block is the chain's: ask a node for "
                         "its hash, %s.\n",
                         c->size, c->block, c->chain_id, when, hash);
    } else {
        kedge_buf_printf(out,
                         "Anchored: account %s signed for chain %" PRIu64
                         " that the main chain has these first "
                         "%" PRIu64 " entries; ask a node whether its transaction is in block %" PRIu64 ".\n",
                         c->by, c->chain_id, c->size, c->block);
    }
}

static void from(const struct kedge_anchor_claim *c, const char *when, struct kedge_buf *out)
{
    char hash[KEDGE_HASH_HEX_LEN + 1];
    (void)when;
    kedge_hash_hex(&c->block_hash, hash);
    kedge_buf_printf(out, "chain %" PRIu64 ", block %" PRIu64 ", 0x%s", c->chain_id, c->block, hash);
}

static void report(const struct kedge_anchor_claim *c, struct kedge_buf *out)
{
    char hash[KEDGE_HASH_HEX_LEN + 1];
    kedge_hash_hex(&c->block_hash, hash);
    kedge_buf_printf(out,
                     "  - provided that block %" PRIu64 " of chain %" PRIu64 " has the hash %s%s: ask a "
                     "node that you trust\n",
                     c->block, c->chain_id, hash,
                     c->proven ? "" : " and holds the transaction, which is not proven here");
}

static void describe(const struct kedge_anchor_claim *c, json_t *io)
{
    char hash[KEDGE_HASH_HEX_LEN + 1];
    kedge_hash_hex(&c->block_hash, hash);
    json_object_set_new(io, "chain_id", json_integer((json_int_t)c->chain_id));
    json_object_set_new(io, "block", json_integer((json_int_t)c->block));
    json_object_set_new(io, "block_hash", json_string(hash));
    json_object_set_new(io, "in_block", json_boolean(c->proven));
}

static long long number_of(const json_t *row, const char *member)
{
    return (long long)json_integer_value(json_object_get(row, member));
}

static const char *text_of(const json_t *row, const char *member)
{
    const char *text = json_string_value(json_object_get(row, member));
    return text ? text : "";
}

static void explain(const json_t *row, const char *aside, struct kedge_buf *out)
{
    const char *time = text_of(row, "time");
    kedge_buf_printf(out, "block %lld of chain %lld%s%s%s, over entries 0…%lld of the main chain%s; %s",
                     number_of(row, "block"), number_of(row, "chain_id"), *time ? ", " : "", time,
                     json_is_true(json_object_get(row, "in_block")) ? "" : " (not proven to be in it)",
                     number_of(row, "entries") - 1, aside, text_of(row, "file"));
}

const struct kedge_anchor_kind kedge_anchor_evm = {
    .name = "evm",
    .suffix = ".json",
    .most = KEDGE_EVM_EVIDENCE_MAX,
    .told = "evm",
    .plural = "anchors",
    .title = "anchors on an Ethereum-compatible chain",
    .where = "on an Ethereum-compatible chain",
    .source = "chain",
    .who = "which is anchored in a block that a node has to confirm",
    .claim = claim,
    .checkpoint = checkpoint,
    .trust_key = "evm",
    .option = "anchor",
    .option_usage = "--anchor CHAIN:CONTRACT:ACCOUNT",
    .option_form = "CHAIN:CONTRACT:ACCOUNT, a number and two addresses (0x and 40 hex digits)",
    .whose = "the account (--anchor CHAIN:CONTRACT:ACCOUNT)",
    .is_named = is_named,
    .trust_read = trust_read,
    .trust_tell = trust_tell,
    .option_take = option_take,
    .is_others = is_others,
    .say = say,
    .from = from,
    .report = report,
    .describe = describe,
    .explain = explain,
};
