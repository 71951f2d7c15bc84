/* Who we are in TLS, and whom we accept: by key alone. There is no certificate authority, no name and no
 * date, because the client knows the server's key beforehand and the server looks up the client's; a chain
 * would only add parties that could vouch for a wrong one. One version, two ciphers, one group and one
 * signature scheme are offered, and no tickets or renegotiation: what is not needed cannot be attacked,
 * and a session that is resumed would not show its key again. */
#include "common/net/tls_openssl.h"

#include <openssl/err.h>
#include <openssl/pem.h>

#include "common/base/mem.h"
#include "crypto/cert.h"

enum { READ_BUFFER = 68 * 1024 }; /* four records; given back when it is empty */

/* Ed25519 and nothing else: one kind of key, one length, one check. */
bool kedgei_tls_cert_key(X509 *cert, struct kedge_public_key *ret_key)
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
    bool good = kedgei_tls_cert_key(X509_STORE_CTX_get0_cert(store), &key)
                && (tls->server || kedge_public_key_eq(&key, &tls->pinned));
    X509_STORE_CTX_set_error(store, good ? X509_V_OK : X509_V_ERR_CERT_REJECTED);
    return good;
}

/* The certificate is made in memory from the key at each start, so no file of it can expire or be
 * mixed up. */
bool kedgei_tls_load_identity(SSL_CTX *ctx, const struct kedge_key_pair *pair)
{
    static const char name[] = "kedge";
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

static bool set_rules(struct kedgei_tls *tls)
{
    SSL_CTX *ctx = tls->ctx;
    SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER
                              | SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_read_ahead(ctx, 1); /* one recv(2) for several records instead of two for each */
    SSL_CTX_set_default_read_buffer_len(ctx, READ_BUFFER);
    SSL_CTX_set_max_cert_list(ctx, KEDGE_CERT_MAX);
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    SSL_CTX_set_cert_verify_callback(ctx, verify_peer, tls);
    return SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION) == 1
           && SSL_CTX_set_max_proto_version(ctx, TLS1_3_VERSION) == 1
           && SSL_CTX_set_ciphersuites(ctx, "TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256") == 1
           && SSL_CTX_set1_groups_list(ctx, "X25519") == 1 && SSL_CTX_set1_sigalgs_list(ctx, "ed25519") == 1
           && SSL_CTX_set1_client_sigalgs_list(ctx, "ed25519") == 1 && SSL_CTX_set_num_tickets(ctx, 0) == 1;
}

int kedgei_tls_new(bool server, const struct kedge_key_pair *key, const struct kedge_public_key *pinned,
                   struct kedgei_tls **ret_tls, struct kedge_diag *reterr)
{
    if (!key || (!server && !pinned)) {
        return kedge_diag_set(reterr, KEDGE_E_ARG, "tls: expected a key%s",
                              key ? " that the server must have" : "");
    }
    struct kedgei_tls *tls = kedge_mem_new(1, sizeof *tls);
    if (!tls) {
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "tls: out of memory");
    }
    tls->server = server;
    tls->pinned = pinned ? *pinned : (struct kedge_public_key){{0}};
    ERR_clear_error();
    tls->ctx = SSL_CTX_new(server ? TLS_server_method() : TLS_client_method());
    if (!tls->ctx || !set_rules(tls) || !kedgei_tls_load_identity(tls->ctx, key)) {
        ERR_clear_error();
        kedgei_tls_free(tls);
        return kedge_diag_set(reterr, KEDGE_E_KEY,
                              "tls: OpenSSL does not take the key or the rules of TLS 1.3");
    }
    *ret_tls = tls;
    return KEDGE_OK;
}

void kedgei_tls_free(struct kedgei_tls *tls)
{
    if (tls) {
        SSL_CTX_free(tls->ctx);
        kedge_mem_free(tls);
    }
}
