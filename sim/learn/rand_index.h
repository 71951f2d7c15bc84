/* How much two labellings of the same sites agree: a simulation's groups with those that were planted. Jobs
 * know of no true groups. */
#ifndef KEDGE_SIM_LEARN_RAND_INDEX_H
#define KEDGE_SIM_LEARN_RAND_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Adjusted Rand index (Hubert & Arabie 1985): 1 = same partition, about 0 = chance. By pairs, O(n^2) time, no
 * memory; 1 when n < 2 or both are trivial alike. Counts of pairs of 4096 sites are below 2^53, and exact. */
static inline double kedge_rand_adjusted(const uint32_t *a, const uint32_t *b, size_t n)
{
    double together = 0.0; /* pairs together in both, only in a, only in b, in none: whole numbers, exact */
    double only_a = 0.0;
    double only_b = 0.0;
    double apart = 0.0;
    for (size_t i = 0; i < n; i++) {
        for (size_t j = i + 1; j < n; j++) {
            bool in_a = a[i] == a[j];
            bool in_b = b[i] == b[j];
            together += in_a && in_b;
            only_a += in_a && !in_b;
            only_b += !in_a && in_b;
            apart += !in_a && !in_b;
        }
    }
    if (only_a + only_b <= 0.0) {
        return 1.0;
    }
    double share = (together + only_a) * (only_a + apart) + (together + only_b) * (only_b + apart);
    return 2.0 * (together * apart - only_a * only_b) / share;
}

#endif
