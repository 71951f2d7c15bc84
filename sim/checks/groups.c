/* What must hold of groups: a site changes its group by a statement only, and by whose word it says; tasks,
 * updates and what may be read follow from that. */
#include <string.h>

#include "sim/world.h"

/* Round of the site's last group-assigned, SIM_NONE: it has none. */
static uint32_t stated_round(const struct sim *w, uint32_t site, uint32_t job)
{
    const struct sim_device *d = &w->devices[site];
    uint32_t at = d->assigned[job];
    return at == SIM_NONE ? SIM_NONE : w->ledgers[d->tenant].entries[at].round;
}

/* Is the pause between two changes of its own making over? */
static bool may_migrate(const struct sim *w, uint32_t site, uint32_t job, uint32_t round)
{
    uint32_t every = w->jobs[job].params.migrate_every, last = stated_round(w, site, job);
    last = last == SIM_NONE ? 0 : last;
    return every > 0 && round >= last && round - last >= every;
}

/* By its own pretraining: an accepted one of this very round, which is open and one of training; a
 * newcomer's, or a migration that the job allows. */
static void check_own(struct sim *w, const struct sim_entry *e)
{
    const struct sim_device *d = &w->devices[e->site];
    const struct sim_main *open = sim_main_find(w, SIM_ROUND_OPENED, e->job, e->round);
    const struct sim_main *last = sim_last_closed(w, e->job);
    uint32_t at = d->pretrained[e->job], count = last ? last->model_count : 1;
    const struct sim_entry *p = at == SIM_NONE ? NULL : &w->ledgers[d->tenant].entries[at];
    if (!p || p->round != e->round) {
        sim_violate(w, "site %u gets a group without an accepted pretraining of round %u", e->site, e->round);
        return;
    }
    if (!open || open->kind != KEDGE_TASK_TRAIN || sim_main_find(w, SIM_ROUND_CLOSED, e->job, e->round)) {
        sim_violate(w, "site %u gets a group by a pretraining of round %u, which is not open", e->site,
                    e->round);
    }
    bool warm = sim_is_warm(w, e->site, e->job);
    if (warm != (e->why == KEDGE_WHY_MIGRATION) || (warm && !may_migrate(w, e->site, e->job, e->round))) {
        sim_violate(w, "site %u may not change its group in round %u by itself", e->site, e->round);
    }
    uint32_t want;
    if (sim_nearest(w, e->job, e->site, &p->update, count, &want) != KEDGE_OK || want != e->group) {
        sim_violate(w, "site %u gets group %u, but its pretraining says %u", e->site, e->group, want);
    }
}

/* By its last model, before it trains in this round, which is open and has selected it; to another group than
 * it was in. */
static void check_nearest(struct sim *w, const struct sim_entry *e)
{
    const struct sim_device *d = &w->devices[e->site];
    const struct sim_main *open = sim_main_find(w, SIM_ROUND_OPENED, e->job, e->round);
    const struct sim_main *last = sim_last_closed(w, e->job);
    uint32_t groups = last ? last->model_count : w->jobs[e->job].params.groups, want;
    uint32_t at = d->trained[e->job];
    bool is_open = open && !sim_main_find(w, SIM_ROUND_CLOSED, e->job, e->round);
    bool trained = at != SIM_NONE && w->ledgers[d->tenant].entries[at].round == e->round;
    if (!is_open || !sim_is_selected(open, e->site) || trained || d->group[e->job] == e->group) {
        sim_violate(w, "site %u gets group %u by its last model in round %u, and trains for none there",
                    e->site, e->group, e->round);
    }
    if (sim_nearest(w, e->job, e->site, NULL, groups, &want) != KEDGE_OK || want != e->group) {
        sim_violate(w, "site %u gets group %u, but its last model says %u", e->site, e->group, want);
    }
}

void sim_check_assigned(struct sim *w, const struct sim_entry *e)
{
    uint32_t last = stated_round(w, e->site, e->job);
    const struct kedge_coord_job_params *params = &w->jobs[e->job].params;
    if (params->entry == KEDGE_ENTRY_CHOICE || params->entry == KEDGE_ENTRY_TENANT || params->groups == 1) {
        sim_violate(w, "site %u gets a group in a job that gives none", e->site);
    }
    bool again = last == e->round && e->why == KEDGE_WHY_CLOSE; /* behind what it did in the round itself */
    if (last != SIM_NONE && e->round <= last && !again) {
        sim_violate(w, "site %u gets group %u of round %u behind that of round %u", e->site, e->group,
                    e->round, last);
    }
    if ((params->entry == KEDGE_ENTRY_NEAREST) != (e->why == KEDGE_WHY_NEAREST)) {
        sim_violate(w, "site %u gets group %u for a reason that its job does not know", e->site, e->group);
    }
    if (e->why != KEDGE_WHY_CLOSE) {
        (params->entry == KEDGE_ENTRY_NEAREST ? check_nearest : check_own)(w, e);
        return;
    }
    const struct sim_main *closed = sim_main_find(w, SIM_ROUND_CLOSED, e->job, e->round);
    uint32_t want = closed && closed->groups ? closed->groups[e->site] : SIM_NONE;
    if (want != e->group) {
        sim_violate(w, "site %u gets group %u, but the close of round %u says %u", e->site, e->group,
                    e->round, want);
    }
    w->fired[SIM_FAULT_REGROUPED_NEWCOMER] += e->round > 0 && !sim_is_warm(w, e->site, e->job);
}

/* A site that says that its data have shifted moves first, and trains for its new group. */
static void check_order(struct sim *w, const struct kedge_coord_effect *fx)
{
    const struct sim_device *d = &w->devices[fx->site];
    uint32_t at = d->pretrained[fx->job];
    bool done = at != SIM_NONE && w->ledgers[d->tenant].entries[at].round == fx->round;
    bool told = d->told_term[fx->job] == 1 + w->server.term;
    /* one whose training was refused is asked again for that, when the round cannot do without it */
    bool refused = d->refused_round[fx->job] == fx->round || w->jobs[fx->job].told[fx->site].err != KEDGE_OK;
    if (told && !done && !refused && sim_is_warm(w, fx->site, fx->job)
        && may_migrate(w, fx->site, fx->job, fx->round)) {
        sim_violate(w, "site %u is to train in round %u, and its data have shifted", fx->site, fx->round);
    }
}

/* Where a site goes by its last model it trains for the group of the nearest; where tenants are groups, for
 * its tenant's. */
static void check_last(struct sim *w, const struct kedge_coord_effect *fx)
{
    const struct kedge_coord_job_params *p = &w->jobs[fx->job].params;
    const struct sim_main *last = sim_last_closed(w, fx->job);
    uint32_t want = fx->group, groups = last ? last->model_count : p->groups;
    if (p->entry == KEDGE_ENTRY_TENANT) {
        want = w->devices[fx->site].tenant % p->groups;
    } else if (p->entry == KEDGE_ENTRY_NEAREST
               && sim_nearest(w, fx->job, fx->site, NULL, groups, &want) != KEDGE_OK) {
        want = SIM_NONE;
    }
    if (want != fx->group) {
        sim_violate(w, "site %u is to train for group %u in round %u, but belongs to %u", fx->site, fx->group,
                    fx->round, want);
    }
}

void sim_check_group_task(struct sim *w, const struct kedge_coord_effect *fx)
{
    const struct sim_device *d = &w->devices[fx->site];
    const struct kedge_coord_job_params *p = &w->jobs[fx->job].params;
    const struct sim_main *open = sim_main_find(w, SIM_ROUND_OPENED, fx->job, fx->round);
    if (p->groups == 1 || fx->choice) {
        return;
    }
    if (fx->kind == KEDGE_TASK_PRETRAIN) {
        bool migrates = open && open->kind == KEDGE_TASK_TRAIN && sim_is_warm(w, fx->site, fx->job);
        uint32_t at = d->trained[fx->job];
        bool trained = at != SIM_NONE && w->ledgers[d->tenant].entries[at].round == fx->round;
        if (migrates && (d->told_term[fx->job] == 0 || !may_migrate(w, fx->site, fx->job, fx->round))) {
            sim_violate(w, "site %u is to pretrain in round %u, and may not move", fx->site, fx->round);
        }
        if (migrates && trained) {
            sim_violate(w, "site %u is to pretrain in round %u, in which it has trained", fx->site,
                        fx->round);
        }
        return;
    }
    if (d->group[fx->job] != fx->group) {
        sim_violate(w, "task for site %u in group %u, which is not in its ledger", fx->site, fx->group);
    }
    if (sim_unstated(w, fx->job, fx->site) != SIM_NONE) {
        sim_violate(w, "task for site %u before its move is stated", fx->site);
    }
    if (fx->kind == KEDGE_TASK_TRAIN) {
        check_order(w, fx);
        check_last(w, fx);
    }
}

void sim_check_migrates(struct sim *w, const struct sim_entry *e)
{
    const struct sim_main *open = sim_main_find(w, SIM_ROUND_OPENED, e->job, e->round);
    bool migrates = open && open->kind == KEDGE_TASK_TRAIN && sim_is_warm(w, e->site, e->job);
    if (migrates && !may_migrate(w, e->site, e->job, e->round)) {
        sim_violate(w, "pretraining of site %u in round %u, in which it may not move", e->site, e->round);
    }
    const struct kedge_coord_job_params *params = &w->jobs[e->job].params;
    if (params->groups == 1 || kedge_entry_is_settled(params->entry)) {
        sim_violate(w, "pretraining of site %u in a job that asks for none", e->site);
    }
}

/* Groups are kept where too few came to make new ones, and only there. */
static void check_kept(struct sim *w, uint32_t job)
{
    const struct sim_pending *p = &w->jobs[job].pending;
    const struct sim_main *open = sim_main_find(w, SIM_ROUND_OPENED, job, p->round),
                          *last = sim_last_closed(w, job);
    bool anew = p->kind == KEDGE_TASK_PRETRAIN && p->round > 0;
    uint32_t wanted = w->jobs[job].params.quorum, came = 0;
    for (uint32_t i = 0; i < p->input_count; i++) {
        came += p->inputs[i].kind == KEDGE_TASK_PRETRAIN;
    }
    wanted = last && last->model_count > wanted ? last->model_count : wanted;
    wanted = open && open->selected_count < wanted ? open->selected_count : wanted;
    if (p->keeps != (anew && came < wanted)) {
        sim_violate(w, "round %u %s the groups by %u updates, and is to make new ones by %u", p->round,
                    p->keeps ? "keeps" : "does not keep", came, wanted);
    }
    bool same = last && last->model_count == p->model_count;
    for (uint32_t g = 0; p->keeps && same && g < p->model_count; g++) {
        same = sim_same(&last->models[g], &p->models[g]);
    }
    if (p->keeps && !same) {
        sim_violate(w, "round %u keeps the groups, but not their models", p->round);
    }
}

/* Who pretrained in the round has its group: by a statement of the round, or by this close. Nobody stays in a
 * group that is no more. */
void sim_check_groups_closed(struct sim *w, uint32_t job)
{
    const struct sim_pending *p = &w->jobs[job].pending;
    check_kept(w, job);
    for (uint32_t i = 0; i < p->input_count && !p->keeps; i++) {
        const struct sim_input *in = &p->inputs[i];
        if (in->kind != KEDGE_TASK_PRETRAIN) {
            continue;
        }
        bool stated = p->kind == KEDGE_TASK_PRETRAIN ? p->groups[in->site] == in->group
                                                     : stated_round(w, in->site, job) == p->round
                                                           && w->devices[in->site].group[job] == in->group;
        if (!stated || in->group == SIM_NONE) {
            sim_violate(w, "round %u closes, and site %u pretrained in it for no group", p->round, in->site);
        }
    }
    for (uint32_t i = 0; i < w->config.sites && w->jobs[job].params.groups > 1; i++) {
        uint32_t behind = p->groups[i] != SIM_NONE ? p->groups[i] : w->devices[i].group[job];
        if (behind != SIM_NONE && behind >= p->model_count) {
            sim_violate(w, "site %u stays in group %u behind round %u, which is no more", i, behind,
                        p->round);
        }
    }
}

/* Behind a close nothing happens before all that it gave is stated; then comes a round of the kind that is
 * due. */
void sim_check_groups_stated(struct sim *w, const struct sim_main *entry)
{
    bool completes = entry->type == SIM_JOB_CLOSED && entry->state == KEDGE_JOB_COMPLETED;
    if (entry->type != SIM_ROUND_OPENED && !completes) {
        return;
    }
    for (uint32_t i = 0; i < w->config.sites; i++) {
        if (sim_unstated(w, entry->job, i) != SIM_NONE) {
            sim_violate(w, "the last close gave site %u a group, and no statement says so", i);
        }
    }
    const struct sim_main *last = sim_last_closed(w, entry->job);
    enum kedge_task_kind want =
        kedge_coord_round_kind(&w->jobs[entry->job].params, entry->round, last ? last->kind : KEDGE_TASK_NONE,
                               last && last->regroup);
    if (entry->type == SIM_ROUND_OPENED && entry->kind != want) {
        sim_violate(w, "round %u opens as one of another kind than is due", entry->round);
    }
}

/* Of those whose updates make groups no tenant has more than one more than another that has candidates left.
 */
static void check_equal_tenants(struct sim *w, const struct sim_main *entry)
{
    uint32_t taken[KEDGE_JOB_TENANTS_MAX] = {0}, left[KEDGE_JOB_TENANTS_MAX] = {0}, most = 0;
    for (uint32_t i = 0; i < w->config.sites; i++) {
        const struct kedge_coord_row *row = sim_job_row(w, entry->job, i);
        bool is_taken = (entry->selected[i / 8] >> i % 8 & 1) != 0;
        uint32_t tenant = w->devices[i].tenant;
        taken[tenant] += is_taken;
        left[tenant] += row && row->candidate && !is_taken;
    }
    for (uint32_t t = 0; t < w->config.tenants; t++) {
        most = taken[t] > most ? taken[t] : most;
    }
    for (uint32_t t = 0; t < w->config.tenants; t++) {
        if (left[t] > 0 && taken[t] + 1 < most) {
            sim_violate(w, "round %u makes groups of %u sites of one tenant and %u of %u of another",
                        entry->round, most, taken[t], taken[t] + left[t]);
        }
    }
}

void sim_check_selected(struct sim *w, const struct sim_main *entry)
{
    if (entry->type == SIM_ROUND_OPENED && entry->kind == KEDGE_TASK_PRETRAIN) {
        check_equal_tenants(w, entry);
    }
}

/* Told until it is answered, and no longer. */
void sim_check_shift_told(struct sim *w, uint32_t site, const struct kedge_site_effect *poll)
{
    const struct sim_device *d = &w->devices[site];
    bool told[SIM_JOBS_MAX] = {false};
    for (uint32_t i = 0; i < poll->shifted_count; i++) {
        told[sim_job_of(&poll->shifted[i])] = true;
    }
    for (uint32_t i = 0; i < w->config.jobs; i++) {
        if (told[i] && !d->shifted[i]) {
            sim_violate(w, "site %u says that its data have shifted, and that is settled", site);
        }
    }
}

void sim_check_shift_kept(struct sim *w, uint32_t site)
{
    const struct sim_device *d = &w->devices[site];
    struct kedge_site_view view;
    kedge_site_view(d->core, &view);
    if (view.memory->shift_count != d->stored.shift_count) {
        sim_violate(w, "site %u forgets that its data have shifted", site);
    }
}

/* May this site know this model: the first one, that of its group, or that of the group in which it was when
 * the last round closed? */
bool sim_is_own(const struct sim *w, uint32_t site, uint32_t job, const struct kedge_digest *model)
{
    const struct sim_device *d = &w->devices[site];
    const struct sim_job *j = &w->jobs[job];
    const struct sim_main *last = sim_last_closed(w, job);
    const struct sim_main *prior =
        last && last->round > 0 ? sim_main_find(w, SIM_ROUND_CLOSED, job, last->round - 1) : NULL;
    bool one = j->params.groups == 1;
    uint32_t now = one ? 0 : sim_unstated(w, job, site) != SIM_NONE ? SIM_NONE : d->group[job];
    uint32_t before = one ? 0 : d->prior_group[job];
    bool begin = sim_same(model, &j->initial);
    for (uint32_t g = 0; g < kedge_coord_first_models(&j->params); g++) {
        begin = begin || sim_same(model, &j->begin[g]);
    }
    bool all =
        j->params.entry == KEDGE_ENTRY_CHOICE || j->params.buffer > 0; /* an older task has an older model */
    return begin || (all && sim_is_published(w, job, model))
           || (last && now < last->model_count && sim_same(model, &last->models[now]))
           || (prior && before < prior->model_count && sim_same(model, &prior->models[before]));
}
