/* Internal to closing a round: what its operations share. */
#ifndef KEDGE_ROUND_CLOSE_IMPL_H
#define KEDGE_ROUND_CLOSE_IMPL_H

#include "common/tensor/layout.h"
#include "round/close/operations.h"

/* Where vectors of several groups lie. */
struct kedgei_paths {
    char path[KEDGE_GROUPS_MAX][KEDGE_PATH_MAX];
    struct kedge_blob_at at[KEDGE_GROUPS_MAX];
    uint32_t count;
};
/* Adds that of a model, a direction or a state. KEDGE_E_NOT_FOUND: it is gone. */
KEDGE_NODISCARD int kedgei_path_of(const struct kedge_close *c, struct kedgei_paths *paths,
                                   const struct kedge_hash *vector);
/* A file for `vectors` of the layout. */
KEDGE_NODISCARD int kedgei_begin(const struct kedge_close *c, enum kedge_dtype dtype, size_t vectors,
                                 struct kedge_close_file *ret);
/* Tells the host what was decided; err: of the operation, where it went wrong. */
KEDGE_NODISCARD int kedgei_decided(struct kedge_close *c, struct kedge_decision *d, int err);

#endif
