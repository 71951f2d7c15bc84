/* What the files of model.h share: the row of a kind of layer. */
#ifndef KEDGE_COMMON_TENSOR_MODEL_IMPL_H
#define KEDGE_COMMON_TENSOR_MODEL_IMPL_H

#include "common/tensor/model.h"

struct kedge_layer_kind {
    enum kedge_layer_type type;
    const char *name; /* in JSON */
    /* The output's shape, and all of the layer's numbers checked. */
    int (*shape)(const struct kedge_layer *layer, const struct kedge_model_shape *in,
                 struct kedge_model_shape *ret, struct kedge_diag *reterr);
    uint32_t (*tensors)(const struct kedge_layer *layer, const struct kedge_model_shape *in,
                        struct kedge_layer_tensor *ret);
};
extern const struct kedge_layer_kind kedge_layer_kinds[];
extern const uint32_t kedge_layer_kinds_count;
/* NULL: there is none. */
const struct kedge_layer_kind *kedge_layer_kind_of(enum kedge_layer_type type);

#endif
