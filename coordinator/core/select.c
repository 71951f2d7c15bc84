/* Selection of sites: uniform without replacement, re-derivable by anyone who knows seed, round and
 * candidates. */
#include "coordinator/core/coord.h"

#include "common/base/rng.h"

void kedge_coord_select(uint64_t seed, uint32_t round, uint32_t count, uint32_t k, uint32_t *scratch,
                        bool *ret_selected)
{
    bool all = k == 0 || k >= count;
    for (uint32_t i = 0; i < count; i++) {
        scratch[i] = i;
        ret_selected[i] = all;
    }
    if (all) {
        return;
    }
    struct kedge_rng rng;
    kedge_rng_init(&rng, seed, KEDGE_RNG_SELECT, round, 0);
    kedge_rng_sample(&rng, scratch, count, k);
    for (uint32_t i = 0; i < k; i++) {
        KEDGE_ASSERT(!ret_selected[scratch[i]]);
        ret_selected[scratch[i]] = true;
    }
}
