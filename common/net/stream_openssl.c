/* TLS 1.3 over a socket, by OpenSSL with a BIO of our own: send(2) with MSG_NOSIGNAL, bounded turns, and a
 * lost connection told apart from a violated protocol. OpenSSL's own socket BIO calls write(2), which
 * raises SIGPIPE, and knows no turns.
 *
 * OpenSSL's error queue belongs to the thread and not to the connection: it is cleared before each call
 * and after each failure, or one connection's failure would be read as another's. */
#include <openssl/err.h>
#include <pthread.h>

#include "common/net/stream.h"
#include "common/net/tls_openssl.h"

static BIO_METHOD *method; /* lives as long as the process */
static pthread_once_t method_once = PTHREAD_ONCE_INIT;

static int finish_bio(BIO *bio, long n, int retry, size_t *ret_len)
{
    BIO_clear_retry_flags(bio);
    if (n > 0) {
        *ret_len = (size_t)n;
        return 1;
    }
    if (n == 0) {
        BIO_set_flags(bio, retry | BIO_FLAGS_SHOULD_RETRY);
    }
    return 0;
}

static int read_bio(BIO *bio, char *data, size_t len, size_t *ret_len)
{
    return finish_bio(bio, kedgei_socket_receive(BIO_get_data(bio), data, len), BIO_FLAGS_READ, ret_len);
}

static int write_bio(BIO *bio, const char *data, size_t len, size_t *ret_len)
{
    return finish_bio(bio, kedgei_socket_send(BIO_get_data(bio), data, len), BIO_FLAGS_WRITE, ret_len);
}

static long control_bio(BIO *bio, int command, long number, void *ptr)
{
    (void)bio, (void)number, (void)ptr;
    return command == BIO_CTRL_FLUSH; /* nothing is buffered */
}

static void make_method(void)
{
    method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "kedge");
    if (method
        && (BIO_meth_set_write_ex(method, write_bio) != 1 || BIO_meth_set_read_ex(method, read_bio) != 1
            || BIO_meth_set_ctrl(method, control_bio) != 1)) {
        BIO_meth_free(method);
        method = NULL;
    }
}

int kedgei_ssl_init(struct kedgei_stream *s, struct kedgei_tls *tls)
{
    pthread_once(&method_once, make_method);
    ERR_clear_error();
    BIO *bio = method ? BIO_new(method) : NULL;
    s->ssl = bio ? SSL_new(tls->ctx) : NULL;
    if (!s->ssl) {
        BIO_free(bio);
        ERR_clear_error();
        return KEDGE_E_NOMEM;
    }
    BIO_set_data(bio, s);
    BIO_set_init(bio, 1);
    SSL_set_bio(s->ssl, bio, bio);
    if (tls->server) {
        SSL_set_accept_state(s->ssl);
    } else {
        SSL_set_connect_state(s->ssl);
    }
    return KEDGE_OK;
}

/* Without the closing alert the peer could not tell an end from a cut line (RFC 8446, section 6.1).
 * It is not sent after a failure: OpenSSL forbids it. */
void kedgei_ssl_goodbye(struct kedgei_stream *s)
{
    ERR_clear_error();
    if (!s->failed && SSL_is_init_finished(s->ssl) && !(SSL_get_shutdown(s->ssl) & SSL_SENT_SHUTDOWN)) {
        SSL_shutdown(s->ssl);
    }
    ERR_clear_error();
}

void kedgei_ssl_deinit(struct kedgei_stream *s)
{
    kedgei_ssl_goodbye(s);
    SSL_free(s->ssl);
    ERR_clear_error();
}

/* What a result that is not success means: 0 for "not now", else the error that ends the stream. */
static int judge(struct kedgei_stream *s, int result)
{
    int reason = SSL_get_error(s->ssl, result);
    ERR_clear_error();
    if (!s->failed && (reason == SSL_ERROR_WANT_READ || reason == SSL_ERROR_WANT_WRITE)) {
        s->wants_write = reason == SSL_ERROR_WANT_WRITE;
        return 0;
    }
    if (!s->failed) { /* the socket is well: OpenSSL objects, or the peer has said goodbye */
        s->failed = reason == SSL_ERROR_SSL ? KEDGE_E_PEER_AUTH : KEDGE_E_CLOSED;
    }
    return s->failed;
}

int kedgei_ssl_handshake(struct kedgei_stream *s, struct kedge_public_key *ret_key)
{
    s->wants_write = false;
    ERR_clear_error();
    int result = SSL_do_handshake(s->ssl);
    if (result != 1) {
        int err = judge(s, result);
        return err ? err : KEDGE_E_BUSY;
    }
    if (SSL_get_verify_mode(s->ssl) == SSL_VERIFY_NONE) {
        return KEDGE_OK; /* the peer says later who it is */
    }
    if (!kedgei_tls_cert_key(SSL_get0_peer_certificate(s->ssl), ret_key)) {
        s->failed = KEDGE_E_PEER_AUTH; /* verify_peer saw to it; a second line */
    }
    return s->failed;
}

long kedgei_ssl_read(struct kedgei_stream *s, uint8_t *ptr, size_t len)
{
    size_t n = 0;
    s->wants_write = false;
    ERR_clear_error();
    int result = SSL_read_ex(s->ssl, ptr, len, &n);
    return result == 1 ? (long)n : judge(s, result);
}

long kedgei_ssl_write(struct kedgei_stream *s, const uint8_t *ptr, size_t len)
{
    size_t n = 0;
    s->wants_write = false;
    ERR_clear_error();
    int result = SSL_write_ex(s->ssl, ptr, len, &n);
    return result == 1 ? (long)n : judge(s, result);
}

bool kedgei_ssl_has_pending(const struct kedgei_stream *s)
{
    return SSL_has_pending(s->ssl) == 1;
}
