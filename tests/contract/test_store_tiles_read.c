/* Tiles and bundles as readers get them: what is not theirs to see, damage beneath, a writer beside. */
#include <pthread.h>
#include <stdatomic.h>

#include "chain/store/replica.h"
#include "common/base/os/clock.h"
#include "tests/contract/tiles_fixture.h"
#include "tests/fixtures/kv.h"

/* ---- who may see what ---- */

START_TEST(nothing_goes_out_beyond_the_newest_checkpoint)
{
    struct fixture f;
    memory_fixture(&f);
    ck_assert_int_eq(append_range(f.l, 0, 20, 10, NULL), KEDGE_OK);
    struct kedge_ledger
        *reader; /* has the stored checkpoints only: the newest is stored by the next commit */
    struct kedge_ledger_options options = {.origin = ORIGIN};
    ck_assert_int_eq(kedge_ledger_open(f.kv, &options, &reader, NULL), KEDGE_OK);
    ck_assert_uint_eq(kedge_ledger_size(reader), 20);
    struct kedge_buf b KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&b, KEDGE_BUNDLE_BYTES_MAX);
    ck_assert_uint_eq(take(reader, (struct kedge_tile){KEDGE_TILE_HASHES, 0, 0, 10}, &b).len, 320);
    check_absent(reader, KEDGE_TILE_HASHES, 0, 0, 11);
    check_absent(reader, KEDGE_TILE_ENTRIES, 0, 0, 11);
    check_bundle(reader, 0, 10, &b);
    check_bundle(f.l, 0, 20, &b);
    ck_assert_int_eq(append_range(f.l, 20, 30, 10, NULL), KEDGE_OK);
    check_absent(reader, KEDGE_TILE_HASHES, 0, 0, 11); /* not before it looks again */
    check_bundle(reader, 0, 10, &b);
    ck_assert_int_eq(kedge_ledger_refresh(reader, NULL), KEDGE_OK);
    check_bundle(reader, 0, 20, &b);
    check_absent(reader, KEDGE_TILE_ENTRIES, 0, 0, 21);
    kedge_ledger_close(reader);
    fixture_deinit(&f);
}
END_TEST

static bool every_third(void *arg, uint64_t index, struct kedge_view entry)
{
    char text[32];
    uint64_t *asked = arg;
    ck_assert(kedge_view_eq(entry, entry_text(index, text)));
    ++*asked;
    return index % 3 == 0;
}

START_TEST(withheld_entries_are_empty_records)
{
    struct fixture f;
    memory_fixture(&f);
    ck_assert_int_eq(append_range(f.l, 0, 300, 100, NULL), KEDGE_OK);
    struct kedge_buf b KEDGE_CLEANUP(kedge_buf_deinit);
    struct kedge_view entries[44];
    uint64_t asked = 0;
    char text[32];
    kedge_buf_init(&b, KEDGE_BUNDLE_BYTES_MAX);
    ck_assert_int_eq(kedge_ledger_bundle(f.l, 1, 44, every_third, &asked, &b), KEDGE_OK);
    ck_assert_uint_eq(asked, 44);
    ck_assert_int_eq(kedge_bundle_decode(kedge_buf_view(&b), 44, entries), KEDGE_OK);
    for (uint64_t i = 0; i < 44; i++) {
        struct kedge_view expected = entry_text(256 + i, text);
        ck_assert(kedge_view_eq(entries[i], (256 + i) % 3 ? kedge_view_of(NULL, 0) : expected));
    }
    size_t len = b.len; /* what is there stays when no more fits */
    b.max = b.len + 100;
    ck_assert_int_eq(kedge_ledger_bundle(f.l, 0, 256, NULL, NULL, &b), KEDGE_E_TOO_LONG);
    ck_assert_uint_eq(b.len, len);
    kedge_buf_clear(&b);
    b.max = 31;
    ck_assert_int_eq(kedge_ledger_tile(f.l, 0, 0, 1, &b), KEDGE_E_TOO_LONG);
    ck_assert_uint_eq(b.len, 0);
    fixture_deinit(&f);
}
END_TEST

/* A copy that holds odd entries only serves the same tiles, and the others as withheld. */
START_TEST(a_copy_serves_what_it_has)
{
    struct fixture f;
    memory_fixture(&f);
    ck_assert_int_eq(append_range(f.l, 0, 200, 200, NULL), KEDGE_OK);
    struct kedge_kv *kv;
    struct kedge_ledger *copy;
    ck_assert_int_eq(kedge_kv_memory_new(&kv), KEDGE_OK);
    ck_assert_int_eq(kedge_replica_open(kv, ORIGIN, &f.key.public, true, &copy, NULL), KEDGE_OK);
    struct kedge_replica_entry items[200];
    char texts[200][32];
    for (uint64_t i = 0; i < 200; i++) {
        items[i].entry = i % 2 ? entry_text(i, texts[i]) : kedge_view_of(NULL, 0);
        ck_assert_int_eq(kedge_ledger_leaf_hash(f.l, i, &items[i].leaf), KEDGE_OK);
    }
    struct kedge_buf note KEDGE_CLEANUP(kedge_buf_deinit), a KEDGE_CLEANUP(kedge_buf_deinit),
        b KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&note, KEDGE_NOTE_MAX);
    kedge_buf_init(&a, KEDGE_BUNDLE_BYTES_MAX);
    kedge_buf_init(&b, KEDGE_BUNDLE_BYTES_MAX);
    ck_assert_int_eq(kedge_ledger_checkpoint(f.l, &note, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_replica_extend(copy, items, 200, kedge_buf_view(&note), NULL), KEDGE_OK);
    struct kedge_tile tile = {KEDGE_TILE_HASHES, 0, 0, 200};
    ck_assert(kedge_view_eq(take(f.l, tile, &a), take(copy, tile, &b)));
    uint64_t asked = 0;
    struct kedge_view entries[200];
    kedge_buf_clear(&b);
    ck_assert_int_eq(kedge_ledger_bundle(copy, 0, 200, every_third, &asked, &b), KEDGE_OK);
    ck_assert_uint_eq(asked, 100); /* what is not there is not asked about */
    ck_assert_int_eq(kedge_bundle_decode(kedge_buf_view(&b), 200, entries), KEDGE_OK);
    for (uint64_t i = 0; i < 200; i++) {
        ck_assert_uint_eq(entries[i].len, i % 6 == 3 ? items[i].entry.len : 0);
    }
    kedge_ledger_close(copy);
    kedge_kv_close(kv);
    fixture_deinit(&f);
}
END_TEST

/* ---- damage ---- */

/* Replaces a stored value by itself with one bit changed; changes it back the second time. */
static void flip(struct kedge_kv *kv, enum kedge_kv_table table, const uint8_t *key, size_t key_len,
                 size_t at, unsigned bit)
{
    struct kedge_kv_tx *tx;
    struct kedge_buf value KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&value, KEDGE_KV_VALUE_MAX);
    ck_assert_int_eq(kedge_kv_begin(kv, true, &tx, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_kv_get(tx, table, kedge_view_of(key, key_len), &value), KEDGE_OK);
    ck_assert_uint_lt(at, value.len);
    value.ptr[at] ^= (uint8_t)(1u << bit);
    ck_assert_int_eq(
        kedge_kv_put(tx, table, kedge_view_of(key, key_len), kedge_buf_view(&value), KEDGE_KV_PUT), KEDGE_OK);
    ck_assert_int_eq(kedge_kv_commit(tx, NULL), KEDGE_OK);
}

static int try_take(struct kedge_ledger *l, struct kedge_tile tile)
{
    struct kedge_buf b KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&b, KEDGE_BUNDLE_BYTES_MAX);
    int err = kedge_ledger_resource(l, &tile, NULL, NULL, &b);
    ck_assert(!err || b.len == 0);
    return err;
}

START_TEST(a_damaged_tile_is_never_given_out)
{
    static const struct {
        uint8_t key[9];
        struct kedge_tile tile;
    } cases[] = {
        {{0}, {KEDGE_TILE_HASHES, 0, 0, 256}},                        /* full: by its parent */
        {{0}, {KEDGE_TILE_HASHES, 0, 0, 3}},                          /* the same, in part */
        {{0}, {KEDGE_TILE_ENTRIES, 0, 0, 256}},                       /* entries by their tile */
        {{0, 0, 0, 0, 0, 0, 0, 0, 2}, {KEDGE_TILE_HASHES, 0, 2, 99}}, /* at the edge: by the peaks */
        {{0, 0, 0, 0, 0, 0, 0, 0, 2}, {KEDGE_TILE_HASHES, 0, 2, 1}},  /* an earlier edge */
        {{1}, {KEDGE_TILE_HASHES, 1, 0, 2}},                          /* above */
    };
    struct fixture f;
    memory_fixture(&f);
    ck_assert_int_eq(append_range(f.l, 0, 611, 100, NULL), KEDGE_OK);
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        unsigned stored = kedge_tile_width(cases[c].key[0], cases[c].tile.index, 611);
        for (size_t at = 0; at < stored * 32u; at += 5) {
            unsigned bit = (unsigned)(at % 8);
            flip(f.kv, KEDGE_KV_TILE, cases[c].key, 9, at, bit);
            ck_assert_msg(try_take(f.l, cases[c].tile) == KEDGE_E_CORRUPT, "case %zu, byte %zu", c, at);
            flip(f.kv, KEDGE_KV_TILE, cases[c].key, 9, at, bit);
        }
        ck_assert_int_eq(try_take(f.l, cases[c].tile), KEDGE_OK);
    }
    fixture_deinit(&f);
}
END_TEST

START_TEST(a_damaged_entry_spoils_its_bundle_and_no_other)
{
    struct fixture f;
    memory_fixture(&f);
    ck_assert_int_eq(append_range(f.l, 0, 300, 100, NULL), KEDGE_OK);
    const uint8_t key[8] = {0, 0, 0, 0, 0, 0, 0, 77};
    for (size_t at = 0; at < strlen("entry-77"); at++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            flip(f.kv, KEDGE_KV_ENTRY, key, 8, at, bit);
            ck_assert_int_eq(try_take(f.l, (struct kedge_tile){KEDGE_TILE_ENTRIES, 0, 0, 256}),
                             KEDGE_E_CORRUPT);
            ck_assert_int_eq(try_take(f.l, (struct kedge_tile){KEDGE_TILE_ENTRIES, 0, 0, 77}), KEDGE_OK);
            ck_assert_int_eq(try_take(f.l, (struct kedge_tile){KEDGE_TILE_ENTRIES, 0, 1, 44}), KEDGE_OK);
            flip(f.kv, KEDGE_KV_ENTRY, key, 8, at, bit);
        }
    }
    ck_assert_int_eq(try_take(f.l, (struct kedge_tile){KEDGE_TILE_ENTRIES, 0, 0, 256}), KEDGE_OK);
    fixture_deinit(&f);
}
END_TEST

/* ---- beside the writer ---- */

struct reading {
    struct kedge_ledger *l;
    const struct naive *naive;
    atomic_bool stop;
    atomic_int failures, tiles;
};

static void *read_the_edge(void *arg)
{
    struct reading *r = arg;
    struct kedge_buf b KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&b, KEDGE_BUNDLE_BYTES_MAX);
    while (!atomic_load(&r->stop)) {
        uint64_t size;
        if (kedge_ledger_checkpoint(r->l, NULL, &size) || size == 0) {
            continue;
        }
        uint64_t index = (size - 1) / 256;
        unsigned width = (unsigned)((size - 1) % 256 + 1);
        kedge_buf_clear(&b);
        bool bad = kedge_ledger_tile(r->l, 0, index, width, &b) != KEDGE_OK
                   || memcmp(b.ptr, r->naive->rows[0] + index * 256, width * sizeof **r->naive->rows) != 0;
        kedge_buf_clear(&b);
        bad = bad || kedge_ledger_bundle(r->l, index, width, NULL, NULL, &b) != KEDGE_OK;
        atomic_fetch_add(&r->failures, bad);
        atomic_fetch_add(&r->tiles, 1);
    }
    return NULL;
}

START_TEST(readers_find_the_tiles_of_every_checkpoint_while_the_log_grows)
{
    struct naive n = naive_new(1500);
    struct fixture f;
    fixture_init(&f);
    f.kv = new_kv(&f, _i);
    fixture_must_open(&f, true);
    struct reading r = {.l = f.l, .naive = &n};
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, read_the_edge, &r), 0);
    uint64_t size = 0;
    while (size < 1000 || (size < 1500 && atomic_load(&r.tiles) < 20)) {
        ck_assert_int_eq(append_range(f.l, size, size + 5, 5, NULL), KEDGE_OK);
        size += 5;
    }
    for (int i = 0; i < 20000 && atomic_load(&r.tiles) == 0; i++) { /* where its turn comes late */
        kedge_os_sleep_ms(1);
    }
    atomic_store(&r.stop, true);
    pthread_join(thread, NULL);
    ck_assert_int_eq(atomic_load(&r.failures), 0);
    ck_assert_int_gt(atomic_load(&r.tiles), 0);
    naive_free(&n);
    fixture_deinit(&f);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("store tiles as read");
    TCase *t = tcase_create("contract");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, nothing_goes_out_beyond_the_newest_checkpoint);
    tcase_add_test(t, withheld_entries_are_empty_records);
    tcase_add_test(t, a_copy_serves_what_it_has);
    tcase_add_test(t, a_damaged_tile_is_never_given_out);
    tcase_add_test(t, a_damaged_entry_spoils_its_bundle_and_no_other);
    tcase_add_loop_test(t, readers_find_the_tiles_of_every_checkpoint_while_the_log_grows, 0, 2);
    suite_add_tcase(s, t);
    SRunner *runner = srunner_create(s);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
