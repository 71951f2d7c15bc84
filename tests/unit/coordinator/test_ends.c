/* Jobs that end before their time: by what can never be stored, and by the operator, in whatever state. */
#include <check.h>
#include <string.h>

#include "tests/fixtures/run.h"
#include "tests/unit/coordinator/host_groups.h"

static const enum kedge_task_kind P = KEDGE_TASK_PRETRAIN, T = KEDGE_TASK_TRAIN;
enum { SITES = HOST_GROUP_SITES, NONE = HOST_GROUP_NONE };

/* Three sites in two groups, all polling, round 1 open. */
static void open_warm(struct host *h)
{
    host_open(h);
    h->params.groups = 2;
    h->params.rounds = 4;
    h->params.migrate_every = 1;
    host_load_job(h, 1);
    host_load_closed(h, 0, P, 2, false);
    for (uint32_t i = 0; i < SITES; i++) {
        host_load_group(h, i, 0, i % 2, true);
    }
    host_simple(h, KEDGE_EV_START);
    for (uint32_t i = 0; i < SITES; i++) {
        host_poll_shifted(h, i, 100 + i);
    }
    host_main(h, KEDGE_OK);
}

/* Site 0 is to be told its new group. */
static void open_moving(struct host *h)
{
    open_warm(h);
    host_accept(h, 0, P, 1, KEDGE_COORD_NONE, 1, 10);
    host_assigned(h, 0, 1, KEDGE_OK);
    EXPECT(h, "append-assigned s0 g1");
}

static void ends(struct host *h, const char *closed, const char *last)
{
    EXPECT(h, closed);
    host_main(h, KEDGE_OK);
    EXPECT(h, last);
    ck_assert(kedge_coord_is_valid(h->c));
    host_close(h);
}

/* What another entry's key keeps out for ever does not halt the job: it ends it, and says why. */
START_TEST(test_group_refused)
{
    struct host h;
    open_moving(&h);
    host_stated(&h, 0, KEDGE_E_EXISTS);
    ends(&h, "job-closed failed", "training>failed EXISTS");
}
END_TEST

/* The same of groups that a close gave; what else of them fails is not waited for. */
START_TEST(test_close_refused)
{
    struct host h;
    open_warm(&h);
    for (uint32_t i = 0; i < SITES; i++) { /* who asks to move stays where it is */
        host_accept(&h, i, P, 1, KEDGE_COORD_NONE, 1, (uint8_t)(10 + i));
        host_assigned(&h, i, i % 2, KEDGE_OK);
        host_stated(&h, i, KEDGE_OK);
    }
    host_train_all(&h, 1, (uint32_t[]){0, 1, 0}, (uint8_t[]){20, 21, 20}, 20);
    EXPECT(&h, "receipt q22 leaf=22; close r1");
    host_closes(&h, 1, 1, 30, (int[]){0, 0, 0}, false);
    host_main(&h, KEDGE_OK);
    EXPECT(&h, "append-assigned s0 g0; append-assigned s1 g0; append-assigned s2 g0");
    host_stated(&h, 2, KEDGE_E_DISK_FULL);
    EXPECT(&h, "training>halted DISK_FULL");
    host_stated(&h, 1, KEDGE_E_EXISTS);
    EXPECT(&h, "halted>training");
    host_stated(&h, 0, KEDGE_OK);
    ends(&h, "job-closed failed", "training>failed EXISTS");
}
END_TEST

/* A site's own statement is refused, and its job goes on. */
START_TEST(test_update_refused)
{
    struct host h;
    open_warm(&h);
    host_submit(&h, 0, P, 1, KEDGE_COORD_NONE, 1, 10);
    host_verified(&h, 0, P, 10, KEDGE_OK);
    host_appended(&h, 0, P, 10, 0, KEDGE_E_EXISTS);
    EXPECT(&h, "away q10 DUPLICATE");
    struct kedge_coord_job_view view;
    ck_assert(kedge_coord_job(h.c, 0, &view) && view.state == KEDGE_JOB_TRAINING);
    host_close(&h);
}
END_TEST

/* A round that cannot be opened, or closed. */
START_TEST(test_round_refused)
{
    struct host h;
    host_open(&h);
    host_members(&h, 1, 2);
    host_simple(&h, KEDGE_EV_START);
    host_submit_job(&h);
    host_main(&h, KEDGE_OK);
    host_joined(&h, 0);
    host_poll(&h, 0, 100);
    host_poll(&h, 1, 101);
    EXPECT(&h, "enrolling>training; round-opened r1");
    if (_i == 0) {
        host_main(&h, KEDGE_E_EXISTS);
    } else {
        host_main(&h, KEDGE_OK);
        host_accept(&h, 0, T, 1, 0, 1, 10);
        host_accept(&h, 1, T, 1, 0, 1, 11);
        host_computed(&h, 1, 1, 20, KEDGE_OK);
        EXPECT(&h, "round-closed r1");
        host_main(&h, KEDGE_E_EXISTS);
    }
    ends(&h, "job-closed failed", "training>failed EXISTS");
}
END_TEST

/* The main chain knows nothing of it: it has failed, without job-closed. */
START_TEST(test_opening_refused)
{
    struct host h;
    host_open(&h);
    host_members(&h, 1, 1);
    host_simple(&h, KEDGE_EV_START);
    host_submit_job(&h);
    host_main(&h, KEDGE_E_TOO_LONG);
    EXPECT(&h, "queued>failed TOO_LONG");
    host_close(&h);
}
END_TEST

/* What cannot end as completed ends as failed; a job-closed that fails is tried again. */
START_TEST(test_completion_refused)
{
    struct host h;
    host_open(&h);
    h.params.rounds = 1;
    h.params.evaluate_every = 0;
    host_members(&h, 1, 2);
    host_simple(&h, KEDGE_EV_START);
    host_submit_job(&h);
    host_main(&h, KEDGE_OK);
    host_joined(&h, 0);
    host_poll(&h, 0, 100);
    host_poll(&h, 1, 101);
    EXPECT(&h, "enrolling>training; round-opened r1");
    host_main(&h, KEDGE_OK);
    host_accept(&h, 0, T, 1, 0, 1, 10);
    host_accept(&h, 1, T, 1, 0, 1, 11);
    EXPECT(&h, "receipt q11 leaf=11; close r1");
    host_computed(&h, 1, 1, 20, KEDGE_OK);
    host_main(&h, KEDGE_OK);
    EXPECT(&h, "training>storing; job-closed completed");
    host_main(&h, KEDGE_E_TOO_LONG);
    EXPECT(&h, "job-closed failed");
    host_main(&h, KEDGE_E_DISK_FULL);
    EXPECT(&h, "storing>halted DISK_FULL");
    h.now += 1000 * MS;
    host_simple(&h, KEDGE_EV_TIMER);
    ends(&h, "job-closed failed", "halted>storing; storing>failed TOO_LONG");
}
END_TEST

/* A cancelled job does not wait for what fails again and again: neither for a group … */
START_TEST(test_cancel_group)
{
    struct host h;
    open_moving(&h);
    host_stated(&h, 0, KEDGE_E_DISK_FULL);
    EXPECT(&h, "training>halted DISK_FULL");
    host_simple(&h, KEDGE_EV_JOB_CANCEL);
    ends(&h, "halted>training; job-closed cancelled", "training>cancelled");
}
END_TEST

/* … that is on its way when it is cancelled … */
START_TEST(test_cancel_group_out)
{
    struct host h;
    open_moving(&h);
    host_simple(&h, KEDGE_EV_JOB_CANCEL);
    EXPECT(&h, "");
    host_stated(&h, 0, KEDGE_E_DISK_FULL);
    ends(&h, "training>halted DISK_FULL; halted>training; job-closed cancelled", "training>cancelled");
}
END_TEST

/* … nor for an update, whose site is told so … */
START_TEST(test_cancel_update)
{
    struct host h;
    open_warm(&h);
    host_submit(&h, 0, P, 1, KEDGE_COORD_NONE, 1, 10);
    host_verified(&h, 0, P, 10, KEDGE_OK);
    host_appended(&h, 0, P, 10, 0, KEDGE_E_DISK_FULL);
    EXPECT(&h, "training>halted DISK_FULL");
    host_simple(&h, KEDGE_EV_JOB_CANCEL);
    ends(&h, "away q10 NO_JOB; halted>training; job-closed cancelled", "training>cancelled");
}
END_TEST

/* … nor for a round that cannot be opened, also when the operator had halted it before. */
START_TEST(test_cancel_round)
{
    struct host h;
    open_warm(&h);
    host_restart(&h);
    host_load_job(&h, 1);
    host_load_closed(&h, 0, P, 2, false);
    for (uint32_t i = 0; i < SITES; i++) {
        host_load_group(&h, i, 0, i % 2, true);
    }
    host_simple(&h, KEDGE_EV_START);
    for (uint32_t i = 0; i < SITES; i++) {
        host_poll(&h, i, 100 + i);
    }
    EXPECT(&h, "round-opened r1");
    host_main(&h, KEDGE_E_DISK_FULL);
    EXPECT(&h, "training>halted DISK_FULL");
    if (_i == 1) {
        host_simple(&h, KEDGE_EV_JOB_HALT);
    }
    host_simple(&h, KEDGE_EV_JOB_CANCEL);
    ends(&h, strstr(h.text, "job-closed") ? h.text : "job-closed cancelled", "training>cancelled");
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("ends");
    tcase_add_test(t, test_group_refused);
    tcase_add_test(t, test_close_refused);
    tcase_add_test(t, test_update_refused);
    tcase_add_loop_test(t, test_round_refused, 0, 2);
    tcase_add_test(t, test_opening_refused);
    tcase_add_test(t, test_completion_refused);
    tcase_add_test(t, test_cancel_group);
    tcase_add_test(t, test_cancel_group_out);
    tcase_add_test(t, test_cancel_update);
    tcase_add_loop_test(t, test_cancel_round, 0, 2);
    Suite *s = suite_create("coordinator/ends");
    suite_add_tcase(s, t);
    return run_suite(s);
}
