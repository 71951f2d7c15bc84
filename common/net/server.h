/* Answers requests over TLS, ipc or plain loopback: frames in, frames out, no knowledge of what they
 * say.
 *
 * Peers of TLS are identified by the Ed25519 key of their certificate, whoever they are; what a key may
 * do is the application's decision (admit, and again per request). Every request is answered exactly
 * once, at any later time and from any thread, so that thousands can be parked. */
#ifndef KEDGE_COMMON_NET_SERVER_H
#define KEDGE_COMMON_NET_SERVER_H

#include <stddef.h>

#include "common/base/bytes.h"
#include "common/base/diag.h"
#include "common/net/peer.h"

enum {
    KEDGE_NET_URLS_MAX = 4,
    KEDGE_NET_URL_MAX = 300,        /* characters of an address, NUL included */
    KEDGE_NET_CONTEXTS_MAX = 16384, /* requests held at once: every site parked, with room for transfers */
    KEDGE_NET_PEERS_MAX = 8192,     /* open connections: two per site of a full coordinator */
    KEDGE_NET_PER_PEER_MAX = 64,    /* unanswered requests of one connection, beyond which it is closed */
    KEDGE_NET_HANDSHAKE_MS = 5000,  /* a connection that has said nothing by then is closed */
    KEDGE_NET_HANDSHAKES_MAX = 512, /* unfinished handshakes, beyond which new connections are closed */
    KEDGE_NET_STALL_MS = 30000,     /* a connection whose frame does not move for so long is closed */
};

struct kedge_net_server;
struct kedge_net_request;

/* Runs on a thread of the network: must not block. Owns req until it replies. */
typedef void kedge_net_handler(void *arg, struct kedge_net_request *req);
/* The most bytes that the reply to this frame can have (0: few). Runs before the handler, must not
 * block. Lets the budget count replies that will be large from the moment their request comes in. */
typedef size_t kedge_net_reply_size(void *arg, struct kedge_view frame);
/* False closes the new connection. Runs on a thread of the network: must not block. */
typedef bool kedge_net_admit(void *arg, const struct kedge_net_peer *peer);

struct kedge_net_server_options {
    const char *urls[KEDGE_NET_URLS_MAX]; /* tls+tcp://HOST:PORT (0: any free), ipc://PATH (made 0600),
                                             tcp://HOST:PORT if insecure and HOST is loopback; NULL: unused */
    const struct kedge_key_pair *key;     /* TLS identity; read during open only; NULL without a tls+tcp:// */
    bool insecure;                        /* permits tcp:// on loopback */
    size_t frame_max;  /* bytes of one frame, 0: KEDGE_FRAME_MAX; a peer that sends more is closed */
    unsigned contexts; /* requests held unanswered at most, 0: KEDGE_NET_CONTEXTS_MAX */
    unsigned peers;    /* open connections, 0: KEDGE_NET_PEERS_MAX */
    size_t budget;     /* bytes of requests and replies in flight, 0: KEDGE_CHUNK_BUDGET, at least 2
                          frames and an eighth. A frame's memory is taken only when it fits, else its
                          connection waits; an eighth is kept for small requests. A reply counts until
                          it has left for the network. */
    uint32_t stall_ms; /* 0: KEDGE_NET_STALL_MS */
    kedge_net_handler *handler;
    kedge_net_admit *admit;           /* may be NULL: every peer is let in */
    kedge_net_reply_size *reply_size; /* may be NULL: replies count from kedge_net_reply_begin on */
    void *arg;                        /* for the three */
};

struct kedge_net_counters {
    uint64_t connections; /* open now */
    uint64_t accepted;    /* let in so far */
    uint64_t refused;     /* closed by admit, by a limit, or because their key was dropped */
    uint64_t handshakes;  /* connections that have not finished handshake and greeting now */
    uint64_t silent;      /* connections closed because they did not finish it in time */
    uint64_t requests;    /* handed to the handler so far */
    uint64_t held;        /* handed to the handler and not answered yet */
    uint64_t bytes_in_flight;
    uint64_t pauses; /* times that budget or contexts made a connection wait */
};

/* Listens on all addresses or on none. Copies what it needs from the options. */
KEDGE_NODISCARD int kedge_net_server_open(const struct kedge_net_server_options *options,
                                          struct kedge_net_server **ret_server, struct kedge_diag *reterr);
/* Closes listeners and connections, waits for handlers that are running; none runs afterwards. Requests
 * that are still held stay valid and must be replied to; those replies go nowhere. Not from a handler.
 * NULL is fine. */
void kedge_net_server_close(struct kedge_net_server *server);
/* Address of urls[i] with the port that it really has; NULL if that one is unused. Lives as long as the
 * server. */
const char *kedge_net_server_url(const struct kedge_net_server *server, unsigned i);
/* Closes all open connections of that key; requests from them can still be replied to. Returns how many.
 * Later connections are admit's affair. */
unsigned kedge_net_server_drop_key(struct kedge_net_server *server, const struct kedge_public_key *key);
void kedge_net_server_counters(struct kedge_net_server *server, struct kedge_net_counters *ret);

/* Borrowed until the reply is sent. */
struct kedge_view kedge_net_request_view(const struct kedge_net_request *req);
const struct kedge_net_peer *kedge_net_request_peer(const struct kedge_net_request *req);

/* Replies with a copy and ends req, whatever it returns: KEDGE_E_NOMEM and KEDGE_E_TOO_LONG close the
 * connection, so that the peer does not wait. A peer that is gone is no error. */
int kedge_net_reply(struct kedge_net_request *req, struct kedge_view frame);
/* Replies without a copy: begin gives len bytes to fill (undefined content), send ends req. Without send
 * the space goes with a later kedge_net_reply or begin. The request's view stays valid until send. */
KEDGE_NODISCARD int kedge_net_reply_begin(struct kedge_net_request *req, size_t len, uint8_t **ret_ptr);
void kedge_net_reply_send(struct kedge_net_request *req);

#endif
