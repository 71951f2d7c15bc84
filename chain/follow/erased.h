/* Updates that their tenant had erased: a copy does not keep them either, and does not ask for them. The
 * coordinator, which holds the log's key, can append what it likes to a tenant's ledger; so an erasure counts
 * only when an admin key in force at its entry signed it, the first of these keys being known from elsewhere,
 * and when the entry that it names is an update of that file. */
#ifndef KEDGE_CHAIN_FOLLOW_ERASED_H
#define KEDGE_CHAIN_FOLLOW_ERASED_H

#include "chain/follow/blobs.h"
#include "chain/statement/keybook.h"
#include "chain/store/blob/blobs.h"

/* An erasure that an admin signed; whether it names an update is still to be seen. */
struct kedge_follow_claim {
    struct kedge_hash digest;
    uint64_t index, entry;
};

struct kedge_follow_erased {
    struct kedge_public_key admin_key; /* the one that is trusted as entry 0 */
    struct kedge_keybook book;         /* after entry next - 1 */
    uint64_t next;                     /* entry to look at next */
    struct kedge_hash *digests;        /* erased, ascending */
    size_t count, cap;
    struct kedge_follow_claim *claims; /* of them, `settled` are carried out or refused */
    size_t claim_count, claim_cap, settled;
    uint64_t refused;         /* erasures that count for nothing */
    uint64_t refused_at;      /* the last one's entry, */
    struct kedge_diag reason; /* and why */
};

/* deinit afterwards. */
void kedge_follow_erased_init(struct kedge_follow_erased *e, const struct kedge_id *tenant,
                              const struct kedge_public_key *admin_key);
void kedge_follow_erased_deinit(struct kedge_follow_erased *e);

/* Reads what the copy of the tenant's own ledger has grown by since the last call, and removes from `blobs`
 * what was erased with it; keys of `blobs` under which nothing is left then are destroyed. After an error the
 * next call goes on where this one stopped. */
KEDGE_NODISCARD int kedge_follow_erase(struct kedge_follow_erased *e, struct kedge_ledger *copy,
                                       struct kedge_blobs *blobs, struct kedge_diag *reterr);
/* Whether this is not wanted: an update among them, or the erasure itself. */
bool kedge_follow_is_erased(const struct kedge_follow_erased *e, const struct kedge_blob_wanted *wanted);

#endif
