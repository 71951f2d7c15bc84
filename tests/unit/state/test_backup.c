/* Copies of a state folder that another process writes to without a pause: each of them has to be a moment
 * that was. The writer works as a coordinator does: it opens a round in the main chain, lets both tenants
 * append what belongs to it, and closes it in the main chain with their sizes; a record of its own says which
 * rounds are closed. */
#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chain/state/backup.h"
#include "chain/state/in_use.h"
#include "chain/state/tree.h"
#include "crypto/sign.h"

enum { COPIES = 5, PAUSE_US = 200000, READER_US = 30000 };

static char root[64], state[96];
static const struct kedge_id tenants[] = {{.s = "org-a"}, {.s = "org-b"}};

static void setup(void)
{
    ck_assert_int_eq(kedge_crypto_init(), KEDGE_OK);
    snprintf(root, sizeof root, "/tmp/kedge-snapshot-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
    snprintf(state, sizeof state, "%s/state", root);
    ck_assert_int_eq(kedge_state_create(state, "example.org", NULL), KEDGE_OK);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(kedge_state_tenant_create(state, &tenants[i], NULL), KEDGE_OK);
    }
}

static void teardown(void)
{
    ck_assert_int_eq(kedge_dir_remove(root), KEDGE_OK);
}

/* The reader takes its time between two logs, so that the writer comes in between more often than not. */
static bool slow;
/* NOLINTBEGIN(cert-dcl51-cpp): the linker's names */
int __real_kedge_kv_begin(struct kedge_kv *kv, bool write, struct kedge_kv_tx **ret_tx,
                          struct kedge_diag *reterr);
int __wrap_kedge_kv_begin(struct kedge_kv *kv, bool write, struct kedge_kv_tx **ret_tx,
                          struct kedge_diag *reterr);
int __wrap_kedge_kv_begin(struct kedge_kv *kv, bool write, struct kedge_kv_tx **ret_tx,
                          struct kedge_diag *reterr)
{
    if (slow && !write) {
        usleep(READER_US);
    }
    return __real_kedge_kv_begin(kv, write, ret_tx, reterr);
}

/* A disk that cannot be read where it says who names a blob: in a ledger, or in the coordinator's own store.
 */
static bool bad_refs, bad_scan;
int __real_kedge_ledger_find_ref(struct kedge_ledger *l, const struct kedge_hash *digest,
                                 uint64_t *ret_index);
int __wrap_kedge_ledger_find_ref(struct kedge_ledger *l, const struct kedge_hash *digest,
                                 uint64_t *ret_index);
int __wrap_kedge_ledger_find_ref(struct kedge_ledger *l, const struct kedge_hash *digest, uint64_t *ret_index)
{
    return bad_refs ? KEDGE_E_IO : __real_kedge_ledger_find_ref(l, digest, ret_index);
}
int __real_kedge_kv_scan(struct kedge_kv_tx *tx, enum kedge_kv_table table, struct kedge_view prefix,
                         struct kedge_view from, kedge_kv_visit *visit, void *arg);
int __wrap_kedge_kv_scan(struct kedge_kv_tx *tx, enum kedge_kv_table table, struct kedge_view prefix,
                         struct kedge_view from, kedge_kv_visit *visit, void *arg);
int __wrap_kedge_kv_scan(struct kedge_kv_tx *tx, enum kedge_kv_table table, struct kedge_view prefix,
                         struct kedge_view from, kedge_kv_visit *visit, void *arg)
{
    return bad_scan && table == KEDGE_KV_JOB ? KEDGE_E_IO
                                             : __real_kedge_kv_scan(tx, table, prefix, from, visit, arg);
}
/* NOLINTEND(cert-dcl51-cpp) */

/* ---- the writer ---- */

static void put(struct kedge_ledger *l, const char *what, unsigned round, uint64_t size_a, uint64_t size_b)
{
    char text[96];
    snprintf(text, sizeof text, "%s %08u %020llu %020llu", what, round, (unsigned long long)size_a,
             (unsigned long long)size_b);
    const struct kedge_ledger_append item = {.entry = kedge_view_str(text)};
    if (kedge_ledger_append(l, &item, 1, NULL, NULL, NULL) != KEDGE_OK) {
        _exit(1);
    }
}

static void put_own(struct kedge_kv *kv, unsigned round)
{
    struct kedge_kv_tx *tx;
    char text[16];
    snprintf(text, sizeof text, "%08u", round);
    if (kedge_kv_begin(kv, true, &tx, NULL) != KEDGE_OK
        || kedge_kv_put(tx, KEDGE_KV_STATE, kedge_view_str("closed"), kedge_view_str(text), KEDGE_KV_PUT)
               != KEDGE_OK
        || kedge_kv_commit(tx, NULL) != KEDGE_OK) {
        _exit(1);
    }
}

static _Noreturn void write_for_ever(int ready)
{
    static const struct kedge_kv_lmdb_options options = {.create = true};
    static struct kedge_state_log main_log, a, b;
    struct kedge_kv *own;
    char path[128];
    snprintf(path, sizeof path, "%s/coordinator.lmdb", state);
    if (kedge_kv_lmdb_open(path, &options, &own, NULL) != KEDGE_OK
        || kedge_state_log_open(state, NULL, KEDGE_STATE_WRITE, &main_log, NULL) != KEDGE_OK
        || kedge_state_log_open(state, &tenants[0], KEDGE_STATE_WRITE, &a, NULL) != KEDGE_OK
        || kedge_state_log_open(state, &tenants[1], KEDGE_STATE_WRITE, &b, NULL) != KEDGE_OK) {
        _exit(1);
    }
    put_own(own, 0);
    for (unsigned round = 1;; round++) {
        put(main_log.ledger, "open", round, 0, 0);
        put(a.ledger, "update", round, 0, 0);
        put(b.ledger, "update", round, 0, 0);
        put(main_log.ledger, "close", round, kedge_ledger_size(a.ledger), kedge_ledger_size(b.ledger));
        put_own(own, round);
        if (round == 1 && write(ready, "", 1) != 1) {
            _exit(1);
        }
        usleep(PAUSE_US);
    }
}

static pid_t start_writer(void)
{
    int ends[2];
    char byte;
    ck_assert_int_eq(pipe(ends), 0);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        close(ends[0]);
        write_for_ever(ends[1]);
    }
    close(ends[1]);
    ck_assert_int_eq(read(ends[0], &byte, 1), 1);
    close(ends[0]);
    return pid;
}

/* ---- the copies ---- */

static struct kedge_kv *open_copy(const char *dir, const char *name)
{
    static const struct kedge_kv_lmdb_options options = {.read_only = true, .no_lock = true};
    struct kedge_diag d = {.text = ""};
    struct kedge_kv *kv = NULL;
    char path[192];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    ck_assert_msg(kedge_kv_lmdb_open(path, &options, &kv, &d) == KEDGE_OK, "%s", d.text);
    return kv;
}

static uint64_t size_of(const char *dir, const char *name)
{
    static const struct kedge_ledger_options options = {.origin = NULL};
    struct kedge_kv *kv = open_copy(dir, name);
    struct kedge_ledger *l;
    struct kedge_diag d = {.text = ""};
    ck_assert_msg(kedge_ledger_open(kv, &options, &l, &d) == KEDGE_OK, "%s", d.text);
    ck_assert_msg(kedge_ledger_check(l, NULL, NULL, &d) == KEDGE_OK, "%s", d.text);
    uint64_t size = kedge_ledger_size(l);
    kedge_ledger_close(l);
    kedge_kv_close(kv);
    return size;
}

static unsigned long closed_by_own(const char *dir)
{
    struct kedge_kv *kv = open_copy(dir, "coordinator.lmdb");
    struct kedge_kv_tx *tx;
    struct kedge_view value;
    char text[9] = "";
    ck_assert_int_eq(kedge_kv_begin(kv, false, &tx, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_kv_peek(tx, KEDGE_KV_STATE, kedge_view_str("closed"), &value), KEDGE_OK);
    memcpy(text, value.ptr, 8);
    kedge_kv_abort(tx);
    kedge_kv_close(kv);
    return strtoul(text, NULL, 10);
}

/* Nothing that the main chain speaks of is missing, and nothing is there that it has not opened. */
static uint64_t check_moment(const char *dir)
{
    static const char *const names[] = {"tenants/org-a/ledger.lmdb", "tenants/org-b/ledger.lmdb"};
    uint64_t main_size = size_of(dir, "main/ledger.lmdb");
    unsigned long long opened = (main_size + 1) / 2, closed = main_size / 2;
    for (int i = 0; i < 2; i++) {
        unsigned long long size = size_of(dir, names[i]);
        ck_assert_msg(size <= opened, "%s is at %llu, the main chain has opened %llu", names[i], size,
                      opened);
        ck_assert_msg(size >= closed, "%s is at %llu, the main chain has closed %llu", names[i], size,
                      closed);
    }
    unsigned long own = closed_by_own(dir);
    ck_assert_msg(own <= closed, "the coordinator's own store is ahead: %lu of %llu", own, closed);
    ck_assert_msg(own + 1 >= closed, "the coordinator's own store is late: %lu of %llu", own, closed);
    return main_size;
}

START_TEST(test_moments)
{
    char out[128];
    struct kedge_snapshot *s;
    struct kedge_diag d = {.text = ""};
    pid_t writer = start_writer();
    uint64_t before = 0;
    for (int i = 0, tries = 0; i < COPIES; tries++) {
        ck_assert_msg(tries < 100 * COPIES, "copy %d has nothing new", i);
        snprintf(out, sizeof out, "%s/copy-%d", root, tries);
        slow = true;
        ck_assert_msg(kedge_snapshot_take(state, &s, &d) == KEDGE_OK, "%s", d.text);
        slow = false;
        ck_assert_msg(kedge_snapshot_put_stores(s, out, true, false, &d) == KEDGE_OK, "%s", d.text);
        kedge_snapshot_free(s);
        uint64_t now = check_moment(out);
        ck_assert_uint_ge(now, before);
        i += now > before; /* else the writer waits for a disk */
        before = now;
    }
    ck_assert_int_eq(kill(writer, SIGKILL), 0);
    ck_assert_int_eq(waitpid(writer, NULL, 0), writer);
}
END_TEST

/* ---- restoring ---- */

static void make_backup(const char *out)
{
    struct kedge_backup b;
    ck_assert_int_eq(mkdir(out, 0700), 0);
    ck_assert_int_eq(kedge_backup_copy(state, out, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_backup_seal(out, &b, NULL), KEDGE_OK);
}

static void append(const struct kedge_id *tenant, const char *text)
{
    static struct kedge_state_log log;
    const struct kedge_ledger_append item = {.entry = kedge_view_str(text)};
    ck_assert_int_eq(kedge_state_log_open(state, tenant, KEDGE_STATE_WRITE, &log, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_ledger_append(log.ledger, &item, 1, NULL, NULL, NULL), KEDGE_OK);
    kedge_state_log_close(&log);
}

START_TEST(test_marks)
{
    char out[128];
    struct kedge_diag d = {.text = ""};
    append(NULL, "one");
    append(&tenants[0], "one");
    snprintf(out, sizeof out, "%s/backup", root);
    make_backup(out);
    ck_assert_msg(kedge_backup_check_marks(out, state, &d) == KEDGE_OK, "%s", d.text);
    append(&tenants[0], "two");
    ck_assert_int_eq(kedge_backup_check_marks(out, state, &d), KEDGE_E_SHORTER);
    ck_assert_ptr_nonnull(strstr(d.text, "org-a"));
    ck_assert_int_eq(kedge_backup_check_marks(out, root, &d), KEDGE_E_NOT_FOUND);
}
END_TEST

/* Whether a blob belongs into the copy is asked of a disk; where it does not answer, there is no copy. */
START_TEST(test_unreadable_names)
{
    static const struct kedge_blobs_options options = {.read_only = false};
    static const struct kedge_kv_lmdb_options own_options = {.create = true};
    const struct kedge_view part = kedge_view_str("a spec of a job that is not opened yet");
    char out[128], folder[128];
    struct kedge_blobs *blobs;
    struct kedge_snapshot *s;
    struct kedge_kv *own;
    struct kedge_hash digest;
    struct kedge_diag d = {.text = ""};
    snprintf(folder, sizeof folder, "%s/main", state);
    ck_assert_int_eq(kedge_blobs_open(folder, &options, &blobs, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_blobs_put(blobs, &part, 1, &digest, NULL), KEDGE_OK);
    kedge_blobs_close(blobs);
    snprintf(folder, sizeof folder, "%s/coordinator.lmdb", state);
    ck_assert_int_eq(kedge_kv_lmdb_open(folder, &own_options, &own, NULL), KEDGE_OK);
    put_own(own, 0);
    kedge_kv_close(own);
    snprintf(out, sizeof out, "%s/backup", root);
    ck_assert_int_eq(mkdir(out, 0700), 0);
    bad_refs = true;
    int err = kedge_backup_copy(state, out, &d);
    bad_refs = false;
    ck_assert_int_eq(err, KEDGE_E_IO);
    ck_assert_msg(strstr(d.text, "the ledger that may name this file cannot be read"), "%s", d.text);
    ck_assert_int_eq(kedge_snapshot_take(state, &s, NULL), KEDGE_OK);
    bool named = true;
    ck_assert_int_eq(kedge_snapshot_job_names(s, &digest, &named), KEDGE_OK);
    ck_assert(!named);
    bad_scan = true;
    ck_assert_int_eq(kedge_snapshot_job_names(s, &digest, &named), KEDGE_E_IO);
    bad_scan = false;
    kedge_snapshot_free(s);
}
END_TEST

static void write_file(const char *path, const char *text)
{
    ck_assert_int_eq(kedge_file_write(path, kedge_view_str(text), 0600, NULL), KEDGE_OK);
}

/* A line of SHA256SUMS that is none, or that leads out of the folder. */
START_TEST(test_bad_sums)
{
    static const char hex[] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    static const char *const names[] = {"../outside", "/tmp/outside", "a/../../outside", "a/..", ".."};
    char out[128], sums[160], to[128], text[256];
    snprintf(out, sizeof out, "%s/backup", root);
    make_backup(out);
    snprintf(sums, sizeof sums, "%s/SHA256SUMS", out);
    for (size_t i = 0; i < sizeof names / sizeof names[0] + 3; i++) {
        const char *format = i < 5 ? "%s  %s\n" : i == 5 ? "%s %s\n" : i == 6 ? "%s  %s" : "%.63s  %s\n";
        snprintf(text, sizeof text, format, hex, i < 5 ? names[i] : "config.json");
        write_file(sums, text);
        snprintf(to, sizeof to, "%s/to-%zu", root, i);
        ck_assert_int_eq(mkdir(to, 0700), 0);
        ck_assert_msg(kedge_backup_restore(out, to, NULL) == KEDGE_E_CORRUPT, "line %zu was taken", i);
    }
    write_file(sums, ""); /* and as many as backup.json says */
    snprintf(to, sizeof to, "%s/to", root);
    ck_assert_int_eq(mkdir(to, 0700), 0);
    ck_assert_int_eq(kedge_backup_restore(out, to, NULL), KEDGE_E_CORRUPT);
}
END_TEST

START_TEST(test_in_use)
{
    char own[128], path[128], copy[128];
    struct kedge_kv *kv;
    static const struct kedge_kv_lmdb_options options = {.create = true};
    snprintf(own, sizeof own, "%s/coordinator.lmdb", state);
    ck_assert_int_eq(kedge_kv_lmdb_open(own, &options, &kv, NULL), KEDGE_OK);
    kedge_kv_close(kv);
    ck_assert_int_eq(kedge_in_use_look(state), KEDGE_IN_USE_NOT);
    ck_assert_int_eq(kedge_in_use_write(state, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_in_use_look(state), KEDGE_IN_USE_HERE);
    snprintf(path, sizeof path, "%s/coordinator.lmdb/data.mdb", state);
    snprintf(copy, sizeof copy, "%s/copy.mdb", root);
    ck_assert_int_eq(kedge_tree_copy_file(path, copy, NULL, NULL, NULL), KEDGE_OK);
    ck_assert_int_eq(rename(copy, path), 0);
    ck_assert_int_eq(kedge_in_use_look(state), KEDGE_IN_USE_ELSEWHERE);
    kedge_in_use_remove(state);
    ck_assert_int_eq(kedge_in_use_look(state), KEDGE_IN_USE_NOT);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("state_backup");
    TCase *t = tcase_create("backup");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 120);
    tcase_add_test(t, test_moments);
    tcase_add_test(t, test_marks);
    tcase_add_test(t, test_unreadable_names);
    tcase_add_test(t, test_bad_sums);
    tcase_add_test(t, test_in_use);
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int bad = srunner_ntests_failed(runner);
    srunner_free(runner);
    return bad ? EXIT_FAILURE : EXIT_SUCCESS;
}
