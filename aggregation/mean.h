/* The weighted mean of integer updates, by coordinate tiles (DESIGN §6):
 *     S = sum of weight * q (int64),  w = (float)((double)w0 + (double)S / ((double)W * 2^scale_bits)).
 * Sums of integers are associative: order of sources, tiling, threads and instruction set change no bit.
 * Storage int32, accumulation int64, one conversion and one division in binary64. Pure, no heap, any
 * thread. */
#ifndef KEDGE_AGGREGATION_MEAN_H
#define KEDGE_AGGREGATION_MEAN_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

struct kedge_mean_source {
    const int32_t *values; /* coordinate 0 of the update; borrowed */
    uint64_t weight;       /* sample count, or a real weight in units of 2^-20; below 2^31 runs fast */
};

/* Adds up the weights. KEDGE_E_ARG when the sum is 0 or limit <= 0; KEDGE_E_OVERFLOW when sum * limit >=
 * 2^62 (limit = the job's largest |q|, kedge_scale_limit). */
KEDGE_NODISCARD int kedge_mean_weight_sum(const struct kedge_mean_source *sources, size_t count,
                                          int32_t limit, uint64_t *ret_sum);

/* Coordinates first … first + n - 1 of the mean, written to out[0 … n). base and each source point at
 * coordinate 0 of the whole vector. Any count (0 gives base), any range; out may be base + first, and
 * must not overlap otherwise. weight_sum usually is kedge_mean_weight_sum's; another value serves sources
 * split over several calls only if the caller knows why. Values must have passed kedge_update_check;
 * beyond that sums wrap, alike on all paths. KEDGE_E_ARG: weight_sum 0 or above 2^62, scale_bits above
 * KEDGE_SCALE_BITS_MAX. */
KEDGE_NODISCARD int kedge_mean_tile(const float *base, const struct kedge_mean_source *sources, size_t count,
                                    size_t first, size_t n, unsigned scale_bits, uint64_t weight_sum,
                                    float *out);

#endif
