/* What must hold of asynchronous jobs: who is at work stays at work until its update is listed, refused or
 * too old, is never drawn meanwhile, and counts for as stale as it is. All of it from durable arrays. */

#include "sim/world.h"

enum { FRESH_WEIGHT = 1 << 20 };

uint64_t sim_counts(const struct sim *w, uint32_t job, uint32_t round, uint32_t task_round, uint64_t weight)
{
    bool fades = w->jobs[job].params.buffer > 0;
    return fades ? FRESH_WEIGHT / (1 + (uint64_t)(round - task_round)) : weight;
}

/* Those at work go on, all others were free when they were drawn. */
static bool check_site(struct sim *w, const struct sim_main *entry, uint32_t site)
{
    uint32_t task = entry->tasks[site], before = sim_task_open(w, entry->job, site);
    bool drawn = task == entry->round, goes_on = task != SIM_NONE && !drawn;
    if (drawn && before != SIM_NONE) {
        sim_violate(w, "round %u draws site %u, which is at work since round %u", entry->round, site, before);
    }
    if (goes_on && task != before) {
        sim_violate(w, "round %u says that site %u is at work since round %u, and it is not", entry->round,
                    site, task);
    }
    if (task == SIM_NONE && before != SIM_NONE && !w->devices[site].revoked_told) {
        sim_violate(w, "round %u forgets site %u, which is at work since round %u", entry->round, site,
                    before);
    }
    return goes_on;
}

void sim_check_at_work(struct sim *w, const struct sim_main *entry)
{
    if (entry->type != SIM_ROUND_OPENED || !entry->tasks) {
        return;
    }
    uint32_t places = 0, drawn = 0, free = 0;
    for (uint32_t i = 0; i < w->config.sites; i++) {
        const struct kedge_coord_row *row = sim_job_row(w, entry->job, i);
        bool goes_on = check_site(w, entry, i), away = row && row->away;
        places += goes_on && !away;
        drawn += entry->tasks[i] == entry->round;
        free += row && row->candidate && !goes_on;
        w->fired[SIM_FAULT_AWAY] += goes_on && away;
        if (away && !goes_on) {
            sim_violate(w, "site %u is away in round %u, and not at work", i, entry->round);
        }
    }
    uint32_t want = kedge_coord_draws(w->jobs[entry->job].params.sites_per_round, places, free);
    if (drawn != want) {
        sim_violate(w, "round %u draws %u of %u sites, %u places are held: expected %u", entry->round, drawn,
                    free, places, want);
    }
}

void sim_check_buffer(struct sim *w, uint32_t job)
{
    const struct sim_job *j = &w->jobs[job];
    uint32_t most = j->params.buffer > j->params.quorum ? j->params.buffer : j->params.quorum;
    if (j->params.buffer > 0 && j->pending.input_count > most) {
        sim_violate(w, "round %u counts %u updates, its buffer holds %u", j->pending.round,
                    j->pending.input_count, most);
    }
}

void sim_check_async_task(struct sim *w, const struct kedge_coord_effect *fx)
{
    uint32_t open = sim_task_open(w, fx->job, fx->site);
    if (open != fx->round) {
        sim_violate(w, "task of round %u for site %u, whose task is %d", fx->round, fx->site, (int)open);
    }
}

void sim_check_async_closed(struct sim *w, const struct kedge_coord_effect *fx)
{
    if (w->jobs[fx->job].params.buffer > 0 && sim_task_open(w, fx->job, fx->site) == fx->round) {
        sim_violate(w, "\"closed\" for site %u, whose task of round %u still counts", fx->site, fx->round);
    }
}

void sim_check_async_update(struct sim *w, const struct sim_entry *e)
{
    uint32_t open = sim_task_open(w, e->job, e->site);
    if (open != e->round) {
        sim_violate(w, "update of site %u for round %u is taken, its task is %d", e->site, e->round,
                    (int)open);
    }
}

bool sim_check_staleness(struct sim *w, uint32_t job, const struct sim_input *in, const struct sim_entry *e)
{
    const struct sim_job *j = &w->jobs[job];
    uint32_t round = j->pending.round;
    if (j->params.buffer == 0) {
        return e->round == round;
    }
    bool fits = e->round == in->round && e->round <= round && round - e->round <= j->params.staleness_max;
    if (!fits) {
        sim_violate(w, "round %u counts the update of site %u as one of round %u, it is of round %u", round,
                    in->site, in->round, e->round);
    }
    w->fired[SIM_FAULT_STALE] += e->round < round;
    return fits;
}

uint8_t *sim_settled(const struct sim *w, const struct sim_pending *p)
{
    uint8_t *settled = sim_new_array(w->config.sites, 1);
    for (uint32_t i = 0; i < p->input_count; i++) {
        settled[p->inputs[i].site] = 1;
    }
    for (uint32_t i = 0; i < w->config.sites; i++) {
        settled[i] |= p->refused[i] != KEDGE_OK;
    }
    return settled;
}

void sim_count_too_stale(struct sim *w, const struct sim_main *closed)
{
    const struct sim_main *opened = sim_main_find(w, SIM_ROUND_OPENED, closed->job, closed->round);
    for (uint32_t i = 0; i < w->config.sites && opened && opened->tasks; i++) {
        bool left = opened->tasks[i] != SIM_NONE && !closed->settled[i] && !w->devices[i].revoked_told;
        w->fired[SIM_FAULT_TOO_STALE] += left && closed->round < w->jobs[closed->job].params.rounds
                                         && sim_task_open(w, closed->job, i) == SIM_NONE;
    }
}
