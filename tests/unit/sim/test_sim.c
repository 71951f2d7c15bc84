/* The simulation that a spec describes: limits that name their key, runs that repeat, a row per round; and
 * that real signatures change nothing but the time it takes. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "aggregation/share_cap.h"
#include "sim/index.h"
#include "sim/sim.h"
#include "sim/world.h"

static const struct kedge_sim_spec usual = {
    .tenants = 3, .sites = 4, .rounds = 5, .groups = 3, .faults = true};

static const struct {
    struct kedge_sim_spec spec;
    const char *says; /* NULL: fine */
} specs[] = {
    {{.tenants = 1, .sites = 1, .rounds = 1, .groups = 1}, NULL},
    {{.tenants = 100, .sites = 10, .rounds = 1000, .groups = 16}, NULL},
    {{.tenants = 1, .sites = 1000, .rounds = 1, .groups = 1, .sites_per_round = 1000}, NULL},
    {{.tenants = 0, .sites = 1, .rounds = 1, .groups = 1},
     "\"tenants\": expected a whole number from 1 to 100"},
    {{.tenants = 101, .sites = 1, .rounds = 1, .groups = 1},
     "\"tenants\": expected a whole number from 1 to 100"},
    {{.tenants = 1, .sites = 1001, .rounds = 1, .groups = 1},
     "\"sites\": expected a whole number from 1 to 1000"},
    {{.tenants = 100, .sites = 11, .rounds = 1, .groups = 1}, "at most 1000 sites together, not 1100"},
    {{.tenants = 1, .sites = 1, .rounds = 1001, .groups = 1},
     "\"rounds\": expected a whole number from 1 to 1000"},
    {{.tenants = 1, .sites = 1, .rounds = 1, .groups = 65},
     "\"groups\": expected a whole number from 1 to 64"},
    {{.tenants = 1, .sites = 1, .rounds = 1, .groups = 1, .sites_per_round = 1001}, "\"sites_per_round\""},
    {{.tenants = 1, .sites = 100, .rounds = 51, .groups = 1, .real = true},
     "\"signatures\": \"real\" is for at most"},
};

START_TEST(test_limits)
{
    struct kedge_diag d = {.text = ""};
    int err = kedge_sim_spec_check(&specs[_i].spec, &d);
    ck_assert_int_eq(err, specs[_i].says ? KEDGE_E_FORMAT : KEDGE_OK);
    ck_assert_msg(!specs[_i].says || strstr(d.text, specs[_i].says), "%s", d.text);
    if (specs[_i].says) {
        struct kedge_sim_outcome o;
        ck_assert_int_eq(kedge_sim_run(&specs[_i].spec, 1, NULL, NULL, &o, &d), KEDGE_E_FORMAT);
    }
}
END_TEST

static void count_rounds(void *arg, uint32_t rounds)
{
    uint32_t *last = arg;
    ck_assert_uint_ge(rounds, *last);
    *last = rounds;
}

static struct kedge_sim_outcome run(const struct kedge_sim_spec *spec, uint64_t seed)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_sim_outcome o;
    uint32_t last = 0;
    ck_assert_int_eq(kedge_sim_run(spec, seed, count_rounds, &last, &o, &d), KEDGE_OK);
    ck_assert_msg(o.holds, "%s", o.why);
    ck_assert_uint_eq(last, o.round_count);
    return o;
}

static uint64_t digest_of_run(const struct kedge_sim_spec *spec, uint64_t seed)
{
    struct kedge_sim_outcome o = run(spec, seed);
    uint64_t digest = o.digest;
    kedge_sim_outcome_deinit(&o);
    return digest;
}

START_TEST(test_rounds)
{
    struct kedge_sim_spec spec = usual;
    spec.faults = _i == 0;
    struct kedge_sim_outcome o = run(&spec, 7);
    ck_assert_uint_eq(o.round_count, spec.rounds + 1); /* and the cold start */
    uint64_t updates = 0;
    for (uint32_t i = 0; i < o.round_count; i++) {
        const struct kedge_sim_round *r = &o.rounds[i];
        ck_assert_uint_eq(r->round, i);
        ck_assert(r->groups >= 1 && r->groups <= spec.groups);
        ck_assert(r->selected >= 1 && r->selected <= spec.tenants * spec.sites);
        ck_assert(r->accepted >= 1 && r->opened_ns < r->closed_ns && r->closed_ns <= o.virtual_ns);
        updates += r->accepted;
    }
    ck_assert_uint_gt(o.statements, updates);
    uint64_t faults = 0;
    for (uint32_t i = 0; i < o.fault_count; i++) {
        faults += o.faults[i].count;
    }
    ck_assert(spec.faults ? o.crashes > 0 && faults > o.crashes : o.crashes == 0 && o.lost == 0);
    kedge_sim_outcome_deinit(&o);
}
END_TEST

START_TEST(test_repeats)
{
    struct kedge_sim_spec spec = usual;
    uint64_t first = digest_of_run(&spec, 11);
    ck_assert_uint_eq(digest_of_run(&spec, 11), first);
    ck_assert_uint_ne(digest_of_run(&spec, 12), first);
    spec.real = true;
    ck_assert_uint_eq(digest_of_run(&spec, 11), first);
}
END_TEST

START_TEST(test_sizes)
{
    struct kedge_sim_spec large = {.tenants = 20, .sites = 10, .rounds = 3, .groups = 16, .faults = true};
    struct kedge_sim_spec few = {.tenants = 2, .sites = 10, .rounds = 4, .groups = 1, .sites_per_round = 3};
    struct kedge_sim_outcome o = run(&large, 1);
    ck_assert_uint_eq(o.round_count, 4);
    kedge_sim_outcome_deinit(&o);
    o = run(&few, 1);
    ck_assert_uint_eq(o.round_count, 4);
    for (uint32_t i = 0; i < o.round_count; i++) {
        ck_assert_uint_eq(o.rounds[i].selected, 3);
    }
    kedge_sim_outcome_deinit(&o);
}
END_TEST

/* What four sites of three tenants count in the one aggregate of a round, and the cap on a tenant's share. */
static const struct {
    uint32_t share_max;
    uint64_t counted[4]; /* of tenants 0, 1, 2, 0 */
    const char *says;    /* NULL: fine */
} shares[] = {
    {KEDGE_SHARE_ONE, {90, 1, 1, 90}, NULL},
    {500000, {1, 1, 1, 1}, NULL},
    {500000, {5, 4, 6, 5}, NULL},
    {500000, {5, 4, 6, 6}, "a tenant has 11 of 21, its share is 500000 millionths"},
    {500000, {1, 9, 1, 1}, "a tenant has 9 of 12"},
    {333334, {1, 2, 2, 1}, NULL},
    {333334, {1, 2, 3, 1}, "a tenant has 3 of 7"},
    {400000, {7, 14, 14, 7}, NULL},
    {400000, {15, 10, 10, 0}, "the update of site 3 counts nothing"},
    {300000, {2, 4, 4, 2}, NULL}, /* too few tenants for it: all have the same */
    {300000, {2, 4, 5, 2}, "a tenant has 5 of 13"},
};

START_TEST(test_shares)
{
    struct sim *w = sim_blank(1, 0, false);
    w->config.tenants = 3;
    w->config.sites = 4;
    w->config.jobs = 1;
    w->jobs[0].params.rounds = 1;
    w->jobs[0].share_max = shares[_i].share_max;
    sim_allocate(w);
    struct sim_pending *p = &w->jobs[0].pending;
    p->round = 1;
    p->kind = KEDGE_TASK_TRAIN;
    p->group_count = 2; /* of the second nobody has an input */
    for (uint32_t i = 0; i < 4; i++) {
        w->devices[i].tenant = i % 3;
        p->inputs[p->input_count++] =
            (struct sim_input){.site = i, .kind = KEDGE_TASK_TRAIN, .counted = shares[_i].counted[i]};
    }
    sim_check_shares(w, 0);
    ck_assert_msg(w->failed == (shares[_i].says != NULL), "%s", w->why);
    ck_assert_msg(!shares[_i].says || strstr(w->why, shares[_i].says), "%s", w->why);
    sim_free(w);
}
END_TEST

/* The world's own record, seen from outside: what real signatures prove cannot be proved of anything else.
 */
START_TEST(test_real_proofs)
{
    struct sim *w = sim_new(5, true, NULL);
    ck_assert_msg(sim_run(w), "%s", w->why);
    uint32_t site = 0;
    while (site < w->config.sites && w->devices[site].ack_count == 0) {
        site++;
    }
    ck_assert_uint_lt(site, w->config.sites);
    const struct sim_ack *ack = &w->devices[site].acks[0];
    struct kedge_site_digest envelope = sim_to_site(&ack->envelope), other = envelope;
    struct sim_event answer = {.weight = ack->leaf};
    answer.reply.kind = KEDGE_SITE_REPLY_RECEIPT;
    answer.proof = sim_prove_receipt(w, w->devices[site].tenant, ack->leaf);
    ck_assert(sim_check_proof(w, site, &answer, &envelope));
    other.b[0] ^= 1;
    ck_assert(!sim_check_proof(w, site, &answer, &other)); /* of a statement that nobody made */
    answer.weight = ack->leaf + 1;
    ck_assert(!sim_check_proof(w, site, &answer, &envelope)); /* at another place */
    answer.weight = ack->leaf;
    answer.reply.kind = KEDGE_SITE_REPLY_CLOSED;
    ck_assert(!sim_check_proof(w, site, &answer, &envelope)); /* a receipt is no "closed" */
    answer.proof = 0;
    ck_assert(!sim_check_proof(w, site, &answer, &envelope));
    sim_free(w);
}
END_TEST

/* An entry that is rewritten behind everyone's back is found in the end. */
START_TEST(test_rewritten)
{
    struct sim *w = sim_new(5, _i == 1, NULL);
    ck_assert_msg(sim_run(w), "%s", w->why);
    struct sim_ledger *l = &w->ledgers[0];
    ck_assert_uint_gt(l->count, 2);
    l->entries[l->count / 2].envelope.b[9] ^= 1;
    sim_check_end(w);
    ck_assert(w->failed);
    sim_free(w);
}
END_TEST

START_TEST(test_index)
{
    struct sim_index x = {.count = 0};
    uint32_t value;
    ck_assert(!sim_index_find(&x, 0, &value));
    for (uint32_t i = 0; i < 5000; i++) {
        ck_assert(sim_index_put(&x, (uint64_t)i << 32, i)); /* all in one place of the table */
    }
    ck_assert(!sim_index_put(&x, UINT64_C(7) << 32, 99));
    for (uint32_t i = 0; i < 5000; i++) {
        ck_assert(sim_index_find(&x, (uint64_t)i << 32, &value));
        ck_assert_uint_eq(value, i);
    }
    ck_assert(!sim_index_find(&x, 12345, &value));
    sim_index_deinit(&x);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("sim");
    tcase_add_loop_test(tc, test_limits, 0, (int)(sizeof specs / sizeof specs[0]));
    tcase_add_loop_test(tc, test_rounds, 0, 2);
    tcase_add_test(tc, test_repeats);
    tcase_add_test(tc, test_sizes);
    tcase_add_loop_test(tc, test_shares, 0, (int)(sizeof shares / sizeof shares[0]));
    tcase_add_test(tc, test_real_proofs);
    tcase_add_loop_test(tc, test_rewritten, 0, 2);
    tcase_add_test(tc, test_index);
    Suite *s = suite_create("sim");
    suite_add_tcase(s, tc);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
