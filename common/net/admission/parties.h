/* Internal to net: known keys with the connections that each has now. What one may hold (connections, memory,
 * requests in a second) it holds over all of them together. On the network thread but for `large`. */
#ifndef KEDGE_COMMON_NET_ADMISSION_PARTIES_H
#define KEDGE_COMMON_NET_ADMISSION_PARTIES_H

#include <stddef.h>

#include "common/net/admission/rate.h"
#include "crypto/sign.h"

struct kedgei_party {
    struct kedge_public_key key;
    unsigned connections;
    size_t large; /* bytes of the large account (budget.h); under the server's mutex */
    /* They outlive the connections, so that dialling again fills no bucket. */
    struct kedge_bucket arrivals, requests;
    struct kedgei_party *next; /* with the same hash */
};

enum { KEDGEI_PARTY_CHAINS = 1024 };

struct kedgei_parties {
    struct kedgei_party *chains[KEDGEI_PARTY_CHAINS];
    unsigned count;
};

/* The key's party, a new one when it has none. NULL: out of memory. */
struct kedgei_party *kedgei_parties_find(struct kedgei_parties *all, const struct kedge_public_key *key);
/* Forgets those without connections whose buckets are full; with time UINT64_MAX all without connections. */
void kedgei_parties_sweep(struct kedgei_parties *all, uint64_t now_ns);

#endif
