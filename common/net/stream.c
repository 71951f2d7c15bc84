/* One interface for plain sockets and TLS. The allowance bounds what one connection may receive in a turn
 * of the loop, so that a fast peer leaves turns to others; a stream that has used it up says "nothing
 * now", and the descriptor stays readable for the next turn. An error is remembered: after it every call
 * returns the same one. */
#include "common/net/stream.h"

#include <sys/socket.h>
#include <unistd.h>

int kedgei_stream_init(struct kedgei_stream *s, int fd, struct kedgei_tls *tls)
{
    *s = (struct kedgei_stream){.fd = fd, .allowance = KEDGEI_TURN_MAX};
    int err = tls ? kedgei_ssl_init(s, tls) : KEDGE_OK;
    if (err) {
        kedgei_stream_deinit(s);
    }
    return err;
}

void kedgei_stream_deinit(struct kedgei_stream *s)
{
    if (s->ssl) {
        kedgei_ssl_deinit(s);
        s->ssl = NULL;
    }
    if (s->fd >= 0) {
        close(s->fd);
        s->fd = -1;
    }
}

void kedgei_stream_goodbye(struct kedgei_stream *s)
{
    if (s->ssl) {
        kedgei_ssl_goodbye(s);
    }
    (void)shutdown(s->fd, SHUT_WR);
}

int kedgei_stream_handshake(struct kedgei_stream *s, struct kedge_public_key *ret_key)
{
    if (s->failed) {
        return s->failed;
    }
    return s->ssl ? kedgei_ssl_handshake(s, ret_key) : KEDGE_OK;
}

long kedgei_stream_read(struct kedgei_stream *s, uint8_t *ptr, size_t len)
{
    if (s->failed) {
        return s->failed;
    }
    return s->ssl ? kedgei_ssl_read(s, ptr, len) : kedgei_socket_receive(s, ptr, len);
}

long kedgei_stream_write(struct kedgei_stream *s, const uint8_t *ptr, size_t len)
{
    if (s->failed) {
        return s->failed;
    }
    return s->ssl ? kedgei_ssl_write(s, ptr, len) : kedgei_socket_send(s, ptr, len);
}

bool kedgei_stream_has_pending(const struct kedgei_stream *s)
{
    return s->ssl && !s->failed && kedgei_ssl_has_pending(s);
}
