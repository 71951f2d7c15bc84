#include "common/net/peers.h"

#include "common/base/mem.h"

int kedgei_peers_init(struct kedgei_peers *peers, size_t max)
{
    size_t capacity = 16;
    while (capacity < 2 * max) {
        capacity *= 2;
    }
    *peers = (struct kedgei_peers){
        .places = kedge_mem_new(capacity, sizeof *peers->places), .mask = capacity - 1, .max = max};
    return peers->places ? KEDGE_OK : KEDGE_E_NOMEM;
}

void kedgei_peers_deinit(struct kedgei_peers *peers)
{
    kedge_mem_free(peers->places);
    *peers = (struct kedgei_peers){0};
}

/* The place of id, or the free one where it would go. */
static size_t probe(const struct kedgei_peers *peers, uint64_t id)
{
    size_t i = (size_t)id & peers->mask;
    while (peers->places[i].who.connection != 0 && peers->places[i].who.connection != id) {
        i = (i + 1) & peers->mask;
    }
    return i;
}

struct kedgei_peer *kedgei_peers_find(const struct kedgei_peers *peers, uint32_t id)
{
    struct kedgei_peer *place = &peers->places[probe(peers, id)];
    return place->who.connection == 0 ? NULL : place;
}

struct kedgei_peer *kedgei_peers_add(struct kedgei_peers *peers, const struct kedge_net_peer *who)
{
    struct kedgei_peer *place = &peers->places[probe(peers, who->connection)];
    if (peers->count >= peers->max || place->who.connection != 0) {
        return NULL;
    }
    *place = (struct kedgei_peer){.who = *who};
    peers->count++;
    return place;
}

void kedgei_peers_remove(struct kedgei_peers *peers, uint32_t id)
{
    size_t hole = probe(peers, id);
    if (peers->places[hole].who.connection == 0) {
        return;
    }
    peers->count--;
    /* Close the gap: move up what could not be found behind a free place. */
    for (size_t i = (hole + 1) & peers->mask; peers->places[i].who.connection != 0;
         i = (i + 1) & peers->mask) {
        size_t home = (size_t)peers->places[i].who.connection & peers->mask;
        if (((i - home) & peers->mask) >= ((i - hole) & peers->mask)) {
            peers->places[hole] = peers->places[i];
            hole = i;
        }
    }
    peers->places[hole] = (struct kedgei_peer){.who = {.connection = 0}};
}
