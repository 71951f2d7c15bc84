/* Internal to net: dialling through something in between. What is in between sees TLS records and nothing
 * else: the server must hold the pinned key as ever. Pure. */
#ifndef KEDGE_COMMON_NET_PROXY_H
#define KEDGE_COMMON_NET_PROXY_H

#include "common/net/address.h"
#include "common/net/client.h"

enum {
    KEDGE_PROXY_HEAD_MAX = 4096,
    KEDGE_PROXY_BASIC_MAX = (KEDGE_NET_LOGIN_MAX + 2) / 3 * 4 + 1, /* its end included */
    KEDGE_PROXY_REQUEST_MAX = 2 * KEDGE_NET_URL_MAX + KEDGE_PROXY_BASIC_MAX + 96,
    KEDGE_PROXY_WANTS_LOGIN = 407
};

struct kedgei_proxy {
    bool connects; /* asked by HTTP's CONNECT; else it forwards by itself, as kedge-relay does */
    struct kedgei_address address; /* to dial */
};

/* "http://HOST:PORT" or "relay://HOST:PORT"; KEDGE_E_ARG with a diagnostic. */
KEDGE_NODISCARD int kedgei_proxy_parse(const char *url, struct kedgei_proxy *ret, struct kedge_diag *reterr);
/* "USER:PASSWORD" as Basic credentials (RFC 7617), a secret as well. KEDGE_E_ARG: no such thing, or too long;
 * KEDGE_E_NOMEM. In proxy_login.c. */
KEDGE_NODISCARD int kedgei_proxy_basic(const char *login, char ret[KEDGE_PROXY_BASIC_MAX],
                                       struct kedge_diag *reterr);
/* CONNECT host:port (RFC 9110 §9.3.6), with those credentials unless they are ""; its length, 0 when it does
 * not fit. */
size_t kedgei_proxy_request(const struct kedgei_address *to, const char *basic,
                            char out[KEDGE_PROXY_REQUEST_MAX]);
/* Looks at a proxy's answer so far. 0: not whole yet; else its status, or 1 when it is no answer of HTTP/1 or
 * longer than KEDGE_PROXY_HEAD_MAX. Whole is what ends in an empty line. */
unsigned kedgei_proxy_status(struct kedge_view head);
/* A client's request to a proxy, so far: 0 not whole yet, 200 a CONNECT whose target is written to *ret (kind
 * TLS), else the status to refuse it with: 400, 405, 431. */
unsigned kedgei_proxy_target(struct kedge_view head, struct kedgei_address *ret);

#endif
