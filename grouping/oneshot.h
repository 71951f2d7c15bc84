/* One-shot clustering without a number of groups (FedClust, Islam et al. 2024; PACFL is alike on singular
 * vectors of the data): after a short training from one model, average linkage of the updates of the LAST
 * LAYER, cut at a distance. Newcomers: kedge_nearest (flexcfl.h) on the same coordinates. Pure. */
#ifndef KEDGE_GROUPING_ONESHOT_H
#define KEDGE_GROUPING_ONESHOT_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

/* gram, maxima: of the last layer's coordinates alone (kedge_gram_tile over their range). Joins while 1 −
 * cosine ≤ link, and further while more than `most` groups are left. group[count]: numbered by first members,
 * KEDGE_GROUP_NONE for a zero update. KEDGE_E_ARG, KEDGE_E_NO_DIRECTION: all are zero, KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedge_oneshot(const int64_t *gram, const uint32_t *maxima, size_t count, double link,
                                  size_t most, uint32_t *group, size_t *ret_groups);

#endif
