#include "common/net/sockets.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>

enum {
    DESCRIPTORS_MAX = 1 << 20,
    NEAR = 64,  /* how far from the last one found to look first: descriptors are given out from below */
    GAP = 1024, /* this many unused ones in a row: there are no more */
};

static bool is_end(const struct sockaddr_storage *a, const struct kedgei_end *b)
{
    if (!b->is_v6 && a->ss_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)a;
        return in->sin_port == b->port && memcmp(&in->sin_addr, b->address, 4) == 0;
    }
    if (b->is_v6 && a->ss_family == AF_INET6) {
        const struct sockaddr_in6 *in = (const struct sockaddr_in6 *)a;
        return in->sin6_port == b->port && memcmp(&in->sin6_addr, b->address, 16) == 0;
    }
    return false;
}

static bool has_ends(int fd, const struct kedgei_ends *ends)
{
    struct sockaddr_storage remote, local;
    socklen_t remote_len = sizeof remote, local_len = sizeof local;
    return getpeername(fd, (struct sockaddr *)&remote, &remote_len) == 0 && is_end(&remote, &ends->remote)
           && getsockname(fd, (struct sockaddr *)&local, &local_len) == 0 && is_end(&local, &ends->local);
}

bool kedgei_socket_is_open(int fd)
{
    struct tcp_info info;
    socklen_t len = sizeof info;
    return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0
           && (info.tcpi_state == TCP_ESTABLISHED || info.tcpi_state == TCP_CLOSE_WAIT);
}

int kedgei_find_socket(const struct kedgei_ends *ends)
{
    static _Atomic int last_found;
    int near = atomic_load(&last_found), unused = 0;
    for (int fd = near > NEAR ? near - NEAR : 0; fd < near + NEAR; fd++) {
        if (has_ends(fd, ends)) {
            atomic_store(&last_found, fd);
            return fd;
        }
    }
    for (int fd = 0; fd < DESCRIPTORS_MAX && unused < GAP; fd++) {
        if (has_ends(fd, ends)) {
            atomic_store(&last_found, fd);
            return fd;
        }
        unused = errno == EBADF ? unused + 1 : 0;
    }
    return -1;
}
