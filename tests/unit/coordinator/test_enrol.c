/* Jobs that nobody joins, or whose sites never come: they end by their deadline, also behind a restart. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/coordinator/host.h"

static const uint64_t WITHIN = 60000 * MS;

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

static uint64_t waits_until(const struct host *h)
{
    struct kedge_coord_job_view view;
    ck_assert(kedge_coord_job(h->c, 0, &view));
    return view.enrol_ns;
}

static void timer_at(struct host *h, uint64_t now)
{
    h->now = now;
    host_simple(h, KEDGE_EV_TIMER);
}

static struct host *begin(uint32_t sites_min)
{
    struct host *h = calloc(1, sizeof *h);
    ck_assert_ptr_nonnull(h);
    host_open(h);
    host_members(h, 1, 2);
    host_simple(h, KEDGE_EV_START);
    h->params.sites_min = sites_min;
    h->params.enrol_within_ns = WITHIN;
    return h;
}

static void end(struct host *h)
{
    host_close(h);
    free(h);
}

/* It has asked for job-closed, and is over once that is durable. */
static void expect_end(struct host *h)
{
    ck_assert_msg(says(h, "job-closed failed"), "%s", h->text);
    host_main(h, KEDGE_OK);
    ck_assert_msg(says(h, ">failed ENROL_TIME"), "%s", h->text);
}

START_TEST(test_nobody_joins)
{
    struct host *h = begin(1);
    int reason;
    host_submit_job(h);
    const uint64_t submitted = h->now;
    host_main(h, KEDGE_OK);
    ck_assert_uint_le(kedge_coord_deadline_ns(h->c), submitted + WITHIN); /* the sites have deadlines, too */
    timer_at(h, submitted + WITHIN - 1);
    EXPECT(h, "");
    ck_assert_int_eq(state_of(h, &reason), KEDGE_JOB_ENROLLING);
    ck_assert_uint_eq(waits_until(h), submitted + WITHIN);
    timer_at(h, submitted + WITHIN);
    ck_assert_uint_eq(waits_until(h), UINT64_MAX); /* it ends */
    expect_end(h);
    ck_assert_uint_gt(kedge_coord_deadline_ns(h->c), h->now);
    end(h);
}
END_TEST

/* All have joined, but one of two sites never comes; with both it opens, and the deadline means nothing. */
START_TEST(test_sites_missing)
{
    for (int both = 0; both < 2; both++) {
        struct host *h = begin(2);
        host_submit_job(h);
        const uint64_t submitted = h->now;
        host_main(h, KEDGE_OK);
        host_joined(h, 0);
        h->now = submitted + WITHIN - 2;
        host_poll(h, 0, 1);
        if (both) {
            host_poll(h, 1, 2);
            ck_assert_msg(says(h, "round-opened"), "%s", h->text);
            host_main(h, KEDGE_OK);
        }
        timer_at(h, submitted + WITHIN);
        int reason;
        if (both) {
            ck_assert_int_ne(state_of(h, &reason), KEDGE_JOB_ENROLLING);
            ck_assert_int_eq(reason, KEDGE_OK);
        } else {
            expect_end(h);
        }
        end(h);
    }
}
END_TEST

/* While the operator halts it nothing ends; the deadline stands all the same. */
START_TEST(test_halted)
{
    struct host *h = begin(1);
    int reason;
    host_submit_job(h);
    const uint64_t submitted = h->now;
    host_main(h, KEDGE_OK);
    host_simple(h, KEDGE_EV_JOB_HALT);
    timer_at(h, submitted + 2 * WITHIN);
    ck_assert_int_eq(state_of(h, &reason), KEDGE_JOB_HALTED);
    ck_assert_uint_gt(kedge_coord_deadline_ns(h->c), h->now);
    host_simple(h, KEDGE_EV_JOB_RESUME);
    expect_end(h);
    end(h);
}
END_TEST

static void load(struct host *h, uint64_t waited_ns)
{
    struct kedge_digest initial = digest_of(1);
    host_restart(h);
    host_members(h, 1, 2);
    struct kedge_coord_event ev = event_of(h, KEDGE_EV_LOAD_JOB);
    ev.params = &h->params;
    ev.models = &initial;
    ev.model_count = 1;
    ev.state = KEDGE_JOB_ENROLLING;
    ev.waited_ns = waited_ns;
    host_step(h, &ev);
    host_simple(h, KEDGE_EV_START);
}

START_TEST(test_restart)
{
    struct host *h = begin(1);
    load(h, WITHIN - 5 * MS);
    const uint64_t started = h->now;
    timer_at(h, started + 5 * MS - 1);
    EXPECT(h, "");
    timer_at(h, started + 5 * MS);
    expect_end(h);
    load(h, 3 * WITHIN); /* it was over while nothing ran */
    timer_at(h, h->now);
    host_main(h, KEDGE_OK);
    ck_assert_msg(says(h, ">failed ENROL_TIME"), "%s", h->text);
    h->params.enrol_within_ns = 0;
    load(h, 3 * WITHIN);
    timer_at(h, h->now + 100 * WITHIN);
    EXPECT(h, "");
    end(h);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("coordinator_enrol");
    TCase *t = tcase_create("core");
    tcase_add_test(t, test_nobody_joins);
    tcase_add_test(t, test_sites_missing);
    tcase_add_test(t, test_halted);
    tcase_add_test(t, test_restart);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
