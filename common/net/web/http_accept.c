/* Who may connect to the HTTP server, who gives way, and how often they may ask: a connection is a stranger's
 * until an answer on it is for a party. Everything here runs on the network thread. */
#include <string.h>
#include <unistd.h>

#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "common/net/server.h"
#include "common/net/socket.h"
#include "common/net/web/http_state.h"

#define NS_PER_MS 1000000u
#define NS_PER_S 1000000000u
enum { ACCEPT_TURN = 64, STUCK_MS = 2000 };

static const struct kedge_rate requests = {NS_PER_S / KEDGE_NET_STRANGER_REQUESTS,
                                           KEDGE_NET_STRANGER_REQUESTS_BURST};
static const struct kedge_rate all_requests = {NS_PER_S / KEDGE_NET_ALL_REQUESTS,
                                               KEDGE_NET_ALL_REQUESTS_BURST};
static const struct kedge_rate of_party = {NS_PER_S / KEDGE_HTTP_PARTY_REQUESTS,
                                           KEDGE_HTTP_PARTY_REQUESTS_BURST};

static void count(struct kedge_http_server *server, uint64_t *counter)
{
    pthread_mutex_lock(&server->hub.mutex);
    *counter += 1;
    pthread_mutex_unlock(&server->hub.mutex);
}

/* ---- rates ---- */

/* A party's buckets are kept among the addresses', under a name that none has: nobody comes from a multicast
 * address. */
static struct kedgei_source *source_of_party(struct kedge_http_server *server, uint32_t party, uint64_t now)
{
    uint8_t name[KEDGEI_ADDRESS_LEN];
    memset(name, 0xff, sizeof name);
    memcpy(name + sizeof name - sizeof party, &party, sizeof party);
    return kedgei_sources_find(server->hub.sources, name, now);
}

bool kedgei_http_take_turn(struct kedgei_http_session *s)
{
    struct kedge_http_server *server = s->server;
    uint64_t now = kedge_os_now_ns();
    bool good =
        !server->hub.sources
        || (s->party
                ? kedge_bucket_take(&source_of_party(server, s->party, now)->requests, &of_party, 1, now)
                : kedge_buckets_take(&kedgei_sources_find(server->hub.sources, s->address, now)->requests,
                                     &requests, &server->hub.all_requests, &all_requests, 1, now));
    if (!good) {
        kedgei_pressure_note(&server->hub.pressure, KEDGEI_PUT_OFF, s->address, NULL);
        count(server, &server->counters.put_off);
    }
    return good;
}

/* What it took as a stranger comes back. */
void kedgei_http_recognise(struct kedgei_http_session *s, uint32_t party)
{
    struct kedge_http_server *server = s->server;
    uint64_t now = kedge_os_now_ns();
    if (server->hub.sources && s->party == 0) {
        struct kedgei_source *source = kedgei_sources_find(server->hub.sources, s->address, now);
        kedge_bucket_give(&source->requests, &requests, 1);
        kedge_bucket_give(&server->hub.all_requests, &all_requests, 1);
        struct kedge_bucket *own = &source_of_party(server, party, now)->arrivals;
        source = kedgei_sources_find(server->hub.sources, s->address, now); /* its row may have gone */
        kedgei_hub_give_arrival_back(&server->hub, source, own, now);
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
    if (kedgei_stream_init(&s->stream, fd, kind == KEDGE_NET_TLS ? server->hub.tls : NULL) != KEDGE_OK) {
        kedge_mem_free(s);
        return false;
    }
    s->server = server;
    memcpy(s->address, address, sizeof s->address);
    s->events = EPOLLIN;
    s->refs = 1;
    kedgei_http_enter(s, KEDGEI_HTTP_SHAKING);
    if (kedgei_loop_add(&server->hub.loop, fd, s->events, s) != KEDGE_OK) {
        kedgei_stream_deinit(&s->stream);
        kedge_mem_free(s);
        return false;
    }
    s->next = server->sessions;
    if (s->next) {
        s->next->prev = s;
    }
    server->sessions = s;
    server->hub.any = true;
    pthread_mutex_lock(&server->hub.mutex);
    server->counters.connections++;
    server->counters.accepted++;
    pthread_mutex_unlock(&server->hub.mutex);
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
        kedgei_pressure_note(&server->hub.pressure, KEDGEI_EVICTED, oldest->address, NULL);
        count(server, &server->counters.evicted);
        kedgei_http_session_close(oldest);
    }
    return oldest != NULL;
}

/* Nothing is spent on a connection before it is known that it may stay. */
void kedgei_http_accept(struct kedgei_hub *hub, struct kedgei_listener *listener)
{
    struct kedge_http_server *server = (struct kedge_http_server *)hub;
    enum kedge_net_kind kind = listener->address.kind;
    uint8_t address[KEDGEI_ADDRESS_LEN];
    for (int i = 0; i < ACCEPT_TURN && !server->hub.deaf; i++) {
        int fd = kedgei_socket_accept(listener->fd, address);
        if (fd < 0) {
            kedgei_hub_accept_failed(hub);
            return;
        }
        pthread_mutex_lock(&server->hub.mutex);
        bool room = server->counters.connections < server->connections_max;
        pthread_mutex_unlock(&server->hub.mutex);
        if (!kedgei_hub_may_arrive(hub, address) || (!room && !evict(server))) {
            kedgei_pressure_note(&server->hub.pressure, KEDGEI_TURNED_AWAY, address, NULL);
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
