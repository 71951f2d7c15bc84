/* POST over HTTPS (or plain HTTP on this machine) with bounds: what JSON-RPC, time-stamping authorities and
 * witnesses elsewhere need, and no more. libcurl is known to client.c alone. What comes back is anybody's
 * until it is checked. One thread. */
#ifndef KEDGE_COMMON_HTTP_CLIENT_H
#define KEDGE_COMMON_HTTP_CLIENT_H

#include "common/base/bytes.h"
#include "common/base/diag.h"

enum { KEDGE_HTTP_URL_MAX = 1023, KEDGE_HTTP_CONNECT_MS = 10000, KEDGE_HTTP_STATUS_OK = 200 };

struct kedge_http_options {
    const char *url;          /* https://…, or http:// to 127.0.0.1, [::1] or localhost */
    const char *what;         /* the setting that the URL comes from, for messages */
    const char *content_type; /* of what is posted */
    bool plain; /* http:// to any host: what is sent is public, and what comes back proves itself */
};

struct kedge_http;
/* KEDGE_E_ARG: another URL, or longer than KEDGE_HTTP_URL_MAX. Nothing is sent yet. Messages name the host
 * only: what follows in the URL may be a secret. */
KEDGE_NODISCARD int kedge_http_open(const struct kedge_http_options *options, struct kedge_http **ret,
                                    struct kedge_diag *reterr);
void kedge_http_close(struct kedge_http *h); /* NULL is fine */
/* Posts and appends the answer, refusing one beyond ret's max. No redirects are followed. KEDGE_OK: an answer
 * with *ret_status; with ret_status NULL one of status 200. KEDGE_E_UNREACHABLE: nothing was sent.
 * KEDGE_E_TIMEOUT, _CLOSED, _TOO_LONG, _FORMAT (another status than 200): whether it was done is unknown. */
KEDGE_NODISCARD int kedge_http_post(struct kedge_http *h, struct kedge_view body, uint32_t timeout_ms,
                                    unsigned *ret_status, struct kedge_buf *ret, struct kedge_diag *reterr);

#endif
