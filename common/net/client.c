/* A client: one REQ socket with one dialer, a pool of contexts for the calls in flight. Calls wait for
 * the connection here, not in nng, which cannot say why there is none. nng's own resending is off. */
#include "common/net/client.h"

#include <nng/nng.h>
#include <nng/protocol/reqrep0/req.h>
#include <nng/supplemental/tls/tls.h>
#include <pthread.h>
#include <string.h>

#include "common/base/limits.h"
#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "common/net/address.h"
#include "common/net/closing.h"
#include "common/net/engine.h"
#include "common/net/server.h"

enum { SP_HEADER_MAX = 64 };
#define NS_PER_MS 1000000u

struct slot {
    nng_ctx ctx;
    nng_aio *aio; /* NULL: not made yet */
    bool used;
};

struct kedge_net_client {
    nng_socket socket;
    nng_dialer dialer;
    struct kedgei_tls *tls;
    uint64_t connect_ns;
    size_t frame_max;
    pthread_mutex_t mutex; /* all below; never held while nng is called */
    pthread_cond_t changed;
    unsigned connections;
    uint64_t refusals; /* failed authentications so far … */
    uint64_t reported; /* … and those that a caller knows of, or that a connection has made old */
    bool cancelled;
    struct slot slots[KEDGE_NET_CALLS_MAX];
};

/* ---- connection ---- */

static void on_pipe(nng_pipe pipe, nng_pipe_ev event, void *arg)
{
    struct kedge_net_client *client = arg;
    (void)pipe;
    pthread_mutex_lock(&client->mutex);
    if (event == NNG_PIPE_EV_ADD_POST) {
        client->connections++;
        client->reported = client->refusals;
    } else if (event == NNG_PIPE_EV_REM_POST && client->connections > 0) {
        client->connections--;
    }
    pthread_cond_broadcast(&client->changed);
    pthread_mutex_unlock(&client->mutex);
}

static void on_refused(void *arg)
{
    struct kedge_net_client *client = arg;
    pthread_mutex_lock(&client->mutex);
    client->refusals++;
    pthread_cond_broadcast(&client->changed);
    pthread_mutex_unlock(&client->mutex);
}

static int start_dialer(struct kedge_net_client *client, const char *url, enum kedge_net_kind kind)
{
    int rv = nng_dialer_create(&client->dialer, client->socket, url);
    if (rv == 0 && kind == KEDGE_NET_TLS) {
        rv = nng_dialer_set_ptr(client->dialer, NNG_OPT_TLS_CONFIG, kedgei_tls_config(client->tls));
    }
    if (rv == 0 && kind != KEDGE_NET_IPC) {
        rv = nng_dialer_set_bool(client->dialer, NNG_OPT_TCP_KEEPALIVE, true);
    }
    return rv ? rv : nng_dialer_start(client->dialer, NNG_FLAG_NONBLOCK);
}

static int start(struct kedge_net_client *client, const struct kedge_net_client_options *options,
                 struct kedge_diag *reterr)
{
    enum kedge_net_kind kind;
    int err = kedgei_address_check(options->url, options->insecure, &kind, reterr);
    if (!err && kind == KEDGE_NET_TLS) {
        const struct kedgei_tls_options tls = {.server = false,
                                               .key = options->key,
                                               .pinned = options->server_key,
                                               .handshake_ns = (uint64_t)KEDGE_NET_HANDSHAKE_MS * NS_PER_MS,
                                               .refused = on_refused,
                                               .arg = client};
        err = kedgei_tls_new(&tls, &client->tls, reterr);
    }
    if (err) {
        return err;
    }
    uint32_t most = options->reconnect_max_ms ? options->reconnect_max_ms : KEDGE_NET_RECONNECT_MAX_MS;
    most = most < KEDGE_NET_RECONNECT_MIN_MS ? KEDGE_NET_RECONNECT_MIN_MS
           : most > INT32_MAX                ? INT32_MAX
                                             : most;
    int rv = nng_req0_open(&client->socket);
    if (rv != 0) {
        client->socket = (nng_socket)NNG_SOCKET_INITIALIZER;
    } else if ((rv = nng_socket_set_ms(client->socket, NNG_OPT_REQ_RESENDTIME, NNG_DURATION_INFINITE)) == 0
               && (rv = nng_socket_set_ms(client->socket, NNG_OPT_RECONNMINT, KEDGE_NET_RECONNECT_MIN_MS))
                      == 0
               && (rv = nng_socket_set_ms(client->socket, NNG_OPT_RECONNMAXT, (nng_duration)most)) == 0
               && (rv = nng_socket_set_size(client->socket, NNG_OPT_RECVMAXSZ,
                                            client->frame_max + SP_HEADER_MAX))
                      == 0
               && (rv = nng_pipe_notify(client->socket, NNG_PIPE_EV_ADD_POST, on_pipe, client)) == 0
               && (rv = nng_pipe_notify(client->socket, NNG_PIPE_EV_REM_POST, on_pipe, client)) == 0) {
        rv = start_dialer(client, options->url, kind);
    }
    if (rv != 0) {
        return kedge_diag_set(reterr, rv == NNG_ENOMEM ? KEDGE_E_NOMEM : KEDGE_E_ARG, "address %s: %s",
                              options->url, nng_strerror(rv));
    }
    return KEDGE_OK;
}

int kedge_net_client_open(const struct kedge_net_client_options *options,
                          struct kedge_net_client **ret_client, struct kedge_diag *reterr)
{
    struct kedge_net_client *client = kedge_mem_new(1, sizeof *client);
    if (!client) {
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "client: out of memory");
    }
    client->socket = (nng_socket)NNG_SOCKET_INITIALIZER;
    client->connect_ns =
        (uint64_t)(options->connect_ms ? options->connect_ms : KEDGE_NET_CONNECT_MS) * NS_PER_MS;
    client->frame_max = options->frame_max ? options->frame_max : KEDGE_FRAME_MAX;
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&client->mutex, NULL);
    pthread_cond_init(&client->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    int err = start(client, options, reterr);
    if (err) {
        kedge_net_client_close(client);
        return err;
    }
    *ret_client = client;
    return KEDGE_OK;
}

/* The connection goes by itself once it is shut down; nng is not to close it (closing.h). */
static void wait_gone(struct kedge_net_client *client)
{
    uint64_t handshakes, silent, refused;
    for (int i = 0; i < KEDGEI_GONE_MAX_MS; i++) {
        kedgei_tls_stop(client->tls);
        kedgei_tls_counters(client->tls, &handshakes, &silent, &refused);
        if (handshakes == 0 && !kedge_net_client_connected(client)) {
            return;
        }
        kedge_os_sleep_ms(1);
    }
}

void kedge_net_client_close(struct kedge_net_client *client)
{
    if (!client) {
        return;
    }
    if (client->tls) {
        wait_gone(client);
    }
    if (nng_socket_id(client->socket) > 0 && !kedgei_close_socket(nng_socket_id(client->socket))) {
        return; /* nng is stuck and may call on_pipe yet: what it can reach stays */
    }
    for (size_t i = 0; i < KEDGE_NET_CALLS_MAX; i++) {
        if (client->slots[i].aio) {
            nng_aio_free(client->slots[i].aio);
        }
    }
    kedgei_tls_free(client->tls);
    pthread_cond_destroy(&client->changed);
    pthread_mutex_destroy(&client->mutex);
    kedge_mem_free(client);
}

bool kedge_net_client_connected(struct kedge_net_client *client)
{
    pthread_mutex_lock(&client->mutex);
    bool connected = client->connections > 0;
    pthread_mutex_unlock(&client->mutex);
    return connected;
}

void kedge_net_client_cancel(struct kedge_net_client *client)
{
    nng_aio *aios[KEDGE_NET_CALLS_MAX];
    size_t count = 0;
    pthread_mutex_lock(&client->mutex);
    client->cancelled = true;
    pthread_cond_broadcast(&client->changed);
    for (size_t i = 0; i < KEDGE_NET_CALLS_MAX; i++) {
        if (client->slots[i].used && client->slots[i].aio) {
            aios[count++] = client->slots[i].aio;
        }
    }
    pthread_mutex_unlock(&client->mutex);
    for (size_t i = 0; i < count; i++) {
        nng_aio_cancel(aios[i]);
    }
}

void kedge_net_client_resume(struct kedge_net_client *client)
{
    pthread_mutex_lock(&client->mutex);
    client->cancelled = false;
    pthread_mutex_unlock(&client->mutex);
}

static bool is_cancelled(struct kedge_net_client *client)
{
    pthread_mutex_lock(&client->mutex);
    bool cancelled = client->cancelled;
    pthread_mutex_unlock(&client->mutex);
    return cancelled;
}

/* Waits for a connection, ending the handshakes of silent servers meanwhile. */
static int wait_connected(struct kedge_net_client *client, uint64_t deadline_ns)
{
    int err = KEDGE_OK;
    pthread_mutex_lock(&client->mutex);
    uint64_t refusals = client->reported;
    while (client->connections == 0 && !client->cancelled && client->refusals == refusals && !err) {
        pthread_mutex_unlock(&client->mutex);
        uint64_t now = kedge_os_now_ns(), until = deadline_ns;
        if (client->tls) {
            uint64_t due = kedgei_tls_reap(client->tls, now);
            uint64_t look = now + 500u * NS_PER_MS; /* the dialer does not tell when it begins */
            due = due < look ? due : look;
            until = due < until ? due : until;
        }
        pthread_mutex_lock(&client->mutex);
        if (now >= deadline_ns) {
            err = KEDGE_E_UNREACHABLE;
        } else if (client->connections == 0 && !client->cancelled && client->refusals == refusals) {
            struct timespec at = {(time_t)(until / 1000000000u), (long)(until % 1000000000u)};
            pthread_cond_timedwait(&client->changed, &client->mutex, &at);
        }
    }
    if (client->cancelled) {
        err = KEDGE_E_CANCELLED;
    } else if (client->connections > 0) {
        err = KEDGE_OK;
    } else if (client->refusals != refusals) {
        client->reported = client->refusals;
        err = KEDGE_E_PEER_AUTH;
    }
    pthread_mutex_unlock(&client->mutex);
    return err;
}

/* ---- calls ---- */

static struct slot *take_slot(struct kedge_net_client *client)
{
    struct slot *slot = NULL;
    pthread_mutex_lock(&client->mutex);
    for (size_t i = 0; i < KEDGE_NET_CALLS_MAX && !slot; i++) {
        if (!client->slots[i].used) {
            slot = &client->slots[i];
            slot->used = true;
        }
    }
    pthread_mutex_unlock(&client->mutex);
    return slot;
}

static void give_slot(struct kedge_net_client *client, struct slot *slot)
{
    pthread_mutex_lock(&client->mutex);
    slot->used = false;
    pthread_mutex_unlock(&client->mutex);
}

static int make_slot(struct kedge_net_client *client, struct slot *slot)
{
    nng_aio *aio;
    if (slot->aio) {
        return KEDGE_OK;
    }
    if (nng_aio_alloc(&aio, NULL, NULL) != 0) {
        return KEDGE_E_NOMEM;
    }
    if (nng_ctx_open(&slot->ctx, client->socket) != 0) {
        nng_aio_free(aio);
        return KEDGE_E_NOMEM;
    }
    pthread_mutex_lock(&client->mutex);
    slot->aio = aio;
    pthread_mutex_unlock(&client->mutex);
    return KEDGE_OK;
}

/* What nng's error means for a call; `sent`: the request had gone out. */
static int judge(struct kedge_net_client *client, int rv, bool sent)
{
    switch (rv) {
    case 0:
        return KEDGE_OK;
    case NNG_ETIMEDOUT:
        return sent || kedge_net_client_connected(client) ? KEDGE_E_TIMEOUT : KEDGE_E_UNREACHABLE;
    case NNG_ECANCELED:
        return KEDGE_E_CANCELLED;
    case NNG_ENOMEM:
        return KEDGE_E_NOMEM;
    case NNG_EMSGSIZE:
        return KEDGE_E_TOO_LONG;
    default: /* NNG_ECONNRESET, NNG_ECLOSED, NNG_ESTATE after the pipe went */
        return KEDGE_E_CLOSED;
    }
}

/* Waits for what was begun on the slot's aio; a cancel that came before it began is made good. */
static int finish_aio(struct kedge_net_client *client, struct slot *slot)
{
    if (is_cancelled(client)) {
        nng_aio_cancel(slot->aio);
    }
    nng_aio_wait(slot->aio);
    return nng_aio_result(slot->aio);
}

static void set_time_left(nng_aio *aio, uint64_t deadline_ns)
{
    uint64_t now = kedge_os_now_ns();
    uint64_t left_ms = deadline_ns > now ? (deadline_ns - now) / NS_PER_MS : 0;
    nng_aio_set_timeout(aio, left_ms > INT32_MAX ? INT32_MAX : (nng_duration)left_ms);
}

/* Consumes msg. */
static int exchange(struct kedge_net_client *client, struct slot *slot, nng_msg *msg, uint64_t deadline_ns,
                    nng_msg **ret_reply)
{
    set_time_left(slot->aio, deadline_ns);
    nng_aio_set_msg(slot->aio, msg);
    nng_ctx_send(slot->ctx, slot->aio);
    int rv = finish_aio(client, slot);
    if (rv != 0) {
        nng_msg_free(nng_aio_get_msg(slot->aio));
        nng_aio_set_msg(slot->aio, NULL);
        return judge(client, rv, false);
    }
    set_time_left(slot->aio, deadline_ns);
    nng_ctx_recv(slot->ctx, slot->aio);
    rv = finish_aio(client, slot);
    if (rv != 0) {
        return judge(client, rv, true);
    }
    *ret_reply = nng_aio_get_msg(slot->aio);
    nng_aio_set_msg(slot->aio, NULL);
    return KEDGE_OK;
}

int kedge_net_call_begin(struct kedge_net_client *client, size_t len, struct kedge_net_outgoing *ret_request)
{
    nng_msg *msg;
    if (len > client->frame_max) {
        return KEDGE_E_TOO_LONG;
    }
    if (nng_msg_alloc(&msg, len) != 0) {
        return KEDGE_E_NOMEM;
    }
    *ret_request = (struct kedge_net_outgoing){nng_msg_body(msg), len, msg};
    return KEDGE_OK;
}

void kedge_net_outgoing_discard(struct kedge_net_outgoing *request)
{
    nng_msg_free(request->impl);
    *request = (struct kedge_net_outgoing){NULL, 0, NULL};
}

void kedge_net_reply_release(struct kedge_net_reply *reply)
{
    nng_msg_free(reply->impl);
    *reply = (struct kedge_net_reply){{NULL, 0}, NULL};
}

int kedge_net_call_send(struct kedge_net_client *client, struct kedge_net_outgoing *request,
                        uint32_t timeout_ms, struct kedge_net_reply *ret_reply)
{
    uint64_t now = kedge_os_now_ns(), deadline = now + (uint64_t)timeout_ms * NS_PER_MS;
    uint64_t connect = now + client->connect_ns;
    struct slot *slot = take_slot(client);
    nng_msg *reply = NULL;
    int err = slot ? make_slot(client, slot) : KEDGE_E_BUSY;
    err = err ? err : wait_connected(client, connect < deadline ? connect : deadline);
    if (!err) {
        err = exchange(client, slot, request->impl, deadline, &reply);
        request->impl = NULL;
    }
    if (slot) {
        give_slot(client, slot);
    }
    kedge_net_outgoing_discard(request);
    if (!err) {
        *ret_reply = (struct kedge_net_reply){kedge_view_of(nng_msg_body(reply), nng_msg_len(reply)), reply};
    }
    return err;
}

int kedge_net_call(struct kedge_net_client *client, struct kedge_view request, uint32_t timeout_ms,
                   struct kedge_net_reply *ret_reply)
{
    struct kedge_net_outgoing outgoing;
    int err = kedge_net_call_begin(client, request.len, &outgoing);
    if (err) {
        return err;
    }
    if (request.len > 0) {
        memcpy(outgoing.ptr, request.ptr, request.len);
    }
    return kedge_net_call_send(client, &outgoing, timeout_ms, ret_reply);
}
