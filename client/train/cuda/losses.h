/* Losses: a block per site takes 32 samples at a time, 8 threads each, and adds up in a fixed order. */
#ifndef KEDGE_CLIENT_TRAIN_CUDA_LOSSES_H
#define KEDGE_CLIENT_TRAIN_CUDA_LOSSES_H

#include "client/train/cuda/reduce.h"

struct kedge_gpu_loss {
    uint32_t n, width;
    const int32_t *labels;
    float *z;
    size_t labels_site, z_site;
    const uint32_t *counts;
    bool reals;   /* labels are the bits of F32 */
    double *loss; /* one per site */
};

enum { KEDGE_GPU_LOSS_LANES = 8, KEDGE_GPU_LOSS_ROWS = KEDGE_GPU_THREADS / KEDGE_GPU_LOSS_LANES };

/* Of the 8 threads of a sample, by a tree; every thread of the block calls it. */
KEDGE_DEVICE float kedge_gpu_lanes_most(float mine)
{
    KEDGE_SHARED(float, part, KEDGE_GPU_THREADS);
    const size_t t = kedge_gpu_thread(), lane = t % KEDGE_GPU_LOSS_LANES;
    part[t] = mine;
    KEDGE_BARRIER();
    for (size_t half = KEDGE_GPU_LOSS_LANES / 2; half > 0; half /= 2) {
        if (lane < half) {
            part[t] = part[t] > part[t + half] ? part[t] : part[t + half];
        }
        KEDGE_BARRIER();
    }
    const float most = part[t - lane];
    KEDGE_BARRIER();
    return most;
}

KEDGE_DEVICE double kedge_gpu_lanes_sum(double mine)
{
    KEDGE_SHARED(double, part, KEDGE_GPU_THREADS);
    const size_t t = kedge_gpu_thread(), lane = t % KEDGE_GPU_LOSS_LANES;
    part[t] = mine;
    KEDGE_BARRIER();
    for (size_t half = KEDGE_GPU_LOSS_LANES / 2; half > 0; half /= 2) {
        if (lane < half) {
            part[t] += part[t + half];
        }
        KEDGE_BARRIER();
    }
    const double sum = part[t - lane];
    KEDGE_BARRIER();
    return sum;
}

/* Samples of this step; rows behind them count for nothing. */
KEDGE_DEVICE uint32_t kedge_gpu_samples(const uint32_t *counts, size_t site, uint32_t n)
{
    return counts[site] < n ? counts[site] : n;
}

KEDGE_KERNEL(cross_entropy_kernel, struct kedge_gpu_loss)
{
    const size_t site = kedge_gpu_block(), t = kedge_gpu_thread(), lane = t % KEDGE_GPU_LOSS_LANES;
    const uint32_t samples = kedge_gpu_samples(a.counts, site, a.n);
    const float share = samples > 0 ? 1.0f / (float)samples : 0.0f;
    double loss = 0;
    for (size_t first = 0; first < a.n; first += KEDGE_GPU_LOSS_ROWS) {
        const size_t row = first + t / KEDGE_GPU_LOSS_LANES;
        const bool counts = row < samples, is_there = row < a.n;
        float *z = a.z + site * a.z_site + (is_there ? row : 0) * a.width;
        const size_t label = (size_t)(counts ? a.labels[site * a.labels_site + row] : 0);
        float most = -INFINITY;
        for (size_t c = lane; c < a.width && counts; c += KEDGE_GPU_LOSS_LANES) {
            most = z[c] > most ? z[c] : most;
        }
        most = kedge_gpu_lanes_most(most);
        const float own = counts ? z[label] - most : 0.0f;
        double sum = 0;
        for (size_t c = lane; c < a.width && counts; c += KEDGE_GPU_LOSS_LANES) {
            const float e = expf(z[c] - most);
            sum += (double)e;
        }
        sum = kedge_gpu_lanes_sum(sum); /* its barriers: own was read before z changes */
        const float inverse = (float)(1.0 / sum);
        for (size_t c = lane; c < a.width && is_there; c += KEDGE_GPU_LOSS_LANES) {
            z[c] = counts ? (expf(z[c] - most) * inverse - (c == label ? 1.0f : 0.0f)) * share : 0.0f;
        }
        loss += counts && lane == 0 ? log(sum) - (double)own : 0.0;
    }
    loss = kedge_gpu_block_sum(loss);
    if (t == 0) {
        a.loss[site] += loss;
    }
}

KEDGE_KERNEL(square_error_kernel, struct kedge_gpu_loss)
{
    const size_t site = kedge_gpu_block(), t = kedge_gpu_thread(), count = (size_t)a.n * a.width;
    const uint32_t samples = kedge_gpu_samples(a.counts, site, a.n);
    double loss = 0;
    for (size_t i = t; i < count; i += KEDGE_GPU_THREADS) {
        float *z = a.z + site * a.z_site + i;
        const size_t row = i / a.width, c = i % a.width;
        if (row >= samples) {
            *z = 0.0f;
            continue;
        }
        const int32_t label = a.labels[site * a.labels_site + row];
        float wanted = a.width == 1 ? (float)label : (size_t)label == c ? 1.0f : 0.0f;
        if (a.reals) {
            memcpy(&wanted, &label, sizeof wanted);
        }
        const double off = (double)(*z - wanted);
        loss += off * off / (double)a.width;
        *z = (float)(2.0 * off / ((double)a.width * (double)samples));
    }
    loss = kedge_gpu_block_sum(loss);
    if (t == 0) {
        a.loss[site] += loss;
    }
}

static struct kedge_gpu_loss loss_args(struct kedge_device *dev, uint32_t n, uint32_t width,
                                       const int32_t *labels, float *z)
{
    struct kedge_gpu_loss a;
    memset(&a, 0, sizeof a);
    a.n = n;
    a.width = width;
    a.labels = labels;
    a.labels_site = kedge_gpu_apart(dev, labels) / sizeof *labels;
    a.z = z;
    a.z_site = kedge_gpu_ref(dev, z).site;
    a.counts = dev->counts;
    a.loss = dev->loss;
    return a;
}

static void cross_entropy(struct kedge_device *dev, uint32_t n, uint32_t width, const int32_t *labels,
                          float *z)
{
    struct kedge_gpu_loss a = loss_args(dev, n, width, labels, z);
    KEDGE_LAUNCH(&dev->stream, cross_entropy_kernel, dev->sites, KEDGE_GPU_THREADS, a);
}

static void square_error(struct kedge_device *dev, uint32_t n, uint32_t width, const int32_t *labels,
                         bool reals, float *z)
{
    struct kedge_gpu_loss a = loss_args(dev, n, width, labels, z);
    a.reals = reals;
    KEDGE_LAUNCH(&dev->stream, square_error_kernel, dev->sites, KEDGE_GPU_THREADS, a);
}

static int take_loss(struct kedge_device *dev, double *ret_sums)
{
    kedge_gpu_keep(dev, kedge_gpu_get(&dev->stream, ret_sums, dev->loss, dev->sites * sizeof *ret_sums));
    kedge_gpu_keep(dev, kedge_gpu_zero(&dev->stream, dev->loss, dev->sites * sizeof *ret_sums));
    kedge_gpu_keep(dev, kedge_gpu_wait(&dev->stream));
    return kedge_gpu_result(dev);
}

#endif
