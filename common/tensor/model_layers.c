/* One row per kind of layer: what shape it makes of which, and its parameters. The keys of its JSON are in
 * model_json.c. */
#include "common/base/try.h"
#include "common/tensor/model_impl.h"

uint64_t kedge_model_shape_width(const struct kedge_model_shape *shape)
{
    uint64_t width = shape->dims_count > 0 ? 1 : 0;
    for (uint32_t i = 0; i < shape->dims_count; i++) {
        width *=
            shape->dims[i]; /* at most (2^24)^2 before it is checked, and a third that is checked first */
    }
    return width;
}

static int check_range(const char *key, uint64_t value, uint64_t min, uint64_t max, struct kedge_diag *reterr)
{
    if (value < min || value > max) {
        return kedge_diag_set(reterr, KEDGE_E_SHAPE, "\"%s\" is %llu, expected %llu to %llu", key,
                              (unsigned long long)value, (unsigned long long)min, (unsigned long long)max);
    }
    return KEDGE_OK;
}

static int want_dims(const struct kedge_model_shape *in, uint32_t dims, const char *what,
                     struct kedge_diag *reterr)
{
    return in->dims_count == dims
               ? KEDGE_OK
               : kedge_diag_set(reterr, KEDGE_E_SHAPE, "takes %s, but its input has %u dimensions", what,
                                in->dims_count);
}

static int want_in(const struct kedge_layer *l, uint32_t width, struct kedge_diag *reterr)
{
    KEDGE_TRY(check_range("in", l->in, 1, KEDGE_LAYER_WIDTH_MAX, reterr));
    KEDGE_TRY(check_range("out", l->out, 1, KEDGE_LAYER_WIDTH_MAX, reterr));
    if (l->in != width) {
        return kedge_diag_set(reterr, KEDGE_E_SHAPE, "\"in\" is %u, but its input has %u", l->in, width);
    }
    return KEDGE_OK;
}

static int dense_shape(const struct kedge_layer *l, const struct kedge_model_shape *in,
                       struct kedge_model_shape *ret, struct kedge_diag *reterr)
{
    KEDGE_TRY(want_dims(in, 1, "a vector (flatten first)", reterr));
    KEDGE_TRY(want_in(l, in->dims[0], reterr));
    *ret = (struct kedge_model_shape){1, {l->out, 0, 0}};
    return KEDGE_OK;
}

static uint32_t dense_tensors(const struct kedge_layer *l, const struct kedge_model_shape *in,
                              struct kedge_layer_tensor *t)
{
    (void)in;
    t[0] = (struct kedge_layer_tensor){
        "weight", 2, {l->out, l->in}, KEDGE_START_GLOROT, (uint64_t)l->in + l->out};
    t[1] = (struct kedge_layer_tensor){"bias", 1, {l->out}, KEDGE_START_ZERO, 0};
    return 2;
}

/* One side of a window's output: the last place where the whole window still fits, stride by
 * stride. */
static int slide(const char *side, uint32_t size, const struct kedge_layer *l, uint32_t *ret,
                 struct kedge_diag *reterr)
{
    uint64_t padded = (uint64_t)size + 2 * (uint64_t)l->padding;
    if (l->kernel > padded) {
        return kedge_diag_set(reterr, KEDGE_E_SHAPE, "\"kernel\" is %u, but the %s only %llu", l->kernel,
                              side, (unsigned long long)padded);
    }
    *ret = (uint32_t)((padded - l->kernel) / l->stride + 1);
    return KEDGE_OK;
}

static int window_shape(const struct kedge_layer *l, const struct kedge_model_shape *in, uint32_t channels,
                        struct kedge_model_shape *ret, struct kedge_diag *reterr)
{
    struct kedge_model_shape out = {3, {channels, 0, 0}};
    KEDGE_TRY(check_range("kernel", l->kernel, 1, KEDGE_LAYER_KERNEL_MAX, reterr));
    KEDGE_TRY(check_range("stride", l->stride, 1, KEDGE_LAYER_KERNEL_MAX, reterr));
    KEDGE_TRY(check_range("padding", l->padding, 0, l->kernel - 1, reterr));
    KEDGE_TRY(slide("height", in->dims[1], l, &out.dims[1], reterr));
    KEDGE_TRY(slide("width", in->dims[2], l, &out.dims[2], reterr));
    *ret = out;
    return KEDGE_OK;
}

static int conv2d_shape(const struct kedge_layer *l, const struct kedge_model_shape *in,
                        struct kedge_model_shape *ret, struct kedge_diag *reterr)
{
    KEDGE_TRY(want_dims(in, 3, "an image [channels, height, width]", reterr));
    KEDGE_TRY(want_in(l, in->dims[0], reterr));
    return window_shape(l, in, l->out, ret, reterr);
}

static uint32_t conv2d_tensors(const struct kedge_layer *l, const struct kedge_model_shape *in,
                               struct kedge_layer_tensor *t)
{
    (void)in;
    uint64_t window = (uint64_t)l->kernel * l->kernel;
    t[0] = (struct kedge_layer_tensor){"weight",
                                       4,
                                       {l->out, l->in, l->kernel, l->kernel},
                                       KEDGE_START_GLOROT,
                                       ((uint64_t)l->in + l->out) * window};
    t[1] = (struct kedge_layer_tensor){"bias", 1, {l->out}, KEDGE_START_ZERO, 0};
    return 2;
}

static int pool_shape(const struct kedge_layer *l, const struct kedge_model_shape *in,
                      struct kedge_model_shape *ret, struct kedge_diag *reterr)
{
    KEDGE_TRY(want_dims(in, 3, "an image [channels, height, width]", reterr));
    KEDGE_TRY(check_range("padding", l->padding, 0, 0, reterr));
    return window_shape(l, in, in->dims[0], ret, reterr);
}

static int same_shape(const struct kedge_layer *l, const struct kedge_model_shape *in,
                      struct kedge_model_shape *ret, struct kedge_diag *reterr)
{
    (void)l, (void)reterr;
    *ret = *in;
    return KEDGE_OK;
}

static int dropout_shape(const struct kedge_layer *l, const struct kedge_model_shape *in,
                         struct kedge_model_shape *ret, struct kedge_diag *reterr)
{
    *ret = *in;
    return l->rate >= 0.0 && l->rate <= 0.99
               ? KEDGE_OK
               : kedge_diag_set(reterr, KEDGE_E_SHAPE, "\"rate\" is %g, expected 0 to 0.99", l->rate);
}

static int flatten_shape(const struct kedge_layer *l, const struct kedge_model_shape *in,
                         struct kedge_model_shape *ret, struct kedge_diag *reterr)
{
    (void)l, (void)reterr;
    *ret = (struct kedge_model_shape){1, {(uint32_t)kedge_model_shape_width(in), 0, 0}};
    return KEDGE_OK;
}

static uint32_t no_tensors(const struct kedge_layer *l, const struct kedge_model_shape *in,
                           struct kedge_layer_tensor *t)
{
    (void)l, (void)in, (void)t;
    return 0;
}

/* What it normalises has a scale and a shift for each value; a sequence for each value of a step. */
static uint32_t layernorm_tensors(const struct kedge_layer *l, const struct kedge_model_shape *in,
                                  struct kedge_layer_tensor *t)
{
    (void)l;
    uint32_t from = in->dims_count == 2 ? 1 : 0, count = in->dims_count - from;
    for (uint32_t i = 0; i < 2; i++) {
        t[i] = (struct kedge_layer_tensor){
            i ? "bias" : "weight", count, {0}, i ? KEDGE_START_ZERO : KEDGE_START_ONE, 0};
        for (uint32_t k = 0; k < count; k++) {
            t[i].dims[k] = in->dims[from + k];
        }
    }
    return 2;
}

static int groupnorm_shape(const struct kedge_layer *l, const struct kedge_model_shape *in,
                           struct kedge_model_shape *ret, struct kedge_diag *reterr)
{
    int err = want_dims(in, 3, "an image [channels, height, width]", reterr);
    *ret = *in;
    if (!err && (l->groups == 0 || in->dims[0] % l->groups != 0)) {
        err = kedge_diag_set(reterr, KEDGE_E_SHAPE, "\"groups\" is %u, which does not divide %u channels",
                             l->groups, in->dims[0]);
    }
    return err;
}

static uint32_t groupnorm_tensors(const struct kedge_layer *l, const struct kedge_model_shape *in,
                                  struct kedge_layer_tensor *t)
{
    (void)l;
    t[0] = (struct kedge_layer_tensor){"weight", 1, {in->dims[0]}, KEDGE_START_ONE, 0};
    t[1] = (struct kedge_layer_tensor){"bias", 1, {in->dims[0]}, KEDGE_START_ZERO, 0};
    return 2;
}

static int embedding_shape(const struct kedge_layer *l, const struct kedge_model_shape *in,
                           struct kedge_model_shape *ret, struct kedge_diag *reterr)
{
    KEDGE_TRY(want_dims(in, 1, "a vector of token numbers", reterr));
    KEDGE_TRY(check_range("in", l->in, 1, KEDGE_LAYER_WIDTH_MAX, reterr));
    KEDGE_TRY(check_range("out", l->out, 1, KEDGE_LAYER_WIDTH_MAX, reterr));
    *ret = (struct kedge_model_shape){2, {in->dims[0], l->out, 0}};
    return KEDGE_OK;
}

static uint32_t embedding_tensors(const struct kedge_layer *l, const struct kedge_model_shape *in,
                                  struct kedge_layer_tensor *t)
{
    (void)in;
    t[0] = (struct kedge_layer_tensor){
        "weight", 2, {l->in, l->out}, KEDGE_START_GLOROT, (uint64_t)l->in + l->out};
    return 1;
}

static int lstm_shape(const struct kedge_layer *l, const struct kedge_model_shape *in,
                      struct kedge_model_shape *ret, struct kedge_diag *reterr)
{
    KEDGE_TRY(want_dims(in, 2, "a sequence [steps, width]", reterr));
    KEDGE_TRY(want_in(l, in->dims[1], reterr));
    *ret = l->last ? (struct kedge_model_shape){1, {l->out, 0, 0}}
                   : (struct kedge_model_shape){2, {in->dims[0], l->out, 0}};
    return KEDGE_OK;
}

/* Names and order of the gates (i, f, g, o) are PyTorch's, so that a model can be loaded there
 * without renaming. Of the two bias vectors only one begins with the ones of the forget gates; they
 * are added anyway. */
static uint32_t lstm_tensors(const struct kedge_layer *l, const struct kedge_model_shape *in,
                             struct kedge_layer_tensor *t)
{
    (void)in;
    uint64_t gates = 4 * (uint64_t)l->out;
    t[0] = (struct kedge_layer_tensor){"weight_ih_l0", 2, {gates, l->in}, KEDGE_START_GLOROT, l->in + gates};
    t[1] =
        (struct kedge_layer_tensor){"weight_hh_l0", 2, {gates, l->out}, KEDGE_START_GLOROT, l->out + gates};
    t[2] = (struct kedge_layer_tensor){"bias_ih_l0", 1, {gates}, KEDGE_START_FORGET, 0};
    t[3] = (struct kedge_layer_tensor){"bias_hh_l0", 1, {gates}, KEDGE_START_ZERO, 0};
    return 4;
}

const struct kedge_layer_kind kedge_layer_kinds[] = {
    {KEDGE_LAYER_DENSE, "dense", dense_shape, dense_tensors},
    {KEDGE_LAYER_CONV2D, "conv2d", conv2d_shape, conv2d_tensors},
    {KEDGE_LAYER_MAXPOOL, "maxpool", pool_shape, no_tensors},
    {KEDGE_LAYER_AVGPOOL, "avgpool", pool_shape, no_tensors},
    {KEDGE_LAYER_RELU, "relu", same_shape, no_tensors},
    {KEDGE_LAYER_GELU, "gelu", same_shape, no_tensors},
    {KEDGE_LAYER_TANH, "tanh", same_shape, no_tensors},
    {KEDGE_LAYER_DROPOUT, "dropout", dropout_shape, no_tensors},
    {KEDGE_LAYER_FLATTEN, "flatten", flatten_shape, no_tensors},
    {KEDGE_LAYER_LAYERNORM, "layernorm", same_shape, layernorm_tensors},
    {KEDGE_LAYER_GROUPNORM, "groupnorm", groupnorm_shape, groupnorm_tensors},
    {KEDGE_LAYER_EMBEDDING, "embedding", embedding_shape, embedding_tensors},
    {KEDGE_LAYER_LSTM, "lstm", lstm_shape, lstm_tensors},
};
const uint32_t kedge_layer_kinds_count = sizeof kedge_layer_kinds / sizeof kedge_layer_kinds[0];

const struct kedge_layer_kind *kedge_layer_kind_of(enum kedge_layer_type type)
{
    for (uint32_t i = 0; i < kedge_layer_kinds_count; i++) {
        if (kedge_layer_kinds[i].type == type) {
            return &kedge_layer_kinds[i];
        }
    }
    return NULL;
}

/* The size of a sample between two layers is bounded at every layer: a few large strides or
 * channels in a small file would otherwise ask for memory without bound. */
int kedge_layer_shape(const struct kedge_layer *layer, const struct kedge_model_shape *in,
                      struct kedge_model_shape *ret, struct kedge_diag *reterr)
{
    const struct kedge_layer_kind *kind = kedge_layer_kind_of(layer->type);
    struct kedge_model_shape out = {0};
    if (!kind) {
        return kedge_diag_set(reterr, KEDGE_E_SHAPE, "no kind of layer has the number %d", (int)layer->type);
    }
    KEDGE_TRY(kind->shape(layer, in, &out, reterr));
    uint64_t most = KEDGE_LAYER_WIDTH_MAX,
             two = (uint64_t)out.dims[0] * (out.dims_count > 1 ? out.dims[1] : 1);
    uint64_t width = two <= most ? two * (out.dims_count > 2 ? out.dims[2] : 1) : two;
    KEDGE_TRY(width >= 1 && width <= most
                  ? KEDGE_OK
                  : kedge_diag_set(reterr, KEDGE_E_SHAPE, "gives %llu values for a sample, at most %llu",
                                   (unsigned long long)width, (unsigned long long)most));
    *ret = out;
    return KEDGE_OK;
}

uint32_t kedge_layer_tensors(const struct kedge_layer *layer, const struct kedge_model_shape *in,
                             struct kedge_layer_tensor ret[KEDGE_LAYER_TENSORS_MAX])
{
    return kedge_layer_kind_of(layer->type)->tensors(layer, in, ret);
}
