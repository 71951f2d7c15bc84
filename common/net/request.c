/* Requests that are with the application, and their replies. The application may answer from any thread
 * and at any time, also after the connection is gone, and after the server was closed.
 *
 * So a request holds a reference to its session and to its server: the session's memory stays until the
 * last request of it is answered, and the server's until the last of all. Replies cross to the network
 * thread by the outbox, one list under the mutex with one wake however many replies are in it; a handler
 * that answers at once, on the network thread itself, needs no wake.
 *
 * The budget is charged for a request and for a large reply that it announces before the handler runs, so
 * that a reply never has to wait for memory. Once it is on its way only the reply's own bytes stay
 * charged. */
#include <string.h>

#include "common/base/mem.h"
#include "common/base/try.h"
#include "common/net/server_state.h"

/* The server whose network thread this is: it finds its outbox without being woken. */
static _Thread_local const struct kedge_net_server *handling;

/* From here on the request is the application's. It holds a reference to its session and to its server, so
 * the application may answer after either is closed. */
bool kedgei_request_hand_over(struct kedgei_session *s, struct kedgei_frame *frame, bool is_busy)
{
    struct kedge_net_server *server = s->server;
    struct kedge_net_request *req = kedge_mem_new(1, sizeof *req);
    pthread_mutex_lock(&server->hub.mutex);
    bool good = req && !s->dropped;
    if (good) {
        *req = (struct kedge_net_request){.server = server,
                                          .session = s,
                                          .request = frame,
                                          .call = frame->call,
                                          .charge = frame->charge,
                                          .is_small = frame->is_small};
        s->refs++;
        server->hub.refs++;
        server->counters.requests++;
        server->counters.held++;
    } else {
        kedgei_release(s, frame->is_small, frame->charge);
    }
    pthread_mutex_unlock(&server->hub.mutex);
    if (!good) {
        kedge_mem_free(req);
        kedgei_frame_free(frame);
        return false;
    }
    s->unanswered++;
    handling = server;
    if (is_busy) {
        server->busy(server->arg, req, KEDGE_NET_RETRY_MS);
    } else {
        server->handler(server->arg, req);
    }
    handling = NULL;
    return true;
}

struct kedge_view kedge_net_request_view(const struct kedge_net_request *req)
{
    return kedge_view_of(req->request->body, req->request->len);
}

const struct kedge_net_peer *kedge_net_request_peer(const struct kedge_net_request *req)
{
    return &req->session->who;
}

void kedge_net_request_earn(struct kedge_net_request *req)
{
    req->is_earned = true;
}

int kedge_net_reply_begin(struct kedge_net_request *req, size_t len, uint8_t **ret_ptr)
{
    struct kedge_net_server *server = req->server;
    if (len > server->frame_max) {
        return KEDGE_E_TOO_LONG;
    }
    struct kedgei_frame *reply = kedgei_frame_new(len);
    KEDGE_TRY_MEM(reply);
    kedgei_frame_free(req->reply);
    req->reply = reply;
    size_t charge = req->request->len + len;
    pthread_mutex_lock(&server->hub.mutex);
    if (charge > req->charge) {
        /* A large reply that was not announced: at least it does not take the room of small ones. */
        kedgei_release(req->session, req->is_small, req->charge);
        req->is_small = req->is_small && kedgei_budget_is_small(charge);
        req->charge = charge;
        kedgei_charge(req->session, req->is_small, charge);
    }
    pthread_mutex_unlock(&server->hub.mutex);
    *ret_ptr = reply->body;
    return KEDGE_OK;
}

/* Gives the request back: into the outbox, or, when nobody is left to send, away. */
static void finish(struct kedge_net_request *req)
{
    struct kedge_net_server *server = req->server;
    kedgei_frame_free(req->request);
    req->request = NULL;
    if (req->reply) {
        kedgei_frame_seal(req->reply, req->call);
    }
    pthread_mutex_lock(&server->hub.mutex);
    server->counters.held--;
    if (server->hub.closed) {
        kedgei_session_drop(req->session);
        kedgei_server_drop(server);
        kedgei_frame_free(req->reply);
        kedge_mem_free(req);
        return;
    }
    kedgei_hub_put(&server->hub, &req->held, handling != server);
    pthread_mutex_unlock(&server->hub.mutex);
}

void kedge_net_reply_send(struct kedge_net_request *req)
{
    finish(req);
}

int kedge_net_reply(struct kedge_net_request *req, struct kedge_view frame)
{
    uint8_t *ptr = NULL;
    kedgei_frame_free(req->reply);
    req->reply = NULL;
    int err = kedge_net_reply_begin(req, frame.len, &ptr);
    if (err == KEDGE_OK && frame.len > 0) {
        memcpy(ptr, frame.ptr, frame.len);
    }
    finish(req);
    return err;
}

/* Closes the request's books but for the bytes of a reply that goes out, which the frame takes along. */
static void settle(struct kedge_net_request *req, bool goes_out)
{
    struct kedge_net_server *server = req->server;
    size_t kept = goes_out ? req->reply->len : 0;
    pthread_mutex_lock(&server->hub.mutex);
    kedgei_release(req->session, req->is_small, req->charge - kept);
    pthread_mutex_unlock(&server->hub.mutex);
    if (goes_out) {
        req->reply->charge = kept;
        req->reply->is_small = req->is_small;
    }
}

/* On the network thread. A request without a reply closes its connection, since the peer would wait
 * for it for ever. */
void kedgei_requests_drain(struct kedgei_hub *hub)
{
    struct kedge_net_server *server = (struct kedge_net_server *)hub;
    for (struct kedgei_held *held = kedgei_hub_take(hub), *next; held; held = next) {
        struct kedge_net_request *req = (struct kedge_net_request *)held;
        struct kedgei_session *s = req->session;
        bool is_open = s->stage == KEDGEI_OPEN;
        /* It may have enrolled: then what it sends next is a known key's. */
        bool goes_out = req->reply && is_open && kedgei_strangers_recognise(s) == KEDGE_OK;
        next = held->next;
        if (is_open && req->is_earned) {
            kedgei_strangers_earn(s);
        }
        settle(req, goes_out);
        server->hub.freed = true;
        if (goes_out) {
            kedgei_link_queue(&s->link, req->reply);
            kedgei_session_flush(s);
        } else {
            kedgei_frame_free(req->reply);
            kedgei_session_close(s); /* without a reply the peer would wait for nothing */
        }
        pthread_mutex_lock(&server->hub.mutex);
        kedgei_session_drop(s);
        kedgei_server_drop(server); /* unlocks; the owner still holds a reference */
        kedge_mem_free(req);
    }
}

/* After the network thread has ended: what is in the outbox goes nowhere any more. From now on
 * finish frees by itself. */
void kedgei_requests_close(struct kedge_net_server *server)
{
    struct kedgei_held *list = kedgei_hub_take(&server->hub);
    pthread_mutex_lock(&server->hub.mutex);
    for (struct kedgei_held *next; list; list = next) {
        struct kedge_net_request *req = (struct kedge_net_request *)list;
        next = list->next;
        kedgei_frame_free(req->reply);
        kedgei_session_drop(req->session);
        server->hub.refs--; /* the owner's remains */
        kedge_mem_free(req);
    }
    pthread_mutex_unlock(&server->hub.mutex);
}
