/* Internal to net: what server.c (connections) and request.c (requests) share. */
#ifndef KEDGE_COMMON_NET_SERVER_STATE_H
#define KEDGE_COMMON_NET_SERVER_STATE_H

#include <nng/nng.h>
#include <pthread.h>

#include "common/net/engine.h"
#include "common/net/peers.h"
#include "common/net/server.h"

enum { KEDGEI_ARMED_MAX = 4 }; /* contexts that wait for a request at once: enough, as each arms the next */

/* One context of nng and the request that it holds. Reused; two aios, so that cancelling the one cannot
 * hit the other. */
struct kedge_net_request {
    struct kedge_net_server *server;
    nng_ctx ctx;
    nng_aio *receive_aio, *send_aio;
    nng_msg *request, *reply; /* owned */
    struct kedge_net_peer peer;
    uint64_t number; /* of the connection, as in kedgei_peer */
    size_t charge;   /* bytes of the budget */
    bool held;       /* the application has it */
    unsigned index;  /* in server->all */
    struct kedge_net_request *next_idle;
};

struct kedge_net_server {
    nng_socket socket;
    struct kedgei_tls *tls;
    kedge_net_handler *handler;
    kedge_net_admit *admit;
    kedge_net_reply_size *reply_size;
    void *arg;
    size_t frame_max, budget;
    unsigned contexts_max;
    struct {
        char url[KEDGE_NET_URL_MAX];
        enum kedge_net_kind kind;
        nng_listener listener;
    } addresses[KEDGE_NET_URLS_MAX];

    pthread_t keeper; /* ends silent connections; receives again when the budget allows */
    bool keeper_runs;

    pthread_mutex_t mutex; /* all below; never held while nng is called */
    pthread_cond_t wake;   /* keeper: something to do */
    pthread_cond_t quiet;  /* close: running has become 0 */
    bool closing, rearm;
    unsigned running;               /* threads inside callbacks or replies */
    unsigned refs;                  /* the owner and the held requests */
    bool is_quiet;                  /* closing, and no callback runs any more */
    unsigned armed, contexts, made; /* contexts: made or being made */
    bool paused;
    struct kedge_net_request **all; /* made of them; NULL: freed */
    struct kedge_net_request *idle;
    struct kedgei_peers peers;
    struct kedge_net_counters counters;
};

/* Receives with as many contexts as budget and limits allow. */
void kedgei_server_arm(struct kedge_net_server *server);
/* False when the server is closing; else pair with kedgei_server_leave. */
bool kedgei_server_enter(struct kedge_net_server *server);
void kedgei_server_leave(struct kedge_net_server *server);
/* Ends a connection. Over TLS from below, as if the peer had gone: nng 1.5.2 can get stuck when it closes a
 * connection between two steps of a transfer, which a peer could provoke. */
void kedgei_server_end(struct kedge_net_server *server, const struct kedge_net_peer *who, uint64_t number);
/* Takes n off the bytes in flight; caller holds the mutex. */
void kedgei_server_release(struct kedge_net_server *server, size_t n);
/* Frees the server when the last reference goes. */
void kedgei_server_drop(struct kedge_net_server *server);
void kedgei_request_free(struct kedge_net_request *req);

#endif
