/* Many small sites trained together: models of one shape, each with data, seed and weights of its own, in
 * every step of one device that was opened for them all (ops.h). What a site gets is what kedge_net_train
 * would give it alone on such a device, but for rounding. A back end that takes one site at a time refuses to
 * be opened. */
#ifndef KEDGE_CLIENT_TRAIN_SITES_H
#define KEDGE_CLIENT_TRAIN_SITES_H

#include "client/train/net.h"

struct kedge_site_work {
    const struct kedge_dataset *data; /* at least one sample */
    float *weights;                   /* kedge_model_values_count floats: before, and after success */
    const float *towards;             /* bend.towards of this site; NULL in all sites or in none */
    uint64_t seed;
    struct kedge_train_result result;
    int err; /* KEDGE_OK, or KEDGE_E_NOT_FINITE where this site diverged: its weights are then unusable */
};

/* Trains work[0..sites) in place by params, whose seed and bend.towards are not looked at: every site has its
 * own. dev was opened by ops for `sites` sites. Errors as kedge_net_train; sites that diverged are told by
 * their own err, and the others are not touched by them. */
KEDGE_NODISCARD int kedge_sites_train(const struct kedge_model_spec *spec, const struct kedge_ops *ops,
                                      struct kedge_device *dev, struct kedge_site_work *work, uint32_t sites,
                                      const struct kedge_train_params *params, struct kedge_diag *reterr);

#endif
