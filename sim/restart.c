/* A restart of the coordinator: what is durable, told to a new core. */
#include <string.h>

#include "common/base/mem.h"
#include "sim/world.h"

static void load_members(struct sim *w)
{
    for (uint32_t t = 0; t < w->config.tenants; t++) {
        struct kedge_coord_event c = sim_server_blank(w, KEDGE_EV_TENANT_ADDED);
        c.tenant = t;
        c.id.s[0] = (char)('a' + (char)((t + 1) % SIM_TENANTS_MAX));
        sim_server_step(w, &c);
    }
    for (uint32_t i = 0; i < w->config.sites; i++) {
        struct sim_device *d = &w->devices[i];
        struct kedge_coord_event c = sim_server_blank(w, KEDGE_EV_SITE_ADDED);
        c.site = i;
        c.tenant = d->tenant;
        c.id.s[0] = (char)('z' - (char)(i * 7 % SIM_SITES_MAX));
        uint64_t leaf;
        d->revoked_told = d->enrolled && sim_ledger_find(w, SIM_REVOKED, 0, 0, KEDGE_TASK_NONE, i, &leaf);
        if (d->enrolled) {
            sim_server_step(w, &c);
        }
        if (d->revoked_told) {
            c.type = KEDGE_EV_SITE_REVOKED;
            sim_server_step(w, &c);
        }
    }
}

static struct kedge_coord_event of_job(const struct sim *w, enum kedge_coord_event_type type, uint32_t job)
{
    struct kedge_coord_event c = sim_server_blank(w, type);
    c.job = job;
    return c;
}

static void load_statements(struct sim *w, uint32_t job, uint32_t open)
{
    for (uint32_t t = 0; t < w->config.tenants; t++) {
        for (uint32_t i = 0; i < w->ledgers[t].count; i++) {
            const struct sim_entry *e = &w->ledgers[t].entries[i];
            if (e->job != job || e->type == SIM_REVOKED) {
                continue;
            }
            struct kedge_coord_event c = of_job(w, KEDGE_EV_JOB_JOINED, job);
            c.tenant = t;
            c.site = e->site;
            c.round = e->round;
            c.group = e->group;
            c.kind = e->kind;
            c.leaf = i;
            c.weight = e->weight;
            c.envelope = e->envelope;
            c.update = e->update;
            c.durable = true;
            bool in_open = e->type == SIM_UPDATE && e->round == open;
            c.type = e->type == SIM_JOINED     ? KEDGE_EV_JOB_JOINED
                     : e->type == SIM_ASSIGNED ? KEDGE_EV_LOAD_GROUP
                     : e->type == SIM_UPDATE   ? KEDGE_EV_LOAD_ACCEPTED
                                               : KEDGE_EV_LOAD_EVALUATED;
            if (e->type != SIM_UPDATE || in_open) {
                sim_server_step(w, &c);
            }
        }
    }
}

/* The last closed round and the open one; returns the open one's number or KEDGE_COORD_NONE. */
static uint32_t load_rounds(struct sim *w, uint32_t job)
{
    const struct sim_main *closed = NULL, *open = NULL;
    for (uint32_t i = 0; i < w->main_count; i++) {
        const struct sim_main *m = &w->main[i];
        if (m->job == job && m->type == SIM_ROUND_CLOSED) {
            closed = m;
        } else if (m->job == job && m->type == SIM_ROUND_OPENED) {
            open = m;
        }
    }
    if (closed) {
        struct kedge_coord_event c = of_job(w, KEDGE_EV_LOAD_ROUND, job);
        c.round = closed->round;
        c.closed = true;
        c.models = closed->models;
        c.model_count = closed->model_count;
        sim_server_step(w, &c);
    }
    if (!open || (closed && open->round <= closed->round)) {
        return KEDGE_COORD_NONE;
    }
    struct kedge_coord_event c = of_job(w, KEDGE_EV_LOAD_ROUND, job);
    c.round = open->round;
    sim_server_step(w, &c);
    for (uint32_t i = 0; i < w->config.sites; i++) {
        c = of_job(w, KEDGE_EV_LOAD_ROW, job);
        c.site = i;
        c.selected = (open->selected & 1u << i) != 0;
        if (c.selected) {
            sim_server_step(w, &c);
        }
    }
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
    struct kedge_coord_event c = of_job(w, KEDGE_EV_LOAD_JOB, job);
    c.params = &j->params;
    c.models = &j->initial;
    c.model_count = 1;
    c.state = j->state;
    c.err = j->reason;
    sim_server_step(w, &c);
    j->computed = false;
    uint32_t open = load_rounds(w, job);
    const struct sim_main *cold = sim_main_find(w, SIM_ROUND_CLOSED, job, 0);
    for (uint32_t i = 0; cold && i < w->config.sites; i++) {
        c = of_job(w, KEDGE_EV_LOAD_GROUP, job);
        c.site = i;
        c.group = cold->groups[i];
        if (c.group != KEDGE_COORD_NONE) {
            sim_server_step(w, &c);
        }
    }
    load_statements(w, job, open);
}

void sim_server_start(struct sim *w)
{
    struct sim_server *s = &w->server;
    struct kedge_coord_limits limits = {SIM_TENANTS_MAX, SIM_SITES_MAX, SIM_JOBS_MAX};
    struct kedge_coord_times times;
    kedge_coord_times_default(&times);
    size_t size = kedge_coord_size(&limits);
    s->mem = s->mem ? s->mem : kedge_mem_new(1, size);
    KEDGE_ASSERT(s->mem);
    memset(s->mem, 0xa5, size); /* nothing of the old process is left */
    KEDGE_ASSERT(kedge_coord_init(s->mem, size, &limits, &times, &s->core) == KEDGE_OK);
    s->up = true;
    s->timer_ns = UINT64_MAX;
    s->main_busy_ns = w->now_ns;
    memset(s->requests, 0, sizeof s->requests);
    memset(s->tickets, 0, sizeof s->tickets);
    sim_note(w, "server up", s->term, 0, 0);
    load_members(w);
    for (uint32_t i = 0; i < w->config.jobs; i++) {
        load_job(w, i);
    }
    struct kedge_coord_event c = sim_server_blank(w, KEDGE_EV_START);
    sim_server_step(w, &c);
    for (uint32_t i = 0; i < w->config.jobs; i++) {
        if (w->jobs[i].cancel_wanted && w->jobs[i].state < KEDGE_JOB_COMPLETED) {
            c = of_job(w, KEDGE_EV_JOB_CANCEL, i);
            sim_server_step(w, &c);
        }
    }
}
