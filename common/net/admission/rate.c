/* Token buckets that need no timer: what is stored is the moment at which the bucket would be full again,
 * and a token moves that moment on by one interval. Refilling is the passing of time, so a bucket that
 * nobody uses costs nothing.
 *
 * Addresses share a table of fixed size, or an attacker with many addresses could make the server use as
 * much memory as he likes. A set keeps the addresses that were used last; the set is chosen by a hash with
 * a secret seed, so that nobody can pick addresses that fall into another's set. */
#include "common/net/admission/rate.h"

#include <string.h>

bool kedgei_bucket_take(struct kedgei_bucket *b, const struct kedgei_rate *rate, uint32_t tokens,
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

void kedgei_bucket_give(struct kedgei_bucket *b, const struct kedgei_rate *rate, uint32_t tokens)
{
    uint64_t back = tokens * rate->interval_ns;
    b->full_ns = b->full_ns > back ? b->full_ns - back : 0;
}

bool kedgei_buckets_take(struct kedgei_bucket *own, const struct kedgei_rate *own_rate,
                         struct kedgei_bucket *all, const struct kedgei_rate *all_rate, uint32_t tokens,
                         uint64_t now_ns)
{
    if (!kedgei_bucket_take(own, own_rate, tokens, now_ns)) {
        return false;
    }
    if (!kedgei_bucket_take(all, all_rate, tokens, now_ns)) {
        kedgei_bucket_give(own, own_rate, tokens);
        return false;
    }
    return true;
}

bool kedgei_bucket_is_full(const struct kedgei_bucket *b, uint64_t now_ns)
{
    return b->full_ns <= now_ns;
}

/* splitmix64's last steps: every bit of the address and of the seed decides. */
static uint64_t mix(uint64_t v)
{
    v = (v ^ v >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    v = (v ^ v >> 27) * UINT64_C(0x94d049bb133111eb);
    return v ^ v >> 31;
}

struct kedgei_source *kedgei_sources_find(struct kedgei_sources *s, const uint8_t address[KEDGEI_ADDRESS_LEN],
                                          uint64_t now_ns)
{
    uint64_t half[2];
    memcpy(half, address, sizeof half);
    struct kedgei_source *set = s->rows[mix(mix(half[0] ^ s->seed) ^ half[1]) % KEDGEI_ADDRESS_SETS];
    struct kedgei_source *oldest = &set[0];
    for (unsigned i = 0; i < KEDGEI_ADDRESS_WAYS; i++) {
        if (set[i].used_ns != 0 && memcmp(set[i].address, address, KEDGEI_ADDRESS_LEN) == 0) {
            set[i].used_ns = now_ns | 1;
            return &set[i];
        }
        oldest = set[i].used_ns < oldest->used_ns ? &set[i] : oldest;
    }
    *oldest = (struct kedgei_source){.used_ns = now_ns | 1};
    memcpy(oldest->address, address, KEDGEI_ADDRESS_LEN);
    return oldest;
}

void kedgei_address_shorten(uint8_t address[KEDGEI_ADDRESS_LEN])
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    if (memcmp(address, mapped, sizeof mapped) != 0) {
        memset(address + 8, 0, 8);
    }
}
