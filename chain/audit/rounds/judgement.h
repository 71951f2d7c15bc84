/* Each decision of a close as the engine makes it, against the record, by kind of decision; and the record's
 * word in its place. Internal to this room. */
#ifndef KEDGE_CHAIN_AUDIT_ROUNDS_JUDGEMENT_H
#define KEDGE_CHAIN_AUDIT_ROUNDS_JUDGEMENT_H

#include "chain/audit/rounds/closing.h"

/* item: what the decision answers; NULL: nothing that is asked, so that it is not judged. */
typedef void kedgei_judge(struct kedgei_closing *c, struct kedgei_decision *item, struct kedge_decision *io);
kedgei_judge kedgei_judge_weights, kedgei_judge_aggregate, kedgei_judge_step;
kedgei_judge kedgei_judge_after; /* mixing, meeting, joining: what becomes of the group's model */
kedgei_judge kedgei_judge_cluster, kedgei_judge_direction, kedgei_judge_drift;
kedgei_judge kedgei_judge_pairs, kedgei_judge_trial, kedgei_judge_personal_models;
kedgei_judge kedgei_judge_merges, kedgei_judge_cut, kedgei_judge_split, kedgei_judge_nearest;
/* After the close: a cut that the engine did not come to, for there is no number for a part; whether groups
 * that it had no reason to cut stay, and who was to be moved. */
void kedgei_judge_uncut(struct kedgei_closing *c, struct kedgei_decision *item);
void kedgei_judge_reshaped(struct kedgei_closing *c, struct kedgei_decision *item);

/* Without files: what the engine says that a group's inputs weigh, against their rows; one of them. */
void kedgei_judge_listed(struct kedgei_closing *c, const struct kedge_decision *io);
void kedgei_judge_weight(struct kedgei_closing *c, const struct kedgei_input *in, uint32_t group,
                         uint64_t expected);

/* results.c. Which entry says so. */
uint64_t kedgei_judged_at(const struct kedgei_closing *c, const struct kedgei_decision *item);
/* What is found, into the item's result, against what is recorded. */
void kedgei_judge_compare(struct kedgei_closing *c, struct kedgei_decision *item, enum kedge_audit_code code,
                          uint32_t group, const struct kedge_hash *expected,
                          const struct kedge_hash *recorded);

/* What the step says of the group; NULL: nothing. */
static inline const struct kedge_st_step_group *kedgei_judged_row(const struct kedgei_closing *c,
                                                                  uint32_t group)
{
    return c->step && group < c->step->group_count ? &c->step->groups[group] : NULL;
}

static inline bool kedgei_is_judged(const struct kedgei_decision *item)
{
    return item && !item->is_taken;
}

/* A decision that is taken as recorded since updates are erased may rest on statements and models, too: what
 * it decides by these alone is judged all the same. */
static inline bool kedgei_is_still_judged(const struct kedgei_decision *item, const struct kedge_decision *io)
{
    return item && (!item->is_taken || (item->erased > 0 && !io->err));
}

#endif
