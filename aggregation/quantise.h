/* Fixed point at the site's end: model differences become int32 in units of 2^-scale_bits, and the checks
 * that keep the server's 64-bit sums exact. All paths (scalar, AVX2) give the same bytes. Pure, any
 * thread. */
#ifndef KEDGE_AGGREGATION_QUANTISE_H
#define KEDGE_AGGREGATION_QUANTISE_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

enum { KEDGE_SCALE_BITS_MAX = 30 }; /* 2^30 still leaves |value| <= 1.99 room in int32 */

/* The largest |q| of a job: round-half-even(bound * 2^scale_bits). KEDGE_E_ARG unless bound is finite and
 * positive and scale_bits <= KEDGE_SCALE_BITS_MAX; KEDGE_E_OVERFLOW when it does not fit in 1 … 2^31 -
 * 1. */
KEDGE_NODISCARD int kedge_scale_limit(double bound, unsigned scale_bits, int32_t *ret_limit);

/* What a job must satisfy before it opens: the above, and weight_max_sum (all weights that could ever
 * meet in one sum) times the limit stays below 2^62, so that no order of additions can overflow.
 * KEDGE_E_ARG, KEDGE_E_OVERFLOW. */
KEDGE_NODISCARD int kedge_scale_check(double bound, unsigned scale_bits, uint64_t weight_max_sum);

/* out[i] = round-half-even((after[i] - before[i]) * 2^scale_bits), the difference taken in binary64.
 * before, after, out: n elements; out may overlap neither. KEDGE_E_NOT_FINITE or KEDGE_E_BOUND
 * (|difference| > bound) put the lowest offending index into *ret_bad (may be NULL); out is then partly
 * written and must not be used. KEDGE_E_ARG, KEDGE_E_OVERFLOW as kedge_scale_limit. */
KEDGE_NODISCARD int kedge_quantise(const float *before, const float *after, size_t n, unsigned scale_bits,
                                   double bound, int32_t *out, size_t *ret_bad);

/* The server's door: every |q[i]| <= limit, else KEDGE_E_BOUND with the lowest index in *ret_bad (may be
 * NULL). KEDGE_E_ARG when limit < 0. */
KEDGE_NODISCARD int kedge_update_check(const int32_t *q, size_t n, int32_t limit, size_t *ret_bad);

#endif
