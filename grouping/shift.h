/* Has a site's data changed so that it should look for its group again? And have the groups moved so far that
 * all should? Pure, no heap. */
#ifndef KEDGE_GROUPING_SHIFT_H
#define KEDGE_GROUPING_SHIFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

#define KEDGE_SHIFT_LABELS 0.2 /* default threshold of kedge_shift_labels */

/* Total variation of label shares: ½ · Σ_c |now_c/|now| − then_c/|then||, in 0 … 1, c ascending; 1 when one
 * of the two is empty and the other is not, 0 when both are. */
double kedge_shift_labels(const uint64_t *then, const uint64_t *now, size_t classes);

/* The test of the published code, for comparison: both count vectors sorted, mean of their differences, above
 * 0.2 · samples / classes, where samples is how many the site had when the job began. It is blind to which
 * labels changed and fires when only the size does. KEDGE_E_ARG: classes 0 or above KEDGE_SHIFT_CLASSES_MAX.
 */
enum { KEDGE_SHIFT_CLASSES_MAX = 1024 };
KEDGE_NODISCARD int kedge_shift_counts(const uint64_t *then, const uint64_t *now, size_t classes,
                                       uint64_t samples, bool *ret_shifted);

/* For every shift that makes the model worse: the mean loss on the site's own test samples, then and now, and
 * the squares of their standard errors. Shifted when it is above what it was by more than three standard
 * errors of the difference, which chance does once in 700 times. */
bool kedge_shift_loss(double then, double then_square, double now, double now_square);

/* How far directions have moved since the groups were made, in units of the mean distance between them:
 * max_j (1 − moved[j]) / mean_{i<j} (1 − cosine_ij). moved[j]: cosine of group j's direction then and now;
 * cosine: groups × groups, of the directions then. 0 with fewer than two groups. */
double kedge_group_drift(const double *cosine, const double *moved, size_t groups);
#define KEDGE_DRIFT_MOST (1.0 / 3.0) /* default: cluster again when the drift is above */

#endif
