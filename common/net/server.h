/* Answers requests over TLS, ipc or plain loopback: frames in, frames out, no knowledge of what they
 * say.
 *
 * Peers of TLS are identified by the Ed25519 key of their certificate, known or not; what a key may
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
    KEDGE_NET_STALL_MS = 30000,     /* a connection whose frame does not move for so long is closed */
    /* Of those whose key nobody knows (yet): handshakes, sites that enrol, anybody else. */
    KEDGE_NET_STRANGERS_MAX = 512,       /* connections; a quarter of them from one address */
    KEDGE_NET_STRANGER_FRAME_MAX = 4096, /* bytes of a request; enrolling takes a few hundred */
    KEDGE_NET_STRANGER_PEER_MAX = 2,     /* unanswered requests of one connection */
    KEDGE_NET_STRANGER_MS = 15000,       /* a connection without a whole request for so long is closed */
    KEDGE_NET_STRANGER_FRAME_MS = 5000,  /* a frame that takes longer ends it */
    KEDGE_NET_STRANGER_REQUESTS = 50,    /* a second, of one address; and at once: */
    KEDGE_NET_STRANGER_REQUESTS_BURST = 200,
    KEDGE_NET_ALL_REQUESTS = 500, /* of strangers of all addresses together; sites enrol with a few each */
    KEDGE_NET_ALL_REQUESTS_BURST = 2000,
    KEDGE_NET_ARRIVALS = 20,        /* connections a second of one address that turn out to be strangers' */
    KEDGE_NET_ARRIVALS_BURST = 128, /* … and at once: many sites behind one relay come back together */
    KEDGE_NET_ALL_ARRIVALS = 200,   /* of all addresses together, however many an attacker has */
    KEDGE_NET_ALL_ARRIVALS_BURST = 512,
    /* Of one known key. */
    KEDGE_NET_PER_KEY_MAX =
        16, /* connections: a site has one, an operator's commands one each; KEDGE_NET_ARRIVALS
               new ones a second, what goes beyond counts as a stranger's */
    KEDGE_NET_REQUESTS = 100, /* a second that bring nothing new; a site sends a few in a round, … */
    KEDGE_NET_REQUESTS_BURST = 400,
    KEDGE_NET_REQUEST_EARNS = 8, /* … and as many come back for each that did (kedge_net_request_earn) */
    KEDGE_NET_PIECES_PER_REQUEST = 16, /* requests with or for a piece of a file, each a sixteenth: the
                                          budget bounds what they hold */
    KEDGE_NET_DOOR_MAX = 64,           /* connections over ipc:// */
    KEDGE_NET_RETRY_MS = 500,          /* who asks too often is told to come back then, and not read before */
};

struct kedge_net_server;
struct kedge_net_request;

/* Runs on a thread of the network: must not block. Owns req until it replies. */
typedef void kedge_net_handler(void *arg, struct kedge_net_request *req);
/* The most bytes that the reply to this frame can have (0: few). Runs before the handler, must not
 * block. Lets the budget count replies that will be large from the moment their request comes in. */
typedef size_t kedge_net_reply_size(void *arg, struct kedge_view frame);
/* Whether this key is one of ours: a site, an operator, a witness. Asked when a connection says whose it is
 * and, for those that are not known, again with its requests and replies. Runs on a thread of the network:
 * must not block. */
typedef bool kedge_net_knows(void *arg, const struct kedge_public_key *key);
/* Instead of the handler: the peer asks too often; to be answered at once, by "come back in retry_ms". */
typedef void kedge_net_busy(void *arg, struct kedge_net_request *req, uint32_t retry_ms);
/* False closes the new connection. Runs on a thread of the network: must not block. */
typedef bool kedge_net_admit(void *arg, const struct kedge_net_peer *peer);

struct kedge_net_server_options {
    const char *urls[KEDGE_NET_URLS_MAX]; /* tls+tcp://HOST:PORT (0: any free), ipc://PATH (made 0600),
                                             tcp://HOST:PORT if insecure and HOST is loopback; NULL: unused */
    const struct kedge_key_pair *key;     /* TLS identity; read during open only; NULL without a tls+tcp:// */
    bool insecure;                        /* permits tcp:// on loopback */
    size_t frame_max;   /* bytes of one frame, 0: KEDGE_FRAME_MAX; a peer that sends more is closed */
    unsigned contexts;  /* requests held unanswered at most, 0: KEDGE_NET_CONTEXTS_MAX */
    unsigned peers;     /* open connections, 0: KEDGE_NET_PEERS_MAX; strangers and the door come on top */
    unsigned strangers; /* connections that are nobody's yet, 0: KEDGE_NET_STRANGERS_MAX */
    size_t budget;      /* bytes of requests and replies in flight, 0: KEDGE_CHUNK_BUDGET, at least 2
                           frames and an eighth. A frame's memory is taken only when it fits, else its
                           connection waits; an eighth is kept for small requests. A reply counts until
                           it has left for the network. */
    uint32_t stall_ms;  /* 0: KEDGE_NET_STALL_MS */
    kedge_net_handler *handler;
    kedge_net_admit *admit;           /* may be NULL: every peer is let in */
    kedge_net_reply_size *reply_size; /* may be NULL: replies count from kedge_net_reply_begin on */
    /* NULL: everybody who has said who he is is known, and nobody is counted by key or address. Else
     * strangers, known keys and ipc:// (the owner's door) have places of their own, and rates, as said above.
     */
    kedge_net_knows *knows;
    kedge_net_busy *busy; /* with `knows` */
    void *arg;            /* for all of them */
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
    uint64_t pauses;      /* times that budget, contexts or too many requests made a connection wait */
    uint64_t strangers;   /* connections that are nobody's, now */
    uint64_t evicted;     /* closed because they were idle and another needed the place */
    uint64_t turned_away; /* connections refused or evicted for want of a place, or because too many came */
    uint64_t put_off;     /* requests answered by `busy` */
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

/* The request brought something new: before its reply, from any thread. Its sender may ask more in return, so
 * who works is not held up, however fast rounds are. */
void kedge_net_request_earn(struct kedge_net_request *req);
/* Replies with a copy and ends req, whatever it returns: KEDGE_E_NOMEM and KEDGE_E_TOO_LONG close the
 * connection, so that the peer does not wait. A peer that is gone is no error. */
int kedge_net_reply(struct kedge_net_request *req, struct kedge_view frame);
/* Replies without a copy: begin gives len bytes to fill (undefined content), send ends req. Without send
 * the space goes with a later kedge_net_reply or begin. The request's view stays valid until send. */
KEDGE_NODISCARD int kedge_net_reply_begin(struct kedge_net_request *req, size_t len, uint8_t **ret_ptr);
void kedge_net_reply_send(struct kedge_net_request *req);

#endif
