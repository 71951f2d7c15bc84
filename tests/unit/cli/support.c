/* KEDGE_PROGRAM is the program's path, given by the build. */
#include "tests/unit/cli/support.h"

#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/os/clock.h"
#include "common/base/os/file.h"
#include "crypto/sign.h"

enum { WORDS_MAX = 24, END_MS = 60000 };

const char *stderr_to;
char scratch[128], out[OUTPUT_MAX + 1], err_out[OUTPUT_MAX + 1];

void make_scratch(void)
{
    const char *base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(scratch, sizeof scratch, "%s/kedge-cli-XXXXXX", base);
    ck_assert_ptr_nonnull(mkdtemp(scratch));
    ck_assert_int_eq(kedge_crypto_init(), KEDGE_OK);
}

void remove_scratch(void)
{
    ck_assert_int_eq(kedge_dir_remove(scratch), KEDGE_OK);
}

const char *at(const char *name)
{
    static char paths[64][KEDGE_PATH_MAX];
    static unsigned next;
    char *p = paths[next++ % 64];
    snprintf(p, KEDGE_PATH_MAX, "%s/%s", scratch, name);
    return p;
}

void put_file(const char *path, const char *text)
{
    ck_assert_int_eq(kedge_file_write(path, kedge_view_str(text), 0600, NULL), KEDGE_OK);
}

bool has_text(const char *path, const char *text)
{
    struct kedge_buf b;
    kedge_buf_init(&b, OUTPUT_MAX);
    bool found = kedge_file_read(path, &b, NULL) == KEDGE_OK && b.len > 0
                 && memmem(b.ptr, b.len, text, strlen(text)) != NULL;
    kedge_buf_deinit(&b);
    return found;
}

static void begin(struct kedge_process *p, const char *format, va_list ap)
{
    static const char *program = KEDGE_PROGRAM;
    char line[LINE_LEN];
    const char *argv[WORDS_MAX + 2] = {program};
    int n = vsnprintf(line, sizeof line, format, ap);
    ck_assert(n >= 0 && n < LINE_LEN);
    size_t words = 1;
    for (char *w = line; w && words <= WORDS_MAX; words++) {
        char *end = strchr(w, ' ');
        argv[words] = w;
        if (end) {
            *end = '\0';
        }
        w = end ? end + 1 : NULL;
    }
    (void)unlink(at("stderr"));
    struct kedge_process_options options = {.argv = argv,
                                            .stderr_path = stderr_to ? NULL : at("stderr"),
                                            .pipe_stdout = true,
                                            .die_with_parent = true};
    int own = stderr_to ? fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3) : -1;
    if (stderr_to) { /* a terminal is inherited: only regular files are opened for a child */
        int terminal = open(stderr_to, O_WRONLY | O_NOCTTY | O_CLOEXEC);
        ck_assert(own >= 0 && terminal >= 0 && dup2(terminal, STDERR_FILENO) >= 0);
        close(terminal);
    }
    int err = kedge_process_start(&options, p, NULL);
    if (stderr_to) {
        ck_assert_int_ge(dup2(own, STDERR_FILENO), 0);
        close(own);
    }
    ck_assert_int_eq(err, KEDGE_OK);
}

void kedge_begin(struct kedge_process *p, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    begin(p, format, ap);
    va_end(ap);
}

int kedge_end(struct kedge_process *p)
{
    struct kedge_buf said;
    size_t len = 0;
    ssize_t got;
    int status = -1;
    while (len < OUTPUT_MAX && (got = read(p->out_fd, out + len, OUTPUT_MAX - len)) > 0) {
        len += (size_t)got;
    }
    out[len] = '\0';
    for (int i = 0; i < END_MS && !kedge_process_poll(p, &status); i++) {
        kedge_os_sleep_ms(1);
    }
    kedge_process_stop(p, SIGKILL, 1000);
    kedge_buf_init(&said, OUTPUT_MAX);
    if (!stderr_to) {
        ck_assert_int_eq(kedge_file_read(at("stderr"), &said, NULL), KEDGE_OK);
    }
    memcpy(err_out, said.len ? (const char *)said.ptr : "", said.len);
    err_out[said.len] = '\0';
    kedge_buf_deinit(&said);
    return status;
}

int kedge(const char *format, ...)
{
    struct kedge_process p;
    va_list ap;
    va_start(ap, format);
    begin(&p, format, ap);
    va_end(ap);
    return kedge_end(&p);
}

static json_t *part_of(const char *status, const char *key, json_t **ret_root)
{
    json_error_t e;
    json_t *root = json_loads(out, JSON_REJECT_DUPLICATES, &e); /* refuses a second object behind it */
    ck_assert_msg(root != NULL, "%s in: %.200s", e.text, out);
    ck_assert_int_eq(json_integer_value(json_object_get(root, "schema_version")), 1);
    ck_assert_str_eq(json_string_value(json_object_get(root, "status")), status);
    ck_assert_uint_eq(json_object_size(root), 3);
    *ret_root = root;
    return json_object_get(root, key);
}

json_t *data_of(json_t **ret_root)
{
    return part_of("ok", "data", ret_root);
}

json_t *error_of(json_t **ret_root)
{
    return part_of("error", "error", ret_root);
}
