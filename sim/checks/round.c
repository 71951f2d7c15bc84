/* What must hold when a round closes and a job ends, and of what sites send and read. */
#include <string.h>

#include "aggregation/share_cap.h"
#include "sim/world.h"

/* Every update in the ledgers of the round is one of its inputs, as it is there, once; and nothing else is.
 */
static void check_inputs(struct sim *w, uint32_t job)
{
    struct sim_job *j = &w->jobs[job];
    struct sim_pending *p = &j->pending;
    for (uint32_t i = 0; i < p->input_count; i++) {
        const struct sim_input *in = &p->inputs[i];
        struct sim_ledger *l = &w->ledgers[w->devices[in->site].tenant];
        struct sim_entry *e = in->leaf < l->count ? &l->entries[in->leaf] : NULL;
        bool fits = e && e->type == SIM_UPDATE && e->job == job && e->site == in->site
                    && sim_check_staleness(w, job, in, e) && e->kind == in->kind && e->weight == in->weight
                    && sim_same(&e->envelope, &in->envelope) && sim_same(&e->update, &in->update);
        if (!fits || e->listed) {
            sim_violate(w, "round %u: the input of site %u is not once in its ledger", p->round, in->site);
            return;
        }
        e->listed = true;
        if (in->group == SIM_NONE && !w->payload && !p->keeps) { /* a real one may point nowhere */
            sim_violate(w, "update of site %u in round %u is neither used nor grouped", in->site, p->round);
        } else if (in->kind == KEDGE_TASK_TRAIN && e->group != in->group) {
            sim_violate(w, "update of site %u for group %u is counted in group %u", in->site, e->group,
                        in->group);
        }
    }
    for (uint32_t i = 0; i < j->fresh_count; i++) {
        const struct sim_entry *e = &w->ledgers[j->fresh[i].tenant].entries[j->fresh[i].leaf];
        if (!e->listed) {
            sim_violate(w, "update of site %u is not in the input list of round %u", e->site, p->round);
        }
    }
}

/* One aggregate per group, of the updates in the ledgers, and its weight is what they count together. */
static void check_sums(struct sim *w, uint32_t job)
{
    const struct sim_job *j = &w->jobs[job];
    const struct sim_pending *p = &j->pending;
    struct sim_sum sums[KEDGE_GROUPS_MAX] = {{.count = 0}};
    uint64_t counted[KEDGE_GROUPS_MAX] = {0};
    for (uint32_t i = 0; i < j->fresh_count; i++) {
        const struct sim_entry *e = &w->ledgers[j->fresh[i].tenant].entries[j->fresh[i].leaf];
        bool pretrain = p->kind == KEDGE_TASK_PRETRAIN;
        uint32_t group = pretrain ? sim_group_of_input(w, job, &e->update) : e->group;
        if (e->kind == p->kind && group < p->group_count && !p->keeps) {
            sums[group].weight += pretrain ? 1 : sim_counts(w, job, p->round, e->round, e->weight);
            sums[group].count++;
        }
    }
    for (uint32_t i = 0; i < p->input_count; i++) {
        if (p->inputs[i].group < p->group_count) {
            counted[p->inputs[i].group] += p->inputs[i].counted;
        }
    }
    for (uint32_t g = 0; g < p->group_count; g++) {
        uint64_t weight = j->share_max == KEDGE_SHARE_ONE ? sums[g].weight : counted[g];
        if (weight != p->sums[g].weight || counted[g] != weight || sums[g].count != p->sums[g].count) {
            sim_violate(w, "round %u group %u: weight %llu of %u updates, the ledgers say %llu of %u",
                        p->round, g, (unsigned long long)p->sums[g].weight, p->sums[g].count,
                        (unsigned long long)weight, sums[g].count);
        }
    }
}

/* No tenant has more than its share of an aggregate; with too few tenants for that all have the same. None
 * loses all of an update. */
static void check_group_shares(struct sim *w, uint32_t job, uint32_t group)
{
    const struct sim_job *j = &w->jobs[job];
    const struct sim_pending *p = &j->pending;
    uint64_t counted[KEDGE_JOB_TENANTS_MAX] = {0}, most = 0, least = UINT64_MAX, all = 0;
    uint32_t tenants = 0;
    for (uint32_t i = 0; i < p->input_count; i++) {
        const struct sim_input *in = &p->inputs[i];
        bool counts = in->kind == p->kind;
        if (in->group == group && counts && in->counted == 0) {
            sim_violate(w, "round %u: the update of site %u counts nothing", p->round, in->site);
        }
        counted[w->devices[in->site].tenant] += in->group == group ? in->counted : 0;
        all += in->group == group ? in->counted : 0;
    }
    for (uint32_t t = 0; t < w->config.tenants; t++) {
        most = counted[t] > most ? counted[t] : most;
        least = counted[t] > 0 && counted[t] < least ? counted[t] : least;
        tenants += counted[t] > 0;
    }
    bool few = (uint64_t)j->share_max * tenants < KEDGE_SHARE_ONE;
    if (all > 0 && (few ? most != least : most * KEDGE_SHARE_ONE > all * j->share_max)) {
        sim_violate(w, "round %u group %u: a tenant has %llu of %llu, its share is %u millionths", p->round,
                    group, (unsigned long long)most, (unsigned long long)all, j->share_max);
    }
}

void sim_check_shares(struct sim *w, uint32_t job)
{
    for (uint32_t g = 0; g < w->jobs[job].pending.group_count; g++) {
        check_group_shares(w, job, g);
    }
}

/* What sites were told at the door stands in the record, unless they did better since. */
static void check_refusals(struct sim *w, uint32_t job)
{
    const struct sim_job *j = &w->jobs[job];
    for (uint32_t i = 0; i < w->config.sites; i++) {
        bool better =
            j->told[i].err == KEDGE_OK || j->pending.refused[i] != KEDGE_OK || w->devices[i].revoked_told;
        for (uint32_t n = 0; n < j->pending.input_count && !better; n++) {
            better = j->pending.inputs[n].site == i && j->pending.inputs[n].kind == j->told[i].kind;
        }
        if (!better) {
            sim_violate(w, "site %u was refused with %s in round %u, whose record does not say so", i,
                        kedge_err_code(j->told[i].err), j->pending.round);
        }
    }
}

void sim_check_round(struct sim *w, uint32_t job)
{
    const struct sim_job *j = &w->jobs[job];
    const struct sim_main *open = sim_main_find(w, SIM_ROUND_OPENED, job, j->pending.round);
    if (!open) {
        sim_violate(w, "round %u closed before it opened", j->pending.round);
        return;
    }
    check_inputs(w, job);
    check_sums(w, job);
    sim_check_buffer(w, job);
    sim_check_shares(w, job);
    check_refusals(w, job);
    sim_check_groups_closed(w, job);
    if (open->kind != j->pending.kind) {
        sim_violate(w, "round %u closes as one of another kind than it opened", j->pending.round);
    }
    uint32_t counted = 0;
    for (uint32_t i = 0; i < j->pending.input_count; i++) {
        bool selected = sim_is_selected(open, j->pending.inputs[i].site);
        counted += j->pending.inputs[i].kind == j->pending.kind && selected;
    }
    uint32_t quorum = j->params.quorum < open->selected_count ? j->params.quorum : open->selected_count;
    if (counted < quorum && !j->pending.keeps) {
        sim_violate(w, "round %u closes with %u updates, its quorum is %u", j->pending.round, counted,
                    quorum);
    }
}

/* After a completed job every accepted pretraining has its one group. */
static void check_grouped(struct sim *w, uint32_t job)
{
    for (uint32_t i = 0; i < w->config.sites; i++) {
        const struct sim_device *d = &w->devices[i];
        if (d->pretrained[job] != SIM_NONE && d->assigned[job] == SIM_NONE) {
            sim_violate(w, "job %u completes, but site %u pretrained and never got a group", job, i);
        }
    }
}

void sim_check_main(struct sim *w, const struct sim_main *entry)
{
    const struct sim_job *j = &w->jobs[entry->job];
    if (entry->type != SIM_JOB_OPENED && !sim_main_find(w, SIM_JOB_OPENED, entry->job, 0)) {
        sim_violate(w, "job %u: entry of type %d before job-opened", entry->job, (int)entry->type);
    }
    if (entry->type != SIM_JOB_CLOSED && sim_main_find(w, SIM_JOB_CLOSED, entry->job, 0)) {
        sim_violate(w, "job %u: entry of type %d behind job-closed", entry->job, (int)entry->type);
    }
    uint32_t first = kedge_coord_first_round(&j->params);
    sim_check_groups_stated(w, entry);
    sim_check_selected(w, entry);
    sim_check_at_work(w, entry);
    sim_check_charged(w, entry);
    sim_check_drawn_again(w, entry);
    if (entry->type == SIM_ROUND_OPENED && entry->round > first
        && !sim_main_find(w, SIM_ROUND_CLOSED, entry->job, entry->round - 1)) {
        sim_violate(w, "round %u opens before the one in front of it is closed", entry->round);
    }
    if (entry->type == SIM_ROUND_OPENED && entry->selected_count == 0) {
        sim_violate(w, "round %u opens for nobody", entry->round);
    }
    if (entry->type == SIM_JOB_CLOSED && entry->state == KEDGE_JOB_COMPLETED) {
        check_grouped(w, entry->job);
        if (!sim_main_find(w, SIM_ROUND_CLOSED, entry->job, j->params.rounds)) {
            sim_violate(w, "job %u completes without its last round", entry->job);
        }
    }
}

static struct sim_sent *sent_of(struct sim *w, uint32_t site, const struct kedge_site_result *result)
{
    return &w->devices[site].sent[sim_job_of(&result->job) * 3 + (uint32_t)result->kind - 1];
}

void sim_check_sent(struct sim *w, uint32_t site, const struct kedge_site_result *result)
{
    struct sim_sent *s = sent_of(w, site, result);
    bool other = memcmp(s->envelope.b, result->envelope.b, sizeof s->envelope.b) != 0;
    if (s->used && !s->settled && s->round == result->round && other) {
        sim_violate(w, "site %u sends two results for round %u", site, result->round);
    }
    *s = (struct sim_sent){.used = true, .round = result->round};
    memcpy(s->envelope.b, result->envelope.b, sizeof s->envelope.b);
}

void sim_check_settled(struct sim *w, uint32_t site, const struct kedge_site_result *result)
{
    struct sim_sent *s = sent_of(w, site, result);
    s->settled = s->settled || memcmp(s->envelope.b, result->envelope.b, sizeof s->envelope.b) == 0;
}

void sim_check_fetched(struct sim *w, uint32_t site, uint32_t job, const struct kedge_digest *model)
{
    if (!sim_is_own(w, site, job, model)) {
        sim_violate(w, "site %u reads a model that is not durable or not of its group", site);
    }
}

/* Is there an update of the open round that could not be stored, and not since? */
static bool is_unstored(const struct sim *w, uint32_t job)
{
    const struct sim_job *j = &w->jobs[job];
    for (uint32_t i = 0; i < w->config.sites; i++) {
        const struct sim_device *d = &w->devices[i];
        if (d->unstored_round[job] == j->last_opened && !d->revoked_told
            && j->last_opened != j->last_closed) {
            return true;
        }
    }
    return false;
}

void sim_check_unstored(struct sim *w, uint32_t job, uint32_t site, int err)
{
    const struct sim_job *j = &w->jobs[job];
    if (!w->server.up || j->slot == SIM_NONE) {
        return; /* it crashed on the way */
    }
    uint32_t round = site != SIM_NONE && j->params.buffer > 0 ? sim_task_open(w, job, site) : j->last_opened;
    bool open = site != SIM_NONE && kedge_coord_may_upload(w->server.core, j->slot, site, round) == KEDGE_OK;
    if (err != KEDGE_OK && open && j->state != KEDGE_JOB_HALTED) {
        sim_violate(w, "the update of site %u cannot be stored, but job %u is not halted", site, job);
    }
    if (j->state == KEDGE_JOB_HALTED && j->reason == SIM_UNSTORED_ERR && !is_unstored(w, job)) {
        sim_violate(w, "job %u is halted for an update that cannot be stored, and there is none", job);
    }
}

static void check_nosy(struct sim *w, uint32_t job, const struct sim_main *closed)
{
    for (uint32_t i = 0; i < w->config.sites; i++) {
        for (uint32_t g = 0; g < closed->model_count; g++) {
            bool own = sim_is_own(w, i, job, &closed->models[g]);
            w->fired[SIM_FAULT_NOSY] += !own;
            if (!own && sim_may_read(w, job, i, &closed->models[g])) {
                sim_violate(w, "site %u may read the model of group %u, which is not its own", i, g);
            }
        }
    }
}

/* Every site asks for every model of the last two closes: it gets its own group's, at most. */
void sim_check_nosy(struct sim *w, uint32_t job)
{
    const struct sim_main *last = sim_last_closed(w, job);
    const struct sim_main *prior =
        last && last->round > 0 ? sim_main_find(w, SIM_ROUND_CLOSED, job, last->round - 1) : NULL;
    if (last) {
        check_nosy(w, job, last);
    }
    if (prior) {
        check_nosy(w, job, prior);
    }
}
