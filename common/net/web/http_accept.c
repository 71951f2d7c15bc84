/* Who may connect to the HTTP server, who gives way, and how often they may ask: a connection is a stranger's
 * until an answer on it is for a party. Everything here runs on the network thread. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "common/base/os/entropy.h"
#include "common/net/server.h"
#include "common/net/socket.h"
#include "common/net/web/http_state.h"

#define NS_PER_MS 1000000u
#define NS_PER_S 1000000000u
enum { ACCEPT_TURN = 64, STUCK_MS = 2000 };

static const struct kedgei_rate arrivals = {NS_PER_S / KEDGE_NET_ARRIVALS, KEDGE_NET_ARRIVALS_BURST};
static const struct kedgei_rate all_arrivals = {NS_PER_S / KEDGE_NET_ALL_ARRIVALS,
                                                KEDGE_NET_ALL_ARRIVALS_BURST};
static const struct kedgei_rate requests = {NS_PER_S / KEDGE_NET_STRANGER_REQUESTS,
                                            KEDGE_NET_STRANGER_REQUESTS_BURST};
static const struct kedgei_rate all_requests = {NS_PER_S / KEDGE_NET_ALL_REQUESTS,
                                                KEDGE_NET_ALL_REQUESTS_BURST};
static const struct kedgei_rate of_party = {NS_PER_S / KEDGE_HTTP_PARTY_REQUESTS,
                                            KEDGE_HTTP_PARTY_REQUESTS_BURST};

int kedgei_http_strangers_init(struct kedge_http_server *server, bool counts)
{
    server->sources = counts ? kedge_mem_new(1, sizeof *server->sources) : NULL;
    if (server->sources) {
        kedge_os_random(&server->sources->seed, sizeof server->sources->seed);
    }
    return !counts || server->sources ? KEDGE_OK : KEDGE_E_NOMEM;
}

static void count(struct kedge_http_server *server, uint64_t *counter)
{
    pthread_mutex_lock(&server->mutex);
    *counter += 1;
    pthread_mutex_unlock(&server->mutex);
}

/* ---- rates ---- */

static bool may_arrive(struct kedge_http_server *server, const uint8_t address[KEDGEI_ADDRESS_LEN])
{
    uint64_t now = kedge_os_now_ns();
    if (!server->sources) {
        return true;
    }
    struct kedgei_source *source = kedgei_sources_find(server->sources, address, now);
    if (!kedgei_bucket_take(&source->arrivals, &arrivals, 1, now)) {
        return false;
    }
    if (!kedgei_bucket_take(&server->all_arrivals, &all_arrivals, 1, now)) {
        kedgei_bucket_give(&source->arrivals, &arrivals, 1);
        return false;
    }
    return true;
}

/* A party's buckets are kept among the addresses', under a name that none has: nobody comes from a multicast
 * address. */
static struct kedgei_source *source_of_party(struct kedge_http_server *server, uint32_t party, uint64_t now)
{
    uint8_t name[KEDGEI_ADDRESS_LEN];
    memset(name, 0xff, sizeof name);
    memcpy(name + sizeof name - sizeof party, &party, sizeof party);
    return kedgei_sources_find(server->sources, name, now);
}

/* From its address's bucket and from that of all, or from neither. */
static bool take_of_strangers(struct kedge_http_server *server, const struct kedgei_http_session *s,
                              uint64_t now)
{
    struct kedgei_bucket *own = &kedgei_sources_find(server->sources, s->address, now)->requests;
    if (!kedgei_bucket_take(own, &requests, 1, now)) {
        return false;
    }
    if (!kedgei_bucket_take(&server->all_requests, &all_requests, 1, now)) {
        kedgei_bucket_give(own, &requests, 1);
        return false;
    }
    return true;
}

bool kedgei_http_take_turn(struct kedgei_http_session *s)
{
    struct kedge_http_server *server = s->server;
    uint64_t now = kedge_os_now_ns();
    bool good = !server->sources
                || (s->party ? kedgei_bucket_take(&source_of_party(server, s->party, now)->requests,
                                                  &of_party, 1, now)
                             : take_of_strangers(server, s, now));
    if (!good) {
        kedgei_pressure_note(&server->pressure, KEDGEI_PUT_OFF, s->address, NULL);
        count(server, &server->counters.put_off);
    }
    return good;
}

/* What it took as a stranger comes back; its arrival only if the party comes no more often than an address
 * may, for a handshake is dear. */
void kedgei_http_recognise(struct kedgei_http_session *s, uint32_t party)
{
    struct kedge_http_server *server = s->server;
    uint64_t now = kedge_os_now_ns();
    if (server->sources && s->party == 0) {
        struct kedgei_source *source = kedgei_sources_find(server->sources, s->address, now);
        kedgei_bucket_give(&source->requests, &requests, 1);
        kedgei_bucket_give(&server->all_requests, &all_requests, 1);
        if (kedgei_bucket_take(&source_of_party(server, party, now)->arrivals, &arrivals, 1, now)) {
            source = kedgei_sources_find(server->sources, s->address, now);
            kedgei_bucket_give(&source->arrivals, &arrivals, 1);
            kedgei_bucket_give(&server->all_arrivals, &all_arrivals, 1);
        }
    }
    s->party = party;
}

/* ---- places ---- */

static bool begin(struct kedge_http_server *server, enum kedge_net_kind kind, int fd,
                  const uint8_t address[KEDGEI_ADDRESS_LEN])
{
    struct kedgei_http_session *s = kedge_mem_new(1, sizeof *s);
    if (!s) {
        kedgei_stream_deinit(&(struct kedgei_stream){.fd = fd});
        return false;
    }
    if (kedgei_stream_init(&s->stream, fd, kind == KEDGE_NET_TLS ? server->tls : NULL) != KEDGE_OK) {
        kedge_mem_free(s);
        return false;
    }
    s->server = server;
    memcpy(s->address, address, sizeof s->address);
    s->events = EPOLLIN;
    s->refs = 1;
    kedgei_http_enter(s, KEDGEI_HTTP_SHAKING);
    if (kedgei_loop_add(&server->loop, fd, s->events, s) != KEDGE_OK) {
        kedgei_stream_deinit(&s->stream);
        kedge_mem_free(s);
        return false;
    }
    s->next = server->sessions;
    if (s->next) {
        s->next->prev = s;
    }
    server->sessions = s;
    pthread_mutex_lock(&server->mutex);
    server->counters.connections++;
    server->counters.accepted++;
    pthread_mutex_unlock(&server->mutex);
    return true;
}

/* It does nothing for anybody, or sends an answer to nobody known, who does not take it. */
static bool is_idle(const struct kedgei_http_session *s, uint64_t now_ns)
{
    bool stuck = s->stage == KEDGEI_HTTP_SENDING && s->party == 0
                 && now_ns > s->moved_ns + (uint64_t)STUCK_MS * NS_PER_MS;
    return stuck || s->stage == KEDGEI_HTTP_SHAKING || s->stage == KEDGEI_HTTP_HEAD
           || s->stage == KEDGEI_HTTP_LINGERING;
}

/* Closes a connection that has been without a whole request for longest, a stranger's if there is one; false
 * when all are at work. */
static bool evict(struct kedge_http_server *server)
{
    struct kedgei_http_session *oldest = NULL;
    uint64_t now = kedge_os_now_ns();
    for (struct kedgei_http_session *s = server->sessions; s; s = s->next) {
        bool known = s->party != 0, other = oldest && oldest->party != 0;
        bool sooner = !oldest || (other && !known) || (other == known && s->since_ns < oldest->since_ns);
        if (is_idle(s, now) && sooner) {
            oldest = s;
        }
    }
    if (oldest) {
        kedgei_pressure_note(&server->pressure, KEDGEI_EVICTED, oldest->address, NULL);
        count(server, &server->counters.evicted);
        kedgei_http_session_close(oldest);
    }
    return oldest != NULL;
}

/* Nothing is spent on a connection before it is known that it may stay. Without descriptors the server
 * stops listening until the next sweep: accept would fail again at once, and the loop would spin. */
void kedgei_http_accept(struct kedge_http_server *server, struct kedgei_http_listener *listener)
{
    enum kedge_net_kind kind = listener->address.kind;
    uint8_t address[KEDGEI_ADDRESS_LEN];
    for (int i = 0; i < ACCEPT_TURN && !server->deaf; i++) {
        int fd = kedgei_socket_accept(listener->fd, address);
        if (fd < 0) {
            server->deaf = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
            return;
        }
        pthread_mutex_lock(&server->mutex);
        bool room = server->counters.connections < server->connections_max;
        pthread_mutex_unlock(&server->mutex);
        if (!may_arrive(server, address) || (!room && !evict(server))) {
            kedgei_pressure_note(&server->pressure, KEDGEI_TURNED_AWAY, address, NULL);
            count(server, &server->counters.refused);
            close(fd);
            continue;
        }
        kedgei_socket_prepare(fd, kind);
        if (!begin(server, kind, fd, address)) {
            count(server, &server->counters.refused);
        }
    }
}
