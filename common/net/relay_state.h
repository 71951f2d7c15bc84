/* Internal to net: what relay.c (the loop, who may connect) and relay_pair.c (one connection) share. */
#ifndef KEDGE_COMMON_NET_RELAY_STATE_H
#define KEDGE_COMMON_NET_RELAY_STATE_H

#include <netinet/in.h>
#include <sys/socket.h>

#include "common/net/loop.h"
#include "common/net/proxy.h"
#include "common/net/relay.h"
#include "common/net/resolve.h"

enum { KEDGEI_RELAY_BUFFER = 32768, KEDGEI_RELAY_TICK_MS = 50 };

enum kedgei_pair_state {
    KEDGEI_PAIR_FREE,
    KEDGEI_PAIR_ASKED,     /* CONNECT: the client's head is read */
    KEDGEI_PAIR_RESOLVING, /* the target's name */
    KEDGEI_PAIR_DIALLING,
    KEDGEI_PAIR_OPEN,
    KEDGEI_PAIR_DONE, /* closed; free after this turn of the loop, whose events may still name it */
};

struct kedgei_pair;

/* One end, and what was read there and is to be written at the other. */
struct kedgei_end {
    struct kedgei_pair *pair;
    int fd;           /* -1: none */
    uint32_t watched; /* events */
    bool ended;       /* it sends no more */
    bool shut;        /* it is told no more */
    uint8_t *buffer;  /* KEDGEI_RELAY_BUFFER bytes */
    size_t begin, end;
    uint64_t allowance, bytes;
};

struct kedgei_pair {
    struct kedge_relay *relay;
    enum kedgei_pair_state state;
    struct kedgei_end client, server;
    struct kedgei_resolution *resolution; /* its events name `resolving` */
    const struct addrinfo *next;          /* address to dial */
    struct kedgei_end resolving;
    struct in6_addr source; /* v4 as v4-mapped */
    uint64_t moved_ns;      /* when something moved last, or when the state began */
};

struct kedgei_network {
    struct in6_addr address;
    unsigned bits; /* of 128 */
};

struct kedge_relay {
    struct kedge_relay_options options;
    struct kedgei_address targets[KEDGE_RELAY_TARGETS_MAX];
    size_t target_count;
    struct kedgei_network sources[KEDGE_RELAY_SOURCES_MAX];
    size_t source_count;
    struct kedgei_loop loop;
    bool has_loop;
    int listener;
    unsigned port;
    bool stop; /* atomic by __atomic */
    struct kedgei_pair *pairs;
    uint32_t open_count;
    bool throttled; /* some connection waits for its allowance */
    uint64_t last_tick_ns, refused, said_ns;
};

/* relay_pair.c */
/* A free pair takes a client; fd is its own from now on. */
void kedgei_pair_begin(struct kedge_relay *r, struct kedgei_pair *p, int fd, uint64_t now_ns);
void kedgei_pair_event(struct kedgei_end *end, uint32_t events, uint64_t now_ns);
/* Between events: allowance for another tick, and the end of those that stood still for too long. */
void kedgei_pair_tick(struct kedgei_pair *p, uint64_t now_ns, uint64_t allowance);
void kedgei_pair_close(struct kedgei_pair *p, const char *why);

#endif
