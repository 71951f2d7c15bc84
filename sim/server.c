/* The coordinator's host: requests, completions, crashes. */
#include <string.h>

#include "common/base/mem.h"
#include "sim/world.h"

struct kedge_coord_event sim_server_blank(const struct sim *w, enum kedge_coord_event_type type)
{
    struct kedge_coord_event ev;
    memset(&ev, 0, sizeof ev);
    ev.type = type;
    ev.now_ns = w->now_ns;
    ev.tenant = ev.site = ev.request = ev.ticket = ev.group = ev.job = KEDGE_COORD_NONE;
    return ev;
}

static void set_timer(struct sim *w)
{
    struct sim_server *s = &w->server;
    uint64_t at = kedge_coord_deadline_ns(s->core);
    at = at < w->now_ns ? w->now_ns : at;
    if (at != UINT64_MAX && (at < s->timer_ns || s->timer_ns < w->now_ns)) {
        s->timer_ns = at;
        sim_push(w, SIM_SERVER_TIMER, at)->term = s->term;
    }
}

void sim_server_step(struct sim *w, struct kedge_coord_event *ev)
{
    static struct kedge_coord_effects fx;
    KEDGE_ASSERT(w->server.up);
    ev->now_ns = w->now_ns;
    sim_note(w, "coord", (uint64_t)ev->type, ev->site, ev->round);
    bool more = kedge_coord_step(w->server.core, ev, &fx);
    for (int turn = 0; turn < 1000; turn++) {
        for (uint32_t i = 0; i < fx.count; i++) {
            sim_check_effect(w, &fx.items[i]);
            sim_server_execute(w, &fx.items[i]);
        }
        if (!more) {
            break;
        }
        more = kedge_coord_more(w->server.core, &fx);
    }
    if (more || !kedge_coord_is_valid(w->server.core)) {
        sim_violate(w, "coordinator: invariants broken after event %d", (int)ev->type);
    }
    set_timer(w);
}

static uint32_t request_new(struct sim *w, const struct sim_event *ev)
{
    uint32_t id = w->server.request_count++;
    struct sim_request *r = &w->server.requests[id % SIM_REQUESTS_MAX];
    *r = (struct sim_request){.used = true, .site = ev->site, .term = ev->term, .serial = ev->serial};
    return id;
}

static void answer_at_once(struct sim *w, const struct sim_event *ev, const struct kedge_site_reply *reply)
{
    struct sim_event *back = sim_push(w, SIM_TO_DEVICE, w->now_ns + sim_delay(w));
    back->site = ev->site;
    back->term = ev->term;
    back->serial = ev->serial;
    back->reply = *reply;
}

static enum kedge_task_kind kind_of(enum kedge_site_kind kind)
{
    return kind == KEDGE_SITE_PRETRAIN ? KEDGE_TASK_PRETRAIN
           : kind == KEDGE_SITE_TRAIN  ? KEDGE_TASK_TRAIN
                                       : KEDGE_TASK_EVALUATE;
}

static void submit(struct sim *w, const struct sim_event *ev)
{
    const struct kedge_site_result *r = &ev->result;
    uint32_t id = w->server.ticket_count++;
    struct sim_ticket *t = &w->server.tickets[id % SIM_TICKETS_MAX];
    KEDGE_ASSERT(!t->used);
    *t = (struct sim_ticket){.used = true,
                             .site = ev->site,
                             .result = *r,
                             .weight = ev->weight,
                             .after_revoked = w->devices[ev->site].revoked_told};
    struct kedge_coord_event c = sim_server_blank(w, KEDGE_EV_SUBMIT);
    struct kedge_coord_job_view view;
    c.site = ev->site;
    c.tenant = w->devices[ev->site].tenant;
    c.job = sim_job_of(&r->job);
    if (c.job >= w->config.jobs || !kedge_coord_job(w->server.core, c.job, &view)) {
        c.job = KEDGE_COORD_NONE;
    }
    c.kind = kind_of(r->kind);
    c.round = r->round;
    c.group = r->group == KEDGE_SITE_NONE ? KEDGE_COORD_NONE : r->group;
    c.weight = ev->weight;
    c.request = request_new(w, ev);
    c.ticket = id;
    memcpy(c.base.b, r->base.b, sizeof c.base.b);
    memcpy(c.update.b, r->update.b, sizeof c.update.b);
    memcpy(c.envelope.b, r->envelope.b, sizeof c.envelope.b);
    sim_server_step(w, &c);
}

static void receive(struct sim *w, const struct sim_event *ev)
{
    const struct sim_device *d = &w->devices[ev->site];
    struct kedge_site_reply reply = {.kind = KEDGE_SITE_REPLY_ERROR, .err = KEDGE_E_NOT_ENROLLED};
    if (ev->call == KEDGE_SITE_CALL_ENROLL) {
        reply.kind = KEDGE_SITE_REPLY_ENROLLED;
        reply.active = d->enrolled;
        answer_at_once(w, ev, &reply);
    } else if (!d->enrolled) {
        answer_at_once(w, ev, &reply);
    } else if (ev->call == KEDGE_SITE_CALL_POLL) {
        struct kedge_coord_event c = sim_server_blank(w, KEDGE_EV_POLL);
        c.site = ev->site;
        c.tenant = d->tenant;
        c.request = request_new(w, ev);
        c.wait_ns = ev->wait_ns;
        c.busy = ev->busy;
        sim_server_step(w, &c);
    } else {
        struct kedge_digest signature = sim_sign(ev->site, &ev->result, ev->weight);
        if (memcmp(signature.b, ev->result.envelope.b, sizeof signature.b) != 0) {
            reply.err = KEDGE_E_VERIFY;
            answer_at_once(w, ev, &reply);
        } else {
            submit(w, ev);
        }
    }
}

static void take_upload(struct sim *w, const struct sim_event *ev)
{
    struct sim_event *back = sim_push(w, SIM_DEVICE_DONE, w->now_ns + sim_delay(w));
    back->site = ev->site;
    back->term = ev->term;
    back->site_event.serial = ev->serial;
    int err = !w->server.up || sim_chance(w, w->config.loss) ? KEDGE_E_UNREACHABLE : KEDGE_E_NOT_ENROLLED;
    if (w->server.up && err != KEDGE_E_UNREACHABLE && w->devices[ev->site].enrolled) {
        err = kedge_coord_may_upload(w->server.core, sim_job_of(&ev->result.job), ev->site, ev->result.round);
    }
    back->site_event.type = err == KEDGE_OK ? KEDGE_SITE_EV_UPLOADED : KEDGE_SITE_EV_UPLOAD_FAILED;
    back->site_event.err = err;
    if (err == KEDGE_OK) {
        memcpy(w->blobs[w->blob_count++ % SIM_BLOBS_MAX].b, ev->result.update.b, sizeof w->blobs[0].b);
    }
}

static int verify_blob(struct sim *w, const struct kedge_coord_effect *fx)
{
    const struct sim_ticket *t = &w->server.tickets[fx->ticket % SIM_TICKETS_MAX];
    KEDGE_ASSERT(t->used);
    if (sim_chance(w, w->config.work_fail)) {
        return KEDGE_E_BUSY;
    }
    for (uint32_t i = 0; i < SIM_BLOBS_MAX; i++) {
        if (memcmp(w->blobs[i].b, t->result.update.b, sizeof w->blobs[i].b) == 0) {
            return t->result.update.b[31] == 0xbd ? KEDGE_E_BOUND : KEDGE_OK; /* 0xbd marks a bad update */
        }
    }
    return KEDGE_E_BLOB_MISSING;
}

static struct kedge_coord_event completion(const struct sim *w, const struct kedge_coord_effect *fx,
                                           enum kedge_coord_event_type type)
{
    struct kedge_coord_event c = sim_server_blank(w, type);
    c.tenant = fx->tenant;
    c.site = fx->site;
    c.job = fx->job;
    c.round = fx->round;
    c.group = fx->group;
    c.kind = fx->kind;
    c.ticket = fx->ticket;
    return c;
}

static void work_done(struct sim *w, const struct kedge_coord_effect *fx)
{
    if (fx->type == KEDGE_FX_VERIFY) {
        struct kedge_coord_event c = completion(w, fx, KEDGE_EV_VERIFIED);
        c.err = verify_blob(w, fx);
        sim_server_step(w, &c);
        return;
    }
    if (fx->type == KEDGE_FX_ASSIGN) {
        struct kedge_coord_event c = completion(w, fx, KEDGE_EV_ASSIGNED);
        struct kedge_coord_job_view view;
        KEDGE_ASSERT(kedge_coord_job(w->server.core, fx->job, &view));
        const struct kedge_coord_row *row = kedge_coord_row(w->server.core, fx->job, fx->site);
        c.group = sim_group_of(&row->pretrain.update, view.model_count);
        c.err = sim_chance(w, w->config.work_fail) ? KEDGE_E_NOMEM : KEDGE_OK;
        sim_server_step(w, &c);
        return;
    }
    KEDGE_ASSERT(fx->type == KEDGE_FX_CLOSE_ROUND);
    struct kedge_coord_event c = completion(w, fx, KEDGE_EV_ROUND_COMPUTED);
    struct sim_job *j = &w->jobs[fx->job];
    uint32_t sites[SIM_SITES_MAX], groups[SIM_SITES_MAX];
    sim_compute(w, fx->job, &j->pending);
    j->computed = true;
    for (uint32_t i = 0; i < w->config.sites; i++) {
        if (j->pending.groups[i] != KEDGE_COORD_NONE) {
            sites[c.assigned_count] = i;
            groups[c.assigned_count++] = j->pending.groups[i];
        }
    }
    c.err = sim_chance(w, w->config.work_fail) ? KEDGE_E_NOMEM : KEDGE_OK;
    c.models = j->pending.models;
    c.model_count = j->pending.model_count;
    c.assigned_sites = sites;
    c.assigned_groups = groups;
    sim_server_step(w, &c);
}

static void disk_done(struct sim *w, const struct kedge_coord_effect *fx)
{
    enum kedge_coord_event_type type = fx->type == KEDGE_FX_APPEND            ? KEDGE_EV_APPENDED
                                       : fx->type == KEDGE_FX_APPEND_ASSIGNED ? KEDGE_EV_ASSIGN_APPENDED
                                                                              : KEDGE_EV_MAIN_APPENDED;
    struct kedge_coord_event c = completion(w, fx, type);
    bool lie = sim_chance(w, w->config.disk_lie), fail = sim_chance(w, w->config.disk_fail);
    if (!fail || lie) {
        c.err = sim_write(w, fx, &c.leaf);
    }
    c.err = fail || lie ? KEDGE_E_DISK_FULL : c.err;
    sim_server_step(w, &c);
}

static void join_done(struct sim *w, const struct sim_event *ev)
{
    struct sim_entry e = {.type = SIM_JOINED, .site = KEDGE_COORD_NONE, .job = ev->job};
    struct kedge_coord_event c = sim_server_blank(w, KEDGE_EV_JOB_JOINED);
    struct kedge_coord_job_view view;
    c.job = ev->job;
    c.tenant = ev->site; /* a tenant here */
    uint64_t leaf;
    int err = sim_ledger_append(w, ev->site, &e, &leaf);
    KEDGE_ASSERT(err == KEDGE_OK);
    if (kedge_coord_job(w->server.core, ev->job, &view)) {
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
    struct kedge_coord_event c = sim_server_blank(w, KEDGE_EV_SITE_REVOKED);
    c.site = ev->site;
    c.tenant = d->tenant;
    d->revoked_told = true;
    sim_server_step(w, &c);
    struct sim_event *op = sim_push(w, SIM_SERVER_REVOKE, sim_disk(w, &w->ledgers[d->tenant].busy_ns));
    op->site = ev->site;
    op->term = w->server.term;
}

static void revoke_done(struct sim *w, const struct sim_event *ev)
{
    struct sim_entry e = {.type = SIM_REVOKED, .site = ev->site};
    uint64_t leaf;
    if (ev->term != w->server.term || !w->server.up || sim_chance(w, w->config.disk_fail)) {
        again(w, ev, SIM_REVOKE); /* the admin asks until it is durable */
    } else if (sim_ledger_append(w, w->devices[ev->site].tenant, &e, &leaf) != KEDGE_OK) {
        KEDGE_ASSERT(false);
    }
}

static void submit_job(struct sim *w, uint32_t job)
{
    struct sim_job *j = &w->jobs[job];
    j->stored = true;
    j->state = KEDGE_JOB_PENDING;
    struct kedge_coord_event c = sim_server_blank(w, KEDGE_EV_JOB_SUBMIT);
    c.job = job;
    c.params = &j->params;
    c.models = &j->initial;
    c.model_count = 1;
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
    struct kedge_coord_event c = sim_server_blank(w, ev->type == SIM_HALT     ? KEDGE_EV_JOB_HALT
                                                     : ev->type == SIM_RESUME ? KEDGE_EV_JOB_RESUME
                                                                              : KEDGE_EV_JOB_CANCEL);
    c.job = ev->job;
    sim_server_step(w, &c);
}

/* Events that come from outside and are tried again while the coordinator is down. */
static void outside(struct sim *w, const struct sim_event *ev)
{
    if (ev->type == SIM_ENROL) {
        w->devices[ev->site].enrolled = true;
        if (w->server.up) {
            struct kedge_coord_event c = sim_server_blank(w, KEDGE_EV_SITE_ADDED);
            c.site = ev->site;
            c.tenant = w->devices[ev->site].tenant;
            c.id.s[0] =
                (char)('z' - (char)(ev->site * 7 % SIM_SITES_MAX)); /* order of ids is not that of handles */
            sim_server_step(w, &c);
        }
        return;
    }
    bool early = ev->type == SIM_JOIN && !w->jobs[ev->job].stored;
    if (!w->server.up || early) {
        again(w, ev, ev->type);
    } else if (ev->type == SIM_REVOKE) {
        revoke(w, ev);
    } else if (ev->type == SIM_JOIN) {
        struct sim_event *op = sim_push(w, SIM_SERVER_JOIN, sim_disk(w, &w->ledgers[ev->site].busy_ns));
        op->site = ev->site;
        op->job = ev->job;
        op->term = w->server.term;
    } else if (ev->type == SIM_SUBMIT_JOB) {
        submit_job(w, ev->job);
    } else {
        operate(w, ev);
    }
}

/* A crash keeps a prefix of what was being written, and nothing else. */
void sim_server_crash(struct sim *w)
{
    struct sim_server *s = &w->server;
    if (!s->up) {
        return;
    }
    for (uint64_t next = 0; next != UINT64_MAX;) { /* by sequence number: writes of one log are in order */
        const struct sim_event *first = NULL;
        for (uint32_t i = 0; i < w->queue_count; i++) {
            const struct sim_event *ev = w->queue[i];
            bool write = ev->type == SIM_SERVER_DISK && ev->term == s->term && ev->seq >= next;
            first = write && (!first || ev->seq < first->seq) ? ev : first;
        }
        next = first ? first->seq + 1 : UINT64_MAX;
        uint64_t leaf;
        if (first && sim_below(w, 2) == 0) {
            (void)!sim_write(w, &first->effect, &leaf);
        } else {
            next = UINT64_MAX;
        }
    }
    sim_note(w, "server down", s->term, 0, 0);
    s->up = false;
    s->term++;
    for (uint32_t i = 0; i < SIM_BLOBS_MAX && sim_below(w, 3) == 0; i++) {
        memset(&w->blobs[i], 0, sizeof w->blobs[i]); /* uploads that were not synced */
    }
    sim_push(w, SIM_SERVER_UP, w->now_ns + sim_below(w, 3 * SIM_SECOND));
}

void sim_server_event(struct sim *w, struct sim_event *ev)
{
    struct sim_server *s = &w->server;
    bool current = s->up && ev->term == s->term;
    switch (ev->type) {
    case SIM_TO_SERVER:
        if (s->up) {
            receive(w, ev);
        }
        return;
    case SIM_UPLOAD:
        take_upload(w, ev);
        return;
    case SIM_SERVER_DONE:
        if (current) {
            work_done(w, &ev->effect);
        }
        return;
    case SIM_SERVER_DISK:
        if (current) {
            disk_done(w, &ev->effect);
        }
        return;
    case SIM_SERVER_JOIN:
        if (current && !sim_chance(w, w->config.disk_fail)) {
            join_done(w, ev);
        } else {
            again(w, ev, SIM_JOIN);
        }
        return;
    case SIM_SERVER_REVOKE:
        revoke_done(w, ev);
        return;
    case SIM_SERVER_TIMER:
        if (current) {
            s->timer_ns = UINT64_MAX;
            struct kedge_coord_event c = sim_server_blank(w, KEDGE_EV_TIMER);
            sim_server_step(w, &c);
        }
        return;
    case SIM_SERVER_CRASH:
        sim_server_crash(w);
        return;
    case SIM_SERVER_UP:
        if (!s->up) {
            sim_server_start(w);
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
    case SIM_DEVICE_CRASH:
    case SIM_DEVICE_UP:
    case SIM_HEAL:
        break;
    }
    KEDGE_ASSERT(false);
}
