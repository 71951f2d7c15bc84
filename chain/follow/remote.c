/* Tiles and entry bundles of a log that is elsewhere, by the paths of C2SP tlog-tiles. Nothing is
 * believed here: whatever a tile says goes into a proof that is compared with the signed root, so only
 * sizes are checked. The last few tiles are kept in a ring, because a proof and the window that it is
 * about ask for the same ones; a tile that was returned stays valid until as many others have been
 * fetched as the ring holds. */
#include "chain/follow/remote.h"

#include <string.h>

#include "common/base/try.h"

/* The resource as the checkpoint's size names it, or the full tile that it has become since: a prefix of that
 * is the same. */
static int fetch(struct kedgei_remote *r, struct kedge_tile tile, struct kedge_buf *ret)
{
    char path[KEDGE_TILE_PATH_MAX];
    kedge_tile_path(&tile, path);
    int err = r->source->fetch(r->source->arg, path, ret, r->reterr);
    if (err == KEDGE_E_NOT_FOUND && tile.width < KEDGE_TILE_WIDTH) {
        kedge_buf_clear(ret);
        tile.width = KEDGE_TILE_WIDTH;
        kedge_tile_path(&tile, path);
        err = r->source->fetch(r->source->arg, path, ret, r->reterr);
    }
    return err ? kedge_diag_wrap(r->reterr, err, "log %s: %s", r->origin, path) : KEDGE_OK;
}

static struct kedgei_remote_tile *find(struct kedgei_remote *r, unsigned level, uint64_t index)
{
    for (uint32_t i = 0; i < KEDGEI_REMOTE_TILES; i++) {
        struct kedgei_remote_tile *t = &r->tiles[i];
        if (t->used && t->level == level && t->index == index) {
            return t;
        }
    }
    return NULL;
}

int kedgei_remote_tile(struct kedgei_remote *r, unsigned level, uint64_t index,
                       const struct kedgei_remote_tile **ret)
{
    struct kedgei_remote_tile *t = find(r, level, index);
    if (t) {
        *ret = t;
        return KEDGE_OK;
    }
    struct kedge_tile tile = {.kind = KEDGE_TILE_HASHES,
                              .level = (uint8_t)level,
                              .index = index,
                              .width = kedge_tile_width(level, index, r->size)};
    if (tile.width == 0) {
        return kedge_diag_set(r->reterr, KEDGE_E_VERIFY,
                              "log %s: a proof asks for a tile that it cannot have", r->origin);
    }
    struct kedge_buf bytes KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&bytes, KEDGE_TILE_BYTES_MAX);
    KEDGE_TRY(fetch(r, tile, &bytes));
    size_t len = (size_t)tile.width * KEDGE_HASH_LEN;
    if (bytes.len < len || (bytes.len != len && bytes.len != KEDGE_TILE_BYTES_MAX)) {
        return kedge_diag_set(r->reterr, KEDGE_E_VERIFY,
                              "log %s: tile %llu of level %u has %zu bytes, expected %zu", r->origin,
                              (unsigned long long)index, level, bytes.len, len);
    }
    t = &r->tiles[r->next];
    r->next = (r->next + 1) % KEDGEI_REMOTE_TILES;
    t->used = true;
    t->level = tile.level;
    t->index = index;
    t->width = tile.width;
    memcpy(t->hashes, bytes.ptr, len);
    *ret = t;
    return KEDGE_OK;
}

/* Tiles have the hashes of every eighth level only, 256 of them each. The hash of a subtree between two
 * such levels is computed from the up to 128 hashes of its tile that lie below it. */
int kedgei_remote_subtree(void *arg, unsigned level, uint64_t index, struct kedge_hash *ret)
{
    struct kedgei_remote *r = arg;
    unsigned depth = level % 8;
    uint64_t first = index << depth;
    size_t offset = (size_t)(first % KEDGE_TILE_WIDTH), count = (size_t)1 << depth;
    const struct kedgei_remote_tile *t;
    KEDGE_TRY(kedgei_remote_tile(r, level / 8, first / KEDGE_TILE_WIDTH, &t));
    if (t->width < offset + count) {
        return kedge_diag_set(r->reterr, KEDGE_E_VERIFY, "log %s: a proof asks for more than a tile has",
                              r->origin);
    }
    struct kedge_hash hashes[KEDGE_TILE_WIDTH / 2];
    memcpy(hashes, &t->hashes[offset], count * sizeof *hashes);
    for (size_t n = count; n > 1; n /= 2) {
        for (size_t i = 0; i < n / 2; i++) {
            kedge_merkle_node(&hashes[2 * i], &hashes[2 * i + 1], &hashes[i]);
        }
    }
    *ret = hashes[0];
    return KEDGE_OK;
}

int kedgei_remote_bundle(struct kedgei_remote *r, uint64_t index, uint16_t width, struct kedge_buf *ret)
{
    struct kedge_tile tile = {.kind = KEDGE_TILE_ENTRIES, .level = 0, .index = index, .width = width};
    return fetch(r, tile, ret);
}
