/* What goes element by element: activations, dropout, and the parameters' steps that no product makes. */
#ifndef KEDGE_CLIENT_TRAIN_CUDA_POINTS_H
#define KEDGE_CLIENT_TRAIN_CUDA_POINTS_H

#include "client/train/cuda/reduce.h"

/* out = f(first, second), count elements of each of the sites. */
struct kedge_gpu_points {
    uint64_t count;
    uint32_t sites;
    const float *x, *y, *dy;
    float *out;
    size_t x_site, y_site, dy_site, out_site;
    float a, b;
    const uint32_t *active; /* parameters: sites with 0 keep theirs */
    enum kedge_ops_pointwise kind;
    uint32_t layer, below; /* dropout: a word below it drops */
    const struct kedge_gpu_now *now;
    const uint64_t *seeds;
    double *partial; /* clip: sums of squares, KEDGE_GPU_CLIP_BLOCKS per site */
};

enum { KEDGE_GPU_CLIP_BLOCKS = 64 };

KEDGE_KERNEL(pointwise_kernel, struct kedge_gpu_points)
{
    const size_t at = kedge_gpu_block() * KEDGE_GPU_THREADS + kedge_gpu_thread();
    if (at < a.count * a.sites) {
        const size_t site = at / a.count, i = at % a.count;
        const float x = a.x[site * a.x_site + i];
        float y = x <= 0.0f ? 0.0f : x;
        if (a.kind == KEDGE_OPS_GELU) {
            y = 0.5f * x * erfcf(x * -0.70710678118654752f);
        } else if (a.kind == KEDGE_OPS_TANH) {
            y = tanhf(x);
        }
        a.out[site * a.out_site + i] = y;
    }
}

KEDGE_KERNEL(pointwise_back_kernel, struct kedge_gpu_points)
{
    const size_t at = kedge_gpu_block() * KEDGE_GPU_THREADS + kedge_gpu_thread();
    if (at < a.count * a.sites) {
        const size_t site = at / a.count, i = at % a.count;
        const float dy = a.dy[site * a.dy_site + i];
        float slope = 0.0f;
        if (a.kind == KEDGE_OPS_RELU) {
            slope = a.y[site * a.y_site + i] > 0.0f ? 1.0f : 0.0f;
        } else if (a.kind == KEDGE_OPS_TANH) {
            const float y = a.y[site * a.y_site + i];
            slope = 1.0f - y * y;
        } else {
            const float x = a.x[site * a.x_site + i];
            slope = 0.5f * erfcf(x * -0.70710678118654752f) + x * 0.39894228040143268f * expf(-0.5f * x * x);
        }
        a.out[site * a.out_site + i] = dy * slope;
    }
}

/* Philox4x32-10 (Salmon et al. 2011): four words for a counter of four words and a key of two. */
KEDGE_BOTH void kedge_gpu_philox(uint64_t key, uint32_t word[4])
{
    uint32_t low = (uint32_t)key, high = (uint32_t)(key >> 32);
    for (int round = 0; round < 10; round++) {
        const uint64_t even = (uint64_t)word[0] * UINT32_C(0xD2511F53),
                       odd = (uint64_t)word[2] * UINT32_C(0xCD9E8D57);
        const uint32_t first = (uint32_t)(odd >> 32) ^ word[1] ^ low,
                       third = (uint32_t)(even >> 32) ^ word[3] ^ high;
        word[0] = first;
        word[1] = (uint32_t)odd;
        word[2] = third;
        word[3] = (uint32_t)even;
        low += UINT32_C(0x9E3779B9);
        high += UINT32_C(0xBB67AE85);
    }
}

/* A thread: four elements, the words of one counter. */
KEDGE_KERNEL(dropout_kernel, struct kedge_gpu_points)
{
    const size_t at = kedge_gpu_block() * KEDGE_GPU_THREADS + kedge_gpu_thread(), quads = (a.count + 3) / 4;
    if (at < quads * a.sites) {
        const size_t site = at / quads, quad = at % quads;
        uint32_t word[4] = {(uint32_t)quad, a.layer, (uint32_t)a.now->step, (uint32_t)(a.now->step >> 32)};
        kedge_gpu_philox(a.seeds[site], word);
        for (size_t e = 0; e < 4 && quad * 4 + e < a.count; e++) {
            const float v = a.x[site * a.x_site + quad * 4 + e];
            a.out[site * a.out_site + quad * 4 + e] = word[e] < a.below ? 0.0f : v * a.a;
        }
    }
}

/* out = a · out + b · x */
KEDGE_KERNEL(blend_kernel, struct kedge_gpu_points)
{
    const size_t at = kedge_gpu_block() * KEDGE_GPU_THREADS + kedge_gpu_thread();
    if (at < a.count * a.sites) {
        const size_t site = at / a.count, i = at % a.count;
        if (a.active[site] != 0) {
            float *out = a.out + site * a.out_site + i;
            *out = (a.a == 0.0f ? 0.0f : a.a * *out) + a.b * a.x[site * a.x_site + i];
        }
    }
}

/* Sums of squares, the elements dealt to a fixed number of blocks. */
KEDGE_KERNEL(squares_kernel, struct kedge_gpu_points)
{
    const size_t site = kedge_gpu_block() / KEDGE_GPU_CLIP_BLOCKS,
                 part = kedge_gpu_block() % KEDGE_GPU_CLIP_BLOCKS;
    double sum = 0;
    for (uint64_t i = part * KEDGE_GPU_THREADS + kedge_gpu_thread(); i < a.count;
         i += (uint64_t)KEDGE_GPU_CLIP_BLOCKS * KEDGE_GPU_THREADS) {
        const double v = (double)a.out[site * a.out_site + i];
        sum += v * v;
    }
    sum = kedge_gpu_block_sum(sum);
    if (kedge_gpu_thread() == 0) {
        a.partial[kedge_gpu_block()] = sum;
    }
}

KEDGE_KERNEL(clip_kernel, struct kedge_gpu_points)
{
    const size_t at = kedge_gpu_block() * KEDGE_GPU_THREADS + kedge_gpu_thread();
    if (at < a.count * a.sites) {
        const size_t site = at / a.count, i = at % a.count;
        double sum = 0;
        for (size_t part = 0; part < KEDGE_GPU_CLIP_BLOCKS; part++) {
            sum += a.partial[site * KEDGE_GPU_CLIP_BLOCKS + part];
        }
        if (sum > (double)a.a * (double)a.a) {
            a.out[site * a.out_site + i] *= (float)((double)a.a / sqrt(sum));
        }
    }
}

static struct kedge_gpu_points points_args(struct kedge_device *dev, uint64_t count, const float *x,
                                           const float *y, const float *dy, float *out)
{
    struct kedge_gpu_points a;
    memset(&a, 0, sizeof a);
    a.count = count;
    a.sites = dev->sites;
    a.x = x;
    a.x_site = kedge_gpu_ref(dev, x).site;
    a.y = y;
    a.y_site = kedge_gpu_ref(dev, y).site;
    a.dy = dy;
    a.dy_site = kedge_gpu_ref(dev, dy).site;
    a.out = out;
    a.out_site = kedge_gpu_ref(dev, out).site;
    a.active = dev->counts;
    a.now = dev->now;
    a.seeds = dev->seeds;
    return a;
}

static void pointwise_forward(struct kedge_device *dev, enum kedge_ops_pointwise kind, uint64_t count,
                              const float *x, float *y)
{
    struct kedge_gpu_points a = points_args(dev, count, x, NULL, NULL, y);
    a.kind = kind;
    KEDGE_LAUNCH_FLAT(&dev->stream, pointwise_kernel, count * dev->sites, a);
}

static void pointwise_backward(struct kedge_device *dev, enum kedge_ops_pointwise kind, uint64_t count,
                               const float *x, const float *y, const float *dy, float *dx)
{
    struct kedge_gpu_points a = points_args(dev, count, x, y, dy, dx);
    a.kind = kind;
    KEDGE_LAUNCH_FLAT(&dev->stream, pointwise_back_kernel, count * dev->sites, a);
}

static void dropout(struct kedge_device *dev, double rate, uint32_t layer, uint64_t count, const float *x,
                    float *y)
{
    struct kedge_gpu_points a = points_args(dev, count, x, NULL, NULL, y);
    a.a = (float)(1.0 / (1.0 - rate));
    a.layer = layer;
    a.below = (uint32_t)(rate * 4294967296.0);
    KEDGE_LAUNCH_FLAT(&dev->stream, dropout_kernel, (count + 3) / 4 * dev->sites, a);
}

static void dropout_forward(struct kedge_device *dev, double rate, uint32_t layer, uint64_t count,
                            const float *x, float *y)
{
    dropout(dev, rate, layer, count, x, y);
}

static void dropout_backward(struct kedge_device *dev, double rate, uint32_t layer, uint64_t count,
                             const float *dy, float *dx)
{
    dropout(dev, rate, layer, count, dy, dx);
}

static void blend(struct kedge_device *dev, uint64_t count, float *v, float by, const float *w, float b)
{
    struct kedge_gpu_points a = points_args(dev, count, w, NULL, NULL, v);
    a.a = by;
    a.b = b;
    KEDGE_LAUNCH_FLAT(&dev->stream, blend_kernel, count * dev->sites, a);
}

static void add(struct kedge_device *dev, uint64_t count, float *w, const float *v, float by)
{
    blend(dev, count, w, 1.0f, v, by);
}

static void clip(struct kedge_device *dev, uint64_t count, float *g, float most)
{
    struct kedge_gpu_points a = points_args(dev, count, NULL, NULL, NULL, g);
    a.a = most;
    a.partial = dev->partial;
    KEDGE_LAUNCH(&dev->stream, squares_kernel, (size_t)KEDGE_GPU_CLIP_BLOCKS * dev->sites, KEDGE_GPU_THREADS,
                 a);
    KEDGE_LAUNCH_FLAT(&dev->stream, clip_kernel, count * dev->sites, a);
}

#endif
