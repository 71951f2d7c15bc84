/* A star: children send a length and their bytes to rank 0 and then read everybody's. Nobody waits in a
 * circle: rank 0 reads the children in turn, each of which blocks in writing at most, and writes when all
 * have spoken. */
#include "sim/learn/exchange_process.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/bytes.h"
#include "common/base/mem.h"
#include "common/base/try.h"

enum { PIECE_MAX = 1 << 30 };

struct kedge_learn_processes {
    struct kedge_learn_exchange exchange;
    int fds[KEDGE_LEARN_PROCESSES_MAX]; /* rank 0: one per child, by rank; a child: its own at 0; else −1 */
    pid_t pids[KEDGE_LEARN_PROCESSES_MAX];
};

static int put_all(int fd, const void *ptr, uint64_t len)
{
    const uint8_t *at = ptr;
    while (len > 0) {
        ssize_t n = send(fd, at, len < PIECE_MAX ? (size_t)len : PIECE_MAX, MSG_NOSIGNAL);
        if (n < 0 && errno != EINTR) {
            return KEDGE_E_IO;
        }
        at += n > 0 ? n : 0;
        len -= n > 0 ? (uint64_t)n : 0;
    }
    return KEDGE_OK;
}

static int get_all(int fd, void *ptr, uint64_t len)
{
    uint8_t *at = ptr;
    while (len > 0) {
        ssize_t n = recv(fd, at, len < PIECE_MAX ? (size_t)len : PIECE_MAX, 0);
        if (n == 0 || (n < 0 && errno != EINTR)) {
            return KEDGE_E_IO;
        }
        at += n > 0 ? n : 0;
        len -= n > 0 ? (uint64_t)n : 0;
    }
    return KEDGE_OK;
}

/* A length and so many bytes. */
static int put_row(int fd, const void *ptr, uint64_t len)
{
    uint8_t head[8];
    kedge_store_be64(head, len);
    int err = put_all(fd, head, sizeof head);
    return err ? err : put_all(fd, ptr, len);
}

static int get_row(int fd, uint8_t *ptr, uint64_t max, uint64_t *ret_len)
{
    uint8_t head[8];
    int err = get_all(fd, head, sizeof head);
    *ret_len = err ? 0 : kedge_load_be64(head);
    if (!err && *ret_len > max) {
        return KEDGE_E_TOO_LONG;
    }
    return err ? err : get_all(fd, ptr, *ret_len);
}

static int gather_first(struct kedge_learn_processes *p, uint8_t *rows, uint64_t max, uint64_t *lens)
{
    uint32_t size = p->exchange.size;
    for (uint32_t r = 1; r < size; r++) {
        KEDGE_TRY(get_row(p->fds[r], rows + r * max, max, &lens[r]));
    }
    for (uint32_t r = 1; r < size; r++) {
        for (uint32_t of = 0; of < size; of++) {
            KEDGE_TRY(of == r ? KEDGE_OK
                              : put_row(p->fds[r], rows + of * max, lens[of])); /* it has its own */
        }
    }
    return KEDGE_OK;
}

static int allgather(void *arg, const void *mine, uint64_t len, void *ret, uint64_t max, uint64_t *lens)
{
    struct kedge_learn_processes *p = arg;
    uint32_t rank = p->exchange.rank, size = p->exchange.size;
    uint8_t *rows = ret;
    if (len > max) {
        return KEDGE_E_TOO_LONG;
    }
    if (len > 0) {
        memmove(rows + rank * max, mine, len); /* it may stand there already */
    }
    lens[rank] = len;
    if (rank == 0) {
        return gather_first(p, rows, max, lens);
    }
    int err = put_row(p->fds[0], mine, len);
    for (uint32_t of = 0; of < size && !err; of++) {
        err = of == rank ? KEDGE_OK : get_row(p->fds[0], rows + of * max, max, &lens[of]);
    }
    return err;
}

static void close_all(struct kedge_learn_processes *p)
{
    for (size_t i = 0; i < KEDGE_LEARN_PROCESSES_MAX; i++) {
        if (p->fds[i] >= 0) {
            (void)close(p->fds[i]);
            p->fds[i] = -1;
        }
    }
}

static void become_child(struct kedge_learn_processes *p, uint32_t rank, int fd, pid_t parent)
{
    close_all(p); /* those of the ranks before */
    memset(p->pids, 0, sizeof p->pids);
    p->fds[0] = fd;
    p->exchange.rank = rank;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) { /* it was gone before that took hold */
        _exit(1);
    }
    (void)signal(SIGINT, SIG_IGN);
    (void)signal(SIGTERM, SIG_IGN);
}

int kedge_learn_processes_start(uint32_t size, struct kedge_learn_processes **ret, struct kedge_diag *reterr)
{
    KEDGE_ASSERT(size >= 1 && size <= KEDGE_LEARN_PROCESSES_MAX);
    struct kedge_learn_processes *p = kedge_mem_new(1, sizeof *p);
    pid_t parent = getpid();
    if (!p) {
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "out of memory");
    }
    memset(p->fds, -1, sizeof p->fds);
    p->exchange = (struct kedge_learn_exchange){0, size, p, allgather};
    for (uint32_t r = 1; r < size; r++) {
        int pair[2];
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
            int err = kedge_diag_set(reterr, KEDGE_E_IO, "cannot join process %u: %s", r, strerror(errno));
            kedge_learn_processes_end(p, err);
            return err;
        }
        p->pids[r] = fork();
        if (p->pids[r] == 0) {
            (void)close(pair[0]);
            become_child(p, r, pair[1], parent);
            break;
        }
        p->fds[r] = pair[0];
        (void)close(pair[1]);
        if (p->pids[r] < 0) {
            int err = kedge_diag_set(reterr, KEDGE_E_IO, "cannot start process %u: %s", r, strerror(errno));
            p->pids[r] = 0;
            kedge_learn_processes_end(p, err);
            return err;
        }
    }
    *ret = p;
    return KEDGE_OK;
}

const struct kedge_learn_exchange *kedge_learn_processes_exchange(const struct kedge_learn_processes *p)
{
    return &p->exchange;
}

void kedge_learn_processes_end(struct kedge_learn_processes *p, int err)
{
    close_all(p);
    if (p->exchange.rank != 0) {
        _exit(err ? 1 : 0); /* no handlers, no buffers: those are the parent's */
    }
    for (uint32_t r = 1; r < p->exchange.size; r++) {
        while (p->pids[r] > 0 && waitpid(p->pids[r], NULL, 0) < 0 && errno == EINTR) {
        }
    }
    kedge_mem_free(p);
}
