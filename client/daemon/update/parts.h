/* Models' files that are put together of tensors from several places, and taken apart again, without being in
 * memory: what is read is mapped, what is written leaves tensor by tensor. On the work thread. */
#ifndef KEDGE_CLIENT_DAEMON_UPDATE_PARTS_H
#define KEDGE_CLIENT_DAEMON_UPDATE_PARTS_H

#include "client/daemon/host.h"

/* A model's file, as it lies there. */
struct kedge_client_model {
    struct kedge_map map;
    const uint8_t *values; /* of its first tensor */
};
/* KEDGE_E_FORMAT, KEDGE_E_SHAPE: it is not a canonical F32 file of the layout; with its path. */
KEDGE_NODISCARD int kedge_client_model_open(const struct kedge_layout *layout, const char *path,
                                            struct kedge_client_model *ret, struct kedge_diag *d);
void kedge_client_model_close(struct kedge_client_model *m);

/* Where a model's tensors are read from. Those that travel: `shared`, one after the other. Those that do not:
 * `rest`, likewise. Where one of the two is NULL its tensors are where the whole model at `whole` has them.
 */
struct kedge_client_source {
    const uint8_t *shared, *rest, *whole;
};
/* Writes the whole model (all), or the tensors of it that travel, to the file, which is used again from task
 * to task. After an error the file is empty: what an earlier task left in it is not taken for this one's. */
KEDGE_NODISCARD int kedge_client_model_write(const struct kedge_client_work *w, bool all,
                                             struct kedge_client_source from, const char *path,
                                             struct kedge_diag *d);

#endif
