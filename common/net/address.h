/* Internal to net: what an address may look like, and sockets for it. */
#ifndef KEDGE_COMMON_NET_ADDRESS_H
#define KEDGE_COMMON_NET_ADDRESS_H

#include "common/base/diag.h"
#include "common/net/peer.h"
#include "common/net/server.h"

struct kedgei_address {
    enum kedge_net_kind kind;
    char host[KEDGE_NET_URL_MAX]; /* without brackets; "" for any ("*"); the path of ipc:// */
    char port[8];                 /* decimal; "" for ipc:// */
};

/* tls+tcp://HOST:PORT, ipc://PATH, and tcp://HOST:PORT only if insecure and HOST is 127.x.x.x, [::1] or
 * localhost. KEDGE_E_ARG with a diagnostic, KEDGE_E_DENIED for a plain tcp:// elsewhere. */
KEDGE_NODISCARD int kedgei_address_parse(const char *url, bool insecure, struct kedgei_address *ret,
                                         struct kedge_diag *reterr);
/* The address with another port, NUL-terminated; false if it does not fit. For TLS and TCP. */
bool kedgei_address_with_port(const char *url, unsigned port, char *out, size_t out_len);

#endif
