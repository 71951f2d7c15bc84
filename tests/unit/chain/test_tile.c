/* Tile paths, the tiles of a tree and entry bundles, against published tables and against damage. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chain/log/lines.h"
#include "chain/log/tile.h"
#include "tests/unit/chain/vectors.h"

static int parse(const char *path, struct kedge_tile *ret)
{
    return kedge_tile_parse(kedge_view_str(path), ret);
}

static void check_path(struct kedge_tile tile, const char *expected)
{
    char path[KEDGE_TILE_PATH_MAX];
    kedge_tile_path(&tile, path);
    ck_assert_str_eq(path, expected);
    struct kedge_tile again;
    ck_assert_msg(parse(path, &again) == KEDGE_OK, "%s", path);
    ck_assert(again.kind == tile.kind && again.level == tile.level && again.index == tile.index
              && again.width == tile.width);
}

START_TEST(paths_are_those_of_the_specification)
{
    /* Examples of c2sp.org/tlog-tiles, and the ends of each range. */
    static const struct {
        struct kedge_tile tile;
        const char *path;
    } cases[] = {
        {{KEDGE_TILE_HASHES, 0, 0, 256}, "tile/0/000"},
        {{KEDGE_TILE_HASHES, 0, 273, 112}, "tile/0/273.p/112"},
        {{KEDGE_TILE_HASHES, 1, 1, 17}, "tile/1/001.p/17"},
        {{KEDGE_TILE_HASHES, 2, 0, 1}, "tile/2/000.p/1"},
        {{KEDGE_TILE_HASHES, 63, 1234067, 255}, "tile/63/x001/x234/067.p/255"},
        {{KEDGE_TILE_ENTRIES, 0, 1234067, 256}, "tile/entries/x001/x234/067"},
        {{KEDGE_TILE_ENTRIES, 0, 1000, 1}, "tile/entries/x001/000.p/1"},
        {{KEDGE_TILE_ENTRIES, 0, KEDGE_TILE_INDEX_MAX, 255},
         "tile/entries/x009/x223/x372/x036/x854/x775/807.p/255"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        check_path(cases[i].tile, cases[i].path);
    }
}
END_TEST

START_TEST(other_spellings_are_refused_and_leave_the_result_alone)
{
    static const char *const bad[] = {
        "",
        "tile",
        "tile/",
        "tile/0",
        "tile/0/",
        "/tile/0/000",
        "tile/0/000/",
        "tile//000",
        "tile/00/000",
        "tile/01/000",
        "tile/64/000",
        "tile/-1/000",
        "tile/+1/000",
        "tile/0x1/000",
        "tile/entries",
        "tile/entries/",
        "tile/entries/0/000",
        "tile/Entries/000",
        "tile/data/000",
        "Tile/0/000",
        "tile/8/0/000",
        "tile/0/000.p",
        "tile/0/000.p/",
        "tile/0/000.p/0",
        "tile/0/000.p/256",
        "tile/0/000.p/01",
        "tile/0/000.p/1/",
        "tile/0/000.p/1 ",
        "tile/0/000.P/1",
        "tile/0/000.q/1",
        "tile/0/000p/1",
        "tile/0/x001",
        "tile/0/x000/001",
        "tile/0/x001/x000",
        "tile/0/001/000",
        "tile/0/0000",
        "tile/0/00",
        "tile/0/x009/x223/x372/x036/x854/x775/808",      /* 2^63 */
        "tile/0/x001/x000/x000/x000/x000/x000/x000/000", /* 10^21 */
        "tile/0/x999/x999/x999/x999/x999/x999/999",
        "tile/0/../000",
        "tile/0/%30%30%30",
        "checkpoint",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct kedge_tile tile;
        memset(&tile, 0x5a, sizeof tile);
        ck_assert_msg(parse(bad[i], &tile) == KEDGE_E_FORMAT, "%s", bad[i]);
        for (size_t b = 0; b < sizeof tile; b++) {
            ck_assert_uint_eq(((const uint8_t *)&tile)[b], 0x5a);
        }
    }
    ck_assert_int_eq(kedge_tile_parse(kedge_view_of("tile/0/000\0", 11), &(struct kedge_tile){0}),
                     KEDGE_E_FORMAT);
}
END_TEST

/* Every change of one byte either is refused or names another tile by its only spelling. */
START_TEST(no_two_paths_name_one_tile)
{
    static const char *const paths[] = {"tile/0/273.p/112", "tile/entries/x001/x234/067", "tile/63/x001/000"};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        char changed[KEDGE_TILE_PATH_MAX], again[KEDGE_TILE_PATH_MAX];
        size_t len = strlen(paths[i]);
        for (size_t at = 0; at < len; at++) {
            for (unsigned c = 0; c < 256; c++) {
                memcpy(changed, paths[i], len);
                changed[at] = (char)c;
                struct kedge_tile tile;
                if (kedge_tile_parse(kedge_view_of(changed, len), &tile) == KEDGE_OK) {
                    kedge_tile_path(&tile, again);
                    ck_assert(strlen(again) == len && memcmp(again, changed, len) == 0);
                }
            }
        }
    }
}
END_TEST

START_TEST(published_index_paths_hold_both_ways)
{
    if (!vectors_present()) {
        return;
    }
    size_t rows = 0;
    struct vector_table t = vector_table_open("tiles/index_paths.tsv");
    while (vector_table_next(&t)) {
        char index_path[64], path[96];
        struct kedge_tile tile = {KEDGE_TILE_HASHES, 5, vector_u64(t.columns[0]), 256};
        snprintf(path, sizeof path, "tile/5/%s", vector_str(t.columns[1], index_path, sizeof index_path));
        check_path(tile, path);
        rows++;
    }
    vector_table_close(&t);
    ck_assert_uint_eq(rows, 15);
    t = vector_table_open("tiles/index_paths_invalid.txt");
    for (rows = 0; vector_table_next(&t); rows++) {
        char index_path[64], path[96];
        snprintf(path, sizeof path, "tile/5/%s", vector_str(t.columns[0], index_path, sizeof index_path));
        struct kedge_tile tile;
        ck_assert_msg(parse(path, &tile) == KEDGE_E_FORMAT, "%s", path);
    }
    vector_table_close(&t);
    ck_assert_uint_eq(rows, 17);
}
END_TEST

START_TEST(published_widths_hold_and_the_levels_above_are_empty)
{
    if (!vectors_present()) {
        return;
    }
    struct vector_table t = vector_table_open("tiles/partial_widths.tsv");
    uint64_t last_size = 0;
    unsigned last_level = 0;
    size_t rows = 0;
    while (vector_table_next(&t)) {
        uint64_t size = vector_u64(t.columns[0]), full = vector_u64(t.columns[2]);
        unsigned level = (unsigned)vector_u64(t.columns[1]), partial = (unsigned)vector_u64(t.columns[3]);
        ck_assert_uint_eq(kedge_tile_full_count(level, size), full);
        ck_assert_uint_eq(kedge_tile_partial_width(level, size), partial);
        if (last_size != size && last_size != 0) {
            ck_assert_uint_eq(kedge_tile_width(last_level + 1, 0, last_size), 0);
        }
        last_size = size;
        last_level = level;
        rows++;
    }
    vector_table_close(&t);
    ck_assert_uint_eq(rows, 39);
}
END_TEST

static bool is_there(const struct kedge_tile *tile, uint64_t size)
{
    return tile->width > 0 && tile->width <= kedge_tile_width(tile->level, tile->index, size);
}

/* c2sp.org/tlog-tiles: 70,000 leaves are 273 full tiles and 112 hashes, one full tile and 17, and one. */
START_TEST(a_tree_has_the_tiles_up_to_its_edge)
{
    static const struct {
        struct kedge_tile tile;
        uint64_t size;
        bool exists;
    } cases[] = {
        {{KEDGE_TILE_HASHES, 0, 272, 256}, 70000, true},
        {{KEDGE_TILE_HASHES, 0, 273, 112}, 70000, true},
        {{KEDGE_TILE_ENTRIES, 0, 273, 112}, 70000, true},
        {{KEDGE_TILE_HASHES, 0, 273, 1}, 70000, true}, /* of an earlier checkpoint */
        {{KEDGE_TILE_HASHES, 0, 273, 113}, 70000, false},
        {{KEDGE_TILE_HASHES, 0, 273, 256}, 70000, false},
        {{KEDGE_TILE_HASHES, 0, 274, 1}, 70000, false},
        {{KEDGE_TILE_HASHES, 0, 0, 7}, 70000, true},
        {{KEDGE_TILE_HASHES, 1, 1, 17}, 70000, true},
        {{KEDGE_TILE_HASHES, 1, 1, 18}, 70000, false},
        {{KEDGE_TILE_HASHES, 2, 0, 1}, 70000, true},
        {{KEDGE_TILE_HASHES, 2, 0, 2}, 70000, false},
        {{KEDGE_TILE_HASHES, 3, 0, 1}, 70000, false},
        {{KEDGE_TILE_HASHES, 0, 0, 1}, 0, false},
        {{KEDGE_TILE_HASHES, 0, 0, 0}, 1, false},
        {{KEDGE_TILE_HASHES, 7, 0, 127}, KEDGE_TREE_SIZE_MAX, true},
        {{KEDGE_TILE_HASHES, 7, 0, 128}, KEDGE_TREE_SIZE_MAX, false},
        {{KEDGE_TILE_HASHES, 8, 0, 1}, KEDGE_TREE_SIZE_MAX, false},
        {{KEDGE_TILE_HASHES, 63, 0, 1}, KEDGE_TREE_SIZE_MAX, false},
        {{KEDGE_TILE_HASHES, 0, KEDGE_TILE_INDEX_MAX, 1}, KEDGE_TREE_SIZE_MAX, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ck_assert_msg(is_there(&cases[i].tile, cases[i].size) == cases[i].exists, "case %zu", i);
    }
}
END_TEST

START_TEST(bundles_take_their_exact_count)
{
    static const struct {
        const char *bytes;
        size_t len, count;
        int err;
    } cases[] = {
        {"\0\3one\0\3two", 10, 2, KEDGE_OK},
        {"\0\0\0\3two", 7, 2, KEDGE_OK}, /* the first is withheld */
        {"\0\3one\0\3two", 10, 1, KEDGE_E_FORMAT},
        {"\0\3one\0\3two", 10, 3, KEDGE_E_FORMAT},
        {"\0\3one\0\3tw", 9, 2, KEDGE_E_FORMAT},
        {"\0\3one\0", 6, 2, KEDGE_E_FORMAT},
        {"\3\0one", 5, 1, KEDGE_E_FORMAT},
        {"\0", 1, 1, KEDGE_E_FORMAT},
        {"", 0, 1, KEDGE_E_FORMAT},
        {"", 0, 0, KEDGE_E_ARG},
        {"\0\0", 2, 257, KEDGE_E_ARG},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct kedge_view entries[257];
        int err = kedge_bundle_decode(kedge_view_of(cases[i].bytes, cases[i].len), cases[i].count, entries);
        ck_assert_msg(err == cases[i].err, "case %zu", i);
        if (!err) {
            struct kedge_buf b KEDGE_CLEANUP(kedge_buf_deinit);
            kedge_buf_init(&b, 64);
            for (size_t k = 0; k < cases[i].count; k++) {
                kedge_bundle_put(&b, entries[k]);
            }
            ck_assert(kedge_view_eq(kedge_buf_view(&b), kedge_view_of(cases[i].bytes, cases[i].len)));
        }
    }
}
END_TEST

START_TEST(the_longest_bundle_fits_and_one_record_is_put_whole_or_not)
{
    static uint8_t entry[KEDGE_ENTRY_MAX];
    memset(entry, 0xe7, sizeof entry);
    struct kedge_buf b KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&b, KEDGE_BUNDLE_BYTES_MAX);
    for (size_t i = 0; i < KEDGE_TILE_WIDTH; i++) {
        kedge_bundle_put(&b, kedge_view_of(entry, sizeof entry));
    }
    ck_assert(b.err == KEDGE_OK && b.len == KEDGE_BUNDLE_BYTES_MAX);
    struct kedge_view entries[KEDGE_TILE_WIDTH];
    ck_assert_int_eq(kedge_bundle_decode(kedge_buf_view(&b), KEDGE_TILE_WIDTH, entries), KEDGE_OK);
    ck_assert(kedge_view_eq(entries[255], kedge_view_of(entry, sizeof entry)));
    kedge_bundle_put(&b, kedge_view_str("x"));
    ck_assert(b.err == KEDGE_E_TOO_LONG && b.len == KEDGE_BUNDLE_BYTES_MAX);
    struct kedge_buf small KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&small, 4);
    kedge_bundle_put(&small, kedge_view_str("one"));
    ck_assert(small.err == KEDGE_E_TOO_LONG && small.len == 0);
}
END_TEST

static void check_bundle_file(const char *name, size_t count, const char *first)
{
    struct kedge_buf bytes KEDGE_CLEANUP(kedge_buf_deinit) = vector_file(name);
    struct kedge_view entries[KEDGE_TILE_WIDTH];
    ck_assert_int_eq(kedge_bundle_decode(kedge_buf_view(&bytes), count, entries), KEDGE_OK);
    ck_assert(vector_is(entries[0], first));
    struct kedge_buf again KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&again, KEDGE_BUNDLE_BYTES_MAX);
    for (size_t i = 0; i < count; i++) {
        kedge_bundle_put(&again, entries[i]);
    }
    ck_assert(kedge_view_eq(kedge_buf_view(&again), kedge_buf_view(&bytes)));
    ck_assert_int_eq(kedge_bundle_decode(kedge_buf_view(&bytes), count - 1, entries), KEDGE_E_FORMAT);
    ck_assert_int_eq(kedge_bundle_decode(kedge_buf_view(&bytes), count + 1, entries), KEDGE_E_FORMAT);
}

START_TEST(published_bundles_come_out_again)
{
    if (!vectors_present()) {
        return;
    }
    check_bundle_file("tessera/entries_000.p_15", 15, "one");
    check_bundle_file("checkpoint/tenant_a_entries_000.p_8", 8, "");
}
END_TEST

/* Digests of the 8 reference leaves' tile and bundle (ledger reference, §7): the bundle's entries, the first
 * of them empty, hash to the tile, and the tile to the root that certificate-transparency publishes. */
START_TEST(the_reference_bundle_hashes_to_the_reference_tile)
{
    if (!vectors_present()) {
        return;
    }
    struct kedge_buf tile KEDGE_CLEANUP(kedge_buf_deinit) = vector_file("checkpoint/tenant_a_tile_0_000.p_8"),
                          bundle KEDGE_CLEANUP(kedge_buf_deinit) =
                              vector_file("checkpoint/tenant_a_entries_000.p_8");
    struct kedge_view entries[8];
    struct kedge_frontier f = {0};
    struct kedge_hash hash;
    ck_assert_uint_eq(tile.len, 8 * KEDGE_HASH_LEN);
    ck_assert_int_eq(kedge_bundle_decode(kedge_buf_view(&bundle), 8, entries), KEDGE_OK);
    for (size_t i = 0; i < 8; i++) {
        kedge_merkle_leaf(entries[i], &hash);
        ck_assert_mem_eq(hash.b, tile.ptr + i * KEDGE_HASH_LEN, KEDGE_HASH_LEN);
        ck_assert_int_eq(kedge_frontier_append(&f, &hash), KEDGE_OK);
    }
    char hex[KEDGE_HASH_HEX_LEN + 1];
    kedge_frontier_root(&f, &hash);
    kedge_hash_hex(&hash, hex);
    ck_assert_str_eq(hex, "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("tile");
    TCase *tc = tcase_create("tile");
    tcase_add_test(tc, paths_are_those_of_the_specification);
    tcase_add_test(tc, other_spellings_are_refused_and_leave_the_result_alone);
    tcase_add_test(tc, no_two_paths_name_one_tile);
    tcase_add_test(tc, published_index_paths_hold_both_ways);
    tcase_add_test(tc, published_widths_hold_and_the_levels_above_are_empty);
    tcase_add_test(tc, a_tree_has_the_tiles_up_to_its_edge);
    tcase_add_test(tc, bundles_take_their_exact_count);
    tcase_add_test(tc, the_longest_bundle_fits_and_one_record_is_put_whole_or_not);
    tcase_add_test(tc, published_bundles_come_out_again);
    tcase_add_test(tc, the_reference_bundle_hashes_to_the_reference_tile);
    suite_add_tcase(s, tc);
    SRunner *runner = srunner_create(s);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
