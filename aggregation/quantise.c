/* The wide paths do all that is plainly good; the first group with anything doubtful goes through the
 * scalar code, which alone decides about errors. So both agree on values, errors and indices. */
#include "aggregation/quantise.h"

#include <math.h>

#include "aggregation/neon.h"
#include "aggregation/quantise_impl.h"
#include "aggregation/simd.h"
#include "common/base/try.h"

/* Nearest integer, ties to even, for |x| < 2^51: the sum's last mantissa bit weighs 1. */
static double round_half_even(double x)
{
    const double shift = 0x1.8p52;
    return (x + shift) - shift;
}

int kedge_scale_limit(double bound, unsigned scale_bits, int32_t *ret_limit)
{
    if (!isfinite(bound) || bound <= 0.0 || scale_bits > KEDGE_SCALE_BITS_MAX) {
        return KEDGE_E_ARG;
    }
    double scale = (double)(UINT64_C(1) << scale_bits);
    if (bound >= 0x1.0p31) {
        return KEDGE_E_OVERFLOW; /* also keeps the product below within round_half_even's range */
    }
    double limit = bound * scale;
    if (limit >= 0x1.0p31) {
        return KEDGE_E_OVERFLOW;
    }
    limit = round_half_even(limit);
    if (limit < 1.0 || limit > 2147483647.0) {
        return KEDGE_E_OVERFLOW;
    }
    *ret_limit = (int32_t)limit;
    return KEDGE_OK;
}

/* A job is refused at submission if any round could reach 2^62, instead of failing in the round in which
 * many large updates meet. */
int kedge_scale_check(double bound, unsigned scale_bits, uint64_t weight_max_sum)
{
    int32_t limit;
    KEDGE_TRY(kedge_scale_limit(bound, scale_bits, &limit));
    const uint64_t most = (UINT64_C(1) << 62) - 1;
    return weight_max_sum > most / (uint64_t)limit ? KEDGE_E_OVERFLOW : KEDGE_OK;
}

/* The comparison is written so that a NaN fails it, too. */
static int quantise_scalar(const struct kedgei_quantise *job, size_t first, size_t n, size_t *ret_bad)
{
    for (size_t i = first; i < n; i++) {
        double value = (double)job->after[i] - (double)job->before[i];
        if (!(fabs(value) <= job->bound)) {
            if (ret_bad) {
                *ret_bad = i;
            }
            return isfinite(value) ? KEDGE_E_BOUND : KEDGE_E_NOT_FINITE;
        }
        job->out[i] = (int32_t)round_half_even(value * job->scale);
    }
    return KEDGE_OK;
}

int kedge_quantise(const float *before, const float *after, size_t n, unsigned scale_bits, double bound,
                   int32_t *out, size_t *ret_bad)
{
    int32_t limit;
    KEDGE_TRY(kedge_scale_limit(bound, scale_bits, &limit));
    struct kedgei_quantise job = {.before = before, .after = after, .bound = bound, .out = out};
    job.scale = (double)(UINT64_C(1) << scale_bits);
    size_t done = 0;
#if defined(__x86_64__)
    if (kedge_simd_avx2()) {
        done = kedgei_quantise_avx2(&job, n);
    }
#elif defined(__aarch64__)
    if (kedge_simd_get() == KEDGE_SIMD_NEON) {
        done = kedgei_quantise_neon(&job, n);
    }
#endif
    return quantise_scalar(&job, done, n, ret_bad);
}

int kedge_update_check(const int32_t *q, size_t n, int32_t limit, size_t *ret_bad)
{
    if (limit < 0) {
        return KEDGE_E_ARG;
    }
    size_t done = 0;
#if defined(__x86_64__)
    if (kedge_simd_avx2()) {
        done = kedgei_update_check_avx2(q, n, limit);
    }
#elif defined(__aarch64__)
    if (kedge_simd_get() == KEDGE_SIMD_NEON) {
        done = kedgei_update_check_neon(q, n, limit);
    }
#endif
    for (size_t i = done; i < n; i++) {
        if (q[i] > limit || q[i] < -limit) {
            if (ret_bad) {
                *ret_bad = i;
            }
            return KEDGE_E_BOUND;
        }
    }
    return KEDGE_OK;
}
