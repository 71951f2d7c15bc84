/* A server's life; see server_state.h for who owns what.
 *
 * One thread serves all connections. A turn takes the events that are there, then the replies in the
 * outbox, then the sessions that wait for room; closed sessions are freed at the end of the turn, since an
 * event of the same turn may still name them. It sleeps without a timeout only when it has no session and
 * nothing to log; with sessions it wakes four times a second to close those that take too long.
 *
 * When the process has no descriptors left, it stops listening until the next sweep: accept would fail
 * again at once, and the loop would spin. */
#include "common/net/server.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/limits.h"
#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "common/base/try.h"
#include "common/net/server_state.h"
#include "common/net/socket.h"

#define NS_PER_MS 1000000u
enum { EVENTS_MAX = 256, SWEEP_MS = 250 };

/* ---- the network thread ---- */

/* A deaf listener stays open but is not watched: connections wait in the kernel's queue meanwhile
 * and are not refused. */
static void listen_again(struct kedge_net_server *server, bool deaf)
{
    for (size_t i = 0; i < KEDGE_NET_URLS_MAX; i++) {
        struct kedgei_listener *listener = &server->listeners[i];
        if (listener->fd >= 0) {
            kedgei_loop_change(&server->loop, listener->fd, deaf ? 0 : EPOLLIN, listener);
        }
    }
}

static void handle_event(struct kedge_net_server *server, const struct epoll_event *event)
{
    struct kedgei_listener *first = server->listeners, *end = first + KEDGE_NET_URLS_MAX;
    struct kedgei_listener *listener = event->data.ptr;
    if (!event->data.ptr) {
        kedgei_wake_clear(server->loop.wake);
    } else if (listener >= first && listener < end) {
        kedgei_session_accept(server, listener);
        if (server->deaf) {
            listen_again(server, true);
        }
    } else {
        kedgei_session_event(event->data.ptr, event->events);
    }
}

/* True when there is something to do that no descriptor will tell of. */
static bool is_pending(struct kedge_net_server *server)
{
    pthread_mutex_lock(&server->mutex);
    bool pending = server->outbox != NULL;
    pthread_mutex_unlock(&server->mutex);
    return pending || server->freed;
}

static bool is_closing(struct kedge_net_server *server)
{
    pthread_mutex_lock(&server->mutex);
    bool closing = server->closing;
    pthread_mutex_unlock(&server->mutex);
    return closing;
}

/* The order within a turn is fixed: events first, then replies, then those who wait for what these
 * freed, then the clock, and the dead last. */
static void *run(void *arg)
{
    struct kedge_net_server *server = arg;
    struct epoll_event events[EVENTS_MAX];
    uint64_t swept = kedge_os_now_ns();
    bool any = false;
    while (!is_closing(server)) {
        int timeout = is_pending(server) ? 0 : any || server->deaf ? SWEEP_MS : -1;
        int count = kedgei_loop_wait(&server->loop, events, EVENTS_MAX, timeout);
        for (int i = 0; i < count; i++) {
            handle_event(server, &events[i]);
        }
        kedgei_requests_drain(server);
        if (server->freed) {
            kedgei_sessions_serve_waiting(server);
        }
        uint64_t now = kedge_os_now_ns();
        any = any || server->sessions;
        if (now > swept + (uint64_t)SWEEP_MS * NS_PER_MS) {
            swept = now;
            any = kedgei_sessions_sweep(server, now);
            if (server->deaf) {
                server->deaf = false;
                listen_again(server, false);
            }
        }
        kedgei_sessions_bury(server);
    }
    for (size_t i = 0; i < KEDGE_NET_URLS_MAX; i++) { /* nobody new; a file of ours does not stay */
        if (server->listeners[i].fd >= 0) {
            if (server->listeners[i].address.kind == KEDGE_NET_IPC) {
                unlink(server->listeners[i].address.host);
            }
            close(server->listeners[i].fd);
            server->listeners[i].fd = -1;
        }
    }
    kedgei_requests_drain(server); /* replies given before the close leave if the socket takes them */
    while (server->sessions) {
        kedgei_session_close(server->sessions);
    }
    kedgei_sessions_bury(server);
    return NULL;
}

/* ---- open and close ---- */

static int check_addresses(struct kedge_net_server *server, const struct kedge_net_server_options *options,
                           bool *ret_tls, struct kedge_diag *reterr)
{
    bool any = false;
    for (size_t i = 0; i < KEDGE_NET_URLS_MAX; i++) {
        struct kedgei_address *address = &server->listeners[i].address;
        if (options->urls[i]) {
            KEDGE_TRY(kedgei_address_parse(options->urls[i], options->insecure, address, reterr));
            any = true;
            *ret_tls = *ret_tls || address->kind == KEDGE_NET_TLS;
        }
    }
    return any ? KEDGE_OK : kedge_diag_set(reterr, KEDGE_E_ARG, "server: no address to listen on");
}

static int listen_at(struct kedge_net_server *server, struct kedgei_listener *listener, const char *url,
                     struct kedge_diag *reterr)
{
    unsigned port = 0;
    KEDGE_TRY(kedgei_socket_listen(&listener->address, url, &listener->fd, &port, reterr));
    memcpy(listener->url, url, strlen(url) + 1);
    if (port != 0 && !kedgei_address_with_port(url, port, listener->url, sizeof listener->url)) {
        return kedge_diag_set(reterr, KEDGE_E_ARG, "address %s: too long", url);
    }
    return kedgei_loop_add(&server->loop, listener->fd, EPOLLIN, listener) == KEDGE_OK
               ? KEDGE_OK
               : kedge_diag_set(reterr, KEDGE_E_NOMEM, "server: out of memory");
}

static int start(struct kedge_net_server *server, const struct kedge_net_server_options *options,
                 struct kedge_diag *reterr)
{
    bool needs_tls = false;
    int err = check_addresses(server, options, &needs_tls, reterr);
    if (!err && needs_tls) {
        err = kedgei_tls_new(true, options->key, NULL, &server->tls, reterr);
    }
    for (size_t i = 0; !err && i < KEDGE_NET_URLS_MAX; i++) {
        if (options->urls[i]) {
            err = listen_at(server, &server->listeners[i], options->urls[i], reterr);
        }
    }
    if (!err && kedgei_thread_start(&server->thread, run, server) != KEDGE_OK) {
        err = kedge_diag_set(reterr, KEDGE_E_NOMEM, "server: no thread to be had");
    }
    server->runs = !err;
    return err;
}

static struct kedge_net_server *new_server(const struct kedge_net_server_options *options)
{
    struct kedge_net_server *server = kedge_mem_new(1, sizeof *server);
    if (!server || kedgei_loop_init(&server->loop) != KEDGE_OK) {
        kedge_mem_free(server);
        return NULL;
    }
    for (size_t i = 0; i < KEDGE_NET_URLS_MAX; i++) {
        server->listeners[i].fd = -1;
    }
    server->handler = options->handler;
    server->admit = options->admit;
    server->reply_size = options->reply_size;
    server->arg = options->arg;
    server->frame_max = options->frame_max ? options->frame_max : KEDGE_FRAME_MAX;
    server->contexts_max = options->contexts ? options->contexts : KEDGE_NET_CONTEXTS_MAX;
    server->stall_ns = (uint64_t)(options->stall_ms ? options->stall_ms : KEDGE_NET_STALL_MS) * NS_PER_MS;
    server->refs = 1;
    kedgei_budget_init(&server->budget, options->budget ? options->budget : KEDGE_CHUNK_BUDGET,
                       server->frame_max);
    pthread_mutex_init(&server->mutex, NULL);
    if (kedgei_strangers_init(server, options) != KEDGE_OK) {
        kedgei_loop_deinit(&server->loop);
        pthread_mutex_destroy(&server->mutex);
        kedge_mem_free(server);
        return NULL;
    }
    return server;
}

int kedge_net_server_open(const struct kedge_net_server_options *options,
                          struct kedge_net_server **ret_server, struct kedge_diag *reterr)
{
    if (!options->handler || (options->knows && !options->busy)) {
        return kedge_diag_set(reterr, KEDGE_E_ARG, "server: no handler");
    }
    struct kedge_net_server *server = new_server(options);
    if (!server) {
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "server: out of memory");
    }
    int err = start(server, options, reterr);
    if (err) {
        kedge_net_server_close(server);
        return err;
    }
    *ret_server = server;
    return KEDGE_OK;
}

const char *kedge_net_server_url(const struct kedge_net_server *server, unsigned i)
{
    return i < KEDGE_NET_URLS_MAX && server->listeners[i].url[0] ? server->listeners[i].url : NULL;
}

/* Its caller has locked the mutex, which cannot be unlocked any more once it is freed: so it is unlocked
 * here. */
void kedgei_server_drop(struct kedge_net_server *server)
{
    bool last = --server->refs == 0;
    pthread_mutex_unlock(&server->mutex);
    if (last) {
        kedgei_parties_sweep(&server->parties, UINT64_MAX);
        kedge_mem_free(server->sources);
        pthread_mutex_destroy(&server->mutex);
        kedge_mem_free(server);
    }
}

/* The thread is joined before anything that it uses is freed. Requests that are with the
 * application still hold the server's memory; the last of them frees it. */
void kedge_net_server_close(struct kedge_net_server *server)
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
    kedgei_requests_close(server);
    for (size_t i = 0; i < KEDGE_NET_URLS_MAX; i++) {
        if (server->listeners[i].fd >= 0) { /* the thread never ran */
            if (server->listeners[i].address.kind == KEDGE_NET_IPC) {
                unlink(server->listeners[i].address.host);
            }
            close(server->listeners[i].fd);
        }
    }
    kedgei_loop_deinit(&server->loop);
    kedgei_tls_free(server->tls);
    pthread_mutex_lock(&server->mutex);
    kedgei_server_drop(server);
}

/* ---- from any thread ---- */

/* From any thread: the socket is shut down and the network thread finds it dead, because only that
 * thread may free a session. `drops` is for connections whose key is being admitted at this moment
 * (open_session). */
unsigned kedge_net_server_drop_key(struct kedge_net_server *server, const struct kedge_public_key *key)
{
    unsigned dropped = 0;
    pthread_mutex_lock(&server->mutex);
    server->drops++;
    for (struct kedgei_session *s = server->sessions; s; s = s->next) {
        if (s->is_open && s->who.has_key && !s->dropped && kedge_public_key_eq(&s->who.key, key)) {
            s->dropped = true;
            server->counters.refused++;
            dropped++;
            /* In the list, so its descriptor is open; the network thread sees it end. */
            shutdown(s->link.stream.fd, SHUT_RDWR);
        }
    }
    pthread_mutex_unlock(&server->mutex);
    return dropped;
}

void kedge_net_server_counters(struct kedge_net_server *server, struct kedge_net_counters *ret)
{
    pthread_mutex_lock(&server->mutex);
    *ret = server->counters;
    ret->bytes_in_flight = server->budget.small.used + server->budget.large.used;
    pthread_mutex_unlock(&server->mutex);
}
