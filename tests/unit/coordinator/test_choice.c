/* Sites that choose their group. */
#include <check.h>

#include "tests/fixtures/run.h"
#include "tests/unit/coordinator/host_groups.h"

static const enum kedge_task_kind P = KEDGE_TASK_PRETRAIN, T = KEDGE_TASK_TRAIN, E = KEDGE_TASK_EVALUATE;
enum { SITES = HOST_GROUP_SITES, NONE = HOST_GROUP_NONE };

/* Sites that choose: any model, and the update says whose. */
START_TEST(test_choice)
{
    struct host h;
    host_open(&h);
    h.params.groups = 2;
    h.params.entry = KEDGE_ENTRY_CHOICE;
    h.params.evaluate_every = 1;
    host_load_job(&h, 2);
    host_simple(&h, KEDGE_EV_START);
    for (uint32_t i = 0; i < SITES; i++) {
        host_poll(&h, i, 100 + i);
    }
    host_main(&h, KEDGE_OK);
    EXPECT(&h, "task q100 s0 train r1 cold base=0; task q101 s1 train r1 cold base=0; "
               "task q102 s2 train r1 cold base=0");
    ck_assert(host_may_read(&h, 0, 1) && host_may_read(&h, 0, 2));
    host_submit(&h, 0, T, 1, 2, 1, 7);
    EXPECT(&h, "away q7 WRONG_GROUP");
    host_submit(&h, 0, T, 1, 1, 1, 8);
    EXPECT(&h, "away q8 WRONG_BASE"); /* it trained another than it says */
    host_submit(&h, 0, P, 1, KEDGE_COORD_NONE, 1, 9);
    EXPECT(&h, "away q9 ARG");
    host_train_all(&h, 1, (uint32_t[]){1, 0, 1}, (uint8_t[]){2, 1, 2}, 10);
    EXPECT(&h, "receipt q12 leaf=12; close r1");
    ck_assert_uint_eq(kedge_coord_row(h.c, 0, 0)->train.group, 1);
    ck_assert_uint_eq(kedge_coord_row(h.c, 0, 0)->group, 1);
    host_closes(&h, 1, 2, 30, (int[]){NONE, NONE, NONE}, false);
    host_main(&h, KEDGE_OK);
    host_poll(&h, 1, 110);
    host_poll(&h, 2, 111);
    host_poll(&h, 0, 112);
    host_main(&h, KEDGE_OK);
    host_accept(&h, 0, T, 2, 0, 30, 20);
    EXPECT(&h, "receipt q20 leaf=20");
    ck_assert_uint_eq(kedge_coord_row(h.c, 0, 0)->group, 0);
    host_submit(&h, 1, E, 1, 0, 30, 21);
    EXPECT(&h, "append s1 evaluate t21"); /* of the group that it was in */
    host_close(&h);
}
END_TEST

START_TEST(test_choice_restarted)
{
    struct host h;
    host_open(&h);
    h.params.groups = 2;
    h.params.entry = KEDGE_ENTRY_CHOICE;
    host_load_job(&h, 2);
    host_load_closed(&h, 1, T, 2, false);
    host_load_open(&h, 2, T);
    host_load_group(&h, 1, 1, 0, true);
    host_load_accepted(&h, 0, T, 1, 7);
    host_simple(&h, KEDGE_EV_START);
    ck_assert_uint_eq(kedge_coord_row(h.c, 0, 0)->group, 1);
    ck_assert_uint_eq(kedge_coord_row(h.c, 0, 0)->train.group, 1);
    ck_assert_uint_eq(kedge_coord_row(h.c, 0, 1)->group, 0);
    host_accept(&h, 1, T, 2, 1, 21, 8);
    EXPECT(&h, "receipt q8 leaf=8; close r2");
    host_close(&h);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("choice");
    tcase_add_test(tc, test_choice);
    tcase_add_test(tc, test_choice_restarted);
    Suite *s = suite_create("coordinator/choice");
    suite_add_tcase(s, tc);
    return run_suite(s);
}
