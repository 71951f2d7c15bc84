/* Two passes over memory: lengths and largest values, block by block so that both find a block in the cache;
 * then the Gram matrix. */
#include <string.h>

#include "aggregation/gram.h"
#include "aggregation/norm.h"
#include "aggregation/rule/rule.h"
#include "common/base/mem.h"

enum { BLOCK = 4096 };

static void measure(const struct kedge_rule *rule, const int32_t *q, size_t n, double *norm_sq, uint32_t *max)
{
    struct kedge_norm norm = {0, 0};
    uint32_t largest = 0;
    for (size_t at = 0; at < n; at += BLOCK) {
        const size_t length = n - at < BLOCK ? n - at : BLOCK;
        kedge_norm_add(&norm, q + at, length);
        if (rule->needs_gram) {
            largest = kedge_max_abs(q + at, length, largest);
        }
    }
    *norm_sq = kedge_norm_value(&norm);
    if (rule->needs_gram) {
        *max = largest;
    }
}

int kedge_rule_measure(const struct kedge_rule *rule, const int32_t *const *vectors, size_t all,
                       size_t dimension, double *norm_sq, uint32_t *maxima, int64_t *gram)
{
    if (all > KEDGE_RULE_VECTORS_MAX) {
        return KEDGE_E_ARG;
    }
    for (size_t i = 0; i < all && rule->needs_norms; i++) {
        measure(rule, vectors[i], dimension, &norm_sq[i], rule->needs_gram ? &maxima[i] : NULL);
    }
    if (!rule->needs_gram) {
        return KEDGE_OK;
    }
    int16_t *scratch = kedge_mem_new(kedge_gram_scratch(all), sizeof *scratch);
    if (!scratch) {
        return KEDGE_E_NOMEM;
    }
    memset(gram, 0, all * all * sizeof *gram);
    int err = kedge_gram_tile(vectors, maxima, all, 0, dimension, scratch, gram);
    kedge_mem_free(scratch);
    return err;
}
