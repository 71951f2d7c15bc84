/* cuBLAS for products that are large enough, where the machine has it: found at run time, so that nothing of
 * Kedge needs it. Its few prototypes are written out here, since a machine may have the library without its
 * headers. For one site at a time; what it cannot do in one call (masks, biases, sums) goes before or behind
 * as kernels. */
#ifndef KEDGE_CLIENT_TRAIN_CUDA_BLAS_H
#define KEDGE_CLIENT_TRAIN_CUDA_BLAS_H

#if !defined(KEDGE_GPU_HOST)
#include <dlfcn.h>
#if __has_include(<cublas_v2.h>)
#define KEDGE_GPU_BLAS_HEADERS 1 /* then what is written out here is held to them */
#include <cublas_v2.h>
#endif
#endif

#include "client/train/cuda/product.h"

enum {
    KEDGE_GPU_BLAS_WORKSPACE = 32 << 20,
    KEDGE_GPU_BLAS_NO = 0, /* CUBLAS_OP_N and _T */
    KEDGE_GPU_BLAS_YES = 1,
    KEDGE_GPU_BLAS_VALUES = 0, /* CUDA_R_32F */
    KEDGE_GPU_BLAS_CHOOSE = -1 /* CUBLAS_GEMM_DEFAULT */
};
/* CUBLAS_COMPUTE_32F, _32F_FAST_TF32, _32F_FAST_16BF, as enum kedge_ops_precision counts them. */
enum { KEDGE_GPU_BLAS_F32 = 68, KEDGE_GPU_BLAS_TF32 = 77, KEDGE_GPU_BLAS_BF16 = 75 };
static const int kedge_gpu_blas_compute[] = {KEDGE_GPU_BLAS_F32, KEDGE_GPU_BLAS_TF32, KEDGE_GPU_BLAS_BF16};
/* m · n · k from which cuBLAS is taken: not measured yet, see docs/benchmarks-gpu.md. */
#define KEDGE_GPU_BLAS_WORK_MIN ((uint64_t)1 << 24)

/* cublasGemmEx since CUDA 11; its enums are ints. */
typedef int kedge_gpu_gemm(void *handle, int op_a, int op_b, int m, int n, int k, const void *alpha,
                           const void *a, int a_type, int lda, const void *b, int b_type, int ldb,
                           const void *beta, void *c, int c_type, int ldc, int compute, int choose);

#if defined(KEDGE_GPU_BLAS_HEADERS)
static_assert(CUBLAS_OP_N == (int)KEDGE_GPU_BLAS_NO && CUBLAS_OP_T == (int)KEDGE_GPU_BLAS_YES
                  && CUDA_R_32F == (int)KEDGE_GPU_BLAS_VALUES
                  && CUBLAS_GEMM_DEFAULT == (int)KEDGE_GPU_BLAS_CHOOSE
                  && CUBLAS_COMPUTE_32F == (int)KEDGE_GPU_BLAS_F32
                  && CUBLAS_COMPUTE_32F_FAST_TF32 == (int)KEDGE_GPU_BLAS_TF32
                  && CUBLAS_COMPUTE_32F_FAST_16BF == (int)KEDGE_GPU_BLAS_BF16
                  && sizeof(cublasComputeType_t) == sizeof(int) && sizeof(cudaDataType) == sizeof(int)
                  && sizeof(cublasGemmAlgo_t) == sizeof(int),
              "cuBLAS's enums are as they are written out here");
#endif

struct kedge_gpu_blas {
    void *library, *handle, *workspace;
    kedge_gpu_gemm *gemm;
    int (*destroy)(void *handle);
    uint64_t work_min;
    int compute;
};

/* Sets dev->blas, or leaves it NULL where the library is not there or cannot be used. */
static void kedge_gpu_blas_open(struct kedge_device *dev, enum kedge_ops_precision precision);
static void kedge_gpu_blas_close(struct kedge_device *dev);

#if !defined(KEDGE_GPU_HOST)
static void kedge_gpu_blas_close(struct kedge_device *dev)
{
    struct kedge_gpu_blas *b = dev->blas;
    if (b) {
        if (b->handle && b->destroy) {
            (void)b->destroy(b->handle);
        }
        kedge_gpu_free(b->workspace);
        if (b->library) {
            (void)dlclose(b->library);
        }
        kedge_mem_free(b);
        dev->blas = NULL;
    }
}

static void kedge_gpu_blas_open(struct kedge_device *dev, enum kedge_ops_precision precision)
{
    static const char *const names[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so.11"};
    struct kedge_gpu_blas *b = (struct kedge_gpu_blas *)kedge_mem_new(1, sizeof *b);
    for (size_t i = 0; b && !b->library && i < sizeof names / sizeof *names; i++) {
        b->library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    }
    dev->blas = b;
    if (!b || !b->library) {
        kedge_gpu_blas_close(dev);
        return;
    }
    int (*create)(void **) = (int (*)(void **))dlsym(b->library, "cublasCreate_v2");
    int (*set_stream)(void *, cudaStream_t) =
        (int (*)(void *, cudaStream_t))dlsym(b->library, "cublasSetStream_v2");
    int (*set_room)(void *, void *, size_t) =
        (int (*)(void *, void *, size_t))dlsym(b->library, "cublasSetWorkspace_v2");
    b->destroy = (int (*)(void *))dlsym(b->library, "cublasDestroy_v2");
    b->gemm = (kedge_gpu_gemm *)dlsym(b->library, "cublasGemmEx");
    b->compute = kedge_gpu_blas_compute[precision];
    b->work_min = KEDGE_GPU_BLAS_WORK_MIN;
    if (!create || !set_stream || !set_room || !b->destroy || !b->gemm || create(&b->handle) != 0
        || kedge_gpu_new(&b->workspace, KEDGE_GPU_BLAS_WORKSPACE) != 0
        || set_stream(b->handle, dev->stream.native) != 0
        || set_room(b->handle, b->workspace, KEDGE_GPU_BLAS_WORKSPACE) != 0) {
        kedge_gpu_blas_close(dev);
    }
}
#endif

struct kedge_gpu_edge {
    struct kedge_gpu_product p;
    float *masked;
};

/* What the mask hides becomes 0: rows are m or k, whichever is not along memory. */
KEDGE_KERNEL(edge_mask_kernel, struct kedge_gpu_edge)
{
    const size_t at = kedge_gpu_block() * KEDGE_GPU_THREADS + kedge_gpu_thread();
    if (at < (size_t)a.p.m * a.p.k && !(a.p.a.mask[at] > 0.0f)) {
        a.masked[at] = 0.0f;
    }
}

KEDGE_KERNEL(edge_bias_kernel, struct kedge_gpu_edge)
{
    const size_t at = kedge_gpu_block() * KEDGE_GPU_THREADS + kedge_gpu_thread();
    if (at < (size_t)a.p.m * a.p.n) {
        const size_t i = at / a.p.n, j = at % a.p.n;
        const float v = a.p.c[i * a.p.c_row + j] + (a.p.bias ? a.p.bias[j] : 0.0f);
        a.p.c[i * a.p.c_row + j] = a.p.relu && v <= 0.0f ? 0.0f : v;
    }
}

/* A block: 32 rows of A, 8 threads each, over all of k. */
KEDGE_KERNEL(edge_sums_kernel, struct kedge_gpu_edge)
{
    KEDGE_SHARED(float, part, KEDGE_GPU_THREADS);
    const size_t t = kedge_gpu_thread(), i = kedge_gpu_block() * 32 + t % 32;
    float sum = 0.0f;
    for (size_t k = t / 32; k < a.p.k && i < a.p.m; k += KEDGE_GPU_THREADS / 32) {
        sum += a.p.a.data[i * a.p.a.row + k * a.p.a.col];
    }
    part[t] = sum;
    KEDGE_BARRIER();
    if (t < 32 && i < a.p.m) {
        for (size_t lane = 1; lane < KEDGE_GPU_THREADS / 32; lane++) {
            sum += part[lane * 32 + t];
        }
        a.p.sums[i] = (a.p.keep_sums == 0.0f ? 0.0f : a.p.keep_sums * a.p.sums[i]) + a.p.scale * sum;
    }
}

/* Row-major C = A · Bᵀ is column-major Cᵀ = B · Aᵀ; an operand whose k lies along memory is transposed there.
 */
static void kedge_gpu_blas_multiply(struct kedge_device *dev, const struct kedge_gpu_product *p)
{
    struct kedge_gpu_edge e;
    e.p = *p;
    e.masked = (float *)p->a.data; /* dy, which may be overwritten */
    if (p->a.mask) {
        KEDGE_LAUNCH_FLAT(&dev->stream, edge_mask_kernel, (size_t)p->m * p->k, e);
    }
    const int failed = dev->blas->gemm(
        dev->blas->handle, p->b.col == 1 ? KEDGE_GPU_BLAS_YES : KEDGE_GPU_BLAS_NO,
        p->a.col == 1 ? KEDGE_GPU_BLAS_NO : KEDGE_GPU_BLAS_YES, (int)p->n, (int)p->m, (int)p->k, &p->scale,
        p->b.data, KEDGE_GPU_BLAS_VALUES, (int)(p->b.col == 1 ? p->b.row : p->b.col), p->a.data,
        KEDGE_GPU_BLAS_VALUES, (int)(p->a.col == 1 ? p->a.row : p->a.col), &p->keep, p->c,
        KEDGE_GPU_BLAS_VALUES, (int)p->c_row, dev->blas->compute, KEDGE_GPU_BLAS_CHOOSE);
    dev->error = failed && !dev->error ? KEDGE_E_DEVICE : dev->error;
    if (p->bias || p->relu) {
        KEDGE_LAUNCH_FLAT(&dev->stream, edge_bias_kernel, (size_t)p->m * p->n, e);
    }
    if (p->sums) {
        KEDGE_LAUNCH(&dev->stream, edge_sums_kernel, ((size_t)p->m + 31) / 32, KEDGE_GPU_THREADS, e);
    }
}

/* A product of plain matrices (dense on both sides) by whichever is taken to be faster. */
static void kedge_gpu_product_run(struct kedge_device *dev, struct kedge_gpu_product *p)
{
    if (dev->blas && dev->sites == 1 && (uint64_t)p->m * p->n * p->k >= dev->blas->work_min) {
        kedge_gpu_blas_multiply(dev, p);
    } else {
        kedge_gpu_multiply(dev, p);
    }
}

#endif
