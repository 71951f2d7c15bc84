/* Four values at a time; cvtpd rounds half to even, as the scalar code does. Stops at the first doubtful
 * group. */
#include "aggregation/quantise_impl.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define AVX2 __attribute__((target("avx2")))

AVX2 size_t kedgei_quantise_avx2(const struct kedgei_quantise *job, size_t n)
{
    const __m256d scale = _mm256_set1_pd(job->scale);
    const __m256d bound = _mm256_set1_pd(job->bound);
    const __m256d sign = _mm256_set1_pd(-0.0);
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        __m256d after = _mm256_cvtps_pd(_mm_loadu_ps(job->after + i));
        __m256d before = _mm256_cvtps_pd(_mm_loadu_ps(job->before + i));
        __m256d value = _mm256_sub_pd(after, before);
        __m256d good = _mm256_cmp_pd(_mm256_andnot_pd(sign, value), bound, _CMP_LE_OQ); /* false for NaN */
        if (_mm256_movemask_pd(good) != 15) {
            break;
        }
        __m128i q = _mm256_cvtpd_epi32(_mm256_mul_pd(value, scale));
        _mm_storeu_si128((__m128i *)(job->out + i), q);
    }
    return i;
}

AVX2 size_t kedgei_update_check_avx2(const int32_t *q, size_t n, int32_t limit)
{
    const __m256i most = _mm256_set1_epi32(limit);
    const __m256i least = _mm256_set1_epi32(-limit);
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m256i a = _mm256_loadu_si256((const __m256i *)(q + i));
        __m256i b = _mm256_loadu_si256((const __m256i *)(q + i + 8));
        __m256i over = _mm256_cmpgt_epi32(_mm256_max_epi32(a, b), most);
        __m256i under = _mm256_cmpgt_epi32(least, _mm256_min_epi32(a, b));
        if (_mm256_movemask_epi8(_mm256_or_si256(over, under)) != 0) {
            break;
        }
    }
    return i;
}
#else
typedef int kedgei_quantise_avx2_unused; /* a translation unit holds at least one declaration */
#endif
