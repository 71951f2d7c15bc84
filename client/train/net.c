/* Idea: the update of a kernel is one gemm, W ← (1 − 2·lr·l2)·W − lr·dZᵀX, so no gradient is ever stored.
 * Going backwards, a layer's activations are read twice (for that gemm and for the ReLU's mask) and then
 * overwritten by the error of the layer below; one more buffer, `error`, carries dZ·W between them. */
#include "client/train/net.h"

#include <cblas.h>
#include <math.h>
#include <string.h>

#include "client/train/small.h"
#include "common/base/mem.h"
#include "common/base/rng.h"

struct kedge_net {
    struct kedge_model_spec spec;
    uint32_t batch_max;
    bool has_small; /* kedge_small_is_available */
    uint64_t values_count;
    float *weights;
    float *kernel[KEDGE_LAYERS_MAX], *bias[KEDGE_LAYERS_MAX];
    float *activations;           /* owned: x, every layer's output, error */
    float *x;                     /* batch_max × inputs */
    float *out[KEDGE_LAYERS_MAX]; /* batch_max × out */
    float *error;                 /* batch_max × widest hidden layer */
};

static void place_slabs(struct kedge_net *net)
{
    float *w = net->weights, *a = net->activations;
    size_t batch = net->batch_max;
    net->x = a;
    a += batch * kedge_model_inputs(&net->spec);
    for (uint32_t i = 0; i < net->spec.count; i++) {
        const struct kedge_layer *l = &net->spec.layers[i];
        net->kernel[i] = w;
        w += (size_t)l->in * l->out;
        net->bias[i] = w;
        w += l->out;
        net->out[i] = a;
        a += batch * l->out;
    }
    net->error = a;
}

int kedge_net_new(const struct kedge_model_spec *spec, uint32_t batch_max, struct kedge_net **ret,
                  struct kedge_diag *reterr)
{
    int err = kedge_model_check(spec, reterr);
    if (err) {
        return err;
    }
    if (batch_max == 0 || batch_max > KEDGE_TRAIN_BATCH_MAX) {
        return kedge_diag_set(reterr, KEDGE_E_ARG, "batch of %u, expected 1 to %d", batch_max,
                              KEDGE_TRAIN_BATCH_MAX);
    }
    size_t width = kedge_model_inputs(spec), widest = 0;
    for (uint32_t i = 0; i < spec->count; i++) {
        width += spec->layers[i].out;
        widest = i + 1 < spec->count && spec->layers[i].out > widest ? spec->layers[i].out : widest;
    }
    struct kedge_net *net = kedge_mem_new(1, sizeof *net);
    if (net) {
        net->spec = *spec;
        net->batch_max = batch_max;
        net->has_small = kedge_small_is_available();
        net->values_count = kedge_model_values_count(spec);
        net->weights = kedge_mem_new_lines(net->values_count, sizeof(float));
        net->activations = kedge_mem_new_lines(batch_max, (width + widest) * sizeof(float));
    }
    if (!net || !net->weights || !net->activations) {
        kedge_net_free(net);
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "no memory for a model of %llu parameters, batch %u",
                              (unsigned long long)kedge_model_values_count(spec), batch_max);
    }
    place_slabs(net);
    *ret = net;
    return KEDGE_OK;
}

void kedge_net_free(struct kedge_net *net)
{
    if (net) {
        kedge_mem_free(net->weights);
        kedge_mem_free(net->activations);
        kedge_mem_free(net);
    }
}

float *kedge_net_weights(struct kedge_net *net)
{
    return net->weights;
}

uint64_t kedge_net_values_count(const struct kedge_net *net)
{
    return net->values_count;
}

void kedge_train_set_threads(uint32_t threads)
{
    openblas_set_num_threads(threads == 0                        ? 1
                             : threads > KEDGE_TRAIN_THREADS_MAX ? KEDGE_TRAIN_THREADS_MAX
                                                                 : (int)threads);
}

static void relu(float *v, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        v[i] = v[i] > 0.0f ? v[i] : 0.0f;
    }
}

static void scale(float *v, size_t count, float by)
{
    for (size_t i = 0; i < count; i++) {
        v[i] *= by;
    }
}

static void add(float *restrict v, const float *restrict of, size_t count, float by)
{
    for (size_t i = 0; i < count; i++) {
        v[i] += by * of[i];
    }
}

static bool use_small(const struct kedge_net *net, uint32_t i, uint32_t n)
{
    return net->has_small && (uint64_t)n * net->spec.layers[i].out <= KEDGE_SMALL_WORK_MAX;
}

/* z[n][out] += x[n][in] · Wᵀ of layer i. */
static void multiply_forward(const struct kedge_net *net, uint32_t i, const float *x, uint32_t n, float *z)
{
    const struct kedge_layer *l = &net->spec.layers[i];
    if (use_small(net, i, n)) {
        kedge_small_dots(n, l->out, l->in, x, net->kernel[i], z);
    } else {
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)n, (int)l->out, (int)l->in, 1.0f, x,
                    (int)l->in, net->kernel[i], (int)l->in, 1.0f, z, (int)l->out);
    }
}

/* error[n][in] = dz[n][out] · W of layer i. */
static void multiply_back(const struct kedge_net *net, uint32_t i, const float *dz, uint32_t n, float *error)
{
    const struct kedge_layer *l = &net->spec.layers[i];
    if (use_small(net, i, n)) {
        kedge_small_product(n, l->out, l->in, dz, l->out, 1, net->kernel[i], 0.0f, error);
    } else {
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)n, (int)l->in, (int)l->out, 1.0f, dz,
                    (int)l->out, net->kernel[i], (int)l->in, 0.0f, error, (int)l->in);
    }
}

/* W = keep · W + dzᵀ · x of layer i, and its bias = keep_bias · bias plus the column sums of dz. */
static void update_layer(const struct kedge_net *net, uint32_t i, const float *dz, const float *x, uint32_t n,
                         float keep, float keep_bias)
{
    const struct kedge_layer *l = &net->spec.layers[i];
    if (use_small(net, i, n)) {
        kedge_small_product(l->out, n, l->in, dz, 1, l->out, x, keep, net->kernel[i]);
    } else {
        cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)l->out, (int)l->in, (int)n, 1.0f, dz,
                    (int)l->out, x, (int)l->in, keep, net->kernel[i], (int)l->in);
    }
    scale(net->bias[i], l->out, keep_bias);
    for (uint32_t r = 0; r < n; r++) {
        for (uint32_t c = 0; c < l->out; c++) {
            net->bias[i][c] += dz[(size_t)r * l->out + c];
        }
    }
}

/* out[l] for all layers; the last holds logits. */
static void run_forward(struct kedge_net *net, const float *x, uint32_t n)
{
    const float *in = x;
    for (uint32_t i = 0; i < net->spec.count; i++) {
        const struct kedge_layer *l = &net->spec.layers[i];
        float *out = net->out[i];
        for (uint32_t r = 0; r < n; r++) {
            memcpy(out + (size_t)r * l->out, net->bias[i], l->out * sizeof *out);
        }
        multiply_forward(net, i, in, n, out);
        if (l->activation == KEDGE_ACTIVATION_RELU) {
            relu(out, (size_t)n * l->out);
        }
        in = out;
    }
}

const float *kedge_net_forward(struct kedge_net *net, const float *x, uint32_t n)
{
    KEDGE_ASSERT(n >= 1 && n <= net->batch_max);
    run_forward(net, x, n);
    return net->out[net->spec.count - 1];
}

/* One row of logits to probabilities in place; its cross-entropy. */
static double softmax_row(float *z, uint32_t classes, int32_t label)
{
    float most = z[0];
    double sum = 0;
    for (uint32_t c = 1; c < classes; c++) {
        most = z[c] > most ? z[c] : most;
    }
    float own = z[label] - most;
    for (uint32_t c = 0; c < classes; c++) {
        z[c] = expf(z[c] - most);
        sum += (double)z[c];
    }
    float inverse = (float)(1.0 / sum);
    for (uint32_t c = 0; c < classes; c++) {
        z[c] *= inverse;
    }
    return log(sum) - (double)own;
}

/* Logits to the error dL/dZ = (p − y)/n in place; the summed cross-entropy. */
static double take_loss(bool has_small, float *z, uint32_t classes, const int32_t *labels, uint32_t n)
{
    double loss = has_small ? kedge_small_softmax(n, classes, labels, z) : 0;
    float share = 1.0f / (float)n;
    for (uint32_t r = 0; r < n; r++) {
        float *row = z + (size_t)r * classes;
        loss += has_small ? 0 : softmax_row(row, classes, labels[r]);
        row[labels[r]] -= 1.0f;
        for (uint32_t c = 0; c < classes; c++) {
            row[c] *= share;
        }
    }
    return loss;
}

/* below ← error where below > 0, else 0: the ReLU's derivative, 0 at 0. */
static void mask_error(float *restrict below, const float *restrict error, size_t count, bool is_relu)
{
    for (size_t i = 0; i < count; i++) {
        below[i] = !is_relu || below[i] > 0.0f ? error[i] : 0.0f;
    }
}

double kedge_net_step(struct kedge_net *net, const float *x, const int32_t *labels, uint32_t n, double lr,
                      double l2)
{
    return kedge_net_step_bent(net, x, labels, n, lr, l2, NULL);
}

double kedge_net_step_bent(struct kedge_net *net, const float *x, const int32_t *labels, uint32_t n,
                           double lr, double l2, const struct kedge_train_bend *bend)
{
    double pull = bend ? bend->pull : 0;
    uint32_t last = net->spec.count - 1;
    KEDGE_ASSERT(n >= 1 && n <= net->batch_max);
    run_forward(net, x, n);
    double loss = take_loss(net->has_small, net->out[last], net->spec.layers[last].out, labels, n);
    float keep = (float)(1.0 - lr * (2.0 * l2 + pull)), keep_bias = (float)(1.0 - lr * pull);
    for (uint32_t i = last + 1; i-- > 0;) {
        const struct kedge_layer *l = &net->spec.layers[i];
        float *dz = net->out[i];
        if (i > 0) { /* before the kernel changes */
            multiply_back(net, i, dz, n, net->error);
        }
        scale(dz, (size_t)n * l->out, (float)-lr);
        update_layer(net, i, dz, i > 0 ? net->out[i - 1] : x, n, keep, keep_bias);
        if (i > 0) {
            mask_error(net->out[i - 1], net->error, (size_t)n * l->in,
                       net->spec.layers[i - 1].activation == KEDGE_ACTIVATION_RELU);
        }
    }
    if (bend && bend->towards) {
        add(net->weights, bend->towards, net->values_count, (float)lr);
    }
    return loss;
}

int kedge_net_check_data(const struct kedge_net *net, const struct kedge_dataset *data,
                         struct kedge_diag *reterr)
{
    uint32_t inputs = kedge_model_inputs(&net->spec), outputs = kedge_model_outputs(&net->spec);
    if (data->n > 0 && data->features != inputs) {
        return kedge_diag_set(reterr, KEDGE_E_SHAPE, "samples of %u features, but the model takes %u",
                              data->features, inputs);
    }
    if (data->n > 0 && data->classes > outputs) {
        return kedge_diag_set(reterr, KEDGE_E_SHAPE,
                              "labels up to %u, but the model has %u classes (0 to %u)", data->classes - 1,
                              outputs, outputs - 1);
    }
    return KEDGE_OK;
}

static int check_finite(const struct kedge_net *net, struct kedge_diag *reterr)
{
    float sum = 0.0f; /* 0·v is NaN for NaN and infinity, and NaN stays */
    for (uint64_t i = 0; i < net->values_count; i++) {
        sum += 0.0f * net->weights[i];
    }
    return sum == 0.0f ? KEDGE_OK
                       : kedge_diag_set(reterr, KEDGE_E_NOT_FINITE,
                                        "training diverged: weights are not finite; "
                                        "a smaller learning rate may help");
}

/* One pass over a shuffled order, or as many of its batches as `left` allows. */
static int train_pass(struct kedge_net *net, const struct kedge_dataset *data, const uint32_t *order,
                      const struct kedge_train_params *p, uint64_t left, int32_t *labels,
                      struct kedge_train_result *result, struct kedge_diag *reterr)
{
    double loss = 0;
    uint64_t used = 0;
    for (uint32_t at = 0; at < data->n && left > 0; left--) {
        uint32_t n = data->n - at < p->batch ? data->n - at : p->batch;
        kedge_dataset_gather(data, order + at, n, net->x);
        for (uint32_t i = 0; i < n; i++) {
            labels[i] = data->labels[order[at + i]];
        }
        loss += kedge_net_step_bent(net, net->x, labels, n, p->lr, p->l2, &p->bend);
        if (!isfinite(loss)) {
            return kedge_diag_set(reterr, KEDGE_E_NOT_FINITE,
                                  "training diverged: loss is %g at step %llu; a "
                                  "smaller learning rate may help",
                                  loss, (unsigned long long)result->steps + 1);
        }
        result->steps++;
        used += n;
        at += n;
    }
    result->loss = loss / (double)used;
    return KEDGE_OK;
}

static int check_params(const struct kedge_net *net, const struct kedge_dataset *data,
                        const struct kedge_train_params *p, struct kedge_diag *reterr)
{
    if (p->batch == 0 || p->batch > net->batch_max) {
        return kedge_diag_set(reterr, KEDGE_E_ARG, "batch of %u, expected 1 to %u", p->batch, net->batch_max);
    }
    if (p->steps == 0 && p->epochs == 0) {
        return kedge_diag_set(reterr, KEDGE_E_ARG, "neither epochs nor steps to train");
    }
    if (data->n == 0) {
        return kedge_diag_set(reterr, KEDGE_E_ARG, "no samples to train on");
    }
    return kedge_net_check_data(net, data, reterr);
}

int kedge_net_train(struct kedge_net *net, const struct kedge_dataset *data,
                    const struct kedge_train_params *params, struct kedge_train_result *ret,
                    struct kedge_diag *reterr)
{
    struct kedge_train_result result = {0};
    int err = check_params(net, data, params, reterr);
    if (err) {
        return err;
    }
    uint32_t *order = kedge_mem_new(data->n, sizeof *order);
    int32_t *labels = kedge_mem_new(params->batch, sizeof *labels);
    if (!order || !labels) {
        err = kedge_diag_set(reterr, KEDGE_E_NOMEM, "no memory for an order of %u samples", data->n);
    }
    enum kedge_rng_purpose purpose = params->steps ? KEDGE_RNG_PRETRAIN : KEDGE_RNG_TRAIN;
    for (uint64_t pass = 0; !err; pass++) {
        uint64_t left = params->steps ? params->steps - result.steps : UINT64_MAX;
        if (left == 0 || (params->steps == 0 && pass == params->epochs)) {
            break;
        }
        struct kedge_rng rng;
        for (uint32_t i = 0; i < data->n; i++) {
            order[i] = i;
        }
        kedge_rng_init(&rng, params->seed, purpose, pass, 0);
        kedge_rng_sample(&rng, order, data->n, data->n);
        err = train_pass(net, data, order, params, left, labels, &result, reterr);
    }
    kedge_mem_free(order);
    kedge_mem_free(labels);
    if (!err) {
        err = check_finite(net, reterr);
    }
    if (!err) {
        *ret = result;
    }
    return err;
}

int kedge_net_evaluate(struct kedge_net *net, const struct kedge_dataset *data, struct kedge_evaluation *ret,
                       struct kedge_diag *reterr)
{
    struct kedge_evaluation e = {.samples = data->n};
    uint32_t classes = kedge_model_outputs(&net->spec), count = net->batch_max;
    int err = kedge_net_check_data(net, data, reterr);
    if (err) {
        return err;
    }
    uint32_t *rows = kedge_mem_new(count, sizeof *rows);
    if (!rows) {
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "no memory for a batch of %u", count);
    }
    for (uint32_t at = 0; at < data->n;) {
        uint32_t n = data->n - at < count ? data->n - at : count;
        for (uint32_t i = 0; i < n; i++) {
            rows[i] = at + i;
        }
        kedge_dataset_gather(data, rows, n, net->x);
        run_forward(net, net->x, n);
        for (uint32_t i = 0; i < n; i++) {
            float *z = net->out[net->spec.count - 1] + (size_t)i * classes;
            uint32_t best = 0;
            for (uint32_t c = 1; c < classes; c++) {
                best = z[c] > z[best] ? c : best;
            }
            e.correct += best == (uint32_t)data->labels[at + i];
            e.loss += softmax_row(z, classes, data->labels[at + i]);
        }
        at += n;
    }
    kedge_mem_free(rows);
    e.loss = e.samples ? e.loss / (double)e.samples : 0.0;
    if (!isfinite(e.loss)) {
        return kedge_diag_set(reterr, KEDGE_E_NOT_FINITE, "evaluation: loss is %g", e.loss);
    }
    *ret = e;
    return KEDGE_OK;
}
