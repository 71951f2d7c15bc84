/* The AVX-512 instructions that aggregation uses, in plain C, so that its kernels can be compared byte for
 * byte where no processor has them: the compiler takes this file before the kernel's own (-include).
 * Semantics: Intel's instruction set reference, volume 2. */
#ifndef KEDGE_TESTS_UNIT_AGGREGATION_EMULATED_H
#define KEDGE_TESTS_UNIT_AGGREGATION_EMULATED_H

#include <stdint.h>
#include <string.h>

#define KEDGE_EMULATED 1

typedef struct {
    int32_t w[16];
} __m512i;

typedef struct {
    int32_t w[8];
} emulated_256;
#define __m256i emulated_256

static inline __m512i _mm512_setzero_si512(void)
{
    return (__m512i){{0}};
}

static inline __m512i _mm512_loadu_si512(const void *from)
{
    __m512i v;
    memcpy(&v, from, sizeof v);
    return v;
}

/* VPDPWSSD: each lane adds the products of its two pairs of int16, modulo 2^32. */
static inline __m512i _mm512_dpwssd_epi32(__m512i sum, __m512i a, __m512i b)
{
    int16_t x[32];
    int16_t y[32];
    memcpy(x, &a, sizeof x);
    memcpy(y, &b, sizeof y);
    for (int k = 0; k < 16; k++) {
        const uint32_t low = (uint32_t)(x[2 * k] * y[2 * k]);
        const uint32_t high = (uint32_t)(x[2 * k + 1] * y[2 * k + 1]);
        sum.w[k] = (int32_t)((uint32_t)sum.w[k] + low + high);
    }
    return sum;
}

static inline __m256i _mm512_castsi512_si256(__m512i v)
{
    __m256i low;
    memcpy(&low, &v, sizeof low);
    return low;
}

/* VEXTRACTI64X4 */
static inline __m256i _mm512_extracti64x4_epi64(__m512i v, int high)
{
    __m256i half;
    memcpy(&half, v.w + 8 * high, sizeof half);
    return half;
}

/* VPMOVSXDQ */
static inline __m512i _mm512_cvtepi32_epi64(__m256i v)
{
    int64_t wide[8];
    __m512i out;
    for (int k = 0; k < 8; k++) {
        wide[k] = v.w[k];
    }
    memcpy(&out, wide, sizeof out);
    return out;
}

/* VPADDQ */
static inline __m512i _mm512_add_epi64(__m512i a, __m512i b)
{
    uint64_t x[8];
    uint64_t y[8];
    memcpy(x, &a, sizeof x);
    memcpy(y, &b, sizeof y);
    for (int k = 0; k < 8; k++) {
        x[k] += y[k];
    }
    memcpy(&a, x, sizeof a);
    return a;
}

static inline int64_t _mm512_reduce_add_epi64(__m512i v)
{
    int64_t x[8];
    uint64_t sum = 0;
    memcpy(x, &v, sizeof x);
    for (int k = 0; k < 8; k++) {
        sum += (uint64_t)x[k];
    }
    return (int64_t)sum;
}

/* ---- what the mean uses beside ---- */

typedef struct {
    double w[8];
} __m512d;
typedef struct {
    float w[16];
} __m512;
typedef struct {
    float w[8];
} emulated_256_floats;
#define __m256 emulated_256_floats

static inline void _mm512_store_si512(void *to, __m512i v)
{
    memcpy(to, &v, sizeof v);
}

static inline __m512i _mm512_setr_epi64(long long a, long long b, long long c, long long d, long long e,
                                        long long f, long long g, long long h)
{
    const int64_t x[8] = {a, b, c, d, e, f, g, h};
    __m512i v;
    memcpy(&v, x, sizeof v);
    return v;
}

static inline __m512i _mm512_set1_epi64(long long a)
{
    return _mm512_setr_epi64(a, a, a, a, a, a, a, a);
}

static inline __m512d _mm512_set1_pd(double a)
{
    return (__m512d){{a, a, a, a, a, a, a, a}};
}

/* VPMULDQ: the low halves, signed */
static inline __m512i _mm512_mul_epi32(__m512i a, __m512i b)
{
    int64_t x[8];
    for (int k = 0; k < 8; k++) {
        x[k] = (int64_t)a.w[2 * k] * b.w[2 * k];
    }
    memcpy(&a, x, sizeof a);
    return a;
}

/* VPSRLQ */
static inline __m512i _mm512_srli_epi64(__m512i a, unsigned count)
{
    uint64_t x[8];
    memcpy(x, &a, sizeof x);
    for (int k = 0; k < 8; k++) {
        x[k] >>= count;
    }
    memcpy(&a, x, sizeof a);
    return a;
}

/* VCVTQQ2PD, to nearest even */
static inline __m512d _mm512_cvtepi64_pd(__m512i a)
{
    int64_t x[8];
    __m512d v;
    memcpy(x, &a, sizeof x);
    for (int k = 0; k < 8; k++) {
        v.w[k] = (double)x[k];
    }
    return v;
}

static inline __m512d _mm512_div_pd(__m512d a, __m512d b)
{
    for (int k = 0; k < 8; k++) {
        a.w[k] /= b.w[k];
    }
    return a;
}

static inline __m512d _mm512_add_pd(__m512d a, __m512d b)
{
    for (int k = 0; k < 8; k++) {
        a.w[k] += b.w[k];
    }
    return a;
}

/* VPERMT2PD: bits 0 to 2 of an index name the lane, bit 3 the source */
static inline __m512d _mm512_permutex2var_pd(__m512d a, __m512i index, __m512d b)
{
    int64_t x[8];
    __m512d v;
    memcpy(x, &index, sizeof x);
    for (int k = 0; k < 8; k++) {
        v.w[k] = (x[k] & 8) != 0 ? b.w[x[k] & 7] : a.w[x[k] & 7];
    }
    return v;
}

static inline __m256 _mm256_loadu_ps(const float *from)
{
    __m256 v;
    memcpy(&v, from, sizeof v);
    return v;
}

static inline __m512d _mm512_cvtps_pd(__m256 a)
{
    __m512d v;
    for (int k = 0; k < 8; k++) {
        v.w[k] = (double)a.w[k];
    }
    return v;
}

static inline __m256 _mm512_cvtpd_ps(__m512d a)
{
    __m256 v;
    for (int k = 0; k < 8; k++) {
        v.w[k] = (float)a.w[k];
    }
    return v;
}

static inline __m512 _mm512_castps256_ps512(__m256 low)
{
    __m512 v = {{0}};
    memcpy(&v, &low, sizeof low);
    return v;
}

static inline __m512 _mm512_insertf32x8(__m512 v, __m256 half, int high)
{
    memcpy(v.w + 8 * high, &half, sizeof half);
    return v;
}

static inline void _mm512_storeu_ps(float *to, __m512 v)
{
    memcpy(to, &v, sizeof v);
}

static inline void _mm512_stream_ps(float *to, __m512 v)
{
    memcpy(to, &v, sizeof v);
}

#endif
