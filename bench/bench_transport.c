#include "bench/bench_transport.h"

#include <arpa/inet.h>
#include <netinet/in.h>
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
    unsigned started = 0;
    for (; started < in_flight; started++) {
        pullers[started] = (struct puller){.client = client, .chunks = chunks / in_flight};
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
    return err ? err : (double)(chunks / in_flight * in_flight) * KEDGE_CHUNK_MAX / seconds;
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
        median = (double)took[calls / 2] * 1e-9;
    }
    kedge_mem_free(took);
    kedge_net_client_close(client);
    kedge_net_server_close(server);
    return median;
}

struct sender {
    int fd;
    unsigned chunks;
};

static void *send_all(void *arg)
{
    const struct sender *s = arg;
    uint8_t *block = kedge_mem_new(BLOCK, 1);
    size_t left = (size_t)s->chunks * KEDGE_CHUNK_MAX;
    while (block && left > 0) {
        ssize_t n = send(s->fd, block, left < BLOCK ? left : BLOCK, MSG_NOSIGNAL);
        if (n <= 0) {
            break;
        }
        left -= (size_t)n;
    }
    kedge_mem_free(block);
    shutdown(s->fd, SHUT_WR);
    return NULL;
}

double kedge_bench_loopback(unsigned chunks)
{
    struct sockaddr_in a = {.sin_family = AF_INET};
    socklen_t len = sizeof a;
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int listener = socket(AF_INET, SOCK_STREAM, 0), near = socket(AF_INET, SOCK_STREAM, 0), far = -1;
    uint8_t *block = kedge_mem_new(BLOCK, 1);
    double result = KEDGE_E_IO;
    if (block && bind(listener, (struct sockaddr *)&a, sizeof a) == 0 && listen(listener, 1) == 0
        && getsockname(listener, (struct sockaddr *)&a, &len) == 0
        && connect(near, (struct sockaddr *)&a, sizeof a) == 0 && (far = accept(listener, NULL, NULL)) >= 0) {
        struct sender sender = {far, chunks};
        pthread_t thread;
        uint64_t begin = kedge_os_now_ns();
        size_t got = 0;
        if (pthread_create(&thread, NULL, send_all, &sender) == 0) {
            for (ssize_t n; (n = recv(near, block, BLOCK, 0)) > 0;) {
                got += (size_t)n;
            }
            pthread_join(thread, NULL);
            result = (double)got / ((double)(kedge_os_now_ns() - begin) * 1e-9);
        }
    }
    kedge_mem_free(block);
    close(listener);
    close(near);
    if (far >= 0) {
        close(far);
    }
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
    for (size_t i = 0; i < 3; i++) {
        printf("%s 4 MiB, 1 call  %8.0f MB/s\n", names[i], kedge_bench_chunks(kinds[i], 1, 100) * 1e-6);
        printf("%s 4 MiB, 4 calls %8.0f MB/s\n", names[i], kedge_bench_chunks(kinds[i], 4, 100) * 1e-6);
        printf("%s 1 KB p50       %8.1f us\n", names[i], kedge_bench_latency(kinds[i], 2000) * 1e6);
    }
    return 0;
}
#endif
