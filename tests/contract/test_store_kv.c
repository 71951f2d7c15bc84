/* The contract of chain/store/kv/kv.h, run against every implementation: memory, LMDB, the faulty wrapper
 * without a fault. What only one of them promises is tested behind it. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chain/store/kv/kv.h"
#include "common/base/mem.h"
#include "common/base/os/file.h"
#include "tests/fixtures/kv.h"

static char dir[64];

static void make_dir(void)
{
    snprintf(dir, sizeof dir, "/tmp/kedge-kv-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
}

static void remove_dir(void)
{
    ck_assert_int_eq(kedge_dir_remove(dir), KEDGE_OK);
}

static struct kedge_kv *open_memory(void)
{
    struct kedge_kv *kv;
    ck_assert_int_eq(kedge_kv_memory_new(&kv), KEDGE_OK);
    return kv;
}

static struct kedge_kv *open_lmdb(void)
{
    struct kedge_kv_lmdb_options options = {.create = true};
    struct kedge_kv *kv;
    struct kedge_diag d = {0};
    ck_assert_msg(kedge_kv_lmdb_open(dir, &options, &kv, &d) == KEDGE_OK, "%s", d.text);
    return kv;
}

static struct kedge_kv *open_faulty(void)
{
    struct kedge_kv *kv;
    ck_assert_int_eq(kedge_kv_faulty_new(open_memory(), &kv), KEDGE_OK);
    return kv;
}

static struct kedge_kv *(*const openers[])(void) = {open_memory, open_lmdb, open_faulty};
enum { OPENERS = sizeof openers / sizeof openers[0] };

static struct kedge_view text(const char *s)
{
    return kedge_view_str(s);
}

static struct kedge_kv_tx *begin(struct kedge_kv *kv, bool write)
{
    struct kedge_kv_tx *tx;
    struct kedge_diag d = {0};
    ck_assert_msg(kedge_kv_begin(kv, write, &tx, &d) == KEDGE_OK, "%s", d.text);
    return tx;
}

static void put(struct kedge_kv_tx *tx, const char *key, const char *value)
{
    ck_assert_int_eq(kedge_kv_put(tx, KEDGE_KV_STATE, text(key), text(value), KEDGE_KV_PUT), KEDGE_OK);
}

/* Whether the table holds key -> value; value NULL: whether the key is absent. */
static bool holds(struct kedge_kv_tx *tx, const char *key, const char *value)
{
    struct kedge_buf b;
    kedge_buf_init(&b, 1 << 20);
    int err = kedge_kv_get(tx, KEDGE_KV_STATE, text(key), &b);
    bool is_right =
        value ? err == KEDGE_OK && kedge_view_eq(kedge_buf_view(&b), text(value)) : err == KEDGE_E_NOT_FOUND;
    kedge_buf_deinit(&b);
    return is_right;
}

static void commit(struct kedge_kv_tx *tx)
{
    struct kedge_diag d = {0};
    ck_assert_msg(kedge_kv_commit(tx, &d) == KEDGE_OK, "%s", d.text);
}

START_TEST(transactions_are_atomic_and_isolated)
{
    make_dir();
    struct kedge_kv *kv = openers[_i]();
    struct kedge_kv_tx *w = begin(kv, true);
    put(w, "a", "1");
    ck_assert(holds(w, "a", "1")); /* its own change */
    struct kedge_kv_tx *before = begin(kv, false);
    ck_assert(holds(before, "a", NULL));
    commit(w);
    ck_assert(holds(before, "a", NULL)); /* a snapshot */
    kedge_kv_abort(before);
    struct kedge_kv_tx *after = begin(kv, false);
    ck_assert(holds(after, "a", "1"));
    kedge_kv_abort(after);
    w = begin(kv, true);
    put(w, "a", "2");
    put(w, "b", "3");
    ck_assert_int_eq(kedge_kv_del(w, KEDGE_KV_STATE, text("b")), KEDGE_OK);
    ck_assert_int_eq(kedge_kv_del(w, KEDGE_KV_STATE, text("c")), KEDGE_E_NOT_FOUND);
    kedge_kv_abort(w);
    after = begin(kv, false);
    ck_assert(holds(after, "a", "1"));
    ck_assert(holds(after, "b", NULL));
    kedge_kv_abort(after);
    kedge_kv_close(kv);
    remove_dir();
}
END_TEST

START_TEST(put_modes)
{
    make_dir();
    struct kedge_kv *kv = openers[_i]();
    struct kedge_kv_tx *w = begin(kv, true);
    struct kedge_view one = text("1");
    ck_assert_int_eq(kedge_kv_put(w, KEDGE_KV_ENTRY, text("b"), one, KEDGE_KV_APPEND), KEDGE_OK);
    ck_assert_int_eq(kedge_kv_put(w, KEDGE_KV_ENTRY, text("c"), one, KEDGE_KV_APPEND), KEDGE_OK);
    ck_assert_int_eq(kedge_kv_put(w, KEDGE_KV_ENTRY, text("c"), one, KEDGE_KV_APPEND), KEDGE_E_EXISTS);
    ck_assert_int_eq(kedge_kv_put(w, KEDGE_KV_ENTRY, text("a"), one, KEDGE_KV_APPEND), KEDGE_E_EXISTS);
    ck_assert_int_eq(kedge_kv_put(w, KEDGE_KV_ENTRY, text("a"), one, KEDGE_KV_PUT_IF_ABSENT), KEDGE_OK);
    ck_assert_int_eq(kedge_kv_put(w, KEDGE_KV_ENTRY, text("a"), one, KEDGE_KV_PUT_IF_ABSENT), KEDGE_E_EXISTS);
    ck_assert_int_eq(kedge_kv_put(w, KEDGE_KV_ENTRY, text("a"), text(""), KEDGE_KV_PUT), KEDGE_OK);
    uint64_t count;
    ck_assert_int_eq(kedge_kv_count(w, KEDGE_KV_ENTRY, &count), KEDGE_OK);
    ck_assert_uint_eq(count, 3);
    ck_assert_int_eq(kedge_kv_put(w, KEDGE_KV_ENTRY, text(""), one, KEDGE_KV_PUT), KEDGE_E_ARG);
    uint8_t longest[KEDGE_KV_KEY_MAX + 1] = {1};
    ck_assert_int_eq(
        kedge_kv_put(w, KEDGE_KV_ENTRY, kedge_view_of(longest, sizeof longest), one, KEDGE_KV_PUT),
        KEDGE_E_ARG);
    ck_assert_int_eq(
        kedge_kv_put(w, KEDGE_KV_ENTRY, kedge_view_of(longest, KEDGE_KV_KEY_MAX), one, KEDGE_KV_PUT),
        KEDGE_OK);
    commit(w);
    struct kedge_kv_tx *r = begin(kv, false);
    struct kedge_buf key, value;
    kedge_buf_init(&key, KEDGE_KV_KEY_MAX);
    kedge_buf_init(&value, 16);
    ck_assert_int_eq(kedge_kv_last(r, KEDGE_KV_ENTRY, &key, &value), KEDGE_OK);
    ck_assert(kedge_view_eq(kedge_buf_view(&key), text("c")));
    ck_assert_int_eq(kedge_kv_last(r, KEDGE_KV_HEAD, &key, NULL), KEDGE_E_NOT_FOUND);
    struct kedge_buf small;
    kedge_buf_init(&small, 0);
    ck_assert_int_eq(kedge_kv_get(r, KEDGE_KV_ENTRY, text("c"), &small), KEDGE_E_TOO_LONG);
    kedge_kv_abort(r);
    kedge_buf_deinit(&key);
    kedge_buf_deinit(&value);
    kedge_kv_close(kv);
    remove_dir();
}
END_TEST

struct collected {
    char keys[256];
    int stop_after;
};

static int collect(void *arg, struct kedge_view key, struct kedge_view value)
{
    struct collected *c = arg;
    ck_assert_uint_eq(value.len, 1);
    snprintf(c->keys + strlen(c->keys), sizeof c->keys - strlen(c->keys), "%.*s ", (int)key.len,
             (const char *)key.ptr);
    return --c->stop_after == 0 ? 77 : 0;
}

START_TEST(scans_in_order)
{
    static const struct {
        const char *prefix, *from, *expected;
        int stop_after, result;
    } cases[] = {
        {"", "", "a ab abc b ba c ", 0, 0}, {"a", "", "a ab abc ", 0, 0}, {"ab", "", "ab abc ", 0, 0},
        {"a", "ab", "ab abc ", 0, 0},       {"a", "aa", "ab abc ", 0, 0}, {"a", "b", "", 0, 0},
        {"", "b", "b ba c ", 0, 0},         {"d", "", "", 0, 0},          {"", "", "a ab ", 2, 77},
    };
    make_dir();
    struct kedge_kv *kv = openers[_i]();
    struct kedge_kv_tx *w = begin(kv, true);
    static const char *const keys[] = {"ba", "a", "c", "abc", "ab", "b"};
    for (size_t i = 0; i < 6; i++) {
        put(w, keys[i], "v");
    }
    for (int pass = 0; pass < 2; pass++) { /* within the writer, then for a reader */
        struct kedge_kv_tx *tx = pass == 0 ? w : begin(kv, false);
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            struct collected c = {.stop_after = cases[i].stop_after};
            ck_assert_int_eq(
                kedge_kv_scan(tx, KEDGE_KV_STATE, text(cases[i].prefix), text(cases[i].from), collect, &c),
                cases[i].result);
            ck_assert_str_eq(c.keys, cases[i].expected);
        }
        if (pass == 0) {
            commit(w);
        } else {
            kedge_kv_abort(tx);
        }
    }
    kedge_kv_close(kv);
    remove_dir();
}
END_TEST

START_TEST(reopen_keeps_what_was_committed)
{
    make_dir();
    struct kedge_kv *kv = openers[_i]();
    struct kedge_kv_tx *w = begin(kv, true);
    put(w, "a", "1");
    commit(w);
    struct kedge_kv_tx *r = begin(kv, false);
    ck_assert_int_eq(kedge_kv_reopen(kv, NULL), KEDGE_E_BUSY);
    kedge_kv_abort(r);
    ck_assert_int_eq(kedge_kv_reopen(kv, NULL), KEDGE_OK);
    r = begin(kv, false);
    ck_assert(holds(r, "a", "1"));
    kedge_kv_abort(r);
    kedge_kv_close(kv);
    remove_dir();
}
END_TEST

/* Each allocation fails in turn: no crash, no leak, no half state. */
START_TEST(survives_lack_of_memory)
{
    make_dir();
    struct kedge_kv *kv = openers[_i]();
    bool done = false;
    for (long n = 1; n < 100 && !done; n++) {
        kedge_mem_fail_at(n);
        struct kedge_kv_tx *tx;
        int err = kedge_kv_begin(kv, true, &tx, NULL);
        if (!err) {
            err = kedge_kv_put(tx, KEDGE_KV_STATE, text("k"), text("v"), KEDGE_KV_PUT);
            if (err) {
                kedge_kv_abort(tx);
            } else {
                err = kedge_kv_commit(tx, NULL);
            }
        }
        kedge_mem_fail_at(0);
        struct kedge_kv_tx *r = begin(kv, false);
        ck_assert(holds(r, "k", err ? NULL : "v"));
        kedge_kv_abort(r);
        done = err == KEDGE_OK;
        ck_assert(done || err == KEDGE_E_NOMEM);
    }
    ck_assert(done);
    kedge_kv_close(kv);
    remove_dir();
}
END_TEST

START_TEST(memory_refuses_a_second_writer)
{
    struct kedge_kv *kv = open_memory();
    struct kedge_kv_tx *w = begin(kv, true), *other;
    ck_assert_int_eq(kedge_kv_begin(kv, true, &other, NULL), KEDGE_E_BUSY);
    kedge_kv_abort(w);
    kedge_kv_abort(begin(kv, true));
    kedge_kv_close(kv);
}
END_TEST

START_TEST(faults_strike_once_at_the_nth)
{
    static const struct {
        enum kedge_kv_fault fault;
        int err;
        bool is_stored, must_reopen;
    } cases[] = {
        {KEDGE_KV_FAULT_FAILED, KEDGE_E_IO, false, true},
        {KEDGE_KV_FAULT_FAILED_BUT_DONE, KEDGE_E_IO, true, true},
        {KEDGE_KV_FAULT_FULL, KEDGE_E_DISK_FULL, false, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct kedge_kv *kv = open_faulty();
        kedge_kv_faulty_set(kv, cases[i].fault, 2);
        struct kedge_kv_tx *w = begin(kv, true), *other;
        put(w, "a", "1");
        commit(w);
        w = begin(kv, true);
        put(w, "b", "1");
        ck_assert_int_eq(kedge_kv_commit(w, NULL), cases[i].err);
        if (cases[i].must_reopen) {
            ck_assert_int_eq(kedge_kv_begin(kv, true, &other, NULL), KEDGE_E_IO);
            ck_assert_int_eq(kedge_kv_reopen(kv, NULL), KEDGE_OK);
        }
        w = begin(kv, true);
        ck_assert(holds(w, "a", "1"));
        ck_assert(holds(w, "b", cases[i].is_stored ? "1" : NULL));
        commit(w);
        kedge_kv_faulty_set(kv, KEDGE_KV_FAULT_READ_ONLY, 0);
        ck_assert_int_eq(kedge_kv_begin(kv, true, &other, NULL), KEDGE_E_DISK_FULL);
        ck_assert_int_eq(kedge_kv_begin(kv, true, &other, NULL), KEDGE_E_DISK_FULL);
        kedge_kv_faulty_set(kv, KEDGE_KV_FAULT_NONE, 0);
        kedge_kv_abort(begin(kv, true));
        kedge_kv_close(kv);
    }
}
END_TEST

START_TEST(lmdb_opens_once_and_never_by_accident)
{
    make_dir();
    char sub[KEDGE_PATH_MAX];
    ck_assert_int_eq(kedge_path_join(sub, dir, "absent"), KEDGE_OK);
    struct kedge_kv_lmdb_options options = {0};
    struct kedge_kv *kv = NULL, *other = NULL;
    struct kedge_diag d = {0};
    ck_assert_int_eq(kedge_kv_lmdb_open(sub, &options, &kv, &d), KEDGE_E_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(d.text, "absent"));
    ck_assert(!kedge_file_exists(sub));
    options.read_only = options.create = true;
    ck_assert_int_eq(kedge_kv_lmdb_open(sub, &options, &kv, &d), KEDGE_E_NOT_FOUND);
    options.read_only = false;
    ck_assert_int_eq(kedge_kv_lmdb_open(sub, &options, &kv, &d), KEDGE_OK);
    ck_assert_int_eq(kedge_kv_lmdb_open(sub, &options, &other, &d), KEDGE_E_LOCKED);
    options.read_only = true;
    ck_assert_int_eq(kedge_kv_lmdb_open(sub, &options, &other, &d), KEDGE_E_LOCKED);
    pid_t pid = fork(); /* another process: no second writer */
    if (pid == 0) {
        options = (struct kedge_kv_lmdb_options){.create = true};
        char again[KEDGE_PATH_MAX];
        (void)!kedge_path_join(again, sub, "."); /* another spelling of the same folder */
        _exit(kedge_kv_lmdb_open(again, &options, &other, NULL) == KEDGE_E_LOCKED ? 0 : 1);
    }
    int status = -1;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    kedge_kv_close(kv);
    options = (struct kedge_kv_lmdb_options){0};
    ck_assert_int_eq(kedge_kv_lmdb_open(sub, &options, &kv, &d), KEDGE_OK);
    kedge_kv_close(kv);
    remove_dir();
}
END_TEST

/* An audited copy stays as it is: no lock file appears, the folder may be read-only. */
START_TEST(lmdb_reads_a_copy_without_a_trace)
{
    make_dir();
    struct kedge_kv *kv = open_lmdb();
    struct kedge_kv_tx *tx = begin(kv, true);
    put(tx, "a", "1");
    commit(tx);
    kedge_kv_close(kv);
    char lock[KEDGE_PATH_MAX];
    ck_assert_int_eq(kedge_path_join(lock, dir, "lock.mdb"), KEDGE_OK);
    ck_assert_int_eq(unlink(lock), 0);
    ck_assert_int_eq(chmod(dir, 0500), 0);
    struct kedge_kv_lmdb_options options = {.read_only = true, .no_lock = true};
    ck_assert_int_eq(kedge_kv_lmdb_open(dir, &options, &kv, NULL), KEDGE_OK);
    tx = begin(kv, false);
    ck_assert(holds(tx, "a", "1"));
    kedge_kv_abort(tx);
    ck_assert_int_eq(kedge_kv_begin(kv, true, &tx, NULL), KEDGE_E_DISK_FULL);
    kedge_kv_close(kv);
    ck_assert(!kedge_file_exists(lock));
    ck_assert_int_eq(chmod(dir, 0700), 0);
    remove_dir();
}
END_TEST

static int put_big(struct kedge_kv *kv, uint64_t index, size_t len)
{
    struct kedge_kv_tx *tx = begin(kv, true);
    uint8_t key[8];
    kedge_store_be64(key, index);
    uint8_t *bytes = kedge_mem_new(len, 1);
    ck_assert_ptr_nonnull(bytes);
    int err =
        kedge_kv_put(tx, KEDGE_KV_ENTRY, kedge_view_of(key, 8), kedge_view_of(bytes, len), KEDGE_KV_APPEND);
    kedge_mem_free(bytes);
    if (err) {
        kedge_kv_abort(tx);
        return err;
    }
    return kedge_kv_commit(tx, NULL);
}

START_TEST(lmdb_map_full_is_clean_and_grows)
{
    make_dir();
    struct kedge_kv_lmdb_options options = {.create = true, .map_bytes = 1 << 20, .map_bytes_max = 1 << 20};
    struct kedge_kv *kv;
    ck_assert_int_eq(kedge_kv_lmdb_open(dir, &options, &kv, NULL), KEDGE_OK);
    uint64_t stored = 0;
    int err = KEDGE_OK;
    while (!err && stored < 1000) {
        err = put_big(kv, stored, 10000);
        stored += !err;
    }
    ck_assert_int_eq(err, KEDGE_E_DISK_FULL);
    ck_assert_uint_gt(stored, 20);
    struct kedge_kv_tx *tx = begin(kv, false);
    uint64_t count;
    ck_assert_int_eq(kedge_kv_count(tx, KEDGE_KV_ENTRY, &count), KEDGE_OK);
    ck_assert_uint_eq(count, stored);
    kedge_kv_abort(tx);
    kedge_kv_close(kv);
    options.map_bytes_max = 16 << 20; /* with room to grow the same store goes on */
    ck_assert_int_eq(kedge_kv_lmdb_open(dir, &options, &kv, NULL), KEDGE_OK);
    for (uint64_t i = stored; i < 500; i++) {
        ck_assert_int_eq(put_big(kv, i, 10000), KEDGE_OK);
    }
    kedge_kv_close(kv);
    remove_dir();
}
END_TEST

/* A file-size limit makes writes come up short, as a full disk does. */
START_TEST(lmdb_disk_full_is_clean_and_retryable)
{
    make_dir();
    pid_t pid = fork();
    if (pid == 0) {
        struct kedge_kv *kv = open_lmdb();
        if (put_big(kv, 0, 10000) != KEDGE_OK) {
            _exit(1);
        }
        signal(SIGXFSZ, SIG_IGN);
        struct rlimit limit = {400000, RLIM_INFINITY};
        if (setrlimit(RLIMIT_FSIZE, &limit) != 0) {
            _exit(2);
        }
        uint64_t i = 1;
        int err = KEDGE_OK;
        while (!err && i < 200) {
            err = put_big(kv, i, 10000);
            i += !err;
        }
        if (err != KEDGE_E_DISK_FULL || i < 10) {
            _exit(3);
        }
        limit.rlim_cur = RLIM_INFINITY; /* room again: the same handle goes on */
        if (setrlimit(RLIMIT_FSIZE, &limit) != 0 || put_big(kv, i, 10000) != KEDGE_OK) {
            _exit(4);
        }
        struct kedge_kv_tx *tx = begin(kv, false);
        uint64_t count = 0;
        if (kedge_kv_count(tx, KEDGE_KV_ENTRY, &count) || count != i + 1) {
            _exit(5);
        }
        kedge_kv_abort(tx);
        kedge_kv_close(kv);
        _exit(0);
    }
    int status = -1;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    remove_dir();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store kv");
    TCase *t = tcase_create("contract");
    tcase_add_loop_test(t, transactions_are_atomic_and_isolated, 0, OPENERS);
    tcase_add_loop_test(t, put_modes, 0, OPENERS);
    tcase_add_loop_test(t, scans_in_order, 0, OPENERS);
    tcase_add_loop_test(t, reopen_keeps_what_was_committed, 0, OPENERS);
    tcase_add_loop_test(t, survives_lack_of_memory, 0, OPENERS);
    suite_add_tcase(suite, t);
    t = tcase_create("own");
    tcase_add_test(t, memory_refuses_a_second_writer);
    tcase_add_test(t, faults_strike_once_at_the_nth);
    tcase_add_test(t, lmdb_opens_once_and_never_by_accident);
    tcase_add_test(t, lmdb_reads_a_copy_without_a_trace);
    tcase_add_test(t, lmdb_map_full_is_clean_and_grows);
    tcase_add_test(t, lmdb_disk_full_is_clean_and_retryable);
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
