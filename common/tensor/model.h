/* A job's model as a list of layers; from it the shapes between them, the tensors, their names and the first
 * weights. Names are those of a PyTorch Sequential of the layers: "0.weight" [out,in], "0.bias" [out],
 * "1.weight"…, the number being the layer's index (an activation that belongs to its layer takes no index).
 * One row per kind of layer is in model_layers.c. Pure. */
#ifndef KEDGE_COMMON_TENSOR_MODEL_H
#define KEDGE_COMMON_TENSOR_MODEL_H

#include "common/base/bytes.h"
#include "common/base/limits.h"
#include "common/base/rng.h"
#include "common/tensor/json.h"
#include "common/tensor/layout.h"

enum {
    KEDGE_LAYER_WIDTH_MAX = 1 << 24, /* values of a sample between two layers */
    KEDGE_LAYER_KERNEL_MAX = 15,     /* side of a window, and its stride */
    KEDGE_LAYER_TENSORS_MAX = 4,
};

/* Samples are vectors [width], sequences [steps, width] or images [channels, height, width]. */
enum kedge_layer_type {
    KEDGE_LAYER_DENSE = 1, /* in, out, activation: vector → vector */
    KEDGE_LAYER_CONV2D,    /* in, out (channels), kernel, stride, padding, activation: image → image */
    KEDGE_LAYER_MAXPOOL,   /* kernel, stride: image → image */
    KEDGE_LAYER_AVGPOOL,   /* kernel, stride: image → image */
    KEDGE_LAYER_RELU,      /* any shape, as the next three */
    KEDGE_LAYER_GELU,
    KEDGE_LAYER_TANH,
    KEDGE_LAYER_DROPOUT,   /* rate */
    KEDGE_LAYER_FLATTEN,   /* any shape → vector */
    KEDGE_LAYER_LAYERNORM, /* vector or image as a whole; sequence: each step */
    KEDGE_LAYER_GROUPNORM, /* groups: image */
    KEDGE_LAYER_EMBEDDING, /* in (tokens), out (width): vector of token numbers → sequence */
    KEDGE_LAYER_LSTM,      /* in, out (hidden), last: sequence → sequence, or with last → vector */
};
enum kedge_activation { KEDGE_ACTIVATION_NONE = 0, KEDGE_ACTIVATION_RELU = 1 };
enum kedge_loss {
    KEDGE_LOSS_CROSS_ENTROPY = 0, /* of the softmax of the last layer's values */
    KEDGE_LOSS_SQUARE_ERROR,      /* mean over outputs of (value − target)²: target 1 at the label, else 0;
                                   * of a single output: the label as a number */
};

/* Fields that a kind does not use are 0. */
struct kedge_layer {
    enum kedge_layer_type type;
    uint32_t in, out; /* 1 to KEDGE_LAYER_WIDTH_MAX */
    enum kedge_activation activation;
    uint32_t kernel, stride; /* 1 to KEDGE_LAYER_KERNEL_MAX */
    uint32_t padding;        /* zeros on each side: below kernel */
    uint32_t groups;         /* a divisor of the channels */
    bool last;
    double rate; /* share of values that are dropped: 0 to 0.99 */
};

struct kedge_model_shape {
    uint32_t dims_count; /* 1 to 3 */
    uint32_t dims[3];    /* outermost first */
};
/* Values of a sample of this shape, at most KEDGE_LAYER_WIDTH_MAX once checked. */
uint64_t kedge_model_shape_width(const struct kedge_model_shape *shape);

/* A value: 1 to KEDGE_LAYERS_MAX layers, each layer's input the output of the one before. */
struct kedge_model_spec {
    struct kedge_layer layers[KEDGE_LAYERS_MAX];
    uint32_t count;
    struct kedge_model_shape input; /* dims_count 0: a vector of layers[0].in */
    enum kedge_loss loss;
    bool standardize; /* after the layers' tensors are those of scales.h */
};

/* Multinomial logistic regression: one dense layer inputs → classes. */
KEDGE_NODISCARD int kedge_model_mclr(uint32_t inputs, uint32_t classes, struct kedge_model_spec *ret,
                                     struct kedge_diag *reterr);
/* One hidden layer with ReLU: inputs → hidden → classes. */
KEDGE_NODISCARD int kedge_model_mlp(uint32_t inputs, uint32_t hidden, uint32_t classes,
                                    struct kedge_model_spec *ret, struct kedge_diag *reterr);
/* A preset by its name, with its own number of classes where classes is 0 (docs/modules/tensor.md has their
 * layers and sources): "lenet", "femnist-cnn", "cifar-cnn", "char-lstm". KEDGE_E_NOT_FOUND: no such name. */
KEDGE_NODISCARD int kedge_model_preset(const char *name, uint32_t classes, struct kedge_model_spec *ret,
                                       struct kedge_diag *reterr);

/* KEDGE_E_SHAPE names the layer whose numbers are out of range or do not fit the one before, an activation
 * on the last layer (its outputs are logits), a last layer that gives no vector, or a model of more than 2^36
 * values. */
KEDGE_NODISCARD int kedge_model_check(const struct kedge_model_spec *spec, struct kedge_diag *reterr);
/* Whether two models have the same layers, input and loss. */
bool kedge_model_same(const struct kedge_model_spec *a, const struct kedge_model_spec *b);
/* What one layer makes of its input. KEDGE_E_SHAPE, without the layer's number. */
KEDGE_NODISCARD int kedge_layer_shape(const struct kedge_layer *layer, const struct kedge_model_shape *in,
                                      struct kedge_model_shape *ret, struct kedge_diag *reterr);
/* Of a checked model: shapes[i] is the input of layer i, shapes[count] the output. */
void kedge_model_shapes(const struct kedge_model_spec *spec,
                        struct kedge_model_shape shapes[KEDGE_LAYERS_MAX + 1]);

/* The object at `at`:
 *   {"input":[1,28,28],"layers":[{"type":"conv2d","out":6,"kernel":5},…],"loss":"cross-entropy",
 *    "standardize":true}
 * with the keys of each layer as docs/modules/tensor.md lists them; "input" may be left out where the first
 * layer is dense and says "in"; or {"preset":"mclr","inputs":64,"classes":10},
 * {"preset":"mlp","inputs":64,"hidden":32,"classes":10}, {"preset":"lenet","classes":10}. Unknown keys are
 * errors. */
KEDGE_NODISCARD int kedge_model_from_json(const struct kedge_json *doc, uint32_t at,
                                          struct kedge_model_spec *ret, struct kedge_diag *reterr);
/* Appends the object with the list of layers (presets written out). */
void kedge_model_put_json(const struct kedge_model_spec *spec, struct kedge_buf *out);

/* Of checked models: values of a sample, and of the last layer. */
uint32_t kedge_model_inputs(const struct kedge_model_spec *spec);
uint32_t kedge_model_outputs(const struct kedge_model_spec *spec);
/* Parameters of a checked model. */
uint64_t kedge_model_values_count(const struct kedge_model_spec *spec);

/* The parameters of one layer, in the order of the layout. */
enum kedge_tensor_start { KEDGE_START_ZERO, KEDGE_START_ONE, KEDGE_START_GLOROT, KEDGE_START_FORGET };
struct kedge_layer_tensor {
    const char *name; /* after "N." */
    uint32_t dims_count;
    uint64_t dims[4];
    enum kedge_tensor_start start;
    uint64_t fan; /* Glorot: inputs + outputs of one unit */
};
/* How many tensors a layer of a checked model has, written to ret; in is its input's shape. */
uint32_t kedge_layer_tensors(const struct kedge_layer *layer, const struct kedge_model_shape *in,
                             struct kedge_layer_tensor ret[KEDGE_LAYER_TENSORS_MAX]);

/* The F32 layout of a checked model; the caller deinits it. */
KEDGE_NODISCARD int kedge_model_layout(const struct kedge_model_spec *spec, struct kedge_layout *ret,
                                       struct kedge_diag *reterr);

/* First weights into values[0..values_count), in layout order: kernels uniform in ±√(6/(in+out)) (Glorot
 * and Bengio 2010; of a convolution times its window, of an LSTM with all four gates as out), scales of norms
 * 1, biases zero but for 1 at an LSTM's forget gates (in bias_ih; Jozefowicz et al. 2015). Tensor t of the
 * layout draws from kedge_rng (seed, KEDGE_RNG_INIT, t, 0), one draw an element, in binary64 with × ÷ − √
 * only, rounded once to F32: anyone recomputes it bit for bit. */
void kedge_model_init(const struct kedge_model_spec *spec, uint64_t seed, float *values);

/* The same weights piece by piece, from the first to the last: however they are cut, they are the same. A
 * value without memory of its own; spec, a checked model, must outlive it. */
struct kedge_model_weights {
    const struct kedge_model_spec *spec;
    uint64_t seed, index; /* index: of the tensor in the layout */
    struct kedge_model_shape shapes[KEDGE_LAYERS_MAX + 1];
    struct kedge_layer_tensor tensors[KEDGE_LAYER_TENSORS_MAX]; /* of the layer */
    uint32_t layer, tensors_count, tensor;
    uint64_t at, count; /* in the tensor */
    uint64_t zeros;     /* after the layers, still to be given */
    struct kedge_rng rng;
};
void kedge_model_weights_init(struct kedge_model_weights *w, const struct kedge_model_spec *spec,
                              uint64_t seed);
/* The next n into values, fewer where the model ends; returns how many, 0 after the last. */
size_t kedge_model_weights_next(struct kedge_model_weights *w, float *values, size_t n);

#endif
