/* Internal to net: what client.c (calls) and dial.c (the connection) share.
 *
 * Threads: one per client dials, receives, and sends what did not go at once. Callers send from their own
 * thread when the socket takes it, which saves a switch of threads. The link of an open connection belongs to
 * the thread that holds the mutex; nobody blocks while holding it. While dialling, the thread alone has the
 * link. */
#ifndef KEDGE_COMMON_NET_CLIENT_STATE_H
#define KEDGE_COMMON_NET_CLIENT_STATE_H

#include "common/net/address.h"
#include "common/net/client.h"
#include "common/net/link.h"
#include "common/net/loop.h"
#include "common/net/proxy.h"

struct kedgei_call {
    bool used, sent, done;      /* sent: its request has gone to the link, and its reply may come */
    int err;                    /* once done */
    uint32_t id;                /* of the frames; its last bits are the index of this place */
    struct kedgei_frame *reply; /* once done, if err is KEDGE_OK */
    pthread_cond_t changed;
};

struct kedge_net_client {
    struct kedgei_address address;
    struct kedgei_proxy proxy;
    bool has_proxy;
    char proxy_basic[KEDGE_PROXY_BASIC_MAX]; /* credentials for it; "": none */
    struct kedgei_tls *tls;
    struct kedge_public_key claim; /* for tcp:// */
    bool has_claim;
    uint64_t connect_ns, pause_max_ns;
    size_t frame_max;
    int wake; /* the thread is to look again */
    pthread_t thread;
    bool runs;

    pthread_mutex_t mutex; /* all below */
    bool closing, cancelled, connected;
    void (*changed)(void *arg);
    void *changed_arg;
    struct kedgei_link link; /* the thread's own unless connected */
    int refusal;       /* why servers turned us away: KEDGE_E_PEER_AUTH, _VERSION, _PROXY, _PROXY_LOGIN */
    uint64_t refusals; /* such attempts so far … */
    uint64_t reported; /* … and those that a caller knows of, or that a connection has made old */
    uint32_t serial;   /* calls so far, for ids */
    struct kedgei_call calls[KEDGE_NET_CALLS_MAX];
};

/* The client's thread. */
void *kedgei_client_run(void *arg);
/* Caller holds the mutex: everybody who waits in a call looks again. */
void kedgei_client_wake_callers(struct kedge_net_client *client);
/* Ends a call that is under way. */
void kedgei_call_end(struct kedgei_call *call, int err, struct kedgei_frame *reply);

#endif
