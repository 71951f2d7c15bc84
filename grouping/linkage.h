/* Agglomerative clustering: every point alone, then the two nearest clusters become one, again and again.
 * Ties: the pair whose first members are the lowest, first cluster first. Defined by the distances alone, no
 * random numbers. Pure. */
#ifndef KEDGE_GROUPING_LINKAGE_H
#define KEDGE_GROUPING_LINKAGE_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

enum kedge_linkage {
    KEDGE_LINKAGE_COMPLETE, /* distance of two clusters = the largest between their points */
    KEDGE_LINKAGE_AVERAGE,  /* … the mean (UPGMA) */
    KEDGE_LINKAGE_SINGLE,   /* … the least */
};
enum { KEDGE_LINKAGE_POINTS_MAX = 1024 };

/* Where to stop: with more than `most` clusters left the nearest two are always joined, with `least` or fewer
 * never, between them while their distance is at most `cut`. k clusters: least = most = k. */
struct kedge_linkage_cut {
    size_t least; /* ≥ 1 */
    size_t most;  /* ≥ least */
    double cut;
};

/* distance: n × n, its upper triangle is read; 1 ≤ n ≤ KEDGE_LINKAGE_POINTS_MAX. cluster[n]: numbered by
 * their first members. *ret_clusters: how many (at most n). O(n² + n · joins) time and n² doubles.
 * KEDGE_E_ARG, KEDGE_E_NOT_FINITE, KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedge_linkage(const double *distance, size_t n, enum kedge_linkage linkage,
                                  const struct kedge_linkage_cut *cut, uint32_t *cluster,
                                  size_t *ret_clusters);

#endif
