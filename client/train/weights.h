/* A model's weights as a file. */
#ifndef KEDGE_CLIENT_TRAIN_WEIGHTS_H
#define KEDGE_CLIENT_TRAIN_WEIGHTS_H

#include "common/base/diag.h"
#include "common/tensor/layout.h"

/* Reads a canonical F32 safetensors file of exactly this layout into values; NaN and infinity are refused.
 */
KEDGE_NODISCARD int kedge_weights_read(const char *path, const struct kedge_layout *layout, float *values,
                                       struct kedge_diag *reterr);
/* Writes one: to a temporary name beside path, then renamed, so that path never holds half a model. Not
 * synced: the client digests what it reads. */
KEDGE_NODISCARD int kedge_weights_write(const char *path, const struct kedge_layout *layout,
                                        const float *values, struct kedge_diag *reterr);

#endif
