/* Internal to closing a round: its steps. */
#ifndef KEDGE_ROUND_CLOSE_IMPL_H
#define KEDGE_ROUND_CLOSE_IMPL_H

#include "round/close/close.h"

/* groups.c: what the group's inputs weigh (cold: in the pre-training that made it); its aggregate, once it is
 * weighed, and the server's step, where the job has one. */
KEDGE_NODISCARD int kedgei_close_weigh(struct kedge_close *c, uint32_t group, bool cold);
KEDGE_NODISCARD int kedgei_close_group(struct kedge_close *c, uint32_t group, bool cold);

/* The direction of these updates; `made`: of a group that they make, zero where they all are. */
KEDGE_NODISCARD int kedgei_close_direct(struct kedge_close *c, const struct kedge_compute_sites *sites,
                                        bool made, struct kedge_hash *ret);
/* That of the group's inputs, into the result. */
KEDGE_NODISCARD int kedgei_close_direction(struct kedge_close *c, uint32_t group);

/* The mean of models by these weights. */
KEDGE_NODISCARD int kedgei_close_blend(struct kedge_close *c, const struct kedge_hash *models,
                                       const uint64_t *weight, uint32_t count, struct kedge_hash *ret);
void kedgei_close_assign(struct kedge_round_result *r, uint32_t site, uint32_t group);
/* Room for so many. */
KEDGE_NODISCARD int kedgei_close_assignments(struct kedge_round_result *r, size_t count);

/* edges.c: behind the steps of a hierarchical job's round, the meeting, when it is time. */
KEDGE_NODISCARD int kedgei_close_edges(struct kedge_close *c);
/* regroup.c: a PRETRAIN round behind the first: groups, models, directions, and the groups of all who have
 * one. */
KEDGE_NODISCARD int kedgei_close_regroup(struct kedge_close *c);

/* refresh.c: directions estimated again, where it is time. */
KEDGE_NODISCARD int kedgei_close_refresh(struct kedge_close *c);
/* Pre-training updates by which sites have a group. */
struct close_signs {
    char (*path)[KEDGE_PATH_MAX];
    struct kedge_blob_at *files;
    uint32_t *tenant;
    size_t count;
};
/* Those of the group that were chosen (an item for each of c->others) and are still here. */
KEDGE_NODISCARD int kedgei_close_signs(const struct kedge_close *c, const bool *selected, uint32_t group,
                                       struct close_signs *s);
/* reshape.c: groups that are cut or become one, once directions are estimated. */
KEDGE_NODISCARD int kedgei_close_reshape(struct kedge_close *c, const bool *selected, struct close_signs *s);
/* split.c: behind the steps of a CFL job's round, groups whose updates pull apart are cut. */
KEDGE_NODISCARD int kedgei_close_split(struct kedge_close *c);

#endif
