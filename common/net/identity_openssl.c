/* Who we are in TLS, and whom we accept: by key alone. */
#include "common/net/engine_openssl.h"

#include <openssl/pem.h>
#include <string.h>

#include "common/base/mem.h"
#include "crypto/cert.h"

void kedgei_tls_hold(struct kedgei_tls *tls)
{
    pthread_mutex_lock(&tls->mutex);
    tls->refs++;
    pthread_mutex_unlock(&tls->mutex);
}

void kedgei_tls_drop(struct kedgei_tls *tls)
{
    pthread_mutex_lock(&tls->mutex);
    bool last = --tls->refs == 0;
    pthread_mutex_unlock(&tls->mutex);
    if (last) {
        SSL_CTX_free(tls->ctx);
        pthread_mutex_destroy(&tls->mutex);
        kedge_mem_free(tls);
    }
}

bool kedgei_cert_key(X509 *cert, struct kedge_public_key *ret_key)
{
    EVP_PKEY *key = cert ? X509_get0_pubkey(cert) : NULL;
    size_t len = sizeof ret_key->b;
    return key && EVP_PKEY_get_id(key) == EVP_PKEY_ED25519
           && EVP_PKEY_get_raw_public_key(key, ret_key->b, &len) == 1 && len == sizeof ret_key->b
           && kedge_public_key_is_valid(ret_key);
}

/* Replaces chain building: a certificate is only the envelope of a key, and the handshake's
 * CertificateVerify (RFC 8446 §4.4.3) proves that the peer holds the private half. Names, dates and
 * issuers mean nothing here. */
static int verify_peer(X509_STORE_CTX *store, void *arg)
{
    const struct kedgei_tls *tls = arg;
    struct kedge_public_key key;
    bool good = kedgei_cert_key(X509_STORE_CTX_get0_cert(store), &key)
                && (tls->server || kedge_public_key_eq(&key, &tls->pinned));
    X509_STORE_CTX_set_error(store, good ? X509_V_OK : X509_V_ERR_CERT_REJECTED);
    return good;
}

bool kedgei_tls_load_identity(struct kedgei_tls *tls, const struct kedge_key_pair *pair)
{
    static const char name[] = "kedge";
    SSL_CTX *ctx = tls->ctx;
    struct kedge_buf pem KEDGE_CLEANUP(kedge_buf_deinit);
    struct kedge_seed seed;
    kedge_buf_init(&pem, KEDGE_CERT_MAX);
    if (kedge_cert_self_signed(pair, name, &pem) != KEDGE_OK) {
        return false;
    }
    kedge_key_seed(pair, &seed);
    EVP_PKEY *key = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, seed.b, sizeof seed.b);
    kedge_wipe(&seed, sizeof seed);
    BIO *bio = BIO_new_mem_buf(pem.ptr, (int)pem.len);
    X509 *cert = bio ? PEM_read_bio_X509(bio, NULL, NULL, NULL) : NULL;
    bool good = key && cert && SSL_CTX_use_certificate(ctx, cert) == 1
                && SSL_CTX_use_PrivateKey(ctx, key) == 1 && SSL_CTX_check_private_key(ctx) == 1;
    X509_free(cert);
    BIO_free(bio);
    EVP_PKEY_free(key);
    return good;
}

bool kedgei_tls_set_rules(struct kedgei_tls *tls)
{
    SSL_CTX *ctx = tls->ctx;
    SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER
                              | SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_max_cert_list(ctx, KEDGE_CERT_MAX);
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    SSL_CTX_set_cert_verify_callback(ctx, verify_peer, tls);
    return SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION) == 1
           && SSL_CTX_set_max_proto_version(ctx, TLS1_3_VERSION) == 1
           && SSL_CTX_set_ciphersuites(ctx, "TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256") == 1
           && SSL_CTX_set1_groups_list(ctx, "X25519") == 1 && SSL_CTX_set1_sigalgs_list(ctx, "ed25519") == 1
           && SSL_CTX_set1_client_sigalgs_list(ctx, "ed25519") == 1 && SSL_CTX_set_num_tickets(ctx, 0) == 1;
}

void kedgei_tls_free(struct kedgei_tls *tls)
{
    if (tls) {
        pthread_mutex_lock(&tls->mutex);
        tls->refused = NULL;
        pthread_mutex_unlock(&tls->mutex);
        nng_tls_config_free(tls->config);
        kedgei_tls_drop(tls);
    }
}

void *kedgei_tls_config(struct kedgei_tls *tls)
{
    return tls->config;
}

void kedgei_tls_counters(struct kedgei_tls *tls, uint64_t *ret_handshakes, uint64_t *ret_silent,
                         uint64_t *ret_refused)
{
    pthread_mutex_lock(&tls->mutex);
    *ret_handshakes = tls->young_count;
    *ret_silent = tls->silent_count;
    *ret_refused = tls->refused_count;
    pthread_mutex_unlock(&tls->mutex);
}

void kedgei_tls_report_refusal(struct kedgei_tls *tls)
{
    pthread_mutex_lock(&tls->mutex);
    tls->refused_count++;
    if (tls->refused) {
        tls->refused(tls->arg);
    }
    pthread_mutex_unlock(&tls->mutex);
}

static bool get_end(nng_stream *stream, const char *option, struct kedgei_end *ret)
{
    nng_sockaddr a;
    *ret = (struct kedgei_end){.port = 0};
    if (nng_stream_get_addr(stream, option, &a) != 0) {
        return false;
    }
    if (a.s_family == NNG_AF_INET) {
        ret->port = a.s_in.sa_port;
        memcpy(ret->address, &a.s_in.sa_addr, 4);
        return true;
    }
    if (a.s_family == NNG_AF_INET6) {
        ret->port = a.s_in6.sa_port;
        memcpy(ret->address, a.s_in6.sa_addr, 16);
        ret->is_v6 = true;
        return true;
    }
    return false;
}

bool kedgei_stream_ends(nng_stream *stream, struct kedgei_ends *ret)
{
    return get_end(stream, NNG_OPT_REMADDR, &ret->remote) && get_end(stream, NNG_OPT_LOCADDR, &ret->local);
}
