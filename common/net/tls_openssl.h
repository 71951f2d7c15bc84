/* Internal to net's OpenSSL files. */
#ifndef KEDGE_COMMON_NET_TLS_OPENSSL_H
#define KEDGE_COMMON_NET_TLS_OPENSSL_H

#include <openssl/ssl.h>

#include "common/net/tls.h"

struct kedgei_tls {
    SSL_CTX *ctx;
    bool server;
    struct kedge_public_key pinned;
};

/* The raw key of a certificate; false unless it is a sound Ed25519 key. */
bool kedgei_tls_cert_key(X509 *cert, struct kedge_public_key *ret_key);

/* Shows a self-signed certificate of the key pair. */
bool kedgei_tls_load_identity(SSL_CTX *ctx, const struct kedge_key_pair *pair);

#endif
