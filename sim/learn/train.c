/* What a site does with its task, as kedge-train and kedge-client do it: for the loop of rounds and for sites
 * that are asked through the protocol (sim/protocol/work.c). */
#include <math.h>
#include <string.h>

#include "aggregation/quantise.h"
#include "client/daemon/update/variate.h"
#include "common/base/mem.h"
#include "common/base/try.h"
#include "sim/learn/together.h"

static struct kedge_local_plan plan_of(const struct kedgei_learn *l)
{
    return kedge_local_plan(l->job.strategy->local, &l->job.options);
}

struct kedge_train_params kedgei_learn_params(const struct kedgei_learn *l,
                                              const struct kedgei_learn_item *item)
{
    const struct kedge_job_spec *job = &l->job;
    return (struct kedge_train_params){.steps = item->pretrain ? job->pretrain_steps : 0,
                                       .epochs = job->local_epochs,
                                       .batch = job->batch,
                                       .lr = job->learning_rate,
                                       .l2 = job->l2,
                                       .momentum = job->local_momentum,
                                       .clip = job->clip,
                                       .seed = kedgei_names_seed(&l->names, item->round, item->site)};
}

int kedgei_learn_loss(struct kedgei_learn *l, struct kedgei_learn_lane *lane, uint32_t site,
                      const float *model, double *ret)
{
    struct kedge_dataset data;
    struct kedge_evaluation e;
    if (l->spec->planted) {
        *ret = 1 - kedgei_learn_closeness(l, site, model);
        return KEDGE_OK;
    }
    KEDGE_TRY(kedgei_learn_data(l, site, false, &lane->room, &data));
    memcpy(kedge_net_weights(lane->net), model, l->d * sizeof *model);
    kedgei_learn_head_join(l, site, kedge_net_weights(lane->net));
    KEDGE_TRY(kedge_net_evaluate(lane->net, &data, &e, NULL));
    *ret = e.loss;
    return KEDGE_OK;
}

/* Steps that are pulled towards the model given. */
static struct kedge_proximal_term pulled(const struct kedgei_learn *l, const struct kedgei_learn_item *item,
                                         double pull, float *towards)
{
    if (!(pull > 0)) {
        return (struct kedge_proximal_term){0};
    }
    for (uint64_t i = 0; i < l->d; i++) {
        towards[i] = (float)(pull * (double)item->base[i]);
    }
    return (struct kedge_proximal_term){.pull = pull, .towards = towards};
}

struct kedge_proximal_term kedgei_learn_bend(const struct kedgei_learn *l,
                                             const struct kedgei_learn_item *item, bool own, float *towards)
{
    const struct kedge_local_plan plan = plan_of(l);
    if (own) { /* Ditto's; a lone site's without any pull */
        return pulled(l, item, plan.personal_pull, towards);
    }
    if (item->pretrain) {
        return (struct kedge_proximal_term){0};
    }
    if (l->job.strategy->local->variate) {
        kedge_variate_drift(&l->job, l->sites[item->site].control, item->control, l->d, towards);
        return (struct kedge_proximal_term){.towards = towards};
    }
    return pulled(l, item, plan.pull, towards);
}

const float *kedgei_learn_begin(const struct kedgei_learn *l, const struct kedgei_learn_item *item, bool own)
{
    const float *mine = l->sites[item->site].own;
    return own && mine ? mine : item->base;
}

/* ‖w − base‖ in the order of the values, in eight lanes. */
static double distance(const float *w, const float *base, uint64_t d)
{
    double lane[8] = {0}, sum = 0;
    uint64_t i = 0;
    for (; i + 8 <= d; i += 8) {
        for (uint32_t k = 0; k < 8; k++) {
            double v = (double)w[i + k] - (double)base[i + k];
            lane[k] += v * v;
        }
    }
    for (; i < d; i++) {
        double v = (double)w[i] - (double)base[i];
        lane[i % 8] += v * v;
    }
    for (uint32_t k = 0; k < 8; k++) {
        sum += lane[k];
    }
    return sqrt(sum);
}

/* FedRep: the head by itself, then what is shared, with shuffles of their own. */
static int train_phases(const struct kedgei_learn *l, struct kedge_net *net, const struct kedge_dataset *data,
                        struct kedge_train_params params, struct kedge_train_result *ret)
{
    const struct kedge_train_range shared = {0, l->shared}, head = {l->shared, l->d - l->shared};
    const uint32_t epochs = plan_of(l).head_epochs;
    struct kedge_train_params first = params;
    struct kedge_train_result one = {.steps = 0};
    first.epochs = epochs;
    first.held = &shared;
    first.held_count = params.held_count = 1;
    params.held = &head;
    params.seed += epochs > 0;
    if (epochs > 0) {
        KEDGE_TRY(kedge_net_train(net, data, &first, &one, NULL));
    }
    KEDGE_TRY(kedge_net_train(net, data, &params, ret, NULL));
    ret->steps += one.steps;
    return KEDGE_OK;
}

/* From where the item begins, or what a device has made of it; the weights are the lane's net's. */
static int train_model(struct kedgei_learn *l, struct kedgei_learn_lane *lane,
                       const struct kedgei_learn_item *item, bool own, const struct kedge_dataset *data,
                       struct kedgei_learn_result *io)
{
    struct kedge_train_params params = kedgei_learn_params(l, item);
    struct kedge_train_result trained;
    struct kedgei_learn_taken taken;
    float *w = kedge_net_weights(lane->net);
    if (kedgei_learn_take(l, item, own, w, &taken)) {
        trained = (struct kedge_train_result){taken.steps, taken.loss};
        KEDGE_TRY(taken.err);
    } else {
        const bool phases = !item->pretrain && !own && l->job.strategy->local->is_head_first;
        params.bend = kedgei_learn_bend(l, item, own, lane->towards);
        memcpy(w, kedgei_learn_begin(l, item, own), l->d * sizeof *w);
        kedgei_learn_head_join(l, item->site, w);
        KEDGE_TRY(phases ? train_phases(l, lane->net, data, params, &trained)
                         : kedge_net_train(lane->net, data, &params, &trained, NULL));
    }
    if (!own || l->job.strategy->local->sends_nothing) {
        io->steps = trained.steps;
        io->loss = trained.loss;
    }
    return KEDGE_OK;
}

static int train_own(struct kedgei_learn *l, struct kedgei_learn_lane *lane,
                     const struct kedgei_learn_item *item, const struct kedge_dataset *data, float *out,
                     struct kedgei_learn_result *io)
{
    KEDGE_TRY(train_model(l, lane, item, true, data, io));
    memcpy(out, kedge_net_weights(lane->net), l->d * sizeof *out);
    return KEDGE_OK;
}

/* SCAFFOLD: the change of the site's control variate after these weights. */
static int change_control(struct kedgei_learn *l, const struct kedgei_learn_item *item, const float *w,
                          uint64_t steps, int32_t *out)
{
    size_t bad;
    int32_t *own = kedge_mem_new((size_t)l->d, sizeof *own);
    KEDGE_TRY_MEM(own);
    memcpy(own, l->sites[item->site].control, (size_t)l->d * sizeof *own);
    int err =
        kedge_variate_change(&l->job, item->control, item->base, w, steps, (size_t)l->d, own, out, &bad);
    kedge_mem_free(own);
    return err;
}

static int train_update(struct kedgei_learn *l, struct kedgei_learn_lane *lane,
                        const struct kedgei_learn_item *item, struct kedgei_learn_result *r)
{
    const struct kedge_local *local = item->pretrain ? &kedge_local_sgd : l->job.strategy->local;
    int32_t *update = kedgei_learn_result_vector(l, r, 0), *second = kedgei_learn_result_vector(l, r, 1);
    float *w = kedge_net_weights(lane->net);
    struct kedge_dataset data = {.n = 0};
    if (l->spec->planted) {
        KEDGE_TRY(kedgei_learn_synthesise(l, lane, item, update, r));
        return local->variate ? change_control(l, item, lane->start, r->steps, second) : KEDGE_OK;
    }
    if (item->loss_wanted) {
        KEDGE_TRY(kedgei_learn_loss(l, lane, item->site, item->base, &r->loss_before));
    }
    KEDGE_TRY(kedgei_learn_data(l, item->site, false, &lane->room, &data));
    r->samples = data.n;
    if (local->sends_nothing) {
        return train_own(l, lane, item, &data, (float *)(void *)update, r);
    }
    KEDGE_TRY(train_model(l, lane, item, false, &data, r));
    if (!item->pretrain) {
        kedgei_learn_head_split(l, item->base, w, (float *)(void *)second);
    }
    r->moved = distance(w, item->base, l->d);
    KEDGE_TRY(kedge_quantise(item->base, w, l->d, l->job.scale, l->job.bound, update, NULL));
    if (local->variate) {
        return change_control(l, item, w, r->steps, second);
    }
    return local->has_own_model ? train_own(l, lane, item, &data, (float *)(void *)second, r) : KEDGE_OK;
}

void kedgei_learn_train_item(struct kedgei_learn *l, struct kedgei_learn_lane *lane,
                             const struct kedgei_learn_item *item, struct kedgei_learn_result *ret)
{
    *ret = (struct kedgei_learn_result){.samples = l->sites[item->site].train_count};
    ret->err = item->failed ? KEDGE_E_TIMEOUT : train_update(l, lane, item, ret);
}

/* A site that fails is left out of its round. */
static int train_one(struct kedgei_learn *l, struct kedgei_learn_lane *lane, uint32_t index, void *out)
{
    kedgei_learn_train_item(l, lane, &l->items[index], out);
    return ((const struct kedgei_learn_result *)out)->err == KEDGE_E_NOMEM ? KEDGE_E_NOMEM : KEDGE_OK;
}

int kedgei_learn_items_reserve(struct kedgei_learn *l, uint32_t count)
{
    if (count <= l->items_max) {
        return KEDGE_OK;
    }
    kedge_mem_free(l->items);
    kedge_mem_free(l->results);
    kedge_mem_free(l->item_order);
    l->items = kedge_mem_new(count, sizeof *l->items);
    l->results = kedge_mem_new(count, l->result_size);
    l->item_order = kedge_mem_new(count, sizeof *l->item_order);
    l->items_max = l->items && l->results && l->item_order ? count : 0;
    return l->items_max
               ? KEDGE_OK
               : kedge_diag_set(l->reterr, KEDGE_E_NOMEM, "no memory for the updates of %u sites", count);
}

int kedgei_learn_train(struct kedgei_learn *l)
{
    /* The largest first, so that no thread begins with it when the others end. */
    for (uint32_t i = 0; i < l->items_count; i++) {
        uint32_t k = i, size = l->sites[l->items[i].site].train_count;
        while (k > 0 && l->sites[l->items[l->item_order[k - 1]].site].train_count < size) {
            l->item_order[k] = l->item_order[k - 1];
            k--;
        }
        l->item_order[k] = i;
    }
    kedgei_learn_train_together(l);
    return kedgei_learn_spread(l, l->items_count, l->item_order, l->result_size, train_one, l->results);
}

int kedgei_learn_finetune(struct kedgei_learn *l, struct kedgei_learn_lane *lane, uint32_t site,
                          const float *model)
{
    const struct kedgei_learn_item item = {.site = site, .round = kedgei_learn_job_round(l->line.round) + 1};
    const struct kedge_train_params params = kedgei_learn_params(l, &item);
    struct kedge_dataset data;
    struct kedge_train_result result;
    KEDGE_TRY(kedgei_learn_data(l, site, false, &lane->room, &data));
    memcpy(kedge_net_weights(lane->net), model, l->d * sizeof *model);
    return kedge_net_train(lane->net, &data, &params, &result, NULL);
}
