/* Beginnings and ends of a server's connections, on the network thread.
 *
 * A session ends in two steps. It is closed as soon as there is a reason: its socket and its place go, and
 * the charges of what it was receiving and sending. Its memory goes at the end of the turn (graves), when
 * no event can name it, and only if no request of it is still with the application.
 *
 * Every stage has a time: to finish the handshake and greet, to move a frame, to go away after a refusal.
 * The sweep looks at all sessions four times a second, which is cheaper than a timer for each. */
#include <string.h>
#include <unistd.h>

#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "common/net/server_state.h"
#include "common/net/socket.h"

#define NS_PER_MS 1000000u
enum { ACCEPT_TURN = 64, LINGER_MS = 1000 };

/* ---- begin ---- */

/* A session for a connection whose peer is `from`; owns fd. */
static bool begin(const struct kedgei_session *from, int fd)
{
    struct kedge_net_server *server = from->server;
    struct kedgei_session *s = kedge_mem_new(1, sizeof *s);
    kedgei_socket_prepare(fd, from->who.kind);
    if (!s
        || kedgei_link_init(&s->link, fd, from->who.kind == KEDGE_NET_TLS ? server->hub.tls : NULL,
                            server->frame_max)) {
        kedge_mem_free(s);
        return false;
    }
    s->server = server;
    s->stage = KEDGEI_SHAKING;
    s->waiting = KEDGEI_WAIT_NOT;
    s->since_ns = kedge_os_now_ns();
    s->events = EPOLLIN;
    s->refs = 1;
    s->who.kind = from->who.kind;
    s->class = from->class;
    memcpy(s->address, from->address, sizeof s->address);
    if (kedgei_loop_add(&server->hub.loop, fd, s->events, s) != KEDGE_OK) {
        kedgei_link_deinit(&s->link);
        kedge_mem_free(s);
        return false;
    }
    pthread_mutex_lock(&server->hub.mutex);
    server->counters.handshakes++;
    s->next = server->sessions;
    if (s->next) {
        s->next->prev = s;
    }
    server->sessions = s;
    server->hub.any = true;
    pthread_mutex_unlock(&server->hub.mutex);
    kedgei_strangers_enter(s);
    return true;
}

/* Nothing is spent on a connection before it is known that it may stay: no memory, no option of its socket.
 */
void kedgei_session_accept(struct kedgei_hub *hub, struct kedgei_listener *listener)
{
    struct kedge_net_server *server = (struct kedge_net_server *)hub;
    struct kedgei_session from = {.server = server, .who = {.kind = listener->address.kind}};
    bool is_ipc = from.who.kind == KEDGE_NET_IPC;
    from.class = is_ipc && server->knows ? KEDGEI_DOOR : KEDGEI_STRANGER;
    for (int i = 0; i < ACCEPT_TURN && !server->hub.deaf; i++) {
        int fd = kedgei_socket_accept(listener->fd, from.address);
        if (fd < 0) {
            kedgei_hub_accept_failed(hub);
            return;
        }
        if ((is_ipc && !kedgei_socket_is_own_user(fd)) || !kedgei_strangers_admit(server, &from)) {
            kedgei_session_count_refused(server);
            close(fd);
        } else if (!begin(&from, fd)) {
            kedgei_session_count_refused(server);
        }
    }
}

/* ---- end ---- */

/* What the session held of the budget is free at once; its memory goes at the end of the turn, since other
 * events of the turn may still point to it. */
void kedgei_session_close(struct kedgei_session *s)
{
    struct kedge_net_server *server = s->server;
    if (s->stage == KEDGEI_DEAD) {
        return;
    }
    kedgei_session_end_wait(s);
    pthread_mutex_lock(&server->hub.mutex);
    *(s->prev ? &s->prev->next : &server->sessions) = s->next;
    if (s->next) {
        s->next->prev = s->prev;
    }
    *(s->is_open ? &server->counters.connections : &server->counters.handshakes) -= 1;
    s->is_open = false;
    if (s->link.in.frame) {
        kedgei_release(s, s->link.in.frame->is_small, s->link.in.frame->charge);
    }
    for (struct kedgei_frame *f = s->link.first; f; f = f->next) {
        kedgei_release(s, f->is_small, f->charge);
    }
    pthread_mutex_unlock(&server->hub.mutex);
    kedgei_strangers_leave(s);
    s->stage = KEDGEI_DEAD;
    kedgei_loop_remove(&server->hub.loop, s->link.stream.fd);
    kedgei_link_deinit(&s->link);
    server->hub.freed = true;
    s->wait_next = server->graves;
    server->graves = s;
}

static uint64_t shorter(uint32_t ms, uint64_t ns)
{
    return (uint64_t)ms * NS_PER_MS < ns ? (uint64_t)ms * NS_PER_MS : ns;
}

/* It has had its time: to go, to say who it is, or to move what is on its way. */
static bool is_overdue(const struct kedgei_session *s, uint64_t now_ns)
{
    uint64_t age = now_ns > s->since_ns ? now_ns - s->since_ns : 0;
    if (s->stage == KEDGEI_LINGERING) {
        return age > (uint64_t)LINGER_MS * NS_PER_MS;
    }
    if (s->stage == KEDGEI_SHAKING || s->stage == KEDGEI_GREETED) {
        return age > (uint64_t)KEDGE_NET_HANDSHAKE_MS * NS_PER_MS;
    }
    uint64_t stall = s->server->stall_ns;
    if (s->stage == KEDGEI_OPEN && s->class == KEDGEI_STRANGER) {
        return age > shorter(KEDGE_NET_STRANGER_MS, stall)
               || kedgei_link_is_stuck(&s->link, now_ns, shorter(KEDGE_NET_STRANGER_FRAME_MS, stall));
    }
    return s->stage == KEDGEI_OPEN && kedgei_link_is_stuck(&s->link, now_ns, stall);
}

/* True when there is a reason to come back soon: a session whose time may pass, or a line that the
 * log has not got yet. */
bool kedgei_sessions_sweep(struct kedgei_hub *hub, uint64_t now_ns)
{
    struct kedge_net_server *server = (struct kedge_net_server *)hub;
    struct kedgei_session *next;
    for (struct kedgei_session *s = server->sessions; s; s = next) {
        next = s->next;
        if (is_overdue(s, now_ns)) {
            bool silent = s->stage == KEDGEI_SHAKING || s->stage == KEDGEI_GREETED;
            pthread_mutex_lock(&server->hub.mutex);
            server->counters.silent += silent ? 1 : 0;
            pthread_mutex_unlock(&server->hub.mutex);
            kedgei_session_close(s);
        } else if (s->waiting == KEDGEI_WAIT_PAUSE && now_ns >= s->paused_until_ns) {
            kedgei_session_end_wait(s);
            kedgei_session_go_on(s);
        }
    }
    kedgei_parties_sweep(&server->parties, now_ns);
    bool unsaid = kedgei_pressure_say(&server->hub.pressure, "requests", now_ns);
    return server->sessions != NULL || unsaid;
}

/* At the end of a turn: the events that the kernel gave for this turn may name a session that an
 * earlier one of them has closed. */
void kedgei_sessions_bury(struct kedgei_hub *hub)
{
    struct kedge_net_server *server = (struct kedge_net_server *)hub;
    pthread_mutex_lock(&server->hub.mutex);
    for (struct kedgei_session *s = server->graves, *next; s; s = next) {
        next = s->wait_next;
        kedgei_session_drop(s);
    }
    server->graves = NULL;
    pthread_mutex_unlock(&server->hub.mutex);
}
