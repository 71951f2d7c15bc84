/* Models in JSON. Each kind of layer reads the keys that its row names. */
#include <stdio.h>
#include <string.h>

#include "common/base/text.h"
#include "common/base/try.h"
#include "common/tensor/model_impl.h"

enum { KEYS_MAX = 8 };
static const struct {
    enum kedge_layer_type type;
    const char *keys[KEYS_MAX]; /* besides "type" */
} layer_keys[] = {
    {KEDGE_LAYER_DENSE, {"in", "out", "activation"}},
    {KEDGE_LAYER_CONV2D, {"in", "out", "kernel", "stride", "padding", "activation"}},
    {KEDGE_LAYER_MAXPOOL, {"kernel", "stride"}},
    {KEDGE_LAYER_AVGPOOL, {"kernel", "stride"}},
    {KEDGE_LAYER_DROPOUT, {"rate"}},
    {KEDGE_LAYER_GROUPNORM, {"groups"}},
    {KEDGE_LAYER_EMBEDDING, {"in", "out"}},
    {KEDGE_LAYER_LSTM, {"in", "out", "sequence"}},
};

static int get_number(const struct kedge_json *doc, uint32_t at, const char *key, uint32_t min, uint32_t max,
                      uint32_t *ret, struct kedge_diag *reterr)
{
    uint64_t v = 0;
    KEDGE_TRY(kedge_json_get_u64(doc, at, key, min, max, &v, reterr));
    *ret = (uint32_t)v;
    return KEDGE_OK;
}

static bool has_key(const struct kedge_json *doc, uint32_t at, const char *key)
{
    return kedge_json_find(doc, at, key) != KEDGE_JSON_NONE;
}

/* What `in` is where the layer does not say it: for most kinds only one value fits the layer
 * before. An embedding's `in` is the number of tokens, which no shape tells. */
static uint32_t inferred_in(enum kedge_layer_type type, const struct kedge_model_shape *in)
{
    if (type == KEDGE_LAYER_LSTM) {
        return in->dims_count == 2 ? in->dims[1] : 0;
    }
    bool fits = in->dims_count == (type == KEDGE_LAYER_CONV2D ? 3u : 1u);
    return fits && type != KEDGE_LAYER_EMBEDDING ? in->dims[0] : 0;
}

static int read_activation(const struct kedge_json *doc, uint32_t at, struct kedge_layer *l,
                           struct kedge_diag *reterr)
{
    uint32_t activation = kedge_json_find(doc, at, "activation");
    if (kedge_json_str_is(doc, activation, "relu")) {
        l->activation = KEDGE_ACTIVATION_RELU;
    } else if (activation != KEDGE_JSON_NONE && !kedge_json_str_is(doc, activation, "none")) {
        return kedge_diag_set(
            reterr, KEDGE_E_FORMAT,
            "\"activation\": expected \"none\" or \"relu\"; others are layers of their own");
    }
    return KEDGE_OK;
}

static int read_key(const struct kedge_json *doc, uint32_t at, const char *key,
                    const struct kedge_model_shape *in, struct kedge_layer *l, struct kedge_diag *reterr)
{
    const uint32_t width = KEDGE_LAYER_WIDTH_MAX, kernel = KEDGE_LAYER_KERNEL_MAX;
    if (strcmp(key, "in") == 0) {
        l->in = inferred_in(l->type, in);
        return l->in && !has_key(doc, at, key) ? KEDGE_OK
                                               : get_number(doc, at, key, 1, width, &l->in, reterr);
    }
    if (strcmp(key, "out") == 0) {
        return get_number(doc, at, key, 1, width, &l->out, reterr);
    }
    if (strcmp(key, "activation") == 0) {
        return read_activation(doc, at, l, reterr);
    }
    if (strcmp(key, "kernel") == 0) {
        return get_number(doc, at, key, 1, kernel, &l->kernel, reterr);
    }
    if (strcmp(key, "stride") == 0) { /* pools move by their own size */
        l->stride = l->type == KEDGE_LAYER_CONV2D ? 1 : l->kernel;
        return has_key(doc, at, key) ? get_number(doc, at, key, 1, kernel, &l->stride, reterr) : KEDGE_OK;
    }
    if (strcmp(key, "padding") == 0) {
        return has_key(doc, at, key) ? get_number(doc, at, key, 0, kernel - 1, &l->padding, reterr)
                                     : KEDGE_OK;
    }
    if (strcmp(key, "rate") == 0) {
        return kedge_json_get_real(doc, at, key, 0.0, 0.99, &l->rate, reterr);
    }
    if (strcmp(key, "groups") == 0) {
        return get_number(doc, at, key, 1, width, &l->groups, reterr);
    }
    bool sequence = false; /* "sequence" */
    int err = has_key(doc, at, key) ? kedge_json_get_bool(doc, at, key, &sequence, reterr) : KEDGE_OK;
    l->last = !sequence;
    return err;
}

/* A layer after `in`, which has no dimensions where the model did not say its input. Only the keys
 * of its own kind are taken, so "kernel" in a dense layer is an error and not silently without
 * effect. */
static int read_layer(const struct kedge_json *doc, uint32_t at, const struct kedge_model_shape *in,
                      struct kedge_layer *ret, struct kedge_diag *reterr)
{
    const char *keys[KEYS_MAX + 1] = {"type"};
    uint32_t type = kedge_json_find(doc, at, "type"), count = 1;
    struct kedge_layer l = {0};
    if (!kedge_json_is(doc, at, KEDGE_JSON_OBJECT)) {
        return kedge_json_check_keys(doc, at, "layer", keys, 1, reterr);
    }
    for (uint32_t i = 0; i < kedge_layer_kinds_count; i++) {
        if (kedge_json_str_is(doc, type, kedge_layer_kinds[i].name)) {
            l.type = kedge_layer_kinds[i].type;
        }
    }
    if (!l.type) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT,
                              "\"type\": expected \"dense\", \"conv2d\", \"maxpool\", \"avgpool\", \"relu\", "
                              "\"gelu\", \"tanh\", \"dropout\", \"flatten\", \"layernorm\", \"groupnorm\", "
                              "\"embedding\" or \"lstm\"");
    }
    for (size_t i = 0; i < sizeof layer_keys / sizeof layer_keys[0]; i++) {
        for (uint32_t k = 0; layer_keys[i].type == l.type && k < KEYS_MAX && layer_keys[i].keys[k]; k++) {
            keys[count++] = layer_keys[i].keys[k];
        }
    }
    KEDGE_TRY(kedge_json_check_keys(doc, at, "layer", keys, count, reterr));
    for (uint32_t k = 1; k < count; k++) {
        KEDGE_TRY(read_key(doc, at, keys[k], in, &l, reterr));
    }
    *ret = l;
    return KEDGE_OK;
}

static int read_input(const struct kedge_json *doc, uint32_t at, struct kedge_model_shape *ret,
                      struct kedge_diag *reterr)
{
    uint32_t list = kedge_json_find(doc, at, "input"), count = 0;
    struct kedge_model_shape shape = {0};
    if (list == KEDGE_JSON_NONE) {
        *ret = shape;
        return KEDGE_OK;
    }
    bool good = kedge_json_is(doc, list, KEDGE_JSON_ARRAY) && doc->tokens[list].count >= 1
                && doc->tokens[list].count <= 3;
    for (uint32_t t = list + 1; good && t < doc->tokens[list].next; t = doc->tokens[t].next) {
        struct kedge_view text = kedge_json_text(doc, t);
        uint64_t v = 0;
        good = kedge_json_is(doc, t, KEDGE_JSON_NUMBER)
               && kedge_decimal_decode(text, KEDGE_LAYER_WIDTH_MAX, &v) == KEDGE_OK && v >= 1;
        shape.dims[count++] = (uint32_t)v;
    }
    if (!good) {
        return kedge_diag_set(
            reterr, KEDGE_E_FORMAT,
            "model: \"input\": expected an array of one to three whole numbers from 1 to %d",
            KEDGE_LAYER_WIDTH_MAX);
    }
    shape.dims_count = count;
    *ret = shape;
    return KEDGE_OK;
}

static int read_loss(const struct kedge_json *doc, uint32_t at, enum kedge_loss *ret,
                     struct kedge_diag *reterr)
{
    uint32_t loss = kedge_json_find(doc, at, "loss");
    if (loss == KEDGE_JSON_NONE || kedge_json_str_is(doc, loss, "cross-entropy")) {
        *ret = KEDGE_LOSS_CROSS_ENTROPY;
        return KEDGE_OK;
    }
    if (kedge_json_str_is(doc, loss, "mse")) {
        *ret = KEDGE_LOSS_SQUARE_ERROR;
        return KEDGE_OK;
    }
    return kedge_diag_set(reterr, KEDGE_E_FORMAT, "model: \"loss\": expected \"cross-entropy\" or \"mse\"");
}

/* The shape after a layer; none where it is not known, or the layer is wrong: the check will say so. */
static void follow(const struct kedge_layer *l, struct kedge_model_shape *shape)
{
    struct kedge_model_shape out;
    if (shape->dims_count == 0 && l->type == KEDGE_LAYER_DENSE) {
        *shape = (struct kedge_model_shape){1, {l->in, 0, 0}};
    }
    *shape = shape->dims_count > 0 && kedge_layer_shape(l, shape, &out, NULL) == KEDGE_OK
                 ? out
                 : (struct kedge_model_shape){0};
}

/* The shape is followed while layers are read, because a later layer's missing `in` is inferred
 * from it. Whether everything fits is judged once, by kedge_model_check, after that. */
static int read_layers(const struct kedge_json *doc, uint32_t at, struct kedge_model_spec *ret,
                       struct kedge_diag *reterr)
{
    static const char *const keys[] = {"layers", "input", "loss", "standardize"};
    uint32_t list = kedge_json_find(doc, at, "layers");
    struct kedge_model_spec spec = {.count = 0};
    KEDGE_TRY(kedge_json_check_keys(doc, at, "model", keys, 4, reterr));
    KEDGE_TRY(read_input(doc, at, &spec.input, reterr));
    int err = read_loss(doc, at, &spec.loss, reterr);
    if (!err && has_key(doc, at, "standardize")) {
        err = kedge_json_get_bool(doc, at, "standardize", &spec.standardize, reterr);
        err = err ? kedge_diag_wrap(reterr, err, "model") : KEDGE_OK;
    }
    if (err) {
        return err;
    }
    if (!kedge_json_is(doc, list, KEDGE_JSON_ARRAY) || doc->tokens[list].count == 0
        || doc->tokens[list].count > KEDGE_LAYERS_MAX) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT,
                              "model: \"layers\": expected an array of 1 to %d layers", KEDGE_LAYERS_MAX);
    }
    struct kedge_model_shape shape = spec.input;
    for (uint32_t l = list + 1; l < doc->tokens[list].next; l = doc->tokens[l].next) {
        err = read_layer(doc, l, &shape, &spec.layers[spec.count], reterr);
        if (err) {
            return kedge_diag_wrap(reterr, err, "model layer %u", spec.count);
        }
        follow(&spec.layers[spec.count++], &shape);
    }
    if (spec.input.dims_count == 0 && spec.layers[0].type != KEDGE_LAYER_DENSE) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT,
                              "model: \"input\" is missing: the shape of a sample, as [1, 28, 28]");
    }
    KEDGE_TRY(kedge_model_check(&spec, reterr));
    *ret = spec;
    return KEDGE_OK;
}

static int read_preset(const struct kedge_json *doc, uint32_t at, uint32_t preset,
                       struct kedge_model_spec *ret, struct kedge_diag *reterr)
{
    static const char *const keys[] = {"preset", "classes", "inputs", "hidden"};
    bool mlp = kedge_json_str_is(doc, preset, "mlp"), mclr = kedge_json_str_is(doc, preset, "mclr");
    uint32_t inputs = 0, hidden = 0, classes = 0;
    char name[32] = "", what[64];
    int err = kedge_json_get_string(doc, at, "preset", name, sizeof name, NULL);
    struct kedge_model_spec spec = {0};
    if (!mlp && !mclr) { /* by its name: before keys are looked at */
        err = kedge_model_preset(err ? "" : name, 0, &spec, reterr);
        if (err) {
            return kedge_diag_wrap(reterr, KEDGE_E_FORMAT, "model: \"preset\"");
        }
    }
    snprintf(what, sizeof what, "model preset %s", name);
    err = kedge_json_check_keys(doc, at, what, keys, mlp ? 4 : mclr ? 3 : 2, reterr);
    if (!err && (mlp || mclr)) {
        err = get_number(doc, at, "inputs", 1, KEDGE_LAYER_WIDTH_MAX, &inputs, reterr);
    }
    if (!err && (mlp || mclr || has_key(doc, at, "classes"))) {
        err = get_number(doc, at, "classes", 1, KEDGE_LAYER_WIDTH_MAX, &classes, reterr);
    }
    if (!err && mlp) {
        err = get_number(doc, at, "hidden", 1, KEDGE_LAYER_WIDTH_MAX, &hidden, reterr);
    }
    if (err) {
        return kedge_diag_wrap(reterr, err, "model");
    }
    return mlp    ? kedge_model_mlp(inputs, hidden, classes, ret, reterr)
           : mclr ? kedge_model_mclr(inputs, classes, ret, reterr)
                  : kedge_model_preset(name, classes, ret, reterr);
}

int kedge_model_from_json(const struct kedge_json *doc, uint32_t at, struct kedge_model_spec *ret,
                          struct kedge_diag *reterr)
{
    uint32_t preset = kedge_json_find(doc, at, "preset");
    return preset == KEDGE_JSON_NONE ? read_layers(doc, at, ret, reterr)
                                     : read_preset(doc, at, preset, ret, reterr);
}

static void put_layer(const struct kedge_layer *l, struct kedge_buf *out)
{
    char rate[KEDGE_REAL_MAX];
    kedge_buf_printf(out, "{\"type\":\"%s\"", kedge_layer_kind_of(l->type)->name);
    if (l->in > 0) {
        kedge_buf_printf(out, ",\"in\":%u,\"out\":%u", l->in, l->out);
    }
    if (l->kernel > 0) {
        kedge_buf_printf(out, ",\"kernel\":%u,\"stride\":%u", l->kernel, l->stride);
    }
    if (l->padding > 0) {
        kedge_buf_printf(out, ",\"padding\":%u", l->padding);
    }
    if (l->groups > 0) {
        kedge_buf_printf(out, ",\"groups\":%u", l->groups);
    }
    if (l->type == KEDGE_LAYER_LSTM) {
        kedge_buf_printf(out, ",\"sequence\":%s", l->last ? "false" : "true");
    }
    if (l->type == KEDGE_LAYER_DROPOUT) {
        kedge_real_encode(l->rate, rate);
        kedge_buf_printf(out, ",\"rate\":\"%s\"", rate);
    }
    if (l->type == KEDGE_LAYER_DENSE || l->type == KEDGE_LAYER_CONV2D) {
        kedge_buf_printf(out, ",\"activation\":\"%s\"",
                         l->activation == KEDGE_ACTIVATION_RELU ? "relu" : "none");
    }
    kedge_buf_put_str(out, "}");
}

/* Written with all inferred values filled in: what was read and what is written describe the same
 * model in full. */
void kedge_model_put_json(const struct kedge_model_spec *spec, struct kedge_buf *out)
{
    kedge_buf_put_str(out, "{");
    for (uint32_t i = 0; i < spec->input.dims_count; i++) {
        kedge_buf_printf(out, "%s%u%s", i ? "," : "\"input\":[", spec->input.dims[i],
                         i + 1 == spec->input.dims_count ? "]," : "");
    }
    kedge_buf_put_str(out, "\"layers\":[");
    for (uint32_t i = 0; i < spec->count; i++) {
        kedge_buf_put_str(out, i ? "," : "");
        put_layer(&spec->layers[i], out);
    }
    kedge_buf_put_str(out, spec->loss == KEDGE_LOSS_SQUARE_ERROR ? "],\"loss\":\"mse\"" : "]");
    kedge_buf_put_str(out, spec->standardize ? ",\"standardize\":true}" : "}");
}
