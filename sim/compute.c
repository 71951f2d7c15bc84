/* The pure computations whose results go into the record: here models are hashes of what they are made from.
 */
#include <string.h>

#include "aggregation/share_cap.h"
#include "common/base/bytes.h"
#include "common/base/mem.h"
#include "sim/world.h"

/* Any function of the digest would do here, so long as the coordinator's host and the checks take the same
 * one. */
uint32_t sim_group_of(const struct kedge_digest *update, uint32_t groups)
{
    return groups ? update->b[0] % groups : 0;
}

uint32_t sim_group_of_input(const struct sim *w, uint32_t job, const struct kedge_digest *update)
{
    const struct sim_pending *p = &w->jobs[job].pending;
    for (uint32_t i = 0; i < p->input_count && w->payload; i++) {
        if (p->inputs[i].kind == KEDGE_TASK_PRETRAIN && sim_same(&p->inputs[i].update, update)) {
            return p->inputs[i].group;
        }
    }
    return sim_group_of(update, p->group_count);
}

/* What stands for the group of the nearest model: it follows from the site's last update and from all models.
 */
static uint32_t group_of_last(const struct sim *w, uint32_t job, uint32_t site, uint32_t groups)
{
    const struct sim_job *j = &w->jobs[job];
    const struct sim_device *d = &w->devices[site];
    const struct sim_main *last = sim_last_closed(w, job);
    const struct kedge_digest *models = last ? last->models : j->begin;
    uint32_t at = d->trained[job];
    const struct kedge_digest *own = at == SIM_NONE ? &j->initial : &w->ledgers[d->tenant].entries[at].update;
    struct kedge_digest by = sim_digest(w->seed, job, site, models, groups * sizeof *models);
    by = sim_digest(job, by.b[0], by.b[1], own, sizeof *own);
    return by.b[7] % groups;
}

int sim_nearest(const struct sim *w, uint32_t job, uint32_t site, const struct kedge_digest *update,
                uint32_t groups, uint32_t *ret_group)
{
    bool by_last = w->jobs[job].params.entry == KEDGE_ENTRY_NEAREST;
    if (w->payload) {
        return w->payload->nearest(w->payload->arg, site, by_last ? NULL : update, ret_group);
    }
    *ret_group = by_last ? group_of_last(w, job, site, groups) : sim_group_of(update, groups);
    return KEDGE_OK;
}

static void put_input(struct sim_pending *p, uint32_t site, uint32_t group, enum kedge_task_kind kind,
                      uint32_t round, const struct kedge_coord_input *in)
{
    if (in->progress == KEDGE_INPUT_ACCEPTED) {
        p->inputs[p->input_count++] = (struct sim_input){.site = site,
                                                         .leaf = (uint32_t)in->leaf,
                                                         .group = group,
                                                         .round = round,
                                                         .kind = kind,
                                                         .envelope = in->envelope,
                                                         .update = in->update,
                                                         .weight = in->weight};
    }
}

static bool is_counted(const struct sim_pending *p, const struct sim_input *in)
{
    return in->group < p->group_count && in->kind == p->kind && !p->keeps;
}

/* The same function as the coordinator's and the auditor's, over one group's inputs in their order. */
static void cap_shares(struct sim *w, struct sim_pending *p, uint32_t group, uint32_t share_max)
{
    struct kedge_share_input *inputs = sim_new_array(p->input_count + 1, sizeof *inputs);
    size_t count = 0;
    for (uint32_t i = 0; i < p->input_count; i++) {
        if (is_counted(p, &p->inputs[i]) && p->inputs[i].group == group) {
            uint32_t tenant = w->devices[p->inputs[i].site].tenant;
            inputs[count++] = (struct kedge_share_input){tenant, p->inputs[i].counted};
        }
    }
    int err = count > 0 ? kedge_share_cap(inputs, count, share_max) : KEDGE_OK;
    KEDGE_ASSERT(err == KEDGE_OK);
    for (uint32_t i = 0, at = 0; i < p->input_count; i++) {
        if (is_counted(p, &p->inputs[i]) && p->inputs[i].group == group) {
            w->fired[SIM_FAULT_CAPPED] += inputs[at].weight < p->inputs[i].counted;
            p->inputs[i].counted = inputs[at++].weight;
        }
    }
    kedge_mem_free(inputs);
}

static void weigh(struct sim *w, uint32_t job)
{
    struct sim_pending *p = &w->jobs[job].pending;
    for (uint32_t i = 0; i < p->input_count; i++) {
        struct sim_input *in = &p->inputs[i];
        in->counted = !is_counted(p, in)               ? 0
                      : p->kind == KEDGE_TASK_PRETRAIN ? 1
                                                       : sim_counts(w, job, p->round, in->round, in->weight);
    }
    for (uint32_t g = 0; g < p->group_count && w->jobs[job].share_max < KEDGE_SHARE_ONE; g++) {
        cap_shares(w, p, g, w->jobs[job].share_max);
    }
}

/* Every group's model is a hash of its old model and of its inputs in order; a group without inputs keeps its
 * own. */
static void compute_models(struct sim_pending *p, uint32_t job, const struct kedge_coord_job_view *view)
{
    uint64_t hash[KEDGE_GROUPS_MAX] = {0};
    for (uint32_t g = 0; g < p->group_count; g++) {
        const struct kedge_digest *base = g < view->model_count && (p->kind == KEDGE_TASK_TRAIN || p->keeps)
                                              ? &view->models[g]
                                              : &view->initial;
        p->sums[g] = (struct sim_sum){.model = *base};
        hash[g] = sim_hash(SIM_HASH_START, base->b, sizeof base->b);
    }
    for (uint32_t i = 0; i < p->input_count; i++) {
        const struct sim_input *in = &p->inputs[i];
        if (is_counted(p, in)) {
            uint8_t counted[8];
            kedge_store_be64(counted, in->counted);
            hash[in->group] = sim_hash(hash[in->group], in->update.b, sizeof in->update.b);
            hash[in->group] = sim_hash(hash[in->group], counted, sizeof counted);
            p->sums[in->group].weight += in->counted;
            p->sums[in->group].count++;
        }
    }
    for (uint32_t g = 0; g < p->group_count; g++) {
        if (!p->keeps && (p->sums[g].count > 0 || p->kind == KEDGE_TASK_PRETRAIN)) {
            p->sums[g].model = sim_digest(hash[g], job, p->round, &(uint8_t){(uint8_t)g}, 1);
        }
    }
}

static int refusal_of(const struct kedge_coord_row *row, bool cold)
{
    return cold && row->pretrain.progress == KEDGE_INPUT_ACCEPTED ? KEDGE_OK
           : row->train.progress == KEDGE_INPUT_REFUSED           ? row->train.reason
           : row->pretrain.progress == KEDGE_INPUT_REFUSED        ? row->pretrain.reason
                                                                  : KEDGE_OK;
}

/* How many groups the round makes, or has. */
static uint32_t count_groups(const struct sim *w, uint32_t job, const struct kedge_coord_job_view *view)
{
    if (view->round_kind == KEDGE_TASK_TRAIN || w->jobs[job].pending.keeps) {
        return view->model_count;
    }
    uint32_t most = view->params->groups;
    most = view->accepted_count < most ? view->accepted_count : most; /* fewer updates than groups */
    if (view->round > 0) {
        struct kedge_digest d = sim_digest(w->seed, job, view->round, "groups", 6);
        most = 1 + d.b[7] % most;
    }
    return most;
}

/* What a PRETRAIN round gives a site: by its update; without one it stays where it is, as far as there are as
 * many groups. */
static uint32_t group_given(const struct sim_pending *p, const struct kedge_coord_row *row)
{
    if (p->kind != KEDGE_TASK_PRETRAIN || p->keeps) {
        return SIM_NONE;
    }
    return row->pretrain.progress == KEDGE_INPUT_ACCEPTED
               ? sim_group_of(&row->pretrain.update, p->group_count)
           : row->group != SIM_NONE ? row->group % p->group_count
                                    : SIM_NONE;
}

/* The site's last pretraining that is durable. */
static const struct kedge_digest *pretraining_of(const struct sim *w, uint32_t job, uint32_t site)
{
    const struct sim_device *d = &w->devices[site];
    uint32_t at = d->pretrained[job];
    return at == SIM_NONE ? NULL : &w->ledgers[d->tenant].entries[at].update;
}

/* What a payload's close is told of a site. */
struct asked {
    struct sim_close_input *inputs;
    struct sim_close_other *others;
    uint32_t *evaluated;
};

static void ask_about(const struct sim *w, uint32_t job, uint32_t site, struct sim_close *c, struct asked *a)
{
    const struct kedge_coord_row *row = sim_job_row(w, job, site);
    uint32_t tenant = w->devices[site].tenant;
    uint32_t round = w->jobs[job].params.buffer > 0 ? row->task_round : c->round;
    bool pretrain = c->kind == KEDGE_TASK_PRETRAIN;
    const struct kedge_coord_input *in = pretrain ? &row->pretrain : &row->train;
    const struct kedge_digest *by = pretraining_of(w, job, site);
    bool came = in->progress == KEDGE_INPUT_ACCEPTED;
    if (came) {
        a->inputs[c->input_count++] = (struct sim_close_input){
            site, tenant, pretrain ? SIM_NONE : in->group, row->group, round, in->update};
    }
    if (row->evaluated_round != SIM_NONE && row->evaluated_round + 1 == c->round) {
        a->evaluated[c->evaluated_count++] = site;
    }
    if (row->group != SIM_NONE && by && !(pretrain && came)) {
        const uint32_t input = !pretrain && came ? c->input_count - 1 : SIM_NONE;
        a->others[c->other_count++] = (struct sim_close_other){site, tenant, row->group, input, *by};
    }
}

/* Models and groups by the payload. */
static int compute_payload(struct sim *w, uint32_t job, const struct kedge_coord_job_view *view,
                           struct sim_close *c)
{
    uint32_t count = 0;
    const uint32_t *order = kedge_coord_site_order(w->server.core, &count);
    struct asked a = {sim_new_array(w->config.sites, sizeof *a.inputs),
                      sim_new_array(w->config.sites, sizeof *a.others),
                      sim_new_array(w->config.sites, sizeof *a.evaluated)};
    *c = (struct sim_close){.round = view->round,
                            .kind = view->round_kind,
                            .keeps = w->jobs[job].pending.keeps,
                            .inputs = a.inputs,
                            .others = a.others,
                            .evaluated = a.evaluated,
                            .model_count = view->model_count,
                            .given = w->jobs[job].pending.groups};
    memcpy(c->models, view->models, view->model_count * sizeof c->models[0]);
    for (uint32_t i = 0; i < count; i++) {
        ask_about(w, job, order[i], c, &a);
    }
    int err = w->payload->close(w->payload->arg, c);
    kedge_mem_free(a.inputs);
    kedge_mem_free(a.others);
    kedge_mem_free(a.evaluated);
    return err;
}

/* After the sums: what the payload has made. */
static void take_payload(struct sim_pending *p, const struct sim_close *c)
{
    for (uint32_t g = 0; g < p->group_count; g++) {
        p->sums[g].model = c->models[g];
    }
    p->regroup = c->regroup;
    p->tries = c->tries;
    p->model_count = c->model_count;
    memcpy(p->models, c->models, c->model_count * sizeof p->models[0]);
}

/* Inputs are gone through in the core's order of sites, which is the order of the record: sums of
 * floating-point numbers, and hashes, which stand for them here, depend on it. A core that had another order
 * after a restart is found when it closes a round that is closed already: the hashes differ. */
int sim_compute(struct sim *w, uint32_t job, bool keeps)
{
    struct kedge_coord_job_view view;
    struct sim_pending *p = &w->jobs[job].pending;
    KEDGE_ASSERT(sim_job_view(w, job, &view));
    p->computed = true;
    p->round = view.round;
    p->kind = view.round_kind;
    p->keeps = keeps;
    p->input_count = p->refused_count = 0;
    uint32_t count = 0;
    const uint32_t *order = kedge_coord_site_order(w->server.core, &count);
    struct sim_close close = {.aggregates = 0};
    p->group_count = count_groups(w, job, &view);
    memset(p->groups, 0xff, w->config.sites * sizeof *p->groups);
    memset(p->refused, 0, w->config.sites * sizeof *p->refused);
    int err = w->payload ? compute_payload(w, job, &view, &close) : KEDGE_OK;
    p->group_count = w->payload && !err ? close.aggregates : p->group_count;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t site = order[i];
        const struct kedge_coord_row *row = sim_job_row(w, job, site);
        bool pretrain = p->kind == KEDGE_TASK_PRETRAIN;
        p->groups[site] = w->payload ? p->groups[site] : group_given(p, row);
        uint32_t task_round = view.params->buffer > 0 ? row->task_round : p->round;
        put_input(p, site, pretrain ? p->groups[site] : row->pretrain.group, KEDGE_TASK_PRETRAIN, p->round,
                  &row->pretrain);
        put_input(p, site, row->train.group, KEDGE_TASK_TRAIN, task_round, &row->train);
        bool concerned = row->selected || row->pretrain.progress == KEDGE_INPUT_REFUSED;
        p->refused[site] = concerned ? refusal_of(row, pretrain || row->group == SIM_NONE) : KEDGE_OK;
        p->refused_count += p->refused[site] != KEDGE_OK;
    }
    weigh(w, job);
    compute_models(p, job, &view);
    if (!w->payload) {
        sim_move(w, job);
    } else if (!err) {
        take_payload(p, &close);
    }
    return err;
}
