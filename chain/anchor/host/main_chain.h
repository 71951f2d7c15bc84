/* The main chain as those see it who anchor it: signed checkpoints of a state folder that a coordinator may
 * be writing to. Nothing is written there. */
#ifndef KEDGE_CHAIN_ANCHOR_HOST_MAIN_CHAIN_H
#define KEDGE_CHAIN_ANCHOR_HOST_MAIN_CHAIN_H

#include "common/base/bytes.h"
#include "common/base/diag.h"
#include "crypto/hash.h"

/* Newest signed checkpoint of the main chain: size, root and the note, appended (ret_note may be NULL); with
 * at_size > 0 also the root of so many entries (zero when there are fewer). KEDGE_E_NOT_FOUND: none yet. */
KEDGE_NODISCARD int kedge_anchor_read_main(const char *state, uint64_t at_size, uint64_t *ret_size,
                                           struct kedge_hash *ret_root, struct kedge_hash *ret_root_at,
                                           struct kedge_buf *ret_note, struct kedge_diag *reterr);
/* Appends the checkpoint of exactly that size; nothing when none is stored any more. */
void kedge_anchor_read_checkpoint(const char *state, uint64_t size, struct kedge_buf *ret);

#endif
