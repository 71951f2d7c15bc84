/* Targets: how long they are held, and which are reached. */
#include <check.h>

#include "coordinator/schedule/target.h"
#include "tests/fixtures/run.h"

static const struct kedge_schedule_targets two = {.count = 2, .millionths = {500000, 800000}, .hold = 3};

/* The tier after an evaluation in which so many of 10 samples are right. */
static uint32_t after(struct kedge_schedule_held *held, uint64_t right)
{
    kedge_schedule_tested(&two, right, 10, held);
    return kedge_schedule_tier(&two, held);
}

START_TEST(test_held)
{
    struct kedge_schedule_held held = {{0, 0}};
    static const struct {
        uint64_t right;
        uint32_t tier;
    } steps[] = {{5, 0}, {9, 0}, {5, 1}, {8, 1}, {8, 1}, {8, 2}, {9, 2}, {7, 1}, {4, 0},
                 {5, 0}, {5, 0}, {5, 1}, {8, 1}, {4, 0}, {8, 0}, {8, 0}, {8, 2}};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        ck_assert_msg(after(&held, steps[i].right) == steps[i].tier, "step %zu", i);
        ck_assert_uint_le(held.times[0], two.hold);
    }
}
END_TEST

/* To the last sample, also where products leave 64 bits. */
START_TEST(test_exact)
{
    const struct kedge_schedule_targets third = {.count = 1, .millionths = {333333}, .hold = 1};
    const uint64_t many = (uint64_t)1 << 53;
    struct kedge_schedule_held held = {{0, 0}};
    kedge_schedule_tested(&third, 333333, 1000000, &held);
    ck_assert_uint_eq(kedge_schedule_tier(&third, &held), 1);
    kedge_schedule_tested(&third, 333332, 1000000, &held);
    ck_assert_uint_eq(kedge_schedule_tier(&third, &held), 0);
    kedge_schedule_tested(&third, many / 3, many, &held);
    ck_assert_uint_eq(kedge_schedule_tier(&third, &held), 1);
    kedge_schedule_tested(&third, many / 1000000 * 333333, many, &held);
    ck_assert_uint_eq(kedge_schedule_tier(&third, &held), 0);
}
END_TEST

/* Where nobody evaluated nothing is learnt; without targets none is reached. */
START_TEST(test_nothing)
{
    const struct kedge_schedule_targets none = {.count = 0};
    struct kedge_schedule_held held = {{3, 1}};
    kedge_schedule_tested(&two, 0, 0, &held);
    ck_assert(held.times[0] == 3 && held.times[1] == 1);
    ck_assert_uint_eq(kedge_schedule_tier(&none, &held), 0);
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("target");
    tcase_add_test(c, test_held);
    tcase_add_test(c, test_exact);
    tcase_add_test(c, test_nothing);
    Suite *s = suite_create("schedule/target");
    suite_add_tcase(s, c);
    return run_suite(s);
}
