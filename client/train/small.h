/* Matrix products of small batches, where BLAS spends its time on packing: straight from the operands as they
 * lie, tiles in registers, AVX2 and FMA. All matrices row-major and dense. Use them only where
 * kedge_small_is_available. Pure. */
#ifndef KEDGE_CLIENT_TRAIN_SMALL_H
#define KEDGE_CLIENT_TRAIN_SMALL_H

#include <stdbool.h>
#include <stdint.h>

/* Worth it while samples × outputs of a layer stay within this; beyond it BLAS is as fast. Measured with 784
 * inputs: 3.8 and 2.5 times as fast as OpenBLAS for 10 × 10, 1.6 and 1.9 times for 10 × 512 (forward,
 * update). */
enum { KEDGE_SMALL_WORK_MAX = 12288 };

/* Whether this processor has what the two functions need. */
bool kedge_small_is_available(void);

/* z[n][out] += x[n][in] · w[out][in]ᵀ. */
void kedge_small_dots(uint32_t n, uint32_t out, uint32_t in, const float *x, const float *w, float *z);

/* Rows of z (n × classes, logits) become probabilities by a polynomial exponential within 2 ulp; labels name
 * a class each. The summed cross-entropy, NaN or infinity where a logit is. */
double kedge_small_softmax(uint32_t n, uint32_t classes, const int32_t *labels, float *z);

/* c[rows][width] = keep · c + a · b[inner][width], where a[i][j] is a[i · row_stride + j · inner_stride], so
 * that either operand's transpose is had by strides. keep 0 ignores what c holds. */
void kedge_small_product(uint32_t rows, uint32_t inner, uint32_t width, const float *a, uint32_t row_stride,
                         uint32_t inner_stride, const float *b, float keep, float *c);

#endif
