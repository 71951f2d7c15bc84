/* Files, locks, clocks and processes against the real system, in a folder of the test's own. */
#include "common/base/os/clock.h"
#include "common/base/os/entropy.h"
#include "common/base/os/file.h"
#include "common/base/os/process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/mem.h"
#include "tests/unit/base/check.h"

static char base[KEDGE_PATH_MAX];

/* "base/name"; good until the 16th call after. */
static const char *at(const char *name)
{
    static char paths[16][KEDGE_PATH_MAX];
    static unsigned next;
    char *p = paths[next++ % 16];
    ck_assert_int_eq(kedge_path_join(p, base, name), KEDGE_OK);
    return p;
}

static unsigned entries(const char *path)
{
    DIR *dir = opendir(path);
    ck_assert_ptr_nonnull(dir);
    unsigned n = 0;
    for (struct dirent *e = readdir(dir); e; e = readdir(dir)) {
        n += e->d_name[0] != '.' ? 1 : 0;
    }
    closedir(dir);
    return n;
}

static void write_text(const char *path, const char *text)
{
    struct kedge_diag d;
    ck_assert_int_eq(kedge_file_write(path, kedge_view_str(text), 0600, &d), KEDGE_OK);
}

static void expect_text(const char *path, const char *text)
{
    struct kedge_buf b;
    kedge_buf_init(&b, 1000);
    ck_assert_int_eq(kedge_file_read(path, &b, NULL), KEDGE_OK);
    ck_assert(kedge_view_eq(kedge_buf_view(&b), kedge_view_str(text)));
    kedge_buf_deinit(&b);
}

START_TEST(paths)
{
    char out[KEDGE_PATH_MAX] = "as it was", name[KEDGE_PATH_MAX];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    ck_assert_int_eq(kedge_path_join(out, "d", name), KEDGE_E_TOO_LONG);
    ck_assert_str_eq(out, "as it was");
    name[sizeof name - 3] = '\0';
    ck_assert_int_eq(kedge_path_join(out, "d", name), KEDGE_OK);
    ck_assert_uint_eq(strlen(out), KEDGE_PATH_MAX - 1);
    ck_assert_int_eq(kedge_path_join(out, "a", "b"), KEDGE_OK);
    ck_assert_int_eq(kedge_path_join(out, out, "c"), KEDGE_OK); /* in place */
    ck_assert_str_eq(out, "a/b/c");
}
END_TEST

START_TEST(os_errors)
{
    static const int table[][2] = {{ENOENT, KEDGE_E_NOT_FOUND}, {ENOTDIR, KEDGE_E_NOT_FOUND},
                                   {ENOSPC, KEDGE_E_DISK_FULL}, {EDQUOT, KEDGE_E_DISK_FULL},
                                   {EROFS, KEDGE_E_DISK_FULL},  {EACCES, KEDGE_E_DENIED},
                                   {EPERM, KEDGE_E_DENIED},     {ENOMEM, KEDGE_E_NOMEM},
                                   {EIO, KEDGE_E_IO},           {12345, KEDGE_E_IO}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        ck_assert_int_eq(kedge_errno(table[i][0]), table[i][1]);
    }
}
END_TEST

START_TEST(write_replaces_whole)
{
    const char *path = at("w");
    struct kedge_diag d;
    write_text(path, "old");
    write_text(path, "new and longer");
    expect_text(path, "new and longer");
    write_text(path, "");
    expect_text(path, "");
    struct stat st;
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0600);
    ck_assert_uint_eq(entries(base), 1); /* no temporary left */

    ck_assert_int_eq(kedge_file_write(at("no/such/folder"), kedge_view_str("x"), 0600, &d),
                     KEDGE_E_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(d.text, "no/such/folder"));
    ck_assert_int_eq(kedge_dir_make(at("dir/with"), 0700, &d), KEDGE_OK);
    ck_assert_int_ne(kedge_file_write(at("dir"), kedge_view_str("x"), 0600, &d), KEDGE_OK); /* is a folder */
    ck_assert_uint_eq(entries(base), 2);
    ck_assert_uint_eq(entries(at("dir")), 1);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(kedge_dir_remove(at("dir")), KEDGE_OK);
}
END_TEST

/* A write that the system cuts short leaves the old file: a limit on file size stands in for the full disk.
 */
START_TEST(failed_write_keeps_the_old_file)
{
    write_text(at("kept"), "kept");
    fflush(NULL);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        struct rlimit limit = {4, 4};
        signal(SIGXFSZ, SIG_IGN);
        int err = setrlimit(RLIMIT_FSIZE, &limit) != 0
                      ? KEDGE_E_BUG
                      : kedge_file_write(at("kept"), kedge_view_str("longer than four"), 0600, NULL);
        _exit(err == KEDGE_E_IO ? 0 : 1);
    }
    int status = -1;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    expect_text(at("kept"), "kept");
    ck_assert_uint_eq(entries(base), 1);
    unlink(at("kept"));
}
END_TEST

static void *write_many(void *arg)
{
    const char *path = arg;
    intptr_t failed = 0;
    for (int i = 0; i < 20; i++) {
        failed += kedge_file_write(path, kedge_view_str("same"), 0600, NULL) == KEDGE_OK ? 0 : 1;
    }
    return (void *)failed;
}

START_TEST(threads_write_one_path)
{
    char path[KEDGE_PATH_MAX];
    ck_assert_int_eq(kedge_path_join(path, base, "shared"), KEDGE_OK);
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(pthread_create(&threads[i], NULL, write_many, path), 0);
    }
    for (int i = 0; i < 3; i++) {
        void *failed = NULL;
        pthread_join(threads[i], &failed);
        ck_assert_ptr_null(failed);
    }
    expect_text(path, "same");
    ck_assert_uint_eq(entries(base), 1);
    unlink(path);
}
END_TEST

START_TEST(read_is_bounded)
{
    struct kedge_diag d;
    write_text(at("r"), "0123456789");
    for (size_t max = 0; max < 13; max++) {
        struct kedge_buf b;
        kedge_buf_init(&b, max);
        int err = kedge_file_read(at("r"), &b, &d);
        ck_assert_int_eq(err, max >= 10 ? KEDGE_OK : KEDGE_E_TOO_LONG);
        ck_assert_uint_eq(b.len, max >= 10 ? 10 : 0);
        kedge_buf_deinit(&b);
    }
    struct kedge_buf b;
    kedge_buf_init(&b, 64);
    kedge_buf_put_str(&b, "head:");
    ck_assert_int_eq(kedge_file_read(at("r"), &b, &d), KEDGE_OK); /* appends */
    ck_assert(kedge_view_eq(kedge_buf_view(&b), kedge_view_str("head:0123456789")));
    ck_assert_int_eq(kedge_file_read(at("absent"), &b, &d), KEDGE_E_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(d.text, "absent"));
    ck_assert_int_ne(kedge_file_read(base, &b, &d), KEDGE_OK); /* a folder */
    ck_assert_uint_eq(b.len, 15);
    kedge_buf_deinit(&b);
    kedge_buf_init(&b, 64);
    kedge_mem_fail_at(1);
    ck_assert_int_eq(kedge_file_read(at("r"), &b, &d), KEDGE_E_NOMEM);
    kedge_mem_fail_at(0);
    kedge_buf_deinit(&b);
    ck_assert_int_eq(kedge_file_size(at("r")), 10);
    ck_assert_int_eq(kedge_file_size(at("absent")), KEDGE_E_NOT_FOUND);
    ck_assert(kedge_file_exists(at("r")) && !kedge_file_exists(at("absent")));
    unlink(at("r"));
}
END_TEST

START_TEST(maps)
{
    struct kedge_map m;
    struct kedge_diag d;
    write_text(at("m"), "mapped");
    ck_assert_int_eq(kedge_map_open(at("m"), &m, &d), KEDGE_OK);
    ck_assert(kedge_view_eq(kedge_view_of(m.ptr, m.len), kedge_view_str("mapped")));
    kedge_map_close(&m);
    kedge_map_close(&m); /* twice is fine */
    write_text(at("m"), "");
    ck_assert_int_eq(kedge_map_open(at("m"), &m, &d), KEDGE_OK);
    ck_assert(m.ptr == NULL && m.len == 0);
    kedge_map_close(&m);
    ck_assert_int_eq(kedge_map_open(base, &m, &d), KEDGE_E_IO);
    ck_assert_int_eq(kedge_map_open(at("absent"), &m, &d), KEDGE_E_NOT_FOUND);
    unlink(at("m"));
}
END_TEST

START_TEST(dir_remove_follows_no_link)
{
    ck_assert_int_eq(kedge_dir_make(at("outside"), 0700, NULL), KEDGE_OK);
    write_text(at("outside/kept"), "kept");
    ck_assert_int_eq(kedge_dir_make(at("tree/a/b/c"), 0700, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_dir_make(at("tree/a/b/c"), 0700, NULL), KEDGE_OK); /* again is fine */
    write_text(at("tree/a/file"), "x");
    write_text(at("tree/a/b/.hidden"), "x");
    ck_assert_int_eq(symlink("../../outside", at("tree/a/link")), 0);
    ck_assert_int_eq(symlink("nowhere", at("tree/dangling")), 0);
    ck_assert_int_eq(kedge_dir_remove(at("tree")), KEDGE_OK);
    ck_assert(!kedge_file_exists(at("tree")));
    ck_assert_int_eq(kedge_dir_remove(at("tree")), KEDGE_OK); /* absent is fine */

    ck_assert_int_eq(symlink("outside", at("link")), 0);
    ck_assert_int_eq(kedge_dir_remove(at("link")), KEDGE_E_ARG);
    ck_assert_int_eq(kedge_dir_remove(at("outside/kept")), KEDGE_E_ARG);
    ck_assert_int_eq(kedge_dir_make(at("outside/kept"), 0700, NULL), KEDGE_E_IO); /* a file is in the way */
    ck_assert_int_eq(kedge_dir_make("", 0700, NULL), KEDGE_E_TOO_LONG);
    expect_text(at("outside/kept"), "kept");
    unlink(at("link"));
    ck_assert_int_eq(kedge_dir_remove(at("outside")), KEDGE_OK);
}
END_TEST

/* A path that the system allows, and that is longer than ours: found, told, and never written beyond the end.
 */
START_TEST(real_paths)
{
    enum { DEEP = 7 };
    struct {
        char path[KEDGE_PATH_MAX], behind[8];
    } out = {.behind = "behind"};
    struct kedge_diag d;
    char name[201] = {0};
    memset(name, 'n', sizeof name - 1);
    ck_assert_int_eq(kedge_dir_make(at("real"), 0700, &d), KEDGE_OK);
    ck_assert_int_eq(symlink("real", at("alias")), 0);
    ck_assert_int_eq(kedge_path_real(at("alias"), out.path, &d), KEDGE_OK);
    ck_assert_ptr_nonnull(strstr(out.path, "/real"));
    ck_assert_int_eq(kedge_path_real(at("nowhere"), out.path, &d), KEDGE_E_NOT_FOUND);

    int home = open(".", O_RDONLY | O_DIRECTORY);
    ck_assert_int_ge(home, 0);
    ck_assert_int_eq(chdir(at("real")), 0);
    for (int i = 0; i < DEEP; i++) {
        ck_assert(mkdir(name, 0700) == 0 && chdir(name) == 0);
    }
    ck_assert_int_eq(kedge_path_real(".", out.path, &d), KEDGE_E_TOO_LONG);
    ck_assert_ptr_nonnull(strstr(d.text, "at most 1023"));
    ck_assert_str_eq(out.behind, "behind");
    for (int i = 0; i < DEEP; i++) {
        ck_assert(chdir("..") == 0 && rmdir(name) == 0);
    }
    ck_assert_int_eq(fchdir(home), 0);
    close(home);
    unlink(at("alias"));
}
END_TEST

START_TEST(lock_is_exclusive)
{
    struct kedge_diag d;
    int held = kedge_file_lock(at("lock"), &d);
    ck_assert_int_ge(held, 0);
    ck_assert_int_eq(kedge_file_lock(at("lock"), &d), KEDGE_E_LOCKED);
    ck_assert_int_eq(kedge_file_lock_within(at("lock"), 1, &d), KEDGE_E_LOCKED); /* waited, and said so */
    ck_assert_ptr_nonnull(strstr(d.text, "still in use by another process after 1 s"));
    ck_assert_ptr_nonnull(strstr(d.text, "in use"));
    close(held);
    held = kedge_file_lock(at("lock"), &d);
    ck_assert_int_ge(held, 0);
    close(held);
    ck_assert_int_eq(kedge_file_lock(at("no/lock"), &d), KEDGE_E_NOT_FOUND);
    unlink(at("lock"));
}
END_TEST

/* Waits at most 10 s for the end. */
static int wait_end(struct kedge_process *p)
{
    int status = -1;
    for (int i = 0; i < 2000; i++) {
        if (kedge_process_poll(p, &status)) {
            ck_assert_int_eq(p->pid, 0);
            ck_assert(p->in_fd == -1 && p->out_fd == -1);
            return status;
        }
        kedge_os_sleep_ms(5);
    }
    kedge_process_stop(p, SIGKILL, 0);
    return -1;
}

START_TEST(process_pipes)
{
    static const char *const argv[] = {"/bin/cat", NULL};
    struct kedge_process p;
    struct kedge_process_options o = {
        .argv = argv, .pipe_stdin = true, .pipe_stdout = true, .die_with_parent = true};
    ck_assert_int_eq(kedge_process_start(&o, &p, NULL), KEDGE_OK);
    int status;
    ck_assert(!kedge_process_poll(&p, &status)); /* cat waits for us */
    ck_assert_int_eq(write(p.in_fd, "ping", 4), 4);
    char back[5] = {0};
    size_t got = 0;
    while (got < 4) {
        ssize_t n = read(p.out_fd, back + got, 4 - got);
        ck_assert_int_gt(n, 0);
        got += (size_t)n;
    }
    ck_assert_str_eq(back, "ping");
    close(p.in_fd);
    p.in_fd = -1;
    ck_assert_int_eq(wait_end(&p), 0);
    ck_assert(!kedge_process_poll(&p, &status)); /* not running: nothing to report */
    kedge_process_stop(&p, SIGTERM, 10);
}
END_TEST

START_TEST(process_start_errors_and_status)
{
    struct kedge_process p = {.in_fd = -1, .out_fd = -1, .err_fd = -1};
    struct kedge_diag d;
    static const char *const missing[] = {"/no/such/program", NULL};
    struct kedge_process_options o = {.argv = missing, .pipe_stdin = true, .pipe_stdout = true};
    ck_assert_int_eq(kedge_process_start(&o, &p, &d), KEDGE_E_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(d.text, "/no/such/program"));
    ck_assert_int_eq(p.pid, 0);

    static const char *const exits[] = {"sh", "-c", "test \"$KEDGE_X\" = y && test \"$PWD\" = / && exit 7",
                                        NULL};
    static const char *const env[] = {"KEDGE_X=y", "PATH=/usr/bin:/bin", NULL};
    o = (struct kedge_process_options){.argv = exits, .env = env, .directory = "/"};
    ck_assert_int_eq(kedge_process_start(&o, &p, &d), KEDGE_OK);
    ck_assert_int_eq(wait_end(&p), 7);
    o.directory = "/no/such/folder";
    ck_assert_int_eq(kedge_process_start(&o, &p, &d), KEDGE_E_NOT_FOUND);

    static const char *const dies[] = {"sh", "-c", "echo to-stderr >&2; kill -9 $$", NULL};
    o = (struct kedge_process_options){.argv = dies, .stderr_path = at("stderr")};
    ck_assert_int_eq(kedge_process_start(&o, &p, &d), KEDGE_OK);
    ck_assert_int_eq(wait_end(&p), 128 + SIGKILL);
    expect_text(at("stderr"), "to-stderr\n");
    unlink(at("stderr"));
}
END_TEST

START_TEST(process_stop_is_bounded)
{
    static const char *const stubborn[] = {"sh", "-c", "trap '' TERM; echo up; while :; do sleep 1; done",
                                           NULL};
    struct kedge_process p;
    struct kedge_process_options o = {.argv = stubborn, .pipe_stdout = true, .die_with_parent = true};
    ck_assert_int_eq(kedge_process_start(&o, &p, NULL), KEDGE_OK);
    char up[3];
    ck_assert_int_eq(read(p.out_fd, up, sizeof up), 3); /* the trap is set */
    pid_t pid = p.pid;
    uint64_t before = kedge_os_now_ns();
    kedge_process_stop(&p, SIGTERM, 50);
    ck_assert(kedge_os_now_ns() - before < 10u * 1000000000u);
    ck_assert(p.pid == 0 && p.out_fd == -1);
    ck_assert_int_eq(kill(pid, 0), -1); /* gone and reaped */
}
END_TEST

START_TEST(clock_and_entropy)
{
    uint64_t before = kedge_os_now_ns();
    kedge_os_sleep_ms(3);
    ck_assert(kedge_os_now_ns() - before >= 3000000);
    ck_assert(kedge_os_unix_ms() > 1700000000000u); /* November 2023 */
    uint8_t a[32], b[32];
    kedge_os_random(a, sizeof a);
    kedge_os_random(b, sizeof b);
    ck_assert_mem_ne(a, b, sizeof a);
    kedge_os_random(a, 0);
    char dir[KEDGE_PATH_MAX];
    ck_assert_int_eq(kedge_process_own_dir(dir, sizeof dir), KEDGE_OK);
    ck_assert(kedge_file_exists(dir));
}
END_TEST

int main(void)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(base, sizeof base, "%s/kedge-test-os-XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(base)) {
        perror(base);
        return EXIT_FAILURE;
    }
    const TTest *const tests[] = {paths,
                                  os_errors,
                                  write_replaces_whole,
                                  failed_write_keeps_the_old_file,
                                  threads_write_one_path,
                                  read_is_bounded,
                                  maps,
                                  dir_remove_follows_no_link,
                                  real_paths,
                                  lock_is_exclusive,
                                  process_pipes,
                                  process_start_errors_and_status,
                                  process_stop_is_bounded,
                                  clock_and_entropy};
    int status = run_suite("base/os", tests, sizeof tests / sizeof tests[0]);
    return kedge_dir_remove(base) == KEDGE_OK ? status : EXIT_FAILURE;
}
