/* The named models. A row of layers each; the last dense layer's `out` is the number of classes. */
#include <string.h>

#include "common/base/try.h"
#include "common/tensor/model.h"

static int take_checked(const struct kedge_model_spec *spec, struct kedge_model_spec *ret,
                        struct kedge_diag *reterr)
{
    KEDGE_TRY(kedge_model_check(spec, reterr));
    *ret = *spec;
    return KEDGE_OK;
}

#define DENSE(i, o)                                      \
    {                                                    \
        .type = KEDGE_LAYER_DENSE, .in = (i), .out = (o) \
    }
#define DENSE_RELU(i, o)                                                                      \
    {                                                                                         \
        .type = KEDGE_LAYER_DENSE, .in = (i), .out = (o), .activation = KEDGE_ACTIVATION_RELU \
    }
#define CONV_RELU(i, o, k, p)                                                                          \
    {                                                                                                  \
        .type = KEDGE_LAYER_CONV2D, .in = (i), .out = (o), .kernel = (k), .stride = 1, .padding = (p), \
        .activation = KEDGE_ACTIVATION_RELU                                                            \
    }
#define MAXPOOL(k, s)                                             \
    {                                                             \
        .type = KEDGE_LAYER_MAXPOOL, .kernel = (k), .stride = (s) \
    }
#define FLATTEN()                   \
    {                               \
        .type = KEDGE_LAYER_FLATTEN \
    }

int kedge_model_mclr(uint32_t inputs, uint32_t classes, struct kedge_model_spec *ret,
                     struct kedge_diag *reterr)
{
    struct kedge_model_spec spec = {.layers = {DENSE(inputs, classes)}, .count = 1};
    return take_checked(&spec, ret, reterr);
}

int kedge_model_mlp(uint32_t inputs, uint32_t hidden, uint32_t classes, struct kedge_model_spec *ret,
                    struct kedge_diag *reterr)
{
    struct kedge_model_spec spec = {.layers = {DENSE_RELU(inputs, hidden), DENSE(hidden, classes)},
                                    .count = 2};
    return take_checked(&spec, ret, reterr);
}

static const struct preset {
    const char *name;
    struct kedge_model_shape input;
    uint32_t count;
    struct kedge_layer layers[10];
} presets[] = {
    /* LeNet-5 (LeCun et al. 1998) as it is trained today: ReLU, max pooling, all maps connected. */
    {"lenet",
     {3, {1, 28, 28}},
     8,
     {CONV_RELU(1, 6, 5, 2), MAXPOOL(2, 2), CONV_RELU(6, 16, 5, 0), MAXPOOL(2, 2), FLATTEN(),
      DENSE_RELU(400, 120), DENSE_RELU(120, 84), DENSE(84, 10)}},
    /* LEAF's femnist (Caldas et al. 2018). */
    {"femnist-cnn",
     {3, {1, 28, 28}},
     7,
     {CONV_RELU(1, 32, 5, 2), MAXPOOL(2, 2), CONV_RELU(32, 64, 5, 2), MAXPOOL(2, 2), FLATTEN(),
      DENSE_RELU(3136, 2048), DENSE(2048, 62)}},
    /* The CIFAR-10 model of McMahan et al. 2017, on whole images and without its local response norms. */
    {"cifar-cnn",
     {3, {3, 32, 32}},
     8,
     {CONV_RELU(3, 64, 5, 2), MAXPOOL(3, 2), CONV_RELU(64, 64, 5, 2), MAXPOOL(3, 2), FLATTEN(),
      DENSE_RELU(3136, 384), DENSE_RELU(384, 192), DENSE(192, 10)}},
    /* LEAF's shakespeare: 80 characters in, the next one out. */
    {"char-lstm",
     {1, {80, 0, 0}},
     4,
     {{.type = KEDGE_LAYER_EMBEDDING, .in = 80, .out = 8},
      {.type = KEDGE_LAYER_LSTM, .in = 8, .out = 256},
      {.type = KEDGE_LAYER_LSTM, .in = 256, .out = 256, .last = true},
      DENSE(256, 80)}},
};

/* The number of classes is the only thing that may differ from the published model. */
int kedge_model_preset(const char *name, uint32_t classes, struct kedge_model_spec *ret,
                       struct kedge_diag *reterr)
{
    for (size_t i = 0; i < sizeof presets / sizeof presets[0]; i++) {
        if (strcmp(presets[i].name, name) == 0) {
            struct kedge_model_spec spec = {.count = presets[i].count, .input = presets[i].input};
            memcpy(spec.layers, presets[i].layers, spec.count * sizeof spec.layers[0]);
            if (classes > 0) {
                spec.layers[spec.count - 1].out = classes;
            }
            return take_checked(&spec, ret, reterr);
        }
    }
    return kedge_diag_set(reterr, KEDGE_E_NOT_FOUND,
                          "expected \"mclr\" or \"mlp\", \"lenet\", \"femnist-cnn\", \"cifar-cnn\" or "
                          "\"char-lstm\"");
}
