/* Restart: what was durable comes in by LOAD_*, START goes on from there. And crowds: more effects than fit.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/coordinator/host.h"

static const enum kedge_task_kind P = KEDGE_TASK_PRETRAIN, T = KEDGE_TASK_TRAIN, E = KEDGE_TASK_EVALUATE;

static void load_job(struct host *h, enum kedge_job_state state, int reason)
{
    struct kedge_digest initial = digest_of(1);
    struct kedge_coord_event ev = event_of(h, KEDGE_EV_LOAD_JOB);
    ev.params = &h->params;
    ev.models = &initial;
    ev.model_count = 1;
    ev.state = state;
    ev.err = reason;
    host_step(h, &ev);
    host_joined(h, 0);
}

static void load_closed(struct host *h, uint32_t round, uint32_t models)
{
    struct kedge_digest made[2] = {digest_of(20), digest_of(21)};
    struct kedge_coord_event ev = event_of(h, KEDGE_EV_LOAD_ROUND);
    ev.round = round;
    ev.closed = true;
    ev.models = made;
    ev.model_count = models;
    host_step(h, &ev);
}

static void load_open(struct host *h, uint32_t round, uint32_t sites)
{
    struct kedge_coord_event ev = event_of(h, KEDGE_EV_LOAD_ROUND);
    ev.round = round;
    host_step(h, &ev);
    for (uint32_t i = 0; i < sites; i++) {
        ev = event_of(h, KEDGE_EV_LOAD_ROW);
        ev.site = i;
        ev.selected = true;
        host_step(h, &ev);
    }
}

static void load_group(struct host *h, uint32_t site, uint32_t group, bool durable)
{
    struct kedge_coord_event ev = event_of(h, KEDGE_EV_LOAD_GROUP);
    ev.site = site;
    ev.group = group;
    ev.durable = durable;
    host_step(h, &ev);
}

static void load_accepted(struct host *h, uint32_t site, enum kedge_task_kind kind, uint8_t number)
{
    struct kedge_coord_event ev = event_of(h, KEDGE_EV_LOAD_ACCEPTED);
    ev.site = site;
    ev.kind = kind;
    ev.leaf = number;
    ev.envelope = ev.update = digest_of(number);
    ev.weight = 1;
    host_step(h, &ev);
}

static void load_refused(struct host *h, uint32_t site, uint8_t number, int err)
{
    struct kedge_coord_event ev = event_of(h, KEDGE_EV_LOAD_REFUSED);
    ev.site = site;
    ev.kind = T;
    ev.err = err;
    ev.envelope = ev.update = digest_of(number);
    ev.weight = 1;
    host_step(h, &ev);
}

static void open_with_members(struct host *h, uint32_t groups)
{
    host_open(h);
    h->params.groups = groups;
    host_members(h, 1, 2);
}

/* A refusal that was told before the crash holds: the round does not wait for that site again, and its row
 * says why. */
START_TEST(test_refused)
{
    struct host h;
    open_with_members(&h, 1);
    load_job(&h, KEDGE_JOB_TRAINING, KEDGE_OK);
    load_open(&h, 1, 2);
    load_refused(&h, 1, 9, KEDGE_E_WEIGHT);
    load_refused(&h, 0, 8, KEDGE_E_BOUND);
    load_accepted(&h, 0, T, 7); /* it did better since */
    host_simple(&h, KEDGE_EV_START);
    EXPECT(&h, "close r1");
    const struct kedge_coord_row *good = kedge_coord_row(h.c, 0, 0), *bad = kedge_coord_row(h.c, 0, 1);
    ck_assert(good->train.progress == KEDGE_INPUT_ACCEPTED && good->train.reason == KEDGE_OK);
    ck_assert(bad->train.progress == KEDGE_INPUT_REFUSED && bad->train.reason == KEDGE_E_WEIGHT);
    ck_assert_uint_eq(bad->train.envelope.b[0], 9);
    host_close(&h);
}
END_TEST

/* Told again in the wrong order it does not undo what was accepted; and a refused site may still correct
 * itself. */
START_TEST(test_refused_then_better)
{
    struct host h;
    open_with_members(&h, 1);
    h.params.quorum = 2;
    load_job(&h, KEDGE_JOB_TRAINING, KEDGE_OK);
    load_open(&h, 1, 2);
    load_accepted(&h, 0, T, 7);
    load_refused(&h, 0, 8, KEDGE_E_BOUND);
    load_refused(&h, 1, 9, KEDGE_E_WEIGHT);
    host_simple(&h, KEDGE_EV_START);
    EXPECT(&h, "");
    host_accept(&h, 1, T, 1, 0, 1, 10);
    EXPECT(&h, "receipt q10 leaf=10; close r1");
    host_close(&h);
}
END_TEST

START_TEST(test_before_opened)
{
    static const struct {
        enum kedge_job_state state;
        int reason;
        const char *golden;
    } rows[] = {
        {KEDGE_JOB_PENDING, KEDGE_OK, "job-opened; pending>queued"},
        {KEDGE_JOB_QUEUED, KEDGE_OK, "job-opened"},
        {KEDGE_JOB_HALTED, KEDGE_E_DISK_FULL, "job-opened; halted>queued"},
        {KEDGE_JOB_HALTED, KEDGE_OK, ""},
        {KEDGE_JOB_ENROLLING, KEDGE_OK, ""},
        {KEDGE_JOB_TRAINING, KEDGE_OK, ""},
    };
    struct host h;
    open_with_members(&h, 1);
    load_job(&h, rows[_i].state, rows[_i].reason);
    host_simple(&h, KEDGE_EV_START);
    EXPECT(&h, rows[_i].golden);
    host_close(&h);
}
END_TEST

START_TEST(test_open_round)
{
    struct host h;
    open_with_members(&h, 1);
    load_job(&h, KEDGE_JOB_TRAINING, KEDGE_OK);
    load_open(&h, 1, 2);
    load_accepted(&h, 0, T, 10);
    host_simple(&h, KEDGE_EV_START);
    EXPECT(&h, "");
    host_poll(&h, 0, 100);
    EXPECT(&h, ""); /* its update is in */
    host_submit(&h, 0, T, 1, 0, 1, 10);
    EXPECT(&h, "receipt q10 leaf=10"); /* the receipt was lost with the process */
    host_poll(&h, 1, 101);
    EXPECT(&h, "task q101 s1 train r1 g0 base=1");
    host_accept(&h, 1, T, 1, 0, 1, 11);
    EXPECT(&h, "receipt q11 leaf=11; close r1");
    host_close(&h);
}
END_TEST

START_TEST(test_complete_round)
{
    struct host h;
    open_with_members(&h, 1);
    load_job(&h, KEDGE_JOB_HALTED, KEDGE_E_DISK_FULL); /* storage: derived anew */
    load_closed(&h, 1, 1);
    load_open(&h, 2, 2);
    load_accepted(&h, 0, T, 10);
    load_accepted(&h, 1, T, 11);
    host_simple(&h, KEDGE_EV_START);
    EXPECT(&h, "halted>training; close r2");
    host_close(&h);
}
END_TEST

START_TEST(test_sites_that_never_come_back)
{
    struct host h;
    open_with_members(&h, 1);
    h.params.round_timeout_ns = 1000000 * MS;
    load_job(&h, KEDGE_JOB_TRAINING, KEDGE_OK);
    load_open(&h, 1, 2);
    load_accepted(&h, 0, T, 10);
    host_simple(&h, KEDGE_EV_START);
    h.now += 19999 * MS;
    host_simple(&h, KEDGE_EV_TIMER);
    EXPECT(&h, "");
    h.now += 1 * MS;
    host_simple(&h, KEDGE_EV_TIMER);
    EXPECT(&h, "close r1");
    host_close(&h);
}
END_TEST

START_TEST(test_missing_groups)
{
    struct host h;
    open_with_members(&h, 2);
    load_job(&h, KEDGE_JOB_GROUPING, KEDGE_OK);
    load_closed(&h, 0, 2);
    load_group(&h, 0, 1, false);
    load_group(&h, 1, 0, true);
    host_simple(&h, KEDGE_EV_START);
    EXPECT(&h, "append-assigned s0 g1");
    host_poll(&h, 0, 100);
    host_poll(&h, 1, 101);
    EXPECT(&h, "");
    struct kedge_coord_event ev = event_of(&h, KEDGE_EV_ASSIGN_APPENDED);
    ev.site = 0;
    host_step(&h, &ev);
    EXPECT(&h, "grouping>training; round-opened r1");
    host_close(&h);
}
END_TEST

START_TEST(test_newcomer_between)
{
    struct host h;
    open_with_members(&h, 2);
    load_job(&h, KEDGE_JOB_TRAINING, KEDGE_OK);
    load_closed(&h, 0, 2);
    load_open(&h, 1, 2);
    load_group(&h, 0, 1, true);
    load_accepted(&h, 0, T, 10);
    load_accepted(&h, 1, P, 11);
    host_simple(&h, KEDGE_EV_START);
    EXPECT(&h, "assign s1");
    struct kedge_coord_event ev = event_of(&h, KEDGE_EV_ASSIGNED);
    ev.site = 1;
    ev.err = KEDGE_E_NOT_FINITE; /* it fits nowhere: the round goes on without it */
    host_step(&h, &ev);
    EXPECT(&h, "close r1");
    ck_assert_int_eq(kedge_coord_row(h.c, 0, 1)->train.reason, KEDGE_E_NOT_FINITE);
    host_close(&h);
}
END_TEST

START_TEST(test_last_evaluations)
{
    struct host h;
    open_with_members(&h, 1);
    h.params.evaluate_every = 2;
    load_job(&h, KEDGE_JOB_TRAINING, KEDGE_OK);
    load_closed(&h, 2, 1);
    struct kedge_coord_event ev = event_of(&h, KEDGE_EV_LOAD_EVALUATED);
    ev.site = 0;
    ev.round = 2;
    ev.leaf = 4;
    ev.envelope = digest_of(10);
    host_step(&h, &ev);
    host_simple(&h, KEDGE_EV_START);
    EXPECT(&h, "training>storing");
    host_submit(&h, 0, E, 2, 0, 20, 10);
    EXPECT(&h, "receipt q10 leaf=4");
    host_submit(&h, 0, E, 2, 0, 20, 12);
    EXPECT(&h, "away q12 DUPLICATE");
    h.now += 30000 * MS; /* site 1 never evaluates */
    host_simple(&h, KEDGE_EV_TIMER);
    EXPECT(&h, "job-closed completed");
    host_close(&h);
}
END_TEST

/* A crash between the last round's close and job-closed, told by a host that keeps no state. */
START_TEST(test_all_closed)
{
    struct host h;
    open_with_members(&h, 1);
    load_job(&h, KEDGE_JOB_ENROLLING, KEDGE_OK);
    load_closed(&h, 2, 1);
    host_simple(&h, KEDGE_EV_START);
    EXPECT(&h, "enrolling>training; training>storing; job-closed completed");
    host_close(&h);
}
END_TEST

START_TEST(test_crowd)
{
    enum { SITES = 100 };
    struct host h;
    host_open(&h);
    host_members(&h, 2, SITES);
    host_simple(&h, KEDGE_EV_START);
    host_submit_job(&h);
    host_main(&h, KEDGE_OK);
    host_joined(&h, 0);
    host_joined(&h, 1);
    for (uint32_t i = 0; i < SITES; i++) {
        host_poll(&h, i, 1000 + i);
    }
    EXPECT(&h, "enrolling>training; round-opened r1");
    uint32_t count = 0;
    const uint32_t *order = kedge_coord_site_order(h.c, &count);
    ck_assert_uint_eq(count, SITES);
    host_main(&h, KEDGE_OK); /* more tasks than one array of effects holds */
    uint32_t tasks = 0;
    for (const char *at = h.text; (at = strstr(at, "task q")) != NULL; at++) {
        tasks++;
    }
    ck_assert_uint_eq(tasks, SITES);
    ck_assert_uint_eq(order[0] % 2, 0); /* tenant t0 in front of t1 */
    ck_assert_uint_eq(order[SITES - 1] % 2, 1);
    for (uint32_t i = 0; i < SITES; i++) {
        host_poll(&h, i, 2000 + i);
        host_accept(&h, i, T, 1, 0, 1, (uint8_t)(i + 1));
    }
    ck_assert_ptr_nonnull(strstr(h.text, "; close r1"));
    host_close(&h);
}
END_TEST

START_TEST(test_selection)
{
    enum { N = 20 };
    uint32_t scratch[N], times[N] = {0};
    bool chosen[N], again[N];
    for (uint32_t round = 0; round < 1000; round++) {
        kedge_coord_select(42, round, N, 5, scratch, chosen);
        kedge_coord_select(42, round, N, 5, scratch, again);
        uint32_t count = 0;
        for (uint32_t i = 0; i < N; i++) {
            ck_assert_int_eq(chosen[i], again[i]);
            count += chosen[i];
            times[i] += chosen[i];
        }
        ck_assert_uint_eq(count, 5);
    }
    for (uint32_t i = 0; i < N; i++) { /* 250 expected, deviation 13.7: six of them on either side */
        ck_assert_uint_gt(times[i], 168);
        ck_assert_uint_lt(times[i], 332);
    }
    static const uint32_t all[] = {0, N, N + 1};
    for (size_t k = 0; k < sizeof all / sizeof all[0]; k++) {
        kedge_coord_select(42, 1, N, all[k], scratch, chosen);
        for (uint32_t i = 0; i < N; i++) {
            ck_assert(chosen[i]);
        }
    }
}
END_TEST

/* What is picked without looking at everybody is what is selected, however many there are. */
START_TEST(test_picks)
{
    enum { MOST = 5000 };
    static uint32_t scratch[MOST], picks[MOST];
    static bool chosen[MOST];
    static const uint32_t counts[] = {1, 2, 7, 64, 1000, MOST}, wanted[] = {1, 2, 3, 31, 400, 2500, MOST};
    for (size_t n = 0; n < sizeof counts / sizeof counts[0]; n++) {
        for (size_t k = 0; k < sizeof wanted / sizeof wanted[0]; k++) {
            if (wanted[k] > counts[n]) {
                continue;
            }
            kedge_coord_select(7, (uint32_t)k, counts[n], wanted[k], scratch, chosen);
            kedge_coord_pick(7, (uint32_t)k, counts[n], wanted[k], scratch, picks);
            for (uint32_t i = 0; i < wanted[k]; i++) {
                ck_assert_uint_lt(picks[i], counts[n]);
                ck_assert_msg(chosen[picks[i]], "%u of %u: %u", wanted[k], counts[n], picks[i]);
                chosen[picks[i]] = false; /* each once */
            }
        }
    }
}
END_TEST

/* Sites whose updates make groups: as equal a number of each tenant as their numbers allow. */
START_TEST(test_picks_by_quota)
{
    static const struct {
        uint32_t available[4], tenants, k, least[4], most[4];
    } cases[] = {
        {{1, 10, 3}, 3, 7, {1, 3, 3}, {1, 3, 3}},
        {{1, 10, 3}, 3, 8, {1, 4, 3}, {1, 4, 3}},
        {{400, 2, 2, 2}, 4, 8, {2, 2, 2, 2}, {2, 2, 2, 2}},
        {{400, 2, 2, 2}, 4, 3, {0, 0, 0, 0}, {1, 1, 1, 1}},
        {{5, 5}, 2, 5, {2, 2}, {3, 3}},
        {{9}, 1, 4, {4}, {4}},
    };
    static uint32_t scratch[1000], picks[500], tenant[500], more[4];
    static bool chosen[500];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (uint32_t round = 0; round < 300; round++) {
            uint32_t taken[4] = {0}, count = 0;
            for (uint32_t t = 0; t < cases[i].tenants; t++) {
                for (uint32_t n = 0; n < cases[i].available[t]; n++) {
                    tenant[count++] = 40 + t;
                }
            }
            kedge_coord_pick_by_quota(5, round, cases[i].available, cases[i].tenants, cases[i].k, scratch,
                                      picks);
            kedge_coord_select_by_quota(5, round, tenant, count, cases[i].k, scratch, chosen);
            for (uint32_t n = 0; n < cases[i].k; n++) {
                ck_assert_uint_lt(picks[n], count);
                ck_assert(chosen[picks[n]]);
                chosen[picks[n]] = false; /* each once */
                taken[tenant[picks[n]] - 40]++;
            }
            for (uint32_t t = 0; t < cases[i].tenants; t++) {
                ck_assert_uint_ge(taken[t], cases[i].least[t]);
                ck_assert_uint_le(taken[t], cases[i].most[t]);
                more[t] += i == 3 && taken[t] == 1;
            }
        }
    }
    for (uint32_t t = 0; t < 4; t++) { /* three places for four: 225 expected, deviation 7.5 */
        ck_assert_uint_gt(more[t], 180);
        ck_assert_uint_lt(more[t], 270);
    }
    ck_assert_uint_eq(kedge_coord_pretrain_wanted(0, 4000), KEDGE_PRETRAIN_SITES_MAX);
    ck_assert_uint_eq(kedge_coord_pretrain_wanted(600, 4000), KEDGE_PRETRAIN_SITES_MAX);
    ck_assert_uint_eq(kedge_coord_pretrain_wanted(40, 4000), 40);
    ck_assert_uint_eq(kedge_coord_pretrain_wanted(40, 7), 7);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("restart");
    tcase_add_loop_test(tc, test_before_opened, 0, 6);
    tcase_add_test(tc, test_refused);
    tcase_add_test(tc, test_refused_then_better);
    tcase_add_test(tc, test_open_round);
    tcase_add_test(tc, test_complete_round);
    tcase_add_test(tc, test_sites_that_never_come_back);
    tcase_add_test(tc, test_missing_groups);
    tcase_add_test(tc, test_newcomer_between);
    tcase_add_test(tc, test_last_evaluations);
    tcase_add_test(tc, test_all_closed);
    tcase_add_test(tc, test_crowd);
    tcase_add_test(tc, test_selection);
    tcase_add_test(tc, test_picks);
    tcase_add_test(tc, test_picks_by_quota);
    Suite *s = suite_create("coordinator/restart");
    suite_add_tcase(s, tc);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
