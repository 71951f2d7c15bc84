/* The samples of a task that trains on a part of the training set. */
#ifndef KEDGE_CLIENT_TRAIN_PART_H
#define KEDGE_CLIENT_TRAIN_PART_H

#include <stdint.h>

#include "common/base/diag.h"

/* ⌈n · percent / 100⌉ of the samples 0 to n − 1, each once: the first of a shuffle of (seed, KEDGE_RNG_PART,
 * 0, 0), so that the same request trains on the same ones again, and with another seed, as each round has it,
 * on others. *ret: to be freed, NULL with percent 0 or 100 (all). KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedge_train_part(uint64_t seed, uint32_t percent, uint32_t n, uint32_t **ret,
                                     uint32_t *ret_count, struct kedge_diag *reterr);

#endif
