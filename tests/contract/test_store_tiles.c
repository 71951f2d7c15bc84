/* Tiles and bundles of ledgers: against published logs, and against hashes computed naively at the edges of
 * tiles. */
#include "common/base/rng.h"
#include "common/base/text.h"
#include "tests/contract/tiles_fixture.h"
#include "tests/unit/chain/vectors.h"

static void check_digest(struct kedge_view bytes, struct kedge_view hex)
{
    struct kedge_hash digest, expected = vector_hash(hex);
    kedge_sha256(bytes, &digest);
    ck_assert(kedge_hash_eq(&digest, &expected));
}

/* ---- published logs ---- */

/* transparency-dev/tessera:testdata/log: seed and origin as the vectors' keys.tsv has them. */
static const char *const tessera_entries[] = {"one",    "two",   "three",    "four",    "five",
                                              "six",    "seven", "eit",      "nain",    "ten",
                                              "ileven", "twelf", "threeten", "fourten", "fivten"};

static void open_tessera(struct fixture *f, int kind)
{
    struct kedge_seed seed;
    fixture_init(f);
    ck_assert_int_eq(
        kedge_hex_decode(kedge_view_str("eca663f499017d2365c27c7a7679158d43cfec1330bdb259290afbd0"
                                        "d21777a0"),
                         seed.b, sizeof seed.b),
        KEDGE_OK);
    kedge_key_from_seed(&seed, &f->key);
    f->kv = new_kv(f, kind);
    struct kedge_ledger_options options = {
        .origin = "example.com/log/testdata", .key = &f->key, .high_water_path = f->mark, .create = true};
    ck_assert_int_eq(kedge_ledger_open(f->kv, &options, &f->l, NULL), KEDGE_OK);
}

static void check_tessera_checkpoint(struct kedge_ledger *l, size_t size)
{
    char name[64];
    snprintf(name, sizeof name, "tessera/checkpoint.%zu", size);
    struct kedge_buf want KEDGE_CLEANUP(kedge_buf_deinit) = vector_file(name),
                          note KEDGE_CLEANUP(kedge_buf_deinit);
    uint64_t note_size;
    kedge_buf_init(&note, KEDGE_NOTE_MAX);
    ck_assert_int_eq(kedge_ledger_checkpoint(l, &note, &note_size), KEDGE_OK);
    ck_assert_uint_eq(note_size, size);
    ck_assert(kedge_view_eq(kedge_buf_view(&note), kedge_buf_view(&want)));
}

/* The first `width` records of a bundle. */
static size_t records_len(struct kedge_view bundle, size_t width)
{
    size_t at = 0;
    for (size_t i = 0; i < width; i++) {
        ck_assert_uint_le(at + 2, bundle.len);
        at += 2 + ((size_t)bundle.ptr[at] << 8 | bundle.ptr[at + 1]);
    }
    return at;
}

START_TEST(the_tessera_log_comes_out_byte_for_byte)
{
    if (!vectors_present()) {
        return;
    }
    struct fixture f;
    open_tessera(&f, _i);
    struct kedge_buf b KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&b, KEDGE_BUNDLE_BYTES_MAX);
    struct kedge_buf tile = vector_file("tessera/tile_0_000.p_15");
    struct kedge_buf bundle = vector_file("tessera/entries_000.p_15");
    for (uint16_t size = 0;; size++) {
        check_tessera_checkpoint(f.l, size);
        for (uint16_t width = 1; width <= size; width++) {
            struct kedge_view bytes = take(f.l, (struct kedge_tile){KEDGE_TILE_HASHES, 0, 0, width}, &b);
            ck_assert(kedge_view_eq(bytes, kedge_view_of(tile.ptr, 32u * width)));
            bytes = take(f.l, (struct kedge_tile){KEDGE_TILE_ENTRIES, 0, 0, width}, &b);
            size_t len = records_len(kedge_buf_view(&bundle), width);
            ck_assert(kedge_view_eq(bytes, kedge_view_of(bundle.ptr, len)));
        }
        check_absent(f.l, KEDGE_TILE_HASHES, 0, 0, size + 1u);
        check_absent(f.l, KEDGE_TILE_ENTRIES, 0, 0, size + 1u);
        if (size == 15) {
            break;
        }
        struct kedge_ledger_append entry = item(tessera_entries[size], NULL);
        ck_assert_int_eq(kedge_ledger_append(f.l, &entry, 1, NULL, NULL, NULL), KEDGE_OK);
    }
    kedge_buf_deinit(&tile);
    kedge_buf_deinit(&bundle);
    fixture_deinit(&f);
}
END_TEST

START_TEST(a_log_of_70000_entries_has_the_published_tiles)
{
    if (!vectors_present()) {
        return;
    }
    struct fixture f;
    memory_fixture(&f);
    ck_assert_int_eq(append_range(f.l, 0, 70000, KEDGE_APPEND_MAX, NULL), KEDGE_OK);
    struct kedge_buf b KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&b, KEDGE_BUNDLE_BYTES_MAX);
    struct vector_table t = vector_table_open("tiles/tiles_70000.tsv");
    size_t rows = 0;
    while (vector_table_next(&t)) {
        struct kedge_tile tile;
        ck_assert_int_eq(kedge_tile_parse(t.columns[0], &tile), KEDGE_OK);
        struct kedge_view bytes = take(f.l, tile, &b);
        ck_assert_uint_eq(bytes.len, vector_u64(t.columns[1]));
        check_digest(bytes, t.columns[2]);
        rows++;
    }
    vector_table_close(&t);
    ck_assert_uint_eq(rows, 9);
    check_absent(f.l, KEDGE_TILE_HASHES, 0, 273, 113);
    check_absent(f.l, KEDGE_TILE_HASHES, 0, 274, 1);
    check_absent(f.l, KEDGE_TILE_HASHES, 1, 1, 18);
    check_absent(f.l, KEDGE_TILE_HASHES, 2, 0, 2);
    check_absent(f.l, KEDGE_TILE_HASHES, 3, 0, 1);
    check_absent(f.l, KEDGE_TILE_HASHES, 63, 0, 1);
    check_absent(f.l, KEDGE_TILE_ENTRIES, 0, 273, 256);
    check_absent(f.l, KEDGE_TILE_ENTRIES, 0, KEDGE_TILE_INDEX_MAX, 1);
    check_absent(f.l, KEDGE_TILE_HASHES, 0, 0, 0);
    fixture_deinit(&f);
}
END_TEST

/* ---- against a naive tree ---- */

static void check_hashes(struct kedge_ledger *l, const struct naive *n, unsigned level, uint64_t index,
                         unsigned width, struct kedge_buf *b)
{
    struct kedge_tile tile = {KEDGE_TILE_HASHES, (uint8_t)level, index, (uint16_t)width};
    ck_assert(kedge_view_eq(take(l, tile, b),
                            kedge_view_of(n->rows[8 * level] + index * 256, width * sizeof **n->rows)));
}

/* All tiles of the ledger as it is, and that there are no more; the tiles at the edge in every width. */
static void check_all_tiles(struct kedge_ledger *l, const struct naive *n, struct kedge_buf *b)
{
    uint64_t size = kedge_ledger_size(l);
    unsigned level = 0;
    for (; size >> (8 * level) > 0; level++) {
        uint64_t full = (size >> (8 * level)) / 256;
        unsigned partial = (unsigned)((size >> (8 * level)) % 256);
        for (uint64_t i = 0; i < full; i++) {
            check_hashes(l, n, level, i, 256, b);
        }
        for (unsigned width = 1; width <= partial; width++) {
            check_hashes(l, n, level, full, width, b);
        }
        for (unsigned width = 1; width < 256 && full > 0; width += 51) { /* clients hold old checkpoints */
            check_hashes(l, n, level, full - 1, width, b);
        }
        check_absent(l, KEDGE_TILE_HASHES, level, full, partial + 1);
        check_absent(l, KEDGE_TILE_HASHES, level, full + 1, 1);
    }
    check_absent(l, KEDGE_TILE_HASHES, level, 0, 1);
    for (uint64_t i = size < 512 ? 0 : size / 256 - 1; i < size / 256; i++) {
        check_bundle(l, i, 256, b);
    }
    for (unsigned width = 1; width <= size % 256; width++) {
        check_bundle(l, size / 256, width, b);
    }
    check_absent(l, KEDGE_TILE_ENTRIES, 0, size / 256, (unsigned)(size % 256) + 1);
}

START_TEST(every_tile_is_the_naive_one_at_the_edges_of_tiles)
{
    static const uint64_t sizes[] = {1,   2,   3,    127,  128,  129,   255,   256,   257,  300,
                                     511, 512, 4095, 4096, 4097, 65279, 65535, 65536, 65537};
    struct fixture f;
    struct naive n = naive_new(NAIVE_MAX);
    struct kedge_buf b KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&b, KEDGE_BUNDLE_BYTES_MAX);
    memory_fixture(&f);
    check_all_tiles(f.l, &n, &b); /* of an empty log: none */
    uint64_t size = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        ck_assert_int_eq(append_range(f.l, size, sizes[i], KEDGE_APPEND_MAX, NULL), KEDGE_OK);
        size = sizes[i];
        check_all_tiles(f.l, &n, &b);
    }
    fixture_deinit(&f);
    naive_free(&n);
}
END_TEST

START_TEST(logs_grown_at_random_have_the_naive_tiles)
{
    struct naive n = naive_new(3000);
    struct kedge_buf b KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&b, KEDGE_BUNDLE_BYTES_MAX);
    struct kedge_rng rng;
    struct fixture f;
    kedge_rng_init(&rng, 20, KEDGE_RNG_TEST, (uint64_t)_i, 0);
    fixture_init(&f);
    f.kv = new_kv(&f, _i % 3);
    fixture_must_open(&f, true);
    uint64_t size = 0, end = 1 + kedge_rng_below(&rng, 2700);
    while (size < end) {
        uint64_t next = size + 1 + kedge_rng_below(&rng, KEDGE_APPEND_MAX);
        ck_assert_int_eq(append_range(f.l, size, next, 1 + kedge_rng_below(&rng, 256), NULL), KEDGE_OK);
        size = next;
    }
    check_all_tiles(f.l, &n, &b);
    naive_free(&n);
    fixture_deinit(&f);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("store tiles");
    TCase *t = tcase_create("contract");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, the_tessera_log_comes_out_byte_for_byte, 0, 3);
    tcase_add_test(t, a_log_of_70000_entries_has_the_published_tiles);
    tcase_add_test(t, every_tile_is_the_naive_one_at_the_edges_of_tiles);
    tcase_add_loop_test(t, logs_grown_at_random_have_the_naive_tiles, 0, 6);
    suite_add_tcase(s, t);
    SRunner *runner = srunner_create(s);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
