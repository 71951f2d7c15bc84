/* A site that rests asks for no work and takes none; what is signed is sent. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "client/core/site.h"
#include "tests/fixtures/run.h"

static const uint64_t ms = 1000000;
static void *mem;
static struct kedge_site *site;
static struct kedge_site_effects fx;
static uint64_t now;

static void step(struct kedge_site_event *ev)
{
    ev->now_ns = now;
    kedge_site_step(site, ev, &fx);
}

static const struct kedge_site_effect *find(enum kedge_site_effect_type type)
{
    for (uint32_t i = 0; i < fx.count; i++) {
        if (fx.items[i].type == type) {
            return &fx.items[i];
        }
    }
    return NULL;
}

static void set_up(void)
{
    struct kedge_site_params params = {
        .seed = 1, .allow_all = true, .base_max = 1 << 20, .update_max = 1 << 20};
    kedge_site_times_default(&params.times);
    now = 1000 * ms;
    mem = malloc(kedge_site_size(1));
    ck_assert_int_eq(kedge_site_init(mem, kedge_site_size(1), &params, &site), KEDGE_OK);
    struct kedge_site_event ev = {.type = KEDGE_SITE_EV_START, .memory = {.enrolled = true}};
    step(&ev);
}

static void tear_down(void)
{
    free(mem);
}

static void rest(bool rests)
{
    struct kedge_site_event ev = {.type = KEDGE_SITE_EV_REST, .rest = rests};
    step(&ev);
}

static void answer(uint64_t serial, enum kedge_site_reply_kind kind)
{
    struct kedge_site_event ev = {.type = KEDGE_SITE_EV_REPLY, .serial = serial};
    ev.reply.kind = kind;
    ev.reply.shown.size = 1;
    ev.reply.task = (struct kedge_site_task){
        .job = {"j"}, .round = 1, .kind = KEDGE_SITE_TRAIN, .spec_len = 10, .base_len = 10, .update_len = 10};
    step(&ev);
}

START_TEST(no_work_is_asked_for)
{
    set_up();
    const struct kedge_site_effect *poll = find(KEDGE_SITE_FX_CALL);
    ck_assert(poll && poll->call == KEDGE_SITE_CALL_POLL);
    rest(true);
    answer(poll->serial, KEDGE_SITE_REPLY_WAIT);
    now += 100 * ms;
    struct kedge_site_event timer = {.type = KEDGE_SITE_EV_TIMER};
    step(&timer);
    ck_assert_ptr_null(find(KEDGE_SITE_FX_CALL));
    ck_assert(kedge_site_deadline_ns(site) > now + 1000 * ms); /* and nobody spins */
    rest(false);
    poll = find(KEDGE_SITE_FX_CALL);
    ck_assert(poll && poll->call == KEDGE_SITE_CALL_POLL);
    ck_assert(kedge_site_is_valid(site));
    tear_down();
}
END_TEST

START_TEST(a_task_that_comes_is_not_taken)
{
    struct kedge_site_view view;
    set_up();
    const uint64_t serial = find(KEDGE_SITE_FX_CALL)->serial;
    rest(true);
    answer(serial, KEDGE_SITE_REPLY_TASK);
    ck_assert_ptr_null(find(KEDGE_SITE_FX_FETCH));
    const struct kedge_site_effect *log = find(KEDGE_SITE_FX_LOG);
    ck_assert(log && log->note == KEDGE_SITE_NOTE_REFUSED && log->err == KEDGE_E_DENIED);
    const struct kedge_site_effect *end = find(KEDGE_SITE_FX_CALL);
    ck_assert(end && end->call == KEDGE_SITE_CALL_ENDED && end->trouble == KEDGE_TROUBLE_ENERGY);
    answer(end->serial, KEDGE_SITE_REPLY_NOTED);
    rest(false); /* whatever pause was begun */
    ck_assert(find(KEDGE_SITE_FX_CALL)->call == KEDGE_SITE_CALL_POLL && find(KEDGE_SITE_FX_CALL)->anew);
    kedge_site_view(site, &view);
    ck_assert_int_eq((int)view.state, (int)KEDGE_SITE_POLLING);
    tear_down();
}
END_TEST

/* Work in hand goes on while it rests. */
START_TEST(what_is_in_hand_goes_on)
{
    set_up();
    answer(find(KEDGE_SITE_FX_CALL)->serial, KEDGE_SITE_REPLY_TASK);
    const struct kedge_site_effect *fetch = find(KEDGE_SITE_FX_FETCH);
    ck_assert_ptr_nonnull(fetch);
    const uint64_t serial = fetch->serial;
    rest(true);
    struct kedge_site_event ev = {.type = KEDGE_SITE_EV_FETCHED, .serial = serial};
    step(&ev);
    ck_assert_ptr_nonnull(find(KEDGE_SITE_FX_FETCH)); /* the model, behind the spec */
    tear_down();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("client/rest");
    TCase *tests = tcase_create("rest");
    tcase_add_test(tests, no_work_is_asked_for);
    tcase_add_test(tests, a_task_that_comes_is_not_taken);
    tcase_add_test(tests, what_is_in_hand_goes_on);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
