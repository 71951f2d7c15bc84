/* SP over a Unix socket, as nng speaks it: both send 8 bytes, 0 'S' 'P' 0, the protocol (PUB 32, SUB 33) and
 * two zeros; then come messages, each a byte 1, its length in 64 bits, and its bytes. A publisher sends all
 * that it says; what a subscriber wants of it, it chooses itself. */
#include "cli/events/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/base/os/clock.h"
#include "common/base/os/file.h"
#include "common/base/try.h"

enum { HANDSHAKE = 8, HANDSHAKE_MS = 3000, HEAD = 9 };

/* A socket's address has 107 bytes for its path; through the folder's descriptor it is short. */
static int dial(const char *path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    char folder[KEDGE_PATH_MAX];
    const char *slash = strrchr(path, '/');
    if (!slash || snprintf(folder, sizeof folder, "%.*s", (int)(slash - path + 1), path) >= KEDGE_PATH_MAX) {
        return -1;
    }
    int dir = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int n = snprintf(a.sun_path, sizeof a.sun_path, "/proc/self/fd/%d/%s", dir, slash + 1);
    int fd = dir >= 0 && n > 0 && (size_t)n < sizeof a.sun_path
                 ? socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)
                 : -1;
    if (fd >= 0
        && (connect(fd, (const struct sockaddr *)&a, sizeof a) != 0 || fcntl(fd, F_SETFL, O_NONBLOCK) != 0)) {
        close(fd);
        fd = -1;
    }
    if (dir >= 0) {
        close(dir);
    }
    return fd;
}

/* Reads what there is, after waiting for it. */
static int fill(struct kedge_cli_stream *s, uint64_t deadline_ns)
{
    const uint64_t now_ns = kedge_os_now_ns();
    struct pollfd p = {.fd = s->fd, .events = POLLIN};
    const int wait_ms = deadline_ns > now_ns ? (int)((deadline_ns - now_ns + 999999) / 1000000) : 0;
    memmove(s->bytes, s->bytes + s->used, s->len - s->used);
    s->len -= s->used;
    s->used = 0;
    int ready = poll(&p, 1, wait_ms);
    if (ready <= 0) {
        return ready == 0 ? KEDGE_E_TIMEOUT : errno == EINTR ? KEDGE_E_CANCELLED : KEDGE_E_CLOSED;
    }
    ssize_t n = read(s->fd, s->bytes + s->len, sizeof s->bytes - s->len);
    if (n <= 0) {
        return n < 0 && (errno == EAGAIN || errno == EINTR) ? KEDGE_OK : KEDGE_E_CLOSED;
    }
    s->len += (size_t)n;
    return KEDGE_OK;
}

static int shake_hands(struct kedge_cli_stream *s)
{
    static const uint8_t subscriber[HANDSHAKE] = {0, 'S', 'P', 0, 0, 33, 0, 0};
    static const uint8_t publisher[HANDSHAKE] = {0, 'S', 'P', 0, 0, 32, 0, 0};
    const uint64_t deadline_ns = kedge_os_now_ns() + HANDSHAKE_MS * UINT64_C(1000000);
    if (send(s->fd, subscriber, sizeof subscriber, MSG_NOSIGNAL) != sizeof subscriber) {
        return KEDGE_E_CLOSED;
    }
    while (s->len < HANDSHAKE) {
        KEDGE_TRY(fill(s, deadline_ns));
    }
    s->used = HANDSHAKE;
    return memcmp(s->bytes, publisher, HANDSHAKE) == 0 ? KEDGE_OK : KEDGE_E_FORMAT;
}

int kedge_cli_stream_open(const char *path, struct kedge_cli_stream *ret)
{
    ret->len = ret->used = 0;
    ret->fd = dial(path);
    if (ret->fd < 0) {
        return KEDGE_E_UNREACHABLE;
    }
    int err = shake_hands(ret);
    if (err) {
        kedge_cli_stream_close(ret);
    }
    return err;
}

int kedge_cli_stream_next(struct kedge_cli_stream *s, uint32_t timeout_ms, struct kedge_view *ret)
{
    const uint64_t deadline_ns = kedge_os_now_ns() + timeout_ms * UINT64_C(1000000);
    for (;;) {
        const uint8_t *at = s->bytes + s->used;
        const size_t have = s->len - s->used;
        if (have >= HEAD) {
            const uint64_t len = kedge_load_be64(at + 1);
            if (at[0] != 1 || len > KEDGE_CLI_MESSAGE_MAX) {
                return KEDGE_E_FORMAT;
            }
            if (have - HEAD >= len) {
                *ret = kedge_view_of(at + HEAD, (size_t)len);
                s->used += HEAD + (size_t)len;
                return KEDGE_OK;
            }
        }
        KEDGE_TRY(fill(s, deadline_ns));
    }
}

void kedge_cli_stream_close(struct kedge_cli_stream *s)
{
    if (s->fd >= 0) {
        close(s->fd);
    }
    s->fd = -1;
}
