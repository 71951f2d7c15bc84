/* Internal to net: the bytes of one connection, plain or TLS, never blocking. Not thread-safe. */
#ifndef KEDGE_COMMON_NET_STREAM_H
#define KEDGE_COMMON_NET_STREAM_H

#include <stddef.h>

#include "common/net/tls.h"

/* The most that one turn receives or sends, so that a busy connection leaves room for others: a piece of a
 * model and what comes with it. Less would deal out pieces in slices, and every site would have its own late.
 */
enum { KEDGEI_TURN_MAX = 1088 * 1024 };

struct kedgei_stream {
    int fd;
    struct ssl_st *ssl; /* NULL: plain */
    size_t allowance;   /* bytes that may still be received in this turn; the owner sets it */
    int failed;         /* what ended it: the error that everything returns from now on */
    bool lost;          /* TCP's end, as against TLS's */
    bool wants_write;   /* TLS has something to say before it can go on */
    bool more;          /* what is written now is followed by more at once: let the kernel gather it */
};

/* Owns fd from now on, whatever it returns. tls NULL: plain. */
KEDGE_NODISCARD int kedgei_stream_init(struct kedgei_stream *s, int fd, struct kedgei_tls *tls);
/* Says goodbye if that is possible at once. */
void kedgei_stream_deinit(struct kedgei_stream *s);
/* Says now that nothing more will be sent, and leaves receiving open: closing a socket with unread bytes is a
 * reset, which may overtake what was sent last. */
void kedgei_stream_goodbye(struct kedgei_stream *s);

/* KEDGE_OK when the handshake is done (at once for plain), KEDGE_E_BUSY when it needs the network,
 * KEDGE_E_PEER_AUTH or KEDGE_E_CLOSED. With TLS the key of the peer, who has proved that it is his; *ret_key
 * is left alone where a peer needs none (kedgei_tls_web_new). */
KEDGE_NODISCARD int kedgei_stream_handshake(struct kedgei_stream *s, struct kedge_public_key *ret_key);
/* Bytes moved: 1 to len; 0: none now; KEDGE_E_CLOSED, or KEDGE_E_PEER_AUTH when TLS was violated (or the peer
 * told us that he refuses us). */
KEDGE_NODISCARD long kedgei_stream_read(struct kedgei_stream *s, uint8_t *ptr, size_t len);
KEDGE_NODISCARD long kedgei_stream_write(struct kedgei_stream *s, const uint8_t *ptr, size_t len);
/* Bytes have been taken from the socket that read has not returned; poll(2) does not know of them. */
bool kedgei_stream_has_pending(const struct kedgei_stream *s);

/* What the above calls, in stream_openssl.c. */
KEDGE_NODISCARD int kedgei_ssl_init(struct kedgei_stream *s, struct kedgei_tls *tls);
void kedgei_ssl_deinit(struct kedgei_stream *s);
void kedgei_ssl_goodbye(struct kedgei_stream *s);
KEDGE_NODISCARD int kedgei_ssl_handshake(struct kedgei_stream *s, struct kedge_public_key *ret_key);
KEDGE_NODISCARD long kedgei_ssl_read(struct kedgei_stream *s, uint8_t *ptr, size_t len);
KEDGE_NODISCARD long kedgei_ssl_write(struct kedgei_stream *s, const uint8_t *ptr, size_t len);
bool kedgei_ssl_has_pending(const struct kedgei_stream *s);
/* recv(2) and send(2) within the turn's allowance; results as of read and write. */
KEDGE_NODISCARD long kedgei_socket_receive(struct kedgei_stream *s, void *ptr, size_t len);
KEDGE_NODISCARD long kedgei_socket_send(struct kedgei_stream *s, const void *ptr, size_t len);

#endif
