/* A net's memory, shared by net.c (one step) and net_train.c (passes over data). */
#ifndef KEDGE_CLIENT_TRAIN_NET_IMPL_H
#define KEDGE_CLIENT_TRAIN_NET_IMPL_H

#include "client/train/layers.h"
#include "client/train/net.h"

struct kedge_net {
    struct kedge_model_spec spec;
    uint32_t batch_max, inputs, outputs;
    uint64_t values_count;
    const struct kedge_ops *ops;
    struct kedge_device *dev;
    float *host;     /* weights where callers see them: the device's own block where memory is unified */
    float *weights;  /* the device's */
    float *towards;  /* device: bend.towards, where memory is not unified and a bend is used */
    float *gradient; /* device: only for momentum or clipping */
    float *velocity; /* device: only for momentum */
    float *work;     /* device: x, every layer's y and saved, errors */
    float *x, *error[2];
    float *loss_at;  /* where the loss makes an error of the last layer's y: y itself, or a copy */
    int32_t *labels; /* device, batch_max */
    bool reals;      /* labels are the bits of F32: what the data of this call are */
    bool owns_device;
    uint32_t evaluate_max; /* samples of one forward pass of an evaluation */
    uint32_t count;        /* of layers that compute */
    struct kedge_net_layer layers[KEDGE_LAYERS_MAX];
};

struct kedge_net_rule {
    double lr, l2, momentum, clip;
    const struct kedge_proximal_term *bend; /* towards is the device's; NULL: plain */
};

/* Everything on the device: forward, loss, backward, step. Nothing waits. */
void kedge_net_run_step(struct kedge_net *net, const float *x, const int32_t *labels, uint32_t n,
                        const struct kedge_net_rule *rule);
/* The last layer's values, n × outputs, on the device. */
float *kedge_net_run_forward(struct kedge_net *net, const float *x, uint32_t n, bool training);
/* Blocks that clipping and momentum need; velocity starts at 0. */
KEDGE_NODISCARD int kedge_net_prepare_rule(struct kedge_net *net, const struct kedge_net_rule *rule,
                                           struct kedge_diag *reterr);
/* Weights from and to where callers see them. */
void kedge_net_push(struct kedge_net *net);
KEDGE_NODISCARD int kedge_net_pull(struct kedge_net *net, struct kedge_diag *reterr);
/* A data set as back ends take it. */
struct kedge_ops_data kedge_net_data_of(const struct kedge_dataset *data);
/* A row of logits to probabilities in place; its cross-entropy. Shared with the CPU's loss. */
double kedge_softmax_row(float *z, uint32_t classes, int32_t label);

#endif
