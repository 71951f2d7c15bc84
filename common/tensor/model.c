#include "common/tensor/model.h"

#include <math.h>
#include <stdio.h>

#include "common/base/rng.h"

static int check_width(uint32_t layer, const char *what, uint64_t width, struct kedge_diag *reterr)
{
    if (width == 0 || width > KEDGE_LAYER_WIDTH_MAX) {
        return kedge_diag_set(reterr, KEDGE_E_SHAPE, "model layer %u: \"%s\" is %llu, expected 1 to %d",
                              layer, what, (unsigned long long)width, KEDGE_LAYER_WIDTH_MAX);
    }
    return KEDGE_OK;
}

int kedge_model_check(const struct kedge_model_spec *spec, struct kedge_diag *reterr)
{
    uint64_t total = 0;
    if (spec->count == 0 || spec->count > KEDGE_LAYERS_MAX) {
        return kedge_diag_set(reterr, KEDGE_E_SHAPE, "model has %u layers, expected 1 to %d", spec->count,
                              KEDGE_LAYERS_MAX);
    }
    for (uint32_t i = 0; i < spec->count; i++) {
        const struct kedge_layer *l = &spec->layers[i];
        int err = check_width(i, "in", l->in, reterr);
        if (!err) {
            err = check_width(i, "out", l->out, reterr);
        }
        if (err) {
            return err;
        }
        if (i > 0 && l->in != spec->layers[i - 1].out) {
            return kedge_diag_set(reterr, KEDGE_E_SHAPE,
                                  "model layer %u: \"in\" is %u, but layer %u has \"out\" %u", i, l->in,
                                  i - 1, spec->layers[i - 1].out);
        }
        total += (uint64_t)l->in * l->out + l->out; /* at most 64 · (2^48 + 2^24): no overflow */
    }
    if (total > KEDGE_LAYOUT_VALUES_MAX) {
        return kedge_diag_set(reterr, KEDGE_E_SHAPE, "model has %llu parameters, at most %llu",
                              (unsigned long long)total, (unsigned long long)KEDGE_LAYOUT_VALUES_MAX);
    }
    if (spec->layers[spec->count - 1].activation != KEDGE_ACTIVATION_NONE) {
        return kedge_diag_set(reterr, KEDGE_E_SHAPE,
                              "model layer %u: the last layer gives logits and takes no "
                              "activation",
                              spec->count - 1);
    }
    return KEDGE_OK;
}

static int take_checked(const struct kedge_model_spec *spec, struct kedge_model_spec *ret,
                        struct kedge_diag *reterr)
{
    int err = kedge_model_check(spec, reterr);
    if (!err) {
        *ret = *spec;
    }
    return err;
}

int kedge_model_mclr(uint32_t inputs, uint32_t classes, struct kedge_model_spec *ret,
                     struct kedge_diag *reterr)
{
    struct kedge_model_spec spec = {
        .layers = {{KEDGE_LAYER_DENSE, inputs, classes, KEDGE_ACTIVATION_NONE}},
        .count = 1,
    };
    return take_checked(&spec, ret, reterr);
}

int kedge_model_mlp(uint32_t inputs, uint32_t hidden, uint32_t classes, struct kedge_model_spec *ret,
                    struct kedge_diag *reterr)
{
    struct kedge_model_spec spec = {
        .layers = {{KEDGE_LAYER_DENSE, inputs, hidden, KEDGE_ACTIVATION_RELU},
                   {KEDGE_LAYER_DENSE, hidden, classes, KEDGE_ACTIVATION_NONE}},
        .count = 2,
    };
    return take_checked(&spec, ret, reterr);
}

static int get_width(const struct kedge_json *doc, uint32_t at, const char *key, uint32_t *ret,
                     struct kedge_diag *reterr)
{
    uint64_t v = 0;
    int err = kedge_json_get_u64(doc, at, key, 1, KEDGE_LAYER_WIDTH_MAX, &v, reterr);
    if (!err) {
        *ret = (uint32_t)v;
    }
    return err;
}

static int read_layer(const struct kedge_json *doc, uint32_t at, struct kedge_layer *ret,
                      struct kedge_diag *reterr)
{
    static const char *const keys[] = {"type", "in", "out", "activation"};
    int err = kedge_json_check_keys(doc, at, "layer", keys, 4, reterr);
    if (err) {
        return err;
    }
    if (!kedge_json_str_is(doc, kedge_json_find(doc, at, "type"), "dense")) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "\"type\": expected \"dense\"");
    }
    ret->type = KEDGE_LAYER_DENSE;
    err = get_width(doc, at, "in", &ret->in, reterr);
    if (!err) {
        err = get_width(doc, at, "out", &ret->out, reterr);
    }
    if (err) {
        return err;
    }
    uint32_t activation = kedge_json_find(doc, at, "activation");
    ret->activation = KEDGE_ACTIVATION_NONE;
    if (kedge_json_str_is(doc, activation, "relu")) {
        ret->activation = KEDGE_ACTIVATION_RELU;
    } else if (activation != KEDGE_JSON_NONE && !kedge_json_str_is(doc, activation, "none")) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "\"activation\": expected \"none\" or \"relu\"");
    }
    return KEDGE_OK;
}

static int read_layers(const struct kedge_json *doc, uint32_t at, struct kedge_model_spec *ret,
                       struct kedge_diag *reterr)
{
    static const char *const keys[] = {"layers"};
    uint32_t list = kedge_json_find(doc, at, "layers");
    int err = kedge_json_check_keys(doc, at, "model", keys, 1, reterr);
    if (err) {
        return err;
    }
    if (!kedge_json_is(doc, list, KEDGE_JSON_ARRAY) || doc->tokens[list].count == 0
        || doc->tokens[list].count > KEDGE_LAYERS_MAX) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT,
                              "model: \"layers\": expected an array of 1 to %d layers", KEDGE_LAYERS_MAX);
    }
    struct kedge_model_spec spec = {.count = 0};
    for (uint32_t l = list + 1; l < doc->tokens[list].next; l = doc->tokens[l].next) {
        err = read_layer(doc, l, &spec.layers[spec.count], reterr);
        if (err) {
            return kedge_diag_wrap(reterr, err, "model layer %u", spec.count);
        }
        spec.count++;
    }
    return take_checked(&spec, ret, reterr);
}

static int read_preset(const struct kedge_json *doc, uint32_t at, uint32_t preset,
                       struct kedge_model_spec *ret, struct kedge_diag *reterr)
{
    static const char *const keys[] = {"preset", "inputs", "classes", "hidden"};
    bool mlp = kedge_json_str_is(doc, preset, "mlp");
    uint32_t inputs = 0, hidden = 0, classes = 0;
    if (!mlp && !kedge_json_str_is(doc, preset, "mclr")) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "model: \"preset\": expected \"mclr\" or \"mlp\"");
    }
    int err = kedge_json_check_keys(doc, at, mlp ? "model preset mlp" : "model preset mclr", keys,
                                    mlp ? 4 : 3, reterr);
    if (!err) {
        err = get_width(doc, at, "inputs", &inputs, reterr);
    }
    if (!err) {
        err = get_width(doc, at, "classes", &classes, reterr);
    }
    if (!err && mlp) {
        err = get_width(doc, at, "hidden", &hidden, reterr);
    }
    if (err) {
        return kedge_diag_wrap(reterr, err, "model");
    }
    return mlp ? kedge_model_mlp(inputs, hidden, classes, ret, reterr)
               : kedge_model_mclr(inputs, classes, ret, reterr);
}

int kedge_model_from_json(const struct kedge_json *doc, uint32_t at, struct kedge_model_spec *ret,
                          struct kedge_diag *reterr)
{
    uint32_t preset = kedge_json_find(doc, at, "preset");
    return preset == KEDGE_JSON_NONE ? read_layers(doc, at, ret, reterr)
                                     : read_preset(doc, at, preset, ret, reterr);
}

void kedge_model_put_json(const struct kedge_model_spec *spec, struct kedge_buf *out)
{
    kedge_buf_put_str(out, "{\"layers\":[");
    for (uint32_t i = 0; i < spec->count; i++) {
        const struct kedge_layer *l = &spec->layers[i];
        kedge_buf_printf(out, "%s{\"type\":\"dense\",\"in\":%u,\"out\":%u,\"activation\":\"%s\"}",
                         i ? "," : "", l->in, l->out,
                         l->activation == KEDGE_ACTIVATION_RELU ? "relu" : "none");
    }
    kedge_buf_put_str(out, "]}");
}

uint32_t kedge_model_inputs(const struct kedge_model_spec *spec)
{
    return spec->layers[0].in;
}

uint32_t kedge_model_outputs(const struct kedge_model_spec *spec)
{
    return spec->layers[spec->count - 1].out;
}

uint64_t kedge_model_values_count(const struct kedge_model_spec *spec)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < spec->count; i++) {
        total += (uint64_t)spec->layers[i].in * spec->layers[i].out + spec->layers[i].out;
    }
    return total;
}

int kedge_model_layout(const struct kedge_model_spec *spec, struct kedge_layout *ret,
                       struct kedge_diag *reterr)
{
    struct kedge_layout layout;
    kedge_layout_init(&layout, KEDGE_DTYPE_F32);
    int err = kedge_model_check(spec, reterr);
    for (uint32_t i = 0; i < spec->count && !err; i++) {
        char name[32];
        uint64_t dims[2] = {spec->layers[i].out, spec->layers[i].in};
        snprintf(name, sizeof name, "%u.weight", i);
        err = kedge_layout_add(&layout, name, dims, 2, reterr);
        if (!err) {
            snprintf(name, sizeof name, "%u.bias", i);
            err = kedge_layout_add(&layout, name, dims, 1, reterr);
        }
    }
    if (err) {
        kedge_layout_deinit(&layout);
        return err;
    }
    *ret = layout;
    return KEDGE_OK;
}

void kedge_model_init(const struct kedge_model_spec *spec, uint64_t seed, float *values)
{
    for (uint32_t i = 0; i < spec->count; i++) {
        const struct kedge_layer *l = &spec->layers[i];
        struct kedge_rng rng;
        double limit = sqrt(6.0 / ((double)l->in + (double)l->out));
        kedge_rng_init(&rng, seed, KEDGE_RNG_INIT, 2 * (uint64_t)i, 0); /* tensor 2i; 2i+1 is its bias */
        for (uint64_t k = (uint64_t)l->in * l->out; k > 0; k--) {
            double u = kedge_rng_unit(&rng);
            *values++ = (float)((u * 2.0 - 1.0) * limit);
        }
        for (uint32_t k = 0; k < l->out; k++) {
            *values++ = 0.0f;
        }
    }
}
