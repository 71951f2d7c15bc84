/* What a model with "standardize" knows of its inputs: the mean and the variance of each, which the sites of
 * a job find together in its first two rounds and which stay from then on. They are tensors of the model,
 * after those of its layers, so that they are averaged, signed, recorded and computed again as all of it:
 *   standardize.mean, standardize.variance   [4, inputs]: a value is 2^40 · d0 + 2^20 · d1 + d2 + 2^-20 · d3
 *   standardize.stage                        [1]: 0: neither is known; 1: the mean is; 2: both are
 * Digits, because an update is in units of 2^-20 at most and bounded: so values up to 2^40 · bound have a
 * place, and the smallest step is 2^-40. A mean of digits weighted by samples is the digits of the mean.
 * Pure. */
#ifndef KEDGE_COMMON_TENSOR_SCALES_H
#define KEDGE_COMMON_TENSOR_SCALES_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"

enum { KEDGE_SCALES_DIGITS = 4, KEDGE_SCALES_UNIT_BITS = 20, KEDGE_SCALES_STAGES = 2 };
/* Values of |v| that digits with |d0| ≤ 1 hold. */
#define KEDGE_SCALES_MOST 0x1p40

/* Floats that they take in a model with so many inputs. */
uint64_t kedge_scales_count(uint32_t inputs);
/* 0 to KEDGE_SCALES_STAGES. */
uint32_t kedge_scales_stage(const float *scales, uint32_t inputs);
/* Mean and standard deviation of an input as far as the stage says; 0 and 1 before; the deviation of an input
 * that is constant is 1. */
void kedge_scales_get(const float *scales, uint32_t inputs, uint32_t input, double *ret_mean,
                      double *ret_deviation);
/* Of a stage that is not the last: the next one, with these values of all inputs (their means, then their
 * mean squared distances from the mean). KEDGE_E_FORMAT: *ret_bad is an input whose value has no place. */
KEDGE_NODISCARD int kedge_scales_advance(float *scales, uint32_t inputs, const double *values,
                                         uint32_t *ret_bad);

#endif
