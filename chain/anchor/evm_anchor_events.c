/* What each event does to the machine: every function here leaves a->stage where to go on. */
#include <stdio.h>
#include <string.h>

#include "chain/anchor/evm_anchor_impl.h"
#include "chain/anchor/keccak256.h"

/* The node gave no usable answer: rest, longer each time. */
static void fail_round(struct kedge_evm_anchor *a, const char *text)
{
    a->failures += a->failures < 32 ? 1 : 0;
    kedgei_evm_say(a, "no use of the node: %.180s", text[0] ? text : "no answer");
    a->stage = KEDGE_EVM_AT_REST;
}

/* The configuration is at fault, or the node was changed for another: nothing is wrong with the state, which
 * stays as it is. */
static void refuse_chain(struct kedge_evm_anchor *a, const char *format, unsigned long long v)
    __attribute__((format(printf, 2, 0)));
static void refuse_chain(struct kedge_evm_anchor *a, const char *format, unsigned long long v)
{
    snprintf(a->state.stop_text, sizeof a->state.stop_text, format, v,
             (unsigned long long)a->config.chain_id);
    a->state.stop_err = KEDGE_E_STATE;
    a->stage = KEDGE_EVM_AT_STOP;
}

/* A node's refusal is no proof that a transaction was not taken, and its silence no proof that it was. So
 * after each attempt the anchor counts as sent, and only receipts decide. Words of the node are used for
 * two things: another chain's signature stops the anchoring, and a price that is too low brings a
 * replacement forward. */
static void on_sent(struct kedge_evm_anchor *a, const struct kedge_evm_answer *answer)
{
    struct kedge_evm_flight *f = &a->state.flights[a->flight];
    enum kedge_evm_refusal why =
        answer->err == KEDGE_E_DENIED ? kedge_evm_refusal_of(answer->text) : KEDGE_EVM_REFUSAL_OTHER;
    bool refused =
        answer->err == KEDGE_E_DENIED && why != KEDGE_EVM_REFUSAL_KNOWN && why != KEDGE_EVM_REFUSAL_NONCE_LOW;
    if (why == KEDGE_EVM_REFUSAL_CHAIN) {
        refuse_chain(a, "the node refuses anchor %llu as signed for another chain than its own (%llu)",
                     (unsigned long long)f->point.seq);
        return;
    }
    /* Sent, or perhaps sent: from here on the receipt decides. Refused ones are tried again by and by. */
    kedgei_evm_say(a, refused ? "anchor %llu was not taken: %.120s" : "anchor %llu is sent",
                   (unsigned long long)f->point.seq, answer->text);
    f->phase = KEDGE_EVM_SENT;
    f->sent_ms = a->now_ms;
    if (a->flight == kedgei_evm_unmined(a)) {
        a->underpriced = why == KEDGE_EVM_REFUSAL_UNDERPRICED;
    }
    if (why == KEDGE_EVM_REFUSAL_FUNDS) {
        snprintf(a->waits_for, sizeof a->waits_for, "money: %.150s", answer->text);
    }
    a->flight++;
    if (answer->err && answer->err != KEDGE_E_DENIED) {
        fail_round(a, answer->text);
    }
}

/* The next number must be the one that the chain expects and that nobody waits with: a second transaction
 * of the same number would replace the first one. Where the node knows fewer of ours than we do, it has not
 * caught up, and nothing is sent. */
static void on_nonce(struct kedge_evm_anchor *a, uint64_t latest)
{
    struct kedge_evm_state *s = &a->state;
    a->stage = KEDGE_EVM_AT_REST;
    if (a->nonce_pending != latest) {
        snprintf(
            a->waits_for, sizeof a->waits_for,
            "transactions of this account that are not ours: number %llu is next, %llu with those waiting",
            (unsigned long long)latest, (unsigned long long)a->nonce_pending);
        return;
    }
    if (s->begun && latest < s->next_nonce) {
        snprintf(a->waits_for, sizeof a->waits_for,
                 "the node: it knows %llu transactions of ours, there are %llu", (unsigned long long)latest,
                 (unsigned long long)s->next_nonce);
        return;
    }
    if (s->begun && latest > s->next_nonce) {
        kedgei_evm_say(a, "someone else has sent with this key: goes on with number %llu",
                       (unsigned long long)latest);
    }
    memset(&a->fresh, 0, sizeof a->fresh);
    a->fresh.nonce = latest;
    a->fresh.point.ns = a->config.ns;
    a->fresh.point.seq = kedgei_evm_tail(a)->seq + 1;
    a->fresh.point.size = a->new_size;
    a->fresh.point.root = a->new_root;
    a->stage = KEDGE_EVM_AT_FEES;
}

/* There is one question at a time, so the stage alone says what an answer is about. `failures` is cleared
 * only when the last of the questions about the chain has an answer: a node that answers the first ones and
 * fails at the others in every round is asked less often, too. */
static void on_answer(struct kedge_evm_anchor *a, const struct kedge_evm_answer *answer)
{
    if (a->stage == KEDGE_EVM_AT_SEND) {
        on_sent(a, answer);
        return;
    }
    if (a->stage == KEDGE_EVM_AT_FOREIGN && answer->err == KEDGE_E_DENIED) { /* no such tag on this chain */
        a->stage = KEDGE_EVM_AT_HEAD;
        return;
    }
    if (answer->err) {
        fail_round(a, answer->text);
        return;
    }
    if (a->stage == KEDGE_EVM_AT_CHAIN) {
        a->flight = a->attempt = 0;
        a->stage = KEDGE_EVM_AT_FINAL;
        if (answer->number != a->config.chain_id) {
            refuse_chain(a, "the node is of chain %llu, the configuration of chain %llu",
                         (unsigned long long)answer->number);
        }
    } else if (a->stage == KEDGE_EVM_AT_FINAL) {
        kedgei_evm_on_final(a, answer);
    } else if (a->stage == KEDGE_EVM_AT_OLD_FINAL) {
        kedgei_evm_on_old_final(a, answer);
    } else if (a->stage == KEDGE_EVM_AT_SAFE) {
        a->safe = answer->found ? answer->number : 0;
        a->stage = KEDGE_EVM_AT_RECEIPT;
    } else if (a->stage == KEDGE_EVM_AT_RECEIPT) {
        kedgei_evm_on_receipt(a, answer);
    } else if (a->stage == KEDGE_EVM_AT_CANON) {
        kedgei_evm_on_canon(a, answer);
    } else if (a->stage == KEDGE_EVM_AT_FOREIGN) {
        kedgei_evm_on_foreign(a, answer);
    } else if (a->stage == KEDGE_EVM_AT_HEAD) {
        a->failures = 0; /* a whole look at the chain */
        kedgei_evm_on_head(a, answer);
    } else if (a->stage == KEDGE_EVM_AT_NONCE_PENDING) {
        a->nonce_pending = answer->number;
        a->stage = KEDGE_EVM_AT_NONCE_LATEST;
    } else if (a->stage == KEDGE_EVM_AT_NONCE_LATEST) {
        on_nonce(a, answer->number);
    } else if (a->stage == KEDGE_EVM_AT_FEES) {
        const struct kedge_evm_flight *old = a->replacing ? &a->state.flights[kedgei_evm_unmined(a)] : NULL;
        a->stage = kedgei_evm_choose_fees(a, answer, old) ? KEDGE_EVM_AT_SIGN : KEDGE_EVM_AT_REST;
    }
}

/* The main chain is compared with what is anchored before anything else is: fewer entries or another root
 * at an anchored size is what anchors are there to show, and no further one covers it up. A main chain that
 * cannot be read at the moment stops new anchors only: what is under way is still followed, for its
 * transactions may be mined and must be replaced, counted and recorded whatever happens here. */
static void on_checkpoint(struct kedge_evm_anchor *a, const struct kedge_evm_event *event)
{
    const struct kedge_evm_point *tail = kedgei_evm_tail(a);
    if (event->err) {
        bool go_on = a->state.flight_count > 0 && a->stage == KEDGE_EVM_AT_READ;
        kedgei_evm_say(a, "the main chain cannot be read: %s", kedge_strerror(event->err));
        a->failures += go_on || a->failures >= 32 ? 0 : 1;
        a->stage = go_on ? KEDGE_EVM_AT_CHAIN : KEDGE_EVM_AT_REST;
        return;
    }
    a->new_size = event->size;
    a->new_root = event->root;
    a->root_at = event->root_at;
    if (a->stage == KEDGE_EVM_AT_ADOPT) {
        kedgei_evm_on_adopt(a);
        return;
    }
    a->want_plan = event->size > tail->size;
    a->stage = KEDGE_EVM_AT_CHAIN;
    if (!a->want_plan && a->state.flight_count == 0) {
        a->failures = 0;
        a->stage = KEDGE_EVM_AT_REST;
    }
    if (event->size < tail->size) {
        kedgei_evm_stop(a, KEDGE_E_SHORTER, "the main chain is signed up to %llu entries, %llu are anchored",
                        (unsigned long long)event->size, (unsigned long long)tail->size);
    } else if (tail->size > 0 && !kedge_hash_eq(&event->root_at, &tail->root)) {
        kedgei_evm_stop(a, KEDGE_E_FORK,
                        "the main chain's first %llu entries have another root than the anchored",
                        (unsigned long long)tail->size);
    }
}

/* Signed, and saved before it is sent (the next stage): after a crash the same bytes are sent again, never
 * a second transaction for the same anchor. */
static void on_raw(struct kedge_evm_anchor *a, const struct kedge_evm_event *event)
{
    struct kedge_evm_state *s = &a->state;
    if (event->err || event->raw.len > KEDGE_EVM_ANCHOR_RAW_MAX) {
        kedgei_evm_say(a, "the key does not sign: %s",
                       kedge_strerror(event->err ? event->err : KEDGE_E_TOO_LONG));
        a->stage = KEDGE_EVM_AT_REST;
        return;
    }
    if (!a->replacing) {
        s->flights[s->flight_count++] = a->fresh;
        s->next_nonce = a->fresh.nonce + 1;
        s->planned_ms = a->now_ms;
        s->begun = true;
        a->want_plan = false;
    }
    struct kedge_evm_flight *f = &s->flights[kedgei_evm_unmined(a)];
    struct kedge_evm_attempt *t = &f->attempts[f->attempt_count++];
    kedge_keccak256(event->raw, &t->hash);
    memcpy(t->raw, event->raw.ptr, event->raw.len);
    t->raw_len = (uint16_t)event->raw.len;
    t->max_fee = a->fee;
    t->priority_fee = a->priority;
    t->signed_ms = a->now_ms;
    f->since_ms = a->now_ms;
    f->phase = KEDGE_EVM_SIGNED;
    if (a->replacing) {
        kedgei_evm_say(a, "anchor %llu: replaced, %llu wei per gas", (unsigned long long)f->point.seq,
                       (unsigned long long)a->fee);
    } else {
        kedgei_evm_say(a, "anchor %llu: %llu entries, transaction %llu of the account",
                       (unsigned long long)f->point.seq, (unsigned long long)f->point.size,
                       (unsigned long long)f->nonce);
    }
    a->underpriced = false;
    a->stage = KEDGE_EVM_AT_SAVE_SIGNED;
}

/* Evidence is kept oldest first (begin_record), so it is always flight 0 that is done. Its point stays as
 * `last`, on which the next number counts. */
static void on_recorded(struct kedge_evm_anchor *a)
{
    struct kedge_evm_state *s = &a->state;
    s->last = s->flights[0].point;
    s->flight_count--;
    memmove(s->flights, s->flights + 1, s->flight_count * sizeof s->flights[0]);
    a->dirty = true;
}

/* `again` is set after a newly signed transaction was saved: the round goes back to sending, sends that one,
 * and rests. Planning another from the same answers of the node would use a number and a head that are older
 * than what was just signed. */
static void on_done(struct kedge_evm_anchor *a, int err)
{
    if (err) { /* what is on disk is unknown: only a new start can tell */
        snprintf(a->state.stop_text, sizeof a->state.stop_text, "%s: %s",
                 a->stage == KEDGE_EVM_AT_RECORD ? "the evidence of a final anchor cannot be kept"
                                                 : "the state cannot be written",
                 kedge_strerror(err));
        a->state.stop_err = err;
        a->stage = KEDGE_EVM_AT_STOP;
        return;
    }
    if (a->stage == KEDGE_EVM_AT_RECORD) {
        on_recorded(a);
        return;
    }
    a->dirty = false;
    a->again = a->stage == KEDGE_EVM_AT_SAVE_SIGNED;
    a->flight = 0;
    a->stage = a->state.stop_err ? KEDGE_EVM_AT_STOP : KEDGE_EVM_AT_SEND;
}

void kedgei_evm_take(struct kedge_evm_anchor *a, const struct kedge_evm_event *event)
{
    if (event->kind == KEDGE_EVM_ANSWER) {
        on_answer(a, event->answer);
    } else if (event->kind == KEDGE_EVM_CHECKPOINT) {
        on_checkpoint(a, event);
    } else if (event->kind == KEDGE_EVM_RAW) {
        on_raw(a, event);
    } else {
        on_done(a, event->err);
    }
}
