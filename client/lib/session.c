/* The talk between a trainer and kedge-client, for trainers written in other languages: requests in, replies
 * out, a line each. lib.h is the contract. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/lib/lib.h"
#include "common/base/mem.h"

struct kedge_session {
    int in_fd, out_fd;
    bool owned;
    size_t len, taken; /* bytes in `line`; of these the last request, with its end */
    char line[KEDGE_LIB_LINE_MAX + 1];
};

static _Thread_local char last_error[512];

int kedgei_lib_fail(int err, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    vsnprintf(last_error, sizeof last_error, format, ap);
    va_end(ap);
    return err;
}

bool kedgei_lib_write(int fd, const void *ptr, size_t len)
{
    const char *at = ptr;
    while (len > 0) {
        ssize_t n = write(fd, at, len);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return false;
        }
        at += n;
        len -= (size_t)n;
    }
    return true;
}

uint32_t kedge_lib_abi(void)
{
    return KEDGE_LIB_ABI;
}

const char *kedge_lib_version(void)
{
    return KEDGE_VERSION;
}

const char *kedge_lib_error(void)
{
    return last_error;
}

int kedge_session_over(int in_fd, int out_fd, struct kedge_session **ret)
{
    struct kedge_session *s = kedge_mem_new(1, sizeof *s);
    if (!s) {
        return kedgei_lib_fail(KEDGE_E_NOMEM, "no memory for a session");
    }
    s->in_fd = in_fd;
    s->out_fd = out_fd;
    *ret = s;
    return KEDGE_OK;
}

/* Requests and replies use standard input and output. Both get numbers of their own, and their places are
 * taken by nothing and by standard error: a library that prints cannot break the contract by writing
 * between two replies. */
int kedge_session_open(struct kedge_session **ret)
{
    int in = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3), out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    bool ok = in >= 0 && out >= 0 && nothing >= 0 && dup2(nothing, STDIN_FILENO) >= 0
              && dup2(STDERR_FILENO, STDOUT_FILENO) >= 0;
    int err = ok ? kedge_session_over(in, out, ret)
                 : kedgei_lib_fail(KEDGE_E_IO, "standard input and output: %s", strerror(errno));
    if (nothing >= 0) {
        close(nothing);
    }
    if (!err) {
        (*ret)->owned = true;
        return KEDGE_OK;
    }
    if (in >= 0) {
        close(in);
    }
    if (out >= 0) {
        close(out);
    }
    return err;
}

void kedge_session_close(struct kedge_session *s)
{
    if (s && s->owned) {
        close(s->in_fd);
        close(s->out_fd);
    }
    kedge_mem_free(s);
}

/* Lines are cut from one buffer; the last one's bytes go when the next is asked for, so a line stays valid
 * until then. */
int kedge_session_next(struct kedge_session *s, const char **ret_line, size_t *ret_len)
{
    s->len -= s->taken;
    memmove(s->line, s->line + s->taken, s->len);
    s->taken = 0;
    for (size_t looked = 0;;) {
        char *end = s->len > looked ? memchr(s->line + looked, '\n', s->len - looked) : NULL;
        if (end) {
            *end = '\0';
            s->taken = (size_t)(end - s->line) + 1;
            *ret_line = s->line;
            *ret_len = s->taken - 1;
            return 1;
        }
        looked = s->len;
        if (s->len == sizeof s->line) {
            return kedgei_lib_fail(KEDGE_E_TOO_LONG, "a request is longer than %d bytes", KEDGE_LIB_LINE_MAX);
        }
        ssize_t n = read(s->in_fd, s->line + s->len, sizeof s->line - s->len);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n == 0) {
            return 0; /* a line without an end is none */
        }
        if (n < 0) {
            return kedgei_lib_fail(KEDGE_E_IO, "requests: %s", strerror(errno));
        }
        s->len += (size_t)n;
    }
}

int kedge_session_reply(struct kedge_session *s, const char *line, size_t len)
{
    if (len == 0 || len >= KEDGE_LIB_LINE_MAX || memchr(line, '\n', len) || memchr(line, '\0', len)) {
        return kedgei_lib_fail(KEDGE_E_FORMAT,
                               "a reply of %zu bytes, expected one line of JSON of less than %d", len,
                               KEDGE_LIB_LINE_MAX);
    }
    return kedgei_lib_write(s->out_fd, line, len) && kedgei_lib_write(s->out_fd, "\n", 1)
               ? KEDGE_OK
               : kedgei_lib_fail(KEDGE_E_IO, "reply: %s", strerror(errno));
}
