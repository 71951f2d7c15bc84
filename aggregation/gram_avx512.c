/* vpdpwssd multiplies 32 pairs, adds neighbours and adds that to the sum. Of 32 registers 12 hold sums: more
 * than its latency asks for. */
#include "aggregation/gram_impl.h"

#if defined(__x86_64__) || defined(KEDGE_EMULATED)
#if defined(KEDGE_EMULATED) /* tests/unit/aggregation/emulated.h stands before this file */
#define AVX512
#define KEEP(sum) ((void)(sum))
#else
#include <immintrin.h>
#define AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")))
#define KEEP(sum) __asm__("" : "+v"(sum)) /* as in gram_avx2.c */
#endif

#define INLINE static inline __attribute__((always_inline))

AVX512 INLINE __m512i load(const int16_t *p)
{
    return _mm512_loadu_si512(p);
}

AVX512 INLINE int64_t sum_lanes(__m512i v)
{
    const __m512i low = _mm512_cvtepi32_epi64(_mm512_castsi512_si256(v));
    const __m512i high = _mm512_cvtepi32_epi64(_mm512_extracti64x4_epi64(v, 1));
    return _mm512_reduce_add_epi64(_mm512_add_epi64(low, high));
}

AVX512 INLINE void add_product(__m512i a, __m512i b, __m512i *sum)
{
    *sum = _mm512_dpwssd_epi32(*sum, a, b);
    KEEP(*sum);
}

/* Variables, not an array: an array would live in memory. */
AVX512 void kedgei_gram_block_avx512(const int16_t *a, const int16_t *b, size_t n,
                                     int64_t cells[KEDGEI_GRAM_CELLS])
{
    const size_t stride = KEDGEI_GRAM_STRIDE;
    __m512i s00 = _mm512_setzero_si512(), s10 = s00, s20 = s00, s30 = s00, s40 = s00, s50 = s00;
    __m512i s01 = s00, s11 = s00, s21 = s00, s31 = s00, s41 = s00, s51 = s00;
    for (size_t i = 0; i < n; i += 32, a += 32, b += 32) {
        const __m512i b0 = load(b);
        const __m512i b1 = load(b + stride);
        __m512i v = load(a);
        add_product(v, b0, &s00);
        add_product(v, b1, &s01);
        v = load(a + stride);
        add_product(v, b0, &s10);
        add_product(v, b1, &s11);
        v = load(a + 2 * stride);
        add_product(v, b0, &s20);
        add_product(v, b1, &s21);
        v = load(a + 3 * stride);
        add_product(v, b0, &s30);
        add_product(v, b1, &s31);
        v = load(a + 4 * stride);
        add_product(v, b0, &s40);
        add_product(v, b1, &s41);
        v = load(a + 5 * stride);
        add_product(v, b0, &s50);
        add_product(v, b1, &s51);
    }
    const __m512i sums[KEDGEI_GRAM_CELLS] = {s00, s01, s10, s11, s20, s21, s30, s31, s40, s41, s50, s51};
    for (size_t k = 0; k < KEDGEI_GRAM_CELLS; k++) {
        cells[k] = sum_lanes(sums[k]);
    }
}
#else
typedef int kedgei_gram_avx512_unused; /* a translation unit holds at least one declaration */
#endif
