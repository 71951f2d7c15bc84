/* Inside mean*.c: one block of the mean. A call handles up to KEDGEI_MEAN_FUSE sources; partial sums of
 * earlier sources come and go through acc. Each path keeps acc in an order of its own. */
#ifndef KEDGE_AGGREGATION_MEAN_IMPL_H
#define KEDGE_AGGREGATION_MEAN_IMPL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    KEDGEI_MEAN_FUSE = 8,     /* streams read side by side: reaches the read limit of one core */
    KEDGEI_MEAN_BLOCK = 4096, /* acc is 32 KiB and stays in L2; measured fastest of 256 to 4096 */
};

struct kedgei_mean_pass {
    const int32_t *values[KEDGEI_MEAN_FUSE]; /* at the block's first coordinate */
    uint64_t weight[KEDGEI_MEAN_FUSE];
    unsigned count;    /* sources of this pass, at most KEDGEI_MEAN_FUSE */
    bool opens;        /* acc holds nothing yet */
    bool closes;       /* write out instead of acc */
    const float *base; /* at the block's first coordinate */
    float *out;
    double divisor; /* W * 2^scale_bits */
};

/* n is a multiple of 16 up to KEDGEI_MEAN_BLOCK, every weight below 2^31. */
void kedgei_mean_sse2(const struct kedgei_mean_pass *pass, size_t n, int64_t *acc);
void kedgei_mean_avx2(const struct kedgei_mean_pass *pass, size_t n, int64_t *acc);

#endif
