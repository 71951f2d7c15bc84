/* Sites that cannot serve a task: rounds do not wait for them, nobody asks them meanwhile, and what is told.
 */
#include <check.h>
#include <stdlib.h>

#include "tests/unit/coordinator/host.h"

static const enum kedge_task_kind T = KEDGE_TASK_TRAIN;

static void ended(struct host *h, uint32_t site, uint32_t round, enum kedge_trouble why, uint32_t wait_s,
                  uint32_t request)
{
    struct kedge_coord_event ev = event_of(h, KEDGE_EV_TASK_ENDED);
    ev.job = 0;
    ev.site = site;
    ev.round = round;
    ev.kind = T;
    ev.trouble = why;
    ev.wait_ns = wait_s * 1000 * MS;
    ev.request = request;
    host_step(h, &ev);
}

static void poll_anew(struct host *h, uint32_t site, uint32_t request)
{
    struct kedge_coord_event ev = event_of(h, KEDGE_EV_POLL);
    ev.site = site;
    ev.request = request;
    ev.wait_ns = 5000 * MS;
    ev.anew = true;
    host_step(h, &ev);
}

static void after(struct host *h, uint32_t seconds)
{
    h->now += seconds * 1000 * MS;
    host_simple(h, KEDGE_EV_TIMER);
}

/* So many sites, all with the task of round 1. */
static void open_first_round(struct host *h, uint32_t sites)
{
    host_open(h);
    h->params.sites_min = 1;
    h->params.round_timeout_ns = 3600000 * MS;
    host_members(h, 1, sites);
    host_simple(h, KEDGE_EV_START);
    host_submit_job(h);
    host_main(h, KEDGE_OK);
    host_joined(h, 0);
    for (uint32_t i = 0; i < sites; i++) {
        host_poll(h, i, 100 + i);
    }
    after(h, sites > 1 ? 1 : 0);
    host_main(h, KEDGE_OK);
}

START_TEST(a_round_does_not_wait)
{
    struct host h;
    open_first_round(&h, 3);
    host_accept(&h, 0, T, 1, 0, 1, 10);
    ended(&h, 2, 1, KEDGE_TROUBLE_DATA_BAD, 60, 50);
    EXPECT(&h, "noted q50 ended");
    host_accept(&h, 1, T, 1, 0, 1, 11);
    EXPECT(&h, "receipt q11 leaf=11; close r1");
    host_poll(&h, 2, 102); /* it asks for other jobs' tasks */
    host_computed(&h, 1, 1, 20, KEDGE_OK);
    host_poll(&h, 0, 103);
    host_main(&h, KEDGE_OK);
    EXPECT(&h, "round-opened r2");
    ck_assert(!kedge_coord_row(h.c, 0, 2)->candidate && kedge_coord_row(h.c, 0, 1)->candidate);
    host_main(&h, KEDGE_OK);
    EXPECT(&h, "task q103 s0 train r2 g0 base=20");
    host_close(&h);
}
END_TEST

START_TEST(what_it_says_is_of_one_round)
{
    struct host h;
    open_first_round(&h, 2);
    ended(&h, 1, 0, KEDGE_TROUBLE_DATA_BAD, 1, 50); /* of another round: it is out of the job for a second */
    EXPECT(&h, "noted q50");
    host_poll(&h, 1, 101);
    EXPECT(&h, "");
    after(&h, 1);
    EXPECT(&h, "task q101 s1 train r1 g0 base=1");
    host_accept(&h, 1, T, 1, 0, 1, 11);
    ended(&h, 1, 1, KEDGE_TROUBLE_DATA_BAD, 1, 51); /* overtaken by its update */
    EXPECT(&h, "noted q51");
    ended(&h, 7, 1, KEDGE_TROUBLE_DATA_BAD, 1, 52);
    EXPECT(&h, "away q52 NOT_ENROLLED");
    ended(&h, 0, 1, KEDGE_TROUBLE_DATA_BAD, 60, 53);
    EXPECT(&h, "noted q53 ended; close r1");
    host_close(&h);
}
END_TEST

/* Below the quorum with nobody left: halted at once, and on as soon as one can. */
START_TEST(a_halted_round_goes_on)
{
    struct host h;
    open_first_round(&h, 2);
    ended(&h, 0, 1, KEDGE_TROUBLE_POLICY, 600, 50);
    ended(&h, 1, 1, KEDGE_TROUBLE_DISK, 600, 51);
    EXPECT(&h, "noted q51 ended; training>halted SITES");
    host_poll(&h, 0, 102);
    EXPECT(&h, "");
    poll_anew(&h, 1, 103); /* its owner has made room */
    EXPECT(&h, "task q103 s1 train r1 g0 base=1; halted>training");
    host_accept(&h, 1, T, 1, 0, 1, 11);
    EXPECT(&h, "receipt q11 leaf=11; close r1");
    host_close(&h);
}
END_TEST

/* Nobody of the round is left, and another site is there that can: it is drawn into the same round. */
START_TEST(a_halted_round_draws_again)
{
    struct host h;
    open_first_round(&h, 2);
    ended(&h, 0, 1, KEDGE_TROUBLE_DATA_MISSING, 600, 50);
    ended(&h, 1, 1, KEDGE_TROUBLE_DATA_MISSING, 600, 51);
    EXPECT(&h, "noted q51 ended; training>halted SITES");
    host_site(&h, 0, 2);
    EXPECT(&h, "");
    host_poll(&h, 2, 102);
    EXPECT(&h, "halted>training; round-opened r1 draw 1");
    ck_assert(!kedge_coord_row(h.c, 0, 0)->selected && kedge_coord_row(h.c, 0, 2)->selected);
    ck_assert(!kedge_coord_row(h.c, 0, 1)->candidate && kedge_coord_row(h.c, 0, 2)->candidate);
    host_main(&h, KEDGE_OK);
    EXPECT(&h, "task q102 s2 train r1 g0 base=1");
    ended(&h, 0, 1, KEDGE_TROUBLE_DATA_MISSING, 600, 52); /* said of the draw before */
    EXPECT(&h, "noted q52");
    host_accept(&h, 2, T, 1, 0, 1, 12);
    EXPECT(&h, "receipt q12 leaf=12; close r1");
    host_computed(&h, 1, 1, 20, KEDGE_OK);
    host_main(&h, KEDGE_OK);
    EXPECT(&h, "round-opened r2");
    host_close(&h);
}
END_TEST

/* What has come counts, so nobody else is drawn; and one who fails in his turn halts the round again. */
START_TEST(nothing_that_came_is_lost)
{
    struct host h;
    host_open(&h);
    h.params.sites_min = h.params.quorum = 2;
    h.params.round_timeout_ns = 3600000 * MS;
    host_members(&h, 1, 2);
    host_simple(&h, KEDGE_EV_START);
    host_submit_job(&h);
    host_main(&h, KEDGE_OK);
    host_joined(&h, 0);
    host_poll(&h, 0, 100);
    host_poll(&h, 1, 101);
    host_main(&h, KEDGE_OK);
    host_accept(&h, 0, T, 1, 0, 1, 10);
    ended(&h, 1, 1, KEDGE_TROUBLE_DISK, 600, 51);
    EXPECT(&h, "noted q51 ended; training>halted SITES");
    host_site(&h, 0, 2);
    host_poll(&h, 2, 102);
    EXPECT(&h, "");
    host_close(&h);

    open_first_round(&h, 1);
    ended(&h, 0, 1, KEDGE_TROUBLE_DISK, 600, 50);
    host_site(&h, 0, 1);
    host_poll(&h, 1, 101);
    EXPECT(&h, "halted>training; round-opened r1 draw 1");
    host_main(&h, KEDGE_OK);
    ended(&h, 1, 1, KEDGE_TROUBLE_DISK, 600, 51);
    EXPECT(&h, "noted q51 ended; training>halted SITES");
    poll_anew(&h, 0, 102); /* the first has made room: it is drawn, for the second cannot */
    EXPECT(&h, "halted>training; round-opened r1 draw 2");
    host_main(&h, KEDGE_OK);
    EXPECT(&h, "task q102 s0 train r1 g0 base=1");
    host_close(&h);
}
END_TEST

START_TEST(the_operator_asks_again)
{
    struct host h;
    open_first_round(&h, 1);
    ended(&h, 0, 1, KEDGE_TROUBLE_POLICY, 600, 50);
    EXPECT(&h, "noted q50 ended; training>halted SITES");
    host_poll(&h, 0, 102);
    host_simple(&h, KEDGE_EV_JOB_RESUME);
    EXPECT(&h, "halted>training; task q102 s0 train r1 g0 base=1");
    host_close(&h);
}
END_TEST

/* Nobody is a candidate: the next round waits for one, and says why. */
START_TEST(a_round_waits_for_an_able_site)
{
    struct host h;
    open_first_round(&h, 1);
    host_accept(&h, 0, T, 1, 0, 1, 10);
    ended(&h, 0, 1, KEDGE_TROUBLE_ENERGY, 5, 50);
    EXPECT(&h, "noted q50");
    host_computed(&h, 1, 1, 20, KEDGE_OK);
    host_main(&h, KEDGE_OK);
    EXPECT(&h, "training>halted SITES");
    after(&h, 5);
    EXPECT(&h, "halted>training; round-opened r2");
    host_close(&h);
}
END_TEST

/* Too few are able for sites_min, and the round could close without the others: they are asked all the same.
 */
START_TEST(sites_min_is_kept)
{
    struct host h;
    open_first_round(&h, 2);
    host_accept(&h, 0, T, 1, 0, 1, 10);
    ended(&h, 1, 1, KEDGE_TROUBLE_MEMORY, 600, 50);
    EXPECT(&h, "noted q50 ended; close r1");
    host_close(&h);

    host_open(&h);
    h.params.sites_min = 2;
    h.params.round_timeout_ns = 3600000 * MS;
    host_members(&h, 1, 2);
    host_simple(&h, KEDGE_EV_START);
    host_submit_job(&h);
    host_main(&h, KEDGE_OK);
    host_joined(&h, 0);
    host_poll(&h, 0, 100);
    host_poll(&h, 1, 101);
    host_main(&h, KEDGE_OK);
    host_accept(&h, 0, T, 1, 0, 1, 10);
    ended(&h, 1, 1, KEDGE_TROUBLE_MEMORY, 600, 50);
    host_computed(&h, 1, 1, 20, KEDGE_OK);
    host_main(&h, KEDGE_OK);
    EXPECT(&h, "round-opened r2");
    ck_assert(kedge_coord_row(h.c, 0, 1)->candidate);
    host_close(&h);
}
END_TEST

START_TEST(everybody_fails)
{
    struct host h;
    open_first_round(&h, 2);
    for (uint32_t i = 1; i <= KEDGE_COORD_FAILURES_MAX; i++) {
        ended(&h, 0, 1, KEDGE_TROUBLE_TRAINER_FAILED, 5, 50);
        ended(&h, 1, 1, KEDGE_TROUBLE_DATA_SHAPE, 5, 51);
        if (i < KEDGE_COORD_FAILURES_MAX) {
            EXPECT(&h, "noted q51 ended; training>halted SITES");
            after(&h, 5);
            EXPECT(&h, "halted>training");
        }
    }
    EXPECT(&h, "noted q51 ended; job-closed failed");
    host_main(&h, KEDGE_OK);
    EXPECT(&h, "training>failed SITES");
    host_close(&h);

    open_first_round(&h, 2);
    ended(&h, 0, 1, KEDGE_TROUBLE_DIVERGED, 5, 50);
    ended(&h, 1, 1, KEDGE_TROUBLE_DIVERGED, 5, 51);
    EXPECT(&h, "noted q51 ended; job-closed failed");
    host_close(&h);
}
END_TEST

/* The longest time is bounded, whatever a site asks for; a revoked one says nothing. */
START_TEST(bounds)
{
    struct host h;
    struct kedge_coord_times times;
    open_first_round(&h, 2);
    kedge_coord_times_default(&times);
    struct kedge_coord_event ev = event_of(&h, KEDGE_EV_TASK_ENDED);
    ev.round = 1;
    ev.kind = T;
    ev.trouble = KEDGE_TROUBLE_OTHER;
    ev.wait_ns = UINT64_MAX;
    ev.request = 50;
    ev.site = 0;
    ev.job = 0;
    host_step(&h, &ev);
    ck_assert_uint_eq(kedge_coord_row(h.c, 0, 0)->unable_ns, h.now + times.unable_max);
    ev = event_of(&h, KEDGE_EV_SITE_REVOKED);
    ev.site = 1;
    host_step(&h, &ev);
    ended(&h, 1, 1, KEDGE_TROUBLE_DATA_BAD, 1, 51);
    EXPECT(&h, "away q51 REVOKED");
    host_close(&h);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("able");
    tcase_add_test(tc, a_round_does_not_wait);
    tcase_add_test(tc, what_it_says_is_of_one_round);
    tcase_add_test(tc, a_halted_round_goes_on);
    tcase_add_test(tc, a_halted_round_draws_again);
    tcase_add_test(tc, nothing_that_came_is_lost);
    tcase_add_test(tc, the_operator_asks_again);
    tcase_add_test(tc, a_round_waits_for_an_able_site);
    tcase_add_test(tc, sites_min_is_kept);
    tcase_add_test(tc, everybody_fails);
    tcase_add_test(tc, bounds);
    Suite *s = suite_create("coordinator/able");
    suite_add_tcase(s, tc);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
