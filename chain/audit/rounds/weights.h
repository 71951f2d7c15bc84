/* What the updates of an aggregate weigh, from what their statements say: the rule once more, without files.
 * Where files decide as well, that is replay's part. Internal to this room. */
#ifndef KEDGE_CHAIN_AUDIT_ROUNDS_WEIGHTS_H
#define KEDGE_CHAIN_AUDIT_ROUNDS_WEIGHTS_H

#include "chain/audit/record.h"
#include "round/aggregate.h"

/* A row that counts in the aggregate. */
struct kedgei_weighed {
    struct kedge_input_row row;
    const struct kedgei_log *log;
    uint32_t place; /* of its tenant in the spec */
};
struct kedgei_weights {
    struct kedgei_weighed *rows;
    size_t count, cap;
    bool unknown; /* a row names no statement, or a list is not here: nothing follows */
};

/* What the statement that a row names tells about its update. False: it names none. */
bool kedgei_weights_facts(const struct kedgei_log *log, const struct kedge_input_row *row,
                          struct kedge_strategy_input *ret);
/* Whether weights follow from all rows together, not from each by itself. */
bool kedgei_weights_derived(const struct kedge_job_spec *spec);
void kedgei_weights_add(struct kedgei_weights *w, const struct kedgei_log *log, uint32_t place,
                        const struct kedge_input_row *row, struct kedgei_findings *f);
/* Compares the recorded weights, and the name of the rule that ran, with what follows. Frees what w owns. */
void kedgei_weights_check(const struct kedgei_audit *a, const struct kedgei_job *job, bool cold_start,
                          const struct kedgei_fact *aggregate, struct kedgei_weights *w,
                          struct kedgei_findings *f);
/* The same in a round in which groups are made anew: what each site counts in its group's model. */
void kedgei_weights_check_regrouped(const struct kedgei_audit *a, const struct kedgei_job *job,
                                    const struct kedgei_round *round, const struct kedgei_fact *aggregate,
                                    struct kedgei_weights *w, struct kedgei_findings *f);

#endif
