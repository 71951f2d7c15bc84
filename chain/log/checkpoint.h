/* Checkpoints (c2sp.org/tlog-checkpoint v1.0.0): a log's origin, size and root as the text of a signed note.
 * Kedge writes no extension lines but reads and keeps them; its logs sign with a key named like the origin.
 * Pure. */
#ifndef KEDGE_CHAIN_LOG_CHECKPOINT_H
#define KEDGE_CHAIN_LOG_CHECKPOINT_H

#include "chain/log/merkle.h"
#include "chain/log/note.h"

enum { KEDGE_CHECKPOINT_MAX = 4096 }; /* bytes of a checkpoint note that Kedge itself writes and keeps */

struct kedge_checkpoint {
    struct kedge_view origin; /* not empty; borrowed */
    uint64_t size;            /* 0…2^63−1; 0 has the root of the empty string */
    struct kedge_hash root;
    struct kedge_view extensions; /* zero or more non-empty lines, each with its LF; borrowed */
};

/* Appends "origin LF size LF base64(root) LF". KEDGE_E_ARG: origin empty or with a control byte, size too
 * large. */
KEDGE_NODISCARD int kedge_checkpoint_format(struct kedge_view origin, uint64_t size,
                                            const struct kedge_hash *root, struct kedge_buf *ret_text);
/* Reads a note's text; KEDGE_E_FORMAT. */
KEDGE_NODISCARD int kedge_checkpoint_parse(struct kedge_view text, struct kedge_checkpoint *ret_checkpoint);
/* Appends the signed note; the key's name is the origin. Hazard: the caller must never let a log sign two
 * checkpoints that are not consistent. */
KEDGE_NODISCARD int kedge_checkpoint_sign(struct kedge_view origin, uint64_t size,
                                          const struct kedge_hash *root, const struct kedge_key_pair *pair,
                                          struct kedge_buf *ret_note);
/* Parses and verifies a signed checkpoint: at least one type-01 key of `known` signed it, no known key's
 * signature fails, and the origin is the expected one (any, when expected_origin.ptr is NULL). Errors of
 * kedge_note_parse and kedge_note_verify; KEDGE_E_VERIFY for another origin; KEDGE_E_ARG for more than
 * KEDGE_NOTE_SIGNATURES_MAX known keys. ret_verdicts: known_count elements, written only on success, or NULL.
 */
KEDGE_NODISCARD int kedge_checkpoint_open(struct kedge_view note, struct kedge_view expected_origin,
                                          const struct kedge_vkey *known, size_t known_count,
                                          struct kedge_checkpoint *ret_checkpoint,
                                          struct kedge_note_verdict *ret_verdicts);

#endif
