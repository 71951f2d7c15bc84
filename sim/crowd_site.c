/* The sites of a crowd: asleep but for those that have a task. */
#include <string.h>

#include "common/base/mem.h"
#include "sim/crowd_impl.h"
#include "sim/index.h"
#include "sim/world.h"

enum { MS = 1000000 };

/* How long things take at this site: some are ten times as fast as others. */
static uint64_t pace(const struct crowd *c, uint32_t site, uint64_t least_ns)
{
    return least_ns + crowd_mix(c->spec.seed, site) % (9 * least_ns + 1);
}

struct kedge_digest crowd_sign(uint32_t site, uint32_t round, uint64_t weight,
                               const struct kedge_site_digest *update)
{
    return sim_digest(UINT64_C(0x9e3779b97f4a7c15) * (site + 1), round, weight, update, sizeof *update);
}

struct crowd_site *crowd_site_find(struct crowd *c, uint32_t site)
{
    uint32_t slot = c->slot_of[site];
    return slot == 0 ? NULL : &c->slots[slot - 1];
}

/* A core of a site lives only from the answer to the site's poll to its next poll; then its memory is given
 * to another site, since a crowd has many more sites than tasks. `born` tells the lives of a site apart, so
 * that an event for a life that has ended is dropped. */
void crowd_site_sleep(struct crowd *c, uint32_t site)
{
    uint32_t slot = c->slot_of[site];
    KEDGE_ASSERT(slot != 0);
    c->slot_of[site] = 0;
    c->slots[slot - 1].next_free = c->free_slot;
    c->free_slot = slot;
}

void crowd_sites_deinit(struct crowd *c)
{
    for (uint32_t i = 0; i < c->slot_count; i++) {
        kedge_mem_free(c->slots[i].core);
    }
    kedge_mem_free(c->slots);
    kedge_mem_free(c->slot_of);
}

static void call(struct crowd *c, uint32_t site, struct crowd_site *s, const struct kedge_site_effect *fx)
{
    enum crowd_call kind = fx->call == KEDGE_SITE_CALL_SUBMIT ? CROWD_SUBMIT
                           : fx->busy                         ? CROWD_BEAT
                                                              : CROWD_POLL;
    s->serial[kind] = fx->serial;
    struct crowd_event *ev = crowd_push(c, CROWD_TO_SERVER, pace(c, site, 5 * MS), site);
    ev->call = kind;
    ev->born = s->born;
}

static void done(struct crowd *c, uint32_t site, const struct crowd_site *s, uint64_t serial,
                 enum kedge_site_event_type type, uint64_t after_ns)
{
    struct crowd_event *ev = crowd_push(c, CROWD_SITE_DONE, after_ns, site);
    ev->born = s->born;
    ev->to_site.type = type;
    ev->to_site.serial = serial;
    ev->to_site.err = KEDGE_OK;
    if (type == KEDGE_SITE_EV_TRAINED) {
        ev->to_site.result_count = 1;
        ev->to_site.results[0] = s->result;
    }
}

static void train(struct crowd *c, uint32_t site, struct crowd_site *s, const struct kedge_site_effect *fx)
{
    const struct kedge_site_task *t = &fx->task;
    s->weight = 1 + crowd_mix(site, t->round) % 1000;
    struct kedge_digest update = sim_digest(site, t->round, s->weight, &t->base, sizeof t->base);
    s->result = (struct kedge_site_result){.job = t->job,
                                           .kind = t->kind,
                                           .round = t->round,
                                           .group = t->group,
                                           .base = t->base,
                                           .update = sim_to_site(&update),
                                           .update_len = t->update_len};
    struct kedge_digest envelope = crowd_sign(site, t->round, s->weight, &s->result.update);
    s->result.envelope = sim_to_site(&envelope);
    done(c, site, s, fx->serial, KEDGE_SITE_EV_TRAINED, pace(c, site, 500 * MS));
}

static void execute(struct crowd *c, uint32_t site, struct crowd_site *s, const struct kedge_site_effect *fx)
{
    switch (fx->type) {
    case KEDGE_SITE_FX_CALL:
        call(c, site, s, fx);
        return;
    case KEDGE_SITE_FX_FETCH:
        done(c, site, s, fx->serial, KEDGE_SITE_EV_FETCHED, pace(c, site, 10 * MS));
        return;
    case KEDGE_SITE_FX_TRAIN:
        train(c, site, s, fx);
        return;
    case KEDGE_SITE_FX_UPLOAD:
        done(c, site, s, fx->serial, KEDGE_SITE_EV_UPLOADED, pace(c, site, 20 * MS));
        return;
    case KEDGE_SITE_FX_PERSIST:
        done(c, site, s, fx->serial, KEDGE_SITE_EV_PERSISTED, MS);
        return;
    case KEDGE_SITE_FX_REFUSE:
        crowd_violate(c, "a site refuses the main chain");
        return;
    case KEDGE_SITE_FX_FORGET:
    case KEDGE_SITE_FX_ABORT:
    case KEDGE_SITE_FX_SEEN:
    case KEDGE_SITE_FX_LOG:
        return;
    }
}

static void step(struct crowd *c, uint32_t site, struct crowd_site *s, struct kedge_site_event *ev)
{
    static struct kedge_site_effects fx; /* large; one thread */
    ev->now_ns = c->now_ns;
    kedge_site_step(s->core, ev, &fx);
    for (uint32_t i = 0; i < fx.count; i++) {
        execute(c, site, s, &fx.items[i]);
    }
    uint64_t due = kedge_site_deadline_ns(s->core);
    if (due < s->timer_ns) {
        s->timer_ns = due;
        crowd_push(c, CROWD_SITE_TIMER, due > c->now_ns ? due - c->now_ns : 0, site)->born = s->born;
    }
}

/* A restart with nothing unfinished: the poll that it begins with is the one that has been answered. */
static struct crowd_site *wake(struct crowd *c, uint32_t site)
{
    if (c->free_slot == 0) {
        c->slots = sim_grow(c->slots, c->slot_count + 1, &c->slot_max, sizeof *c->slots);
        c->slots[c->slot_count] = (struct crowd_site){.core = sim_new_array(1, kedge_site_size(1))};
        c->free_slot = ++c->slot_count;
    }
    uint32_t slot = c->free_slot;
    KEDGE_ASSERT(c->slots && slot <= c->slot_count);
    struct crowd_site *s = &c->slots[slot - 1];
    c->free_slot = s->next_free;
    c->slot_of[site] = slot;
    *s = (struct crowd_site){.core = s->core, .born = ++c->born, .timer_ns = UINT64_MAX};
    struct kedge_site_params params = {
        .seed = c->spec.seed + site, .allow_all = true, .base_max = 1000, .update_max = 1000};
    kedge_site_times_default(&params.times);
    int err = kedge_site_init(s->core, kedge_site_size(1), &params, &s->core);
    KEDGE_ASSERT(err == KEDGE_OK);
    static struct kedge_site_effects fx;
    struct kedge_site_event ev = {
        .type = KEDGE_SITE_EV_START, .now_ns = c->now_ns, .memory = {.enrolled = true}};
    kedge_site_step(s->core, &ev, &fx);
    for (uint32_t i = 0; i < fx.count; i++) {
        bool poll = fx.items[i].type == KEDGE_SITE_FX_CALL && fx.items[i].call == KEDGE_SITE_CALL_POLL;
        s->serial[CROWD_POLL] = poll ? fx.items[i].serial : s->serial[CROWD_POLL];
    }
    KEDGE_ASSERT(s->serial[CROWD_POLL] != 0);
    return s;
}

void crowd_site_event(struct crowd *c, struct crowd_event *ev)
{
    struct crowd_site *s = crowd_site_find(c, ev->site);
    if (ev->type == CROWD_TO_SITE && ev->call == CROWD_POLL && !s) {
        s = wake(c, ev->site);
    } else if (!s || s->born != ev->born) {
        return; /* for what was thrown away */
    }
    if (ev->type == CROWD_TO_SITE) {
        ev->to_site.type = KEDGE_SITE_EV_REPLY;
        ev->to_site.serial = s->serial[ev->call];
        c->receipts += ev->to_site.reply.kind == KEDGE_SITE_REPLY_RECEIPT;
    } else if (ev->type == CROWD_SITE_TIMER) {
        ev->to_site.type = KEDGE_SITE_EV_TIMER;
        s->timer_ns = UINT64_MAX;
    }
    step(c, ev->site, s, &ev->to_site);
}
