/* One site, as events and golden effects. */
#include <check.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/core/rare.h"
#include "client/core/site.h"

#define MS UINT64_C(1000000)
#define SECOND UINT64_C(1000000000)

struct host {
    union {
        max_align_t align;
        uint8_t bytes[8192];
    } mem;
    struct kedge_site *s;
    struct kedge_site_params params;
    struct kedge_id allowed;
    uint64_t now, call, beat, work; /* serials of the last effects */
    struct kedge_site_memory stored;
    char text[4096];
};

static void put(struct host *h, const char *format, ...) KEDGE_PRINTF(2, 3);
static void put(struct host *h, const char *format, ...)
{
    size_t used = strlen(h->text);
    va_list args;
    va_start(args, format);
    (void)vsnprintf(h->text + used, sizeof h->text - used, format, args);
    va_end(args);
}

static void put_call(struct host *h, const struct kedge_site_effect *fx)
{
    static const char *const names[] = {"enroll", "poll", "submit"};
    if (fx->busy) {
        put(h, "beat");
        h->beat = fx->serial;
        return;
    }
    put(h, "%s", names[fx->call]);
    if (fx->call == KEDGE_SITE_CALL_SUBMIT) {
        put(h, " %u", fx->result.envelope.b[0]);
    }
    h->call = fx->serial;
}

static void put_effect(struct host *h, const struct kedge_site_effect *fx)
{
    put(h, "%s", h->text[0] ? "; " : "");
    switch (fx->type) {
    case KEDGE_SITE_FX_CALL:
        put_call(h, fx);
        return;
    case KEDGE_SITE_FX_FETCH:
        put(h, "fetch %s", fx->blob == KEDGE_SITE_BLOB_SPEC ? "spec" : "model");
        break;
    case KEDGE_SITE_FX_TRAIN:
        put(h, "train r%u", fx->task.round);
        break;
    case KEDGE_SITE_FX_UPLOAD:
        put(h, "upload %u", fx->result.update.b[0]);
        break;
    case KEDGE_SITE_FX_PERSIST:
        put(h, "persist %u", fx->memory.result_count);
        h->stored = fx->memory;
        break;
    case KEDGE_SITE_FX_FORGET:
        put(h, "forget %u", fx->result.envelope.b[0]);
        return;
    case KEDGE_SITE_FX_ABORT:
        put(h, "abort");
        return;
    case KEDGE_SITE_FX_SEEN:
        put(h, "seen %u", (unsigned)fx->seen.size);
        return;
    case KEDGE_SITE_FX_REFUSE:
        put(h, "refuse %u after %u", (unsigned)fx->shown.size, (unsigned)fx->seen.size);
        return;
    case KEDGE_SITE_FX_LOG:
        put(h, "log %s", kedge_site_note_name(fx->note));
        if (fx->err != KEDGE_OK) {
            put(h, " %s", kedge_err_code(fx->err));
        }
        return;
    }
    h->work = fx->serial;
}

static void step(struct host *h, struct kedge_site_event *ev)
{
    static struct kedge_site_effects fx;
    ev->now_ns = h->now;
    ev->reply.shown.size = 1; /* the same main chain throughout: test_chain is about it */
    h->text[0] = '\0';
    kedge_site_step(h->s, ev, &fx);
    ck_assert(kedge_site_is_valid(h->s));
    for (uint32_t i = 0; i < fx.count; i++) {
        put_effect(h, &fx.items[i]);
    }
}

static void start(struct host *h, const struct kedge_site_memory *memory)
{
    memset(&h->mem, 0xa5, sizeof h->mem);
    ck_assert_int_eq(kedge_site_init(h->mem.bytes, sizeof h->mem, &h->params, &h->s), KEDGE_OK);
    struct kedge_site_event ev = {.type = KEDGE_SITE_EV_START, .memory = *memory, .seen = {.size = 1}};
    step(h, &ev);
}

static void open_host(struct host *h)
{
    memset(h, 0, sizeof *h);
    ck_assert_uint_le(kedge_site_size(1), sizeof h->mem);
    kedge_site_times_default(&h->params.times);
    h->params.seed = 1;
    h->params.base_max = h->params.update_max = 1000;
    h->params.allowed_count = 1;
    h->params.allowed = &h->allowed;
    memcpy(h->allowed.s, "digits", sizeof "digits");
    h->now = 5 * SECOND;
}

static void open_enrolled(struct host *h)
{
    struct kedge_site_memory memory = {.enrolled = true};
    open_host(h);
    start(h, &memory);
    ck_assert_str_eq(h->text, "poll");
}

static void reply(struct host *h, enum kedge_site_reply_kind kind, int err)
{
    struct kedge_site_event ev = {.type = KEDGE_SITE_EV_REPLY, .serial = h->call};
    ev.reply.kind = kind;
    ev.reply.err = err;
    ev.reply.active = true;
    step(h, &ev);
}

static void give(struct host *h, const char *job, enum kedge_site_kind kind, uint32_t round, bool evaluate)
{
    struct kedge_site_event ev = {.type = KEDGE_SITE_EV_REPLY, .serial = h->call};
    struct kedge_site_task *t = &ev.reply.task;
    ev.reply.kind = KEDGE_SITE_REPLY_TASK;
    memcpy(t->job.s, job, strlen(job));
    t->kind = kind;
    t->round = round;
    t->group = kind == KEDGE_SITE_PRETRAIN ? KEDGE_SITE_NONE : 0;
    t->evaluate_base = evaluate;
    t->spec_len = t->base_len = t->update_len = 100;
    step(h, &ev);
}

static void done(struct host *h, enum kedge_site_event_type type, int err)
{
    struct kedge_site_event ev = {.type = type, .serial = h->work, .err = err};
    step(h, &ev);
}

static void trained(struct host *h, uint32_t round, bool evaluation)
{
    struct kedge_site_event ev = {.type = KEDGE_SITE_EV_TRAINED, .serial = h->work, .result_count = 1};
    ev.results[0] = (struct kedge_site_result){.job = h->allowed, .kind = KEDGE_SITE_TRAIN, .round = round};
    memset(&ev.results[0].update, 40, sizeof ev.results[0].update);
    memset(&ev.results[0].envelope, 41, sizeof ev.results[0].envelope);
    if (evaluation) {
        ev.results[1] =
            (struct kedge_site_result){.job = h->allowed, .kind = KEDGE_SITE_EVALUATE, .round = round - 1};
        memset(&ev.results[1].envelope, 42, sizeof ev.results[1].envelope);
        ev.result_count = 2;
    }
    step(h, &ev);
}

static void timer(struct host *h)
{
    uint64_t at = kedge_site_deadline_ns(h->s);
    ck_assert_uint_lt(at, UINT64_MAX);
    h->now = at > h->now ? at : h->now;
    struct kedge_site_event ev = {.type = KEDGE_SITE_EV_TIMER};
    step(h, &ev);
}

/* Up to the upload of a result of round 2 with an evaluation. */
static void work(struct host *h)
{
    give(h, "digits", KEDGE_SITE_TRAIN, 2, true);
    ck_assert_str_eq(h->text, "log task; fetch spec");
    done(h, KEDGE_SITE_EV_FETCHED, KEDGE_OK);
    ck_assert_str_eq(h->text, "fetch model");
    done(h, KEDGE_SITE_EV_FETCHED, KEDGE_OK);
    ck_assert_str_eq(h->text, "train r2");
    trained(h, 2, true);
    ck_assert_str_eq(h->text, "persist 2");
    done(h, KEDGE_SITE_EV_PERSISTED, KEDGE_OK);
    ck_assert_str_eq(h->text, "upload 40");
}

START_TEST(test_enrolment)
{
    struct host h;
    struct kedge_site_memory memory = {.enrolled = false};
    open_host(&h);
    start(&h, &memory);
    ck_assert_str_eq(h.text, "enroll");
    struct kedge_site_event ev = {.type = KEDGE_SITE_EV_REPLY, .serial = h.call};
    ev.reply.kind = KEDGE_SITE_REPLY_ENROLLED; /* not yet signed in by the tenant */
    step(&h, &ev);
    ck_assert_str_eq(h.text, "");
    timer(&h);
    ck_assert_str_eq(h.text, "enroll");
    reply(&h, KEDGE_SITE_REPLY_ENROLLED, KEDGE_OK);
    ck_assert_str_eq(h.text, "log enrolled; persist 0; poll");
    ck_assert(h.stored.enrolled);
}
END_TEST

START_TEST(test_bad_token)
{
    struct host h;
    struct kedge_site_memory memory = {.enrolled = false};
    struct kedge_site_view view;
    open_host(&h);
    start(&h, &memory);
    reply(&h, KEDGE_SITE_REPLY_ERROR, KEDGE_E_TOKEN);
    ck_assert_str_eq(h.text, "log stopped TOKEN");
    kedge_site_view(h.s, &view);
    ck_assert_int_eq(view.state, KEDGE_SITE_STOPPED);
    ck_assert_int_eq(view.reason, KEDGE_E_TOKEN);
    ck_assert_uint_eq(kedge_site_deadline_ns(h.s), h.now + h.params.times.stopped_poll);
    timer(&h);
    ck_assert_str_eq(h.text, "enroll");
}
END_TEST

START_TEST(test_task)
{
    struct host h;
    struct kedge_site_view view;
    open_enrolled(&h);
    work(&h);
    done(&h, KEDGE_SITE_EV_UPLOADED, KEDGE_OK);
    ck_assert_str_eq(h.text, "submit 41");
    reply(&h, KEDGE_SITE_REPLY_RECEIPT, KEDGE_OK);
    ck_assert_str_eq(h.text, "log receipt; persist 1; forget 41; submit 42");
    reply(&h, KEDGE_SITE_REPLY_CLOSED, KEDGE_OK);
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
    open_enrolled(&h);
    work(&h);
    struct kedge_site_memory memory = h.stored;
    start(&h, &memory);
    ck_assert_str_eq(h.text, "log resumed; upload 40");
    done(&h, KEDGE_SITE_EV_UPLOAD_FAILED,
         KEDGE_E_ROUND_CLOSED); /* perhaps it was accepted before the crash */
    ck_assert_str_eq(h.text, "submit 41");
    reply(&h, KEDGE_SITE_REPLY_RECEIPT, KEDGE_OK);
    ck_assert_str_eq(h.text, "log receipt; persist 1; forget 41; submit 42");
    memory = h.stored;
    start(&h, &memory);
    ck_assert_str_eq(h.text, "log resumed; submit 42");
}
END_TEST

START_TEST(test_refused_upload)
{
    struct host h;
    open_enrolled(&h);
    work(&h);
    done(&h, KEDGE_SITE_EV_UPLOADED, KEDGE_OK);
    reply(&h, KEDGE_SITE_REPLY_ERROR, KEDGE_E_BLOB_MISSING); /* lost by a crash of the coordinator */
    ck_assert_str_eq(h.text, "");
    timer(&h);
    ck_assert_str_eq(h.text, "upload 40");
    done(&h, KEDGE_SITE_EV_UPLOAD_FAILED, KEDGE_E_NOT_SELECTED);
    ck_assert_str_eq(h.text, "submit 41");
    reply(&h, KEDGE_SITE_REPLY_ERROR, KEDGE_E_BLOB_MISSING); /* it will never take it */
    ck_assert_str_eq(h.text, "log dropped BLOB_MISSING; persist 1; forget 41");
    timer(&h);
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
        {"other", "log refused DENIED", KEDGE_SITE_TRAIN, 1, 0, 100},
        {"digits", "log refused TOO_LONG", KEDGE_SITE_TRAIN, 1, 0, 1001},
        {"digits", "log refused FORMAT", KEDGE_SITE_TRAIN, 1, KEDGE_SITE_NONE, 100},
        {"digits", "log refused FORMAT", KEDGE_SITE_PRETRAIN, 0, 0, 100},
        {"digits", "log refused FORMAT", KEDGE_SITE_TRAIN, KEDGE_ROUNDS_MAX + 1, 0, 100},
        {"digits", "log refused FORMAT", KEDGE_SITE_TRAIN, 1, KEDGE_GROUPS_MAX, 100},
        {"digits", "log refused FORMAT", (enum kedge_site_kind)9, 1, 0, 100},
    };
    struct host h;
    open_enrolled(&h);
    struct kedge_site_event ev = {.type = KEDGE_SITE_EV_REPLY, .serial = h.call};
    struct kedge_site_task *t = &ev.reply.task;
    ev.reply.kind = KEDGE_SITE_REPLY_TASK;
    memcpy(t->job.s, rows[_i].job, strlen(rows[_i].job));
    t->kind = rows[_i].kind;
    t->round = rows[_i].round;
    t->group = rows[_i].group;
    t->base_len = rows[_i].base_len;
    step(&h, &ev);
    ck_assert_str_eq(h.text, rows[_i].golden);
    ck_assert_uint_eq(kedge_site_deadline_ns(h.s), h.now + h.params.times.refused_pause);
    timer(&h);
    ck_assert_str_eq(h.text, "poll");
}
END_TEST

START_TEST(test_spec_denied)
{
    struct host h;
    open_enrolled(&h);
    give(&h, "digits", KEDGE_SITE_PRETRAIN, 0, false);
    done(&h, KEDGE_SITE_EV_FETCH_FAILED, KEDGE_E_DENIED);
    ck_assert_str_eq(h.text, "log refused DENIED");
}
END_TEST

START_TEST(test_backoff)
{
    struct host h;
    open_enrolled(&h);
    uint64_t longest = 0;
    for (int i = 0; i < 20; i++) {
        struct kedge_site_event ev = {
            .type = KEDGE_SITE_EV_CALL_FAILED, .serial = h.call, .err = KEDGE_E_UNREACHABLE};
        step(&h, &ev);
        ck_assert_str_eq(h.text, i == 0 ? "log unreachable UNREACHABLE" : ""); /* once per outage */
        uint64_t pause = kedge_site_deadline_ns(h.s) - h.now;
        uint64_t most = i < 8 ? h.params.times.backoff_min << i : h.params.times.backoff_max;
        most = most < h.params.times.backoff_max ? most : h.params.times.backoff_max;
        ck_assert_uint_le(pause, most);
        ck_assert_uint_ge(pause, most / 2);
        longest = pause > longest ? pause : longest;
        timer(&h);
        ck_assert_str_eq(h.text, "poll");
    }
    ck_assert_uint_gt(longest, h.params.times.backoff_max / 2);
    reply(&h, KEDGE_SITE_REPLY_WAIT, KEDGE_OK);
    ck_assert_uint_eq(kedge_site_deadline_ns(h.s), h.now + h.params.times.poll_min);
    struct kedge_site_event late = {.type = KEDGE_SITE_EV_REPLY, .serial = h.call}; /* a second answer */
    late.reply.kind = KEDGE_SITE_REPLY_TASK;
    step(&h, &late);
    ck_assert_str_eq(h.text, "");
}
END_TEST

START_TEST(test_heartbeat)
{
    struct host h;
    open_enrolled(&h);
    give(&h, "digits", KEDGE_SITE_TRAIN, 1, false);
    done(&h, KEDGE_SITE_EV_FETCHED, KEDGE_OK);
    done(&h, KEDGE_SITE_EV_FETCHED, KEDGE_OK);
    timer(&h);
    ck_assert_str_eq(h.text, "beat");
    ck_assert_uint_eq(kedge_site_deadline_ns(h.s), UINT64_MAX); /* one at a time */
    struct kedge_site_event ev = {
        .type = KEDGE_SITE_EV_CALL_FAILED, .serial = h.beat, .err = KEDGE_E_TIMEOUT};
    step(&h, &ev);
    timer(&h);
    ck_assert_str_eq(h.text, "beat");
    ev = (struct kedge_site_event){.type = KEDGE_SITE_EV_REPLY, .serial = h.beat};
    ev.reply.kind = KEDGE_SITE_REPLY_ERROR;
    ev.reply.err = KEDGE_E_BUSY; /* come back in 9 s, later than the next one would be due */
    ev.reply.retry_ns = UINT64_C(9000000000);
    step(&h, &ev);
    ck_assert_uint_eq(kedge_site_deadline_ns(h.s), h.now + UINT64_C(9000000000));
    timer(&h);
    ck_assert_str_eq(h.text, "beat");
    ev.serial = h.beat;
    ev.reply.err = KEDGE_E_REVOKED;
    step(&h, &ev);
    ck_assert_str_eq(h.text, "abort; log stopped REVOKED");
    trained(&h, 1, false); /* its completion comes late */
    ck_assert_str_eq(h.text, "");
    timer(&h);
    ck_assert_str_eq(h.text, "poll");
}
END_TEST

START_TEST(test_revoked_with_results)
{
    struct host h;
    open_enrolled(&h);
    work(&h);
    done(&h, KEDGE_SITE_EV_UPLOADED, KEDGE_OK);
    reply(&h, KEDGE_SITE_REPLY_ERROR, KEDGE_E_REVOKED);
    ck_assert_str_eq(h.text, "persist 0; forget 41; forget 42; log stopped REVOKED");
}
END_TEST

START_TEST(test_disk_and_trainer)
{
    struct host h;
    open_enrolled(&h);
    give(&h, "digits", KEDGE_SITE_TRAIN, 1, false);
    done(&h, KEDGE_SITE_EV_FETCHED, KEDGE_OK);
    done(&h, KEDGE_SITE_EV_FETCHED, KEDGE_OK);
    done(&h, KEDGE_SITE_EV_TRAIN_FAILED, KEDGE_E_TRAINER);
    ck_assert_str_eq(h.text, "log failed TRAINER");
    timer(&h);
    ck_assert_str_eq(h.text, "poll");
    give(&h, "digits", KEDGE_SITE_TRAIN, 1, false);
    done(&h, KEDGE_SITE_EV_FETCHED, KEDGE_OK);
    done(&h, KEDGE_SITE_EV_FETCHED, KEDGE_OK);
    trained(&h, 1, false);
    done(&h, KEDGE_SITE_EV_PERSISTED, KEDGE_E_DISK_FULL);
    ck_assert_str_eq(h.text, "log failed DISK_FULL"); /* nothing leaves the device */
    timer(&h);
    ck_assert_str_eq(h.text, "persist 1");
    done(&h, KEDGE_SITE_EV_PERSISTED, KEDGE_OK);
    ck_assert_str_eq(h.text, "upload 40");
}
END_TEST

/* A trainer that can not train is not asked ten times a second: the pause grows from task to task, and one
 * that went well ends that. */
START_TEST(test_failing_trainer)
{
    struct host h;
    uint64_t longest = 0;
    open_enrolled(&h);
    for (int i = 0; i < 12; i++) {
        give(&h, "digits", KEDGE_SITE_TRAIN, 1, false);
        done(&h, KEDGE_SITE_EV_FETCHED, KEDGE_OK);
        done(&h, KEDGE_SITE_EV_FETCHED, KEDGE_OK);
        done(&h, KEDGE_SITE_EV_TRAIN_FAILED, KEDGE_E_TRAINER);
        uint64_t pause = kedge_site_deadline_ns(h.s) - h.now;
        uint64_t most = i < 8 ? h.params.times.backoff_min << i : h.params.times.backoff_max;
        most = most < h.params.times.backoff_max ? most : h.params.times.backoff_max;
        ck_assert(pause <= most && pause >= most / 2);
        longest = pause;
        timer(&h);
        ck_assert_str_eq(h.text, "poll");
    }
    ck_assert_uint_ge(longest, h.params.times.backoff_max / 2);
    give(&h, "digits", KEDGE_SITE_TRAIN, 1, false);
    done(&h, KEDGE_SITE_EV_FETCHED, KEDGE_OK);
    done(&h, KEDGE_SITE_EV_FETCHED, KEDGE_OK);
    trained(&h, 1, false);
    done(&h, KEDGE_SITE_EV_PERSISTED, KEDGE_OK);
    done(&h, KEDGE_SITE_EV_UPLOADED, KEDGE_OK);
    reply(&h, KEDGE_SITE_REPLY_RECEIPT, KEDGE_OK);
    give(&h, "digits", KEDGE_SITE_TRAIN, 2, false);
    done(&h, KEDGE_SITE_EV_FETCH_FAILED, KEDGE_E_BLOB_DIGEST);
    ck_assert_uint_le(kedge_site_deadline_ns(h.s) - h.now, h.params.times.backoff_min);
}
END_TEST

/* Each rare branch by itself, always: what it does, and that the work still comes to its end. */
static void open_rare(struct host *h, struct kedge_site_rare *rare, enum kedge_site_rare_site site)
{
    memset(rare, 0, sizeof *rare);
    kedge_rng_init(&rare->rng, 1, KEDGE_RNG_TEST, 0, 0);
    open_enrolled(h);
    rare->permille = 1000;
    rare->enabled[site] = true;
    kedge_site_rare_use(h->s, rare);
}

START_TEST(test_rare_submit_first)
{
    struct host h;
    struct kedge_site_rare rare;
    open_rare(&h, &rare, KEDGE_SITE_RARE_SUBMIT_FIRST);
    give(&h, "digits", KEDGE_SITE_TRAIN, 2, false);
    done(&h, KEDGE_SITE_EV_FETCHED, KEDGE_OK);
    done(&h, KEDGE_SITE_EV_FETCHED, KEDGE_OK);
    trained(&h, 2, false);
    ck_assert_str_eq(h.text, "persist 1");
    done(&h, KEDGE_SITE_EV_PERSISTED, KEDGE_OK);
    ck_assert_str_eq(h.text, "submit 41");
    reply(&h, KEDGE_SITE_REPLY_ERROR, KEDGE_E_BLOB_MISSING);
    timer(&h);
    ck_assert_str_eq(h.text, "upload 40");
    done(&h, KEDGE_SITE_EV_UPLOADED, KEDGE_OK);
    reply(&h, KEDGE_SITE_REPLY_RECEIPT, KEDGE_OK);
    ck_assert_str_eq(h.text, "log receipt; persist 0; forget 41; poll");
    ck_assert_uint_eq(rare.fired[KEDGE_SITE_RARE_SUBMIT_FIRST], 1);
}
END_TEST

START_TEST(test_rare_beat)
{
    struct host h;
    struct kedge_site_rare rare;
    open_rare(&h, &rare, KEDGE_SITE_RARE_EARLY_BEAT);
    give(&h, "digits", KEDGE_SITE_TRAIN, 2, false);
    ck_assert_str_eq(h.text, "log task; fetch spec; beat");
    done(&h, KEDGE_SITE_EV_FETCHED, KEDGE_OK);
    ck_assert_str_eq(h.text, "fetch model"); /* one at a time */
}
END_TEST

START_TEST(test_rare_fetch)
{
    struct host h;
    struct kedge_site_rare rare;
    open_rare(&h, &rare, KEDGE_SITE_RARE_FETCH_GIVEN_UP);
    give(&h, "digits", KEDGE_SITE_TRAIN, 2, false);
    done(&h, KEDGE_SITE_EV_FETCH_FAILED, KEDGE_E_UNREACHABLE);
    ck_assert_str_eq(h.text, "log failed UNREACHABLE");
    timer(&h);
    ck_assert_str_eq(h.text, "poll"); /* and takes it again, if it is still wanted */
}
END_TEST

START_TEST(test_rare_pause)
{
    struct host h;
    struct kedge_site_rare rare;
    open_rare(&h, &rare, KEDGE_SITE_RARE_LONG_PAUSE);
    uint64_t before = h.now;
    reply(&h, KEDGE_SITE_REPLY_ERROR, KEDGE_E_BUSY);
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
    tcase_add_test(tc, test_failing_trainer);
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
