/* Four cache lines of a source at a time: values times their weight, the even and the odd ones by themselves,
 * as in mean_x86.c. The instruction set converts int64 to double by itself. */
#include "aggregation/mean_impl.h"

#if defined(__x86_64__) || defined(KEDGE_EMULATED)
#if defined(KEDGE_EMULATED) /* tests/unit/aggregation/emulated.h stands before this file */
#define AVX512
#else
#include <immintrin.h>
#define AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))
#endif

#define INLINE static inline __attribute__((always_inline))

/* Signed 32 x 32 -> 64 of the low halves; why not the intrinsic for clang: mean_x86.c. */
AVX512 INLINE __m512i multiply_low(__m512i a, __m512i b)
{
#if defined(__clang__) && !defined(KEDGE_EMULATED)
    __m512i product;
    __asm__("vpmuldq %2, %1, %0" : "=v"(product) : "v"(a), "v"(b));
    return product;
#else
    return _mm512_mul_epi32(a, b);
#endif
}

/* base + sum / divisor for the sixteen coordinates whose sums are even (0, 2, …) and odd (1, 3, …). */
AVX512 INLINE void close_line(const float *base, float *out, __m512i even, __m512i odd, __m512d divisor,
                              const bool stream)
{
    const __m512i first = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11);
    const __m512i last = _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15);
    const __m512d a = _mm512_div_pd(_mm512_cvtepi64_pd(even), divisor);
    const __m512d b = _mm512_div_pd(_mm512_cvtepi64_pd(odd), divisor);
    const __m512d low =
        _mm512_add_pd(_mm512_cvtps_pd(_mm256_loadu_ps(base)), _mm512_permutex2var_pd(a, first, b));
    const __m512d high =
        _mm512_add_pd(_mm512_cvtps_pd(_mm256_loadu_ps(base + 8)), _mm512_permutex2var_pd(a, last, b));
    const __m512 both =
        _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(low)), _mm512_cvtpd_ps(high), 1);
    if (stream) {
        _mm512_stream_ps(out, both);
    } else {
        _mm512_storeu_ps(out, both);
    }
}

/* So many lines of a source before the next source is read: with four 0.87 of what one thread can read, with
 * one 0.79 (Zen 4, ten sources); asking ahead by hand, as mean_x86.c does, was worse. Sums of four are 8 of
 * 32 registers. */
enum { LINES = 4 };

/* lines: a constant, at most LINES. */
AVX512 INLINE void take_lines(const struct kedgei_mean_pass *pass, int64_t (*weight)[8], size_t i,
                              int64_t *acc, const int lines)
{
    __m512i even[LINES];
    __m512i odd[LINES];
    for (int j = 0; j < lines; j++) {
        const int64_t *slot = acc + i + (size_t)j * KEDGEI_MEAN_LINE;
        even[j] = pass->opens ? _mm512_setzero_si512() : _mm512_loadu_si512(slot);
        odd[j] = pass->opens ? _mm512_setzero_si512() : _mm512_loadu_si512(slot + 8);
    }
    for (unsigned k = 0; k < pass->count; k++) {
        const __m512i w = _mm512_loadu_si512(weight[k]);
        for (int j = 0; j < lines; j++) {
            const __m512i v = _mm512_loadu_si512(pass->values[k] + i + (size_t)j * KEDGEI_MEAN_LINE);
            even[j] = _mm512_add_epi64(even[j], multiply_low(v, w));
            odd[j] = _mm512_add_epi64(odd[j], multiply_low(_mm512_srli_epi64(v, 32), w));
        }
    }
    const __m512d divisor = _mm512_set1_pd(pass->divisor);
    for (int j = 0; j < lines; j++) {
        const size_t at = i + (size_t)j * KEDGEI_MEAN_LINE;
        if (!pass->closes) {
            _mm512_store_si512(acc + at, even[j]);
            _mm512_store_si512(acc + at + 8, odd[j]);
        } else {
            close_line(pass->base + at, pass->out + at, even[j], odd[j], divisor, pass->stream);
        }
    }
}

AVX512 void kedgei_mean_avx512(const struct kedgei_mean_pass *pass, size_t n, int64_t *acc)
{
    _Alignas(64) int64_t weight[KEDGEI_MEAN_FUSE][8];
    for (unsigned k = 0; k < pass->count; k++) {
        _mm512_store_si512(weight[k], _mm512_set1_epi64((long long)pass->weight[k]));
    }
    const size_t step = (size_t)LINES * KEDGEI_MEAN_LINE;
    size_t i = 0;
    for (; i + step <= n; i += step) {
        take_lines(pass, weight, i, acc, LINES);
    }
    for (; i < n; i += KEDGEI_MEAN_LINE) {
        take_lines(pass, weight, i, acc, 1);
    }
}
#else
typedef int kedgei_mean_avx512_unused; /* a translation unit holds at least one declaration */
#endif
