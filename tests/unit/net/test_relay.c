/* A relay between plain sockets on loopback: bytes both ways, half closes, bounds, CONNECT, and time as the
 * test has it. */
#include "common/net/relay.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "common/net/relay_state.h"
#include "tests/unit/base/check.h"

enum { PATIENCE_MS = 20000, LONG = 3 << 20 };
#define S UINT64_C(1000000000)

/* ---- sockets ---- */

static int listen_at(unsigned *ret_port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
    ck_assert_int_eq(listen(fd, 16), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&a, &len), 0);
    *ret_port = ntohs(a.sin_port);
    return fd;
}

static int connect_to(unsigned port)
{
    struct sockaddr_in a = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
    return fd;
}

static bool is_ready(int fd, short events, int ms)
{
    struct pollfd p = {.fd = fd, .events = events};
    return poll(&p, 1, ms) > 0;
}

static int accept_from(int listener)
{
    ck_assert_msg(is_ready(listener, POLLIN, PATIENCE_MS), "nobody comes");
    return accept4(listener, NULL, NULL, SOCK_CLOEXEC);
}

static void put(int fd, const char *text)
{
    ck_assert_int_eq(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

/* All that comes until `len` bytes, or the end, is there; their number. */
static size_t get(int fd, char *out, size_t len)
{
    size_t had = 0;
    for (ssize_t n = 1; had < len && n > 0; had += n > 0 ? (size_t)n : 0) {
        ck_assert_msg(is_ready(fd, POLLIN, PATIENCE_MS), "nothing comes after %zu bytes", had);
        n = recv(fd, out + had, len - had, 0);
    }
    return had;
}

static void expect(int fd, const char *text)
{
    char got[256];
    size_t len = strlen(text);
    ck_assert_uint_le(len, sizeof got);
    ck_assert_uint_eq(get(fd, got, len), len);
    ck_assert_mem_eq(got, text, len);
}

/* By an end or a reset. */
static void expect_end(int fd)
{
    char byte;
    ck_assert_msg(is_ready(fd, POLLIN, PATIENCE_MS), "it stays open");
    ck_assert_int_le(recv(fd, &byte, 1, 0), 0);
}

/* ---- a relay that runs ---- */

struct world {
    int listener;
    unsigned port; /* of the server behind the relay */
    char target[32];
    struct kedge_relay *relay;
    pthread_t thread;
};

static void *run(void *arg)
{
    kedge_relay_run(arg);
    return NULL;
}

static struct kedge_relay_options defaults(struct world *w)
{
    w->listener = listen_at(&w->port);
    snprintf(w->target, sizeof w->target, "127.0.0.1:%u", w->port);
    return (struct kedge_relay_options){
        .listen = "127.0.0.1:0", .targets = {w->target}, .connections = 8, .per_source = 8, .idle_s = 3600};
}

static void begin(struct world *w, const struct kedge_relay_options *o)
{
    struct kedge_diag d = {.text = ""};
    ck_assert_msg(kedge_relay_open(o, &w->relay, &d) == KEDGE_OK, "%s", d.text);
    ck_assert_int_eq(pthread_create(&w->thread, NULL, run, w->relay), 0);
}

static void end(struct world *w)
{
    kedge_relay_stop(w->relay);
    pthread_join(w->thread, NULL);
    kedge_relay_close(w->relay);
    if (w->listener >= 0) {
        close(w->listener);
    }
}

static int client_of(const struct world *w)
{
    return connect_to(kedge_relay_port(w->relay));
}

/* ---- bytes ---- */

START_TEST(both_ways)
{
    struct world w;
    struct kedge_relay_options o = defaults(&w);
    begin(&w, &o);
    int client = client_of(&w), server = accept_from(w.listener);
    put(client, "up");
    expect(server, "up");
    put(server, "down");
    expect(client, "down");
    ck_assert_int_eq(shutdown(client, SHUT_WR), 0); /* it has said all, and listens on */
    expect_end(server);
    put(server, "the answer");
    expect(client, "the answer");
    close(server);
    expect_end(client);
    close(client);
    client = client_of(&w);
    server = accept_from(w.listener);
    struct linger now = {.l_onoff = 1};
    ck_assert_int_eq(setsockopt(server, SOL_SOCKET, SO_LINGER, &now, sizeof now), 0);
    close(server); /* by a reset */
    expect_end(client);
    close(client);
    client = client_of(&w);
    server = accept_from(w.listener);
    end(&w); /* with a connection open */
    expect_end(client);
    expect_end(server);
    close(client);
    close(server);
}
END_TEST

/* Byte i of a stream. */
static char byte_of(size_t i, int which)
{
    return (char)(i * 31 + i / 251 + (size_t)which);
}

/* More than all buffers hold, in both directions at once, by ends that are as slow as the other. */
START_TEST(much)
{
    struct world w;
    struct kedge_relay_options o = defaults(&w);
    begin(&w, &o);
    int fds[2] = {client_of(&w), accept_from(w.listener)};
    size_t sent[2] = {0, 0}, got[2] = {0, 0};
    char piece[5000];
    bool same = true;
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(fcntl(fds[i], F_SETFL, O_NONBLOCK), 0);
    }
    uint64_t until = kedge_os_now_ns() + 60 * S;
    while ((got[0] < LONG || got[1] < LONG) && kedge_os_now_ns() < until) {
        struct pollfd p[2] = {{fds[0], POLLIN, 0}, {fds[1], POLLIN, 0}};
        for (int i = 0; i < 2; i++) {
            p[i].events |= sent[i] < LONG ? POLLOUT : 0;
        }
        (void)poll(p, 2, 1000);
        for (int i = 0; i < 2; i++) {
            size_t n = LONG - sent[i] < sizeof piece ? LONG - sent[i] : sizeof piece;
            for (size_t k = 0; k < n; k++) {
                piece[k] = byte_of(sent[i] + k, i);
            }
            ssize_t done = n > 0 ? send(fds[i], piece, n, MSG_NOSIGNAL) : 0;
            sent[i] += done > 0 ? (size_t)done : 0;
            done = recv(fds[i], piece, sizeof piece, 0);
            for (ssize_t k = 0; k < done; k++) {
                same =
                    same && piece[k] == byte_of(got[i] + (size_t)k, 1 - i); /* Check notes each assertion */
            }
            got[i] += done > 0 ? (size_t)done : 0;
        }
    }
    ck_assert(same && got[0] == LONG && got[1] == LONG);
    close(fds[0]);
    close(fds[1]);
    end(&w);
}
END_TEST

/* A reader that does not read stops the writer: the relay keeps no more than its buffer. */
START_TEST(slow_readers_stop_writers)
{
    struct world w;
    struct kedge_relay_options o = defaults(&w);
    begin(&w, &o);
    int client = client_of(&w), server = accept_from(w.listener);
    static char zeros[65536];
    size_t sent = 0;
    ck_assert_int_eq(fcntl(client, F_SETFL, O_NONBLOCK), 0);
    while (is_ready(client, POLLOUT, 500)) {
        ssize_t n = send(client, zeros, sizeof zeros, MSG_NOSIGNAL);
        sent += n > 0 ? (size_t)n : 0;
        ck_assert_uint_lt(sent, (size_t)1 << 28);
    }
    size_t got = 0;
    while (got < sent && is_ready(server, POLLIN, PATIENCE_MS)) {
        ssize_t n = recv(server, zeros, sizeof zeros, 0);
        got += n > 0 ? (size_t)n : 0;
    }
    ck_assert_uint_eq(got, sent); /* and none is lost */
    close(client);
    close(server);
    end(&w);
}
END_TEST

/* ---- bounds ---- */

START_TEST(no_more_than_may_be)
{
    struct world w;
    struct kedge_relay_options o = defaults(&w);
    o.per_source = 2;
    begin(&w, &o);
    int first = client_of(&w), one = accept_from(w.listener);
    int second = client_of(&w), two = accept_from(w.listener), third = client_of(&w);
    expect_end(third);
    close(third);
    close(first); /* makes room, once the relay has seen it */
    expect_end(one);
    close(one);
    bool taken = false;
    for (int i = 0; i < 200 && !taken; i++) {
        third = client_of(&w);
        taken = is_ready(w.listener, POLLIN, 100);
        if (!taken) {
            close(third);
        }
    }
    ck_assert(taken);
    one = accept_from(w.listener);
    put(third, "room");
    expect(one, "room");
    close(one);
    close(two);
    close(second);
    close(third);
    end(&w);
}
END_TEST

START_TEST(strangers)
{
    struct world w;
    struct kedge_relay_options o = defaults(&w);
    o.sources[0] = "10.0.0.0/8";
    o.sources[1] = "::1";
    begin(&w, &o);
    int client = client_of(&w);
    expect_end(client);
    ck_assert(!is_ready(w.listener, POLLIN, 0));
    close(client);
    end(&w);
    o = defaults(&w);
    o.sources[0] = "127.0.0.0/30";
    begin(&w, &o);
    client = client_of(&w);
    put(client, "known");
    int server = accept_from(w.listener);
    expect(server, "known");
    close(client);
    close(server);
    end(&w);
}
END_TEST

START_TEST(no_faster)
{
    struct world w;
    struct kedge_relay_options o = defaults(&w);
    o.rate = 65536;
    begin(&w, &o);
    int client = client_of(&w), server = accept_from(w.listener);
    static char some[163840];
    uint64_t began = kedge_os_now_ns();
    ck_assert_int_eq(send(client, some, sizeof some, MSG_NOSIGNAL), (ssize_t)sizeof some);
    ck_assert_uint_eq(get(server, some, sizeof some), sizeof some);
    ck_assert_uint_gt(kedge_os_now_ns() - began, S); /* a second's worth at once, then 1.5 s more */
    close(client);
    close(server);
    end(&w);
}
END_TEST

START_TEST(wrong_options)
{
    struct kedge_relay *r = NULL;
    struct kedge_diag d;
    for (int i = 0; i < 12; i++) {
        struct kedge_relay_options o = {
            .listen = "127.0.0.1:0", .targets = {"h:1"}, .connections = 1, .per_source = 1, .idle_s = 1};
        o.listen = i == 0 ? "127.0.0.1" : i == 1 ? NULL : o.listen;
        o.targets[0] = i == 2 ? NULL : i == 3 ? "h" : i == 4 ? "h:0" : i == 5 ? "*:1" : o.targets[0];
        o.targets[1] = i == 6 ? "g:1" : NULL; /* two, and nobody says which */
        o.sources[0] = i == 7 ? "10.0.0.0/33" : i == 8 ? "h" : NULL;
        o.connections = i == 9 ? KEDGE_RELAY_CONNECTIONS_MAX + 1 : 1;
        o.per_source = i == 10 ? 0 : 1;
        o.rate = i == 11 ? 1023 : 0;
        d.text[0] = '\0';
        ck_assert_msg(kedge_relay_open(&o, &r, &d) == KEDGE_E_ARG, "%d", i);
        ck_assert(d.text[0] != '\0' && r == NULL);
    }
}
END_TEST

/* ---- CONNECT ---- */

START_TEST(asked_for)
{
    struct world w;
    char text[128], refusal[64];
    struct kedge_relay_options o = defaults(&w);
    unsigned nobody;
    int closed = listen_at(&nobody);
    close(closed);
    char gone[32];
    snprintf(gone, sizeof gone, "127.0.0.1:%u", nobody);
    o.connect = true;
    o.targets[1] = gone;
    begin(&w, &o);
    int client = client_of(&w);
    snprintf(text, sizeof text, "CONNECT %s HTTP/1.1\r\nHost: x\r\n\r\nbehind it", w.target);
    put(client, text);
    int server = accept_from(w.listener);
    expect(server, "behind it"); /* what was sent with it comes through */
    expect(client, "HTTP/1.1 200 Connected\r\n\r\n");
    put(server, "yes");
    expect(client, "yes");
    close(client);
    close(server);
    const struct {
        const char *target;
        unsigned status;
    } rows[] = {{"127.0.0.1:9", 403}, {"h/x:1", 400}, {gone, 502}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        client = client_of(&w);
        snprintf(text, sizeof text, "CONNECT %s HTTP/1.1\r\n\r\n", rows[i].target);
        put(client, text);
        snprintf(refusal, sizeof refusal, "HTTP/1.1 %u ", rows[i].status);
        expect(client, refusal);
        close(client);
    }
    client = client_of(&w);
    put(client, "\x16\x03\x01"); /* TLS to a proxy that wants to be asked */
    expect(client, "HTTP/1.1 405 ");
    close(client);
    ck_assert(!is_ready(w.listener, POLLIN, 0));
    end(&w);
}
END_TEST

/* A site behind a relay shall see that there is nobody, not somebody who speaks HTTP. */
START_TEST(nobody_there)
{
    struct world w;
    struct kedge_relay_options o = defaults(&w);
    close(w.listener);
    w.listener = -1;
    begin(&w, &o);
    int client = client_of(&w);
    expect_end(client);
    close(client);
    end(&w);
}
END_TEST

/* ---- time ---- */

/* One connection of a relay that nobody runs: the test says what time it is. */
struct still {
    struct world w;
    struct kedgei_pair *pair;
    int client;
};

static void begin_still(struct still *t, bool connect, uint64_t rate, uint64_t now)
{
    int ends[2];
    struct kedge_relay_options o = defaults(&t->w);
    o.connect = connect;
    o.rate = rate;
    o.idle_s = 120;
    ck_assert_int_eq(kedge_relay_open(&o, &t->w.relay, NULL), KEDGE_OK);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    t->client = ends[0];
    t->pair = &t->w.relay->pairs[0];
    kedgei_pair_begin(t->w.relay, t->pair, ends[1], now);
}

static void end_still(struct still *t)
{
    kedge_relay_close(t->w.relay);
    close(t->w.listener);
    close(t->client);
}

/* Turns of the relay's loop at that time, until the pair is in the state. */
static void turn(struct still *t, enum kedgei_pair_state wanted, uint64_t now)
{
    struct epoll_event events[16];
    for (int i = 0; i < 400 && t->pair->state != wanted; i++) {
        int n = kedgei_loop_wait(&t->w.relay->loop, events, 16, 50);
        for (int k = 0; k < n; k++) {
            if (events[k].data.ptr && events[k].data.ptr != t->w.relay) {
                kedgei_pair_event(events[k].data.ptr, events[k].events, now);
            }
        }
    }
    ck_assert_int_eq(t->pair->state, wanted);
}

START_TEST(heads_that_never_end)
{
    struct still t;
    begin_still(&t, true, 0, 100 * S);
    ck_assert_int_eq(t.pair->state, KEDGEI_PAIR_ASKED);
    put(t.client, "CONNECT 127.");
    kedgei_pair_event(&t.pair->client, EPOLLIN, 109 * S); /* a drop now and then gives no more time */
    kedgei_pair_tick(t.pair, 110 * S, 0);
    ck_assert_int_eq(t.pair->state, KEDGEI_PAIR_ASKED);
    kedgei_pair_tick(t.pair, 110 * S + 1, 0);
    ck_assert_int_eq(t.pair->state, KEDGEI_PAIR_DONE);
    expect_end(t.client);
    end_still(&t);
}
END_TEST

START_TEST(idle_ones_end)
{
    struct still t;
    begin_still(&t, false, 0, 100 * S);
    turn(&t, KEDGEI_PAIR_OPEN, 101 * S);
    int server = accept_from(t.w.listener);
    kedgei_pair_tick(t.pair, 220 * S, 0);
    ck_assert_int_eq(t.pair->state, KEDGEI_PAIR_OPEN);
    put(t.client, "a word");
    kedgei_pair_event(&t.pair->client, EPOLLIN, 221 * S);
    expect(server, "a word");
    kedgei_pair_tick(t.pair, 341 * S, 0);
    ck_assert_int_eq(t.pair->state, KEDGEI_PAIR_OPEN);
    kedgei_pair_tick(t.pair, 341 * S + 1, 0);
    ck_assert_int_eq(t.pair->state, KEDGEI_PAIR_DONE);
    expect_end(t.client);
    expect_end(server);
    kedgei_pair_event(&t.pair->client, EPOLLIN, 342 * S); /* an event from before does nothing */
    ck_assert_int_eq(t.pair->state, KEDGEI_PAIR_DONE);
    close(server);
    end_still(&t);
}
END_TEST

/* What was not used in one second does not add up beyond one. */
START_TEST(allowances)
{
    struct still t;
    static char some[8192], got[8192];
    begin_still(&t, false, 1024, 100 * S);
    turn(&t, KEDGEI_PAIR_OPEN, 101 * S);
    int server = accept_from(t.w.listener);
    for (int i = 0; i < 50; i++) {
        kedgei_pair_tick(t.pair, 102 * S, 1024);
    }
    ck_assert_int_eq(send(t.client, some, sizeof some, MSG_NOSIGNAL), (ssize_t)sizeof some);
    for (int i = 0; i < 3; i++) {
        kedgei_pair_event(&t.pair->client, EPOLLIN, 103 * S);
    }
    ck_assert_uint_eq(t.pair->client.bytes, 1024);
    ck_assert(t.w.relay->throttled);
    kedgei_pair_tick(t.pair, 104 * S, 512);
    kedgei_pair_event(&t.pair->client, EPOLLIN, 104 * S);
    ck_assert_uint_eq(t.pair->client.bytes, 1536);
    ck_assert_uint_eq(get(server, got, 1536), 1536);
    close(server);
    end_still(&t);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {both_ways,
                                  much,
                                  slow_readers_stop_writers,
                                  no_more_than_may_be,
                                  strangers,
                                  no_faster,
                                  wrong_options,
                                  asked_for,
                                  idle_ones_end,
                                  allowances,
                                  heads_that_never_end,
                                  nobody_there};
    return run_suite("net/relay", tests, sizeof tests / sizeof tests[0]);
}
