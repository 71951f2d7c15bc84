/* Internal to net: closing sockets of nng 1.5.2 without hanging on them.
 *
 * When nng closes a connection between two steps of a transfer (header read, body not yet asked for),
 * the transfer's end is lost, and nng_close waits for it without end. So TLS connections are first
 * shut down from below, which nng takes for the peer's going, and the wait for nng_close is bounded. */
#ifndef KEDGE_COMMON_NET_CLOSING_H
#define KEDGE_COMMON_NET_CLOSING_H

#include <stdbool.h>

enum {
    KEDGEI_GONE_MAX_MS = 1000, /* for connections to go after their shutdown */
    KEDGEI_CLOSE_MAX_MS = 5000,
};

/* nng_close. False when it did not come back in KEDGEI_CLOSE_MAX_MS; it goes on in a thread of its
 * own, and nothing that callbacks of the socket use may be freed. */
bool kedgei_close_socket(int socket_id);

#endif
