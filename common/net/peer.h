/* Who is at the other end of a connection. */
#ifndef KEDGE_COMMON_NET_PEER_H
#define KEDGE_COMMON_NET_PEER_H

#include <stdbool.h>
#include <stdint.h>

#include "crypto/sign.h"

enum kedge_net_kind {
    KEDGE_NET_TLS, /* tls+tcp://: mutually authenticated by key */
    KEDGE_NET_IPC, /* ipc://: a process of the same user (or root) on this machine */
    KEDGE_NET_TCP, /* tcp://: loopback only and insecure on both sides; nobody is authenticated */
};

struct kedge_net_peer {
    enum kedge_net_kind kind;
    bool has_key;                /* true for TLS; for TCP if the client claimed one */
    struct kedge_public_key key; /* TLS: its holder proved possession of the private key. TCP: what the
                                    client said, which anyone can: for federations within one machine */
    uint64_t connection;         /* never 0, unique among the open connections of this process */
};

#endif
