/* The vector kernels on a CUDA device, over whole vectors in host memory: the same bytes as kedge_mean_tile,
 * kedge_gram and kedge_order_mean. Integers and binary64 with one rounding per step, compiled with
 * -fmad=false; no float atomics, no result depends on the order of threads. Optional: nothing else of Kedge
 * needs it. For C and C++ alike.
 *
 * All return 0 or what the device's runtime says (kedge_cuda_text); outputs are then undefined. Arguments
 * must have been checked as for the functions of the same purpose. The device memory is count vectors and the
 * result. */
#ifndef KEDGE_AGGREGATION_CUDA_KERNELS_H
#define KEDGE_AGGREGATION_CUDA_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How many devices there are; 0 where there is no driver. */
int kedge_cuda_devices(void);
/* Static text for what the others return. */
const char *kedge_cuda_text(int status);

/* out[i] = (float)((double)base[i] + (double)(sum of weight * value) / ((double)weight_sum * 2^scale_bits))
 */
int kedge_cuda_mean(const float *base, const int32_t *const *vectors, const uint64_t *weight, size_t count,
                    size_t n, unsigned scale_bits, uint64_t weight_sum, float *out);

/* maxima[count] and gram[count * count] as kedge_gram writes them. */
int kedge_cuda_gram(const int32_t *const *vectors, size_t count, size_t n, uint32_t *maxima, int64_t *gram);

/* As kedge_order_mean: the mean of places from … to - 1 of each sorted column. */
int kedge_cuda_order_mean(const float *base, const int32_t *const *vectors, size_t count, size_t n,
                          size_t from, size_t to, unsigned scale_bits, float *out);

#ifdef __cplusplus
}
#endif
#endif
