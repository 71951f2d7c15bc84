/* The model nearest to a vector by Euclidean distance (FeSEM), streamed: squares of differences in binary64
 * over the fixed tree of aggregation/reduce.h, so tiles and threads change no bit. Pure. */
#ifndef KEDGE_GROUPING_CLOSEST_H
#define KEDGE_GROUPING_CLOSEST_H

#include <stddef.h>
#include <stdint.h>

#include "aggregation/reduce.h"
#include "common/base/err.h"
#include "common/base/limits.h"

struct kedge_closest {
    size_t groups;
    struct kedge_reduce sum[KEDGE_GROUPS_MAX];
};

/* KEDGE_E_ARG: groups 0 or above KEDGE_GROUPS_MAX. */
KEDGE_NODISCARD int kedge_closest_init(struct kedge_closest *c, size_t groups);
/* Coordinates first … first + n − 1; tiles in order, every one but the last a multiple of KEDGE_REDUCE_BLOCK
 * long. own and models[j] point at coordinate 0. */
void kedge_closest_push(struct kedge_closest *c, const float *own, const float *const *models, size_t first,
                        size_t n);
/* Ties to the lowest index. *ret_distance (may be NULL) is not squared. KEDGE_E_NOT_FINITE: no distance is
 * finite. */
KEDGE_NODISCARD int kedge_closest_end(const struct kedge_closest *c, uint32_t *ret_group,
                                      double *ret_distance);

#endif
