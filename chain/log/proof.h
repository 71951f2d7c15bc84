/* Receipts (c2sp.org/tlog-proof, draft): that an entry is in a log, as one text file: index, inclusion path
 * and the signed checkpoint. Checked offline with the entry and the log's vkey. Pure. */
#ifndef KEDGE_CHAIN_LOG_PROOF_H
#define KEDGE_CHAIN_LOG_PROOF_H

#include "chain/log/checkpoint.h"

enum { KEDGE_PROOF_TEXT_MAX = KEDGE_NOTE_MAX + 64 * 1024 }; /* bytes of a tlog-proof that is read */

struct kedge_proof {
    struct kedge_view
        extra; /* base64 of the optional "extra" line, never authenticated; ptr NULL when absent */
    uint64_t index;
    struct kedge_path path;
    struct kedge_view note; /* the checkpoint note, verbatim; borrowed */
};

/* Appends the text. One encoding: encode(decode(b)) == b. */
void kedge_proof_encode(const struct kedge_proof *proof, struct kedge_buf *out);
/* KEDGE_E_FORMAT, KEDGE_E_TOO_LONG. The note is only located; verification parses it. */
KEDGE_NODISCARD int kedge_proof_decode(struct kedge_view text, struct kedge_proof *ret_proof);
/* That the leaf is at proof->index of the log that the checkpoint describes, signed by a known log key for
 * the expected origin (any when its ptr is NULL). KEDGE_E_VERIFY or what kedge_checkpoint_open returns;
 * ret_checkpoint may be NULL. */
KEDGE_NODISCARD int kedge_proof_verify(const struct kedge_proof *proof, const struct kedge_hash *leaf,
                                       struct kedge_view expected_origin, const struct kedge_vkey *known,
                                       size_t known_count, struct kedge_checkpoint *ret_checkpoint);

#endif
