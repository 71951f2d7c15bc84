/* The HTTP server over TLS, in storms, and what it does not open for. */
#include <check.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/os/clock.h"
#include "tests/unit/net/http_world.h"
#include "tests/unit/net/raw.h"

static SSL *tls_connect(SSL_CTX *ctx, unsigned port, int *ret_fd)
{
    SSL *ssl = SSL_new(ctx);
    *ret_fd = raw_connect(port);
    SSL_set_fd(ssl, *ret_fd);
    if (SSL_connect(ssl) == 1) {
        return ssl;
    }
    SSL_free(ssl);
    close(*ret_fd);
    ERR_clear_error();
    return NULL;
}

static bool tls_get(SSL_CTX *ctx, unsigned port, const char *path, char *answer_text, size_t max)
{
    char text[200];
    int fd,
        len = snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", path);
    SSL *ssl = tls_connect(ctx, port, &fd);
    size_t got = 0;
    if (!ssl) {
        return false;
    }
    ck_assert_int_eq(SSL_write(ssl, text, len), len);
    for (int n = 1; n > 0 && got<max - 1; got += n> 0 ? (size_t)n : 0) {
        n = SSL_read(ssl, answer_text + got, (int)(max - 1 - got));
    }
    answer_text[got] = '\0';
    ck_assert_int_eq(SSL_get_shutdown(ssl) & SSL_RECEIVED_SHUTDOWN, SSL_RECEIVED_SHUTDOWN); /* not cut off */
    SSL_free(ssl);
    close(fd);
    return true;
}

START_TEST(test_tls)
{
    struct http_world *w = http_world_new(PATIENT_MS);
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    char *text = malloc(ANSWER_MAX);
    uint8_t shown[64];
    size_t shown_len = sizeof shown;
    int fd;
    http_world_start(w);
    unsigned port = http_world_port(w, 1);
    SSL *ssl = tls_connect(ctx, port, &fd); /* the certificate is the key's */
    ck_assert_ptr_nonnull(ssl);
    X509 *cert = SSL_get1_peer_certificate(ssl);
    ck_assert_int_eq(EVP_PKEY_get_raw_public_key(X509_get0_pubkey(cert), shown, &shown_len), 1);
    ck_assert(shown_len == KEDGE_KEY_LEN && memcmp(shown, w->key.public.b, KEDGE_KEY_LEN) == 0);
    X509_free(cert);
    SSL_free(ssl);
    close(fd);
    ck_assert(tls_get(ctx, port, "/hello", text, ANSWER_MAX) && strstr(text, "\r\n\r\nhello"));
    ck_assert(tls_get(ctx, port, "/big", text, ANSWER_MAX));
    ck_assert(memcmp(strstr(text, "\r\n\r\n") + 4, w->big, BIG) == 0);
    SSL_CTX_set_alpn_protos(ctx, (const unsigned char *)"\x02h2\x08http/1.1", 12);
    ck_assert(tls_get(ctx, port, "/late", text, ANSWER_MAX) && strstr(text, "late"));
    SSL_CTX_set_alpn_protos(ctx, (const unsigned char *)"\x02h2", 3);
    ck_assert(!tls_get(ctx, port, "/late", text, ANSWER_MAX));
    SSL_CTX_set_alpn_protos(ctx, NULL, 0);
    SSL_CTX_set_max_proto_version(ctx, TLS1_2_VERSION);
    ck_assert(!tls_get(ctx, port, "/hello", text, ANSWER_MAX));
    ck_assert(!raw_try(RAW_HTTP, port, &w->key, 0) && !raw_try(RAW_NOISE, port, &w->key, 0));
    (void)raw_try(RAW_HALF_HELLO, port, &w->key, 0);
    (void)raw_try(RAW_INSTANT_CLOSE, port, &w->key, 0);
    (void)raw_try(RAW_RESET, port, &w->key, 0);
    ck_assert_uint_ge(http_world_counters(w).refused, 4);
    http_world_wait(w, 0, 0, 0);
    SSL_CTX_free(ctx);
    free(text);
    http_world_close(w);
}
END_TEST

static void *storm(void *arg)
{
    struct http_world *w = arg;
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    for (int i = 0; i < 40; i++) {
        char text[2048];
        int fd = raw_connect(http_world_port(w, 0));
        http_say(fd, i % 2 ? GET("/big") : GET("/late"));
        if (i % 3) {
            shutdown(fd, SHUT_RDWR);
        }
        close(fd);
        if (i % 8 == 0) {
            ck_assert(tls_get(ctx, http_world_port(w, 1), "/late", text, sizeof text)
                      && strstr(text, "late"));
        }
    }
    SSL_CTX_free(ctx);
    return NULL;
}

START_TEST(test_storm)
{
    struct http_world *w = http_world_new(PATIENT_MS);
    pthread_t threads[4];
    http_world_start(w);
    for (size_t i = 0; i < 4; i++) {
        ck_assert_int_eq(pthread_create(&threads[i], NULL, storm, w), 0);
    }
    for (size_t i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
    http_expect_service(w);
    http_world_wait(w, 0, 0, 0);
    http_world_close(w);
}
END_TEST

START_TEST(test_open)
{
    static const struct {
        const char *url;
        bool insecure;
        int err;
        const char *said;
    } rows[] = {
        {"http://127.0.0.1:0", false, KEDGE_E_DENIED, "loopback only"},
        {"http://0.0.0.0:0", true, KEDGE_E_DENIED, "loopback only"},
        {"tls+tcp://127.0.0.1:0", true, KEDGE_E_ARG, "expected https://HOST:PORT"},
        {"https://127.0.0.1", true, KEDGE_E_ARG, "expected https://HOST:PORT"},
        {"https://127.0.0.1:0/x", true, KEDGE_E_ARG, "expected https://HOST:PORT"},
    };
    struct http_world *w = http_world_new(PATIENT_MS);
    struct kedge_diag d = {.text = ""};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        w->options.urls[0] = NULL;
        w->options.urls[1] = rows[i].url;
        w->options.insecure = rows[i].insecure;
        ck_assert_int_eq(kedge_http_server_open(&w->options, &w->server, &d), rows[i].err);
        ck_assert_msg(strstr(d.text, rows[i].said) != NULL, "%s", d.text);
    }
    w->options.urls[1] = "https://127.0.0.1:0";
    w->options.certificate_file = "/nonexistent/cert.pem";
    ck_assert_int_eq(kedge_http_server_open(&w->options, &w->server, &d), KEDGE_E_ARG);
    w->options.key_file = "/nonexistent/key.pem";
    ck_assert_int_eq(kedge_http_server_open(&w->options, &w->server, &d), KEDGE_E_NOT_FOUND);
    ck_assert_msg(strstr(d.text, "/nonexistent/cert.pem") != NULL, "%s", d.text);
    free(w);
}
END_TEST
int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    Suite *s = suite_create("http_tls");
    TCase *t = tcase_create("server");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, test_tls);
    tcase_add_test(t, test_storm);
    tcase_add_test(t, test_open);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
