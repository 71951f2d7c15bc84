/* How often something may happen. Pure; the caller says what time it is.
 *
 * A bucket holds `burst` tokens and gets one back every `interval_ns`. It is kept as the moment at which it
 * will be full again (the generic cell rate algorithm, ITU-T I.371 annex A), so that one of zeros is full. */
#ifndef KEDGE_COMMON_BASE_RATE_H
#define KEDGE_COMMON_BASE_RATE_H

#include <stdbool.h>
#include <stdint.h>

struct kedge_rate {
    uint64_t interval_ns; /* until a token comes back */
    uint32_t burst;       /* tokens of a full bucket, at least 1 */
};

struct kedge_bucket {
    uint64_t full_ns; /* when it will be full */
};

/* Takes `tokens`, 1 to burst, or leaves the bucket as it is and says false. */
bool kedge_bucket_take(struct kedge_bucket *b, const struct kedge_rate *rate, uint32_t tokens,
                       uint64_t now_ns);
/* How long until that many could be taken; 0: now. */
uint64_t kedge_bucket_wait_ns(const struct kedge_bucket *b, const struct kedge_rate *rate, uint32_t tokens,
                              uint64_t now_ns);
/* Puts tokens back; what does not fit is lost. */
void kedge_bucket_give(struct kedge_bucket *b, const struct kedge_rate *rate, uint32_t tokens);
/* From its own bucket and from that of all, or from neither. */
bool kedge_buckets_take(struct kedge_bucket *own, const struct kedge_rate *own_rate, struct kedge_bucket *all,
                        const struct kedge_rate *all_rate, uint32_t tokens, uint64_t now_ns);
/* Nothing is missing in it. */
bool kedge_bucket_is_full(const struct kedge_bucket *b, uint64_t now_ns);

#endif
