/* The kinds of layers as rows: how each finds its shapes (plan), and which functions of a back end it calls
 * forward and backward. A layer keeps no state but what is in its part of the slab, so a row is all that a
 * new kind needs here. */
#include "client/train/layers.h"

#include "common/base/err.h"

/* ---- dense ---- */

static void dense_plan(struct kedge_net_layer *l, const struct kedge_model_shape *in,
                       const struct kedge_model_shape *out)
{
    (void)in, (void)out;
    l->shape.kind = KEDGE_OPS_DENSE;
    l->shape.as.dense =
        (struct kedge_ops_dense){l->layer.in, l->layer.out, l->layer.activation == KEDGE_ACTIVATION_RELU};
}

static void dense_forward(const struct kedge_net_pass *p, const struct kedge_net_layer *l, const float *x)
{
    const float *w = p->weights + l->params;
    p->ops->dense_forward(p->dev, &l->shape.as.dense, p->n, x, w, w + l->kernels, l->y);
}

static void dense_backward(const struct kedge_net_pass *p, const struct kedge_net_layer *l, const float *x,
                           float *dy, float *dx, const struct kedge_ops_step *step, float *to)
{
    p->ops->dense_backward(p->dev, &l->shape.as.dense, p->n, x, l->y, dy, p->weights + l->params, dx, step,
                           to, to + l->kernels);
}

/* ---- conv2d, pools ---- */

static void conv2d_plan(struct kedge_net_layer *l, const struct kedge_model_shape *in,
                        const struct kedge_model_shape *out)
{
    l->shape.kind = KEDGE_OPS_CONV2D;
    l->shape.as.conv2d = (struct kedge_ops_conv2d){.in = in->dims[0],
                                                   .height = in->dims[1],
                                                   .width = in->dims[2],
                                                   .out = out->dims[0],
                                                   .out_height = out->dims[1],
                                                   .out_width = out->dims[2],
                                                   .kernel = l->layer.kernel,
                                                   .stride = l->layer.stride,
                                                   .padding = l->layer.padding,
                                                   .relu = l->layer.activation == KEDGE_ACTIVATION_RELU};
}

static void conv2d_forward(const struct kedge_net_pass *p, const struct kedge_net_layer *l, const float *x)
{
    const float *w = p->weights + l->params;
    p->ops->conv2d_forward(p->dev, &l->shape.as.conv2d, p->n, x, w, w + l->kernels, l->y);
}

static void conv2d_backward(const struct kedge_net_pass *p, const struct kedge_net_layer *l, const float *x,
                            float *dy, float *dx, const struct kedge_ops_step *step, float *to)
{
    p->ops->conv2d_backward(p->dev, &l->shape.as.conv2d, p->n, x, l->y, dy, p->weights + l->params, dx, step,
                            to, to + l->kernels);
}

static void pool_plan(struct kedge_net_layer *l, const struct kedge_model_shape *in,
                      const struct kedge_model_shape *out)
{
    l->shape.kind = l->layer.type == KEDGE_LAYER_MAXPOOL ? KEDGE_OPS_MAXPOOL : KEDGE_OPS_AVGPOOL;
    l->shape.as.pool = (struct kedge_ops_pool){.channels = in->dims[0],
                                               .height = in->dims[1],
                                               .width = in->dims[2],
                                               .out_height = out->dims[1],
                                               .out_width = out->dims[2],
                                               .kernel = l->layer.kernel,
                                               .stride = l->layer.stride};
    l->saved_width = l->layer.type == KEDGE_LAYER_MAXPOOL ? (l->out_width + 3) / 4 : 0; /* bytes */
}

static void maxpool_forward(const struct kedge_net_pass *p, const struct kedge_net_layer *l, const float *x)
{
    p->ops->maxpool_forward(p->dev, &l->shape.as.pool, p->n, x, l->y, (uint8_t *)l->saved);
}

static void maxpool_backward(const struct kedge_net_pass *p, const struct kedge_net_layer *l, const float *x,
                             float *dy, float *dx, const struct kedge_ops_step *step, float *to)
{
    (void)x, (void)step, (void)to;
    if (dx) {
        p->ops->maxpool_backward(p->dev, &l->shape.as.pool, p->n, (const uint8_t *)l->saved, dy, dx);
    }
}

static void avgpool_forward(const struct kedge_net_pass *p, const struct kedge_net_layer *l, const float *x)
{
    p->ops->avgpool_forward(p->dev, &l->shape.as.pool, p->n, x, l->y);
}

static void avgpool_backward(const struct kedge_net_pass *p, const struct kedge_net_layer *l, const float *x,
                             float *dy, float *dx, const struct kedge_ops_step *step, float *to)
{
    (void)x, (void)step, (void)to;
    if (dx) {
        p->ops->avgpool_backward(p->dev, &l->shape.as.pool, p->n, dy, dx);
    }
}

/* ---- element by element ---- */

static enum kedge_ops_pointwise pointwise_of(const struct kedge_net_layer *l)
{
    return l->layer.type == KEDGE_LAYER_RELU   ? KEDGE_OPS_RELU
           : l->layer.type == KEDGE_LAYER_GELU ? KEDGE_OPS_GELU
                                               : KEDGE_OPS_TANH;
}

static void pointwise_plan(struct kedge_net_layer *l, const struct kedge_model_shape *in,
                           const struct kedge_model_shape *out)
{
    (void)in, (void)out;
    l->shape.kind = l->layer.type == KEDGE_LAYER_DROPOUT ? KEDGE_OPS_DROPOUT : KEDGE_OPS_POINTWISE;
}

static void pointwise_forward(const struct kedge_net_pass *p, const struct kedge_net_layer *l, const float *x)
{
    p->ops->pointwise_forward(p->dev, pointwise_of(l), p->n * l->out_width, x, l->y);
}

static void pointwise_backward(const struct kedge_net_pass *p, const struct kedge_net_layer *l,
                               const float *x, float *dy, float *dx, const struct kedge_ops_step *step,
                               float *to)
{
    (void)step, (void)to;
    if (dx) {
        p->ops->pointwise_backward(p->dev, pointwise_of(l), p->n * l->out_width, x, l->y, dy, dx);
    }
}

static void dropout_forward(const struct kedge_net_pass *p, const struct kedge_net_layer *l, const float *x)
{
    if (p->training) {
        p->ops->dropout_forward(p->dev, l->layer.rate, l->index, p->n * l->out_width, x, l->y);
    } else {
        p->ops->copy(p->dev, l->y, x, p->n * l->out_width * sizeof *x);
    }
}

static void dropout_backward(const struct kedge_net_pass *p, const struct kedge_net_layer *l, const float *x,
                             float *dy, float *dx, const struct kedge_ops_step *step, float *to)
{
    (void)x, (void)step, (void)to;
    if (dx) {
        p->ops->dropout_backward(p->dev, l->layer.rate, l->index, p->n * l->out_width, dy, dx);
    }
}

/* ---- norms ---- */

static void norm_plan(struct kedge_net_layer *l, const struct kedge_model_shape *in,
                      const struct kedge_model_shape *out)
{
    (void)out;
    l->shape.kind = KEDGE_OPS_NORM;
    if (l->layer.type == KEDGE_LAYER_GROUPNORM) {
        l->shape.as.norm =
            (struct kedge_ops_norm){1, in->dims[0], in->dims[1] * in->dims[2], l->layer.groups};
    } else {
        uint32_t rows = in->dims_count == 2 ? in->dims[0] : 1;
        l->shape.as.norm = (struct kedge_ops_norm){rows, (uint32_t)(l->in_width / rows), 1, 1};
    }
    l->saved_width = 2 * (uint64_t)l->shape.as.norm.rows * l->shape.as.norm.groups;
}

static void norm_forward(const struct kedge_net_pass *p, const struct kedge_net_layer *l, const float *x)
{
    const float *scale = p->weights + l->params;
    p->ops->norm_forward(p->dev, &l->shape.as.norm, p->n, x, scale, scale + l->params_count / 2, l->y,
                         l->saved);
}

static void norm_backward(const struct kedge_net_pass *p, const struct kedge_net_layer *l, const float *x,
                          float *dy, float *dx, const struct kedge_ops_step *step, float *to)
{
    p->ops->norm_backward(p->dev, &l->shape.as.norm, p->n, x, l->saved, dy, p->weights + l->params, dx, step,
                          to, to + l->params_count / 2);
}

/* ---- sequences ---- */

static void embedding_plan(struct kedge_net_layer *l, const struct kedge_model_shape *in,
                           const struct kedge_model_shape *out)
{
    (void)in;
    l->shape.kind = KEDGE_OPS_EMBEDDING;
    l->shape.as.embedding = (struct kedge_ops_embedding){l->layer.in, out->dims[0], l->layer.out};
}

static void embedding_forward(const struct kedge_net_pass *p, const struct kedge_net_layer *l, const float *x)
{
    p->ops->embedding_forward(p->dev, &l->shape.as.embedding, p->n, x, p->weights + l->params, l->y);
}

static void embedding_backward(const struct kedge_net_pass *p, const struct kedge_net_layer *l,
                               const float *x, float *dy, float *dx, const struct kedge_ops_step *step,
                               float *to)
{
    if (dx) { /* token numbers have no gradient; a layer below has no parameters that could want one */
        p->ops->clear(p->dev, dx, p->n * l->in_width * sizeof *dx);
    }
    p->ops->embedding_backward(p->dev, &l->shape.as.embedding, p->n, x, dy, step, to);
}

static void lstm_plan(struct kedge_net_layer *l, const struct kedge_model_shape *in,
                      const struct kedge_model_shape *out)
{
    (void)out;
    l->shape.kind = KEDGE_OPS_LSTM;
    l->shape.as.lstm = (struct kedge_ops_lstm){in->dims[0], in->dims[1], l->layer.out, l->layer.last};
    l->saved_width = kedge_ops_lstm_saved(&l->shape.as.lstm);
}

static void lstm_forward(const struct kedge_net_pass *p, const struct kedge_net_layer *l, const float *x)
{
    p->ops->lstm_forward(p->dev, &l->shape.as.lstm, p->n, x, p->weights + l->params, l->y, l->saved);
}

static void lstm_backward(const struct kedge_net_pass *p, const struct kedge_net_layer *l, const float *x,
                          float *dy, float *dx, const struct kedge_ops_step *step, float *to)
{
    p->ops->lstm_backward(p->dev, &l->shape.as.lstm, p->n, x, l->saved, dy, p->weights + l->params, dx, step,
                          to);
}

static const struct kedge_net_row rows[] = {
    {KEDGE_LAYER_DENSE, false, dense_plan, dense_forward, dense_backward},
    {KEDGE_LAYER_CONV2D, false, conv2d_plan, conv2d_forward, conv2d_backward},
    {KEDGE_LAYER_MAXPOOL, false, pool_plan, maxpool_forward, maxpool_backward},
    {KEDGE_LAYER_AVGPOOL, false, pool_plan, avgpool_forward, avgpool_backward},
    {KEDGE_LAYER_RELU, false, pointwise_plan, pointwise_forward, pointwise_backward},
    {KEDGE_LAYER_GELU, false, pointwise_plan, pointwise_forward, pointwise_backward},
    {KEDGE_LAYER_TANH, false, pointwise_plan, pointwise_forward, pointwise_backward},
    {KEDGE_LAYER_DROPOUT, false, pointwise_plan, dropout_forward, dropout_backward},
    {KEDGE_LAYER_FLATTEN, true, NULL, NULL, NULL},
    {KEDGE_LAYER_LAYERNORM, false, norm_plan, norm_forward, norm_backward},
    {KEDGE_LAYER_GROUPNORM, false, norm_plan, norm_forward, norm_backward},
    {KEDGE_LAYER_EMBEDDING, false, embedding_plan, embedding_forward, embedding_backward},
    {KEDGE_LAYER_LSTM, false, lstm_plan, lstm_forward, lstm_backward},
};

static const struct kedge_net_row *row_of(enum kedge_layer_type type)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].type == type) {
            return &rows[i];
        }
    }
    KEDGE_ASSERT(false); /* every kind of a checked model has a row */
    return NULL;
}

/* How many values the layer has, and how many of them are decayed; these come first. */
static void count_params(struct kedge_net_layer *l, const struct kedge_model_shape *in)
{
    struct kedge_layer_tensor t[KEDGE_LAYER_TENSORS_MAX];
    uint32_t count = kedge_layer_tensors(&l->layer, in, t);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t values = 1;
        for (uint32_t k = 0; k < t[i].dims_count; k++) {
            values *= t[i].dims[k];
        }
        l->params_count += values;
        l->kernels += t[i].start == KEDGE_START_GLOROT ? values : 0;
    }
}

/* Aliases (flatten) are left out: in memory a flattened image is the image, so the next layer reads the one
 * before. `index` stays the layer's place in the model, which dropout draws by. */
uint32_t kedge_net_plan(const struct kedge_model_spec *spec, struct kedge_net_layer *ret)
{
    struct kedge_model_shape shapes[KEDGE_LAYERS_MAX + 1];
    uint64_t params = 0;
    uint32_t count = 0;
    kedge_model_shapes(spec, shapes);
    for (uint32_t i = 0; i < spec->count; i++) {
        struct kedge_net_layer *l = &ret[count];
        const struct kedge_net_row *row = row_of(spec->layers[i].type);
        if (row->alias) {
            continue;
        }
        *l = (struct kedge_net_layer){.layer = spec->layers[i], .row = row, .index = i, .params = params};
        l->in_width = kedge_model_shape_width(&shapes[i]);
        l->out_width = kedge_model_shape_width(&shapes[i + 1]);
        l->shape.width = l->out_width;
        count_params(l, &shapes[i]);
        row->plan(l, &shapes[i], &shapes[i + 1]);
        params += l->params_count;
        count++;
    }
    return count;
}
