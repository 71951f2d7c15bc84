/* Inside of a repair: the tree that must come out, and the store that is made of it. */
#ifndef KEDGE_CHAIN_STORE_REPAIR_IMPL_H
#define KEDGE_CHAIN_STORE_REPAIR_IMPL_H

#include "chain/store/ledger_impl.h"
#include "chain/store/repair.h"

struct kedgei_rebuild {
    const struct kedge_repair *r;
    const char *store;             /* the damaged one */
    struct kedge_ledger *copy;     /* the other copy, checked */
    struct kedgei_high_water goal; /* size and root that were signed */
    bool mark_is_void;             /* lost or damaged, and the operator knows */
    uint64_t from_here;            /* entries taken from the damaged store */
};

/* Takes the largest size that a checkpoint in the damaged store says was signed for the goal, when that is
 * larger than the goal: a mark may be lost or old. KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedgei_rebuild_raise(struct kedgei_rebuild *b);
/* Every entry below the goal is at hand, and the tree has the goal's root: KEDGE_E_SHORTER. */
KEDGE_NODISCARD int kedgei_rebuild_check(struct kedgei_rebuild *b, struct kedge_diag *reterr);
/* Makes the store, with both copies' checkpoints that belong to this tree. */
KEDGE_NODISCARD int kedgei_rebuild_into(struct kedgei_rebuild *b, const char *dir, struct kedge_diag *reterr);

#endif
