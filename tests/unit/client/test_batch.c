#include "client/energy/batch.h"

#include <math.h>
#include <string.h>

#include "tests/fixtures/run.h"

static const uint32_t sizes[] = {8, 16, 32, 64, 128, 256, 512};
enum { SIZES = sizeof sizes / sizeof sizes[0], START = 5 };

static struct kedge_batch new_batch(double explore)
{
    struct kedge_batch_options options = kedge_batch_defaults();
    struct kedge_batch b;
    options.explore = explore;
    ck_assert_int_eq(kedge_batch_init(&b, &options, sizes, SIZES, START, NULL), KEDGE_OK);
    return b;
}

static struct kedge_rng new_stream(uint64_t seed)
{
    struct kedge_rng rng;
    kedge_rng_init(&rng, seed, KEDGE_RNG_TEST, 0, 0);
    return rng;
}

/* By hand: 256 costs 100. 128 is tried with 150 at the most, and costs 80; 64 with 120, and is stopped; then
 * 128 has both neighbours behind it, 64 fails, and what is played is 128 or 256. */
START_TEST(down_the_valley)
{
    struct kedge_batch b = new_batch(9);
    struct kedge_rng rng = new_stream(1);
    struct kedge_batch_choice c = kedge_batch_choose(&b, false, &rng);
    ck_assert(c.place == START && isinf(c.limit));
    kedge_batch_saw(&b, START, 100, true);
    c = kedge_batch_choose(&b, false, &rng);
    ck_assert_uint_eq(c.place, 4);
    ck_assert_double_eq_tol(c.limit, 150, 1e-9);
    kedge_batch_saw(&b, 4, 80, true);
    c = kedge_batch_choose(&b, false, &rng);
    ck_assert_uint_eq(c.place, 3);
    ck_assert_double_eq_tol(c.limit, 120, 1e-9);
    kedge_batch_saw(&b, 3, 120, false);
    c = kedge_batch_choose(&b, true, &rng); /* again: with the best, to the end */
    ck_assert(c.place == 4 && isinf(c.limit));
    kedge_batch_saw(&b, 4, 80, true);
    for (int i = 0; i < 200; i++) {
        c = kedge_batch_choose(&b, false, &rng);
        ck_assert(c.place == 4 || c.place == START);
        ck_assert(c.place == 4 ? isinf(c.limit) : c.limit <= 120 + 1e-9);
    }
    ck_assert_uint_eq(kedge_batch_best(&b), 4);
}
END_TEST

/* What is tried may cost no more than a share of what the default would have: never with 0, later with a
 * little. */
START_TEST(trying_is_bounded)
{
    static const double shares[] = {0, 0.05, 0.25, 1};
    for (size_t k = 0; k < 4; k++) {
        struct kedge_batch b = new_batch(shares[k]);
        struct kedge_rng rng = new_stream(2);
        double spent = 0, normal = 0;
        for (int run = 0; run < 200; run++) {
            for (bool again = false;; again = true) {
                const struct kedge_batch_choice c = kedge_batch_choose(&b, again, &rng);
                const double cost = c.place == START ? 100 : 1000; /* all others are worse than they may be */
                const bool reached = cost <= c.limit;
                spent += reached ? cost : c.limit;
                kedge_batch_saw(&b, c.place, reached ? cost : c.limit, reached);
                if (reached) {
                    break;
                }
            }
            normal += 100;
            ck_assert_double_le(spent, normal * (1 + shares[k]) + 1e-6);
        }
        ck_assert(shares[k] > 0 ? spent > normal : spent <= normal);
    }
}
END_TEST

/* Costs with noise over a valley; the best or its equal is played nearly always behind thirty runs. */
START_TEST(valleys_are_found)
{
    uint32_t good = 0;
    enum { TRIALS = 60, RUNS = 60 };
    for (uint64_t seed = 0; seed < TRIALS; seed++) {
        struct kedge_batch b = new_batch(0.5);
        struct kedge_rng rng = new_stream(seed);
        const double bottom = 1 + 4 * kedge_rng_unit(&rng);
        for (int run = 0; run < RUNS; run++) {
            const struct kedge_batch_choice c = kedge_batch_choose(&b, false, &rng);
            const double off = c.place - bottom;
            const double cost = 100 * (1 + 0.15 * off * off) * (0.97 + 0.06 * kedge_rng_unit(&rng));
            kedge_batch_saw(&b, c.place, fmin(cost, c.limit), cost <= c.limit);
            good += run >= RUNS / 2 && fabs(off) <= 1;
        }
    }
    ck_assert_uint_ge(good, TRIALS * RUNS / 2 * 95 / 100);
}
END_TEST

/* The best size lies behind a worse neighbour: it is found, but not before much is known and little is
 * risked. */
START_TEST(behind_a_hill)
{
    static const double costs[SIZES] = {300, 300, 300, 60, 110, 100, 110};
    struct kedge_batch b = new_batch(0.5);
    struct kedge_rng rng = new_stream(4);
    for (int run = 0; run < 80; run++) {
        const struct kedge_batch_choice c = kedge_batch_choose(&b, false, &rng);
        ck_assert(run >= 20 || c.place >= 4);
        kedge_batch_saw(&b, c.place, fmin(costs[c.place], c.limit), costs[c.place] <= c.limit);
    }
    ck_assert_uint_eq(kedge_batch_best(&b), 3);
}
END_TEST

/* Two sizes of which one is 4 % dearer, costs that scatter by 10 %: once both are known it is seldom played.
 */
START_TEST(close_ones_are_told_apart)
{
    uint32_t dearer = 0;
    enum { TRIALS = 100, RUNS = 120, KNOWN = 60 };
    for (uint64_t seed = 0; seed < TRIALS; seed++) {
        struct kedge_batch b = new_batch(0.5);
        struct kedge_rng rng = new_stream(seed);
        for (int run = 0; run < RUNS; run++) {
            const struct kedge_batch_choice c = kedge_batch_choose(&b, false, &rng);
            const double mean = c.place == START ? 100 : c.place == 4 ? 104 : 1000;
            const double cost = mean * (0.9 + 0.2 * kedge_rng_unit(&rng));
            kedge_batch_saw(&b, c.place, fmin(cost, c.limit), cost <= c.limit);
            dearer += run >= KNOWN && c.place == 4;
        }
    }
    ck_assert_msg(dearer <= TRIALS * (RUNS - KNOWN) * 5 / 100, "%u", dearer);
}
END_TEST

/* A curve that turns: behind as many runs as are remembered the other size is the best one. */
START_TEST(old_costs_expire)
{
    struct kedge_batch b = new_batch(9);
    for (int i = 0; i < 40; i++) {
        kedge_batch_saw(&b, START, 100, true);
        kedge_batch_saw(&b, 4, 50, true);
    }
    ck_assert_uint_eq(kedge_batch_best(&b), 4);
    for (int i = 0; i < KEDGE_BATCH_WINDOW; i++) {
        kedge_batch_saw(&b, 4, 200, true);
    }
    ck_assert_uint_eq(kedge_batch_best(&b), START);
}
END_TEST

START_TEST(a_default_that_fails)
{
    struct kedge_batch b = new_batch(0.5);
    struct kedge_rng rng = new_stream(3);
    static const uint32_t order[] = {5, 4, 6, 3, 2, 1, 0, 5, 5};
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        ck_assert_uint_eq(kedge_batch_choose(&b, i > 0, &rng).place, order[i]);
        kedge_batch_saw(&b, order[i], 10, false);
    }
    b = new_batch(0.5);
    kedge_batch_saw(&b, START, 10, false);
    kedge_batch_saw(&b, 4, 10, true);
    const struct kedge_batch_choice c = kedge_batch_choose(&b, false, &rng);
    ck_assert(c.place == 3 || c.place == 4);
}
END_TEST

START_TEST(what_is_refused)
{
    struct kedge_batch_options options = kedge_batch_defaults();
    static const uint32_t twice[] = {8, 8}, none[] = {0, 8};
    struct kedge_batch b;
    struct kedge_diag d = {.text = ""};
    ck_assert_int_eq(kedge_batch_init(&b, &options, sizes, 0, 0, &d), KEDGE_E_ARG);
    ck_assert_int_eq(kedge_batch_init(&b, &options, sizes, SIZES, SIZES, &d), KEDGE_E_ARG);
    ck_assert_int_eq(kedge_batch_init(&b, &options, twice, 2, 0, &d), KEDGE_E_ARG);
    ck_assert_int_eq(kedge_batch_init(&b, &options, none, 2, 0, &d), KEDGE_E_ARG);
    options.stop = 1;
    ck_assert_int_eq(kedge_batch_init(&b, &options, sizes, SIZES, 0, &d), KEDGE_E_ARG);
    options.stop = NAN;
    ck_assert_int_eq(kedge_batch_init(&b, &options, sizes, SIZES, 0, &d), KEDGE_E_ARG);
    b = new_batch(0.5);
    struct kedge_batch before = b;
    kedge_batch_saw(&b, START, NAN, true);
    kedge_batch_saw(&b, START, -1, true);
    kedge_batch_saw(&b, SIZES, 1, true);
    ck_assert_mem_eq(&b, &before, sizeof b);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("client/batch");
    TCase *tests = tcase_create("batch");
    tcase_add_test(tests, down_the_valley);
    tcase_add_test(tests, trying_is_bounded);
    tcase_add_test(tests, valleys_are_found);
    tcase_add_test(tests, behind_a_hill);
    tcase_add_test(tests, close_ones_are_told_apart);
    tcase_add_test(tests, old_costs_expire);
    tcase_add_test(tests, a_default_that_fails);
    tcase_add_test(tests, what_is_refused);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
