/* Pools: a thread per output forward, per input backward, so that overlapping windows need no atomics. */
#ifndef KEDGE_CLIENT_TRAIN_CUDA_IMAGES_H
#define KEDGE_CLIENT_TRAIN_CUDA_IMAGES_H

#include "client/train/cuda/device.h"

struct kedge_gpu_pool {
    struct kedge_ops_pool s;
    size_t planes; /* n · channels of one site */
    uint32_t sites;
    const float *x, *dy;
    float *y, *dx;
    uint8_t *which;
    size_t x_site, y_site, which_site; /* of x or dx, of y or dy */
};

KEDGE_KERNEL(maxpool_kernel, struct kedge_gpu_pool)
{
    const size_t at = kedge_gpu_block() * KEDGE_GPU_THREADS + kedge_gpu_thread();
    const size_t out = (size_t)a.s.out_height * a.s.out_width, each = a.planes * out;
    if (at >= each * a.sites) {
        return;
    }
    const size_t site = at / each, place = at % each, where = place % out;
    const uint32_t top = (uint32_t)(where / a.s.out_width) * a.s.stride;
    const uint32_t left = (uint32_t)(where % a.s.out_width) * a.s.stride;
    const float *x = a.x + site * a.x_site + place / out * a.s.height * a.s.width;
    float most = x[(size_t)top * a.s.width + left];
    uint32_t winner = 0;
    for (uint32_t i = 1; i < a.s.kernel * a.s.kernel; i++) {
        const float v = x[(size_t)(top + i / a.s.kernel) * a.s.width + left + i % a.s.kernel];
        if (v > most || (v != v && most == most)) { /* a NaN wins: it must not be hidden */
            most = v;
            winner = i;
        }
    }
    a.y[site * a.y_site + place] = most;
    a.which[site * a.which_site + place] = (uint8_t)winner;
}

KEDGE_KERNEL(avgpool_kernel, struct kedge_gpu_pool)
{
    const size_t at = kedge_gpu_block() * KEDGE_GPU_THREADS + kedge_gpu_thread();
    const size_t out = (size_t)a.s.out_height * a.s.out_width, each = a.planes * out;
    if (at >= each * a.sites) {
        return;
    }
    const size_t site = at / each, place = at % each, where = place % out;
    const uint32_t top = (uint32_t)(where / a.s.out_width) * a.s.stride;
    const uint32_t left = (uint32_t)(where % a.s.out_width) * a.s.stride;
    const float *x = a.x + site * a.x_site + place / out * a.s.height * a.s.width;
    float sum = 0.0f;
    for (uint32_t i = 0; i < a.s.kernel * a.s.kernel; i++) {
        sum += x[(size_t)(top + i / a.s.kernel) * a.s.width + left + i % a.s.kernel];
    }
    a.y[site * a.y_site + place] = sum / (float)(a.s.kernel * a.s.kernel);
}

/* dx of one input: the sum over the windows that it lies in; of max pools those that it won. */
KEDGE_KERNEL(pool_back_kernel, struct kedge_gpu_pool)
{
    const size_t at = kedge_gpu_block() * KEDGE_GPU_THREADS + kedge_gpu_thread();
    const size_t in = (size_t)a.s.height * a.s.width, each = a.planes * in;
    if (at >= each * a.sites) {
        return;
    }
    const size_t site = at / each, place = at % each, plane = place / in;
    const uint32_t y = (uint32_t)(place % in / a.s.width), x = (uint32_t)(place % in % a.s.width);
    const size_t first = plane * a.s.out_height * a.s.out_width;
    float sum = 0.0f;
    for (uint32_t i = 0; i < a.s.kernel * a.s.kernel; i++) {
        const uint32_t ky = i / a.s.kernel, kx = i % a.s.kernel;
        if (y < ky || x < kx || (y - ky) % a.s.stride != 0 || (x - kx) % a.s.stride != 0
            || (y - ky) / a.s.stride >= a.s.out_height || (x - kx) / a.s.stride >= a.s.out_width) {
            continue;
        }
        const size_t from = first + (size_t)((y - ky) / a.s.stride) * a.s.out_width + (x - kx) / a.s.stride;
        if (!a.which || a.which[site * a.which_site + from] == i) {
            sum += a.dy[site * a.y_site + from];
        }
    }
    a.dx[site * a.x_site + place] = a.which ? sum : sum / (float)(a.s.kernel * a.s.kernel);
}

static struct kedge_gpu_pool pool_args(struct kedge_device *dev, const struct kedge_ops_pool *s, uint32_t n,
                                       const float *x, const float *y, const uint8_t *which)
{
    struct kedge_gpu_pool a;
    memset(&a, 0, sizeof a);
    a.s = *s;
    a.planes = (size_t)n * s->channels;
    a.sites = dev->sites;
    a.x_site = kedge_gpu_ref(dev, x).site;
    a.y_site = kedge_gpu_ref(dev, y).site;
    a.which = (uint8_t *)which;
    a.which_site = which ? kedge_gpu_apart(dev, which) : 0;
    return a;
}

static void maxpool_forward(struct kedge_device *dev, const struct kedge_ops_pool *s, uint32_t n,
                            const float *x, float *y, uint8_t *which)
{
    struct kedge_gpu_pool a = pool_args(dev, s, n, x, y, which);
    a.x = x;
    a.y = y;
    KEDGE_LAUNCH_FLAT(&dev->stream, maxpool_kernel, a.planes * s->out_height * s->out_width * a.sites, a);
}

static void maxpool_backward(struct kedge_device *dev, const struct kedge_ops_pool *s, uint32_t n,
                             const uint8_t *which, const float *dy, float *dx)
{
    struct kedge_gpu_pool a = pool_args(dev, s, n, dx, dy, which);
    a.dy = dy;
    a.dx = dx;
    KEDGE_LAUNCH_FLAT(&dev->stream, pool_back_kernel, a.planes * s->height * s->width * a.sites, a);
}

static void avgpool_forward(struct kedge_device *dev, const struct kedge_ops_pool *s, uint32_t n,
                            const float *x, float *y)
{
    struct kedge_gpu_pool a = pool_args(dev, s, n, x, y, NULL);
    a.x = x;
    a.y = y;
    KEDGE_LAUNCH_FLAT(&dev->stream, avgpool_kernel, a.planes * s->out_height * s->out_width * a.sites, a);
}

static void avgpool_backward(struct kedge_device *dev, const struct kedge_ops_pool *s, uint32_t n,
                             const float *dy, float *dx)
{
    struct kedge_gpu_pool a = pool_args(dev, s, n, dx, dy, NULL);
    a.dy = dy;
    a.dx = dx;
    KEDGE_LAUNCH_FLAT(&dev->stream, pool_back_kernel, a.planes * s->height * s->width * a.sites, a);
}

#endif
