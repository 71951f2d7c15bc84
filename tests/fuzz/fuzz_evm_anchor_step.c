/* The anchoring machine against a node that answers whatever the input says. However it is lied to: it sends
 * only what was saved before, it signs within fee limit and budget, one number of the log keeps one number of
 * the account and one root, and what it saves it can load. */
#include <string.h>

#include "chain/anchor/evm_anchor.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

enum { ROUNDS = 64, TURNS = 400 };

static struct kedge_evm_anchor machine, saved;
static const struct kedge_evm_config config = {.chain_id = 5,
                                               .interval_ms = 1000,
                                               .poll_ms = 100,
                                               .resend_ms = 300,
                                               .replace_ms = 500,
                                               .gas = 100000,
                                               .max_fee = 1000,
                                               .daily_budget = 1000000000,
                                               .final = KEDGE_EVM_FINAL_FINALIZED};

/* Small numbers often, the machine's own sometimes, large ones seldom. */
static uint64_t number(struct kedge_reader *r)
{
    uint8_t v = kedge_read_u8(r);
    return v == 255   ? kedge_read_u64(r)
           : v == 254 ? config.chain_id
           : v == 253 ? machine.state.next_nonce
                      : v % 32;
}

static void hash(struct kedge_reader *r, struct kedge_hash *ret)
{
    memset(ret, 0, sizeof *ret);
    ret->b[0] = kedge_read_u8(r) % 4;
}

/* A receipt of one of its own anchors as it should be, or with something else in it. */
static void receipt(struct kedge_reader *r, const struct kedge_evm_effect *fx, struct kedge_evm_receipt *ret)
{
    uint8_t kind = kedge_read_u8(r);
    ret->succeeded = kind % 16 != 0;
    ret->has_event = kind % 16 != 1;
    ret->block = number(r);
    hash(r, &ret->block_hash);
    for (uint32_t i = 0; i < machine.state.flight_count; i++) {
        const struct kedge_evm_flight *f = &machine.state.flights[i];
        for (uint32_t k = 0; k < f->attempt_count; k++) {
            if (kedge_hash_eq(&f->attempts[k].hash, &fx->hash)) {
                ret->event.point = f->point;
            }
        }
    }
    if (kind % 16 == 2) {
        ret->event.point.size++;
    }
}

static void answer(struct kedge_reader *r, const struct kedge_evm_effect *fx, struct kedge_evm_answer *ret)
{
    static const char *const words[] = {
        "already known", "nonce too low", "underpriced", "insufficient funds", "?", "chain id"};
    static const int errs[] = {KEDGE_E_DENIED, KEDGE_E_TIMEOUT, KEDGE_E_UNREACHABLE, KEDGE_E_FORMAT};
    uint8_t kind = kedge_read_u8(r);
    memset(ret, 0, sizeof *ret);
    if (kind > 230) {
        ret->err = errs[kind % 4];
        const char *text = words[kedge_read_u8(r) % 6];
        memcpy(ret->text, text, strlen(text));
        return;
    }
    ret->found = kind % 4 != 0;
    ret->number = fx->method == KEDGE_EVM_CALL_CHAIN_ID && kind < 200 ? config.chain_id
                  : fx->method == KEDGE_EVM_CALL_BLOCK_AT             ? fx->number
                                                                      : number(r);
    ret->base_fee = number(r);
    ret->priority_fee = number(r);
    hash(r, &ret->hash);
    if (fx->method == KEDGE_EVM_CALL_RECEIPT && ret->found) {
        receipt(r, fx, &ret->receipt);
    }
    const struct kedge_evm_state *s = &machine.state;
    const struct kedge_evm_point *p = s->flight_count > 0 ? &s->flights[s->flight_count - 1].point : &s->last;
    ret->head.seq = kind % 8 ? p->seq : number(r);
    ret->head.size = kind % 16 ? p->size : number(r);
    ret->head.root = p->root;
}

static void check_send(struct kedge_view raw)
{
    bool found = false;
    for (uint32_t i = 0; i < saved.state.flight_count; i++) {
        const struct kedge_evm_flight *f = &saved.state.flights[i];
        for (uint32_t k = 0; k < f->attempt_count; k++) {
            found |= kedge_view_eq(kedge_view_of(f->attempts[k].raw, f->attempts[k].raw_len), raw);
        }
    }
    KEDGE_ASSERT(found);
}

static void check_sign(const struct kedge_evm_effect *fx)
{
    struct kedge_evm_point p;
    KEDGE_ASSERT(fx->tx.max_fee <= config.max_fee && fx->tx.priority_fee <= fx->tx.max_fee);
    KEDGE_ASSERT(kedge_evm_anchor_call_decode(fx->tx.data, &p) == KEDGE_OK);
    for (uint32_t i = 0; i < machine.state.flight_count; i++) {
        const struct kedge_evm_flight *f = &machine.state.flights[i];
        KEDGE_ASSERT((f->point.seq == p.seq) == (f->nonce == fx->tx.nonce));
        KEDGE_ASSERT(f->point.seq != p.seq || kedge_evm_point_eq(&f->point, &p));
    }
}

static void save(struct kedge_buf *disk)
{
    kedge_buf_clear(disk);
    kedge_evm_anchor_save(&machine, disk);
    KEDGE_ASSERT(kedge_evm_anchor_init(&saved, &config, NULL) == KEDGE_OK);
    KEDGE_ASSERT(kedge_evm_anchor_load(&saved, kedge_buf_view(disk), NULL) == KEDGE_OK);
}

/* One round; false when it stopped. */
static bool round_of(struct kedge_reader *r, uint64_t now, struct kedge_buf *disk, struct kedge_buf *raw)
{
    static struct kedge_evm_effect fx;
    static struct kedge_evm_answer a;
    struct kedge_evm_event ev = {.kind = KEDGE_EVM_TIMER};
    bool signed_now = false;
    for (int turn = 0; turn < TURNS; turn++) {
        kedge_evm_anchor_step(&machine, &ev, now, &fx);
        memset(&ev, 0, sizeof ev);
        ev.kind = KEDGE_EVM_DONE;
        if (fx.kind == KEDGE_EVM_WAIT || fx.kind == KEDGE_EVM_STOP) {
            return fx.kind == KEDGE_EVM_WAIT;
        }
        if (fx.kind == KEDGE_EVM_CALL) {
            if (fx.method == KEDGE_EVM_CALL_SEND) {
                check_send(fx.raw);
            }
            answer(r, &fx, &a);
            ev = (struct kedge_evm_event){.kind = KEDGE_EVM_ANSWER, .answer = &a};
        } else if (fx.kind == KEDGE_EVM_READ) {
            ev.kind = KEDGE_EVM_CHECKPOINT;
            ev.size = 40 + now / 4000; /* grows; the root of n entries begins with n */
            ev.root.b[0] = (uint8_t)ev.size;
            ev.root_at.b[0] = (uint8_t)fx.at_size;
        } else if (fx.kind == KEDGE_EVM_SIGN) {
            check_sign(&fx);
            signed_now = true;
            kedge_buf_clear(raw);
            KEDGE_ASSERT(kedge_evm_tx_preimage(&fx.tx, raw) == KEDGE_OK); /* as good as a signature here */
            ev = (struct kedge_evm_event){.kind = KEDGE_EVM_RAW, .raw = kedge_buf_view(raw)};
        } else if (fx.kind == KEDGE_EVM_SAVE) {
            save(disk);
            KEDGE_ASSERT(!signed_now || kedge_evm_anchor_committed(&machine) <= config.daily_budget);
            signed_now = false;
        }
    }
    KEDGE_ASSERT(fx.kind == KEDGE_EVM_WAIT); /* a round has an end */
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct kedge_reader r = kedge_reader_of(kedge_view_of(data, len));
    struct kedge_buf disk KEDGE_CLEANUP(kedge_buf_deinit), raw KEDGE_CLEANUP(kedge_buf_deinit);
    uint64_t now = 1;
    kedge_buf_init(&disk, KEDGE_EVM_STATE_MAX);
    kedge_buf_init(&raw, KEDGE_EVM_RAW_MAX);
    KEDGE_ASSERT(kedge_evm_anchor_init(&machine, &config, NULL) == KEDGE_OK);
    KEDGE_ASSERT(kedge_evm_anchor_init(&saved, &config, NULL) == KEDGE_OK);
    for (int round = 0; round < ROUNDS && !r.failed && round_of(&r, now, &disk, &raw); round++) {
        uint64_t deadline = kedge_evm_anchor_deadline(&machine);
        now = deadline > now ? deadline : now + 1;
    }
    return 0;
}
