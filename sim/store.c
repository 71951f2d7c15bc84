/* What is durable: ledgers, main chain, and the pure computations whose results go there. */
#include <string.h>

#include "sim/world.h"

int sim_ledger_append(struct sim *w, uint32_t tenant, const struct sim_entry *entry, uint64_t *ret_leaf)
{
    struct sim_ledger *l = &w->ledgers[tenant];
    bool revoked = false;
    for (uint32_t i = 0; i < l->count; i++) {
        const struct sim_entry *e = &l->entries[i];
        bool same = e->type == entry->type && e->site == entry->site && e->job == entry->job
                    && e->round == entry->round && e->kind == entry->kind && e->group == entry->group
                    && sim_same(&e->envelope, &entry->envelope);
        if (same) { /* idempotent */
            *ret_leaf = i;
            return KEDGE_OK;
        }
        revoked = revoked || (e->type == SIM_REVOKED && e->site == entry->site);
    }
    if (revoked && (entry->type == SIM_UPDATE || entry->type == SIM_EVALUATION)) {
        return KEDGE_E_REVOKED;
    }
    KEDGE_ASSERT(l->count < SIM_LEDGER_MAX);
    sim_check_entry(w, tenant, entry);
    *ret_leaf = l->count;
    l->entries[l->count++] = *entry;
    l->hash = sim_hash(l->hash, entry->envelope.b, sizeof entry->envelope.b);
    sim_note(w, "ledger", tenant, entry->type, entry->site);
    return KEDGE_OK;
}

void sim_main_append(struct sim *w, const struct sim_main *entry)
{
    const struct sim_main *old = sim_main_find(w, entry->type, entry->job, entry->round);
    if (old) { /* idempotent; but it must be the same thing */
        if (old->selected != entry->selected || old->model_count != entry->model_count
            || old->state != entry->state || memcmp(old->models, entry->models, sizeof old->models) != 0) {
            sim_violate(w, "main chain: two different entries of type %d for job %u round %u",
                        (int)entry->type, entry->job, entry->round);
        }
        return;
    }
    KEDGE_ASSERT(w->main_count < SIM_MAIN_MAX);
    sim_check_main(w, entry);
    w->main[w->main_count++] = *entry;
    w->main_hash = sim_hash(w->main_hash, entry->models, sizeof entry->models);
    sim_note(w, "main", entry->type, entry->job, entry->round);
}

const struct sim_main *sim_main_find(const struct sim *w, enum sim_main_type type, uint32_t job,
                                     uint32_t round)
{
    for (uint32_t i = 0; i < w->main_count; i++) {
        const struct sim_main *m = &w->main[i];
        bool once = type == SIM_JOB_OPENED || type == SIM_JOB_CLOSED;
        if (m->type == type && m->job == job && (once || m->round == round)) {
            return m;
        }
    }
    return NULL;
}

const struct sim_entry *sim_ledger_find(const struct sim *w, enum sim_entry_type type, uint32_t job,
                                        uint32_t round, enum kedge_task_kind kind, uint32_t site,
                                        uint64_t *ret_leaf)
{
    const struct sim_ledger *l = &w->ledgers[w->devices[site].tenant];
    for (uint32_t i = 0; i < l->count; i++) {
        const struct sim_entry *e = &l->entries[i];
        bool fits = type == SIM_REVOKED || (e->job == job && (type == SIM_ASSIGNED || e->round == round));
        if (e->type == type && e->site == site && fits && (type != SIM_UPDATE || e->kind == kind)) {
            *ret_leaf = i;
            return e;
        }
    }
    return NULL;
}

uint32_t sim_group_of(const struct kedge_digest *update, uint32_t groups)
{
    return groups ? update->b[0] % groups : 0;
}

static void put_input(struct sim_main *m, uint32_t site, uint32_t group, enum kedge_task_kind kind,
                      const struct kedge_coord_input *in)
{
    if (in->progress == KEDGE_INPUT_ACCEPTED) {
        KEDGE_ASSERT(m->input_count < SIM_INPUTS_MAX);
        m->inputs[m->input_count++] =
            (struct sim_input){site, (uint32_t)in->leaf, group, kind, in->envelope, in->update};
    }
}

/* Every group's model is a hash of its old model and of its inputs in order; a group without inputs keeps its
 * own. */
static void compute_models(struct sim *w, const struct kedge_coord_job_view *view, struct sim_main *m)
{
    for (uint32_t g = 0; g < m->model_count; g++) {
        const struct kedge_digest *base =
            g < view->model_count && m->round > 0 ? &view->models[g] : &view->initial;
        uint64_t h = sim_hash(UINT64_C(0xcbf29ce484222325), base->b, sizeof base->b);
        bool any = m->round == 0;
        for (uint32_t i = 0; i < m->input_count; i++) {
            const struct sim_input *in = &m->inputs[i];
            if (in->group == g && (in->kind == KEDGE_TASK_TRAIN || m->round == 0)) {
                h = sim_hash(h, in->update.b, sizeof in->update.b);
                any = true;
            }
        }
        m->models[g] = any ? sim_digest(h, m->job, m->round, &g, sizeof g) : *base;
    }
    (void)w;
}

void sim_compute(struct sim *w, uint32_t job, struct sim_main *ret)
{
    struct kedge_coord_job_view view;
    KEDGE_ASSERT(kedge_coord_job(w->server.core, job, &view));
    memset(ret, 0, sizeof *ret);
    ret->type = SIM_ROUND_CLOSED;
    ret->job = job;
    ret->round = view.round;
    uint32_t count = 0;
    const uint32_t *order = kedge_coord_site_order(w->server.core, &count);
    ret->model_count = view.params->groups;
    if (view.round == 0 && view.accepted_count < ret->model_count) {
        ret->model_count = view.accepted_count; /* fewer updates than groups */
    } else if (view.round > 0) {
        ret->model_count = view.model_count;
    }
    memset(ret->groups, 0xff, sizeof ret->groups);
    for (uint32_t i = 0; i < count; i++) {
        const struct kedge_coord_row *row = kedge_coord_row(w->server.core, job, order[i]);
        uint32_t group = row->group;
        if (view.round == 0 && row->pretrain.progress == KEDGE_INPUT_ACCEPTED) {
            group = sim_group_of(&row->pretrain.update, ret->model_count);
            ret->groups[order[i]] = group;
        }
        put_input(ret, order[i], group, KEDGE_TASK_PRETRAIN, &row->pretrain);
        put_input(ret, order[i], group, KEDGE_TASK_TRAIN, &row->train);
    }
    compute_models(w, &view, ret);
}

static int write_statement(struct sim *w, const struct kedge_coord_effect *fx, uint64_t *ret_leaf)
{
    const struct sim_ticket *t = &w->server.tickets[fx->ticket % SIM_TICKETS_MAX];
    KEDGE_ASSERT(t->used && t->site == fx->site);
    struct sim_entry e = {.type = fx->kind == KEDGE_TASK_EVALUATE ? SIM_EVALUATION : SIM_UPDATE,
                          .site = fx->site,
                          .job = fx->job,
                          .round = t->result.round,
                          .group = t->result.group,
                          .kind = fx->kind,
                          .weight = t->weight};
    memcpy(e.envelope.b, t->result.envelope.b, sizeof e.envelope.b);
    memcpy(e.update.b, t->result.update.b, sizeof e.update.b);
    return sim_ledger_append(w, fx->tenant, &e, ret_leaf);
}

static int write_main(struct sim *w, const struct kedge_coord_effect *fx)
{
    struct sim_main m = {.type = SIM_JOB_OPENED, .job = fx->job, .round = fx->round};
    struct sim_job *j = &w->jobs[fx->job];
    if (fx->type == KEDGE_FX_MAIN_ROUND_CLOSED) {
        KEDGE_ASSERT(j->computed && j->pending.round == fx->round);
        sim_main_append(w, &j->pending);
        return KEDGE_OK;
    }
    if (fx->type == KEDGE_FX_MAIN_ROUND_OPENED) {
        m.type = SIM_ROUND_OPENED;
        for (uint32_t i = 0; i < w->config.sites; i++) {
            const struct kedge_coord_row *row = kedge_coord_row(w->server.core, fx->job, i);
            m.selected |= row && row->selected ? 1u << i : 0;
        }
    } else if (fx->type == KEDGE_FX_MAIN_JOB_CLOSED) {
        m.type = SIM_JOB_CLOSED;
        m.state = fx->state;
    }
    sim_main_append(w, &m);
    return KEDGE_OK;
}

int sim_write(struct sim *w, const struct kedge_coord_effect *fx, uint64_t *ret_leaf)
{
    if (fx->type == KEDGE_FX_APPEND) {
        return write_statement(w, fx, ret_leaf);
    }
    if (fx->type == KEDGE_FX_APPEND_ASSIGNED) {
        struct sim_entry e = {.type = SIM_ASSIGNED, .site = fx->site, .job = fx->job, .group = fx->group};
        return sim_ledger_append(w, fx->tenant, &e, ret_leaf);
    }
    return write_main(w, fx);
}
