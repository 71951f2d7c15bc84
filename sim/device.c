/* The sites' host: calls through the network, training that takes its time, a small disk. */
#include <string.h>

#include "sim/world.h"

uint32_t sim_job_of(const struct kedge_id *id)
{
    return id->s[0] == 'j' && id->s[1] >= '0' && id->s[1] <= '9' ? (uint32_t)(id->s[1] - '0')
                                                                 : KEDGE_COORD_NONE;
}

struct kedge_digest sim_sign(uint32_t site, const struct kedge_site_result *result, uint64_t weight)
{
    struct kedge_site_digest facts[2] = {result->base, result->update};
    uint64_t key = UINT64_C(0x9e3779b97f4a7c15) * (site + 1);
    uint64_t what = (uint64_t)result->round << 40 | (uint64_t)(result->group & 0xff) << 32
                    | (uint64_t)result->kind << 16 | sim_job_of(&result->job);
    return sim_digest(key, what, weight, facts, sizeof facts);
}

static uint64_t weight_of(const struct kedge_site_result *result)
{
    return result->update.b[30] == 0xbd ? 101 : 1u + result->update.b[30] % 100u; /* 101 is over the limit */
}

static void set_timer(struct sim *w, uint32_t site)
{
    struct sim_device *d = &w->devices[site];
    uint64_t at = kedge_site_deadline_ns(d->core);
    at = at < w->now_ns ? w->now_ns : at;
    if (at < UINT64_MAX - 1 && (at < d->timer_ns || d->timer_ns < w->now_ns)) {
        d->timer_ns = at;
        struct sim_event *ev = sim_push(w, SIM_DEVICE_TIMER, at);
        ev->site = site;
        ev->term = d->term;
    }
}

static struct sim_event *push_for(struct sim *w, enum sim_event_type type, uint64_t at_ns, uint32_t site,
                                  uint64_t serial)
{
    struct sim_event *ev = sim_push(w, type, at_ns);
    ev->site = site;
    ev->term = w->devices[site].term;
    ev->serial = ev->site_event.serial = serial;
    return ev;
}

static struct kedge_site_digest as_site(const struct kedge_digest *d)
{
    struct kedge_site_digest out;
    memcpy(out.b, d->b, sizeof out.b);
    return out;
}

/* A site that signs twice for one task: the coordinator must count it once. */
static void send_other_face(struct sim *w, uint32_t site, const struct kedge_site_result *result)
{
    struct kedge_site_result other = *result;
    struct kedge_digest update = sim_digest(w->seq, site, result->round, "other", 5);
    update.b[30] = update.b[31] = 1;
    other.update = as_site(&update);
    uint64_t weight = weight_of(&other);
    struct kedge_digest envelope = sim_sign(site, &other, weight);
    other.envelope = as_site(&envelope);
    w->blobs[w->blob_count++ % SIM_BLOBS_MAX] = update;
    struct sim_event *ev = push_for(w, SIM_TO_SERVER, w->now_ns + 2 * sim_delay(w), site, 0);
    ev->call = KEDGE_SITE_CALL_SUBMIT;
    ev->result = other;
    ev->weight = weight;
}

static void call(struct sim *w, uint32_t site, const struct kedge_site_effect *fx)
{
    struct sim_device *d = &w->devices[site];
    d->open_call[fx->busy ? 1 : 0] = fx->serial;
    uint64_t wait = fx->call == KEDGE_SITE_CALL_POLL ? fx->wait_ns : 0;
    push_for(w, SIM_CALL_TIMEOUT, w->now_ns + wait + 5 * SIM_SECOND, site, fx->serial);
    if (fx->call == KEDGE_SITE_CALL_SUBMIT) {
        sim_check_sent(w, site, &fx->result);
        if (sim_chance(w, w->config.two_faced)) {
            send_other_face(w, site, &fx->result);
        }
    }
    if (sim_chance(w, w->config.loss)) {
        return;
    }
    for (int copies = sim_chance(w, w->config.duplicate) ? 2 : 1; copies > 0; copies--) {
        struct sim_event *ev = push_for(w, SIM_TO_SERVER, w->now_ns + sim_delay(w), site, fx->serial);
        ev->call = fx->call;
        ev->wait_ns = fx->wait_ns;
        ev->busy = fx->busy;
        ev->result = fx->result;
        ev->weight = weight_of(&fx->result);
    }
}

static void fetch(struct sim *w, uint32_t site, const struct kedge_site_effect *fx)
{
    struct sim_event *ev = push_for(w, SIM_DEVICE_DONE, w->now_ns + 2 * sim_delay(w), site, fx->serial);
    struct kedge_digest model;
    memcpy(model.b, fx->digest.b, sizeof model.b);
    uint32_t job = sim_job_of(&fx->task.job);
    int err = KEDGE_OK;
    if (!w->server.up || sim_chance(w, w->config.loss)) {
        err = KEDGE_E_UNREACHABLE;
    } else if (fx->blob == KEDGE_SITE_BLOB_MODEL
               && !kedge_coord_may_read(w->server.core, job, site, &model)) {
        err = KEDGE_E_NOT_FOUND;
    } else if (fx->blob == KEDGE_SITE_BLOB_MODEL) {
        sim_check_fetched(w, site, job, &model);
    }
    ev->site_event.type = err == KEDGE_OK ? KEDGE_SITE_EV_FETCHED : KEDGE_SITE_EV_FETCH_FAILED;
    ev->site_event.err = err;
}

static void put_result(struct sim *w, uint32_t site, const struct kedge_site_task *task,
                       enum kedge_site_kind kind, struct kedge_site_event *ev)
{
    struct kedge_site_result *r = &ev->results[ev->result_count++];
    r->job = task->job;
    r->kind = kind;
    r->round = kind == KEDGE_SITE_EVALUATE && task->kind == KEDGE_SITE_TRAIN ? task->round - 1 : task->round;
    r->group = task->group;
    r->base = task->base;
    if (kind != KEDGE_SITE_EVALUATE) { /* training is not repeatable: every attempt yields other weights */
        struct kedge_digest update = sim_digest(w->seq, site, task->round, &task->base, sizeof task->base);
        uint64_t bad = sim_chance(w, w->config.bad) ? 1 + sim_below(w, 2) : 0;
        update.b[31] = bad == 1 ? 0xbd : (uint8_t)(update.b[31] & 0x3f);
        update.b[30] = bad == 2 ? 0xbd : (uint8_t)(update.b[30] & 0x3f);
        r->update = as_site(&update);
        r->update_len = task->update_len;
    }
    struct kedge_digest envelope = sim_sign(site, r, weight_of(r));
    r->envelope = as_site(&envelope);
}

static void train(struct sim *w, uint32_t site, const struct kedge_site_effect *fx)
{
    uint64_t ms = 1 + sim_below(w, w->config.train_ms);
    ms = sim_chance(w, 20) ? 20 * ms : ms; /* a slow one */
    struct sim_event *ev = push_for(w, SIM_DEVICE_DONE, w->now_ns + ms * 1000000, site, fx->serial);
    struct kedge_site_event *done = &ev->site_event;
    if (sim_chance(w, w->config.train_fail)) {
        done->type = KEDGE_SITE_EV_TRAIN_FAILED;
        done->err = KEDGE_E_TRAINER;
        return;
    }
    done->type = KEDGE_SITE_EV_TRAINED;
    put_result(w, site, &fx->task, fx->task.kind, done);
    if (fx->task.evaluate_base) {
        put_result(w, site, &fx->task, KEDGE_SITE_EVALUATE, done);
    }
}

static void note_effect(struct sim *w, uint32_t site, const struct kedge_site_effect *fx)
{
    uint64_t what = (uint64_t)fx->type << 32 | (uint64_t)fx->call << 16 | (uint64_t)fx->note;
    sim_note(w, "site", site, what, fx->serial ^ (uint64_t)(uint32_t)fx->err);
}

static void execute(struct sim *w, uint32_t site, const struct kedge_site_effect *fx, uint64_t leaf)
{
    struct sim_device *d = &w->devices[site];
    note_effect(w, site, fx);
    switch (fx->type) {
    case KEDGE_SITE_FX_CALL:
        call(w, site, fx);
        return;
    case KEDGE_SITE_FX_FETCH:
        fetch(w, site, fx);
        return;
    case KEDGE_SITE_FX_TRAIN:
        train(w, site, fx);
        return;
    case KEDGE_SITE_FX_UPLOAD:
        push_for(w, SIM_UPLOAD, w->now_ns + sim_delay(w), site, fx->serial)->result = fx->result;
        return;
    case KEDGE_SITE_FX_PERSIST: {
        struct sim_event *ev = push_for(w, SIM_DEVICE_DISK, sim_disk(w, &d->disk_busy_ns), site, fx->serial);
        ev->site_event.memory = fx->memory;
        return;
    }
    case KEDGE_SITE_FX_FORGET:
        sim_check_settled(w, site, &fx->result);
        return;
    case KEDGE_SITE_FX_LOG:
        if (fx->note == KEDGE_SITE_NOTE_RECEIPT && d->ack_count < SIM_LEDGER_MAX / 8) {
            struct sim_ack *ack = &d->acks[d->ack_count++];
            ack->leaf = (uint32_t)leaf;
            memcpy(ack->envelope.b, fx->result.envelope.b, sizeof ack->envelope.b);
        }
        return;
    case KEDGE_SITE_FX_ABORT:
        return;
    }
}

static void step(struct sim *w, uint32_t site, struct kedge_site_event *ev, uint64_t leaf)
{
    static struct kedge_site_effects fx;
    struct sim_device *d = &w->devices[site];
    ev->now_ns = w->now_ns;
    kedge_site_step(d->core, ev, &fx);
    if (!kedge_site_is_valid(d->core)) {
        sim_violate(w, "site %u: invariants broken after event %d", site, (int)ev->type);
    }
    for (uint32_t i = 0; i < fx.count; i++) {
        execute(w, site, &fx.items[i], leaf);
    }
    set_timer(w, site);
}

void sim_device_start(struct sim *w, uint32_t site)
{
    struct sim_device *d = &w->devices[site];
    struct kedge_site_params params = {
        .seed = w->seed * 64 + site, .allow_all = !d->lazy, .base_max = 1000, .update_max = 1000};
    kedge_site_times_default(&params.times);
    if (d->lazy) { /* it is there, it asks, and it never does anything */
        params.times.refused_pause = 2 * SIM_SECOND;
    }
    KEDGE_ASSERT(kedge_site_size() <= sizeof d->mem);
    memset(&d->mem, 0xa5, sizeof d->mem);
    KEDGE_ASSERT(kedge_site_init(d->mem.bytes, sizeof d->mem, &params, &d->core) == KEDGE_OK);
    d->up = true;
    d->timer_ns = UINT64_MAX;
    d->open_call[0] = d->open_call[1] = 0;
    struct kedge_site_event ev = {.type = KEDGE_SITE_EV_START, .memory = d->stored};
    step(w, site, &ev, 0);
}

void sim_device_crash(struct sim *w, uint32_t site)
{
    struct sim_device *d = &w->devices[site];
    if (!d->up) {
        return;
    }
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

static void answered(struct sim *w, uint32_t site, uint64_t serial, struct kedge_site_event *ev,
                     uint64_t leaf)
{
    struct sim_device *d = &w->devices[site];
    for (int i = 0; i < 2; i++) {
        if (serial != 0 && d->open_call[i] == serial) { /* each call is answered once */
            d->open_call[i] = 0;
            ev->serial = serial;
            step(w, site, ev, leaf);
            return;
        }
    }
}

static void disk_done(struct sim *w, struct sim_event *ev)
{
    struct sim_device *d = &w->devices[ev->site];
    bool fail = sim_chance(w, w->config.disk_fail), lie = sim_chance(w, w->config.disk_lie);
    if (!fail || lie) {
        d->stored = ev->site_event.memory;
    }
    struct kedge_site_event done = {.type = KEDGE_SITE_EV_PERSISTED, .serial = ev->serial};
    done.err = fail || lie ? KEDGE_E_DISK_FULL : KEDGE_OK;
    step(w, ev->site, &done, 0);
}

void sim_device_event(struct sim *w, struct sim_event *ev)
{
    struct sim_device *d = &w->devices[ev->site];
    if (ev->type == SIM_DEVICE_CRASH) {
        sim_device_crash(w, ev->site);
        return;
    }
    if (ev->type == SIM_DEVICE_UP) {
        if (!d->up) {
            sim_device_start(w, ev->site);
        }
        return;
    }
    if (!d->up || ev->term != d->term) {
        return;
    }
    struct kedge_site_event e = {.type = KEDGE_SITE_EV_TIMER};
    if (ev->type == SIM_TO_DEVICE) {
        e.type = KEDGE_SITE_EV_REPLY;
        e.reply = ev->reply;
        answered(w, ev->site, ev->serial, &e, ev->weight);
    } else if (ev->type == SIM_CALL_TIMEOUT) {
        e.type = KEDGE_SITE_EV_CALL_FAILED;
        e.err = KEDGE_E_TIMEOUT;
        answered(w, ev->site, ev->serial, &e, 0);
    } else if (ev->type == SIM_DEVICE_DISK) {
        disk_done(w, ev);
    } else if (ev->type == SIM_DEVICE_TIMER) {
        d->timer_ns = UINT64_MAX;
        step(w, ev->site, &e, 0);
    } else {
        KEDGE_ASSERT(ev->type == SIM_DEVICE_DONE);
        step(w, ev->site, &ev->site_event, 0);
    }
}
