/* Inside quantise*.c: the paths over which the public functions choose. */
#ifndef KEDGE_AGGREGATION_QUANTISE_IMPL_H
#define KEDGE_AGGREGATION_QUANTISE_IMPL_H

#include <stddef.h>
#include <stdint.h>

struct kedgei_quantise {
    const float *before;
    const float *after;
    double scale; /* 2^scale_bits */
    double bound;
    int32_t *out;
};

/* Both work on whole groups of four from first on and return the index up to which all is well; the
 * caller finishes the rest, errors included, one by one. */
size_t kedgei_quantise_avx2(const struct kedgei_quantise *job, size_t n);
size_t kedgei_update_check_avx2(const int32_t *q, size_t n, int32_t limit);

#endif
