/* Layer and group norm. With x̂ = (x − mean)·inverse over a run of m values and g = dy · scale:
 * dx = inverse · (g − mean(g) − x̂ · mean(g · x̂)). */
#include <math.h>

#include "client/train/cpu_impl.h"

static const double epsilon = 1e-5;

void kedge_cpu_norm_forward(struct kedge_device *dev, const struct kedge_ops_norm *s, uint32_t n,
                            const float *x, const float *scale, const float *shift, float *y, float *saved)
{
    (void)dev;
    uint32_t channels = s->channels / s->groups;
    uint64_t m = (uint64_t)channels * s->spatial, runs = (uint64_t)n * s->rows * s->groups;
    /* Mean first, squares of deviations second: in one pass the variance would be the difference of two large
     * numbers. */
    for (uint64_t r = 0; r < runs; r++, x += m, y += m) {
        double sum = 0, squares = 0;
        for (uint64_t i = 0; i < m; i++) {
            sum += (double)x[i];
        }
        double mean = sum / (double)m;
        for (uint64_t i = 0; i < m; i++) {
            squares += ((double)x[i] - mean) * ((double)x[i] - mean);
        }
        float inverse = (float)(1.0 / sqrt(squares / (double)m + epsilon)), middle = (float)mean;
        uint64_t c = r % s->groups * channels;
        for (uint64_t i = 0; i < m; i++) {
            uint64_t k = c + i / s->spatial;
            y[i] = (x[i] - middle) * inverse * scale[k] + shift[k];
        }
        *saved++ = middle;
        *saved++ = inverse;
    }
}

static void keep_all(float *to, uint32_t count, float keep)
{
    for (uint32_t i = 0; i < count; i++) {
        to[i] = keep == 0.0f ? 0.0f : keep * to[i];
    }
}

/* dx of all, before scale changes. */
static void back_to_x(const struct kedge_ops_norm *s, uint64_t runs, const float *x, const float *saved,
                      const float *dy, const float *scale, float *dx)
{
    uint32_t channels = s->channels / s->groups;
    uint64_t m = (uint64_t)channels * s->spatial;
    for (uint64_t r = 0; r < runs; r++, x += m, dy += m, dx += m, saved += 2) {
        double sum = 0, product = 0;
        uint64_t c = r % s->groups * channels;
        for (uint64_t i = 0; i < m; i++) {
            double g = (double)dy[i] * (double)scale[c + i / s->spatial];
            sum += g;
            product += g * (double)((x[i] - saved[0]) * saved[1]);
        }
        float mean = (float)(sum / (double)m), along = (float)(product / (double)m);
        for (uint64_t i = 0; i < m; i++) {
            float hat = (x[i] - saved[0]) * saved[1];
            dx[i] = saved[1] * (dy[i] * scale[c + i / s->spatial] - mean - hat * along);
        }
    }
}

void kedge_cpu_norm_backward(struct kedge_device *dev, const struct kedge_ops_norm *s, uint32_t n,
                             const float *x, const float *saved, float *dy, const float *scale, float *dx,
                             const struct kedge_ops_step *step, float *to_scale, float *to_shift)
{
    (void)dev;
    uint32_t channels = s->channels / s->groups;
    uint64_t m = (uint64_t)channels * s->spatial, runs = (uint64_t)n * s->rows * s->groups;
    if (dx) {
        back_to_x(s, runs, x, saved, dy, scale, dx);
    }
    keep_all(to_scale, s->channels, step->keep_bias);
    keep_all(to_shift, s->channels, step->keep_bias);
    for (uint64_t r = 0; r < runs; r++, x += m, dy += m, saved += 2) {
        uint64_t c = r % s->groups * channels;
        for (uint32_t k = 0; k < channels; k++) {
            float sum = 0, along = 0;
            for (uint64_t i = (uint64_t)k * s->spatial; i < (uint64_t)(k + 1) * s->spatial; i++) {
                sum += dy[i];
                along += dy[i] * ((x[i] - saved[0]) * saved[1]);
            }
            to_shift[c + k] += step->by * sum;
            to_scale[c + k] += step->by * along;
        }
    }
}
