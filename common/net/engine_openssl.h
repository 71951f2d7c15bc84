/* Internal to net's OpenSSL files: what an identity and a connection consist of. */
#ifndef KEDGE_COMMON_NET_ENGINE_OPENSSL_H
#define KEDGE_COMMON_NET_ENGINE_OPENSSL_H

#include <nng/nng.h>
#include <nng/supplemental/tls/tls.h>
#include <openssl/ssl.h>
#include <pthread.h>

#include "common/net/engine.h"
#include "common/net/flow.h"
#include "common/net/sockets.h"

struct nng_tls_engine_conn {
    SSL *ssl;
    void *transport; /* nng's side of the connection */
    struct kedgei_tls *tls;
    struct nng_tls_engine_conn *prev, *next; /* in the list of tls */
    int fd;                                  /* nng's socket, open from init to deinit */
    uint64_t number, since_ns;
    int dead; /* the nng error that everything returns from now on */
    bool authenticated;
    bool young;  /* the peer has not said anything to the application; under the mutex of tls */
    bool spoken; /* the same for this connection's own use */
    struct kedge_public_key key;
    struct kedgei_meter *meter; /* counts what was sent; NULL until asked for */
    struct kedgei_flow in, out;
    atomic_bool ending;          /* to be closed as soon as that is safe */
    _Atomic uint64_t touched_ns; /* when nng last asked for anything */
};

struct kedgei_tls {
    SSL_CTX *ctx;
    nng_tls_config *config;
    struct kedge_public_key pinned;
    bool server;
    unsigned handshakes_max;
    uint64_t handshake_ns;
    pthread_mutex_t mutex; /* all below; taken inside nng's lock of a connection */
    unsigned refs;
    void (*refused)(void *arg);
    void *arg;
    bool stopped;
    struct nng_tls_engine_conn *oldest, *youngest; /* all connections */
    uint64_t numbers;                              /* given to connections so far */
    uint64_t young_count, silent_count, refused_count;
};

/* Enters a new connection; false when it is one too many (and is in the list all the same). */
bool kedgei_conn_add(struct nng_tls_engine_conn *conn);
/* The peer has said something to the application. */
void kedgei_conn_spoke(struct nng_tls_engine_conn *conn);
void kedgei_conn_remove(struct nng_tls_engine_conn *conn);

void kedgei_tls_hold(struct kedgei_tls *tls);
void kedgei_tls_drop(struct kedgei_tls *tls);
void kedgei_tls_report_refusal(struct kedgei_tls *tls);
/* TLS 1.3 only, both sides authenticated by key; false when OpenSSL lacks something. */
bool kedgei_tls_set_rules(struct kedgei_tls *tls);
bool kedgei_tls_load_identity(struct kedgei_tls *tls, const struct kedge_key_pair *pair);
/* The two ends of the socket under a stream. */
bool kedgei_stream_ends(nng_stream *stream, struct kedgei_ends *ret);
/* The raw key of a certificate; false unless it is a sound Ed25519 key. */
bool kedgei_cert_key(X509 *cert, struct kedge_public_key *ret_key);

#endif
