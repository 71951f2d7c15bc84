/* Inter-group aggregation of FlexCFL and the auxiliary model:
 *     w_j <- (w_j + eta * sum_{l != j} w_l / |w_l|) / (1 + eta * sum_{l != j} 1 / |w_l|)
 * over the groups trained in this round, all right-hand sides taken before any group changes. First norms
 * (reduce.h, streamed by tiles), then kedge_mixing_tile over any ranges. Binary64 in a fixed order (l
 * ascending), result rounded to float once. Pure, any thread. */
#ifndef KEDGE_AGGREGATION_MIXING_H
#define KEDGE_AGGREGATION_MIXING_H

#include <stdbool.h>
#include <stddef.h>

#include "aggregation/reduce.h"
#include "common/base/err.h"
#include "common/base/limits.h"

struct kedge_mixing {
    size_t groups;
    double eta;
    bool trained[KEDGE_GROUPS_MAX];
    double norm[KEDGE_GROUPS_MAX];
    double divisor[KEDGE_GROUPS_MAX]; /* 1 + eta * sum_{l != j} 1 / norm[l] */
};

/* sqrt of the tree's root. */
double kedge_mixing_norm(const struct kedge_reduce *sumsq);

/* norms and trained: groups elements. A trained group of norm 0 pulls nobody, but is pulled.
 * KEDGE_E_ARG: groups 0 or above KEDGE_GROUPS_MAX, eta negative or not finite; KEDGE_E_NOT_FINITE: a
 * norm. */
KEDGE_NODISCARD int kedge_mixing_init(struct kedge_mixing *mixing, const double *norms, const bool *trained,
                                      size_t groups, double eta);

/* Coordinates first … first + n - 1: models[j] points at coordinate 0, out[j] takes n floats and may be
 * models[j] + first. Groups not trained are neither read nor written; their pointers may be NULL. */
void kedge_mixing_tile(const struct kedge_mixing *mixing, const float *const *models, size_t first, size_t n,
                       float *const *out);

#endif
