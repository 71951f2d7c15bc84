/* Where a model comes from, as the record says it: release, job, rounds, groups, tenants, sites, weights,
 * energy, evaluations, decisions about groups, checkpoints, and the statement behind each. */
#ifndef KEDGE_CHAIN_AUDIT_EXPLAIN_EXPLAIN_H
#define KEDGE_CHAIN_AUDIT_EXPLAIN_EXPLAIN_H

#include "chain/audit/audit.h"

struct json_t;

/* All of kedge_audit_verify; then *ret_tree, a JSON object that the caller owns, about the model with this
 * SHA-256: a release, the result of a round, or a job's first model. NULL when the record knows no such model
 * or could not be read. docs/modules/audit.md lists the members. Names of tenants and sites stand there where
 * their ledgers are in the record, salted ids elsewhere. */
KEDGE_NODISCARD int kedge_audit_explain(const char *dir, const struct kedge_trust *trust,
                                        const char *const *seen_paths, size_t seen_count,
                                        const struct kedge_audit_options *options,
                                        const struct kedge_hash *model, struct kedge_audit_report *ret,
                                        struct json_t **ret_tree, struct kedge_diag *reterr);

#endif
