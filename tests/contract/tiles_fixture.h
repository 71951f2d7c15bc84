/* What the suites of tiles share: taking a tile or bundle that must be there, and a naive tree. */
#ifndef KEDGE_TESTS_CONTRACT_TILES_FIXTURE_H
#define KEDGE_TESTS_CONTRACT_TILES_FIXTURE_H

#include "chain/store/ledger_tiles.h"
#include "common/base/mem.h"
#include "tests/contract/ledger_fixture.h"

static inline void memory_fixture(struct fixture *f)
{
    fixture_init(f);
    f->kv = new_kv(f, 0);
    fixture_must_open(f, true);
}

static inline struct kedge_view take(struct kedge_ledger *l, struct kedge_tile tile, struct kedge_buf *b)
{
    kedge_buf_clear(b);
    int err = kedge_ledger_resource(l, &tile, NULL, NULL, b);
    char path[KEDGE_TILE_PATH_MAX];
    kedge_tile_path(&tile, path);
    ck_assert_msg(err == KEDGE_OK, "%s: %s", path, kedge_strerror(err));
    return kedge_buf_view(b);
}

static inline void check_absent(struct kedge_ledger *l, enum kedge_tile_kind kind, unsigned level,
                                uint64_t index, unsigned width)
{
    struct kedge_tile tile = {kind, (uint8_t)level, index, (uint16_t)width};
    struct kedge_buf b KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&b, KEDGE_BUNDLE_BYTES_MAX);
    ck_assert_msg(kedge_ledger_resource(l, &tile, NULL, NULL, &b) == KEDGE_E_NOT_FOUND, "%u/%llu.p/%u", level,
                  (unsigned long long)index, width);
    ck_assert(b.len == 0 && b.err == KEDGE_OK);
}

enum { NAIVE_LEVELS = 18, NAIVE_MAX = 65537 };

/* Every complete subtree: row j has the roots of 2^j leaves. */
struct naive {
    struct kedge_hash *rows[NAIVE_LEVELS];
};

static inline struct naive naive_new(size_t size)
{
    struct naive n;
    for (unsigned j = 0; j < NAIVE_LEVELS; j++) {
        n.rows[j] = kedge_mem_new((size >> j) + 1, sizeof *n.rows[j]);
        ck_assert_ptr_nonnull(n.rows[j]);
        for (size_t i = 0; i < size >> j; i++) {
            char text[32];
            if (j == 0) {
                kedge_merkle_leaf(entry_text(i, text), &n.rows[0][i]);
            } else {
                kedge_merkle_node(&n.rows[j - 1][2 * i], &n.rows[j - 1][2 * i + 1], &n.rows[j][i]);
            }
        }
    }
    return n;
}

static inline void naive_free(struct naive *n)
{
    for (unsigned j = 0; j < NAIVE_LEVELS; j++) {
        kedge_mem_free(n->rows[j]);
    }
}

static inline void check_bundle(struct kedge_ledger *l, uint64_t index, unsigned width, struct kedge_buf *b)
{
    struct kedge_tile tile = {KEDGE_TILE_ENTRIES, 0, index, (uint16_t)width};
    struct kedge_view entries[KEDGE_TILE_WIDTH];
    char text[32];
    ck_assert_int_eq(kedge_bundle_decode(take(l, tile, b), width, entries), KEDGE_OK);
    for (unsigned i = 0; i < width; i++) {
        ck_assert(kedge_view_eq(entries[i], entry_text(index * 256 + i, text)));
    }
}

#endif
