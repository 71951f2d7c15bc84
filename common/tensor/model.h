/* A job's model as a list of layers; from it the tensors, their names and the first weights. Names are
 * those of a PyTorch Sequential of the layers: "0.weight" [out,in], "0.bias" [out], "1.weight"…, the number
 * being the layer's index (an activation belongs to its layer and takes no index). Pure. */
#ifndef KEDGE_COMMON_TENSOR_MODEL_H
#define KEDGE_COMMON_TENSOR_MODEL_H

#include "common/base/bytes.h"
#include "common/base/limits.h"
#include "common/tensor/json.h"
#include "common/tensor/layout.h"

enum { KEDGE_LAYER_WIDTH_MAX = 1 << 24 };

enum kedge_layer_type { KEDGE_LAYER_DENSE = 1 };
enum kedge_activation { KEDGE_ACTIVATION_NONE = 0, KEDGE_ACTIVATION_RELU = 1 };

struct kedge_layer {
    enum kedge_layer_type type;
    uint32_t in, out; /* widths, 1 to KEDGE_LAYER_WIDTH_MAX */
    enum kedge_activation activation;
};

/* A value: 1 to KEDGE_LAYERS_MAX layers, each layer's `in` the `out` of the one before. */
struct kedge_model_spec {
    struct kedge_layer layers[KEDGE_LAYERS_MAX];
    uint32_t count;
};

/* Multinomial logistic regression: one dense layer inputs → classes. */
KEDGE_NODISCARD int kedge_model_mclr(uint32_t inputs, uint32_t classes, struct kedge_model_spec *ret,
                                     struct kedge_diag *reterr);
/* One hidden layer with ReLU: inputs → hidden → classes. */
KEDGE_NODISCARD int kedge_model_mlp(uint32_t inputs, uint32_t hidden, uint32_t classes,
                                    struct kedge_model_spec *ret, struct kedge_diag *reterr);
/* KEDGE_E_SHAPE names the layer whose width is out of range or does not fit the one before, an activation
 * on the last layer (its outputs are logits), or a model of more than 2^31 values. */
KEDGE_NODISCARD int kedge_model_check(const struct kedge_model_spec *spec, struct kedge_diag *reterr);

/* The object at `at`: {"layers":[{"type":"dense","in":64,"out":10,"activation":"relu"}]} (activation
 * optional, "none" or "relu"), {"preset":"mclr","inputs":64,"classes":10} or
 * {"preset":"mlp","inputs":64,"hidden":32,"classes":10}. Unknown keys are errors. */
KEDGE_NODISCARD int kedge_model_from_json(const struct kedge_json *doc, uint32_t at,
                                          struct kedge_model_spec *ret, struct kedge_diag *reterr);
/* Appends the object with the list of layers (presets written out). */
void kedge_model_put_json(const struct kedge_model_spec *spec, struct kedge_buf *out);

uint32_t kedge_model_inputs(const struct kedge_model_spec *spec);
uint32_t kedge_model_outputs(const struct kedge_model_spec *spec);
/* Parameters of a checked model. */
uint64_t kedge_model_values_count(const struct kedge_model_spec *spec);

/* The F32 layout of a checked model; the caller deinits it. */
KEDGE_NODISCARD int kedge_model_layout(const struct kedge_model_spec *spec, struct kedge_layout *ret,
                                       struct kedge_diag *reterr);

/* First weights into values[0..values_count), in layout order: kernels uniform in ±√(6/(in+out)) (Glorot
 * and Bengio 2010), biases zero. Tensor t draws from kedge_rng (seed, KEDGE_RNG_INIT, t, 0), one draw an
 * element, in binary64 with × ÷ − √ only, rounded once to F32: anyone recomputes it bit for bit. */
void kedge_model_init(const struct kedge_model_spec *spec, uint64_t seed, float *values);

#endif
