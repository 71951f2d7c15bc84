/* Groups made anew: what a site counts in its group's model, and that many sites of one tenant count no more
 * than a tenant. */
#include <check.h>
#include <stdlib.h>

#include "grouping/flexcfl.h"
#include "round/regroup.h"

#define NONE KEDGE_GROUP_NONE
enum { MOST = 8 };

static const struct {
    const char *what;
    size_t count;
    uint32_t tenant[MOST], then[MOST], group[MOST];
    uint64_t weight[MOST]; /* of group 0; of others 9 stays */
} cases[] = {
    {"one each", 2, {0, 1}, {0, 1}, {0, 0}, {1, 1}},
    {"six sites of one weigh as one of another",
     7,
     {0, 1, 1, 1, 1, 1, 1},
     {0, 1, 1, 1, 1, 1, 1},
     {0},
     {6, 1, 1, 1, 1, 1, 1}},
    {"three against two", 5, {3, 3, 3, 7, 7}, {0, 0, 0, 1, 1}, {0}, {1, 1, 2, 2, 2}},
    {"other groups do not matter", 4, {0, 0, 0, 1}, {0, 0, 0, 0}, {0, 1, 1, 0}, {1, 9, 9, 1}},
    {"who had no group does not count", 4, {0, 1, 1, 1}, {0, NONE, 1, 2}, {0}, {1, 0, 1, 0}},
    {"where nobody had one all do", 3, {0, 1, 1}, {NONE, NONE, 7}, {0}, {2, 1, 1}},
    {"a tenant alone", 2, {5, 5}, {1, 0}, {0}, {1, 1}},
};

START_TEST(members_weigh_by_tenant)
{
    uint64_t weight[MOST];
    for (size_t i = 0; i < MOST; i++) {
        weight[i] = 9;
    }
    /* of the groups before there were two */
    ck_assert_int_eq(kedge_compute_regroup_weigh(cases[_i].tenant, cases[_i].then, cases[_i].group,
                                                 cases[_i].count, 2, 0, weight),
                     KEDGE_OK);
    for (size_t i = 0; i < cases[_i].count; i++) {
        ck_assert_msg(weight[i] == cases[_i].weight[i], "%s: member %zu weighs %llu, expected %llu",
                      cases[_i].what, i, (unsigned long long)weight[i],
                      (unsigned long long)cases[_i].weight[i]);
    }
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("regroup");
    tcase_add_loop_test(tc, members_weigh_by_tenant, 0, (int)(sizeof cases / sizeof cases[0]));
    Suite *s = suite_create("compute regroup");
    suite_add_tcase(s, tc);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
