/* How good a clustering is, and how many clusters there are: silhouette (Rousseeuw 1987) and gap statistic
 * (Tibshirani et al. 2001). Binary64 with + − × ÷ √ in a fixed order, the logarithm too. Pure. */
#ifndef KEDGE_GROUPING_QUALITY_H
#define KEDGE_GROUPING_QUALITY_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "grouping/kmeans.h"

enum { KEDGE_CLUSTERS_MAX = 64, KEDGE_GAP_REFERENCES = 10 };

/* Weighted mean over all points of (b − a) / max(a, b): a = mean distance to the others of its cluster, b =
 * the least mean distance to another cluster. 0 for a point alone in its cluster, and with fewer than two
 * clusters. distance: n × n; cluster[i] < k ≤ KEDGE_CLUSTERS_MAX; weight: n reals above 0, in all three
 * means; NULL: 1 each. In −1 … 1. */
double kedge_silhouette(const double *distance, size_t n, const uint32_t *cluster, size_t k,
                        const double *weight);

/* Natural logarithm of a finite x > 0 from + − × ÷ alone, the same bits everywhere, error below 4e-16 of the
 * result or of 1. */
double kedge_natural_log(double x);

/* Gap(k) = mean over references of log W_ref(k) − log W(k), W = inertia of k-means; references are drawn
 * uniformly from the box of the points (stream (seed, GAP, round, reference)). *ret_error = s(k) = standard
 * deviation · √(1 + 1/KEDGE_GAP_REFERENCES). A W of 0 counts as 1e-300. Errors of kedge_kmeans. */
KEDGE_NODISCARD int kedge_gap(const double *points, size_t n, size_t dims, size_t k,
                              const struct kedge_kmeans_params *params, double *ret_gap, double *ret_error);

#endif
