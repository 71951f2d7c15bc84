/* A connection of the HTTP server, from its handshake to its close. Everything here runs on the
 * network thread.
 *
 * A session is in one stage at a time, and each stage knows what it waits for and for how long.
 * Requests of one connection are served one after the other: the next head is looked at only when
 * the answer before it has left, so no answers can be mixed up and a client cannot pile up work.
 * Memory for one piece of an answer is charged before the application sees the request; if there is none the
 * session waits in a queue and is not read. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "common/base/try.h"
#include "common/net/socket.h"
#include "common/net/web/http_state.h"

#define NS_PER_MS 1000000u
#define NS_PER_S 1000000000u
enum { LINGER_MS = 1000, TURN = 64 * 1024, RATE_MIN = 4 * 1024 };

static void go_on(struct kedgei_http_session *s);

void kedgei_http_enter(struct kedgei_http_session *s, enum kedgei_http_stage stage)
{
    s->stage = stage;
    s->since_ns = s->moved_ns = kedge_os_now_ns();
}

static void count(struct kedge_http_server *server, uint64_t *counter)
{
    pthread_mutex_lock(&server->hub.mutex);
    *counter += 1;
    pthread_mutex_unlock(&server->hub.mutex);
}

/* ---- memory ---- */

/* The budget is the network thread's own; the lock is for those who read the counter. */
static void set_charge(struct kedgei_http_session *s, size_t charge)
{
    struct kedge_http_server *server = s->server;
    server->hub.freed = server->hub.freed || charge < s->charge;
    server->budget = server->budget - s->charge + charge;
    s->charge = charge;
    pthread_mutex_lock(&server->hub.mutex);
    server->counters.bytes_in_flight = server->budget;
    pthread_mutex_unlock(&server->hub.mutex);
}

static void end_wait(struct kedgei_http_session *s)
{
    struct kedge_http_server *server = s->server;
    struct kedgei_http_session *before = NULL, *at = server->waiting;
    for (; at && at != s; before = at, at = at->wait_next) {
    }
    if (at) {
        *(before ? &before->wait_next : &server->waiting) = s->wait_next;
        server->waiting_last = server->waiting_last == s ? before : server->waiting_last;
        s->wait_next = NULL;
    }
}

static void begin_wait(struct kedgei_http_session *s)
{
    struct kedge_http_server *server = s->server;
    *(server->waiting ? &server->waiting_last->wait_next : &server->waiting) = s;
    server->waiting_last = s;
    s->wait_next = NULL;
    kedgei_http_enter(s, KEDGEI_HTTP_WAITING);
    count(server, &server->counters.waits);
}

void kedgei_http_session_drop(struct kedgei_http_session *s)
{
    if (--s->refs == 0) {
        kedge_mem_free(s);
    }
}

/* ---- the end ---- */

/* A request that is with the application comes back later and finds the session dead; its memory
 * stays until then. */
void kedgei_http_session_close(struct kedgei_http_session *s)
{
    struct kedge_http_server *server = s->server;
    if (s->stage == KEDGEI_HTTP_DEAD) {
        return;
    }
    end_wait(s);
    set_charge(s, 0);
    if (s->stage != KEDGEI_HTTP_HELD) { /* else it comes back from the application */
        kedgei_http_request_free(s->req);
    }
    s->req = NULL;
    kedge_mem_free(s->out);
    s->out = NULL;
    s->stage = KEDGEI_HTTP_DEAD;
    kedgei_loop_remove(&server->hub.loop, s->stream.fd);
    kedgei_stream_deinit(&s->stream);
    *(s->prev ? &s->prev->next : &server->sessions) = s->next;
    if (s->next) {
        s->next->prev = s->prev;
    }
    pthread_mutex_lock(&server->hub.mutex);
    server->counters.connections--;
    pthread_mutex_unlock(&server->hub.mutex);
    s->wait_next = server->graves;
    server->graves = s;
}

void kedgei_http_bury(struct kedgei_hub *hub)
{
    struct kedge_http_server *server = (struct kedge_http_server *)hub;
    pthread_mutex_lock(&server->hub.mutex);
    for (struct kedgei_http_session *s = server->graves, *next; s; s = next) {
        next = s->wait_next;
        kedgei_http_session_drop(s);
    }
    server->graves = NULL;
    pthread_mutex_unlock(&server->hub.mutex);
}

/* Nothing more is sent; wait a moment for the client to take what was. What it still sends, such as the body
 * of a refused POST, is thrown away for that long, piece by piece: a close with bytes unread would reset the
 * connection, and the answer could be lost. */
static void linger(struct kedgei_http_session *s)
{
    set_charge(s, 0);
    kedgei_stream_goodbye(&s->stream);
    kedgei_http_enter(s, KEDGEI_HTTP_LINGERING);
}

static void drain_lingering(struct kedgei_http_session *s)
{
    uint8_t scrap[4096];
    ssize_t n = recv(s->stream.fd, scrap, sizeof scrap, 0);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
        kedgei_http_session_close(s);
    }
}

/* Answers by ourselves, and ends the connection: what follows on it may not be what it seems. */
static void refuse(struct kedgei_http_session *s, unsigned status)
{
    bool is_head = s->req && s->req->head.method == KEDGE_HTTP_HEAD;
    end_wait(s);
    set_charge(s, 0);
    kedgei_http_request_free(s->req);
    s->req = NULL;
    s->closes = true;
    s->sent = 0;
    kedge_mem_free(s->out);
    s->out = kedgei_http_refusal(status, !is_head);
    kedgei_http_enter(s, KEDGEI_HTTP_SENDING); /* without an answer it ends there at once */
}

/* ---- requests ---- */

/* A whole head is there, and room for a piece of the answer. */
static void begin_request(struct kedgei_http_session *s)
{
    set_charge(s, KEDGE_HTTP_PIECE_MAX);
    kedgei_http_enter(s, KEDGEI_HTTP_HELD);
    kedgei_http_hand_over(s->req);
}

static bool has_room(const struct kedge_http_server *server)
{
    return server->budget + KEDGE_HTTP_PIECE_MAX <= server->budget_max;
}

/* First come, first served. */
void kedgei_http_serve_waiting(struct kedgei_hub *hub)
{
    struct kedge_http_server *server = (struct kedge_http_server *)hub;
    server->hub.freed = false;
    while (server->waiting && has_room(server)) {
        struct kedgei_http_session *s = server->waiting;
        end_wait(s);
        begin_request(s);
        go_on(s);
    }
}

/* False while the head is not whole. */
static bool look_for_head(struct kedgei_http_session *s)
{
    struct kedge_http_head head;
    unsigned status = kedge_http_find_end(kedge_view_of(s->in, s->in_len), s->seen, &s->head_len);
    s->seen = s->in_len;
    if (!status && s->head_len == 0) {
        return false;
    }
    status = status ? status : kedge_http_parse(kedge_view_of(s->in, s->head_len), &head);
    if (!status) {
        s->req = kedge_mem_new(1, sizeof *s->req);
        status = s->req ? 0 : 503;
    }
    if (status) {
        refuse(s, status);
        return true;
    }
    *s->req = (struct kedge_http_request){.server = s->server, .session = s, .head = head};
    if (!kedgei_http_take_turn(s)) {
        refuse(s, 429);
        return true;
    }
    if (s->server->waiting || !has_room(s->server)) {
        begin_wait(s);
    } else {
        begin_request(s);
    }
    return true;
}

/* Others of this party take their time over their answers, and are as many as may be. */
static bool is_crowded(const struct kedgei_http_session *s, uint32_t party)
{
    unsigned count_of_party = 0;
    for (const struct kedgei_http_session *o = s->server->sessions; o && party != 0; o = o->next) {
        count_of_party += o != s && o->req && o->req->leaves && o->req->party == party;
    }
    return count_of_party >= s->server->party_max;
}

/* Before the first byte has left, an answer can still become an error; later the connection ends early,
 * which the client sees from the length that it was told. A party that already takes as many answers as it
 * may is told to come back, or one tenant's slow downloads would keep the others out. */
void kedgei_http_answered(struct kedgei_http_session *s, struct kedge_http_request *req)
{
    if (s->stage == KEDGEI_HTTP_DEAD) {
        kedgei_http_request_free(req);
        return;
    }
    if (!req->out) {
        if (req->begun) {
            s->req = NULL; /* the client has fewer bytes than it was told, and notices */
            kedgei_http_request_free(req);
            kedgei_http_session_close(s);
            return;
        }
        refuse(s, 500);
        go_on(s);
        return;
    }
    if (!req->leaves && is_crowded(s, req->party)) {
        refuse(s, 503);
        go_on(s);
        return;
    }
    req->leaves = true;
    if (req->party != 0) {
        kedgei_http_recognise(s, req->party);
    }
    s->out = req->out;
    req->out = NULL;
    s->sent = 0;
    s->closes = req->head.closes;
    if (req->left == 0) {
        set_charge(s, s->out->len < s->charge ? s->out->len : s->charge);
    }
    kedgei_http_enter(s, KEDGEI_HTTP_SENDING);
    go_on(s);
}

/* All of `out` has left: more of the answer, the next request, or the end. */
static void sent_all(struct kedgei_http_session *s)
{
    kedge_mem_free(s->out);
    s->out = NULL;
    if (s->req && s->req->left > 0) {
        kedgei_http_enter(s, KEDGEI_HTTP_HELD);
        kedgei_http_hand_over(s->req);
        return;
    }
    kedgei_http_request_free(s->req);
    s->req = NULL;
    if (s->closes) {
        linger(s);
        return;
    }
    set_charge(s, 0);
    s->in_len -= s->head_len;
    memmove(s->in, s->in + s->head_len, s->in_len);
    s->seen = s->head_len = 0;
    kedgei_http_enter(s, KEDGEI_HTTP_HEAD);
}

/* ---- bytes ---- */

/* Into the session's own buffer, whose size is the largest head. */
static int receive(struct kedgei_http_session *s)
{
    long n = kedgei_stream_read(&s->stream, s->in + s->in_len, sizeof s->in - s->in_len);
    if (n <= 0) {
        return n == 0 ? KEDGE_E_BUSY : (int)n;
    }
    if (s->in_len == 0) {
        s->since_ns = kedge_os_now_ns(); /* from now on it must get on */
    }
    s->in_len += (size_t)n;
    return KEDGE_OK;
}

/* An answer for which there was no memory ends the connection here. */
static int send_out(struct kedgei_http_session *s)
{
    KEDGE_TRY_MEM(s->out);
    long n = kedgei_stream_write(&s->stream, s->out->bytes + s->sent, s->out->len - s->sent);
    if (n <= 0) {
        return n == 0 ? KEDGE_E_BUSY : (int)n;
    }
    s->sent += (size_t)n;
    s->moved_ns = kedge_os_now_ns();
    if (s->sent == s->out->len) {
        sent_all(s);
    }
    return KEDGE_OK;
}

static void watch(struct kedgei_http_session *s)
{
    bool reads =
        s->stage == KEDGEI_HTTP_SHAKING || s->stage == KEDGEI_HTTP_HEAD || s->stage == KEDGEI_HTTP_LINGERING;
    bool writes =
        s->stage == KEDGEI_HTTP_SENDING || (s->stage != KEDGEI_HTTP_LINGERING && s->stream.wants_write);
    uint32_t events = (reads ? (uint32_t)EPOLLIN : 0) | (writes ? (uint32_t)EPOLLOUT : 0);
    if (s->stage != KEDGEI_HTTP_DEAD && events != s->events) {
        s->events = events;
        kedgei_loop_change(&s->server->hub.loop, s->stream.fd, events, s);
    }
}

/* One step: a stage may change, or bytes move. KEDGE_E_BUSY: nothing can be done before the next event. */
static int step(struct kedgei_http_session *s)
{
    struct kedge_public_key none;
    int err;
    switch (s->stage) {
    case KEDGEI_HTTP_SHAKING:
        err = kedgei_stream_handshake(&s->stream, &none);
        if (!err) {
            kedgei_http_enter(s, KEDGEI_HTTP_HEAD);
        }
        return err;
    case KEDGEI_HTTP_HEAD:
        if (s->in_len > s->seen && look_for_head(s)) {
            return KEDGE_OK;
        }
        return receive(s);
    case KEDGEI_HTTP_SENDING:
        return send_out(s);
    case KEDGEI_HTTP_WAITING:
    case KEDGEI_HTTP_HELD:
    case KEDGEI_HTTP_LINGERING:
    case KEDGEI_HTTP_DEAD:
        break;
    }
    return KEDGE_E_BUSY;
}

/* Receives and sends all that is possible now. */
static void go_on(struct kedgei_http_session *s)
{
    int err = KEDGE_OK;
    s->stream.allowance = TURN;
    while (!err) { /* ends with the turn's allowance, with a full socket, or with a request handed over */
        err = step(s);
    }
    if (err == KEDGE_E_PEER_AUTH && s->stage == KEDGEI_HTTP_SHAKING) {
        count(s->server, &s->server->counters.refused);
        linger(s); /* TLS has sent an alert that says why */
    } else if (err != KEDGE_E_BUSY) {
        kedgei_http_session_close(s);
    }
    watch(s);
}

void kedgei_http_event(void *session, uint32_t events)
{
    struct kedgei_http_session *s = session;
    bool gone = (events & (EPOLLHUP | EPOLLERR)) != 0;
    if (s->stage == KEDGEI_HTTP_DEAD) {
        return;
    }
    if (s->stage == KEDGEI_HTTP_LINGERING) {
        drain_lingering(s);
    } else if (gone && (s->stage == KEDGEI_HTTP_HELD || s->stage == KEDGEI_HTTP_WAITING)) {
        kedgei_http_session_close(s);
    } else {
        go_on(s);
    }
}

/* ---- time ---- */

static uint64_t rate_ns(size_t len)
{
    return (uint64_t)len / RATE_MIN * NS_PER_S;
}

/* Each stage has its own time. Where the length is known, time grows with it at RATE_MIN: a slow line may
 * take long for a large answer, but nobody can hold memory for ever by taking a byte now and then. */
static void check_time(struct kedgei_http_session *s, uint64_t now_ns)
{
    const struct kedge_http_server *server = s->server;
    uint64_t age = now_ns > s->since_ns ? now_ns - s->since_ns : 0;
    uint64_t still = now_ns > s->moved_ns ? now_ns - s->moved_ns : 0;
    switch (s->stage) {
    case KEDGEI_HTTP_SHAKING:
        if (age > (uint64_t)KEDGE_HTTP_HANDSHAKE_MS * NS_PER_MS) {
            kedgei_http_session_close(s);
        }
        break;
    case KEDGEI_HTTP_HEAD:
        if (s->in_len == 0 && age > server->idle_ns) {
            linger(s);
            watch(s);
        } else if (s->in_len > 0 && age > server->head_ns) {
            refuse(s, 408);
            go_on(s);
        }
        break;
    case KEDGEI_HTTP_WAITING:
        if (age > server->wait_ns) {
            refuse(s, 503);
            go_on(s);
        }
        break;
    case KEDGEI_HTTP_SENDING:
        if (still > server->stall_ns || age > server->stall_ns + rate_ns(s->out ? s->out->len : 0)) {
            kedgei_http_session_close(s);
        }
        break;
    case KEDGEI_HTTP_LINGERING:
        if (age > (uint64_t)LINGER_MS * NS_PER_MS) {
            kedgei_http_session_close(s);
        }
        break;
    case KEDGEI_HTTP_HELD:
    case KEDGEI_HTTP_DEAD:
        break;
    }
}

bool kedgei_http_sweep(struct kedgei_hub *hub, uint64_t now_ns)
{
    struct kedge_http_server *server = (struct kedge_http_server *)hub;
    struct kedgei_http_session *next;
    for (struct kedgei_http_session *s = server->sessions; s; s = next) {
        next = s->next;
        check_time(s, now_ns);
    }
    bool unsaid = kedgei_pressure_say(&server->hub.pressure, "logs", now_ns);
    return server->sessions != NULL || unsaid;
}
