/* Two coordinates per update for people to look at: principal coordinates (Gower 1966) of the cosine matrix,
 * that is the first two principal components of the unit updates. Decides nothing. Pure. */
#ifndef KEDGE_GROUPING_PICTURE_H
#define KEDGE_GROUPING_PICTURE_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

/* gram, maxima as gram.h makes them, 1 ≤ count ≤ KEDGE_GRAM_VECTORS_MAX. xy[2 · count]: x and y of each;
 * 0, 0 (the middle of all) for a zero update. ret_share[2] (may be NULL): share of the spread that each axis
 * shows. KEDGE_E_ARG, KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedge_picture(const int64_t *gram, const uint32_t *maxima, size_t count, double *xy,
                                  double *ret_share);

#endif
