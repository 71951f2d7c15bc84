/* Rounds of one job, as events and golden effects. */
#include <check.h>
#include <stdlib.h>

#include "tests/unit/coordinator/host.h"

static const enum kedge_task_kind P = KEDGE_TASK_PRETRAIN, T = KEDGE_TASK_TRAIN, E = KEDGE_TASK_EVALUATE;

/* Two sites of one tenant, both polling, round 1 open: requests 100 and 101 are answered. */
static void open_first_round(struct host *h)
{
    host_members(h, 1, 2);
    host_simple(h, KEDGE_EV_START);
    host_submit_job(h);
    EXPECT(h, "pending>queued; job-opened");
    host_main(h, KEDGE_OK);
    EXPECT(h, "queued>enrolling");
    host_joined(h, 0);
    EXPECT(h, "");
    host_poll(h, 0, 100);
    EXPECT(h, "");
    host_poll(h, 1, 101);
    EXPECT(h, "enrolling>training; round-opened r1");
    host_main(h, KEDGE_OK);
    EXPECT(h, "task q100 s0 train r1 g0 base=1; task q101 s1 train r1 g0 base=1");
}

START_TEST(test_ungrouped)
{
    struct host h;
    host_open(&h);
    h.params.evaluate_every = 1;
    open_first_round(&h);
    host_submit(&h, 0, T, 1, 0, 1, 10);
    EXPECT(&h, "verify s0 train t10");
    host_verified(&h, 0, T, 10, KEDGE_OK);
    EXPECT(&h, "append s0 train t10");
    host_appended(&h, 0, T, 10, 3, KEDGE_OK);
    EXPECT(&h, "receipt q10 leaf=3");
    host_poll(&h, 0, 102);
    EXPECT(&h, "");
    host_accept(&h, 1, T, 1, 0, 1, 11);
    EXPECT(&h, "receipt q11 leaf=11; close r1");
    host_computed(&h, 1, 1, 20, KEDGE_OK);
    EXPECT(&h, "round-closed r1");
    host_poll(&h, 1, 103);
    host_main(&h, KEDGE_OK);
    EXPECT(&h, "round-opened r2");
    host_main(&h, KEDGE_OK);
    EXPECT(&h, "task q102 s0 train r2 g0 base=20 evaluate=1; task q103 s1 train r2 g0 base=20 evaluate=1");
    host_accept(&h, 0, T, 2, 0, 20, 12);
    host_submit(&h, 0, E, 1, 0, 20, 13);
    EXPECT(&h, "append s0 evaluate t13");
    host_appended(&h, 0, E, 13, 9, KEDGE_OK);
    EXPECT(&h, "receipt q13 leaf=9");
    host_accept(&h, 1, T, 2, 0, 20, 14);
    EXPECT(&h, "receipt q14 leaf=14; close r2");
    host_computed(&h, 2, 1, 30, KEDGE_OK);
    host_poll(&h, 0, 104);
    host_main(&h, KEDGE_OK);
    EXPECT(&h, "training>storing; task q104 s0 evaluate r2 g0 base=30");
    host_accept(&h, 1, E, 1, 0, 20, 15); /* late, but its model is still known */
    EXPECT(&h, "receipt q15 leaf=15");
    host_poll(&h, 1, 105);
    EXPECT(&h, "task q105 s1 evaluate r2 g0 base=30");
    host_accept(&h, 1, E, 2, 0, 30, 16);
    EXPECT(&h, "receipt q16 leaf=16");
    host_accept(&h, 0, E, 2, 0, 30, 17);
    EXPECT(&h, "receipt q17 leaf=17; job-closed completed");
    host_main(&h, KEDGE_OK);
    EXPECT(&h, "storing>completed");
    host_submit(&h, 0, T, 2, 0, 20, 12);
    EXPECT(&h, "away q12 NO_JOB");
    host_close(&h);
}
END_TEST

START_TEST(test_grouped)
{
    struct host h;
    host_open(&h);
    h.params.groups = 2;
    h.params.pretrain_sites = 2;
    h.params.seed = 12;
    h.params.rounds = 1;
    host_members(&h, 1, 3);
    host_simple(&h, KEDGE_EV_START);
    host_submit_job(&h);
    host_main(&h, KEDGE_OK);
    host_joined(&h, 0);
    for (uint32_t i = 0; i < 3; i++) {
        host_poll(&h, i, 100 + i);
    }
    EXPECT(&h, "enrolling>grouping; round-opened r0");
    host_main(&h, KEDGE_OK);
    EXPECT(&h, "task q100 s0 pretrain r0 cold base=1; task q101 s1 pretrain r0 cold base=1");
    host_accept(&h, 0, P, 0, KEDGE_COORD_NONE, 1, 10);
    host_accept(&h, 1, P, 0, KEDGE_COORD_NONE, 1, 11);
    EXPECT(&h, "receipt q11 leaf=11; close r0");
    struct kedge_digest models[2] = {digest_of(20), digest_of(21)};
    uint32_t sites[2] = {0, 1}, groups[2] = {1, 0};
    struct kedge_coord_event ev = event_of(&h, KEDGE_EV_ROUND_COMPUTED);
    ev.model_count = 2;
    ev.models = models;
    ev.assigned_count = 2;
    ev.assigned_sites = sites;
    ev.assigned_groups = groups;
    host_step(&h, &ev);
    EXPECT(&h, "round-closed r0");
    ck_assert(!kedge_coord_may_read(h.c, 0, 0, &models[1])); /* not yet durable */
    host_main(&h, KEDGE_OK);
    EXPECT(&h, "append-assigned s0 g1; append-assigned s1 g0");
    ev = event_of(&h, KEDGE_EV_ASSIGN_APPENDED);
    ev.site = 0;
    host_step(&h, &ev);
    EXPECT(&h, "");
    ev.site = 1;
    host_step(&h, &ev);
    EXPECT(&h, "grouping>training; round-opened r1");
    ck_assert(kedge_coord_may_read(h.c, 0, 0, &models[1]));
    ck_assert(!kedge_coord_may_read(h.c, 0, 0, &models[0])); /* of the other group */
    host_main(&h, KEDGE_OK);
    EXPECT(&h, "task q102 s2 pretrain r1 cold base=1");
    host_accept(&h, 2, P, 1, KEDGE_COORD_NONE, 1, 12);
    EXPECT(&h, "receipt q12 leaf=12; assign s2");
    ev = event_of(&h, KEDGE_EV_ASSIGNED);
    ev.site = 2;
    ev.group = 1;
    host_step(&h, &ev);
    EXPECT(&h, "append-assigned s2 g1");
    host_poll(&h, 2, 103);
    EXPECT(&h, "");
    ev = event_of(&h, KEDGE_EV_ASSIGN_APPENDED);
    ev.site = 2;
    host_step(&h, &ev);
    EXPECT(&h, "task q103 s2 train r1 g1 base=21");
    host_poll(&h, 0, 104);
    EXPECT(&h, "task q104 s0 train r1 g1 base=21");
    host_accept(&h, 0, T, 1, 1, 21, 13);
    host_accept(&h, 1, T, 1, 0, 20, 14);
    host_accept(&h, 2, T, 1, 1, 21, 15);
    EXPECT(&h, "receipt q15 leaf=15; close r1");
    host_computed(&h, 1, 2, 30, KEDGE_OK);
    host_main(&h, KEDGE_OK);
    EXPECT(&h, "training>storing; job-closed completed");
    host_close(&h);
}
END_TEST

static const struct refusal {
    uint32_t site;
    enum kedge_task_kind kind;
    uint32_t round, group;
    uint8_t base;
    uint64_t weight;
    const char *golden;
} refusals[] = {
    {0, KEDGE_TASK_TRAIN, 1, 0, 1, 0, "away q10 WEIGHT"},
    {0, KEDGE_TASK_TRAIN, 1, 0, 1, 101, "away q10 WEIGHT"},
    {0, KEDGE_TASK_TRAIN, 1, 1, 1, 1, "away q10 WRONG_GROUP"},
    {0, KEDGE_TASK_TRAIN, 1, 0, 2, 1, "away q10 WRONG_BASE"},
    {0, KEDGE_TASK_TRAIN, 2, 0, 1, 1, "away q10 ROUND_STALE"},
    {0, KEDGE_TASK_TRAIN, 0, 0, 1, 1, "closed q10 r0"},
    {0, KEDGE_TASK_PRETRAIN, 1, KEDGE_COORD_NONE, 1, 1, "away q10 ARG"},
    {0, KEDGE_TASK_EVALUATE, 1, 0, 1, 1, "away q10 ROUND_STALE"},
    {7, KEDGE_TASK_TRAIN, 1, 0, 1, 1, "away q10 NOT_ENROLLED"},
};

START_TEST(test_refusals)
{
    const struct refusal *r = &refusals[_i];
    struct host h;
    host_open(&h);
    open_first_round(&h);
    struct kedge_coord_event ev = event_of(&h, KEDGE_EV_SUBMIT);
    ev.site = r->site;
    ev.kind = r->kind;
    ev.round = r->round;
    ev.group = r->group;
    ev.base = digest_of(r->base);
    ev.request = ev.ticket = 10;
    ev.weight = r->weight;
    host_step(&h, &ev);
    EXPECT(&h, r->golden);
    /* A refused site may correct itself while the round is open. */
    host_accept(&h, 0, T, 1, 0, 1, 11);
    EXPECT(&h, "receipt q11 leaf=11");
    host_close(&h);
}
END_TEST

START_TEST(test_duplicates)
{
    struct host h;
    host_open(&h);
    open_first_round(&h);
    host_submit(&h, 0, T, 1, 0, 1, 10);
    host_submit(&h, 0, T, 1, 0, 1, 10);
    EXPECT(&h, "away q10 BUSY again");
    host_verified(&h, 0, T, 10, KEDGE_OK);
    host_appended(&h, 0, T, 10, 5, KEDGE_OK);
    EXPECT(&h, "receipt q10 leaf=5");
    host_submit(&h, 0, T, 1, 0, 1, 10);
    EXPECT(&h, "receipt q10 leaf=5");
    host_submit(&h, 0, T, 1, 0, 1, 12);
    EXPECT(&h, "away q12 DUPLICATE");
    host_submit(&h, 1, T, 1, 0, 1, 13);
    host_verified(&h, 1, T, 13, KEDGE_E_BLOB_MISSING);
    EXPECT(&h, "away q13 BLOB_MISSING again");
    ck_assert_int_eq(kedge_coord_row(h.c, 0, 1)->train.progress, KEDGE_INPUT_NONE);
    host_submit(&h, 1, T, 1, 0, 1, 14);
    host_verified(&h, 1, T, 14, KEDGE_E_BOUND);
    EXPECT(&h, "away q14 BOUND; close r1");
    const struct kedge_coord_row *row = kedge_coord_row(h.c, 0, 1);
    ck_assert_int_eq(row->train.progress, KEDGE_INPUT_REFUSED);
    ck_assert_int_eq(row->train.reason, KEDGE_E_BOUND);
    host_submit(&h, 1, T, 1, 0, 1, 15); /* while it closes */
    EXPECT(&h, "away q15 BUSY again");
    host_computed(&h, 1, 1, 20, KEDGE_OK);
    host_submit(&h, 1, T, 1, 0, 1, 15);
    EXPECT(&h, "away q15 BUSY again");
    host_main(&h, KEDGE_OK);
    host_submit(&h, 1, T, 1, 0, 1, 15);
    EXPECT(&h, "closed q15 r1");
    host_close(&h);
}
END_TEST

START_TEST(test_deadline_and_quorum)
{
    struct host h;
    host_open(&h);
    h.params.quorum = 2;
    open_first_round(&h);
    host_accept(&h, 0, T, 1, 0, 1, 10);
    uint64_t due = kedge_coord_deadline_ns(h.c);
    ck_assert_uint_le(due, h.now + 10000 * MS);
    h.now += 10000 * MS;
    host_simple(&h, KEDGE_EV_TIMER);
    EXPECT(&h, "training>halted TIMEOUT");
    ck_assert_uint_gt(kedge_coord_deadline_ns(h.c), h.now); /* no busy loop on a past deadline */
    host_poll(&h, 1, 110);
    EXPECT(&h, "task q110 s1 train r1 g0 base=1");
    host_accept(&h, 1, T, 1, 0, 1, 11);
    EXPECT(&h, "receipt q11 leaf=11; halted>training; close r1");
    host_close(&h);
}
END_TEST

START_TEST(test_deadline_waits_for_appends)
{
    struct host h;
    host_open(&h);
    open_first_round(&h);
    host_accept(&h, 0, T, 1, 0, 1, 10);
    host_submit(&h, 1, T, 1, 0, 1, 11);
    host_verified(&h, 1, T, 11, KEDGE_OK);
    h.now += 10000 * MS;
    host_simple(&h, KEDGE_EV_TIMER);
    EXPECT(&h, "");
    host_appended(&h, 1, T, 11, 8, KEDGE_OK);
    EXPECT(&h, "receipt q11 leaf=8; close r1");
    host_close(&h);
}
END_TEST

START_TEST(test_offline_site)
{
    struct host h;
    host_open(&h);
    h.params.round_timeout_ns = 100000 * MS;
    open_first_round(&h);
    host_accept(&h, 0, T, 1, 0, 1, 10);
    h.now += 19900 * MS;
    host_simple(&h, KEDGE_EV_TIMER);
    EXPECT(&h, "");
    h.now += 200 * MS;
    host_simple(&h, KEDGE_EV_TIMER);
    EXPECT(&h, "close r1");
    host_close(&h);
}
END_TEST

START_TEST(test_failed_append)
{
    struct host h;
    host_open(&h);
    open_first_round(&h);
    host_submit(&h, 0, T, 1, 0, 1, 10);
    host_verified(&h, 0, T, 10, KEDGE_OK);
    host_appended(&h, 0, T, 10, 0, KEDGE_E_DISK_FULL);
    EXPECT(&h, "training>halted DISK_FULL");
    host_accept(&h, 1, T, 1, 0, 1, 11);
    EXPECT(&h, "receipt q11 leaf=11");
    h.now += 1000 * MS;
    host_simple(&h, KEDGE_EV_TIMER);
    EXPECT(&h, "append s0 train t10");
    host_appended(&h, 0, T, 10, 4, KEDGE_OK);
    EXPECT(&h, "receipt q10 leaf=4; halted>training; close r1");
    host_computed(&h, 1, 0, 0, KEDGE_E_NOMEM);
    EXPECT(&h, "training>halted NOMEM");
    h.now += 1000 * MS;
    host_simple(&h, KEDGE_EV_TIMER);
    EXPECT(&h, "close r1");
    host_computed(&h, 1, 1, 20, KEDGE_OK);
    EXPECT(&h, "halted>training; round-closed r1");
    host_main(&h, KEDGE_E_DISK_FULL);
    EXPECT(&h, "training>halted DISK_FULL");
    host_simple(&h, KEDGE_EV_JOB_RESUME);
    EXPECT(&h, "round-closed r1");
    host_main(&h, KEDGE_OK);
    EXPECT(&h, "halted>training; round-opened r2");
    host_close(&h);
}
END_TEST

START_TEST(test_work_that_can_not_be_done)
{
    struct host h;
    host_open(&h);
    open_first_round(&h);
    host_accept(&h, 0, T, 1, 0, 1, 10);
    host_accept(&h, 1, T, 1, 0, 1, 11);
    host_computed(&h, 1, 0, 0, KEDGE_E_OVERFLOW);
    EXPECT(&h, "job-closed failed");
    host_main(&h, KEDGE_OK);
    EXPECT(&h, "training>failed OVERFLOW");
    host_simple(&h, KEDGE_EV_TIMER);
    struct kedge_coord_job_view view;
    ck_assert(!kedge_coord_job(h.c, 0, &view));
    host_close(&h);
}
END_TEST

START_TEST(test_revoked)
{
    struct host h;
    host_open(&h);
    open_first_round(&h);
    host_submit(&h, 0, T, 1, 0, 1, 10);
    host_poll(&h, 1, 110);
    EXPECT(&h, "task q110 s1 train r1 g0 base=1");
    struct kedge_coord_event ev = event_of(&h, KEDGE_EV_SITE_REVOKED);
    ev.site = 0;
    host_step(&h, &ev);
    EXPECT(&h, "");
    host_verified(&h, 0, T, 10, KEDGE_OK);
    EXPECT(&h, "away q10 REVOKED");
    host_poll(&h, 0, 111);
    EXPECT(&h, "away q111 REVOKED");
    host_accept(&h, 1, T, 1, 0, 1, 11);
    EXPECT(&h, "receipt q11 leaf=11; close r1");
    host_close(&h);
}
END_TEST

START_TEST(test_revoked_while_appending)
{
    struct host h;
    host_open(&h);
    open_first_round(&h);
    host_submit(&h, 0, T, 1, 0, 1, 10);
    host_verified(&h, 0, T, 10, KEDGE_OK);
    struct kedge_coord_event ev = event_of(&h, KEDGE_EV_SITE_REVOKED);
    ev.site = 0;
    host_step(&h, &ev);
    host_accept(&h, 1, T, 1, 0, 1, 11);
    EXPECT(&h, "receipt q11 leaf=11");
    if (_i == 0) { /* it was ordered first */
        host_appended(&h, 0, T, 10, 4, KEDGE_OK);
        EXPECT(&h, "receipt q10 leaf=4; close r1");
    } else { /* it failed, and then the ledger refused it for good */
        host_appended(&h, 0, T, 10, 0, KEDGE_E_DISK_FULL);
        h.now += 1000 * MS;
        host_simple(&h, KEDGE_EV_TIMER);
        EXPECT(&h, "append s0 train t10");
        host_appended(&h, 0, T, 10, 0, KEDGE_E_REVOKED);
        EXPECT(&h, "away q10 REVOKED; halted>training; close r1");
    }
    host_close(&h);
}
END_TEST

START_TEST(test_operator)
{
    struct host h;
    host_open(&h);
    open_first_round(&h);
    host_simple(&h, KEDGE_EV_JOB_HALT);
    EXPECT(&h, "training>halted");
    host_accept(&h, 0, T, 1, 0, 1, 10);
    host_poll(&h, 1, 110);
    EXPECT(&h, "");
    host_simple(&h, KEDGE_EV_JOB_RESUME);
    EXPECT(&h, "halted>training; task q110 s1 train r1 g0 base=1");
    host_submit(&h, 1, T, 1, 0, 1, 11);
    host_simple(&h, KEDGE_EV_JOB_CANCEL);
    EXPECT(&h, "");
    host_verified(&h, 1, T, 11, KEDGE_OK);
    EXPECT(&h, "away q11 NO_JOB; job-closed cancelled");
    host_main(&h, KEDGE_E_DISK_FULL);
    EXPECT(&h, "training>halted DISK_FULL");
    h.now += 1000 * MS;
    host_simple(&h, KEDGE_EV_TIMER);
    EXPECT(&h, "job-closed cancelled");
    host_main(&h, KEDGE_OK);
    EXPECT(&h, "halted>training; training>cancelled");
    host_close(&h);
}
END_TEST

static void upload(struct host *h, uint32_t site, int err)
{
    struct kedge_coord_event ev = event_of(h, KEDGE_EV_UPLOAD);
    ev.site = site;
    ev.job = 0;
    ev.err = err;
    host_step(h, &ev);
}

/* An update that cannot be stored: told as a halt for as long as its site tries. */
START_TEST(test_unstored)
{
    struct host h;
    host_open(&h);
    open_first_round(&h);
    upload(&h, 0, KEDGE_E_DISK_FULL);
    EXPECT(&h, "training>halted DISK_FULL");
    upload(&h, 1, KEDGE_OK); /* another site's success says nothing about this one */
    EXPECT(&h, "");
    upload(&h, 0, KEDGE_OK);
    EXPECT(&h, "halted>training");
    upload(&h, 0, KEDGE_E_DISK_FULL);
    EXPECT(&h, "training>halted DISK_FULL");
    struct kedge_coord_event ev = event_of(&h, KEDGE_EV_SITE_REVOKED);
    ev.site = 0;
    host_step(&h, &ev);
    EXPECT(&h, "halted>training");
    upload(&h, 0, KEDGE_OK);
    EXPECT(&h, "");
    host_close(&h);
}
END_TEST

START_TEST(test_polls)
{
    struct host h;
    host_open(&h);
    host_members(&h, 1, 2);
    host_simple(&h, KEDGE_EV_START);
    host_poll(&h, 0, 1);
    EXPECT(&h, "");
    host_poll(&h, 0, 2);
    EXPECT(&h, "wait q1");
    ck_assert_uint_eq(kedge_coord_deadline_ns(h.c), h.now + 5000 * MS);
    struct kedge_coord_event ev = event_of(&h, KEDGE_EV_POLL);
    ev.site = 0;
    ev.request = 3;
    ev.busy = true;
    host_step(&h, &ev);
    EXPECT(&h, "wait q3");
    ev = event_of(&h, KEDGE_EV_REQUEST_GONE);
    ev.site = 0;
    ev.request = 1; /* an old one: no effect */
    host_step(&h, &ev);
    h.now += 5000 * MS;
    host_simple(&h, KEDGE_EV_TIMER);
    EXPECT(&h, "wait q2");
    ev = event_of(&h, KEDGE_EV_POLL);
    ev.site = 0;
    ev.request = 4; /* a wait of 0 */
    host_step(&h, &ev);
    EXPECT(&h, "wait q4");
    host_close(&h);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("round");
    tcase_add_test(tc, test_ungrouped);
    tcase_add_test(tc, test_grouped);
    tcase_add_loop_test(tc, test_refusals, 0, (int)(sizeof refusals / sizeof refusals[0]));
    tcase_add_test(tc, test_duplicates);
    tcase_add_test(tc, test_deadline_and_quorum);
    tcase_add_test(tc, test_deadline_waits_for_appends);
    tcase_add_test(tc, test_offline_site);
    tcase_add_test(tc, test_failed_append);
    tcase_add_test(tc, test_work_that_can_not_be_done);
    tcase_add_test(tc, test_revoked);
    tcase_add_loop_test(tc, test_revoked_while_appending, 0, 2);
    tcase_add_test(tc, test_operator);
    tcase_add_test(tc, test_unstored);
    tcase_add_test(tc, test_polls);
    Suite *s = suite_create("coordinator/round");
    suite_add_tcase(s, tc);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
