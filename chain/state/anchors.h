/* Where a state folder keeps what anchors its main chain outside (chain/anchor), and which there are:
 * STATE/anchors/KIND/NUMBER.SUFFIX, as
 * chain/anchor/kind.h has it. */
#ifndef KEDGE_CHAIN_STATE_ANCHORS_H
#define KEDGE_CHAIN_STATE_ANCHORS_H

#include "chain/anchor/kind.h"
#include "common/base/diag.h"
#include "common/base/os/file.h"

enum { KEDGE_ANCHORS_MAX = 65536 }; /* of each kind: one an hour for seven years */

/* Numbers of the files of this kind, ascending; none when there is no such folder. *ret_numbers
 * is freed with kedge_mem_free. KEDGE_E_FULL: more than KEDGE_ANCHORS_MAX. */
KEDGE_NODISCARD int kedge_anchor_list(const char *state, const struct kedge_anchor_kind *kind,
                                      uint64_t **ret_numbers, size_t *ret_count, struct kedge_diag *reterr);

#endif
