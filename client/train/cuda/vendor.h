/* What the kernels need of CUDA. Written in what C and C++ have in common, so that a C compiler takes the
 * same source: a test that defines KEDGE_GPU_HOST brings another device with it, which runs the kernels
 * thread by thread in orders that the test chooses (tests/fixtures/gpu_host).
 *
 *   KEDGE_KERNEL(name, struct args) { … a.field … }   a kernel; its arguments are one struct, `a`, by value
 *   KEDGE_SHARED(float, tile, 256);                   memory of a block, nothing in it at the beginning
 *   KEDGE_BARRIER();                                  all threads of the block come here, or none
 *   KEDGE_LAUNCH(stream, name, blocks, threads, args)
 *   KEDGE_LAUNCH_FLAT(stream, name, count, args)      kernels without shared memory and barriers: a thread
 * each
 *
 * Rules: no thread leaves before its block's last barrier; a thread writes its own outputs only; no atomics
 * on floats; grids follow from the problem alone, never from the device. Launches and copies on a stream are
 * done in order; only kedge_gpu_put, _get, _wait and _free wait for them. */
#ifndef KEDGE_CLIENT_TRAIN_CUDA_VENDOR_H
#define KEDGE_CLIENT_TRAIN_CUDA_VENDOR_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

enum { KEDGE_GPU_THREADS = 256 /* of a block of a flat launch */, KEDGE_GPU_THREADS_MAX = 1024 };

/* Blocks of a flat launch of `count` threads. */
#define KEDGE_GPU_BLOCKS(count) (((size_t)(count) + KEDGE_GPU_THREADS - 1) / KEDGE_GPU_THREADS)

#if !defined(KEDGE_GPU_HOST)
#include <cuda_runtime.h>

#define KEDGE_EXPORT extern "C" __attribute__((visibility("default")))
#define KEDGE_KERNEL(name, type) static __global__ void name(const type a)
#define KEDGE_DEVICE static __device__ __forceinline__
#define KEDGE_BOTH static __host__ __device__ __forceinline__
#define KEDGE_SHARED(type, name, count) __shared__ type name[count]
#define KEDGE_BARRIER() __syncthreads()
#define KEDGE_LAUNCH(stream, kernel, blocks, threads, args) \
    kernel<<<(unsigned)(blocks), (unsigned)(threads), 0, (stream)->native>>>(args)
#define KEDGE_LAUNCH_FLAT(stream, kernel, count, args)                                      \
    do {                                                                                    \
        if ((count) > 0) {                                                                  \
            KEDGE_LAUNCH(stream, kernel, KEDGE_GPU_BLOCKS(count), KEDGE_GPU_THREADS, args); \
        }                                                                                   \
    } while (0)

struct kedge_gpu_stream {
    cudaStream_t native;
};
typedef cudaGraphExec_t kedge_gpu_graph;
#define KEDGE_GPU_NO_GRAPH NULL

KEDGE_DEVICE size_t kedge_gpu_thread(void) /* of its block */
{
    return threadIdx.x;
}

KEDGE_DEVICE size_t kedge_gpu_threads(void)
{
    return blockDim.x;
}

KEDGE_DEVICE size_t kedge_gpu_block(void)
{
    return blockIdx.x;
}

/* All return 0 or a code for kedge_gpu_text. */
static inline int kedge_gpu_new(void **ret, size_t bytes)
{
    return (int)cudaMalloc(ret, bytes > 0 ? bytes : 1);
}

static inline void kedge_gpu_free(void *p)
{
    (void)cudaFree(p);
}

static inline int kedge_gpu_put(struct kedge_gpu_stream *s, void *to, const void *from, size_t bytes)
{
    const cudaError_t e = cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, s->native);
    /* The caller may reuse the memory: where device and host share theirs, the copy may still be reading it.
     */
    return (int)(e == cudaSuccess ? cudaStreamSynchronize(s->native) : e);
}

static inline int kedge_gpu_get(struct kedge_gpu_stream *s, void *to, const void *from, size_t bytes)
{
    const cudaError_t e = cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, s->native);
    return (int)(e == cudaSuccess ? cudaStreamSynchronize(s->native) : e);
}

static inline int kedge_gpu_copy(struct kedge_gpu_stream *s, void *to, const void *from, size_t bytes)
{
    return (int)cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, s->native);
}

static inline int kedge_gpu_zero(struct kedge_gpu_stream *s, void *to, size_t bytes)
{
    return (int)cudaMemsetAsync(to, 0, bytes, s->native);
}

static inline int kedge_gpu_wait(struct kedge_gpu_stream *s)
{
    const cudaError_t e = cudaGetLastError(); /* of a launch */
    return (int)(e == cudaSuccess ? cudaStreamSynchronize(s->native) : e);
}

static inline int kedge_gpu_open(struct kedge_gpu_stream *ret)
{
    return (int)cudaStreamCreateWithFlags(&ret->native, cudaStreamNonBlocking);
}

static inline void kedge_gpu_close(struct kedge_gpu_stream *s)
{
    (void)cudaStreamDestroy(s->native);
}

/* What is launched between the two is not done but kept as a graph, to be replayed any number of times. */
static inline int kedge_gpu_record(struct kedge_gpu_stream *s)
{
    return (int)cudaStreamBeginCapture(s->native, cudaStreamCaptureModeRelaxed);
}

static inline int kedge_gpu_recorded(struct kedge_gpu_stream *s, kedge_gpu_graph *ret)
{
    cudaGraph_t graph = NULL;
    cudaError_t e = cudaStreamEndCapture(s->native, &graph);
    if (e == cudaSuccess) {
        e = cudaGraphInstantiate(ret, graph, 0);
        (void)cudaGraphDestroy(graph);
    }
    return (int)e;
}

static inline int kedge_gpu_replay(struct kedge_gpu_stream *s, kedge_gpu_graph graph)
{
    return (int)cudaGraphLaunch(graph, s->native);
}

static inline void kedge_gpu_forget(kedge_gpu_graph graph)
{
    (void)cudaGraphExecDestroy(graph);
}

static inline void kedge_gpu_name(char *text, size_t size)
{
    struct cudaDeviceProp p;
    size_t i = 0;
    const bool known = cudaGetDeviceProperties(&p, 0) == cudaSuccess;
    for (; known && i + 1 < size && p.name[i]; i++) {
        text[i] = p.name[i];
    }
    text[i] = 0;
}

/* NULL, or why no device can be used, in a few words. */
static inline const char *kedge_gpu_absent(void)
{
    int count = 0, driver = 0;
    const cudaError_t e = cudaGetDeviceCount(&count);
    if (e == cudaSuccess && count > 0) {
        return NULL;
    }
    if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) {
        return "no NVIDIA driver is installed, or this process may not see it";
    }
    return e == cudaErrorInsufficientDriver             ? "the NVIDIA driver is older than this module needs"
           : e == cudaErrorNoDevice || e == cudaSuccess ? "there is a driver, but it finds no device"
                                                        : cudaGetErrorString(e);
}

/* Has units for products of rounded values (since capability 8.0); others compute in F32 whatever is asked.
 */
static inline bool kedge_gpu_rounds(void)
{
    int major = 0;
    return cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0) == cudaSuccess && major >= 8;
}

static inline const char *kedge_gpu_text(int status)
{
    return cudaGetErrorString((cudaError_t)status);
}
#endif

#endif
