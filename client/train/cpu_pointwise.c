/* Element by element: ReLU, GELU, tanh, dropout. */
#include <math.h>

#include "client/train/cpu_impl.h"
#include "client/train/philox.h"

static const float root_half = 0.70710678f;          /* 1/√2 */
static const float root_two_pi_inverse = 0.3989423f; /* 1/√2π */

static float gelu(float x)
{
    return 0.5f * x * (1.0f + erff(x * root_half));
}

static float gelu_slope(float x)
{
    return 0.5f * (1.0f + erff(x * root_half)) + x * root_two_pi_inverse * expf(-0.5f * x * x);
}

void kedge_cpu_pointwise_forward(struct kedge_device *dev, enum kedge_ops_pointwise kind, uint64_t count,
                                 const float *restrict x, float *restrict y)
{
    (void)dev;
    switch (kind) {
    case KEDGE_OPS_RELU:
        for (uint64_t i = 0; i < count; i++) {
            y[i] = x[i] > 0.0f ? x[i] : 0.0f;
        }
        break;
    case KEDGE_OPS_GELU:
        for (uint64_t i = 0; i < count; i++) {
            y[i] = gelu(x[i]);
        }
        break;
    case KEDGE_OPS_TANH:
        for (uint64_t i = 0; i < count; i++) {
            y[i] = tanhf(x[i]);
        }
        break;
    }
}

void kedge_cpu_pointwise_backward(struct kedge_device *dev, enum kedge_ops_pointwise kind, uint64_t count,
                                  const float *restrict x, const float *restrict y, const float *restrict dy,
                                  float *restrict dx)
{
    (void)dev;
    switch (kind) {
    case KEDGE_OPS_RELU:
        for (uint64_t i = 0; i < count; i++) {
            dx[i] = x[i] > 0.0f ? dy[i] : 0.0f;
        }
        break;
    case KEDGE_OPS_GELU:
        for (uint64_t i = 0; i < count; i++) {
            dx[i] = dy[i] * gelu_slope(x[i]);
        }
        break;
    case KEDGE_OPS_TANH:
        for (uint64_t i = 0; i < count; i++) {
            dx[i] = dy[i] * (1.0f - y[i] * y[i]);
        }
        break;
    }
}

/* The mask is not stored: it is a function of seed, layer, step and place (Philox, Salmon et al. 2011), so
 * the backward pass draws the same one again, and a GPU, which draws in any order, too. */
static void drop(const struct kedge_device *dev, double rate, uint32_t layer, uint64_t count, const float *x,
                 float *y)
{
    const uint32_t key[2] = {(uint32_t)dev->seed, (uint32_t)(dev->seed >> 32)};
    uint32_t threshold = kedge_dropout_threshold(rate), words[4] = {0};
    float scale = (float)(1.0 / (1.0 - rate));
    for (uint64_t i = 0; i < count; i++) {
        if (i % 4 == 0) {
            const uint32_t counter[4] = {(uint32_t)(i / 4), layer, (uint32_t)dev->step,
                                         (uint32_t)(dev->step >> 32)};
            kedge_philox(counter, key, words);
        }
        y[i] = words[i % 4] < threshold ? 0.0f : x[i] * scale;
    }
}

void kedge_cpu_dropout_forward(struct kedge_device *dev, double rate, uint32_t layer, uint64_t count,
                               const float *x, float *y)
{
    drop(dev, rate, layer, count, x, y);
}

void kedge_cpu_dropout_backward(struct kedge_device *dev, double rate, uint32_t layer, uint64_t count,
                                const float *dy, float *dx)
{
    drop(dev, rate, layer, count, dy, dx);
}
