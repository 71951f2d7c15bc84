/* What the ledger does when things go wrong: commits that fail, old backups, damage in each table. */
#include "ledger_fixture.h"

#include <unistd.h>

/* A failed durable write: the ledger stops, reopen finds out what became of it, a repeated append is
 * exact once. */
START_TEST(failed_commits)
{
    static const struct {
        enum kedge_kv_fault fault;
        int err;
        uint64_t size;
        bool must_reopen;
    } cases[] = {
        {KEDGE_KV_FAULT_FAILED, KEDGE_E_IO, 1, true},
        {KEDGE_KV_FAULT_FAILED_BUT_DONE, KEDGE_E_IO, 2, true},
        {KEDGE_KV_FAULT_FULL, KEDGE_E_DISK_FULL, 1, false},
        {KEDGE_KV_FAULT_PUT_FULL, KEDGE_E_DISK_FULL, 1, false},
        {KEDGE_KV_FAULT_READ_ONLY, KEDGE_E_DISK_FULL, 1, false},
        {KEDGE_KV_FAULT_BIT_FLIP, KEDGE_E_CORRUPT, 1, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct fixture f;
        fixture_init(&f);
        f.kv = new_kv(&f, 2);
        fixture_must_open(&f, true);
        struct kedge_ledger_append a = item("one", "k1"), b = item("two", "k2");
        ck_assert_int_eq(kedge_ledger_append(f.l, &a, 1, NULL, NULL, NULL), KEDGE_OK);
        kedge_kv_faulty_set(f.kv, cases[i].fault, 1);
        struct kedge_diag d = {0};
        ck_assert_int_eq(kedge_ledger_append(f.l, &b, 1, NULL, NULL, &d), cases[i].err);
        ck_assert_uint_gt(strlen(d.text), 0);
        uint64_t size;
        ck_assert_int_eq(kedge_ledger_checkpoint(f.l, NULL, &size), KEDGE_OK);
        ck_assert_uint_eq(size, 1); /* nothing was signed for what may not be there */
        if (cases[i].must_reopen) {
            ck_assert_int_eq(kedge_ledger_append(f.l, &b, 1, NULL, NULL, NULL), cases[i].err);
            ck_assert_int_eq(kedge_ledger_reopen(f.l, &d), KEDGE_OK);
        }
        ck_assert_uint_eq(kedge_ledger_size(f.l), cases[i].size);
        uint64_t index;
        bool existing;
        ck_assert_int_eq(kedge_ledger_append(f.l, &b, 1, &index, &existing, NULL), KEDGE_OK);
        ck_assert_uint_eq(index, 1);
        ck_assert_int_eq(existing, cases[i].size == 2);
        ck_assert_uint_eq(kedge_ledger_size(f.l), 2);
        check_is_clean(f.l);
        fixture_deinit(&f);
    }
}
END_TEST

START_TEST(old_backup_is_refused)
{
    struct fixture f;
    fixture_init(&f);
    f.kv = new_kv(&f, 1);
    fixture_must_open(&f, true);
    ck_assert_int_eq(append_range(f.l, 0, 5, 5, NULL), KEDGE_OK);
    kedge_ledger_close(f.l);
    kedge_kv_close(f.kv);
    char command[400];
    snprintf(command, sizeof command, "cp -a %s %s/backup", f.store, f.dir);
    ck_assert_int_eq(system(command), 0);
    f.kv = fixture_lmdb(f.store, false);
    fixture_must_open(&f, false);
    ck_assert_int_eq(append_range(f.l, 5, 9, 4, NULL), KEDGE_OK);
    kedge_ledger_close(f.l);
    f.l = NULL;
    kedge_kv_close(f.kv);
    snprintf(command, sizeof command, "rm -rf %s && mv %s/backup %s", f.store, f.dir, f.store);
    ck_assert_int_eq(system(command), 0);
    f.kv = fixture_lmdb(f.store, false);
    struct kedge_diag d = {0};
    ck_assert_int_eq(fixture_open(&f, false, &d), KEDGE_E_CORRUPT);
    ck_assert_ptr_nonnull(strstr(d.text, "backup"));
    /* Grown beyond the mark by somebody without it: another history, told by its root. */
    struct kedge_ledger_options options = {.origin = ORIGIN, .key = &f.key};
    ck_assert_int_eq(kedge_ledger_open(f.kv, &options, &f.l, &d), KEDGE_OK);
    ck_assert_int_eq(append_range(f.l, 5, 6, 1, NULL), KEDGE_OK);
    struct kedge_ledger_append other = item("another history", NULL);
    for (int i = 0; i < 6; i++) {
        ck_assert_int_eq(kedge_ledger_append(f.l, &other, 1, NULL, NULL, NULL), KEDGE_OK);
    }
    kedge_ledger_close(f.l);
    f.l = NULL;
    ck_assert_int_eq(fixture_open(&f, false, &d), KEDGE_E_FORK);
    /* No mark at all. */
    ck_assert_int_eq(unlink(f.mark), 0);
    ck_assert_int_eq(fixture_open(&f, false, &d), KEDGE_E_CORRUPT);
    options.high_water_path = f.mark;
    options.adopt_high_water = true;
    ck_assert_int_eq(kedge_ledger_open(f.kv, &options, &f.l, &d), KEDGE_OK);
    kedge_ledger_close(f.l);
    f.l = NULL;
    fixture_must_open(&f, false);
    ck_assert_int_eq(append_range(f.l, 12, 13, 1, NULL), KEDGE_OK);
    fixture_deinit(&f);
}
END_TEST

/* The checkpoint cannot be marked: nothing unmarked leaves, and the next append makes up for it. */
START_TEST(unmarked_checkpoint_stays_inside)
{
    struct fixture f;
    fixture_init(&f);
    f.kv = new_kv(&f, 0);
    char folder[80];
    snprintf(folder, sizeof folder, "%s/marks", f.dir);
    ck_assert_int_eq(kedge_dir_make(folder, 0700, NULL), KEDGE_OK);
    snprintf(f.mark, sizeof f.mark, "%s/mark", folder);
    fixture_must_open(&f, true);
    struct kedge_ledger_append a = item("one", "k");
    ck_assert_int_eq(kedge_dir_remove(folder), KEDGE_OK);
    ck_assert_int_eq(kedge_ledger_append(f.l, &a, 1, NULL, NULL, NULL), KEDGE_E_UNKNOWN);
    uint64_t size, index;
    bool existing;
    ck_assert_int_eq(kedge_ledger_checkpoint(f.l, NULL, &size), KEDGE_OK);
    ck_assert_uint_eq(size, 0);
    ck_assert_int_eq(kedge_dir_make(folder, 0700, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_ledger_append(f.l, &a, 1, &index, &existing, NULL), KEDGE_OK);
    ck_assert(index == 0 && existing);
    ck_assert_int_eq(kedge_ledger_checkpoint(f.l, NULL, &size), KEDGE_OK);
    ck_assert_uint_eq(size, 1);
    fixture_deinit(&f);
}
END_TEST

/* Damage in each table is found and its table named. */
START_TEST(check_names_the_damage)
{
    static const struct {
        enum kedge_kv_table table;
        const char *name;
    } cases[] = {{KEDGE_KV_ENTRY, "entry"},
                 {KEDGE_KV_TILE, "entry"},
                 {KEDGE_KV_HEAD, "head"},
                 {KEDGE_KV_IDEM, "idem"},
                 {KEDGE_KV_REF, "ref"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (int remove = 0; remove < 2; remove++) {
            struct fixture f;
            fixture_init(&f);
            f.kv = new_kv(&f, 0);
            fixture_must_open(&f, true);
            struct kedge_hash ref;
            memset(&ref, 3, sizeof ref);
            struct kedge_ledger_append a = {kedge_view_str("one"), kedge_view_str("key"), &ref, 1};
            ck_assert_int_eq(kedge_ledger_append(f.l, &a, 1, NULL, NULL, NULL), KEDGE_OK);
            ck_assert_int_eq(append_range(f.l, 1, 3, 1, NULL), KEDGE_OK);
            struct kedge_kv_tx *tx;
            struct kedge_buf key, value;
            kedge_buf_init(&key, 600);
            kedge_buf_init(&value, 10000);
            ck_assert_int_eq(kedge_kv_begin(f.kv, true, &tx, NULL), KEDGE_OK);
            ck_assert_int_eq(kedge_kv_last(tx, cases[i].table, &key, &value), KEDGE_OK);
            value.ptr[value.len - 1] ^= 4;
            if (remove) {
                ck_assert_int_eq(kedge_kv_del(tx, cases[i].table, kedge_buf_view(&key)), KEDGE_OK);
            } else {
                ck_assert_int_eq(kedge_kv_put(tx, cases[i].table, kedge_buf_view(&key),
                                              kedge_buf_view(&value), KEDGE_KV_PUT),
                                 KEDGE_OK);
            }
            ck_assert_int_eq(kedge_kv_commit(tx, NULL), KEDGE_OK);
            kedge_buf_deinit(&key);
            kedge_buf_deinit(&value);
            struct kedge_diag d = {0};
            int err = kedge_ledger_check(f.l, NULL, NULL, &d);
            ck_assert_int_eq(err, KEDGE_E_CORRUPT);
            ck_assert_msg(strstr(d.text, cases[i].name) || (remove && strstr(d.text, "tile")), "%s", d.text);
            fixture_deinit(&f);
        }
    }
}
END_TEST

struct named {
    uint64_t count[KEDGE_KV_TABLES], last_index[KEDGE_KV_TABLES];
};

static void note_damage(void *arg, enum kedge_kv_table table, uint64_t index, const char *what)
{
    struct named *n = arg;
    ck_assert(what && what[0]);
    n->count[table]++;
    n->last_index[table] = index;
}

static void change(struct kedge_kv *kv, enum kedge_kv_table table, struct kedge_view key, bool remove)
{
    struct kedge_kv_tx *tx;
    struct kedge_buf value;
    kedge_buf_init(&value, 10000);
    ck_assert_int_eq(kedge_kv_begin(kv, true, &tx, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_kv_get(tx, table, key, &value), KEDGE_OK);
    value.ptr[value.len - 1] ^= 4;
    int err = remove ? kedge_kv_del(tx, table, key)
                     : kedge_kv_put(tx, table, key, kedge_buf_view(&value), KEDGE_KV_PUT);
    ck_assert_int_eq(err, KEDGE_OK);
    ck_assert_int_eq(kedge_kv_commit(tx, NULL), KEDGE_OK);
    kedge_buf_deinit(&value);
}

/* One damage does not hide another, and is told once: the tree above an entry is not wrong as well. */
START_TEST(check_all_names_every_damage)
{
    static const uint64_t entries[] = {3, 4, 270, 300}; /* the last is removed */
    struct fixture f;
    struct named n = {.count = {0}};
    fixture_init(&f);
    f.kv = new_kv(&f, _i);
    fixture_must_open(&f, true);
    struct kedge_ledger_append keyed = item("one", "key");
    ck_assert_int_eq(kedge_ledger_append(f.l, &keyed, 1, NULL, NULL, NULL), KEDGE_OK);
    ck_assert_int_eq(append_range(f.l, 1, 600, 50, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_ledger_check_all(f.l, note_damage, NULL, &n, NULL), KEDGE_OK);
    for (size_t t = 0; t < KEDGE_KV_TABLES; t++) {
        ck_assert_uint_eq(n.count[t], 0);
    }
    uint8_t key[8];
    for (size_t i = 0; i < 4; i++) {
        kedge_store_be64(key, entries[i]);
        change(f.kv, KEDGE_KV_ENTRY, kedge_view_of(key, sizeof key), i == 3);
    }
    kedge_store_be64(key, 51);
    change(f.kv, KEDGE_KV_HEAD, kedge_view_of(key, sizeof key), false);
    change(f.kv, KEDGE_KV_IDEM, kedge_view_str("key"), false);
    ck_assert_int_eq(kedge_ledger_check_all(f.l, note_damage, NULL, &n, NULL), KEDGE_OK);
    ck_assert_uint_eq(n.count[KEDGE_KV_ENTRY], 5); /* and that there is one record less */
    ck_assert_uint_eq(n.count[KEDGE_KV_TILE], 0);
    ck_assert_uint_eq(n.count[KEDGE_KV_HEAD], 1);
    ck_assert_uint_eq(n.last_index[KEDGE_KV_HEAD], 51);
    ck_assert_uint_eq(n.count[KEDGE_KV_IDEM], 1);
    ck_assert_uint_eq(n.count[KEDGE_KV_META], 0);
    fixture_deinit(&f);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store ledger damage");
    TCase *t = tcase_create("damage");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, failed_commits);
    tcase_add_test(t, old_backup_is_refused);
    tcase_add_test(t, unmarked_checkpoint_stays_inside);
    tcase_add_test(t, check_names_the_damage);
    tcase_add_loop_test(t, check_all_names_every_damage, 0, 2);
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
