/* Addresses as Kedge writes them. The scheme decides how far a connection can be trusted (TLS with
 * keys, a socket file of one's own, plain loopback), so it is parsed strictly: a spelling that is
 * nearly right is an error and never a guess. */
#include "common/net/address.h"

#include <stdio.h>
#include <string.h>

#include "common/base/text.h"

static bool starts_with(const char *s, const char *start)
{
    return strncmp(s, start, strlen(start)) == 0;
}

/* HOST:PORT with a port of 0 to 65535; the port's colon is the last one. */
static bool split(const char *s, struct kedgei_address *ret)
{
    const char *colon = strrchr(s, ':');
    uint64_t port;
    if (!colon || colon == s || strchr(s, '/')
        || kedge_decimal_decode(kedge_view_str(colon + 1), UINT16_MAX, &port) != KEDGE_OK) {
        return false;
    }
    size_t len = (size_t)(colon - s);
    bool any = len == 1 && s[0] == '*', brackets = s[0] == '[' && s[len - 1] == ']' && len > 2;
    size_t host_len = any ? 0 : len - 2 * (size_t)brackets;
    if (strcspn(s + brackets, "[]*") < host_len) { /* no name has one, and "[*]" is not "*" */
        return false;
    }
    snprintf(ret->host, sizeof ret->host, "%.*s", (int)host_len, s + brackets);
    snprintf(ret->port, sizeof ret->port, "%u", (unsigned)port);
    return true;
}

/* By spelling and not by look-up: what a name resolves to may change after it was checked. */
static bool is_loopback(const char *host)
{
    return strcmp(host, "localhost") == 0 || strcmp(host, "::1") == 0
           || (starts_with(host, "127.") && strspn(host, "0123456789.") == strlen(host));
}

/* Plain TCP needs two consents, a loopback address and the option; either alone would let keys and
 * models be read on the way by mistake. */
int kedgei_address_parse(const char *url, bool insecure, struct kedgei_address *ret,
                         struct kedge_diag *reterr)
{
    static const char tls[] = "tls+tcp://", tcp[] = "tcp://", ipc[] = "ipc://";
    if (strlen(url) >= KEDGE_NET_URL_MAX) {
        return kedge_diag_set(reterr, KEDGE_E_ARG, "address: longer than %d characters",
                              KEDGE_NET_URL_MAX - 1);
    }
    *ret = (struct kedgei_address){.kind = KEDGE_NET_TLS};
    if (starts_with(url, tls) && split(url + sizeof tls - 1, ret)) {
        return KEDGE_OK;
    }
    if (starts_with(url, ipc) && url[sizeof ipc - 1] != 0) {
        ret->kind = KEDGE_NET_IPC;
        snprintf(ret->host, sizeof ret->host, "%s", url + sizeof ipc - 1);
        return KEDGE_OK;
    }
    if (starts_with(url, tcp) && split(url + sizeof tcp - 1, ret)) {
        if (!insecure || !is_loopback(ret->host)) {
            kedge_diag_set(reterr, KEDGE_E_DENIED,
                           "address %s: plain tcp:// is allowed on loopback only, "
                           "and only with --insecure",
                           url);
            kedge_diag_hint(reterr, "use tls+tcp://");
            return KEDGE_E_DENIED;
        }
        ret->kind = KEDGE_NET_TCP;
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
