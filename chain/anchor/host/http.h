/* POST over HTTPS (or plain HTTP on loopback) with bounds: what JSON-RPC needs and no more. libcurl is known
 * to http.c alone. One thread. */
#ifndef KEDGE_CHAIN_ANCHOR_HOST_HTTP_H
#define KEDGE_CHAIN_ANCHOR_HOST_HTTP_H

#include "common/base/bytes.h"
#include "common/base/diag.h"

enum { KEDGE_HTTP_URL_MAX = 1023, KEDGE_HTTP_CONNECT_MS = 10000 };

struct kedge_http;
/* KEDGE_E_ARG: not https:// (or http:// to 127.0.0.1, [::1] or localhost), or longer than KEDGE_HTTP_URL_MAX.
 * Nothing is sent yet. Messages name the host only: what follows in the URL may be a secret. */
KEDGE_NODISCARD int kedge_http_open(const char *url, struct kedge_http **ret, struct kedge_diag *reterr);
void kedge_http_close(struct kedge_http *h); /* NULL is fine */
/* Posts JSON and appends the answer, refusing one beyond ret's max. No redirects are followed. KEDGE_OK: an
 * answer of status 200. KEDGE_E_UNREACHABLE: nothing was sent. KEDGE_E_TIMEOUT, _CLOSED, _TOO_LONG, _FORMAT
 * (another status): whether it was done is unknown. */
KEDGE_NODISCARD int kedge_http_post(struct kedge_http *h, struct kedge_view json, uint32_t timeout_ms,
                                    struct kedge_buf *ret, struct kedge_diag *reterr);

#endif
