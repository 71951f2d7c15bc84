/* A blob in pieces from a source that is not trusted: how much there is, and that it ends, is bounded here;
 * what it is, is its digest's to say. */
#ifndef KEDGE_CHAIN_FOLLOW_FETCH_H
#define KEDGE_CHAIN_FOLLOW_FETCH_H

#include "chain/follow/blobs.h"
#include "chain/store/blob/blobs.h"

struct kedge_follow_pieces {
    /* The piece at `offset`, valid until the next call, and how many bytes there are in all. */
    int (*read)(void *arg, uint64_t offset, struct kedge_view *ret, uint64_t *ret_total,
                struct kedge_diag *reterr);
    bool (*is_stopped)(void *arg); /* somebody wants the program to end */
    void *arg;
    const char *name; /* for messages */
};

/* Fetches it as `reader`, going on where an earlier try was cut off. KEDGE_E_FORMAT: more than a blob of this
 * kind has, a total that changes, a piece that is empty or too long; KEDGE_E_CANCELLED: stopped, what came
 * stays for the next try; the errors of read and of uploads (chain/store/blob/blobs.h). */
KEDGE_NODISCARD int kedge_follow_fetch(const struct kedge_follow_pieces *source, struct kedge_blobs *blobs,
                                       const struct kedge_id *reader, const struct kedge_blob_wanted *wanted,
                                       uint64_t *ret_size, struct kedge_diag *reterr);

#endif
