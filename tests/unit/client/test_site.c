/* One site, as events and golden effects. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "client/core/rare.h"
#include "tests/unit/client/site_host.h"

/* Up to the upload of a result of round 2 with an evaluation. */
static void work(struct host *h)
{
    site_give(h, "digits", KEDGE_SITE_TRAIN, 2, true);
    ck_assert_str_eq(h->text, "log task; fetch spec");
    site_done(h, KEDGE_SITE_EV_FETCHED, KEDGE_OK);
    ck_assert_str_eq(h->text, "fetch model");
    site_done(h, KEDGE_SITE_EV_FETCHED, KEDGE_OK);
    ck_assert_str_eq(h->text, "train r2");
    site_trained(h, 2, true);
    ck_assert_str_eq(h->text, "persist 2");
    site_done(h, KEDGE_SITE_EV_PERSISTED, KEDGE_OK);
    ck_assert_str_eq(h->text, "upload 40");
}

START_TEST(test_enrolment)
{
    struct host h;
    struct kedge_site_memory memory = {.enrolled = false};
    site_open_host(&h);
    site_start(&h, &memory);
    ck_assert_str_eq(h.text, "enroll");
    struct kedge_site_event ev = {.type = KEDGE_SITE_EV_REPLY, .serial = h.call};
    ev.reply.kind = KEDGE_SITE_REPLY_ENROLLED; /* not yet enrolled by the tenant */
    site_step(&h, &ev);
    ck_assert_str_eq(h.text, "");
    site_timer(&h);
    ck_assert_str_eq(h.text, "enroll");
    site_reply(&h, KEDGE_SITE_REPLY_ENROLLED, KEDGE_OK);
    ck_assert_str_eq(h.text, "log enrolled; persist 0; poll anew");
    ck_assert(h.stored.enrolled);
}
END_TEST

START_TEST(test_bad_token)
{
    struct host h;
    struct kedge_site_memory memory = {.enrolled = false};
    struct kedge_site_view view;
    site_open_host(&h);
    site_start(&h, &memory);
    site_reply(&h, KEDGE_SITE_REPLY_ERROR, KEDGE_E_TOKEN);
    ck_assert_str_eq(h.text, "log stopped TOKEN");
    kedge_site_view(h.s, &view);
    ck_assert_int_eq(view.state, KEDGE_SITE_STOPPED);
    ck_assert_int_eq(view.reason, KEDGE_E_TOKEN);
    ck_assert_uint_eq(kedge_site_deadline_ns(h.s), h.now + h.params.times.stopped_poll);
    site_timer(&h);
    ck_assert_str_eq(h.text, "enroll");
}
END_TEST

START_TEST(test_task)
{
    struct host h;
    struct kedge_site_view view;
    site_open_enrolled(&h);
    work(&h);
    site_done(&h, KEDGE_SITE_EV_UPLOADED, KEDGE_OK);
    ck_assert_str_eq(h.text, "submit 41");
    site_reply(&h, KEDGE_SITE_REPLY_RECEIPT, KEDGE_OK);
    ck_assert_str_eq(h.text, "log receipt; persist 1; forget 41; submit 42");
    site_reply(&h, KEDGE_SITE_REPLY_CLOSED, KEDGE_OK);
    ck_assert_str_eq(h.text, "log dropped ROUND_CLOSED; persist 0; forget 42; poll");
    kedge_site_view(h.s, &view);
    ck_assert_uint_eq(view.tasks, 1);
    ck_assert_uint_eq(view.receipts, 1);
    ck_assert_uint_eq(view.dropped, 1);
}
END_TEST

START_TEST(test_restart)
{
    struct host h;
    site_open_enrolled(&h);
    work(&h);
    struct kedge_site_memory memory = h.stored;
    site_start(&h, &memory);
    ck_assert_str_eq(h.text, "log resumed; upload 40");
    site_done(&h, KEDGE_SITE_EV_UPLOAD_FAILED,
              KEDGE_E_ROUND_CLOSED); /* perhaps it was accepted before the crash */
    ck_assert_str_eq(h.text, "submit 41");
    site_reply(&h, KEDGE_SITE_REPLY_RECEIPT, KEDGE_OK);
    ck_assert_str_eq(h.text, "log receipt; persist 1; forget 41; submit 42");
    memory = h.stored;
    site_start(&h, &memory);
    ck_assert_str_eq(h.text, "log resumed; submit 42");
}
END_TEST

START_TEST(test_refused_upload)
{
    struct host h;
    site_open_enrolled(&h);
    work(&h);
    site_done(&h, KEDGE_SITE_EV_UPLOADED, KEDGE_OK);
    site_reply(&h, KEDGE_SITE_REPLY_ERROR, KEDGE_E_BLOB_MISSING); /* lost by a crash of the coordinator */
    ck_assert_str_eq(h.text, "");
    site_timer(&h);
    ck_assert_str_eq(h.text, "upload 40");
    site_done(&h, KEDGE_SITE_EV_UPLOAD_FAILED, KEDGE_E_NOT_SELECTED);
    ck_assert_str_eq(h.text, "submit 41");
    site_reply(&h, KEDGE_SITE_REPLY_ERROR, KEDGE_E_BLOB_MISSING); /* it will never take it */
    ck_assert_str_eq(h.text, "log dropped BLOB_MISSING; persist 1; forget 41");
    site_timer(&h);
    ck_assert_str_eq(h.text, "submit 42");
}
END_TEST

START_TEST(test_refused_tasks)
{
    static const struct {
        const char *job, *golden;
        enum kedge_site_kind kind;
        uint32_t round, group;
        uint64_t base_len;
    } rows[] = {
        {"other", "log refused DENIED; ended r1 policy-refused", KEDGE_SITE_TRAIN, 1, 0, 100},
        {"digits", "log refused TOO_LONG; ended r1 other", KEDGE_SITE_TRAIN, 1, 0, 1001},
        {"digits", "log refused FORMAT; ended r1 other", KEDGE_SITE_TRAIN, 1, KEDGE_SITE_NONE, 100},
        {"digits", "log refused FORMAT; ended r0 other", KEDGE_SITE_PRETRAIN, 0, 0, 100},
        {"digits", "log refused FORMAT; ended r1000001 other", KEDGE_SITE_TRAIN, KEDGE_ROUNDS_MAX + 1, 0,
         100},
        {"digits", "log refused FORMAT; ended r1 other", KEDGE_SITE_TRAIN, 1, KEDGE_GROUPS_MAX, 100},
        {"digits", "log refused FORMAT; ended r1 other", (enum kedge_site_kind)9, 1, 0, 100},
    };
    struct host h;
    site_open_enrolled(&h);
    struct kedge_site_event ev = {.type = KEDGE_SITE_EV_REPLY, .serial = h.call};
    struct kedge_site_task *t = &ev.reply.task;
    ev.reply.kind = KEDGE_SITE_REPLY_TASK;
    memcpy(t->job.s, rows[_i].job, strlen(rows[_i].job));
    t->kind = rows[_i].kind;
    t->round = rows[_i].round;
    t->group = rows[_i].group;
    t->base_len = rows[_i].base_len;
    site_step(&h, &ev);
    ck_assert_str_eq(h.text, rows[_i].golden);
    site_reply(&h, KEDGE_SITE_REPLY_NOTED, KEDGE_OK);
    ck_assert_uint_eq(kedge_site_deadline_ns(h.s), h.now + h.params.times.poll_min);
    site_timer(&h);
    ck_assert_str_eq(h.text, "poll");
}
END_TEST

START_TEST(test_spec_denied)
{
    struct host h;
    site_open_enrolled(&h);
    site_give(&h, "digits", KEDGE_SITE_PRETRAIN, 0, false);
    site_done(&h, KEDGE_SITE_EV_FETCH_FAILED, KEDGE_E_DENIED);
    ck_assert_str_eq(h.text, "log refused DENIED; ended r0 policy-refused");
    ck_assert_uint_ge(h.pause, h.params.times.refused_pause / 2);
}
END_TEST

START_TEST(test_backoff)
{
    struct host h;
    site_open_enrolled(&h);
    uint64_t longest = 0;
    for (int i = 0; i < 20; i++) {
        struct kedge_site_event ev = {
            .type = KEDGE_SITE_EV_CALL_FAILED, .serial = h.call, .err = KEDGE_E_UNREACHABLE};
        site_step(&h, &ev);
        ck_assert_str_eq(h.text, i == 0 ? "log unreachable UNREACHABLE" : ""); /* once per outage */
        uint64_t pause = kedge_site_deadline_ns(h.s) - h.now;
        uint64_t most = i < 8 ? h.params.times.backoff_min << i : h.params.times.backoff_max;
        most = most < h.params.times.backoff_max ? most : h.params.times.backoff_max;
        ck_assert_uint_le(pause, most);
        ck_assert_uint_ge(pause, most / 2);
        longest = pause > longest ? pause : longest;
        site_timer(&h);
        ck_assert_str_eq(h.text, "poll anew"); /* until one is answered */
    }
    ck_assert_uint_gt(longest, h.params.times.backoff_max / 2);
    site_reply(&h, KEDGE_SITE_REPLY_WAIT, KEDGE_OK);
    ck_assert_uint_eq(kedge_site_deadline_ns(h.s), h.now + h.params.times.poll_min);
    struct kedge_site_event late = {.type = KEDGE_SITE_EV_REPLY, .serial = h.call}; /* a second answer */
    late.reply.kind = KEDGE_SITE_REPLY_TASK;
    site_step(&h, &late);
    ck_assert_str_eq(h.text, "");
}
END_TEST

START_TEST(test_heartbeat)
{
    struct host h;
    site_open_enrolled(&h);
    site_give(&h, "digits", KEDGE_SITE_TRAIN, 1, false);
    site_done(&h, KEDGE_SITE_EV_FETCHED, KEDGE_OK);
    site_done(&h, KEDGE_SITE_EV_FETCHED, KEDGE_OK);
    site_timer(&h);
    ck_assert_str_eq(h.text, "beat");
    ck_assert_uint_eq(kedge_site_deadline_ns(h.s), UINT64_MAX); /* one at a time */
    struct kedge_site_event ev = {
        .type = KEDGE_SITE_EV_CALL_FAILED, .serial = h.beat, .err = KEDGE_E_TIMEOUT};
    site_step(&h, &ev);
    site_timer(&h);
    ck_assert_str_eq(h.text, "beat");
    ev = (struct kedge_site_event){.type = KEDGE_SITE_EV_REPLY, .serial = h.beat};
    ev.reply.kind = KEDGE_SITE_REPLY_ERROR;
    ev.reply.err = KEDGE_E_BUSY; /* come back in 9 s, later than the next one would be due */
    ev.reply.retry_ns = UINT64_C(9000000000);
    site_step(&h, &ev);
    ck_assert_uint_eq(kedge_site_deadline_ns(h.s), h.now + UINT64_C(9000000000));
    site_timer(&h);
    ck_assert_str_eq(h.text, "beat");
    ev.serial = h.beat;
    ev.reply.err = KEDGE_E_REVOKED;
    site_step(&h, &ev);
    ck_assert_str_eq(h.text, "abort; log stopped REVOKED");
    site_trained(&h, 1, false); /* its completion comes late */
    ck_assert_str_eq(h.text, "");
    site_timer(&h);
    ck_assert_str_eq(h.text, "poll");
}
END_TEST

START_TEST(test_revoked_with_results)
{
    struct host h;
    site_open_enrolled(&h);
    work(&h);
    site_done(&h, KEDGE_SITE_EV_UPLOADED, KEDGE_OK);
    site_reply(&h, KEDGE_SITE_REPLY_ERROR, KEDGE_E_REVOKED);
    ck_assert_str_eq(h.text, "persist 0; forget 41; forget 42; log stopped REVOKED");
}
END_TEST

START_TEST(test_disk_and_trainer)
{
    struct host h;
    site_open_enrolled(&h);
    site_give(&h, "digits", KEDGE_SITE_TRAIN, 1, false);
    site_done(&h, KEDGE_SITE_EV_FETCHED, KEDGE_OK);
    site_done(&h, KEDGE_SITE_EV_FETCHED, KEDGE_OK);
    site_done(&h, KEDGE_SITE_EV_TRAIN_FAILED, KEDGE_E_TRAINER);
    ck_assert_str_eq(h.text, "log failed TRAINER; ended r1 trainer-failed");
    site_reply(&h, KEDGE_SITE_REPLY_NOTED, KEDGE_OK);
    site_timer(&h);
    ck_assert_str_eq(h.text, "poll");
    h.now += h.pause;
    site_give(&h, "digits", KEDGE_SITE_TRAIN, 1, false);
    site_done(&h, KEDGE_SITE_EV_FETCHED, KEDGE_OK);
    site_done(&h, KEDGE_SITE_EV_FETCHED, KEDGE_OK);
    site_trained(&h, 1, false);
    site_done(&h, KEDGE_SITE_EV_PERSISTED, KEDGE_E_DISK_FULL);
    ck_assert_str_eq(h.text, "log failed DISK_FULL"); /* nothing leaves the device */
    site_timer(&h);
    ck_assert_str_eq(h.text, "persist 1");
    site_done(&h, KEDGE_SITE_EV_PERSISTED, KEDGE_OK);
    ck_assert_str_eq(h.text, "upload 40");
}
END_TEST

/* What cannot be remembered is not sent; and no round waits for a disk that stays full. */
START_TEST(test_disk_that_stays_full)
{
    struct host h;
    site_open_enrolled(&h);
    site_give(&h, "digits", KEDGE_SITE_TRAIN, 1, false);
    site_done(&h, KEDGE_SITE_EV_FETCHED, KEDGE_OK);
    site_done(&h, KEDGE_SITE_EV_FETCHED, KEDGE_OK);
    site_trained(&h, 1, false);
    for (int i = 0; i < 9; i++) {
        site_done(&h, KEDGE_SITE_EV_PERSISTED, KEDGE_E_DISK_FULL);
        ck_assert_str_eq(h.text, "log failed DISK_FULL");
        do {
            site_timer(&h);
        } while (strcmp(h.text, "beat") == 0 || h.text[0] == '\0');
        ck_assert_str_eq(h.text, "persist 1");
    }
    site_done(&h, KEDGE_SITE_EV_PERSISTED, KEDGE_E_DISK_FULL);
    ck_assert_str_eq(h.text, "persist 0; forget 41; log failed DISK_FULL; ended r1 disk");
}
END_TEST

/* Each rare branch by itself, always: what it does, and that the work still comes to its end. */
static void open_rare(struct host *h, struct kedge_site_rare *rare, enum kedge_site_rare_site site)
{
    memset(rare, 0, sizeof *rare);
    kedge_rng_init(&rare->rng, 1, KEDGE_RNG_TEST, 0, 0);
    site_open_enrolled(h);
    rare->permille = 1000;
    rare->enabled[site] = true;
    kedge_site_rare_use(h->s, rare);
}

START_TEST(test_rare_submit_first)
{
    struct host h;
    struct kedge_site_rare rare;
    open_rare(&h, &rare, KEDGE_SITE_RARE_SUBMIT_FIRST);
    site_give(&h, "digits", KEDGE_SITE_TRAIN, 2, false);
    site_done(&h, KEDGE_SITE_EV_FETCHED, KEDGE_OK);
    site_done(&h, KEDGE_SITE_EV_FETCHED, KEDGE_OK);
    site_trained(&h, 2, false);
    ck_assert_str_eq(h.text, "persist 1");
    site_done(&h, KEDGE_SITE_EV_PERSISTED, KEDGE_OK);
    ck_assert_str_eq(h.text, "submit 41");
    site_reply(&h, KEDGE_SITE_REPLY_ERROR, KEDGE_E_BLOB_MISSING);
    site_timer(&h);
    ck_assert_str_eq(h.text, "upload 40");
    site_done(&h, KEDGE_SITE_EV_UPLOADED, KEDGE_OK);
    site_reply(&h, KEDGE_SITE_REPLY_RECEIPT, KEDGE_OK);
    ck_assert_str_eq(h.text, "log receipt; persist 0; forget 41; poll");
    ck_assert_uint_eq(rare.fired[KEDGE_SITE_RARE_SUBMIT_FIRST], 1);
}
END_TEST

START_TEST(test_rare_beat)
{
    struct host h;
    struct kedge_site_rare rare;
    open_rare(&h, &rare, KEDGE_SITE_RARE_EARLY_BEAT);
    site_give(&h, "digits", KEDGE_SITE_TRAIN, 2, false);
    ck_assert_str_eq(h.text, "log task; fetch spec; beat");
    site_done(&h, KEDGE_SITE_EV_FETCHED, KEDGE_OK);
    ck_assert_str_eq(h.text, "fetch model"); /* one at a time */
}
END_TEST

START_TEST(test_rare_fetch)
{
    struct host h;
    struct kedge_site_rare rare;
    open_rare(&h, &rare, KEDGE_SITE_RARE_FETCH_GIVEN_UP);
    site_give(&h, "digits", KEDGE_SITE_TRAIN, 2, false);
    site_done(&h, KEDGE_SITE_EV_FETCH_FAILED, KEDGE_E_UNREACHABLE);
    ck_assert_str_eq(h.text, "log failed UNREACHABLE; ended r2 other");
    site_reply(&h, KEDGE_SITE_REPLY_NOTED, KEDGE_OK);
    site_timer(&h);
    ck_assert_str_eq(h.text, "poll"); /* and takes it again, if it is still wanted */
}
END_TEST

START_TEST(test_rare_pause)
{
    struct host h;
    struct kedge_site_rare rare;
    open_rare(&h, &rare, KEDGE_SITE_RARE_LONG_PAUSE);
    uint64_t before = h.now;
    site_reply(&h, KEDGE_SITE_REPLY_ERROR, KEDGE_E_BUSY);
    uint64_t pause = kedge_site_deadline_ns(h.s) - before, most = h.params.times.backoff_max;
    ck_assert(pause >= most / 2 && pause <= most);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("site");
    tcase_add_test(tc, test_enrolment);
    tcase_add_test(tc, test_bad_token);
    tcase_add_test(tc, test_task);
    tcase_add_test(tc, test_restart);
    tcase_add_test(tc, test_refused_upload);
    tcase_add_loop_test(tc, test_refused_tasks, 0, 7);
    tcase_add_test(tc, test_spec_denied);
    tcase_add_test(tc, test_backoff);
    tcase_add_test(tc, test_heartbeat);
    tcase_add_test(tc, test_revoked_with_results);
    tcase_add_test(tc, test_disk_and_trainer);
    tcase_add_test(tc, test_disk_that_stays_full);
    tcase_add_test(tc, test_rare_submit_first);
    tcase_add_test(tc, test_rare_beat);
    tcase_add_test(tc, test_rare_fetch);
    tcase_add_test(tc, test_rare_pause);
    Suite *s = suite_create("client/site");
    suite_add_tcase(s, tc);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
