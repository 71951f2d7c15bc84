/* Tasks that end without a result: what is told, and who pauses. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/client/site_host.h"

static void fails(struct host *h, const char *job, enum kedge_trouble why)
{
    site_give(h, job, KEDGE_SITE_TRAIN, 1, false);
    ck_assert_str_eq(h->text, "log task; fetch spec");
    site_done(h, KEDGE_SITE_EV_FETCHED, KEDGE_OK);
    site_done(h, KEDGE_SITE_EV_FETCHED, KEDGE_OK);
    struct kedge_site_event ev = {
        .type = KEDGE_SITE_EV_TRAIN_FAILED, .serial = h->work, .err = KEDGE_E_TRAINER, .trouble = why};
    site_step(h, &ev);
}

/* A trainer that cannot train is not asked ten times a second: the pause of its job grows from task to task,
 * and one that went well ends that. */
START_TEST(test_failing_trainer)
{
    struct host h;
    site_open_enrolled(&h);
    for (int i = 0; i < 12; i++) {
        fails(&h, "digits", KEDGE_TROUBLE_DATA_BAD);
        ck_assert_str_eq(h.text, "log failed TRAINER; ended r1 data-bad");
        uint64_t most = i < 8 ? h.params.times.trouble_min << i : h.params.times.trouble_max;
        most = most < h.params.times.trouble_max ? most : h.params.times.trouble_max;
        ck_assert(h.pause <= most && h.pause >= most / 2);
        site_reply(&h, KEDGE_SITE_REPLY_NOTED, KEDGE_OK);
        ck_assert_uint_eq(kedge_site_deadline_ns(h.s), h.now + h.params.times.poll_min);
        site_timer(&h);
        ck_assert_str_eq(h.text, "poll");
        h.now += h.pause;
    }
    site_give(&h, "digits", KEDGE_SITE_TRAIN, 1, false);
    site_done(&h, KEDGE_SITE_EV_FETCHED, KEDGE_OK);
    site_done(&h, KEDGE_SITE_EV_FETCHED, KEDGE_OK);
    site_trained(&h, 1, false);
    site_done(&h, KEDGE_SITE_EV_PERSISTED, KEDGE_OK);
    site_done(&h, KEDGE_SITE_EV_UPLOADED, KEDGE_OK);
    site_reply(&h, KEDGE_SITE_REPLY_RECEIPT, KEDGE_OK);
    fails(&h, "digits", KEDGE_TROUBLE_NONE);
    ck_assert_uint_le(h.pause, h.params.times.trouble_min);
}
END_TEST

/* The job in trouble pauses, not the site; its tasks that come all the same are ended unseen, and a
 * coordinator that sends them without end is asked less and less often. */
START_TEST(test_trouble_is_of_a_job)
{
    struct host h;
    site_open_enrolled(&h);
    struct kedge_site_event all = {.type = KEDGE_SITE_EV_POLICY, .allow_all = true};
    site_reply(&h, KEDGE_SITE_REPLY_WAIT, KEDGE_OK);
    site_step(&h, &all);
    ck_assert_str_eq(h.text, "poll anew");
    fails(&h, "digits", KEDGE_TROUBLE_DIVERGED);
    uint64_t begun = h.now, pause = h.pause;
    site_reply(&h, KEDGE_SITE_REPLY_NOTED, KEDGE_OK);
    site_timer(&h);
    site_give(&h, "other", KEDGE_SITE_TRAIN, 1, false);
    ck_assert_str_eq(h.text, "log task; fetch spec");
    site_done(&h, KEDGE_SITE_EV_FETCH_FAILED, KEDGE_E_NOT_FOUND); /* of a round that is over, perhaps */
    ck_assert_str_eq(h.text, "log failed NOT_FOUND; ended r1 other");
    ck_assert_uint_le(h.pause, h.params.times.backoff_min);
    site_reply(&h, KEDGE_SITE_REPLY_NOTED, KEDGE_OK);
    uint64_t last = 0;
    for (int i = 0; i < 4; i++) {
        site_timer(&h);
        ck_assert_str_eq(h.text, "poll");
        site_give(&h, "digits", KEDGE_SITE_TRAIN, 1, false);
        ck_assert_str_eq(h.text, "ended r1 diverged");
        ck_assert_uint_eq(h.pause, begun + pause - h.now);
        site_reply(&h, KEDGE_SITE_REPLY_NOTED, KEDGE_OK);
        last = kedge_site_deadline_ns(h.s) - h.now;
        ck_assert_uint_ge(last, (h.params.times.backoff_min << i) / 2);
    }
    site_timer(&h);
    site_step(&h,
              &all); /* the owner has changed something: all is tried again, and the coordinator hears it */
    site_reply(&h, KEDGE_SITE_REPLY_WAIT, KEDGE_OK);
    site_timer(&h);
    ck_assert_str_eq(h.text, "poll anew");
    struct kedge_site_event lost = {
        .type = KEDGE_SITE_EV_CALL_FAILED, .serial = h.call, .err = KEDGE_E_TIMEOUT};
    site_step(&h, &lost);
    site_timer(&h);
    ck_assert_str_eq(h.text, "poll anew");
    site_give(&h, "digits", KEDGE_SITE_TRAIN, 1, false);
    ck_assert_str_eq(h.text, "log task; fetch spec");
}
END_TEST

/* Whatever comes of telling it, the site goes on; one that knows nothing of it is asked as rarely as before.
 */
START_TEST(test_ended_untold)
{
    struct host h;
    site_open_enrolled(&h);
    fails(&h, "digits", KEDGE_TROUBLE_NONE);
    for (int i = 0; i < 4; i++) {
        struct kedge_site_event lost = {
            .type = KEDGE_SITE_EV_CALL_FAILED, .serial = h.call, .err = KEDGE_E_TIMEOUT};
        site_step(&h, &lost);
        site_timer(&h);
        ck_assert_str_eq(h.text, "ended r1 trainer-failed");
    }
    site_reply(&h, KEDGE_SITE_REPLY_ERROR, KEDGE_E_BUSY);
    site_timer(&h);
    ck_assert_str_eq(h.text, "poll");
    h.now += h.pause;
    fails(&h, "digits", KEDGE_TROUBLE_NONE);
    site_reply(&h, KEDGE_SITE_REPLY_ERROR, KEDGE_E_FORMAT);
    ck_assert_uint_eq(kedge_site_deadline_ns(h.s), h.now + h.params.times.refused_pause);
    site_timer(&h);
    h.now += 2 * h.pause;
    fails(&h, "digits", KEDGE_TROUBLE_NONE);
    site_reply(&h, KEDGE_SITE_REPLY_ERROR, KEDGE_E_REVOKED);
    ck_assert_str_eq(h.text, "log stopped REVOKED");
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("trouble");
    tcase_add_test(tc, test_failing_trainer);
    tcase_add_test(tc, test_trouble_is_of_a_job);
    tcase_add_test(tc, test_ended_untold);
    Suite *s = suite_create("client/trouble");
    suite_add_tcase(s, tc);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
