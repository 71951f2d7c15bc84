/* Internal to net: how often something may happen. Pure; the caller says what time it is.
 *
 * A bucket holds `burst` tokens and gets one back every `interval_ns`. It is kept as the moment at which it
 * will be full again (the generic cell rate algorithm, ITU-T I.371 annex A), so that one of zeros is full. */
#ifndef KEDGE_COMMON_NET_ADMISSION_RATE_H
#define KEDGE_COMMON_NET_ADMISSION_RATE_H

#include <stdbool.h>
#include <stdint.h>

struct kedgei_rate {
    uint64_t interval_ns; /* until a token comes back */
    uint32_t burst;       /* tokens of a full bucket, at least 1 */
};

struct kedgei_bucket {
    uint64_t full_ns; /* when it will be full */
};

/* Takes `tokens`, 1 to burst, or leaves the bucket as it is and says false. */
bool kedgei_bucket_take(struct kedgei_bucket *b, const struct kedgei_rate *rate, uint32_t tokens,
                        uint64_t now_ns);
/* Puts tokens back; what does not fit is lost. */
void kedgei_bucket_give(struct kedgei_bucket *b, const struct kedgei_rate *rate, uint32_t tokens);
/* From its own bucket and from that of all, or from neither. */
bool kedgei_buckets_take(struct kedgei_bucket *own, const struct kedgei_rate *own_rate,
                         struct kedgei_bucket *all, const struct kedgei_rate *all_rate, uint32_t tokens,
                         uint64_t now_ns);
/* Nothing is missing in it. */
bool kedgei_bucket_is_full(const struct kedgei_bucket *b, uint64_t now_ns);

/* Buckets of addresses: a table of fixed size in which the one that was used longest ago makes room. What is
 * forgotten is full again, so many addresses together need a bucket of their own (KEDGE_NET_ALL_ARRIVALS). */
enum { KEDGEI_ADDRESS_LEN = 16, KEDGEI_ADDRESS_SETS = 512, KEDGEI_ADDRESS_WAYS = 4 };

struct kedgei_source {
    uint8_t address[KEDGEI_ADDRESS_LEN]; /* IPv6; IPv4 mapped into it */
    uint64_t used_ns;                    /* 0: free */
    struct kedgei_bucket arrivals, requests;
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
