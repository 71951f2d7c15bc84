/* The ledger over each store: roots against known values, proofs by the verifier, idempotency, faults,
 * restored backups. Roots of "entry-0…" come from ../shared/vectors/merkle, computed with an independent
 * implementation. */
#include "ledger_fixture.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "chain/log/checkpoint.h"
#include "chain/log/dsse.h"
#include "chain/store/entry_form.h"
#include "common/base/mem.h"

static void root_is(struct kedge_ledger *l, uint64_t size, const char *hex)
{
    struct kedge_hash root;
    char text[KEDGE_HASH_HEX_LEN + 1];
    ck_assert_int_eq(kedge_ledger_root(l, size, &root), KEDGE_OK);
    kedge_hash_hex(&root, text);
    ck_assert_str_eq(text, hex);
}

START_TEST(roots_proofs_and_checkpoints)
{
    struct fixture f;
    fixture_init(&f);
    f.kv = new_kv(&f, _i);
    struct kedge_diag d = {0};
    ck_assert_int_eq(fixture_open(&f, false, &d), KEDGE_E_NOT_FOUND);
    fixture_must_open(&f, true);
    ck_assert_uint_eq(kedge_ledger_size(f.l), 0);
    root_is(f.l, 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    static const size_t steps[] = {1, 100, 256};
    ck_assert_int_eq(append_range(f.l, 0, 3, 1, &d), KEDGE_OK);
    ck_assert_int_eq(append_range(f.l, 3, 900, steps[_i], &d), KEDGE_OK);
    struct kedge_hash root, leaf, old;
    ck_assert_int_eq(kedge_ledger_root(f.l, 900, &root), KEDGE_OK);
    static const uint64_t places[] = {0, 1, 254, 255, 256, 257, 511, 512, 700, 899};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        struct kedge_path path;
        ck_assert_int_eq(kedge_ledger_leaf_hash(f.l, places[i], &leaf), KEDGE_OK);
        ck_assert_int_eq(kedge_ledger_inclusion(f.l, places[i], 900, &path), KEDGE_OK);
        ck_assert_int_eq(kedge_inclusion_verify(places[i], 900, &leaf, path.hashes, path.count, &root),
                         KEDGE_OK);
        if (places[i] > 0) {
            ck_assert_int_eq(kedge_ledger_consistency(f.l, places[i], 900, &path), KEDGE_OK);
            ck_assert_int_eq(kedge_ledger_root(f.l, places[i], &old), KEDGE_OK);
            ck_assert_int_eq(kedge_consistency_verify(places[i], 900, &old, &root, path.hashes, path.count),
                             KEDGE_OK);
        }
        struct kedge_buf b;
        char text[32];
        kedge_buf_init(&b, 100);
        ck_assert_int_eq(kedge_ledger_get(f.l, places[i], &b), KEDGE_OK);
        ck_assert(kedge_view_eq(kedge_buf_view(&b), entry_text(places[i], text)));
        kedge_buf_deinit(&b);
    }
    struct kedge_path path;
    ck_assert_int_eq(kedge_ledger_inclusion(f.l, 900, 900, &path), KEDGE_E_ARG);
    ck_assert_int_eq(kedge_ledger_inclusion(f.l, 0, 901, &path), KEDGE_E_ARG);
    ck_assert_int_eq(kedge_ledger_consistency(f.l, 0, 900, &path), KEDGE_E_ARG);
    struct kedge_buf note;
    kedge_buf_init(&note, KEDGE_NOTE_MAX);
    uint64_t size;
    ck_assert_int_eq(kedge_ledger_checkpoint(f.l, &note, &size), KEDGE_OK);
    ck_assert_uint_eq(size, 900);
    struct kedge_vkey vkey;
    struct kedge_checkpoint c;
    ck_assert_int_eq(kedge_vkey_make(kedge_view_str(ORIGIN), KEDGE_KEY_ED25519, &f.key.public, &vkey),
                     KEDGE_OK);
    ck_assert_int_eq(kedge_checkpoint_open(kedge_buf_view(&note), kedge_view_str(ORIGIN), &vkey, 1, &c, NULL),
                     KEDGE_OK);
    ck_assert_uint_eq(c.size, 900);
    ck_assert(kedge_hash_eq(&c.root, &root));
    kedge_buf_deinit(&note);
    check_is_clean(f.l);
    fixture_deinit(&f);
}
END_TEST

START_TEST(known_roots_across_tile_levels)
{
    struct fixture f;
    fixture_init(&f);
    f.kv = new_kv(&f, 1);
    fixture_must_open(&f, true);
    struct kedge_diag d = {0};
    ck_assert_int_eq(append_range(f.l, 0, 70000, 256, &d), KEDGE_OK);
    root_is(f.l, 70000, "a62a54be33294ffd5a5c4c637fd754630b71a892e8356e3a666a5c8a7ffd1518");
    struct kedge_path path;
    struct kedge_hash leaf, root;
    ck_assert_int_eq(kedge_ledger_root(f.l, 66000, &root), KEDGE_OK);
    for (uint64_t i = 0; i < 66000; i += 977) {
        ck_assert_int_eq(kedge_ledger_leaf_hash(f.l, i, &leaf), KEDGE_OK);
        ck_assert_int_eq(kedge_ledger_inclusion(f.l, i, 66000, &path), KEDGE_OK);
        ck_assert_int_eq(kedge_inclusion_verify(i, 66000, &leaf, path.hashes, path.count, &root), KEDGE_OK);
    }
    check_is_clean(f.l);
    fixture_deinit(&f);
}
END_TEST

START_TEST(idempotency_keys)
{
    struct fixture f;
    fixture_init(&f);
    f.kv = new_kv(&f, _i);
    fixture_must_open(&f, true);
    uint64_t index[3];
    bool existing[3];
    struct kedge_diag d = {0};
    struct kedge_ledger_append first[] = {item("one", "job/1/a"), item("two", "job/1/b"),
                                          item("two", "job/1/b")};
    ck_assert_int_eq(kedge_ledger_append(f.l, first, 3, index, existing, &d), KEDGE_OK);
    ck_assert(index[0] == 0 && index[1] == 1 && index[2] == 1 && !existing[1] && existing[2]);
    struct kedge_ledger_append again[] = {item("three", NULL), item("one", "job/1/a"), item("three", NULL)};
    ck_assert_int_eq(kedge_ledger_append(f.l, again, 3, index, existing, &d), KEDGE_OK);
    ck_assert(index[0] == 2 && index[1] == 0 && index[2] == 3 && existing[1] && !existing[2]);
    ck_assert_int_eq(kedge_ledger_append(f.l, first, 1, index, existing, &d),
                     KEDGE_OK); /* nothing new at all */
    ck_assert(index[0] == 0 && existing[0]);
    struct kedge_ledger_append clash[] = {item("four", NULL), item("other", "job/1/a")};
    ck_assert_int_eq(kedge_ledger_append(f.l, clash, 2, index, existing, &d), KEDGE_E_EXISTS);
    ck_assert_uint_eq(kedge_ledger_size(f.l), 4);
    struct kedge_ledger_append own_clash[] = {item("x", "k"), item("y", "k")};
    ck_assert_int_eq(kedge_ledger_append(f.l, own_clash, 2, index, existing, &d), KEDGE_E_EXISTS);
    /* A bad batch does not harm its neighbours, and its key stays free. */
    struct kedge_ledger_appended r[3][2];
    struct kedge_ledger_append good[] = {item("five", "job/2/a")},
                               more[] = {item("six", "job/2/b"), item("five", "job/2/a")};
    struct kedge_ledger_batch batches[] = {
        {good, 1, r[0], 0, 0}, {own_clash, 2, r[1], 0, 0}, {more, 2, r[2], 0, 0}};
    ck_assert_int_eq(kedge_ledger_append_batches(f.l, batches, 3, &d), KEDGE_OK);
    ck_assert_int_eq(batches[0].err, KEDGE_OK);
    ck_assert_int_eq(batches[1].err, KEDGE_E_EXISTS);
    ck_assert_uint_eq(batches[1].bad_item, 1);
    ck_assert_int_eq(batches[2].err, KEDGE_OK);
    ck_assert(r[0][0].index == 4 && r[2][0].index == 5 && r[2][1].index == 4 && r[2][1].existing);
    ck_assert_int_eq(kedge_ledger_find(f.l, kedge_view_str("k"), index), KEDGE_E_NOT_FOUND);
    ck_assert_int_eq(kedge_ledger_find(f.l, kedge_view_str("job/2/b"), index), KEDGE_OK);
    ck_assert_uint_eq(index[0], 5);
    check_is_clean(f.l);
    fixture_deinit(&f);
}
END_TEST

static int count_key(void *arg, struct kedge_view key, uint64_t index)
{
    (void)index;
    *(size_t *)arg += 1;
    return key.len > 6 ? 0 : 9;
}

static int count_entry(void *arg, uint64_t index, struct kedge_view entry)
{
    *(uint64_t *)arg += index + (entry.len > 0);
    return 0;
}

START_TEST(references_scans_and_limits)
{
    struct fixture f;
    fixture_init(&f);
    f.kv = new_kv(&f, _i);
    fixture_must_open(&f, true);
    struct kedge_hash refs[2];
    kedge_sha256(kedge_view_str("a"), &refs[0]);
    kedge_sha256(kedge_view_str("b"), &refs[1]);
    struct kedge_ledger_append items[] = {item("one", "job/1/a"), item("two", "job/1/b"),
                                          item("three", "job/2/a")};
    items[1].refs = items[2].refs = refs;
    items[1].ref_count = 1;
    items[2].ref_count = 2;
    ck_assert_int_eq(kedge_ledger_append(f.l, items, 3, NULL, NULL, NULL), KEDGE_OK);
    uint64_t index;
    ck_assert_int_eq(kedge_ledger_find_ref(f.l, &refs[0], &index), KEDGE_OK);
    ck_assert_uint_eq(index, 1);
    ck_assert_int_eq(kedge_ledger_find_ref(f.l, &refs[1], &index), KEDGE_OK);
    ck_assert_uint_eq(index, 2);
    struct kedge_hash absent;
    memset(&absent, 1, sizeof absent);
    ck_assert_int_eq(kedge_ledger_find_ref(f.l, &absent, NULL), KEDGE_E_NOT_FOUND);
    size_t keys = 0;
    ck_assert_int_eq(kedge_ledger_scan_keys(f.l, kedge_view_str("job/1/"), count_key, &keys), KEDGE_OK);
    ck_assert_uint_eq(keys, 2);
    uint64_t sum = 0;
    ck_assert_int_eq(kedge_ledger_for_each(f.l, 1, count_entry, &sum), KEDGE_OK);
    ck_assert_uint_eq(sum, 1 + 2 + 2);
    static uint8_t big[KEDGE_ENTRY_MAX + 1];
    struct kedge_ledger_append one = {.entry = kedge_view_of(big, KEDGE_ENTRY_MAX)};
    ck_assert_int_eq(kedge_ledger_append(f.l, &one, 1, NULL, NULL, NULL), KEDGE_OK);
    one.entry.len++;
    ck_assert_int_eq(kedge_ledger_append(f.l, &one, 1, NULL, NULL, NULL), KEDGE_E_TOO_LONG);
    one.entry.len = 0;
    ck_assert_int_eq(kedge_ledger_append(f.l, &one, 1, NULL, NULL, NULL), KEDGE_E_ARG);
    one = item("x", NULL);
    one.idem_key = kedge_view_of(big, KEDGE_IDEM_KEY_MAX + 1);
    ck_assert_int_eq(kedge_ledger_append(f.l, &one, 1, NULL, NULL, NULL), KEDGE_E_TOO_LONG);
    ck_assert_uint_eq(kedge_ledger_size(f.l), 4);
    check_is_clean(f.l);
    fixture_deinit(&f);
}
END_TEST

START_TEST(reopening_signs_the_same_bytes)
{
    struct fixture f;
    fixture_init(&f);
    f.kv = new_kv(&f, _i);
    fixture_must_open(&f, true);
    ck_assert_int_eq(append_range(f.l, 0, 20, 7, NULL), KEDGE_OK);
    struct kedge_buf before, after;
    kedge_buf_init(&before, KEDGE_NOTE_MAX);
    kedge_buf_init(&after, KEDGE_NOTE_MAX);
    ck_assert_int_eq(kedge_ledger_checkpoint(f.l, &before, NULL), KEDGE_OK);
    kedge_ledger_close(f.l);
    f.l = NULL;
    fixture_must_open(&f, false);
    ck_assert_int_eq(kedge_ledger_checkpoint(f.l, &after, NULL), KEDGE_OK);
    ck_assert(kedge_view_eq(kedge_buf_view(&before), kedge_buf_view(&after)));
    kedge_buf_clear(&after);
    ck_assert_int_eq(kedge_ledger_checkpoint_at(f.l, 14, &after), KEDGE_OK);
    kedge_buf_clear(&after);
    ck_assert_int_eq(kedge_ledger_checkpoint_at(f.l, 13, &after), KEDGE_E_NOT_FOUND);
    kedge_ledger_close(f.l);
    f.l = NULL;
    /* Another origin, another key. */
    struct kedge_diag d = {0};
    struct kedge_key_pair other;
    kedge_key_generate(&other);
    struct kedge_ledger_options options = {.origin = "ledger.example/b", .key = &f.key};
    ck_assert_int_eq(kedge_ledger_open(f.kv, &options, &f.l, &d), KEDGE_E_STATE);
    options = (struct kedge_ledger_options){.origin = ORIGIN, .key = &other};
    ck_assert_int_eq(kedge_ledger_open(f.kv, &options, &f.l, &d), KEDGE_E_STATE);
    options = (struct kedge_ledger_options){0}; /* an auditor: no key, reads all, appends nothing */
    ck_assert_int_eq(kedge_ledger_open(f.kv, &options, &f.l, &d), KEDGE_OK);
    ck_assert_str_eq(kedge_ledger_origin(f.l), ORIGIN);
    ck_assert_int_eq(append_range(f.l, 20, 21, 1, &d), KEDGE_E_STATE);
    check_is_clean(f.l);
    kedge_buf_deinit(&before);
    kedge_buf_deinit(&after);
    fixture_deinit(&f);
}
END_TEST

/* Its statements name no place: it is read by the program that wrote it, and this one says so. */
START_TEST(a_ledger_of_the_program_before)
{
    struct fixture f;
    struct kedge_diag d = {0};
    struct kedge_kv_tx *tx;
    static const char *const schemas[] = {"kedge ledger 1", "kedge ledger 5", "kedge ledger 1 "};
    fixture_init(&f);
    f.kv = new_kv(&f, _i);
    fixture_must_open(&f, true);
    for (size_t i = 0; i < sizeof schemas / sizeof schemas[0]; i++) {
        kedge_ledger_close(f.l);
        f.l = NULL;
        ck_assert_int_eq(kedge_kv_begin(f.kv, true, &tx, &d), KEDGE_OK);
        ck_assert_int_eq(kedge_kv_put(tx, KEDGE_KV_META, kedge_view_str("schema"), kedge_view_str(schemas[i]),
                                      KEDGE_KV_PUT),
                         KEDGE_OK);
        ck_assert_int_eq(kedge_kv_commit(tx, &d), KEDGE_OK);
        ck_assert_int_eq(fixture_open(&f, false, &d), i == 0 ? KEDGE_E_VERSION : KEDGE_E_CORRUPT);
        ck_assert_ptr_nonnull(strstr(d.text, i == 0 ? "with the program that wrote it" : "unknown schema"));
    }
    fixture_deinit(&f);
}
END_TEST

/* An empty ledger of this form that nobody has open, to be changed by hand. */
static struct kedge_kv_tx *begin_closed(struct fixture *f, int i)
{
    struct kedge_kv_tx *tx;
    fixture_init(f);
    f->kv = new_kv(f, i);
    fixture_must_open(f, true);
    kedge_ledger_close(f->l);
    f->l = NULL;
    ck_assert_int_eq(kedge_kv_begin(f->kv, true, &tx, NULL), KEDGE_OK);
    return tx;
}

/* All its entries lie there as they are, and those that come now, too. */
START_TEST(a_ledger_of_before_entries_were_packed)
{
    struct fixture f;
    struct kedge_diag d = {0};
    struct kedge_kv_tx *tx = begin_closed(&f, _i);
    struct kedge_view stored;
    ck_assert_int_eq(kedge_kv_put(tx, KEDGE_KV_META, kedge_view_str("schema"),
                                  kedge_view_str("kedge ledger 2"), KEDGE_KV_PUT),
                     KEDGE_OK);
    ck_assert_int_eq(kedge_kv_del(tx, KEDGE_KV_META, kedge_view_str("words")), KEDGE_OK);
    ck_assert_int_eq(kedge_kv_commit(tx, &d), KEDGE_OK);
    fixture_must_open(&f, false);
    struct kedge_buf envelope;
    struct kedge_key_pair key;
    kedge_buf_init(&envelope, KEDGE_ENTRY_MAX);
    kedge_key_generate(&key);
    ck_assert_int_eq(kedge_dsse_build(KEDGE_DSSE_IN_TOTO,
                                      kedge_view_str("{\"a\":\"bbbbbbbbbbbbbbbbbbbbbbbbbbbbb\"}"), &key,
                                      &envelope),
                     KEDGE_OK);
    struct kedge_ledger_append a = {.entry = kedge_buf_view(&envelope)};
    ck_assert_int_eq(kedge_ledger_append(f.l, &a, 1, NULL, NULL, &d), KEDGE_OK);
    check_is_clean(f.l);
    ck_assert_int_eq(kedge_kv_begin(f.kv, false, &tx, &d), KEDGE_OK);
    ck_assert_int_eq(kedge_kv_peek(tx, KEDGE_KV_ENTRY, kedge_view_of("\0\0\0\0\0\0\0\0", 8), &stored),
                     KEDGE_OK);
    ck_assert(kedge_view_eq(stored, kedge_buf_view(&envelope)));
    kedge_kv_abort(tx);
    kedge_buf_deinit(&envelope);
    fixture_deinit(&f);
}
END_TEST

/* Its statements are packed with the words of then, and its checkpoints are as they are, those that come now,
 * too.
 */
START_TEST(a_ledger_of_before_checkpoints_were_short)
{
    struct fixture f;
    struct kedge_diag d = {0};
    struct kedge_kv_tx *tx = begin_closed(&f, _i);
    struct kedge_view stored;
    struct kedge_buf note;
    ck_assert_int_eq(kedge_kv_put(tx, KEDGE_KV_META, kedge_view_str("schema"),
                                  kedge_view_str("kedge ledger 3"), KEDGE_KV_PUT),
                     KEDGE_OK);
    ck_assert_int_eq(kedge_kv_put(tx, KEDGE_KV_META, kedge_view_str("words"),
                                  kedge_entry_words(KEDGE_FORMS_PACKED), KEDGE_KV_PUT),
                     KEDGE_OK);
    ck_assert_int_eq(kedge_kv_commit(tx, &d), KEDGE_OK);
    fixture_must_open(&f, false);
    struct kedge_buf envelope;
    struct kedge_key_pair key;
    kedge_buf_init(&envelope, KEDGE_ENTRY_MAX);
    kedge_buf_init(&note, KEDGE_NOTE_MAX);
    kedge_key_generate(&key);
    ck_assert_int_eq(
        kedge_dsse_build(KEDGE_DSSE_IN_TOTO,
                         kedge_view_str("{\"_type\":\"https://in-toto.io/Statement/v1\",\"subject\":[]}"),
                         &key, &envelope),
        KEDGE_OK);
    struct kedge_ledger_append a = {.entry = kedge_buf_view(&envelope)};
    ck_assert_int_eq(kedge_ledger_append(f.l, &a, 1, NULL, NULL, &d), KEDGE_OK);
    ck_assert_int_eq(kedge_ledger_flush(f.l, &d), KEDGE_OK);
    ck_assert_int_eq(kedge_ledger_checkpoint_at(f.l, 1, &note), KEDGE_OK);
    check_is_clean(f.l);
    ck_assert_int_eq(kedge_kv_begin(f.kv, false, &tx, &d), KEDGE_OK);
    ck_assert_int_eq(kedge_kv_peek(tx, KEDGE_KV_ENTRY, kedge_view_of("\0\0\0\0\0\0\0\0", 8), &stored),
                     KEDGE_OK);
    ck_assert(stored.len < envelope.len && stored.ptr[0] == 1);
    ck_assert_int_eq(kedge_kv_peek(tx, KEDGE_KV_HEAD, kedge_view_of("\0\0\0\0\0\0\0\1", 8), &stored),
                     KEDGE_OK);
    ck_assert(kedge_view_eq(stored, kedge_buf_view(&note)));
    kedge_kv_abort(tx);
    kedge_buf_deinit(&note);
    kedge_buf_deinit(&envelope);
    fixture_deinit(&f);
}
END_TEST

/* A new one has of each checkpoint what differs, and gives out the note. */
START_TEST(checkpoints_are_short)
{
    struct fixture f;
    struct kedge_diag d = {0};
    struct kedge_kv_tx *tx;
    struct kedge_view stored;
    struct kedge_buf note, again;
    kedge_buf_init(&note, KEDGE_NOTE_MAX);
    kedge_buf_init(&again, KEDGE_NOTE_MAX);
    fixture_init(&f);
    f.kv = new_kv(&f, _i);
    fixture_must_open(&f, true);
    struct kedge_ledger_append a = {.entry = kedge_view_str("an entry")};
    ck_assert_int_eq(kedge_ledger_append(f.l, &a, 1, NULL, NULL, &d), KEDGE_OK);
    ck_assert_int_eq(kedge_ledger_checkpoint_at(f.l, 1, &note), KEDGE_OK); /* from memory */
    ck_assert_int_eq(kedge_ledger_append(f.l, &a, 1, NULL, NULL, &d), KEDGE_OK);
    ck_assert_int_eq(kedge_ledger_checkpoint_at(f.l, 1, &again), KEDGE_OK); /* from the store */
    ck_assert(kedge_view_eq(kedge_buf_view(&note), kedge_buf_view(&again)));
    check_is_clean(f.l);
    ck_assert_int_eq(kedge_kv_begin(f.kv, false, &tx, &d), KEDGE_OK);
    ck_assert_int_eq(kedge_kv_peek(tx, KEDGE_KV_HEAD, kedge_view_of("\0\0\0\0\0\0\0\1", 8), &stored),
                     KEDGE_OK);
    ck_assert_uint_eq(stored.len, 101);
    kedge_kv_abort(tx);
    kedge_buf_deinit(&again);
    kedge_buf_deinit(&note);
    fixture_deinit(&f);
}
END_TEST

/* Without the words that its entries are packed with, or with others, nothing is believed. */
START_TEST(words_are_those_of_this_form)
{
    struct fixture f;
    struct kedge_diag d = {0};
    struct kedge_kv_tx *tx = begin_closed(&f, _i);
    ck_assert_int_eq(
        kedge_kv_put(tx, KEDGE_KV_META, kedge_view_str("words"), kedge_view_str("others"), KEDGE_KV_PUT),
        KEDGE_OK);
    ck_assert_int_eq(kedge_kv_commit(tx, &d), KEDGE_OK);
    ck_assert_int_eq(fixture_open(&f, false, &d), KEDGE_E_CORRUPT);
    fixture_deinit(&f);
}
END_TEST

START_TEST(survives_lack_of_memory)
{
    struct fixture f;
    fixture_init(&f);
    f.kv = new_kv(&f, _i);
    struct kedge_ledger_append a[] = {item("one", "k1"), item("two", "k2")};
    bool done = false;
    for (long n = 1; n < 2000 && !done; n++) {
        kedge_mem_fail_at(n);
        int err = fixture_open(&f, true, NULL);
        err = err ? err : kedge_ledger_append(f.l, a, 2, NULL, NULL, NULL);
        kedge_mem_fail_at(0);
        done = err == KEDGE_OK;
        ck_assert_msg(done || err == KEDGE_E_NOMEM || err == KEDGE_E_UNKNOWN || err == KEDGE_E_DISK_FULL,
                      "%ld: %d", n, err);
        kedge_ledger_close(f.l);
        f.l = NULL;
    }
    ck_assert(done);
    fixture_must_open(&f, false);
    ck_assert_uint_eq(kedge_ledger_size(f.l), 2); /* tries that were stored were found again */
    check_is_clean(f.l);
    fixture_deinit(&f);
}
END_TEST

struct reading {
    struct kedge_ledger *l;
    atomic_bool stop;
    atomic_int failures;
};

static void *read_all_the_time(void *arg)
{
    struct reading *r = arg;
    while (!atomic_load(&r->stop)) {
        uint64_t size = kedge_ledger_size(r->l);
        if (size == 0) {
            continue;
        }
        struct kedge_hash root, leaf;
        struct kedge_path path;
        bool is_right =
            kedge_ledger_root(r->l, size, &root) == KEDGE_OK
            && kedge_ledger_leaf_hash(r->l, size / 2, &leaf) == KEDGE_OK
            && kedge_ledger_inclusion(r->l, size / 2, size, &path) == KEDGE_OK
            && kedge_inclusion_verify(size / 2, size, &leaf, path.hashes, path.count, &root) == KEDGE_OK;
        atomic_fetch_add(&r->failures, !is_right);
    }
    return NULL;
}

START_TEST(readers_beside_the_writer)
{
    struct fixture f;
    fixture_init(&f);
    f.kv = new_kv(&f, _i);
    fixture_must_open(&f, true);
    struct reading r = {.l = f.l};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(pthread_create(&threads[i], NULL, read_all_the_time, &r), 0);
    }
    ck_assert_int_eq(append_range(f.l, 0, 600, 5, NULL), KEDGE_OK);
    atomic_store(&r.stop, true);
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    ck_assert_int_eq(atomic_load(&r.failures), 0);
    fixture_deinit(&f);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store ledger");
    TCase *t = tcase_create("contract");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, roots_proofs_and_checkpoints, 0, 3);
    tcase_add_test(t, known_roots_across_tile_levels);
    tcase_add_loop_test(t, idempotency_keys, 0, 3);
    tcase_add_loop_test(t, references_scans_and_limits, 0, 3);
    tcase_add_loop_test(t, reopening_signs_the_same_bytes, 0, 3);
    tcase_add_loop_test(t, a_ledger_of_the_program_before, 0, 3);
    tcase_add_loop_test(t, a_ledger_of_before_entries_were_packed, 0, 3);
    tcase_add_loop_test(t, a_ledger_of_before_checkpoints_were_short, 0, 3);
    tcase_add_loop_test(t, checkpoints_are_short, 0, 3);
    tcase_add_loop_test(t, words_are_those_of_this_form, 0, 3);
    tcase_add_loop_test(t, survives_lack_of_memory, 0, 2);
    tcase_add_loop_test(t, readers_beside_the_writer, 0, 2);
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
