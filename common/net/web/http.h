/* A small HTTP/1.1 server over TLS 1.3: what stock clients of transparency logs speak. Strict heads
 * (http_parse.h), no bodies of requests, answers of any length in pieces, everything within limits. No
 * knowledge of what is served.
 *
 * A connection has one request at a time; what a client sends after it waits in its order. Memory does not
 * depend on what is asked: a request is handed over only when one piece of an answer fits into the budget,
 * and the next piece is asked for when the one before has left. */
#ifndef KEDGE_COMMON_NET_WEB_HTTP_H
#define KEDGE_COMMON_NET_WEB_HTTP_H

#include "common/base/diag.h"
#include "common/net/web/http_parse.h"
#include "crypto/sign.h"

enum {
    KEDGE_HTTP_URLS_MAX = 2,
    KEDGE_HTTP_URL_MAX = 300,          /* characters of an address, NUL included */
    KEDGE_HTTP_CONNECTIONS = 256,      /* open connections unless said otherwise */
    KEDGE_HTTP_PIECE_MAX = 256 * 1024, /* bytes of one piece of an answer */
    KEDGE_HTTP_FIELDS_TEXT_MAX = 512,  /* bytes of an answer's further fields */
    KEDGE_HTTP_HANDSHAKE_MS = 5000,    /* TLS is done by then */
    KEDGE_HTTP_HEAD_MS = 10000,        /* a head that has begun is whole by then, or 408 */
    KEDGE_HTTP_IDLE_MS = 15000,        /* a connection without a request is closed */
    KEDGE_HTTP_STALL_MS = 20000,       /* an answer that does not move for so long ends its connection */
    KEDGE_HTTP_WAIT_MS = 20000,        /* a request that finds no room for so long: 503 */
    KEDGE_HTTP_PARTY_REQUESTS = 1600,  /* a second, of one party: a copy of a log takes many; and at once: */
    KEDGE_HTTP_PARTY_REQUESTS_BURST = 6400,
};

struct kedge_http_server;
struct kedge_http_request;

/* A request has come, or (offset > 0) its answer's bytes from `offset` on are wanted. Runs on the server's
 * thread: must not block. Owns req until it answers, from any thread. */
typedef void kedge_http_handler(void *arg, struct kedge_http_request *req, uint64_t offset);

struct kedge_http_options {
    const char *urls[KEDGE_HTTP_URLS_MAX]; /* https://HOST:PORT (0: any free), http://HOST:PORT if insecure
                                              and HOST is loopback; NULL: unused */
    const struct kedge_key_pair *key;      /* self-signed certificate of this key … */
    const char *certificate_file; /* … unless these name a chain and its key in PEM; both or neither */
    const char *key_file;
    bool insecure;
    bool counts_strangers; /* arrivals and requests of those who are no party are counted by address, with the
                              rates of server.h, those of parties by party; beyond them 429 */
    unsigned connections;  /* 0: KEDGE_HTTP_CONNECTIONS; beyond it one that idles makes room */
    size_t budget;         /* bytes of pieces, 0: KEDGE_CHUNK_BUDGET, at least one piece */
    uint32_t head_ms, idle_ms, stall_ms, wait_ms; /* 0: as above */
    kedge_http_handler *handler;
    void *arg; /* for the handler */
};

struct kedge_http_counters {
    uint64_t connections;     /* open now */
    uint64_t accepted;        /* so far */
    uint64_t refused;         /* for want of room, or because TLS failed */
    uint64_t evicted;         /* idle ones that made room */
    uint64_t requests;        /* handed over so far */
    uint64_t held;            /* with the application now */
    uint64_t bytes_in_flight; /* of the budget */
    uint64_t put_off;         /* requests answered 429 */
    uint64_t waits;           /* requests that waited for the budget */
};

/* Listens on all addresses or on none. Copies what it needs from the options. KEDGE_E_ARG, _DENIED, _BUSY,
 * _KEY (names the file), _NOMEM and the errors of reading files. */
KEDGE_NODISCARD int kedge_http_server_open(const struct kedge_http_options *options,
                                           struct kedge_http_server **ret_server, struct kedge_diag *reterr);
/* Whether certificate and key could be served; the errors of open about them. */
KEDGE_NODISCARD int kedge_http_server_check_certificate(const char *certificate_file, const char *key_file,
                                                        struct kedge_diag *reterr);
/* Ends connections; no handler runs afterwards. Requests that are still held stay valid and must be answered;
 * those answers go nowhere. Not from a handler. NULL is fine. */
void kedge_http_server_close(struct kedge_http_server *server);
/* Address of urls[i] with the port that it really has; NULL if unused. Lives as long as the server. */
const char *kedge_http_server_url(const struct kedge_http_server *server, unsigned i);
void kedge_http_server_counters(struct kedge_http_server *server, struct kedge_http_counters *ret);

/* Borrowed until the whole answer has been given. */
const struct kedge_http_head *kedge_http_request_head(const struct kedge_http_request *req);
/* For whom (kedge_http_answer.party) the last answer on its connection was, 0: nobody yet. In the handler
 * only: a guess before the request is looked at, for lines and rates. */
uint32_t kedge_http_request_party(const struct kedge_http_request *req);

struct kedge_http_answer {
    unsigned status;
    const char *content_type;
    const char *cache_control; /* NULL: no-store */
    const char *fields; /* further ones, each with its CRLF, or NULL; at most KEDGE_HTTP_FIELDS_TEXT_MAX */
    uint64_t len;       /* of the whole body, in bytes */
    uint32_t party; /* not 0: who takes it. One party's unfinished answers have a quarter of connections and
                       budget and are told 503 beyond that: slow readers are in nobody else's way */
};
/* The head and the first bytes of the body, which are copied: 1 to KEDGE_HTTP_PIECE_MAX of them unless len is
 * 0. When there are more, the handler is called for them; req is not to be touched before. To a HEAD no body
 * is sent, and `piece` may be empty. A piece that is none ends the connection. */
void kedge_http_reply(struct kedge_http_request *req, const struct kedge_http_answer *answer,
                      struct kedge_view piece);
/* The bytes that the handler was asked for: 1 to KEDGE_HTTP_PIECE_MAX, no more than are left. */
void kedge_http_reply_more(struct kedge_http_request *req, struct kedge_view piece);
/* There will be no more: the connection ends, so that the client knows. */
void kedge_http_abort(struct kedge_http_request *req);
/* Answers with a status and its name as a line of text. */
void kedge_http_reply_status(struct kedge_http_request *req, unsigned status, const char *fields);

#endif
