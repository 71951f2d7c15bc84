/* Whose connections these are, and what their peers may: strangers, known keys, the door. The bounds and
 * their reasons are in server.h, who gives way in admission.h. Everything here runs on the network thread.
 *
 * A connection over TLS or TCP is a stranger's from its first byte. When it has said whose it is, and the
 * application knows that key, it becomes one of the key's party; a key that becomes known later, because its
 * site has just enrolled, is recognised with its next request or reply. */
#include <string.h>

#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "common/net/server_state.h"

#define NS_PER_S 1000000000u
enum { TURN = KEDGE_NET_PIECES_PER_REQUEST, PER_ADDRESS = 4 };

_Static_assert(KEDGE_NET_STRANGERS_MAX *KEDGE_NET_STRANGER_PEER_MAX *KEDGE_NET_STRANGER_FRAME_MAX
                   <= 4 * 1024 * 1024,
               "all strangers together leave half of what KEDGE_CHUNK_BUDGET has for small requests");
_Static_assert((int)KEDGE_NET_STRANGER_FRAME_MAX <= (int)KEDGEI_SMALL_MAX,
               "strangers' requests are small ones");

static const struct kedge_rate of_strangers = {NS_PER_S / KEDGE_NET_STRANGER_REQUESTS / TURN,
                                               KEDGE_NET_STRANGER_REQUESTS_BURST *TURN};
static const struct kedge_rate of_all_strangers = {NS_PER_S / KEDGE_NET_ALL_REQUESTS / TURN,
                                                   KEDGE_NET_ALL_REQUESTS_BURST *TURN};
static const struct kedge_rate of_known = {NS_PER_S / KEDGE_NET_REQUESTS / TURN,
                                           KEDGE_NET_REQUESTS_BURST *TURN};

/* Without `knows` there are no strangers to be told apart: all peers are of one class and nothing
 * is counted by address. */
int kedgei_strangers_init(struct kedge_net_server *server, const struct kedge_net_server_options *options)
{
    unsigned strangers = options->strangers ? options->strangers : KEDGE_NET_STRANGERS_MAX;
    unsigned peers = options->peers ? options->peers : KEDGE_NET_PEERS_MAX;
    server->knows = options->knows;
    server->busy = options->busy;
    server->places = (struct kedgei_places){
        .of = {strangers, peers, KEDGE_NET_DOOR_MAX},
        .one = {strangers, peers, KEDGE_NET_DOOR_MAX},
    };
    if (!server->knows) {
        return KEDGE_OK;
    }
    server->places.one[KEDGEI_STRANGER] = strangers > PER_ADDRESS ? strangers / PER_ADDRESS : 1;
    server->places.one[KEDGEI_KNOWN] = KEDGE_NET_PER_KEY_MAX;
    return kedgei_hub_count_addresses(&server->hub);
}

static const struct kedge_public_key *key_of(const struct kedgei_session *s)
{
    return s->class == KEDGEI_KNOWN && s->who.has_key ? &s->who.key : NULL;
}

/* ---- places ---- */

static bool is_same_peer(const struct kedgei_session *a, const struct kedgei_session *b)
{
    return a->class == KEDGEI_STRANGER ? memcmp(a->address, b->address, sizeof a->address) == 0
                                       : a->class == KEDGEI_DOOR || (a->party && a->party == b->party);
}

/* The list of strangers is short, for their number is bounded. */
static unsigned count_of_address(const struct kedge_net_server *server, const struct kedgei_session *s)
{
    unsigned count = 0;
    for (const struct kedgei_session *o = server->strangers; o; o = o->stranger_next) {
        count += is_same_peer(s, o);
    }
    return count;
}

/* Closes the one of s's class (and, if `own`, of the same peer) that has been idle for longest; false when
 * none may be closed. */
static bool evict(const struct kedgei_session *s, bool own)
{
    struct kedge_net_server *server = s->server;
    struct kedgei_session *oldest = NULL;
    uint64_t now = kedge_os_now_ns();
    bool among_strangers = s->class == KEDGEI_STRANGER;
    for (struct kedgei_session *o = among_strangers ? server->strangers : server->sessions; o;
         o = among_strangers ? o->stranger_next : o->next) {
        const struct kedgei_idleness idle = {o->class, o->unanswered > 0 || o->link.first, o->has_spoken,
                                             o->since_ns};
        if (o != s && o->class == s->class && (!own || is_same_peer(s, o))
            && kedgei_admission_may_evict(&idle, now) && (!oldest || o->since_ns < oldest->since_ns)) {
            oldest = o;
        }
    }
    if (!oldest) {
        return false;
    }
    kedgei_pressure_note(&server->hub.pressure, KEDGEI_EVICTED, oldest->address, key_of(oldest));
    pthread_mutex_lock(&server->hub.mutex);
    server->counters.evicted++;
    server->counters.turned_away++;
    pthread_mutex_unlock(&server->hub.mutex);
    kedgei_session_close(oldest);
    return true;
}

/* Where all places of a class are taken, the one that has been idle for longest gives way: first of the
 * same peer, else of the class. Strangers never take a known key's place. */
static bool find_place(const struct kedgei_session *s, unsigned own)
{
    const struct kedge_net_server *server = s->server;
    switch (kedgei_admission(&server->places, s->class, server->class_count[s->class], own)) {
    case KEDGEI_ADMIT:
        return true;
    case KEDGEI_EVICT_OWN:
        return evict(s, true);
    case KEDGEI_EVICT_CLASS:
        return evict(s, false);
    }
    return false;
}

bool kedgei_strangers_admit(struct kedge_net_server *server, const struct kedgei_session *s)
{
    bool counted = s->class == KEDGEI_STRANGER && server->hub.sources;
    /* Connections that turn out to be of known keys are given back (give_back). */
    bool good = (s->class != KEDGEI_STRANGER || kedgei_hub_may_arrive(&server->hub, s->address))
                && find_place(s, counted                   ? count_of_address(server, s)
                                 : s->class == KEDGEI_DOOR ? server->class_count[KEDGEI_DOOR]
                                                           : 0);
    if (!good) {
        kedgei_pressure_note(&server->hub.pressure, KEDGEI_TURNED_AWAY, s->address, NULL);
        pthread_mutex_lock(&server->hub.mutex);
        server->counters.turned_away++;
        pthread_mutex_unlock(&server->hub.mutex);
    }
    return good;
}

static void count_strangers(struct kedge_net_server *server)
{
    pthread_mutex_lock(&server->hub.mutex);
    server->counters.strangers = server->class_count[KEDGEI_STRANGER];
    pthread_mutex_unlock(&server->hub.mutex);
}

/* Strangers have a list of their own, so that a flood of them can be searched without walking over
 * the known ones. */
void kedgei_strangers_enter(struct kedgei_session *s)
{
    struct kedge_net_server *server = s->server;
    server->class_count[s->class]++;
    if (s->class != KEDGEI_STRANGER) {
        return;
    }
    s->stranger_prev = NULL;
    s->stranger_next = server->strangers;
    if (s->stranger_next) {
        s->stranger_next->stranger_prev = s;
    }
    server->strangers = s;
    count_strangers(server);
}

/* What the session still holds of memory is charged to the server alone from here on: its party may
 * be gone before the last reply. */
void kedgei_strangers_leave(struct kedgei_session *s)
{
    struct kedge_net_server *server = s->server;
    server->class_count[s->class]--;
    if (s->class == KEDGEI_STRANGER) {
        *(s->stranger_prev ? &s->stranger_prev->stranger_next : &server->strangers) = s->stranger_next;
        if (s->stranger_next) {
            s->stranger_next->stranger_prev = s->stranger_prev;
        }
        count_strangers(server);
    }
    if (s->party) {
        s->party->connections--;
        pthread_mutex_lock(&server->hub.mutex);
        s->party->large -= s->large; /* what is still held counts for the server alone */
        s->party = NULL;
        pthread_mutex_unlock(&server->hub.mutex);
    }
}

/* ---- becoming known ---- */

/* What it took as a stranger. */
static void give_back(struct kedgei_session *s)
{
    struct kedge_net_server *server = s->server;
    uint64_t now = kedge_os_now_ns();
    struct kedgei_source *source = kedgei_sources_find(server->hub.sources, s->address, now);
    kedge_bucket_give(&source->requests, &of_strangers, s->taken);
    kedge_bucket_give(&server->hub.all_requests, &of_all_strangers, s->taken);
    kedgei_hub_give_arrival_back(&server->hub, source, &s->party->arrivals, now);
}

/* From the strangers' books into its key's: place, bytes that it holds, and what it took from the buckets. */
static void become_known(struct kedgei_session *s, struct kedgei_party *party)
{
    struct kedge_net_server *server = s->server;
    kedgei_strangers_leave(s);
    s->class = KEDGEI_KNOWN;
    kedgei_strangers_enter(s);
    if (party) {
        party->connections++;
        pthread_mutex_lock(&server->hub.mutex);
        s->party = party;
        party->large += s->large;
        pthread_mutex_unlock(&server->hub.mutex);
        give_back(s);
    }
    s->link.in.frame_max = kedgei_strangers_frame_max(s);
}

/* Asked again at each request: a key that the application did not know a moment ago may belong to a site by
 * now. */
int kedgei_strangers_recognise(struct kedgei_session *s)
{
    struct kedge_net_server *server = s->server;
    if (s->class != KEDGEI_STRANGER || (server->knows && !s->who.has_key)
        || (server->knows && !server->knows(server->arg, &s->who.key))) {
        return KEDGE_OK;
    }
    struct kedgei_party *party = server->knows ? kedgei_parties_find(&server->parties, &s->who.key) : NULL;
    if (server->knows && !party) {
        return KEDGE_E_NOMEM;
    }
    const struct kedgei_session as_known = {
        .server = server, .class = KEDGEI_KNOWN, .party = party, .who = s->who};
    if (!find_place(&as_known, party ? party->connections : 0)) {
        kedgei_pressure_note(&server->hub.pressure, KEDGEI_TURNED_AWAY, s->address, &s->who.key);
        return KEDGE_E_FULL;
    }
    become_known(s, party);
    return KEDGE_OK;
}

size_t kedgei_strangers_frame_max(const struct kedgei_session *s)
{
    size_t max = s->server->frame_max;
    return s->class == KEDGEI_STRANGER && max > KEDGE_NET_STRANGER_FRAME_MAX ? KEDGE_NET_STRANGER_FRAME_MAX
                                                                             : max;
}

/* ---- rates ---- */

static bool take_of_strangers(struct kedgei_session *s, uint32_t cost, uint64_t now)
{
    struct kedge_net_server *server = s->server;
    struct kedge_bucket *own = &kedgei_sources_find(server->hub.sources, s->address, now)->requests;
    bool good =
        kedge_buckets_take(own, &of_strangers, &server->hub.all_requests, &of_all_strangers, cost, now);
    s->taken += good ? cost : 0;
    return good;
}

/* A request for a piece of a blob costs one, any other as much as many pieces: fetching a model takes
 * thousands of pieces, and they must not be counted like thousands of requests. */
bool kedgei_strangers_take_turn(struct kedgei_session *s)
{
    struct kedge_net_server *server = s->server;
    if (!server->hub.sources || s->class == KEDGEI_DOOR) {
        return true;
    }
    uint64_t now = kedge_os_now_ns();
    bool piece = !s->link.in.frame->is_small || s->reply_size > 0;
    uint32_t cost = piece ? 1 : TURN;
    bool good = s->party ? kedge_bucket_take(&s->party->requests, &of_known, cost, now)
                         : take_of_strangers(s, cost, now);
    if (!good) {
        kedgei_pressure_note(&server->hub.pressure, KEDGEI_PUT_OFF, s->address, key_of(s));
        s->paused_until_ns = now + (uint64_t)KEDGE_NET_RETRY_MS * (NS_PER_S / 1000);
        pthread_mutex_lock(&server->hub.mutex);
        server->counters.put_off++;
        pthread_mutex_unlock(&server->hub.mutex);
    }
    return good;
}

void kedgei_strangers_earn(struct kedgei_session *s)
{
    if (s->party) {
        kedge_bucket_give(&s->party->requests, &of_known, KEDGE_NET_REQUEST_EARNS * TURN);
    }
}
