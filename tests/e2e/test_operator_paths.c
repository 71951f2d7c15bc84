/* Paths that an operator names and that are no files: the coordinator refuses each by name, waits at none,
 * and ends when asked right behind. A model at a FIFO used to hold its worker in open(2) for ever. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/base/os/clock.h"
#include "common/base/os/file.h"
#include "tests/e2e/hostile.h"
#include "tests/unit/base/check.h"

enum { END_MS = HX_PATIENCE_MS / 2 }; /* one that is held ends never */

static const char SPEC[] = "{\"name\":\"paths\",\"tenants\":[\"org-b\"],"
                           "\"model\":{\"preset\":\"mclr\",\"inputs\":3,\"classes\":2},\"data\":\"d\","
                           "\"rounds\":1}";

static const struct {
    const char *name;
    int err;
} initials[] = {
    {"fifo", KEDGE_E_IO},
    {"fifo-with-writer", KEDGE_E_IO},
    {"folder", KEDGE_E_IO},
    {"socket", KEDGE_E_IO},
    {"/dev/zero", KEDGE_E_IO},
    {"link-to-fifo", KEDGE_E_IO},
    {"dangling", KEDGE_E_NOT_FOUND},
};

static char folder[64];

static const char *at(const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, "%s%s%s", name[0] == '/' ? "" : folder, name[0] == '/' ? "" : "/", name);
    return path;
}

static void make_paths(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(folder, sizeof folder, "/tmp/kedge-paths-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(mkfifo(at("fifo"), 0600), 0);
    ck_assert_int_eq(mkfifo(at("fifo-with-writer"), 0600), 0);
    ck_assert_int_ge(open(at("fifo-with-writer"), O_RDWR | O_CLOEXEC), 0); /* open until this program ends */
    ck_assert_int_eq(mkdir(at("folder"), 0700), 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%.100s", at("socket"));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(fd, (const struct sockaddr *)&address, sizeof address), 0);
    close(fd);
    ck_assert_int_eq(symlink("fifo", at("link-to-fifo")), 0);
    ck_assert_int_eq(symlink("nowhere", at("dangling")), 0);
}

START_TEST(initial_models)
{
    make_paths();
    hx_start();
    hx_found();
    for (size_t i = 0; i < sizeof initials / sizeof initials[0]; i++) {
        struct kedge_msg msg = {.type = KEDGE_MSG_ADMIN}, answer;
        const char *path = at(initials[i].name);
        json_t *o = json_pack("{s:s,s:s,s:s}", "verb", "job.submit", "spec", SPEC, "initial", path);
        char *text = json_dumps(o, JSON_COMPACT);
        ck_assert_ptr_nonnull(text);
        msg.u.admin.json = kedge_view_str(text);
        int err = hx_ask(hx_door, &msg, &answer);
        ck_assert_msg(err == initials[i].err, "%s: %s", path, kedge_strerror(err));
        ck_assert_int_eq(answer.type, KEDGE_MSG_ERROR);
        struct kedge_view said = answer.u.error.text;
        ck_assert_msg(memmem(said.ptr, said.len, path, strlen(path)) != NULL, "%s: %.*s", path, (int)said.len,
                      (const char *)said.ptr);
        free(text);
        json_decref(o);
    }
    uint64_t begin_ms = kedge_os_now_ns() / 1000000;
    hx_stop();
    uint64_t took_ms = kedge_os_now_ns() / 1000000 - begin_ms;
    ck_assert_msg(took_ms < END_MS, "it took %llu ms to end", (unsigned long long)took_ms);
    ck_assert_int_eq(kedge_dir_remove(folder), KEDGE_OK);
}
END_TEST

int main(void)
{
    const TTest *tests[] = {initial_models};
    return run_suite("operator_paths", tests, sizeof tests / sizeof tests[0]);
}
