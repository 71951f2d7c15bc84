/* Sockets are never blocking and never inherited by child processes. Peers that vanish are found by TCP
 * itself, with keepalive and a limit on unacknowledged bytes, because neither side would notice otherwise:
 * a server that waits for a request sends nothing. */
#include "common/net/socket.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/net/admission/rate.h"

/* A peer that vanishes without a word (a cable is pulled) is noticed within about a minute. */
enum { BACKLOG = 1024, IDLE_S = 30, INTERVAL_S = 10, PROBES = 3, UNACKED_MS = 60000, IPC_MODE = 0600 };

static void set_int(int fd, int level, int name, int value)
{
    (void)setsockopt(fd, level, name, &value, sizeof value); /* nice to have, each of them */
}

static void set_tcp_options(int fd)
{
    set_int(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    set_int(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    set_int(fd, IPPROTO_TCP, TCP_KEEPIDLE, IDLE_S);
    set_int(fd, IPPROTO_TCP, TCP_KEEPINTVL, INTERVAL_S);
    set_int(fd, IPPROTO_TCP, TCP_KEEPCNT, PROBES);
    set_int(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, UNACKED_MS);
}

static int fail(int fd, const char *url, int os_errno, struct kedge_diag *reterr)
{
    int err = os_errno == EADDRINUSE                     ? KEDGE_E_BUSY
              : os_errno == EACCES || os_errno == EPERM  ? KEDGE_E_DENIED
              : os_errno == ENOMEM || os_errno == EMFILE ? KEDGE_E_NOMEM
              : os_errno == ENAMETOOLONG                 ? KEDGE_E_ARG
                                                         : KEDGE_E_UNREACHABLE;
    if (fd >= 0) {
        close(fd);
    }
    kedge_diag_set(reterr, err, "cannot listen on %s: %s", url, strerror(os_errno));
    if (os_errno == EADDRINUSE) {
        kedge_diag_hint(reterr, "another process listens there; stop it or choose another port");
    } else if (os_errno == ENAMETOOLONG) {
        kedge_diag_hint(reterr, "a socket's path has at most %zu bytes; choose a shorter folder",
                        sizeof((struct sockaddr_un *)NULL)->sun_path - 1);
    }
    return err;
}

static bool make_path(const char *path, struct sockaddr_un *ret)
{
    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    size_t len = strlen(path);
    if (len >= sizeof ret->sun_path) {
        return false;
    }
    memcpy(ret->sun_path, path, len);
    return true;
}

static int open_socket(int family)
{
    return socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

/* What a killed process left there. */
static bool is_stale(const struct sockaddr_un *a)
{
    int fd = open_socket(AF_UNIX);
    bool stale = fd >= 0 && connect(fd, (const struct sockaddr *)a, sizeof *a) != 0 && errno == ECONNREFUSED;
    if (fd >= 0) {
        close(fd);
    }
    return stale;
}

/* A socket's file stays when its process is killed. It is removed only when nobody listens there
 * any more; a living process keeps it, and this one says so. */
static int listen_at_path(const char *path, const char *url, int *ret_fd, struct kedge_diag *reterr)
{
    struct sockaddr_un a;
    if (!make_path(path, &a)) {
        return fail(-1, url, ENAMETOOLONG, reterr);
    }
    int fd = open_socket(AF_UNIX);
    /* bind gives the file the mode of the socket (unix(7) of Linux), so it is never open to others. */
    if (fd < 0 || fchmod(fd, IPC_MODE) != 0) {
        return fail(fd, url, errno, reterr);
    }
    int rv = bind(fd, (struct sockaddr *)&a, sizeof a);
    if (rv != 0 && errno == EADDRINUSE) {
        struct stat st;
        if (lstat(path, &st) != 0 || !S_ISSOCK(st.st_mode) || !is_stale(&a)) {
            return fail(fd, url, EADDRINUSE, reterr);
        }
        rv = unlink(path) == 0 ? bind(fd, (struct sockaddr *)&a, sizeof a) : -1;
    }
    if (rv != 0 || listen(fd, BACKLOG) != 0) {
        return fail(fd, url, errno, reterr);
    }
    *ret_fd = fd;
    return KEDGE_OK;
}

static unsigned port_of(int fd)
{
    struct sockaddr_storage a = {.ss_family = AF_UNSPEC};
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    socklen_t len = sizeof a;
    if (getsockname(fd, (struct sockaddr *)&a, &len) != 0) {
        return 0;
    }
    memcpy(&v4, &a, sizeof v4);
    memcpy(&v6, &a, sizeof v6);
    return ntohs(a.ss_family == AF_INET6 ? v6.sin6_port : v4.sin_port);
}

int kedgei_socket_listen(const struct kedgei_address *address, const char *url, int *ret_fd,
                         unsigned *ret_port, struct kedge_diag *reterr)
{
    *ret_port = 0;
    if (address->kind == KEDGE_NET_IPC) {
        return listen_at_path(address->host, url, ret_fd, reterr);
    }
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *list = NULL;
    int rv = getaddrinfo(address->host[0] ? address->host : NULL, address->port, &hints, &list);
    if (rv != 0) {
        return kedge_diag_set(reterr, KEDGE_E_UNREACHABLE, "cannot listen on %s: %s", url, gai_strerror(rv));
    }
    int fd = open_socket(list->ai_family);
    if (fd >= 0) {
        set_int(fd, SOL_SOCKET, SO_REUSEADDR, 1);
    }
    if (fd < 0 || bind(fd, list->ai_addr, list->ai_addrlen) != 0 || listen(fd, BACKLOG) != 0) {
        int os_errno = errno;
        freeaddrinfo(list);
        return fail(fd, url, os_errno, reterr);
    }
    freeaddrinfo(list);
    *ret_port = port_of(fd);
    *ret_fd = fd;
    return KEDGE_OK;
}

/* Addresses of IPv6 are cut to their network of 64 bits: a host may have as many addresses in it as
 * it likes, and would otherwise count as that many peers. */
static void read_address(const struct sockaddr_storage *a, uint8_t out[KEDGEI_ADDRESS_LEN])
{
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    memcpy(&v4, a, sizeof v4);
    memcpy(&v6, a, sizeof v6);
    memset(out, 0, KEDGEI_ADDRESS_LEN);
    if (a->ss_family == AF_INET) {
        out[10] = out[11] = 0xff; /* ::ffff:a.b.c.d */
        memcpy(out + 12, &v4.sin_addr, 4);
    } else if (a->ss_family == AF_INET6) {
        memcpy(out, &v6.sin6_addr, KEDGEI_ADDRESS_LEN);
        kedgei_address_shorten(out);
    }
}

int kedgei_socket_accept(int listener, uint8_t ret_address[16])
{
    struct sockaddr_storage a = {.ss_family = AF_UNSPEC};
    socklen_t len = sizeof a;
    int fd = accept4(listener, (struct sockaddr *)&a, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0 && ret_address) {
        read_address(&a, ret_address);
    }
    return fd;
}

void kedgei_socket_prepare(int fd, enum kedge_net_kind kind)
{
    if (kind != KEDGE_NET_IPC) {
        set_tcp_options(fd);
    }
}

static int begin_connect(int fd, const struct sockaddr *to, socklen_t len)
{
    if (fd >= 0 && connect(fd, to, len) != 0 && errno != EINPROGRESS && errno != EINTR) {
        int os_errno = errno;
        close(fd);
        errno = os_errno;
        return -1;
    }
    return fd;
}

int kedgei_socket_connect(const struct sockaddr *to, socklen_t len)
{
    int fd = open_socket(to->sa_family);
    if (fd >= 0) {
        set_tcp_options(fd);
    }
    return begin_connect(fd, to, len);
}

int kedgei_socket_connect_path(const char *path)
{
    struct sockaddr_un a;
    if (!make_path(path, &a)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    return begin_connect(open_socket(AF_UNIX), (struct sockaddr *)&a, sizeof a);
}

int kedgei_socket_error(int fd)
{
    int error = 0;
    socklen_t len = sizeof error;
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) == 0 ? error : errno;
}

/* The kernel says who is at the other end. The file's mode already keeps others out; this holds
 * also where somebody has changed it. */
bool kedgei_socket_is_own_user(int fd)
{
    struct ucred who;
    socklen_t len = sizeof who;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) == 0 && (who.uid == geteuid() || who.uid == 0);
}
