/* Internal to chain/audit: what the files of explain share. */
#ifndef KEDGE_CHAIN_AUDIT_EXPLAIN_EXPLAIN_IMPL_H
#define KEDGE_CHAIN_AUDIT_EXPLAIN_EXPLAIN_IMPL_H

#include <jansson.h>

#include "chain/audit/record.h"

/* Which model: of a group of a job, after so many rounds. */
struct kedgei_origin {
    const char *role; /* "release", "round-result", "aggregate", "initial-model" */
    const struct kedgei_job *job;
    const struct kedgei_fact *release; /* NULL: none */
    size_t round_count;                /* of job->rounds, that lead to it */
    uint32_t group;
};

json_t *kedgei_json_hash(const struct kedge_hash *h);
/* {"log", "index", "key"}: the statement behind something and the SHA-256 of the key that signed it. */
json_t *kedgei_json_source(const struct kedgei_log *log, const struct kedgei_fact *fact);
/* Sets a member; a NULL value, memory that ran out, is noted. */
void kedgei_json_set(json_t *o, const char *name, json_t *value, bool *nomem);

/* Anchors outside that have the statement behind the model. */
json_t *kedgei_explain_anchors(const struct kedgei_audit *a, const struct kedgei_origin *origin, bool *nomem);
/* Rounds, newest first, and totals per tenant and site. */
KEDGE_NODISCARD int kedgei_explain_rounds(const struct kedgei_audit *a, const struct kedgei_origin *origin,
                                          json_t *tree);

/* audit.c calls it when all is checked. *ret NULL: no such model. */
KEDGE_NODISCARD int kedgei_explain(const struct kedgei_audit *a, const struct kedge_hash *model,
                                   json_t **ret);

#endif
