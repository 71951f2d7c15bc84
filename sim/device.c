/* The sites' host: a clock of its own, calls that are answered once, a small disk, crashes.
 *
 * Like the coordinator's (server.c) with two differences that real devices have: their clock may begin
 * anywhere after a restart and may jump, so no time that was written before means anything after it; and what
 * they remember is one record (`stored`), which a crash leaves as the last write that came through. */
#include <string.h>

#include "sim/world.h"

static void set_timer(struct sim *w, uint32_t site)
{
    struct sim_device *d = &w->devices[site];
    uint64_t at = kedge_site_deadline_ns(d->core);
    if (at >= UINT64_MAX - 1) {
        return;
    }
    at = at < w->now_ns + d->clock_ns ? w->now_ns : at - d->clock_ns;
    if (at < d->timer_ns || d->timer_ns < w->now_ns) {
        d->timer_ns = at;
        struct sim_event *ev = sim_push(w, SIM_DEVICE_TIMER, at);
        ev->site = site;
        ev->term = d->term;
    }
}

static uint32_t trainings(const struct sim_device *d)
{
    struct kedge_site_view v;
    uint32_t n = 0;
    kedge_site_view(d->core, &v);
    for (uint32_t i = 0; i < v.work_count; i++) {
        n += v.works[i].state == KEDGE_SITE_TRAINING;
    }
    return n;
}

static bool tells_end(const struct kedge_site_effects *fx)
{
    bool tells = false;
    for (uint32_t i = 0; i < fx->count; i++) {
        tells =
            tells || (fx->items[i].type == KEDGE_SITE_FX_CALL && fx->items[i].call == KEDGE_SITE_CALL_ENDED);
    }
    return tells;
}

/* One event for the site's core, and its effects carried out. A training that failed must be told to the
 * coordinator in the same step: otherwise its round would wait for a site that has given up. A crash may come
 * between any two effects. */
static void step(struct sim *w, uint32_t site, struct kedge_site_event *ev, uint64_t leaf)
{
    static struct kedge_site_effects fx;
    struct sim_device *d = &w->devices[site];
    ev->now_ns = w->now_ns + d->clock_ns;
    uint32_t before = trainings(d);
    kedge_site_step(d->core, ev, &fx);
    if (ev->type == KEDGE_SITE_EV_TRAIN_FAILED && trainings(d) < before && !tells_end(&fx)) {
        sim_violate(w, "site %u does not tell that its training failed", site);
    }
    if (!kedge_site_is_valid(d->core)) {
        sim_violate(w, "site %u: invariants broken after event %d", site, (int)ev->type);
        return;
    }
    for (uint32_t i = 0; i < fx.count; i++) {
        bool starting = ev->type == KEDGE_SITE_EV_START;
        if (sim_chance(w, starting ? w->config.crash_loading : w->config.crash_midway)) {
            sim_device_crash(w, site, starting ? SIM_FAULT_SITE_CRASH_STARTING : SIM_FAULT_SITE_CRASH_MIDWAY);
            return;
        }
        sim_device_execute(w, site, &fx.items[i], leaf);
    }
    sim_check_asks(w, site);
    set_timer(w, site);
}

/* Did it pretrain since the shift, by what it remembers? */
static bool is_answered(const struct sim_device *d, uint32_t job)
{
    for (uint32_t i = 0; i < d->stored.shift_count; i++) {
        if (sim_job_of(&d->stored.shifts[i].job) == job) {
            return d->stored.shifts[i].answered;
        }
    }
    return false;
}

/* A shift of a site's data that was seen and not yet answered by a pretraining is seen again after the start:
 * the detector looks at the data, and these are still there. */
void sim_device_start(struct sim *w, uint32_t site)
{
    struct sim_device *d = &w->devices[site];
    struct kedge_site_params params = {.seed = w->seed * 4096 + site,
                                       .allow_all = !d->lazy,
                                       .base_max = 1000,
                                       .update_max = 1000,
                                       .works = d->works,
                                       .at_once = d->at_once};
    kedge_site_times_default(&params.times);
    if (d->lazy) { /* it is there, it asks, and it never does anything */
        params.times.refused_pause = 2 * SIM_SECOND;
    }
    KEDGE_ASSERT(kedge_site_size(KEDGE_SITE_WORKS_MAX) <= sizeof d->mem);
    memset(&d->mem, 0xa5, sizeof d->mem);
    int err = kedge_site_init(d->mem.bytes, sizeof d->mem, &params, &d->core);
    KEDGE_ASSERT(err == KEDGE_OK);
    kedge_site_rare_use(d->core, &w->site_rare);
    d->up = true;
    d->timer_ns = UINT64_MAX;
    memset(d->open_call, 0, sizeof d->open_call);
    memset(d->open_upload, 0, sizeof d->open_upload);
    d->poll = 0;
    d->heard = 0;
    if (w->config.clock_jumps > 0) { /* a monotonic clock begins anywhere */
        uint64_t clock = sim_below(w, 1000 * SIM_SECOND);
        w->fired[SIM_FAULT_CLOCK_BACK] += clock < d->clock_ns;
        d->clock_ns = clock;
    }
    struct kedge_site_event ev = {.type = KEDGE_SITE_EV_START, .memory = d->stored, .seen = d->seen};
    step(w, site, &ev, 0);
    sim_check_shift_kept(w, site);
    for (uint32_t i = 0; i < w->config.jobs; i++) {
        d->answered[i] = is_answered(d, i);
        if (d->shifted[i] && !d->answered[i]) {
            struct sim_event *again = sim_push(w, SIM_SHIFT, w->now_ns);
            again->site = site;
            again->job = i;
        }
    }
}

void sim_device_crash(struct sim *w, uint32_t site, enum sim_fault why)
{
    struct sim_device *d = &w->devices[site];
    if (!d->up) {
        return;
    }
    sim_count(w, why);
    const struct sim_event *last = NULL; /* of the writes under way a prefix is kept */
    for (uint32_t i = 0; i < w->queue_count; i++) {
        const struct sim_event *ev = w->queue[i];
        if (ev->type == SIM_DEVICE_DISK && ev->site == site && ev->term == d->term && sim_below(w, 2) == 0) {
            last = !last || ev->seq > last->seq ? ev : last;
        }
    }
    d->stored = last ? last->site_event.memory : d->stored;
    d->up = false;
    d->term++;
    sim_push(w, SIM_DEVICE_UP, w->now_ns + sim_below(w, 10 * SIM_SECOND))->site = site;
}

/* Calls may be lost or answered twice; the core has been promised one end for each. So the first answer, or
 * the time-out, closes the call and all later ones are dropped. */
static void answered(struct sim *w, const struct sim_event *answer, struct kedge_site_event *ev)
{
    struct sim_device *d = &w->devices[answer->site];
    for (uint32_t i = 0; i <= KEDGE_SITE_WORKS_MAX; i++) {
        if (answer->serial != 0 && d->open_call[i] == answer->serial) { /* each call is answered once */
            d->open_call[i] = 0;
            ev->serial = answer->serial;
            step(w, answer->site, ev, answer->weight);
            return;
        }
    }
}

/* Whose signature or proof does not hold is no answer. */
static void reply(struct sim *w, const struct sim_event *ev)
{
    struct sim_device *d = &w->devices[ev->site];
    struct kedge_site_event e = {.type = KEDGE_SITE_EV_REPLY, .reply = ev->reply};
    if (sim_inside(w, &d->cut_to_site)) {
        sim_count(w, SIM_FAULT_CUT_TO_SITE);
        return;
    }
    struct kedge_site_view view;
    kedge_site_view(d->core, &view);
    bool proves = ev->reply.kind == KEDGE_SITE_REPLY_RECEIPT || ev->reply.kind == KEDGE_SITE_REPLY_CLOSED;
    const struct kedge_site_result *sent = NULL;
    for (uint32_t i = 0; i < view.work_count; i++) {
        bool open = ev->serial != 0 && d->open_call[i] == ev->serial;
        sent = open ? view.works[i].result : sent;
    }
    if (proves && sent && !sim_check_proof(w, ev->site, ev, &sent->envelope)) {
        sim_violate(w, "site %u: the proof of its answer does not hold", ev->site);
        return;
    }
    answered(w, ev, &e);
}

static void disk_done(struct sim *w, struct sim_event *ev)
{
    struct sim_device *d = &w->devices[ev->site];
    bool full = sim_inside(w, &d->disk_full);
    bool lie = !full && sim_fault(w, SIM_FAULT_SITE_DISK_LIED, w->config.disk_lie);
    bool fail = !full && !lie && sim_fault(w, SIM_FAULT_SITE_DISK_FAILED, w->config.disk_fail);
    w->fired[SIM_FAULT_SITE_DISK_FULL] += full;
    if (!full && !fail) {
        d->stored = ev->site_event.memory;
        if (sim_chance(w, w->config.crash_written)) {
            sim_device_crash(w, ev->site, SIM_FAULT_SITE_CRASH_WRITTEN);
            return;
        }
    }
    struct kedge_site_event done = {.type = KEDGE_SITE_EV_PERSISTED, .serial = ev->serial};
    done.err = full || fail ? KEDGE_E_DISK_FULL : lie ? KEDGE_E_UNKNOWN : KEDGE_OK;
    step(w, ev->site, &done, 0);
}

/* The detector has seen it; it looks again after every start. */
static void shift(struct sim *w, uint32_t site, uint32_t job)
{
    struct sim_device *d = &w->devices[site];
    struct kedge_site_event e = {.type = KEDGE_SITE_EV_SHIFTED, .job = w->jobs[job].params.id};
    w->fired[SIM_FAULT_SHIFTED] += !d->shifted[job] || d->answered[job];
    d->shifted[job] = true;
    d->answered[job] = false;
    if (d->up) {
        step(w, site, &e, 0);
    }
}

static void timer(struct sim *w, uint32_t site)
{
    struct kedge_site_event e = {.type = KEDGE_SITE_EV_TIMER};
    w->devices[site].timer_ns = UINT64_MAX;
    step(w, site, &e, 0);
}

static void running(struct sim *w, struct sim_event *ev)
{
    struct kedge_site_event e = {.type = KEDGE_SITE_EV_CALL_FAILED, .err = KEDGE_E_TIMEOUT};
    if (ev->type == SIM_TO_DEVICE) {
        reply(w, ev);
    } else if (ev->type == SIM_CALL_TIMEOUT) {
        answered(w, ev, &e);
    } else if (ev->type == SIM_DEVICE_DISK) {
        disk_done(w, ev);
    } else if (ev->type == SIM_DEVICE_TIMER) {
        if (ev->at_ns == w->devices[ev->site].timer_ns) { /* or an earlier one came instead */
            timer(w, ev->site);
        }
    } else {
        KEDGE_ASSERT(ev->type == SIM_DEVICE_DONE);
        struct sim_device *at = &w->devices[ev->site];
        for (uint32_t i = 0; i < KEDGE_SITE_WORKS_MAX; i++) {
            at->open_upload[i] = at->open_upload[i] == ev->site_event.serial ? 0 : at->open_upload[i];
        }
        if (w->payload && ev->site_event.type == KEDGE_SITE_EV_TRAINED) {
            sim_device_worked(w, ev->site, &ev->site_event);
        }
        if (ev->site_event.type == KEDGE_SITE_EV_TRAINED
            && ev->site_event.results[0].kind == KEDGE_SITE_PRETRAIN) {
            struct sim_device *d = &w->devices[ev->site];
            uint32_t job = sim_job_of(&ev->site_event.results[0].job);
            d->answered[job] = d->shifted[job];
        }
        step(w, ev->site, &ev->site_event, 0);
    }
}

void sim_device_event(struct sim *w, struct sim_event *ev)
{
    struct sim_device *d = &w->devices[ev->site];
    if (ev->type == SIM_DEVICE_CRASH) {
        sim_device_crash(w, ev->site, SIM_FAULT_SITE_CRASH);
    } else if (ev->type == SIM_DEVICE_UP) {
        if (!d->up) {
            sim_device_start(w, ev->site);
        }
    } else if (ev->type == SIM_SHIFT) {
        shift(w, ev->site, ev->job);
    } else if (ev->type == SIM_CLOCK_JUMP) {
        if (d->up) {
            sim_count(w, SIM_FAULT_CLOCK_JUMP);
            d->clock_ns += ev->wait_ns;
            timer(w, ev->site);
        }
    } else if (d->up && ev->term == d->term) {
        running(w, ev);
    }
}
