/* A tenant's ledger or the main chain: an append-only RFC 6962 Merkle log over a key-value store, with a
 * signed C2SP checkpoint per commit. Entries are opaque bytes here; who may append what is decided above.
 *
 * Guarantees: an append is one durable transaction, all or nothing; leaves are hashed again from the
 * store's own bytes before they enter the tree; a checkpoint is signed after its commit only, and never
 * below the high-water mark, a small file outside the data folder: a restored backup cannot make the log
 * fork itself.
 *
 * Threads: one writer at a time (append, flush, reopen, refresh; committer.h is that writer in the
 * daemon), any number of readers beside it. */
#ifndef KEDGE_CHAIN_STORE_LEDGER_H
#define KEDGE_CHAIN_STORE_LEDGER_H

#include "chain/log/merkle.h"
#include "chain/store/kv/kv.h"
#include "crypto/sign.h"

enum {
    KEDGE_IDEM_KEY_MAX = 200,
    KEDGE_ORIGIN_MAX = 255,
    KEDGE_APPEND_MAX = 256,      /* entries of one transaction */
    KEDGE_APPEND_REFS_MAX = 448, /* blobs that one entry references: a step seven of each group */
};

struct kedge_ledger;

struct kedge_ledger_options {
    const char *origin; /* origin and key name of the checkpoints; NULL: as stored (read-only use) */
    const struct kedge_key_pair *key; /* the log's signing key, borrowed until close; NULL: read-only */
    const char *high_water_path;      /* outside the store's folder; NULL: none (tests, read-only) */
    const struct kedge_public_key *public_key; /* read-only: the log's key as trusted; NULL: as stored */
    bool copy;             /* with create, origin and public_key: somebody else's log, see replica.h */
    bool create;           /* an empty store becomes a new ledger; else it is KEDGE_E_NOT_FOUND */
    bool adopt_high_water; /* operator's word that a missing high-water file is all right */
};

/* Opens over `kv`, which stays the caller's and must outlive the ledger. Checks schema, origin, key, that
 * the last tiles agree with the stored root and the last entries with the tiles, and the high-water mark;
 * writes the checkpoint of the stored size when a crash came before it. KEDGE_E_NOT_FOUND, KEDGE_E_STATE
 * (another origin or key), KEDGE_E_VERSION (of another program), KEDGE_E_CORRUPT (damage, or the ledger is
 * shorter than the high-water mark: an old backup), KEDGE_E_FORK (the mark has another root at its size). */
KEDGE_NODISCARD int kedge_ledger_open(struct kedge_kv *kv, const struct kedge_ledger_options *options,
                                      struct kedge_ledger **ret, struct kedge_diag *reterr);
/* Stores the newest checkpoint if need be. NULL is fine. */
void kedge_ledger_close(struct kedge_ledger *l);

/* ---- writing ---- */

struct kedge_ledger_append {
    struct kedge_view entry;       /* 1…KEDGE_ENTRY_MAX bytes */
    struct kedge_view idem_key;    /* ≤ KEDGE_IDEM_KEY_MAX; len 0: none */
    const struct kedge_hash *refs; /* blobs that the entry references */
    size_t ref_count;
};
struct kedge_ledger_appended {
    uint64_t index;
    bool existing; /* the idempotency key was there with the same entry: nothing was appended */
};
/* Items that stand or fall together. */
struct kedge_ledger_batch {
    const struct kedge_ledger_append *items;
    size_t count;
    struct kedge_ledger_appended *results; /* out, count of them, valid when err is KEDGE_OK */
    int err;         /* out: KEDGE_E_EXISTS: key in use for another entry; _TOO_LONG, _ARG */
    size_t bad_item; /* out: which item, when err is one of these */
};

/* Appends in order, in one durable transaction; returns when it is durable, signed and marked.
 * KEDGE_E_EXISTS: an idempotency key exists (in the ledger or earlier in `items`) with another entry;
 * nothing was appended. KEDGE_E_DISK_FULL: nothing was appended, may be tried again. KEDGE_E_IO: unknown
 * outcome; the ledger is failed until kedge_ledger_reopen. KEDGE_E_UNKNOWN: appended and durable, but the
 * checkpoint could not be signed or marked; the next append or flush does that. KEDGE_E_STATE: opened
 * without a key. ret_index and ret_existing hold `count` values each; either may be NULL. */
KEDGE_NODISCARD int kedge_ledger_append(struct kedge_ledger *l, const struct kedge_ledger_append *items,
                                        size_t count, uint64_t *ret_index, bool *ret_existing,
                                        struct kedge_diag *reterr);
/* Several batches in one transaction: a batch that cannot go in says so in its err and harms no other.
 * KEDGE_OK: all batches with err KEDGE_OK are durable. Otherwise none is, and each err is the returned
 * value. At most KEDGE_APPEND_MAX items together. */
KEDGE_NODISCARD int kedge_ledger_append_batches(struct kedge_ledger *l, struct kedge_ledger_batch *batches,
                                                size_t count, struct kedge_diag *reterr);
/* Stores the newest checkpoint if it is not stored yet. append leaves this to the next transaction, so
 * that a commit costs one flush; call it when idle. Ed25519 is deterministic: a crash in between loses
 * nothing. */
KEDGE_NODISCARD int kedge_ledger_flush(struct kedge_ledger *l, struct kedge_diag *reterr);
/* After KEDGE_E_IO: reopens the store and makes all checks of open again. Readers must be paused. */
KEDGE_NODISCARD int kedge_ledger_reopen(struct kedge_ledger *l, struct kedge_diag *reterr);
/* Read-only handles: moves on to what the writer has committed since. */
KEDGE_NODISCARD int kedge_ledger_refresh(struct kedge_ledger *l, struct kedge_diag *reterr);

/* ---- reading: any thread, beside the writer; never beyond the committed size ---- */

const char *kedge_ledger_origin(const struct kedge_ledger *l);
uint64_t kedge_ledger_size(struct kedge_ledger *l);
/* True for a copy of somebody else's log (replica.h): it has no idempotency keys and no references, and
 * entries may be withheld. */
bool kedge_ledger_is_copy(const struct kedge_ledger *l);
/* Appends the newest signed checkpoint to ret_note and tells its size (either may be NULL). A read-only
 * handle gives the newest stored one, whose size may be behind kedge_ledger_size. KEDGE_E_NOT_FOUND when
 * there is none. */
KEDGE_NODISCARD int kedge_ledger_checkpoint(struct kedge_ledger *l, struct kedge_buf *ret_note,
                                            uint64_t *ret_size);
/* Checkpoint that was stored for exactly that size; not every size has one. */
KEDGE_NODISCARD int kedge_ledger_checkpoint_at(struct kedge_ledger *l, uint64_t size,
                                               struct kedge_buf *ret_note);
/* Appends the entry's bytes to ret. KEDGE_E_NOT_FOUND beyond the end; KEDGE_E_WITHHELD when this copy has its
 * leaf hash only; KEDGE_E_CORRUPT when the bytes do not have the leaf hash that the tree has. */
KEDGE_NODISCARD int kedge_ledger_get(struct kedge_ledger *l, uint64_t index, struct kedge_buf *ret);
KEDGE_NODISCARD int kedge_ledger_leaf_hash(struct kedge_ledger *l, uint64_t index, struct kedge_hash *ret);
/* Root of the first `size` entries. */
KEDGE_NODISCARD int kedge_ledger_root(struct kedge_ledger *l, uint64_t size, struct kedge_hash *ret);
/* RFC 6962 §2.1.1 path of entry `index` in the tree of `size`; KEDGE_E_ARG unless index < size ≤ the
 * ledger's. */
KEDGE_NODISCARD int kedge_ledger_inclusion(struct kedge_ledger *l, uint64_t index, uint64_t size,
                                           struct kedge_path *ret_path);
/* RFC 6962 §2.1.2 proof that the tree of old_size is a prefix of the tree of size; KEDGE_E_ARG unless
 * 0 < old_size ≤ size ≤ the ledger's. */
KEDGE_NODISCARD int kedge_ledger_consistency(struct kedge_ledger *l, uint64_t old_size, uint64_t size,
                                             struct kedge_path *ret_path);
/* KEDGE_E_NOT_FOUND when the key was never used. */
KEDGE_NODISCARD int kedge_ledger_find(struct kedge_ledger *l, struct kedge_view idem_key,
                                      uint64_t *ret_index);
/* Idempotency keys with a prefix, in byte order. The view is valid during the call; non-zero stops. The
 * callback must not append. */
typedef int kedge_ledger_visit_key(void *arg, struct kedge_view key, uint64_t index);
KEDGE_NODISCARD int kedge_ledger_scan_keys(struct kedge_ledger *l, struct kedge_view prefix,
                                           kedge_ledger_visit_key *visit, void *arg);
/* The same without those that come before the key `from`. */
KEDGE_NODISCARD int kedge_ledger_scan_keys_from(struct kedge_ledger *l, struct kedge_view prefix,
                                                struct kedge_view from, kedge_ledger_visit_key *visit,
                                                void *arg);
/* Index of the first entry that references the blob, or KEDGE_E_NOT_FOUND. ret_index may be NULL. */
KEDGE_NODISCARD int kedge_ledger_find_ref(struct kedge_ledger *l, const struct kedge_hash *digest,
                                          uint64_t *ret_index);
/* Entries from `from` on, each checked against its leaf hash, withheld ones empty; the view is valid during
 * the call; non-zero stops. */
typedef int kedge_ledger_visit_entry(void *arg, uint64_t index, struct kedge_view entry);
KEDGE_NODISCARD int kedge_ledger_for_each(struct kedge_ledger *l, uint64_t from,
                                          kedge_ledger_visit_entry *visit, void *arg);

/* ---- checking ---- */

typedef void kedge_ledger_progress(void *arg, uint64_t done, uint64_t total);
/* Re-derives from the entries alone every leaf hash, tile, root and the stored state; checks that each
 * idempotency key and reference belongs to its entry and none is missing, and that each stored checkpoint
 * is of this log, has the root of its size and the signature of the log's key. KEDGE_E_CORRUPT names the
 * first damage: table and index. progress may be NULL. On untrusted files run it under
 * kedge_store_guarded. */
KEDGE_NODISCARD int kedge_ledger_check(struct kedge_ledger *l, kedge_ledger_progress *progress, void *arg,
                                       struct kedge_diag *reterr);
/* The same but the signatures of checkpoints, which the caller verifies himself. */
KEDGE_NODISCARD int kedge_ledger_check_unsigned(struct kedge_ledger *l, struct kedge_diag *reterr);
/* As kedge_ledger_check, but told of every damage that can be told apart: `what` is a short text, index what
 * the table counts (entries, tiles, checkpoints' sizes, records). KEDGE_OK when all was looked at, however
 * much was found.
 */
typedef void kedge_ledger_damage(void *arg, enum kedge_kv_table table, uint64_t index, const char *what);
KEDGE_NODISCARD int kedge_ledger_check_all(struct kedge_ledger *l, kedge_ledger_damage *damage,
                                           kedge_ledger_progress *progress, void *arg,
                                           struct kedge_diag *reterr);
/* The ledger against a high-water mark: KEDGE_OK when there is no such file, KEDGE_E_CORRUPT when the log is
 * shorter than what was signed, KEDGE_E_FORK when it has another root there, KEDGE_E_STATE when it is another
 * log's. */
KEDGE_NODISCARD int kedge_ledger_check_high_water(struct kedge_ledger *l, const char *path,
                                                  struct kedge_diag *reterr);
/* The size that a log's mark says was signed. KEDGE_E_NOT_FOUND, KEDGE_E_STATE (another log's),
 * KEDGE_E_CORRUPT. */
KEDGE_NODISCARD int kedge_high_water_size(const char *path, const char *origin, uint64_t *ret_size,
                                          struct kedge_diag *reterr);
/* Writes a mark of exactly the ledger's present size, for a copy of it that has none yet. */
KEDGE_NODISCARD int kedge_high_water_set(struct kedge_ledger *l, const char *path, struct kedge_diag *reterr);

#endif
