/* Updates that their tenant had erased: a copy does not keep them either, and does not ask for them. */
#ifndef KEDGE_CHAIN_FOLLOW_ERASED_H
#define KEDGE_CHAIN_FOLLOW_ERASED_H

#include "chain/follow/blobs.h"
#include "chain/store/blobs.h"

struct kedge_follow_erased {
    struct kedge_hash *digests; /* owned, ascending; freed with kedge_mem_free */
    size_t count, cap;
};

/* Removes from `blobs` what erased statements of the tenant's own ledger, from entry `from` on, name; their
 * digests are put into *ret, which begins zeroed and is to be freed after an error, too. */
KEDGE_NODISCARD int kedge_follow_erase(struct kedge_ledger *copy, uint64_t from, struct kedge_blobs *blobs,
                                       struct kedge_follow_erased *ret, struct kedge_diag *reterr);
/* Whether this is not wanted: an update among them, or the erasure itself. */
bool kedge_follow_is_erased(const struct kedge_follow_erased *e, const struct kedge_blob_wanted *wanted);

#endif
