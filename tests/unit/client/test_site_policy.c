/* A new policy while a site is at work: what is no longer allowed stops, what was refused may begin. */
#include <check.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "client/core/site.h"

#define SECOND UINT64_C(1000000000)

static union {
    max_align_t align;
    uint8_t bytes[8192];
} mem;
static struct kedge_site *site;
static struct kedge_site_effects fx;
static struct kedge_id allowed;
static uint64_t now = 5 * SECOND;

static void step(struct kedge_site_event *ev)
{
    ev->now_ns = now;
    ev->reply.shown.size = 1;
    kedge_site_step(site, ev, &fx);
    ck_assert(kedge_site_is_valid(site));
}

/* The effect of this type in the last step, or NULL. */
static const struct kedge_site_effect *find(enum kedge_site_effect_type type)
{
    for (uint32_t i = 0; i < fx.count; i++) {
        if (fx.items[i].type == type) {
            return &fx.items[i];
        }
    }
    return NULL;
}

static uint64_t serial_of(enum kedge_site_effect_type type)
{
    const struct kedge_site_effect *e = find(type);
    ck_assert_ptr_nonnull(e);
    return e->serial;
}

static void policy(const char *job)
{
    struct kedge_site_event ev = {.type = KEDGE_SITE_EV_POLICY, .allow_all = !job};
    memset(&allowed, 0, sizeof allowed);
    if (job) {
        memcpy(allowed.s, job, strlen(job));
        ev.allowed = &allowed;
        ev.allowed_count = 1;
    }
    step(&ev);
}

/* Enrolled, with a poll out; `allowed` is "digits". */
static uint64_t begin(void)
{
    struct kedge_site_params params = {
        .seed = 1, .base_max = 1000, .update_max = 1000, .allowed_count = 1, .allowed = &allowed};
    struct kedge_site_event ev = {
        .type = KEDGE_SITE_EV_START, .memory = {.enrolled = true}, .seen = {.size = 1}};
    memset(&allowed, 0, sizeof allowed);
    memcpy(allowed.s, "digits", 6);
    kedge_site_times_default(&params.times);
    ck_assert_uint_le(kedge_site_size(1), sizeof mem);
    ck_assert_int_eq(kedge_site_init(mem.bytes, sizeof mem, &params, &site), KEDGE_OK);
    step(&ev);
    return serial_of(KEDGE_SITE_FX_CALL);
}

static void give(uint64_t poll, const char *job)
{
    struct kedge_site_event ev = {.type = KEDGE_SITE_EV_REPLY, .serial = poll};
    struct kedge_site_task *t = &ev.reply.task;
    ev.reply.kind = KEDGE_SITE_REPLY_TASK;
    memcpy(t->job.s, job, strlen(job));
    t->kind = KEDGE_SITE_TRAIN;
    t->round = 2;
    t->spec_len = t->base_len = t->update_len = 100;
    step(&ev);
}

/* The coordinator has heard that the task has ended. */
static void noted(void)
{
    ck_assert_int_eq((int)find(KEDGE_SITE_FX_CALL)->call, (int)KEDGE_SITE_CALL_ENDED);
    struct kedge_site_event ev = {.type = KEDGE_SITE_EV_REPLY, .serial = serial_of(KEDGE_SITE_FX_CALL)};
    ev.reply.kind = KEDGE_SITE_REPLY_NOTED;
    step(&ev);
}

static void done(enum kedge_site_event_type type, uint64_t serial)
{
    struct kedge_site_event ev = {.type = type, .serial = serial};
    if (type == KEDGE_SITE_EV_TRAINED) {
        ev.result_count = 1;
        ev.results[0] = (struct kedge_site_result){.job = allowed, .kind = KEDGE_SITE_TRAIN, .round = 2};
    }
    step(&ev);
}

/* Up to the training; returns its serial. */
static uint64_t work(uint64_t poll)
{
    give(poll, "digits");
    done(KEDGE_SITE_EV_FETCHED, serial_of(KEDGE_SITE_FX_FETCH));
    done(KEDGE_SITE_EV_FETCHED, serial_of(KEDGE_SITE_FX_FETCH));
    return serial_of(KEDGE_SITE_FX_TRAIN);
}

START_TEST(test_refused_is_allowed)
{
    give(begin(), "other");
    ck_assert_int_eq(find(KEDGE_SITE_FX_LOG)->note, KEDGE_SITE_NOTE_REFUSED);
    noted();
    policy("third"); /* asked again at once, refused again */
    give(serial_of(KEDGE_SITE_FX_CALL), "other");
    ck_assert_int_eq(find(KEDGE_SITE_FX_LOG)->note, KEDGE_SITE_NOTE_REFUSED);
    noted();
    policy(NULL);
    ck_assert(find(KEDGE_SITE_FX_CALL)->anew);
    give(serial_of(KEDGE_SITE_FX_CALL), "other");
    ck_assert_int_eq(find(KEDGE_SITE_FX_LOG)->note, KEDGE_SITE_NOTE_TASK);
}
END_TEST

START_TEST(test_work_stops)
{
    uint64_t training = work(begin());
    policy("digits");
    ck_assert_uint_eq(fx.count, 0); /* nothing changes for it */
    policy("other");
    ck_assert_uint_eq(serial_of(KEDGE_SITE_FX_ABORT), training);
    ck_assert_int_eq(find(KEDGE_SITE_FX_LOG)->note, KEDGE_SITE_NOTE_REFUSED);
    ck_assert_int_eq(find(KEDGE_SITE_FX_LOG)->err, KEDGE_E_DENIED);
    ck_assert_int_eq((int)find(KEDGE_SITE_FX_CALL)->trouble, (int)KEDGE_TROUBLE_POLICY);
    noted();
    uint64_t wake = kedge_site_deadline_ns(site);
    done(KEDGE_SITE_EV_TRAINED, training); /* too late: it comes to nothing */
    ck_assert_uint_eq(fx.count, 0);
    now = wake;
    step(&(struct kedge_site_event){.type = KEDGE_SITE_EV_TIMER});
    ck_assert_int_eq(find(KEDGE_SITE_FX_CALL)->call, KEDGE_SITE_CALL_POLL);
}
END_TEST

START_TEST(test_signed_is_sent)
{
    done(KEDGE_SITE_EV_TRAINED, work(begin()));
    uint64_t persist = serial_of(KEDGE_SITE_FX_PERSIST);
    policy("other");
    ck_assert_uint_eq(fx.count, 0);
    done(KEDGE_SITE_EV_PERSISTED, persist);
    ck_assert_uint_ne(serial_of(KEDGE_SITE_FX_UPLOAD), 0);
}
END_TEST

START_TEST(test_backing_off_goes_on)
{
    struct kedge_site_event ev = {
        .type = KEDGE_SITE_EV_CALL_FAILED, .serial = begin(), .err = KEDGE_E_TIMEOUT};
    step(&ev);
    policy(NULL); /* no reason to ask sooner */
    ck_assert_uint_eq(fx.count, 0);
    ck_assert_uint_gt(kedge_site_deadline_ns(site), now);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("site policy");
    TCase *tc = tcase_create("core");
    tcase_add_test(tc, test_refused_is_allowed);
    tcase_add_test(tc, test_work_stops);
    tcase_add_test(tc, test_signed_is_sent);
    tcase_add_test(tc, test_backing_off_goes_on);
    suite_add_tcase(s, tc);
    SRunner *runner = srunner_create(s);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
