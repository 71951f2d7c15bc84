/* A damaged ledger built anew from another copy of the same log, a replica or a backup, and from what is
 * intact here. What results is the log that was signed, or nothing: its root equals a checkpoint by the log's
 * key, and it is not shorter than the high-water mark and has the mark's root there. The damaged folder is
 * kept. */
#ifndef KEDGE_CHAIN_STORE_REPAIR_H
#define KEDGE_CHAIN_STORE_REPAIR_H

#include "chain/store/blob/blobs.h"
#include "chain/store/ledger.h"

/* What the index tables have of an entry: appends its idempotency key to ret_key (none: nothing) and writes
 * the blobs that it references, at most KEDGE_APPEND_REFS_MAX. An error ends the repair. */
typedef int kedge_repair_index(void *arg, struct kedge_view entry, struct kedge_buf *ret_key,
                               struct kedge_hash *ret_refs, size_t *ret_count);

struct kedge_repair {
    const char *dir; /* the log's folder, with ledger.lmdb in it, which may be damaged in any way or absent */
    const char *from; /* the other copy's */
    const char *origin;
    const struct kedge_key_pair *key; /* the log's */
    const char *mark;                 /* its high-water mark */
    bool mark_is_lost; /* the operator's word that no size beyond the copy's newest checkpoint was ever signed
                        */
    kedge_repair_index *index;
    void *index_arg;
    kedge_ledger_progress *progress; /* may be NULL */
    void *progress_arg;
};

struct kedge_repaired {
    uint64_t size;
    uint64_t from_here;         /* entries that the other copy did not have */
    char aside[KEDGE_PATH_MAX]; /* where the damaged store is now; empty: there was none */
};

/* Nobody else may use the log: it takes the store's lock, and the caller keeps the coordinator from starting.
 * Reads damaged files in children (guard.h): call it without threads. The swap is atomic; a crash at any
 * point leaves the damaged store or the new one. Refusals, which change nothing: KEDGE_E_LOCKED (in use);
 * KEDGE_E_NOT_FOUND (no copy there); KEDGE_E_STATE (it is of another log or key); KEDGE_E_CORRUPT (it is
 * damaged itself, or the mark is missing or damaged); KEDGE_E_SHORTER (it is older than the mark, and what is
 * missing is damaged here; or an entry is withheld there and damaged here); KEDGE_E_FORK. */
KEDGE_NODISCARD int kedge_repair_ledger(const struct kedge_repair *r, struct kedge_repaired *ret,
                                        struct kedge_diag *reterr);

struct kedge_repair_blobs {
    const char *dir, *from;       /* folders with blobs/ in them */
    struct kedge_view refs;       /* digests of blobs that must be here, 32 bytes each … */
    struct kedge_view also;       /* … and of such that belong here if they are there or here */
    const char *const *elsewhere; /* where blobs of `refs` may be instead */
    size_t elsewhere_count;
    const char *keys_dir, *from_keys_dir; /* of encrypted blobs; NULL: none */
    bool pack;                            /* small ones share files */
    bool encrypt; /* what `refs` names is encrypted when it comes: under a key of the same name as there, of
                     the name "repaired" when it is plain there */
};
struct kedge_repaired_blobs {
    uint64_t fine, brought, lost;
    struct kedge_hash first_lost;
};
/* Brings what is missing or damaged here from there, each by its digest. */
KEDGE_NODISCARD int kedge_repair_blobs(const struct kedge_repair_blobs *r, struct kedge_repaired_blobs *ret,
                                       struct kedge_diag *reterr);

#endif
