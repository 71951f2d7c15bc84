/* Inside gram*.c: wide paths; each returns how far it came, the scalar code does the rest. */
#ifndef KEDGE_AGGREGATION_GRAM_IMPL_H
#define KEDGE_AGGREGATION_GRAM_IMPL_H

#include <stddef.h>
#include <stdint.h>

size_t kedgei_max_abs_avx2(const int32_t *q, size_t n, uint32_t *max);
size_t kedgei_scale12_avx2(const int32_t *q, size_t n, uint32_t max, int16_t *out);
size_t kedgei_dot12_avx2(const int16_t *a, const int16_t *b, size_t n, int64_t *sum);
/* a against four vectors at once; n at most KEDGE_GRAM_TILE. */
size_t kedgei_dot12_four_avx2(const int16_t *a, const int16_t *const b[4], size_t n, int64_t sum[4]);

#endif
