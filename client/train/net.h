/* The training engine: a model's layers (layers.c) over a back end (ops.h), mean loss over the batch, L2,
 * SGD, momentum, clipping, in F32. Weights lie in one slab in the order of kedge_model_layout, so that they
 * are copied to and from safetensors as they are; activations in another. One thread at a time per net.
 *
 * The loss is   mean over the batch of the model's loss  +  l2 · Σ w² over kernels (biases and norms are not
 * decayed), so the gradient of a kernel has the term 2·l2·w (clustering.md §2.11: 0.001·Σw², gradient
 * 0.002·w). Losses that are reported are the model's alone. */
#ifndef KEDGE_CLIENT_TRAIN_NET_H
#define KEDGE_CLIENT_TRAIN_NET_H

#include <stdint.h>

#include "common/base/diag.h"
#include "common/tensor/dataset.h"
#include "common/tensor/model.h"

enum { KEDGE_TRAIN_BATCH_MAX = 65536, KEDGE_TRAIN_THREADS_MAX = 256 };
/* Parameters of a net, which are in memory: products of shapes stay below 2^31 (ops.h). Jobs may have larger
 * models, for trainers of an owner's own. */
#define KEDGE_TRAIN_VALUES_MAX ((uint64_t)1 << 31)

struct kedge_net;
struct kedge_ops;
struct kedge_device;

/* A net for batches of up to batch_max samples (1 to KEDGE_TRAIN_BATCH_MAX), weights zero, on the CPU. The
 * caller frees it. KEDGE_E_SHAPE: a model that is none, or of more than KEDGE_TRAIN_VALUES_MAX parameters. */
KEDGE_NODISCARD int kedge_net_new(const struct kedge_model_spec *spec, uint32_t batch_max,
                                  struct kedge_net **ret, struct kedge_diag *reterr);
/* On a device that the caller opened for one site and closes behind the net. KEDGE_E_NOMEM says of what. */
KEDGE_NODISCARD int kedge_net_new_on(const struct kedge_model_spec *spec, uint32_t batch_max,
                                     const struct kedge_ops *ops, struct kedge_device *dev,
                                     struct kedge_net **ret, struct kedge_diag *reterr);
void kedge_net_free(struct kedge_net *net);
/* The weights, kedge_net_values_count floats in layout order; the net's memory, to be written and read
 * freely between calls. */
float *kedge_net_weights(struct kedge_net *net);
uint64_t kedge_net_values_count(const struct kedge_net *net);

/* Logits of n samples (1 to batch_max), n × outputs: the net's memory, until its next call. Only on the CPU.
 */
const float *kedge_net_forward(struct kedge_net *net, const float *x, uint32_t n);

/* How a strategy bends the steps of a site (strategy/strategy.h): the gradient gets pull · w − towards, so
 * that a step is w ← (1 − lr·(2·l2 + pull))·w + lr·towards − lr·gradient (biases without l2).
 *   FedProx, mu towards the model x       pull = mu, towards = mu · x
 *   SCAFFOLD, controls c_k and c           pull = 0, towards = c_k − c
 *   Ditto's personal model, lambda         pull = lambda, towards = lambda · (the group's model) */
struct kedge_proximal_term {
    double pull;          /* ≥ 0 */
    const float *towards; /* kedge_net_values_count floats; NULL: zeros, and pull is 0 too */
};

struct kedge_train_range {
    uint64_t first, count; /* of the weights */
};
struct kedge_train_params {
    uint64_t steps;  /* 0: whole epochs; else exactly so many iterations, reshuffled at each pass */
    uint32_t epochs; /* used when steps is 0 */
    uint32_t batch;  /* the last batch of a pass may be shorter */
    double lr, l2;
    double
        momentum; /* 0 to below 1: v = momentum · v + gradient, w −= lr · v; v begins at 0 with each call */
    double clip; /* > 0: the loss's gradient (without l2 and bend) has at most this Euclidean norm */
    struct kedge_proximal_term bend; /* all zero: plain SGD */
    const struct kedge_train_range
        *held; /* values that stay as they are; only on the CPU (else KEDGE_E_DEVICE) */
    uint32_t held_count;
    const uint32_t *rows; /* the samples to train on, each once; NULL: all */
    uint32_t row_count;
    uint64_t
        seed; /* shuffles: kedge_rng (seed, KEDGE_RNG_TRAIN or, with steps, KEDGE_RNG_PRETRAIN, pass, 0) */
};
struct kedge_train_result {
    uint64_t steps;
    double loss; /* the mean over the samples of the last pass, each before its step */
};
/* Trains in place. KEDGE_E_SHAPE when data and model do not fit, KEDGE_E_NOT_FINITE when it diverged (the
 * weights are then unusable), KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedge_net_train(struct kedge_net *net, const struct kedge_dataset *data,
                                    const struct kedge_train_params *params, struct kedge_train_result *ret,
                                    struct kedge_diag *reterr);

struct kedge_evaluation {
    uint64_t samples, correct; /* a tie goes to the lowest class */
    double loss;               /* mean, 0 without samples */
    double deviation;          /* of the losses on single samples; 0 with fewer than two */
};
KEDGE_NODISCARD int kedge_net_evaluate(struct kedge_net *net, const struct kedge_dataset *data,
                                       struct kedge_evaluation *ret, struct kedge_diag *reterr);

/* Features, labels and an embedding's token numbers fit the model: else KEDGE_E_SHAPE says how they differ.
 * To be asked before samples meet a net: layers do not look. */
KEDGE_NODISCARD int kedge_net_check_data(const struct kedge_net *net, const struct kedge_dataset *data,
                                         struct kedge_diag *reterr);
/* Threads of the BLAS library, for the whole process. */
void kedge_train_set_threads(uint32_t threads);

#endif
