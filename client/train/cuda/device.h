/* What a device keeps: its stream, its blocks of memory, the moment, scratch. A block lies there once per
 * site; an address of the table of operations is that in the first site's block, and kedge_gpu_ref tells how
 * far away the next site's is. */
#ifndef KEDGE_CLIENT_TRAIN_CUDA_DEVICE_H
#define KEDGE_CLIENT_TRAIN_CUDA_DEVICE_H

#include <string.h>

#include "client/train/cuda/vendor.h"
#include "client/train/ops.h"

#ifdef __cplusplus
#define _Noreturn [[noreturn]]
extern "C" {
#endif
#include "common/base/err.h"
#include "common/base/mem.h"
#ifdef __cplusplus
}
#endif

enum {
    KEDGE_GPU_BLOCKS_MAX = 256,
    KEDGE_GPU_SITES_MAX = 4096,
    KEDGE_GPU_TABLES_MAX = 8,
    KEDGE_GPU_NAME_MAX = 128,
    KEDGE_GPU_ALIGN = 256,
};

struct kedge_gpu_memory {
    char *base;
    size_t bytes, each; /* of all sites, of one */
};

/* What the kernels read of the moment, in the device's memory; then seeds[sites] and counts[sites]. */
struct kedge_gpu_now {
    uint64_t step;
    uint32_t at;
};

/* A data set as a kernel sees it. */
struct kedge_gpu_set {
    const uint8_t *bytes;
    const float *reals;
    const int32_t *labels;
    uint32_t rows, features, stride;
    float scale;
};

struct kedge_ops_data_handle {
    struct kedge_gpu_set set;
    void *values, *labels; /* on the device */
};

/* Sets of all sites side by side on the device, for gather. */
struct kedge_gpu_table {
    bool is_used;
    struct kedge_ops_data_handle **handles; /* sites of them */
    struct kedge_gpu_set *sets;             /* on the device */
};

struct kedge_device {
    struct kedge_gpu_stream stream, side; /* side: for what is not part of a recording */
    uint32_t sites;
    bool recording;
    int status; /* the first error, a code of the device's; or … */
    int error;  /* … one of ours */
    char engine[KEDGE_GPU_NAME_MAX];
    struct kedge_gpu_memory blocks[KEDGE_GPU_BLOCKS_MAX];
    uint32_t blocks_count;
    struct kedge_gpu_now *now;
    uint64_t *seeds;      /* on the device, one per site */
    uint32_t *counts;     /* on the device, one per site; UINT32_MAX: all */
    uint64_t *host_seeds; /* what the device has */
    uint32_t *host_counts;
    double *loss;    /* on the device, one per site */
    double *partial; /* of clip */
    float *parts;    /* of products whose k is split */
    size_t parts_count;
    struct kedge_gpu_table tables[KEDGE_GPU_TABLES_MAX];
    struct kedge_gpu_blas *blas; /* NULL: own products only */
};

/* A pointer of the table of operations and the way to the next site's, in floats. */
struct kedge_gpu_ref {
    float *data;
    size_t site;
};

static inline void kedge_gpu_keep(struct kedge_device *dev, int status)
{
    if (dev->status == 0) {
        dev->status = status;
    }
}

/* KEDGE_OK, or what the first error comes to. */
static inline int kedge_gpu_result(const struct kedge_device *dev)
{
    return dev->error ? dev->error : dev->status ? KEDGE_E_DEVICE : KEDGE_OK;
}

/* Bytes from one site's block to the next, for any address within a block; 0 for one site. */
static inline size_t kedge_gpu_apart(struct kedge_device *dev, const void *p)
{
    const char *at = (const char *)p;
    if (dev->sites == 1) {
        return 0;
    }
    for (uint32_t i = 0; i < dev->blocks_count; i++) {
        if (at >= dev->blocks[i].base && at < dev->blocks[i].base + dev->blocks[i].each) {
            return dev->blocks[i].each;
        }
    }
    dev->error = dev->error ? dev->error : KEDGE_E_ARG; /* no address of ours */
    return 0;
}

static inline struct kedge_gpu_ref kedge_gpu_ref(struct kedge_device *dev, const float *p)
{
    struct kedge_gpu_ref ref = {(float *)p, p ? kedge_gpu_apart(dev, p) / sizeof(float) : 0};
    return ref;
}

#endif
