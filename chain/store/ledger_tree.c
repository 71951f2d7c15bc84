/* Tiles: the tree as it lies in the store, and the tagged pointers into it.
 *
 * A tile is 256 hashes of one level, as c2sp.org/tlog-tiles cuts the tree, so that what a web server
 * gives out is one record here. Levels between (of 2, 4 … 128 leaves) are folded when they are needed:
 * that costs up to 127 hashes and saves half of the table. */
#include <string.h>

#include "chain/store/ledger_impl.h"
#include "common/base/try.h"

struct kedgei_key kedgei_key_index(uint64_t index)
{
    struct kedgei_key k = {.len = 8};
    kedge_store_be64(k.b, index);
    return k;
}

struct kedgei_key kedgei_key_tile(unsigned level, uint64_t tile)
{
    struct kedgei_key k = {.len = 9};
    k.b[0] = (uint8_t)level;
    kedge_store_be64(k.b + 1, tile);
    return k;
}

struct kedge_view kedgei_key_view(const struct kedgei_key *k)
{
    return kedge_view_of(k->b, k->len);
}

/* In place, because a tile is 8 KiB and this is called for each of them. The order of the pairs is RFC
 * 6962's; depth 8 makes a full tile the one hash that stands for it a level above. */
void kedgei_fold(struct kedge_hash *hashes, unsigned depth, struct kedge_hash *ret)
{
    for (size_t count = (size_t)1 << depth; count > 1; count /= 2) {
        for (size_t i = 0; i < count / 2; i++) {
            kedge_merkle_node(&hashes[2 * i], &hashes[2 * i + 1], &hashes[i]);
        }
    }
    *ret = hashes[0];
}

/* The tile has to have all the leaves that are asked for. A tile that is missing or too short is damage:
 * callers ask only within the size that the state says. */
int kedgei_tile_subtree(void *arg, unsigned level, uint64_t index, struct kedge_hash *ret)
{
    struct kedge_kv_tx *tx = arg;
    unsigned depth = level % 8;
    uint64_t first = index << depth;
    size_t offset = (size_t)(first % KEDGEI_TILE_WIDTH), count = (size_t)1 << depth;
    struct kedgei_key key = kedgei_key_tile(level / 8, first / KEDGEI_TILE_WIDTH);
    struct kedge_view tile;
    int err = kedge_kv_peek(tx, KEDGE_KV_TILE, kedgei_key_view(&key), &tile);
    if (err) {
        return err == KEDGE_E_NOT_FOUND ? KEDGE_E_CORRUPT : err;
    }
    if (tile.len > KEDGEI_TILE_BYTES || tile.len % KEDGE_HASH_LEN
        || tile.len / KEDGE_HASH_LEN < offset + count) {
        return KEDGE_E_CORRUPT;
    }
    struct kedge_hash hashes[KEDGEI_TILE_WIDTH / 2];
    memcpy(hashes, tile.ptr + offset * KEDGE_HASH_LEN, count * KEDGE_HASH_LEN);
    kedgei_fold(hashes, depth, ret);
    return KEDGE_OK;
}

/* Adds hashes behind the `have` of one level; *next receives the roots of the tiles that became full. A
 * tile that is partly full is read, continued and written again under its key. Its length must be exactly
 * what the size says; a longer one would hide entries that the state does not count. */
static int append_level(struct kedge_kv_tx *tx, unsigned level, uint64_t have,
                        const struct kedge_hash *hashes, size_t count, struct kedge_hash *next,
                        size_t *ret_next)
{
    *ret_next = 0;
    while (count > 0) {
        struct kedge_hash tile[KEDGEI_TILE_WIDTH];
        size_t used = (size_t)(have % KEDGEI_TILE_WIDTH);
        struct kedgei_key key = kedgei_key_tile(level, have / KEDGEI_TILE_WIDTH);
        if (used > 0) {
            struct kedge_view old;
            int err = kedge_kv_peek(tx, KEDGE_KV_TILE, kedgei_key_view(&key), &old);
            if (err || old.len != used * KEDGE_HASH_LEN) {
                return err && err != KEDGE_E_NOT_FOUND ? err : KEDGE_E_CORRUPT;
            }
            memcpy(tile, old.ptr, old.len);
        }
        size_t take = KEDGEI_TILE_WIDTH - used < count ? KEDGEI_TILE_WIDTH - used : count;
        memcpy(tile + used, hashes, take * sizeof *tile);
        KEDGE_TRY(kedge_kv_put(tx, KEDGE_KV_TILE, kedgei_key_view(&key),
                               kedge_view_of(tile, (used + take) * sizeof *tile), KEDGE_KV_PUT));
        if (used + take == KEDGEI_TILE_WIDTH) {
            kedgei_fold(tile, 8, &next[(*ret_next)++]);
        }
        hashes += take;
        count -= take;
        have += take;
    }
    return KEDGE_OK;
}

/* Two arrays take turns: the hashes that one level completes are the input of the next. A batch completes
 * at most KEDGE_APPEND_MAX / 256 + 1 tiles a level, so the arrays are of fixed size. */
int kedgei_tiles_append(struct kedge_kv_tx *tx, uint64_t size, const struct kedge_hash *leaves, size_t count)
{
    KEDGE_ASSERT(count <= KEDGE_APPEND_MAX);
    struct kedge_hash rising[2][KEDGE_APPEND_MAX / KEDGEI_TILE_WIDTH + 1]; /* tiles that one batch can fill */
    const struct kedge_hash *hashes = leaves;
    for (unsigned level = 0; level < KEDGEI_TILE_LEVELS && count > 0; level++) {
        struct kedge_hash *next = rising[level % 2];
        size_t next_count;
        KEDGE_TRY(append_level(tx, level, size >> (8 * level), hashes, count, next, &next_count));
        hashes = next;
        count = next_count;
    }
    return KEDGE_OK;
}

/* Eight bytes of SHA-256 over index, leaf and key. A flipped bit in key or value then shows when the
 * record is used, without a checksum on LMDB's pages; the leaf is included so that a record does not
 * survive its entry being another one. It is no defence against a writer, who can compute it, too. */
void kedgei_pointer_encode(struct kedge_view key, uint64_t index, const struct kedge_hash *leaf,
                           uint8_t out[KEDGEI_POINTER_LEN])
{
    uint8_t head[8 + KEDGE_HASH_LEN];
    kedge_store_be64(head, index);
    memcpy(head + 8, leaf->b, KEDGE_HASH_LEN);
    struct kedge_hash tag;
    kedge_sha256_2(kedge_view_of(head, sizeof head), key, &tag);
    memcpy(out, head, 8);
    memcpy(out + 8, tag.b, 8);
}

int kedgei_pointer_check(struct kedge_kv_tx *tx, struct kedge_view key, struct kedge_view value,
                         uint64_t size, uint64_t *ret_index)
{
    if (value.len != KEDGEI_POINTER_LEN) {
        return KEDGE_E_CORRUPT;
    }
    uint64_t index = kedge_load_be64(value.ptr);
    if (index >= size) {
        return KEDGE_E_CORRUPT;
    }
    struct kedge_hash leaf;
    KEDGE_TRY(kedgei_tile_subtree(tx, 0, index, &leaf));
    uint8_t expected[KEDGEI_POINTER_LEN];
    kedgei_pointer_encode(key, index, &leaf, expected);
    if (!kedge_view_eq(value, kedge_view_of(expected, sizeof expected))) {
        return KEDGE_E_CORRUPT;
    }
    *ret_index = index;
    return KEDGE_OK;
}

/* ---- the state record ---- */

/* The frontier (at most 63 hashes) and the root say the same twice: a flipped bit in either is found
 * here, before an append or a signature builds on it. */
int kedgei_state_read(struct kedge_kv_tx *tx, struct kedgei_state *ret)
{
    struct kedge_view value;
    int err = kedge_kv_peek(tx, KEDGE_KV_META, kedge_view_str("state"), &value);
    if (err) {
        return err == KEDGE_E_NOT_FOUND ? KEDGE_E_CORRUPT : err;
    }
    struct kedge_reader r = kedge_reader_of(value);
    struct kedge_view root = kedge_read_bytes(&r, KEDGE_HASH_LEN);
    struct kedgei_state state;
    state.idem_count = kedge_read_u64(&r);
    state.ref_count = kedge_read_u64(&r);
    state.head_count = kedge_read_u64(&r);
    if (r.failed || kedge_frontier_decode(r.rest, &state.frontier)) {
        return KEDGE_E_CORRUPT;
    }
    kedge_frontier_root(&state.frontier, &state.root);
    if (!kedge_view_eq(root, kedge_view_of(state.root.b, KEDGE_HASH_LEN))) {
        return KEDGE_E_CORRUPT;
    }
    *ret = state;
    return KEDGE_OK;
}

int kedgei_state_write(struct kedge_kv_tx *tx, const struct kedgei_state *state)
{
    struct kedge_buf b;
    kedge_buf_init(&b, 4096);
    kedge_buf_put(&b, state->root.b, KEDGE_HASH_LEN);
    kedge_buf_put_u64(&b, state->idem_count);
    kedge_buf_put_u64(&b, state->ref_count);
    kedge_buf_put_u64(&b, state->head_count);
    kedge_frontier_encode(&state->frontier, &b);
    int err =
        b.err ? b.err
              : kedge_kv_put(tx, KEDGE_KV_META, kedge_view_str("state"), kedge_buf_view(&b), KEDGE_KV_PUT);
    kedge_buf_deinit(&b);
    return err;
}
