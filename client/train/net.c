/* Idea: the update of a kernel is one product with its old value as addend, W ← (1 − 2·lr·l2)·W − lr·dZᵀX, so
 * no gradient is ever stored unless momentum or clipping want all of it at once: the same backward pass then
 * ends in another slab (struct kedge_ops_step). Going backwards, errors change hands between two buffers. */
#include "client/train/net.h"

#include <string.h>

#include "client/train/net_impl.h"
#include "common/base/mem.h"
#include "common/base/try.h"

/* Floats that an evaluation's activations may take: its batches are no larger than that. Models of dense
 * layers alone keep the batch that they were made for. */
enum { EVALUATE_FLOATS = 1 << 20 };
#define WORK_MAX ((uint64_t)1 << 34) /* floats of activations: 64 GiB */

struct sizes {
    uint64_t work, widest; /* floats of one sample; widest: of an error between two layers */
    bool dense;            /* all layers are */
    bool dense_end;        /* the last one is: its backward pass needs no y, so the loss may overwrite it */
};

static struct sizes measure(const struct kedge_net *net)
{
    struct sizes s = {.work = net->inputs, .dense = true};
    for (uint32_t i = 0; i < net->count; i++) {
        const struct kedge_net_layer *l = &net->layers[i];
        s.work += l->out_width + l->saved_width;
        s.dense_end = l->layer.type == KEDGE_LAYER_DENSE;
        s.widest = (i + 1 < net->count || !s.dense_end) && l->out_width > s.widest ? l->out_width : s.widest;
        s.dense = s.dense && l->layer.type == KEDGE_LAYER_DENSE;
    }
    return s;
}

/* All activations lie in one slab in the order of the layers, taken once for the largest batch, so that no
 * step allocates. Two buffers of the widest layer are enough for errors: a layer reads the one above it and
 * writes the other. */
static void place_work(struct kedge_net *net, const struct sizes *s)
{
    size_t batch = net->batch_max;
    float *a = net->work;
    net->x = a;
    a += batch * net->inputs;
    for (uint32_t i = 0; i < net->count; i++) {
        net->layers[i].y = a;
        a += batch * net->layers[i].out_width;
        net->layers[i].saved = a;
        a += batch * net->layers[i].saved_width;
    }
    net->error[0] = a;
    net->error[1] = a + batch * s->widest;
    net->loss_at = s->dense_end ? net->layers[net->count - 1].y : net->error[net->count & 1];
}

static int take_memory(struct kedge_net *net)
{
    const struct kedge_ops *ops = net->ops;
    struct kedge_ops_layer shapes[KEDGE_LAYERS_MAX];
    struct sizes s = measure(net);
    uint64_t floats = s.work + (net->count > 2 || !s.dense_end ? 2 : 1) * s.widest;
    if (floats > WORK_MAX / net->batch_max) {
        return KEDGE_E_NOMEM;
    }
    uint64_t fit = EVALUATE_FLOATS / s.work;
    net->evaluate_max = s.dense || fit >= net->batch_max ? net->batch_max : fit < 1 ? 1 : (uint32_t)fit;
    net->weights = ops->alloc(net->dev, net->values_count * sizeof(float));
    net->host = ops->unified ? net->weights : kedge_mem_new(net->values_count, sizeof(float));
    net->work = ops->alloc(net->dev, (size_t)(floats * net->batch_max) * sizeof(float));
    net->labels = ops->alloc(net->dev, net->batch_max * sizeof *net->labels);
    KEDGE_TRY_MEM(net->weights && net->host && net->work && net->labels);
    for (uint32_t i = 0; i < net->count; i++) {
        shapes[i] = net->layers[i].shape;
    }
    place_work(net, &s);
    return ops->prepare(net->dev, shapes, net->count, net->batch_max);
}

int kedge_net_new_on(const struct kedge_model_spec *spec, uint32_t batch_max, const struct kedge_ops *ops,
                     struct kedge_device *dev, struct kedge_net **ret, struct kedge_diag *reterr)
{
    KEDGE_TRY(kedge_model_check(spec, reterr));
    if (spec->standardize) {
        return kedge_diag_set(reterr, KEDGE_E_ARG, "a model with \"standardize\" takes data that are scaled");
    }
    if (batch_max == 0 || batch_max > KEDGE_TRAIN_BATCH_MAX) {
        return kedge_diag_set(reterr, KEDGE_E_ARG, "batch of %u, expected 1 to %d", batch_max,
                              KEDGE_TRAIN_BATCH_MAX);
    }
    if (kedge_model_values_count(spec) > KEDGE_TRAIN_VALUES_MAX) {
        return kedge_diag_set(
            reterr, KEDGE_E_SHAPE,
            "model of %llu parameters, this trainer takes at most %llu; bind a trainer of your own",
            (unsigned long long)kedge_model_values_count(spec), (unsigned long long)KEDGE_TRAIN_VALUES_MAX);
    }
    struct kedge_net *net = kedge_mem_new(1, sizeof *net);
    int err = KEDGE_E_NOMEM;
    if (net) {
        net->spec = *spec;
        net->batch_max = batch_max;
        net->inputs = kedge_model_inputs(spec);
        net->outputs = kedge_model_outputs(spec);
        net->values_count = kedge_model_values_count(spec);
        net->ops = ops;
        net->dev = dev;
        net->count = kedge_net_plan(spec, net->layers);
        err = take_memory(net);
    }
    if (err) {
        kedge_net_free(net);
        return kedge_diag_set(reterr, err, "no memory for a model of %llu parameters, batch %u",
                              (unsigned long long)kedge_model_values_count(spec), batch_max);
    }
    *ret = net;
    return KEDGE_OK;
}

int kedge_net_new(const struct kedge_model_spec *spec, uint32_t batch_max, struct kedge_net **ret,
                  struct kedge_diag *reterr)
{
    struct kedge_ops_config config = {.sites = 1, .threads = 1};
    struct kedge_device *dev = NULL;
    char text[KEDGE_DIAG_TEXT_MAX] = "";
    int err = kedge_ops_cpu.open(&config, &dev, text, sizeof text);
    if (err) {
        return kedge_diag_set(reterr, err, "%s", text);
    }
    err = kedge_net_new_on(spec, batch_max, &kedge_ops_cpu, dev, ret, reterr);
    if (err) {
        kedge_ops_cpu.close(dev);
    } else {
        (*ret)->owns_device = true;
    }
    return err;
}

void kedge_net_free(struct kedge_net *net)
{
    if (net) {
        const struct kedge_ops *ops = net->ops;
        if (!ops->unified) {
            kedge_mem_free(net->host);
        }
        (ops->free)(net->dev, net->weights);
        (ops->free)(net->dev, net->towards);
        (ops->free)(net->dev, net->gradient);
        (ops->free)(net->dev, net->velocity);
        (ops->free)(net->dev, net->work);
        (ops->free)(net->dev, net->labels);
        if (net->owns_device) {
            ops->close(net->dev);
        }
        kedge_mem_free(net);
    }
}

float *kedge_net_weights(struct kedge_net *net)
{
    return net->host;
}

uint64_t kedge_net_values_count(const struct kedge_net *net)
{
    return net->values_count;
}

void kedge_net_push(struct kedge_net *net)
{
    if (!net->ops->unified) {
        net->ops->upload(net->dev, 0, net->weights, net->host, net->values_count * sizeof(float));
    }
}

int kedge_net_pull(struct kedge_net *net, struct kedge_diag *reterr)
{
    char text[KEDGE_DIAG_TEXT_MAX] = "";
    int err = KEDGE_OK;
    if (!net->ops->unified) {
        err = net->ops->download(net->dev, 0, net->host, net->weights, net->values_count * sizeof(float));
    }
    if (err) {
        (void)net->ops->sync(net->dev, text, sizeof text);
        return kedge_diag_set(reterr, err, "%s: %s", net->ops->name, text);
    }
    return KEDGE_OK;
}

/* Velocity begins at 0 with every call, so each round does: a site that kept it would carry steps of a model
 * that the aggregate has replaced. */
int kedge_net_prepare_rule(struct kedge_net *net, const struct kedge_net_rule *rule,
                           struct kedge_diag *reterr)
{
    const struct kedge_ops *ops = net->ops;
    size_t bytes = net->values_count * sizeof(float);
    bool stored = rule->momentum > 0 || rule->clip > 0;
    if (stored && !net->gradient) {
        net->gradient = ops->alloc(net->dev, bytes);
    }
    if (rule->momentum > 0 && !net->velocity) {
        net->velocity = ops->alloc(net->dev, bytes);
    }
    if ((stored && !net->gradient) || (rule->momentum > 0 && !net->velocity)) {
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "no memory for a gradient of %llu values",
                              (unsigned long long)net->values_count);
    }
    if (rule->momentum > 0) {
        ops->clear(net->dev, net->velocity, bytes);
    }
    return KEDGE_OK;
}

float *kedge_net_run_forward(struct kedge_net *net, const float *x, uint32_t n, bool training)
{
    struct kedge_net_pass p = {net->ops, net->dev, net->weights, n, training};
    for (uint32_t i = 0; i < net->count; i++) {
        net->layers[i].row->forward(&p, &net->layers[i], x);
        x = net->layers[i].y;
    }
    return net->layers[net->count - 1].y;
}

const float *kedge_net_forward(struct kedge_net *net, const float *x, uint32_t n)
{
    KEDGE_ASSERT(n >= 1 && n <= net->batch_max && net->ops->unified);
    return kedge_net_run_forward(net, x, n, false);
}

/* Errors from the last layer down, gradients into `to`. Layers below the first one with parameters are left
 * out: nothing there wants an error. A layer gives its error before its own weights change; each backend
 * keeps to that (ops.h), or the error would be that of the next step's weights. */
static void run_backward(struct kedge_net *net, const float *x, uint32_t n, const struct kedge_ops_step *step,
                         float *to)
{
    struct kedge_net_pass p = {net->ops, net->dev, net->weights, n, true};
    bool one = net->count <= 2 && net->loss_at == net->layers[net->count - 1].y;
    float *dy = net->loss_at;
    uint32_t lowest = 0; /* the first layer that has parameters: nothing below wants an error */
    while (net->layers[lowest].params_count == 0) {
        lowest++;
    }
    for (uint32_t i = net->count; i-- > lowest;) {
        const struct kedge_net_layer *l = &net->layers[i];
        float *dx = i > lowest ? net->error[one ? 0 : i & 1] : NULL;
        l->row->backward(&p, l, i > 0 ? net->layers[i - 1].y : x, dy, dx, step, to + l->params);
        dy = dx;
    }
}

/* The step of SGD from a stored gradient: clipped, decayed, bent, with momentum, in this order. Clipping
 * comes first because it bounds what the samples say; decay and pull are the job's own terms and stay whole.
 * Biases and norms come after the kernels of each layer, and are not decayed. */
static void apply_gradient(struct kedge_net *net, const struct kedge_net_rule *rule)
{
    const struct kedge_ops *ops = net->ops;
    double pull = rule->bend ? rule->bend->pull : 0;
    uint64_t count = net->values_count;
    float *g = net->gradient, lr = (float)-rule->lr;
    if (rule->clip > 0) {
        ops->clip(net->dev, count, g, (float)rule->clip);
    }
    for (uint32_t i = 0; i < net->count; i++) {
        const struct kedge_net_layer *l = &net->layers[i];
        uint64_t kernels = l->kernels, rest = l->params_count - kernels, at = l->params;
        if (kernels > 0 && 2 * rule->l2 + pull > 0) {
            ops->add(net->dev, kernels, g + at, net->weights + at, (float)(2 * rule->l2 + pull));
        }
        if (rest > 0 && pull > 0) {
            ops->add(net->dev, rest, g + at + kernels, net->weights + at + kernels, (float)pull);
        }
    }
    if (rule->bend && rule->bend->towards) {
        ops->add(net->dev, count, g, rule->bend->towards, -1.0f);
    }
    if (rule->momentum > 0) {
        ops->blend(net->dev, count, net->velocity, (float)rule->momentum, g, 1.0f);
        g = net->velocity;
    }
    ops->add(net->dev, count, net->weights, g, lr);
}

/* Two ways to the same step. Without momentum and clipping the backward pass writes into the weights
 * themselves, with decay and learning rate as its factors; with them it writes a gradient, which
 * apply_gradient takes. The softmax and its error overwrite the last layer's values where that layer is
 * dense, since its backward pass needs only its inputs. */
void kedge_net_run_step(struct kedge_net *net, const float *x, const int32_t *labels, uint32_t n,
                        const struct kedge_net_rule *rule)
{
    const struct kedge_ops *ops = net->ops;
    double pull = rule->bend ? rule->bend->pull : 0;
    bool stored = rule->momentum > 0 || rule->clip > 0;
    struct kedge_ops_step step = {0.0f, 0.0f, 1.0f};
    const float *y = kedge_net_run_forward(net, x, n, true);
    float *z = net->loss_at;
    if (z != y) {
        ops->copy(net->dev, z, y, (size_t)n * net->outputs * sizeof *z);
    }
    if (net->spec.loss == KEDGE_LOSS_SQUARE_ERROR) {
        ops->square_error(net->dev, n, net->outputs, labels, net->reals, z);
    } else {
        ops->cross_entropy(net->dev, n, net->outputs, labels, z);
    }
    if (!stored) {
        step = (struct kedge_ops_step){(float)(1.0 - rule->lr * (2.0 * rule->l2 + pull)),
                                       (float)(1.0 - rule->lr * pull), (float)-rule->lr};
    }
    run_backward(net, x, n, &step, stored ? net->gradient : net->weights);
    if (stored) {
        apply_gradient(net, rule);
    } else if (rule->bend && rule->bend->towards) {
        ops->add(net->dev, net->values_count, net->weights, rule->bend->towards, (float)rule->lr);
    }
}
