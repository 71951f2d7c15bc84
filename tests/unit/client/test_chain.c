/* What a site makes of the main chain that it is shown: the rule as a table, and the site that follows it. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/core/chain.h"

#define SECOND UINT64_C(1000000000)

static struct kedge_site_chain chain(uint64_t size, uint8_t root)
{
    struct kedge_site_chain c = {.size = size};
    memset(c.root.b, root, sizeof c.root.b);
    return c;
}

START_TEST(test_judge)
{
    static const struct {
        uint64_t seen, asked, shown;
        bool other_root;
        enum kedge_site_chain_verdict golden;
    } rows[] = {
        /* nothing is no main chain, also where nothing was seen before */
        {0, 0, 0, false, KEDGE_SITE_CHAIN_MISSING},
        {9, 9, 0, true, KEDGE_SITE_CHAIN_MISSING},
        {9, 4, 0, true, KEDGE_SITE_CHAIN_MISSING},
        {9, 0, 0, true, KEDGE_SITE_CHAIN_MISSING},
        {0, 0, 1, true, KEDGE_SITE_CHAIN_NEWER},
        {9, 9, 9, false, KEDGE_SITE_CHAIN_SAME},
        {9, 4, 9, false, KEDGE_SITE_CHAIN_SAME},
        {9, 9, 10, true, KEDGE_SITE_CHAIN_NEWER},
        /* a proof from an earlier state says nothing about the later one */
        {9, 0, UINT64_MAX, true, KEDGE_SITE_CHAIN_LATE},
        {9, 4, 10, true, KEDGE_SITE_CHAIN_LATE},
        {9, 9, 9, true, KEDGE_SITE_CHAIN_FORK},
        {9, 4, 9, true, KEDGE_SITE_CHAIN_FORK},
        /* asked before the newer one was seen: an answer that was overtaken */
        {9, 4, 4, true, KEDGE_SITE_CHAIN_LATE},
        {9, 4, 8, true, KEDGE_SITE_CHAIN_LATE},
        {9, 0, 1, true, KEDGE_SITE_CHAIN_LATE},
        /* asked after it: the one that answers has lost it */
        {9, 9, 8, true, KEDGE_SITE_CHAIN_SHORTER},
        {9, 9, 1, true, KEDGE_SITE_CHAIN_SHORTER},
        {9, 4, 3, true, KEDGE_SITE_CHAIN_SHORTER},
        {UINT64_MAX, UINT64_MAX, UINT64_MAX - 1, true, KEDGE_SITE_CHAIN_SHORTER},
    };
    ck_assert_uint_eq(sizeof rows / sizeof rows[0], 19);
    struct kedge_site_chain seen = chain(rows[_i].seen, 1);
    struct kedge_site_chain shown = chain(rows[_i].shown, rows[_i].other_root ? 2 : 1);
    ck_assert_int_eq(kedge_site_chain_judge(&seen, rows[_i].asked, &shown, false), rows[_i].golden);
    /* what breaks with what was seen when asking is a fork, but only where there was something to break with
     */
    bool judged = rows[_i].shown > 0 && rows[_i].shown >= rows[_i].asked && rows[_i].shown != rows[_i].seen;
    ck_assert_int_eq(kedge_site_chain_judge(&seen, rows[_i].asked, &shown, true),
                     judged ? KEDGE_SITE_CHAIN_FORK : rows[_i].golden);
}
END_TEST

/* ---- a site ---- */

struct host {
    union {
        max_align_t align;
        uint8_t bytes[8192];
    } mem;
    struct kedge_site *s;
    struct kedge_site_effects fx;
    uint64_t now, call, beat, work; /* serials of the last effects */
    uint64_t call_seen, beat_seen;  /* what the answers are to grow out of */
    bool breaks;                    /* of the next answer */
    const char *job;                /* whose tasks come */
    char text[1024];
};

static const char *name_of(struct host *h, const struct kedge_site_effect *fx, char text[64])
{
    static const char *const names[] = {
        [KEDGE_SITE_FX_FETCH] = "fetch",   [KEDGE_SITE_FX_TRAIN] = "train",
        [KEDGE_SITE_FX_UPLOAD] = "upload", [KEDGE_SITE_FX_PERSIST] = "persist",
        [KEDGE_SITE_FX_FORGET] = "forget", [KEDGE_SITE_FX_ABORT] = "abort"};
    static const char *const calls[] = {"enroll", "poll", "submit", "ended"};
    if (fx->type == KEDGE_SITE_FX_CALL) {
        *(fx->busy ? &h->beat : &h->call) = fx->serial;
        *(fx->busy ? &h->beat_seen : &h->call_seen) = fx->seen.size;
        return fx->busy ? "beat" : calls[fx->call];
    }
    if (fx->type == KEDGE_SITE_FX_SEEN) {
        snprintf(text, 64, "seen %u", (unsigned)fx->seen.size);
    } else if (fx->type == KEDGE_SITE_FX_REFUSE) {
        snprintf(text, 64, "refuse %s %u after %u", kedge_err_code(fx->err), (unsigned)fx->shown.size,
                 (unsigned)fx->seen.size);
    } else if (fx->type == KEDGE_SITE_FX_LOG) {
        snprintf(text, 64, "log %s", kedge_site_note_name(fx->note));
    } else {
        h->work = fx->serial;
        return names[fx->type];
    }
    return text;
}

static void step(struct host *h, struct kedge_site_event *ev, const char *golden)
{
    char text[64];
    ev->now_ns = h->now;
    h->text[0] = '\0';
    kedge_site_step(h->s, ev, &h->fx);
    ck_assert(kedge_site_is_valid(h->s));
    for (uint32_t i = 0; i < h->fx.count; i++) {
        size_t used = strlen(h->text);
        snprintf(h->text + used, sizeof h->text - used, "%s%s", used ? "; " : "",
                 name_of(h, &h->fx.items[i], text));
    }
    ck_assert_str_eq(h->text, golden);
}

static void start(struct host *h, struct kedge_site_event *ev, const char *golden)
{
    struct kedge_site_params params = {.seed = 1, .allow_all = true, .base_max = 1000, .update_max = 1000};
    kedge_site_times_default(&params.times);
    memset(h, 0, sizeof *h);
    h->now = 5 * SECOND;
    h->job = "digits";
    ck_assert_int_eq(kedge_site_init(h->mem.bytes, sizeof h->mem, &params, &h->s), KEDGE_OK);
    ev->type = KEDGE_SITE_EV_START;
    ev->memory.enrolled = true;
    step(h, ev, golden);
}

static void open_seen(struct host *h, uint64_t size)
{
    struct kedge_site_event ev = {.seen = chain(size, 1)};
    start(h, &ev, "poll");
}

static void answer(struct host *h, uint64_t serial, enum kedge_site_reply_kind kind,
                   struct kedge_site_chain shown, const char *golden)
{
    struct kedge_site_event ev = {.type = KEDGE_SITE_EV_REPLY, .serial = serial};
    ev.reply.kind = kind;
    ev.reply.shown = shown;
    ev.reply.breaks = h->breaks;
    ev.reply.task = (struct kedge_site_task){
        .kind = KEDGE_SITE_TRAIN, .round = 1, .spec_len = 1, .base_len = 1, .update_len = 1};
    snprintf(ev.reply.task.job.s, sizeof ev.reply.task.job.s, "%s", h->job);
    step(h, &ev, golden);
}

static void timer(struct host *h, const char *golden)
{
    struct kedge_site_event ev = {.type = KEDGE_SITE_EV_TIMER};
    h->now = kedge_site_deadline_ns(h->s);
    step(h, &ev, golden);
}

static void done(struct host *h, enum kedge_site_event_type type, const char *golden)
{
    struct kedge_site_event ev = {.type = type, .serial = h->work, .result_count = 1};
    ev.results[0] = (struct kedge_site_result){.job = {"digits"}, .kind = KEDGE_SITE_TRAIN, .round = 1};
    step(h, &ev, golden);
}

/* Whatever it is told from now on, nothing leaves the site; it says so again every ten minutes. */
static void check_refuses(struct host *h, int err)
{
    struct kedge_site_view view;
    kedge_site_view(h->s, &view);
    ck_assert_int_eq(view.state, KEDGE_SITE_REFUSING);
    ck_assert_int_eq(view.reason, err);
    answer(h, h->call, KEDGE_SITE_REPLY_TASK, chain(100, 1), "");
    answer(h, h->beat, KEDGE_SITE_REPLY_WAIT, chain(100, 1), "");
    done(h, KEDGE_SITE_EV_FETCHED, "");
    uint64_t before = h->now;
    timer(h, "log refusing");
    ck_assert_uint_eq(h->now - before, 600 * SECOND);
    timer(h, "log refusing");
}

START_TEST(test_grows)
{
    struct host h;
    open_seen(&h, 0);
    answer(&h, h.call, KEDGE_SITE_REPLY_WAIT, chain(7, 1), "seen 7");
    timer(&h, "poll");
    answer(&h, h.call, KEDGE_SITE_REPLY_WAIT, chain(7, 1), "");
    timer(&h, "poll");
    answer(&h, h.call, KEDGE_SITE_REPLY_TASK, chain(9, 2), "seen 9; log task; fetch");
}
END_TEST

/* A restart remembers; the task of a chain that was cut is not taken, and no later answer heals it. */
START_TEST(test_cut)
{
    struct host h;
    open_seen(&h, 9);
    answer(&h, h.call, KEDGE_SITE_REPLY_TASK, chain(8, 1), "refuse SHORTER 8 after 9; log refusing");
    ck_assert_uint_eq(h.fx.items[0].seen.size, 9);
    check_refuses(&h, KEDGE_E_SHORTER);
}
END_TEST

START_TEST(test_fork)
{
    struct host h;
    open_seen(&h, 9);
    answer(&h, h.call, KEDGE_SITE_REPLY_WAIT, chain(9, 2), "refuse FORK 9 after 9; log refusing");
    check_refuses(&h, KEDGE_E_FORK);
}
END_TEST

/* An answer without a checkpoint is none, whatever was seen before: asked again, and no task is taken from
 * it, however often it comes. */
START_TEST(test_missing)
{
    static const uint64_t seen[] = {0, 9};
    struct host h;
    open_seen(&h, seen[_i]);
    for (int i = 0; i < 5; i++) {
        answer(&h, h.call, i % 2 ? KEDGE_SITE_REPLY_WAIT : KEDGE_SITE_REPLY_TASK, chain(0, 0),
               "log unreachable");
        timer(&h, "poll");
    }
    answer(&h, h.call, KEDGE_SITE_REPLY_TASK, chain(9, 1),
           seen[_i] ? "log task; fetch" : "seen 9; log task; fetch");
}
END_TEST

/* Up to an open heartbeat beside the training, asked when 9 entries were seen. */
static void open_training(struct host *h)
{
    open_seen(h, 9);
    answer(h, h->call, KEDGE_SITE_REPLY_TASK, chain(9, 1), "log task; fetch");
    done(h, KEDGE_SITE_EV_FETCHED, "fetch");
    done(h, KEDGE_SITE_EV_FETCHED, "train");
    timer(h, "beat");
}

/* The training fails; the coordinator is told, and sends tasks of another job meanwhile. */
static void training_fails(struct host *h)
{
    struct kedge_site_event failed = {
        .type = KEDGE_SITE_EV_TRAIN_FAILED, .serial = h->work, .err = KEDGE_E_TRAINER};
    step(h, &failed, "log failed; ended");
    answer(h, h->call, KEDGE_SITE_REPLY_NOTED, chain(0, 0), "");
    h->job = "letters";
}

/* The answer to a heartbeat comes after that to a later poll: it is late, and nothing is wrong. */
START_TEST(test_late)
{
    struct host h;
    open_training(&h);
    uint64_t beat = h.beat;
    training_fails(&h);
    timer(&h, "poll");
    answer(&h, h.call, KEDGE_SITE_REPLY_WAIT, chain(12, 1), "seen 12");
    answer(&h, beat, KEDGE_SITE_REPLY_WAIT, chain(10, 1), "");
    timer(&h, "poll");
    answer(&h, h.call, KEDGE_SITE_REPLY_TASK, chain(12, 1), "log task; fetch");
}
END_TEST

/* A poll that was asked before a heartbeat's answer came: 9 entries were seen then, 12 are by now. */
static void open_poll_and_beat(struct host *h)
{
    open_training(h);
    uint64_t beat = h->beat;
    training_fails(h);
    timer(h, "poll");
    ck_assert_uint_eq(h->call_seen, 9);
    answer(h, beat, KEDGE_SITE_REPLY_WAIT, chain(12, 1), "seen 12");
}

/* The poll's answer is then late, whether it was made before the heartbeat's or after it. An honest
 * coordinator is not refused for that; its task comes with the next poll, which asks from what is seen by
 * now. */
START_TEST(test_late_task)
{
    static const uint64_t shown[] = {9, 10, 13};
    struct host h;
    open_poll_and_beat(&h);
    answer(&h, h.call, KEDGE_SITE_REPLY_TASK, chain(shown[_i], 1), "");
    timer(&h, "poll");
    ck_assert_uint_eq(h.call_seen, 12);
    answer(&h, h.call, KEDGE_SITE_REPLY_TASK, chain(13, 1), "seen 13; log task; fetch");
}
END_TEST

/* A late answer that breaks with what was seen when asking is a fork all the same: another root for its size
 * (9), or a larger one whose proof fails. */
START_TEST(test_late_fork)
{
    static const struct {
        uint64_t shown;
        const char *golden;
    } rows[] = {{9, "refuse FORK 9 after 12; log refusing"},
                {10, "refuse FORK 10 after 12; log refusing"},
                {13, "refuse FORK 13 after 12; log refusing"}};
    struct host h;
    open_poll_and_beat(&h);
    h.breaks = true;
    answer(&h, h.call, KEDGE_SITE_REPLY_TASK, chain(rows[_i].shown, 2), rows[_i].golden);
    check_refuses(&h, KEDGE_E_FORK);
}
END_TEST

/* A heartbeat's answer may move on what was seen in the very step in which the next poll goes out. */
START_TEST(test_asks_from_what_is_seen)
{
    struct host h;
    open_training(&h);
    ck_assert_uint_eq(h.beat_seen, 9);
    training_fails(&h);
    h.now = kedge_site_deadline_ns(h.s);
    answer(&h, h.beat, KEDGE_SITE_REPLY_WAIT, chain(12, 1), "seen 12; poll");
    ck_assert_uint_eq(h.call_seen, 12);
}
END_TEST

START_TEST(test_cut_while_training)
{
    struct host h;
    open_training(&h);
    answer(&h, h.beat, KEDGE_SITE_REPLY_WAIT, chain(8, 1), "abort; refuse SHORTER 8 after 9; log refusing");
    done(&h, KEDGE_SITE_EV_TRAINED, "");
    check_refuses(&h, KEDGE_E_SHORTER);
}
END_TEST

/* What was signed before is neither sent nor forgotten. */
START_TEST(test_results_are_kept)
{
    struct host h;
    struct kedge_site_view view;
    open_training(&h);
    done(&h, KEDGE_SITE_EV_TRAINED, "persist");
    done(&h, KEDGE_SITE_EV_PERSISTED, "upload");
    answer(&h, h.beat, KEDGE_SITE_REPLY_WAIT, chain(9, 2), "abort; refuse FORK 9 after 9; log refusing");
    kedge_site_view(h.s, &view);
    ck_assert_uint_eq(view.memory->result_count, 1);
    struct kedge_site_event ev = {.memory = *view.memory, .seen = chain(9, 1), .err = KEDGE_E_FORK};
    start(&h, &ev, "log resumed; log refusing"); /* as long as the evidence is there */
    check_refuses(&h, KEDGE_E_FORK);
    ev.err = KEDGE_OK; /* its owner has moved it away */
    start(&h, &ev, "log resumed; upload");
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("chain");
    tcase_add_loop_test(tc, test_judge, 0, 19);
    tcase_add_test(tc, test_grows);
    tcase_add_test(tc, test_cut);
    tcase_add_test(tc, test_fork);
    tcase_add_loop_test(tc, test_missing, 0, 2);
    tcase_add_test(tc, test_late);
    tcase_add_loop_test(tc, test_late_task, 0, 3);
    tcase_add_loop_test(tc, test_late_fork, 0, 3);
    tcase_add_test(tc, test_asks_from_what_is_seen);
    tcase_add_test(tc, test_cut_while_training);
    tcase_add_test(tc, test_results_are_kept);
    Suite *s = suite_create("client/chain");
    suite_add_tcase(s, tc);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
