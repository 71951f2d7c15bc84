/* The child sends one fixed header (result, output length), its diagnostic and its output through a pipe;
 * anything short of the whole message counts as a crash.
 *
 * LMDB maps its file and follows page numbers in it, so a damaged store can kill the process that reads
 * it. A child of its own takes that risk: it has no threads, no locks of its parent's and no core dump,
 * and all that it can tell is bytes through the pipe, which are bounded before they are read. */
#include "chain/store/blob/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "crypto/hash.h"

enum { WATCH_MS = 200 };

/* How the parent waits. */
struct wait {
    uint64_t deadline_ns;
    bool late;                /* it has passed */
    kedge_store_watch *watch; /* NULL: none */
    void *arg;
};

struct header {
    int result;
    size_t out_len;
    struct kedge_diag diag;
};

static void send_all(int fd, const void *ptr, size_t len)
{
    const uint8_t *p = ptr;
    while (len > 0) {
        ssize_t n = write(fd, p, len);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            _exit(2);
        }
        p += n;
        len -= (size_t)n;
    }
}

/* The child's whole life. Its standard error is silenced: LMDB and sanitizers talk when they die.
 * Handlers that the parent has set (a sanitizer's, a program's own) must not run in the child: dying at
 * once is the message. */
static _Noreturn void run_child(int fd, kedge_store_guarded_fn *fn, void *arg, size_t out_max)
{
    static const int fatal[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL};
    for (size_t i = 0; i < sizeof fatal / sizeof fatal[0]; i++) {
        signal(fatal[i], SIG_DFL);
    }
    struct rlimit no_core = {0, 0};
    (void)setrlimit(RLIMIT_CORE, &no_core);
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (null >= 0) {
        (void)dup2(null, STDERR_FILENO);
    }
    struct kedge_buf out;
    kedge_buf_init(&out, out_max);
    struct header h;
    memset(&h, 0, sizeof h);
    h.result = fn(arg, &out, &h.diag);
    h.out_len = out.len;
    send_all(fd, &h, sizeof h);
    send_all(fd, out.ptr, out.len);
    _exit(0);
}

/* Reads exactly len bytes before the deadline, else false; w->late: it was the deadline. */
static bool receive_all(int fd, void *ptr, size_t len, struct wait *w)
{
    uint8_t *p = ptr;
    while (len > 0) {
        int wait_ms = w->watch ? WATCH_MS : -1;
        if (w->deadline_ns != KEDGE_TIME_NEVER) {
            uint64_t now = kedge_os_now_ns();
            if (now >= w->deadline_ns) {
                w->late = true;
                return false;
            }
            uint64_t left_ms = (w->deadline_ns - now) / 1000000 + 1;
            wait_ms = w->watch && left_ms > WATCH_MS ? WATCH_MS : (int)left_ms;
        }
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        int n = poll(&ready, 1, wait_ms);
        if (n < 0 && errno != EINTR) {
            return false;
        }
        if (n <= 0) {
            if (w->watch) {
                w->watch(w->arg);
            }
            continue;
        }
        ssize_t got = read(fd, p, len);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return false;
        }
        p += got;
        len -= (size_t)got;
    }
    return true;
}

/* The child's message, or KEDGE_E_CORRUPT when it did not arrive whole. The child is not trusted: its
 * length is held against the room that the caller gave. A child that died and one that was too slow are
 * told apart, since a slow disk is no damage. */
static int receive_result(int fd, struct wait *w, struct kedge_buf *ret_out, struct kedge_diag *reterr)
{
    struct header h;
    if (!receive_all(fd, &h, sizeof h, w)) {
        return kedge_diag_set(reterr, KEDGE_E_CORRUPT,
                              w->late ? "the process that read the store did not end in time: a very slow "
                                        "disk, or the store is damaged"
                                      : "the process that read the store crashed: the store is damaged");
    }
    if (h.out_len > 0) {
        size_t room = ret_out ? ret_out->max - ret_out->len : 0;
        int err = h.out_len > room ? KEDGE_E_TOO_LONG : kedge_buf_reserve(ret_out, h.out_len);
        if (err) {
            return kedge_diag_set(reterr, err, "result of the reading process: %s", kedge_strerror(err));
        }
        if (!receive_all(fd, ret_out->ptr + ret_out->len, h.out_len, w)) {
            return kedge_diag_set(reterr, KEDGE_E_CORRUPT,
                                  "the process that read the store died while reporting");
        }
        ret_out->len += h.out_len;
    }
    if (reterr && h.result) {
        *reterr = h.diag;
    }
    return h.result;
}

int kedge_store_guarded(kedge_store_guarded_fn *fn, void *arg, uint32_t timeout_ms, struct kedge_buf *ret_out,
                        struct kedge_diag *reterr)
{
    return kedge_store_guarded_watched(fn, arg, timeout_ms, NULL, NULL, ret_out, reterr);
}

/* The first hash of a process loads libcrypto's tables, a millisecond. An audit of 2,000 logs forks as often,
 * so it is made before, and every child has them. */
static void load_hash(void)
{
    struct kedge_hash unused;
    kedge_sha256(kedge_view_of(NULL, 0), &unused);
}

/* Killed in every case, also after a good answer: a child of a damaged store may hang while it ends. It
 * is waited for, so none is left behind. */
int kedge_store_guarded_watched(kedge_store_guarded_fn *fn, void *arg, uint32_t timeout_ms,
                                kedge_store_watch *watch, void *watch_arg, struct kedge_buf *ret_out,
                                struct kedge_diag *reterr)
{
    int fds[2];
    load_hash();
    if (pipe2(fds, O_CLOEXEC) != 0) {
        return kedge_diag_set(reterr, KEDGE_E_IO, "cannot make a pipe: %s", strerror(errno));
    }
    pid_t pid = fork();
    if (pid < 0) {
        int e = errno;
        close(fds[0]);
        close(fds[1]);
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "cannot start a child process: %s", strerror(e));
    }
    if (pid == 0) {
        close(fds[0]);
        run_child(fds[1], fn, arg, ret_out ? ret_out->max - ret_out->len : 0);
    }
    close(fds[1]);
    struct wait w = {.deadline_ns =
                         timeout_ms ? kedge_os_now_ns() + (uint64_t)timeout_ms * 1000000 : KEDGE_TIME_NEVER,
                     .watch = watch,
                     .arg = watch_arg};
    int err = receive_result(fds[0], &w, ret_out, reterr);
    close(fds[0]);
    kill(pid, SIGKILL); /* it has answered, or never will */
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
    }
    return err;
}
