/* The sum over a block by a fixed tree in shared memory: the same result in any order of threads. Every
 * thread of the block calls them, with as many threads as a power of two, and gets the result. */
#ifndef KEDGE_CLIENT_TRAIN_CUDA_REDUCE_H
#define KEDGE_CLIENT_TRAIN_CUDA_REDUCE_H

#include "client/train/cuda/device.h"

KEDGE_DEVICE double kedge_gpu_block_sum(double mine)
{
    KEDGE_SHARED(double, part, KEDGE_GPU_THREADS);
    const size_t t = kedge_gpu_thread();
    part[t] = mine;
    KEDGE_BARRIER();
    for (size_t half = kedge_gpu_threads() / 2; half > 0; half /= 2) {
        if (t < half) {
            part[t] += part[t + half];
        }
        KEDGE_BARRIER();
    }
    const double sum = part[0];
    KEDGE_BARRIER(); /* before the next call writes */
    return sum;
}

#endif
