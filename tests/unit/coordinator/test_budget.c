/* A job whose budget has no room for another round: it is halted before it, also behind a restart, and ends
 * only by cancelling; what its rounds cost is the sum of what was accepted. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/coordinator/host.h"

static bool says(const struct host *h, const char *words)
{
    return strstr(h->text, words) != NULL;
}

static enum kedge_job_state state_of(const struct host *h, int *ret_reason)
{
    struct kedge_coord_job_view view;
    ck_assert(kedge_coord_job(h->c, 0, &view));
    *ret_reason = view.reason;
    return view.state;
}

/* Job 0 of two sites, both in round 1. */
static struct host *begin(uint32_t rounds)
{
    struct host *h = calloc(1, sizeof *h);
    ck_assert_ptr_nonnull(h);
    host_open(h);
    host_members(h, 1, 2);
    host_simple(h, KEDGE_EV_START);
    h->params.rounds = rounds;
    host_submit_job(h);
    host_main(h, KEDGE_OK);
    host_joined(h, 0);
    host_poll(h, 0, 1);
    host_poll(h, 1, 2);
    ck_assert_msg(says(h, "round-opened r1"), "%s", h->text);
    host_main(h, KEDGE_OK);
    return h;
}

static void end(struct host *h)
{
    host_close(h);
    free(h);
}

/* Both send their updates, and the round is closed. */
static void close_round(struct host *h, uint32_t round, uint8_t base, bool over)
{
    h->cost = 7;
    host_accept(h, 0, KEDGE_TASK_TRAIN, round, 0, base, (uint8_t)(10 * round));
    h->cost = 11;
    host_accept(h, 1, KEDGE_TASK_TRAIN, round, 0, base, (uint8_t)(10 * round + 1));
    ck_assert_msg(says(h, "charged=18"), "%s", h->text);
    h->over_budget = over;
    host_computed(h, round, 1, (uint8_t)(base + 1), KEDGE_OK);
    host_main(h, KEDGE_OK);
}

START_TEST(test_halts)
{
    struct host *h = begin(3);
    int reason;
    close_round(h, 1, 1, true);
    ck_assert_msg(says(h, "training>halted BUDGET"), "%s", h->text);
    ck_assert_msg(!says(h, "round-opened"), "%s", h->text);
    h->now += 3600 * 1000 * MS;
    host_poll(h, 0, 3);
    host_poll(h, 1, 4);
    host_simple(h, KEDGE_EV_TIMER);
    ck_assert_msg(!says(h, "round-opened"), "%s", h->text);
    host_simple(h, KEDGE_EV_JOB_HALT);
    ck_assert_int_eq(state_of(h, &reason), KEDGE_JOB_HALTED);
    ck_assert_int_eq(reason, KEDGE_OK); /* the operator's comes first */
    host_simple(h, KEDGE_EV_JOB_RESUME);
    ck_assert_int_eq(state_of(h, &reason), KEDGE_JOB_HALTED);
    ck_assert_int_eq(reason, KEDGE_E_BUDGET);
    host_simple(h, KEDGE_EV_JOB_CANCEL);
    ck_assert_msg(says(h, "job-closed cancelled"), "%s", h->text);
    host_main(h, KEDGE_OK);
    ck_assert_msg(says(h, ">cancelled"), "%s", h->text);
    end(h);
}
END_TEST

/* Where there is room, and after the last round, nothing halts. */
START_TEST(test_goes_on)
{
    struct host *h = begin(2);
    close_round(h, 1, 1, false);
    host_poll(h, 0, 3);
    host_poll(h, 1, 4);
    h->now += 5000 * MS;
    host_simple(h, KEDGE_EV_TIMER);
    int reason;
    ck_assert_int_eq(state_of(h, &reason), KEDGE_JOB_TRAINING);
    host_main(h, KEDGE_OK);
    close_round(h, 2, 2, true);
    ck_assert_msg(!says(h, "halted"), "%s", h->text);
    ck_assert_int_eq(state_of(h, &reason), KEDGE_JOB_STORING);
    end(h);
}
END_TEST

static void load(struct host *h, uint32_t round, bool over)
{
    struct kedge_digest model = digest_of(2);
    host_restart(h);
    host_members(h, 1, 2);
    struct kedge_coord_event ev = event_of(h, KEDGE_EV_LOAD_JOB);
    ev.params = &h->params;
    ev.models = &model;
    ev.model_count = 1;
    ev.state = KEDGE_JOB_ENROLLING;
    host_step(h, &ev);
    host_joined(h, 0);
    ev = event_of(h, KEDGE_EV_LOAD_ROUND);
    ev.round = round;
    ev.closed = true;
    ev.kind = KEDGE_TASK_TRAIN;
    ev.models = &model;
    ev.model_count = 1;
    ev.over_budget = over;
    host_step(h, &ev);
}

START_TEST(test_restart)
{
    struct host *h = begin(2);
    int reason;
    load(h, 1, true);
    host_simple(h, KEDGE_EV_START);
    ck_assert_msg(says(h, "halted BUDGET"), "%s", h->text);
    load(h, 1, false);
    host_simple(h, KEDGE_EV_START);
    ck_assert_int_eq(state_of(h, &reason), KEDGE_JOB_TRAINING);
    load(h, 2, true); /* of the last one nothing is left to open */
    host_simple(h, KEDGE_EV_START);
    ck_assert_msg(!says(h, "halted"), "%s", h->text);
    end(h);
}
END_TEST

/* What an open round had accepted before a restart costs as much after it. */
START_TEST(test_restart_of_an_open_round)
{
    struct host *h = begin(3);
    load(h, 1, false);
    struct kedge_coord_event ev = event_of(h, KEDGE_EV_LOAD_ROUND);
    ev.round = 2;
    ev.kind = KEDGE_TASK_TRAIN;
    host_step(h, &ev);
    for (uint32_t site = 0; site < 2; site++) {
        ev = event_of(h, KEDGE_EV_LOAD_ROW);
        ev.site = site;
        ev.round = 2;
        ev.selected = true;
        host_step(h, &ev);
    }
    for (uint32_t site = 0; site < 2; site++) {
        ev = event_of(h, KEDGE_EV_LOAD_ACCEPTED);
        ev.site = site;
        ev.round = 2;
        ev.kind = KEDGE_TASK_TRAIN;
        ev.group = 0;
        ev.weight = 1;
        ev.cost = 20 + site;
        host_step(h, &ev);
    }
    host_simple(h, KEDGE_EV_START);
    ck_assert_msg(says(h, "close r2 charged=41"), "%s", h->text);
    end(h);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("coordinator_budget");
    TCase *t = tcase_create("core");
    tcase_add_test(t, test_halts);
    tcase_add_test(t, test_goes_on);
    tcase_add_test(t, test_restart);
    tcase_add_test(t, test_restart_of_an_open_round);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
