/* Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", 2011): four words
 * from a counter and a key, no state, so that any back end draws any of them. For C, C++ and CUDA. Pure. */
#ifndef KEDGE_CLIENT_TRAIN_PHILOX_H
#define KEDGE_CLIENT_TRAIN_PHILOX_H

#include <stdint.h>

#if defined(__CUDACC__)
#define KEDGE_PHILOX_INLINE __host__ __device__ static inline
#else
#define KEDGE_PHILOX_INLINE static inline
#endif

KEDGE_PHILOX_INLINE void kedge_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t a = counter[0], b = counter[1], c = counter[2], d = counter[3], k = key[0], l = key[1];
    for (int round = 0; round < 10; round++) {
        uint64_t p = (uint64_t)0xD2511F53u * a, q = (uint64_t)0xCD9E8D57u * c;
        uint32_t b0 = b, d0 = d;
        a = (uint32_t)(q >> 32) ^ b0 ^ k;
        b = (uint32_t)q;
        c = (uint32_t)(p >> 32) ^ d0 ^ l;
        d = (uint32_t)p;
        k += 0x9E3779B9u;
        l += 0xBB67AE85u;
    }
    out[0] = a;
    out[1] = b;
    out[2] = c;
    out[3] = d;
}

/* What dropout compares its words with: ⌊rate · 2^32⌋, rate below 1. */
KEDGE_PHILOX_INLINE uint32_t kedge_dropout_threshold(double rate)
{
    return (uint32_t)(rate * 4294967296.0);
}

#endif
