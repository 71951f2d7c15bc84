/* Times that a host may not get wrong, and the rare branches that a host can make frequent: each does what
 * its name says and nothing else. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/core/rare.h"
#include "tests/unit/coordinator/host.h"

static const struct {
    uint64_t lease_ms, poll_ms, held_ms;
} polls[] = {
    {15000, 20000, 7500}, {15000, 7500, 7500}, {15000, 7499, 7499},
    {10, 20000, 5},       {3, 20000, 1},       {15000, 5, 5},
};

/* A site whose poll is held says nothing: held longer than its lease it would count as away. */
START_TEST(test_poll_within_lease)
{
    struct host h;
    struct kedge_coord_times times;
    host_open(&h);
    kedge_coord_times_default(&times);
    ck_assert_uint_le(times.poll_max, times.lease / 2);
    times.lease = polls[_i].lease_ms * MS;
    times.poll_max = polls[_i].poll_ms * MS;
    ck_assert_int_eq(kedge_coord_init(h.mem, kedge_coord_size(&h.limits), &h.limits, &times, &h.c), KEDGE_OK);
    host_members(&h, 1, 1);
    host_simple(&h, KEDGE_EV_START);
    struct kedge_coord_event ev = event_of(&h, KEDGE_EV_POLL);
    ev.site = 0;
    ev.request = 1;
    ev.wait_ns = UINT64_MAX;
    host_step(&h, &ev);
    EXPECT(&h, "");
    uint64_t due = kedge_coord_deadline_ns(h.c);
    ck_assert_uint_le(due - h.now, polls[_i].lease_ms * MS / 2);
    ck_assert_uint_ge(due - h.now, polls[_i].held_ms * MS);
    h.now = due;
    host_simple(&h, KEDGE_EV_TIMER);
    EXPECT(&h, "wait q1");
    host_close(&h);
}
END_TEST

START_TEST(test_bad_times)
{
    struct host h;
    struct kedge_coord_times times;
    host_open(&h);
    for (int i = 0; i < 3; i++) {
        kedge_coord_times_default(&times);
        times.lease = i == 0 ? 1 : times.lease; /* half of it is nothing */
        times.poll_max = i == 1 ? 0 : times.poll_max;
        times.retry = i == 2 ? 0 : times.retry;
        ck_assert_int_eq(kedge_coord_init(h.mem, kedge_coord_size(&h.limits), &h.limits, &times, &h.c),
                         KEDGE_E_ARG);
    }
    host_close(&h);
}
END_TEST

/* A host with one rare branch that always comes, in a job whose round 1 is open. */
static void open_rare(struct host *h, struct kedge_coord_rare *rare, enum kedge_coord_rare_site site,
                      uint32_t sites)
{
    memset(rare, 0, sizeof *rare);
    kedge_rng_init(&rare->rng, 1, KEDGE_RNG_TEST, 0, 0);
    host_open(h);
    host_members(h, 1, sites);
    host_simple(h, KEDGE_EV_START);
    host_submit_job(h);
    host_main(h, KEDGE_OK);
    host_joined(h, 0);
    rare->permille = 1000;
    rare->enabled[site] = true;
    kedge_coord_rare_use(h->c, rare);
}

static void open_round(struct host *h)
{
    host_poll(h, 0, 1);
    host_poll(h, 1, 2);
    host_main(h, KEDGE_OK);
    EXPECT(h, "task q1 s0 train r1 g0 base=1; task q2 s1 train r1 g0 base=1");
}

START_TEST(test_busy)
{
    struct host h;
    struct kedge_coord_rare rare;
    open_rare(&h, &rare, KEDGE_COORD_RARE_BUSY, 2);
    open_round(&h);
    host_submit(&h, 0, KEDGE_TASK_TRAIN, 1, 0, 1, 3);
    EXPECT(&h, "away q3 BUSY again");
    rare.permille = 0;
    host_submit(&h, 0, KEDGE_TASK_TRAIN, 1, 0, 1, 4);
    EXPECT(&h, "verify s0 train t4");
    ck_assert_uint_eq(rare.fired[KEDGE_COORD_RARE_BUSY], 1);
    host_close(&h);
}
END_TEST

START_TEST(test_poll_dropped)
{
    struct host h;
    struct kedge_coord_rare rare;
    open_rare(&h, &rare, KEDGE_COORD_RARE_POLL_DROPPED, 2);
    host_poll(&h, 0, 1);
    EXPECT(&h, "wait q1");
    kedge_coord_rare_use(h.c, NULL); /* as in the daemon */
    host_poll(&h, 0, 2);
    EXPECT(&h, "");
    ck_assert_uint_eq(rare.fired[KEDGE_COORD_RARE_POLL_DROPPED], 1);
    host_close(&h);
}
END_TEST

/* The third site was never heard of: the first round waits for it, but for this branch. */
START_TEST(test_unsettled)
{
    struct host h;
    struct kedge_coord_rare rare;
    open_rare(&h, &rare, KEDGE_COORD_RARE_UNSETTLED, 3);
    rare.permille = _i == 0 ? 0 : 1000;
    host_poll(&h, 0, 1);
    EXPECT(&h, ""); /* two are the least, whatever is rare */
    host_poll(&h, 1, 2);
    EXPECT(&h, _i == 0 ? "" : "enrolling>training; round-opened r1");
    host_close(&h);
}
END_TEST

START_TEST(test_short_round)
{
    struct host h;
    struct kedge_coord_rare rare;
    open_rare(&h, &rare, KEDGE_COORD_RARE_SHORT_ROUND, 2);
    open_round(&h);
    ck_assert_uint_eq(kedge_coord_deadline_ns(h.c) - h.now, h.params.round_timeout_ns / 8);
    h.now += h.params.round_timeout_ns / 8;
    host_simple(&h, KEDGE_EV_TIMER);
    EXPECT(&h, "training>halted TIMEOUT");
    host_accept(&h, 0, KEDGE_TASK_TRAIN, 1, 0, 1, 3);
    EXPECT(&h, "receipt q3 leaf=3; halted>training; close r1");
    host_close(&h);
}
END_TEST

START_TEST(test_retry_now)
{
    struct host h;
    struct kedge_coord_rare rare;
    open_rare(&h, &rare, KEDGE_COORD_RARE_RETRY_NOW, 2);
    open_round(&h);
    host_submit(&h, 0, KEDGE_TASK_TRAIN, 1, 0, 1, 3);
    host_verified(&h, 0, KEDGE_TASK_TRAIN, 3, KEDGE_OK);
    host_appended(&h, 0, KEDGE_TASK_TRAIN, 3, 0, KEDGE_E_DISK_FULL);
    EXPECT(&h, "training>halted DISK_FULL");
    ck_assert_uint_eq(kedge_coord_deadline_ns(h.c) - h.now, 1);
    host_close(&h);
}
END_TEST

/* However small the array is, all that is to be said is said, in the same order. */
START_TEST(test_few_effects)
{
    struct host h;
    struct kedge_coord_rare rare;
    memset(&rare, 0, sizeof rare);
    host_open(&h);
    host_members(&h, 1, 100);
    host_simple(&h, KEDGE_EV_START);
    host_submit_job(&h);
    host_main(&h, KEDGE_OK);
    host_joined(&h, 0);
    for (uint32_t i = 0; i < 100; i++) {
        host_poll(&h, i, i);
    }
    EXPECT(&h, "enrolling>training; round-opened r1");
    rare.permille = 1000;
    rare.enabled[KEDGE_COORD_RARE_FEW_EFFECTS] = true;
    kedge_coord_rare_use(h.c, &rare);
    host_main(&h, KEDGE_OK);
    uint32_t tasks = 0;
    for (const char *at = h.text; (at = strstr(at, "task q")) != NULL; at++) {
        tasks++;
    }
    ck_assert_uint_eq(tasks, 100);
    ck_assert_uint_ge(rare.fired[KEDGE_COORD_RARE_FEW_EFFECTS], 6);
    host_close(&h);
}
END_TEST

START_TEST(test_names)
{
    for (int i = 0; i < KEDGE_COORD_RARE_COUNT; i++) {
        ck_assert_uint_gt(strlen(kedge_coord_rare_name((enum kedge_coord_rare_site)i)), 3);
    }
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("rare");
    tcase_add_loop_test(tc, test_poll_within_lease, 0, (int)(sizeof polls / sizeof polls[0]));
    tcase_add_test(tc, test_bad_times);
    tcase_add_test(tc, test_busy);
    tcase_add_test(tc, test_poll_dropped);
    tcase_add_loop_test(tc, test_unsettled, 0, 2);
    tcase_add_test(tc, test_short_round);
    tcase_add_test(tc, test_retry_now);
    tcase_add_test(tc, test_few_effects);
    tcase_add_test(tc, test_names);
    Suite *s = suite_create("coordinator/rare");
    suite_add_tcase(s, tc);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
