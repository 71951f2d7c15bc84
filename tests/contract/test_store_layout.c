/* A closing store under an LMDB whose files are laid out in another way than is known here: nothing in its
 * file is touched, and what reads the layout says so. LMDB's functions in question are replaced when this is
 * linked. */
#include "marks_fixture.h"

#include <lmdb.h>

#include "chain/store/fsck.h"

static bool is_later;   /* LMDB says that it is 1.0.0 */
static unsigned astray; /* what of a record LMDB finds elsewhere */

enum { ASTRAY_VALUE = 1, ASTRAY_KEY, SHORTER_VALUE, ONE_ONLY };

/* NOLINTBEGIN(cert-dcl51-cpp): the linker's names */
char *__real_mdb_version(int *major, int *minor, int *patch);
char *__wrap_mdb_version(int *major, int *minor, int *patch);
int __real_mdb_cursor_get(MDB_cursor *cursor, MDB_val *key, MDB_val *data, MDB_cursor_op op);
int __wrap_mdb_cursor_get(MDB_cursor *cursor, MDB_val *key, MDB_val *data, MDB_cursor_op op);
/* NOLINTEND(cert-dcl51-cpp) */

/* NOLINTNEXTLINE(cert-dcl51-cpp) */
char *__wrap_mdb_version(int *major, int *minor, int *patch)
{
    static char later[] = "LMDB 1.0.0";
    char *said = __real_mdb_version(major, minor, patch);
    if (is_later) {
        *major = 1;
        *minor = 0;
        said = later;
    }
    return said;
}

/* Places and lengths alone: what is there is not looked at by those who are to be convinced. */
/* NOLINTNEXTLINE(cert-dcl51-cpp) */
int __wrap_mdb_cursor_get(MDB_cursor *cursor, MDB_val *key, MDB_val *data, MDB_cursor_op op)
{
    static unsigned calls;
    int rc = __real_mdb_cursor_get(cursor, key, data, op);
    bool is_one = ++calls % 100 == 0; /* somewhere in the middle */
    if (rc != MDB_SUCCESS || astray == 0) {
        return rc;
    }
    if (astray == ASTRAY_VALUE || (astray == ONE_ONLY && is_one)) {
        data->mv_data = (uint8_t *)data->mv_data + 2;
    }
    if (astray == ASTRAY_KEY && op == MDB_NEXT) { /* the first tells where the file is mapped */
        key->mv_data = (uint8_t *)key->mv_data + 0x10000;
    }
    data->mv_size -= astray == SHORTER_VALUE ? 2 : 0;
    return rc;
}

/* Closes it and tells whether its file has changed. */
static bool close_changes(struct kedge_kv *kv)
{
    struct kedge_buf before, after;
    read_file(&before);
    kedge_kv_close(kv);
    read_file(&after);
    bool changed = !kedge_view_eq(kedge_buf_view(&before), kedge_buf_view(&after));
    kedge_buf_deinit(&before);
    kedge_buf_deinit(&after);
    return changed;
}

static void check_next_close(void)
{
    struct kedge_kv *kv = open_store(false);
    check_records(kv, true);
    ck_assert(close_changes(kv)); /* the control */
    check_clean(true);
    ck_assert_int_eq(kedge_dir_remove(marks_dir), KEDGE_OK);
}

START_TEST(records_that_lmdb_finds_elsewhere_keep_the_file_as_it_is)
{
    make_dir();
    struct kedge_kv *kv = open_store(false);
    write_records(kv, true);
    astray = (unsigned)_i;
    bool changed = close_changes(kv);
    astray = 0;
    ck_assert(!changed);
    check_next_close();
}
END_TEST

struct heard {
    unsigned notes, others;
    char text[256];
};

static void hear(void *arg, const struct kedge_fsck_finding *finding)
{
    struct heard *h = arg;
    h->notes += finding->severity == KEDGE_FSCK_NOTE;
    h->others += finding->severity != KEDGE_FSCK_NOTE;
    snprintf(h->text, sizeof h->text, "%s", finding->text);
}

START_TEST(a_version_that_is_not_known_is_refused_politely)
{
    struct kedge_kv_lmdb_options copy = {.read_only = true, .no_lock = true};
    struct kedge_fsck_counts counts = {.entries = 0};
    struct kedge_diag d = {.text = ""};
    struct heard heard = {.notes = 0};
    struct kedge_fsck fsck = {.report = hear, .arg = &heard, .beside = true};
    make_dir();
    struct kedge_kv *kv = open_store(false);
    write_records(kv, true);
    is_later = true;
    bool changed = close_changes(kv);
    int opened = kedge_kv_lmdb_open(marks_dir, &copy, &kv, &d);
    int checked = kedge_fsck_store(&fsck, marks_dir, &counts, NULL);
    is_later = false;
    ck_assert(!changed);
    ck_assert_int_eq(opened, KEDGE_E_VERSION);
    ck_assert_msg(strstr(d.text, "LMDB 1.0.0") && strstr(d.hint, "LMDB 0.9"), "%s; %s", d.text, d.hint);
    ck_assert_int_eq(checked, KEDGE_OK);
    ck_assert_msg(heard.notes == 1 && heard.others == 0 && strstr(heard.text, "LMDB 1.0.0"), "%s",
                  heard.text);
    ck_assert_uint_gt(counts.records, RECORDS); /* all else was looked at */
    ck_assert_int_eq(kedge_kv_lmdb_open(marks_dir, &copy, &kv, &d), KEDGE_OK);
    kedge_kv_close(kv);
    check_next_close();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store layout");
    TCase *t = tcase_create("close");
    tcase_set_timeout(t, 100);
    tcase_add_loop_test(t, records_that_lmdb_finds_elsewhere_keep_the_file_as_it_is, ASTRAY_VALUE,
                        ONE_ONLY + 1);
    tcase_add_test(t, a_version_that_is_not_known_is_refused_politely);
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
