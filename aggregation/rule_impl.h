/* Inside the files of rules: what the rows share. */
#ifndef KEDGE_AGGREGATION_RULE_IMPL_H
#define KEDGE_AGGREGATION_RULE_IMPL_H

#include <stddef.h>
#include <stdint.h>

#include "aggregation/rule.h"

#define KEDGEI_RULE_NORM_SQ_MAX 0x1p102 /* 2^40 values of 2^31 */

/* f: whole votes that may be bad among `votes` (units of 2^-20). */
uint64_t kedgei_rule_bad(const struct kedge_rule_params *params, uint64_t votes);
uint64_t kedgei_rule_sum(const uint64_t *weight, size_t count);

#endif
