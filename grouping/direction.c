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

/* A chunk's sums stay in the cache while members are read one after the other; each member is read once, in
 * order. */
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

static int add_weights(const uint32_t *maxima, const uint64_t *weight, size_t count, int64_t *ret_sum)
{
    int64_t sum = 0;
    if (count == 0 || count > KEDGE_SITES_MAX) {
        return KEDGE_E_ARG;
    }
    for (size_t k = 0; k < count; k++) {
        if (weight[k] > (UINT64_C(1) << 20) || (weight[k] != 0 && maxima[k] == 0)) {
            return KEDGE_E_ARG;
        }
        sum += (int64_t)weight[k];
    }
    *ret_sum = sum;
    return sum > 0 ? KEDGE_OK : KEDGE_E_ARG;
}

/* Sums: 2^20 · 2^11 · 2^12 members · 2^12 = 2^55. */
int kedge_direction_unit_tile(const int32_t *const *members, const uint32_t *maxima, const uint64_t *weight,
                              size_t count, size_t first, size_t n, int32_t *out)
{
    enum { CHUNK = 512 };
    int64_t all = 0;
    int err = add_weights(maxima, weight, count, &all);
    for (size_t done = 0; done < n && !err; done += CHUNK) {
        size_t chunk = n - done < CHUNK ? n - done : CHUNK;
        int64_t sum[CHUNK] = {0};
        int16_t x[CHUNK];
        for (size_t k = 0; k < count; k++) {
            if (weight[k] == 0) {
                continue;
            }
            kedge_scale12(members[k] + first + done, chunk, maxima[k], x);
            for (size_t i = 0; i < chunk; i++) {
                sum[i] += (int64_t)weight[k] * x[i];
            }
        }
        for (size_t i = 0; i < chunk; i++) {
            out[done + i] = divide_half_even(4096 * sum[i], all);
        }
    }
    return err;
}
