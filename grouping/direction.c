#include "grouping/direction.h"

#include "grouping/flexcfl.h"

/* Nearest integer to sum / count, ties to even, for any sign; count below 2^62. */
static int32_t divide_half_even(int64_t sum, int64_t count)
{
    int64_t quotient = sum / count;
    int64_t rest = sum % count;
    if (rest < 0) { /* floor division from here on */
        rest += count;
        quotient--;
    }
    int64_t twice = 2 * rest;
    if (twice > count || (twice == count && (quotient & 1) != 0)) {
        quotient++;
    }
    return (int32_t)quotient;
}

int kedge_direction_tile(const int32_t *const *members, size_t count, size_t first, size_t n, int32_t *out)
{
    enum { CHUNK = 512 };
    if (count == 0 || count > KEDGE_SITES_MAX) {
        return KEDGE_E_ARG;
    }
    for (size_t done = 0; done < n; done += CHUNK) {
        size_t chunk = n - done < CHUNK ? n - done : CHUNK;
        int64_t sum[CHUNK] = {0};
        for (size_t k = 0; k < count; k++) {
            const int32_t *values = members[k] + first + done;
            for (size_t i = 0; i < chunk; i++) {
                sum[i] += values[i];
            }
        }
        for (size_t i = 0; i < chunk; i++) {
            out[done + i] = divide_half_even(sum[i], (int64_t)count);
        }
    }
    return KEDGE_OK;
}

/* Weights in order, of which the sum times limit must stay below 2^62. */
static int add_weights(const uint64_t *weight, size_t count, int32_t limit, int64_t *ret_sum)
{
    uint64_t sum = 0;
    if (count == 0 || count > KEDGE_SITES_MAX || limit < 1) {
        return KEDGE_E_ARG;
    }
    for (size_t k = 0; k < count; k++) {
        if (weight[k] > INT32_MAX) {
            return KEDGE_E_ARG;
        }
        sum += weight[k];
    }
    if (sum == 0) {
        return KEDGE_E_ARG;
    }
    if (sum > ((UINT64_C(1) << 62) - 1) / (uint64_t)limit) {
        return KEDGE_E_OVERFLOW;
    }
    *ret_sum = (int64_t)sum;
    return KEDGE_OK;
}

int kedge_direction_weighted_tile(const int32_t *const *members, const uint64_t *weight, size_t count,
                                  int32_t limit, size_t first, size_t n, int32_t *out)
{
    enum { CHUNK = 512 };
    int64_t all = 0;
    int err = add_weights(weight, count, limit, &all);
    for (size_t done = 0; done < n && !err; done += CHUNK) {
        size_t chunk = n - done < CHUNK ? n - done : CHUNK;
        int64_t sum[CHUNK] = {0};
        for (size_t k = 0; k < count; k++) {
            if (weight[k] == 0) {
                continue;
            }
            const int32_t *values = members[k] + first + done;
            for (size_t i = 0; i < chunk; i++) {
                sum[i] += (int64_t)weight[k] * values[i];
            }
        }
        for (size_t i = 0; i < chunk; i++) {
            out[done + i] = divide_half_even(sum[i], all);
        }
    }
    return err;
}
