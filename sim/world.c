/* Time, chance, the queue of what is to happen, and the script that a seed writes. */
#include "sim/world.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/base/mem.h"

enum { MS = 1000000, QUEUE_MIN = 256, STEPS_MAX = 3000000 };

bool sim_chance(struct sim *w, uint32_t permille)
{
    return kedge_rng_below(&w->rng, 1000) < permille && !w->healed;
}

uint64_t sim_below(struct sim *w, uint64_t n)
{
    return kedge_rng_below(&w->rng, n);
}

uint64_t sim_hash(uint64_t hash, const void *ptr, size_t len)
{
    const uint8_t *p = ptr; /* FNV-1a, 64 bits */
    for (size_t i = 0; i < len; i++) {
        hash = (hash ^ p[i]) * UINT64_C(0x100000001b3);
    }
    return hash;
}

struct kedge_digest sim_digest(uint64_t a, uint64_t b, uint64_t c, const void *ptr, size_t len)
{
    struct kedge_digest d;
    for (uint64_t lane = 0; lane < sizeof d.b / 8; lane++) {
        uint64_t in[4] = {lane, a, b, c};
        uint64_t h = UINT64_C(0xcbf29ce484222325);
        for (int i = 0; i < 4; i++) {
            uint8_t bytes[8];
            kedge_store_be64(bytes, in[i]);
            h = sim_hash(h, bytes, sizeof bytes);
        }
        kedge_store_be64(d.b + 8 * lane, sim_hash(h, ptr, len));
    }
    return d;
}

bool sim_same(const struct kedge_digest *a, const struct kedge_digest *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

void sim_note(struct sim *w, const char *what, uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t in[4] = {w->now_ns, a, b, c};
    for (int i = 0; i < 4; i++) {
        uint8_t bytes[8];
        kedge_store_be64(bytes, in[i]);
        w->digest = sim_hash(w->digest, bytes, sizeof bytes);
    }
    w->digest = sim_hash(w->digest, what, strlen(what));
    if (w->trace) {
        w->trace(w->now_ns, what, a, b, c);
    }
}

void sim_violate(struct sim *w, const char *format, ...)
{
    if (w->failed) {
        return;
    }
    w->failed = true;
    va_list args;
    va_start(args, format);
    (void)vsnprintf(w->why, sizeof w->why, format, args);
    va_end(args);
}

static bool before(const struct sim_event *a, const struct sim_event *b)
{
    return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->seq < b->seq;
}

static struct sim_event *event_new(struct sim *w)
{
    struct sim_event *ev = w->free_events;
    if (ev) {
        w->free_events = ev->next_free;
        memset(ev, 0, sizeof *ev);
    } else {
        ev = kedge_mem_new(1, sizeof *ev);
        KEDGE_ASSERT(ev);
    }
    return ev;
}

void sim_recycle(struct sim *w, struct sim_event *ev)
{
    ev->next_free = w->free_events;
    w->free_events = ev;
}

struct sim_event *sim_push(struct sim *w, enum sim_event_type type, uint64_t at_ns)
{
    KEDGE_ASSERT(at_ns >= w->now_ns);
    if (w->queue_count == w->queue_max) {
        w->queue_max = w->queue_max ? 2 * w->queue_max : QUEUE_MIN;
        w->queue = kedge_mem_resize(w->queue, w->queue_max, sizeof(struct sim_event *));
        KEDGE_ASSERT(w->queue);
    }
    struct sim_event *ev = event_new(w);
    ev->type = type;
    ev->at_ns = at_ns;
    ev->seq = w->seq++;
    uint32_t at = w->queue_count++;
    for (; at > 0 && before(ev, w->queue[(at - 1) / 2]); at = (at - 1) / 2) {
        w->queue[at] = w->queue[(at - 1) / 2];
    }
    w->queue[at] = ev;
    return ev;
}

struct sim_event *sim_pop(struct sim *w)
{
    KEDGE_ASSERT(w->queue_count > 0);
    struct sim_event *first = w->queue[0], *last = w->queue[--w->queue_count];
    uint32_t at = 0;
    while (2 * at + 1 < w->queue_count) {
        uint32_t child = 2 * at + 1;
        if (child + 1 < w->queue_count && before(w->queue[child + 1], w->queue[child])) {
            child++;
        }
        if (!before(w->queue[child], last)) {
            break;
        }
        w->queue[at] = w->queue[child];
        at = child;
    }
    w->queue[at] = last;
    return first;
}

uint64_t sim_delay(struct sim *w)
{
    uint64_t ms = 1 + sim_below(w, w->config.delay_ms);
    ms = sim_chance(w, 30) ? 20 * ms
                           : ms; /* one draw per statement: the order of evaluation is part of the run */
    return ms * MS + sim_below(w, MS);
}

uint64_t sim_disk(struct sim *w, uint64_t *busy_ns)
{
    uint64_t at = w->now_ns + (1 + sim_below(w, w->config.disk_ms)) * MS;
    at = at > *busy_ns ? at : *busy_ns + 1;
    *busy_ns = at;
    return at;
}

static uint32_t between(struct sim *w, uint32_t least, uint32_t most)
{
    return least + (uint32_t)sim_below(w, most - least + 1);
}

static uint32_t maybe(struct sim *w, uint32_t most)
{
    return between(w, 0, 1) ? between(w, 0, most) : 0;
}

static void draw_config(struct sim *w)
{
    struct sim_config *g = &w->config;
    g->tenants = between(w, 1, SIM_TENANTS_MAX);
    g->sites = between(w, g->tenants < 3 ? 3 : g->tenants, SIM_SITES_MAX);
    g->jobs = sim_below(w, 4) == 0 ? 2 : 1;
    g->loss = maybe(w, 200);
    g->duplicate = maybe(w, 200);
    g->delay_ms = between(w, 1, 80);
    g->disk_fail = maybe(w, 200);
    g->disk_lie = maybe(w, 200);
    g->disk_ms = between(w, 1, 60);
    g->work_fail = maybe(w, 200);
    g->train_fail = maybe(w, 150);
    g->train_ms = between(w, 50, 3000);
    g->bad = maybe(w, 150);
    g->two_faced = maybe(w, 200);
    g->server_crashes = maybe(w, 12);
    g->device_crashes = maybe(w, 20);
    g->revocations = maybe(w, g->sites / 3);
    g->halts = maybe(w, 3);
    g->lazy = maybe(w, g->sites / 3);
    g->late_sites = between(w, 0, 1);
    g->cancel = sim_below(w, 8) == 0;
    g->chaos_ns = between(w, 15, 60) * SIM_SECOND;
    g->limit_ns = g->chaos_ns + 900 * SIM_SECOND;
}

static void draw_job(struct sim *w, uint32_t job)
{
    struct sim_job *j = &w->jobs[job];
    struct kedge_coord_job_params *p = &j->params;
    (void)snprintf(p->id.s, sizeof p->id.s, "j%u", job);
    p->tenant_count = job == 0 ? w->config.tenants : between(w, 1, w->config.tenants);
    for (uint32_t i = 0; i < p->tenant_count; i++) {
        p->tenants[i] = i;
    }
    p->rounds = between(w, 1, 12);
    p->sites_per_round = between(w, 0, w->config.sites);
    p->sites_min = between(w, 1, 2);
    p->quorum = between(w, 1, 3);
    p->round_timeout_ns = between(w, 3, 20) * SIM_SECOND;
    p->seed = kedge_rng_u64(&w->rng);
    p->groups = between(w, 0, 1) ? between(w, 2, SIM_GROUPS_MAX - 1) : 1;
    p->pretrain_sites = between(w, 0, w->config.sites);
    p->evaluate_every = between(w, 0, 2);
    p->weight_max = 100;
    j->initial = sim_digest(w->seed, job, 1, "initial", 7);
}

static uint64_t in_chaos(struct sim *w)
{
    return w->now_ns + 1 + sim_below(w, w->config.chaos_ns);
}

static void push_site(struct sim *w, enum sim_event_type type, uint64_t at_ns, uint32_t site)
{
    sim_push(w, type, at_ns)->site = site;
}

/* Writes everything into the queue that does not follow from what the cores do. */
static void write_script(struct sim *w)
{
    const struct sim_config *g = &w->config;
    uint64_t enrol = 1;
    for (uint32_t i = 0; i < g->sites; i++) {
        struct sim_device *d = &w->devices[i];
        d->tenant = i % g->tenants;
        d->lazy = i >= g->sites - g->lazy;
        enrol += g->late_sites && i > 2 ? sim_below(w, g->chaos_ns / g->sites) : sim_below(w, 500 * MS);
        push_site(w, SIM_ENROL, enrol, i);
        push_site(w, SIM_DEVICE_UP, 1 + sim_below(w, 2 * SIM_SECOND), i);
    }
    sim_push(w, SIM_SERVER_UP, 1);
    for (uint32_t j = 0; j < g->jobs; j++) {
        sim_push(w, SIM_SUBMIT_JOB, 2 + sim_below(w, 5 * SIM_SECOND))->job = j;
        for (uint32_t t = 0; t < w->jobs[j].params.tenant_count; t++) {
            struct sim_event *ev = sim_push(w, SIM_JOIN, 6 * SIM_SECOND + sim_below(w, 4 * SIM_SECOND));
            ev->job = j;
            ev->site = t;
        }
        for (uint32_t i = 0; i < g->halts; i++) {
            sim_push(w, SIM_HALT, in_chaos(w))->job = j;
            sim_push(w, SIM_RESUME, in_chaos(w))->job = j;
        }
    }
    if (g->cancel) {
        sim_push(w, SIM_CANCEL, in_chaos(w))->job = g->jobs - 1;
    }
    for (uint32_t i = 0; i < g->server_crashes; i++) {
        sim_push(w, SIM_SERVER_CRASH, in_chaos(w));
    }
    for (uint32_t i = 0; i < g->device_crashes; i++) {
        uint64_t at = in_chaos(w);
        push_site(w, SIM_DEVICE_CRASH, at, (uint32_t)sim_below(w, g->sites));
    }
    for (uint32_t i = 0; i < g->revocations; i++) {
        uint64_t at = in_chaos(w);
        push_site(w, SIM_REVOKE, at, (uint32_t)sim_below(w, g->sites));
    }
    sim_push(w, SIM_HEAL, g->chaos_ns);
}

struct sim *sim_new(uint64_t seed, sim_trace *trace)
{
    struct sim *w = kedge_mem_new(1, sizeof *w);
    KEDGE_ASSERT(w);
    w->seed = seed;
    w->trace = trace;
    w->digest = UINT64_C(0xcbf29ce484222325);
    w->main_hash = w->digest;
    kedge_rng_init(&w->rng, seed, KEDGE_RNG_SIM, 0, 0);
    draw_config(w);
    for (uint32_t i = 0; i < w->config.jobs; i++) {
        draw_job(w, i);
    }
    for (uint32_t i = 0; i < SIM_TENANTS_MAX; i++) {
        w->ledgers[i].hash = w->digest;
    }
    write_script(w);
    return w;
}

/* Faults are over: everything comes up; from now on the operator resumes, and gives up jobs that can not go
 * on. */
static void heal(struct sim *w)
{
    w->healed = true;
    for (uint32_t i = 0; i < w->config.jobs; i++) {
        sim_push(w, SIM_RESUME, w->now_ns)->job = i;
        if (w->server.up && sim_job_is_stuck(w, i)) {
            sim_push(w, SIM_CANCEL, w->now_ns + 1)->job = i;
        }
    }
    sim_push(w, SIM_HEAL, w->now_ns + 20 * SIM_SECOND);
}

static bool is_over(const struct sim *w)
{
    for (uint32_t i = 0; i < w->config.jobs; i++) {
        if (w->jobs[i].state < KEDGE_JOB_COMPLETED) {
            return false;
        }
    }
    return w->healed;
}

bool sim_run(struct sim *w)
{
    uint64_t end = w->config.limit_ns;
    bool over = false;
    while (!w->failed && w->queue_count > 0 && w->queue[0]->at_ns <= end) {
        struct sim_event *ev = sim_pop(w);
        w->now_ns = ev->at_ns;
        w->steps++;
        if (ev->type == SIM_HEAL) {
            heal(w);
        } else if (ev->type == SIM_TO_DEVICE || ev->type == SIM_CALL_TIMEOUT || ev->type == SIM_DEVICE_DONE
                   || ev->type == SIM_DEVICE_DISK || ev->type == SIM_DEVICE_TIMER
                   || ev->type == SIM_DEVICE_CRASH || ev->type == SIM_DEVICE_UP) {
            sim_device_event(w, ev);
        } else {
            sim_server_event(w, ev);
        }
        sim_recycle(w, ev);
        if (w->steps > STEPS_MAX) {
            sim_violate(w, "it never comes to rest");
        }
        if (!over && is_over(w)) {
            over = true;
            end = w->now_ns + 60 * SIM_SECOND; /* for the last receipts */
        }
    }
    sim_check_end(w);
    return !w->failed;
}

void sim_free(struct sim *w)
{
    while (w->queue_count > 0) {
        sim_recycle(w, sim_pop(w));
    }
    while (w->free_events) {
        struct sim_event *next = w->free_events->next_free;
        kedge_mem_free(w->free_events);
        w->free_events = next;
    }
    kedge_mem_free(w->queue);
    kedge_mem_free(w->server.mem);
    kedge_mem_free(w);
}
