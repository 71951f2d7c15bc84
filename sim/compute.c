/* The pure computations whose results go into the record: here models are hashes of what they are made from.
 */
#include <string.h>

#include "sim/world.h"

uint32_t sim_group_of(const struct kedge_digest *update, uint32_t groups)
{
    return groups ? update->b[0] % groups : 0;
}

static void put_input(struct sim_pending *p, uint32_t site, uint32_t group, enum kedge_task_kind kind,
                      const struct kedge_coord_input *in)
{
    if (in->progress == KEDGE_INPUT_ACCEPTED) {
        p->inputs[p->input_count++] = (struct sim_input){.site = site,
                                                         .leaf = (uint32_t)in->leaf,
                                                         .group = group,
                                                         .kind = kind,
                                                         .envelope = in->envelope,
                                                         .update = in->update,
                                                         .weight = in->weight};
    }
}

/* Every group's model is a hash of its old model and of its inputs in order; a group without inputs keeps its
 * own. */
static void compute_models(struct sim_pending *p, uint32_t job, const struct kedge_coord_job_view *view)
{
    uint64_t hash[KEDGE_GROUPS_MAX] = {0};
    for (uint32_t g = 0; g < p->group_count; g++) {
        const struct kedge_digest *base =
            g < view->model_count && p->round > 0 ? &view->models[g] : &view->initial;
        p->sums[g] = (struct sim_sum){.model = *base};
        hash[g] = sim_hash(SIM_HASH_START, base->b, sizeof base->b);
    }
    for (uint32_t i = 0; i < p->input_count; i++) {
        const struct sim_input *in = &p->inputs[i];
        bool counts = in->group < p->group_count && (in->kind == KEDGE_TASK_TRAIN || p->round == 0);
        if (counts) {
            hash[in->group] = sim_hash(hash[in->group], in->update.b, sizeof in->update.b);
            p->sums[in->group].weight += in->weight;
            p->sums[in->group].count++;
        }
    }
    for (uint32_t g = 0; g < p->group_count; g++) {
        if (p->sums[g].count > 0 || p->round == 0) {
            p->sums[g].model = sim_digest(hash[g], job, p->round, &(uint8_t){(uint8_t)g}, 1);
        }
    }
}

static int refusal_of(const struct kedge_coord_row *row, bool cold)
{
    const struct kedge_coord_input *main = cold ? &row->pretrain : &row->train;
    return main->progress == KEDGE_INPUT_ACCEPTED          ? KEDGE_OK
           : row->train.progress == KEDGE_INPUT_REFUSED    ? row->train.reason
           : row->pretrain.progress == KEDGE_INPUT_REFUSED ? row->pretrain.reason
                                                           : KEDGE_OK;
}

void sim_compute(struct sim *w, uint32_t job)
{
    struct kedge_coord_job_view view;
    struct sim_pending *p = &w->jobs[job].pending;
    KEDGE_ASSERT(sim_job_view(w, job, &view));
    p->computed = true;
    p->round = view.round;
    p->input_count = p->refused_count = 0;
    uint32_t count = 0;
    const uint32_t *order = kedge_coord_site_order(w->server.core, &count);
    p->group_count = view.params->groups;
    if (view.round == 0 && view.accepted_count < p->group_count) {
        p->group_count = view.accepted_count; /* fewer updates than groups */
    } else if (view.round > 0) {
        p->group_count = view.model_count;
    }
    memset(p->groups, 0xff, w->config.sites * sizeof *p->groups);
    memset(p->refused, 0, w->config.sites * sizeof *p->refused);
    for (uint32_t i = 0; i < count; i++) {
        const struct kedge_coord_row *row = sim_job_row(w, job, order[i]);
        uint32_t group = row->group;
        if (view.round == 0 && row->pretrain.progress == KEDGE_INPUT_ACCEPTED) {
            group = sim_group_of(&row->pretrain.update, p->group_count);
            p->groups[order[i]] = group;
        }
        put_input(p, order[i], group, KEDGE_TASK_PRETRAIN, &row->pretrain);
        put_input(p, order[i], group, KEDGE_TASK_TRAIN, &row->train);
        p->refused[order[i]] =
            row->selected ? refusal_of(row, view.round == 0 || group == SIM_NONE) : KEDGE_OK;
        p->refused_count += p->refused[order[i]] != KEDGE_OK;
    }
    compute_models(p, job, &view);
}
