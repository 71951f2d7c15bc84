#include "tests/unit/client/site_host.h"

#include <check.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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
    static const char *const names[] = {"enroll", "poll", "submit", "ended"};
    if (fx->busy) {
        put(h, "beat");
        h->beat = fx->serial;
        return;
    }
    put(h, "%s", names[fx->call]);
    if (fx->call == KEDGE_SITE_CALL_SUBMIT) {
        put(h, " %u", fx->result.envelope.b[0]);
    }
    if (fx->call == KEDGE_SITE_CALL_ENDED) {
        put(h, " r%u %s", fx->task.round, kedge_trouble_name(fx->trouble));
        h->pause = fx->wait_ns;
    }
    if (fx->anew) {
        put(h, " anew");
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

void site_step(struct host *h, struct kedge_site_event *ev)
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

void site_start(struct host *h, const struct kedge_site_memory *memory)
{
    memset(&h->mem, 0xa5, sizeof h->mem);
    ck_assert_int_eq(kedge_site_init(h->mem.bytes, sizeof h->mem, &h->params, &h->s), KEDGE_OK);
    struct kedge_site_event ev = {.type = KEDGE_SITE_EV_START, .memory = *memory, .seen = {.size = 1}};
    site_step(h, &ev);
}

void site_open_host(struct host *h)
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

void site_open_enrolled(struct host *h)
{
    struct kedge_site_memory memory = {.enrolled = true};
    site_open_host(h);
    site_start(h, &memory);
    ck_assert_str_eq(h->text, "poll anew");
}

void site_reply(struct host *h, enum kedge_site_reply_kind kind, int err)
{
    struct kedge_site_event ev = {.type = KEDGE_SITE_EV_REPLY, .serial = h->call};
    ev.reply.kind = kind;
    ev.reply.err = err;
    ev.reply.active = true;
    site_step(h, &ev);
}

void site_give(struct host *h, const char *job, enum kedge_site_kind kind, uint32_t round, bool evaluate)
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
    site_step(h, &ev);
}

void site_done(struct host *h, enum kedge_site_event_type type, int err)
{
    struct kedge_site_event ev = {.type = type, .serial = h->work, .err = err};
    site_step(h, &ev);
}

void site_trained(struct host *h, uint32_t round, bool evaluation)
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
    site_step(h, &ev);
}

void site_timer(struct host *h)
{
    uint64_t at = kedge_site_deadline_ns(h->s);
    ck_assert_uint_lt(at, UINT64_MAX);
    h->now = at > h->now ? at : h->now;
    struct kedge_site_event ev = {.type = KEDGE_SITE_EV_TIMER};
    site_step(h, &ev);
}
