#include "common/net/sockets.h"

#include <dirent.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/text.h"

enum { DESCRIPTORS_MAX = 1 << 20 };

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

/* Works on a duplicate, so that the owner may close (and the system reuse) the descriptor meanwhile;
 * without a free descriptor on the original, since running out of them is what silent peers are after. */
static void shut_if_among(int fd, const struct kedgei_ends *ends, size_t count)
{
    struct sockaddr_storage remote, local;
    socklen_t remote_len = sizeof remote, local_len = sizeof local;
    int copy = dup(fd);
    int own = copy >= 0 ? copy : fd;
    if (getpeername(own, (struct sockaddr *)&remote, &remote_len) == 0 &&
        getsockname(own, (struct sockaddr *)&local, &local_len) == 0) {
        for (size_t i = 0; i < count; i++) {
            if (is_end(&remote, &ends[i].remote) && is_end(&local, &ends[i].local)) {
                shutdown(own, SHUT_RDWR);
            }
        }
    }
    if (copy >= 0) {
        close(copy);
    }
}

void kedgei_shut_sockets(const struct kedgei_ends *ends, size_t count)
{
    DIR *dir = opendir("/proc/self/fd");
    if (dir) {
        for (const struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
            uint64_t fd;
            if (kedge_decimal_decode(kedge_view_str(entry->d_name), INT32_MAX, &fd) == KEDGE_OK &&
                (int)fd != dirfd(dir)) {
                shut_if_among((int)fd, ends, count);
            }
        }
        closedir(dir);
        return;
    }
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        return;
    }
    for (int fd = 0; fd < DESCRIPTORS_MAX && (rlim_t)fd < limit.rlim_cur; fd++) {
        shut_if_among(fd, ends, count);
    }
}
