/* Internal to chain. Pure. */
#ifndef KEDGE_CHAIN_LOG_CHECKPOINT_IMPL_H
#define KEDGE_CHAIN_LOG_CHECKPOINT_IMPL_H

#include "chain/log/checkpoint.h"

/* kedge_checkpoint_parse that lets the empty tree have any root: the witness protocol has an answer of its
 * own to that. */
KEDGE_NODISCARD int kedgei_checkpoint_parse_any_root(struct kedge_view text,
                                                     struct kedge_checkpoint *ret_checkpoint);
/* Whether a checkpoint of size 0 has the root of the empty tree. */
bool kedgei_checkpoint_root_fits(const struct kedge_checkpoint *checkpoint);

#endif
