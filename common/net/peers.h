/* Internal to net: the open connections of a server, by the id of their pipe. Not thread-safe. */
#ifndef KEDGE_COMMON_NET_PEERS_H
#define KEDGE_COMMON_NET_PEERS_H

#include <stddef.h>

#include "common/net/meter.h"
#include "common/net/peer.h"

struct kedgei_peer {
    struct kedge_net_peer who;  /* who.connection is the pipe's id; 0: free place */
    struct kedgei_meter *meter; /* TLS only; one reference */
    uint64_t number;            /* TLS only: the engine's for the connection */
    unsigned held;              /* requests handed to the handler and not answered */
    bool dropped;               /* being closed; what still comes from it is ignored */
};

/* Linear probing over ids, which nng gives out one after the other; at most half full. */
struct kedgei_peers {
    struct kedgei_peer *places;
    size_t mask, count, max;
};

KEDGE_NODISCARD int kedgei_peers_init(struct kedgei_peers *peers, size_t max);
void kedgei_peers_deinit(struct kedgei_peers *peers);
/* NULL when absent. Pointers are valid until the next add or remove. */
struct kedgei_peer *kedgei_peers_find(const struct kedgei_peers *peers, uint32_t id);
/* A new place with who copied; NULL when full. */
struct kedgei_peer *kedgei_peers_add(struct kedgei_peers *peers, const struct kedge_net_peer *who);
/* Absent is fine. */
void kedgei_peers_remove(struct kedgei_peers *peers, uint32_t id);

#endif
