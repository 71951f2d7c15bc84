/* x86-64-v3: even and odd elements are squared apart, halves added up in lanes of 64 bits. */
#include "aggregation/norm_impl.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define AVX2 __attribute__((target("avx2")))

AVX2 static inline void add_squares(__m256i x, __m256i *high, __m256i *low)
{
    const __m256i square = _mm256_mul_epi32(x, x);
    *high = _mm256_add_epi64(*high, _mm256_srli_epi64(square, 32));
    *low = _mm256_add_epi64(*low, _mm256_blend_epi32(square, _mm256_setzero_si256(), 0xaa));
}

AVX2 static inline uint64_t add_lanes(__m256i x)
{
    uint64_t lane[4];
    _mm256_storeu_si256((__m256i *)lane, x);
    return lane[0] + lane[1] + lane[2] + lane[3];
}

AVX2 size_t kedgei_norm_avx2(const int32_t *q, size_t n, struct kedge_norm *sum)
{
    __m256i high[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
    __m256i low[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        for (size_t k = 0; k < 2; k++) {
            const __m256i x = _mm256_loadu_si256((const __m256i *)(q + i + 8 * k));
            add_squares(x, &high[k], &low[k]);
            add_squares(_mm256_srli_epi64(x, 32), &high[k], &low[k]);
        }
    }
    sum->high += add_lanes(_mm256_add_epi64(high[0], high[1]));
    sum->low += add_lanes(_mm256_add_epi64(low[0], low[1]));
    return i;
}
#else
typedef int kedgei_norm_x86_unused; /* a translation unit holds at least one declaration */
#endif
