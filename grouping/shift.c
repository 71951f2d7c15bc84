/* What a site can see of a shift of its own data: other labels, other counts, another update, a larger
 * loss. Each test compares a few numbers that never leave the site. kedge_group_drift is the coordinator's:
 * how far directions have moved. */
#include "grouping/shift.h"

#include <math.h>
#include <string.h>

static double total_of(const uint64_t *counts, size_t classes)
{
    double sum = 0.0;
    for (size_t c = 0; c < classes; c++) {
        sum += (double)counts[c];
    }
    return sum;
}

double kedge_shift_labels(const uint64_t *then, const uint64_t *now, size_t classes)
{
    const double before = total_of(then, classes), after = total_of(now, classes);
    if (before <= 0.0 || after <= 0.0) {
        return before <= 0.0 && after <= 0.0 ? 0.0 : 1.0;
    }
    double sum = 0.0;
    for (size_t c = 0; c < classes; c++) {
        sum += fabs((double)now[c] / after - (double)then[c] / before);
    }
    return sum / 2.0;
}

/* By insertion: classes are few. */
static void sort_counts(const uint64_t *from, size_t n, uint64_t *to)
{
    for (size_t i = 0; i < n; i++) {
        size_t at = i;
        for (; at > 0 && to[at - 1] > from[i]; at--) {
            to[at] = to[at - 1];
        }
        to[at] = from[i];
    }
}

/* Sorted counts are compared, as FlexCFL's released code does: it sees how uneven the labels are, and not
 * which label is which. */
int kedge_shift_counts(const uint64_t *then, const uint64_t *now, size_t classes, uint64_t samples,
                       bool *ret_shifted)
{
    uint64_t a[KEDGE_SHIFT_CLASSES_MAX], b[KEDGE_SHIFT_CLASSES_MAX];
    if (classes == 0 || classes > KEDGE_SHIFT_CLASSES_MAX) {
        return KEDGE_E_ARG;
    }
    sort_counts(then, classes, a);
    sort_counts(now, classes, b);
    double sum = 0.0;
    for (size_t c = 0; c < classes; c++) {
        sum += (double)(a[c] > b[c] ? a[c] - b[c] : b[c] - a[c]);
    }
    /* both sides times classes */
    *ret_shifted = sum > 0.2 * (double)samples;
    return KEDGE_OK;
}

bool kedge_shift_loss(double then, double then_square, double now, double now_square)
{
    return now - then > 3.0 * sqrt(then_square + now_square);
}

/* In units of the mean distance between the groups: the same move means more where directions are close to
 * each other. Groups that coincided are infinitely far from where they were, whatever the move. */
double kedge_group_drift(const double *cosine, const double *moved, size_t groups)
{
    double far = 0.0, sum = 0.0, pairs = 0.0;
    for (size_t i = 0; i < groups; i++) {
        far = 1.0 - moved[i] > far ? 1.0 - moved[i] : far;
        for (size_t j = i + 1; j < groups; j++) {
            sum += 1.0 - cosine[i * groups + j];
            pairs += 1.0;
        }
    }
    if (pairs <= 0.0 || far <= 0.0) {
        return 0.0;
    }
    return sum > 0.0 ? far / (sum / pairs) : (double)INFINITY;
}
