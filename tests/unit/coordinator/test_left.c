/* Tenants that leave a job that goes on, as events and golden effects. */
#include <check.h>

#include "tests/fixtures/run.h"
#include "tests/unit/coordinator/host.h"

static const enum kedge_task_kind T = KEDGE_TASK_TRAIN;

/* Two tenants with a site each, both polling, round 1 open. */
static void open_two(struct host *h)
{
    h->params.sites_min = 1;
    host_members(h, 2, 2);
    host_simple(h, KEDGE_EV_START);
    host_submit_job(h);
    host_main(h, KEDGE_OK);
    host_joined(h, 0);
    host_joined(h, 1);
    host_poll(h, 0, 100);
    host_poll(h, 1, 101);
    host_main(h, KEDGE_OK);
    EXPECT(h, "task q100 s0 train r1 g0 base=1; task q101 s1 train r1 g0 base=1");
}

/* A tenant leaves the job as if its sites had been revoked for it, and for no other. */
START_TEST(test_left)
{
    struct host h;
    host_open(&h);
    open_two(&h);
    host_submit(&h, 0, T, 1, 0, 1, 10);
    host_poll(&h, 1, 110);
    EXPECT(&h, "task q110 s1 train r1 g0 base=1");
    host_left(&h, 0);
    EXPECT(&h, "");
    host_verified(&h, 0, T, 10, KEDGE_OK);
    EXPECT(&h, "away q10 NOT_JOINED");
    ck_assert_int_eq(kedge_coord_may_upload(h.c, 0, 0, 1), KEDGE_E_NOT_JOINED);
    host_submit(&h, 0, T, 1, 0, 1, 12);
    EXPECT(&h, "away q12 NOT_JOINED");
    ck_assert(kedge_coord_is_valid(h.c));
    host_joined(&h, 0); /* once */
    host_accept(&h, 1, T, 1, 0, 1, 11);
    EXPECT(&h, "receipt q11 leaf=11; close r1");
    host_close(&h);
}
END_TEST

START_TEST(test_left_while_appending)
{
    struct host h;
    host_open(&h);
    open_two(&h);
    host_submit(&h, 0, T, 1, 0, 1, 10);
    host_verified(&h, 0, T, 10, KEDGE_OK);
    host_left(&h, 0);
    host_accept(&h, 1, T, 1, 0, 1, 11);
    EXPECT(&h, "receipt q11 leaf=11");
    if (_i == 0) { /* it was ordered first, and stays in the round */
        host_appended(&h, 0, T, 10, 4, KEDGE_OK);
        EXPECT(&h, "receipt q10 leaf=4; close r1");
    } else {
        host_appended(&h, 0, T, 10, 0, KEDGE_E_DISK_FULL);
        h.now += 1000 * MS;
        host_simple(&h, KEDGE_EV_TIMER);
        EXPECT(&h, "append s0 train t10");
        host_appended(&h, 0, T, 10, 0, KEDGE_E_NOT_JOINED);
        EXPECT(&h, "away q10 NOT_JOINED; halted>training; close r1");
    }
    host_close(&h);
}
END_TEST

/* The round is due at once when only sites of a tenant that leaves are awaited; the next one is without them.
 */
START_TEST(test_round_goes_on)
{
    struct host h;
    host_open(&h);
    open_two(&h);
    host_accept(&h, 1, T, 1, 0, 1, 11);
    EXPECT(&h, "receipt q11 leaf=11");
    host_left(&h, 0);
    EXPECT(&h, "close r1");
    host_computed(&h, 1, 1, 20, KEDGE_OK);
    host_poll(&h, 0, 102);
    host_poll(&h, 1, 103);
    host_main(&h, KEDGE_OK);
    EXPECT(&h, "round-opened r2");
    ck_assert(!kedge_coord_row(h.c, 0, 0)->candidate && kedge_coord_row(h.c, 0, 1)->candidate);
    host_main(&h, KEDGE_OK);
    EXPECT(&h, "task q103 s1 train r2 g0 base=20");
    struct kedge_digest base = digest_of(20);
    ck_assert(!kedge_coord_may_read(h.c, 0, 0, &base) && kedge_coord_may_read(h.c, 0, 1, &base));
    ck_assert(kedge_coord_is_valid(h.c));
    host_close(&h);
}
END_TEST

/* Before the first round, too; the job waits for nobody that left, and opens no round when all have. */
START_TEST(test_before_the_first_round)
{
    struct host h;
    host_open(&h);
    h.params.sites_min = 1;
    host_members(&h, 2, 2);
    host_simple(&h, KEDGE_EV_START);
    host_submit_job(&h);
    host_main(&h, KEDGE_OK);
    host_left(&h, 0); /* it has not joined: that says nothing */
    host_joined(&h, 0);
    host_poll(&h, 0, 100);
    host_left(&h, 0);
    host_joined(&h, 1);
    EXPECT(&h, "");
    host_poll(&h, 1, 101);
    EXPECT(&h, "enrolling>training; round-opened r1");
    host_main(&h, KEDGE_OK);
    EXPECT(&h, "task q101 s1 train r1 g0 base=1");
    host_left(&h, 1);
    host_simple(&h, KEDGE_EV_JOB_CANCEL);
    EXPECT(&h, "job-closed cancelled");
    host_close(&h);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("left");
    tcase_add_test(tc, test_left);
    tcase_add_loop_test(tc, test_left_while_appending, 0, 2);
    tcase_add_test(tc, test_round_goes_on);
    tcase_add_test(tc, test_before_the_first_round);
    Suite *s = suite_create("coordinator/left");
    suite_add_tcase(s, tc);
    return run_suite(s);
}
