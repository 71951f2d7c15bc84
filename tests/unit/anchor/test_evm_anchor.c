/* The state machine against a simulated node. Each seed: hours of faults (lost answers, a dead node, fee
 * spikes, reorganisations that empty the pool, crashes of the host around its writes), then quiet; the
 * invariants of evm_anchor.h are checked outside the machine. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/base/text.h"
#include "tests/unit/anchor/sim_node.h"

enum { HOUR = 3600 * 1000, RECORDS = 512 };

struct world {
    struct kedge_evm_config config;
    struct kedge_secp_secret key;
    struct kedge_evm_anchor machine, durable;
    struct sim_node node;
    struct kedge_buf disk;
    uint64_t now_ms, main_size, grow_ms;
    struct kedge_evm_point recorded[RECORDS]; /* evidence written, by seq */
    uint64_t recorded_count, planned_last_ms, crashes, replaced;
    bool crash_faults, stopped;
    int stop_err;
    char said[KEDGE_EVM_TEXT_MAX];
};

static void root_of(uint64_t size, struct kedge_hash *ret)
{
    uint8_t be[8];
    kedge_store_be64(be, size);
    kedge_sha256(kedge_view_of(be, sizeof be), ret);
}

static void config_of(struct world *w)
{
    struct kedge_secp_public public;
    memset(w->key.b, 0x46, sizeof w->key.b);
    ck_assert_int_eq(kedge_secp_public_of(&w->key, &public), KEDGE_OK);
    w->config = (struct kedge_evm_config){.chain_id = 31337,
                                          .contract = {{1, 2, 3}},
                                          .interval_ms = 10 * 60 * 1000,
                                          .poll_ms = 24000,
                                          .resend_ms = 60000,
                                          .replace_ms = 180000,
                                          .gas = 120000,
                                          .max_fee = 8000000000,
                                          .daily_budget = 60000000000000000,
                                          .final = KEDGE_EVM_FINAL_FINALIZED};
    kedge_evm_address_of_key(&public, &w->config.sender);
    kedge_evm_namespace(kedge_view_str("example.org/main"), &w->config.ns);
}

static struct world *new_world(uint64_t seed)
{
    struct world *w = kedge_mem_new(1, sizeof *w);
    ck_assert_ptr_nonnull(w);
    config_of(w);
    sim_init(&w->node, seed, &w->config);
    kedge_buf_init(&w->disk, KEDGE_EVM_STATE_MAX);
    ck_assert_int_eq(kedge_evm_anchor_init(&w->machine, &w->config, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_evm_anchor_init(&w->durable, &w->config, NULL), KEDGE_OK);
    w->main_size = 3;
    w->now_ms = w->node.now_ms = 1700000000000;
    return w;
}

static void free_world(struct world *w)
{
    kedge_buf_deinit(&w->disk);
    kedge_mem_free(w);
}

static void save(struct world *w)
{
    struct kedge_diag d = {.text = ""};
    kedge_buf_clear(&w->disk);
    kedge_evm_anchor_save(&w->machine, &w->disk);
    ck_assert_int_eq(w->disk.err, KEDGE_OK);
    int err = kedge_evm_anchor_load(&w->durable, kedge_buf_view(&w->disk), &d);
    ck_assert_msg(err == KEDGE_OK, "%s", d.text);
    struct kedge_buf again KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&again, KEDGE_EVM_STATE_MAX);
    kedge_evm_anchor_save(&w->durable, &again);
    ck_assert(kedge_view_eq(kedge_buf_view(&again), kedge_buf_view(&w->disk)));
}

static void restart(struct world *w)
{
    w->crashes++;
    ck_assert_int_eq(kedge_evm_anchor_init(&w->machine, &w->config, NULL), KEDGE_OK);
    if (w->disk.len > 0) {
        ck_assert_int_eq(kedge_evm_anchor_load(&w->machine, kedge_buf_view(&w->disk), NULL), KEDGE_OK);
    }
}

/* Durable before the first send: the bytes stand in what is on disk. */
static void check_durable(const struct world *w, struct kedge_view raw)
{
    const struct kedge_evm_state *s = &w->durable.state;
    for (uint32_t i = 0; i < s->flight_count; i++) {
        for (uint32_t k = 0; k < s->flights[i].attempt_count; k++) {
            const struct kedge_evm_attempt *t = &s->flights[i].attempts[k];
            if (kedge_view_eq(kedge_view_of(t->raw, t->raw_len), raw)) {
                return;
            }
        }
    }
    ck_abort_msg("sent before it was durable");
}

/* A number of the log belongs to one number of the account, and the interval is kept between new anchors. */
static void check_signing(struct world *w, const struct kedge_evm_effect *fx)
{
    struct kedge_evm_point p;
    ck_assert_int_eq(kedge_evm_anchor_call_decode(fx->tx.data, &p), KEDGE_OK);
    ck_assert_uint_le(fx->tx.max_fee, w->config.max_fee);
    bool replacement = false;
    for (uint32_t i = 0; i < w->node.tx_count; i++) {
        const struct sim_tx *t = &w->node.txs[i];
        if (!t->ours) {
            continue;
        }
        const struct kedge_evm_point other = t->point;
        ck_assert_int_eq(other.seq == p.seq, t->tx.nonce == fx->tx.nonce);
        ck_assert(other.seq != p.seq || kedge_evm_point_eq(&other, &p));
        replacement |= other.seq == p.seq;
    }
    const struct kedge_evm_state *s = &w->durable.state;
    replacement |= s->flight_count > 0 && s->flights[s->flight_count - 1].point.seq >= p.seq;
    const struct kedge_evm_flight *f = &w->machine.state.flights[0];
    for (uint32_t i = 0; i < w->machine.state.flight_count;
         i++, f++) { /* an eighth more than the one before */
        if (f->point.seq == p.seq) {
            const struct kedge_evm_attempt *old = &f->attempts[f->attempt_count - 1];
            ck_assert_uint_ge(8 * fx->tx.max_fee, 9 * old->max_fee);
            ck_assert_uint_ge(8 * fx->tx.priority_fee, 9 * old->priority_fee);
        }
    }
    w->replaced += replacement;
    if (!replacement) {
        ck_assert_msg(w->planned_last_ms == 0 || w->disk.len == 0
                          || w->now_ms - s->planned_ms >= w->config.interval_ms,
                      "two anchors in one interval");
        w->planned_last_ms = w->now_ms;
    }
}

static void read_main(struct world *w, const struct kedge_evm_effect *fx, struct kedge_evm_event *ev)
{
    ev->kind = KEDGE_EVM_CHECKPOINT;
    ev->size = w->main_size;
    root_of(w->main_size, &ev->root);
    if (fx->at_size > 0 && fx->at_size <= w->main_size) {
        root_of(fx->at_size, &ev->root_at);
    }
}

static bool crashes(struct world *w, uint64_t one_in)
{
    return w->crash_faults && kedge_rng_below(&w->node.rng, one_in) == 0;
}

/* One round until the machine waits or stops. */
static void run_round(struct world *w)
{
    struct kedge_evm_event ev = {.kind = KEDGE_EVM_TIMER};
    struct kedge_evm_effect fx;
    struct kedge_evm_answer answer;
    struct kedge_buf raw KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&raw, KEDGE_EVM_RAW_MAX);
    for (int turns = 0;; turns++) {
        ck_assert_int_lt(turns, 2000);
        kedge_evm_anchor_step(&w->machine, &ev, w->now_ms, &fx);
        memset(&ev, 0, sizeof ev);
        if (fx.said[0]) {
            memcpy(w->said, fx.said, sizeof w->said);
        }
        if (crashes(w, 400)) {
            restart(w);
            return;
        }
        if (fx.kind == KEDGE_EVM_WAIT) {
            return;
        }
        if (fx.kind == KEDGE_EVM_STOP) {
            w->stopped = true;
            w->stop_err = fx.err;
            return;
        }
        ev.kind = KEDGE_EVM_DONE;
        if (fx.kind == KEDGE_EVM_CALL) {
            if (fx.method == KEDGE_EVM_CALL_SEND) {
                check_durable(w, fx.raw);
            }
            sim_answer(&w->node, &fx, &answer);
            ev = (struct kedge_evm_event){.kind = KEDGE_EVM_ANSWER, .answer = &answer};
        } else if (fx.kind == KEDGE_EVM_READ) {
            read_main(w, &fx, &ev);
        } else if (fx.kind == KEDGE_EVM_SIGN) {
            check_signing(w, &fx);
            kedge_buf_clear(&raw);
            ck_assert_int_eq(kedge_evm_tx_sign(&fx.tx, &w->key, &raw, NULL), KEDGE_OK);
            ev = (struct kedge_evm_event){.kind = KEDGE_EVM_RAW, .raw = kedge_buf_view(&raw)};
        } else if (fx.kind == KEDGE_EVM_SAVE) {
            save(w);
            if (crashes(w, 20)) { /* written, but not told */
                restart(w);
                return;
            }
        } else if (fx.kind == KEDGE_EVM_RECORD) {
            ck_assert_uint_lt(fx.flight->point.seq, RECORDS);
            w->recorded[fx.flight->point.seq] = fx.flight->point;
            w->recorded_count =
                fx.flight->point.seq > w->recorded_count ? fx.flight->point.seq : w->recorded_count;
        }
    }
}

static void run_until(struct world *w, uint64_t end_ms)
{
    while (w->now_ms < end_ms && !w->stopped) {
        run_round(w);
        uint64_t deadline = kedge_evm_anchor_deadline(&w->machine);
        w->now_ms = deadline > w->now_ms ? deadline : w->now_ms + 1000;
        if (w->grow_ms > 0 && kedge_rng_below(&w->node.rng, 3) == 0) {
            w->main_size += kedge_rng_below(&w->node.rng, 5);
        }
        sim_advance(&w->node, w->now_ms);
    }
}

/* What the final chain says, independent of the machine. */
static void check_chain(const struct world *w)
{
    const struct sim_node *n = &w->node;
    uint64_t seq = 0, size = 0;
    for (uint32_t b = 1; b <= n->latest; b++) {
        for (uint32_t i = 0; i < n->blocks[b].tx_count; i++) {
            const struct sim_tx *t = &n->txs[n->mined[n->blocks[b].tx_from + i]];
            if (!t->ours) {
                continue;
            }
            ck_assert_uint_eq(t->point.seq, seq + 1);
            ck_assert_uint_ge(t->point.size, size);
            seq = t->point.seq;
            size = t->point.size;
            struct kedge_hash root;
            root_of(size, &root);
            ck_assert(kedge_hash_eq(&root, &t->point.root));
            uint64_t wei = 0; /* of all in the 24 hours that end here, at the most each could cost */
            for (uint32_t c = b; c > 0 && n->blocks[c].ms + 24 * HOUR > n->blocks[b].ms; c--) {
                for (uint32_t k = 0; k < n->blocks[c].tx_count; k++) {
                    const struct sim_tx *o = &n->txs[n->mined[n->blocks[c].tx_from + k]];
                    wei += o->ours ? o->tx.max_fee * o->tx.gas : 0;
                }
            }
            ck_assert_uint_le(wei, w->config.daily_budget);
        }
    }
    ck_assert_uint_eq(w->recorded_count, w->machine.state.last.seq);
    for (uint64_t s = 1; s <= w->recorded_count; s++) {
        ck_assert_uint_eq(w->recorded[s].seq, s);
    }
}

static void settle(struct world *w)
{
    w->node.faults = false;
    w->crash_faults = false;
    w->grow_ms = 0;
    w->node.base_fee = w->node.base_fee > 1000000000 ? 1000000000 : w->node.base_fee;
    w->node.down_until_ms = 0;
    uint64_t size = w->main_size;
    for (int hour = 0; hour < 28 && (hour < 1 || w->machine.state.last.size < size); hour++) {
        run_until(w, w->now_ms + HOUR);
    }
    ck_assert_msg(!w->stopped, "%s", w->said);
    ck_assert_msg(kedge_evm_anchor_is_settled(&w->machine), "%s", w->said);
    ck_assert_uint_eq(w->machine.state.last.size, size);
    const struct kedge_evm_head *head = &w->node.blocks[sim_final(&w->node)].head;
    ck_assert_uint_eq(head->size, size);
    ck_assert_uint_eq(head->seq, w->machine.state.last.seq);
}

START_TEST(after_the_faults_the_newest_root_is_final)
{
    const char *from = getenv("SEED"), *seeds = getenv("SEEDS");
    uint64_t seed = 1, count = 40, reorgs = 0, crashes_seen = 0, replaced = 0, anchors = 0;
    if (from) {
        ck_assert_int_eq(kedge_decimal_decode(kedge_view_str(from), UINT32_MAX, &seed), KEDGE_OK);
        count = 1;
    }
    if (seeds) {
        ck_assert_int_eq(kedge_decimal_decode(kedge_view_str(seeds), UINT32_MAX, &count), KEDGE_OK);
    }
    for (uint64_t end = seed + count; seed < end; seed++) {
        struct world *w = new_world(seed);
        printf("SEED=%llu\r", (unsigned long long)seed);
        w->node.faults = w->crash_faults = true;
        w->grow_ms = 1;
        w->config.final = seed % 4 == 3 ? KEDGE_EVM_FINAL_SAFE : KEDGE_EVM_FINAL_FINALIZED;
        restart(w);
        run_until(w, w->now_ms + 8 * (uint64_t)HOUR);
        ck_assert_msg(!w->stopped, "seed %llu: %s", (unsigned long long)seed, w->said);
        settle(w);
        check_chain(w);
        reorgs += w->node.reorgs;
        crashes_seen += w->crashes;
        replaced += w->replaced;
        anchors += w->recorded_count;
        free_world(w);
    }
    printf("%llu anchors, %llu reorganisations, %llu crashes, %llu replacements\n",
           (unsigned long long)anchors, (unsigned long long)reorgs, (unsigned long long)crashes_seen,
           (unsigned long long)replaced);
    ck_assert(reorgs > 0 && crashes_seen > 0 && replaced > 0 && anchors > 5 * count);
}
END_TEST

/* What each lie must lead to. */
static const struct {
    enum sim_lie lie;
    int err;
    const char *says;
} lies[] = {
    {SIM_LIE_CHAIN, KEDGE_E_STATE, "chain 31338"},
    {SIM_LIE_NO_EVENT, KEDGE_E_VERIFY, "without our event"},
    {SIM_LIE_ROOT, KEDGE_E_VERIFY, "without our event"},
    {SIM_LIE_REVERTED, KEDGE_E_DENIED, "refused anchor"},
    {SIM_LIE_BLOCK, KEDGE_E_VERIFY, "not in its chain"},
    {SIM_LIE_FINAL_BACK, KEDGE_E_SHORTER, "was final before"},
    {SIM_LIE_FINAL_HASH, KEDGE_E_FORK, "has another one there"},
    {SIM_LIE_HEAD_AHEAD, KEDGE_E_STATE, "contract is at anchor"},
    {SIM_LIE_HEAD_BACK, KEDGE_E_SHORTER, "was final"},
    {SIM_LIE_HEAD_ROOT, KEDGE_E_FORK, "another root"},
};

START_TEST(a_lying_node_stops_it_and_it_stays_stopped)
{
    ck_assert_uint_eq(sizeof lies / sizeof lies[0], SIM_LIES - 1);
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        struct world *w = new_world(1000 + i);
        w->grow_ms = 1;
        run_until(w, w->now_ms + HOUR); /* some are final, some under way */
        ck_assert_msg(!w->stopped && w->machine.state.last.seq > 1, "%s", w->said);
        w->node.lie = lies[i].lie;
        run_until(w, w->now_ms + HOUR);
        ck_assert_msg(w->stopped, "lie %d was believed", lies[i].lie);
        ck_assert_msg(w->stop_err == lies[i].err && strstr(w->said, lies[i].says), "lie %d: %s", lies[i].lie,
                      w->said);
        uint32_t sends = w->node.sends;
        restart(w);
        w->stopped = false;
        run_round(w);
        ck_assert_int_eq(w->stopped, true); /* also after a restart */
        ck_assert_uint_eq(w->node.sends, sends);
        free_world(w);
    }
}
END_TEST

START_TEST(a_node_of_another_chain_gets_nothing_and_spoils_nothing)
{
    struct world *w = new_world(7);
    w->node.chain_id = 1;
    run_round(w);
    ck_assert(w->stopped && w->stop_err == KEDGE_E_STATE && strstr(w->said, "chain 1,"));
    ck_assert_uint_eq(w->node.sends, 0);
    w->node.chain_id = 31337;
    w->stopped = false;
    restart(w);
    run_until(w, w->now_ms + HOUR);
    ck_assert_uint_eq(w->machine.state.last.seq, 1);
    ck_assert(kedge_evm_anchor_is_settled(&w->machine));
    ck_assert_uint_eq(w->node.sends, 1); /* nothing new: nothing sent */
    free_world(w);
}
END_TEST

START_TEST(a_key_that_others_use_is_noticed)
{
    struct world *w = new_world(8);
    w->grow_ms = 1;
    run_until(w, w->now_ms + HOUR);
    uint64_t seq = w->machine.state.last.seq;
    sim_foreign(&w->node); /* between two anchors: a payment, say */
    run_until(w, w->now_ms + HOUR);
    ck_assert_msg(!w->stopped && w->machine.state.last.seq > seq, "%s", w->said);
    const struct kedge_evm_state *state = &w->machine.state;
    for (run_round(w);
         state->flight_count == 0 || state->flights[state->flight_count - 1].phase != KEDGE_EVM_SENT;
         run_round(w)) {
        w->now_ms = kedge_evm_anchor_deadline(&w->machine);
        w->main_size++;
        sim_advance(&w->node, w->now_ms);
    }
    sim_foreign(&w->node); /* in the place of one of ours */
    run_until(w, w->now_ms + 2 * (uint64_t)HOUR);
    ck_assert_msg(w->stopped && strstr(w->said, "someone else sends with this key"), "%s", w->said);
    ck_assert_int_eq(w->stop_err, KEDGE_E_STATE);
    free_world(w);
}
END_TEST

START_TEST(a_lost_state_goes_on_behind_the_contract)
{
    struct world *w = new_world(9);
    w->grow_ms = 1;
    run_until(w, w->now_ms + HOUR);
    settle(w);
    uint64_t seq = w->machine.state.last.seq;
    kedge_buf_clear(&w->disk);
    restart(w);
    w->main_size += 10;
    run_until(w, w->now_ms + HOUR);
    ck_assert_msg(!w->stopped && w->machine.state.last.seq == seq + 1, "%s", w->said);
    struct kedge_buf old KEDGE_CLEANUP(
        kedge_buf_deinit); /* an old copy of the state, on the other hand, is refused */
    kedge_buf_init(&old, KEDGE_EVM_STATE_MAX);
    kedge_buf_put(&old, w->disk.ptr, w->disk.len);
    w->main_size += 10;
    run_until(w, w->now_ms + HOUR);
    ck_assert_int_eq(kedge_evm_anchor_load(&w->machine, kedge_buf_view(&old), NULL), KEDGE_OK);
    w->main_size += 10;
    run_until(w, w->now_ms + HOUR);
    ck_assert(w->stopped && strstr(w->said, "old copy of the state"));
    kedge_evm_anchor_adopt(&w->machine); /* the operator's word */
    w->stopped = false;
    run_until(w, w->now_ms + HOUR);
    ck_assert_msg(!w->stopped && w->machine.state.last.seq == seq + 3, "%s", w->said);
    ck_assert_uint_eq(w->machine.state.last.size, w->main_size);
    free_world(w);
}
END_TEST

START_TEST(a_main_chain_that_was_rewritten_is_not_anchored)
{
    struct world *w = new_world(10);
    w->main_size = 100;
    run_until(w, w->now_ms + HOUR);
    ck_assert_uint_eq(w->machine.state.last.size, 100);
    w->main_size = 90; /* an old backup */
    run_until(w, w->now_ms + HOUR);
    ck_assert(w->stopped && w->stop_err == KEDGE_E_SHORTER);
    kedge_evm_anchor_adopt(&w->machine);
    w->stopped = false;
    run_until(w, w->now_ms + HOUR);
    ck_assert(w->stopped && w->stop_err == KEDGE_E_FORK);
    free_world(w);
}
END_TEST

START_TEST(the_budget_and_the_largest_fee_hold)
{
    struct world *w = new_world(11);
    w->grow_ms = 1;
    w->config.daily_budget = 3 * w->config.gas * 2200000000U; /* about three anchors */
    restart(w);
    run_until(w, w->now_ms + 20 * (uint64_t)HOUR);
    ck_assert_msg(!w->stopped && strstr(w->said, "budget"), "%s", w->said);
    uint64_t seq = w->machine.state.last.seq;
    ck_assert(seq >= 1 && seq <= 15);
    run_until(w, w->now_ms + 30 * (uint64_t)HOUR); /* tomorrow there is money again */
    ck_assert_uint_gt(w->machine.state.last.seq, seq);
    check_chain(w);
    free_world(w);

    w = new_world(12);
    w->grow_ms = 1;
    w->config.max_fee = 50000000;
    restart(w);
    run_until(w, w->now_ms + HOUR);
    ck_assert_msg(!w->stopped && strstr(w->said, "fees"), "%s", w->said);
    ck_assert_uint_eq(w->node.sends, 0);
    free_world(w);
}
END_TEST

START_TEST(damaged_states_are_refused)
{
    struct world *w = new_world(13);
    struct kedge_evm_anchor *other = kedge_mem_new(1, sizeof *other);
    struct kedge_diag d;
    w->grow_ms = 1;
    run_until(w, w->now_ms + HOUR / 2);
    ck_assert_uint_gt(w->disk.len, 400);
    ck_assert_int_eq(kedge_evm_anchor_init(other, &w->config, NULL), KEDGE_OK);
    for (size_t i = 0; i < w->disk.len; i += 1 + i / 64) {
        w->disk.ptr[i] ^= 1;
        ck_assert_int_eq(kedge_evm_anchor_load(other, kedge_buf_view(&w->disk), &d), KEDGE_E_CORRUPT);
        w->disk.ptr[i] ^= 1;
        ck_assert_int_eq(kedge_evm_anchor_load(other, kedge_view_of(w->disk.ptr, i), &d), KEDGE_E_CORRUPT);
    }
    w->config.contract.b[0] ^= 1;
    ck_assert_int_eq(kedge_evm_anchor_init(other, &w->config, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_evm_anchor_load(other, kedge_buf_view(&w->disk), &d), KEDGE_E_STATE);
    kedge_mem_free(other);
    free_world(w);
}
END_TEST

START_TEST(words_of_refusal_are_understood)
{
    static const struct {
        const char *text;
        enum kedge_evm_refusal means;
    } rows[] = {
        {"already known", KEDGE_EVM_REFUSAL_KNOWN},
        {"transaction already imported", KEDGE_EVM_REFUSAL_KNOWN},
        {"Nonce too low", KEDGE_EVM_REFUSAL_NONCE_LOW},
        {"nonce too low: next nonce 5, tx nonce 4", KEDGE_EVM_REFUSAL_NONCE_LOW},
        {"replacement transaction underpriced", KEDGE_EVM_REFUSAL_UNDERPRICED},
        {"max fee per gas less than block base fee", KEDGE_EVM_REFUSAL_UNDERPRICED},
        {"invalid chain id for signer", KEDGE_EVM_REFUSAL_CHAIN},
        {"insufficient funds for gas * price + value", KEDGE_EVM_REFUSAL_FUNDS},
        {"txpool is full", KEDGE_EVM_REFUSAL_OTHER},
        {"", KEDGE_EVM_REFUSAL_OTHER},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ck_assert_int_eq(kedge_evm_refusal_of(rows[i].text), rows[i].means);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("evm_anchor");
    TCase *tc = tcase_create("evm_anchor");
    tcase_set_timeout(tc, 0);
    tcase_add_test(tc, after_the_faults_the_newest_root_is_final);
    tcase_add_test(tc, a_lying_node_stops_it_and_it_stays_stopped);
    tcase_add_test(tc, a_node_of_another_chain_gets_nothing_and_spoils_nothing);
    tcase_add_test(tc, a_key_that_others_use_is_noticed);
    tcase_add_test(tc, a_lost_state_goes_on_behind_the_contract);
    tcase_add_test(tc, a_main_chain_that_was_rewritten_is_not_anchored);
    tcase_add_test(tc, the_budget_and_the_largest_fee_hold);
    tcase_add_test(tc, damaged_states_are_refused);
    tcase_add_test(tc, words_of_refusal_are_understood);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
