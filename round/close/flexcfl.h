/* Internal to closing a round: the parts of FlexCFL's way of grouping. */
#ifndef KEDGE_ROUND_CLOSE_FLEXCFL_H
#define KEDGE_ROUND_CLOSE_FLEXCFL_H

#include "round/close/grouping.h"

/* regroup.c: the direction of the group's inputs, into the result. */
KEDGE_NODISCARD int kedgei_direct_inputs(struct kedge_close *c, uint32_t group);
/* … a PRETRAIN round after the first: groups, models, directions, and the groups of all sites that
 * have one. */
KEDGE_NODISCARD int kedgei_regroup(struct kedge_close *c);
/* flexcfl.c: the whole of a PRETRAIN round; … */
KEDGE_NODISCARD int kedgei_make_flexcfl(struct kedge_close *c);
/* … a group that is part of another one goes with it, so that a site which still asks for it is served. */
void kedgei_follow_merged(struct kedge_round_result *r);
/* refresh.c: directions estimated again, and what follows. */
KEDGE_NODISCARD int kedgei_refresh(struct kedge_close *c);

/* Updates by which sites have a group: of those that speak for the groups. */
struct kedgei_signs {
    bool *chosen; /* an item for each of c->others */
    char (*path)[KEDGE_PATH_MAX];
    struct kedgei_members of;
};
/* Deinit also after an error. */
KEDGE_NODISCARD int kedgei_signs_init(const struct kedge_close *c, struct kedgei_signs *s);
void kedgei_signs_deinit(struct kedgei_signs *s);
/* signs.c: who speaks for the groups (an item for each of c->others); … */
KEDGE_NODISCARD int kedgei_choose_signs(const struct kedge_close *c, bool *chosen);
/* … those of the group that are still here. */
KEDGE_NODISCARD int kedgei_signs_of(const struct kedge_close *c, struct kedgei_signs *s, uint32_t group);
/* reshape.c: groups become one as `into` says, an item for each: models, and who moves; … */
KEDGE_NODISCARD int kedgei_join(struct kedge_close *c, const uint32_t *into);
/* … there is a number for one more group; … */
bool kedgei_has_number(const struct kedge_close *c);
/* … it is cut in two, as `part` says of these updates of its sites: models, directions, and who moves.
 * *ret_to: the new part's number; ret_moves, an item for each of c->others: it goes there; … */
KEDGE_NODISCARD int kedgei_cut_group(struct kedge_close *c, const struct kedgei_members *all,
                                     const uint32_t *part, uint32_t from, uint32_t *ret_to, bool *ret_moves);
/* … groups that are cut or become one, once directions are estimated. */
KEDGE_NODISCARD int kedgei_reshape(struct kedge_close *c, struct kedgei_signs *s);

#endif
