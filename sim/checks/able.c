/* What must hold of sites that cannot serve a task: nobody waits for them, nobody asks them meanwhile, and
 * what they said of one round says nothing of another. */
#include <string.h>

#include "sim/world.h"

static uint64_t server_now(const struct sim *w)
{
    return w->now_ns + w->server.clock_ns;
}

void sim_able_forgotten(struct sim *w)
{
    for (uint32_t i = 0; i < w->config.sites; i++) {
        for (uint32_t job = 0; job < SIM_JOBS_MAX; job++) {
            w->devices[i].unable_ns[job] = 0;
            w->devices[i].ended_round[job] = SIM_NONE;
        }
    }
}

void sim_able_heard(struct sim *w, uint32_t site, uint32_t job, bool able, const struct sim_event *told)
{
    struct sim_device *d = &w->devices[site];
    uint64_t wait = told ? told->wait_ns : 0;
    wait = wait < w->server.times.unable_max ? wait : w->server.times.unable_max;
    d->unable_ns[job] = able ? 0 : server_now(w) + wait;
}

/* The round of the site's task as the coordinator knows it: a close whose write is said to have failed is in
 * the chain before it hears of it, and until then the task is open. */
static uint32_t task_known(const struct sim *w, uint32_t job, uint32_t site)
{
    const struct sim_job *j = &w->jobs[job];
    struct kedge_coord_job_view view;
    bool collects = sim_job_view(w, job, &view) && view.round_open && view.round == j->last_opened;
    const struct sim_main *o = collects ? sim_main_find(w, SIM_ROUND_OPENED, job, j->last_opened) : NULL;
    return o && o->tasks ? o->tasks[site] : sim_task_open(w, job, site);
}

void sim_check_noted(struct sim *w, const struct kedge_coord_effect *fx)
{
    const struct sim_request *r = &w->server.requests[fx->request % w->server.request_max];
    const struct sim_job *j = &w->jobs[fx->job];
    uint32_t open = j->params.buffer > 0 ? task_known(w, fx->job, fx->site) : j->last_opened;
    if (!fx->ended) {
        return;
    }
    sim_count(w, SIM_FAULT_ENDED);
    if (r->id == fx->request && r->round != open) {
        sim_violate(w, "site %u ends its part in round %u by what it says of round %u", fx->site, open,
                    r->round);
    }
    w->devices[fx->site].ended_round[fx->job] = open;
}

/* Those who cannot are no candidates, unless too few others are there. */
void sim_check_drawn(struct sim *w, const struct kedge_coord_effect *fx)
{
    struct sim_job *j = &w->jobs[fx->job];
    uint32_t able = 0, unable = 0;
    if (j->drawn_round == fx->round && j->drawn_draw == fx->draw && j->drawn_term == w->server.term) {
        return; /* it failed to be written, and comes again: candidates are those of before */
    }
    j->drawn_round = fx->round;
    j->drawn_draw = fx->draw;
    j->drawn_term = w->server.term;
    for (uint32_t i = 0; i < w->config.sites; i++) {
        const struct kedge_coord_row *row = sim_job_row(w, fx->job, i);
        bool cannot = w->devices[i].unable_ns[fx->job] > server_now(w);
        able += row && row->candidate && !cannot;
        unable += row && row->candidate && cannot;
        w->fired[SIM_FAULT_UNABLE] += row && !row->candidate && cannot;
    }
    if (unable > 0 && (able >= j->params.sites_min || j->params.buffer > 0)) {
        sim_violate(w, "round %u may draw %u sites that said they cannot, beside %u that can", fx->round,
                    unable, able);
    }
}

/* An update of the open round is on its way into its ledger, or is being looked at. */
static bool is_under_way(const struct sim *w, uint32_t job)
{
    bool any = false;
    for (uint32_t i = 0; i < w->server.ticket_max; i++) {
        const struct sim_ticket *t = &w->server.tickets[i];
        any = any || (t->used && sim_job_of(&t->result.job) == job);
    }
    return any;
}

static bool is_in(const struct sim *w, uint32_t job, uint32_t site)
{
    const struct sim_job *j = &w->jobs[job];
    for (uint32_t i = 0; i < j->fresh_count; i++) {
        const struct sim_entry *e = &w->ledgers[j->fresh[i].tenant].entries[j->fresh[i].leaf];
        if (e->site == site && e->kind == KEDGE_TASK_TRAIN) {
            return true;
        }
    }
    return false;
}

void sim_check_waits(struct sim *w, uint32_t job)
{
    const struct sim_job *j = &w->jobs[job];
    bool open = w->server.up && j->slot != SIM_NONE && j->last_opened != SIM_NONE
                && j->last_opened != j->last_closed && j->computing != j->last_opened;
    const struct sim_main *o = open ? sim_main_find(w, SIM_ROUND_OPENED, job, j->last_opened) : NULL;
    bool asked = o && o->kind == KEDGE_TASK_TRAIN && j->params.buffer == 0 && !j->params.has_root
                 && j->state != KEDGE_JOB_HALTED && !j->cancel_wanted && !is_under_way(w, job);
    const struct sim_main *before =
        o && o->round > 0 ? sim_main_find(w, SIM_ROUND_CLOSED, job, o->round - 1) : NULL;
    if (!asked || (before && before->tries)) { /* what sites find of its trials is awaited, too */
        return;
    }
    uint32_t in = 0, quorum = j->params.quorum < o->selected_count ? j->params.quorum : o->selected_count;
    for (uint32_t i = 0; i < w->config.sites; i++) {
        bool selected = sim_is_selected(o, i), has = selected && is_in(w, job, i);
        const struct kedge_coord_row *row = sim_job_row(w, job, i);
        bool settled = has || w->devices[i].ended_round[job] == o->round || w->devices[i].revoked_told
                       || j->told[i].err != KEDGE_OK;
        in += has;
        if ((selected && !settled) || (row && row->group != KEDGE_COORD_NONE && !row->group_durable)) {
            return;
        }
    }
    if (in >= quorum) {
        sim_violate(w, "round %u of job %u waits although all of its sites have answered", o->round, job);
    }
}

/* In the place of the opening before, to which nothing has come. */
void sim_check_drawn_again(struct sim *w, const struct sim_main *entry)
{
    const struct sim_job *j = &w->jobs[entry->job];
    if (entry->type != SIM_ROUND_OPENED || entry->draw == 0) {
        return;
    }
    if (j->last_opened != entry->round || j->last_closed == entry->round || j->params.buffer > 0) {
        sim_violate(w, "round %u is drawn again, and is not open", entry->round);
    }
    for (uint32_t i = 0; i < j->fresh_count; i++) {
        if (w->ledgers[j->fresh[i].tenant].entries[j->fresh[i].leaf].round == entry->round) {
            sim_violate(w, "round %u is drawn again, although an update has come to it", entry->round);
        }
    }
    for (uint32_t i = 0; i < w->config.sites; i++) {
        w->devices[i].ended_round[entry->job] = SIM_NONE;
    }
    sim_count(w, SIM_FAULT_DRAWN_AGAIN);
}
