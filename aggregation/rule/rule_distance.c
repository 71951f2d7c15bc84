/* Everything here is symmetric in i and j, so that the order of updates does not show in a distance. */
#include <math.h>
#include <string.h>

#include "aggregation/gram.h"
#include "aggregation/rule/rule_impl.h"

/* Products of scaled vectors are brought to one scale by both maxima. Lengths are known exactly and the
 * diagonal takes them, unless rounding to 12 bits made the product larger: then a distance of a vector to
 * itself would be below 0. */
void kedgei_rule_products(const struct kedge_rule_inputs *inputs, size_t all, double *matrix)
{
    for (size_t i = 0; i < all; i++) {
        const double s_i = (double)inputs->maxima[i] / KEDGE_GRAM_ONE;
        for (size_t j = i; j < all; j++) {
            const double s_j = (double)inputs->maxima[j] / KEDGE_GRAM_ONE;
            const double product = (double)inputs->gram[i * all + j] * (s_i * s_j);
            matrix[i * all + j] = product;
            matrix[j * all + i] = product;
        }
        const double seen = matrix[i * all + i];
        matrix[i * all + i] = inputs->norm_sq[i] > seen ? inputs->norm_sq[i] : seen;
    }
}

void kedgei_rule_distances(double *matrix, size_t all)
{
    for (size_t i = 0; i < all; i++) {
        for (size_t j = i + 1; j < all; j++) {
            const double lengths = matrix[i * all + i] + matrix[j * all + j];
            const double distance = lengths - 2.0 * matrix[i * all + j];
            matrix[i * all + j] = distance > 0 ? distance : 0;
            matrix[j * all + i] = matrix[i * all + j];
        }
    }
    for (size_t i = 0; i < all; i++) {
        matrix[i * all + i] = 0;
    }
}

/* By insertion: where the value belongs is found by halving, after all that are equal to it. So equal
 * values stay in the order of their updates, and every machine takes the same one first. */
void kedgei_rule_sort(const double *value, size_t count, uint16_t *order)
{
    for (size_t i = 0; i < count; i++) {
        size_t low = 0;
        size_t high = i;
        while (low < high) {
            const size_t middle = (low + high) / 2;
            if (value[order[middle]] <= value[i]) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        memmove(order + low + 1, order + low, (i - low) * sizeof *order);
        order[low] = (uint16_t)i;
    }
}

/* The least value up to which half of the weight is: one of the values, never a mean of two, so that no
 * rounding comes in. */
double kedgei_rule_median(const double *value, const uint64_t *weight, size_t count, uint16_t *order)
{
    kedgei_rule_sort(value, count, order);
    const uint64_t sum = kedgei_rule_sum(weight, count);
    uint64_t below = 0;
    size_t k = 0;
    for (; k + 1 < count; k++) {
        below += weight[order[k]];
        if (below >= sum - below) {
            break;
        }
    }
    return value[order[k]];
}
