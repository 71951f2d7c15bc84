#include "tests/unit/coordinator/world.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#include "common/base/mem.h"

enum { DUE_MAX = 128 };
static const uint64_t ENDLESS_NS = UINT64_C(200000) * 1000 * MS;
static const uint64_t APPEND_NS = 1 * MS, CLOSE_NS = 20 * MS, UPLOAD_NS = 5 * MS, NEVER = UINT64_MAX;

struct due {
    uint64_t at_ns;
    struct kedge_coord_event ev;
};

struct world {
    struct host h;
    struct job *jobs;
    uint32_t job_count, due_count, requests;
    uint32_t slow;    /* a site that takes twice as long, KEDGE_COORD_NONE: none */
    uint32_t several; /* tasks of so many jobs at once */
    uint64_t in_hand[WORLD_SITES];
    uint32_t asks[WORLD_SITES]; /* the request of its poll, which is the only one */
    struct due due[DUE_MAX];
    struct kedge_digest model;
    uint64_t begin_ns;
    bool submitted[WORLD_JOBS_MAX], halted[WORLD_JOBS_MAX];
};

static void later(struct world *w, uint64_t delay_ns, const struct kedge_coord_event *ev)
{
    ck_assert_uint_lt(w->due_count, DUE_MAX);
    w->due[w->due_count++] = (struct due){w->h.now + delay_ns, *ev};
}

static void poll_later(struct world *w, uint32_t site, uint64_t delay_ns)
{
    struct kedge_coord_event ev = event_of(&w->h, KEDGE_EV_POLL);
    ev.site = site;
    ev.request = w->asks[site] = w->requests++;
    ev.wait_ns = 5000 * MS;
    ev.at_work = w->in_hand[site];
    later(w, delay_ns, &ev);
}

/* The answer to an effect: the same handles again. */
static struct kedge_coord_event answer(const struct world *w, enum kedge_coord_event_type type,
                                       const struct kedge_coord_effect *fx)
{
    struct kedge_coord_event ev = event_of(&w->h, type);
    ev.tenant = fx->tenant;
    ev.site = fx->site;
    ev.job = fx->job;
    ev.round = fx->round;
    ev.group = fx->group;
    ev.kind = fx->kind;
    ev.ticket = ev.request = fx->ticket;
    ev.leaf = fx->ticket;
    return ev;
}

/* A site trains, and sends what came of it; with room for more it asks for that meanwhile. */
static void begin_task(struct world *w, const struct kedge_coord_effect *fx)
{
    struct kedge_coord_event ev = answer(w, KEDGE_EV_SUBMIT, fx);
    ev.request = ev.ticket = w->requests++;
    ev.base = fx->base;
    ev.envelope = ev.update = digest_of((uint8_t)ev.ticket);
    ev.weight = 1;
    uint64_t task_ns = w->jobs[fx->job].task_ns * (fx->site == w->slow ? 2 : 1);
    w->in_hand[fx->site] |= UINT64_C(1) << fx->job;
    later(w, task_ns + UPLOAD_NS, &ev);
    if ((uint32_t)__builtin_popcountll(w->in_hand[fx->site]) < w->several) {
        poll_later(w, fx->site, 0);
    }
}

static void end_task(struct world *w, const struct kedge_coord_effect *fx)
{
    w->in_hand[fx->site] &= ~(UINT64_C(1) << fx->job);
    poll_later(w, fx->site, 0);
}

static void count_opened(struct world *w, struct job *j, uint32_t job)
{
    struct kedge_coord_job_view view;
    ck_assert(kedge_coord_job(w->h.c, job, &view));
    j->fewest = j->fewest == 0 || view.selected_count < j->fewest ? view.selected_count : j->fewest;
}

static void take(struct world *w, const struct kedge_coord_effect *fx)
{
    struct kedge_coord_event ev = answer(w, KEDGE_EV_MAIN_APPENDED, fx);
    switch (fx->type) {
    case KEDGE_FX_TASK:
        w->jobs[fx->job].first_ns = w->jobs[fx->job].tasks++ == 0 ? w->h.now : w->jobs[fx->job].first_ns;
        begin_task(w, fx);
        return;
    case KEDGE_FX_WAIT:
        if (fx->request == w->asks[fx->site]) {
            poll_later(w, fx->site, 0);
        }
        return;
    case KEDGE_FX_VERIFY:
        ev = answer(w, KEDGE_EV_VERIFIED, fx);
        later(w, 0, &ev);
        return;
    case KEDGE_FX_APPEND:
        ev = answer(w, KEDGE_EV_APPENDED, fx);
        later(w, APPEND_NS, &ev);
        return;
    case KEDGE_FX_RECEIPT:
        end_task(w, fx);
        return;
    case KEDGE_FX_CLOSE_ROUND:
        ev = answer(w, KEDGE_EV_ROUND_COMPUTED, fx);
        ev.model_count = 1;
        ev.models = &w->model;
        later(w, CLOSE_NS, &ev);
        return;
    case KEDGE_FX_MAIN_ROUND_CLOSED:
        w->jobs[fx->job].done_ns = w->h.now;
        w->jobs[fx->job].closed++;
        later(w, APPEND_NS, &ev);
        return;
    case KEDGE_FX_MAIN_ROUND_OPENED:
        count_opened(w, &w->jobs[fx->job], fx->job);
        later(w, APPEND_NS, &ev);
        return;
    case KEDGE_FX_MAIN_JOB_OPENED:
    case KEDGE_FX_MAIN_ROUND_TESTED:
    case KEDGE_FX_MAIN_JOB_CLOSED:
        later(w, APPEND_NS, &ev);
        return;
    case KEDGE_FX_JOB_STATE:
        return;
    case KEDGE_FX_NOTED:
    case KEDGE_FX_TURN_AWAY:
    case KEDGE_FX_CLOSED:
    case KEDGE_FX_ASSIGN:
    case KEDGE_FX_APPEND_ASSIGNED:
        ck_abort_msg("effect %d: %s, job %u, site %u, round %u", (int)fx->type, kedge_strerror(fx->err),
                     fx->job, fx->site, fx->round);
    }
}

static void step(struct world *w, const struct kedge_coord_event *due)
{
    static struct kedge_coord_effects fx;
    struct kedge_coord_event ev = *due;
    ev.now_ns = w->h.now;
    if (ev.type == KEDGE_EV_POLL) { /* a site has one, which says what it has in hand by now */
        if (ev.request != w->asks[ev.site]) {
            return;
        }
        ev.at_work = w->in_hand[ev.site];
    }
    bool more = kedge_coord_step(w->h.c, &ev, &fx);
    for (;;) {
        for (uint32_t i = 0; i < fx.count; i++) {
            take(w, &fx.items[i]);
        }
        if (!more) {
            break;
        }
        more = kedge_coord_more(w->h.c, &fx);
    }
    ck_assert(kedge_coord_is_valid(w->h.c));
}

/* The earliest of what is under way, the first of equals; or the core's own time. */
static void go_on(struct world *w, uint64_t until_ns)
{
    uint64_t core = kedge_coord_deadline_ns(w->h.c);
    struct due next = {core, event_of(&w->h, KEDGE_EV_TIMER)};
    uint32_t at = w->due_count;
    for (uint32_t i = 0; i < w->due_count; i++) {
        if (w->due[i].at_ns < next.at_ns) {
            next = w->due[i];
            at = i;
        }
    }
    ck_assert(next.at_ns != NEVER || until_ns != NEVER);
    if (next.at_ns > until_ns) {
        w->h.now = until_ns;
        return;
    }
    if (at < w->due_count) {
        memmove(&w->due[at], &w->due[at + 1], (w->due_count - at - 1) * sizeof w->due[0]);
        w->due_count--;
    }
    w->h.now = next.at_ns > w->h.now ? next.at_ns : w->h.now;
    step(w, &next.ev);
}

static void submit(struct world *w, uint32_t job)
{
    struct kedge_coord_job_params p = w->h.params;
    (void)snprintf(p.id.s, sizeof p.id.s, "j%u", job);
    p.rounds = w->jobs[job].rounds;
    p.priority = w->jobs[job].priority;
    p.turn_weight = w->jobs[job].weight;
    p.due_ns = w->jobs[job].due_ns > 0 ? w->begin_ns + w->jobs[job].due_ns : 0;
    p.elastic = w->jobs[job].least > 0;
    p.sites_min = p.elastic ? w->jobs[job].least : 1;
    p.sites_per_round = w->jobs[job].most;
    p.round_timeout_ns = UINT64_C(1000000) * MS;
    struct kedge_coord_event ev = event_of(&w->h, KEDGE_EV_JOB_SUBMIT);
    ev.job = job;
    ev.params = &p;
    ev.model_count = 1;
    ev.models = &w->model;
    step(w, &ev);
    ev = event_of(&w->h, KEDGE_EV_JOB_JOINED);
    ev.job = job;
    ev.tenant = 0;
    step(w, &ev);
}

static void halt(struct world *w, uint32_t job)
{
    struct kedge_coord_event ev = event_of(&w->h, KEDGE_EV_JOB_HALT);
    ev.job = job;
    w->halted[job] = true;
    step(w, &ev);
}

/* What is to be done to jobs until now; returns when something is next. */
static uint64_t operate(struct world *w)
{
    uint64_t next = NEVER;
    for (uint32_t i = w->job_count; i-- > 0;) {
        const uint64_t from = w->begin_ns + w->jobs[i].from_ns;
        const uint64_t to = w->jobs[i].halt_ns > 0 ? w->begin_ns + w->jobs[i].halt_ns : NEVER;
        if (!w->submitted[i] && w->h.now >= from) {
            w->submitted[i] = true;
            submit(w, i);
        }
        if (!w->halted[i] && w->h.now >= to) {
            halt(w, i);
        }
        next = !w->submitted[i] && from < next ? from : next;
        next = !w->halted[i] && to < next ? to : next;
    }
    return next;
}

static bool have_ended(const struct job *jobs, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (jobs[i].closed < jobs[i].rounds) {
            return false;
        }
    }
    return true;
}

uint64_t world_run(struct job *jobs, uint32_t count, uint32_t until, uint32_t several, uint32_t slow)
{
    static struct world w;
    memset(&w, 0, sizeof w);
    host_open(&w.h);
    w.h.limits.jobs_max = WORLD_JOBS_MAX;
    kedge_mem_free(w.h.mem);
    w.h.mem = kedge_mem_new(1, kedge_coord_size(&w.h.limits));
    host_restart(&w.h);
    w.jobs = jobs;
    w.job_count = count;
    w.several = several;
    w.slow = slow;
    w.model = digest_of(1);
    host_members(&w.h, 1, WORLD_SITES);
    host_simple(&w.h, KEDGE_EV_START);
    for (uint32_t i = 0; i < WORLD_SITES; i++) {
        poll_later(&w, i, 0);
    }
    const uint64_t begin = w.begin_ns = w.h.now;
    while (!have_ended(jobs, until)) {
        ck_assert_msg(w.h.now < begin + ENDLESS_NS, "jobs that wait for ever");
        go_on(&w, operate(&w));
    }
    host_close(&w.h);
    uint64_t done_ns = 0;
    for (uint32_t i = 0; i < until; i++) {
        done_ns = jobs[i].done_ns > done_ns ? jobs[i].done_ns : done_ns;
    }
    return (done_ns - begin - jobs[0].from_ns) / MS;
}
