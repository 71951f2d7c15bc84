/* Bytes of a socket. */
#include <errno.h>
#include <sys/socket.h>

#include "common/net/stream.h"

static long judge(struct kedgei_stream *s)
{
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) {
        return 0;
    }
    s->lost = true;
    s->failed = s->failed ? s->failed : KEDGE_E_CLOSED;
    return s->failed;
}

long kedgei_socket_receive(struct kedgei_stream *s, void *ptr, size_t len)
{
    len = len < s->allowance ? len : s->allowance;
    if (len == 0) {
        return 0; /* the turn is over; poll(2) tells again that there is more */
    }
    ssize_t n = recv(s->fd, ptr, len, 0);
    if (n > 0) {
        s->allowance -= (size_t)n;
        return n;
    }
    errno = n == 0 ? ECONNRESET : errno; /* nobody closes one direction only */
    return judge(s);
}

long kedgei_socket_send(struct kedgei_stream *s, const void *ptr, size_t len)
{
    ssize_t n = send(s->fd, ptr, len, MSG_NOSIGNAL | (s->more ? MSG_MORE : 0));
    return n > 0 ? n : judge(s);
}
