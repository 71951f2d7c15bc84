/* Layer and group norm: a block per normalised run; a block per channel for the parameters. */
#ifndef KEDGE_CLIENT_TRAIN_CUDA_NORMS_H
#define KEDGE_CLIENT_TRAIN_CUDA_NORMS_H

#include "client/train/cuda/reduce.h"

struct kedge_gpu_norm {
    struct kedge_ops_norm s;
    size_t runs; /* n · rows · groups of one site */
    const float *x, *scale, *shift, *dy;
    float *saved, *y; /* y: forward y, backward dx */
    size_t x_site, scale_site, shift_site, saved_site, y_site, dy_site, to_site, to_shift_site;
    float keep, by;
    float *to_scale, *to_shift;
    const uint32_t *active;
};

#define KEDGE_GPU_NORM_EPSILON 1e-5

/* saved[2 · run] mean, saved[2 · run + 1] 1 / root of the variance */
KEDGE_KERNEL(norm_kernel, struct kedge_gpu_norm)
{
    const size_t site = kedge_gpu_block() / a.runs, run = kedge_gpu_block() % a.runs, t = kedge_gpu_thread();
    const uint32_t channels = a.s.channels / a.s.groups, first = (uint32_t)(run % a.s.groups) * channels;
    const size_t length = (size_t)channels * a.s.spatial;
    const float *x = a.x + site * a.x_site + run * length, *scale = a.scale + site * a.scale_site;
    const float *shift = a.shift + site * a.shift_site;
    double sum = 0, squares = 0;
    for (size_t i = t; i < length; i += KEDGE_GPU_THREADS) {
        sum += (double)x[i];
    }
    const double mean = kedge_gpu_block_sum(sum) / (double)length;
    for (size_t i = t; i < length; i += KEDGE_GPU_THREADS) {
        const double from = (double)x[i] - mean;
        squares += from * from;
    }
    const double inverse = 1.0 / sqrt(kedge_gpu_block_sum(squares) / (double)length + KEDGE_GPU_NORM_EPSILON);
    for (size_t i = t; i < length; i += KEDGE_GPU_THREADS) {
        const uint32_t c = first + (uint32_t)(i / a.s.spatial);
        a.y[site * a.y_site + run * length + i] =
            (float)(((double)x[i] - mean) * inverse) * scale[c] + shift[c];
    }
    if (t == 0) {
        a.saved[site * a.saved_site + 2 * run] = (float)mean;
        a.saved[site * a.saved_site + 2 * run + 1] = (float)inverse;
    }
}

/* dx = inverse · (g − mean of g − x̂ · mean of g · x̂), g = dy · scale */
KEDGE_KERNEL(norm_back_kernel, struct kedge_gpu_norm)
{
    const size_t site = kedge_gpu_block() / a.runs, run = kedge_gpu_block() % a.runs, t = kedge_gpu_thread();
    const uint32_t channels = a.s.channels / a.s.groups, first = (uint32_t)(run % a.s.groups) * channels;
    const size_t length = (size_t)channels * a.s.spatial;
    const float *x = a.x + site * a.x_site + run * length, *scale = a.scale + site * a.scale_site;
    const float *dy = a.dy + site * a.dy_site + run * length;
    const double mean = (double)a.saved[site * a.saved_site + 2 * run];
    const double inverse = (double)a.saved[site * a.saved_site + 2 * run + 1];
    double sum = 0, along = 0;
    for (size_t i = t; i < length; i += KEDGE_GPU_THREADS) {
        const double g = (double)dy[i] * (double)scale[first + (uint32_t)(i / a.s.spatial)];
        sum += g;
        along += g * ((double)x[i] - mean) * inverse;
    }
    sum = kedge_gpu_block_sum(sum) / (double)length;
    along = kedge_gpu_block_sum(along) / (double)length;
    for (size_t i = t; i < length; i += KEDGE_GPU_THREADS) {
        const double g = (double)dy[i] * (double)scale[first + (uint32_t)(i / a.s.spatial)];
        const double place = ((double)x[i] - mean) * inverse;
        a.y[site * a.y_site + run * length + i] = (float)(inverse * (g - sum - place * along));
    }
}

KEDGE_KERNEL(norm_targets_kernel, struct kedge_gpu_norm)
{
    const size_t site = kedge_gpu_block() / a.s.channels, c = kedge_gpu_block() % a.s.channels,
                 t = kedge_gpu_thread();
    const size_t rows = a.runs / a.s.groups, group = c / (a.s.channels / a.s.groups);
    double scale = 0, shift = 0;
    for (size_t i = t; i < rows * a.s.spatial; i += KEDGE_GPU_THREADS) {
        const size_t row = i / a.s.spatial, run = row * a.s.groups + group;
        const size_t at = (row * a.s.channels + c) * a.s.spatial + i % a.s.spatial;
        const float *saved = a.saved + site * a.saved_site + 2 * run;
        const double dy = (double)a.dy[site * a.dy_site + at];
        scale += dy * ((double)a.x[site * a.x_site + at] - (double)saved[0]) * (double)saved[1];
        shift += dy;
    }
    scale = kedge_gpu_block_sum(scale);
    shift = kedge_gpu_block_sum(shift);
    if (t == 0 && a.active[site] != 0) {
        float *to_scale = a.to_scale + site * a.to_site + c;
        float *to_shift = a.to_shift + site * a.to_shift_site + c;
        *to_scale = (a.keep == 0.0f ? 0.0f : a.keep * *to_scale) + a.by * (float)scale;
        *to_shift = (a.keep == 0.0f ? 0.0f : a.keep * *to_shift) + a.by * (float)shift;
    }
}

static struct kedge_gpu_norm norm_args(struct kedge_device *dev, const struct kedge_ops_norm *s, uint32_t n,
                                       const float *x, const float *scale, float *y, const float *saved)
{
    struct kedge_gpu_norm a;
    memset(&a, 0, sizeof a);
    a.s = *s;
    a.runs = (size_t)n * s->rows * s->groups;
    a.x = x;
    a.x_site = kedge_gpu_ref(dev, x).site;
    a.scale = scale;
    a.scale_site = kedge_gpu_ref(dev, scale).site;
    a.y = y;
    a.y_site = kedge_gpu_ref(dev, y).site;
    a.saved = (float *)saved;
    a.saved_site = kedge_gpu_ref(dev, saved).site;
    a.active = dev->counts;
    return a;
}

static void norm_forward(struct kedge_device *dev, const struct kedge_ops_norm *s, uint32_t n, const float *x,
                         const float *scale, const float *shift, float *y, float *saved)
{
    struct kedge_gpu_norm a = norm_args(dev, s, n, x, scale, y, saved);
    a.shift = shift;
    a.shift_site = kedge_gpu_ref(dev, shift).site;
    KEDGE_LAUNCH(&dev->stream, norm_kernel, a.runs * dev->sites, KEDGE_GPU_THREADS, a);
}

static void norm_backward(struct kedge_device *dev, const struct kedge_ops_norm *s, uint32_t n,
                          const float *x, const float *saved, float *dy, const float *scale, float *dx,
                          const struct kedge_ops_step *step, float *to_scale, float *to_shift)
{
    struct kedge_gpu_norm a = norm_args(dev, s, n, x, scale, dx, saved);
    a.dy = dy;
    a.dy_site = kedge_gpu_ref(dev, dy).site;
    a.to_scale = to_scale;
    a.to_shift = to_shift;
    a.to_site = kedge_gpu_ref(dev, to_scale).site;
    a.to_shift_site = kedge_gpu_ref(dev, to_shift).site;
    a.keep = step->keep_bias;
    a.by = step->by;
    if (dx) {
        KEDGE_LAUNCH(&dev->stream, norm_back_kernel, a.runs * dev->sites, KEDGE_GPU_THREADS, a);
    }
    KEDGE_LAUNCH(&dev->stream, norm_targets_kernel, (size_t)s->channels * dev->sites, KEDGE_GPU_THREADS, a);
}

#endif
