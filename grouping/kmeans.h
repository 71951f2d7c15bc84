/* k-means with k-means++ seeding and restarts, reproducible: random stream (seed, KMEANS, round,
 * restart), binary64 with + - * / only, sums in index order. Pure. Arthur & Vassilvitskii 2007; Lloyd
 * 1982. */
#ifndef KEDGE_GROUPING_KMEANS_H
#define KEDGE_GROUPING_KMEANS_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

enum { KEDGE_KMEANS_RESTARTS = 10, KEDGE_KMEANS_ITERATIONS = 20 };

struct kedge_kmeans_params {
    uint64_t seed; /* the job's */
    uint64_t round;
    unsigned restarts;       /* >= 1 */
    unsigned iterations_max; /* >= 1 */
    const double *weight;    /* count finite reals above 0, NULL: 1 each; in seeding, centres and inertia */
};

/* Splits count points (rows of dims doubles, all finite) into k non-empty clusters, 1 <= k <= count.
 *  - Points go to the nearest centre; ties to the lowest index. An emptied cluster takes the point farthest
 *    from its own centre (ties: lowest index) out of a cluster that keeps others.
 *  - Stops when no assignment changes or after iterations_max rounds; centres are the means of their members.
 *  - The best restart: least inertia (sum of squared distances), then lowest restart.
 * cluster[count]: clusters are numbered by their first member. *ret_inertia may be NULL.
 * KEDGE_E_ARG, KEDGE_E_NOT_FINITE, KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedge_kmeans(const double *points, size_t count, size_t dims, size_t k,
                                 const struct kedge_kmeans_params *params, uint32_t *cluster,
                                 double *ret_inertia);

#endif
