/* The rounds of questions. One round: the main chain (when an anchor is due), chain id, final and safe block,
 * the receipts of all that is under way, the contract's head; then what follows from them: evidence of final
 * anchors, the durable state, sending again, a replacement, a new anchor. A question that the node does not
 * answer ends the round; the next one begins from the start, later each time. */
#include "chain/anchor/evm_anchor.h"

#include <stdio.h>
#include <string.h>

#include "chain/anchor/evm_anchor_impl.h"

enum { BACK_OFF_MAX_MS = 300 * 1000, MOVES_MAX = 256 };

int kedge_evm_anchor_init(struct kedge_evm_anchor *a, const struct kedge_evm_config *config,
                          struct kedge_diag *reterr)
{
    if (config->gas == 0 || config->max_fee == 0 || config->interval_ms == 0 || config->poll_ms == 0
        || config->replace_ms == 0 || config->resend_ms == 0 || config->chain_id == 0) {
        return kedge_diag_set(reterr, KEDGE_E_ARG,
                              "chain id, interval, gas limit and largest fee must not be zero");
    }
    if (config->daily_budget < config->gas) {
        return kedge_diag_set(
            reterr, KEDGE_E_ARG,
            "a daily budget of %llu wei is not enough for one anchor of %llu gas at any fee",
            (unsigned long long)config->daily_budget, (unsigned long long)config->gas);
    }
    memset(a, 0, sizeof *a);
    a->config = *config;
    a->state.last.ns = config->ns;
    return KEDGE_OK;
}

/* The operator says that the state here no longer tells what there is. What is under way is forgotten,
 * but its price is charged first, because any of it may still be mined: giving up a state must not be a
 * way around the budget. The next round then takes over what the contract has, if it is of this main
 * chain. */
void kedge_evm_anchor_adopt(struct kedge_evm_anchor *a)
{
    struct kedge_evm_state *s = &a->state;
    for (uint32_t i = 0; i < s->flight_count; i++) {
        if (s->flights[i].charged_hour == 0) {
            kedgei_evm_charge(a, &s->flights[i]);
        }
    }
    s->flight_count = 0;
    s->begun = false;
    s->next_nonce = 0;
    s->final_number = 0;
    s->stop_err = KEDGE_OK;
    s->stop_text[0] = '\0';
    memset(&s->last, 0, sizeof s->last);
    s->last.ns = a->config.ns;
    a->dirty = true; /* or the next start would find the stop again */
    a->stage = KEDGE_EVM_AT_REST;
}

uint64_t kedge_evm_anchor_deadline(const struct kedge_evm_anchor *a)
{
    return a->deadline_ms;
}

bool kedge_evm_anchor_is_settled(const struct kedge_evm_anchor *a)
{
    return a->stage == KEDGE_EVM_AT_REST && a->state.flight_count == 0 && !a->want_plan && a->failures == 0
           && a->deadline_ms != 0;
}

uint64_t kedge_evm_anchor_committed(const struct kedge_evm_anchor *a)
{
    return kedgei_evm_committed(a);
}

/* ---- what each stage asks; false: nothing to ask here, a->stage has moved on ---- */

static bool ask(struct kedge_evm_effect *fx, enum kedge_evm_method method, enum kedge_evm_tag tag)
{
    fx->kind = KEDGE_EVM_CALL;
    fx->method = method;
    fx->tag = tag;
    return true;
}

static bool move(struct kedge_evm_anchor *a, enum kedge_evm_stage to)
{
    a->stage = to;
    return false;
}

static bool read_main(struct kedge_evm_anchor *a, uint64_t at_size, struct kedge_evm_effect *fx)
{
    fx->kind = KEDGE_EVM_READ;
    fx->at_size = at_size;
    a->at_size = at_size;
    return true;
}

/* A new anchor is planned only when none is waiting to be mined. So the key has at most one pending
 * transaction, and a replacement is always of that one. A clock that was set back since does not stop
 * anchoring; the budget goes on to count. */
static bool is_plan_due(const struct kedge_evm_anchor *a)
{
    const struct kedge_evm_state *s = &a->state;
    return s->flight_count < KEDGE_EVM_FLIGHT_MAX && kedgei_evm_unmined(a) == s->flight_count
           && (a->now_ms < s->planned_ms || a->now_ms - s->planned_ms >= a->config.interval_ms);
}

/* The main chain is read first, and only when an anchor is due: with nothing new there and nothing under way
 * the round ends here, and no node is asked. */
static bool begin_read(struct kedge_evm_anchor *a, struct kedge_evm_effect *fx)
{
    a->want_plan = false;
    a->waits_for[0] = '\0';
    if (is_plan_due(a)) {
        return read_main(a, kedgei_evm_tail(a)->size, fx);
    }
    return move(a, a->state.flight_count > 0 ? KEDGE_EVM_AT_CHAIN : KEDGE_EVM_AT_REST);
}

static bool begin_receipt(struct kedge_evm_anchor *a, struct kedge_evm_effect *fx)
{
    if (a->flight == a->state.flight_count) {
        return move(a, KEDGE_EVM_AT_FOREIGN);
    }
    const struct kedge_evm_flight *f = &a->state.flights[a->flight];
    fx->hash = f->attempts[f->attempt_count - 1 - a->attempt].hash; /* the newest first */
    return ask(fx, KEDGE_EVM_CALL_RECEIPT, KEDGE_EVM_LATEST);
}

/* A transaction that stays unmined for long may have lost its number to another one of the same key. The
 * finalised number of transactions shows it: what is final cannot come back. */
static bool begin_foreign(struct kedge_evm_anchor *a, struct kedge_evm_effect *fx)
{
    uint32_t i = kedgei_evm_unmined(a);
    if (i == a->state.flight_count
        || a->now_ms - a->state.flights[i].attempts[0].signed_ms < a->config.resend_ms) {
        return move(a, KEDGE_EVM_AT_HEAD);
    }
    bool safe = a->config.final == KEDGE_EVM_FINAL_SAFE;
    return ask(fx, KEDGE_EVM_CALL_NONCE, safe ? KEDGE_EVM_TAG_SAFE : KEDGE_EVM_TAG_FINALIZED);
}

/* Evidence is kept for the oldest anchor first and only when it is final, so the numbers of recorded
 * anchors have no gap. */
static bool begin_record(struct kedge_evm_anchor *a, struct kedge_evm_effect *fx)
{
    const struct kedge_evm_flight *first = &a->state.flights[0];
    enum kedge_evm_phase wanted =
        a->config.final == KEDGE_EVM_FINAL_SAFE ? KEDGE_EVM_SAFE : KEDGE_EVM_FINALIZED;
    if (a->state.flight_count == 0 || first->phase < wanted) {
        if (a->final > a->state.final_number) {
            a->state.final_number = a->final;
            a->state.final_hash = a->final_hash;
            a->dirty = true;
        }
        return move(a, KEDGE_EVM_AT_SAVE);
    }
    fx->kind = KEDGE_EVM_RECORD;
    fx->flight = first;
    return true;
}

static bool begin_save(struct kedge_evm_anchor *a, struct kedge_evm_effect *fx)
{
    if (a->dirty) {
        fx->kind = KEDGE_EVM_SAVE;
        return true;
    }
    a->flight = 0;
    return move(a, KEDGE_EVM_AT_SEND);
}

static bool is_send_due(const struct kedge_evm_anchor *a, const struct kedge_evm_flight *f)
{
    return f->phase == KEDGE_EVM_SIGNED
           || (f->phase == KEDGE_EVM_SENT
               && (f->sent_ms == 0 || a->now_ms - f->sent_ms >= a->config.resend_ms));
}

/* After the sending: a replacement for the first unmined one, or a new anchor, or rest. */
static bool decide_next(struct kedge_evm_anchor *a)
{
    uint32_t i = kedgei_evm_unmined(a);
    if (a->again) { /* what was signed in this round has been sent */
        return move(a, KEDGE_EVM_AT_REST);
    }
    if (i < a->state.flight_count) {
        const struct kedge_evm_flight *f = &a->state.flights[i];
        uint64_t since = a->now_ms - f->since_ms;
        a->replacing = true;
        return move(a, f->attempt_count < KEDGE_EVM_ATTEMPTS_MAX
                               && (a->underpriced || since >= a->config.replace_ms)
                           ? KEDGE_EVM_AT_FEES
                           : KEDGE_EVM_AT_REST);
    }
    a->replacing = false;
    if (a->want_plan && a->head.seq == kedgei_evm_tail(a)->seq) {
        return move(a, KEDGE_EVM_AT_NONCE_PENDING);
    }
    if (a->want_plan) {
        snprintf(a->waits_for, sizeof a->waits_for,
                 "the node: its contract is at anchor %llu, %llu are mined", (unsigned long long)a->head.seq,
                 (unsigned long long)kedgei_evm_tail(a)->seq);
    }
    return move(a, KEDGE_EVM_AT_REST);
}

/* Everything that was signed and saved is sent, and sent again now and then until it has a receipt, since
 * nodes forget transactions that wait. That is harmless: the bytes are the same, so at most one of them
 * is mined. */
static bool begin_send(struct kedge_evm_anchor *a, struct kedge_evm_effect *fx)
{
    for (; a->flight < a->state.flight_count; a->flight++) {
        const struct kedge_evm_flight *f = &a->state.flights[a->flight];
        if (is_send_due(a, f)) {
            const struct kedge_evm_attempt *t = &f->attempts[f->attempt_count - 1];
            fx->raw = kedge_view_of(t->raw, t->raw_len);
            return ask(fx, KEDGE_EVM_CALL_SEND, KEDGE_EVM_LATEST);
        }
    }
    return decide_next(a);
}

/* A replacement has the nonce and the call of the anchor that it replaces and differs in its fees alone.
 * So only one of the attempts can be mined, and whichever it is, it anchors the same point. */
static bool begin_sign(struct kedge_evm_anchor *a, struct kedge_evm_effect *fx)
{
    uint32_t i = kedgei_evm_unmined(a);
    const struct kedge_evm_flight *f = a->replacing ? &a->state.flights[i] : &a->fresh;
    kedge_evm_anchor_call(&f->point, a->call);
    fx->kind = KEDGE_EVM_SIGN;
    fx->tx = (struct kedge_evm_tx){.kind = KEDGE_EVM_EIP1559,
                                   .chain_id = a->config.chain_id,
                                   .nonce = f->nonce,
                                   .gas = a->config.gas,
                                   .max_fee = a->fee,
                                   .priority_fee = a->priority,
                                   .to = a->config.contract,
                                   .data = kedge_view_of(a->call, sizeof a->call)};
    return true;
}

/* Waits until the next round: twice as long after each failure up to five minutes, or less when an anchor
 * falls due before. */
static bool rest(struct kedge_evm_anchor *a, struct kedge_evm_effect *fx)
{
    const struct kedge_evm_state *s = &a->state;
    uint64_t wait = a->config.poll_ms;
    for (uint32_t i = 0; i < a->failures && wait < BACK_OFF_MAX_MS; i++) {
        wait *= 2;
    }
    wait = a->failures > 0 && wait > BACK_OFF_MAX_MS ? BACK_OFF_MAX_MS : wait;
    a->deadline_ms = a->now_ms + wait;
    if (s->flight_count == 0 && !a->want_plan && s->planned_ms <= a->now_ms
        && s->planned_ms + a->config.interval_ms > a->deadline_ms) {
        a->deadline_ms = s->planned_ms + a->config.interval_ms;
    }
    fx->kind = KEDGE_EVM_WAIT;
    if (!a->said[0] && a->waits_for[0]) {
        kedgei_evm_say(a, "waits for %.200s", a->waits_for);
    }
    return true;
}

/* The effect of the current stage. True: the host has to do it, and its answer is the next event. False:
 * the stage had nothing to do and has moved on. */
static bool begin(struct kedge_evm_anchor *a, struct kedge_evm_effect *fx)
{
    switch (a->stage) {
    case KEDGE_EVM_AT_REST:
        return rest(a, fx);
    case KEDGE_EVM_AT_READ:
        return begin_read(a, fx);
    case KEDGE_EVM_AT_CHAIN:
        return ask(fx, KEDGE_EVM_CALL_CHAIN_ID, KEDGE_EVM_LATEST);
    case KEDGE_EVM_AT_FINAL:
        return ask(fx, KEDGE_EVM_CALL_BLOCK, KEDGE_EVM_TAG_FINALIZED);
    case KEDGE_EVM_AT_OLD_FINAL:
        fx->number = a->state.final_number;
        return ask(fx, KEDGE_EVM_CALL_BLOCK_AT, KEDGE_EVM_LATEST);
    case KEDGE_EVM_AT_SAFE:
        return ask(fx, KEDGE_EVM_CALL_BLOCK, KEDGE_EVM_TAG_SAFE);
    case KEDGE_EVM_AT_RECEIPT:
        return begin_receipt(a, fx);
    case KEDGE_EVM_AT_CANON:
        fx->number = a->receipt.block;
        return ask(fx, KEDGE_EVM_CALL_BLOCK_AT, KEDGE_EVM_LATEST);
    case KEDGE_EVM_AT_FOREIGN:
        return begin_foreign(a, fx);
    case KEDGE_EVM_AT_HEAD:
        return ask(fx, KEDGE_EVM_CALL_HEADS, KEDGE_EVM_LATEST);
    case KEDGE_EVM_AT_ADOPT:
        return read_main(a, a->head.size, fx);
    case KEDGE_EVM_AT_RECORD:
        return begin_record(a, fx);
    case KEDGE_EVM_AT_SAVE:
        return begin_save(a, fx);
    case KEDGE_EVM_AT_SEND:
        return begin_send(a, fx);
    case KEDGE_EVM_AT_NONCE_PENDING:
        return ask(fx, KEDGE_EVM_CALL_NONCE, KEDGE_EVM_PENDING);
    case KEDGE_EVM_AT_NONCE_LATEST:
        return ask(fx, KEDGE_EVM_CALL_NONCE, KEDGE_EVM_LATEST);
    case KEDGE_EVM_AT_FEES:
        return ask(fx, KEDGE_EVM_CALL_FEES, KEDGE_EVM_LATEST);
    case KEDGE_EVM_AT_SIGN:
        return begin_sign(a, fx);
    case KEDGE_EVM_AT_SAVE_SIGNED:
        fx->kind = KEDGE_EVM_SAVE;
        return true;
    case KEDGE_EVM_AT_STOP:
        break;
    }
    fx->kind = KEDGE_EVM_STOP;
    fx->err = a->state.stop_err;
    kedgei_evm_say(a, "%s", a->state.stop_text);
    return true;
}

/* One event in, one effect out. Stages that have nothing to do pass on to the next, at most a few times for
 * each flight; MOVES_MAX makes a circle between stages, which could only be a mistake here, end the process
 * instead of running for ever. Time never runs backwards here: a machine whose clock is set back would
 * otherwise plan an anchor again that it has just planned. */
void kedge_evm_anchor_step(struct kedge_evm_anchor *a, const struct kedge_evm_event *event, uint64_t now_ms,
                           struct kedge_evm_effect *ret_effect)
{
    a->now_ms = now_ms > a->now_ms ? now_ms : a->now_ms;
    a->said[0] = '\0';
    if (a->state.stop_err && a->stage == KEDGE_EVM_AT_REST) {
        a->stage = KEDGE_EVM_AT_STOP;
    } else if (event->kind == KEDGE_EVM_TIMER) {
        a->stage = KEDGE_EVM_AT_READ;
        a->again = false;
    } else {
        kedgei_evm_take(a, event);
    }
    memset(ret_effect, 0, sizeof *ret_effect);
    for (int moves = 0; !begin(a, ret_effect); moves++) {
        KEDGE_ASSERT(moves < MOVES_MAX);
    }
    memcpy(ret_effect->said, a->said, sizeof a->said);
}
