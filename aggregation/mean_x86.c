/* 32 x 32 -> 64 bit multiplications of the even and the odd elements of a vector; acc keeps, per eight
 * coordinates, first the even then the odd ones (in SSE2 per four), and order is restored only when a
 * block closes. */
#include "aggregation/mean_impl.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <string.h>

#define AVX2 __attribute__((target("avx2,fma")))
#define INLINE static inline __attribute__((always_inline))

/* --- x86-64 baseline --- */

/* values (four int32) times weight (low halves of both lanes, below 2^31), modulo 2^64: pmuludq reads a
 * negative value as value + 2^32, so weight * 2^32 is taken off again. */
INLINE void madd_sse2(__m128i values, __m128i weight, __m128i *even, __m128i *odd)
{
    const __m128i high = _mm_set1_epi64x((long long)0xffffffff00000000u);
    __m128i negative = _mm_and_si128(_mm_srai_epi32(values, 31), weight);
    *even = _mm_add_epi64(*even, _mm_mul_epu32(values, weight));
    *even = _mm_sub_epi64(*even, _mm_slli_epi64(negative, 32));
    *odd = _mm_add_epi64(*odd, _mm_mul_epu32(_mm_srli_epi64(values, 32), weight));
    *odd = _mm_sub_epi64(*odd, _mm_and_si128(negative, high));
}

INLINE void close_sse2(const struct kedgei_mean_pass *pass, size_t at, __m128i even, __m128i odd)
{
    int64_t e[2];
    int64_t o[2];
    _mm_storeu_si128((__m128i *)e, even);
    _mm_storeu_si128((__m128i *)o, odd);
    const float *base = pass->base + at;
    float *out = pass->out + at;
    for (size_t i = 0; i < 2; i++) {
        out[2 * i] = (float)((double)base[2 * i] + (double)e[i] / pass->divisor);
        out[2 * i + 1] = (float)((double)base[2 * i + 1] + (double)o[i] / pass->divisor);
    }
}

void kedgei_mean_sse2(const struct kedgei_mean_pass *pass, size_t n, int64_t *acc)
{
    __m128i weight[KEDGEI_MEAN_FUSE];
    for (unsigned k = 0; k < pass->count; k++) {
        weight[k] = _mm_set1_epi32((int)pass->weight[k]); /* both halves: the upper masks the odd elements */
    }
    for (size_t i = 0; i < n; i += 4) {
        __m128i *slot = (__m128i *)(acc + i);
        __m128i even = pass->opens ? _mm_setzero_si128() : slot[0];
        __m128i odd = pass->opens ? _mm_setzero_si128() : slot[1];
        for (unsigned k = 0; k < pass->count; k++) {
            madd_sse2(_mm_loadu_si128((const __m128i *)(pass->values[k] + i)), weight[k], &even, &odd);
        }
        if (pass->closes) {
            close_sse2(pass, i, even, odd);
        } else {
            slot[0] = even;
            slot[1] = odd;
        }
    }
}

/* --- x86-64-v3 --- */

/* int64 to double, rounded once to nearest even, as the scalar conversion: the upper 16 bits are added into
 * the mantissa of 3 * 2^67, the lower 48 put into that of 2^52; the constants cancel exactly and only the
 * last addition rounds. */
AVX2 INLINE __m256d to_double(__m256i x)
{
    const __m256d low_one = _mm256_set1_pd(0x1.0p52);
    const __m256d high_one = _mm256_set1_pd(0x1.8p68);        /* 3 * 2^67 */
    const __m256d both = _mm256_set1_pd(0x1.8p68 + 0x1.0p52); /* exact: 17 bits apart */
    __m256i high = _mm256_blend_epi16(_mm256_srai_epi32(x, 16), _mm256_setzero_si256(), 0x33);
    high = _mm256_add_epi64(high, _mm256_castpd_si256(high_one));
    __m256i low = _mm256_blend_epi16(x, _mm256_castpd_si256(low_one), 0x88);
    return _mm256_add_pd(_mm256_sub_pd(_mm256_castsi256_pd(high), both), _mm256_castsi256_pd(low));
}

/* base + sum / divisor for the eight coordinates whose sums are even (0, 2, 4, 6) and odd (1, 3, 5,
 * 7). */
AVX2 INLINE void close_avx2(const float *base, float *out, __m256i even, __m256i odd, __m256d divisor,
                            const bool stream)
{
    __m256i a = _mm256_unpacklo_epi64(even, odd); /* 0 1 4 5 */
    __m256i b = _mm256_unpackhi_epi64(even, odd); /* 2 3 6 7 */
    __m256d low = _mm256_div_pd(to_double(_mm256_permute2x128_si256(a, b, 0x20)), divisor);
    __m256d high = _mm256_div_pd(to_double(_mm256_permute2x128_si256(a, b, 0x31)), divisor);
    low = _mm256_add_pd(_mm256_cvtps_pd(_mm_loadu_ps(base)), low);
    high = _mm256_add_pd(_mm256_cvtps_pd(_mm_loadu_ps(base + 4)), high);
    const __m256 both = _mm256_set_m128(_mm256_cvtpd_ps(high), _mm256_cvtpd_ps(low));
    if (stream) {
        _mm256_stream_ps(out, both);
    } else {
        _mm256_storeu_ps(out, both);
    }
}

/* Signed 32 x 32 -> 64 of the low halves. Clang 14 takes the intrinsic apart, forgets across the loop that
 * the weight is narrow, and multiplies 64 x 64: half the speed. */
AVX2 INLINE __m256i multiply_low(__m256i a, __m256i b)
{
#if defined(__clang__)
    __m256i product;
    __asm__("vpmuldq %2, %1, %0" : "=x"(product) : "x"(a), "x"(b));
    return product;
#else
    return _mm256_mul_epi32(a, b);
#endif
}

AVX2 INLINE void madd_avx2(const int32_t *values, __m256i weight, __m256i *even, __m256i *odd)
{
    __m256i v = _mm256_loadu_si256((const __m256i *)values);
    __asm__("" : "+x"(v)); /* gcc 12 would load it twice */
    *even = _mm256_add_epi64(*even, multiply_low(v, weight));
    *odd = _mm256_add_epi64(*odd, multiply_low(_mm256_srli_epi64(v, 32), weight));
}

/* What is asked of memory while this is being read: with it 0.77 of what one thread can read, without 0.70
 * (Zen 4, ten sources). Behind a source's end the address is only a hint. */
AVX2 INLINE void ask_ahead(const int32_t *values)
{
    enum { AHEAD = 2048 }; /* bytes; 1,536 to 8,192 were as good, nearer and in L1 was worse */
    _mm_prefetch((const void *)((uintptr_t)values + AHEAD), _MM_HINT_T1);
}

/* 16 coordinates, a cache line of each source, at a time: the weights come from memory, so that as many
 * sources as a pass may have need no more registers than one. */
AVX2 void kedgei_mean_avx2(const struct kedgei_mean_pass *pass, size_t n, int64_t *acc)
{
    __m256i weight[KEDGEI_MEAN_FUSE];
    for (unsigned k = 0; k < pass->count; k++) {
        weight[k] = _mm256_set1_epi64x((long long)pass->weight[k]);
    }
    const __m256d divisor = _mm256_set1_pd(pass->divisor);
    for (size_t i = 0; i < n; i += KEDGEI_MEAN_LINE) {
        __m256i *slot = (__m256i *)(acc + i);
        __m256i s[4];
        for (int j = 0; j < 4; j++) {
            s[j] = pass->opens ? _mm256_setzero_si256() : slot[j];
        }
        for (unsigned k = 0; k < pass->count; k++) {
            ask_ahead(pass->values[k] + i);
            madd_avx2(pass->values[k] + i, weight[k], &s[0], &s[1]);
            madd_avx2(pass->values[k] + i + 8, weight[k], &s[2], &s[3]);
        }
        if (!pass->closes) {
            memcpy(slot, s, sizeof s);
        } else {
            close_avx2(pass->base + i, pass->out + i, s[0], s[1], divisor, pass->stream);
            close_avx2(pass->base + i + 8, pass->out + i + 8, s[2], s[3], divisor, pass->stream);
        }
    }
}

void kedgei_mean_fence(void)
{
    _mm_sfence();
}
#else
typedef int kedgei_mean_x86_unused; /* a translation unit holds at least one declaration */
#endif
