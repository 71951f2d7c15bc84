/* Which blobs a copy of a tenant's logs wants: what its statements and those of the main chain that it may
 * read name. Pure but for reading the copies. */
#ifndef KEDGE_CHAIN_FOLLOW_BLOBS_H
#define KEDGE_CHAIN_FOLLOW_BLOBS_H

#include "chain/store/ledger.h"
#include "common/base/text.h"

#define KEDGE_FOLLOW_MODEL_MAX ((uint64_t)16 << 30) /* bytes of a model or update: 4 G parameters */

enum kedge_blob_want {
    KEDGE_WANT_LIST,   /* input lists of the tenant, job specs: small, and what checking its inputs needs */
    KEDGE_WANT_MODEL,  /* models and directions, in the main chain's blobs */
    KEDGE_WANT_UPDATE, /* the tenant's updates */
    KEDGE_WANT_ERASED, /* none: the tenant had this update erased, it goes from a copy, too */
};

struct kedge_blob_wanted {
    enum kedge_blob_want want;
    bool of_tenant; /* in the tenant's blobs, not in the main chain's */
    struct kedge_hash digest;
    struct kedge_id job; /* of an update: the first that names it; else empty */
};
/* Bytes that a blob of this kind has at most, also if its source says more. */
uint64_t kedge_follow_blob_max(const struct kedge_blob_wanted *wanted);

typedef int kedge_follow_visit_blob(void *arg, const struct kedge_blob_wanted *wanted);

/* Visits what the entries of a copy from `from` on name; some more than once. `salted` is the tenant's name
 * in the main chain, NULL when the copy is of the tenant's own ledger. Non-zero of visit stops and is
 * returned. An erased update is told as wanted, too, for it stands before its erasure: chain/follow/erased.h.
 * Entries that are no statements are passed over: whether the log holds what it should is the
 * auditor's question. */
KEDGE_NODISCARD int kedge_follow_blobs(struct kedge_ledger *copy, uint64_t from,
                                       const struct kedge_hash *salted, kedge_follow_visit_blob *visit,
                                       void *arg);

#endif
