/* Passes over data: training in a shuffled order, evaluation.
 *
 * The order of samples is a part of the result. Each pass has a stream of its own, drawn from seed, purpose
 * and number of the pass, so that the order does not depend on how many passes there were before in this
 * process, and the simulator and a real site shuffle alike. */
#include <math.h>
#include <string.h>

#include "client/train/net_impl.h"
#include "common/base/mem.h"
#include "common/base/rng.h"
#include "common/base/try.h"

/* Token numbers of an embedding: whole, and within its table, for layers use them as places in it without
 * looking again. The first layer alone can be one (kedge_model_check). */
static int check_tokens(const struct kedge_net *net, const struct kedge_dataset *data,
                        struct kedge_diag *reterr)
{
    const struct kedge_net_layer *first = &net->layers[0];
    if (first->layer.type != KEDGE_LAYER_EMBEDDING) {
        return KEDGE_OK;
    }
    for (uint32_t r = 0; r < data->n; r++) {
        if (data->maker) {
            kedge_dataset_gather(data, &r, 1, net->x);
        }
        for (uint32_t f = 0; f < data->features; f++) {
            float v = data->maker ? net->x[f] : kedge_dataset_value(data, r, f);
            if (!(v >= 0.0f && v < (float)first->layer.in && v == floorf(v))) {
                return kedge_diag_set(reterr, KEDGE_E_SHAPE,
                                      "sample %u, feature %u is %g, but the embedding takes whole numbers "
                                      "from 0 to %u",
                                      r, f, (double)v, first->layer.in - 1);
            }
        }
    }
    return KEDGE_OK;
}

int kedge_net_check_data(const struct kedge_net *net, const struct kedge_dataset *data,
                         struct kedge_diag *reterr)
{
    uint32_t inputs = net->inputs, outputs = net->outputs;
    if (data->n > 0 && data->features != inputs) {
        return kedge_diag_set(reterr, KEDGE_E_SHAPE, "samples of %u features, but the model takes %u",
                              data->features, inputs);
    }
    if (data->maker && !net->ops->unified) {
        return kedge_diag_set(reterr, KEDGE_E_DEVICE, "%s: samples cannot be made as they are used",
                              net->ops->name);
    }
    bool number = net->spec.loss == KEDGE_LOSS_SQUARE_ERROR && outputs == 1; /* any label is a value */
    if (data->is_real && !number) {
        return kedge_diag_set(reterr, KEDGE_E_SHAPE,
                              "labels are reals, for which a model needs one output and \"loss\": \"mse\"");
    }
    if (data->n > 0 && data->classes > outputs && !number) {
        return kedge_diag_set(reterr, KEDGE_E_SHAPE,
                              "labels up to %u, but the model has %u classes (0 to %u)", data->classes - 1,
                              outputs, outputs - 1);
    }
    return check_tokens(net, data, reterr);
}

/* A step of n samples: run once as it is, then recorded, then replayed. */
struct kept_step {
    uint32_t n; /* 0: none has been run */
    void *recording;
};

/* What one call of kedge_net_train holds. */
struct training {
    struct kedge_net *net;
    const struct kedge_dataset *data;
    const struct kedge_train_params *params;
    struct kedge_net_rule rule;
    struct kedge_proximal_term bend;
    uint32_t count;                 /* samples of a pass */
    float *held;                    /* the values that stay, one range after the other */
    uint32_t *order, *device_order; /* the same where memory is unified */
    struct kedge_ops_data_handle *handle;
    struct kept_step steps[2]; /* of whole batches, of a pass's last one */
    struct kedge_train_result result;
};

/* After the last step, over all weights: a loss can stay finite while a weight does not, if nothing has read
 * it since. Sums instead of a test for each value, as NaN stays in it; this relies on arithmetic that is
 * not "fast math". */
static int check_finite(const struct kedge_net *net, struct kedge_diag *reterr)
{
    enum { LANES = 32 }; /* sums that do not wait for each other */
    const float *w = net->host;
    uint64_t i = 0;
    float lane[LANES] = {0}, sum = 0.0f; /* 0·v is NaN for NaN and infinity, and NaN stays */
    for (; i + LANES <= net->values_count; i += LANES) {
        for (uint32_t k = 0; k < LANES; k++) {
            lane[k] += 0.0f * w[i + k];
        }
    }
    for (; i < net->values_count; i++) {
        lane[0] += 0.0f * w[i];
    }
    for (uint32_t k = 0; k < LANES; k++) {
        sum += lane[k];
    }
    return sum == 0.0f ? KEDGE_OK
                       : kedge_diag_set(reterr, KEDGE_E_NOT_FINITE,
                                        "training diverged: weights are not finite; "
                                        "a smaller learning rate may help");
}

/* A device reports errors late, at the next call that waits for it; sync fetches its own words for what
 * went wrong. */
static int say_device(struct kedge_net *net, int err, struct kedge_diag *reterr)
{
    char text[KEDGE_DIAG_TEXT_MAX] = "";
    (void)net->ops->sync(net->dev, text, sizeof text);
    return kedge_diag_set(reterr, err, "%s: %s", net->ops->name, text);
}

/* Adds the device's loss; on the CPU after each step, so that divergence ends at once. */
static int take_loss(struct training *t, double *loss, struct kedge_diag *reterr)
{
    double sum = 0;
    int err = t->net->ops->take_loss(t->net->dev, &sum);
    if (err) {
        return say_device(t->net, err, reterr);
    }
    *loss += sum;
    return isfinite(*loss) ? KEDGE_OK
                           : kedge_diag_set(reterr, KEDGE_E_NOT_FINITE,
                                            "training diverged: loss is %g at step %llu; a "
                                            "smaller learning rate may help",
                                            *loss, (unsigned long long)t->result.steps + 1);
}

/* From data to weights, as it is. */
static void run_plainly(struct training *t, uint32_t n)
{
    struct kedge_net *net = t->net;
    net->ops->gather(net->dev, &t->handle, t->device_order, n, net->x, net->labels);
    kedge_net_run_step(net, net->x, net->labels, n, &t->rule);
}

/* The same, by a recording where the back end keeps them. The first run of a step loads what it needs, so it
 * is not recorded. */
static void run_kept(struct training *t, uint32_t n)
{
    const struct kedge_ops *ops = t->net->ops;
    struct kept_step *kept = &t->steps[n == t->params->batch ? 0 : 1];
    if (kept->recording && kept->n == n) {
        ops->replay(t->net->dev, kept->recording);
    } else if (ops->record_begin && kept->n == n && !kept->recording) {
        ops->record_begin(t->net->dev);
        run_plainly(t, n);
        kept->recording = ops->record_end(t->net->dev);
    } else {
        run_plainly(t, n);
        kept->n = kept->recording ? kept->n : n;
    }
}

/* Steps are of all weights, so that every kernel stays as it is; those that are held get their values back
 * after each step, bit for bit. */
static void restore_held(struct training *t)
{
    const struct kedge_train_params *p = t->params;
    const float *from = t->held;
    for (uint32_t i = 0; i < p->held_count; i++) {
        memcpy(t->net->host + p->held[i].first, from, (size_t)p->held[i].count * sizeof *from);
        from += p->held[i].count;
    }
}

static int save_held(struct training *t, struct kedge_diag *reterr)
{
    const struct kedge_train_params *p = t->params;
    size_t n = 0, at = 0;
    if (p->held_count == 0) {
        return KEDGE_OK;
    }
    if (!t->net->ops->unified) {
        return kedge_diag_set(reterr, KEDGE_E_DEVICE,
                              "%s: parts of a model are trained on the processor only", t->net->ops->name);
    }
    for (uint32_t i = 0; i < p->held_count; i++) {
        n += (size_t)p->held[i].count;
    }
    t->held = kedge_mem_new(n, sizeof *t->held);
    if (!t->held) {
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "no memory for %zu values that stay", n);
    }
    for (uint32_t i = 0; i < p->held_count; i++) {
        memcpy(t->held + at, t->net->host + p->held[i].first, (size_t)p->held[i].count * sizeof *t->held);
        at += (size_t)p->held[i].count;
    }
    return KEDGE_OK;
}

/* One pass over a shuffled order, or as many of its batches as `left` allows. */
static int train_pass(struct training *t, uint64_t left, struct kedge_diag *reterr)
{
    struct kedge_net *net = t->net;
    const struct kedge_ops *ops = net->ops;
    uint32_t total = t->count;
    double loss = 0;
    uint64_t used = 0;
    for (uint32_t at = 0; at < total && left > 0; left--) {
        uint32_t n = total - at < t->params->batch ? total - at : t->params->batch;
        struct kedge_ops_moment moment = {
            .seeds = &t->params->seed, .step = t->result.steps, .at = at, .counts = NULL};
        ops->moment(net->dev, &moment);
        run_kept(t, n);
        restore_held(t);
        KEDGE_TRY(ops->unified ? take_loss(t, &loss, reterr) : KEDGE_OK);
        t->result.steps++;
        used += n;
        at += n;
    }
    int err = ops->unified ? KEDGE_OK : take_loss(t, &loss, reterr);
    t->result.loss = loss / (double)used;
    return err;
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
    if (!(p->momentum >= 0 && p->momentum < 1 && p->clip >= 0)) {
        return kedge_diag_set(reterr, KEDGE_E_ARG, "momentum %g and clip %g: expected 0 to below 1, and 0 up",
                              p->momentum, p->clip);
    }
    if (data->n == 0 || (p->rows && (p->row_count == 0 || p->row_count > data->n))) {
        return kedge_diag_set(reterr, KEDGE_E_ARG, "no samples to train on");
    }
    return kedge_net_check_data(net, data, reterr);
}

struct kedge_ops_data kedge_net_data_of(const struct kedge_dataset *d)
{
    return (struct kedge_ops_data){.rows = d->n,
                                   .features = d->features,
                                   .stride = d->stride ? d->stride : d->features,
                                   .bytes = d->bytes,
                                   .reals = d->reals,
                                   .maker = d->maker,
                                   .scale = d->scale,
                                   .labels = d->labels};
}

/* The data, the order and the pull where the device can read them. */
static int training_open(struct training *t, struct kedge_diag *reterr)
{
    struct kedge_net *net = t->net;
    const struct kedge_ops *ops = net->ops;
    struct kedge_ops_data data = kedge_net_data_of(t->data);
    bool bent = t->params->bend.towards != NULL;
    t->order = kedge_mem_new(t->data->n, sizeof *t->order);
    t->device_order = ops->unified ? t->order : ops->alloc(net->dev, t->data->n * sizeof *t->order);
    t->handle = ops->data_load(net->dev, 0, &data);
    t->bend = t->params->bend;
    if (bent && !ops->unified) {
        net->towards = net->towards ? net->towards : ops->alloc(net->dev, net->values_count * sizeof(float));
        t->bend.towards = net->towards;
    }
    if (!t->order || !t->device_order || !t->handle || (bent && !t->bend.towards)) {
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "no memory for an order of %u samples", t->data->n);
    }
    if (bent && !ops->unified) {
        ops->upload(net->dev, 0, net->towards, t->params->bend.towards, net->values_count * sizeof(float));
    }
    t->rule = (struct kedge_net_rule){.lr = t->params->lr,
                                      .l2 = t->params->l2,
                                      .momentum = t->params->momentum,
                                      .clip = t->params->clip,
                                      .bend = &t->bend};
    net->reals = t->data->is_real;
    kedge_net_push(net);
    return kedge_net_prepare_rule(net, &t->rule, reterr);
}

static void training_close(struct training *t)
{
    const struct kedge_ops *ops = t->net->ops;
    for (size_t i = 0; i < sizeof t->steps / sizeof *t->steps; i++) {
        if (t->steps[i].recording) {
            ops->record_free(t->net->dev, t->steps[i].recording);
        }
    }
    if (t->handle) {
        ops->data_free(t->net->dev, t->handle);
    }
    if (!ops->unified) {
        (ops->free)(t->net->dev, t->device_order);
    }
    kedge_mem_free(t->order);
    kedge_mem_free(t->held);
}

int kedge_net_train(struct kedge_net *net, const struct kedge_dataset *data,
                    const struct kedge_train_params *params, struct kedge_train_result *ret,
                    struct kedge_diag *reterr)
{
    struct training t = {.net = net, .data = data, .params = params};
    KEDGE_TRY(check_params(net, data, params, reterr));
    t.count = params->rows ? params->row_count : data->n;
    int err = save_held(&t, reterr);
    if (!err) {
        err = training_open(&t, reterr);
    }
    enum kedge_rng_purpose purpose = params->steps ? KEDGE_RNG_PRETRAIN : KEDGE_RNG_TRAIN;
    for (uint64_t pass = 0; !err; pass++) {
        uint64_t left = params->steps ? params->steps - t.result.steps : UINT64_MAX;
        if (left == 0 || (params->steps == 0 && pass == params->epochs)) {
            break;
        }
        struct kedge_rng rng;
        for (uint32_t i = 0; i < t.count; i++) {
            t.order[i] = params->rows ? params->rows[i] : i;
        }
        kedge_rng_init(&rng, params->seed, purpose, pass, 0);
        kedge_rng_sample(&rng, t.order, t.count, t.count);
        if (!net->ops->unified) {
            net->ops->upload(net->dev, 0, t.device_order, t.order, t.count * sizeof *t.order);
        }
        err = train_pass(&t, left, reterr);
    }
    training_close(&t);
    if (err) {
        return err;
    }
    KEDGE_TRY(kedge_net_pull(net, reterr));
    KEDGE_TRY(check_finite(net, reterr));
    *ret = t.result;
    return KEDGE_OK;
}

/* The loss of a row whose target is a number. */
static double number_loss(float z, double target)
{
    return ((double)z - target) * ((double)z - target);
}

/* The loss of one row of the last layer's values, which it may overwrite. */
static double row_loss(const struct kedge_net *net, float *z, int32_t label)
{
    double loss = 0;
    if (net->spec.loss == KEDGE_LOSS_CROSS_ENTROPY) {
        return kedge_softmax_row(z, net->outputs, label);
    }
    for (uint32_t c = 0; c < net->outputs; c++) {
        loss += number_loss(z[c], net->outputs == 1 ? (double)label : (double)((int32_t)c == label));
    }
    return loss / (double)net->outputs;
}

/* `deviation` is the sum of squares until all are there. */
static void add_loss(struct kedge_evaluation *e, double loss)
{
    e->loss += loss;
    e->deviation += loss * loss;
}

/* Rows from `at` on. Of reals there are none that are right, only losses. */
static void judge(const struct kedge_net *net, float *z, const struct kedge_dataset *data, uint32_t at,
                  uint32_t n, struct kedge_evaluation *e)
{
    const int32_t *labels = data->labels + at;
    for (uint32_t i = 0; i < n; i++, z += net->outputs) {
        if (data->is_real) {
            add_loss(e, number_loss(z[0], (double)kedge_dataset_target(data, at + i)));
            continue;
        }
        uint32_t best = 0;
        for (uint32_t c = 1; c < net->outputs; c++) {
            best = z[c] > z[best] ? c : best;
        }
        if (net->outputs == 1
            && net->spec.loss == KEDGE_LOSS_SQUARE_ERROR) { /* a number: the nearest label */
            e->correct += fabsf(z[0] - (float)labels[i]) < 0.5f;
        } else {
            e->correct += best == (uint32_t)labels[i];
        }
        add_loss(e, row_loss(net, z, labels[i]));
    }
}

/* Losses are summed on the processor in the order of the samples, in binary64: two back ends whose outputs
 * are equal then report the same loss, and the last digit does not depend on how many rows a device takes
 * at a time. */
int kedge_net_evaluate(struct kedge_net *net, const struct kedge_dataset *data, struct kedge_evaluation *ret,
                       struct kedge_diag *reterr)
{
    const struct kedge_ops *ops = net->ops;
    struct kedge_evaluation e = {.samples = data->n};
    uint32_t count = net->evaluate_max;
    KEDGE_TRY(kedge_net_check_data(net, data, reterr));
    int err = KEDGE_OK;
    uint32_t *rows = kedge_mem_new(count, sizeof *rows);
    float *host = ops->unified ? NULL : kedge_mem_new(count, (net->inputs + net->outputs) * sizeof *host);
    if (!rows || (!ops->unified && !host)) {
        err = kedge_diag_set(reterr, KEDGE_E_NOMEM, "no memory for a batch of %u", count);
    }
    if (!err) {
        kedge_net_push(net);
    }
    for (uint32_t at = 0; at < data->n && !err;) {
        uint32_t n = data->n - at < count ? data->n - at : count;
        for (uint32_t i = 0; i < n; i++) {
            rows[i] = at + i;
        }
        kedge_dataset_gather(data, rows, n, host ? host : net->x);
        if (host) {
            ops->upload(net->dev, 0, net->x, host, (size_t)n * net->inputs * sizeof *host);
        }
        float *z = kedge_net_run_forward(net, net->x, n, false);
        if (host) {
            err = ops->download(net->dev, 0, host, z, (size_t)n * net->outputs * sizeof *host);
            err = err ? say_device(net, err, reterr) : KEDGE_OK;
            z = host;
        }
        if (!err) {
            judge(net, z, data, at, n, &e);
        }
        at += n;
    }
    kedge_mem_free(rows);
    kedge_mem_free(host);
    e.loss = e.samples ? e.loss / (double)e.samples : 0.0;
    const double spread = e.samples > 1 ? e.deviation / (double)e.samples - e.loss * e.loss : 0.0;
    e.deviation = spread > 0.0 ? sqrt(spread * (double)e.samples / (double)(e.samples - 1)) : 0.0;
    if (!err && !isfinite(e.loss)) {
        err = kedge_diag_set(reterr, KEDGE_E_NOT_FINITE, "evaluation: loss is %g", e.loss);
    }
    if (!err) {
        *ret = e;
    }
    return err;
}
