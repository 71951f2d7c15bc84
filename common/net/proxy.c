/* Both sides of HTTP's CONNECT, for a client that dials through a proxy and for the relay that is one.
 * Heads are read byte by byte up to the empty line, and not a byte more: what follows belongs to TLS. The
 * first byte that differs from the grammar ends it, so that a server of another kind is not waited for
 * until 4 KiB have come. */
#include "common/net/proxy.h"

#include <stdio.h>
#include <string.h>

enum { STATUS_DIGITS = 3, VERSION_LEN = 8 };

int kedgei_proxy_parse(const char *url, struct kedgei_proxy *ret, struct kedge_diag *reterr)
{
    static const char *const schemes[] = {"relay://", "http://"};
    char tls[KEDGE_NET_URL_MAX + 16];
    struct kedgei_proxy p = {.connects = false};
    for (size_t i = 0; i < 2; i++) {
        size_t len = strlen(schemes[i]);
        if (strncmp(url, schemes[i], len) == 0 && strlen(url) < KEDGE_NET_URL_MAX) {
            snprintf(tls, sizeof tls, "tls+tcp://%s", url + len);
            p.connects = i == 1;
            if (kedgei_address_parse(tls, false, &p.address, NULL) == KEDGE_OK && p.address.host[0]
                && strcmp(p.address.port, "0") != 0) {
                *ret = p;
                return KEDGE_OK;
            }
        }
    }
    return kedge_diag_set(reterr, KEDGE_E_ARG, "proxy %.200s: expected http://HOST:PORT or relay://HOST:PORT",
                          url);
}

size_t kedgei_proxy_request(const struct kedgei_address *to, const char *basic,
                            char out[KEDGE_PROXY_REQUEST_MAX])
{
    const char *open = strchr(to->host, ':') ? "[" : "", *close = open[0] ? "]" : "";
    int n =
        snprintf(out, KEDGE_PROXY_REQUEST_MAX, "CONNECT %s%s%s:%s HTTP/1.1\r\nHost: %s%s%s:%s%s%s\r\n\r\n",
                 open, to->host, close, to->port, open, to->host, close, to->port,
                 basic[0] ? "\r\nProxy-Authorization: Basic " : "", basic);
    return n > 0 && n < KEDGE_PROXY_REQUEST_MAX ? (size_t)n : 0;
}

/* The end of the head: CRLF CRLF as the last four bytes that have come. */
static bool is_whole(struct kedge_view head)
{
    return head.len >= 4 && memcmp(head.ptr + head.len - 4, "\r\n\r\n", 4) == 0;
}

unsigned kedgei_proxy_status(struct kedge_view head)
{
    static const char version[] = "HTTP/1.";
    size_t known = head.len < sizeof version - 1 ? head.len : sizeof version - 1;
    if ((known && memcmp(head.ptr, version, known) != 0) || head.len > KEDGE_PROXY_HEAD_MAX) {
        return 1;
    }
    if (!is_whole(head)) {
        return head.len == KEDGE_PROXY_HEAD_MAX ? 1 : 0;
    }
    unsigned status = 0;
    if (head.len < VERSION_LEN + 1 + STATUS_DIGITS + 4 || head.ptr[VERSION_LEN] != ' ') {
        return 1;
    }
    for (size_t i = 0; i < STATUS_DIGITS; i++) {
        uint8_t c = head.ptr[VERSION_LEN + 1 + i];
        if (c < '0' || c > '9') {
            return 1;
        }
        status = 10 * status + (unsigned)(c - '0');
    }
    return status >= 100 ? status : 1;
}

unsigned kedgei_proxy_target(struct kedge_view head, struct kedgei_address *ret)
{
    static const char connect[] = "CONNECT ", http[] = " HTTP/1.1\r\n";
    char url[KEDGE_NET_URL_MAX + 16];
    size_t known = head.len < sizeof connect - 1 ? head.len : sizeof connect - 1;
    if (known && memcmp(head.ptr, connect, known) != 0) {
        return 405;
    }
    if (!is_whole(head)) {
        return head.len >= KEDGE_PROXY_HEAD_MAX ? 431 : 0;
    }
    const uint8_t *from = head.ptr + sizeof connect - 1;
    const uint8_t *end = memchr(from, ' ', head.len - (sizeof connect - 1));
    size_t len = end ? (size_t)(end - from) : 0;
    size_t left = end ? head.len - (size_t)(end - head.ptr) : 0;
    if (len == 0 || len >= KEDGE_NET_URL_MAX - 16 || left < sizeof http - 1
        || memcmp(end, http, sizeof http - 1) != 0) {
        return 400;
    }
    for (size_t i = 0; i < len; i++) { /* a host and a port, nothing that could be anything else */
        if (from[i] <= ' ' || from[i] >= 0x7f || from[i] == '/' || from[i] == '@') {
            return 400;
        }
    }
    snprintf(url, sizeof url, "tls+tcp://%.*s", (int)len, (const char *)from);
    struct kedgei_address a;
    if (kedgei_address_parse(url, false, &a, NULL) != KEDGE_OK || !a.host[0] || strcmp(a.port, "0") == 0
        || (strchr(a.host, ':') && from[0] != '[')) { /* RFC 3986 §3.2.2: colons stand in brackets only */
        return 400;
    }
    *ret = a;
    return 200;
}
