/* TLS for clients that are not ours: TLS 1.3, a certificate of ours, none of theirs. */
#include <openssl/err.h>
#include <openssl/pem.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/mem.h"
#include "common/base/os/file.h"
#include "common/net/tls_openssl.h"

enum { PEM_FILE_MAX = 64 * 1024, CHAIN_MAX = 8 };

/* http/1.1 is all that we speak; a client that says nothing may mean it (RFC 7301 §3.2). */
static int choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_len,
                           const unsigned char *offered, unsigned offered_len, void *arg)
{
    static const unsigned char ours[] = {8, 'h', 't', 't', 'p', '/', '1', '.', '1'};
    unsigned char *chosen = NULL;
    (void)ssl, (void)arg;
    if (SSL_select_next_proto(&chosen, out_len, ours, sizeof ours, offered, offered_len)
        != OPENSSL_NPN_NEGOTIATED) {
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    }
    *out = chosen;
    return SSL_TLSEXT_ERR_OK;
}

/* As for Kedge's own connections, but clients have no certificate, and a second group is offered
 * for those that lack X25519. */
static bool set_rules(SSL_CTX *ctx)
{
    SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER
                              | SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_verify(ctx, SSL_VERIFY_NONE, NULL);
    SSL_CTX_set_alpn_select_cb(ctx, choose_protocol, NULL);
    return SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION) == 1 && SSL_CTX_set_num_tickets(ctx, 0) == 1
           && SSL_CTX_set1_groups_list(ctx, "X25519:P-256") == 1;
}

static int read_file(const char *path, bool secret, struct kedge_buf *ret, struct kedge_diag *reterr)
{
    struct stat st;
    int err = kedge_file_read(path, ret, reterr);
    if (!err && secret && stat(path, &st) == 0 && (st.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
        kedge_diag_set(reterr, KEDGE_E_DENIED, "%s: group or others may touch this private key (mode %03o)",
                       path, (unsigned)st.st_mode & 0777);
        kedge_diag_hint(reterr, "chmod 600 %s", path);
        err = KEDGE_E_DENIED;
    }
    return err;
}

/* Without this OpenSSL would ask on the terminal, and a service would hang at its start. */
static int refuse_passphrase(char *buf, int size, int writing, void *arg)
{
    (void)buf, (void)size, (void)writing, (void)arg;
    return 0;
}

/* The first certificate is ours, those behind it lead to a root. */
static bool use_chain(SSL_CTX *ctx, struct kedge_view pem)
{
    BIO *bio = BIO_new_mem_buf(pem.ptr, (int)pem.len);
    X509 *cert = bio ? PEM_read_bio_X509(bio, NULL, refuse_passphrase, NULL) : NULL;
    bool good = cert && SSL_CTX_use_certificate(ctx, cert) == 1;
    X509_free(cert);
    for (int i = 0; good && i < CHAIN_MAX; i++) {
        cert = PEM_read_bio_X509(bio, NULL, refuse_passphrase, NULL);
        if (!cert) {
            break; /* the end */
        }
        good = SSL_CTX_add0_chain_cert(ctx, cert) == 1;
        if (!good) {
            X509_free(cert);
        }
    }
    BIO_free(bio);
    ERR_clear_error();
    return good;
}

static bool use_key(SSL_CTX *ctx, struct kedge_view pem)
{
    BIO *bio = BIO_new_mem_buf(pem.ptr, (int)pem.len);
    EVP_PKEY *key = bio ? PEM_read_bio_PrivateKey(bio, NULL, refuse_passphrase, NULL) : NULL;
    bool good = key && SSL_CTX_use_PrivateKey(ctx, key) == 1;
    EVP_PKEY_free(key);
    BIO_free(bio);
    ERR_clear_error();
    return good;
}

/* Certificate and key are compared here: a pair that does not belong together would fail at every
 * handshake instead. */
static int load_files(SSL_CTX *ctx, const char *certificate_file, const char *key_file,
                      struct kedge_diag *reterr)
{
    struct kedge_buf chain, key;
    kedge_buf_init(&chain, PEM_FILE_MAX);
    kedge_buf_init(&key, PEM_FILE_MAX);
    int err = read_file(certificate_file, false, &chain, reterr);
    if (!err) {
        err = read_file(key_file, true, &key, reterr);
    }
    if (!err && !use_chain(ctx, kedge_buf_view(&chain))) {
        err = kedge_diag_set(reterr, KEDGE_E_KEY, "%s: expected a certificate in PEM", certificate_file);
    }
    if (!err && !use_key(ctx, kedge_buf_view(&key))) {
        err = kedge_diag_set(reterr, KEDGE_E_KEY,
                             "%s: expected the private key of the certificate %s, unencrypted, in PEM",
                             key_file, certificate_file);
    }
    if (!err && SSL_CTX_check_private_key(ctx) != 1) {
        err = kedge_diag_set(reterr, KEDGE_E_KEY, "%s is not the private key of %s", key_file,
                             certificate_file);
    }
    if (key.ptr) {
        kedge_wipe(key.ptr, key.cap);
    }
    kedge_buf_deinit(&key);
    kedge_buf_deinit(&chain);
    ERR_clear_error();
    return err;
}

int kedgei_tls_web_new(const struct kedge_key_pair *key, const char *certificate_file, const char *key_file,
                       struct kedgei_tls **ret_tls, struct kedge_diag *reterr)
{
    if (!certificate_file != !key_file || (!key && !certificate_file)) {
        return kedge_diag_set(reterr, KEDGE_E_ARG,
                              "https: a certificate needs its key, and a key its certificate");
    }
    struct kedgei_tls *tls = kedge_mem_new(1, sizeof *tls);
    if (!tls) {
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "https: out of memory");
    }
    tls->server = true;
    ERR_clear_error();
    tls->ctx = SSL_CTX_new(TLS_server_method());
    int err = tls->ctx && set_rules(tls->ctx)
                  ? KEDGE_OK
                  : kedge_diag_set(reterr, KEDGE_E_KEY, "https: OpenSSL does not take the rules of TLS 1.3");
    if (!err && certificate_file) {
        err = load_files(tls->ctx, certificate_file, key_file, reterr);
    } else if (!err && !kedgei_tls_load_identity(tls->ctx, key)) {
        err = kedge_diag_set(reterr, KEDGE_E_KEY, "https: OpenSSL does not take the key");
    }
    ERR_clear_error();
    if (err) {
        kedgei_tls_free(tls);
        return err;
    }
    *ret_tls = tls;
    return KEDGE_OK;
}
