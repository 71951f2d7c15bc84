/* Internal to closing a round: the parts of FlexCFL's way of grouping. */
#ifndef KEDGE_ROUND_CLOSE_FLEXCFL_H
#define KEDGE_ROUND_CLOSE_FLEXCFL_H

#include "round/close/grouping.h"

/* regroup.c: the direction of the group's inputs, into the result. */
KEDGE_NODISCARD int kedgei_direct_inputs(struct kedge_close *c, uint32_t group);
/* … a PRETRAIN round after the first: groups, models, directions, and the groups of all sites that
 * have one. */
KEDGE_NODISCARD int kedgei_regroup(struct kedge_close *c);
/* refresh.c: directions estimated again, and what follows. */
KEDGE_NODISCARD int kedgei_refresh(struct kedge_close *c);

/* Updates by which sites have a group: of those that speak for the groups. */
struct kedgei_signs {
    bool *chosen; /* an item for each of c->others */
    char (*path)[KEDGE_PATH_MAX];
    struct kedgei_members of;
};
/* signs.c: who speaks for the groups (an item for each of c->others); … */
KEDGE_NODISCARD int kedgei_choose_signs(const struct kedge_close *c, bool *chosen);
/* … those of the group that are still here. */
KEDGE_NODISCARD int kedgei_signs_of(const struct kedge_close *c, struct kedgei_signs *s, uint32_t group);
/* reshape.c: groups that are cut or become one, once directions are estimated. */
KEDGE_NODISCARD int kedgei_reshape(struct kedge_close *c, struct kedgei_signs *s);

#endif
