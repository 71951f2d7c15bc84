/* pmaddwd multiplies sixteen pairs and adds neighbours: at most 2 * 2047^2 per lane, of which 256 fit in
 * int32. */
#include "aggregation/gram_impl.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include "aggregation/gram.h"

#define AVX2 __attribute__((target("avx2,fma")))
#define INLINE static inline __attribute__((always_inline))

AVX2 size_t kedgei_max_abs_avx2(const int32_t *q, size_t n, uint32_t *max)
{
    __m256i most = _mm256_setzero_si256();
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        /* the magnitude of -2^31 is 2^31 when read as unsigned */
        __m256i size = _mm256_abs_epi32(_mm256_loadu_si256((const __m256i *)(q + i)));
        most = _mm256_max_epu32(most, size);
    }
    uint32_t lanes[8];
    _mm256_storeu_si256((__m256i *)lanes, most);
    for (int k = 0; k < 8; k++) {
        *max = lanes[k] > *max ? lanes[k] : *max;
    }
    return i;
}

/* Four values: multiply by a reciprocal, and divide exactly only where that lands close to a tie. The
 * product is off by less than 2^-40, and rounding is safe farther than that from a tie. */
AVX2 INLINE __m128i scale_four(__m128i q, __m256d factor, __m256d max)
{
    const __m256d sign = _mm256_set1_pd(-0.0);
    const __m256d close = _mm256_set1_pd(0.5 - 0x1.0p-30);
    __m256d value = _mm256_cvtepi32_pd(q);
    __m256d scaled = _mm256_mul_pd(value, factor);
    __m256d whole = _mm256_round_pd(scaled, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    __m256d off = _mm256_andnot_pd(sign, _mm256_sub_pd(scaled, whole));
    if (__builtin_expect(_mm256_movemask_pd(_mm256_cmp_pd(off, close, _CMP_GE_OQ)) != 0, 0)) {
        value = _mm256_mul_pd(value, _mm256_set1_pd(KEDGE_GRAM_ONE)); /* exact */
        whole = _mm256_div_pd(value, max);
    }
    return _mm256_cvtpd_epi32(whole);
}

AVX2 size_t kedgei_scale12_avx2(const int32_t *q, size_t n, uint32_t max, int16_t *out)
{
    const __m256d divisor = _mm256_set1_pd((double)max);
    const __m256d factor = _mm256_set1_pd((double)KEDGE_GRAM_ONE / (double)max);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m128i low = scale_four(_mm_loadu_si128((const __m128i *)(q + i)), factor, divisor);
        __m128i high = scale_four(_mm_loadu_si128((const __m128i *)(q + i + 4)), factor, divisor);
        _mm_storeu_si128((__m128i *)(out + i), _mm_packs_epi32(low, high));
    }
    return i;
}

AVX2 INLINE __m256i load(const int16_t *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}

AVX2 INLINE int64_t sum_lanes(__m256i v)
{
    int32_t lanes[8];
    _mm256_storeu_si256((__m256i *)lanes, v);
    int64_t sum = 0;
    for (int k = 0; k < 8; k++) {
        sum += lanes[k];
    }
    return sum;
}

AVX2 size_t kedgei_dot12_avx2(const int16_t *a, const int16_t *b, size_t n, int64_t *sum)
{
    enum { BLOCK = 256 * 16 };
    size_t i = 0;
    while (n - i >= 16) {
        size_t whole = (n - i) & ~(size_t)15;
        size_t end = i + (whole < BLOCK ? whole : BLOCK);
        __m256i acc = _mm256_setzero_si256();
        for (; i < end; i += 16) {
            acc = _mm256_add_epi32(acc, _mm256_madd_epi16(load(a + i), load(b + i)));
        }
        *sum += sum_lanes(acc);
    }
    return i;
}

AVX2 size_t kedgei_dot12_four_avx2(const int16_t *a, const int16_t *const b[4], size_t n, int64_t sum[4])
{
    __m256i acc0 = _mm256_setzero_si256();
    __m256i acc1 = acc0;
    __m256i acc2 = acc0;
    __m256i acc3 = acc0;
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m256i v = load(a + i);
        acc0 = _mm256_add_epi32(acc0, _mm256_madd_epi16(v, load(b[0] + i)));
        acc1 = _mm256_add_epi32(acc1, _mm256_madd_epi16(v, load(b[1] + i)));
        acc2 = _mm256_add_epi32(acc2, _mm256_madd_epi16(v, load(b[2] + i)));
        acc3 = _mm256_add_epi32(acc3, _mm256_madd_epi16(v, load(b[3] + i)));
    }
    sum[0] += sum_lanes(acc0);
    sum[1] += sum_lanes(acc1);
    sum[2] += sum_lanes(acc2);
    sum[3] += sum_lanes(acc3);
    return i;
}
#else
typedef int kedgei_gram_avx2_unused; /* a translation unit holds at least one declaration */
#endif
