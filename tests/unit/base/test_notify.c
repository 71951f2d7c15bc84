/* What the service manager is told, and the journal's priorities, against a manager of the test's own. */
#include "common/base/os/notify.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/base/os/clock.h"
#include "common/base/os/log.h"
#include "tests/unit/base/check.h"

static char folder[64], said[4096];

/* A socket that stands for the manager's; "@…" is abstract. */
static int manager(const char *name)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    size_t len = strlen(name);
    ck_assert(len < sizeof a.sun_path);
    memcpy(a.sun_path, name, len);
    bool abstract = name[0] == '@';
    a.sun_path[0] = abstract ? '\0' : name[0];
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&a,
                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len + (abstract ? 0 : 1))),
                     0);
    ck_assert_int_eq(setenv("NOTIFY_SOCKET", name, 1), 0);
    return fd;
}

static const char *heard(int fd)
{
    ssize_t n = recv(fd, said, sizeof said - 1, 0);
    said[n > 0 ? n : 0] = '\0';
    return said;
}

START_TEST(a_manager_is_told)
{
    char path[128], name[128];
    snprintf(path, sizeof path, "%s/notify", folder);
    snprintf(name, sizeof name, "@kedge-test-notify-%d", (int)getpid());
    const char *const places[] = {path, name};
    for (size_t i = 0; i < 2; i++) {
        int fd = manager(places[i]);
        ck_assert(kedge_notify("READY=1", "polling"));
        ck_assert_str_eq(heard(fd), "READY=1\nSTATUS=polling");
        ck_assert(kedge_notify("WATCHDOG=1", NULL));
        ck_assert_str_eq(heard(fd), "WATCHDOG=1");
        ck_assert(kedge_notify("WATCHDOG=1", "job a\nREADY=0\x1b[2J"));
        ck_assert_str_eq(heard(fd), "WATCHDOG=1\nSTATUS=job a READY=0?[2J");
        static const char begins[] = "RELOADING=1\nMONOTONIC_USEC=";
        uint64_t before = kedge_os_now_ns() / 1000;
        ck_assert(kedge_notify_reloading());
        ck_assert_int_eq(strncmp(heard(fd), begins, sizeof begins - 1), 0);
        uint64_t us = strtoull(said + sizeof begins - 1, NULL, 10);
        ck_assert(us >= before && us <= kedge_os_now_ns() / 1000);
        close(fd);
        ck_assert(!kedge_notify("READY=1", NULL)); /* gone: no error, no wait */
    }
}
END_TEST

START_TEST(long_words_are_cut)
{
    char path[128], text[3 * KEDGE_NOTIFY_MAX];
    snprintf(path, sizeof path, "%s/long", folder);
    int fd = manager(path);
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    ck_assert(kedge_notify("READY=1", text));
    ck_assert_uint_eq(strlen(heard(fd)), KEDGE_NOTIFY_MAX - 1);
    close(fd);
}
END_TEST

START_TEST(nobody_listens)
{
    char longer[200];
    memset(longer, 'x', sizeof longer - 1);
    longer[0] = '/';
    longer[sizeof longer - 1] = '\0';
    const char *const places[] = {"", "@", "relative", "/nowhere/at/all", longer};
    unsetenv("NOTIFY_SOCKET");
    ck_assert(!kedge_notify("READY=1", NULL));
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        ck_assert_int_eq(setenv("NOTIFY_SOCKET", places[i], 1), 0);
        ck_assert(!kedge_notify("READY=1", NULL));
    }
}
END_TEST

START_TEST(watchdogs)
{
    char pid[24];
    unsetenv("WATCHDOG_PID");
    unsetenv("WATCHDOG_USEC");
    ck_assert_uint_eq(kedge_notify_watchdog_ns(), 0);
    setenv("WATCHDOG_USEC", "30000000", 1);
    ck_assert_uint_eq(kedge_notify_watchdog_ns(), 15000000000u);
    setenv("WATCHDOG_PID", "1", 1);
    ck_assert_uint_eq(kedge_notify_watchdog_ns(), 0); /* another's */
    snprintf(pid, sizeof pid, "%d", (int)getpid());
    setenv("WATCHDOG_PID", pid, 1);
    ck_assert_uint_eq(kedge_notify_watchdog_ns(), 15000000000u);
    static const char *const odd[] = {"", "-1", "1e9", "999999999999999999999999"};
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        setenv("WATCHDOG_USEC", odd[i], 1);
        ck_assert_uint_eq(kedge_notify_watchdog_ns(), 0);
    }
}
END_TEST

/* The first three characters of a warning, with JOURNAL_STREAM as it says of stderr (off 0) or of another. */
static void warn(unsigned off, char out[4])
{
    char path[128], stream[64];
    struct stat st;
    snprintf(path, sizeof path, "%s/stderr", folder);
    FILE *f = fopen(path, "w+");
    int kept = dup(STDERR_FILENO);
    ck_assert(f && kept >= 0 && dup2(fileno(f), STDERR_FILENO) >= 0 && fstat(STDERR_FILENO, &st) == 0);
    snprintf(stream, sizeof stream, "%" PRIu64 ":%" PRIu64, (uint64_t)st.st_dev, (uint64_t)st.st_ino + off);
    setenv("JOURNAL_STREAM", stream, 1);
    kedge_log_init("test", KEDGE_LOG_INFO);
    kedge_log(KEDGE_LOG_WARN, "event", "detail");
    (void)dup2(kept, STDERR_FILENO);
    close(kept);
    rewind(f);
    ck_assert_uint_eq(fread(out, 1, 3, f), 3);
    out[3] = '\0';
    fclose(f);
    unlink(path);
}

START_TEST(journal_priorities)
{
    char begin[4];
    warn(0, begin);
    ck_assert_str_eq(begin, "<4>");
    warn(1, begin);
    ck_assert_str_eq(begin, "{\"t");
    unsetenv("JOURNAL_STREAM");
    kedge_log_init("test", KEDGE_LOG_INFO);
}
END_TEST

int main(void)
{
    snprintf(folder, sizeof folder, "/tmp/kedge-test-notify-XXXXXX");
    if (!mkdtemp(folder)) {
        perror(folder);
        return EXIT_FAILURE;
    }
    const TTest *const tests[] = {a_manager_is_told, long_words_are_cut, nobody_listens, watchdogs,
                                  journal_priorities};
    int status = run_suite("base/notify", tests, sizeof tests / sizeof tests[0]);
    const char *const made[] = {"notify", "long"};
    for (size_t i = 0; i < 2; i++) {
        char path[128];
        snprintf(path, sizeof path, "%s/%s", folder, made[i]);
        unlink(path);
    }
    return rmdir(folder) == 0 ? status : EXIT_FAILURE;
}
