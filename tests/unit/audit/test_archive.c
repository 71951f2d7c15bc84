/* Archives by hand, byte for byte: good ones are unpacked, hostile ones refused, and nothing is left of them.
 */
#include <signal.h>
#include <sys/wait.h>

#include "chain/audit/files/archive.h"
#include "common/base/bytes.h"
#include "tests/fixtures/run.h"
#include "tests/unit/audit/support.h"

enum { RECORD = 512 };

static struct kedge_buf tar;
static struct kedge_diag d;

/* A ustar header; type '0' file, '5' folder, '1' hard link, '2' link, '6' FIFO. */
static void put_header(const char *name, char type, uint64_t size, const char *link)
{
    char h[RECORD] = {0};
    unsigned sum = 0;
    snprintf(h, 100, "%s", name);
    snprintf(h + 100, 8, "0000644");
    snprintf(h + 108, 8, "0000000");
    snprintf(h + 116, 8, "0000000");
    for (int i = 10; i >= 0; i--, size /= 8) {
        h[124 + i] = (char)('0' + size % 8);
    }
    snprintf(h + 136, 12, "00000000000");
    memset(h + 148, ' ', 8);
    h[156] = type;
    snprintf(h + 157, 100, "%s", link);
    memcpy(h + 257, "ustar\00000", 8);
    for (size_t i = 0; i < sizeof h; i++) {
        sum += (uint8_t)h[i];
    }
    for (int i = 5; i >= 0; i--, sum /= 8) {
        h[148 + i] = (char)('0' + sum % 8);
    }
    h[154] = '\0';
    kedge_buf_put(&tar, h, sizeof h);
}

static void put_member(const char *name, const char *content)
{
    static const char zeros[RECORD];
    size_t len = strlen(content);
    put_header(name, '0', len, "");
    kedge_buf_put(&tar, content, len);
    kedge_buf_put(&tar, zeros, (RECORD - len % RECORD) % RECORD);
}

static void begin(void)
{
    kedge_buf_deinit(&tar);
    kedge_buf_init(&tar, 1 << 22);
}

static int unpack(const struct kedge_archive_limits *limits, struct kedge_unpacked *ret)
{
    static const char zeros[2 * RECORD];
    kedge_buf_put(&tar, zeros, sizeof zeros);
    ck_assert_int_eq(kedge_file_write(at("a.tar"), kedge_buf_view(&tar), 0600, NULL), KEDGE_OK);
    d = (struct kedge_diag){.text = ""};
    return kedge_archive_unpack(at("a.tar"), limits, ret, &d);
}

/* Entries of a folder. */
static size_t count_in(const char *path)
{
    size_t n = 0;
    char command[KEDGE_PATH_MAX + 32], line[64] = "0";
    snprintf(command, sizeof command, "ls -A '%s' | wc -l", path);
    FILE *p = popen(command, "r");
    ck_assert_ptr_nonnull(p);
    ck_assert_ptr_nonnull(fgets(line, sizeof line, p));
    pclose(p);
    n = (size_t)strtoul(line, NULL, 10);
    return n;
}

static void setup(void)
{
    make_scratch();
    ck_assert_int_eq(kedge_dir_make(at("tmp"), 0700, NULL), KEDGE_OK);
    ck_assert_int_eq(setenv("TMPDIR", at("tmp"), 1), 0);
    begin();
}

static void teardown(void)
{
    kedge_buf_deinit(&tar);
    (void)unsetenv("TMPDIR");
    remove_scratch();
}

static void assert_refused(int err, const char *said)
{
    struct kedge_unpacked u;
    int got = unpack(NULL, &u);
    ck_assert_msg(got == err, "%s: %s", kedge_strerror(got), d.text);
    ck_assert_msg(strstr(d.text, said) != NULL, "\"%s\" in \"%s\"", said, d.text);
    ck_assert_uint_eq(count_in(at("tmp")), 0);
    ck_assert_uint_eq(count_in(scratch), 2); /* tmp and a.tar: nothing beside them */
    for (const char *p = d.text; *p; p++) {
        ck_assert((uint8_t)*p >= 0x20 && (uint8_t)*p != 0x7f);
    }
}

START_TEST(test_good)
{
    static const char *const tops[] = {"", "./", "record/", "./record/"};
    struct kedge_unpacked u;
    char name[128], path[KEDGE_PATH_MAX];
    for (size_t i = 0; i < sizeof tops / sizeof tops[0]; i++) {
        begin();
        if (*tops[i]) {
            put_header(tops[i], '5', 0, "");
        }
        snprintf(name, sizeof name, "%sstate/config.json", tops[i]);
        put_member(name, "{}");
        snprintf(name, sizeof name, "%sstate/main/blobs/ab/cdef", tops[i]);
        put_member(name, "a blob");
        ck_assert_msg(unpack(NULL, &u) == KEDGE_OK, "%s", d.text);
        ck_assert_int_eq(kedge_path_join(path, u.dir, "state/main/blobs/ab/cdef"), KEDGE_OK);
        struct kedge_buf text;
        kedge_buf_init(&text, 100);
        ck_assert_int_eq(kedge_file_read(path, &text, NULL), KEDGE_OK);
        ck_assert(kedge_view_eq(kedge_buf_view(&text), kedge_view_str("a blob")));
        kedge_buf_deinit(&text);
        ck_assert_int_eq(strncmp(u.root, at("tmp"), strlen(at("tmp"))), 0);
        ck_assert_int_eq(kedge_archive_remove(&u, NULL), KEDGE_OK);
        ck_assert_uint_eq(count_in(at("tmp")), 0);
    }
    ck_assert(kedge_archive_is(at("a.tar")) && !kedge_archive_is(at("tmp")) && !kedge_archive_is(at("none")));
}
END_TEST

static const struct name_case {
    const char *name;
    char type;
    const char *link, *said;
} names[] = {
    {"/etc/kedge-was-here", '0', "", "absolute"},
    {"//x", '0', "", "absolute"},
    {"../outside", '0', "", "\"..\""},
    {"state/../../outside", '0', "", "\"..\""},
    {"state/..", '5', "", "\"..\""},
    {"a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p/q", '0', "", "too deep"},
    {"bell\a", '0', "", "a path"},
    {"state", '2', "/etc", "a link"},
    {"state/link", '2', "config.json", "a link"},
    {"state/hard", '1', "/etc/passwd", "a link"},
    {"state/pipe", '6', "", "a link or device"},
    {"state/device", '3', "", "a link or device"},
    {".", '0', "", "without a name"},
};

START_TEST(test_names)
{
    const struct name_case *c = &names[_i];
    put_member("state/config.json", "{}");
    put_header(c->name, c->type, 0, c->link);
    put_member("state/later", "x");
    assert_refused(KEDGE_E_FORMAT, c->said);
    ck_assert(access("/etc/kedge-was-here", F_OK) != 0);
}
END_TEST

START_TEST(test_twice)
{
    put_member("state/config.json", "{}");
    put_member("./state//config.json", "{\"other\":1}");
    assert_refused(KEDGE_E_FORMAT, "twice");
    begin();
    put_member("state", "a file");
    put_member("state/config.json", "{}"); /* below a file */
    assert_refused(KEDGE_E_IO, "not a folder");
    begin();
    put_member("state/config.json", "{}");
    put_member("state", "a file"); /* in a folder's place */
    assert_refused(KEDGE_E_FORMAT, "twice");
}
END_TEST

START_TEST(test_broken)
{
    char big[3000];
    memset(big, 'x', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    put_member("state/config.json", big);
    size_t whole = tar.len;
    for (size_t cut = RECORD + 1; cut < whole - RECORD; cut += 301) { /* within the content */
        struct kedge_unpacked u;
        struct kedge_view part = kedge_view_of(tar.ptr, cut);
        ck_assert_int_eq(kedge_file_write(at("a.tar"), part, 0600, NULL), KEDGE_OK);
        ck_assert_int_eq(kedge_archive_unpack(at("a.tar"), NULL, &u, &d), KEDGE_E_FORMAT);
        ck_assert_uint_eq(count_in(at("tmp")), 0);
    }
    begin();
    kedge_buf_put_str(&tar, "this is no archive at all, whatever its name says");
    assert_refused(KEDGE_E_FORMAT, "not a whole tar archive");
    begin();
    put_header("state/huge", '0', (uint64_t)1 << 32, ""); /* promises 4 GiB */
    assert_refused(KEDGE_E_FORMAT, "not a whole tar archive");
    begin();
    put_member("state/config.json", "{}");
    tar.ptr[3] ^= 1; /* a header's checksum */
    assert_refused(KEDGE_E_FORMAT, "not a whole tar archive");
}
END_TEST

/* Ctrl-C or worse in the middle of an audit: what was unpacked goes all the same. */
START_TEST(test_killed)
{
    static const int signals[] = {SIGKILL, SIGINT, SIGTERM};
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        begin();
        put_header("record/", '5', 0, "");
        put_member("record/config.json", "{}");
        int ready[2];
        char byte;
        ck_assert_int_eq(pipe(ready), 0);
        pid_t pid = fork();
        if (pid == 0) {
            struct kedge_unpacked u;
            (void)signal(SIGINT, SIG_DFL); /* the test framework's would end the whole group */
            (void)signal(SIGTERM, SIG_DFL);
            close(ready[0]);
            if (unpack(NULL, &u) == KEDGE_OK && write(ready[1], "x", 1) == 1) {
                (void)pause();
            }
            _exit(1);
        }
        close(ready[1]);
        ck_assert_int_eq(read(ready[0], &byte, 1), 1);
        ck_assert_uint_eq(count_in(at("tmp")), 1);
        ck_assert_int_gt(pid, 0);
        ck_assert_int_eq(kill(pid, signals[i]), 0);
        ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
        for (int wait = 0; wait < 500 && count_in(at("tmp")) > 0; wait++) {
            (void)usleep(10000);
        }
        ck_assert_uint_eq(count_in(at("tmp")), 0);
        close(ready[0]);
    }
}
END_TEST

START_TEST(test_limits)
{
    struct kedge_unpacked u;
    struct kedge_archive_limits limits = {.entries = 3, .bytes = 100};
    for (int i = 0; i < 4; i++) {
        char name[32];
        snprintf(name, sizeof name, "state/%d", i);
        put_member(name, "x");
    }
    ck_assert_int_eq(unpack(&limits, &u), KEDGE_E_TOO_LONG);
    ck_assert(strstr(d.text, "too many files") != NULL);
    begin();
    put_member("state/a", "0123456789012345678901234567890123456789012345678901234567890");
    put_member("state/b", "0123456789012345678901234567890123456789012345678901234567890");
    ck_assert_int_eq(unpack(&limits, &u), KEDGE_E_TOO_LONG);
    ck_assert(strstr(d.text, "more bytes") != NULL);
    ck_assert_uint_eq(count_in(at("tmp")), 0);
    ck_assert_int_eq(kedge_archive_unpack(at("none.tar"), NULL, &u, &d), KEDGE_E_FORMAT);
    ck_assert_int_eq(setenv("TMPDIR", at("no-such-folder"), 1), 0);
    ck_assert_int_eq(unpack(NULL, &u), KEDGE_E_NOT_FOUND);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("audit-archive");
    TCase *t = tcase_create("archive");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, test_good);
    tcase_add_loop_test(t, test_names, 0, (int)(sizeof names / sizeof names[0]));
    tcase_add_test(t, test_twice);
    tcase_add_test(t, test_broken);
    tcase_add_test(t, test_limits);
    tcase_add_test(t, test_killed);
    suite_add_tcase(s, t);
    return run_suite(s);
}
