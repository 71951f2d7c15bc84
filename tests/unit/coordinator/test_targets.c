/* Jobs with targets: after each round that is evaluated they wait for the evaluations, tell what came of
 * them, and go on or end; nothing is taken while it is told. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/coordinator/host.h"

static bool says(const struct host *h, const char *words)
{
    return strstr(h->text, words) != NULL;
}

static enum kedge_job_state state_of(const struct host *h)
{
    struct kedge_coord_job_view view;
    ck_assert(kedge_coord_job(h->c, 0, &view));
    return view.state;
}

static void told(struct host *h, bool reached)
{
    struct kedge_coord_event ev = event_of(h, KEDGE_EV_MAIN_APPENDED);
    ev.reached = reached;
    host_step(h, &ev);
}

/* Round 1 of two sites is closed: its model is 2. */
static struct host *begin(uint32_t every)
{
    struct host *h = calloc(1, sizeof *h);
    ck_assert_ptr_nonnull(h);
    host_open(h);
    host_members(h, 1, 2);
    host_simple(h, KEDGE_EV_START);
    h->params.rounds = 4;
    h->params.evaluate_every = every;
    h->params.has_targets = true;
    host_submit_job(h);
    host_main(h, KEDGE_OK);
    host_joined(h, 0);
    host_poll(h, 0, 1);
    host_poll(h, 1, 2);
    host_main(h, KEDGE_OK);
    host_accept(h, 0, KEDGE_TASK_TRAIN, 1, 0, 1, 10);
    host_accept(h, 1, KEDGE_TASK_TRAIN, 1, 0, 1, 11);
    host_poll(h, 0, 3);
    host_poll(h, 1, 4);
    host_computed(h, 1, 1, 2, KEDGE_OK);
    host_main(h, KEDGE_OK);
    return h;
}

static void end(struct host *h)
{
    host_close(h);
    free(h);
}

START_TEST(test_goes_on)
{
    struct host *h = begin(1);
    ck_assert_msg(says(h, "task q3 s0 evaluate r1") && says(h, "task q4 s1 evaluate r1"), "%s", h->text);
    ck_assert_msg(!says(h, "round-opened"), "%s", h->text);
    host_accept(h, 0, KEDGE_TASK_EVALUATE, 1, 0, 2, 20);
    ck_assert_msg(!says(h, "round-tested"), "%s", h->text); /* one is missing */
    host_accept(h, 1, KEDGE_TASK_EVALUATE, 1, 0, 2, 21);
    ck_assert_msg(says(h, "round-tested r1"), "%s", h->text);
    host_submit(h, 1, KEDGE_TASK_EVALUATE, 1, 0, 2, 21);
    ck_assert_msg(!says(h, "append"), "%s", h->text);
    told(h, false);
    ck_assert_msg(says(h, "round-opened r2"), "%s", h->text);
    ck_assert_int_eq(state_of(h), KEDGE_JOB_TRAINING);
    end(h);
}
END_TEST

START_TEST(test_ends)
{
    struct host *h = begin(1);
    host_accept(h, 0, KEDGE_TASK_EVALUATE, 1, 0, 2, 20);
    host_accept(h, 1, KEDGE_TASK_EVALUATE, 1, 0, 2, 21);
    told(h, true);
    ck_assert_msg(says(h, "training>storing") && says(h, "job-closed completed"), "%s", h->text);
    host_main(h, KEDGE_OK);
    ck_assert_msg(says(h, "storing>completed"), "%s", h->text);
    end(h);
}
END_TEST

/* Who does not evaluate is waited for no longer than after the last round; then what is there is told. While
 * it is told, what comes is turned away for the moment, and is told of no more. */
START_TEST(test_late)
{
    struct host *h = begin(1);
    host_accept(h, 0, KEDGE_TASK_EVALUATE, 1, 0, 2, 20);
    h->now += 31000 * MS;
    host_simple(h, KEDGE_EV_TIMER);
    ck_assert_msg(says(h, "round-tested r1"), "%s", h->text);
    host_submit(h, 1, KEDGE_TASK_EVALUATE, 1, 0, 2, 21);
    EXPECT(h, "away q21 BUSY again");
    told(h, true); /* nobody is waited for a second time */
    ck_assert_msg(says(h, "job-closed completed"), "%s", h->text);
    end(h);
}
END_TEST

/* An evaluation that is on its way is waited for, however late it is. */
START_TEST(test_in_flight)
{
    struct host *h = begin(1);
    host_submit(h, 0, KEDGE_TASK_EVALUATE, 1, 0, 2, 20);
    ck_assert_msg(says(h, "append s0 evaluate"), "%s", h->text);
    h->now += 31000 * MS;
    host_simple(h, KEDGE_EV_TIMER);
    ck_assert_msg(!says(h, "round-tested"), "%s", h->text);
    host_appended(h, 0, KEDGE_TASK_EVALUATE, 20, 20, KEDGE_OK);
    ck_assert_msg(says(h, "round-tested r1"), "%s", h->text);
    end(h);
}
END_TEST

/* Rounds that are not evaluated are followed by the next one at once; the last one ends the job as ever. */
START_TEST(test_others)
{
    struct host *h = begin(2);
    ck_assert_msg(says(h, "round-opened r2") && !says(h, "evaluate"), "%s", h->text);
    end(h);
}
END_TEST

/* A failed append is tried again; a job that is cancelled meanwhile ends. */
START_TEST(test_failures)
{
    struct host *h = begin(1);
    host_accept(h, 0, KEDGE_TASK_EVALUATE, 1, 0, 2, 20);
    host_accept(h, 1, KEDGE_TASK_EVALUATE, 1, 0, 2, 21);
    host_main(h, KEDGE_E_DISK_FULL);
    ck_assert_msg(says(h, "training>halted DISK_FULL"), "%s", h->text);
    h->now += 1000 * MS;
    host_simple(h, KEDGE_EV_TIMER);
    ck_assert_msg(says(h, "round-tested r1"), "%s", h->text);
    host_simple(h, KEDGE_EV_JOB_CANCEL);
    told(h, false);
    ck_assert_msg(says(h, "job-closed cancelled") && !says(h, "round-opened"), "%s", h->text);
    end(h);
}
END_TEST

static void load(struct host *h, uint32_t round, bool tested, bool reached)
{
    struct kedge_digest model = digest_of(2);
    host_restart(h);
    host_members(h, 1, 2);
    struct kedge_coord_event ev = event_of(h, KEDGE_EV_LOAD_JOB);
    ev.params = &h->params;
    ev.models = &model;
    ev.model_count = 1;
    ev.state = KEDGE_JOB_TRAINING;
    host_step(h, &ev);
    host_joined(h, 0);
    ev = event_of(h, KEDGE_EV_LOAD_ROUND);
    ev.round = round;
    ev.closed = true;
    ev.kind = KEDGE_TASK_TRAIN;
    ev.models = &model;
    ev.model_count = 1;
    ev.tested = tested;
    ev.reached = reached;
    host_step(h, &ev);
    for (uint32_t site = 0; site < 2; site++) {
        ev = event_of(h, KEDGE_EV_LOAD_EVALUATED);
        ev.site = site;
        ev.round = round;
        host_step(h, &ev);
    }
    host_simple(h, KEDGE_EV_START);
    char all[sizeof h->text];
    size_t used = (size_t)snprintf(all, sizeof all, "%s; ", h->text);
    for (uint32_t site = 0; site < 2; site++) {
        host_poll(h, site, 40 + site);
        used += (size_t)snprintf(all + used, sizeof all - used, "%s; ", h->text);
    }
    (void)snprintf(h->text, sizeof h->text, "%s", all);
}

START_TEST(test_restart)
{
    struct host *h = begin(1);
    load(h, 1, false, false);
    ck_assert_msg(says(h, "round-tested r1") && !says(h, "round-opened"), "%s", h->text);
    load(h, 1, true, false);
    ck_assert_msg(says(h, "round-opened r2") && !says(h, "round-tested"), "%s", h->text);
    load(h, 1, true, true);
    ck_assert_msg(says(h, "job-closed completed") && !says(h, "round-opened"), "%s", h->text);
    load(h, 4, false, false);
    ck_assert_msg(says(h, "job-closed completed") && !says(h, "round-tested"), "%s", h->text);
    end(h);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("coordinator_targets");
    TCase *t = tcase_create("core");
    tcase_add_test(t, test_goes_on);
    tcase_add_test(t, test_ends);
    tcase_add_test(t, test_late);
    tcase_add_test(t, test_in_flight);
    tcase_add_test(t, test_others);
    tcase_add_test(t, test_failures);
    tcase_add_test(t, test_restart);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
