/* What the next writer may rely on: a store that was closed in good order says so, once, and of itself alone.
 */
#include "ledger_fixture.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "common/base/os/clock.h"

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

START_TEST(an_orderly_close_is_believed_once)
{
    struct fixture f;
    begin(&f);
    close_again(&f);
    struct timespec then = mark_time(&f);
    for (int i = 0; i < 2; i++) {
        open_again(&f);
        ck_assert(kedge_kv_was_closed(f.kv));
        ck_assert(!is_mark_newer(&f, then)); /* nothing had to be written */
        char lock[128];
        struct stat st;
        snprintf(lock, sizeof lock, "%s/kedge.lock", f.store);
        ck_assert_int_eq(stat(lock, &st), 0);
        ck_assert_int_eq(st.st_size, 0); /* who is killed now leaves no word */
        close_again(&f);
    }
    open_again(&f);
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
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        open_again(&f);
        raise(SIGKILL);
    }
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
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
    tcase_add_test(t, an_orderly_close_is_believed_once);
    tcase_add_test(t, a_killed_writer_is_not_believed);
    tcase_add_test(t, a_copy_and_a_doubted_store_are_not_believed);
    tcase_add_test(t, a_mark_that_is_behind_is_raised);
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
