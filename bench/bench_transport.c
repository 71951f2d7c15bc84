#include "bench/bench_transport.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/limits.h"
#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "common/net/client.h"
#include "crypto/cert.h"

enum { BLOCK = 1024 * 1024, CALL_MS = 60000, CALLS_MAX = 100000 };

static uint8_t *chunk; /* KEDGE_CHUNK_MAX bytes that are really there */

/* "1…" asks for a chunk, anything else is sent back. */
static void answer(void *arg, struct kedge_net_request *req)
{
    (void)arg;
    struct kedge_view v = kedge_net_request_view(req);
    uint8_t *ptr;
    if (v.len != 1 || kedge_net_reply_begin(req, KEDGE_CHUNK_MAX, &ptr) != KEDGE_OK) {
        kedge_net_reply(req, v);
        return;
    }
    memcpy(ptr, chunk, KEDGE_CHUNK_MAX); /* as a reader of a blob file would */
    kedge_net_reply_send(req);
}

static int open_pair(enum kedge_net_kind kind, struct kedge_net_server **ret_server,
                     struct kedge_net_client **ret_client)
{
    struct kedge_key_pair own, other;
    char path[64];
    snprintf(path, sizeof path, "ipc:///tmp/kedge-bench-%d", (int)getpid());
    int err = kedge_crypto_init();
    if (err) {
        return err;
    }
    chunk = chunk ? chunk : kedge_mem_new(KEDGE_CHUNK_MAX, 1);
    if (!chunk) {
        return KEDGE_E_NOMEM;
    }
    memset(chunk, 1, KEDGE_CHUNK_MAX);
    kedge_key_generate(&own);
    kedge_key_generate(&other);
    const struct kedge_net_server_options server = {.urls = {kind == KEDGE_NET_TLS   ? "tls+tcp://127.0.0.1:0"
                                                             : kind == KEDGE_NET_IPC ? path
                                                                                     : "tcp://127.0.0.1:0"},
                                                    .key = &own,
                                                    .insecure = true,
                                                    .handler = answer};
    if ((err = kedge_net_server_open(&server, ret_server, NULL)) != KEDGE_OK) {
        return err;
    }
    const struct kedge_net_client_options client = {.url = kedge_net_server_url(*ret_server, 0),
                                                    .key = &other,
                                                    .server_key = &own.public,
                                                    .insecure = true};
    if ((err = kedge_net_client_open(&client, ret_client, NULL)) != KEDGE_OK) {
        kedge_net_server_close(*ret_server);
    }
    return err;
}

struct puller {
    pthread_t thread;
    struct kedge_net_client *client;
    unsigned chunks;
    int err;
};

static void *pull(void *arg)
{
    struct puller *p = arg;
    for (unsigned i = 0; i < p->chunks && !p->err; i++) {
        struct kedge_net_reply reply;
        p->err = kedge_net_call(p->client, kedge_view_str("1"), CALL_MS, &reply);
        if (!p->err) {
            kedge_net_reply_release(&reply);
        }
    }
    return NULL;
}

double kedge_bench_chunks(enum kedge_net_kind kind, unsigned in_flight, unsigned chunks)
{
    struct kedge_net_server *server;
    struct kedge_net_client *client;
    struct puller pullers[KEDGE_NET_CALLS_MAX];
    int err = open_pair(kind, &server, &client);
    if (err) {
        return err;
    }
    struct puller warm = {.client = client, .chunks = 2};
    pull(&warm);
    err = warm.err;
    in_flight = in_flight < KEDGE_NET_CALLS_MAX ? in_flight : KEDGE_NET_CALLS_MAX;
    uint64_t begin = kedge_os_now_ns();
    const unsigned each = in_flight > 0 ? chunks / in_flight : 0;
    unsigned started = 0;
    for (; started < in_flight; started++) {
        pullers[started] = (struct puller){.client = client, .chunks = each};
        if (pthread_create(&pullers[started].thread, NULL, pull, &pullers[started]) != 0) {
            err = KEDGE_E_NOMEM;
            break;
        }
    }
    for (unsigned i = 0; i < started; i++) {
        pthread_join(pullers[i].thread, NULL);
        err = err ? err : pullers[i].err;
    }
    double seconds = (double)(kedge_os_now_ns() - begin) * 1e-9;
    kedge_net_client_close(client);
    kedge_net_server_close(server);
    uint64_t bytes = (uint64_t)each * in_flight * KEDGE_CHUNK_MAX;
    return err ? err : (double)bytes / seconds;
}

static int compare(const void *a, const void *b)
{
    uint64_t x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

double kedge_bench_latency(enum kedge_net_kind kind, unsigned calls)
{
    static const uint8_t request[1024] = {2};
    struct kedge_net_server *server;
    struct kedge_net_client *client;
    calls = calls < CALLS_MAX ? calls : CALLS_MAX;
    int err = open_pair(kind, &server, &client);
    if (err) {
        return err;
    }
    uint64_t *took = kedge_mem_new(calls, sizeof *took);
    err = took ? KEDGE_OK : KEDGE_E_NOMEM;
    for (unsigned i = 0; i < calls && !err; i++) {
        struct kedge_net_reply reply;
        uint64_t begin = kedge_os_now_ns();
        err = kedge_net_call(client, kedge_view_of(request, sizeof request), CALL_MS, &reply);
        took[i] = kedge_os_now_ns() - begin;
        if (!err) {
            kedge_net_reply_release(&reply);
        }
    }
    double median = err;
    if (!err) {
        qsort(took, calls, sizeof *took, compare);
        uint64_t middle = took[calls / 2];
        median = (double)middle * 1e-9;
    }
    kedge_mem_free(took);
    kedge_net_client_close(client);
    kedge_net_server_close(server);
    return median;
}

/* Two connected sockets of loopback TCP. */
static bool connect_pair(int ret_fds[2])
{
    struct sockaddr_in a = {.sin_family = AF_INET};
    socklen_t len = sizeof a;
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    ret_fds[0] = socket(AF_INET, SOCK_STREAM, 0);
    ret_fds[1] = -1;
    if (bind(listener, (struct sockaddr *)&a, sizeof a) == 0 && listen(listener, 1) == 0
        && getsockname(listener, (struct sockaddr *)&a, &len) == 0
        && connect(ret_fds[0], (struct sockaddr *)&a, sizeof a) == 0) {
        ret_fds[1] = accept(listener, NULL, NULL);
    }
    close(listener);
    return ret_fds[1] >= 0;
}

struct sender {
    int fd;
    SSL *ssl; /* NULL: plain */
    unsigned chunks;
};

static void *send_all(void *arg)
{
    const struct sender *s = arg;
    uint8_t *block = kedge_mem_new(BLOCK, 1);
    size_t left = (size_t)s->chunks * KEDGE_CHUNK_MAX;
    if (s->ssl && SSL_accept(s->ssl) != 1) {
        left = 0;
    }
    while (block && left > 0) {
        size_t len = left < BLOCK ? left : BLOCK;
        ssize_t n = s->ssl ? SSL_write(s->ssl, block, (int)len) : send(s->fd, block, len, MSG_NOSIGNAL);
        if (n <= 0) {
            break;
        }
        left -= (size_t)n;
    }
    kedge_mem_free(block);
    shutdown(s->fd, SHUT_WR);
    return NULL;
}

static double receive_all(int fds[2], SSL *ssl, struct sender *sender)
{
    uint8_t *block = kedge_mem_new(BLOCK, 1);
    pthread_t thread;
    size_t got = 0, all = (size_t)sender->chunks * KEDGE_CHUNK_MAX;
    double result = KEDGE_E_IO;
    if (block && pthread_create(&thread, NULL, send_all, sender) == 0) {
        bool good = !ssl || SSL_connect(ssl) == 1;
        uint64_t begin = kedge_os_now_ns();
        for (ssize_t n = 1; good && got < all && n > 0; got += n > 0 ? (size_t)n : 0) {
            n = ssl ? SSL_read(ssl, block, BLOCK) : recv(fds[0], block, BLOCK, 0);
        }
        pthread_join(thread, NULL);
        result = got == all ? (double)got / ((double)(kedge_os_now_ns() - begin) * 1e-9) : result;
    }
    kedge_mem_free(block);
    return result;
}

double kedge_bench_loopback(unsigned chunks)
{
    int fds[2];
    bool good = connect_pair(fds);
    struct sender sender = {.fd = fds[1], .chunks = chunks};
    double result = good ? receive_all(fds, NULL, &sender) : KEDGE_E_IO;
    close(fds[0]);
    close(fds[1]);
    return result;
}

static SSL *new_ssl(SSL_CTX *ctx, int fd, const struct kedge_key_pair *pair)
{
    struct kedge_buf pem;
    struct kedge_seed seed;
    kedge_buf_init(&pem, KEDGE_CERT_MAX);
    kedge_key_seed(pair, &seed);
    int err = kedge_cert_self_signed(pair, "bench", &pem);
    BIO *bio = BIO_new_mem_buf(pem.ptr, (int)pem.len);
    X509 *cert = PEM_read_bio_X509(bio, NULL, NULL, NULL);
    EVP_PKEY *key = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, seed.b, sizeof seed.b);
    SSL *ssl = !err && SSL_CTX_set_ciphersuites(ctx, "TLS_AES_256_GCM_SHA384") == 1
                       && SSL_CTX_use_certificate(ctx, cert) == 1 && SSL_CTX_use_PrivateKey(ctx, key) == 1
                   ? SSL_new(ctx)
                   : NULL;
    if (ssl) {
        SSL_set_fd(ssl, fd);
    }
    X509_free(cert);
    EVP_PKEY_free(key);
    BIO_free(bio);
    kedge_buf_deinit(&pem);
    return ssl;
}

double kedge_bench_openssl(unsigned chunks)
{
    int fds[2];
    struct kedge_key_pair pair;
    if (kedge_crypto_init() != KEDGE_OK || !connect_pair(fds)) {
        return KEDGE_E_IO;
    }
    kedge_key_generate(&pair);
    SSL_CTX *near = SSL_CTX_new(TLS_client_method()), *far = SSL_CTX_new(TLS_server_method());
    SSL *ssl = new_ssl(near, fds[0], &pair);
    struct sender sender = {.fd = fds[1], .ssl = new_ssl(far, fds[1], &pair), .chunks = chunks};
    double result = ssl && sender.ssl ? receive_all(fds, ssl, &sender) : KEDGE_E_NOMEM;
    SSL_free(ssl);
    SSL_free(sender.ssl);
    SSL_CTX_free(near);
    SSL_CTX_free(far);
    close(fds[0]);
    close(fds[1]);
    return result;
}

double kedge_bench_memcpy(unsigned chunks)
{
    uint8_t *from = kedge_mem_new(KEDGE_CHUNK_MAX, 1), *to = kedge_mem_new(KEDGE_CHUNK_MAX, 1);
    double result = KEDGE_E_NOMEM;
    if (from && to) {
        memset(from, 1, KEDGE_CHUNK_MAX);
        memset(to, 2, KEDGE_CHUNK_MAX);
        uint64_t begin = kedge_os_now_ns();
        for (unsigned i = 0; i < chunks; i++) {
            from[i % KEDGE_CHUNK_MAX] = (uint8_t)i;
            memcpy(to, from, KEDGE_CHUNK_MAX);
            __asm__ volatile("" : : "r"(to) : "memory"); /* the copy is wanted */
        }
        result = (double)chunks * KEDGE_CHUNK_MAX / ((double)(kedge_os_now_ns() - begin) * 1e-9);
    }
    kedge_mem_free(from);
    kedge_mem_free(to);
    return result;
}

#ifdef KEDGE_BENCH_MAIN
int main(void)
{
    static const enum kedge_net_kind kinds[] = {KEDGE_NET_TLS, KEDGE_NET_TCP, KEDGE_NET_IPC};
    static const char *const names[] = {"tls", "tcp", "ipc"};
    printf("memcpy            %8.0f MB/s\n", kedge_bench_memcpy(200) * 1e-6);
    printf("loopback send     %8.0f MB/s\n", kedge_bench_loopback(200) * 1e-6);
    printf("loopback OpenSSL  %8.0f MB/s\n", kedge_bench_openssl(200) * 1e-6);
    for (size_t i = 0; i < 3; i++) {
        printf("%s 4 MiB, 1 call  %8.0f MB/s\n", names[i], kedge_bench_chunks(kinds[i], 1, 100) * 1e-6);
        printf("%s 4 MiB, 4 calls %8.0f MB/s\n", names[i], kedge_bench_chunks(kinds[i], 4, 100) * 1e-6);
        printf("%s 1 KB p50       %8.1f us\n", names[i], kedge_bench_latency(kinds[i], 2000) * 1e6);
    }
    return 0;
}
#endif
