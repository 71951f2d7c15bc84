/* Internal to net's two OpenSSL files: what an identity consists of. */
#ifndef KEDGE_COMMON_NET_ENGINE_OPENSSL_H
#define KEDGE_COMMON_NET_ENGINE_OPENSSL_H

#include <nng/nng.h>
#include <nng/supplemental/tls/tls.h>
#include <openssl/ssl.h>
#include <pthread.h>

#include "common/net/engine.h"

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
    struct nng_tls_engine_conn *oldest, *youngest;
    uint64_t young_count, silent_count, refused_count;
};

void kedgei_tls_hold(struct kedgei_tls *tls);
void kedgei_tls_drop(struct kedgei_tls *tls);
void kedgei_tls_report_refusal(struct kedgei_tls *tls);
/* TLS 1.3 only, both sides authenticated by key; false when OpenSSL lacks something. */
bool kedgei_tls_set_rules(struct kedgei_tls *tls);
bool kedgei_tls_load_identity(struct kedgei_tls *tls, const struct kedge_key_pair *pair);
/* The raw key of a certificate; false unless it is a sound Ed25519 key. */
bool kedgei_cert_key(X509 *cert, struct kedge_public_key *ret_key);

#endif
