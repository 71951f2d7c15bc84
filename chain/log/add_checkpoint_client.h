/* The witness protocol's add-checkpoint call (c2sp.org/tlog-witness) as the side sees it that asks: what an
 * answer means, whoever gave it. chain/log/add_checkpoint.h makes requests. Pure. */
#ifndef KEDGE_CHAIN_LOG_ADD_CHECKPOINT_CLIENT_H
#define KEDGE_CHAIN_LOG_ADD_CHECKPOINT_CLIENT_H

#include "chain/log/add_checkpoint.h"

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
