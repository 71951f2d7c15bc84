/* What the next writer may rely on: a store that was closed in good order says so, once, and of itself alone.
 */
#include "ledger_fixture.h"

#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "common/base/os/clock.h"

/* How often a file system is synced, and whether that fails. */
static unsigned syncs;
static bool sync_fails;
/* NOLINTBEGIN(cert-dcl51-cpp): the linker's names */
int __wrap_syncfs(int fd);
int __real_syncfs(int fd);
int __wrap_syncfs(int fd)
{
    syncs++;
    errno = EIO;
    return sync_fails ? -1 : __real_syncfs(fd);
}
/* NOLINTEND(cert-dcl51-cpp) */

static void open_again(struct fixture *f)
{
    f->kv = fixture_lmdb(f->store, false);
    fixture_must_open(f, false);
}

static void close_again(struct fixture *f)
{
    kedge_ledger_close(f->l);
    kedge_kv_close(f->kv);
    f->l = NULL;
    f->kv = NULL;
}

static void begin(struct fixture *f)
{
    fixture_init(f);
    f->kv = fixture_lmdb(f->store, true);
    ck_assert(!kedge_kv_was_closed(f->kv));
    fixture_must_open(f, true);
    ck_assert_int_eq(append_range(f->l, 0, 3, 1, NULL), KEDGE_OK);
}

/* When the mark was written last. */
static struct timespec mark_time(const struct fixture *f)
{
    struct stat st;
    ck_assert_int_eq(stat(f->mark, &st), 0);
    kedge_os_sleep_ms(20); /* the clock of files is coarse */
    return st.st_mtim;
}

static bool is_mark_newer(const struct fixture *f, struct timespec than)
{
    struct stat st;
    ck_assert_int_eq(stat(f->mark, &st), 0);
    return st.st_mtim.tv_sec != than.tv_sec || st.st_mtim.tv_nsec != than.tv_nsec;
}

static off_t words_in_the_lock(const struct fixture *f)
{
    struct stat st;
    char lock[128];
    snprintf(lock, sizeof lock, "%s/kedge.lock", f->store);
    ck_assert_int_eq(stat(lock, &st), 0);
    return st.st_size;
}

/* In a process of its own, which opens the store, changes it or not, and dies. */
static void kill_a_writer(struct fixture *f, bool it_writes)
{
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        open_again(f);
        uint64_t size = kedge_ledger_size(f->l);
        if (it_writes && append_range(f->l, size, size + 1, 1, NULL) != KEDGE_OK) {
            _exit(1);
        }
        raise(SIGKILL);
    }
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFSIGNALED(status));
}

START_TEST(an_orderly_close_is_believed_until_the_store_changes)
{
    struct fixture f;
    begin(&f);
    close_again(&f);
    struct timespec then = mark_time(&f);
    for (int i = 0; i < 3; i++) {
        if (i == 2) {
            kill_a_writer(&f, false);
        }
        open_again(&f);
        ck_assert(kedge_kv_was_closed(f.kv));
        ck_assert(!is_mark_newer(&f, then)); /* nothing had to be written */
        ck_assert_int_gt(words_in_the_lock(&f), 0);
        close_again(&f);
    }
    open_again(&f);
    struct kedge_kv_tx *tx;
    ck_assert_int_eq(kedge_kv_begin(f.kv, true, &tx, NULL), KEDGE_OK);
    ck_assert_int_eq(words_in_the_lock(&f), 0); /* who is killed now leaves no word */
    kedge_kv_abort(tx);
    ck_assert_int_eq(append_range(f.l, 3, 4, 1, NULL), KEDGE_OK);
    ck_assert(is_mark_newer(&f, then));
    fixture_deinit(&f);
}
END_TEST

START_TEST(a_killed_writer_is_not_believed)
{
    struct fixture f;
    begin(&f);
    close_again(&f);
    kill_a_writer(&f, true);
    struct timespec then = mark_time(&f);
    open_again(&f);
    ck_assert(!kedge_kv_was_closed(f.kv));
    ck_assert(is_mark_newer(&f, then)); /* made durable anew */
    fixture_deinit(&f);
}
END_TEST

START_TEST(a_copy_and_a_doubted_store_are_not_believed)
{
    struct fixture f;
    char command[512];
    begin(&f);
    close_again(&f);
    snprintf(command, sizeof command, "cp -a %s %s.copy && rm -r %s && mv %s.copy %s", f.store, f.store,
             f.store, f.store, f.store);
    ck_assert_int_eq(system(command), 0);
    open_again(&f);
    ck_assert(!kedge_kv_was_closed(f.kv));
    close_again(&f);
    open_again(&f);
    ck_assert(kedge_kv_was_closed(f.kv));
    kedge_kv_doubt(f.kv);
    close_again(&f);
    open_again(&f);
    ck_assert(!kedge_kv_was_closed(f.kv));
    fixture_deinit(&f);
}
END_TEST

/* After kills many stores are made durable by one sync, at the end, and no close is in good order before. */
START_TEST(many_are_synced_together)
{
    struct fixture f;
    begin(&f);
    close_again(&f);
    kill_a_writer(&f, true);
    struct timespec then = mark_time(&f);
    syncs = 0;
    kedge_kv_lmdb_sync_together_begin();
    for (int i = 0; i < 3; i++) {
        open_again(&f);
        ck_assert(!kedge_kv_was_closed(f.kv));
        ck_assert(!is_mark_newer(&f, then));
        close_again(&f);
        ck_assert_int_eq(words_in_the_lock(&f), 0);
    }
    open_again(&f);
    ck_assert_uint_eq(syncs, 0);
    ck_assert_int_eq(kedge_kv_lmdb_sync_together_end(NULL), KEDGE_OK);
    ck_assert_uint_eq(syncs, 1);
    close_again(&f);
    ck_assert_int_gt(words_in_the_lock(&f), 0);
    open_again(&f);
    ck_assert(kedge_kv_was_closed(f.kv));
    ck_assert_int_eq(append_range(f.l, 4, 5, 1, NULL), KEDGE_OK); /* marks are written again */
    ck_assert(is_mark_newer(&f, then));
    fixture_deinit(&f);
}
END_TEST

START_TEST(what_could_not_be_synced_together_is_not_believed)
{
    struct fixture f;
    struct kedge_diag d = {0};
    begin(&f);
    close_again(&f);
    kill_a_writer(&f, true);
    kedge_kv_lmdb_sync_together_begin();
    open_again(&f);
    sync_fails = true;
    ck_assert_int_eq(kedge_kv_lmdb_sync_together_end(&d), KEDGE_E_IO);
    ck_assert_ptr_nonnull(strstr(d.text, "cannot be synced"));
    close_again(&f);
    ck_assert_int_eq(words_in_the_lock(&f), 0);
    open_again(&f);
    ck_assert(!kedge_kv_was_closed(f.kv));
    fixture_deinit(&f);
}
END_TEST

/* The mark is looked at all the same: an older one, or none, is not what was closed. */
START_TEST(a_mark_that_is_behind_is_raised)
{
    struct fixture f;
    struct kedge_buf mark;
    struct kedge_diag d = {0};
    uint64_t size;
    begin(&f);
    kedge_buf_init(&mark, 4096);
    ck_assert_int_eq(kedge_file_read(f.mark, &mark, NULL), KEDGE_OK);
    ck_assert_int_eq(append_range(f.l, 3, 5, 1, NULL), KEDGE_OK);
    close_again(&f);
    ck_assert_int_eq(kedge_file_write(f.mark, kedge_buf_view(&mark), 0600, NULL), KEDGE_OK);
    kedge_buf_deinit(&mark);
    open_again(&f);
    ck_assert_int_eq(kedge_high_water_size(f.mark, ORIGIN, &size, NULL), KEDGE_OK);
    ck_assert_uint_eq(size, 5);
    ck_assert_int_eq(words_in_the_lock(&f), 0); /* the mark was changed, the store was not */
    close_again(&f);
    ck_assert_int_eq(unlink(f.mark), 0);
    f.kv = fixture_lmdb(f.store, false);
    ck_assert_int_eq(fixture_open(&f, false, &d), KEDGE_E_CORRUPT);
    kedge_kv_close(f.kv);
    ck_assert_int_eq(kedge_dir_remove(f.dir), KEDGE_OK);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store closed");
    TCase *t = tcase_create("contract");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, an_orderly_close_is_believed_until_the_store_changes);
    tcase_add_test(t, a_killed_writer_is_not_believed);
    tcase_add_test(t, many_are_synced_together);
    tcase_add_test(t, what_could_not_be_synced_together_is_not_believed);
    tcase_add_test(t, a_copy_and_a_doubted_store_are_not_believed);
    tcase_add_test(t, a_mark_that_is_behind_is_raised);
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
