/* Plans for sites by what they have said: exact against trying all, by hand, and what is not known. */
#include <check.h>
#include <math.h>
#include <stdlib.h>

#include "common/base/rng.h"
#include "coordinator/plan/sites.h"
#include "tests/fixtures/run.h"

enum { SITES = 4 };
static struct kedge_plan_site sites[SITES];
static struct kedge_plan_share shares[SITES];
static struct kedge_plan_round_cost cost;

static double worth_of(const struct kedge_plan_terms *t, const uint32_t parts[SITES])
{
    double samples = 0, joules = 0, slowest = 0, all = 0, all_joules = 0, longest = 0;
    for (int i = 0; i < SITES; i++) {
        const double part = (double)parts[i] / t->parts, n = sites[i].samples;
        const double seconds = sites[i].other_seconds + part * n * sites[i].seconds_per_sample;
        const double whole = sites[i].other_seconds + n * sites[i].seconds_per_sample;
        samples += part * n;
        all += n;
        joules += part * n * sites[i].joules_per_sample;
        all_joules += n * sites[i].joules_per_sample;
        slowest = parts[i] > 0 && seconds > slowest ? seconds : slowest;
        longest = whole > longest ? whole : longest;
    }
    return t->data_weight * samples / all - t->energy_weight * joules / all_joules
           - t->time_weight * slowest / longest;
}

/* Every way to share out parts among four sites, on many random ones. */
START_TEST(exact)
{
    struct kedge_rng rng;
    kedge_rng_init(&rng, 3, KEDGE_RNG_TEST, 0, 0);
    for (int world = 0; world < 300; world++) {
        const struct kedge_plan_terms t = {1 + (uint32_t)kedge_rng_below(&rng, 5), 10 * kedge_rng_unit(&rng),
                                           6 * kedge_rng_unit(&rng), 8 * kedge_rng_unit(&rng)};
        for (int i = 0; i < SITES; i++) {
            sites[i] = (struct kedge_plan_site){10 + 500 * kedge_rng_unit(&rng), 0.001 + kedge_rng_unit(&rng),
                                                0.01 + 3 * kedge_rng_unit(&rng), 20 * kedge_rng_unit(&rng)};
        }
        double best = -1e9;
        uint32_t ways = 1, parts[SITES];
        for (int i = 0; i < SITES; i++) {
            ways *= t.parts + 1;
        }
        for (uint32_t way = 0; way < ways; way++) {
            uint32_t left = way;
            for (int i = 0; i < SITES; i++, left /= t.parts + 1) {
                parts[i] = left % (t.parts + 1);
            }
            best = fmax(best, worth_of(&t, parts));
        }
        ck_assert_int_eq(kedge_plan_sites(&t, sites, SITES, shares, &cost, NULL), KEDGE_OK);
        for (int i = 0; i < SITES; i++) {
            parts[i] = shares[i].parts;
        }
        ck_assert_double_eq_tol(cost.worth, best, 1e-9);
        ck_assert_double_eq_tol(worth_of(&t, parts), best, 1e-9);
        kedge_plan_sites_all(&t, sites, SITES, t.parts, &cost);
        for (int i = 0; i < SITES; i++) {
            parts[i] = t.parts;
        }
        ck_assert_double_eq_tol(cost.worth, worth_of(&t, parts), 1e-9);
    }
}
END_TEST

/* Three quick sites and one that takes ten times as long: it trains on a part, or rests where time is dear.
 */
START_TEST(one_is_slow)
{
    struct kedge_plan_terms t = {4, 10, 1, 3};
    for (int i = 0; i < SITES; i++) {
        sites[i] = (struct kedge_plan_site){100, i == 3 ? 1 : 0.1, 1, 0};
    }
    ck_assert_int_eq(kedge_plan_sites(&t, sites, SITES, shares, &cost, NULL), KEDGE_OK);
    ck_assert_uint_eq(shares[0].parts, 4);
    ck_assert_uint_eq(shares[3].parts,
                      1); /* a quarter gives 0.5625 for 15 s, which cost 0.45; a half 1.125 for 1.2 */
    t.time_weight = 1;
    ck_assert_int_eq(kedge_plan_sites(&t, sites, SITES, shares, &cost, NULL), KEDGE_OK);
    ck_assert_uint_eq(shares[3].parts, 4);
    ck_assert_double_eq_tol(cost.seconds, 100, 1e-9);
    ck_assert_double_eq_tol(cost.joules, 400, 1e-9);
}
END_TEST

/* Unknown joules are in no sum, and make nobody cheap. */
START_TEST(unknown_is_not_free)
{
    const struct kedge_plan_terms t = {2, 1, 3, 0};
    for (int i = 0; i < SITES; i++) {
        sites[i] = (struct kedge_plan_site){100, 0.1, i == 0 ? (double)NAN : i == 1 ? 4 : 0.1, 1};
    }
    ck_assert_int_eq(kedge_plan_sites(&t, sites, SITES, shares, &cost, NULL), KEDGE_OK);
    ck_assert(shares[0].parts == 0 && shares[1].parts == 0 && shares[2].parts == 2 && shares[3].parts == 2);
    ck_assert(cost.unknown == 0 && cost.sites == 2 && fabs(cost.joules - 20) < 1e-9);
    sites[1].joules_per_sample = 0.1;
    ck_assert_int_eq(
        kedge_plan_sites(&(struct kedge_plan_terms){2, 9, 3, 0}, sites, SITES, shares, &cost, NULL),
        KEDGE_OK);
    ck_assert(shares[0].parts == 2 && isnan(shares[0].joules));
    ck_assert(cost.unknown == 1 && cost.sites == 4 && fabs(cost.joules - 30) < 1e-9);
    for (int i = 0; i < SITES; i++) {
        sites[i].joules_per_sample = (double)NAN;
    }
    ck_assert_int_eq(kedge_plan_sites(&t, sites, SITES, shares, &cost, NULL), KEDGE_OK);
    ck_assert(cost.unknown == 4 && !(cost.joules > 0) && shares[2].parts == 2);
}
END_TEST

START_TEST(what_is_refused)
{
    const struct kedge_plan_terms fine = {4, 10, 1, 3};
    struct kedge_diag d = {.text = ""};
    sites[0] = (struct kedge_plan_site){100, 0.1, 1, 0};
    struct kedge_plan_terms bad = fine;
    bad.parts = 0;
    ck_assert_int_eq(kedge_plan_sites(&bad, sites, 1, shares, &cost, &d), KEDGE_E_ARG);
    bad = fine;
    bad.time_weight = (double)NAN;
    ck_assert_int_eq(kedge_plan_sites(&bad, sites, 1, shares, &cost, &d), KEDGE_E_ARG);
    ck_assert_int_eq(kedge_plan_sites(&fine, sites, 0, shares, &cost, &d), KEDGE_E_ARG);
    static const struct kedge_plan_site wrong[] = {
        {0, 1, 1, 0}, {1, 0, 1, 0}, {1, 1, -1, 0}, {1, 1, 1, -1}, {1, 1, 1, INFINITY}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        ck_assert_int_eq(kedge_plan_sites(&fine, &wrong[i], 1, shares, &cost, &d), KEDGE_E_ARG);
        ck_assert_int_eq(kedge_plan_sites(&fine, sites, 1, shares, &cost, &d), KEDGE_OK);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("coordinator/plan sites");
    TCase *tests = tcase_create("sites");
    tcase_add_test(tests, exact);
    tcase_add_test(tests, one_is_slow);
    tcase_add_test(tests, unknown_is_not_free);
    tcase_add_test(tests, what_is_refused);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
