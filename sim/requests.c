/* What comes to the coordinator through the network: polls, submissions, uploads; and connections that break.
 */
#include <string.h>

#include "sim/world.h"

/* A number whose slot is free. Numbers go up for the whole run and slots are used again: what comes late for
 * an old number finds nothing, and never another site's request. */
static uint32_t request_new(struct sim *w, const struct sim_event *ev)
{
    struct sim_server *s = &w->server;
    for (uint32_t i = 0; i < s->request_max; i++) {
        uint32_t id = s->request_count++;
        struct sim_request *r = &s->requests[id % s->request_max];
        if (!r->used) {
            *r = (struct sim_request){.used = true,
                                      .id = id,
                                      .site = ev->site,
                                      .term = ev->term,
                                      .serial = ev->serial,
                                      .at_ns = w->now_ns,
                                      .at_work = ev->at_work};
            return id;
        }
    }
    KEDGE_ASSERT(false); /* more open requests than sites can have */
    return SIM_NONE;
}

static uint32_t ticket_new(struct sim *w, const struct sim_event *ev)
{
    struct sim_server *s = &w->server;
    for (uint32_t i = 0; i < s->ticket_max; i++) {
        uint32_t id = s->ticket_count++;
        struct sim_ticket *t = &s->tickets[id % s->ticket_max];
        if (!t->used) {
            *t = (struct sim_ticket){
                .used = true, .id = id, .site = ev->site, .after_revoked = w->devices[ev->site].revoked_told};
            return id;
        }
    }
    KEDGE_ASSERT(false);
    return SIM_NONE;
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

/* result and weight are what the signature covers. */
static void submit(struct sim *w, const struct sim_event *ev, const struct kedge_site_result *r,
                   uint64_t weight)
{
    uint32_t id = ticket_new(w, ev);
    struct sim_ticket *t = sim_ticket_find(w, id);
    t->result = *r;
    t->weight = weight;
    struct kedge_coord_event c = sim_server_blank(KEDGE_EV_SUBMIT);
    struct kedge_coord_job_view view;
    c.site = ev->site;
    c.tenant = w->devices[ev->site].tenant;
    c.job = sim_job_of(&r->job);
    if (c.job >= w->config.jobs || !sim_job_view(w, c.job, &view)) {
        c.job = KEDGE_COORD_NONE;
    }
    c.kind = kind_of(r->kind);
    c.round = r->round;
    c.group = r->group == KEDGE_SITE_NONE ? KEDGE_COORD_NONE : r->group;
    c.weight = weight;
    c.request = request_new(w, ev);
    c.ticket = id;
    c.base = sim_of_site(&r->base);
    c.update = sim_of_site(&r->update);
    c.envelope = sim_of_site(&r->envelope);
    if (c.job != KEDGE_COORD_NONE) {
        sim_able_heard(w, ev->site, c.job, true, NULL); /* it may be taken, and then it can */
    }
    sim_server_step(w, &c);
}

/* Some sites say so although it is not true: to be asked, and to be moved, again and again. */
static void hear_shift(struct sim *w, const struct sim_event *ev, struct kedge_coord_event *c)
{
    uint32_t told = ev->shifted;
    if (ev->busy) { /* a heartbeat: nobody listens to that */
        return;
    }
    for (uint32_t i = 0; i < w->config.jobs && told == 0; i++) {
        uint32_t rate = w->jobs[i].flapping;
        told = rate > 0 && sim_fault(w, SIM_FAULT_FLAPPING, rate) ? 1u << i : 0;
    }
    struct kedge_coord_job_view view;
    for (uint32_t i = 0; i < w->config.jobs; i++) {
        if ((told >> i & 1) != 0 && sim_job_view(w, i, &view)) {
            c->shifted |= UINT64_C(1) << w->jobs[i].slot;
            w->devices[ev->site].told_term[i] = 1 + w->server.term;
        }
    }
}

static void poll(struct sim *w, const struct sim_event *ev)
{
    struct kedge_coord_event c = sim_server_blank(KEDGE_EV_POLL);
    c.site = ev->site;
    c.tenant = w->devices[ev->site].tenant;
    c.request = request_new(w, ev);
    c.wait_ns = ev->wait_ns;
    c.busy = ev->busy;
    c.charge = ev->charge;
    sim_charge_heard(w, ev->site, ev->charge);
    for (uint32_t i = 0; i < w->config.jobs; i++) {
        bool here = (ev->at_work >> i & 1) != 0 && w->jobs[i].slot != SIM_NONE;
        c.at_work |= here ? UINT64_C(1) << w->jobs[i].slot : 0;
    }
    hear_shift(w, ev, &c);
    c.anew = ev->anew;
    for (uint32_t i = 0; i < w->config.jobs && ev->anew; i++) {
        sim_able_heard(w, ev->site, i, true, NULL);
    }
    if (!ev->busy && sim_chance(w, w->config.hang_up)) {
        struct sim_event *gone = sim_push(w, SIM_HANG_UP, w->now_ns + sim_below(w, 5 * SIM_SECOND));
        gone->serial = c.request;
        gone->term = w->server.term;
    }
    sim_server_step(w, &c);
}

/* A task has ended without a result. */
static void end_task(struct sim *w, const struct sim_event *ev)
{
    struct kedge_coord_event c = sim_server_blank(KEDGE_EV_TASK_ENDED);
    struct kedge_coord_job_view view;
    uint32_t job = sim_job_of(&ev->result.job);
    c.site = ev->site;
    c.tenant = w->devices[ev->site].tenant;
    c.job = job < w->config.jobs && sim_job_view(w, job, &view) ? job : KEDGE_COORD_NONE;
    c.kind = kind_of(ev->result.kind);
    c.round = ev->result.round;
    c.trouble = ev->trouble;
    c.wait_ns = ev->wait_ns;
    c.request = request_new(w, ev);
    sim_request_find(w, c.request)->round = c.round;
    if (c.job != KEDGE_COORD_NONE && !w->devices[ev->site].revoked_told && w->jobs[job].joined[c.tenant]) {
        sim_able_heard(w, ev->site, job, false, ev);
    }
    sim_server_step(w, &c);
    if (c.job != KEDGE_COORD_NONE) {
        sim_check_waits(w, job);
    }
}

/* A site's message, unless the network is cut or the coordinator is down. Calls may overtake each other; that
 * is counted, so that a run can tell that it happened. */
void sim_server_receive(struct sim *w, const struct sim_event *ev)
{
    struct sim_device *d = &w->devices[ev->site];
    struct kedge_site_reply reply = {.kind = KEDGE_SITE_REPLY_ERROR, .err = KEDGE_E_NOT_ENROLLED};
    if (sim_inside(w, &d->cut_to_server)) {
        sim_count(w, SIM_FAULT_CUT_TO_SERVER);
        return;
    }
    if (!w->server.up) {
        sim_count(w, SIM_FAULT_SERVER_DOWN);
        return;
    }
    if (ev->serial < d->heard && ev->term == d->term) {
        sim_count(w, SIM_FAULT_OVERTAKEN);
    }
    d->heard = ev->serial > d->heard && ev->term == d->term ? ev->serial : d->heard;
    if (ev->call == KEDGE_SITE_CALL_ENROLL) {
        reply.kind = KEDGE_SITE_REPLY_ENROLLED;
        reply.active = d->enrolled;
        answer_at_once(w, ev, &reply);
    } else if (!d->enrolled) {
        answer_at_once(w, ev, &reply);
    } else if (ev->call == KEDGE_SITE_CALL_POLL) {
        poll(w, ev);
    } else if (ev->call == KEDGE_SITE_CALL_ENDED) {
        end_task(w, ev);
    } else {
        struct kedge_site_result result = ev->result;
        uint64_t weight = ev->weight;
        if (sim_open_result(w, ev->site, &result, &weight) != KEDGE_OK) {
            reply.err = KEDGE_E_VERIFY;
            answer_at_once(w, ev, &reply);
        } else {
            submit(w, ev, &result, weight);
        }
    }
}

/* The host tells the core that nobody waits any more; the site finds out by itself. */
void sim_server_hang_up(struct sim *w, const struct sim_event *ev)
{
    struct sim_request *r = sim_request_find(w, (uint32_t)ev->serial);
    if (!r || !w->server.up || ev->term != w->server.term) {
        return;
    }
    struct kedge_coord_event c = sim_server_blank(KEDGE_EV_REQUEST_GONE);
    c.site = r->site;
    c.request = r->id;
    r->used = false;
    sim_count(w, SIM_FAULT_HUNG_UP);
    struct sim_event *failed = sim_push(w, SIM_CALL_TIMEOUT, w->now_ns + sim_delay(w));
    failed->site = r->site;
    failed->term = r->term;
    failed->serial = r->serial;
    sim_server_step(w, &c);
}

void sim_server_unstored(struct sim *w, uint32_t job, uint32_t site, int err)
{
    struct sim_device *d = &w->devices[site];
    d->unstored_round[job] = err == KEDGE_OK ? SIM_NONE : w->jobs[job].last_opened;
}

/* A piece of an update is stored, or it is not; then the core is told, and once more when that is over. */
static int store_upload(struct sim *w, uint32_t job, const struct sim_event *ev)
{
    struct sim_device *d = &w->devices[ev->site];
    bool full = sim_inside(w, &w->server.disk_full);
    bool fail = full || sim_fault(w, SIM_FAULT_BLOB_FAILED, w->config.blob_fail);
    struct kedge_coord_event c = sim_server_blank(KEDGE_EV_UPLOAD);
    w->fired[SIM_FAULT_DISK_FULL] += full;
    c.job = job;
    c.site = ev->site;
    c.err = fail ? SIM_UNSTORED_ERR : KEDGE_OK;
    if (!fail) {
        d->uploads[d->upload_count++ % SIM_UPLOADS_KEPT] = sim_of_site(&ev->result.update);
    }
    if (fail || d->upload_err[job]) {
        d->upload_err[job] = c.err;
        sim_server_unstored(w, job, ev->site, c.err);
        sim_server_step(w, &c);
        sim_check_unstored(w, job, ev->site, c.err);
    }
    return c.err;
}

void sim_server_upload(struct sim *w, const struct sim_event *ev)
{
    struct sim_device *d = &w->devices[ev->site];
    struct sim_event *back = sim_push(w, SIM_DEVICE_DONE, w->now_ns + sim_delay(w));
    back->site = ev->site;
    back->term = ev->term;
    back->serial = ev->serial;
    bool cut = sim_inside(w, &d->cut_to_server) || sim_inside(w, &d->cut_to_site);
    int err = !w->server.up || cut || sim_fault(w, SIM_FAULT_LOST, w->config.loss) ? KEDGE_E_UNREACHABLE
                                                                                   : KEDGE_E_NOT_ENROLLED;
    uint32_t job = sim_job_of(&ev->result.job);
    if (w->server.up && err != KEDGE_E_UNREACHABLE && d->enrolled) {
        uint32_t slot = job < w->config.jobs ? w->jobs[job].slot : SIM_NONE;
        err = kedge_coord_may_upload(w->server.core, slot, ev->site, ev->result.round);
    }
    if (!err) {
        err = store_upload(w, job, ev);
    }
    back->site_event.type = err == KEDGE_OK ? KEDGE_SITE_EV_UPLOADED : KEDGE_SITE_EV_UPLOAD_FAILED;
    back->site_event.err = err;
    back->site_event.serial = ev->serial;
}
