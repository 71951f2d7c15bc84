/* The relay's loop: who may connect, and turns. A relay stands where many may reach it, holds no key and
 * reads nothing, so all that it can do against abuse is to count: connections in all, of one address,
 * bytes per second, and time without a byte.
 *
 * Memory is bounded: a table of pairs that is made when it starts, each with two buffers at most. A
 * connection that finds no free pair is closed; nothing is queued. A pair that ends is freed only after
 * the turn of the loop, because events of the same turn may still name it. */
#include "common/net/relay.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "common/base/os/log.h"
#include "common/base/text.h"
#include "common/net/relay_state.h"
#include "common/net/socket.h"

#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S UINT64_C(1000000000)
enum { EVENTS_MAX = 64, SLOW_TICK_MS = 1000, RATE_LEAST = 1024, V4_BITS = 32, V6_BITS = 128 };

/* All addresses are compared as IPv6, IPv4 in its mapped form (RFC 4291, section 2.5.5.2). */
static void map_v4(const struct in_addr *v4, struct in6_addr *ret)
{
    memset(ret, 0, sizeof *ret);
    ret->s6_addr[10] = ret->s6_addr[11] = 0xff;
    memcpy(ret->s6_addr + 12, v4, sizeof *v4);
}

/* ADDRESS or ADDRESS/BITS. */
static bool parse_network(const char *text, struct kedgei_network *ret)
{
    char address[INET6_ADDRSTRLEN + 1];
    const char *slash = strchr(text, '/');
    size_t len = slash ? (size_t)(slash - text) : strlen(text);
    struct in_addr v4;
    if (len >= sizeof address) {
        return false;
    }
    memcpy(address, text, len);
    address[len] = '\0';
    bool is_v4 = inet_pton(AF_INET, address, &v4) == 1;
    uint64_t most = is_v4 ? V4_BITS : V6_BITS, bits = most;
    if (is_v4) {
        map_v4(&v4, &ret->address);
    } else if (inet_pton(AF_INET6, address, &ret->address) != 1) {
        return false;
    }
    if (slash && kedge_decimal_decode(kedge_view_str(slash + 1), most, &bits) != KEDGE_OK) {
        return false;
    }
    ret->bits = (unsigned)(bits + (V6_BITS - most));
    return true;
}

static bool is_in(const struct kedgei_network *n, const struct in6_addr *a)
{
    for (unsigned i = 0; i < n->bits; i += 8) {
        unsigned left = n->bits - i, mask = left >= 8 ? 0xff : 0xff00u >> left & 0xff;
        if ((n->address.s6_addr[i / 8] ^ a->s6_addr[i / 8]) & mask) {
            return false;
        }
    }
    return true;
}

/* Everything is checked before the relay listens: a relay that starts with half of its bounds would
 * serve without the others. */
static int parse(struct kedge_relay *r, struct kedge_diag *d)
{
    char url[KEDGE_NET_URL_MAX];
    const struct kedge_relay_options *o = &r->options;
    for (; r->target_count < KEDGE_RELAY_TARGETS_MAX && o->targets[r->target_count]; r->target_count++) {
        struct kedgei_address *a = &r->targets[r->target_count];
        int n = snprintf(url, sizeof url, "tls+tcp://%s", o->targets[r->target_count]);
        if (n < 0 || n >= (int)sizeof url || kedgei_address_parse(url, false, a, NULL) != KEDGE_OK
            || !a->host[0] || strcmp(a->port, "0") == 0) {
            return kedge_diag_set(d, KEDGE_E_ARG, "to %.100s: expected HOST:PORT",
                                  o->targets[r->target_count]);
        }
    }
    for (; r->source_count < KEDGE_RELAY_SOURCES_MAX && o->sources[r->source_count]; r->source_count++) {
        if (!parse_network(o->sources[r->source_count], &r->sources[r->source_count])) {
            return kedge_diag_set(d, KEDGE_E_ARG, "from %.100s: expected an address, or ADDRESS/BITS",
                                  o->sources[r->source_count]);
        }
    }
    if (r->target_count == 0 || (!o->connect && r->target_count != 1)) {
        return kedge_diag_set(d, KEDGE_E_ARG, "expected %s to forward to",
                              o->connect ? "servers" : "one server");
    }
    bool fine = o->connections >= 1 && o->connections <= KEDGE_RELAY_CONNECTIONS_MAX && o->per_source >= 1
                && o->idle_s >= 1 && (o->rate == 0 || o->rate >= RATE_LEAST);
    return fine ? KEDGE_OK : kedge_diag_set(d, KEDGE_E_ARG, "a bound is out of range");
}

int kedge_relay_open(const struct kedge_relay_options *options, struct kedge_relay **ret,
                     struct kedge_diag *reterr)
{
    char url[KEDGE_NET_URL_MAX];
    struct kedgei_address at;
    struct kedge_relay *r = kedge_mem_new(1, sizeof *r);
    if (!r) {
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "out of memory");
    }
    r->options = *options;
    r->listener = -1;
    int n = snprintf(url, sizeof url, "tls+tcp://%s", options->listen ? options->listen : "");
    int err = parse(r, reterr);
    if (!err && (n < 0 || n >= (int)sizeof url || kedgei_address_parse(url, false, &at, NULL) != KEDGE_OK)) {
        err = kedge_diag_set(reterr, KEDGE_E_ARG, "listen %.100s: expected HOST:PORT", options->listen);
    }
    if (!err) {
        err = kedgei_socket_listen(&at, url + strlen("tls+tcp://"), &r->listener, &r->port, reterr);
    }
    r->pairs = err ? NULL : kedge_mem_new(options->connections, sizeof *r->pairs);
    if (!err && (!r->pairs || kedgei_loop_init(&r->loop) != KEDGE_OK)) {
        err = kedge_diag_set(reterr, KEDGE_E_NOMEM, "out of memory");
    } else if (!err) {
        r->has_loop = true;
        err = kedgei_loop_add(&r->loop, r->listener, EPOLLIN, r);
    }
    if (err) {
        kedge_relay_close(r);
        return err;
    }
    *ret = r;
    return KEDGE_OK;
}

unsigned kedge_relay_port(const struct kedge_relay *r)
{
    return r->port;
}

/* May be called from a thread that waits for signals: it sets a flag and rouses the loop by its
 * descriptor. */
void kedge_relay_stop(struct kedge_relay *r)
{
    __atomic_store_n(&r->stop, true, __ATOMIC_RELEASE);
    kedgei_wake(r->loop.wake);
}

void kedge_relay_close(struct kedge_relay *r)
{
    if (!r) {
        return;
    }
    for (uint32_t i = 0; r->pairs && i < r->options.connections; i++) {
        if (r->pairs[i].state != KEDGEI_PAIR_FREE && r->pairs[i].state != KEDGEI_PAIR_DONE) {
            kedgei_pair_close(&r->pairs[i], "the relay ends");
        }
    }
    if (r->listener >= 0) {
        close(r->listener);
    }
    if (r->has_loop) {
        kedgei_loop_deinit(&r->loop);
    }
    kedge_mem_free(r->pairs);
    kedge_mem_free(r);
}

/* ---- turns ---- */

/* Said at most once a second, however many come. */
static void turn_away(struct kedge_relay *r, int fd, const char *why, uint64_t now_ns)
{
    close(fd);
    r->refused++;
    if (now_ns - r->said_ns >= NS_PER_S) {
        kedge_log(KEDGE_LOG_WARN, "turned away", "%s; %llu so far", why, (unsigned long long)r->refused);
        r->said_ns = now_ns;
    }
}

static bool find_source(int fd, struct in6_addr *ret)
{
    struct sockaddr_storage a = {.ss_family = AF_UNSPEC};
    socklen_t len = sizeof a;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    if (getpeername(fd, (struct sockaddr *)&a, &len) != 0) {
        return false;
    }
    memcpy(&v4, &a, sizeof v4);
    memcpy(&v6, &a, sizeof v6);
    if (a.ss_family == AF_INET) {
        map_v4(&v4.sin_addr, ret);
    } else {
        *ret = v6.sin6_addr;
    }
    return a.ss_family == AF_INET || a.ss_family == AF_INET6;
}

/* The relay has no secret and sees no content; what it bounds is who may use it and how much: addresses on
 * a list, connections of one address, connections of all. A place is one of a fixed array, so a flood costs
 * no memory. */
static void accept_one(struct kedge_relay *r, int fd, uint64_t now_ns)
{
    struct in6_addr source;
    struct kedgei_pair *room = NULL;
    uint32_t of_source = 0;
    if (!find_source(fd, &source)) {
        close(fd);
        return;
    }
    bool allowed = r->source_count == 0;
    for (size_t i = 0; i < r->source_count && !allowed; i++) {
        allowed = is_in(&r->sources[i], &source);
    }
    for (uint32_t i = 0; i < r->options.connections && allowed; i++) {
        struct kedgei_pair *p = &r->pairs[i];
        room = !room && p->state == KEDGEI_PAIR_FREE ? p : room;
        of_source += p->state != KEDGEI_PAIR_FREE && memcmp(&p->source, &source, sizeof source) == 0;
    }
    if (!allowed) {
        turn_away(r, fd, "an address that is not on the list", now_ns);
    } else if (of_source >= r->options.per_source) {
        turn_away(r, fd, "too many connections of one address", now_ns);
    } else if (!room) {
        turn_away(r, fd, "as many connections as there may be", now_ns);
    } else {
        room->source = source;
        kedgei_pair_begin(r, room, fd, now_ns);
    }
}

static void accept_some(struct kedge_relay *r, uint64_t now_ns)
{
    for (int i = 0; i < EVENTS_MAX; i++) {
        int fd = kedgei_socket_accept(r->listener, NULL);
        if (fd < 0) {
            return;
        }
        kedgei_socket_prepare(fd, KEDGE_NET_TCP);
        accept_one(r, fd, now_ns);
    }
}

/* Each direction of each pair gets its share of bytes for the time that has passed, at most a second's:
 * after a pause nobody may send at once what was saved up. */
static void tick(struct kedge_relay *r, uint64_t now_ns)
{
    uint64_t passed = now_ns - r->last_tick_ns;
    passed = passed < NS_PER_S ? passed : NS_PER_S;
    if (passed < KEDGEI_RELAY_TICK_MS * NS_PER_MS) {
        return;
    }
    uint64_t allowance = r->options.rate / 1000 * (passed / NS_PER_MS);
    r->last_tick_ns = now_ns;
    r->throttled = false;
    for (uint32_t i = 0; i < r->options.connections; i++) {
        kedgei_pair_tick(&r->pairs[i], now_ns, allowance);
    }
}

/* The tick is quick only while some connection waits for its bytes; otherwise the relay wakes once
 * a second. */
void kedge_relay_run(struct kedge_relay *r)
{
    struct epoll_event events[EVENTS_MAX];
    r->last_tick_ns = kedge_os_now_ns();
    while (!__atomic_load_n(&r->stop, __ATOMIC_ACQUIRE)) {
        int n = kedgei_loop_wait(&r->loop, events, EVENTS_MAX,
                                 r->throttled ? KEDGEI_RELAY_TICK_MS : SLOW_TICK_MS);
        uint64_t now = kedge_os_now_ns();
        for (int i = 0; i < n; i++) {
            if (events[i].data.ptr == r) {
                accept_some(r, now);
            } else if (events[i].data.ptr) {
                kedgei_pair_event(events[i].data.ptr, events[i].events, now);
            } else {
                kedgei_wake_clear(r->loop.wake);
            }
        }
        tick(r, now);
        for (uint32_t i = 0; i < r->options.connections; i++) {
            if (r->pairs[i].state == KEDGEI_PAIR_DONE) {
                r->pairs[i].state = KEDGEI_PAIR_FREE;
            }
        }
    }
}
