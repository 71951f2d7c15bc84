#include "grouping/quota.h"

#include <math.h>

#include "aggregation/share_cap.h"
#include "common/base/mem.h"
#include "common/base/try.h"

/* Σ min(available, level), not beyond want + 1. */
static uint64_t count_below(const uint64_t *available, size_t tenants, uint64_t level, uint64_t want)
{
    uint64_t sum = 0;
    for (size_t t = 0; t < tenants; t++) {
        uint64_t some = available[t] < level ? available[t] : level;
        if (some > want - sum) {
            return want + 1;
        }
        sum += some;
    }
    return sum;
}

int kedge_quota(const uint64_t *available, size_t tenants, uint64_t want, uint64_t *take)
{
    if (tenants == 0 || want == UINT64_MAX) {
        return KEDGE_E_ARG;
    }
    uint64_t low = 0, high = want; /* the largest level that does not take more than want */
    while (low < high) {
        uint64_t middle = high - (high - low) / 2;
        if (count_below(available, tenants, middle, want) <= want) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    uint64_t left = want - count_below(available, tenants, low, want);
    for (size_t t = 0; t < tenants; t++) {
        take[t] = available[t] < low ? available[t] : low;
        if (available[t] > low && left > 0) {
            take[t]++;
            left--;
        }
    }
    return KEDGE_OK;
}

/* Updates that are zero are not counted, for the clustering leaves them out: the others of a tenant weigh 1
 * together. */
int kedge_quota_weights(const uint32_t *tenant, const uint32_t *maxima, size_t count, double *weight)
{
    uint64_t usable[KEDGE_SHARE_TENANTS_MAX] = {0};
    for (size_t i = 0; i < count; i++) {
        if (tenant[i] >= KEDGE_SHARE_TENANTS_MAX) {
            return KEDGE_E_ARG;
        }
        usable[tenant[i]] += maxima[i] != 0;
    }
    for (size_t i = 0; i < count; i++) {
        weight[i] = maxima[i] != 0 ? 1.0 / (double)usable[tenant[i]] : 1.0;
    }
    return KEDGE_OK;
}

/* What each update that is not zero counts by its tenant's share: equal weights under the cap. They are
 * 2^20 each, so that the cap's whole numbers divide finely. */
static int cap_shares(const uint32_t *tenant, const int64_t *square, size_t count, uint32_t share_max,
                      struct kedge_share_input *inputs)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        if (square[i] < 0 || tenant[i] >= KEDGE_SHARE_TENANTS_MAX) {
            return KEDGE_E_ARG;
        }
        if (square[i] > 0) {
            inputs[n++] = (struct kedge_share_input){.tenant = tenant[i], .weight = UINT64_C(1) << 20};
        }
    }
    return n == 0 ? KEDGE_E_NO_DIRECTION : kedge_share_cap(inputs, n, share_max);
}

int kedge_quota_direction(const uint32_t *tenant, const int64_t *square, size_t count, uint32_t share_max,
                          uint64_t *weight)
{
    struct kedge_share_input *inputs KEDGE_CLEANUP(kedge_mem_release) =
        kedge_mem_new(count ? count : 1, sizeof *inputs);
    KEDGE_TRY(inputs ? cap_shares(tenant, square, count, share_max, inputs) : KEDGE_E_NOMEM);
    double most = 0.0;
    for (size_t i = 0, n = 0; i < count; i++) {
        if (square[i] > 0) {
            double share = (double)inputs[n++].weight / sqrt((double)square[i]);
            most = share > most ? share : most;
        }
    }
    for (size_t i = 0, n = 0; i < count; i++) {
        weight[i] = 0;
        if (square[i] > 0) {
            double share = (double)inputs[n++].weight / sqrt((double)square[i]);
            weight[i] = (uint64_t)((share / most) * 0x1p+20 + 0.5);
        }
    }
    return KEDGE_OK;
}
