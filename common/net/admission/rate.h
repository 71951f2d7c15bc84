/* Internal to net: what addresses have left of how often they may come. Pure; the caller says what time it
 * is. */
#ifndef KEDGE_COMMON_NET_ADMISSION_RATE_H
#define KEDGE_COMMON_NET_ADMISSION_RATE_H

#include <stdint.h>

#include "common/base/rate.h"

/* Buckets of addresses: a table of fixed size in which the one that was used longest ago makes room. What is
 * forgotten is full again, so many addresses together need a bucket of their own (KEDGE_NET_ALL_ARRIVALS). */
enum { KEDGEI_ADDRESS_LEN = 16, KEDGEI_ADDRESS_SETS = 512, KEDGEI_ADDRESS_WAYS = 4 };

struct kedgei_source {
    uint8_t address[KEDGEI_ADDRESS_LEN]; /* IPv6; IPv4 mapped into it */
    uint64_t used_ns;                    /* 0: free */
    struct kedge_bucket arrivals, requests;
};

struct kedgei_sources {
    uint64_t seed; /* secret, so that nobody can choose addresses that push another one out */
    struct kedgei_source rows[KEDGEI_ADDRESS_SETS][KEDGEI_ADDRESS_WAYS];
};

/* The address's row, a new one when it has none; valid until the next call. Never NULL. */
struct kedgei_source *kedgei_sources_find(struct kedgei_sources *s, const uint8_t address[KEDGEI_ADDRESS_LEN],
                                          uint64_t now_ns);
/* Whom an address stands for: an IPv6 host has a network of 64 bits to itself, so these are told apart and
 * not its addresses. IPv4 ones stay as they are. */
void kedgei_address_shorten(uint8_t address[KEDGEI_ADDRESS_LEN]);

#endif
