/* A client's calls: many threads ask over one connection and each waits for its own reply.
 *
 * A call has one of a few places; its number is a counter times the number of places, plus the place. So a
 * reply finds its call by one remainder, and a late reply of a call that timed out has another number and
 * is thrown away, although its place is in use again.
 *
 * Callers write to the socket themselves when nothing is queued before them, and only what it does not
 * take goes to the client's thread (dial.c; client_state.h says who owns what): for small requests this
 * saves a switch of threads each. */
#include "common/net/client.h"

#include <string.h>
#include <unistd.h>

#include "common/base/limits.h"
#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "common/base/try.h"
#include "common/net/client_state.h"

#define NS_PER_MS 1000000u
#define NS_PER_S 1000000000u

/* ---- open and close ---- */

/* A TLS client must name the key of its server: without it any server would do, and there is no
 * authority that could vouch for one. */
static int start(struct kedge_net_client *client, const struct kedge_net_client_options *options,
                 struct kedge_diag *reterr)
{
    int err = kedgei_address_parse(options->url, options->insecure, &client->address, reterr);
    if (!err && client->address.kind == KEDGE_NET_TLS) {
        err = !options->server_key
                  ? kedge_diag_set(reterr, KEDGE_E_ARG, "tls: expected a key that the server must have")
                  : kedgei_tls_new(false, options->key, options->server_key, &client->tls, reterr);
    } else if (!err && client->address.kind == KEDGE_NET_TCP && options->key) {
        client->claim = options->key->public;
        client->has_claim = true;
    }
    if (!err && options->proxy && options->proxy[0]) {
        err =
            client->address.kind == KEDGE_NET_TLS
                ? kedgei_proxy_parse(options->proxy, &client->proxy, reterr)
                : kedge_diag_set(reterr, KEDGE_E_ARG, "proxy: only for tls+tcp://, not for %s", options->url);
        client->has_proxy = !err;
        err = err || !options->proxy_login || !options->proxy_login[0]
                  ? err
                  : kedgei_proxy_basic(options->proxy_login, client->proxy_basic, reterr);
    }
    if (!err
        && ((client->wake = kedgei_wake_open()) < 0
            || kedgei_thread_start(&client->thread, kedgei_client_run, client) != KEDGE_OK)) {
        err = kedge_diag_set(reterr, KEDGE_E_NOMEM, "client: no thread or descriptor to be had");
    }
    client->runs = !err;
    return err;
}

int kedge_net_client_open(const struct kedge_net_client_options *options,
                          struct kedge_net_client **ret_client, struct kedge_diag *reterr)
{
    struct kedge_net_client *client = kedge_mem_new(1, sizeof *client);
    if (!client) {
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "client: out of memory");
    }
    uint32_t most = options->reconnect_max_ms ? options->reconnect_max_ms : KEDGE_NET_RECONNECT_MAX_MS;
    most = most < KEDGE_NET_RECONNECT_MIN_MS ? KEDGE_NET_RECONNECT_MIN_MS : most;
    client->pause_max_ns = (uint64_t)most * NS_PER_MS;
    client->connect_ns =
        (uint64_t)(options->connect_ms ? options->connect_ms : KEDGE_NET_CONNECT_MS) * NS_PER_MS;
    client->changed = options->changed;
    client->changed_arg = options->changed_arg;
    client->frame_max = options->frame_max ? options->frame_max : KEDGE_FRAME_MAX;
    client->wake = -1;
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&client->mutex, NULL);
    for (size_t i = 0; i < KEDGE_NET_CALLS_MAX; i++) {
        pthread_cond_init(&client->calls[i].changed, &monotonic);
    }
    pthread_condattr_destroy(&monotonic);
    int err = start(client, options, reterr);
    if (err) {
        kedge_net_client_close(client);
        return err;
    }
    *ret_client = client;
    return KEDGE_OK;
}

void kedge_net_client_close(struct kedge_net_client *client)
{
    if (!client) {
        return;
    }
    if (client->runs) {
        pthread_mutex_lock(&client->mutex);
        client->closing = true;
        pthread_mutex_unlock(&client->mutex);
        kedgei_wake(client->wake);
        pthread_join(client->thread, NULL);
    }
    if (client->wake >= 0) {
        close(client->wake);
    }
    for (size_t i = 0; i < KEDGE_NET_CALLS_MAX; i++) {
        pthread_cond_destroy(&client->calls[i].changed);
    }
    kedgei_tls_free(client->tls);
    kedge_wipe(client->proxy_basic, sizeof client->proxy_basic);
    pthread_mutex_destroy(&client->mutex);
    kedge_mem_free(client);
}

bool kedge_net_client_connected(struct kedge_net_client *client)
{
    pthread_mutex_lock(&client->mutex);
    bool connected = client->connected;
    pthread_mutex_unlock(&client->mutex);
    return connected;
}

/* All callers come back at once with CANCELLED; the connection stays until the client is closed. */
void kedge_net_client_cancel(struct kedge_net_client *client)
{
    pthread_mutex_lock(&client->mutex);
    client->cancelled = true;
    for (size_t i = 0; i < KEDGE_NET_CALLS_MAX; i++) {
        struct kedgei_call *call = &client->calls[i];
        if (call->used && !call->done) {
            kedgei_call_end(call, KEDGE_E_CANCELLED, NULL);
        }
    }
    pthread_mutex_unlock(&client->mutex);
}

/* ---- calls; the caller of all these holds the mutex ---- */

/* A place that is free; its number in this use is new (see above). */
static struct kedgei_call *take_place(struct kedge_net_client *client)
{
    for (uint32_t i = 0; i < KEDGE_NET_CALLS_MAX; i++) {
        struct kedgei_call *call = &client->calls[i];
        if (!call->used) {
            call->used = true;
            call->sent = call->done = false;
            call->reply = NULL;
            call->id = ++client->serial * KEDGE_NET_CALLS_MAX + i;
            return call;
        }
    }
    return NULL;
}

/* False when the deadline has passed. */
static bool wait_changed(struct kedge_net_client *client, struct kedgei_call *call, uint64_t deadline_ns)
{
    struct timespec at = {(time_t)(deadline_ns / NS_PER_S), (long)(deadline_ns % NS_PER_S)};
    return pthread_cond_timedwait(&call->changed, &client->mutex, &at) == 0;
}

/* A call fails at once when the server was reached and refused, instead of waiting until its deadline: a
 * refusal counts until a caller has been told of it or a connection was made. */
static int wait_connected(struct kedge_net_client *client, struct kedgei_call *call, uint64_t deadline_ns)
{
    uint64_t known = client->reported;
    if (client->cancelled) {
        return KEDGE_E_CANCELLED;
    }
    while (!client->connected && !call->done && client->refusals == known) {
        if (!wait_changed(client, call, deadline_ns) && !client->connected) {
            return KEDGE_E_UNREACHABLE;
        }
    }
    if (call->done) {
        return call->err; /* cancelled */
    }
    if (!client->connected) {
        client->reported = client->refusals;
        return client->refusal;
    }
    return KEDGE_OK;
}

/* Sends from here as long as the socket takes it; the client's thread does the rest. */
static void send_request(struct kedge_net_client *client, struct kedgei_call *call,
                         struct kedgei_frame *request)
{
    struct kedgei_link *link = &client->link;
    bool alone = !link->first;
    call->sent = true;
    kedgei_frame_seal(request, call->id);
    kedgei_link_queue(link, request);
    if (!alone) {
        return;
    }
    struct kedgei_frame *done = NULL;
    int err = kedgei_link_send(link, &done);
    kedgei_frame_free(done); /* this request or none */
    if (err || link->first) {
        kedgei_wake(client->wake); /* an error comes back to the thread too, which then closes */
    }
}

/* A call that timed out is withdrawn from the queue if it has not begun to leave, so that the
 * server does no work for nobody. */
static int exchange(struct kedge_net_client *client, struct kedgei_call *call, struct kedgei_frame **request,
                    uint64_t deadline_ns, struct kedgei_frame **ret_reply)
{
    send_request(client, call, *request);
    *request = NULL;
    while (!call->done) {
        if (!wait_changed(client, call, deadline_ns) && !call->done) {
            kedgei_call_end(call, KEDGE_E_TIMEOUT, NULL);
        }
    }
    if (call->err && client->connected) {
        kedgei_link_withdraw(&client->link, call->id);
    }
    *ret_reply = call->reply;
    return call->err;
}

int kedge_net_call_begin(struct kedge_net_client *client, size_t len, struct kedge_net_outgoing *ret_request)
{
    if (len > client->frame_max) {
        return KEDGE_E_TOO_LONG;
    }
    struct kedgei_frame *frame = kedgei_frame_new(len);
    KEDGE_TRY_MEM(frame);
    *ret_request = (struct kedge_net_outgoing){frame->body, len, frame};
    return KEDGE_OK;
}

void kedge_net_outgoing_discard(struct kedge_net_outgoing *request)
{
    kedgei_frame_free(request->impl);
    *request = (struct kedge_net_outgoing){NULL, 0, NULL};
}

void kedge_net_reply_release(struct kedge_net_reply *reply)
{
    kedgei_frame_free(reply->impl);
    *reply = (struct kedge_net_reply){{NULL, 0}, NULL};
}

/* Two deadlines: a shorter one to have a connection at all, so that a server that is away is
 * noticed soon, and the caller's own for the answer. */
int kedge_net_call_send(struct kedge_net_client *client, struct kedge_net_outgoing *request,
                        uint32_t timeout_ms, struct kedge_net_reply *ret_reply)
{
    uint64_t now = kedge_os_now_ns(), deadline = now + (uint64_t)timeout_ms * NS_PER_MS;
    uint64_t connect = now + client->connect_ns;
    struct kedgei_frame *frame = request->impl, *reply = NULL;
    pthread_mutex_lock(&client->mutex);
    struct kedgei_call *call = take_place(client);
    int err = call ? wait_connected(client, call, connect < deadline ? connect : deadline) : KEDGE_E_BUSY;
    if (!err) {
        err = exchange(client, call, &frame, deadline, &reply);
    }
    if (call) {
        call->used = false;
    }
    pthread_mutex_unlock(&client->mutex);
    kedgei_frame_free(frame);
    *request = (struct kedge_net_outgoing){NULL, 0, NULL};
    if (!err) {
        *ret_reply = (struct kedge_net_reply){kedge_view_of(reply->body, reply->len), reply};
    }
    return err;
}

int kedge_net_call(struct kedge_net_client *client, struct kedge_view request, uint32_t timeout_ms,
                   struct kedge_net_reply *ret_reply)
{
    struct kedge_net_outgoing outgoing;
    KEDGE_TRY(kedge_net_call_begin(client, request.len, &outgoing));
    if (request.len > 0) {
        memcpy(outgoing.ptr, request.ptr, request.len);
    }
    return kedge_net_call_send(client, &outgoing, timeout_ms, ret_reply);
}
