/* Where a state folder keeps what anchors its main chain outside (chain/anchor), and which there are.
 *
 *   STATE/anchors/evm/SEQ.json             evidence of an anchor on an Ethereum-compatible chain
 *   STATE/anchors/tsa/SIZE.note SIZE.tsr   a signed checkpoint of so many entries, and the RFC 3161 reply
 * over its bytes; the note is written first, and is nothing without it */
#ifndef KEDGE_CHAIN_STATE_ANCHORS_H
#define KEDGE_CHAIN_STATE_ANCHORS_H

#include "common/base/diag.h"
#include "common/base/os/file.h"

enum { KEDGE_ANCHORS_MAX = 65536 }; /* of each kind: one an hour for seven years */

enum kedge_anchor_kind { KEDGE_ANCHOR_EVM, KEDGE_ANCHOR_TSA, KEDGE_ANCHOR_KINDS };

/* "anchors/evm/SEQ.json" or "anchors/tsa/SIZE.tsr": below the state folder. */
enum { KEDGE_ANCHOR_NAME_MAX = 48 };
void kedge_anchor_name(enum kedge_anchor_kind kind, uint64_t number, char out[KEDGE_ANCHOR_NAME_MAX]);
/* "anchors/tsa/SIZE.note" */
void kedge_anchor_note_name(uint64_t size, char out[KEDGE_ANCHOR_NAME_MAX]);

/* Numbers (SEQ or SIZE) of the files of this kind, ascending; none when there is no such folder. *ret_numbers
 * is freed with kedge_mem_free. KEDGE_E_FULL: more than KEDGE_ANCHORS_MAX. */
KEDGE_NODISCARD int kedge_anchor_list(const char *state, enum kedge_anchor_kind kind, uint64_t **ret_numbers,
                                      size_t *ret_count, struct kedge_diag *reterr);

#endif
