/* Models as lists of layers: whether they are sound, which tensors they have, and their first
 * weights.
 *
 * The first weights are part of the record: an auditor computes them again from the job's seed and
 * compares digests. So they are drawn by the project's own generator, each tensor from a stream of
 * its own, and computed with operations that IEEE 754 defines exactly (multiplication, division,
 * subtraction, square root). */
#include "common/tensor/model.h"

#include <math.h>
#include <stdio.h>

#include "common/base/rng.h"
#include "common/base/try.h"
#include "common/tensor/scales.h"

static struct kedge_model_shape input_of(const struct kedge_model_spec *spec)
{
    return spec->input.dims_count > 0 ? spec->input
                                      : (struct kedge_model_shape){1, {spec->layers[0].in, 0, 0}};
}

/* The product grows step by step within the bound, so it cannot overflow. */
static int check_input(const struct kedge_model_shape *input, struct kedge_diag *reterr)
{
    uint64_t width = 1;
    bool good = input->dims_count >= 1 && input->dims_count <= 3;
    for (uint32_t i = 0; good && i < input->dims_count; i++) {
        good = input->dims[i] > 0 && input->dims[i] <= KEDGE_LAYER_WIDTH_MAX;
        width = good ? width * input->dims[i] : 0;
        good = good && width <= KEDGE_LAYER_WIDTH_MAX;
    }
    return good ? KEDGE_OK
                : kedge_diag_set(reterr, KEDGE_E_SHAPE,
                                 "model \"input\": expected one to three numbers of at least 1, %d values "
                                 "at most together",
                                 KEDGE_LAYER_WIDTH_MAX);
}

/* A layer of today's dense models says what it always said. */
static int check_dense(const struct kedge_model_spec *spec, uint32_t i, const struct kedge_model_shape *in,
                       struct kedge_diag *reterr)
{
    const struct kedge_layer *l = &spec->layers[i], *before = i > 0 ? &spec->layers[i - 1] : NULL;
    const char *what = l->in == 0 || l->in > KEDGE_LAYER_WIDTH_MAX ? "in" : "out";
    uint64_t width = what[0] == 'i' ? l->in : l->out;
    if (width == 0 || width > KEDGE_LAYER_WIDTH_MAX) {
        return kedge_diag_set(reterr, KEDGE_E_SHAPE, "model layer %u: \"%s\" is %llu, expected 1 to %d", i,
                              what, (unsigned long long)width, KEDGE_LAYER_WIDTH_MAX);
    }
    if (before && before->type == KEDGE_LAYER_DENSE && l->in != in->dims[0]) {
        return kedge_diag_set(reterr, KEDGE_E_SHAPE,
                              "model layer %u: \"in\" is %u, but layer %u has \"out\" %u", i, l->in, i - 1,
                              before->out);
    }
    return KEDGE_OK;
}

static uint64_t tensors_values(const struct kedge_layer *l, const struct kedge_model_shape *in)
{
    struct kedge_layer_tensor t[KEDGE_LAYER_TENSORS_MAX];
    uint64_t total = 0;
    uint32_t count = kedge_layer_tensors(l, in, t);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t values = 1;
        for (uint32_t k = 0; k < t[i].dims_count; k++) {
            values *= t[i].dims[k]; /* convolutions: 2^24 · 2^24 · 15 · 15 at most */
        }
        total += values;
    }
    return total;
}

static int check_end(const struct kedge_model_spec *spec, const struct kedge_model_shape *end,
                     struct kedge_diag *reterr)
{
    const struct kedge_layer *last = &spec->layers[spec->count - 1];
    if (last->activation != KEDGE_ACTIVATION_NONE) {
        return kedge_diag_set(reterr, KEDGE_E_SHAPE,
                              "model layer %u: the last layer gives logits and takes no "
                              "activation",
                              spec->count - 1);
    }
    if (end->dims_count != 1) {
        return kedge_diag_set(reterr, KEDGE_E_SHAPE,
                              "model layer %u: the last layer gives %u dimensions, expected a vector "
                              "(one value a class)",
                              spec->count - 1, end->dims_count);
    }
    if (spec->loss != KEDGE_LOSS_CROSS_ENTROPY && spec->loss != KEDGE_LOSS_SQUARE_ERROR) {
        return kedge_diag_set(reterr, KEDGE_E_SHAPE, "model: no loss has the number %d", (int)spec->loss);
    }
    return KEDGE_OK;
}

/* A token's number is a place in the embedding's table. Before a pass trainers check that the samples' values
 * are such numbers; what another layer has computed nobody can check, and it would be a place outside of the
 * table, in a process that trains by a spec which others have written. So only layers that change no value
 * may come before. */
static int check_embedding(const struct kedge_model_spec *spec, uint32_t at, struct kedge_diag *reterr)
{
    for (uint32_t i = 0; i < at; i++) {
        if (spec->layers[i].type != KEDGE_LAYER_FLATTEN) {
            return kedge_diag_set(reterr, KEDGE_E_SHAPE,
                                  "model layer %u: an embedding takes the samples' own token numbers: only "
                                  "\"flatten\" may come before it",
                                  at);
        }
    }
    return KEDGE_OK;
}

/* Layer by layer, the shape that one gives being what the next one takes. A model that passes has a
 * shape at every place, so all functions below can rely on it without checks. */
int kedge_model_check(const struct kedge_model_spec *spec, struct kedge_diag *reterr)
{
    uint64_t total = 0;
    if (spec->count == 0 || spec->count > KEDGE_LAYERS_MAX) {
        return kedge_diag_set(reterr, KEDGE_E_SHAPE, "model has %u layers, expected 1 to %d", spec->count,
                              KEDGE_LAYERS_MAX);
    }
    struct kedge_model_shape shape = input_of(spec), out;
    bool dense = spec->layers[0].type == KEDGE_LAYER_DENSE && spec->input.dims_count == 0;
    int err = dense ? KEDGE_OK : check_input(&shape, reterr);
    for (uint32_t i = 0; i < spec->count && !err; i++) {
        const struct kedge_layer *l = &spec->layers[i];
        err = l->type == KEDGE_LAYER_DENSE       ? check_dense(spec, i, &shape, reterr)
              : l->type == KEDGE_LAYER_EMBEDDING ? check_embedding(spec, i, reterr)
                                                 : KEDGE_OK;
        if (err) {
            return err;
        }
        err = kedge_layer_shape(l, &shape, &out, reterr);
        if (err) {
            return kedge_diag_wrap(reterr, err, "model layer %u", i);
        }
        total += tensors_values(l, &shape); /* at most 64 · 4 · 2^56: no overflow */
        shape = out;
    }
    total += !err && spec->standardize ? kedge_scales_count(kedge_model_inputs(spec)) : 0;
    if (!err && total > KEDGE_LAYOUT_VALUES_MAX) {
        return kedge_diag_set(reterr, KEDGE_E_SHAPE, "model has %llu parameters, at most %llu",
                              (unsigned long long)total, (unsigned long long)KEDGE_LAYOUT_VALUES_MAX);
    }
    if (!err && total == 0) {
        return kedge_diag_set(reterr, KEDGE_E_SHAPE, "model has no parameters");
    }
    return err ? err : check_end(spec, &shape, reterr);
}

static bool same_layer(const struct kedge_layer *a, const struct kedge_layer *b)
{
    return a->type == b->type && a->in == b->in && a->out == b->out && a->activation == b->activation
           && a->kernel == b->kernel && a->stride == b->stride && a->padding == b->padding
           && a->groups == b->groups && a->last == b->last && a->rate == b->rate;
}

bool kedge_model_same(const struct kedge_model_spec *a, const struct kedge_model_spec *b)
{
    bool same = a->count == b->count && a->loss == b->loss && a->standardize == b->standardize
                && a->input.dims_count == b->input.dims_count;
    for (uint32_t i = 0; same && i < a->input.dims_count; i++) {
        same = a->input.dims[i] == b->input.dims[i];
    }
    for (uint32_t i = 0; same && i < a->count; i++) {
        same = same_layer(&a->layers[i], &b->layers[i]);
    }
    return same;
}

void kedge_model_shapes(const struct kedge_model_spec *spec,
                        struct kedge_model_shape shapes[KEDGE_LAYERS_MAX + 1])
{
    shapes[0] = input_of(spec);
    for (uint32_t i = 0; i < spec->count; i++) {
        int err = kedge_layer_shape(&spec->layers[i], &shapes[i], &shapes[i + 1], NULL);
        KEDGE_ASSERT(!err); /* a checked model */
    }
}

uint32_t kedge_model_inputs(const struct kedge_model_spec *spec)
{
    struct kedge_model_shape input = input_of(spec);
    return (uint32_t)kedge_model_shape_width(&input);
}

uint32_t kedge_model_outputs(const struct kedge_model_spec *spec)
{
    struct kedge_model_shape shapes[KEDGE_LAYERS_MAX + 1];
    kedge_model_shapes(spec, shapes);
    return shapes[spec->count].dims[0];
}

uint64_t kedge_model_values_count(const struct kedge_model_spec *spec)
{
    struct kedge_model_shape shapes[KEDGE_LAYERS_MAX + 1];
    uint64_t total = 0;
    kedge_model_shapes(spec, shapes);
    for (uint32_t i = 0; i < spec->count; i++) {
        total += tensors_values(&spec->layers[i], &shapes[i]);
    }
    return total + (spec->standardize ? kedge_scales_count(kedge_model_inputs(spec)) : 0);
}

static int add_scales(struct kedge_layout *layout, uint32_t inputs, struct kedge_diag *reterr)
{
    const uint64_t dims[] = {KEDGE_SCALES_DIGITS, inputs}, one = 1;
    KEDGE_TRY(kedge_layout_add(layout, "standardize.mean", dims, 2, reterr));
    KEDGE_TRY(kedge_layout_add(layout, "standardize.variance", dims, 2, reterr));
    return kedge_layout_add(layout, "standardize.stage", &one, 1, reterr);
}

/* Scales of a model with "standardize" come after the layers' tensors: a model without them is then
 * the beginning of one with them. */
int kedge_model_layout(const struct kedge_model_spec *spec, struct kedge_layout *ret,
                       struct kedge_diag *reterr)
{
    struct kedge_layout layout;
    struct kedge_model_shape shapes[KEDGE_LAYERS_MAX + 1];
    int err = kedge_model_check(spec, reterr);
    if (err) {
        return err;
    }
    kedge_layout_init(&layout, KEDGE_DTYPE_F32);
    kedge_model_shapes(spec, shapes);
    for (uint32_t i = 0; i < spec->count; i++) {
        struct kedge_layer_tensor t[KEDGE_LAYER_TENSORS_MAX];
        uint32_t count = kedge_layer_tensors(&spec->layers[i], &shapes[i], t);
        for (uint32_t k = 0; k < count && !err; k++) {
            char name[48];
            snprintf(name, sizeof name, "%u.%s", i, t[k].name);
            err = kedge_layout_add(&layout, name, t[k].dims, t[k].dims_count, reterr);
        }
    }
    if (!err && spec->standardize) {
        err = add_scales(&layout, kedge_model_inputs(spec), reterr);
    }
    if (err) {
        kedge_layout_deinit(&layout);
        return err;
    }
    *ret = layout;
    return KEDGE_OK;
}

static uint64_t values_of(const struct kedge_layer_tensor *t)
{
    uint64_t values = 1;
    for (uint32_t k = 0; k < t->dims_count; k++) {
        values *= t->dims[k];
    }
    return values;
}

/* Values at … at + n - 1 of a tensor; only kernels draw, one draw a value. Glorot-uniform: between
 * plus and minus the square root of 6 / (fan in + fan out) (Glorot and Bengio 2010). Forget gates
 * begin with a bias of 1, so that an LSTM does not forget everything before it has learnt anything. */
static void start_values(const struct kedge_layer_tensor *t, struct kedge_rng *rng, uint64_t count,
                         uint64_t at, size_t n, float *values)
{
    double limit = t->fan ? sqrt(6.0 / (double)t->fan) : 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t k = at + i;
        switch (t->start) {
        case KEDGE_START_GLOROT: {
            double u = kedge_rng_unit(rng);
            values[i] = (float)((u * 2.0 - 1.0) * limit);
            break;
        }
        case KEDGE_START_ONE:
            values[i] = 1.0f;
            break;
        case KEDGE_START_FORGET: /* gates i, f, g, o */
            values[i] = k >= count / 4 && k < count / 2 ? 1.0f : 0.0f;
            break;
        case KEDGE_START_ZERO:
            values[i] = 0.0f;
            break;
        }
    }
}

/* Goes to the first tensor of this layer, or of one after it, that is still to be given. */
static bool begin_tensor(struct kedge_model_weights *w)
{
    while (w->tensor == w->tensors_count && w->layer < w->spec->count) {
        w->tensors_count = kedge_layer_tensors(&w->spec->layers[w->layer], &w->shapes[w->layer], w->tensors);
        w->tensor = 0;
        w->layer++;
    }
    if (w->tensor == w->tensors_count) {
        return false;
    }
    if (w->at == 0) {
        w->count = values_of(&w->tensors[w->tensor]);
        kedge_rng_init(&w->rng, w->seed, KEDGE_RNG_INIT, w->index, 0);
    }
    return true;
}

void kedge_model_weights_init(struct kedge_model_weights *w, const struct kedge_model_spec *spec,
                              uint64_t seed)
{
    *w = (struct kedge_model_weights){.spec = spec, .seed = seed};
    w->zeros = spec->standardize ? kedge_scales_count(kedge_model_inputs(spec)) : 0;
    kedge_model_shapes(spec, w->shapes);
}

/* Memory does not depend on the model: a coordinator makes one of a gigabyte in tiles. The state
 * between two calls is the tensor, the place in it and its stream. */
size_t kedge_model_weights_next(struct kedge_model_weights *w, float *values, size_t n)
{
    size_t done = 0;
    while (done < n && begin_tensor(w)) {
        uint64_t left = w->count - w->at;
        size_t len = left < n - done ? (size_t)left : n - done;
        start_values(&w->tensors[w->tensor], &w->rng, w->count, w->at, len, values + done);
        done += len;
        w->at += len;
        if (w->at == w->count) {
            w->at = 0;
            w->tensor++;
            w->index++;
        }
    }
    for (; done < n && w->zeros > 0; done++, w->zeros--) {
        values[done] = 0.0f;
    }
    return done;
}

void kedge_model_init(const struct kedge_model_spec *spec, uint64_t seed, float *values)
{
    struct kedge_model_weights w;
    kedge_model_weights_init(&w, spec, seed);
    (void)kedge_model_weights_next(&w, values, SIZE_MAX);
}
