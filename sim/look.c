/* What others ask of a world: each answer is read off what it holds, and nothing is changed. */
#include <stdio.h>
#include <string.h>

#include "sim/world.h"

const struct sim_main *sim_main_find(const struct sim *w, enum sim_main_type type, uint32_t job,
                                     uint32_t round)
{
    const struct sim_job *j = &w->jobs[job];
    uint32_t at = type == SIM_JOB_OPENED                          ? j->opened
                  : type == SIM_JOB_CLOSED                        ? j->closed
                  : !j->rounds_opened || round > j->params.rounds ? SIM_NONE
                  : type == SIM_ROUND_OPENED                      ? j->rounds_opened[round]
                                                                  : j->rounds_closed[round];
    return at == SIM_NONE ? NULL : &w->main[at];
}

uint32_t sim_unstated(const struct sim *w, uint32_t job, uint32_t site)
{
    const struct sim_device *d = &w->devices[site];
    const struct sim_main *last = sim_last_closed(w, job);
    uint32_t at = d->assigned[job];
    if (!last || !last->groups) {
        return SIM_NONE;
    }
    const struct sim_entry *e = at == SIM_NONE ? NULL : &w->ledgers[d->tenant].entries[at];
    bool stated = e && (e->round > last->round || (e->round == last->round && e->why == KEDGE_WHY_CLOSE));
    return stated ? SIM_NONE : last->groups[site];
}

const struct sim_main *sim_last_closed(const struct sim *w, uint32_t job)
{
    uint32_t last = w->jobs[job].last_closed;
    return last == SIM_NONE ? NULL : sim_main_find(w, SIM_ROUND_CLOSED, job, last);
}

const struct kedge_coord_row *sim_job_row(const struct sim *w, uint32_t job, uint32_t site)
{
    return kedge_coord_row(w->server.core, w->jobs[job].slot, site);
}

bool sim_job_view(const struct sim *w, uint32_t job, struct kedge_coord_job_view *ret)
{
    return kedge_coord_job(w->server.core, w->jobs[job].slot, ret);
}

void sim_site_id(const struct sim *w, uint32_t site, struct kedge_id *ret)
{
    memset(ret, 0, sizeof *ret);
    if (w->payload) {
        w->payload->site_id(w->payload->arg, site, ret);
        return;
    }
    (void)snprintf(ret->s, sizeof ret->s, "s%04u", site * 397u % KEDGE_SITES_MAX);
}

enum { SHOWN_NAMES = 256 }; /* a power of two above all tenants of a simulation: names in another order */

void sim_tenant_id(const struct sim *w, uint32_t tenant, struct kedge_id *ret)
{
    memset(ret, 0, sizeof *ret);
    if (w->payload) {
        w->payload->tenant_id(w->payload->arg, tenant, ret);
        return;
    }
    (void)snprintf(ret->s, sizeof ret->s, "t%03u", (tenant * 101u + 7) % SHOWN_NAMES);
}

bool sim_may_read(const struct sim *w, uint32_t job, uint32_t site, const struct kedge_digest *model)
{
    return kedge_coord_may_read(w->server.core, w->jobs[job].slot, site, model);
}

uint32_t sim_job_of(const struct kedge_id *id)
{
    return id->s[0] == 'j' && id->s[1] >= '0' && id->s[1] <= '9' ? (uint32_t)(id->s[1] - '0')
                                                                 : KEDGE_COORD_NONE;
}

struct sim_request *sim_request_find(struct sim *w, uint32_t id)
{
    struct sim_request *r = &w->server.requests[id % w->server.request_max];
    return id != SIM_NONE && r->used && r->id == id ? r : NULL;
}

struct sim_ticket *sim_ticket_find(struct sim *w, uint32_t id)
{
    struct sim_ticket *t = &w->server.tickets[id % w->server.ticket_max];
    return id != SIM_NONE && t->used && t->id == id ? t : NULL;
}

bool sim_is_selected(const struct sim_main *opened, uint32_t site)
{
    return opened && (opened->selected[site / 8] & 1u << site % 8) != 0;
}

uint32_t sim_task_open(const struct sim *w, uint32_t job, uint32_t site)
{
    const struct sim_job *j = &w->jobs[job];
    uint32_t last = j->last_opened;
    const struct sim_main *opened = last == SIM_NONE ? NULL : sim_main_find(w, SIM_ROUND_OPENED, job, last);
    const struct sim_main *closed = opened ? sim_main_find(w, SIM_ROUND_CLOSED, job, last) : NULL;
    uint32_t task = opened && opened->tasks ? opened->tasks[site] : SIM_NONE;
    if (!closed || task == SIM_NONE) {
        return task;
    }
    bool over = last >= j->params.rounds || last + 1 - task > j->params.staleness_max;
    return over || closed->settled[site] ? SIM_NONE : task;
}

bool sim_is_warm(const struct sim *w, uint32_t site, uint32_t job)
{
    const struct kedge_coord_job_params *p = &w->jobs[job].params;
    return p->groups > 1 && p->entry != KEDGE_ENTRY_CHOICE && w->devices[site].group[job] != SIM_NONE;
}

uint64_t sim_published_key(uint32_t job, const struct kedge_digest *model)
{
    return sim_hash(SIM_HASH_START + job, model->b, sizeof model->b);
}

bool sim_is_published(const struct sim *w, uint32_t job, const struct kedge_digest *model)
{
    uint32_t any;
    return sim_index_find(&w->published, sim_published_key(job, model), &any);
}
