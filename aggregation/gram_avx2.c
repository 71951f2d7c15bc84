/* pmaddwd multiplies sixteen pairs and adds neighbours: at most 2 * 2047^2 per lane, of which 256 fit in
 * int32. */
#include "aggregation/gram_impl.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include "aggregation/gram.h"

#define AVX2 __attribute__((target("avx2,fma")))
#define INLINE static inline __attribute__((always_inline))

/* A core reads several streams side by side half as fast again as one: a long vector is read in four parts.
 */
AVX2 size_t kedgei_max_abs_avx2(const int32_t *q, size_t n, uint32_t *max)
{
    enum { PARTS = 4, STEP = 16 };
    const size_t parts = n >= KEDGEI_GRAM_LONG ? PARTS : 1;
    const size_t part = n / parts / STEP * STEP;
    __m256i even = _mm256_setzero_si256();
    __m256i odd = even;
    for (size_t i = 0; i < part; i += STEP) {
        for (size_t k = 0; k < parts; k++) {
            /* the magnitude of -2^31 is 2^31 when read as unsigned */
            const __m256i *v = (const __m256i *)(q + k * part + i);
            even = _mm256_max_epu32(even, _mm256_abs_epi32(_mm256_loadu_si256(v)));
            odd = _mm256_max_epu32(odd, _mm256_abs_epi32(_mm256_loadu_si256(v + 1)));
        }
    }
    uint32_t lanes[8];
    _mm256_storeu_si256((__m256i *)lanes, _mm256_max_epu32(even, odd));
    for (int k = 0; k < 8; k++) {
        *max = lanes[k] > *max ? lanes[k] : *max;
    }
    return parts * part;
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

AVX2 __attribute__((noinline)) static void scale_sixteen_exactly(const int32_t *q, uint32_t max, int16_t *out)
{
    const __m256d divisor = _mm256_set1_pd((double)max);
    const __m256d factor = _mm256_set1_pd((double)KEDGE_GRAM_ONE / (double)max);
    for (size_t i = 0; i < 16; i += 8) {
        __m128i low = scale_four(_mm_loadu_si128((const __m128i *)(q + i)), factor, divisor);
        __m128i high = scale_four(_mm_loadu_si128((const __m128i *)(q + i + 4)), factor, divisor);
        _mm_storeu_si128((__m128i *)(out + i), _mm_packs_epi32(low, high));
    }
}

/* Eight values in binary32; off: how far each was from the whole number it became. */
AVX2 INLINE __m256i scale_eight(__m256i q, __m256 factor, __m256 *off)
{
    __m256 scaled = _mm256_mul_ps(_mm256_cvtepi32_ps(q), factor);
    __m256i whole = _mm256_cvtps_epi32(scaled);
    *off = _mm256_andnot_ps(_mm256_set1_ps(-0.0f), _mm256_sub_ps(scaled, _mm256_cvtepi32_ps(whole)));
    return whole;
}

/* The value, the factor and their product are each rounded to 24 bits: off by less than 3 * 2^-24 * 2047 <
 * 2^-11.4. Farther than 2^-11 from a tie that moves nothing; about one vector in sixty is nearer and goes the
 * exact way. */
AVX2 size_t kedgei_scale12_avx2(const int32_t *q, size_t n, uint32_t max, int16_t *out)
{
    const __m256 factor = _mm256_set1_ps((float)((double)KEDGE_GRAM_ONE / (double)max));
    const __m256 close = _mm256_set1_ps(0.5f - 0x1.0p-11f);
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m256 off_low;
        __m256 off_high;
        __m256i low = scale_eight(_mm256_loadu_si256((const __m256i *)(q + i)), factor, &off_low);
        __m256i high = scale_eight(_mm256_loadu_si256((const __m256i *)(q + i + 8)), factor, &off_high);
        __m256 off = _mm256_max_ps(off_low, off_high);
        if (__builtin_expect(_mm256_movemask_ps(_mm256_cmp_ps(off, close, _CMP_GE_OQ)) != 0, 0)) {
            scale_sixteen_exactly(q + i, max, out + i);
            continue;
        }
        __m256i both = _mm256_permute4x64_epi64(_mm256_packs_epi32(low, high), 0xd8);
        _mm256_storeu_si256((__m256i *)(out + i), both);
    }
    return i;
}

AVX2 INLINE __m256i load(const int16_t *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}

AVX2 INLINE int64_t sum_lanes(__m256i v)
{
    __m256i wide = _mm256_add_epi64(_mm256_cvtepi32_epi64(_mm256_castsi256_si128(v)),
                                    _mm256_cvtepi32_epi64(_mm256_extracti128_si256(v, 1)));
    __m128i two = _mm_add_epi64(_mm256_castsi256_si128(wide), _mm256_extracti128_si256(wide, 1));
    return _mm_cvtsi128_si64(two) + _mm_extract_epi64(two, 1);
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

/* The empty assembly keeps gcc 12 from multiplying everything first and running out of registers. */
AVX2 INLINE void add_product(__m256i a, __m256i b, __m256i *sum)
{
    *sum = _mm256_add_epi32(*sum, _mm256_madd_epi16(a, b));
    __asm__("" : "+x"(*sum));
}

/* A lane of a sum takes KEDGE_GRAM_TILE / 16 = 64 results of pmaddwd. */
#define KEDGEI_GRAM_TARGET AVX2
#define KEDGEI_GRAM_NAME kedgei_gram_block_avx2
#define KEDGEI_GRAM_VECTOR __m256i
#define KEDGEI_GRAM_WIDTH 16
#define KEDGEI_GRAM_ZERO _mm256_setzero_si256()
#include "aggregation/gram_block.h"
#else
typedef int kedgei_gram_avx2_unused; /* a translation unit holds at least one declaration */
#endif
