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

#endif
