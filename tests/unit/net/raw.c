#include "tests/unit/net/raw.h"

#include <arpa/inet.h>
#include <check.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/os/clock.h"
#include "crypto/cert.h"

enum { CLOSING_MS = 60000 }; /* in which somebody must do what needs no time at all */

static struct sockaddr_in loopback(unsigned port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return a;
}

int raw_connect(unsigned port)
{
    return raw_connect_from(port, 0);
}

int raw_connect_from(unsigned port, unsigned char from)
{
    struct sockaddr_in a = loopback(port), own = loopback(0);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    own.sin_addr.s_addr = htonl(INADDR_LOOPBACK | (uint32_t)from << 8);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&own, sizeof own), 0);
    struct timeval patience = {10, 0};
    const int now = 1; /* small pieces go out one by one */
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &now, sizeof now);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
    return fd;
}

int raw_listen(unsigned *ret_port)
{
    struct sockaddr_in a = loopback(0);
    socklen_t len = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert(fd >= 0 && bind(fd, (struct sockaddr *)&a, sizeof a) == 0 && listen(fd, 16) == 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&a, &len), 0);
    *ret_port = ntohs(a.sin_port);
    return fd;
}

bool raw_is_closed(int fd, int timeout_ms)
{
    uint64_t end = kedge_os_now_ns() + (uint64_t)timeout_ms * 1000000u;
    for (;;) {
        uint64_t now = kedge_os_now_ns();
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (now >= end || poll(&p, 1, (int)((end - now) / 1000000u) + 1) == 0) {
            return false;
        }
        char bytes[4096];
        ssize_t n = recv(fd, bytes, sizeof bytes, 0);
        if (n <= 0) {
            return true;
        }
    }
}

static EVP_PKEY *rsa_key; /* made once: finding primes can take seconds */
static pthread_once_t rsa_once = PTHREAD_ONCE_INIT;

static void make_rsa_key(void)
{
    rsa_key = EVP_RSA_gen(2048);
}

void raw_prepare(void)
{
    pthread_once(&rsa_once, make_rsa_key);
    ck_assert_ptr_nonnull(rsa_key);
}

/* A self-signed certificate of a key that is not Ed25519; takes over the key. */
static void use_foreign_cert(SSL_CTX *ctx, EVP_PKEY *key)
{
    X509 *cert = X509_new();
    ASN1_INTEGER_set(X509_get_serialNumber(cert), 1);
    X509_gmtime_adj(X509_getm_notBefore(cert), -1000);
    X509_gmtime_adj(X509_getm_notAfter(cert), 100000);
    X509_NAME *name = X509_get_subject_name(cert);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"x", -1, -1, 0);
    X509_set_issuer_name(cert, name);
    X509_set_pubkey(cert, key);
    ck_assert_int_gt(X509_sign(cert, key, EVP_sha256()), 0);
    ck_assert_int_eq(SSL_CTX_use_certificate(ctx, cert), 1);
    ck_assert_int_eq(SSL_CTX_use_PrivateKey(ctx, key), 1);
    X509_free(cert);
    EVP_PKEY_free(key);
}

static void use_own_cert(SSL_CTX *ctx, const struct kedge_key_pair *pair)
{
    struct kedge_buf pem;
    struct kedge_seed seed;
    kedge_buf_init(&pem, KEDGE_CERT_MAX);
    ck_assert_int_eq(kedge_cert_self_signed(pair, "raw", &pem), KEDGE_OK);
    kedge_key_seed(pair, &seed);
    BIO *bio = BIO_new_mem_buf(pem.ptr, (int)pem.len);
    X509 *cert = PEM_read_bio_X509(bio, NULL, NULL, NULL);
    EVP_PKEY *key = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, seed.b, sizeof seed.b);
    ck_assert_int_eq(SSL_CTX_use_certificate(ctx, cert), 1);
    ck_assert_int_eq(SSL_CTX_use_PrivateKey(ctx, key), 1);
    X509_free(cert);
    EVP_PKEY_free(key);
    BIO_free(bio);
    kedge_buf_deinit(&pem);
}

static int accept_any(X509_STORE_CTX *store, void *arg)
{
    (void)store, (void)arg;
    return 1;
}

static SSL_CTX *new_ctx(const SSL_METHOD *method, enum raw_kind kind, const struct kedge_key_pair *key)
{
    SSL_CTX *ctx = SSL_CTX_new(method);
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_cert_verify_callback(ctx, accept_any, NULL);
    if (kind == RAW_TLS12) {
        SSL_CTX_set_max_proto_version(ctx, TLS1_2_VERSION);
    }
    if (kind == RAW_WRONG_CIPHER) {
        SSL_CTX_set_ciphersuites(ctx, "TLS_AES_128_GCM_SHA256");
    }
    if (kind == RAW_RSA_CERT) {
        raw_prepare();
        EVP_PKEY_up_ref(rsa_key);
        use_foreign_cert(ctx, rsa_key);
    } else if (kind == RAW_P256_CERT) {
        use_foreign_cert(ctx, EVP_EC_gen("P-256"));
    } else if (kind != RAW_NO_CERT) {
        use_own_cert(ctx, key);
    }
    return ctx;
}

/* Speaks the greeting (common/net/frame.h), so that a good peer stays; then waits. */
static bool survives(SSL *ssl, int fd, int patience_ms, atomic_bool *is_greeted)
{
    static const unsigned char hello[44] = {'K', 'E', 'D', 'G', 'E', '\r', '\n', 0, 0, 0, 0, 1};
    char bytes[64];
    if (SSL_connect(ssl) != 1 || SSL_write(ssl, hello, sizeof hello) != (int)sizeof hello) {
        return false;
    }
    uint64_t end = kedge_os_now_ns() + (uint64_t)patience_ms * 1000000u;
    while (kedge_os_now_ns() < end) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (poll(&p, 1, 20) > 0) {
            if (SSL_read(ssl, bytes, sizeof bytes) <= 0) {
                return false;
            }
            atomic_store(is_greeted, true);
        }
    }
    return true;
}

static bool try_tls(enum raw_kind kind, int fd, const struct kedge_key_pair *key, int patience_ms,
                    atomic_bool *is_greeted)
{
    SSL_CTX *ctx = new_ctx(TLS_client_method(), kind, key);
    SSL *ssl = SSL_new(ctx);
    SSL_set_fd(ssl, fd);
    bool good = survives(ssl, fd, patience_ms, is_greeted);
    SSL_free(ssl);
    SSL_CTX_free(ctx);
    ERR_clear_error();
    return good;
}

bool raw_hold(unsigned port, const struct kedge_key_pair *key, int patience_ms, atomic_bool *ret_is_greeted)
{
    int fd = raw_connect(port);
    bool good = try_tls(RAW_GOOD, fd, key, patience_ms, ret_is_greeted);
    close(fd);
    return good;
}

bool raw_try(enum raw_kind kind, unsigned port, const struct kedge_key_pair *key, int patience_ms)
{
    static const char http[] = "GET / HTTP/1.1\r\nHost: kedge\r\n\r\n";
    unsigned char noise[300] = {22, 3, 3, 1, 0x20};
    struct linger reset = {1, 0};
    atomic_bool is_greeted = false;
    int fd = raw_connect(port);
    bool good = false;
    switch (kind) {
    case RAW_GOOD:
    case RAW_NO_CERT:
    case RAW_RSA_CERT:
    case RAW_P256_CERT:
    case RAW_TLS12:
    case RAW_WRONG_CIPHER:
        good = try_tls(kind, fd, key, patience_ms, &is_greeted);
        break;
    case RAW_HTTP:
        ck_assert_int_gt(send(fd, http, sizeof http - 1, MSG_NOSIGNAL), 0);
        good = !raw_is_closed(fd, CLOSING_MS);
        break;
    case RAW_NOISE:
        for (size_t i = 5; i < sizeof noise; i++) {
            noise[i] = (unsigned char)(i * 167 % 251);
        }
        ck_assert_int_gt(send(fd, noise, sizeof noise, MSG_NOSIGNAL), 0);
        good = !raw_is_closed(fd, CLOSING_MS);
        break;
    case RAW_HALF_HELLO:
        noise[5] = 1;
        ck_assert_int_gt(send(fd, noise, 40, MSG_NOSIGNAL), 0);
        break;
    case RAW_RESET:
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
        break;
    case RAW_INSTANT_CLOSE:
    case RAW_KINDS:
        break;
    }
    close(fd);
    return good;
}

void raw_serve(int listener, enum raw_kind kind, const struct kedge_key_pair *key)
{
    struct pollfd p = {.fd = listener, .events = POLLIN};
    int fd = poll(&p, 1, CLOSING_MS) > 0 ? accept(listener, NULL, NULL) : -1;
    ck_assert_int_ge(fd, 0);
    struct timeval patience = {5, 0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (kind == RAW_HTTP) {
        static const char http[] = "HTTP/1.1 400 Bad Request\r\n\r\n";
        ck_assert_int_gt(send(fd, http, sizeof http - 1, MSG_NOSIGNAL), 0);
        raw_is_closed(fd, 1000);
    } else if (kind != RAW_INSTANT_CLOSE) {
        SSL_CTX *ctx = new_ctx(TLS_server_method(), kind, key);
        SSL *ssl = SSL_new(ctx);
        SSL_set_fd(ssl, fd);
        if (SSL_accept(ssl) == 1) {
            char byte;
            SSL_read(ssl, &byte, 1);
        }
        SSL_free(ssl);
        SSL_CTX_free(ctx);
        ERR_clear_error();
    }
    close(fd);
}
