/* Whose round opens: who is behind, by how much, and what that costs those who are ahead. */
#include <check.h>

#include "coordinator/schedule/turn.h"
#include "tests/fixtures/run.h"

typedef struct kedge_schedule_job share;

START_TEST(test_waits_for_who_is_behind)
{
    share mine = {.served_ns = 100, .round_ns = 10};
    share ahead = {200, 0, 1, 0}, level = {80, 0, 10, 0}, behind = {79, 0, 10, 0};
    ck_assert_uint_eq(kedge_schedule_wait(&mine, NULL, 0), 0);
    ck_assert_uint_eq(kedge_schedule_wait(&mine, &ahead, 1), 0);
    ck_assert_uint_eq(kedge_schedule_wait(&mine, &level, 1), 0); /* two rounds behind is level … */
    ck_assert_uint_eq(kedge_schedule_wait(&mine, &behind, 1), 12);
    share shorter = {95, 0, 5, 0}, shorter_behind = {94, 0, 5, 0};
    ck_assert_uint_eq(kedge_schedule_wait(&mine, &shorter, 1), 0); /* … and one of half the length */
    ck_assert_uint_eq(kedge_schedule_wait(&mine, &shorter_behind, 1), 12);
    share all[] = {behind, ahead, behind, level};
    ck_assert_uint_eq(kedge_schedule_wait(&mine, all, 4), 24); /* a turn for each of them */
}
END_TEST

START_TEST(test_first_rounds_wait_for_nobody)
{
    share mine = {0, 0, 0, 0}, other = {0, 0, 0, 0};
    ck_assert_uint_eq(kedge_schedule_wait(&mine, &other, 1), 0);
}
END_TEST

START_TEST(test_numbers_do_not_wrap)
{
    share mine = {UINT64_MAX, 0, UINT64_MAX - 1, 0}, far[] = {{0, 0, 1, 0}, {0, 0, 2, 0}};
    ck_assert_uint_eq(kedge_schedule_wait(&mine, far, 2), UINT64_MAX);
    share late = {UINT64_MAX - 1, 0, UINT64_MAX, 0};
    ck_assert_uint_eq(kedge_schedule_wait(&mine, &late, 1), 0);
    ck_assert_uint_eq(kedge_schedule_served(&far[0], &mine), 0);
}
END_TEST

START_TEST(test_nobody_saves_up)
{
    share ahead = {1000, 0, 10, 0}, idle = {0, 0, 3, 0}, close = {990, 0, 3, 0}, beyond = {2000, 0, 3, 0};
    ck_assert_uint_eq(kedge_schedule_served(&idle, &ahead), 980);
    ck_assert_uint_eq(kedge_schedule_served(&close, &ahead), 990);
    ck_assert_uint_eq(kedge_schedule_served(&beyond, &ahead), 2000);
    share longer = {0, 0, 50, 0};
    ck_assert_uint_eq(kedge_schedule_served(&longer, &ahead), 900);
}
END_TEST

/* Who is to have four times another's share has four of its rounds in the time of one. */
START_TEST(test_by_shares)
{
    share light = {.since_ns = 100, .round_ns = 10, .share = 400000};
    share heavy = {.since_ns = 387, .round_ns = 10, .share = 1600000};
    ck_assert_uint_eq(kedge_schedule_wait(&light, &heavy, 1), 48); /* 12 and four times that */
    heavy.since_ns = 400;
    ck_assert_uint_eq(kedge_schedule_wait(&light, &heavy, 1), 0);
    light.since_ns = 80; /* … and waits for it as for a job that is a quarter as dear */
    heavy.since_ns = 600;
    ck_assert_uint_eq(kedge_schedule_wait(&heavy, &light, 1), 3);
    share idle = {.served_ns = 0, .round_ns = 10, .share = 400000};
    ck_assert_uint_eq(kedge_schedule_served(&idle, &heavy), 325); /* 600 / 1.6, less 2 · 25 */
}
END_TEST

/* Two jobs that were served alike are level, whatever share one of them is to have from now on. */
START_TEST(test_what_is_past_is_not_valued_again)
{
    static const uint32_t shares[] = {62500, 250000, 1000000, 1750000, 64000000};
    for (size_t i = 0; i < sizeof shares / sizeof shares[0]; i++) {
        share mine = {.served_ns = 1000000, .round_ns = 10, .share = shares[i]};
        share other = {.served_ns = 1000000, .round_ns = 10};
        ck_assert_uint_eq(kedge_schedule_wait(&mine, &other, 1), 0);
        ck_assert_uint_eq(kedge_schedule_wait(&other, &mine, 1), 0);
        ck_assert_uint_eq(kedge_schedule_served(&other, &mine), 1000000);
        ck_assert_uint_eq(kedge_schedule_served(&mine, &other), 1000000);
    }
    ck_assert_uint_eq(kedge_schedule_counted(UINT64_MAX / 2, 62500), UINT64_MAX);
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("turn");
    tcase_add_test(c, test_waits_for_who_is_behind);
    tcase_add_test(c, test_first_rounds_wait_for_nobody);
    tcase_add_test(c, test_numbers_do_not_wrap);
    tcase_add_test(c, test_nobody_saves_up);
    tcase_add_test(c, test_by_shares);
    tcase_add_test(c, test_what_is_past_is_not_valued_again);
    Suite *s = suite_create("schedule/turn");
    suite_add_tcase(s, c);
    return run_suite(s);
}
