/* What a close is made from, as lists and ledgers have it. Internal to this room. */
#ifndef KEDGE_CHAIN_AUDIT_ROUNDS_REPLAY_INPUTS_H
#define KEDGE_CHAIN_AUDIT_ROUNDS_REPLAY_INPUTS_H

#include "chain/audit/record.h"

struct kedgei_input {
    struct kedge_input_row row;
    uint32_t place; /* of its tenant in the spec */
};
struct kedgei_inputs {
    struct kedgei_input *items; /* in site order */
    size_t count, cap;
};

/* Updates that count in this close, of one group or (KEDGE_GROUP_NONE) of all, from the lists of its
 * aggregates, in site order; deinit also after an error: KEDGE_E_NOT_FOUND when a list cannot be read or
 * there are none. */
KEDGE_NODISCARD int kedgei_inputs_of_close(const struct kedgei_audit *a, const struct kedgei_job *job,
                                           const struct kedgei_round *round, uint32_t group,
                                           struct kedgei_inputs *ret);
/* Adds one. KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedgei_inputs_add(struct kedgei_inputs *in, uint32_t place,
                                      const struct kedge_input_row *row);
/* Below, at or above 0: by tenant, then by site, as they are sorted. */
int kedgei_inputs_cmp_sites(const struct kedgei_input *a, const struct kedgei_input *b);
void kedgei_inputs_sort(struct kedgei_inputs *in);
void kedgei_inputs_deinit(struct kedgei_inputs *in);
/* All candidates of this opening; likewise, but that there may be none. */
KEDGE_NODISCARD int kedgei_candidates_of(const struct kedgei_audit *a, const struct kedgei_job *job,
                                         const struct kedgei_round *round, struct kedgei_inputs *ret);
/* Rows of what sites found of trials; there may be none. KEDGE_E_NOT_FOUND: a list cannot be read. */
KEDGE_NODISCARD int kedgei_evaluations_of_close(const struct kedgei_audit *a, const struct kedgei_job *job,
                                                const struct kedgei_round *round, struct kedgei_inputs *ret);
/* Sites that had this group (likewise) when the round closed, with the update that gave it, leaf: the entry
 * that says so. speaking: only those who speak for their groups; else of all groups. KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedgei_members_of_close(const struct kedgei_audit *a, const struct kedgei_job *job,
                                            const struct kedgei_round *round, uint32_t group, bool speaking,
                                            struct kedgei_inputs *ret);

/* weights.c: what these inputs of a round, all of those that count, weigh by their statements; takes them.
 * unlisted: by group, some of its inputs are not known. Where files decide as well, that is replay's part. */
void kedgei_check_weights(struct kedgei_audit *a, const struct kedgei_job *job,
                          const struct kedgei_round *round, struct kedgei_inputs *inputs,
                          const bool *unlisted, struct kedgei_findings *f);

#endif
