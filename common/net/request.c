/* Requests of a server: a pool of nng contexts, few of which receive at a time; each is tied up from the
 * moment it has received until its reply is handed over, and the pool grows to the number of requests
 * that are held.
 *
 * Bytes in flight: a request counts with its length and the largest reply announced for it; while it is
 * answered, with request and reply; then the reply, over TLS until the engine has sent it (nng takes a
 * reply long before), over ipc and tcp, which stay on this machine, until nng has taken it. A context
 * receives only while one more frame for every receiving context fits into the budget, so that it is
 * exceeded only by replies nobody announced. */
#include "common/net/server_state.h"

#include <string.h>

#include "common/base/mem.h"

enum { SP_OVERHEAD = 12 }; /* length and request id in front of a reply on the connection */

bool kedgei_server_enter(struct kedge_net_server *server)
{
    pthread_mutex_lock(&server->mutex);
    bool open = !server->closing;
    server->running += open;
    pthread_mutex_unlock(&server->mutex);
    return open;
}

void kedgei_server_leave(struct kedge_net_server *server)
{
    pthread_mutex_lock(&server->mutex);
    if (--server->running == 0 && server->closing) {
        pthread_cond_broadcast(&server->quiet);
    }
    pthread_mutex_unlock(&server->mutex);
}

void kedgei_server_release(struct kedge_net_server *server, size_t n)
{
    server->counters.bytes_in_flight -= n;
    if (server->paused && !server->rearm) {
        server->rearm = true;
        pthread_cond_signal(&server->wake);
    }
}

void kedgei_request_free(struct kedge_net_request *req)
{
    if (req) {
        if (req->receive_aio) {
            nng_aio_free(req->receive_aio);
        }
        if (req->send_aio) {
            nng_aio_free(req->send_aio);
        }
        nng_msg_free(req->request);
        nng_msg_free(req->reply);
        kedge_mem_free(req);
    }
}

/* ---- receiving ---- */

static void on_received(void *arg);
static void on_sent(void *arg);

static struct kedge_net_request *new_request(struct kedge_net_server *server)
{
    struct kedge_net_request *req = kedge_mem_new(1, sizeof *req);
    if (!req) {
        return NULL;
    }
    req->server = server;
    if (nng_aio_alloc(&req->receive_aio, on_received, req) != 0
        || nng_aio_alloc(&req->send_aio, on_sent, req) != 0 || nng_ctx_open(&req->ctx, server->socket) != 0) {
        kedgei_request_free(req);
        return NULL;
    }
    return req;
}

/* Whether one more context may receive; caller holds the mutex. */
static bool may_arm(struct kedge_net_server *server)
{
    if (server->closing || server->armed >= KEDGEI_ARMED_MAX) {
        return false;
    }
    size_t reserve = (server->armed + 1) * server->frame_max;
    bool room = server->counters.bytes_in_flight + reserve <= server->budget;
    if (!room && !server->paused) {
        server->counters.pauses++;
    }
    server->paused = !room;
    return room;
}

/* A context to receive with, counted as armed; NULL when there is none to be had. */
static struct kedge_net_request *take_idle(struct kedge_net_server *server)
{
    pthread_mutex_lock(&server->mutex);
    struct kedge_net_request *req = NULL;
    bool arm = may_arm(server), make = false;
    if (arm && server->idle) {
        req = server->idle;
        server->idle = req->next_idle;
        server->armed++;
    } else if (arm && server->contexts < server->contexts_max) {
        make = true;
        server->armed++;
        server->contexts++;
    }
    pthread_mutex_unlock(&server->mutex);
    if (!make) {
        return req;
    }
    req = new_request(server);
    pthread_mutex_lock(&server->mutex);
    if (req) {
        req->index = server->made;
        server->all[server->made++] = req;
    } else {
        server->armed--;
        server->contexts--;
    }
    pthread_mutex_unlock(&server->mutex);
    return req;
}

void kedgei_server_arm(struct kedge_net_server *server)
{
    for (int i = 0; i < 2 * KEDGEI_ARMED_MAX; i++) {
        struct kedge_net_request *req = take_idle(server);
        if (!req) {
            return;
        }
        nng_ctx_recv(req->ctx, req->receive_aio);
    }
}

static void put_idle(struct kedge_net_request *req)
{
    struct kedge_net_server *server = req->server;
    pthread_mutex_lock(&server->mutex);
    req->next_idle = server->idle;
    server->idle = req;
    pthread_mutex_unlock(&server->mutex);
}

/* Enters the request into the books; false when it is not to be handed on. */
static bool admit_request(struct kedge_net_request *req, nng_msg *msg)
{
    struct kedge_net_server *server = req->server;
    uint32_t id = (uint32_t)nng_pipe_id(nng_msg_get_pipe(msg));
    size_t len = nng_msg_len(msg);
    size_t reply =
        server->reply_size ? server->reply_size(server->arg, kedge_view_of(nng_msg_body(msg), len)) : 0;
    pthread_mutex_lock(&server->mutex);
    struct kedgei_peer *peer = kedgei_peers_find(&server->peers, id);
    bool known = peer && !peer->dropped;
    struct kedge_net_peer who = peer ? peer->who : (struct kedge_net_peer){.connection = 0};
    uint64_t number = peer ? peer->number : 0;
    bool good = known && len <= server->frame_max && peer->held < KEDGE_NET_PER_PEER_MAX;
    if (good) {
        peer->held++;
        req->request = msg;
        req->peer = who;
        req->number = number;
        req->charge = len + (reply < server->frame_max ? reply : server->frame_max);
        req->held = true;
        server->counters.bytes_in_flight += req->charge;
        server->counters.requests++;
        server->counters.held++;
        server->refs++;
    } else if (known) {
        peer->dropped = true;
        server->counters.refused++;
    }
    pthread_mutex_unlock(&server->mutex);
    if (!good && known) {
        kedgei_server_end(server, &who, number);
    }
    return good;
}

static void on_received(void *arg)
{
    struct kedge_net_request *req = arg;
    struct kedge_net_server *server = req->server;
    int rv = nng_aio_result(req->receive_aio);
    nng_msg *msg = rv == 0 ? nng_aio_get_msg(req->receive_aio) : NULL;
    if (!kedgei_server_enter(server)) {
        nng_msg_free(msg);
        return;
    }
    pthread_mutex_lock(&server->mutex);
    server->armed--;
    pthread_mutex_unlock(&server->mutex);
    bool good = msg && admit_request(req, msg);
    if (!good) {
        nng_msg_free(msg);
        put_idle(req);
    }
    kedgei_server_arm(server);
    if (good) {
        server->handler(server->arg, req);
    }
    kedgei_server_leave(server);
}

struct kedge_view kedge_net_request_view(const struct kedge_net_request *req)
{
    return kedge_view_of(nng_msg_body(req->request), nng_msg_len(req->request));
}

const struct kedge_net_peer *kedge_net_request_peer(const struct kedge_net_request *req)
{
    return &req->peer;
}

/* ---- replying ---- */

static void on_sent(void *arg)
{
    struct kedge_net_request *req = arg;
    struct kedge_net_server *server = req->server;
    if (nng_aio_result(req->send_aio) != 0) {
        nng_msg_free(nng_aio_get_msg(req->send_aio));
        nng_aio_set_msg(req->send_aio, NULL);
    }
    if (!kedgei_server_enter(server)) {
        return;
    }
    pthread_mutex_lock(&server->mutex);
    kedgei_server_release(server, req->charge);
    req->charge = 0;
    pthread_mutex_unlock(&server->mutex);
    put_idle(req);
    kedgei_server_arm(server);
    kedgei_server_leave(server);
}

/* The application gives the request back: its books are closed but for the reply's bytes, which move to
 * the meter of the connection if that one counts them. */
static void close_books(struct kedge_net_request *req, size_t reply_len)
{
    struct kedge_net_server *server = req->server;
    pthread_mutex_lock(&server->mutex);
    struct kedgei_peer *peer = kedgei_peers_find(&server->peers, (uint32_t)req->peer.connection);
    struct kedgei_meter *meter = peer ? peer->meter : NULL;
    if (peer) {
        peer->held--;
    }
    if (meter) {
        kedgei_meter_hold(meter);
    }
    server->counters.held--;
    server->counters.bytes_in_flight += reply_len; /* before the meter can report it as sent */
    pthread_mutex_unlock(&server->mutex);

    bool metered = meter && reply_len > 0 && kedgei_meter_add(meter, reply_len);
    kedgei_meter_drop(meter);

    pthread_mutex_lock(&server->mutex);
    size_t kept = metered ? 0 : reply_len;
    size_t charge = req->charge;
    req->charge = kept;
    req->held = false;
    kedgei_server_release(server, charge + (metered ? 0 : reply_len - kept));
    pthread_mutex_unlock(&server->mutex);
}

/* The same when the server is closing. As long as callbacks may run, of which this can be one, close
 * frees it. */
static void finish_late(struct kedge_net_request *req)
{
    struct kedge_net_server *server = req->server;
    pthread_mutex_lock(&server->mutex);
    bool ours = server->is_quiet;
    if (ours) {
        server->all[req->index] = NULL;
    }
    req->held = false;
    pthread_mutex_unlock(&server->mutex);
    if (ours) {
        kedgei_request_free(req);
    }
    kedgei_server_drop(server);
}

/* Ends the request: sends its reply, or closes the connection when there is none. */
static void finish(struct kedge_net_request *req)
{
    struct kedge_net_server *server = req->server;
    nng_msg *reply = req->reply;
    nng_msg_free(req->request);
    req->request = req->reply = NULL;
    KEDGE_ASSERT(req->held);
    if (!kedgei_server_enter(server)) {
        nng_msg_free(reply);
        finish_late(req);
        return;
    }
    close_books(req, reply ? nng_msg_len(reply) + SP_OVERHEAD : 0);
    if (reply) {
        nng_aio_set_msg(req->send_aio, reply);
        nng_ctx_send(req->ctx, req->send_aio);
    } else {
        kedgei_server_end(server, &req->peer, req->number);
        put_idle(req);
        kedgei_server_arm(server);
    }
    kedgei_server_leave(server);
    kedgei_server_drop(server);
}

int kedge_net_reply_begin(struct kedge_net_request *req, size_t len, uint8_t **ret_ptr)
{
    struct kedge_net_server *server = req->server;
    if (len > server->frame_max) {
        return KEDGE_E_TOO_LONG;
    }
    nng_msg *msg;
    if (nng_msg_alloc(&msg, len) != 0) {
        return KEDGE_E_NOMEM;
    }
    nng_msg_free(req->reply);
    req->reply = msg;
    size_t charge = nng_msg_len(req->request) + len;
    pthread_mutex_lock(&server->mutex);
    if (charge > req->charge) {
        server->counters.bytes_in_flight += charge - req->charge;
        req->charge = charge;
    }
    pthread_mutex_unlock(&server->mutex);
    *ret_ptr = nng_msg_body(msg);
    return KEDGE_OK;
}

void kedge_net_reply_send(struct kedge_net_request *req)
{
    finish(req);
}

int kedge_net_reply(struct kedge_net_request *req, struct kedge_view frame)
{
    uint8_t *ptr = NULL;
    nng_msg_free(req->reply);
    req->reply = NULL;
    int err = kedge_net_reply_begin(req, frame.len, &ptr);
    if (err == KEDGE_OK && frame.len > 0) {
        memcpy(ptr, frame.ptr, frame.len);
    }
    finish(req);
    return err;
}
