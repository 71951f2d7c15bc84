/* Life of an HTTP server; see http_state.h for who owns what. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/limits.h"
#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "common/base/try.h"
#include "common/net/socket.h"
#include "common/net/web/http_state.h"

#define NS_PER_MS 1000000u
enum { EVENTS_MAX = 64, SWEEP_MS = 250 };

/* ---- the network thread ---- */

static void listen_again(struct kedge_http_server *server, bool deaf)
{
    for (size_t i = 0; i < KEDGE_HTTP_URLS_MAX; i++) {
        struct kedgei_http_listener *listener = &server->listeners[i];
        if (listener->fd >= 0) {
            kedgei_loop_change(&server->loop, listener->fd, deaf ? 0 : EPOLLIN, listener);
        }
    }
}

static void handle_event(struct kedge_http_server *server, const struct epoll_event *event)
{
    struct kedgei_http_listener *first = server->listeners, *end = first + KEDGE_HTTP_URLS_MAX;
    struct kedgei_http_listener *listener = event->data.ptr;
    if (!event->data.ptr) {
        kedgei_wake_clear(server->loop.wake);
    } else if (listener >= first && listener < end) {
        kedgei_http_accept(server, listener);
        if (server->deaf) {
            listen_again(server, true);
        }
    } else {
        kedgei_http_event(event->data.ptr, event->events);
    }
}

/* What the thread should do beside waiting for descriptors. */
static bool look_around(struct kedge_http_server *server, bool *ret_pending)
{
    pthread_mutex_lock(&server->mutex);
    bool closing = server->closing;
    *ret_pending = server->outbox != NULL || server->freed;
    pthread_mutex_unlock(&server->mutex);
    return !closing;
}

static void *run(void *arg)
{
    struct kedge_http_server *server = arg;
    struct epoll_event events[EVENTS_MAX];
    uint64_t swept = kedge_os_now_ns();
    bool pending, any = false;
    while (look_around(server, &pending)) {
        any = any || server->sessions;
        int timeout = pending ? 0 : any || server->deaf ? SWEEP_MS : -1;
        int count = kedgei_loop_wait(&server->loop, events, EVENTS_MAX, timeout);
        for (int i = 0; i < count; i++) {
            handle_event(server, &events[i]);
        }
        kedgei_http_drain(server);
        if (server->freed) {
            kedgei_http_serve_waiting(server);
        }
        uint64_t now = kedge_os_now_ns();
        if (now > swept + (uint64_t)SWEEP_MS * NS_PER_MS) {
            swept = now;
            any = kedgei_http_sweep(server, now);
            if (server->deaf) {
                server->deaf = false;
                listen_again(server, false);
            }
        }
        kedgei_http_bury(server); /* events of this turn may still name those that died in it */
    }
    kedgei_http_drain(server); /* answers given before the close leave if the socket takes them */
    while (server->sessions) {
        kedgei_http_session_close(server->sessions);
    }
    kedgei_http_bury(server);
    return NULL;
}

/* ---- open and close ---- */

static bool starts_with(const char *s, const char *start)
{
    return strncmp(s, start, strlen(start)) == 0;
}

/* https://HOST:PORT is what tls+tcp://HOST:PORT is underneath, http:// what tcp:// is. */
static int parse_address(const char *url, bool insecure, struct kedgei_address *ret,
                         struct kedge_diag *reterr)
{
    static const char tls[] = "https://", plain[] = "http://";
    char inner[KEDGE_HTTP_URL_MAX + 8];
    struct kedge_diag d;
    int err = KEDGE_E_ARG;
    if (strlen(url) < KEDGE_HTTP_URL_MAX && starts_with(url, tls)) {
        snprintf(inner, sizeof inner, "tls+tcp://%s", url + sizeof tls - 1);
        err = kedgei_address_parse(inner, insecure, ret, &d);
    } else if (strlen(url) < KEDGE_HTTP_URL_MAX && starts_with(url, plain)) {
        snprintf(inner, sizeof inner, "tcp://%s", url + sizeof plain - 1);
        err = kedgei_address_parse(inner, insecure, ret, &d);
    }
    if (err == KEDGE_E_DENIED) {
        kedge_diag_set(reterr, err,
                       "address %s: plain http:// is allowed on loopback only, and only with \"insecure\"",
                       url);
        kedge_diag_hint(reterr, "use https://");
    } else if (err) {
        kedge_diag_set(reterr, err, "address %.*s: expected https://HOST:PORT", KEDGE_HTTP_URL_MAX, url);
    }
    return err;
}

static int listen_at(struct kedge_http_server *server, struct kedgei_http_listener *listener, const char *url,
                     struct kedge_diag *reterr)
{
    unsigned port = 0;
    KEDGE_TRY(kedgei_socket_listen(&listener->address, url, &listener->fd, &port, reterr));
    if (!kedgei_address_with_port(url, port, listener->url, sizeof listener->url)) {
        return kedge_diag_set(reterr, KEDGE_E_ARG, "address %s: too long", url);
    }
    return kedgei_loop_add(&server->loop, listener->fd, EPOLLIN, listener) == KEDGE_OK
               ? KEDGE_OK
               : kedge_diag_set(reterr, KEDGE_E_NOMEM, "https: out of memory");
}

/* Addresses first, then the certificate, then the sockets: what is wrong with the configuration is
 * told before a port is taken. */
static int start(struct kedge_http_server *server, const struct kedge_http_options *options,
                 struct kedge_diag *reterr)
{
    bool any = false, needs_tls = false;
    int err = KEDGE_OK;
    for (size_t i = 0; !err && i < KEDGE_HTTP_URLS_MAX; i++) {
        struct kedgei_address *address = &server->listeners[i].address;
        if (options->urls[i]) {
            err = parse_address(options->urls[i], options->insecure, address, reterr);
            any = true;
            needs_tls = needs_tls || address->kind == KEDGE_NET_TLS;
        }
    }
    if (!err && !any) {
        err = kedge_diag_set(reterr, KEDGE_E_ARG, "https: no address to listen on");
    }
    if (!err && needs_tls) {
        err = kedgei_tls_web_new(options->key, options->certificate_file, options->key_file, &server->tls,
                                 reterr);
    }
    for (size_t i = 0; !err && i < KEDGE_HTTP_URLS_MAX; i++) {
        if (options->urls[i]) {
            err = listen_at(server, &server->listeners[i], options->urls[i], reterr);
        }
    }
    if (!err && kedgei_thread_start(&server->thread, run, server) != KEDGE_OK) {
        err = kedge_diag_set(reterr, KEDGE_E_NOMEM, "https: no thread to be had");
    }
    server->runs = !err;
    return err;
}

static uint64_t ns_of(uint32_t ms, uint32_t fallback)
{
    return (uint64_t)(ms ? ms : fallback) * NS_PER_MS;
}

/* The budget always has room for one largest body and one piece, or a request could wait for room
 * that there can never be. The answers of one party take at most a quarter of the pieces or
 * connections that there are. */
static struct kedge_http_server *new_server(const struct kedge_http_options *options)
{
    struct kedge_http_server *server = kedge_mem_new(1, sizeof *server);
    if (!server || kedgei_loop_init(&server->loop) != KEDGE_OK) {
        kedge_mem_free(server);
        return NULL;
    }
    for (size_t i = 0; i < KEDGE_HTTP_URLS_MAX; i++) {
        server->listeners[i].fd = -1;
    }
    server->handler = options->handler;
    server->arg = options->arg;
    server->connections_max = options->connections ? options->connections : KEDGE_HTTP_CONNECTIONS;
    server->body_max = options->body_max;
    server->budget_max = options->budget ? options->budget : KEDGE_CHUNK_BUDGET;
    if (server->budget_max < options->body_max + KEDGE_HTTP_PIECE_MAX) {
        server->budget_max = options->body_max + KEDGE_HTTP_PIECE_MAX;
    }
    size_t pieces = server->budget_max / KEDGE_HTTP_PIECE_MAX;
    server->party_max = (pieces < server->connections_max ? (unsigned)pieces : server->connections_max) / 4;
    server->party_max = server->party_max > 0 ? server->party_max : 1;
    server->head_ns = ns_of(options->head_ms, KEDGE_HTTP_HEAD_MS);
    server->idle_ns = ns_of(options->idle_ms, KEDGE_HTTP_IDLE_MS);
    server->stall_ns = ns_of(options->stall_ms, KEDGE_HTTP_STALL_MS);
    server->wait_ns = ns_of(options->wait_ms, KEDGE_HTTP_WAIT_MS);
    server->refs = 1;
    pthread_mutex_init(&server->mutex, NULL);
    if (kedgei_http_strangers_init(server, options->counts_strangers) != KEDGE_OK) {
        kedgei_loop_deinit(&server->loop);
        pthread_mutex_destroy(&server->mutex);
        kedge_mem_free(server);
        return NULL;
    }
    return server;
}

int kedge_http_server_open(const struct kedge_http_options *options, struct kedge_http_server **ret_server,
                           struct kedge_diag *reterr)
{
    if (!options->handler) {
        return kedge_diag_set(reterr, KEDGE_E_ARG, "https: no handler");
    }
    struct kedge_http_server *server = new_server(options);
    if (!server) {
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "https: out of memory");
    }
    int err = start(server, options, reterr);
    if (err) {
        kedge_http_server_close(server);
        return err;
    }
    *ret_server = server;
    return KEDGE_OK;
}

int kedge_http_server_check_certificate(const char *certificate_file, const char *key_file,
                                        struct kedge_diag *reterr)
{
    struct kedgei_tls *tls = NULL;
    int err = kedgei_tls_web_new(NULL, certificate_file, key_file, &tls, reterr);
    kedgei_tls_free(tls);
    return err;
}

const char *kedge_http_server_url(const struct kedge_http_server *server, unsigned i)
{
    return i < KEDGE_HTTP_URLS_MAX && server->listeners[i].url[0] ? server->listeners[i].url : NULL;
}

void kedgei_http_server_drop(struct kedge_http_server *server)
{
    bool last = --server->refs == 0;
    pthread_mutex_unlock(&server->mutex);
    if (last) {
        kedge_mem_free(server->sources);
        pthread_mutex_destroy(&server->mutex);
        kedge_mem_free(server);
    }
}

void kedge_http_server_close(struct kedge_http_server *server)
{
    if (!server) {
        return;
    }
    if (server->runs) {
        pthread_mutex_lock(&server->mutex);
        server->closing = true;
        kedgei_wake(server->loop.wake);
        pthread_mutex_unlock(&server->mutex);
        pthread_join(server->thread, NULL);
    }
    kedgei_http_close_outbox(server);
    for (size_t i = 0; i < KEDGE_HTTP_URLS_MAX; i++) {
        if (server->listeners[i].fd >= 0) {
            close(server->listeners[i].fd);
        }
    }
    kedgei_loop_deinit(&server->loop);
    kedgei_tls_free(server->tls);
    pthread_mutex_lock(&server->mutex);
    kedgei_http_server_drop(server);
}

void kedge_http_server_counters(struct kedge_http_server *server, struct kedge_http_counters *ret)
{
    pthread_mutex_lock(&server->mutex);
    *ret = server->counters;
    pthread_mutex_unlock(&server->mutex);
}
