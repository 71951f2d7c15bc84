/* Tiles and bundles out of the store. The store has no checksums, but the handle has the peaks of the
 * committed tree in memory: a full tile folds to one hash of the tile above it, the hashes of a partial
 * one to the peaks of its level. */
#include "chain/store/ledger_tiles.h"

#include <string.h>

#include "chain/store/ledger_impl.h"
#include "common/base/try.h"

/* What the reader may see and what vouches for it. */
struct sight {
    struct kedge_frontier frontier; /* committed */
    uint64_t signed_size;           /* of the newest checkpoint, ≤ frontier.size; 0: none */
};

/* Taken once and kept for the whole answer: checkpoint and tree must be of one moment, while the writer
 * goes on. Widths are bound by the signed size, because a reader can verify nothing beyond it and would
 * take the tile for a fork. */
static struct sight look(struct kedge_ledger *l)
{
    struct sight s;
    pthread_mutex_lock(&l->mutex);
    s.frontier = l->state.frontier;
    s.signed_size = l->has_note ? l->note_size : 0;
    pthread_mutex_unlock(&l->mutex);
    s.signed_size = s.signed_size < s.frontier.size ? s.signed_size : s.frontier.size;
    return s;
}

/* The peak that covers 2^height leaves; the tree has one when the bit of its size is set. */
static const struct kedge_hash *peak_of(const struct kedge_frontier *f, unsigned height)
{
    return &f->peaks[__builtin_popcountll(f->size >> (height + 1))];
}

/* The hashes of a partial tile against the peaks of its level; overwrites them. A partial tile of width w
 * is as many full subtrees as w has bits, the largest first, and each of them is a peak of the frontier.
 * So it is checked with at most 255 hashes and without a read. */
static bool partial_is_sound(const struct kedge_frontier *f, unsigned level, struct kedge_hash *hashes,
                             unsigned width)
{
    for (unsigned bit = 8; bit-- > 0;) {
        if (width >> bit & 1) {
            struct kedge_hash root;
            kedgei_fold(hashes, bit, &root);
            if (!kedge_hash_eq(&root, peak_of(f, 8 * level + bit))) {
                return false;
            }
            hashes += (size_t)1 << bit;
        }
    }
    return true;
}

/* A full tile against its hash in the tile above; overwrites the hashes. */
static int check_full(struct kedge_kv_tx *tx, unsigned level, uint64_t index, struct kedge_hash *hashes)
{
    struct kedge_hash root, expected;
    kedgei_fold(hashes, 8, &root);
    int err = kedgei_tile_subtree(tx, 8 * (level + 1), index, &expected);
    return err || kedge_hash_eq(&root, &expected) ? err : KEDGE_E_CORRUPT;
}

/* The tile's hashes as of the committed tree, checked; valid as long as tx. The caller has seen to it
 * that the tree has the tile. A tile may have grown since the frontier was taken; hashes only come
 * behind, so its beginning is what it was. */
static int peek_tile(struct kedge_kv_tx *tx, const struct kedge_frontier *f, unsigned level, uint64_t index,
                     struct kedge_view *ret)
{
    unsigned width = kedge_tile_width(level, index, f->size);
    struct kedgei_key key = kedgei_key_tile(level, index);
    struct kedge_view tile;
    int err = kedge_kv_peek(tx, KEDGE_KV_TILE, kedgei_key_view(&key), &tile);
    if (err) {
        return err == KEDGE_E_NOT_FOUND ? KEDGE_E_CORRUPT : err;
    }
    size_t len = (size_t)width * KEDGE_HASH_LEN; /* the stored one may have grown since */
    if (tile.len < len || tile.len > KEDGE_TILE_BYTES_MAX || tile.len % KEDGE_HASH_LEN) {
        return KEDGE_E_CORRUPT;
    }
    struct kedge_hash hashes[KEDGE_TILE_WIDTH];
    memcpy(hashes, tile.ptr, len);
    if (width == KEDGE_TILE_WIDTH) {
        err = check_full(tx, level, index, hashes);
    } else if (!partial_is_sound(f, level, hashes, width)) {
        err = KEDGE_E_CORRUPT;
    }
    if (!err) {
        *ret = kedge_view_of(tile.ptr, len);
    }
    return err;
}

/* Ends the transaction. Damage that a reader met is evidence from now on, whatever becomes of the reader.
 * The scrubber would otherwise empty the unused bytes of the file at its next orderly close, and with
 * them what tells how the damage came about. */
static int conclude(struct kedge_ledger *l, struct kedge_kv_tx *tx, int err)
{
    kedge_kv_abort(tx);
    if (err == KEDGE_E_CORRUPT) {
        kedge_kv_keep(l->kv);
    }
    return err;
}

static int append_bytes(struct kedge_buf *ret, struct kedge_view bytes)
{
    KEDGE_TRY(kedge_buf_reserve(ret, bytes.len));
    kedge_buf_put(ret, bytes.ptr, bytes.len);
    return KEDGE_OK;
}

int kedge_ledger_tile(struct kedge_ledger *l, unsigned level, uint64_t index, unsigned width,
                      struct kedge_buf *ret)
{
    struct sight s = look(l);
    if (width == 0 || width > kedge_tile_width(level, index, s.signed_size)) {
        return KEDGE_E_NOT_FOUND;
    }
    struct kedge_kv_tx *tx;
    KEDGE_TRY(kedge_kv_begin(l->kv, false, &tx, NULL));
    struct kedge_view tile;
    int err = peek_tile(tx, &s.frontier, level, index, &tile);
    if (!err) {
        err = append_bytes(ret, kedge_view_of(tile.ptr, (size_t)width * KEDGE_HASH_LEN));
    }
    return conclude(l, tx, err);
}

/* The tile is checked first and then each entry against its hash in it, so the bundle can be served
 * without trust in the store. What the reader may not see becomes an empty record, which no entry is: the
 * numbers of the others stay right and the reader sees that something is withheld. */
int kedge_ledger_bundle(struct kedge_ledger *l, uint64_t index, unsigned width,
                        kedge_ledger_may_read *may_read, void *arg, struct kedge_buf *ret)
{
    struct sight s = look(l);
    if (width == 0 || width > kedge_tile_width(0, index, s.signed_size)) {
        return KEDGE_E_NOT_FOUND;
    }
    struct kedge_kv_tx *tx;
    KEDGE_TRY(kedge_kv_begin(l->kv, false, &tx, NULL));
    size_t start = ret->len;
    struct kedge_view tile;
    struct kedge_buf room;
    kedge_buf_init(&room, KEDGE_ENTRY_MAX);
    int err = peek_tile(tx, &s.frontier, 0, index, &tile);
    for (unsigned i = 0; i < width && !err; i++) {
        uint64_t at = index * KEDGE_TILE_WIDTH + i;
        struct kedge_view entry;
        err = kedgei_peek_entry(l, tx, at, &room, &entry);
        if (!err) {
            bool shown = entry.len > 0 && (!may_read || may_read(arg, at, entry)); /* none in a copy */
            kedge_bundle_put(ret, shown ? entry : kedge_view_of(NULL, 0));
            err = ret->err;
        }
    }
    kedge_buf_deinit(&room);
    if (err) {
        ret->len = start; /* no half of a bundle */
    }
    return conclude(l, tx, err);
}

int kedge_ledger_resource(struct kedge_ledger *l, const struct kedge_tile *tile,
                          kedge_ledger_may_read *may_read, void *arg, struct kedge_buf *ret)
{
    if (tile->kind == KEDGE_TILE_ENTRIES) {
        return kedge_ledger_bundle(l, tile->index, tile->width, may_read, arg, ret);
    }
    return kedge_ledger_tile(l, tile->level, tile->index, tile->width, ret);
}

int kedge_ledger_vkey(const struct kedge_ledger *l, struct kedge_vkey *ret)
{
    return kedge_vkey_make(kedge_view_str(l->origin), KEDGE_KEY_ED25519, &l->public_key, ret);
}
