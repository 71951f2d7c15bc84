/* Inside sim/learn: directions of groups, and groups that are made again, merged and cut. */
#ifndef KEDGE_SIM_LEARN_REGROUP_H
#define KEDGE_SIM_LEARN_REGROUP_H

#include "sim/learn/engine.h"

/* Pre-training updates of some sites, sorted by (tenant, site), and what is made of them. Arrays of `room`.
 */
struct kedgei_learn_signs {
    uint32_t count, room;
    uint32_t *site, *tenant;
    const int32_t **update; /* whole vectors */
    const int32_t **sign;   /* the part that groups are made of */
    uint32_t *maxima;       /* of the parts */
    uint64_t *weight;
    int64_t *gram;
    double *quota;
    uint32_t *group; /* scratch: cluster of each */
};
KEDGE_NODISCARD int kedgei_learn_signs_init(struct kedgei_learn_signs *s, uint32_t room);
void kedgei_learn_signs_deinit(struct kedgei_learn_signs *s);
void kedgei_learn_signs_add(const struct kedgei_learn *l, struct kedgei_learn_signs *s, uint32_t site,
                            const int32_t *update);

/* Between which numbers of groups the strategy chooses; both the same where that is the number. */
/* Clusters of the signs, s->group[], by the strategy's kind. */
KEDGE_NODISCARD int kedgei_learn_cluster(struct kedgei_learn *l, struct kedgei_learn_signs *s, uint32_t round,
                                         uint32_t *ret_groups);
/* Direction of the group that is to have the signs of cluster `of`. */
KEDGE_NODISCARD int kedgei_learn_direct(struct kedgei_learn *l, const struct kedgei_learn_signs *s,
                                        uint32_t of, uint32_t group);
/* Before a round: groups made again, directions estimated again, groups merged, as the strategy's options
 * say. */
KEDGE_NODISCARD int kedgei_learn_regroup(struct kedgei_learn *l, uint32_t round);

/* CFL: cuts a group in two when the updates of its items, sorted by (tenant, site), say so. */
KEDGE_NODISCARD int kedgei_learn_split(struct kedgei_learn *l, uint32_t round, uint32_t group,
                                       const uint32_t *items, uint32_t count);

#endif
