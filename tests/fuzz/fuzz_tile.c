/* Tile paths and entry bundles: what is accepted comes out again as the same bytes. */
#include "chain/log/tile.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void try_path(struct kedge_view path)
{
    struct kedge_tile tile;
    if (kedge_tile_parse(path, &tile) != KEDGE_OK) {
        return;
    }
    char again[KEDGE_TILE_PATH_MAX];
    kedge_tile_path(&tile, again);
    KEDGE_ASSERT(kedge_view_eq(kedge_view_str(again), path));
    KEDGE_ASSERT(kedge_tile_width(tile.level, tile.index, 0) == 0);
    uint64_t size = tile.index; /* some tree: what it has never reaches beyond its leaves */
    if (tile.width > 0 && tile.width <= kedge_tile_width(tile.level, tile.index, size)) {
        uint64_t hashes = size >> (8 * tile.level);
        KEDGE_ASSERT(tile.index <= hashes / KEDGE_TILE_WIDTH);
        KEDGE_ASSERT(tile.index * KEDGE_TILE_WIDTH + tile.width <= hashes);
    }
}

/* The first byte is the number of records less one. */
static void try_bundle(struct kedge_view bytes)
{
    struct kedge_view entries[KEDGE_TILE_WIDTH];
    size_t count = (size_t)bytes.ptr[0] + 1;
    struct kedge_view bundle = kedge_view_of(bytes.ptr + 1, bytes.len - 1);
    if (kedge_bundle_decode(bundle, count, entries) != KEDGE_OK) {
        return;
    }
    struct kedge_buf again KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&again, bundle.len);
    for (size_t i = 0; i < count; i++) {
        kedge_bundle_put(&again, entries[i]);
    }
    KEDGE_ASSERT(again.err == KEDGE_OK && kedge_view_eq(kedge_buf_view(&again), bundle));
    KEDGE_ASSERT(count == KEDGE_TILE_WIDTH || kedge_bundle_decode(bundle, count + 1, entries) != KEDGE_OK);
    KEDGE_ASSERT(count == 1 || kedge_bundle_decode(bundle, count - 1, entries) != KEDGE_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    try_path(kedge_view_of(data, len));
    if (len > 0) {
        try_bundle(kedge_view_of(data, len));
    }
    return 0;
}
