/* Sums that rules share. */
#include "aggregation/rule/rule.h"
#include "aggregation/rule/rule_impl.h"

uint64_t kedgei_rule_sum(const uint64_t *weight, size_t count)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        sum += weight[i];
    }
    return sum;
}

uint64_t kedgei_rule_bad(const struct kedge_rule_params *params, uint64_t votes)
{
    double fraction = params->fraction > 0 ? params->fraction : 0; /* also where it is no number */
    fraction = fraction < KEDGE_RULE_FRACTION_MAX ? fraction : KEDGE_RULE_FRACTION_MAX;
    const uint64_t parts = (uint64_t)(fraction * KEDGE_RULE_PARTS + 0.5);
    return votes * parts / ((uint64_t)KEDGE_RULE_PARTS * KEDGE_RULE_VOTE);
}
