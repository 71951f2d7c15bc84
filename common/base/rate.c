/* Token buckets that need no timer: what is stored is the moment at which the bucket would be full again,
 * and a token moves that moment on by one interval. Refilling is the passing of time, so a bucket that
 * nobody uses costs nothing. */
#include "common/base/rate.h"

bool kedge_bucket_take(struct kedge_bucket *b, const struct kedge_rate *rate, uint32_t tokens,
                       uint64_t now_ns)
{
    uint64_t full = b->full_ns > now_ns ? b->full_ns : now_ns;
    full += tokens * rate->interval_ns;
    if (full > now_ns + rate->burst * rate->interval_ns) {
        return false;
    }
    b->full_ns = full;
    return true;
}

uint64_t kedge_bucket_wait_ns(const struct kedge_bucket *b, const struct kedge_rate *rate, uint32_t tokens,
                              uint64_t now_ns)
{
    const uint64_t full = (b->full_ns > now_ns ? b->full_ns : now_ns) + tokens * rate->interval_ns;
    const uint64_t most = now_ns + rate->burst * rate->interval_ns;
    return full > most ? full - most : 0;
}

void kedge_bucket_give(struct kedge_bucket *b, const struct kedge_rate *rate, uint32_t tokens)
{
    uint64_t back = tokens * rate->interval_ns;
    b->full_ns = b->full_ns > back ? b->full_ns - back : 0;
}

bool kedge_buckets_take(struct kedge_bucket *own, const struct kedge_rate *own_rate, struct kedge_bucket *all,
                        const struct kedge_rate *all_rate, uint32_t tokens, uint64_t now_ns)
{
    if (!kedge_bucket_take(own, own_rate, tokens, now_ns)) {
        return false;
    }
    if (!kedge_bucket_take(all, all_rate, tokens, now_ns)) {
        kedge_bucket_give(own, own_rate, tokens);
        return false;
    }
    return true;
}

bool kedge_bucket_is_full(const struct kedge_bucket *b, uint64_t now_ns)
{
    return b->full_ns <= now_ns;
}
