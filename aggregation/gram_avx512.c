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

#define KEDGEI_GRAM_TARGET AVX512
#define KEDGEI_GRAM_NAME kedgei_gram_block_avx512
#define KEDGEI_GRAM_VECTOR __m512i
#define KEDGEI_GRAM_WIDTH 32
#define KEDGEI_GRAM_ZERO _mm512_setzero_si512()
#include "aggregation/gram_block.h"
#else
typedef int kedgei_gram_avx512_unused; /* a translation unit holds at least one declaration */
#endif
