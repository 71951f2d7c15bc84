/* The tables of a simulated world. */
#include <stdio.h>
#include <string.h>

#include "sim/world.h"

enum {
    REQUESTS_MIN = 512,
    TICKETS_MIN = 256,
    PER_SITE =
        16, /* requests of a site that may be open at once, with duplicates and what came before a crash */
    STEPS_MIN = 3000000,
    STEPS_PER_RESULT = 400,
};

static void allocate_job(struct sim *w, uint32_t job)
{
    struct sim_job *j = &w->jobs[job];
    uint32_t sites = w->config.sites, rounds = j->params.rounds + 1;
    (void)snprintf(j->params.id.s, sizeof j->params.id.s, "j%u", job);
    j->initial = j->begin[0] = sim_digest(w->seed, job, 1, "initial", 7);
    for (uint32_t g = 1; g < KEDGE_GROUPS_MAX; g++) {
        j->begin[g] = sim_digest(w->seed, job, g, "begin", 5);
    }
    j->slot = SIM_NONE;
    j->opened = j->closed = j->last_opened = j->last_closed = j->drawn_round = j->computing = SIM_NONE;
    j->joined = sim_new_array(w->config.tenants, 1);
    j->told = sim_new_array(sites, sizeof *j->told);
    j->rounds_opened = sim_new_array(rounds, sizeof *j->rounds_opened);
    j->rounds_closed = sim_new_array(rounds, sizeof *j->rounds_closed);
    memset(j->rounds_opened, 0xff, rounds * sizeof *j->rounds_opened);
    memset(j->rounds_closed, 0xff, rounds * sizeof *j->rounds_closed);
    j->pending.inputs = sim_new_array((uint64_t)sites * 2, sizeof *j->pending.inputs);
    j->pending.groups = sim_new_array(sites, sizeof *j->pending.groups);
    j->pending.refused = sim_new_array(sites, sizeof *j->pending.refused);
}

/* steps_max is many times what any run has needed: beyond it the federation never comes to rest (sim_run). */
void sim_allocate(struct sim *w)
{
    uint32_t sites = w->config.sites, open = PER_SITE * sites;
    uint64_t results = 0;
    w->devices = sim_new_array(sites, sizeof *w->devices);
    w->ledgers = sim_new_array(w->config.tenants, sizeof *w->ledgers);
    w->server.request_max = open > REQUESTS_MIN ? open : REQUESTS_MIN;
    w->server.ticket_max = open > TICKETS_MIN ? open : TICKETS_MIN;
    w->server.requests = sim_new_array(w->server.request_max, sizeof *w->server.requests);
    w->server.tickets = sim_new_array(w->server.ticket_max, sizeof *w->server.tickets);
    for (uint32_t i = 0; i < w->config.tenants; i++) {
        w->ledgers[i].hash = SIM_HASH_START;
    }
    for (uint32_t i = 0; i < sites; i++) {
        struct sim_device *d = &w->devices[i];
        for (uint32_t j = 0; j < SIM_JOBS_MAX; j++) {
            d->group[j] = d->assigned[j] = d->evaluated[j] = SIM_NONE;
            d->pretrained[j] = d->trained[j] = d->grouped_by[j] = SIM_NONE;
            d->prior_group[j] = d->refused_round[j] = d->unstored_round[j] = d->ended_round[j] = SIM_NONE;
            d->group[j] = w->jobs[j].params.entry == KEDGE_ENTRY_TOGETHER ? 0 : SIM_NONE;
        }
    }
    for (uint32_t j = 0; j < w->config.jobs; j++) {
        allocate_job(w, j);
        results += (uint64_t)sites * w->jobs[j].params.rounds;
    }
    w->steps_max = STEPS_MIN + STEPS_PER_RESULT * results;
}
