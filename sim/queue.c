/* Time, chance, digests, and the queue of what is to happen.
 *
 * A run must be the same each time on every machine. So time is a number, and events of one moment come in
 * the order in which they were made (`seq`); all chance is from one generator in the order of its draws; and
 * everything that happens goes into a digest, by which two runs are compared. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/base/mem.h"
#include "sim/world.h"

enum { MS = 1000000, SLOW_FACTOR = 20, SLOW_DISK_FACTOR = 40 };

#define SIM_FAULT_TEXT(name, text) [SIM_FAULT_##name] = (text),
static const char *const fault_texts[SIM_FAULT_COUNT] = {SIM_FAULTS(SIM_FAULT_TEXT)};

#define SIM_FAULT_NAME(name, text) [SIM_FAULT_##name] = #name,
static const char *const fault_names[SIM_FAULT_COUNT] = {SIM_FAULTS(SIM_FAULT_NAME)};

const char *sim_fault_name(enum sim_fault fault)
{
    KEDGE_ASSERT((size_t)fault < SIM_FAULT_COUNT);
    return fault_names[fault];
}

const char *sim_fault_text(enum sim_fault fault)
{
    KEDGE_ASSERT((size_t)fault < SIM_FAULT_COUNT);
    return fault_texts[fault];
}

/* Draws also when the world is healed: the place in the generator's stream does not depend on it. */
bool sim_chance(struct sim *w, uint32_t permille)
{
    return kedge_rng_below(&w->rng, 1000) < permille && !w->healed;
}

bool sim_fault(struct sim *w, enum sim_fault fault, uint32_t permille)
{
    bool hit = sim_chance(w, permille);
    w->fired[fault] += hit;
    return hit;
}

void sim_count(struct sim *w, enum sim_fault fault)
{
    w->fired[fault]++;
}

bool sim_inside(const struct sim *w, const struct sim_window *window)
{
    return !w->healed && w->now_ns >= window->from_ns && w->now_ns < window->until_ns;
}

uint64_t sim_crashes(const struct sim *w)
{
    static const enum sim_fault kinds[] = {
        SIM_FAULT_SERVER_CRASH,        SIM_FAULT_SERVER_CRASH_LOADING, SIM_FAULT_SERVER_CRASH_WRITTEN,
        SIM_FAULT_SERVER_CRASH_MIDWAY, SIM_FAULT_SITE_CRASH,           SIM_FAULT_SITE_CRASH_STARTING,
        SIM_FAULT_SITE_CRASH_WRITTEN,  SIM_FAULT_SITE_CRASH_MIDWAY,
    };
    uint64_t sum = 0;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        sum += w->fired[kinds[i]];
    }
    return sum;
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
        uint64_t h = SIM_HASH_START;
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

struct kedge_digest sim_of_site(const struct kedge_site_digest *d)
{
    struct kedge_digest out;
    memcpy(out.b, d->b, sizeof out.b);
    return out;
}

struct kedge_site_digest sim_to_site(const struct kedge_digest *d)
{
    struct kedge_site_digest out;
    memcpy(out.b, d->b, sizeof out.b);
    return out;
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

/* A run makes millions of events and has few under way, so those that are done are used again. */
static struct sim_event *event_new(struct sim *w)
{
    struct sim_event *ev = w->free_events;
    if (ev) {
        w->free_events = ev->next_free;
        memset(ev, 0, sizeof *ev);
        return ev;
    }
    return sim_new_array(1, sizeof *ev);
}

void sim_recycle(struct sim *w, struct sim_event *ev)
{
    ev->next_free = w->free_events;
    w->free_events = ev;
}

/* A binary heap by time and, at the same time, by the order of making: the order of events then never depends
 * on how the heap happens to lie. It holds pointers, as events are large. */
struct sim_event *sim_push(struct sim *w, enum sim_event_type type, uint64_t at_ns)
{
    KEDGE_ASSERT(at_ns >= w->now_ns);
    w->queue = sim_grow(w->queue, w->queue_count + 1, &w->queue_max, sizeof(struct sim_event *));
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
    uint64_t ms =
        1 + sim_below(w, w->config.delay_ms); /* one draw per statement: their order is part of the run */
    ms = sim_fault(w, SIM_FAULT_SLOW, w->config.slow) ? SLOW_FACTOR * ms : ms;
    return ms * MS + sim_below(w, MS);
}

/* One disk for each log, which writes in the order in which it was asked: the next write ends after the one
 * before. So what a crash leaves of the writes under way is a prefix of them. */
uint64_t sim_disk(struct sim *w, uint64_t *busy_ns, const struct sim_window *slow)
{
    uint64_t ms = 1 + sim_below(w, w->config.disk_ms);
    if (slow && sim_inside(w, slow)) {
        sim_count(w, SIM_FAULT_DISK_SLOW);
        ms *= SLOW_DISK_FACTOR;
    }
    uint64_t at = w->now_ns + ms * MS;
    at = at > *busy_ns ? at : *busy_ns + 1;
    *busy_ns = at;
    return at;
}
