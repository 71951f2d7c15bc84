/* A restart of the coordinator: what is durable, told to a new core. It may crash in the middle of that, too.
 *
 * This is the part of a host that is easiest to get wrong, since it runs seldom and everything rests on it.
 * The order is: members, then each job with its last rounds, its sites' groups, who has joined, what was
 * refused, what was accepted; START comes last, and only then does the core act. Each event comes from
 * ledgers and main chain, never from the old core, whose memory is overwritten first. */
#include <string.h>

#include "common/base/mem.h"
#include "sim/world.h"

static struct kedge_coord_event of_job(enum kedge_coord_event_type type, uint32_t job)
{
    struct kedge_coord_event c = sim_server_blank(type);
    c.job = job;
    return c;
}

static void load(struct sim *w, struct kedge_coord_event *ev)
{
    if (!w->server.up) {
        return; /* crashed on the way */
    }
    if (sim_chance(w, w->config.crash_loading)) {
        sim_server_crash(w, SIM_FAULT_SERVER_CRASH_LOADING);
        return;
    }
    sim_server_step(w, ev);
}

static void load_members(struct sim *w)
{
    for (uint32_t t = 0; t < w->config.tenants; t++) {
        struct kedge_coord_event c = sim_server_blank(KEDGE_EV_TENANT_ADDED);
        c.tenant = t;
        sim_tenant_id(w, t, &c.id);
        load(w, &c);
    }
    for (uint32_t i = 0; i < w->config.sites; i++) {
        struct sim_device *d = &w->devices[i];
        struct kedge_coord_event c = sim_server_blank(KEDGE_EV_SITE_ADDED);
        c.site = i;
        c.tenant = d->tenant;
        sim_site_id(w, i, &c.id);
        d->revoked_told = d->revoked;
        if (d->enrolled) {
            load(w, &c);
        }
        if (d->revoked) {
            c.type = KEDGE_EV_SITE_REVOKED;
            load(w, &c);
        }
    }
}

/* A migration between its pretraining and its group. */
static bool is_cut(const struct sim *w, uint32_t job, const struct sim_entry *e)
{
    const struct sim_device *d = &w->devices[e->site];
    const struct sim_main *open = sim_main_find(w, SIM_ROUND_OPENED, job, e->round);
    uint32_t at = d->assigned[job];
    return e->kind == KEDGE_TASK_PRETRAIN && open->kind == KEDGE_TASK_TRAIN && sim_is_warm(w, e->site, job)
           && !(at != SIM_NONE && w->ledgers[d->tenant].entries[at].round == e->round);
}

/* Updates of the open round, which stand in no input list yet. */
static void load_accepted(struct sim *w, uint32_t job, uint32_t open)
{
    const struct sim_job *j = &w->jobs[job];
    for (uint32_t i = 0; i < j->fresh_count; i++) {
        const struct sim_fresh *f = &j->fresh[i];
        const struct sim_entry *e = &w->ledgers[f->tenant].entries[f->leaf];
        struct kedge_coord_event c = of_job(KEDGE_EV_LOAD_ACCEPTED, job);
        c.tenant = f->tenant;
        c.site = e->site;
        c.round = e->round;
        c.group = e->group;
        c.kind = e->kind;
        c.leaf = f->leaf;
        c.weight = e->weight;
        c.envelope = e->envelope;
        c.update = e->update;
        if (e->round == open || w->jobs[job].params.buffer > 0) {
            w->fired[SIM_FAULT_MIGRATION_CUT] += is_cut(w, job, e);
            load(w, &c);
        }
    }
}

static void load_refused(struct sim *w, uint32_t job)
{
    for (uint32_t i = 0; i < w->config.sites; i++) {
        const struct sim_refusal *r = &w->jobs[job].told[i];
        struct kedge_coord_event c = of_job(KEDGE_EV_LOAD_REFUSED, job);
        c.site = i;
        c.tenant = w->devices[i].tenant;
        c.kind = r->kind;
        c.err = r->err;
        c.envelope = r->envelope;
        c.update = r->update;
        c.weight = r->weight;
        if (r->err != KEDGE_OK) {
            load(w, &c);
        }
    }
}

/* A group that the last close gave may not be stated yet in the tenant's ledger when the coordinator dies. It
 * is told as not durable, and the core has it stated once more. */
static void load_site(struct sim *w, uint32_t job, uint32_t site)
{
    const struct sim_device *d = &w->devices[site];
    uint32_t unstated = sim_unstated(w, job, site);
    struct kedge_coord_event c = of_job(KEDGE_EV_LOAD_GROUP, job);
    c.site = site;
    c.tenant = d->tenant;
    bool stated = d->assigned[job] != SIM_NONE;
    if (stated || (w->jobs[job].params.entry == KEDGE_ENTRY_CHOICE && d->group[job] != SIM_NONE)) {
        c.durable = true;
        c.round = stated ? w->ledgers[d->tenant].entries[d->assigned[job]].round : 0;
        c.group = d->group[job];
        load(w, &c);
    }
    if (unstated != SIM_NONE) {
        w->fired[SIM_FAULT_MOVES_CUT] += w->jobs[job].last_closed > 0;
        c.durable = false;
        c.round = w->jobs[job].last_closed;
        c.group = unstated;
        load(w, &c);
    }
    if (d->evaluated[job] != SIM_NONE) {
        const struct sim_entry *e = &w->ledgers[d->tenant].entries[d->evaluated[job]];
        c.type = KEDGE_EV_LOAD_EVALUATED;
        c.round = e->round;
        c.leaf = d->evaluated[job];
        c.envelope = e->envelope;
        load(w, &c);
    }
}

/* Of an asynchronous job, whether a round is open or not; returns how many there are. */
static uint32_t load_at_work(struct sim *w, uint32_t job)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < w->config.sites; i++) {
        struct kedge_coord_event c = of_job(KEDGE_EV_LOAD_ROW, job);
        c.site = i;
        c.selected = true;
        c.round = sim_task_open(w, job, i);
        if (c.round != SIM_NONE) {
            count++;
            load(w, &c);
        }
    }
    return count;
}

/* The last closed round and the open one; returns the open one's number or SIM_NONE. An asynchronous job
 * needs as many closed rounds as an update may be old, because updates to each of their models can still
 * come. */
static uint32_t load_rounds(struct sim *w, uint32_t job)
{
    const struct sim_job *j = &w->jobs[job];
    uint32_t kept = j->params.buffer > 0 ? j->params.staleness_max : 0;
    uint32_t from = j->last_closed == SIM_NONE ? 0 : j->last_closed > kept ? j->last_closed - kept : 1;
    from = kept > 0 ? from : j->last_closed;
    for (uint32_t r = from; j->last_closed != SIM_NONE && r <= j->last_closed; r++) {
        const struct sim_main *closed = sim_main_find(w, SIM_ROUND_CLOSED, job, r);
        struct kedge_coord_event c = of_job(KEDGE_EV_LOAD_ROUND, job);
        c.round = closed->round;
        c.kind = closed->kind;
        c.closed = true;
        c.regroup = closed->regroup;
        c.tries = closed->tries;
        c.models = closed->models;
        c.model_count = closed->model_count;
        load(w, &c);
    }
    if (j->last_opened == SIM_NONE || j->last_opened == j->last_closed) {
        w->fired[SIM_FAULT_AT_WORK_CUT] += load_at_work(w, job) > 0;
        return SIM_NONE;
    }
    const struct sim_main *open = sim_main_find(w, SIM_ROUND_OPENED, job, j->last_opened);
    struct kedge_coord_event c = of_job(KEDGE_EV_LOAD_ROUND, job);
    c.round = open->round;
    c.draw = open->draw;
    c.kind = open->kind;
    load(w, &c);
    for (uint32_t i = 0; i < w->config.sites && !open->tasks; i++) {
        c = of_job(KEDGE_EV_LOAD_ROW, job);
        c.site = i;
        c.selected = sim_is_selected(open, i);
        if (c.selected) {
            load(w, &c);
        }
    }
    (void)load_at_work(w, job);
    return open->round;
}

static void load_job(struct sim *w, uint32_t job)
{
    struct sim_job *j = &w->jobs[job];
    const struct sim_main *end = sim_main_find(w, SIM_JOB_CLOSED, job, 0);
    if (end) {
        j->state = end->state; /* JOB_STATE was not stored any more */
    }
    if (!j->stored || end || j->state >= KEDGE_JOB_COMPLETED) {
        return;
    }
    if (sim_main_find(w, SIM_JOB_OPENED, job, 0) && sim_below(w, 2) == 0) {
        /* as a host that keeps no state but the operator's halt, like kedge-coordinator */
        bool by_operator = j->state == KEDGE_JOB_HALTED && j->reason == KEDGE_OK;
        j->state = by_operator ? KEDGE_JOB_HALTED : KEDGE_JOB_ENROLLING;
        j->reason = KEDGE_OK;
    }
    bool room = sim_slot_take(w, job); /* another than before, perhaps */
    KEDGE_ASSERT(room);
    struct kedge_coord_event c = of_job(KEDGE_EV_LOAD_JOB, job);
    c.params = &j->params;
    c.models = j->begin;
    c.model_count = kedge_coord_first_models(&j->params);
    c.state = j->state;
    c.err = j->reason;
    load(w, &c);
    j->pending.computed = false;
    uint32_t open = load_rounds(w, job);
    for (uint32_t i = 0; i < w->config.sites; i++) {
        if (w->devices[i].enrolled) {
            load_site(w, job, i);
        }
    }
    for (uint32_t t = 0; t < w->config.tenants; t++) {
        c = of_job(KEDGE_EV_JOB_JOINED, job);
        c.tenant = t;
        if (j->joined[t]) {
            load(w, &c);
        }
    }
    if (open != SIM_NONE) {
        load_refused(w, job);
    }
    load_accepted(w, job, open);
}

static void new_core(struct sim *w)
{
    struct sim_server *s = &w->server;
    struct kedge_coord_limits limits = {w->config.tenants, w->config.sites, w->config.slots};
    size_t size = kedge_coord_size(&limits);
    s->mem = s->mem ? s->mem : sim_new_array(1, size);
    memset(s->mem, 0xa5, size); /* nothing of the old process is left */
    int err = kedge_coord_init(s->mem, size, &limits, &s->times, &s->core);
    KEDGE_ASSERT(err == KEDGE_OK);
    kedge_coord_rare_use(s->core, &w->coord_rare);
    s->up = true;
    sim_charge_forgotten(w);
    if (w->config.server_clock_jumps > 0) { /* a monotonic clock begins anywhere */
        s->clock_ns = sim_below(w, 1000 * SIM_SECOND);
    }
    s->timer_ns = UINT64_MAX;
    s->main_busy_ns = w->now_ns;
    memset(s->slots, 0xff, sizeof s->slots);
    for (uint32_t i = 0; i < w->config.jobs; i++) {
        w->jobs[i].slot = SIM_NONE;
    }
    memset(s->requests, 0, s->request_max * sizeof *s->requests);
    memset(s->tickets, 0, s->ticket_max * sizeof *s->tickets);
}

void sim_server_start(struct sim *w)
{
    new_core(w);
    sim_note(w, "server up", w->server.term, 0, 0);
    sim_check_acks(w);
    load_members(w);
    for (uint32_t i = 0; i < w->config.jobs; i++) {
        load_job(w, i);
    }
    struct kedge_coord_event c = sim_server_blank(KEDGE_EV_START);
    load(w, &c);
    for (uint32_t i = 0; i < w->config.jobs; i++) {
        if (w->jobs[i].cancel_wanted && w->jobs[i].slot != SIM_NONE) {
            c = of_job(KEDGE_EV_JOB_CANCEL, i);
            load(w, &c);
        }
        sim_check_unstored(w, i, SIM_NONE, KEDGE_OK);
    }
}
