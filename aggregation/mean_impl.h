/* Inside mean*.c: one block of the mean. A call handles up to KEDGEI_MEAN_FUSE sources; partial sums of
 * earlier sources come and go through acc. Each path keeps acc in an order of its own. */
#ifndef KEDGE_AGGREGATION_MEAN_IMPL_H
#define KEDGE_AGGREGATION_MEAN_IMPL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    /* Streams read side by side: a pass over all of them at once overlaps computing with reading best.
     * Updates often stand at the same offset of their pages, so their lines fall into the same set of the L1
     * cache, which has 8 or 12 ways: with 20 streams speed is halved, with 10 it is not. */
    KEDGEI_MEAN_FUSE = 10,
    KEDGEI_MEAN_BLOCK = 256, /* acc is 2 KiB and stays in L1 */
    KEDGEI_MEAN_LINE = 16,   /* values in a cache line; the vector paths take whole ones */
    KEDGEI_MEAN_VECTOR = 64, /* bytes; what is written past the caches stands on multiples of it */
    /* From 4 MiB on a result written at once is not for the caches. */
    KEDGEI_MEAN_STREAM = 1 << 20,
};

struct kedgei_mean_pass {
    const int32_t *values[KEDGEI_MEAN_FUSE]; /* at the block's first coordinate */
    uint64_t weight[KEDGEI_MEAN_FUSE];
    unsigned count;    /* sources of this pass, at most KEDGEI_MEAN_FUSE */
    bool opens;        /* acc holds nothing yet */
    bool closes;       /* write out instead of acc */
    bool stream;       /* out goes past the caches: its lines need not be read before they are written */
    const float *base; /* at the block's first coordinate */
    float *out;
    double divisor; /* W * 2^scale_bits */
};

/* n is a multiple of KEDGEI_MEAN_LINE up to KEDGEI_MEAN_BLOCK, every weight below 2^31. */
void kedgei_mean_sse2(const struct kedgei_mean_pass *pass, size_t n, int64_t *acc);
void kedgei_mean_avx2(const struct kedgei_mean_pass *pass, size_t n, int64_t *acc);
void kedgei_mean_avx512(const struct kedgei_mean_pass *pass, size_t n, int64_t *acc);
/* After passes that stream: what they wrote becomes visible to other threads like any other store. */
void kedgei_mean_fence(void);

#endif
