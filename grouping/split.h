/* Clustered federated learning by splitting (Sattler, Müller, Samek, IEEE TNNLS 2021): a group at a
 * stationary point whose members still pull hard in different directions is cut in two. Also splitting by
 * silhouette, of pre-training updates. From exact inner products (aggregation/gram.h). Pure. */
#ifndef KEDGE_GROUPING_SPLIT_H
#define KEDGE_GROUPING_SPLIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

/* ‖mean of the updates‖ and the largest ‖update‖, in the model's units: values q · 2^-scale_bits. gram and
 * maxima of count updates as gram.h makes them. KEDGE_E_ARG: count 0 or above KEDGE_GRAM_VECTORS_MAX. */
KEDGE_NODISCARD int kedge_split_norms(const int64_t *gram, const uint32_t *maxima, size_t count,
                                      unsigned scale_bits, double *ret_mean, double *ret_max);

/* CFL's test: mean < split_mean, max > split_max, more than two members. */
bool kedge_split_due(double mean, double max, double split_mean, double split_max, size_t members);

/* Two parts by complete linkage of 1 − cosine; a zero update goes with the first part. part[count]: 0 or 1,
 * the first member is in part 0. *ret_silhouette (may be NULL): mean, of 1 − cosine. KEDGE_E_ARG: count below
 * 2 or above KEDGE_GRAM_VECTORS_MAX; KEDGE_E_NO_DIRECTION: fewer than two updates that are not zero;
 * KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedge_split(const int64_t *gram, const uint32_t *maxima, size_t count, uint32_t *part,
                                double *ret_silhouette);

#endif
