/* The spec of a crowd, which is one of its own. */
#include <check.h>

#include "cli/sim/sim.h"
#include "tests/fixtures/run.h"

START_TEST(test_good)
{
    struct kedge_cli_sim s;
    struct kedge_diag d = {.text = ""};
    const char *good =
        "{\"crowd\":1000000,\"tenants\":100,\"sites_per_round\":1000,\"rounds\":5,\"seed\":\"7\"}";
    ck_assert_int_eq(kedge_cli_sim_parse(kedge_view_str(good), &s, &d), KEDGE_OK);
    ck_assert(s.is_crowd);
    ck_assert_uint_eq(s.crowd.sites, 1000000);
    ck_assert_uint_eq(s.crowd.tenants, 100);
    ck_assert_uint_eq(s.crowd.sites_per_round, 1000);
    ck_assert_uint_eq(s.crowd.rounds, 5);
    ck_assert_uint_eq(s.crowd.seed, 7);
    ck_assert_int_eq(kedge_cli_sim_parse(kedge_view_str("{\"sites\":3}"), &s, &d), KEDGE_OK);
    ck_assert(!s.is_crowd);
}
END_TEST

START_TEST(test_wrong)
{
    static const char *const wrong[] = {
        "{\"crowd\":0}",
        "{\"crowd\":1048577}",
        "{\"crowd\":\"10\"}",
        "{\"crowd\":10,\"sites\":3}",
        "{\"crowd\":10,\"tenants\":11}",
        "{\"crowd\":10,\"sites_per_round\":11}",
        "{\"crowd\":10,\"rounds\":0}",
        "{\"crowd\":10,\"seed\":1}",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct kedge_cli_sim s;
        struct kedge_diag d = {.text = ""};
        ck_assert_msg(kedge_cli_sim_parse(kedge_view_str(wrong[i]), &s, &d) == KEDGE_E_FORMAT, "%s",
                      wrong[i]);
        ck_assert(d.text[0] != '\0');
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cli/crowd");
    TCase *tc = tcase_create("spec");
    tcase_add_test(tc, test_good);
    tcase_add_test(tc, test_wrong);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
