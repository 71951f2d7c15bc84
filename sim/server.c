/* The coordinator's host in a simulated federation: steps of its core, completions, crashes, and what
 * operators and admins ask for.
 *
 * The core is the one that kedge-coordinator runs. Only its host is another: what the core asks for becomes
 * an event of the queue, later by as long as the seed says, and may fail there. A crash throws the core away.
 * What the world keeps outside of it (ledgers, main chain, jobs that are stored) is what a real coordinator
 * has on its disk, and a restart has nothing else (restart.c). */
#include <string.h>

#include "common/base/mem.h"
#include "sim/world.h"

enum { CHECK_SITES = 64, TURNS_MAX = 1000, PRETRAINED_FACTOR = 4 };

/* The core has fewer places for jobs than there are jobs, so a job may stand at one place before a restart
 * and at another after it, or wait for one. Who is in the core and who is outside is translated in
 * sim_server_step alone. */
bool sim_slot_take(struct sim *w, uint32_t job)
{
    for (uint32_t i = 0; i < w->config.slots; i++) {
        uint32_t former = w->server.slots[i];
        if (former == SIM_NONE || w->jobs[former].state >= KEDGE_JOB_COMPLETED) {
            if (former != SIM_NONE) {
                sim_count(w, SIM_FAULT_SLOT_AGAIN);
                w->jobs[former].slot = SIM_NONE;
            }
            w->server.slots[i] = job;
            w->jobs[job].slot = i;
            return true;
        }
    }
    return false;
}

struct kedge_coord_event sim_server_blank(enum kedge_coord_event_type type)
{
    struct kedge_coord_event ev;
    memset(&ev, 0, sizeof ev);
    ev.type = type;
    ev.tenant = ev.site = ev.request = ev.ticket = ev.group = ev.job = KEDGE_COORD_NONE;
    return ev;
}

/* A timer that is due already is not taken out of the queue when an earlier one comes: it is passed over when
 * it fires and is no longer the one that counts. */
static void set_timer(struct sim *w)
{
    struct sim_server *s = &w->server;
    uint64_t at = kedge_coord_deadline_ns(s->core);
    if (at == UINT64_MAX) {
        return;
    }
    at = at < w->now_ns + s->clock_ns ? w->now_ns : at - s->clock_ns;
    if (at < s->timer_ns || s->timer_ns < w->now_ns) {
        s->timer_ns = at;
        sim_push(w, SIM_SERVER_TIMER, at)->term = s->term;
    }
}

/* All invariants after every step; of large federations after some. */
static bool is_valid(const struct sim *w)
{
    uint32_t every = 1 + w->config.sites / CHECK_SITES * (w->config.sites / CHECK_SITES);
    return w->steps % every != 0 || kedge_coord_is_valid(w->server.core);
}

/* A crash in the midst of a step's effects is one of the places that a real host has: some effects were
 * carried out, others were not, and the core that knew of both is gone. Effects come in portions, as many as
 * its buffer holds; TURNS_MAX tells a core that would never come to an end. */
void sim_server_step(struct sim *w, struct kedge_coord_event *ev)
{
    static struct kedge_coord_effects fx;
    KEDGE_ASSERT(w->server.up);
    ev->now_ns = w->now_ns + w->server.clock_ns;
    sim_note(w, "coord", (uint64_t)ev->type, ev->site, ev->round);
    struct kedge_coord_event in = *ev; /* the core knows slots, we know jobs */
    in.job = ev->job == SIM_NONE ? SIM_NONE : w->jobs[ev->job].slot;
    bool more = kedge_coord_step(w->server.core, &in, &fx);
    for (int turn = 0; turn < TURNS_MAX; turn++) {
        for (uint32_t i = 0; i < fx.count; i++) {
            if (sim_chance(w, w->config.crash_midway)) {
                sim_server_crash(w, SIM_FAULT_SERVER_CRASH_MIDWAY);
                return;
            }
            fx.items[i].job = fx.items[i].job == SIM_NONE ? SIM_NONE : w->server.slots[fx.items[i].job];
            sim_check_effect(w, &fx.items[i]);
            sim_server_execute(w, &fx.items[i]);
        }
        if (!more) {
            break;
        }
        more = kedge_coord_more(w->server.core, &fx);
    }
    if (more || !is_valid(w)) {
        sim_violate(w, "coordinator: invariants broken after event %d", (int)ev->type);
    }
    set_timer(w);
}

/* The update that a statement names must have been uploaded before; uploads are kept only a few at a time, so
 * one may be missing by the time it is looked at. */
static int verify_blob(struct sim *w, const struct kedge_coord_effect *fx)
{
    const struct sim_ticket *t = sim_ticket_find(w, fx->ticket);
    KEDGE_ASSERT(t);
    if (sim_fault(w, SIM_FAULT_WORK_FAILED, w->config.work_fail)) {
        return KEDGE_E_BUSY;
    }
    const struct sim_device *d = &w->devices[t->site];
    for (uint32_t i = 0; i < SIM_UPLOADS_KEPT; i++) {
        if (memcmp(d->uploads[i].b, t->result.update.b, sizeof d->uploads[i].b) == 0) {
            int err = w->payload                       ? w->payload->verify(w->payload->arg, &d->uploads[i])
                      : t->result.update.b[31] == 0xbd ? KEDGE_E_BOUND /* 0xbd marks a bad update */
                                                       : KEDGE_OK;
            return err                                                          ? err
                   : sim_fault(w, SIM_FAULT_COMMIT_FAILED, w->config.blob_fail) ? SIM_UNSTORED_ERR
                                                                                : KEDGE_OK;
        }
    }
    return KEDGE_E_BLOB_MISSING;
}

static struct kedge_coord_event completion(const struct kedge_coord_effect *fx,
                                           enum kedge_coord_event_type type)
{
    struct kedge_coord_event c = sim_server_blank(type);
    c.tenant = fx->tenant;
    c.site = fx->site;
    c.job = fx->job;
    c.round = fx->round;
    c.group = fx->group;
    c.kind = fx->kind;
    c.ticket = fx->ticket;
    return c;
}

static void computed(struct sim *w, const struct kedge_coord_effect *fx)
{
    struct kedge_coord_event c = completion(fx, KEDGE_EV_ROUND_COMPUTED);
    struct sim_pending *p = &w->jobs[fx->job].pending;
    int err = sim_compute(w, fx->job, fx->keeps);
    uint32_t *sites = sim_new_array(w->config.sites, sizeof *sites);
    uint32_t *groups = sim_new_array(w->config.sites, sizeof *groups);
    for (uint32_t i = 0; i < w->config.sites; i++) {
        if (p->groups[i] != SIM_NONE) {
            sites[c.assigned_count] = i;
            groups[c.assigned_count++] = p->groups[i];
        }
    }
    c.err = sim_fault(w, SIM_FAULT_WORK_FAILED, w->config.work_fail) ? KEDGE_E_NOMEM : err;
    c.models = p->models;
    c.model_count = p->model_count;
    c.regroup = p->regroup;
    c.tries = p->tries;
    c.assigned_sites = sites;
    c.assigned_groups = groups;
    sim_server_step(w, &c);
    kedge_mem_free(sites);
    kedge_mem_free(groups);
}

static void work_done(struct sim *w, const struct kedge_coord_effect *fx)
{
    if (fx->type == KEDGE_FX_VERIFY) {
        struct kedge_coord_event c = completion(fx, KEDGE_EV_VERIFIED);
        c.err = verify_blob(w, fx);
        bool told = c.err == KEDGE_OK || c.err == SIM_UNSTORED_ERR;
        if (told) {
            sim_server_unstored(w, fx->job, fx->site, c.err);
        }
        sim_server_step(w, &c);
        if (told) {
            sim_check_unstored(w, fx->job, fx->site, c.err);
        }
        return;
    }
    if (fx->type == KEDGE_FX_ASSIGN) {
        struct kedge_coord_event c = completion(fx, KEDGE_EV_ASSIGNED);
        struct kedge_coord_job_view view;
        KEDGE_ASSERT(sim_job_view(w, fx->job, &view));
        const struct kedge_coord_row *row = sim_job_row(w, fx->job, fx->site);
        int err = sim_nearest(w, fx->job, fx->site, &row->pretrain.update, view.model_count, &c.group);
        c.err = sim_fault(w, SIM_FAULT_WORK_FAILED, w->config.work_fail) ? KEDGE_E_NOMEM : err;
        bool newcomer = row->group == SIM_NONE && view.params->entry != KEDGE_ENTRY_NEAREST;
        w->fired[SIM_FAULT_NEWCOMER] += c.err == KEDGE_OK && newcomer;
        sim_server_step(w, &c);
        return;
    }
    KEDGE_ASSERT(fx->type == KEDGE_FX_CLOSE_ROUND);
    computed(w, fx);
}

/* Groups are stated after what gives them, a close or a pretraining: then a restart has most to find. */
static bool crashes_grouping(struct sim *w, const struct kedge_coord_effect *fx)
{
    bool pretrained = fx->type == KEDGE_FX_APPEND && fx->kind == KEDGE_TASK_PRETRAIN && fx->round > 0;
    bool grouping = fx->type == KEDGE_FX_MAIN_ROUND_CLOSED || pretrained;
    uint32_t rate = !grouping ? 0 : w->jobs[fx->job].crash_grouping * (pretrained ? PRETRAINED_FACTOR : 1);
    return rate > 0 && sim_chance(w, rate);
}

/* Four ends of a write: done; failed and not done; done although it said that it failed (the disk lied);
 * done, and a crash before the core hears of it. The third and fourth are the hard ones: what the core
 * believes not to be durable is, so it must find it again instead of writing it twice. */
static void disk_done(struct sim *w, const struct kedge_coord_effect *fx)
{
    enum kedge_coord_event_type type = fx->type == KEDGE_FX_APPEND            ? KEDGE_EV_APPENDED
                                       : fx->type == KEDGE_FX_APPEND_ASSIGNED ? KEDGE_EV_ASSIGN_APPENDED
                                                                              : KEDGE_EV_MAIN_APPENDED;
    struct kedge_coord_event c = completion(fx, type);
    bool full = sim_inside(w, &w->server.disk_full);
    bool lie = !full && sim_fault(w, SIM_FAULT_DISK_LIED, w->config.disk_lie);
    bool fail = !full && !lie && sim_fault(w, SIM_FAULT_DISK_FAILED, w->config.disk_fail);
    w->fired[SIM_FAULT_DISK_FULL] += full;
    if (!full && !fail) {
        c.err = sim_write(w, fx, &c.leaf);
        if (sim_chance(w, w->config.crash_written) || crashes_grouping(w, fx)) {
            sim_server_crash(w, SIM_FAULT_SERVER_CRASH_WRITTEN);
            return;
        }
    }
    c.err = full || fail ? KEDGE_E_DISK_FULL : lie ? KEDGE_E_UNKNOWN : c.err;
    sim_server_step(w, &c);
}

static void join_done(struct sim *w, const struct sim_event *ev)
{
    struct sim_entry e = {.type = SIM_JOINED, .site = SIM_NONE, .job = ev->job};
    struct kedge_coord_event c = sim_server_blank(KEDGE_EV_JOB_JOINED);
    struct kedge_coord_job_view view;
    c.job = ev->job;
    c.tenant = ev->site; /* a tenant here */
    uint64_t leaf;
    int err = sim_ledger_append(w, ev->site, &e, &leaf);
    KEDGE_ASSERT(err == KEDGE_OK);
    if (sim_job_view(w, ev->job, &view)) {
        sim_server_step(w, &c);
    }
}

static void again(struct sim *w, const struct sim_event *ev, enum sim_event_type type)
{
    struct sim_event *next = sim_push(w, type, w->now_ns + SIM_SECOND);
    next->site = ev->site;
    next->job = ev->job;
}

static void revoke(struct sim *w, const struct sim_event *ev)
{
    struct sim_device *d = &w->devices[ev->site];
    if (!d->enrolled || d->lazy) {
        return; /* lazy sites stay, to be a burden */
    }
    struct sim_event *op = sim_push(w, SIM_SERVER_REVOKE, sim_disk(w, &w->ledgers[d->tenant].busy_ns, NULL));
    op->site = ev->site;
    op->term = w->server.term;
    struct kedge_coord_event c = sim_server_blank(KEDGE_EV_SITE_REVOKED);
    c.site = ev->site;
    c.tenant = d->tenant;
    d->revoked_told = true;
    sim_server_step(w, &c);
}

/* A revocation counts only when it is durable: the admin asks again until it is, whatever happened
 * between. */
static void revoke_done(struct sim *w, const struct sim_event *ev)
{
    struct sim_entry e = {.type = SIM_REVOKED, .site = ev->site};
    uint64_t leaf;
    if (ev->term != w->server.term || !w->server.up
        || sim_fault(w, SIM_FAULT_DISK_FAILED, w->config.disk_fail)) {
        again(w, ev, SIM_REVOKE); /* the admin asks until it is durable */
        return;
    }
    w->fired[SIM_FAULT_REVOKED] += !w->devices[ev->site].revoked;
    int err = sim_ledger_append(w, w->devices[ev->site].tenant, &e, &leaf);
    KEDGE_ASSERT(err == KEDGE_OK);
}

static void submit_job(struct sim *w, uint32_t job)
{
    struct sim_job *j = &w->jobs[job];
    if (!sim_slot_take(w, job)) {
        again(w, &(struct sim_event){.job = job}, SIM_SUBMIT_JOB);
        return;
    }
    j->stored = true;
    j->state = KEDGE_JOB_PENDING;
    struct kedge_coord_event c = sim_server_blank(KEDGE_EV_JOB_SUBMIT);
    c.job = job;
    c.params = &j->params;
    c.models = j->begin;
    c.model_count = kedge_coord_first_models(&j->params);
    sim_server_step(w, &c);
}

static void operate(struct sim *w, const struct sim_event *ev)
{
    struct sim_job *j = &w->jobs[ev->job];
    if (!j->stored) {
        if (ev->type == SIM_CANCEL) {
            again(w, ev, ev->type);
        }
        return;
    }
    j->cancel_wanted = j->cancel_wanted || ev->type == SIM_CANCEL;
    if (j->slot == SIM_NONE) {
        return; /* it has ended */
    }
    for (uint32_t i = 0; i < w->config.sites && ev->type == SIM_RESUME; i++) {
        sim_able_heard(w, i, ev->job, true, NULL); /* all are asked once more */
    }
    w->fired[SIM_FAULT_HALT] += ev->type == SIM_HALT;
    w->fired[SIM_FAULT_CANCEL] += ev->type == SIM_CANCEL;
    struct kedge_coord_event c = sim_server_blank(ev->type == SIM_HALT     ? KEDGE_EV_JOB_HALT
                                                  : ev->type == SIM_RESUME ? KEDGE_EV_JOB_RESUME
                                                                           : KEDGE_EV_JOB_CANCEL);
    c.job = ev->job;
    sim_server_step(w, &c);
}

static void enrol(struct sim *w, uint32_t site)
{
    w->devices[site].enrolled = true;
    if (w->server.up) {
        struct kedge_coord_event c = sim_server_blank(KEDGE_EV_SITE_ADDED);
        c.site = site;
        c.tenant = w->devices[site].tenant;
        sim_site_id(w, site, &c.id);
        sim_server_step(w, &c);
    }
}

/* Events that come from outside and are tried again while the coordinator is down. */
static void outside(struct sim *w, const struct sim_event *ev)
{
    if (ev->type == SIM_ENROL) {
        enrol(w, ev->site);
        return;
    }
    bool early = ev->type == SIM_JOIN && !w->jobs[ev->job].stored;
    if (!w->server.up || early) {
        again(w, ev, ev->type);
    } else if (ev->type == SIM_REVOKE) {
        revoke(w, ev);
    } else if (ev->type == SIM_JOIN) {
        struct sim_event *op = sim_push(w, SIM_SERVER_JOIN, sim_disk(w, &w->ledgers[ev->site].busy_ns, NULL));
        op->site = ev->site;
        op->job = ev->job;
        op->term = w->server.term;
    } else if (ev->type == SIM_SUBMIT_JOB) {
        submit_job(w, ev->job);
    } else {
        operate(w, ev);
    }
}

/* Of the writes under way a crash keeps those that the disk was quick enough for: a prefix, for each log is
 * in order. */
static void keep_writes(struct sim *w)
{
    for (uint64_t next = 0; next != UINT64_MAX;) {
        const struct sim_event *first = NULL;
        for (uint32_t i = 0; i < w->queue_count; i++) {
            const struct sim_event *ev = w->queue[i];
            bool write = ev->type == SIM_SERVER_DISK && ev->term == w->server.term && ev->seq >= next;
            first = write && (!first || ev->seq < first->seq) ? ev : first;
        }
        next = first ? first->seq + 1 : UINT64_MAX;
        uint64_t leaf;
        if (first && sim_below(w, 2) == 0) {
            (void)!sim_write(w, &first->effect, &leaf);
            sim_count(w, SIM_FAULT_SERVER_WRITES_KEPT);
        } else {
            next = UINT64_MAX;
        }
    }
}

void sim_server_crash(struct sim *w, enum sim_fault why)
{
    struct sim_server *s = &w->server;
    if (!s->up) {
        return;
    }
    sim_count(w, why);
    keep_writes(w);
    sim_note(w, "server down", s->term, 0, 0);
    s->up = false;
    s->term++;
    sim_able_forgotten(w);
    for (uint32_t i = 0; i < w->config.sites; i++) {
        struct sim_device *d = &w->devices[i];
        for (uint32_t j = 0; j < SIM_JOBS_MAX; j++) {
            d->upload_err[j] = KEDGE_OK;
            d->unstored_round[j] = SIM_NONE;
        }
        if (d->upload_count > 0 && sim_below(w, 3) == 0) { /* the last one was not synced */
            memset(&d->uploads[(d->upload_count - 1) % SIM_UPLOADS_KEPT], 0, sizeof d->uploads[0]);
            sim_count(w, SIM_FAULT_UPLOAD_LOST);
        }
    }
    sim_push(w, SIM_SERVER_UP, w->now_ns + sim_below(w, 3 * SIM_SECOND));
}

static void timer(struct sim *w)
{
    struct kedge_coord_event c = sim_server_blank(KEDGE_EV_TIMER);
    w->server.timer_ns = UINT64_MAX;
    sim_server_step(w, &c);
}

static void done(struct sim *w, struct sim_event *ev)
{
    if (ev->type == SIM_SERVER_DONE) {
        work_done(w, &ev->effect);
    } else if (ev->type == SIM_SERVER_DISK) {
        disk_done(w, &ev->effect);
    } else if (ev->at_ns == w->server.timer_ns) { /* or an earlier one came instead */
        timer(w);
    }
}

void sim_server_event(struct sim *w, struct sim_event *ev)
{
    struct sim_server *s = &w->server;
    bool current = s->up && ev->term == s->term;
    switch (ev->type) {
    case SIM_TO_SERVER:
        sim_server_receive(w, ev);
        return;
    case SIM_UPLOAD:
        sim_server_upload(w, ev);
        return;
    case SIM_HANG_UP:
        sim_server_hang_up(w, ev);
        return;
    case SIM_SERVER_DONE:
    case SIM_SERVER_DISK:
    case SIM_SERVER_TIMER:
        if (current) {
            done(w, ev);
        }
        return;
    case SIM_SERVER_JOIN:
        if (current && !sim_fault(w, SIM_FAULT_DISK_FAILED, w->config.disk_fail)) {
            join_done(w, ev);
        } else {
            again(w, ev, SIM_JOIN);
        }
        return;
    case SIM_SERVER_REVOKE:
        revoke_done(w, ev);
        return;
    case SIM_SERVER_CRASH:
        sim_server_crash(w, SIM_FAULT_SERVER_CRASH);
        return;
    case SIM_SERVER_CLOCK_JUMP:
        if (s->up) {
            sim_count(w, SIM_FAULT_SERVER_CLOCK_JUMP);
            s->clock_ns += ev->wait_ns;
            timer(w);
        }
        return;
    case SIM_SERVER_UP:
        if (!s->up) {
            sim_server_start(w);
        }
        if (s->up) {
            set_timer(w);
        }
        return;
    case SIM_ENROL:
    case SIM_REVOKE:
    case SIM_JOIN:
    case SIM_SUBMIT_JOB:
    case SIM_HALT:
    case SIM_RESUME:
    case SIM_CANCEL:
        outside(w, ev);
        return;
    case SIM_TO_DEVICE:
    case SIM_CALL_TIMEOUT:
    case SIM_DEVICE_DONE:
    case SIM_DEVICE_DISK:
    case SIM_DEVICE_TIMER:
    case SIM_CLOCK_JUMP:
    case SIM_DEVICE_CRASH:
    case SIM_DEVICE_UP:
    case SIM_SHIFT:
    case SIM_HEAL:
        break;
    }
    KEDGE_ASSERT(false);
}
