/* Means and variances of a model's inputs, found by the sites together and carried as tensors of
 * the model itself. An update has a bounded range and steps of 2^-20, so a value is written in four
 * digits, each in a unit of its own: together they hold values up to 2^40 in steps of 2^-40. The
 * mean of digits, weighted by samples, is the digits of the mean, so the ordinary aggregation finds
 * them and nothing new has to be trusted. */
#include "common/tensor/scales.h"

#include <math.h>

/* Values of F32 that differ at all differ by more than this of their size. */
#define CONSTANT_BELOW 1e-9

static const double units[KEDGE_SCALES_DIGITS] = {0x1p40, 0x1p20, 1, 0x1p-20};

uint64_t kedge_scales_count(uint32_t inputs)
{
    return 2 * (uint64_t)KEDGE_SCALES_DIGITS * inputs + 1;
}

/* By thresholds between the stages: the number is a tensor like the others and has gone through an
 * average of reals. */
uint32_t kedge_scales_stage(const float *scales, uint32_t inputs)
{
    float stage = scales[kedge_scales_count(inputs) - 1];
    return stage >= 1.5f ? 2 : stage >= 0.5f ? 1 : 0;
}

static double value_of(const float *digits, uint32_t inputs, uint32_t input)
{
    double v = 0;
    for (uint32_t d = 0; d < KEDGE_SCALES_DIGITS; d++) {
        v += units[d] * (double)digits[(uint64_t)d * inputs + input];
    }
    return v;
}

/* An input that is constant, or whose spread is within rounding of its mean, is only shifted: to
 * divide by it would blow up noise. */
void kedge_scales_get(const float *scales, uint32_t inputs, uint32_t input, double *ret_mean,
                      double *ret_deviation)
{
    uint32_t stage = kedge_scales_stage(scales, inputs);
    double mean = stage >= 1 ? value_of(scales, inputs, input) : 0, deviation = 1;
    if (stage >= 2) {
        double variance = value_of(scales + (uint64_t)KEDGE_SCALES_DIGITS * inputs, inputs, input);
        double found = variance > 0 ? sqrt(variance) : 0;
        deviation = found > CONSTANT_BELOW * fabs(mean) && found > 0x1p-30 ? found : 1;
    }
    *ret_mean = mean;
    *ret_deviation = deviation;
}

/* Each digit is what is left in whole 2^-20 of its unit, so that a site's update has it exactly. */
static void put_value(float *digits, uint32_t inputs, uint32_t input, double v)
{
    for (uint32_t d = 0; d < KEDGE_SCALES_DIGITS; d++) {
        double steps = v / units[d] * 0x1p20; /* at most 2^20 */
        double digit = (double)(int64_t)(steps + (steps < 0 ? -0.5 : 0.5)) * 0x1p-20;
        digits[(uint64_t)d * inputs + input] = (float)digit;
        v -= digit * units[d];
    }
}

/* All values are checked before one is written: half of a stage would be taken for the whole. */
int kedge_scales_advance(float *scales, uint32_t inputs, const double *values, uint32_t *ret_bad)
{
    uint32_t stage = kedge_scales_stage(scales, inputs);
    for (uint32_t i = 0; i < inputs; i++) {
        if (!(fabs(values[i]) <= KEDGE_SCALES_MOST)) {
            *ret_bad = i;
            return KEDGE_E_FORMAT;
        }
    }
    float *digits = scales + (stage == 0 ? 0 : (uint64_t)KEDGE_SCALES_DIGITS * inputs);
    for (uint32_t i = 0; i < inputs; i++) {
        put_value(digits, inputs, i, values[i]);
    }
    scales[kedge_scales_count(inputs) - 1] = (float)(stage + 1);
    return KEDGE_OK;
}
