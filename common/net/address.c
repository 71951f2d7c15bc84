#include "common/net/address.h"

#include <stdio.h>
#include <string.h>

#include "common/base/text.h"
#include "common/net/server.h"

static bool starts_with(const char *s, const char *start)
{
    return strncmp(s, start, strlen(start)) == 0;
}

/* HOST:PORT with a port of 0 to 65535; the port's colon is the last one. */
static bool is_host_and_port(const char *s)
{
    const char *colon = strrchr(s, ':');
    uint64_t port;
    return colon && colon != s && !strchr(s, '/')
           && kedge_decimal_decode(kedge_view_str(colon + 1), UINT16_MAX, &port) == KEDGE_OK;
}

static bool is_loopback(const char *host_and_port)
{
    size_t len = (size_t)(strrchr(host_and_port, ':') - host_and_port);
    struct kedge_view host = kedge_view_of(host_and_port, len);
    if (kedge_view_eq(host, kedge_view_str("localhost")) || kedge_view_eq(host, kedge_view_str("[::1]"))) {
        return true;
    }
    return starts_with(host_and_port, "127.") && strspn(host_and_port, "0123456789.") == len;
}

int kedgei_address_check(const char *url, bool insecure, enum kedge_net_kind *ret_kind,
                         struct kedge_diag *reterr)
{
    static const char tls[] = "tls+tcp://", tcp[] = "tcp://", ipc[] = "ipc://";
    if (strlen(url) >= KEDGE_NET_URL_MAX) {
        return kedge_diag_set(reterr, KEDGE_E_ARG, "address: longer than %d characters",
                              KEDGE_NET_URL_MAX - 1);
    }
    if (starts_with(url, tls) && is_host_and_port(url + sizeof tls - 1)) {
        *ret_kind = KEDGE_NET_TLS;
        return KEDGE_OK;
    }
    if (starts_with(url, ipc) && url[sizeof ipc - 1] != 0) {
        *ret_kind = KEDGE_NET_IPC;
        return KEDGE_OK;
    }
    if (starts_with(url, tcp) && is_host_and_port(url + sizeof tcp - 1)) {
        if (!insecure || !is_loopback(url + sizeof tcp - 1)) {
            kedge_diag_set(reterr, KEDGE_E_DENIED,
                           "address %s: plain tcp:// is allowed on loopback only, "
                           "and only with --insecure",
                           url);
            kedge_diag_hint(reterr, "use tls+tcp://");
            return KEDGE_E_DENIED;
        }
        *ret_kind = KEDGE_NET_TCP;
        return KEDGE_OK;
    }
    return kedge_diag_set(reterr, KEDGE_E_ARG, "address %s: expected tls+tcp://HOST:PORT or ipc://PATH", url);
}

bool kedgei_address_with_port(const char *url, unsigned port, char *out, size_t out_len)
{
    const char *colon = strrchr(url, ':');
    int len = snprintf(out, out_len, "%.*s:%u", (int)(colon - url), url, port);
    return len > 0 && (size_t)len < out_len;
}
