/* SCAFFOLD's server step for c: c ← c + (1 / N) Σ (c_k' − c_k), the sum over the round's sites, N all of the
 * job (Karimireddy et al., ICML 2020, algorithm 1). Changes come as whole numbers, so this is the integer
 * mean with weights of 1 and N for their sum. */
#include <math.h>

#include "aggregation/mean.h"
#include "common/base/mem.h"
#include "common/base/try.h"
#include "strategy/server.h"

int kedge_server_control_tile(const float *control, const int32_t *const *changes, size_t count,
                              uint64_t sites, unsigned scale_bits, size_t first, size_t n, float *out)
{
    if (sites == 0 || sites < count) {
        return KEDGE_E_ARG;
    }
    struct kedge_mean_source *sources KEDGE_CLEANUP(kedge_mem_release) =
        kedge_mem_new(count ? count : 1, sizeof *sources);
    KEDGE_TRY_MEM(sources);
    for (size_t k = 0; k < count; k++) {
        sources[k] = (struct kedge_mean_source){.values = changes[k], .weight = 1};
    }
    KEDGE_TRY(kedge_mean_tile(control, sources, count, first, n, scale_bits, sites, out));
    for (size_t i = 0; i < n; i++) {
        KEDGE_TRY(isfinite(out[i]) ? KEDGE_OK : KEDGE_E_NOT_FINITE);
    }
    return KEDGE_OK;
}
