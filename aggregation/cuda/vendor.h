/* What the kernels need of CUDA, and the same in plain C for machines without a device (KEDGE_GPU_HOST):
 * there a launch runs every thread of every block one after the other, in an order that the test chooses,
 * since no result may depend on it. Kernels use no barriers, so that nothing else is to be emulated. */
#ifndef KEDGE_AGGREGATION_CUDA_VENDOR_H
#define KEDGE_AGGREGATION_CUDA_VENDOR_H

#include <stddef.h>
#include <stdint.h>

enum { KEDGE_GPU_THREADS = 256 }; /* of a block */

#if defined(KEDGE_GPU_HOST)
#include <string.h>

#include "common/base/mem.h"

#define KEDGE_KERNEL static void
#define KEDGE_DEVICE static inline

typedef int kedge_gpu_status;
enum { KEDGE_GPU_OK = 0, KEDGE_GPU_NO_MEMORY = 2 };

/* Threads run as (i * step) mod all, backwards if asked; step has no divisor in common with all. */
static struct {
    size_t step;
    int backwards;
    size_t thread; /* the one that runs */
} kedge_gpu = {1, 0, 0};

KEDGE_DEVICE size_t kedge_gpu_thread(void)
{
    return kedge_gpu.thread;
}

#define KEDGE_LAUNCH(kernel, threads, ...)                                                               \
    do {                                                                                                 \
        const size_t all_ = ((threads) + KEDGE_GPU_THREADS - 1) / KEDGE_GPU_THREADS * KEDGE_GPU_THREADS; \
        for (size_t i_ = 0; i_ < all_; i_++) {                                                           \
            const size_t turned_ = i_ * kedge_gpu.step % all_;                                           \
            kedge_gpu.thread = kedge_gpu.backwards ? all_ - 1 - turned_ : turned_;                       \
            kernel(__VA_ARGS__);                                                                         \
        }                                                                                                \
    } while (0)

KEDGE_DEVICE void kedge_gpu_add(unsigned long long *to, unsigned long long value)
{
    *to += value;
}

KEDGE_DEVICE void kedge_gpu_max(unsigned *to, unsigned value)
{
    *to = value > *to ? value : *to;
}

static kedge_gpu_status kedge_gpu_new(void **to, size_t bytes)
{
    *to = kedge_mem_new(1, bytes);
    return *to ? KEDGE_GPU_OK : KEDGE_GPU_NO_MEMORY;
}

static kedge_gpu_status kedge_gpu_put(void *to, const void *from, size_t bytes)
{
    memcpy(to, from, bytes);
    return KEDGE_GPU_OK;
}

static kedge_gpu_status kedge_gpu_get(void *to, const void *from, size_t bytes)
{
    memcpy(to, from, bytes);
    return KEDGE_GPU_OK;
}

static void kedge_gpu_free(void *p)
{
    kedge_mem_free(p);
}

static kedge_gpu_status kedge_gpu_launched(void)
{
    return KEDGE_GPU_OK;
}

static int kedge_gpu_devices(void)
{
    return 1;
}

static const char *kedge_gpu_text(int status)
{
    return status == KEDGE_GPU_OK ? "no error" : "out of memory";
}
#else
#include <cuda_runtime.h>

#define KEDGE_KERNEL static __global__ void
#define KEDGE_DEVICE static __device__ __forceinline__

typedef cudaError_t kedge_gpu_status;
#define KEDGE_GPU_OK cudaSuccess

KEDGE_DEVICE size_t kedge_gpu_thread(void)
{
    return (size_t)blockIdx.x * blockDim.x + threadIdx.x;
}

/* The grid follows from the problem alone, never from the device. */
#define KEDGE_LAUNCH(kernel, threads, ...)                                                              \
    kernel<<<(unsigned)(((threads) + KEDGE_GPU_THREADS - 1) / KEDGE_GPU_THREADS), KEDGE_GPU_THREADS>>>( \
        __VA_ARGS__)

/* Whole numbers only: their sums and maxima have no order. */
KEDGE_DEVICE void kedge_gpu_add(unsigned long long *to, unsigned long long value)
{
    atomicAdd(to, value);
}

KEDGE_DEVICE void kedge_gpu_max(unsigned *to, unsigned value)
{
    atomicMax(to, value);
}

static kedge_gpu_status kedge_gpu_new(void **to, size_t bytes)
{
    const cudaError_t status = cudaMalloc(to, bytes);
    return status == cudaSuccess ? cudaMemset(*to, 0, bytes) : status;
}

static kedge_gpu_status kedge_gpu_put(void *to, const void *from, size_t bytes)
{
    return cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice);
}

static kedge_gpu_status kedge_gpu_get(void *to, const void *from, size_t bytes)
{
    return cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost);
}

static void kedge_gpu_free(void *p)
{
    (void)cudaFree(p);
}

static kedge_gpu_status kedge_gpu_launched(void)
{
    const cudaError_t status = cudaGetLastError();
    return status == cudaSuccess ? cudaDeviceSynchronize() : status;
}

static int kedge_gpu_devices(void)
{
    int count = 0;
    return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

static const char *kedge_gpu_text(int status)
{
    return cudaGetErrorString((cudaError_t)status);
}
#endif

#endif
