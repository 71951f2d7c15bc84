/* A server's life and its connections; requests are in request.c. */
#include "common/net/server.h"

#include <nng/nng.h>
#include <nng/protocol/reqrep0/rep.h>
#include <nng/supplemental/tls/tls.h>
#include <nng/transport/ipc/ipc.h>
#include <string.h>
#include <unistd.h>

#include "common/base/limits.h"
#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "common/net/address.h"
#include "common/net/closing.h"
#include "common/net/server_state.h"

enum {
    SP_HEADER_MAX = 64, /* what nng puts in front of a frame, generously */
    KEEPER_STACK = 128 * 1024,
    IPC_MODE = 0600,
};
#define NS_PER_MS 1000000u

/* ---- connections ---- */

static void on_left(void *arg, size_t n)
{
    struct kedge_net_server *server = arg;
    pthread_mutex_lock(&server->mutex);
    kedgei_server_release(server, n);
    pthread_mutex_unlock(&server->mutex);
}

/* Processes of the same user and root: whoever may write the socket file. */
static bool is_own_user(nng_pipe pipe)
{
    uint64_t uid;
    return nng_pipe_get_uint64(pipe, NNG_OPT_IPC_PEER_UID, &uid) == 0 && (uid == geteuid() || uid == 0);
}

static bool identify(struct kedge_net_server *server, nng_pipe pipe, struct kedge_net_peer *who,
                     struct kedgei_meter *meter, uint64_t *ret_number)
{
    struct kedgei_tls_peer tls_peer;
    int listener = nng_listener_id(nng_pipe_listener(pipe));
    *who = (struct kedge_net_peer){.connection = (uint64_t)nng_pipe_id(pipe)};
    for (size_t i = 0; i < KEDGE_NET_URLS_MAX; i++) {
        if (server->addresses[i].url[0] == 0 || nng_listener_id(server->addresses[i].listener) != listener) {
            continue;
        }
        who->kind = server->addresses[i].kind;
        switch (who->kind) {
        case KEDGE_NET_TLS:
            who->has_key = kedgei_tls_peer((uint32_t)who->connection, &tls_peer, meter);
            if (who->has_key) {
                who->key = tls_peer.key;
                *ret_number = tls_peer.number;
            }
            return who->has_key;
        case KEDGE_NET_IPC:
            return is_own_user(pipe);
        case KEDGE_NET_TCP:
            return true;
        }
    }
    return false;
}

static bool enter_peer(struct kedge_net_server *server, const struct kedge_net_peer *who, uint64_t number,
                       struct kedgei_meter *meter)
{
    pthread_mutex_lock(&server->mutex);
    struct kedgei_peer *peer = kedgei_peers_add(&server->peers, who);
    if (peer) {
        if (who->kind == KEDGE_NET_TLS) {
            kedgei_meter_hold(meter);
            peer->meter = meter;
            peer->number = number;
        }
        server->counters.connections++;
        server->counters.accepted++;
    }
    pthread_mutex_unlock(&server->mutex);
    return peer != NULL;
}

static void on_new_pipe(struct kedge_net_server *server, nng_pipe pipe)
{
    if (!kedgei_server_enter(server)) {
        nng_pipe_close(pipe);
        return;
    }
    struct kedgei_meter *meter = kedgei_meter_new(on_left, server);
    struct kedge_net_peer who;
    uint64_t number = 0;
    bool good = meter && identify(server, pipe, &who, meter, &number)
                && (!server->admit || server->admit(server->arg, &who))
                && enter_peer(server, &who, number, meter);
    if (!good) {
        if (meter) {
            kedgei_meter_stop(meter);
        }
        pthread_mutex_lock(&server->mutex);
        server->counters.refused++;
        pthread_mutex_unlock(&server->mutex);
        nng_pipe_close(pipe);
    }
    kedgei_meter_drop(meter);
    kedgei_server_leave(server);
}

static void on_gone_pipe(struct kedge_net_server *server, nng_pipe pipe)
{
    uint32_t id = (uint32_t)nng_pipe_id(pipe);
    pthread_mutex_lock(&server->mutex);
    struct kedgei_peer *peer = kedgei_peers_find(&server->peers, id);
    struct kedgei_meter *meter = peer ? peer->meter : NULL;
    if (peer) {
        server->counters.connections--;
        kedgei_peers_remove(&server->peers, id);
    }
    pthread_mutex_unlock(&server->mutex);
    if (meter) {
        kedgei_meter_stop(meter);
        kedgei_meter_drop(meter);
    }
}

static void on_pipe(nng_pipe pipe, nng_pipe_ev event, void *arg)
{
    if (event == NNG_PIPE_EV_ADD_PRE) {
        on_new_pipe(arg, pipe);
    } else if (event == NNG_PIPE_EV_REM_POST) {
        on_gone_pipe(arg, pipe);
    }
}

static void wake_keeper(struct kedge_net_server *server)
{
    pthread_mutex_lock(&server->mutex);
    server->rearm = true;
    pthread_cond_signal(&server->wake);
    pthread_mutex_unlock(&server->mutex);
}

void kedgei_server_end(struct kedge_net_server *server, const struct kedge_net_peer *who, uint64_t number)
{
    if (who->kind == KEDGE_NET_TLS) {
        kedgei_tls_end(server->tls, number);
        wake_keeper(server);
    } else {
        nng_pipe_close((nng_pipe){(uint32_t)who->connection});
    }
}

unsigned kedge_net_server_drop_key(struct kedge_net_server *server, const struct kedge_public_key *key)
{
    unsigned dropped = 0;
    pthread_mutex_lock(&server->mutex);
    for (size_t i = 0; i <= server->peers.mask; i++) {
        struct kedgei_peer *peer = &server->peers.places[i];
        if (peer->who.connection != 0 && peer->who.has_key && !peer->dropped
            && kedge_public_key_eq(&peer->who.key, key)) {
            peer->dropped = true; /* nothing that it has sent already counts */
            server->counters.refused++;
            dropped++;
        }
    }
    pthread_mutex_unlock(&server->mutex);
    if (dropped > 0) {
        kedgei_tls_end_key(server->tls, key);
        wake_keeper(server);
    }
    return dropped;
}

void kedge_net_server_counters(struct kedge_net_server *server, struct kedge_net_counters *ret)
{
    uint64_t handshakes = 0, silent = 0, refused = 0;
    if (server->tls) {
        kedgei_tls_counters(server->tls, &handshakes, &silent, &refused);
    }
    pthread_mutex_lock(&server->mutex);
    *ret = server->counters;
    pthread_mutex_unlock(&server->mutex);
    ret->handshakes = handshakes;
    ret->silent = silent;
    ret->refused += refused;
}

/* ---- the keeper ---- */

static void wait_until(struct kedge_net_server *server, uint64_t deadline_ns)
{
    if (deadline_ns == KEDGE_TIME_NEVER) {
        pthread_cond_wait(&server->wake, &server->mutex);
        return;
    }
    struct timespec at = {(time_t)(deadline_ns / 1000000000u), (long)(deadline_ns % 1000000000u)};
    pthread_cond_timedwait(&server->wake, &server->mutex, &at);
}

static void *keep(void *arg)
{
    struct kedge_net_server *server = arg;
    pthread_mutex_lock(&server->mutex);
    while (!server->closing) { /* once per second, or per wake */
        bool rearm = server->rearm;
        server->rearm = false;
        pthread_mutex_unlock(&server->mutex);
        if (rearm) {
            kedgei_server_arm(server);
        }
        /* New connections do not wake the keeper; it looks often enough. */
        uint64_t now = kedge_os_now_ns();
        uint64_t next = now + 500u * NS_PER_MS;
        if (server->tls) {
            uint64_t due = kedgei_tls_reap(server->tls, now);
            next = due < next ? due : next;
        } else {
            next = KEDGE_TIME_NEVER;
        }
        pthread_mutex_lock(&server->mutex);
        if (!server->closing && !server->rearm) {
            wait_until(server, next);
        }
    }
    pthread_mutex_unlock(&server->mutex);
    return NULL;
}

static int start_keeper(struct kedge_net_server *server, struct kedge_diag *reterr)
{
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, KEEPER_STACK);
    int rv = pthread_create(&server->keeper, &attr, keep, server);
    pthread_attr_destroy(&attr);
    if (rv != 0) {
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "server: no thread to be had: %s", strerror(rv));
    }
    server->keeper_runs = true;
    return KEDGE_OK;
}

/* ---- open and close ---- */

static int listen_failure(const char *url, int rv, struct kedge_diag *reterr)
{
    int err = rv == NNG_EADDRINUSE   ? KEDGE_E_BUSY
              : rv == NNG_EPERM      ? KEDGE_E_DENIED
              : rv == NNG_ENOMEM     ? KEDGE_E_NOMEM
              : rv == NNG_EADDRINVAL ? KEDGE_E_ARG
                                     : KEDGE_E_UNREACHABLE;
    kedge_diag_set(reterr, err, "cannot listen on %s: %s", url, nng_strerror(rv));
    if (rv == NNG_EADDRINUSE) {
        kedge_diag_hint(reterr, "another process listens there; stop it or choose another port");
    }
    return err;
}

static int listen_at(struct kedge_net_server *server, size_t i, const char *url, struct kedge_diag *reterr)
{
    enum kedge_net_kind kind = server->addresses[i].kind;
    nng_listener *listener = &server->addresses[i].listener;
    int rv = nng_listener_create(listener, server->socket, url);
    if (rv != 0) {
        return listen_failure(url, rv, reterr);
    }
    memcpy(server->addresses[i].url, url, strlen(url) + 1);
    if (kind == KEDGE_NET_TLS) {
        rv = nng_listener_set_ptr(*listener, NNG_OPT_TLS_CONFIG, kedgei_tls_config(server->tls));
    } else if (kind == KEDGE_NET_IPC) {
        rv = nng_listener_set_int(*listener, NNG_OPT_IPC_PERMISSIONS, IPC_MODE);
    }
    if (rv == 0 && kind != KEDGE_NET_IPC) {
        rv = nng_listener_set_bool(*listener, NNG_OPT_TCP_KEEPALIVE, true);
    }
    if (rv == 0) {
        rv = nng_listener_start(*listener, 0);
    }
    if (rv != 0) {
        return listen_failure(url, rv, reterr);
    }
    nng_sockaddr where;
    if (kind != KEDGE_NET_IPC && nng_listener_get_addr(*listener, NNG_OPT_LOCADDR, &where) == 0) {
        uint16_t port = where.s_family == NNG_AF_INET6 ? where.s_in6.sa_port : where.s_in.sa_port;
        const uint8_t *bytes = (const uint8_t *)&port; /* network order */
        if (!kedgei_address_with_port(url, (unsigned)(bytes[0] << 8 | bytes[1]), server->addresses[i].url,
                                      sizeof server->addresses[i].url)) {
            return kedge_diag_set(reterr, KEDGE_E_ARG, "address %s: too long", url);
        }
    }
    return KEDGE_OK;
}

static int open_socket(struct kedge_net_server *server, struct kedge_diag *reterr)
{
    int rv = nng_rep0_open(&server->socket);
    if (rv == 0
        && ((rv = nng_socket_set_size(server->socket, NNG_OPT_RECVMAXSZ, server->frame_max + SP_HEADER_MAX))
                != 0
            || (rv = nng_pipe_notify(server->socket, NNG_PIPE_EV_ADD_PRE, on_pipe, server)) != 0
            || (rv = nng_pipe_notify(server->socket, NNG_PIPE_EV_REM_POST, on_pipe, server)) != 0)) {
        nng_close(server->socket);
        server->socket = (nng_socket)NNG_SOCKET_INITIALIZER;
    }
    return rv == 0 ? KEDGE_OK : kedge_diag_set(reterr, KEDGE_E_NOMEM, "server: %s", nng_strerror(rv));
}

static int check_addresses(struct kedge_net_server *server, const struct kedge_net_server_options *options,
                           bool *ret_tls, struct kedge_diag *reterr)
{
    bool any = false;
    for (size_t i = 0; i < KEDGE_NET_URLS_MAX; i++) {
        if (options->urls[i]) {
            int err =
                kedgei_address_check(options->urls[i], options->insecure, &server->addresses[i].kind, reterr);
            if (err) {
                return err;
            }
            any = true;
            *ret_tls = *ret_tls || server->addresses[i].kind == KEDGE_NET_TLS;
        }
    }
    return any ? KEDGE_OK : kedge_diag_set(reterr, KEDGE_E_ARG, "server: no address to listen on");
}

static int start(struct kedge_net_server *server, const struct kedge_net_server_options *options,
                 struct kedge_diag *reterr)
{
    bool needs_tls = false;
    int err = check_addresses(server, options, &needs_tls, reterr);
    if (!err && needs_tls) {
        const struct kedgei_tls_options tls = {.server = true,
                                               .key = options->key,
                                               .handshakes_max = KEDGE_NET_HANDSHAKES_MAX,
                                               .handshake_ns = (uint64_t)KEDGE_NET_HANDSHAKE_MS * NS_PER_MS};
        err = kedgei_tls_new(&tls, &server->tls, reterr);
    }
    err = err ? err : open_socket(server, reterr);
    err = err ? err : start_keeper(server, reterr);
    if (!err) {
        kedgei_server_arm(server);
    }
    for (size_t i = 0; !err && i < KEDGE_NET_URLS_MAX; i++) {
        if (options->urls[i]) {
            err = listen_at(server, i, options->urls[i], reterr);
        }
    }
    return err;
}

static struct kedge_net_server *new_server(const struct kedge_net_server_options *options)
{
    struct kedge_net_server *server = kedge_mem_new(1, sizeof *server);
    if (!server) {
        return NULL;
    }
    server->socket = (nng_socket)NNG_SOCKET_INITIALIZER;
    server->handler = options->handler;
    server->admit = options->admit;
    server->reply_size = options->reply_size;
    server->arg = options->arg;
    server->frame_max = options->frame_max ? options->frame_max : KEDGE_FRAME_MAX;
    server->budget = options->budget ? options->budget : KEDGE_CHUNK_BUDGET;
    server->budget = server->budget < 2 * server->frame_max ? 2 * server->frame_max : server->budget;
    server->contexts_max = options->contexts ? options->contexts : KEDGE_NET_CONTEXTS_MAX;
    server->refs = 1;
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&server->mutex, NULL);
    pthread_cond_init(&server->wake, &monotonic);
    pthread_cond_init(&server->quiet, NULL);
    pthread_condattr_destroy(&monotonic);
    server->all = kedge_mem_new(server->contexts_max, sizeof *server->all);
    if (!server->all
        || kedgei_peers_init(&server->peers, options->peers ? options->peers : KEDGE_NET_PEERS_MAX)
               != KEDGE_OK) {
        kedgei_server_drop(server);
        return NULL;
    }
    return server;
}

int kedge_net_server_open(const struct kedge_net_server_options *options,
                          struct kedge_net_server **ret_server, struct kedge_diag *reterr)
{
    if (!options->handler) {
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
    return i < KEDGE_NET_URLS_MAX && server->addresses[i].url[0] ? server->addresses[i].url : NULL;
}

void kedgei_server_drop(struct kedge_net_server *server)
{
    pthread_mutex_lock(&server->mutex);
    bool last = --server->refs == 0;
    pthread_mutex_unlock(&server->mutex);
    if (last) {
        pthread_mutex_destroy(&server->mutex);
        pthread_cond_destroy(&server->wake);
        pthread_cond_destroy(&server->quiet);
        kedgei_peers_deinit(&server->peers);
        kedge_mem_free(server->all);
        kedge_mem_free(server);
    }
}

/* From here on no callback touches the books; what nng still calls sees that the server is closing. */
static void become_quiet(struct kedge_net_server *server)
{
    pthread_mutex_lock(&server->mutex);
    server->closing = true;
    pthread_cond_broadcast(&server->wake);
    while (server->running > 0) {
        pthread_cond_wait(&server->quiet, &server->mutex);
    }
    pthread_mutex_unlock(&server->mutex);
    if (server->keeper_runs) {
        pthread_join(server->keeper, NULL);
    }
}

/* The connections go by themselves once they are shut down; nng is not to close them (closing.h). */
static void wait_gone(struct kedge_net_server *server)
{
    struct kedge_net_counters counters;
    for (int i = 0; i < KEDGEI_GONE_MAX_MS; i++) {
        kedgei_tls_stop(server->tls);
        kedge_net_server_counters(server, &counters);
        if (counters.connections == 0 && counters.handshakes == 0) {
            return;
        }
        kedge_os_sleep_ms(1);
    }
}

void kedge_net_server_close(struct kedge_net_server *server)
{
    if (!server) {
        return;
    }
    become_quiet(server);
    if (server->tls) {
        wait_gone(server);
    }
    /* Waits for the pipes, hence for the last on_pipe. */
    if (nng_socket_id(server->socket) > 0 && !kedgei_close_socket(nng_socket_id(server->socket))) {
        return; /* nng is stuck and may call on_pipe yet: what it can reach stays */
    }
    pthread_mutex_lock(&server->mutex);
    server->is_quiet = true;
    unsigned made = server->made;
    pthread_mutex_unlock(&server->mutex);
    for (unsigned i = 0; i < made; i++) {
        pthread_mutex_lock(&server->mutex);
        struct kedge_net_request *req = server->all[i];
        bool ours = req && !req->held;
        server->all[i] = ours ? NULL : req;
        pthread_mutex_unlock(&server->mutex);
        if (ours) {
            nng_aio_stop(req->receive_aio);
            nng_aio_stop(req->send_aio);
            kedgei_request_free(req);
        }
    }
    kedgei_tls_free(server->tls);
    kedgei_server_drop(server);
}
