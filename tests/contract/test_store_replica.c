/* Copies of logs: they grow by what is proven, hold withheld entries as hashes, and are checked like the log.
 */
#include "chain/store/replica.h"

#include "chain/log/checkpoint.h"
#include "tests/contract/ledger_fixture.h"

struct copy {
    struct fixture source;
    char store[96];
    struct kedge_kv *kv;
    struct kedge_ledger *l;
};

static void copy_open(struct copy *c, bool create)
{
    struct kedge_diag d = {0};
    c->kv = fixture_lmdb(c->store, create);
    ck_assert_msg(kedge_replica_open(c->kv, ORIGIN, &c->source.key.public, create, &c->l, &d) == KEDGE_OK,
                  "%s", d.text);
}

static void copy_close(struct copy *c)
{
    kedge_ledger_close(c->l);
    kedge_kv_close(c->kv);
    c->l = NULL;
    c->kv = NULL;
}

static void copy_init(struct copy *c)
{
    fixture_init(&c->source);
    c->source.kv = fixture_lmdb(c->source.store, true);
    fixture_must_open(&c->source, true);
    snprintf(c->store, sizeof c->store, "%s/copy", c->source.dir);
    copy_open(c, true);
}

static void copy_deinit(struct copy *c)
{
    copy_close(c);
    fixture_deinit(&c->source);
}

static bool is_withheld(uint64_t i)
{
    return i % 3 == 1;
}

/* Entries from the copy's size up to `to` of the source, at most 256. */
static int extend(struct copy *c, uint64_t to, bool with_note, size_t spoil, struct kedge_diag *d)
{
    static struct kedge_replica_entry entries[KEDGE_APPEND_MAX];
    static char texts[KEDGE_APPEND_MAX][32];
    uint64_t from = kedge_ledger_size(c->l);
    size_t count = (size_t)(to - from);
    struct kedge_buf note;
    kedge_buf_init(&note, KEDGE_NOTE_MAX);
    for (size_t i = 0; i < count; i++) {
        struct kedge_view text = entry_text(from + i + (i == spoil), texts[i]);
        entries[i].entry = is_withheld(from + i) ? kedge_view_of(NULL, 0) : text;
        ck_assert_int_eq(kedge_ledger_leaf_hash(c->source.l, from + i, &entries[i].leaf), KEDGE_OK);
    }
    if (with_note) {
        ck_assert_int_eq(kedge_ledger_checkpoint(c->source.l, &note, NULL), KEDGE_OK);
    }
    int err = kedge_replica_extend(c->l, entries, count, kedge_buf_view(&note), d);
    kedge_buf_deinit(&note);
    return err;
}

static void must_agree(struct copy *c, uint64_t size)
{
    struct kedge_diag d = {0};
    struct kedge_hash root, expected;
    struct kedge_path path, other;
    ck_assert_uint_eq(kedge_ledger_size(c->l), size);
    ck_assert_int_eq(kedge_ledger_root(c->l, size, &root), KEDGE_OK);
    ck_assert_int_eq(kedge_ledger_root(c->source.l, size, &expected), KEDGE_OK);
    ck_assert(kedge_hash_eq(&root, &expected));
    ck_assert_msg(kedge_ledger_check(c->l, NULL, NULL, &d) == KEDGE_OK, "%s", d.text);
    ck_assert_int_eq(kedge_ledger_inclusion(c->l, size / 2, size, &path), KEDGE_OK);
    ck_assert_int_eq(kedge_ledger_inclusion(c->source.l, size / 2, size, &other), KEDGE_OK);
    ck_assert_uint_eq(path.count, other.count);
    ck_assert_mem_eq(path.hashes, other.hashes, path.count * sizeof path.hashes[0]);
    for (uint64_t i = 0; i < size; i++) {
        struct kedge_buf entry;
        char text[32];
        kedge_buf_init(&entry, KEDGE_ENTRY_MAX);
        int err = kedge_ledger_get(c->l, i, &entry);
        ck_assert_int_eq(err, is_withheld(i) ? KEDGE_E_WITHHELD : KEDGE_OK);
        ck_assert(err || kedge_view_eq(kedge_buf_view(&entry), entry_text(i, text)));
        kedge_buf_deinit(&entry);
    }
}

START_TEST(grows_in_steps_and_survives_reopening)
{
    static const uint64_t sizes[] = {1, 2, 3, 255, 256, 257, 300, 511, 512, 700};
    struct copy c;
    struct kedge_diag d = {0};
    copy_init(&c);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        ck_assert_int_eq(append_range(c.source.l, kedge_ledger_size(c.source.l), sizes[i], 64, &d), KEDGE_OK);
        ck_assert_msg(extend(&c, sizes[i], true, SIZE_MAX, &d) == KEDGE_OK, "%s", d.text);
        copy_close(&c);
        copy_open(&c, false);
        must_agree(&c, sizes[i]);
        uint64_t signed_size;
        ck_assert_int_eq(kedge_ledger_checkpoint(c.l, NULL, &signed_size), KEDGE_OK);
        ck_assert_uint_eq(signed_size, sizes[i]);
    }
    ck_assert(kedge_ledger_is_copy(c.l));
    ck_assert(!kedge_ledger_is_copy(c.source.l));
    copy_deinit(&c);
}
END_TEST

START_TEST(refuses_what_is_not_proven)
{
    struct copy c;
    struct kedge_diag d = {0};
    struct kedge_buf note;
    copy_init(&c);
    ck_assert_int_eq(append_range(c.source.l, 0, 20, 20, &d), KEDGE_OK);
    ck_assert_int_eq(extend(&c, 10, true, SIZE_MAX, &d), KEDGE_E_VERIFY); /* the note is of 20 */
    ck_assert_int_eq(extend(&c, 10, false, 3, &d), KEDGE_E_VERIFY); /* another entry than its leaf hash */
    ck_assert_ptr_nonnull(strstr(d.text, "entry 3"));
    ck_assert_uint_eq(kedge_ledger_size(c.l), 0);
    ck_assert_int_eq(extend(&c, 10, false, SIZE_MAX, &d), KEDGE_OK);
    must_agree(&c, 10);
    /* another key's checkpoint */
    struct kedge_key_pair other;
    struct kedge_hash root;
    kedge_key_generate(&other);
    kedge_buf_init(&note, KEDGE_NOTE_MAX);
    ck_assert_int_eq(kedge_ledger_root(c.source.l, 10, &root), KEDGE_OK);
    ck_assert_int_eq(kedge_checkpoint_sign(kedge_view_str(ORIGIN), 10, &root, &other, &note), KEDGE_OK);
    ck_assert_int_eq(kedge_replica_extend(c.l, NULL, 0, kedge_buf_view(&note), &d), KEDGE_E_VERIFY);
    kedge_buf_deinit(&note);
    /* the log itself is no copy, and a copy is no log */
    ck_assert_int_eq(kedge_replica_extend(c.source.l, NULL, 0, kedge_view_of(NULL, 0), &d), KEDGE_E_STATE);
    struct kedge_ledger *l = NULL;
    ck_assert_int_eq(kedge_replica_open(c.source.kv, ORIGIN, &c.source.key.public, false, &l, &d),
                     KEDGE_E_STATE);
    struct kedge_ledger_options as_log = {.origin = ORIGIN, .key = &c.source.key};
    ck_assert_int_eq(kedge_ledger_open(c.kv, &as_log, &l, &d), KEDGE_E_STATE);
    must_agree(&c, 10);
    copy_deinit(&c);
}
END_TEST

/* A withheld entry of the log itself is damage. */
START_TEST(only_copies_withhold)
{
    struct copy c;
    struct kedge_diag d = {0};
    struct kedge_kv_tx *tx;
    copy_init(&c);
    ck_assert_int_eq(append_range(c.source.l, 0, 8, 8, &d), KEDGE_OK);
    static const uint8_t key[8] = {0, 0, 0, 0, 0, 0, 0, 4};
    ck_assert_int_eq(kedge_kv_begin(c.source.kv, true, &tx, &d), KEDGE_OK);
    ck_assert_int_eq(
        kedge_kv_put(tx, KEDGE_KV_ENTRY, kedge_view_of(key, 8), kedge_view_of("", 0), KEDGE_KV_PUT),
        KEDGE_OK);
    ck_assert_int_eq(kedge_kv_commit(tx, &d), KEDGE_OK);
    ck_assert_int_eq(kedge_ledger_check(c.source.l, NULL, NULL, &d), KEDGE_E_CORRUPT);
    copy_deinit(&c);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("store_replica");
    TCase *t = tcase_create("replica");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, grows_in_steps_and_survives_reopening);
    tcase_add_test(t, refuses_what_is_not_proven);
    tcase_add_test(t, only_copies_withhold);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
