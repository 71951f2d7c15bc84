/* Internal to net: sockets, made non-blocking and closed on exec. */
#ifndef KEDGE_COMMON_NET_SOCKET_H
#define KEDGE_COMMON_NET_SOCKET_H

#include <netdb.h>
#include <stddef.h>
#include <stdint.h>

#include "common/net/address.h"

/* A listening socket. A socket file that nobody listens at any more is replaced; the new one has mode
 * 0600 from its first moment. *ret_port: the port it really has (0 for ipc). KEDGE_E_BUSY, KEDGE_E_DENIED,
 * KEDGE_E_UNREACHABLE (no such address here), KEDGE_E_ARG or KEDGE_E_NOMEM, with the address named. */
KEDGE_NODISCARD int kedgei_socket_listen(const struct kedgei_address *address, const char *url, int *ret_fd,
                                         unsigned *ret_port, struct kedge_diag *reterr);
/* The next waiting connection, -1 with errno set if there is none. ret_address (NULL: not wanted): whose it
 * is, as kedgei_address_shorten leaves it; zeros for ipc. */
int kedgei_socket_accept(int listener, uint8_t ret_address[16]);
/* Options of one that stays. */
void kedgei_socket_prepare(int fd, enum kedge_net_kind kind);
/* Begins to connect; -1 with errno set. Writable once it has come to an end: ask kedgei_socket_error then. */
int kedgei_socket_connect(const struct sockaddr *to, socklen_t len);
int kedgei_socket_connect_path(const char *path);
/* 0 when the socket is well, else an errno. */
int kedgei_socket_error(int fd);
/* The process at the other end of an ipc:// runs as the same user or as root. */
bool kedgei_socket_is_own_user(int fd);

#endif
