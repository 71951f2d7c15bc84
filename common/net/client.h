/* Sends requests to one server and waits for the replies; dials, and dials again when the connection is
 * lost.
 *
 * A request goes out at most once per call: after a lost connection the caller, who knows that requests
 * are idempotent, decides whether to repeat it. All functions but close may be called from several
 * threads at once. */
#ifndef KEDGE_COMMON_NET_CLIENT_H
#define KEDGE_COMMON_NET_CLIENT_H

#include <stddef.h>

#include "common/base/bytes.h"
#include "common/base/diag.h"
#include "crypto/sign.h"

enum {
    KEDGE_NET_CALLS_MAX = 64,          /* calls in flight of one client, as many as a server accepts */
    KEDGE_NET_CONNECT_MS = 10000,      /* default wait for a connection */
    KEDGE_NET_RECONNECT_MIN_MS = 100,  /* first pause before dialling again; doubled with jitter … */
    KEDGE_NET_RECONNECT_MAX_MS = 5000, /* … up to this */
    KEDGE_NET_LOGIN_MAX = 255,         /* bytes of a login at a proxy, "USER:PASSWORD" */
};

struct kedge_net_client;

struct kedge_net_client_options {
    const char *url;                           /* tls+tcp://HOST:PORT, ipc://PATH, tcp:// to loopback */
    const struct kedge_key_pair *key;          /* own TLS identity; for tcp:// its public half is claimed;
                                                  read during open only; NULL without either */
    const struct kedge_public_key *server_key; /* what the server must hold; NULL without TLS */
    const char *proxy; /* http://HOST:PORT (asked by CONNECT) or relay://HOST:PORT, for tls+tcp:// only; NULL
                          or "": none */
    const char *proxy_login;    /* "USER:PASSWORD" for a proxy asked by CONNECT; NULL or "": none. Copied, and
                                   wiped   in the end. The proxy is told it in the clear. */
    bool insecure;              /* permits tcp:// to loopback */
    uint32_t connect_ms;        /* wait for a connection, 0: KEDGE_NET_CONNECT_MS */
    uint32_t reconnect_max_ms;  /* 0: KEDGE_NET_RECONNECT_MAX_MS */
    size_t frame_max;           /* bytes of one frame either way, 0: KEDGE_FRAME_MAX */
    void (*changed)(void *arg); /* a connection has come about, or was lost; NULL: nobody is told. Called by a
                                   thread of the client, which must not be asked anything from within */
    void *changed_arg;
};

/* Owned by the caller; release it with kedge_net_reply_release. */
struct kedge_net_reply {
    struct kedge_view view;
    void *impl;
};

/* A request that is being built in place; ptr has len bytes of undefined content. */
struct kedge_net_outgoing {
    uint8_t *ptr;
    size_t len;
    void *impl;
};

/* Checks the options and begins to dial; does not wait for the connection, so an unreachable server is
 * no error. */
KEDGE_NODISCARD int kedge_net_client_open(const struct kedge_net_client_options *options,
                                          struct kedge_net_client **ret_client, struct kedge_diag *reterr);
/* Call when no other thread uses the client any more (after kedge_net_client_cancel and their return).
 * NULL is fine. */
void kedge_net_client_close(struct kedge_net_client *client);

/* Sends a copy of the request and waits for the reply, timeout_ms in all.
 *   KEDGE_E_UNREACHABLE  no connection came about within connect_ms (or timeout_ms); the request was not sent
 *   KEDGE_E_PROXY        the proxy refuses to connect to the server; the request was not sent
 *   KEDGE_E_PROXY_LOGIN  the proxy wants a login, or another one; the request was not sent
 *   KEDGE_E_PEER_AUTH    the server does not hold the pinned key, or refuses ours; the request was not sent
 *   KEDGE_E_VERSION      what answers speaks another protocol, or another version; the request was not sent
 *   KEDGE_E_TIMEOUT      sent, no reply in time
 *   KEDGE_E_CLOSED       sent, the connection was lost before the reply
 *   KEDGE_E_CANCELLED    by kedge_net_client_cancel
 *   KEDGE_E_TOO_LONG, KEDGE_E_NOMEM, KEDGE_E_BUSY (KEDGE_NET_CALLS_MAX calls in flight) */
KEDGE_NODISCARD int kedge_net_call(struct kedge_net_client *client, struct kedge_view request,
                                   uint32_t timeout_ms, struct kedge_net_reply *ret_reply);
/* The same without a copy: begin gives space, call_send consumes it whatever it returns. */
KEDGE_NODISCARD int kedge_net_call_begin(struct kedge_net_client *client, size_t len,
                                         struct kedge_net_outgoing *ret_request);
KEDGE_NODISCARD int kedge_net_call_send(struct kedge_net_client *client, struct kedge_net_outgoing *request,
                                        uint32_t timeout_ms, struct kedge_net_reply *ret_reply);
/* For a request that will not be sent after all. Fine on an empty or consumed one. */
void kedge_net_outgoing_discard(struct kedge_net_outgoing *request);
/* Fine on an empty one. */
void kedge_net_reply_release(struct kedge_net_reply *reply);

/* Ends all calls in flight and all later ones with KEDGE_E_CANCELLED. */
void kedge_net_client_cancel(struct kedge_net_client *client);
bool kedge_net_client_connected(struct kedge_net_client *client);

/* Reads "USER:PASSWORD", one line, from a file that only its owner may use. The caller wipes *ret.
 * KEDGE_E_NOT_FOUND, KEDGE_E_DENIED (its mode), KEDGE_E_FORMAT, KEDGE_E_IO; none of them shows what was
 * read. */
KEDGE_NODISCARD int kedge_net_login_read(const char *path, char ret[KEDGE_NET_LOGIN_MAX + 1],
                                         struct kedge_diag *reterr);

#endif
