#include "grouping/closest.h"

#include <math.h>

int kedge_closest_init(struct kedge_closest *c, size_t groups)
{
    if (groups == 0 || groups > KEDGE_GROUPS_MAX) {
        return KEDGE_E_ARG;
    }
    c->groups = groups;
    for (size_t j = 0; j < groups; j++) {
        kedge_reduce_init(&c->sum[j]);
    }
    return KEDGE_OK;
}

/* Lanes as those of sumsq_block in aggregation/reduce.c, whose tree adds up the blocks: the sum does not
 * depend on how the model is tiled. The difference is taken in binary64. */
static double block_of(const float *a, const float *b, size_t n)
{
    double lane[8] = {0};
    for (size_t i = 0; i < n; i++) {
        double off = (double)a[i] - (double)b[i];
        lane[i % 8] += off * off;
    }
    return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

void kedge_closest_push(struct kedge_closest *c, const float *own, const float *const *models, size_t first,
                        size_t n)
{
    for (size_t at = 0; at < n; at += KEDGE_REDUCE_BLOCK) {
        size_t len = n - at < KEDGE_REDUCE_BLOCK ? n - at : KEDGE_REDUCE_BLOCK;
        for (size_t j = 0; j < c->groups; j++) {
            kedge_reduce_push(&c->sum[j], block_of(own + first + at, models[j] + first + at, len));
        }
    }
}

int kedge_closest_end(const struct kedge_closest *c, uint32_t *ret_group, double *ret_distance)
{
    size_t best = c->groups;
    double least = 0.0;
    for (size_t j = 0; j < c->groups; j++) {
        double sum = kedge_reduce_root(&c->sum[j]);
        if (isfinite(sum) && (best == c->groups || sum < least)) {
            best = j;
            least = sum;
        }
    }
    if (best == c->groups) {
        return KEDGE_E_NOT_FINITE;
    }
    *ret_group = (uint32_t)best;
    if (ret_distance) {
        *ret_distance = sqrt(least);
    }
    return KEDGE_OK;
}
