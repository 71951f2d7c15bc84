/* Tiles and entry bundles (c2sp.org/tlog-tiles v0.1.0): a log as immutable files of up to 256 hashes or
 * entries, their paths below the log's prefix, and which of them a tree has. Pure.
 *
 * Hash i of tile n at level l is the root of the 256^l leaves from (256 n + i) 256^l on; level 0: leaf
 * hashes. Bundle n has the entries whose leaf hashes are in tile n of level 0. */
#ifndef KEDGE_CHAIN_LOG_TILE_H
#define KEDGE_CHAIN_LOG_TILE_H

#include "chain/log/merkle.h"

enum {
    KEDGE_TILE_WIDTH = 256,
    KEDGE_TILE_BYTES_MAX = KEDGE_TILE_WIDTH * KEDGE_HASH_LEN,
    KEDGE_TILE_LEVEL_MAX = 63, /* highest that a path can name; a tree below 2^63 leaves has 0…7 */
    KEDGE_TILE_LEVELS = 8,     /* levels of a tree below 2^63 leaves */
    KEDGE_TILE_PATH_MAX = 64,  /* with its NUL */
    KEDGE_BUNDLE_BYTES_MAX = KEDGE_TILE_WIDTH * (2 + KEDGE_ENTRY_MAX),
};
#define KEDGE_TILE_INDEX_MAX KEDGE_TREE_SIZE_MAX

enum kedge_tile_kind {
    KEDGE_TILE_HASHES,
    KEDGE_TILE_ENTRIES, /* level is 0 */
};

/* One resource of a log. */
struct kedge_tile {
    enum kedge_tile_kind kind;
    uint8_t level;  /* 0…KEDGE_TILE_LEVEL_MAX */
    uint64_t index; /* 0…KEDGE_TILE_INDEX_MAX */
    uint16_t width; /* hashes or entries: 1…255 partial, 256 full */
};

/* ---- paths ---- */

/* "tile/L/N", "tile/L/N.p/W", "tile/entries/N" or "tile/entries/N.p/W", without a leading slash. The tile's
 * fields must be within their ranges. */
void kedge_tile_path(const struct kedge_tile *tile, char out[KEDGE_TILE_PATH_MAX]);
/* Accepts what kedge_tile_path writes and nothing else: KEDGE_E_FORMAT. Says nothing about which tiles a
 * tree has. */
KEDGE_NODISCARD int kedge_tile_parse(struct kedge_view path, struct kedge_tile *ret_tile);

/* ---- which tiles a tree of `size` leaves has ---- */

/* Tiles of 256 hashes at the level. */
uint64_t kedge_tile_full_count(unsigned level, uint64_t size);
/* Hashes of the partial tile after them, 0: there is none. */
uint16_t kedge_tile_partial_width(unsigned level, uint64_t size);
/* Hashes that tile `index` of the level has in the tree: 0 (no such tile) … 256. */
uint16_t kedge_tile_width(unsigned level, uint64_t index, uint64_t size);

/* ---- entry bundles ---- */

/* Appends one record: big-endian uint16 length, bytes. At most KEDGE_ENTRY_MAX bytes; an empty entry stands
 * for one that is withheld from the reader (Kedge's entries have at least one byte). */
void kedge_bundle_put(struct kedge_buf *out, struct kedge_view entry);
/* Takes exactly `count` records (1…256) and nothing after them; ret_entries holds `count` views into
 * `bytes`. KEDGE_E_FORMAT; KEDGE_E_ARG for another count. */
KEDGE_NODISCARD int kedge_bundle_decode(struct kedge_view bytes, size_t count,
                                        struct kedge_view *ret_entries);

#endif
