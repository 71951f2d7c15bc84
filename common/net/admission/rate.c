/* Addresses share a table of fixed size, or an attacker with many addresses could make the server use as
 * much memory as he likes. A set keeps the addresses that were used last; the set is chosen by a hash with
 * a secret seed, so that nobody can pick addresses that fall into another's set. */
#include "common/net/admission/rate.h"

#include <string.h>

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
