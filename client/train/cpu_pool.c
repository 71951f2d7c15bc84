/* Pools, one channel of one image at a time. */
#include <string.h>

#include "client/train/cpu_impl.h"

/* A row of windows of 2 × 2 side by side: the usual pool, without a branch. */
static void maxpool_row_2(uint32_t windows, const float *restrict a, const float *restrict b,
                          float *restrict y, uint8_t *restrict which)
{
    for (uint32_t o = 0; o < windows; o++) {
        float p = a[2 * o], q = a[2 * o + 1], r = b[2 * o], s = b[2 * o + 1];
        float up = q > p ? q : p, down = s > r ? s : r;
        int left = q > p, right = 2 + (s > r), lower = -(down > up);
        y[o] = down > up ? down : up;
        which[o] = (uint8_t)(left ^ ((left ^ right) & lower)); /* a choice by bits: no jump to guess */
    }
}

void kedge_cpu_maxpool_forward(struct kedge_device *dev, const struct kedge_ops_pool *s, uint32_t n,
                               const float *x, float *y, uint8_t *which)
{
    (void)dev;
    uint64_t images = (uint64_t)n * s->channels;
    for (uint64_t c = 0; c < images; c++, x += (uint64_t)s->height * s->width) {
        for (uint32_t oy = 0; oy < s->out_height; oy++) {
            const float *row = x + (uint64_t)oy * s->stride * s->width;
            if (s->kernel == 2 && s->stride == 2) {
                maxpool_row_2(s->out_width, row, row + s->width, y, which);
                y += s->out_width;
                which += s->out_width;
                continue;
            }
            for (uint32_t ox = 0; ox < s->out_width; ox++) {
                const float *at = row + (uint64_t)ox * s->stride;
                float most = at[0];
                uint32_t won = 0;
                for (uint32_t ky = 0; ky < s->kernel; ky++) {
                    for (uint32_t kx = 0; kx < s->kernel; kx++) {
                        float v = at[(uint64_t)ky * s->width + kx];
                        bool more = v > most;
                        most = more ? v : most;
                        won = more ? ky * s->kernel + kx : won;
                    }
                }
                *y++ = most;
                *which++ = (uint8_t)won;
            }
        }
    }
}

void kedge_cpu_maxpool_backward(struct kedge_device *dev, const struct kedge_ops_pool *s, uint32_t n,
                                const uint8_t *which, const float *dy, float *dx)
{
    (void)dev;
    uint64_t images = (uint64_t)n * s->channels, size = (uint64_t)s->height * s->width;
    memset(dx, 0, images * size * sizeof *dx);
    for (uint64_t c = 0; c < images; c++, dx += size) {
        for (uint32_t oy = 0; oy < s->out_height; oy++) {
            for (uint32_t ox = 0; ox < s->out_width; ox++, which++, dy++) {
                uint32_t row = oy * s->stride + *which / s->kernel;
                uint32_t column = ox * s->stride + *which % s->kernel;
                dx[(uint64_t)row * s->width + column] += *dy;
            }
        }
    }
}

void kedge_cpu_avgpool_forward(struct kedge_device *dev, const struct kedge_ops_pool *s, uint32_t n,
                               const float *x, float *y)
{
    (void)dev;
    uint64_t images = (uint64_t)n * s->channels;
    float share = 1.0f / (float)(s->kernel * s->kernel);
    for (uint64_t c = 0; c < images; c++, x += (uint64_t)s->height * s->width) {
        for (uint32_t oy = 0; oy < s->out_height; oy++) {
            for (uint32_t ox = 0; ox < s->out_width; ox++) {
                float sum = 0;
                for (uint32_t k = 0; k < s->kernel * s->kernel; k++) {
                    sum += x[((uint64_t)oy * s->stride + k / s->kernel) * s->width + (uint64_t)ox * s->stride
                             + k % s->kernel];
                }
                *y++ = sum * share;
            }
        }
    }
}

void kedge_cpu_avgpool_backward(struct kedge_device *dev, const struct kedge_ops_pool *s, uint32_t n,
                                const float *dy, float *dx)
{
    (void)dev;
    uint64_t images = (uint64_t)n * s->channels, size = (uint64_t)s->height * s->width;
    float share = 1.0f / (float)(s->kernel * s->kernel);
    memset(dx, 0, images * size * sizeof *dx);
    for (uint64_t c = 0; c < images; c++, dx += size) {
        for (uint32_t oy = 0; oy < s->out_height; oy++) {
            for (uint32_t ox = 0; ox < s->out_width; ox++, dy++) {
                for (uint32_t k = 0; k < s->kernel * s->kernel; k++) {
                    dx[((uint64_t)oy * s->stride + k / s->kernel) * s->width + (uint64_t)ox * s->stride
                       + k % s->kernel] += share * *dy;
                }
            }
        }
    }
}
