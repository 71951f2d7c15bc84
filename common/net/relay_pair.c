/* One connection of a relay: a client, a server, a buffer each way. It goes from asked (the CONNECT is
 * read) over resolving and dialling to open.
 *
 * What each end waits for follows from the buffers alone: an end is read while its buffer has room, and
 * written while the other end's buffer holds bytes. So a slow reader slows its sender by TCP's own window,
 * and the relay never holds more than two buffers for a pair. An end that closes one direction is passed
 * on as a half-close, after its last byte.
 *
 * The rate is a bucket of bytes for each direction, filled by the loop's tick; an end whose bucket is
 * empty is not read. */
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/mem.h"
#include "common/base/os/log.h"
#include "common/net/relay_state.h"
#include "common/net/socket.h"

#define NS_PER_S UINT64_C(1000000000)
enum { HEAD_S = 10, DIAL_S = 10 };

static struct kedgei_end *other(struct kedgei_end *e)
{
    return e == &e->pair->client ? &e->pair->server : &e->pair->client;
}

static void end_free(struct kedge_relay *r, struct kedgei_end *e)
{
    if (e->fd >= 0) {
        kedgei_loop_remove(&r->loop, e->fd);
        close(e->fd);
        e->fd = -1;
    }
    kedge_mem_free(e->buffer);
    e->buffer = NULL;
}

/* The resolver's thread may still run; it has its own reference (resolve.c). */
static void drop_resolution(struct kedgei_pair *p)
{
    if (p->resolution) {
        if (p->state == KEDGEI_PAIR_RESOLVING) {
            kedgei_loop_remove(&p->relay->loop, kedgei_resolve_fd(p->resolution));
        }
        kedgei_resolve_end(p->resolution);
        p->resolution = NULL;
    }
}

void kedgei_pair_close(struct kedgei_pair *p, const char *why)
{
    kedge_log(KEDGE_LOG_DEBUG, "relay", "%s; up %llu bytes, down %llu", why,
              (unsigned long long)p->client.bytes, (unsigned long long)p->server.bytes);
    drop_resolution(p);
    end_free(p->relay, &p->client);
    end_free(p->relay, &p->server);
    p->state = KEDGEI_PAIR_DONE;
}

/* A client gets no server. One that asked by CONNECT is told, there is room for a line in an empty socket;
 * any other would take the line for what its server says, and so for the wrong server. */
static void refuse(struct kedgei_pair *p, unsigned status)
{
    char line[64];
    int n = snprintf(line, sizeof line, "HTTP/1.1 %u Refused\r\nConnection: close\r\n\r\n", status);
    ssize_t sent =
        p->relay->options.connect ? send(p->client.fd, line, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT) : 0;
    (void)sent;
    kedgei_pair_close(p, "refused");
}

static void watch(struct kedgei_end *e, uint32_t events)
{
    if (e->fd >= 0 && e->watched != events) {
        kedgei_loop_change(&e->pair->relay->loop, e->fd, events, e);
        e->watched = events;
    }
}

/* What each end waits for follows from the buffers. */
static void watch_both(struct kedgei_pair *p)
{
    struct kedgei_end *ends[] = {&p->client, &p->server};
    bool bounded = p->relay->options.rate > 0;
    for (size_t i = 0; i < 2; i++) {
        struct kedgei_end *e = ends[i], *o = other(e);
        bool room = !e->ended && e->end < KEDGEI_RELAY_BUFFER;
        bool may = !bounded || e->allowance > 0;
        p->relay->throttled = p->relay->throttled || (room && !may);
        watch(e, (room && may ? (uint32_t)EPOLLIN : 0) | (o->begin < o->end ? (uint32_t)EPOLLOUT : 0));
    }
}

/* False when the connection is lost. */
static bool take(struct kedgei_end *e)
{
    size_t room = KEDGEI_RELAY_BUFFER - e->end;
    if (e->pair->relay->options.rate > 0 && room > e->allowance) {
        room = (size_t)e->allowance;
    }
    if (room == 0 || e->ended) {
        return true;
    }
    ssize_t n = recv(e->fd, e->buffer + e->end, room, 0);
    if (n < 0) {
        return errno == EAGAIN || errno == EINTR;
    }
    e->ended = n == 0;
    e->end += (size_t)n;
    e->bytes += (uint64_t)n;
    e->allowance -= e->pair->relay->options.rate > 0 ? (uint64_t)n : 0;
    return true;
}

/* Writes at the other end what `e` has read; false when the connection is lost. */
static bool give(struct kedgei_end *e)
{
    struct kedgei_end *to = other(e);
    while (e->begin < e->end) {
        ssize_t n = send(to->fd, e->buffer + e->begin, e->end - e->begin, MSG_NOSIGNAL);
        if (n < 0) {
            return errno == EAGAIN || errno == EINTR;
        }
        e->begin += (size_t)n;
    }
    e->begin = e->end = 0;
    if (e->ended && !to->shut) {
        to->shut = true;
        (void)shutdown(to->fd, SHUT_WR);
    }
    return true;
}

/* Both directions after any event: bytes that were read for one end may be written at the other at
 * once. */
static void move(struct kedgei_end *e, uint32_t events)
{
    struct kedgei_pair *p = e->pair;
    bool well =
        !(events & EPOLLERR) && (!(events & (EPOLLIN | EPOLLHUP)) || take(e)) && give(e) && give(other(e));
    if (!well) {
        kedgei_pair_close(p, "lost");
        return;
    }
    bool all = p->client.ended && p->server.ended && p->client.begin == p->client.end
               && p->server.begin == p->server.end;
    if (all
        || ((events & EPOLLHUP)
            && e->shut)) { /* both ends are gone: what one still had to say has no reader */
        kedgei_pair_close(p, "ended");
    } else {
        watch_both(p);
    }
}

/* ---- reaching the server ---- */

/* A name may have several addresses; each is tried in turn, in the resolver's order. */
static void dial_next(struct kedgei_pair *p, uint64_t now_ns)
{
    struct kedge_relay *r = p->relay;
    end_free(r, &p->server);
    int fd = -1;
    while (p->next && fd < 0) {
        fd = kedgei_socket_connect(p->next->ai_addr, p->next->ai_addrlen);
        p->next = p->next->ai_next;
    }
    p->server.fd = fd;
    p->server.watched = EPOLLOUT;
    if (fd < 0 || kedgei_loop_add(&r->loop, fd, EPOLLOUT, &p->server) != KEDGE_OK) {
        refuse(p, 502);
        return;
    }
    p->moved_ns = now_ns;
}

static void resolved(struct kedgei_pair *p, uint64_t now_ns)
{
    kedgei_loop_remove(&p->relay->loop, kedgei_resolve_fd(p->resolution));
    p->state = KEDGEI_PAIR_DIALLING;
    p->next = kedgei_resolve_list(p->resolution);
    dial_next(p, now_ns);
}

static void reach(struct kedgei_pair *p, const struct kedgei_address *to, uint64_t now_ns)
{
    watch(&p->client, 0);
    p->moved_ns = now_ns;
    if (kedgei_resolve_begin(to->host, to->port, &p->resolution) != KEDGE_OK) {
        refuse(p, 503);
        return;
    }
    p->state = KEDGEI_PAIR_RESOLVING;
    if (kedgei_loop_add(&p->relay->loop, kedgei_resolve_fd(p->resolution), EPOLLIN, &p->resolving)
        != KEDGE_OK) {
        p->state = KEDGEI_PAIR_DIALLING; /* it is not watched */
        refuse(p, 503);
    }
}

static void dialled(struct kedgei_pair *p, uint64_t now_ns)
{
    static const char yes[] = "HTTP/1.1 200 Connected\r\n\r\n";
    if (kedgei_socket_error(p->server.fd) != 0) {
        dial_next(p, now_ns);
        return;
    }
    p->server.buffer = kedge_mem_new(KEDGEI_RELAY_BUFFER, 1);
    if (!p->server.buffer) {
        refuse(p, 503);
        return;
    }
    drop_resolution(p);
    p->state = KEDGEI_PAIR_OPEN;
    p->moved_ns = now_ns;
    if (p->relay->options.connect) { /* the first that the client hears */
        memcpy(p->server.buffer, yes, sizeof yes - 1);
        p->server.end = sizeof yes - 1;
    }
    move(&p->client, 0);
}

/* A client of CONNECT says where it wants to; what it sends after that waits for the server. */
static void asked(struct kedgei_pair *p, uint64_t now_ns)
{
    struct kedgei_end *e = &p->client;
    struct kedgei_address to;
    unsigned status = 0;
    while (status == 0) {
        ssize_t n = recv(e->fd, e->buffer + e->end, 1, 0);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
            return;
        }
        if (n <= 0) {
            kedgei_pair_close(p, "gave up asking");
            return;
        }
        status = kedgei_proxy_target(kedge_view_of(e->buffer, ++e->end), &to);
    }
    bool allowed = false;
    for (size_t i = 0; i < p->relay->target_count && status == 200; i++) {
        allowed = allowed
                  || (strcmp(p->relay->targets[i].host, to.host) == 0
                      && strcmp(p->relay->targets[i].port, to.port) == 0);
    }
    e->end = 0;
    if (status != 200 || !allowed) {
        refuse(p, status != 200 ? status : 403);
        return;
    }
    reach(p, &to, now_ns);
}

/* ---- events ---- */

void kedgei_pair_begin(struct kedge_relay *r, struct kedgei_pair *p, int fd, uint64_t now_ns)
{
    struct in6_addr source = p->source;
    *p = (struct kedgei_pair){.relay = r, .source = source, .moved_ns = now_ns, .state = KEDGEI_PAIR_ASKED};
    p->client = (struct kedgei_end){.pair = p, .fd = fd, .watched = EPOLLIN};
    p->server = (struct kedgei_end){.pair = p, .fd = -1};
    p->resolving = (struct kedgei_end){.pair = p, .fd = -1};
    p->client.buffer = kedge_mem_new(KEDGEI_RELAY_BUFFER, 1);
    p->client.allowance = p->server.allowance = r->options.rate;
    if (!p->client.buffer || kedgei_loop_add(&r->loop, fd, EPOLLIN, &p->client) != KEDGE_OK) {
        kedgei_pair_close(p, "no memory");
    } else if (!r->options.connect) {
        reach(p, &r->targets[0], now_ns);
    }
}

void kedgei_pair_event(struct kedgei_end *e, uint32_t events, uint64_t now_ns)
{
    struct kedgei_pair *p = e->pair;
    switch (p->state) {
    case KEDGEI_PAIR_FREE:
    case KEDGEI_PAIR_DONE:
        return; /* an event from before it was closed */
    case KEDGEI_PAIR_ASKED:
        asked(p, now_ns);
        return;
    case KEDGEI_PAIR_RESOLVING:
    case KEDGEI_PAIR_DIALLING:
        if (e == &p->client) { /* not watched: it is gone */
            kedgei_pair_close(p, "gone before it was connected");
        } else if (e == &p->resolving && p->state == KEDGEI_PAIR_RESOLVING) {
            resolved(p, now_ns);
        } else if (e == &p->server) {
            dialled(p, now_ns);
        }
        return;
    case KEDGEI_PAIR_OPEN:
        p->moved_ns = now_ns;
        move(e, events);
        return;
    }
}

void kedgei_pair_tick(struct kedgei_pair *p, uint64_t now_ns, uint64_t allowance)
{
    uint64_t most = p->state == KEDGEI_PAIR_OPEN    ? p->relay->options.idle_s * NS_PER_S
                    : p->state == KEDGEI_PAIR_ASKED ? HEAD_S * NS_PER_S
                                                    : DIAL_S * NS_PER_S;
    if (p->state == KEDGEI_PAIR_FREE || p->state == KEDGEI_PAIR_DONE) {
        return;
    }
    if (now_ns - p->moved_ns > most) {
        kedgei_pair_close(p, "stood still for too long");
        return;
    }
    if (p->state == KEDGEI_PAIR_OPEN && p->relay->options.rate > 0) {
        struct kedgei_end *ends[] = {&p->client, &p->server};
        for (size_t i = 0; i < 2; i++) { /* at most a second's worth at once */
            uint64_t sum = ends[i]->allowance + allowance;
            ends[i]->allowance = sum < p->relay->options.rate ? sum : p->relay->options.rate;
        }
        watch_both(p);
    }
}
