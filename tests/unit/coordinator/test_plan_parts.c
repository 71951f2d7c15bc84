/* Parts of data by what sites have said: exact against trying all, within 2 % of the continuous programme,
 * also when each round is planned by the one before; what is not known; numbers at their limits. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "common/base/rng.h"
#include "coordinator/plan/parts.h"
#include "tests/fixtures/effort.h"
#include "tests/fixtures/plan_worlds.h"
#include "tests/fixtures/run.h"

enum { FEW = 4, MANY = 60 };
static struct kedge_plan_cost costs[MANY];
static uint32_t plan[MANY], tried[MANY];

static void make_plan(const struct kedge_plan_weights *w, uint32_t count)
{
    ck_assert_int_eq(kedge_plan_parts(w, costs, count, plan), KEDGE_OK);
    for (uint32_t i = 0; i < count; i++) {
        ck_assert(plan[i] >= w->least && plan[i] <= KEDGE_PERCENT_ALL);
    }
}

/* The best of all ways to give `count` sites parts from `least` on. */
static double try_all(const struct kedge_plan_weights *w, uint32_t count)
{
    const uint32_t each = KEDGE_PERCENT_ALL - w->least + 1;
    uint32_t ways = 1;
    double best = -1e9;
    for (uint32_t i = 0; i < count; i++) {
        ways *= each;
    }
    for (uint32_t way = 0; way < ways; way++) {
        uint32_t left = way;
        for (uint32_t i = 0; i < count; i++, left /= each) {
            tried[i] = w->least + left % each;
        }
        const double worth = kedge_plan_world_worth(w, costs, count, tried);
        best = worth > best ? worth : best;
    }
    return best;
}

START_TEST(test_exact)
{
    struct kedge_rng rng;
    kedge_rng_init(&rng, 5, KEDGE_RNG_TEST, 0, 0);
    uint32_t between = 0;
    for (int world = 0; world < EFFORT(200, 40); world++) {
        const uint32_t count = world % 2 ? FEW : 2;
        struct kedge_plan_weights w = kedge_plan_world_weights(&rng);
        w.least = count == FEW ? 96 : 20;
        kedge_plan_world(&rng, costs, count);
        make_plan(&w, count);
        ck_assert(kedge_plan_world_worth(&w, costs, count, plan) >= try_all(&w, count) - 1e-9);
        for (uint32_t i = 0; i < count; i++) {
            between += plan[i] > w.least && plan[i] < KEDGE_PERCENT_ALL;
        }
    }
    ck_assert_uint_gt(between, EFFORT(20, 3)); /* not only the ends */
}
END_TEST

START_TEST(test_near_the_continuous_programme)
{
    struct kedge_rng rng;
    double least = 1;
    int worlds = 0;
    kedge_rng_init(&rng, 6, KEDGE_RNG_TEST, 0, 0);
    while (worlds < EFFORT(200, 40)) {
        const uint32_t count = 2 + (uint32_t)kedge_rng_below(&rng, MANY - 1);
        const struct kedge_plan_weights w = kedge_plan_world_weights(&rng);
        kedge_plan_world(&rng, costs, count);
        const double best = kedge_plan_world_best(&w, costs, count);
        if (best < 0.5) { /* of nothing there is no part */
            continue;
        }
        make_plan(&w, count);
        const double part = kedge_plan_world_worth(&w, costs, count, plan) / best;
        ck_assert(part <= 1 + 1e-9);
        least = part < least ? part : least;
        worlds++;
    }
    printf("least part of the continuous programme: %.4f\n", least);
    ck_assert(least >= 0.98);
}
END_TEST

/* Each round by what the one before has said, of sites whose costs move by up to a tenth; the exact programme
 * knows them before. */
START_TEST(test_planned_by_the_round_before)
{
    struct kedge_rng rng;
    double planned = 0, best = 0, plain = 0, all = 0, all_best = 0;
    kedge_rng_init(&rng, 7, KEDGE_RNG_TEST, 0, 0);
    for (int world = 0; world < EFFORT(120, 20); world++) {
        const uint32_t count = 2 + (uint32_t)kedge_rng_below(&rng, 30);
        const struct kedge_plan_weights w = kedge_plan_world_weights(&rng);
        const struct kedge_plan_world_run run = kedge_plan_world_run(&rng, &w, count, 20, 0.1);
        planned += run.planned;
        best += run.best;
        plain += run.plain;
        all += run.all_planned;
        all_best += run.all_best;
    }
    printf("planned by the round before: %.4f of the exact programme, with the first round %.4f; all data: "
           "%.4f\n",
           planned / best, all / all_best, plain / best);
    (void)fflush(stdout);
    ck_assert(planned / best >= EFFORT(0.98, 0.96));
    ck_assert(all / all_best >= EFFORT(0.97, 0.95));
    ck_assert(plain < 0.95 * planned);
}
END_TEST

START_TEST(test_by_hand)
{
    struct kedge_plan_weights w = {10000000, 1000000, 3000000, 10};
    /* Nobody has trained: all on all. */
    memset(costs, 0, sizeof costs);
    make_plan(&w, 3);
    ck_assert_uint_eq(plan[0], 100);
    ck_assert_uint_eq(plan[2], 100);
    /* Nine alike and one that takes ten times as long: it trains as long as they do. */
    for (int i = 0; i < 10; i++) {
        costs[i] = (struct kedge_plan_cost){100, 100, i == 9 ? 10000000 : 1000000, 0, false};
    }
    make_plan(&w, 10);
    for (int i = 0; i < 9; i++) {
        ck_assert_uint_eq(plan[i], 100);
    }
    ck_assert_uint_eq(plan[9], 10);
    ck_assert_uint_eq(kedge_plan_part_time(&costs[9], 10), 1000000);
    /* A newcomer among them trains on all that it has, and changes nothing for the others. */
    costs[10] = (struct kedge_plan_cost){0};
    make_plan(&w, 11);
    ck_assert_uint_eq(plan[10], 100);
    ck_assert_uint_eq(plan[9], 10);
    /* Energy alone, no more worth than data: nobody does more than it must. Who is silent is the dearest. */
    w = (struct kedge_plan_weights){1000000, 1500000, 0, 25};
    costs[0].has_joules = costs[1].has_joules = true;
    costs[0].microjoules = 1000;
    costs[1].microjoules = 9000;
    make_plan(&w, 3);
    ck_assert_uint_eq(plan[0], 100);
    ck_assert_uint_eq(plan[1], 25);
    ck_assert_uint_eq(plan[2], 25);
    /* Nothing is worth anything: the smallest parts, in the shortest time. */
    w = (struct kedge_plan_weights){0, 0, 0, 30};
    make_plan(&w, 3);
    ck_assert_uint_eq(plan[0], 30);
}
END_TEST

START_TEST(test_limits)
{
    struct kedge_plan_weights w = {KEDGE_PLAN_WEIGHT_MAX, KEDGE_PLAN_WEIGHT_MAX, KEDGE_PLAN_WEIGHT_MAX, 1};
    const uint64_t most = KEDGE_PLAN_SAMPLES_MAX / KEDGE_PERCENT_ALL;
    for (int i = 0; i < MANY; i++) {
        costs[i] = (struct kedge_plan_cost){i % 2 ? most * 100 : 1, i % 2 ? most : 1, KEDGE_PLAN_AMOUNT_MAX,
                                            KEDGE_PLAN_AMOUNT_MAX, i % 3 == 0};
    }
    make_plan(&w, MANY);
    ck_assert_uint_eq(kedge_plan_part_time(&costs[1], 100), 100 * KEDGE_PLAN_AMOUNT_MAX);
    struct kedge_plan_cost bad[] = {{99, 100, 1, 1, true},
                                    {10001, 100, 1, 1, true},
                                    {most * 100, most + 1, 1, 1, true},
                                    {100, 100, KEDGE_PLAN_AMOUNT_MAX + 1, 1, true},
                                    {100, 100, 1, KEDGE_PLAN_AMOUNT_MAX + 1, true}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ck_assert_int_eq(kedge_plan_parts(&w, &bad[i], 1, plan), KEDGE_E_ARG);
    }
    w.least = 0;
    ck_assert_int_eq(kedge_plan_parts(&w, costs, 1, plan), KEDGE_E_ARG);
    w.least = 101;
    ck_assert_int_eq(kedge_plan_parts(&w, costs, 1, plan), KEDGE_E_ARG);
    w.least = 1;
    w.time++;
    ck_assert_int_eq(kedge_plan_parts(&w, costs, 1, plan), KEDGE_E_ARG);
    ck_assert_uint_eq(kedge_percent_of(3, 1), 1);
    ck_assert_uint_eq(kedge_percent_of(200, 50), 100);
    ck_assert_uint_eq(kedge_percent_of(KEDGE_PLAN_SAMPLES_MAX, 100), KEDGE_PLAN_SAMPLES_MAX);
}
END_TEST

/* One site's claims decide what the others are asked for: so many samples for no joules make theirs worth
 * nothing, and so long a time makes theirs cost nothing. `least` and all are as far as that goes. */
START_TEST(test_claims)
{
    const struct kedge_plan_weights w = {10000000, 1000000, 3000000, 10};
    enum { HONEST = 10 };
    for (int i = 0; i < HONEST; i++) { /* the later ones are slower */
        costs[i] = (struct kedge_plan_cost){1000, 1000, (uint64_t)1000000 << i, 100000000, true};
    }
    make_plan(&w, HONEST);
    ck_assert_uint_eq(plan[0], 100);
    ck_assert_uint_lt(plan[HONEST - 1], 100);
    costs[HONEST] = (struct kedge_plan_cost){1000000000, 1000000000, 1, 0, true};
    make_plan(&w, HONEST + 1);
    for (int i = 0; i < HONEST; i++) {
        ck_assert_uint_eq(plan[i], w.least);
    }
    costs[HONEST] = (struct kedge_plan_cost){1, 1, KEDGE_PLAN_AMOUNT_MAX, 0, true};
    make_plan(&w, HONEST + 1);
    for (int i = 0; i < HONEST; i++) {
        ck_assert_uint_eq(plan[i], 100);
    }
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("parts");
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, test_exact);
    tcase_add_test(tc, test_near_the_continuous_programme);
    tcase_add_test(tc, test_planned_by_the_round_before);
    tcase_add_test(tc, test_by_hand);
    tcase_add_test(tc, test_limits);
    tcase_add_test(tc, test_claims);
    Suite *s = suite_create("coordinator/plan parts");
    suite_add_tcase(s, tc);
    return run_suite(s);
}
