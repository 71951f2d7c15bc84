/* Paths that name anything but a regular file: refused by name at once, whichever function opens them. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/base/mem.h"
#include "common/base/os/file.h"
#include "common/base/os/process.h"
#include "common/base/os/slots.h"
#include "common/tensor/dataset.h"
#include "tests/unit/base/check.h"

enum { LIMIT_S = 20 }; /* all of it takes milliseconds; SIGALRM ends a program that waits in open(2) */

static char base[64];

static const struct kind {
    const char *name, *said; /* what the error must say besides the path */
    int err;                 /* in reading */
} kinds[] = {
    {"fifo", "a FIFO", KEDGE_E_IO},
    {"fifo-with-reader", "a FIFO", KEDGE_E_IO},
    {"fifo-with-both", "a FIFO", KEDGE_E_IO},
    {"folder", "Is a directory", KEDGE_E_IO},
    {"socket", "a socket", KEDGE_E_IO},
    {"/dev/zero", "a character device", KEDGE_E_IO},
    {"/dev/null", "a character device", KEDGE_E_IO},
    {"link-to-fifo", "a FIFO", KEDGE_E_IO},
    {"link-to-folder", "Is a directory", KEDGE_E_IO},
    {"link-to-zero", "a character device", KEDGE_E_IO},
    {"dangling", "No such file", KEDGE_E_NOT_FOUND},
    {"absent", "No such file", KEDGE_E_NOT_FOUND},
    {"loop", "symbolic links", KEDGE_E_IO},
    {"file/below", "Not a directory", KEDGE_E_NOT_FOUND},
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static const char *at(const char *name)
{
    static char path[KEDGE_PATH_MAX];
    snprintf(path, sizeof path, "%s%s%s", name[0] == '/' ? "" : base, name[0] == '/' ? "" : "/", name);
    return path;
}

static void make_socket(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    ck_assert_uint_lt(strlen(path), sizeof address.sun_path);
    memcpy(address.sun_path, path, strlen(path) + 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(bind(fd, (const struct sockaddr *)&address, sizeof address), 0);
    close(fd); /* its name stays */
}

START_TEST(make_kinds) /* first, for the others */
{
    static const char *const links[][2] = {{"fifo", "link-to-fifo"},
                                           {"folder", "link-to-folder"},
                                           {"/dev/zero", "link-to-zero"},
                                           {"nowhere", "dangling"},
                                           {"loop", "loop"},
                                           {"file", "link-to-file"}};
    ck_assert_int_eq(mkfifo(at("fifo"), 0600), 0);
    ck_assert_int_eq(mkfifo(at("fifo-with-reader"), 0600), 0);
    ck_assert_int_eq(mkfifo(at("fifo-with-both"), 0600), 0);
    ck_assert_int_ge(open(at("fifo-with-reader"), O_RDONLY | O_NONBLOCK | O_CLOEXEC), 0);
    ck_assert_int_ge(open(at("fifo-with-both"), O_RDWR | O_NONBLOCK | O_CLOEXEC), 0);
    ck_assert_int_eq(mkdir(at("folder"), 0700), 0);
    make_socket(at("socket"));
    for (size_t i = 0; i < sizeof links / sizeof links[0]; i++) {
        ck_assert_int_eq(symlink(links[i][0], at(links[i][1])), 0);
    }
    ck_assert_int_eq(kedge_file_write(at("file"), kedge_view_str("content"), 0600, NULL), KEDGE_OK);
}
END_TEST

/* ---- everything that opens for reading ---- */

typedef int open_fn(const char *path, struct kedge_diag *d);

static int take_fd(int fd)
{
    return fd < 0 ? fd : close(fd);
}

static int by_open(const char *path, struct kedge_diag *d)
{
    return take_fd(kedge_file_open(path, O_RDONLY, d));
}

static int by_open_write(const char *path, struct kedge_diag *d)
{
    return take_fd(kedge_file_open(path, O_WRONLY, d));
}

static int by_read(const char *path, struct kedge_diag *d)
{
    struct kedge_buf b;
    kedge_buf_init(&b, 100);
    int err = kedge_file_read(path, &b, d);
    ck_assert_uint_eq(b.len, err ? 0 : strlen("content"));
    kedge_buf_deinit(&b);
    return err;
}

static int by_map(const char *path, struct kedge_diag *d)
{
    struct kedge_map map = {NULL, 0};
    int err = kedge_map_open(path, &map, d);
    ck_assert_uint_eq(map.len, err ? 0 : strlen("content"));
    kedge_map_close(&map);
    return err;
}

static const struct {
    const char *name;
    open_fn *fn;
} ways[] = {{"file_open", by_open},
            {"file_open for writing", by_open_write},
            {"file_check", kedge_file_check},
            {"file_read", by_read},
            {"map_open", by_map}};

START_TEST(every_kind_every_way)
{
    for (size_t k = 0; k < KINDS; k++) {
        const char *path = at(kinds[k].name);
        for (size_t w = 0; w < sizeof ways / sizeof ways[0]; w++) {
            struct kedge_diag d = {.text = ""};
            int err = ways[w].fn(path, &d);
            ck_assert_msg(err == kinds[k].err, "%s of %s: %d", ways[w].name, path, err);
            ck_assert_msg(strstr(d.text, path) && strstr(d.text, kinds[k].said), "%s of %s says: %s",
                          ways[w].name, path, d.text);
            ck_assert_int_eq(ways[w].fn(path, NULL), kinds[k].err);
        }
    }
    for (size_t w = 0; w < sizeof ways / sizeof ways[0]; w++) {
        ck_assert_int_eq(ways[w].fn(at("file"), NULL), KEDGE_OK);
        ck_assert_int_eq(ways[w].fn(at("link-to-file"), NULL), KEDGE_OK);
    }
}
END_TEST

START_TEST(links_where_none_are_followed)
{
    static const char *const links[] = {"link-to-file", "link-to-fifo", "link-to-zero", "dangling", "loop"};
    for (size_t i = 0; i < sizeof links / sizeof links[0]; i++) {
        ck_assert_int_eq(kedge_file_open(at(links[i]), O_RDONLY | O_NOFOLLOW, NULL), KEDGE_E_IO);
        ck_assert_int_eq(kedge_file_open(at(links[i]), O_WRONLY | O_CREAT | O_NOFOLLOW, NULL), KEDGE_E_IO);
    }
    struct stat st;
    ck_assert_int_eq(stat(at("nowhere"), &st), -1);
}
END_TEST

/* What makes a file when there is none: locks, logs of programs, slots. */
START_TEST(creating)
{
    const char *const argv[] = {"true", NULL};
    for (size_t k = 0; k < KINDS; k++) {
        const char *path = at(kinds[k].name);
        struct kedge_process p;
        struct kedge_process_options options = {.argv = argv, .stderr_path = path};
        struct kedge_buf b;
        uint64_t sequence;
        kedge_buf_init(&b, 100);
        ck_assert_int_lt(kedge_slots_read(path, &b, &sequence, NULL), 0);
        ck_assert_int_lt(kedge_slots_write(path, 2, kedge_view_str("x"), NULL), 0);
        kedge_buf_deinit(&b);
        if (strcmp(kinds[k].said, "No such file") != 0) {
            struct kedge_diag d = {.text = ""};
            ck_assert_int_lt(kedge_file_lock(path, NULL), 0);
            ck_assert_int_eq(kedge_process_start(&options, &p, &d), kinds[k].err);
            ck_assert_msg(strstr(d.text, path) != NULL, "%s", d.text);
        }
    }
    int fd = kedge_file_open(at("made"), O_WRONLY | O_CREAT | O_EXCL, NULL);
    struct stat st;
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(fstat(fd, &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0600);
    ck_assert_int_ne(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
    close(fd);
    ck_assert_int_lt(kedge_file_open(at("made"), O_WRONLY | O_CREAT | O_EXCL, NULL), 0);
}
END_TEST

/* The trainer's own, which stands on libc alone. */
START_TEST(data_files)
{
    uint8_t *bytes = NULL;
    size_t len = 0;
    for (size_t k = 0; k < KINDS; k++) {
        struct kedge_diag d = {.text = ""};
        int err = kedge_data_file_read(at(kinds[k].name), &bytes, &len, &d);
        ck_assert_msg(err < 0 && strstr(d.text, at(kinds[k].name)), "%s: %d, %s", kinds[k].name, err, d.text);
        ck_assert_int_eq(err, kinds[k].err);
    }
    ck_assert_int_eq(kedge_data_file_read(at("link-to-file"), &bytes, &len, NULL), KEDGE_OK);
    ck_assert_uint_eq(len, strlen("content"));
    ck_assert_mem_eq(bytes, "content", len);
    kedge_mem_free(bytes);
}
END_TEST

/* Standard input may be a pipe: there waiting is what was asked for. */
START_TEST(standard_input)
{
    int ends[2], saved = dup(STDIN_FILENO);
    struct kedge_diag d = {.text = ""};
    for (int too_long = 0; too_long < 2; too_long++) {
        struct kedge_buf b;
        kedge_buf_init(&b, too_long ? 5 : 6);
        ck_assert_int_eq(pipe(ends), 0);
        ck_assert_int_eq(write(ends[1], "secret", 6), 6);
        close(ends[1]);
        ck_assert_int_eq(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
        close(ends[0]);
        ck_assert_int_eq(kedge_stdin_read(&b, &d), too_long ? KEDGE_E_TOO_LONG : KEDGE_OK);
        ck_assert_uint_eq(b.len, too_long ? 0 : 6);
        kedge_buf_deinit(&b);
    }
    ck_assert_msg(strstr(d.text, "standard input") != NULL, "%s", d.text);
    if (saved >= 0) {
        ck_assert_int_eq(dup2(saved, STDIN_FILENO), STDIN_FILENO);
        close(saved);
    }
}
END_TEST

int main(void)
{
    snprintf(base, sizeof base, "/tmp/kedge-test-kinds-XXXXXX");
    if (!mkdtemp(base)) {
        perror(base);
        return EXIT_FAILURE;
    }
    alarm(LIMIT_S);
    const TTest *const tests[] = {make_kinds, every_kind_every_way, links_where_none_are_followed,
                                  creating,   data_files,           standard_input};
    int status = run_suite("base/kinds", tests, sizeof tests / sizeof tests[0]);
    return kedge_dir_remove(base) == KEDGE_OK ? status : EXIT_FAILURE;
}
