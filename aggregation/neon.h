/* Inside the kernels: paths for 64-bit Arm, whose baseline has NEON. Each returns how far it came or, for
 * whole blocks, does all; the scalar code does the rest. The instructions round as the scalar code does:
 * conversions and fused operations that would round otherwise are not used. */
#ifndef KEDGE_AGGREGATION_NEON_H
#define KEDGE_AGGREGATION_NEON_H

#include <stddef.h>
#include <stdint.h>

#include "aggregation/gram_impl.h"
#include "aggregation/mean_impl.h"
#include "aggregation/quantise_impl.h"

/* As their AVX2 namesakes. */
void kedgei_mean_neon(const struct kedgei_mean_pass *pass, size_t n, int64_t *acc);
size_t kedgei_quantise_neon(const struct kedgei_quantise *job, size_t n);
size_t kedgei_update_check_neon(const int32_t *q, size_t n, int32_t limit);
kedgei_gram_block kedgei_gram_block_neon;
size_t kedgei_max_abs_neon(const int32_t *q, size_t n, uint32_t *max);
size_t kedgei_scale12_neon(const int32_t *q, size_t n, uint32_t max, int16_t *out);

#endif
