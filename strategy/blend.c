#include "strategy/blend.h"

#include <string.h>

/* One model alone is copied and not computed, so that a group that nobody joined keeps its model bit for
 * bit. Models with weight 0 are never read; they may be missing. */
int kedge_blend_tile(const float *const *models, const uint64_t *weight, size_t count, size_t first, size_t n,
                     float *out)
{
    const uint64_t most = UINT64_C(1) << 53;
    uint64_t sum = 0;
    size_t used = 0, only = 0;
    for (size_t k = 0; k < count; k++) {
        if (weight[k] > most - sum) {
            return KEDGE_E_ARG;
        }
        sum += weight[k];
        if (weight[k] > 0) {
            used++;
            only = k;
        }
    }
    if (sum == 0) {
        return KEDGE_E_ARG;
    }
    if (used == 1) {
        memmove(out, models[only] + first, n * sizeof *out);
        return KEDGE_OK;
    }
    const double divisor = (double)sum;
    for (size_t i = 0; i < n; i++) {
        double total = 0;
        for (size_t k = 0; k < count; k++) {
            if (weight[k] > 0) {
                total += (double)weight[k] * (double)models[k][first + i];
            }
        }
        out[i] = (float)(total / divisor);
    }
    return KEDGE_OK;
}
