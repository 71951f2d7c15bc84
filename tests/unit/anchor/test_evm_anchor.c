/* The state machine against a simulated node. Each seed: hours of faults (lost answers, a dead node, fee
 * spikes, reorganisations that empty the pool, crashes of the host around its writes), then quiet; the
 * invariants of evm_anchor.h are checked outside the machine. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/base/text.h"
#include "tests/unit/anchor/sim_world.h"

static void settle(struct world *w)
{
    w->node.faults = false;
    w->crash_faults = false;
    w->grow_ms = 0;
    w->node.base_fee = w->node.base_fee > 1000000000 ? 1000000000 : w->node.base_fee;
    w->node.down_until_ms = 0;
    uint64_t size = w->main_size;
    for (int hour = 0; hour < 28 && (hour < 1 || w->machine.state.last.size < size); hour++) {
        world_run_until(w, w->now_ms + HOUR);
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
        struct world *w = world_new(seed);
        printf("SEED=%llu\r", (unsigned long long)seed);
        w->node.faults = w->crash_faults = true;
        w->grow_ms = 1;
        w->config.final = seed % 4 == 3 ? KEDGE_EVM_FINAL_SAFE : KEDGE_EVM_FINAL_FINALIZED;
        w->config.daily_budget /= seed % 2 == 0 ? 8 : 1; /* about 20 anchors: less than there would be */
        world_restart(w);
        world_run_until(w, w->now_ms + 8 * (uint64_t)HOUR);
        ck_assert_msg(!w->stopped, "seed %llu: %s", (unsigned long long)seed, w->said);
        settle(w);
        world_check_chain(w);
        reorgs += w->node.reorgs;
        crashes_seen += w->crashes;
        replaced += w->replaced;
        anchors += w->recorded_count;
        world_free(w);
    }
    printf("%llu anchors, %llu reorganisations, %llu crashes, %llu replacements\n",
           (unsigned long long)anchors, (unsigned long long)reorgs, (unsigned long long)crashes_seen,
           (unsigned long long)replaced);
    ck_assert(reorgs > 0 && crashes_seen > 0 && replaced > 0 && anchors > 5 * count);
}
END_TEST

/* A main chain of T tenants grows by a checkpoint and an update's part of each in an interval. */
START_TEST(one_anchor_an_interval_for_any_number_of_tenants)
{
    static const uint32_t tenants[] = {1, 10, 100, 1000};
    enum { INTERVALS = 24 };
    for (size_t i = 0; i < sizeof tenants / sizeof tenants[0]; i++) {
        struct world *w = world_new(3);
        uint64_t start = w->now_ms;
        for (uint64_t n = 0; n < INTERVALS; n++) {
            w->main_size += 2 * tenants[i];
            world_run_until(w, start + (n + 1) * w->config.interval_ms);
        }
        ck_assert_msg(!w->stopped, "%s", w->said);
        ck_assert_uint_eq(w->machine.state.last.seq, INTERVALS);
        settle(w);
        world_check_chain(w);
        ck_assert_uint_eq(w->machine.state.last.seq, INTERVALS);
        ck_assert_uint_eq(w->machine.state.last.size, 3 + (uint64_t)INTERVALS * 2 * tenants[i]);
        world_free(w);
    }
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
        struct world *w = world_new(1000 + i);
        w->grow_ms = 1;
        world_run_until(w, w->now_ms + HOUR); /* some are final, some under way */
        ck_assert_msg(!w->stopped && w->machine.state.last.seq > 1, "%s", w->said);
        w->node.lie = lies[i].lie;
        world_run_until(w, w->now_ms + HOUR);
        ck_assert_msg(w->stopped, "lie %d was believed", lies[i].lie);
        ck_assert_msg(w->stop_err == lies[i].err && strstr(w->said, lies[i].says), "lie %d: %s", lies[i].lie,
                      w->said);
        uint32_t sends = w->node.sends;
        world_restart(w);
        w->stopped = false;
        world_round(w);
        ck_assert_int_eq(w->stopped, true); /* also after a restart */
        ck_assert_uint_eq(w->node.sends, sends);
        world_free(w);
    }
}
END_TEST

START_TEST(a_node_of_another_chain_gets_nothing_and_spoils_nothing)
{
    struct world *w = world_new(7);
    w->node.chain_id = 1;
    world_round(w);
    ck_assert(w->stopped && w->stop_err == KEDGE_E_STATE && strstr(w->said, "chain 1,"));
    ck_assert_uint_eq(w->node.sends, 0);
    w->node.chain_id = 31337;
    w->stopped = false;
    world_restart(w);
    world_run_until(w, w->now_ms + HOUR);
    ck_assert_uint_eq(w->machine.state.last.seq, 1);
    ck_assert(kedge_evm_anchor_is_settled(&w->machine));
    ck_assert_uint_eq(w->node.sends, 1); /* nothing new: nothing sent */
    world_free(w);
}
END_TEST

START_TEST(a_key_that_others_use_is_noticed)
{
    struct world *w = world_new(8);
    w->grow_ms = 1;
    world_run_until(w, w->now_ms + HOUR);
    uint64_t seq = w->machine.state.last.seq;
    sim_foreign(&w->node); /* between two anchors: a payment, say */
    world_run_until(w, w->now_ms + HOUR);
    ck_assert_msg(!w->stopped && w->machine.state.last.seq > seq, "%s", w->said);
    const struct kedge_evm_state *state = &w->machine.state;
    for (world_round(w);
         state->flight_count == 0 || state->flights[state->flight_count - 1].phase != KEDGE_EVM_SENT;
         world_round(w)) {
        w->now_ms = kedge_evm_anchor_deadline(&w->machine);
        w->main_size++;
        sim_advance(&w->node, w->now_ms);
    }
    sim_foreign(&w->node); /* in the place of one of ours */
    world_run_until(w, w->now_ms + 2 * (uint64_t)HOUR);
    ck_assert_msg(w->stopped && strstr(w->said, "someone else sends with this key"), "%s", w->said);
    ck_assert_int_eq(w->stop_err, KEDGE_E_STATE);
    world_free(w);
}
END_TEST

START_TEST(a_lost_state_goes_on_behind_the_contract)
{
    struct world *w = world_new(9);
    w->grow_ms = 1;
    world_run_until(w, w->now_ms + HOUR);
    settle(w);
    uint64_t seq = w->machine.state.last.seq;
    kedge_buf_clear(&w->disk);
    world_restart(w);
    w->main_size += 10;
    world_run_until(w, w->now_ms + HOUR);
    ck_assert_msg(!w->stopped && w->machine.state.last.seq == seq + 1, "%s", w->said);
    struct kedge_buf old KEDGE_CLEANUP(
        kedge_buf_deinit); /* an old copy of the state, on the other hand, is refused */
    kedge_buf_init(&old, KEDGE_EVM_STATE_MAX);
    kedge_buf_put(&old, w->disk.ptr, w->disk.len);
    w->main_size += 10;
    world_run_until(w, w->now_ms + HOUR);
    ck_assert_int_eq(kedge_evm_anchor_load(&w->machine, kedge_buf_view(&old), NULL), KEDGE_OK);
    w->main_size += 10;
    world_run_until(w, w->now_ms + HOUR);
    ck_assert(w->stopped && strstr(w->said, "old copy of the state"));
    kedge_evm_anchor_adopt(&w->machine); /* the operator's word */
    w->stopped = false;
    world_run_until(w, w->now_ms + HOUR);
    ck_assert_msg(!w->stopped && w->machine.state.last.seq == seq + 3, "%s", w->said);
    ck_assert_uint_eq(w->machine.state.last.size, w->main_size);
    world_free(w);
}
END_TEST

/* The operator's word lasts, although there is nothing to anchor when it is given. */
START_TEST(an_adopted_state_is_not_stopped_again_by_the_next_start)
{
    struct world *w = world_new(12);
    w->grow_ms = 1;
    world_run_until(w, w->now_ms + HOUR);
    settle(w);
    w->node.lie = SIM_LIE_HEAD_AHEAD;
    w->main_size += 10;
    world_run_until(w, w->now_ms + HOUR);
    ck_assert(w->stopped);
    w->node.lie = SIM_HONEST;
    w->main_size -= 10; /* nothing new */
    world_restart(w);
    kedge_evm_anchor_adopt(&w->machine);
    w->stopped = false;
    settle(w);
    world_restart(w);
    world_run_until(w, w->now_ms + HOUR);
    ck_assert_msg(!w->stopped, "%s", w->said);
    w->main_size += 10;
    settle(w);
    world_free(w);
}
END_TEST

START_TEST(a_main_chain_that_was_rewritten_is_not_anchored)
{
    struct world *w = world_new(10);
    w->main_size = 100;
    world_run_until(w, w->now_ms + HOUR);
    ck_assert_uint_eq(w->machine.state.last.size, 100);
    w->main_size = 90; /* an old backup */
    world_run_until(w, w->now_ms + HOUR);
    ck_assert(w->stopped && w->stop_err == KEDGE_E_SHORTER);
    kedge_evm_anchor_adopt(&w->machine);
    w->stopped = false;
    world_run_until(w, w->now_ms + HOUR);
    ck_assert(w->stopped && w->stop_err == KEDGE_E_FORK);
    world_free(w);
}
END_TEST

START_TEST(the_budget_and_the_largest_fee_hold)
{
    struct world *w = world_new(11);
    w->grow_ms = 1;
    w->config.daily_budget = 3 * w->config.gas * 2200000000U; /* about three anchors */
    world_restart(w);
    world_run_until(w, w->now_ms + 20 * (uint64_t)HOUR);
    ck_assert_msg(!w->stopped && strstr(w->said, "budget"), "%s", w->said);
    uint64_t seq = w->machine.state.last.seq;
    ck_assert(seq >= 1 && seq <= 15);
    world_run_until(w, w->now_ms + 30 * (uint64_t)HOUR); /* tomorrow there is money again */
    ck_assert_uint_gt(w->machine.state.last.seq, seq);
    world_check_chain(w);
    world_free(w);

    w = world_new(12);
    w->grow_ms = 1;
    w->config.max_fee = 50000000;
    world_restart(w);
    world_run_until(w, w->now_ms + HOUR);
    ck_assert_msg(!w->stopped && strstr(w->said, "fees"), "%s", w->said);
    ck_assert_uint_eq(w->node.sends, 0);
    world_free(w);
}
END_TEST

START_TEST(damaged_states_are_refused)
{
    struct world *w = world_new(13);
    struct kedge_evm_anchor *other = kedge_mem_new(1, sizeof *other);
    struct kedge_diag d;
    w->grow_ms = 1;
    world_run_until(w, w->now_ms + HOUR / 2);
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
    world_free(w);
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
    tcase_add_test(tc, one_anchor_an_interval_for_any_number_of_tenants);
    tcase_add_test(tc, a_lying_node_stops_it_and_it_stays_stopped);
    tcase_add_test(tc, a_node_of_another_chain_gets_nothing_and_spoils_nothing);
    tcase_add_test(tc, a_key_that_others_use_is_noticed);
    tcase_add_test(tc, a_lost_state_goes_on_behind_the_contract);
    tcase_add_test(tc, an_adopted_state_is_not_stopped_again_by_the_next_start);
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
