#include <math.h>
#include <string.h>

#include "aggregation/quantise.h"
#include "common/base/mem.h"
#include "common/base/rng.h"
#include "sim/learn/together.h"

/* A run of steps at one site. */
struct pass_params {
    uint32_t site;
    uint64_t steps; /* 0: whole epochs */
    uint32_t epochs;
    bool as_job; /* each pass has a stream of its own, as kedge_net_train has them */
    uint64_t seed;
    struct kedge_proximal_term bend;
    uint64_t held_first, held; /* weights that stay as they are */
};

void kedgei_learn_gather(const struct kedgei_learn *l, const struct kedgei_learn_site *s,
                         const uint32_t *rows, uint32_t n, float *x, int32_t *labels)
{
    for (uint32_t i = 0; i < n; i++, x += l->pool.features) {
        kedgei_learn_pool_row(&l->pool, rows[i], s->turn, x);
        labels[i] = l->pool.labels[rows[i]];
        if (s->attacker) {
            kedgei_learn_poison(l, rows[i], x, &labels[i]);
        }
    }
}

/* The rows of the next batch are asked for while this one is worked on: they lie anywhere in memory. */
static void prefetch(const struct kedgei_learn *l, const uint32_t *rows, uint32_t n)
{
    for (uint32_t i = 0; i < n && l->pool.bytes; i++) {
        const uint8_t *row = l->pool.bytes + (size_t)rows[i] * l->pool.features;
        for (uint32_t k = 0; k < l->pool.features; k += 64) {
            __builtin_prefetch(row + k);
        }
    }
}

/* Steps on the net's weights; the rows are shuffled anew for every pass by the stream. Loss: mean over the
 * samples of the last pass, each before its step. */
static int run_steps(const struct kedgei_learn *l, struct kedgei_learn_lane *lane, struct kedge_rng *rng,
                     const struct pass_params *p, uint64_t *ret_steps, double *ret_loss)
{
    const struct kedge_learn_spec *spec = l->spec;
    const struct kedgei_learn_site *s = &l->sites[p->site];
    float *w = kedge_net_weights(lane->net);
    uint64_t steps = 0;
    double loss = 0;
    memcpy(lane->start, w + p->held_first, p->held * sizeof *w);
    for (uint32_t pass = 0; p->steps ? steps < p->steps : pass < p->epochs; pass++) {
        double sum = 0;
        uint32_t used = 0;
        memcpy(lane->order, s->train, s->train_count * sizeof *lane->order);
        if (p->as_job) {
            kedge_rng_init(rng, p->seed, p->steps ? KEDGE_RNG_PRETRAIN : KEDGE_RNG_TRAIN, pass, 0);
        }
        kedge_rng_sample(rng, lane->order, s->train_count, s->train_count);
        for (uint32_t at = 0; at < s->train_count && (p->steps == 0 || steps < p->steps); steps++) {
            uint32_t n = s->train_count - at < spec->job.batch ? s->train_count - at : spec->job.batch;
            kedgei_learn_gather(l, s, lane->order + at, n, lane->x, lane->labels);
            uint32_t left = s->train_count - at - n;
            prefetch(l, lane->order + at + n, left < spec->job.batch ? left : spec->job.batch);
            sum += kedge_net_step_proximal(lane->net, lane->x, lane->labels, n, spec->job.learning_rate,
                                           spec->job.l2, &p->bend);
            memcpy(w + p->held_first, lane->start, p->held * sizeof *w);
            used += n;
            at += n;
        }
        loss = sum / used;
        if (!isfinite(loss)) {
            return KEDGE_E_NOT_FINITE;
        }
    }
    *ret_steps = steps;
    *ret_loss = loss;
    return KEDGE_OK;
}

int kedgei_learn_loss(struct kedgei_learn *l, struct kedgei_learn_lane *lane, uint32_t site,
                      const float *model, double *ret)
{
    const struct kedgei_learn_site *s = &l->sites[site];
    uint32_t classes = kedge_model_outputs(&l->spec->job.model);
    double loss = 0;
    if (l->spec->planted) {
        *ret = 1 - kedgei_learn_closeness(l, site, model);
        return KEDGE_OK;
    }
    memcpy(kedge_net_weights(lane->net), model, l->d * sizeof *model);
    for (uint32_t at = 0; at < s->train_count;) {
        uint32_t n = s->train_count - at < l->chunk ? s->train_count - at : l->chunk;
        kedgei_learn_gather(l, s, s->train + at, n, lane->x, lane->labels);
        const float *z = kedge_net_forward(lane->net, lane->x, n);
        for (uint32_t i = 0; i < n; i++, z += classes) {
            double most = (double)z[0], sum = 0;
            for (uint32_t c = 1; c < classes; c++) {
                most = (double)z[c] > most ? (double)z[c] : most;
            }
            for (uint32_t c = 0; c < classes; c++) {
                sum += exp((double)z[c] - most);
            }
            loss += log(sum) + most - (double)z[lane->labels[i]];
        }
        at += n;
    }
    *ret = loss / s->train_count;
    return KEDGE_OK;
}

/* Ditto: the site's own model, pulled towards the one given; a lone site's without any pull. */
static struct kedge_proximal_term bend_own(const struct kedgei_learn *l, const struct kedgei_learn_item *item,
                                           float *towards)
{
    const double pull = kedge_local_plan(l->spec->job.strategy->local, &l->spec->job.options).personal_pull;
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
    const struct kedge_local *local = l->spec->job.strategy->local;
    const struct kedge_local_plan plan = kedge_local_plan(local, &l->spec->job.options);
    struct kedge_proximal_term bend = {0};
    if (own) {
        return bend_own(l, item, towards);
    }
    if (item->pretrain) {
        return bend;
    }
    if (local->variate) {
        const float *mine = l->sites[item->site].own, *all = l->control;
        for (uint64_t i = 0; i < l->d; i++) {
            towards[i] = mine[i] - all[i];
        }
        bend.towards = towards;
    } else if (plan.pull + plan.pull_auxiliary > 0) {
        const double near = plan.pull, far = item->towards ? plan.pull_auxiliary : 0;
        const float *other = item->towards ? item->towards : item->base;
        for (uint64_t i = 0; i < l->d; i++) {
            towards[i] = (float)(near * (double)item->base[i] + far * (double)other[i]);
        }
        bend = (struct kedge_proximal_term){.pull = near + far, .towards = towards};
    }
    return bend;
}

const float *kedgei_learn_begin(const struct kedgei_learn *l, const struct kedgei_learn_item *item, bool own)
{
    const float *mine = l->sites[item->site].own;
    return !own ? item->base : mine ? mine : l->w0;
}

bool kedgei_learn_shuffles(const struct kedgei_learn *l, const struct kedgei_learn_item *item,
                           struct kedge_rng *ret, uint64_t *ret_seed)
{
    kedge_rng_init(ret, l->spec->job.seed, item->pretrain ? KEDGE_RNG_PRETRAIN : KEDGE_RNG_TRAIN,
                   item->stream, item->site);
    if (!l->host->draws || l->spec->job.strategy->local->sends_nothing) {
        return false;
    }
    *ret_seed = l->host->draws->task_seed(l->host->draws->arg, kedgei_learn_job_round((uint32_t)item->stream),
                                          item->site);
    return true;
}

/* ‖w − base‖² in the order of the values, in eight lanes. */
static double distance_squared(const float *w, const float *base, uint64_t d)
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
    return sum;
}

/* SCAFFOLD: c_k' − c_k = −c + (x − y) / (steps · lr), quantised. */
static int put_control(const struct kedgei_learn *l, struct kedgei_learn_lane *lane,
                       const struct kedgei_learn_item *item, uint64_t steps, int32_t *out)
{
    const float *y = kedge_net_weights(lane->net), *c = l->control;
    const double by = 1.0 / ((double)steps * l->spec->job.learning_rate);
    for (uint64_t i = 0; i < l->d; i++) {
        lane->towards[i] = (float)(((double)item->base[i] - (double)y[i]) * by);
    }
    return kedge_quantise(c, lane->towards, l->d, l->spec->job.scale, l->spec->job.bound, out, NULL);
}

/* FedRep: the head by itself, then what is shared, with shuffles of their own. */
static int run_phases(const struct kedgei_learn *l, struct kedgei_learn_lane *lane, struct kedge_rng *rng,
                      const struct pass_params *p, uint64_t *ret_steps, double *ret_loss)
{
    const struct kedge_local_plan plan =
        kedge_local_plan(l->spec->job.strategy->local, &l->spec->job.options);
    struct pass_params head = *p, body = *p;
    uint64_t steps = 0;
    head.epochs = plan.head_epochs;
    head.held = l->shared;
    body.held_first = l->shared;
    body.held = l->d - l->shared;
    body.seed += plan.head_epochs > 0;
    int err = plan.head_epochs > 0 ? run_steps(l, lane, rng, &head, &steps, ret_loss) : KEDGE_OK;
    err = err ? err : run_steps(l, lane, rng, &body, ret_steps, ret_loss);
    *ret_steps = err ? *ret_steps : *ret_steps + steps;
    return err;
}

/* Steps from where the item begins, or what a device has made of them; the weights are the lane's net's. */
static int train_model(struct kedgei_learn *l, struct kedgei_learn_lane *lane, struct kedge_rng *rng,
                       uint32_t index, bool own, struct pass_params *p, uint64_t *ret_steps, double *ret_loss)
{
    const struct kedgei_learn_item *item = &l->items[index];
    float *w = kedge_net_weights(lane->net);
    struct kedgei_learn_taken taken;
    if (kedgei_learn_take(l, index, own, w, rng, &taken)) {
        *ret_steps = taken.steps;
        *ret_loss = taken.loss;
        return taken.err;
    }
    p->bend = kedgei_learn_bend(l, item, own, lane->towards);
    memcpy(w, kedgei_learn_begin(l, item, own), l->d * sizeof *w);
    kedgei_learn_head_join(l, item->site, w);
    return !item->pretrain && l->spec->job.strategy->local->is_head_first
               ? run_phases(l, lane, rng, p, ret_steps, ret_loss)
               : run_steps(l, lane, rng, p, ret_steps, ret_loss);
}

static int train_own(struct kedgei_learn *l, struct kedgei_learn_lane *lane, struct kedge_rng *rng,
                     uint32_t index, float *out, struct kedgei_learn_result *result)
{
    struct pass_params p = {.site = l->items[index].site, .epochs = l->spec->job.local_epochs};
    uint64_t steps = 0;
    double loss = 0;
    int err = train_model(l, lane, rng, index, true, &p, &steps, &loss);
    memcpy(out, kedge_net_weights(lane->net), l->d * sizeof *out);
    if (l->spec->job.strategy->local->sends_nothing) {
        result->steps = steps;
        result->loss = loss;
    }
    return err;
}

static int train_item(struct kedgei_learn *l, struct kedgei_learn_lane *lane, uint32_t index, void *out)
{
    const struct kedgei_learn_item *item = &l->items[index];
    const struct kedge_learn_spec *spec = l->spec;
    const struct kedge_local *local = item->pretrain ? &kedge_local_sgd : spec->job.strategy->local;
    struct kedgei_learn_result *r = out;
    struct kedge_rng rng;
    *r =
        (struct kedgei_learn_result){.samples = l->sites[item->site].train_count, .choice = KEDGE_GROUP_NONE};
    if (item->failed) {
        r->err = KEDGE_E_TIMEOUT;
        return KEDGE_OK;
    }
    struct pass_params p = {.site = item->site,
                            .epochs = spec->job.local_epochs,
                            .steps = item->pretrain ? spec->job.pretrain_steps : 0};
    p.as_job = kedgei_learn_shuffles(l, item, &rng, &p.seed);
    if (spec->planted) {
        r->err = kedgei_learn_synthesise(l, lane, item, kedgei_learn_vector(l, index, 0), r);
        return KEDGE_OK;
    }
    if (local->sends_nothing) {
        r->err = train_own(l, lane, &rng, index, (float *)(void *)kedgei_learn_vector(l, index, 0), r);
        return KEDGE_OK;
    }
    if (item->loss_wanted) {
        int err = kedgei_learn_loss(l, lane, item->site, item->base, &r->loss_before);
        if (err) {
            return err;
        }
    }
    float *w = kedge_net_weights(lane->net);
    r->err = train_model(l, lane, &rng, index, false, &p, &r->steps, &r->loss);
    if (!r->err) {
        kedgei_learn_head_split(l, item->base, w, (float *)(void *)kedgei_learn_vector(l, index, 1));
        r->norm_sq = distance_squared(w, item->base, l->d);
        r->moved = sqrt(r->norm_sq);
        r->err = kedge_quantise(item->base, w, l->d, l->spec->job.scale, l->spec->job.bound,
                                kedgei_learn_vector(l, index, 0), NULL);
    }
    if (!r->err && local->variate) {
        r->err = put_control(l, lane, item, r->steps, kedgei_learn_vector(l, index, 1));
    }
    if (!r->err && local->has_own_model) {
        r->err = train_own(l, lane, &rng, index, (float *)(void *)kedgei_learn_vector(l, index, 1), r);
    }
    return KEDGE_OK; /* a site that fails is left out of its round */
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
    return kedgei_learn_spread(l, l->items_count, l->item_order, l->result_size, train_item, l->results);
}

/* The site's model after another E epochs, for evaluations; it is left in the lane's net. */
int kedgei_learn_finetune(struct kedgei_learn *l, struct kedgei_learn_lane *lane, uint32_t site,
                          const float *model)
{
    struct pass_params p = {.site = site, .epochs = l->spec->job.local_epochs};
    struct kedge_rng rng;
    uint64_t steps;
    double loss;
    kedge_rng_init(&rng, l->spec->job.seed, KEDGE_RNG_LEARN,
                   kedgei_learn_stream(KEDGEI_LEARN_STREAM_FINETUNE, 0), site);
    memcpy(kedge_net_weights(lane->net), model, l->d * sizeof *model);
    return run_steps(l, lane, &rng, &p, &steps, &loss);
}
