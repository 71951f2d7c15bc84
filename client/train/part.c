#include "client/train/part.h"

#include "common/base/mem.h"
#include "common/base/percent.h"
#include "common/base/rng.h"

int kedge_train_part(uint64_t seed, uint32_t percent, uint32_t n, uint32_t **ret, uint32_t *ret_count,
                     struct kedge_diag *reterr)
{
    struct kedge_rng rng;
    *ret = NULL;
    *ret_count = n;
    if (percent == 0 || percent >= KEDGE_PERCENT_ALL || n == 0) {
        return KEDGE_OK;
    }
    uint32_t *rows = kedge_mem_new(n, sizeof *rows);
    if (!rows) {
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "no memory for a part of %u samples", n);
    }
    for (uint32_t i = 0; i < n; i++) {
        rows[i] = i;
    }
    *ret_count = (uint32_t)kedge_percent_of(n, percent);
    kedge_rng_init(&rng, seed, KEDGE_RNG_PART, 0, 0);
    kedge_rng_sample(&rng, rows, n, *ret_count);
    *ret = rows;
    return KEDGE_OK;
}
