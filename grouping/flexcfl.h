/* FlexCFL's grouping: group cold start by EDC (Euclidean distance of decomposed cosine similarity)
 * through the Gram matrix, group directions, and the cold start of newcomers. Everything here decides a
 * model and is therefore replayable: exact integers up to the Gram matrix, then binary64 in a fixed
 * order. Results depend on the order of the updates (random choices, ties, rounding): THE CALLER SORTS
 * updates by (tenant, site) first, and then the order of arrival does not matter.
 * Source: Duan et al., FlexCFL, IEEE TPDS 2021. Pure. */
#ifndef KEDGE_GROUPING_FLEXCFL_H
#define KEDGE_GROUPING_FLEXCFL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregation/gram.h"
#include "common/base/err.h"
#include "common/base/limits.h"

#define KEDGE_GROUP_NONE UINT32_MAX /* left out: a zero update has no direction, its site stays cold */

enum kedge_edc {
    KEDGE_EDC_UNIT = 0,  /* decompose cosines: invariant to the size of any update (default) */
    KEDGE_EDC_PLAIN = 1, /* decompose plain inner products, as published: one huge update may take a group */
    KEDGE_EDC_MADC = 2,  /* mean difference of cosines to all others, complete linkage: no decomposition */
};

/* How the number of groups comes about. */
enum kedge_choose {
    KEDGE_CHOOSE_FIXED = 0,      /* as given */
    KEDGE_CHOOSE_SILHOUETTE = 1, /* groups_min … groups: the largest mean silhouette, ties to fewer */
    KEDGE_CHOOSE_GAP = 2,        /* … the least k with gap(k) ≥ gap(k + 1) − s(k + 1); not for MADC */
    KEDGE_CHOOSE_MOST = 3, /* the most, but no more than a third of the updates: groups are joined later */
    KEDGE_CHOOSE_ONE = 4,  /* one, which is cut later */
};

/* With groups_min 1: below this mean silhouette of cosine distances there is no structure, and one group. */
#define KEDGE_SILHOUETTE_LEAST 0.03

struct kedge_flexcfl_params {
    enum kedge_edc edc;
    size_t groups; /* m, 1 … KEDGE_GROUPS_MAX; fewer usable updates lower it */
    uint64_t seed; /* the job's */
    uint64_t round;
    enum kedge_choose choose; /* not FIXED: groups is the most */
    size_t groups_min;        /* … and this the least, 1 … groups */
    /* Weight of each update in the decomposition and in k-means, count finite reals above 0; NULL: 1 each.
     * quota.h makes them of tenants, so that many sites of one do not count for more than it may. Not for
     * MADC. */
    const double *weight;
};

/* Caller's arrays, count = number of updates, m = params->groups. */
struct kedge_flexcfl_result {
    uint32_t *group;     /* count: group of each update, or KEDGE_GROUP_NONE */
    double *eigenvalues; /* count: descending, then 0 for updates left out */
    double *embedding;   /* count * m: row i is e_i, 0 beyond the groups used or for an update left out; MADC:
                            of the cosines, for show */
    size_t groups;       /* m actually used */
    size_t used;         /* updates not left out */
    double inertia;      /* of the k-means, for show; 0 for MADC */
    double silhouette;   /* mean, of distances in the space that was clustered; 0 for one group */
    double eigengap;     /* eigenvalue m less eigenvalue m + 1, over the first: near 0 the cut is arbitrary */
};

/* Group cold start, from the Gram matrix and maxima of the updates (gram.h), sorted by the caller, 1 <= count
 * <= KEDGE_GRAM_VECTORS_MAX. KEDGE_E_ARG; KEDGE_E_NO_DIRECTION: every update is zero; KEDGE_E_NOMEM. On an
 * error the arrays' content is undefined. */
KEDGE_NODISCARD int kedge_flexcfl_group_gram(const int64_t *gram, const uint32_t *maxima, size_t count,
                                             const struct kedge_flexcfl_params *params,
                                             struct kedge_flexcfl_result *result);

/* Direction of a group: out[i] = round-half-even(sum of members[k][first + i] / count), exact, i < n.
 * The group's first model is kedge_mean_tile over the same members with weight 1 each.
 * KEDGE_E_ARG: count 0 or above KEDGE_SITES_MAX. */
KEDGE_NODISCARD int kedge_direction_tile(const int32_t *const *members, size_t count, size_t first, size_t n,
                                         int32_t *out);

/* The same for an update that comes in parts: all of it once through scan, then, in any parts, through add.
 * update: the part's values; directions: whole, of which first … first + len - 1 belong to the part. */
struct kedge_nearest {
    size_t groups; /* 1 … KEDGE_GROUPS_MAX; the rest zero to begin with */
    uint32_t max_u, max[KEDGE_GROUPS_MAX];
    int64_t uu, uj[KEDGE_GROUPS_MAX], jj[KEDGE_GROUPS_MAX];
};
void kedge_nearest_scan(struct kedge_nearest *n, const int32_t *update, const int32_t *const *directions,
                        size_t first, size_t len);
void kedge_nearest_add(struct kedge_nearest *n, const int32_t *update, const int32_t *const *directions,
                       size_t first, size_t len);
/* The group whose direction has the largest cosine to the update, ties to the lowest index; cosine =
 * (A_uj / sqrt(A_uu)) / sqrt(A_jj) from exact products of 12-bit scaled vectors. Zero directions are passed
 * over. *ret_cosine may be NULL. KEDGE_E_NOT_FOUND: the update or every direction is zero. */
KEDGE_NODISCARD int kedge_nearest_end(const struct kedge_nearest *n, uint32_t *ret_group, double *ret_cosine);

#endif
