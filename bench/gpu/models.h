/* The nets that are checked and measured, and data for them. */
#ifndef KEDGE_BENCH_GPU_MODELS_H
#define KEDGE_BENCH_GPU_MODELS_H

#include <string.h>

#include "common/base/mem.h"
#include "common/base/rng.h"
#include "common/tensor/dataset.h"
#include "common/tensor/model.h"

static const char *const gpu_models[] = {"mclr", "mlp", "lenet", "femnist-cnn", "cifar-cnn", "char-lstm"};
enum {
    GPU_MODELS = sizeof gpu_models / sizeof gpu_models[0],
    GPU_IMAGE = 784,
    GPU_HIDDEN = 512,
    GPU_CLASSES = 10,
    GPU_SHORT = 3,
};

static inline int gpu_model(const char *name, struct kedge_model_spec *ret)
{
    if (strcmp(name, "mclr") == 0) {
        return kedge_model_mclr(GPU_IMAGE, GPU_CLASSES, ret, NULL);
    }
    if (strcmp(name, "mlp") == 0) {
        return kedge_model_mlp(GPU_IMAGE, GPU_HIDDEN, GPU_CLASSES, ret, NULL);
    }
    return kedge_model_preset(name, 0, ret, NULL);
}

/* n random samples; the labels follow the first values, so that there is something to learn. */
static inline int gpu_data(const struct kedge_model_spec *spec, uint32_t n, uint64_t seed,
                           struct kedge_dataset *ret)
{
    const uint32_t features = kedge_model_inputs(spec), classes = kedge_model_outputs(spec);
    const bool tokens = spec->layers[0].type == KEDGE_LAYER_EMBEDDING;
    float *reals = kedge_mem_new((size_t)n * features, sizeof *reals);
    int32_t *labels = kedge_mem_new(n, sizeof *labels);
    struct kedge_rng rng;
    kedge_rng_init(&rng, seed, KEDGE_RNG_TEST, 0, 0);
    for (size_t i = 0; reals && i < (size_t)n * features; i++) {
        reals[i] = tokens ? (float)kedge_rng_below(&rng, spec->layers[0].in) : (float)kedge_rng_unit(&rng);
    }
    for (uint32_t i = 0; reals && labels && i < n; i++) {
        const float v = reals[(size_t)i * features];
        labels[i] = (int32_t)(tokens ? v : v * (float)classes) % (int32_t)classes;
    }
    memset(ret, 0, sizeof *ret);
    ret->n = n;
    ret->features = features;
    ret->classes = classes;
    ret->labels = labels;
    ret->reals = reals;
    ret->storage = reals;
    return reals && labels ? 0 : -1;
}

static inline void gpu_data_free(struct kedge_dataset *data)
{
    kedge_mem_free(data->storage);
    kedge_mem_free(data->labels);
}

#endif
