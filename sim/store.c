/* What is durable: ledgers and the main chain, and what a restart will find in them.
 *
 * It is written at once or not at all: what can go wrong on the way is decided where writing is asked for
 * (server.c). Writing the same thing again finds it and is no error, as in a real ledger, where entries are
 * found by idempotency keys; writing another thing in its place is a violation, whatever led to it. */
#include <string.h>

#include "common/base/mem.h"
#include "sim/world.h"

static bool is_same(const struct sim_entry *a, const struct sim_entry *b)
{
    return a->round == b->round && a->group == b->group && a->weight == b->weight
           && sim_same(&a->envelope, &b->envelope);
}

/* What a restart will find. */
static void remember(struct sim *w, uint32_t tenant, const struct sim_entry *e, uint32_t leaf)
{
    struct sim_job *j = &w->jobs[e->job];
    if (e->type == SIM_JOINED) {
        j->joined[tenant] = 1;
        return;
    }
    struct sim_device *d = &w->devices[e->site];
    switch (e->type) {
    case SIM_JOINED:
        return;
    case SIM_REVOKED:
        d->revoked = true;
        return;
    case SIM_ASSIGNED:
        w->fired[SIM_FAULT_NEARER] += e->why == KEDGE_WHY_NEAREST && d->assigned[e->job] != SIM_NONE;
        d->assigned[e->job] = leaf;
        d->group[e->job] = e->group;
        d->grouped_by[e->job] = d->pretrained[e->job];
        w->fired[SIM_FAULT_MIGRATED] += e->why == KEDGE_WHY_MIGRATION;
        return;
    case SIM_EVALUATION:
        d->evaluated[e->job] = leaf;
        return;
    case SIM_UPDATE:
        if (e->kind == KEDGE_TASK_PRETRAIN) {
            d->pretrained[e->job] = leaf;
            d->told_term[e->job] = 0;
        } else {
            d->trained[e->job] = leaf;
        }
        if (e->kind != KEDGE_TASK_PRETRAIN && j->params.entry == KEDGE_ENTRY_CHOICE) {
            w->fired[SIM_FAULT_CHOSEN] += d->group[e->job] != SIM_NONE && d->group[e->job] != e->group;
            d->group[e->job] = e->group;
        }
        j->fresh = sim_grow(j->fresh, j->fresh_count + 1, &j->fresh_max, sizeof *j->fresh);
        j->fresh[j->fresh_count++] = (struct sim_fresh){tenant, leaf};
        return;
    }
}

int sim_ledger_append(struct sim *w, uint32_t tenant, const struct sim_entry *entry, uint64_t *ret_leaf)
{
    struct sim_ledger *l = &w->ledgers[tenant];
    struct sim_entry e = *entry;
    uint32_t leaf;
    if (e.type != SIM_UPDATE && e.type != SIM_EVALUATION) {
        sim_sign_entry(w, tenant, &e);
    }
    const struct sim_entry *old = sim_ledger_find(w, tenant, &e, &leaf);
    if (old && is_same(old, &e)) { /* idempotent */
        *ret_leaf = leaf;
        return KEDGE_OK;
    }
    if (old) {
        sim_violate(w, "tenant %u: a statement of type %d about site %u in round %u has the key of entry %u",
                    tenant, (int)e.type, e.site, e.round, leaf);
        return KEDGE_E_EXISTS;
    }
    bool of_site = e.type == SIM_UPDATE || e.type == SIM_EVALUATION;
    if (of_site && w->devices[e.site].revoked) {
        return KEDGE_E_REVOKED;
    }
    sim_check_entry(w, tenant, &e);
    l->entries = sim_grow(l->entries, l->count + 1, &l->max, sizeof *l->entries);
    leaf = l->count++;
    l->entries[leaf] = e;
    l->hash = sim_hash(l->hash, e.envelope.b, sizeof e.envelope.b);
    (void)sim_index_put(&l->index, sim_key_of(w, &e), leaf);
    remember(w, tenant, &e, leaf);
    sim_entry_appended(w, tenant, &e);
    sim_note(w, "ledger", tenant, e.type, e.site);
    *ret_leaf = leaf;
    return KEDGE_OK;
}

/* Idempotent; but it must be the same thing. */
static bool is_there(struct sim *w, const struct sim_main *m, const uint8_t *selected,
                     const struct kedge_digest *models)
{
    const struct sim_main *old = sim_main_find(w, m->type, m->job, m->round);
    if (!old || (m->type == SIM_ROUND_OPENED && m->draw == old->draw + 1)) {
        return false;
    }
    bool same = old->selected_count == m->selected_count && old->draw == m->draw
                && old->group_count == m->group_count && old->input_count == m->input_count
                && old->inputs_hash == m->inputs_hash && old->state == m->state && old->kind == m->kind
                && old->regroup == m->regroup && old->keeps == m->keeps && old->model_count == m->model_count
                && (!selected || memcmp(old->selected, selected, (w->config.sites + 7) / 8) == 0);
    for (uint32_t g = 0; same && g < m->model_count; g++) {
        same = sim_same(&old->models[g], &models[g]);
    }
    if (!same) {
        sim_violate(w, "main chain: two different entries of type %d for job %u round %u", (int)m->type,
                    m->job, m->round);
    }
    return true;
}

static void append_main(struct sim *w, struct sim_main *m)
{
    struct sim_job *j = &w->jobs[m->job];
    m->at_ns = w->now_ns;
    m->crashes = sim_crashes(w);
    sim_check_main(w, m);
    w->main = sim_grow(w->main, w->main_count + 1, &w->main_max, sizeof *w->main);
    uint32_t at = w->main_count++;
    if (m->type == SIM_JOB_OPENED) {
        j->opened = at;
    } else if (m->type == SIM_JOB_CLOSED) {
        j->closed = at;
    } else if (m->type == SIM_ROUND_OPENED) {
        j->rounds_opened[m->round] = at;
        j->last_opened = m->round;
    } else {
        j->rounds_closed[m->round] = at;
        j->last_closed = m->round;
    }
    w->main[at] = *m;
    w->main_root = sim_digest(m->type, m->job, m->round, w->main_root.b, sizeof w->main_root.b);
    sim_main_appended(w, &w->main[at]);
    sim_note(w, "main", m->type, m->job, m->round);
}

/* What came to a round that keeps the groups gives none: what did before goes on counting. */
static void forget_inputs(struct sim *w, const struct sim_main *m, const struct sim_pending *p)
{
    for (uint32_t i = 0; i < p->input_count && m->keeps; i++) {
        struct sim_device *d = &w->devices[p->inputs[i].site];
        d->pretrained[m->job] = d->grouped_by[m->job];
    }
}

/* Who of the groups' members were who when this round closed. */
static void remember_groups(struct sim *w, uint32_t job)
{
    for (uint32_t i = 0; i < w->config.sites; i++) {
        w->devices[i].prior_group[job] = w->devices[i].group[job];
    }
}

static void copy_close(struct sim *w, struct sim_main *m, const struct sim_pending *p)
{
    m->sums = sim_new_array(p->group_count, sizeof *m->sums);
    memcpy(m->sums, p->sums, p->group_count * sizeof *m->sums);
    m->models = sim_new_array(p->model_count, sizeof *m->models);
    memcpy(m->models, p->models, p->model_count * sizeof *m->models);
    bool gives = false;
    for (uint32_t i = 0; i < w->config.sites; i++) {
        gives = gives || p->groups[i] != SIM_NONE;
    }
    if (gives) {
        m->groups = sim_new_array(w->config.sites, sizeof *m->groups);
        memcpy(m->groups, p->groups, w->config.sites * sizeof *m->groups);
    }
    m->settled = w->jobs[m->job].params.buffer > 0 ? sim_settled(w, p) : NULL;
    w->fired[m->keeps ? SIM_FAULT_KEPT : SIM_FAULT_REGROUPED] +=
        m->kind == KEDGE_TASK_PRETRAIN && m->round > 0;
    w->fired[SIM_FAULT_DRIFTED] += m->regroup;
    if (m->kind == KEDGE_TASK_TRAIN && gives) {
        w->fired[m->model_count > m->group_count   ? SIM_FAULT_SPLIT
                 : m->model_count < m->group_count ? SIM_FAULT_MERGED
                                                   : SIM_FAULT_MOVED]++;
    }
}

/* The order matters: what the round closes with is checked before it becomes the past, by what was computed
 * and by the world as it was; only then do models count as published and groups as those of the next
 * round. */
static void write_closed(struct sim *w, struct sim_main *m)
{
    struct sim_job *j = &w->jobs[m->job];
    struct sim_pending *p = &j->pending;
    KEDGE_ASSERT(p->computed && p->round == m->round);
    m->kind = p->kind;
    m->regroup = p->regroup;
    m->tries = p->tries;
    m->keeps = p->keeps;
    m->group_count = p->group_count;
    m->model_count = p->model_count;
    m->input_count = p->input_count;
    m->refused_count = p->refused_count;
    m->inputs_hash = SIM_HASH_START;
    for (uint32_t i = 0; i < p->input_count; i++) {
        m->inputs_hash = sim_hash(m->inputs_hash, p->inputs[i].envelope.b, sizeof p->inputs[i].envelope.b);
    }
    if (is_there(w, m, NULL, p->models)) {
        return;
    }
    sim_check_round(w, m->job);
    copy_close(w, m, p);
    append_main(w, m);
    sim_count_too_stale(w, m);
    remember_groups(w, m->job);
    forget_inputs(w, m, p);
    for (uint32_t g = 0; g < p->model_count; g++) {
        (void)sim_index_put(&w->published, sim_published_key(m->job, &p->models[g]), 0);
    }
    for (uint32_t i = 0; i < j->fresh_count; i++) {
        w->ledgers[j->fresh[i].tenant].entries[j->fresh[i].leaf].listed = true;
    }
    j->fresh_count = 0;
    memset(j->told, 0, w->config.sites * sizeof *j->told);
    w->fired[SIM_FAULT_EDGES] += j->params.entry == KEDGE_ENTRY_TENANT;
    w->rounds_closed++;
    if (w->payload) {
        w->payload->closed(w->payload->arg, m->round, w->now_ns);
    }
    if (w->tick) {
        w->tick(w->tick_arg, w->rounds_closed);
    }
}

/* Who of an asynchronous job is at work, as a round opens; NULL for others. */
static uint32_t *tasks_of(struct sim *w, uint32_t job)
{
    if (w->jobs[job].params.buffer == 0) {
        return NULL;
    }
    uint32_t *tasks = sim_new_array(w->config.sites, sizeof *tasks);
    for (uint32_t i = 0; i < w->config.sites; i++) {
        const struct kedge_coord_row *row = sim_job_row(w, job, i);
        tasks[i] = row && row->selected ? row->task_round : SIM_NONE;
    }
    return tasks;
}

static int write_main(struct sim *w, const struct kedge_coord_effect *fx)
{
    struct sim_main m = {.type = SIM_JOB_OPENED, .job = fx->job, .round = fx->round};
    if (fx->type == KEDGE_FX_MAIN_ROUND_CLOSED) {
        m.type = SIM_ROUND_CLOSED;
        write_closed(w, &m);
        return KEDGE_OK;
    }
    uint8_t *selected = NULL;
    if (fx->type == KEDGE_FX_MAIN_ROUND_OPENED) {
        m.type = SIM_ROUND_OPENED;
        m.kind = fx->kind;
        m.draw = fx->draw;
        selected = sim_new_array((w->config.sites + 7) / 8, 1);
        m.tasks = tasks_of(w, fx->job);
        for (uint32_t i = 0; i < w->config.sites; i++) {
            const struct kedge_coord_row *row = sim_job_row(w, fx->job, i);
            if (row && row->selected) {
                selected[i / 8] = (uint8_t)(selected[i / 8] | 1u << i % 8);
                m.selected_count++;
            }
        }
    } else if (fx->type == KEDGE_FX_MAIN_JOB_CLOSED) {
        m.type = SIM_JOB_CLOSED;
        m.state = fx->state;
    }
    if (is_there(w, &m, selected, NULL)) {
        kedge_mem_free(selected);
        kedge_mem_free(m.tasks);
        return KEDGE_OK;
    }
    m.selected = selected;
    append_main(w, &m);
    if (w->payload && m.type == SIM_ROUND_OPENED) {
        w->payload->opened(w->payload->arg, m.round, m.kind);
    }
    return KEDGE_OK;
}

static int write_statement(struct sim *w, const struct kedge_coord_effect *fx, uint64_t *ret_leaf)
{
    const struct sim_ticket *t = sim_ticket_find(w, fx->ticket);
    KEDGE_ASSERT(t && t->site == fx->site);
    struct sim_entry e = {.type = fx->kind == KEDGE_TASK_EVALUATE ? SIM_EVALUATION : SIM_UPDATE,
                          .site = fx->site,
                          .job = fx->job,
                          .round = t->result.round,
                          .group = t->result.group,
                          .kind = fx->kind,
                          .envelope = sim_of_site(&t->result.envelope),
                          .update = sim_of_site(&t->result.update),
                          .base = sim_of_site(&t->result.base),
                          .weight = t->weight};
    return sim_ledger_append(w, fx->tenant, &e, ret_leaf);
}

int sim_write(struct sim *w, const struct kedge_coord_effect *fx, uint64_t *ret_leaf)
{
    if (fx->type == KEDGE_FX_APPEND) {
        return write_statement(w, fx, ret_leaf);
    }
    if (fx->type == KEDGE_FX_APPEND_ASSIGNED) {
        struct sim_entry e = {.type = SIM_ASSIGNED, .site = fx->site, .job = fx->job, .group = fx->group};
        e.round = fx->round;
        e.why = fx->why;
        return sim_ledger_append(w, fx->tenant, &e, ret_leaf);
    }
    return write_main(w, fx);
}
