/* The ledger's inside, shared by its files only. Records, as table: key -> value:
 * - entry: be64 index -> the entry in its form (entry_form.h); none when withheld from a copy
 * - tile: level, be64 tile index -> up to 256 hashes (c2sp.org/tlog-tiles: hash i of tile n at level l is
 * the root of the 256^l leaves from (256 n + i) 256^l on; level 0: leaf hashes)
 * - head: be64 size -> signed checkpoint in its form (checkpoint_form.h)
 * - meta: "schema", "origin" -> text; "key" -> 32 bytes; "words" -> those of entry_form.h; "copy" -> "1" in a
 * copy only; "state" -> root, be64 counts of idem, ref and head records, frontier
 * - idem: idempotency key -> be64 index, 8 bytes of tag
 * - ref: blob digest -> be64 index, 8 bytes of tag
 *
 * The tag hashes key, index and leaf, so that a damaged record is noticed when it is read. */
#ifndef KEDGE_CHAIN_STORE_LEDGER_IMPL_H
#define KEDGE_CHAIN_STORE_LEDGER_IMPL_H

#include <pthread.h>

#include "chain/store/checkpoint_form.h"
#include "chain/store/entry_form.h"
#include "chain/store/ledger.h"
#include "common/base/os/file.h"

enum {
    KEDGEI_TILE_WIDTH = 256,
    KEDGEI_TILE_BYTES = KEDGEI_TILE_WIDTH * KEDGE_HASH_LEN,
    KEDGEI_TILE_LEVELS = 8, /* 256^8 leaves are more than 2^63 */
    KEDGEI_POINTER_LEN = 16,
};
#define KEDGEI_LEDGER_SCHEMA "kedge ledger 4"
#define KEDGEI_LEDGER_SCHEMA_PACKED \
    "kedge ledger 3" /* read and written; checkpoints and digests as they are */
#define KEDGEI_LEDGER_SCHEMA_AS_IS "kedge ledger 2"  /* read and written, all entries as they are */
#define KEDGEI_LEDGER_SCHEMA_BEFORE "kedge ledger 1" /* tenants' statements without a position */

/* What the "state" record holds. */
struct kedgei_state {
    struct kedge_frontier frontier;
    struct kedge_hash root;
    uint64_t idem_count, ref_count, head_count;
};

struct kedge_ledger {
    struct kedge_kv *kv;
    const struct kedge_key_pair *key; /* NULL: read-only */
    struct kedge_public_key public_key;
    char origin[KEDGE_ORIGIN_MAX + 1];
    char high_water_path[KEDGE_PATH_MAX]; /* empty: none */
    bool adopt_high_water;
    bool is_copy;
    enum kedge_entry_forms forms; /* what the schema lets in; SHORT: of checkpoints, too */
    pthread_mutex_t mutex;        /* guards what follows; only the writer changes it */
    struct kedgei_state state;    /* as committed */
    struct kedge_buf note;        /* newest checkpoint */
    uint64_t note_size;
    bool has_note, note_is_stored;
    bool mark_is_durable; /* the mark beside it, as it was found at open */
    int status;
};

/* be64 as a key. */
struct kedgei_key {
    uint8_t b[9];
    uint8_t len;
};
struct kedgei_key kedgei_key_index(uint64_t index);
struct kedgei_key kedgei_key_tile(unsigned level, uint64_t tile);
struct kedge_view kedgei_key_view(const struct kedgei_key *k);

/* ledger_read.c */
/* Puts the checkpoint of that size in the form of this ledger; counts it when there was none. */
KEDGE_NODISCARD int kedgei_head_put(const struct kedge_ledger *l, struct kedge_kv_tx *tx, uint64_t size,
                                    struct kedge_view note, uint64_t *io_count);
/* The entry's bytes, checked against the tree, none when it is withheld from a copy; valid as long as tx and
 * until room (of KEDGE_ENTRY_MAX) is used again. */
KEDGE_NODISCARD int kedgei_peek_entry(const struct kedge_ledger *l, struct kedge_kv_tx *tx, uint64_t index,
                                      struct kedge_buf *room, struct kedge_view *ret);

/* ledger_tree.c */
/* A kedge_subtree_fn over the tiles; arg is the transaction. */
int kedgei_tile_subtree(void *arg, unsigned level, uint64_t index, struct kedge_hash *ret);
/* Root of 2^depth hashes; overwrites them. */
void kedgei_fold(struct kedge_hash *hashes, unsigned depth, struct kedge_hash *ret);
/* Puts `count` new leaf hashes behind the `size` that the tiles hold, and what they complete above. */
KEDGE_NODISCARD int kedgei_tiles_append(struct kedge_kv_tx *tx, uint64_t size,
                                        const struct kedge_hash *leaves, size_t count);
/* Value of an idem or ref record. */
void kedgei_pointer_encode(struct kedge_view key, uint64_t index, const struct kedge_hash *leaf,
                           uint8_t out[KEDGEI_POINTER_LEN]);
/* Reads it and checks the tag against the tree below `size`; KEDGE_E_CORRUPT. */
KEDGE_NODISCARD int kedgei_pointer_check(struct kedge_kv_tx *tx, struct kedge_view key,
                                         struct kedge_view value, uint64_t size, uint64_t *ret_index);
KEDGE_NODISCARD int kedgei_state_read(struct kedge_kv_tx *tx, struct kedgei_state *ret);
KEDGE_NODISCARD int kedgei_state_write(struct kedge_kv_tx *tx, const struct kedgei_state *state);

/* ledger.c */
/* Signs the committed state after the high-water check, raises the mark, keeps the note. */
KEDGE_NODISCARD int kedgei_publish(struct kedge_ledger *l, struct kedge_diag *reterr);

/* A read-only handle of whatever is there, for kedge_ledger_check_all: only identity is checked, and the
 * origin and key, where not given, are the stored ones. Closed with kedge_ledger_close. */
KEDGE_NODISCARD int kedgei_ledger_open_unchecked(struct kedge_kv *kv, const char *origin,
                                                 const struct kedge_public_key *key,
                                                 struct kedge_ledger **ret, struct kedge_diag *reterr);

/* ledger_high_water.c */
struct kedgei_high_water {
    uint64_t size;
    struct kedge_hash root;
};
/* KEDGE_E_NOT_FOUND, KEDGE_E_STATE (another origin's), KEDGE_E_CORRUPT. */
KEDGE_NODISCARD int kedgei_high_water_read(const char *path, const char *origin,
                                           struct kedgei_high_water *ret, struct kedge_diag *reterr);
/* KEDGE_OK when a checkpoint of (size, root) may be signed beside the mark, which may be absent. */
KEDGE_NODISCARD int kedgei_high_water_allows(const char *path, const char *origin, uint64_t size,
                                             const struct kedge_hash *root, struct kedge_diag *reterr);
KEDGE_NODISCARD int kedgei_high_water_write(const char *path, const char *origin, uint64_t size,
                                            const struct kedge_hash *root, struct kedge_diag *reterr);

#endif
