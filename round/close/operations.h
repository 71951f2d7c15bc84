/* Internal to closing a round: its operations. Each makes one kind of decision (decision.h), from vectors, by
 * the functions of round/, and tells it to the host. What a way of grouping does at a close (grouping.h) is
 * written in these alone. */
#ifndef KEDGE_ROUND_CLOSE_OPERATIONS_H
#define KEDGE_ROUND_CLOSE_OPERATIONS_H

#include "round/close/close.h"

/* Updates that a decision is made from. */
struct kedgei_members {
    struct kedge_blob_at *files;
    uint32_t *tenant; /* place in the spec */
    size_t count;
    bool lacks; /* one of them is gone */
};
KEDGE_NODISCARD int kedgei_members_init(struct kedgei_members *m,
                                        size_t most); /* deinit also after an error */
void kedgei_members_deinit(struct kedgei_members *m);

/* ---- models: operations_models.c ---- */

/* What the group's inputs weigh (cold: in the pre-training that made it): weight of each, rule and divisor of
 * the group, its members. */
KEDGE_NODISCARD int kedgei_weigh_group(struct kedge_close *c, uint32_t group, bool cold);
/* Its aggregate, once it is weighed; the server's step where the job has one, and not for a group that is
 * just made. */
KEDGE_NODISCARD int kedgei_aggregate_group(struct kedge_close *c, uint32_t group, bool cold);
/* What the updates of some of its inputs alone make of its model: chosen, an item for each input of the
 * close. Told as the trial of group `part`; without a chosen one it is the model that the whole group has
 * made. */
KEDGE_NODISCARD int kedgei_try_part(struct kedge_close *c, uint32_t group, const bool *chosen, uint32_t part,
                                    struct kedge_hash *ret);
/* The model that the group which was cut into `a` and `b` would have made of this round: of the updates of
 * both, from the one model that they began with. Told as what groups that become `a` make. */
KEDGE_NODISCARD int kedgei_join_parts(struct kedge_close *c, uint32_t a, uint32_t b, struct kedge_hash *ret);
/* What mixing makes of the models of those that trained. */
KEDGE_NODISCARD int kedgei_mix(struct kedge_close *c);
/* The mean of count models by these weights; kind: MEET, JOIN, BLEND or TRIAL, of this group. */
KEDGE_NODISCARD int kedgei_blend(struct kedge_close *c, enum kedge_decision_kind kind, uint32_t group,
                                 const struct kedge_hash *models, const uint64_t *weight, uint32_t count,
                                 struct kedge_hash *ret);

/* ---- groups: operations_groups.c ---- */

/* The groups of all inputs; former[i]: that of each before, NULL: none had one. Groups that continue others
 * keep their numbers. */
KEDGE_NODISCARD int kedgei_cluster(struct kedge_close *c, const uint32_t *former, uint32_t *ret_group,
                                   uint32_t *ret_groups);
/* The direction of these updates; `made`: of a group that they make, zero where they all are.
 * KEDGE_E_NO_DIRECTION. */
KEDGE_NODISCARD int kedgei_direct(struct kedge_close *c, uint32_t group, const struct kedgei_members *of,
                                  bool made, struct kedge_hash *ret);
/* The group whose direction is the nearest to the update by which the site is where it is. */
KEDGE_NODISCARD int kedgei_nearest(struct kedge_close *c, const struct kedge_close_other *site,
                                   const struct kedge_hash *former_direction, uint32_t *ret_group);
/* On which side of a cut it is: that of `from` or of `to`. */
KEDGE_NODISCARD int kedgei_side(struct kedge_close *c, const struct kedge_close_other *site, uint32_t from,
                                uint32_t to, uint32_t *ret_group);
/* How far directions have moved since their groups were made. */
KEDGE_NODISCARD int kedgei_measure_drift(struct kedge_close *c, double *ret);
/* What each group becomes part of: itself where it stays. */
KEDGE_NODISCARD int kedgei_find_merges(struct kedge_close *c, uint32_t *ret_into, bool *ret_any);
/* They were tried with each other by the step before, which had cut one group into these two. */
bool kedgei_are_parts(const struct kedge_round_result *r, uint32_t a, uint32_t b);
/* The same by what sites have found of the trials of the step before. */
KEDGE_NODISCARD int kedgei_judge_trials(struct kedge_close *c, uint32_t *ret_into, bool *ret_any);
/* Whether sites are better served by what their own training makes of their group's model, by what they have
 * found of it: result->is_personal, which stays where too little says so. */
KEDGE_NODISCARD int kedgei_judge_personal(struct kedge_close *c);
/* Which group each is to be tried with: itself where with none. */
KEDGE_NODISCARD int kedgei_find_pairs(struct kedge_close *c, uint32_t *ret_with);
/* Whether a group is cut by the angles of these updates of its sites, and how. */
KEDGE_NODISCARD int kedgei_cut_by_angles(struct kedge_close *c, uint32_t group,
                                         const struct kedgei_members *of, uint32_t *ret_part, bool *ret_cut);
/* … where they fall into two halves. */
KEDGE_NODISCARD int kedgei_cut_by_halves(struct kedge_close *c, uint32_t group,
                                         const struct kedgei_members *of, uint32_t *ret_part, bool *ret_cut);
/* … by the lengths and angles of the round's own updates. */
KEDGE_NODISCARD int kedgei_cut_by_lengths(struct kedge_close *c, uint32_t group,
                                          const struct kedgei_members *of, uint32_t *ret_part, bool *ret_cut);

/* A group that is cut off another one begins with all that this has. */
void kedgei_copy_group(struct kedge_round_result *r, uint32_t from, uint32_t to);
/* The site's group from here on. */
void kedgei_assign(struct kedge_close *c, uint32_t site, uint32_t group);
/* Room for so many: the same in each call of one close. */
KEDGE_NODISCARD int kedgei_assignments(struct kedge_close *c, size_t count);

#endif
