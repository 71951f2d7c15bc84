/* Time and memory of a crowd: the queue of what is under way, and the run. */
#include "sim/crowd.h"

#include "common/base/limits.h"
#include "common/base/mem.h"
#include "common/base/try.h"
#include "sim/crowd_impl.h"
#include "sim/index.h"
#include "sim/world.h"

enum { TENANTS_MAX = 100, ROUNDS_MAX = 1000, PER_ROUND_MAX = 100000 };

/* Two numbers to one, mixed as by splitmix64 (Steele, Lea and Flood 2014). All chance of a crowd is this
 * function of who and what, without a generator whose place would depend on the order of events. */
uint64_t crowd_mix(uint64_t a, uint64_t b)
{
    uint64_t x = (a ^ b * UINT64_C(0x9e3779b97f4a7c15)) + UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

void crowd_note(struct crowd *c, uint64_t what, uint64_t who)
{
    c->digest = crowd_mix(c->digest, c->now_ns);
    c->digest = crowd_mix(c->digest, what << 32 | who);
}

void crowd_violate(struct crowd *c, const char *why)
{
    c->why = c->why ? c->why : why;
}

static bool before(const struct crowd_due *a, const struct crowd_due *b)
{
    return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->seq < b->seq;
}

/* A heap as in queue.c, but times and order lie in it beside the pointers: with a million events under way,
 * comparing two must not fetch either event from memory. */
struct crowd_event *crowd_push(struct crowd *c, enum crowd_event_type type, uint64_t after_ns, uint32_t site)
{
    struct crowd_event *ev = c->free_events;
    if (ev) {
        c->free_events = ev->next_free;
    } else {
        ev = sim_new_array(1, sizeof *ev);
        c->queue = sim_grow(c->queue, c->queue_count + 1, &c->queue_max, sizeof *c->queue);
    }
    ev->type = type;
    ev->site = site;
    ev->born = 0;
    struct crowd_due due = {.at_ns = c->now_ns + after_ns, .seq = c->seq++, .event = ev};
    uint32_t at = c->queue_count++;
    for (; at > 0 && before(&due, &c->queue[(at - 1) / 2]); at = (at - 1) / 2) {
        c->queue[at] = c->queue[(at - 1) / 2];
    }
    c->queue[at] = due;
    return ev;
}

static struct crowd_due pop(struct crowd *c)
{
    struct crowd_due first = c->queue[0], last = c->queue[--c->queue_count];
    uint32_t at = 0;
    for (uint32_t child = 1; child < c->queue_count; child = 2 * at + 1) {
        if (child + 1 < c->queue_count && before(&c->queue[child + 1], &c->queue[child])) {
            child++;
        }
        if (!before(&c->queue[child], &last)) {
            break;
        }
        c->queue[at] = c->queue[child];
        at = child;
    }
    c->queue[at] = last;
    return first;
}

int kedge_crowd_spec_check(const struct kedge_crowd_spec *s, struct kedge_diag *d)
{
    if (s->tenants < 1 || s->tenants > TENANTS_MAX) {
        return kedge_diag_set(d, KEDGE_E_FORMAT, "tenants is %u, expected 1 to %d", s->tenants, TENANTS_MAX);
    }
    if (s->sites < s->tenants || s->sites > KEDGE_CORE_SITES_MAX) {
        return kedge_diag_set(d, KEDGE_E_FORMAT, "there are %u sites, expected %u (one per tenant) to %d",
                              s->sites, s->tenants, KEDGE_CORE_SITES_MAX);
    }
    if (s->rounds < 1 || s->rounds > ROUNDS_MAX) {
        return kedge_diag_set(d, KEDGE_E_FORMAT, "rounds is %u, expected 1 to %d", s->rounds, ROUNDS_MAX);
    }
    uint32_t most = s->sites < PER_ROUND_MAX ? s->sites : PER_ROUND_MAX;
    if (s->sites_per_round < 1 || s->sites_per_round > most) {
        return kedge_diag_set(d, KEDGE_E_FORMAT, "sites_per_round is %u, expected 1 to %u",
                              s->sites_per_round, most);
    }
    return KEDGE_OK;
}

/* Until the job has ended and every update has its receipt. Without faults each task takes a few events; 64
 * of them are far more than that, so a run which needs more is going in circles and is told. */
static void run(struct crowd *c, kedge_crowd_progress *progress, void *arg)
{
    uint32_t told = 0;
    uint64_t most = (uint64_t)c->spec.rounds * (c->spec.sites_per_round + 4) * 64 + 1000;
    while (!(c->completed && c->receipts >= c->updates) && !c->why) {
        if (c->queue_count == 0 || ++c->events > most) {
            crowd_violate(c, "nothing is under way, and the job has not ended or a receipt is missing");
            return;
        }
        struct crowd_due due = pop(c);
        struct crowd_event *ev = due.event;
        KEDGE_ASSERT(due.at_ns >= c->now_ns);
        c->now_ns = due.at_ns;
        crowd_note(c, (uint64_t)ev->type, ev->site);
        if (ev->type == CROWD_TO_SERVER || ev->type >= CROWD_SERVER_DONE) {
            crowd_server_event(c, ev);
        } else {
            crowd_site_event(c, ev);
        }
        ev->next_free = c->free_events;
        c->free_events = ev;
        if (progress && c->rounds_closed > told) {
            told = c->rounds_closed;
            progress(arg, told);
        }
    }
}

static void free_all(struct crowd *c)
{
    for (uint32_t i = 0; i < c->queue_count; i++) {
        c->queue[i].event->next_free = c->free_events;
        c->free_events = c->queue[i].event;
    }
    while (c->free_events) {
        struct crowd_event *next = c->free_events->next_free;
        kedge_mem_free(c->free_events);
        c->free_events = next;
    }
    kedge_mem_free(c->queue);
    crowd_sites_deinit(c);
    kedge_mem_free(c->params);
    kedge_mem_free(c->inputs);
    kedge_mem_free(c->mem);
    kedge_mem_free(c);
}

int kedge_crowd_run(const struct kedge_crowd_spec *spec, kedge_crowd_progress *progress, void *arg,
                    struct kedge_crowd_outcome *ret, struct kedge_diag *reterr)
{
    KEDGE_TRY(kedge_crowd_spec_check(spec, reterr));
    struct crowd *c = kedge_mem_new(1, sizeof *c);
    if (!c) {
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "out of memory for a crowd");
    }
    c->spec = *spec;
    int err = crowd_server_begin(c);
    if (err) {
        err = kedge_diag_set(reterr, err, "out of memory for %u sites", spec->sites);
    } else {
        run(c, progress, arg);
        if (c->receipts != c->updates || c->rounds_closed != spec->rounds) {
            crowd_violate(c, "a receipt came twice, or a round is missing");
        }
        *ret = (struct kedge_crowd_outcome){.holds = !c->why,
                                            .why = c->why,
                                            .rounds = c->rounds_closed,
                                            .updates = c->updates,
                                            .events = c->events,
                                            .virtual_ns = c->now_ns,
                                            .digest = c->digest};
    }
    free_all(c);
    return err;
}
