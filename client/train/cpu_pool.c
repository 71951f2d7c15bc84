/* Pools, one channel of one image at a time. Of equal values in a window the first wins, in the order of
 * rows: `which` then says the same on every back end, and so does the gradient. */
#include <string.h>

#include "client/train/cpu_impl.h"

typedef float four __attribute__((vector_size(16)));
typedef float loose_four __attribute__((vector_size(16), aligned(4), may_alias));
typedef int32_t four_ints __attribute__((vector_size(16)));

/* Where mask is all ones b, where it is zero a. */
static four choose(four_ints mask, four a, four b)
{
    return (four)(((four_ints)a & ~mask) | ((four_ints)b & mask));
}

/* A row of windows of 2 × 2 side by side, the usual pool: four at a time, by masks instead of jumps. */
static void maxpool_row_2(uint32_t windows, const float *a, const float *b, float *y, uint8_t *which)
{
    uint32_t o = 0;
    for (; o + 4 <= windows; o += 4) {
        four a0 = *(const loose_four *)(a + 2 * o), a1 = *(const loose_four *)(a + 2 * o + 4);
        four b0 = *(const loose_four *)(b + 2 * o), b1 = *(const loose_four *)(b + 2 * o + 4);
        four p = __builtin_shufflevector(a0, a1, 0, 2, 4, 6), q = __builtin_shufflevector(a0, a1, 1, 3, 5, 7);
        four r = __builtin_shufflevector(b0, b1, 0, 2, 4, 6), s = __builtin_shufflevector(b0, b1, 1, 3, 5, 7);
        four_ints right_up = q > p, right_down = s > r;
        four up = choose(right_up, p, q), down = choose(right_down, r, s);
        four_ints lower = down > up;
        four_ints won = ((right_up & 1) & ~lower) | ((2 + (right_down & 1)) & lower);
        *(loose_four *)(y + o) = choose(lower, up, down);
        for (uint32_t i = 0; i < 4; i++) {
            which[o + i] = (uint8_t)won[i];
        }
    }
    for (; o < windows; o++) {
        float up = a[2 * o + 1] > a[2 * o] ? a[2 * o + 1] : a[2 * o];
        float down = b[2 * o + 1] > b[2 * o] ? b[2 * o + 1] : b[2 * o];
        bool lower = down > up;
        y[o] = lower ? down : up;
        which[o] = (uint8_t)(lower ? 2 + (b[2 * o + 1] > b[2 * o]) : a[2 * o + 1] > a[2 * o]);
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
