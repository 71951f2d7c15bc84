/* What goes over a server's connections, on the network thread: handshake, greeting, then requests one
 * after another.
 *
 * A session that cannot go on is put into one of four queues, by what it waits for (server_state.h), and
 * is not read meanwhile: the kernel's buffer fills and TCP slows the peer down. Each queue is served first
 * come, first served, and only from its head: if a smaller request could pass a larger one that waits, a
 * stream of small ones would keep the large one waiting for ever. Requests that are whole come before
 * bodies that are not, because answering them frees memory.
 *
 * Strangers send and are answered short frames only. A peer that asks too often gets an answer all the
 * same, with the time at which to come back, and is not read until then. */
#include <errno.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "common/base/try.h"
#include "common/net/server_state.h"
#include "common/net/socket.h"

enum { SERVE_TURN = 64 };

/* ---- memory ---- */

/* Memory is charged twice: to the account of all, and to the party that causes it. The first keeps
 * the process within its budget, the second keeps one peer from using up what is there for all. */
void kedgei_charge(struct kedgei_session *s, bool is_small, size_t n)
{
    struct kedgei_budget *b = &s->server->budget;
    (is_small ? &b->small : &b->large)->used += n;
    s->large += is_small ? 0 : n;
    if (s->party) {
        s->party->large += is_small ? 0 : n;
    }
}

void kedgei_release(struct kedgei_session *s, bool is_small, size_t n)
{
    struct kedgei_budget *b = &s->server->budget;
    (is_small ? &b->small : &b->large)->used -= n;
    s->large -= is_small ? 0 : n;
    if (s->party) {
        s->party->large -= is_small ? 0 : n;
    }
}

/* What its peer holds of the large account. */
static size_t share_of(const struct kedgei_session *s)
{
    return s->party ? s->party->large : s->large;
}

/* The owner's socket does not wait until others' models are sent. */
static bool is_door(const struct kedgei_session *s)
{
    return s->class == KEDGEI_DOOR;
}

void kedgei_session_drop(struct kedgei_session *s)
{
    if (--s->refs == 0) {
        kedge_mem_free(s);
    }
}

/* ---- waiting ---- */

void kedgei_session_end_wait(struct kedgei_session *s)
{
    struct kedge_net_server *server = s->server;
    if (s->waiting < KEDGEI_WAIT_QUEUES) {
        struct kedgei_session *before = NULL, *at = server->waiting[s->waiting];
        for (; at != s; before = at, at = at->wait_next) {
        }
        *(before ? &before->wait_next : &server->waiting[s->waiting]) = s->wait_next;
        if (server->waiting_last[s->waiting] == s) {
            server->waiting_last[s->waiting] = before;
        }
    }
    s->waiting = KEDGEI_WAIT_NOT;
    s->wait_next = NULL;
}

/* A session that is asked again while it waits keeps its place in the queue; otherwise it would
 * never come to the head. */
static void begin_wait(struct kedgei_session *s, enum kedgei_wait reason)
{
    struct kedge_net_server *server = s->server;
    if (s->waiting == reason) {
        return; /* keeps its place */
    }
    kedgei_session_end_wait(s);
    s->waiting = reason;
    s->wait_next = NULL;
    if (reason < KEDGEI_WAIT_QUEUES) {
        *(server->waiting[reason] ? &server->waiting_last[reason]->wait_next : &server->waiting[reason]) = s;
        server->waiting_last[reason] = s;
    }
    pthread_mutex_lock(&server->hub.mutex);
    server->counters.pauses++;
    pthread_mutex_unlock(&server->hub.mutex);
}

/* Nobody came before, or it is this one's turn. */
static bool is_first(const struct kedgei_session *s, enum kedgei_wait queue)
{
    const struct kedgei_session *first = s->server->waiting[queue];
    return !first || first == s;
}

/* The head of a request has come. NOT: its body's memory is charged. */
static enum kedgei_wait ask_for_body(struct kedgei_session *s)
{
    struct kedge_net_server *server = s->server;
    size_t len = s->link.in.len;
    bool is_small = kedgei_budget_is_small(len);
    enum kedgei_wait queue = is_small ? KEDGEI_WAIT_SMALL : KEDGEI_WAIT_LARGE, result = KEDGEI_WAIT_NOT;
    pthread_mutex_lock(&server->hub.mutex);
    if (!is_door(s) && !is_small && !kedgei_budget_fits_share(&server->budget, share_of(s), len)) {
        result = KEDGEI_WAIT_OWN;
    } else if (!is_door(s) && (!is_first(s, queue) || !kedgei_budget_fits_body(&server->budget, len))) {
        result = queue;
    } else {
        kedgei_charge(s, is_small, len);
    }
    pthread_mutex_unlock(&server->hub.mutex);
    return result;
}

/* Asked once for each request, however often the request is looked at while it waits. */
static void learn_reply_size(struct kedgei_session *s)
{
    const struct kedge_net_server *server = s->server;
    const struct kedgei_frame *frame = s->link.in.frame;
    if (!s->asked) {
        size_t size =
            server->reply_size ? server->reply_size(server->arg, kedge_view_of(frame->body, frame->len)) : 0;
        /* What strangers are answered is short, whatever they ask for. */
        s->reply_size = s->class == KEDGEI_STRANGER ? 0 : size < server->frame_max ? size : server->frame_max;
        s->asked = true;
    }
}

/* A whole request is there. NOT: it may go to the handler, and room for its reply is charged. */
static enum kedgei_wait ask_for_reply(struct kedgei_session *s)
{
    struct kedge_net_server *server = s->server;
    struct kedgei_frame *frame = s->link.in.frame;
    size_t more = s->reply_size + (frame->is_small ? frame->len : 0); /* it leaves the small account */
    enum kedgei_wait queue = s->reply_size > 0 ? KEDGEI_WAIT_REPLY : KEDGEI_WAIT_CONTEXT;
    enum kedgei_wait result = KEDGEI_WAIT_NOT;
    pthread_mutex_lock(&server->hub.mutex);
    if (!is_door(s) && s->reply_size > 0 && !kedgei_budget_fits_share(&server->budget, share_of(s), more)) {
        result = KEDGEI_WAIT_OWN;
    } else if (!is_door(s)
               && (!is_first(s, queue) || server->counters.held >= server->contexts_max
                   || (s->reply_size > 0 && !kedgei_budget_fits_reply(&server->budget, more)))) {
        result = queue;
    } else if (s->reply_size > 0) {
        kedgei_release(s, frame->is_small, frame->charge);
        frame->is_small = false;
        frame->charge = frame->len + s->reply_size;
        kedgei_charge(s, false, frame->charge);
    }
    pthread_mutex_unlock(&server->hub.mutex);
    return result;
}

/* ---- receiving ---- */

void kedgei_session_count_refused(struct kedge_net_server *server)
{
    pthread_mutex_lock(&server->hub.mutex);
    server->counters.refused++;
    pthread_mutex_unlock(&server->hub.mutex);
}

/* The greeting has come: who is it, and may he stay?
 *
 * Dropping a key closes the connections that are open. One of that key which is being let in at this moment
 * is not open yet, and what the application said of the key may be true no more. So it opens only if no key
 * was dropped since it was asked; else it is closed, and its peer dials again. */
static bool open_session(struct kedgei_session *s)
{
    static atomic_uint_fast64_t connections;
    struct kedge_net_server *server = s->server;
    struct kedge_net_peer who = s->who;
    if (who.kind == KEDGE_NET_TCP && kedge_public_key_is_valid(&s->link.in.claimed)) {
        who.key = s->link.in.claimed; /* only said, not shown: peer.h */
        who.has_key = true;
    }
    who.connection = (uint64_t)atomic_fetch_add(&connections, 1) + 1;
    pthread_mutex_lock(&server->hub.mutex);
    uint64_t drops = server->drops;
    pthread_mutex_unlock(&server->hub.mutex);
    bool good = !server->admit || server->admit(server->arg, &who);
    struct kedgei_frame *greeting = good ? kedgei_frame_greeting(NULL) : NULL;
    pthread_mutex_lock(&server->hub.mutex);
    s->who = greeting ? who : s->who;
    pthread_mutex_unlock(&server->hub.mutex);
    good = greeting && kedgei_strangers_recognise(s) == KEDGE_OK;
    pthread_mutex_lock(&server->hub.mutex);
    good = good && drops == server->drops;
    if (good) {
        s->is_open = true;
        server->counters.connections++;
        server->counters.accepted++;
        server->counters.handshakes--;
        s->stage = KEDGEI_OPEN;
    } else {
        server->counters.refused++;
    }
    pthread_mutex_unlock(&server->hub.mutex);
    if (!good) {
        kedgei_frame_free(greeting);
        return false;
    }
    s->since_ns = kedge_os_now_ns();
    s->link.in.frame_max = kedgei_strangers_frame_max(s);
    kedgei_link_queue(&s->link, greeting);
    return true;
}

/* The head of a request has come. False: nothing more can be done now, or *ret_err. */
static bool step_body(struct kedgei_session *s, int *ret_err)
{
    struct kedgei_decoder *in = &s->link.in;
    enum kedgei_wait wait;
    if ((*ret_err = kedgei_strangers_recognise(s)) != KEDGE_OK) {
        return false;
    }
    unsigned most = s->class == KEDGEI_STRANGER ? KEDGE_NET_STRANGER_PEER_MAX : KEDGE_NET_PER_PEER_MAX;
    if (s->unanswered >= most) {
        kedgei_session_count_refused(s->server);
        *ret_err = KEDGE_E_FULL;
        return false;
    }
    if ((wait = ask_for_body(s)) != KEDGEI_WAIT_NOT) {
        begin_wait(s, wait);
        return false;
    }
    kedgei_session_end_wait(s);
    if ((*ret_err = kedgei_link_give(&s->link)) != KEDGE_OK) {
        pthread_mutex_lock(&s->server->hub.mutex);
        kedgei_release(s, kedgei_budget_is_small(in->len), in->len);
        pthread_mutex_unlock(&s->server->hub.mutex);
        return false;
    }
    in->frame->charge = in->len;
    in->frame->is_small = kedgei_budget_is_small(in->len);
    s->asked = s->rated = false;
    return true;
}

/* A whole request has come; results as of step_body. */
static bool step_request(struct kedgei_session *s, int *ret_err)
{
    struct kedgei_decoder *in = &s->link.in;
    enum kedgei_wait wait;
    learn_reply_size(s);
    bool is_busy = !s->rated && !kedgei_strangers_take_turn(s);
    s->rated = true;
    if (!is_busy && (wait = ask_for_reply(s)) != KEDGEI_WAIT_NOT) {
        begin_wait(s, wait);
        return false;
    }
    kedgei_session_end_wait(s);
    s->since_ns = s->class == KEDGEI_STRANGER ? kedge_os_now_ns() : s->since_ns;
    *ret_err = kedgei_request_hand_over(s, kedgei_decoder_take(in), is_busy) ? KEDGE_OK : KEDGE_E_CLOSED;
    if (is_busy && *ret_err == KEDGE_OK) {
        begin_wait(s, KEDGEI_WAIT_PAUSE);
        return false;
    }
    /* A peer that has one request in flight sends no more before the reply; do not ask the kernel. */
    return *ret_err == KEDGE_OK && kedgei_stream_has_pending(&s->link.stream);
}

/* One step with what the decoder has. False: nothing more can be done now, or *ret_err. */
static bool step(struct kedgei_session *s, int *ret_err)
{
    const struct kedgei_decoder *in = &s->link.in;
    if (in->state == KEDGEI_NO_MEMORY) {
        return step_body(s, ret_err);
    }
    if (in->state == KEDGEI_WHOLE) {
        return step_request(s, ret_err);
    }
    int n = kedgei_link_receive(&s->link);
    *ret_err = n < 0 ? n : KEDGE_OK;
    if (n > 0 && s->stage == KEDGEI_GREETED && in->state != KEDGEI_GREETING) {
        *ret_err = open_session(s) ? KEDGE_OK : KEDGE_E_DENIED;
    }
    return n > 0 && *ret_err == KEDGE_OK;
}

/* Refusals by TLS have sent an alert that says so. It must not be lost in the reset that closing a socket
 * with unread bytes causes: stop sending, and wait a moment for the peer to go. */
static void linger(struct kedgei_session *s)
{
    kedgei_session_count_refused(s->server);
    s->stage = KEDGEI_LINGERING;
    s->since_ns = kedge_os_now_ns();
    shutdown(s->link.stream.fd, SHUT_WR);
}

static void drain_lingering(struct kedgei_session *s)
{
    uint8_t scrap[4096];
    ssize_t n = recv(s->link.stream.fd, scrap, sizeof scrap, 0);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
        kedgei_session_close(s);
    }
}

/* A session that waits is not read: the kernel's buffer fills, TCP slows the peer down, and no memory of
 * ours is spent. */
static void watch(struct kedgei_session *s)
{
    bool reads = s->waiting == KEDGEI_WAIT_NOT;
    bool writes = s->stage != KEDGEI_LINGERING && kedgei_link_wants_write(&s->link);
    uint32_t events = (reads ? (uint32_t)EPOLLIN : 0) | (writes ? (uint32_t)EPOLLOUT : 0);
    if (s->stage != KEDGEI_DEAD && events != s->events) {
        s->events = events;
        kedgei_loop_change(&s->server->hub.loop, s->link.stream.fd, events, s);
    }
}

/* Ends a session that has failed with err. */
static void fail(struct kedgei_session *s, int err)
{
    if (err == KEDGE_E_PEER_AUTH && !s->is_open) {
        linger(s);
        watch(s);
        return;
    }
    if (err == KEDGE_E_FORMAT || err == KEDGE_E_VERSION || err == KEDGE_E_TOO_LONG
        || err == KEDGE_E_PEER_AUTH) {
        kedgei_session_count_refused(s->server);
    }
    kedgei_session_close(s);
}

/* The key of a TLS peer is proven by the handshake itself, so it counts from here on; over plain
 * TCP a key is only said in the greeting. */
static int shake_hands(struct kedgei_session *s)
{
    struct kedge_public_key key;
    KEDGE_TRY(kedgei_stream_handshake(&s->link.stream, &key));
    s->stage = KEDGEI_GREETED;
    if (s->who.kind == KEDGE_NET_TLS) {
        s->who.key = key;
        s->who.has_key = true;
    }
    return KEDGE_OK;
}

/* Frames that have left free their charges together, under one lock. */
static int send_queued(struct kedgei_session *s)
{
    struct kedgei_frame *done = NULL;
    int err = kedgei_link_send(&s->link, &done);
    if (done) {
        pthread_mutex_lock(&s->server->hub.mutex);
        for (struct kedgei_frame *f = done; f; f = f->next) {
            kedgei_release(s, f->is_small, f->charge);
        }
        pthread_mutex_unlock(&s->server->hub.mutex);
        s->server->hub.freed = true;
    }
    for (struct kedgei_frame *next; done; done = next) {
        next = done->next;
        s->unanswered -= done->skip == 0; /* the greeting answers nothing */
        kedgei_frame_free(done);
    }
    return err;
}

/* As far as it goes in one turn. The allowance in bytes ends it, so one fast peer does not hold up
 * the others. */
void kedgei_session_go_on(struct kedgei_session *s)
{
    int err = KEDGE_OK;
    s->link.stream.allowance = KEDGEI_TURN_MAX;
    if (s->stage == KEDGEI_SHAKING) {
        err = shake_hands(s);
    }
    while (!err && step(s, &err)) { /* ends with the turn's allowance */
    }
    if (!err && s->link.first) {
        err = send_queued(s);
    }
    if (err && err != KEDGE_E_BUSY) {
        fail(s, err);
    } else {
        watch(s);
    }
}

/* What left may have been this peer's own share of memory: then it goes on at once. */
void kedgei_session_flush(struct kedgei_session *s)
{
    if (s->stage == KEDGEI_DEAD || s->stage == KEDGEI_LINGERING) {
        return;
    }
    int err = send_queued(s);
    if (err) {
        fail(s, err);
    } else if (s->waiting == KEDGEI_WAIT_OWN) {
        kedgei_session_go_on(s);
    } else {
        watch(s);
    }
}

/* TLS may want to write in order to read, or read in order to write (a key update), so the events
 * say only that something can be done, not what. */
void kedgei_session_event(void *session, uint32_t events)
{
    struct kedgei_session *s = session;
    if (s->stage == KEDGEI_DEAD) {
        return; /* closed earlier in this turn */
    }
    if (s->stage == KEDGEI_LINGERING) {
        drain_lingering(s);
        return;
    }
    s->has_spoken = s->has_spoken || (events & EPOLLIN) != 0;
    if (s->waiting != KEDGEI_WAIT_NOT && (events & (EPOLLERR | EPOLLHUP))) {
        kedgei_session_close(s); /* receiving would have told */
        return;
    }
    if ((events & EPOLLOUT) && s->link.first) {
        kedgei_session_flush(s);
    }
    bool reads = (events & ~(uint32_t)EPOLLOUT) || s->stage == KEDGEI_SHAKING || s->link.stream.wants_write;
    if (reads && s->stage != KEDGEI_DEAD && s->waiting == KEDGEI_WAIT_NOT) {
        kedgei_session_go_on(s);
    }
}

/* From the head of each queue until its first does not fit. At most SERVE_TURN of each in a turn,
 * so that thousands of waiting sessions do not keep the loop from its descriptors. */
void kedgei_sessions_serve_waiting(struct kedgei_hub *hub)
{
    struct kedge_net_server *server = (struct kedge_net_server *)hub;
    server->hub.freed = false;
    for (int queue = 0; queue < KEDGEI_WAIT_QUEUES; queue++) {
        for (int i = 0; i < SERVE_TURN && server->waiting[queue]; i++) {
            struct kedgei_session *s = server->waiting[queue];
            kedgei_session_go_on(s);
            if (server->waiting[queue] == s) {
                break; /* still no room for the first, so none for those behind it */
            }
            server->hub.freed = server->hub.freed || i == SERVE_TURN - 1; /* the others in the next turn */
        }
    }
}
