/* One row per kind of layer: its shapes, what its forward pass leaves behind, and which operations of a back
 * end run it. net.c walks over the rows; arithmetic is behind ops.h. */
#ifndef KEDGE_CLIENT_TRAIN_LAYERS_H
#define KEDGE_CLIENT_TRAIN_LAYERS_H

#include "client/train/ops.h"
#include "common/tensor/model.h"

/* A layer of a net, with its place in the net's memory. */
struct kedge_net_layer {
    struct kedge_layer layer;
    const struct kedge_net_row *row;
    uint32_t index; /* in the model */
    struct kedge_ops_layer shape;
    uint64_t in_width, out_width;  /* values of a sample */
    uint64_t saved_width;          /* floats of a sample that backward needs besides x and y */
    uint64_t params, params_count; /* first value in the layout, how many */
    uint64_t kernels;              /* of these the first so many are decayed (and use `keep`) */
    float *y, *saved;              /* batch_max of each */
};

struct kedge_net_pass {
    const struct kedge_ops *ops;
    struct kedge_device *dev;
    const float *weights; /* of the whole net */
    uint32_t n;
    bool training; /* dropout drops */
};

struct kedge_net_row {
    enum kedge_layer_type type;
    bool alias; /* y is x: no operation at all */
    /* Fills shape and saved_width of l from its layer and its input's shape. */
    void (*plan)(struct kedge_net_layer *l, const struct kedge_model_shape *in,
                 const struct kedge_model_shape *out);
    void (*forward)(const struct kedge_net_pass *p, const struct kedge_net_layer *l, const float *x);
    /* to: where this layer's targets begin; dx NULL: not wanted; dy may be overwritten. */
    void (*backward)(const struct kedge_net_pass *p, const struct kedge_net_layer *l, const float *x,
                     float *dy, float *dx, const struct kedge_ops_step *step, float *to);
};

/* A checked model's layers, flatten left out where it is an alias: all but y and saved, which net.c places.
 * ret holds KEDGE_LAYERS_MAX; returns how many. */
uint32_t kedge_net_plan(const struct kedge_model_spec *spec, struct kedge_net_layer *ret);

#endif
