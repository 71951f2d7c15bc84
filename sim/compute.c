/* The pure computations whose results go into the record: here models are hashes of what they are made from.
 */
#include <string.h>

#include "aggregation/share_cap.h"
#include "common/base/bytes.h"
#include "common/base/mem.h"
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

static bool is_counted(const struct sim_pending *p, const struct sim_input *in)
{
    return in->group < p->group_count && (in->kind == KEDGE_TASK_TRAIN || p->round == 0);
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
        in->counted = !is_counted(p, in) ? 0 : p->round == 0 ? 1 : in->weight;
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
        const struct kedge_digest *base =
            g < view->model_count && p->round > 0 ? &view->models[g] : &view->initial;
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
    weigh(w, job);
    compute_models(p, job, &view);
}
