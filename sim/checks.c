/* What must hold, whatever goes wrong. The checkers look at effects and durable arrays only, never into a
 * core's tables (but for the liveness rule, which asks the view what a job is waiting for). */
#include <string.h>

#include "sim/world.h"

static bool is_published(const struct sim *w, uint32_t job, uint32_t round, const struct kedge_digest *model)
{
    const struct sim_main *m = sim_main_find(w, SIM_ROUND_CLOSED, job, round);
    for (uint32_t g = 0; m && g < m->model_count; g++) {
        if (sim_same(&m->models[g], model)) {
            return true;
        }
    }
    return false;
}

/* Is this group's model of the last durable close before `round` the one given? */
static bool is_base(const struct sim *w, uint32_t job, uint32_t round, uint32_t group,
                    const struct kedge_digest *model)
{
    const struct sim_main *m = round > 0 ? sim_main_find(w, SIM_ROUND_CLOSED, job, round - 1) : NULL;
    if (!m) {
        return round <= 1 && w->jobs[job].params.groups == 1 && sim_same(model, &w->jobs[job].initial);
    }
    return group < m->model_count && sim_same(&m->models[group], model);
}

static void check_task(struct sim *w, const struct kedge_coord_effect *fx)
{
    const struct sim_main *open = sim_main_find(w, SIM_ROUND_OPENED, fx->job, fx->round);
    bool grouped = w->jobs[fx->job].params.groups > 1;
    if (!open) {
        sim_violate(w, "task of job %u round %u before round-opened is durable", fx->job, fx->round);
        return;
    }
    if (w->devices[fx->site].revoked_told) {
        sim_violate(w, "task for revoked site %u", fx->site);
    }
    uint64_t leaf;
    const struct sim_entry *assigned =
        sim_ledger_find(w, SIM_ASSIGNED, fx->job, 0, KEDGE_TASK_NONE, fx->site, &leaf);
    if (grouped && fx->kind != KEDGE_TASK_PRETRAIN && (!assigned || assigned->group != fx->group)) {
        sim_violate(w, "task for site %u in group %u, which is not in its ledger", fx->site, fx->group);
    }
    if (fx->kind == KEDGE_TASK_EVALUATE) {
        if (!is_base(w, fx->job, fx->round + 1, fx->group, &fx->base)) {
            sim_violate(w, "evaluation of a model that round %u did not publish", fx->round);
        }
        return;
    }
    if (!(open->selected & 1u << fx->site)) {
        sim_violate(w, "task of round %u for site %u, which is not selected", fx->round, fx->site);
    }
    if (sim_main_find(w, SIM_ROUND_CLOSED, fx->job, fx->round)) {
        sim_violate(w, "task of round %u, which is closed", fx->round);
    }
    bool base = fx->kind == KEDGE_TASK_PRETRAIN ? sim_same(&fx->base, &w->jobs[fx->job].initial)
                                                : is_base(w, fx->job, fx->round, fx->group, &fx->base);
    if (!base) {
        sim_violate(w, "task of round %u with a base that is not durable", fx->round);
    }
}

static void check_receipt(struct sim *w, const struct kedge_coord_effect *fx)
{
    const struct sim_ticket *t = &w->server.tickets[fx->ticket % SIM_TICKETS_MAX];
    const struct sim_ledger *l = &w->ledgers[fx->tenant];
    if (fx->ticket == KEDGE_COORD_NONE || !t->used) {
        return; /* a second answer goes nowhere */
    }
    bool there =
        fx->leaf < l->count && memcmp(l->entries[fx->leaf].envelope.b, t->result.envelope.b, 32) == 0;
    if (!there) {
        sim_violate(w, "receipt for site %u before its statement is durable", fx->site);
    }
}

/* Nobody may read a model whose close is not durable. */
static void check_closing(struct sim *w, const struct kedge_coord_effect *fx)
{
    const struct sim_main *m = &w->jobs[fx->job].pending;
    for (uint32_t g = 0; g < m->model_count; g++) {
        for (uint32_t i = 0; i < w->config.sites; i++) {
            const struct sim_main *last =
                m->round > 0 ? sim_main_find(w, SIM_ROUND_CLOSED, m->job, m->round - 1) : NULL;
            bool same = last && g < last->model_count && sim_same(&last->models[g], &m->models[g]);
            if (!same && !is_published(w, m->job, m->round, &m->models[g])
                && !sim_same(&m->models[g], &w->jobs[m->job].initial)
                && kedge_coord_may_read(w->server.core, fx->job, i, &m->models[g])) {
                sim_violate(w, "model of job %u round %u readable before its close is durable", m->job,
                            m->round);
            }
        }
    }
}

void sim_check_effect(struct sim *w, const struct kedge_coord_effect *fx)
{
    uint64_t more = (uint64_t)fx->round << 32 | (uint64_t)fx->kind << 16 | (uint64_t)(uint16_t)fx->err;
    sim_note(w, "effect", (uint64_t)fx->type, (uint64_t)fx->site << 32 | fx->request, more);
    if (fx->type == KEDGE_FX_TASK) {
        check_task(w, fx);
    } else if (fx->type == KEDGE_FX_RECEIPT) {
        check_receipt(w, fx);
    } else if (fx->type == KEDGE_FX_CLOSED) {
        if (fx->kind != KEDGE_TASK_EVALUATE && !sim_main_find(w, SIM_ROUND_CLOSED, fx->job, fx->round)) {
            sim_violate(w, "\"closed\" for job %u round %u before its close is durable", fx->job, fx->round);
        }
    } else if (fx->type == KEDGE_FX_MAIN_ROUND_CLOSED) {
        check_closing(w, fx);
    } else if (fx->type == KEDGE_FX_APPEND) {
        struct sim_ticket *t = &w->server.tickets[fx->ticket % SIM_TICKETS_MAX];
        if (t->after_revoked && !t->appended) {
            sim_violate(w, "statement of revoked site %u is to be appended", fx->site);
        }
        t->appended = true;
    } else if (fx->type == KEDGE_FX_VERIFY && w->server.tickets[fx->ticket % SIM_TICKETS_MAX].after_revoked) {
        sim_violate(w, "submission of revoked site %u is taken", fx->site);
    }
}

void sim_check_entry(struct sim *w, uint32_t tenant, const struct sim_entry *entry)
{
    const struct sim_ledger *l = &w->ledgers[tenant];
    for (uint32_t i = 0; i < l->count; i++) {
        const struct sim_entry *e = &l->entries[i];
        bool twice = e->type == entry->type && e->site == entry->site && e->job == entry->job
                     && (e->type == SIM_ASSIGNED || (e->round == entry->round && e->kind == entry->kind));
        if (twice && (e->type == SIM_UPDATE || e->type == SIM_EVALUATION)) {
            sim_violate(w, "two statements of site %u for job %u round %u", entry->site, entry->job,
                        entry->round);
        } else if (twice && e->type == SIM_ASSIGNED) {
            sim_violate(w, "site %u changes from group %u to %u", entry->site, e->group, entry->group);
        }
        if (e->type == SIM_REVOKED && e->site == entry->site && entry->type != SIM_ASSIGNED
            && entry->type != SIM_JOINED) {
            sim_violate(w, "statement of site %u behind its revocation", entry->site);
        }
    }
    if (entry->type == SIM_UPDATE) {
        const struct sim_main *open = sim_main_find(w, SIM_ROUND_OPENED, entry->job, entry->round);
        if (!open || !(open->selected & 1u << entry->site)) {
            sim_violate(w, "update of site %u, which round %u did not select", entry->site, entry->round);
        }
        if (sim_main_find(w, SIM_ROUND_CLOSED, entry->job, entry->round)) {
            sim_violate(w, "update of site %u accepted behind the close of round %u", entry->site,
                        entry->round);
        }
    }
}

static bool has_input(const struct sim_main *m, uint32_t site, uint32_t leaf, const struct sim_entry *e)
{
    uint32_t times = 0;
    for (uint32_t i = 0; i < m->input_count; i++) {
        const struct sim_input *in = &m->inputs[i];
        times += in->site == site && in->leaf == leaf && in->kind == e->kind
                 && sim_same(&in->envelope, &e->envelope) && sim_same(&in->update, &e->update);
    }
    return times == 1;
}

static void check_closed(struct sim *w, const struct sim_main *m)
{
    uint32_t updates = 0;
    for (uint32_t t = 0; t < w->config.tenants; t++) {
        for (uint32_t i = 0; i < w->ledgers[t].count; i++) {
            const struct sim_entry *e = &w->ledgers[t].entries[i];
            if (e->type != SIM_UPDATE || e->job != m->job || e->round != m->round) {
                continue;
            }
            updates++;
            if (!has_input(m, e->site, i, e)) {
                sim_violate(w, "update of site %u is not once in the input list of round %u", e->site,
                            m->round);
            }
        }
    }
    if (updates != m->input_count) {
        sim_violate(w, "round %u has %u inputs, the ledgers hold %u", m->round, m->input_count, updates);
    }
    for (uint32_t i = 0; i < m->input_count; i++) {
        if (m->inputs[i].group == KEDGE_COORD_NONE) {
            sim_violate(w, "update of site %u in round %u is neither used nor grouped", m->inputs[i].site,
                        m->round);
        }
    }
    if (!sim_main_find(w, SIM_ROUND_OPENED, m->job, m->round)) {
        sim_violate(w, "round %u closed before it opened", m->round);
    }
}

void sim_check_main(struct sim *w, const struct sim_main *entry)
{
    if (entry->type == SIM_ROUND_CLOSED) {
        check_closed(w, entry);
    }
    if (entry->type != SIM_JOB_OPENED && !sim_main_find(w, SIM_JOB_OPENED, entry->job, 0)) {
        sim_violate(w, "job %u: entry of type %d before job-opened", entry->job, (int)entry->type);
    }
    if (entry->type != SIM_JOB_CLOSED && sim_main_find(w, SIM_JOB_CLOSED, entry->job, 0)) {
        sim_violate(w, "job %u: entry of type %d behind job-closed", entry->job, (int)entry->type);
    }
    uint32_t first = w->jobs[entry->job].params.groups > 1 ? 0 : 1;
    if (entry->type == SIM_ROUND_OPENED && entry->round > first
        && !sim_main_find(w, SIM_ROUND_CLOSED, entry->job, entry->round - 1)) {
        sim_violate(w, "round %u opens before the one in front of it is closed", entry->round);
    }
    bool complete = entry->type == SIM_JOB_CLOSED && entry->state == KEDGE_JOB_COMPLETED;
    if (complete && !sim_main_find(w, SIM_ROUND_CLOSED, entry->job, w->jobs[entry->job].params.rounds)) {
        sim_violate(w, "job %u completes without its last round", entry->job);
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
    bool durable = sim_same(model, &w->jobs[job].initial);
    for (uint32_t r = 0; r <= w->jobs[job].params.rounds && !durable; r++) {
        durable = is_published(w, job, r, model);
    }
    if (!durable) {
        sim_violate(w, "site %u reads a model that is not durable", site);
    }
}

bool sim_job_is_stuck(const struct sim *w, uint32_t job)
{
    struct kedge_coord_job_view view;
    if (!kedge_coord_job(w->server.core, job, &view) || view.state >= KEDGE_JOB_COMPLETED) {
        return false;
    }
    uint32_t able = 0, there = 0;
    for (uint32_t i = 0; i < w->config.sites; i++) {
        const struct sim_device *d = &w->devices[i];
        const struct kedge_coord_row *row = kedge_coord_row(w->server.core, job, i);
        bool member = false;
        for (uint32_t t = 0; t < view.params->tenant_count; t++) {
            member = member || view.params->tenants[t] == d->tenant;
        }
        if (!row || !member || d->revoked_told) {
            continue;
        }
        there++;
        const struct kedge_coord_input *in = view.round == 0 ? &row->pretrain : &row->train;
        able += row->selected && !d->lazy && in->progress != KEDGE_INPUT_ACCEPTED;
    }
    uint32_t quorum = view.params->quorum < view.selected_count ? view.params->quorum : view.selected_count;
    return view.round_open ? view.accepted_count + able < quorum : there < view.params->sites_min;
}

void sim_check_end(struct sim *w)
{
    for (uint32_t i = 0; i < w->config.jobs && !w->failed; i++) {
        const struct sim_main *end = sim_main_find(w, SIM_JOB_CLOSED, i, 0);
        if (!end || w->jobs[i].state != end->state) {
            sim_violate(w, "job %u does not end: %s, %s, %u main entries", i,
                        kedge_job_state_name(w->jobs[i].state), kedge_err_code(w->jobs[i].reason),
                        w->main_count);
        } else if (end->state == KEDGE_JOB_FAILED) {
            sim_violate(w, "job %u failed", i);
        }
    }
    uint64_t hashes[SIM_TENANTS_MAX];
    for (uint32_t t = 0; t < w->config.tenants; t++) {
        hashes[t] = UINT64_C(0xcbf29ce484222325);
        for (uint32_t i = 0; i < w->ledgers[t].count; i++) {
            hashes[t] = sim_hash(hashes[t], w->ledgers[t].entries[i].envelope.b,
                                 sizeof w->ledgers[t].entries[i].envelope.b);
        }
        if (hashes[t] != w->ledgers[t].hash) {
            sim_violate(w, "ledger %u was rewritten", t);
        }
    }
    for (uint32_t i = 0; i < w->config.sites; i++) {
        const struct sim_device *d = &w->devices[i];
        for (uint32_t a = 0; a < d->ack_count; a++) {
            const struct sim_ledger *l = &w->ledgers[d->tenant];
            if (d->acks[a].leaf >= l->count
                || !sim_same(&l->entries[d->acks[a].leaf].envelope, &d->acks[a].envelope)) {
                sim_violate(w, "site %u has a receipt for a statement that is lost", i);
            }
        }
    }
}
