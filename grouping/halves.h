/* Two halves of a set of directions: where it falls apart most. By the sign of the first principal axis of
 * the cosines, then spherical k-means with two centres (Dhillon, Modha 2001), both from the cosines alone.
 * Unlike a cut by linkage (split.h) it does not give a single outlier a part of its own. Pure. */
#ifndef KEDGE_GROUPING_HALVES_H
#define KEDGE_GROUPING_HALVES_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

/* cosine: count × count, symmetric, of what has a direction. weight: above 0, of each, how much it counts for
 * means and axis. part[count]: 0 or 1, the first is in part 0;
 * *ret_second: how many are in part 1, 0 where nothing tells them apart. binary64 with + − × ÷ √
 * in the order of the rows. KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedge_halves(const double *cosine, const double *weight, size_t count, uint32_t *part,
                                 size_t *ret_second);

#endif
