/* A crowd: that its rounds are whole, that chance decides nothing twice, and that a round costs who takes
 * part. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "sim/crowd.h"
#include "tests/fixtures/run.h"

static struct kedge_crowd_outcome run(uint64_t seed, uint32_t sites, uint32_t rounds, uint32_t per_round)
{
    struct kedge_crowd_spec spec = {
        .seed = seed, .tenants = 3, .sites = sites, .rounds = rounds, .sites_per_round = per_round};
    struct kedge_crowd_outcome o;
    struct kedge_diag d = {.text = ""};
    ck_assert_msg(kedge_crowd_run(&spec, NULL, NULL, &o, &d) == KEDGE_OK, "%s", d.text);
    ck_assert_msg(o.holds, "%s", o.why);
    return o;
}

START_TEST(test_whole)
{
    static const uint32_t cases[][3] = {{3, 1, 1}, {3, 4, 3}, {100, 10, 7}, {5000, 5, 40}, {70, 3, 70}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct kedge_crowd_outcome o = run(i + 1, cases[i][0], cases[i][1], cases[i][2]);
        ck_assert_uint_eq(o.rounds, cases[i][1]);
        ck_assert_uint_eq(o.updates, (uint64_t)cases[i][1] * cases[i][2]);
        ck_assert_uint_gt(o.virtual_ns, 0);
    }
}
END_TEST

START_TEST(test_same)
{
    struct kedge_crowd_outcome a = run(9, 500, 6, 20), b = run(9, 500, 6, 20), c = run(10, 500, 6, 20);
    ck_assert_uint_eq(a.digest, b.digest);
    ck_assert_uint_ne(a.digest, c.digest);
}
END_TEST

/* The same number of events, near enough, with a hundred times as many sites asleep. */
START_TEST(test_who_sleeps_costs_nothing)
{
    struct kedge_crowd_outcome few = run(4, 100, 10, 20), many = run(4, 10000, 10, 20);
    ck_assert_uint_eq(few.updates, many.updates);
    ck_assert_uint_lt(many.events, few.events + few.events / 4);
}
END_TEST

START_TEST(test_wrong)
{
    static const struct {
        struct kedge_crowd_spec spec;
        const char *key;
    } cases[] = {
        {{1, 0, 10, 1, 1}, "tenants"},
        {{1, 101, 1000, 1, 1}, "tenants"},
        {{1, 3, 2, 1, 1}, "sites"},
        {{1, 3, 2000000, 1, 1}, "sites"},
        {{1, 3, 10, 0, 1}, "rounds"},
        {{1, 3, 10, 1001, 1}, "rounds"},
        {{1, 3, 10, 1, 0}, "sites_per_round"},
        {{1, 3, 10, 1, 11}, "sites_per_round"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct kedge_crowd_outcome o;
        struct kedge_diag d = {.text = ""};
        ck_assert_int_eq(kedge_crowd_run(&cases[i].spec, NULL, NULL, &o, &d), KEDGE_E_FORMAT);
        ck_assert_msg(strstr(d.text, cases[i].key) != NULL, "%s", d.text);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("sim/crowd");
    TCase *tc = tcase_create("crowd");
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, test_whole);
    tcase_add_test(tc, test_same);
    tcase_add_test(tc, test_who_sleeps_costs_nothing);
    tcase_add_test(tc, test_wrong);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
