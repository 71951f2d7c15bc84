/* A site that may be in several jobs at once: it asks beside what it has in hand, one task of a job at a
 * time, sends one result at a time, keeps all in one memory, and stops as one. */
#include <check.h>
#include <string.h>

#include "client/core/site.h"
#include "tests/fixtures/run.h"

static const uint64_t ms = 1000000;
static union {
    max_align_t align;
    uint8_t bytes[16384];
} mem;
static struct kedge_site *site;
static struct kedge_site_effects fx;
static struct kedge_site_memory stored;
static uint64_t now;
static uint32_t at_once;

static void step(struct kedge_site_event *ev)
{
    ev->now_ns = now;
    kedge_site_step(site, ev, &fx);
    ck_assert(kedge_site_is_valid(site));
    for (uint32_t i = 0; i < fx.count; i++) {
        stored = fx.items[i].type == KEDGE_SITE_FX_PERSIST ? fx.items[i].memory : stored;
    }
}

static const struct kedge_site_effect *find(enum kedge_site_effect_type type)
{
    for (uint32_t i = 0; i < fx.count; i++) {
        if (fx.items[i].type == type && !fx.items[i].busy) {
            return &fx.items[i];
        }
    }
    return NULL;
}

static void start(const struct kedge_site_memory *memory, int err)
{
    struct kedge_site_params params = {.seed = 1,
                                       .allow_all = true,
                                       .base_max = 1000,
                                       .update_max = 1000,
                                       .works = KEDGE_SITE_WORKS_MAX,
                                       .at_once = at_once};
    kedge_site_times_default(&params.times);
    memset(&mem, 0xa5, sizeof mem);
    ck_assert_uint_le(kedge_site_size(KEDGE_SITE_WORKS_MAX), sizeof mem);
    ck_assert_int_eq(kedge_site_init(mem.bytes, sizeof mem, &params, &site), KEDGE_OK);
    struct kedge_site_event ev = {
        .type = KEDGE_SITE_EV_START, .memory = *memory, .seen = {.size = 5}, .err = err};
    step(&ev);
}

static void set_up(uint32_t jobs)
{
    const struct kedge_site_memory none = {.enrolled = true};
    at_once = jobs;
    now = 1000 * ms;
    start(&none, KEDGE_OK);
}

static uint64_t poll_serial(void)
{
    const struct kedge_site_effect *p = find(KEDGE_SITE_FX_CALL);
    ck_assert(p && p->call == KEDGE_SITE_CALL_POLL);
    return p->serial;
}

static void answer(uint64_t serial, enum kedge_site_reply_kind kind, const char *job, uint64_t size)
{
    struct kedge_site_event ev = {.type = KEDGE_SITE_EV_REPLY, .serial = serial};
    ev.reply.kind = kind;
    ev.reply.err = KEDGE_E_REVOKED;
    ev.reply.shown.size = size;
    ev.reply.breaks = size == 99;
    ev.reply.task = (struct kedge_site_task){
        .round = 1, .kind = KEDGE_SITE_TRAIN, .spec_len = 10, .base_len = 10, .update_len = 10};
    memcpy(ev.reply.task.job.s, job, strlen(job));
    step(&ev);
}

static void done(uint64_t serial, enum kedge_site_event_type type, const char *job)
{
    struct kedge_site_event ev = {.type = type, .serial = serial, .result_count = 1};
    ev.results[0] = (struct kedge_site_result){.kind = KEDGE_SITE_TRAIN, .round = 1};
    memcpy(ev.results[0].job.s, job, strlen(job));
    memset(ev.results[0].envelope.b, job[0], sizeof ev.results[0].envelope.b);
    step(&ev);
}

/* Takes a task of the job by the open poll, up to its training, whose serial is returned; the next poll's is
 * *poll, 0: there is none. */
static uint64_t take(const char *job, uint64_t *poll)
{
    answer(*poll, KEDGE_SITE_REPLY_TASK, job, 5);
    const struct kedge_site_effect *fetch = find(KEDGE_SITE_FX_FETCH);
    ck_assert_ptr_nonnull(fetch);
    uint64_t serial = fetch->serial;
    const struct kedge_site_effect *next = find(KEDGE_SITE_FX_CALL);
    *poll = next ? next->serial : 0;
    done(serial, KEDGE_SITE_EV_FETCHED, job);
    done(find(KEDGE_SITE_FX_FETCH)->serial, KEDGE_SITE_EV_FETCHED, job);
    ck_assert_ptr_nonnull(find(KEDGE_SITE_FX_TRAIN));
    return find(KEDGE_SITE_FX_TRAIN)->serial;
}

START_TEST(it_asks_beside_what_it_has)
{
    set_up(2);
    uint64_t poll = poll_serial();
    ck_assert_uint_eq(find(KEDGE_SITE_FX_CALL)->at_work_count, 0);
    answer(poll, KEDGE_SITE_REPLY_TASK, "slow", 5);
    ck_assert_ptr_nonnull(find(KEDGE_SITE_FX_FETCH));
    const struct kedge_site_effect *beside = find(KEDGE_SITE_FX_CALL);
    ck_assert(beside && beside->call == KEDGE_SITE_CALL_POLL && beside->at_work_count == 1);
    ck_assert_str_eq(beside->at_work[0].s, "slow");
    ck_assert_uint_ne(beside->work, find(KEDGE_SITE_FX_FETCH)->work);
    answer(beside->serial, KEDGE_SITE_REPLY_TASK, "slow", 5); /* polls have crossed: not a second one */
    ck_assert_ptr_null(find(KEDGE_SITE_FX_FETCH));
    now += 50 * ms;
    struct kedge_site_event timer = {.type = KEDGE_SITE_EV_TIMER};
    step(&timer);
    answer(poll_serial(), KEDGE_SITE_REPLY_TASK, "quick", 5);
    ck_assert_ptr_nonnull(find(KEDGE_SITE_FX_FETCH));
    ck_assert_ptr_null(find(KEDGE_SITE_FX_CALL)); /* two are in hand */
    struct kedge_site_view view;
    kedge_site_view(site, &view);
    ck_assert_str_eq(view.works[0].task->job.s, "slow");
    ck_assert_str_eq(view.works[1].task->job.s, "quick");
}
END_TEST

START_TEST(one_at_a_time_is_as_ever)
{
    set_up(1);
    uint64_t poll = poll_serial();
    (void)take("slow", &poll);
    ck_assert_uint_eq(poll, 0);
}
END_TEST

/* The quick job goes on while the slow one trains; when it is free, a poll that leaves it out is followed by
 * another one at once. */
START_TEST(a_free_job_is_asked_for_at_once)
{
    set_up(3);
    uint64_t poll = poll_serial();
    (void)take("slow", &poll);
    uint64_t quick = take("quick", &poll);
    ck_assert_uint_ne(poll, 0); /* a third one would be taken */
    done(quick, KEDGE_SITE_EV_TRAINED, "quick");
    ck_assert_uint_eq(stored.result_count, 1);
    done(find(KEDGE_SITE_FX_PERSIST)->serial, KEDGE_SITE_EV_PERSISTED, "quick");
    done(find(KEDGE_SITE_FX_UPLOAD)->serial, KEDGE_SITE_EV_UPLOADED, "quick");
    ck_assert_ptr_null(find(KEDGE_SITE_FX_TRAIN));
    answer(find(KEDGE_SITE_FX_CALL)->serial, KEDGE_SITE_REPLY_RECEIPT, "quick", 5);
    const struct kedge_site_effect *again = find(KEDGE_SITE_FX_CALL);
    ck_assert(again && again->call == KEDGE_SITE_CALL_POLL && again->serial != poll);
    ck_assert_uint_eq(again->at_work_count, 1);
    ck_assert_str_eq(again->at_work[0].s, "slow");
    uint64_t newest = again->serial;
    answer(poll, KEDGE_SITE_REPLY_WAIT, "", 5); /* the older one */
    now += 50 * ms;
    struct kedge_site_event timer = {.type = KEDGE_SITE_EV_TIMER};
    step(&timer);
    ck_assert_ptr_null(find(KEDGE_SITE_FX_CALL)); /* that stands by */
    (void)take("quick", &newest);
}
END_TEST

/* Both have trained: one sends, the other waits for it; the memory has both, a restart goes on with both. */
START_TEST(one_sends_and_both_are_kept)
{
    set_up(2);
    uint64_t poll = poll_serial();
    uint64_t a = take("a", &poll), b = take("b", &poll);
    done(a, KEDGE_SITE_EV_TRAINED, "a");
    uint64_t persist_a = find(KEDGE_SITE_FX_PERSIST)->serial;
    done(b, KEDGE_SITE_EV_TRAINED, "b");
    ck_assert_uint_eq(stored.result_count, 2);
    uint64_t persist_b = find(KEDGE_SITE_FX_PERSIST)->serial;
    done(persist_a, KEDGE_SITE_EV_PERSISTED, "a");
    ck_assert_str_eq(find(KEDGE_SITE_FX_UPLOAD)->result.job.s, "a");
    done(persist_b, KEDGE_SITE_EV_PERSISTED, "b");
    ck_assert_ptr_null(find(KEDGE_SITE_FX_UPLOAD));
    const struct kedge_site_memory kept = stored;
    for (int restart = 0; restart < 2; restart++) {
        start(&kept, KEDGE_OK);
        const struct kedge_site_effect *up = find(KEDGE_SITE_FX_UPLOAD);
        ck_assert_str_eq(up->result.job.s, "a");
        at_once = 1; /* the owner allows one: what is signed is sent all the same */
    }
    done(find(KEDGE_SITE_FX_UPLOAD)->serial, KEDGE_SITE_EV_UPLOADED, "a");
    answer(find(KEDGE_SITE_FX_CALL)->serial, KEDGE_SITE_REPLY_RECEIPT, "a", 5);
    ck_assert_uint_eq(stored.result_count, 1);
    ck_assert_str_eq(find(KEDGE_SITE_FX_UPLOAD)->result.job.s, "b");
    ck_assert_ptr_null(find(KEDGE_SITE_FX_CALL));
    done(find(KEDGE_SITE_FX_UPLOAD)->serial, KEDGE_SITE_EV_UPLOADED, "b");
    answer(find(KEDGE_SITE_FX_CALL)->serial, KEDGE_SITE_REPLY_RECEIPT, "b", 5);
    ck_assert_uint_eq(stored.result_count, 0);
    ck_assert_uint_ne(poll_serial(), 0);
}
END_TEST

static uint32_t count(enum kedge_site_effect_type type)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < fx.count; i++) {
        n += fx.items[i].type == type;
    }
    return n;
}

/* What one poll shows stops all: a fork for good, with what is signed kept; a revocation with it forgotten.
 */
START_TEST(it_stops_as_one)
{
    for (int fork = 0; fork < 2; fork++) {
        set_up(3);
        uint64_t poll = poll_serial();
        uint64_t a = take("a", &poll);
        (void)take("b", &poll);
        done(a, KEDGE_SITE_EV_TRAINED, "a");
        done(find(KEDGE_SITE_FX_PERSIST)->serial, KEDGE_SITE_EV_PERSISTED, "a");
        ck_assert_uint_eq(count(KEDGE_SITE_FX_UPLOAD), 1);
        answer(poll, fork ? KEDGE_SITE_REPLY_WAIT : KEDGE_SITE_REPLY_ERROR, "", fork ? 99 : 5);
        ck_assert_uint_eq(count(KEDGE_SITE_FX_ABORT), 2);
        ck_assert_uint_eq(count(KEDGE_SITE_FX_REFUSE), fork ? 1 : 0);
        ck_assert_uint_eq(count(KEDGE_SITE_FX_FORGET), fork ? 0 : 1);
        struct kedge_site_view view;
        kedge_site_view(site, &view);
        ck_assert_int_eq((int)view.state, (int)(fork ? KEDGE_SITE_REFUSING : KEDGE_SITE_STOPPED));
        ck_assert_uint_eq(view.memory->result_count, fork ? 1 : 0);
        now += 700000 * ms;
        struct kedge_site_event timer = {.type = KEDGE_SITE_EV_TIMER};
        step(&timer);
        ck_assert_uint_eq(count(KEDGE_SITE_FX_CALL), fork ? 0 : 1);
        if (fork) {
            const struct kedge_site_memory kept = *view.memory;
            start(&kept, KEDGE_E_FORK);
            ck_assert_uint_eq(count(KEDGE_SITE_FX_CALL) + count(KEDGE_SITE_FX_UPLOAD), 0);
        }
    }
}
END_TEST

/* What one poll has seen of the main chain holds for the next one of another work. */
START_TEST(the_main_chain_is_seen_by_all)
{
    set_up(2);
    uint64_t poll = poll_serial();
    (void)take("a", &poll);
    answer(poll, KEDGE_SITE_REPLY_TASK, "b", 8);
    ck_assert_uint_eq(find(KEDGE_SITE_FX_SEEN)->seen.size, 8);
    struct kedge_site_event timer = {.type = KEDGE_SITE_EV_TIMER};
    now += 4000 * ms;
    step(&timer);
    ck_assert_uint_eq(fx.count, 1); /* one heartbeat for both */
    ck_assert(fx.items[0].busy && fx.items[0].seen.size == 8);
    answer(fx.items[0].serial, KEDGE_SITE_REPLY_WAIT, "", 7);
    ck_assert_uint_eq(count(KEDGE_SITE_FX_REFUSE), 1);
    ck_assert_uint_eq(count(KEDGE_SITE_FX_ABORT), 2);
}
END_TEST

/* A job that is no longer allowed stops, the other one goes on; fewer at once than are in hand: no more are
 * taken. */
START_TEST(policy_is_for_all)
{
    static const struct kedge_id only = {"a"};
    set_up(2);
    uint64_t poll = poll_serial();
    (void)take("a", &poll);
    (void)take("b", &poll);
    struct kedge_site_event ev = {
        .type = KEDGE_SITE_EV_POLICY, .allowed_count = 1, .allowed = &only, .at_once = 1};
    step(&ev);
    ck_assert_uint_eq(count(KEDGE_SITE_FX_ABORT), 1);
    ck_assert_int_eq((int)find(KEDGE_SITE_FX_CALL)->call, (int)KEDGE_SITE_CALL_ENDED);
    answer(find(KEDGE_SITE_FX_CALL)->serial, KEDGE_SITE_REPLY_NOTED, "", 5);
    now += 60000 * ms;
    struct kedge_site_event timer = {.type = KEDGE_SITE_EV_TIMER};
    step(&timer);
    ck_assert_ptr_null(find(KEDGE_SITE_FX_CALL));
    ck_assert_uint_gt(kedge_site_deadline_ns(site), now);
    ev.at_once = 2;
    step(&ev);
    ck_assert_uint_ne(poll_serial(), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("client/works");
    TCase *t = tcase_create("works");
    tcase_add_test(t, it_asks_beside_what_it_has);
    tcase_add_test(t, one_at_a_time_is_as_ever);
    tcase_add_test(t, a_free_job_is_asked_for_at_once);
    tcase_add_test(t, one_sends_and_both_are_kept);
    tcase_add_test(t, it_stops_as_one);
    tcase_add_test(t, the_main_chain_is_seen_by_all);
    tcase_add_test(t, policy_is_for_all);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
