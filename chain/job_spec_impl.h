/* Internal to chain: the parts of the job spec's parser. */
#ifndef KEDGE_CHAIN_JOB_SPEC_IMPL_H
#define KEDGE_CHAIN_JOB_SPEC_IMPL_H

#include "chain/job_spec.h"

struct json_t;

/* Keys "strategy", "options", "server", "rule", "rule_fraction", "rule_bound", once "grouping" is read. */
KEDGE_NODISCARD int kedgei_spec_read_strategy(const struct json_t *root, struct kedge_job_spec *s,
                                              struct kedge_diag *d);
/* What they mean together with all other keys, once these are read and their defaults taken. */
KEDGE_NODISCARD int kedgei_spec_check_strategy(const struct kedge_job_spec *s, struct kedge_diag *d);

#endif
