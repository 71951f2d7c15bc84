/* Shifts that a site's polls tell, and models that it chooses between. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "client/core/site.h"
#include "common/base/percent.h"

#define SECOND UINT64_C(1000000000)
static const struct kedge_id digits = {"digits"}, letters = {"letters"};

struct host {
    union {
        max_align_t align;
        uint8_t bytes[8192];
    } mem;
    struct kedge_site *s;
    struct kedge_site_params params;
    uint64_t now, serial; /* of the last call or work */
    struct kedge_site_memory stored;
    struct kedge_site_effects fx;
};

static void step(struct host *h, struct kedge_site_event *ev)
{
    ev->now_ns = h->now;
    ev->reply.shown.size = 1;
    kedge_site_step(h->s, ev, &h->fx);
    ck_assert(kedge_site_is_valid(h->s));
    for (uint32_t i = 0; i < h->fx.count; i++) {
        const struct kedge_site_effect *fx = &h->fx.items[i];
        h->stored = fx->type == KEDGE_SITE_FX_PERSIST ? fx->memory : h->stored;
        bool begins = fx->type <= KEDGE_SITE_FX_PERSIST && !fx->busy;
        h->serial = begins ? fx->serial : h->serial;
    }
}

static void start(struct host *h)
{
    memset(&h->mem, 0xa5, sizeof h->mem);
    ck_assert_int_eq(kedge_site_init(h->mem.bytes, sizeof h->mem, &h->params, &h->s), KEDGE_OK);
    struct kedge_site_event ev = {.type = KEDGE_SITE_EV_START, .memory = h->stored, .seen = {.size = 1}};
    step(h, &ev);
}

static void open_host(struct host *h)
{
    memset(h, 0, sizeof *h);
    kedge_site_times_default(&h->params.times);
    h->params.seed = 1;
    h->params.base_max = h->params.update_max = 1000;
    h->params.allow_all = true;
    h->now = 5 * SECOND;
    h->stored.enrolled = true;
    start(h);
}

static void done(struct host *h, enum kedge_site_event_type type)
{
    struct kedge_site_event ev = {.type = type, .serial = h->serial};
    step(h, &ev);
}

static void shifted(struct host *h, const struct kedge_id *job)
{
    struct kedge_site_event ev = {.type = KEDGE_SITE_EV_SHIFTED, .job = *job};
    uint64_t serial = h->serial;
    step(h, &ev);
    h->serial = serial; /* what is open stays open */
}

static void reply(struct host *h, enum kedge_site_reply_kind kind, const struct kedge_site_task *task)
{
    struct kedge_site_event ev = {.type = KEDGE_SITE_EV_REPLY, .serial = h->serial, .reply = {.kind = kind}};
    ev.reply.task = task ? *task : (struct kedge_site_task){.round = 0};
    step(h, &ev);
}

/* The jobs that the next poll tells of, one behind the other, "" for none. */
static const char *next_poll(struct host *h)
{
    static char told[KEDGE_SITE_SHIFTS_MAX * (KEDGE_ID_MAX + 1)];
    size_t len = 0;
    reply(h, KEDGE_SITE_REPLY_WAIT, NULL);
    h->now += 60 * SECOND;
    done(h, KEDGE_SITE_EV_TIMER);
    for (uint32_t i = 0; i < h->fx.count; i++) {
        const struct kedge_site_effect *fx = &h->fx.items[i];
        if (fx->type == KEDGE_SITE_FX_CALL && fx->call == KEDGE_SITE_CALL_POLL) {
            for (uint32_t k = 0; k < fx->shifted_count; k++) {
                size_t n = strlen(fx->shifted[k].s);
                memcpy(told + len, fx->shifted[k].s, n);
                len += n;
            }
            told[len] = '\0';
            return told;
        }
    }
    return "no poll";
}

static struct kedge_site_task pretrain_task(const struct kedge_id *job)
{
    return (struct kedge_site_task){.job = *job,
                                    .spec_len = 1,
                                    .base_len = 1,
                                    .update_len = 1,
                                    .round = 3,
                                    .kind = KEDGE_SITE_PRETRAIN,
                                    .group = KEDGE_SITE_NONE};
}

/* Takes the task up to a result that is made and persisted. */
static void work(struct host *h, const struct kedge_site_task *task)
{
    struct kedge_site_event ev = {.type = KEDGE_SITE_EV_TRAINED, .result_count = 1};
    reply(h, KEDGE_SITE_REPLY_TASK, task);
    done(h, KEDGE_SITE_EV_FETCHED);
    done(h, KEDGE_SITE_EV_FETCHED);
    ev.serial = h->serial;
    ev.results[0] = (struct kedge_site_result){
        .job = task->job, .kind = task->kind, .round = task->round, .group = task->group, .update_len = 1};
    step(h, &ev);
}

static void submit(struct host *h)
{
    done(h, KEDGE_SITE_EV_PERSISTED);
    done(h, KEDGE_SITE_EV_UPLOADED);
}

/* Told in every poll, also behind a restart, until a pretraining is acknowledged. */
START_TEST(test_told)
{
    struct host h;
    open_host(&h);
    ck_assert_str_eq(next_poll(&h), "");
    shifted(&h, &digits);
    ck_assert_uint_eq(h.stored.shift_count, 1);
    ck_assert_str_eq(next_poll(&h), "digits");
    ck_assert_str_eq(next_poll(&h), "digits");
    start(&h);
    ck_assert_str_eq(next_poll(&h), "digits");
    struct kedge_site_task task = pretrain_task(&letters);
    work(&h, &task);
    submit(&h);
    reply(&h, KEDGE_SITE_REPLY_RECEIPT, NULL);
    ck_assert_str_eq(next_poll(&h), "digits"); /* that was for another job */
    task.job = digits;
    work(&h, &task);
    submit(&h);
    reply(&h, KEDGE_SITE_REPLY_RECEIPT, NULL);
    ck_assert_uint_eq(h.stored.shift_count, 0);
    ck_assert_str_eq(next_poll(&h), "");
}
END_TEST

/* A pretraining that did not count answers nothing; nor does one that was made before the shift. */
START_TEST(test_not_answered)
{
    struct host h;
    struct kedge_site_task task = pretrain_task(&digits);
    open_host(&h);
    if (_i < 2) {
        shifted(&h, &digits);
    }
    work(&h, &task);
    if (_i == 1 || _i == 2) { /* the data shift (once more) behind it */
        shifted(&h, &digits);
    }
    if (_i == 3) { /* a restart finds the result, and the shift that it is for */
        struct kedge_site_memory kept = h.stored;
        kept.shift_count = 1;
        kept.shifts[0] = (struct kedge_site_shift){.job = digits, .answered = true};
        h.stored = kept;
        start(&h);
        done(&h, KEDGE_SITE_EV_UPLOADED);
    } else {
        submit(&h);
    }
    reply(&h, _i == 0 ? KEDGE_SITE_REPLY_CLOSED : KEDGE_SITE_REPLY_RECEIPT, NULL);
    ck_assert_str_eq(next_poll(&h), _i == 3 ? "" : "digits");
}
END_TEST

/* All jobs in every poll; of too many the oldest is forgotten. */
START_TEST(test_several)
{
    struct host h;
    struct kedge_id job = {"a"};
    open_host(&h);
    for (int i = 0; i < KEDGE_SITE_SHIFTS_MAX + 1; i++) {
        job.s[0] = (char)('a' + i);
        shifted(&h, &job);
        shifted(&h, &job); /* twice is once */
    }
    ck_assert_uint_eq(h.stored.shift_count, KEDGE_SITE_SHIFTS_MAX);
    ck_assert_str_eq(next_poll(&h), "bcde");
    ck_assert_str_eq(next_poll(&h), "bcde");
    struct kedge_site_task task = pretrain_task(&(struct kedge_id){"c"});
    work(&h, &task);
    submit(&h);
    reply(&h, KEDGE_SITE_REPLY_RECEIPT, NULL);
    ck_assert_str_eq(next_poll(&h), "bde"); /* what was answered is told no more */
}
END_TEST

static struct kedge_site_task choice_task(uint32_t count)
{
    struct kedge_site_task task = pretrain_task(&digits);
    task.kind = KEDGE_SITE_TRAIN;
    task.choice_count = count;
    for (uint32_t g = 0; g < count && g < KEDGE_GROUPS_MAX; g++) {
        memset(task.choices[g].b, (int)g + 1, sizeof task.choices[g].b);
    }
    return task;
}

START_TEST(test_choice)
{
    struct host h;
    struct kedge_site_task task = choice_task(3);
    open_host(&h);
    reply(&h, KEDGE_SITE_REPLY_TASK, &task);
    ck_assert_int_eq(h.fx.items[h.fx.count - 1].blob, KEDGE_SITE_BLOB_SPEC);
    for (uint8_t g = 1; g <= 3; g++) {
        done(&h, KEDGE_SITE_EV_FETCHED);
        const struct kedge_site_effect *fx = &h.fx.items[h.fx.count - 1];
        ck_assert_int_eq(fx->type, KEDGE_SITE_FX_FETCH);
        ck_assert_int_eq(fx->blob, KEDGE_SITE_BLOB_MODEL);
        ck_assert_uint_eq(fx->digest.b[0], g);
    }
    done(&h, KEDGE_SITE_EV_FETCHED);
    ck_assert_int_eq(h.fx.items[h.fx.count - 1].type, KEDGE_SITE_FX_TRAIN);
    ck_assert_uint_eq(h.fx.items[h.fx.count - 1].task.choice_count, 3);
}
END_TEST

/* A task with a control variate or a base: it is fetched behind the model, under its own digest and length.
 */
START_TEST(test_control)
{
    static const enum kedge_site_kind kinds[] = {KEDGE_SITE_TRAIN, KEDGE_SITE_PRETRAIN, KEDGE_SITE_EVALUATE};
    struct host h;
    struct kedge_site_task task = pretrain_task(&digits);
    task.kind = kinds[_i];
    task.group = task.kind == KEDGE_SITE_PRETRAIN ? KEDGE_SITE_NONE : 0;
    task.control_len = 107;
    memset(task.control.b, 9, sizeof task.control.b);
    open_host(&h);
    reply(&h, KEDGE_SITE_REPLY_TASK, &task);
    done(&h, KEDGE_SITE_EV_FETCHED);
    const struct kedge_site_effect *fx = &h.fx.items[h.fx.count - 1];
    ck_assert_int_eq(fx->blob, KEDGE_SITE_BLOB_MODEL);
    done(&h, KEDGE_SITE_EV_FETCHED);
    fx = &h.fx.items[h.fx.count - 1];
    ck_assert_int_eq(fx->type, KEDGE_SITE_FX_FETCH);
    ck_assert_int_eq(fx->blob, KEDGE_SITE_BLOB_CONTROL);
    ck_assert_mem_eq(fx->digest.b, task.control.b, sizeof task.control.b);
    ck_assert_uint_eq(fx->len, 107);
    done(&h, KEDGE_SITE_EV_FETCHED);
    fx = &h.fx.items[h.fx.count - 1];
    ck_assert_int_eq(fx->type, KEDGE_SITE_FX_TRAIN);
    ck_assert_uint_eq(fx->task.control_len, 107);
}
END_TEST

/* Tasks that make no sense are refused. */
START_TEST(test_bad_choice)
{
    struct host h;
    struct kedge_site_task task = choice_task(_i == 0 ? KEDGE_GROUPS_MAX + 1 : 2);
    if (_i == 1) {
        task.group = 0;
    } else if (_i == 2) {
        task.kind = KEDGE_SITE_PRETRAIN;
    } else if (_i == 3) {
        task.evaluate_base = true;
    } else if (_i == 4) {
        task.choice_count = 0;
    } else if (_i == 5) {
        task.percent = KEDGE_PERCENT_ALL + 1;
    } else if (_i == 6) { /* only training has a part */
        task =
            (struct kedge_site_task){.job = task.job, .kind = KEDGE_SITE_EVALUATE, .round = 1, .percent = 50};
    }
    open_host(&h);
    reply(&h, KEDGE_SITE_REPLY_TASK, &task);
    bool refused = false;
    for (uint32_t i = 0; i < h.fx.count; i++) {
        refused = refused
                  || (h.fx.items[i].type == KEDGE_SITE_FX_LOG && h.fx.items[i].note == KEDGE_SITE_NOTE_REFUSED
                      && h.fx.items[i].err == KEDGE_E_FORMAT);
    }
    ck_assert(refused);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("shift");
    tcase_add_test(tc, test_told);
    tcase_add_loop_test(tc, test_not_answered, 0, 4);
    tcase_add_test(tc, test_several);
    tcase_add_test(tc, test_choice);
    tcase_add_loop_test(tc, test_bad_choice, 0, 7);
    tcase_add_loop_test(tc, test_control, 0, 3);
    Suite *s = suite_create("client/shift");
    suite_add_tcase(s, tc);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
