/* Cold start of a newcomer: the direction of the largest cosine, from exact products of vectors scaled to 12
 * bits. */
#include "grouping/flexcfl.h"

#include <math.h>

void kedge_nearest_scan(struct kedge_nearest *n, const int32_t *update, const int32_t *const *directions,
                        size_t first, size_t len)
{
    n->max_u = kedge_max_abs(update, len, n->max_u);
    for (size_t j = 0; j < n->groups; j++) {
        n->max[j] = kedge_max_abs(directions[j] + first, len, n->max[j]);
    }
}

/* Both vectors are scaled by their own largest values, as in the Gram matrix: a cosine here is the same
 * number as there. The largest values must be known first, which is kedge_nearest_scan's pass. */
void kedge_nearest_add(struct kedge_nearest *n, const int32_t *update, const int32_t *const *directions,
                       size_t first, size_t len)
{
    int16_t u[KEDGE_GRAM_TILE];
    int16_t d[KEDGE_GRAM_TILE];
    for (size_t at = 0; at < len && n->max_u != 0; at += KEDGE_GRAM_TILE) {
        size_t tile = len - at < KEDGE_GRAM_TILE ? len - at : KEDGE_GRAM_TILE;
        kedge_scale12(update + at, tile, n->max_u, u);
        n->uu += kedge_dot12(u, u, tile);
        for (size_t j = 0; j < n->groups; j++) {
            if (n->max[j] != 0) {
                kedge_scale12(directions[j] + first + at, tile, n->max[j], d);
                n->uj[j] += kedge_dot12(u, d, tile);
                n->jj[j] += kedge_dot12(d, d, tile);
            }
        }
    }
}

int kedge_nearest_end(const struct kedge_nearest *n, uint32_t *ret_group, double *ret_cosine)
{
    size_t best = n->groups;
    double most = 0.0;
    for (size_t j = 0; j < n->groups && n->max_u != 0; j++) {
        if (n->max[j] == 0) {
            continue;
        }
        double cosine = ((double)n->uj[j] / sqrt((double)n->uu)) / sqrt((double)n->jj[j]);
        if (best == n->groups || cosine > most) {
            best = j;
            most = cosine;
        }
    }
    if (best == n->groups) {
        return KEDGE_E_NOT_FOUND;
    }
    *ret_group = (uint32_t)best;
    if (ret_cosine) {
        *ret_cosine = most;
    }
    return KEDGE_OK;
}
