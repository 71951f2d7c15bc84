/* What the node says about blocks and transactions, held against what it said before, against what was signed
 * and against the main chain. */
#include "chain/anchor/evm_anchor_impl.h"

#include <string.h>

/* How many rounds in a row before what may be a node's lag is taken for what it is. */
enum { ODD_MAX = 5, FOREIGN_MAX = 3, BEHIND_MAX = 20, BACK_MAX = 8 };

static unsigned long long n(uint64_t v)
{
    return (unsigned long long)v;
}

/* ---- final blocks ---- */

/* This round says nothing: a node behind others of the same provider, or one that is starting. */
static void wait_for_node(struct kedge_evm_anchor *a, const char *what, uint64_t number)
{
    a->failures += a->failures < 32 ? 1 : 0;
    kedgei_evm_say(a, "no use of the node: %s (block %llu was final)", what, n(number));
    a->stage = KEDGE_EVM_AT_REST;
}

/* Final blocks go forward only. A provider with several nodes may answer from one that lags, so an older
 * final block is waited out for some rounds; but another block where one was final before is what
 * finality promises never to happen, and ends the anchoring. */
void kedgei_evm_on_final(struct kedge_evm_anchor *a, const struct kedge_evm_answer *answer)
{
    const struct kedge_evm_state *s = &a->state;
    a->final = answer->found ? answer->number : 0;
    a->final_hash = answer->hash;
    a->stage = KEDGE_EVM_AT_SAFE;
    if (s->final_number == 0) {
        return;
    }
    if (!answer->found) {
        wait_for_node(a, "it tells no final block", s->final_number);
    } else if (a->final < s->final_number && ++a->back < BACK_MAX) {
        wait_for_node(a, "its final block is an older one", s->final_number);
    } else if (a->final < s->final_number) {
        kedgei_evm_stop(
            a, KEDGE_E_SHORTER,
            "the node says that block %llu is the last final one, but block %llu was final before",
            n(a->final), n(s->final_number));
    } else if (a->final == s->final_number && !kedge_hash_eq(&a->final_hash, &s->final_hash)) {
        kedgei_evm_stop(a, KEDGE_E_FORK, "final block %llu has another hash than before", n(a->final));
    } else {
        a->back = 0;
        a->stage = a->final > s->final_number ? KEDGE_EVM_AT_OLD_FINAL : KEDGE_EVM_AT_SAFE;
    }
}

/* The last final block is a newer one than before, and the block that was final before must still be the one
 * of its number, or the chain was rewritten below what it had called final. */
void kedgei_evm_on_old_final(struct kedge_evm_anchor *a, const struct kedge_evm_answer *answer)
{
    const struct kedge_evm_state *s = &a->state;
    a->stage = KEDGE_EVM_AT_SAFE;
    if (!answer->found) {
        wait_for_node(a, "it does not know that block", s->final_number);
    } else if (answer->number != s->final_number || !kedge_hash_eq(&answer->hash, &s->final_hash)) {
        kedgei_evm_stop(a, KEDGE_E_FORK, "block %llu was final, and the node now has another one there",
                        n(s->final_number));
    }
}

/* ---- receipts ---- */

static void next_flight(struct kedge_evm_anchor *a)
{
    a->flight++;
    a->attempt = 0;
    a->stage = KEDGE_EVM_AT_RECEIPT;
}

/* No attempt has a receipt: unmined, or not any more. */
static void on_unmined(struct kedge_evm_anchor *a, struct kedge_evm_flight *f)
{
    if (f->phase >= KEDGE_EVM_MINED) {
        kedgei_evm_say(a,
                       "block %llu with anchor %llu is gone (reorganisation): the transaction is sent again",
                       n(f->block), n(f->point.seq));
        f->phase = KEDGE_EVM_SENT;
        f->sent_ms = 0; /* at once */
        f->since_ms = a->now_ms;
        kedgei_evm_refund(a, f);
        a->dirty = true;
    }
    next_flight(a);
}

/* Each attempt of an anchor is asked for, the newest first, because any of them may be mined. A receipt
 * that failed, or succeeded without our event, cannot be explained by a slow node: the machine stops and a
 * person looks. */
void kedgei_evm_on_receipt(struct kedge_evm_anchor *a, const struct kedge_evm_answer *answer)
{
    struct kedge_evm_flight *f = &a->state.flights[a->flight];
    if (!answer->found) {
        a->attempt++;
        a->stage = KEDGE_EVM_AT_RECEIPT;
        if (a->attempt == f->attempt_count) {
            on_unmined(a, f);
        }
        return;
    }
    a->receipt = answer->receipt;
    if (!a->receipt.succeeded) {
        kedgei_evm_stop(
            a, KEDGE_E_DENIED,
            "the contract refused anchor %llu (block %llu): another anchor has its number, the log "
            "was longer before, or the gas limit is too low",
            n(f->point.seq), n(a->receipt.block));
    } else if (!a->receipt.has_event || !kedge_evm_address_eq(&a->receipt.event.who, &a->config.sender)
               || !kedge_evm_point_eq(&a->receipt.event.point, &f->point)) {
        kedgei_evm_stop(a, KEDGE_E_VERIFY,
                        "the node's receipt of anchor %llu succeeded without our event: it lies, or at this "
                        "address is another contract",
                        n(f->point.seq));
    } else {
        a->stage = KEDGE_EVM_AT_CANON;
    }
}

/* How final an anchor is follows from its block and the node's final and safe blocks, anew each round:
 * after a reorganisation it may be less than before. Its price is charged once. */
static void mark_mined(struct kedge_evm_anchor *a, struct kedge_evm_flight *f)
{
    enum kedge_evm_phase phase = a->receipt.block <= a->final  ? KEDGE_EVM_FINALIZED
                                 : a->receipt.block <= a->safe ? KEDGE_EVM_SAFE
                                                               : KEDGE_EVM_MINED;
    bool moved = f->phase < KEDGE_EVM_MINED || !kedge_hash_eq(&f->block_hash, &a->receipt.block_hash);
    if (moved || phase != f->phase) {
        kedgei_evm_say(a, "anchor %llu is %s in block %llu", n(f->point.seq), kedge_evm_phase_name(phase),
                       n(a->receipt.block));
        a->dirty = true;
    }
    f->phase = phase;
    f->block = a->receipt.block;
    f->block_hash = a->receipt.block_hash;
    f->log_index = a->receipt.log_index;
    f->mined_attempt = f->attempt_count - 1 - a->attempt;
    if (f->charged_hour == 0) {
        kedgei_evm_charge(a, f);
    }
}

/* A receipt names a block; the block of that number must be the same one, or the receipt is of a branch
 * that is gone. */
void kedgei_evm_on_canon(struct kedge_evm_anchor *a, const struct kedge_evm_answer *answer)
{
    struct kedge_evm_flight *f = &a->state.flights[a->flight];
    if (answer->found && answer->number == a->receipt.block
        && kedge_hash_eq(&answer->hash, &a->receipt.block_hash)) {
        a->odd = 0;
        a->foreign = 0;
        mark_mined(a, f);
        next_flight(a);
        return;
    }
    /* A reorganisation between two questions looks like this, but does not last. */
    if (++a->odd >= ODD_MAX) {
        kedgei_evm_stop(a, KEDGE_E_VERIFY,
                        "the node's receipt of anchor %llu names a block %llu that is not in its chain",
                        n(f->point.seq), n(a->receipt.block));
        return;
    }
    next_flight(a);
}

/* ---- nonces ---- */

/* The chain has a final transaction with the nonce of ours, and ours has no receipt. Seen several times
 * in a row this is no lag any more: the account's key is used by someone else, and our transaction can
 * never be mined. */
void kedgei_evm_on_foreign(struct kedge_evm_anchor *a, const struct kedge_evm_answer *answer)
{
    const struct kedge_evm_flight *f = &a->state.flights[kedgei_evm_unmined(a)];
    a->stage = KEDGE_EVM_AT_HEAD;
    if (answer->number <= f->nonce) {
        a->foreign = 0;
    } else if (++a->foreign >= FOREIGN_MAX) {
        kedgei_evm_stop(
            a, KEDGE_E_STATE,
            "number %llu of the account is final and none of ours: someone else sends with this key",
            n(f->nonce));
    }
}

/* ---- the contract's head ---- */

/* The point that has this seq, or NULL. */
static const struct kedge_evm_point *point_of(const struct kedge_evm_anchor *a, uint64_t seq)
{
    for (uint32_t i = 0; i < a->state.flight_count; i++) {
        if (a->state.flights[i].point.seq == seq) {
            return &a->state.flights[i].point;
        }
    }
    return a->state.last.seq == seq && seq > 0 ? &a->state.last : NULL;
}

/* What the contract says is compared with what is known here. Each difference has one cause or two, which
 * the message names; only a head that lags for a while is waited for. */
void kedgei_evm_on_head(struct kedge_evm_anchor *a, const struct kedge_evm_answer *answer)
{
    const struct kedge_evm_point *tail = kedgei_evm_tail(a), *known = point_of(a, answer->head.seq);
    a->head = answer->head;
    a->flight = 0;
    a->stage = KEDGE_EVM_AT_RECORD;
    if (!a->state.begun) {
        a->stage = KEDGE_EVM_AT_ADOPT;
        return;
    }
    if (a->head.seq > tail->seq) {
        kedgei_evm_stop(
            a, KEDGE_E_STATE,
            "the contract is at anchor %llu, this state at %llu: an old copy of the state, or someone "
            "else anchors with this key",
            n(a->head.seq), n(tail->seq));
    } else if (a->head.seq < a->state.last.seq) {
        kedgei_evm_stop(a, KEDGE_E_SHORTER, "the contract is at anchor %llu, but anchor %llu was final",
                        n(a->head.seq), n(a->state.last.seq));
    } else if (known && (known->size != a->head.size || !kedge_hash_eq(&known->root, &a->head.root))) {
        kedgei_evm_stop(a, KEDGE_E_FORK,
                        "the contract has another root for anchor %llu than the one we signed",
                        n(a->head.seq));
    } else if (a->head.seq != tail->seq && kedgei_evm_unmined(a) == a->state.flight_count) {
        /* All are mined, says the node, and yet its head lags: a reorganisation in between, or a lie. */
        if (++a->behind >= BEHIND_MAX) {
            kedgei_evm_stop(a, KEDGE_E_VERIFY,
                            "the node has receipts up to anchor %llu, but its contract is at %llu",
                            n(tail->seq), n(a->head.seq));
        }
    } else {
        a->behind = 0;
    }
}

/* First look at the contract, or the first after the operator's --adopt. What it has must be of our main
 * chain: another history under our key is just what anchors are there to show. The only thing taken over is
 * the point from which the next number counts; evidence of what others made is not. */
void kedgei_evm_on_adopt(struct kedge_evm_anchor *a)
{
    struct kedge_evm_state *s = &a->state;
    if (a->head.seq > 0 && (a->new_size < a->head.size || !kedge_hash_eq(&a->root_at, &a->head.root))) {
        kedgei_evm_stop(
            a, KEDGE_E_FORK,
            "the contract's anchor %llu has a root of %llu entries that this main chain does not have",
            n(a->head.seq), n(a->head.size));
        return;
    }
    memset(&s->last, 0, sizeof s->last);
    s->last.ns = a->config.ns;
    if (a->head.seq > 0) {
        s->last.seq = a->head.seq;
        s->last.size = a->head.size;
        s->last.root = a->head.root;
        kedgei_evm_say(a, "goes on behind anchor %llu of %llu entries, which the contract has",
                       n(a->head.seq), n(a->head.size));
    }
    a->want_plan = a->new_size > s->last.size;
    a->stage = KEDGE_EVM_AT_RECORD;
    if (!a->want_plan) {
        s->begun = false; /* next time again: nothing is known that must be kept */
    }
}
