/* The hashes of a log as its source tells them: tiles, fetched when asked for and kept. Nothing of them is
 * true until a signed root says so. Inside of chain/follow. */
#ifndef KEDGE_CHAIN_FOLLOW_REMOTE_H
#define KEDGE_CHAIN_FOLLOW_REMOTE_H

#include "chain/follow/follow.h"
#include "chain/log/tile.h"

enum { KEDGEI_REMOTE_TILES = 24 }; /* kept: two right edges of eight levels, and the leaves in between */

struct kedgei_remote_tile {
    bool used;
    uint8_t level;
    uint64_t index;
    uint16_t width;
    struct kedge_hash hashes[KEDGE_TILE_WIDTH];
};

struct kedgei_remote {
    const struct kedge_follow_source *source;
    struct kedge_diag *reterr;
    const char *origin;
    uint64_t size; /* of the checkpoint that is followed: which tiles there are */
    uint32_t next; /* tile to be given up next */
    struct kedgei_remote_tile tiles[KEDGEI_REMOTE_TILES];
};

/* The tile's hashes, as many as the size gives it; valid until the next call. KEDGE_E_VERIFY: not of that
 * length. */
KEDGE_NODISCARD int kedgei_remote_tile(struct kedgei_remote *r, unsigned level, uint64_t index,
                                       const struct kedgei_remote_tile **ret);
/* A kedge_subtree_fn; arg is the struct kedgei_remote. */
int kedgei_remote_subtree(void *arg, unsigned level, uint64_t index, struct kedge_hash *ret);
/* Appends the bundle's bytes, at most `width` records. */
KEDGE_NODISCARD int kedgei_remote_bundle(struct kedgei_remote *r, uint64_t index, uint16_t width,
                                         struct kedge_buf *ret);

#endif
