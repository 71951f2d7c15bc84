/* The witness protocol's add-checkpoint call (c2sp.org/tlog-witness v1.0.0) as the side sees it that asks:
 * its request, and what an answer means, no matter who gave it. No storage and no HTTP here. Pure. */
#ifndef KEDGE_CHAIN_LOG_ADD_CHECKPOINT_H
#define KEDGE_CHAIN_LOG_ADD_CHECKPOINT_H

#include "chain/log/checkpoint.h"
#include "chain/log/cosignature.h"

enum {
    KEDGE_ADD_CHECKPOINT_HASHES_MAX = 63, /* the protocol's */
    /* Bytes of a request: "old" line, proof lines, empty line, note. */
    KEDGE_ADD_CHECKPOINT_MAX = 24 + KEDGE_ADD_CHECKPOINT_HASHES_MAX * 45 + 1 + KEDGE_NOTE_MAX,
    KEDGE_ADD_CHECKPOINT_BODY_MAX = KEDGE_NOTE_MAX, /* bytes of an answer that a client reads */
};

/* Appends a request: the checkpoint note, and the consistency path from old_size to its size (empty when
 * old_size is 0 or the note's own size). KEDGE_E_ARG: too many hashes, size or note too large, note empty. */
KEDGE_NODISCARD int kedge_add_checkpoint_format(uint64_t old_size, const struct kedge_hash *path,
                                                size_t path_len, struct kedge_view note,
                                                struct kedge_buf *ret_request);

/* What was asked of whom. */
struct kedge_witness_asked {
    struct kedge_view note;           /* the checkpoint */
    uint64_t size, old_size;          /* its size, and that from which the proof led to it */
    const struct kedge_vkey *witness; /* type 04 */
};

enum kedge_witness_outcome {
    KEDGE_WITNESS_COSIGNED, /* with a signature that holds */
    KEDGE_WITNESS_AGAIN,    /* it has cosigned `size` entries: to be asked again with a proof from there */
    KEDGE_WITNESS_AHEAD,    /* it has cosigned `size` entries, more than the checkpoint has */
    KEDGE_WITNESS_REFUSED,  /* it does not cosign, or its answer is none */
};

struct kedge_witness_answer {
    enum kedge_witness_outcome outcome;
    uint64_t size;
    const char *reason; /* static text for people; "" when cosigned */
};

/* Judges an answer. When cosigned, the note with the witness's line is appended to ret_note, else nothing.
 * KEDGE_E_NOMEM, KEDGE_E_TOO_LONG (the note would have too many lines), KEDGE_E_ARG. */
KEDGE_NODISCARD int kedge_add_checkpoint_judge(const struct kedge_witness_asked *asked, unsigned status,
                                               struct kedge_view body, struct kedge_buf *ret_note,
                                               struct kedge_witness_answer *ret);

#endif
