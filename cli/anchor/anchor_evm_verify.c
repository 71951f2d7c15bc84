/* kedge anchor verify: the evidence of an anchor on an Ethereum-compatible chain, offline. Says what is
 * proven and what only a node could tell. */
#include <string.h>

#include "chain/anchor/evm_evidence.h"
#include "chain/log/checkpoint.h"
#include "cli/anchor/anchor.h"
#include "cli/local.h"
#include "common/base/mem.h"
#include "common/base/try.h"

/* The checkpoint that the anchor should be about; its signature, too, when a key is named. */
static int check_note(struct kedge_view bytes, const char *vkey_text, const struct kedge_evm_evidence *e,
                      struct kedge_diag *d)
{
    struct kedge_note *note KEDGE_CLEANUP(kedge_mem_release) = kedge_mem_new(1, sizeof *note);
    struct kedge_checkpoint cp;
    struct kedge_vkey vkey;
    int err = note ? kedge_note_parse(bytes, note) : KEDGE_E_NOMEM;
    if (!err) {
        err = kedge_checkpoint_parse(note->text, &cp);
    }
    if (err) {
        return err == KEDGE_E_FORMAT || err == KEDGE_E_TOO_LONG
                   ? kedge_diag_set(d, KEDGE_E_FORMAT, "the checkpoint is no signed checkpoint")
                   : err;
    }
    if (vkey_text) {
        if (kedge_vkey_decode(kedge_view_str(vkey_text), &vkey) != KEDGE_OK) {
            return kedge_diag_set(d, KEDGE_E_USAGE, "--log: no verifier key");
        }
        err = kedge_checkpoint_open(bytes, kedge_view_str(vkey.name), &vkey, 1, &cp, NULL);
        if (err == KEDGE_E_VERIFY) {
            (void)kedge_diag_set(d, err, "the checkpoint is not signed by the key of --log");
        }
        KEDGE_TRY(err);
    }
    return kedge_evm_evidence_is_about(e, cp.origin, cp.size, &cp.root, d);
}

/* "Not verified" is an answer (exit code 1), told apart from evidence that cannot be read (3): a script may
 * act on the first only. */
static int say_no(struct kedge_cli *c, const char *why)
{
    kedge_cli_say(c, "NOT verified: %s.\n", why);
    return kedge_cli_answer(c, json_pack("{s:b,s:s}", "verified", 0, "reason", why), 1);
}

/* What is printed keeps apart what the evidence proves by itself and what only a node of that chain can say
 * (that the block is part of it). Mixing the two is how anchors come to be believed for more than they
 * show. */
static int say_yes(struct kedge_cli *c, const struct kedge_evm_evidence *e, bool with_checkpoint,
                   bool with_key)
{
    char sender[KEDGE_EVM_ADDRESS_TEXT], contract[KEDGE_EVM_ADDRESS_TEXT];
    char block[2 * KEDGE_HASH_LEN + 1], tx[2 * KEDGE_HASH_LEN + 1], root[2 * KEDGE_HASH_LEN + 1];
    kedge_evm_address_text(&e->sender, sender);
    kedge_evm_address_text(&e->contract, contract);
    kedge_hash_hex(&e->block_hash, block);
    kedge_hash_hex(&e->tx_hash, tx);
    kedge_hash_hex(&e->point.root, root);
    kedge_cli_say(
        c,
        "Verified, by itself:\n- the account %s signed, for the contract %s on chain %llu, that %s has at "
        "%llu entries the root %s (anchor %llu).\n",
        sender, contract, (unsigned long long)e->chain_id, e->origin, (unsigned long long)e->point.size, root,
        (unsigned long long)e->point.seq);
    kedge_cli_say(c,
                  with_checkpoint ? "- that is the checkpoint named%s.\n"
                                  : "- no checkpoint was named: --checkpoint NOTE compares it%s.\n",
                  with_key          ? ", signed by the log's key"
                  : with_checkpoint ? " (its signature was not checked: --log VKEY)"
                                    : "");
    if (e->has_state) {
        kedge_cli_say(c, "- in block %llu, if its hash is %s, the contract's head is this anchor.\n",
                      (unsigned long long)e->block, block);
        kedge_cli_say(
            c, "%s",
            kedge_evm_evidence_code_is_ours(e)
                ? "- the contract has Kedge's code: numbers without gaps, sizes that never shrink.\n"
                : "- the contract's code is NOT Kedge's: its maker may change what it holds.\n");
    } else if (e->header.len > 0) {
        kedge_cli_say(
            c, "- block %llu with the hash %s is a block; that the anchor is in it is not proven here.\n",
            (unsigned long long)e->block, block);
    }
    kedge_cli_say(
        c,
        "Needs a node you trust (or two providers):\n- that block %llu of chain %llu has the hash %s and is "
        "%s%s\n",
        (unsigned long long)e->block, (unsigned long long)e->chain_id, block,
        e->finality[0] == 's' ? "safe (\"safe\" when this was written)"
                              : "final (\"finalized\" when this was written)",
        e->has_state ? "." : ", and that it holds the transaction, which succeeded:");
    if (!e->has_state) {
        kedge_cli_say(c, "  %s\n", tx);
    }
    return kedge_cli_ok(c, json_pack("{s:b,s:I,s:s,s:s,s:s,s:I,s:I,s:s,s:s,s:I,s:s,s:b,s:b,s:b,s:b,s:b}",
                                     "verified", 1, "chain_id", (json_int_t)e->chain_id, "contract", contract,
                                     "sender", sender, "origin", e->origin, "seq", (json_int_t)e->point.seq,
                                     "size", (json_int_t)e->point.size, "root", root, "transaction_hash", tx,
                                     "block", (json_int_t)e->block, "block_hash", block, "checkpoint_matches",
                                     with_checkpoint, "checkpoint_signed", with_key, "header_proven",
                                     e->header.len > 0, "state_proven", e->has_state, "contract_is_kedges",
                                     kedge_evm_evidence_code_is_ours(e)));
}

/* Nothing is asked of a network or of the state folder: an auditor may have this one file and the checkpoint
 * that it should be about. */
int kedge_cli_evidence_verify(struct kedge_cli *c, const struct kedge_cli_anchor_file *file)
{
    const char *checkpoint = file->checkpoint, *vkey = file->log;
    struct kedge_diag d = {.text = ""};
    struct kedge_buf note;
    if (vkey && !checkpoint) {
        return kedge_cli_usage(c, "--log VKEY checks the signature of --checkpoint NOTE, which is missing");
    }
    struct kedge_evm_evidence *e = kedge_mem_new(1, sizeof *e);
    if (!e) {
        return kedge_cli_fail(c, KEDGE_E_NOMEM, NULL);
    }
    kedge_buf_init(&note, KEDGE_NOTE_MAX);
    int err = checkpoint ? kedge_file_read(checkpoint, &note, &d) : KEDGE_OK, code;
    if (err) {
        code = kedge_cli_fail(c, err, &d);
    } else {
        err = kedge_evm_evidence_read(file->bytes, e, &d);
        err = err || !checkpoint ? err : check_note(kedge_buf_view(&note), vkey, e, &d);
        code = !err                    ? say_yes(c, e, checkpoint != NULL, vkey != NULL)
               : err == KEDGE_E_VERIFY ? say_no(c, d.text)
                                       : kedge_cli_fail(c, err, &d);
    }
    kedge_evm_evidence_deinit(e);
    kedge_mem_free(e);
    kedge_buf_deinit(&note);
    return code;
}
