/* Children in a sandbox, against the real kernel: what they may not do, and that nothing of them stays. Where
 * the kernel permits no namespaces, what needs them is told and skipped. */
#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/os/clock.h"
#include "common/base/os/process.h"
#include "tests/fixtures/effort.h"

static char folder[64];

static struct kedge_process start(const char *script, const struct kedge_sandbox *s)
{
    const char *argv[] = {"sh", "-c", script, NULL};
    static const char *const env[] = {"PATH=/usr/bin:/bin", NULL};
    struct kedge_process p = {.pid = 0};
    struct kedge_diag d = {.text = ""};
    struct kedge_process_options o = {.argv = argv,
                                      .env = env,
                                      .directory = folder,
                                      .pipe_stdin = true,
                                      .pipe_stdout = true,
                                      .pipe_stderr = true,
                                      .sandbox = s};
    ck_assert_msg(kedge_process_start(&o, &p, &d) == KEDGE_OK, "%s", d.text);
    ck_assert(p.confined != 0);
    return p;
}

/* All that it writes to stdout, and how it ended. */
static int whole(struct kedge_process *p, char out[1024])
{
    size_t len = 0;
    int status = -1;
    for (ssize_t n = 1; n > 0 && len < 1023;) {
        n = read(p->out_fd, out + len, 1023 - len);
        len += n > 0 ? (size_t)n : 0;
    }
    out[len] = '\0';
    for (int i = 0; i < 2000 && !kedge_process_poll(p, &status); i++) {
        kedge_os_sleep_ms(5);
    }
    return status;
}

static bool has_namespaces(void)
{
    struct kedge_sandbox s = {.network = false};
    struct kedge_process p = start("exit 0", &s);
    enum kedge_confined confined = p.confined;
    char out[1024];
    (void)whole(&p, out);
    return confined == KEDGE_CONFINED_NAMESPACES;
}

START_TEST(ends_as_it_ends)
{
    struct kedge_sandbox s = {.network = true};
    char out[1024];
    struct kedge_process p = start("cat; echo told >&2; exit 7", &s);
    ck_assert_int_eq(write(p.in_fd, "hello", 5), 5);
    close(p.in_fd);
    p.in_fd = -1;
    char err[16] = "";
    ck_assert_int_eq(read(p.err_fd, err, 5), 5);
    ck_assert_str_eq(err, "told\n");
    ck_assert_int_eq(whole(&p, out), 7);
    ck_assert_str_eq(out, "hello");
    p = start("kill -9 $$", &s); /* process 1 of its own kind: the kernel lets it live */
    int status = whole(&p, out);
    ck_assert(status == 0 || status == 137);
}
END_TEST

START_TEST(limits_hold)
{
    struct kedge_sandbox s = {.cpu_seconds_max = 1, .file_bytes_max = 4096, .files_max = 20};
    char out[1024];
    struct kedge_process p =
        start("trap '' XFSZ; dd if=/dev/zero of=big bs=1024 count=64 2>/dev/null; wc -c <big; "
              "ulimit -n; ulimit -c; grep NoNewPrivs /proc/self/status | tr -d '\t'",
              &s);
    (void)whole(&p, out);
    ck_assert_str_eq(out, "4096\n20\n0\nNoNewPrivs:1\n");
    uint64_t begin = kedge_os_now_ns();
    p = start("while :; do :; done", &s);
    ck_assert_int_ne(whole(&p, out), 0);
    ck_assert_uint_lt(kedge_os_now_ns() - begin, UINT64_C(60000000000));
}
END_TEST

START_TEST(inherits_nothing)
{
    struct kedge_sandbox s = {.network = true};
    char out[1024];
    int leaked = open("/dev/null", O_RDONLY); /* without close-on-exec, on purpose */
    ck_assert_int_ge(leaked, 3);
    ck_assert_int_eq(setenv("KEDGE_TEST_SECRET", "planted", 1), 0);
    struct kedge_process p = start("ls /proc/self/fd; env | grep -c SECRET", &s);
    (void)whole(&p, out);
    close(leaked);
    ck_assert_msg(strstr(out, "0\n1\n2\n") == out, "%s", out);
    ck_assert_msg(strstr(out, "\n4\n") == NULL && strstr(out, "\n5\n") == NULL, "%s", out); /* 3 is of ls */
    ck_assert_msg(strcmp(out + strlen(out) - 2, "0\n") == 0, "%s", out);
}
END_TEST

static void put_file(const char *name, const char *text)
{
    char path[192];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_ge(fputs(text, f), 0);
    ck_assert_int_eq(fclose(f), 0);
}

static void make_folder(const char *name)
{
    char path[192];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    ck_assert(mkdir(path, 0700) == 0 || errno == EEXIST);
}

/* A site's folder as trainers find it: in folder/home/site. */
static void make_site(void)
{
    static const char *const folders[] = {"home",
                                          "home/site",
                                          "home/site/keys",
                                          "home/site/trainers",
                                          "home/site/trainers/mine",
                                          "home/site/trainers/other"};
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        make_folder(folders[i]);
    }
    put_file("home/site/keys/secret", "secret");
    put_file("home/site/policy", "the policy");
    put_file("home/site/data", "data");
    put_file("home/site/trainers/other/model", "another's");
}

/* The script runs in the guarded site's folder of its own, with $SITE. */
static void run_guarded(const char *script, char out[1024])
{
    static const char *const hidden[] = {"keys", "policy", "not-there", NULL};
    char site[128], own[160], whole_script[2048];
    snprintf(site, sizeof site, "%s/home/site", folder);
    snprintf(own, sizeof own, "%s/trainers/mine", site);
    snprintf(whole_script, sizeof whole_script, "SITE=%s; cd %s; exec 2>/dev/null; %s", site, own, script);
    struct kedge_sandbox s = {.guarded = site, .own = own, .hidden = hidden};
    struct kedge_process p = start(whole_script, &s);
    ck_assert_int_eq(p.confined, KEDGE_CONFINED_NAMESPACES);
    (void)whole(&p, out);
}

START_TEST(sees_no_network_and_no_keys)
{
    char out[1024];
    make_site();
    if (!has_namespaces()) {
        printf("skipped: this kernel permits no user namespaces\n");
        return;
    }
    run_guarded("cat $SITE/keys/secret; umount $SITE/keys; cat $SITE/keys/secret; ls $SITE/keys; chmod 700 "
                "$SITE/keys; "
                "cat $SITE/policy; cat $SITE/trainers/other/model; ls $SITE/trainers | grep -v HIDDEN; "
                "grep -c : /proc/net/dev; cat $SITE/data",
                out);
    ck_assert_str_eq(out, "mine\n1\ndata"); /* one interface: a loopback that is down */
}
END_TEST

/* By no way into it, and none around it; its own folder is its own, and what it leaves there stays. */
START_TEST(writes_to_its_own_folder_only)
{
    static const char *const tries[] = {
        "echo x >$SITE/data",
        "echo x >$SITE/policy",
        "echo x >$SITE/keys/secret",
        "echo x >$SITE/new",
        "echo x >$SITE/trainers/other/model",
        "echo x >$SITE/trainers/new",
        "rm -f $SITE/data",
        "mv $SITE/data $SITE/else",
        "chmod 777 $SITE/data",
        "touch $SITE/data",
        "mv own $SITE/policy",
        "mv $SITE/../site $SITE/../away",
        "mv $SITE/../../home $SITE/../../away",
        "mount -o remount,rw,bind $SITE",
        "umount -l $SITE",
        "unshare -rm sh -c \"umount -l $SITE; echo x >$SITE/data\"",
        "unshare -rm sh -c \"mount -o remount,rw,bind $SITE; echo x >$SITE/data\"",
        "unshare -rm umount $SITE/keys",
    };
    char out[1024], script[512];
    make_site();
    if (!has_namespaces()) {
        printf("skipped: this kernel permits no user namespaces\n");
        return;
    }
    run_guarded(
        "echo mine >own && echo more >>own && mkdir -p deep/er && mv own deep/er/own && cat deep/er/own",
        out);
    ck_assert_str_eq(out, "mine\nmore\n");
    for (size_t i = 0; i < sizeof tries / sizeof tries[0]; i++) {
        snprintf(script, sizeof script, "echo >own; { %s; } && echo done || echo refused", tries[i]);
        run_guarded(script, out);
        ck_assert_msg(strcmp(out, "refused\n") == 0, "%s: %s", tries[i], out);
    }
    struct {
        const char *name, *text;
    } files[] = {{"home/site/data", "data"},
                 {"home/site/policy", "the policy"},
                 {"home/site/keys/secret", "secret"},
                 {"home/site/trainers/other/model", "another's"},
                 {"home/site/trainers/mine/deep/er/own", "mine\nmore\n"}};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char path[192], found[64] = "";
        snprintf(path, sizeof path, "%s/%s", folder, files[i].name);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ck_assert_msg(fd >= 0 && read(fd, found, sizeof found - 1) > 0, "%s", path);
        close(fd);
        ck_assert_str_eq(found, files[i].text);
    }
}
END_TEST

/* Those outside are not in its /proc, or it is said that they are; and no signal reaches them.
 * The pattern does not match itself: grep's own command line may be read, too. */
START_TEST(knows_no_other_processes)
{
    struct kedge_sandbox s = {.processes_max = 0};
    char out[1024], script[512];
    if (!has_namespaces()) {
        printf("skipped: this kernel permits no user namespaces\n");
        return;
    }
    pid_t other = fork();
    if (other == 0) {
        execlp("sleep", "a-secret-word", "100", (char *)NULL);
        _exit(127);
    }
    ck_assert_int_gt(other, 0);
    snprintf(script, sizeof script,
             "cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -c '[a]-secret-word'; "
             "kill -9 %ld 2>/dev/null && echo killed; ls -d /proc/[0-9]* | wc -l",
             (long)other);
    struct kedge_process p = start(script, &s);
    bool sees = p.lacks.sees_others;
    (void)whole(&p, out);
    int status = 0;
    ck_assert_msg(waitpid(other, &status, WNOHANG) == 0, "%s", out);
    ck_assert_int_eq(kill(other, SIGKILL), 0);
    ck_assert_int_eq(waitpid(other, &status, 0), other);
    if (sees) {
        printf("skipped: this kernel permits no /proc of its own\n");
        return;
    }
    char *end = out;
    unsigned long found = strtoul(out, &end, 10), count = strtoul(end, NULL, 10);
    ck_assert_msg(out[0] == '0' && found == 0 && count > 0 && count < 8, "%s", out);
}
END_TEST

/* What it has started goes with it, also what has left its group. */
START_TEST(nothing_stays)
{
    struct kedge_sandbox s = {.network = false};
    char name[128];
    bool namespaces = has_namespaces();
    snprintf(name, sizeof name, "%s/beats", folder);
    struct kedge_process p =
        start(namespaces ? "(setsid sh -c 'while :; do date +%N >beats; sleep 0.02; done') & sleep 100"
                         : "(while :; do date +%N >beats; sleep 0.02; done) & sleep 100",
              &s);
    struct stat st;
    for (int i = 0; i < 1000 && stat(name, &st) != 0; i++) {
        kedge_os_sleep_ms(5);
    }
    uint64_t begin = kedge_os_now_ns();
    kedge_process_stop(&p, SIGTERM, 50);
    ck_assert_uint_lt(kedge_os_now_ns() - begin, UINT64_C(5000000000));
    ck_assert_int_eq(p.pid, 0);
    kedge_os_sleep_ms(200);
    ck_assert_int_eq(unlink(name), 0);
    kedge_os_sleep_ms(300);
    ck_assert_msg(stat(name, &st) != 0, "something still writes");
}
END_TEST

enum { BOUND = 40, PIDS_MORE = 300, BOMB_LAST = 3000, NOBODY = 65534 };

/* Forks without end, in every child. Where nothing bounds it, it ends itself, for the machine's sake. */
static _Noreturn void bomb(void)
{
    while (getpid() < BOMB_LAST) {
        if (fork()
            < 0) { /* which costs the copy of a process's pages where it is the pids that are used up */
            kedge_os_sleep_ms(1000);
        }
    }
    _exit(3);
}

/* Processes with this word in their command line. */
static unsigned count_of(const char *word)
{
    DIR *dir = opendir("/proc");
    unsigned found = 0;
    ck_assert_ptr_nonnull(dir);
    for (struct dirent *e; (e = readdir(dir)) != NULL;) {
        char path[300], line[512];
        snprintf(path, sizeof path, "/proc/%s/cmdline", e->d_name);
        int fd = e->d_name[0] >= '1' && e->d_name[0] <= '9' ? open(path, O_RDONLY | O_CLOEXEC) : -1;
        ssize_t n = fd >= 0 ? read(fd, line, sizeof line - 1) : 0;
        for (ssize_t i = 0; i < n; i++) {
            line[i] = line[i] ? line[i] : ' ';
        }
        line[n > 0 ? n : 0] = '\0';
        found += strstr(line, word) != NULL;
        if (fd >= 0) {
            close(fd);
        }
    }
    closedir(dir);
    return found;
}

/* As many of it as may be, and none when it is stopped. For this user; false: not bounded here. */
static bool hold_bomb(void)
{
    struct kedge_sandbox s = {.processes_max = BOUND};
    char self[256], word[64], script[512], out[1024];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    ck_assert_int_gt(n, 0);
    self[n] = '\0';
    struct kedge_process p = start("exit 0", &s);
    bool unbounded = p.lacks.unbounded;
    (void)whole(&p, out);
    if (unbounded || access(self, X_OK) != 0) {
        return false;
    }
    snprintf(word, sizeof word, "bomb-%ld", (long)getpid());
    snprintf(script, sizeof script, "exec '%s' %s", self, word);
    p = start(script, &s);
    ck_assert(!p.lacks.unbounded);
    unsigned most = 0, same = 0;
    for (int i = 0; i < 4000 && same < 40; i++) { /* until it has stood still for a while */
        unsigned now = count_of(word);
        same = now > 1 && now <= most ? same + 1 : 0;
        most = now > most ? now : most;
        kedge_os_sleep_ms(5);
    }
    ck_assert_uint_gt(most, BOUND / 2);
    ck_assert_uint_le(most, BOUND + (geteuid() == 0 ? PIDS_MORE : 0));
    kedge_process_stop(&p, SIGTERM, 50);
    unsigned left = 1;
    for (int i = 0; i < 2000 && left > 0; i++) {
        left = count_of(word);
        kedge_os_sleep_ms(5);
    }
    ck_assert_uint_eq(left, 0);
    s.processes_max = 0; /* nobody asked */
    p = start("exit 0", &s);
    ck_assert(!p.lacks.unbounded);
    (void)whole(&p, out);
    return true;
}

/* Trainers that fork without end. Root's are bounded in another way than those of others, so root tests both.
 */
START_TEST(forks_are_bounded)
{
    int status = 0;
    bool some =
        geteuid() == 0 && IS_SANITIZED; /* 340 processes of a program with shadow memory are too many */
    if (!some && !hold_bomb()) {
        printf("skipped: this kernel bounds no processes of a sandbox (%s)\n",
               geteuid() == 0 ? "root's: since Linux 6.14" : "since Linux 5.14");
    }
    pid_t other = geteuid() == 0 ? fork() : -1;
    if (other == 0) { /* a failed assertion ends it with another status */
        ck_assert_int_eq(chown(folder, NOBODY, NOBODY), 0);
        ck_assert(setgid(NOBODY) == 0 && setuid(NOBODY) == 0);
        _exit(hold_bomb() ? 0 : 77);
    }
    if (other > 0) {
        ck_assert_int_eq(waitpid(other, &status, 0), other);
        ck_assert(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 77));
        ck_assert_int_eq(chown(folder, 0, 0), 0);
    }
}
END_TEST

START_TEST(errors_are_told)
{
    const char *argv[] = {"/nowhere/trainer", NULL};
    struct kedge_sandbox s = {.network = false};
    struct kedge_process p = {.pid = 0};
    struct kedge_diag d = {.text = ""};
    struct kedge_process_options o = {.argv = argv, .sandbox = &s, .directory = folder};
    ck_assert_int_eq(kedge_process_start(&o, &p, &d), KEDGE_E_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(d.text, "/nowhere/trainer"));
    s.guarded = "/nowhere"; /* then it goes without, and says so */
    s.own = "/nowhere/trainers/net";
    argv[0] = "true";
    ck_assert_int_eq(kedge_process_start(&o, &p, &d), KEDGE_OK);
    ck_assert_int_eq(p.confined, KEDGE_CONFINED_LIMITS);
    ck_assert(p.lacks.sees_others);
    kedge_process_stop(&p, SIGTERM, 1000);
}
END_TEST

int main(int argc, char **argv)
{
    if (argc > 1 && strncmp(argv[1], "bomb-", 5) == 0) {
        bomb();
    }
    snprintf(folder, sizeof folder, "/tmp/kedge-sandbox-XXXXXX");
    if (!mkdtemp(folder)) {
        return EXIT_FAILURE;
    }
    Suite *s = suite_create("sandbox");
    TCase *t = tcase_create("children");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, ends_as_it_ends);
    tcase_add_test(t, limits_hold);
    tcase_add_test(t, inherits_nothing);
    tcase_add_test(t, sees_no_network_and_no_keys);
    tcase_add_test(t, writes_to_its_own_folder_only);
    tcase_add_test(t, knows_no_other_processes);
    tcase_add_test(t, nothing_stays);
    tcase_add_test(t, forks_are_bounded);
    tcase_add_test(t, errors_are_told);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return failed || system(command) != 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
