/* The CPU's table: the host's own memory, one thread but for BLAS, nothing asynchronous. */
#include <cblas.h>
#include <stdio.h>
#include <string.h>

#include "client/train/cpu_impl.h"
#include "client/train/net.h"
#include "client/train/small.h"
#include "common/base/mem.h"

/* In front of each block, which begins at the next cache line. Large blocks are pages that the system makes
 * as they are touched. */
struct kedge_cpu_block {
    struct kedge_cpu_block *next, *former;
    void *raw;
};
enum { LINE = 64, HEAD = 64 };
_Static_assert(sizeof(struct kedge_cpu_block) <= HEAD, "a block's head fits in its line");

void kedge_train_set_threads(uint32_t threads)
{
    openblas_set_num_threads(threads == 0                        ? 1
                             : threads > KEDGE_TRAIN_THREADS_MAX ? KEDGE_TRAIN_THREADS_MAX
                                                                 : (int)threads);
}

static int cpu_open(const struct kedge_ops_config *config, struct kedge_device **ret, char *text,
                    size_t text_len)
{
    if (config->sites != 1) {
        snprintf(text, text_len, "the processor trains one model at a time, not %u", config->sites);
        return KEDGE_E_ARG;
    }
    struct kedge_device *dev = kedge_mem_new(1, sizeof *dev);
    if (!dev) {
        snprintf(text, text_len, "no memory for a device");
        return KEDGE_E_NOMEM;
    }
    dev->has_small = kedge_small_is_available();
    *ret = dev;
    return KEDGE_OK;
}

static void cpu_free(struct kedge_device *dev, void *p)
{
    if (p) {
        struct kedge_cpu_block *b = (struct kedge_cpu_block *)(void *)((char *)p - HEAD);
        *(b->former ? &b->former->next : &dev->blocks) = b->next;
        if (b->next) {
            b->next->former = b->former;
        }
        kedge_mem_free(b->raw);
    }
}

static void cpu_close(struct kedge_device *dev)
{
    while (dev && dev->blocks) {
        cpu_free(dev, (char *)dev->blocks + HEAD);
    }
    kedge_mem_free(dev);
}

static const char *cpu_engine(const struct kedge_device *dev)
{
    (void)dev;
    return "cpu openblas";
}

static void *cpu_alloc(struct kedge_device *dev, size_t bytes)
{
    char *raw = bytes <= SIZE_MAX - HEAD - LINE ? kedge_mem_new(1, bytes + HEAD + LINE) : NULL;
    if (!raw) {
        return NULL;
    }
    char *p = raw + HEAD + (LINE - ((uintptr_t)raw + HEAD) % LINE) % LINE;
    struct kedge_cpu_block *b = (struct kedge_cpu_block *)(void *)(p - HEAD);
    *b = (struct kedge_cpu_block){.next = dev->blocks, .raw = raw};
    if (b->next) {
        b->next->former = b;
    }
    dev->blocks = b;
    return p;
}

static void cpu_upload(struct kedge_device *dev, uint32_t site, void *to, const void *host, size_t bytes)
{
    (void)dev, (void)site;
    memcpy(to, host, bytes);
}

static int cpu_download(struct kedge_device *dev, uint32_t site, void *host, const void *from, size_t bytes)
{
    (void)dev, (void)site;
    memcpy(host, from, bytes);
    return KEDGE_OK;
}

static void cpu_copy(struct kedge_device *dev, void *to, const void *from, size_t bytes)
{
    (void)dev;
    memcpy(to, from, bytes);
}

static void cpu_clear(struct kedge_device *dev, void *block, size_t bytes)
{
    (void)dev;
    memset(block, 0, bytes);
}

static int cpu_sync(struct kedge_device *dev, char *text, size_t text_len)
{
    (void)dev, (void)text, (void)text_len;
    return KEDGE_OK;
}

static uint64_t scratch_of(const struct kedge_ops_layer *l, uint32_t n)
{
    return l->kind == KEDGE_OPS_DENSE    ? kedge_cpu_dense_scratch(&l->as.dense, n)
           : l->kind == KEDGE_OPS_CONV2D ? kedge_cpu_conv2d_scratch(&l->as.conv2d)
           : l->kind == KEDGE_OPS_LSTM   ? kedge_cpu_lstm_scratch(&l->as.lstm, n)
                                         : 0;
}

static int cpu_prepare(struct kedge_device *dev, const struct kedge_ops_layer *layers, uint32_t count,
                       uint32_t batch_max)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t need = scratch_of(&layers[i], batch_max);
        most = need > most ? need : most;
    }
    cpu_free(dev, dev->scratch);
    dev->scratch = most > 0 && most < SIZE_MAX / sizeof(float) ? cpu_alloc(dev, most * sizeof(float)) : NULL;
    return most > 0 && !dev->scratch ? KEDGE_E_NOMEM : KEDGE_OK;
}

static void cpu_moment(struct kedge_device *dev, const struct kedge_ops_moment *moment)
{
    dev->seed = moment->seeds ? moment->seeds[0] : 0;
    dev->step = moment->step;
    dev->at = moment->at;
}

/* ---- data ---- */

struct kedge_ops_data_handle {
    struct kedge_ops_data data;
};

static struct kedge_ops_data_handle *cpu_data_load(struct kedge_device *dev, uint32_t site,
                                                   const struct kedge_ops_data *data)
{
    (void)dev, (void)site;
    struct kedge_ops_data_handle *h = kedge_mem_new(1, sizeof *h);
    if (h) {
        h->data = *data;
    }
    return h;
}

static void cpu_data_free(struct kedge_device *dev, struct kedge_ops_data_handle *data)
{
    (void)dev;
    kedge_mem_free(data);
}

static void scale_bytes(const uint8_t *restrict in, size_t count, float scale, float *restrict out)
{
    for (size_t i = 0; i < count; i++) {
        out[i] = (float)in[i] * scale;
    }
}

static void cpu_gather(struct kedge_device *dev, struct kedge_ops_data_handle *const *data,
                       const uint32_t *order, uint32_t n, float *x, int32_t *labels)
{
    const struct kedge_ops_data *d = &data[0]->data;
    if (d->maker) {
        d->maker->make(d->maker, order + dev->at, n, d->rows - dev->at - n, x);
    }
    for (uint32_t i = 0; i < n; i++) {
        size_t row = order[dev->at + i], from = row * d->stride;
        if (d->maker) {
            /* it is there */
        } else if (d->bytes) {
            scale_bytes(d->bytes + from, d->features, d->scale, x + (size_t)i * d->features);
        } else {
            memcpy(x + (size_t)i * d->features, d->reals + from, d->features * sizeof *x);
        }
        labels[i] = d->labels[row];
    }
}

/* ---- parameters ---- */

static int cpu_take_loss(struct kedge_device *dev, double *ret_sums)
{
    *ret_sums = dev->loss;
    dev->loss = 0;
    return KEDGE_OK;
}

static void cpu_add(struct kedge_device *dev, uint64_t count, float *restrict w, const float *restrict v,
                    float by)
{
    (void)dev;
    for (uint64_t i = 0; i < count; i++) {
        w[i] += by * v[i];
    }
}

static void cpu_blend(struct kedge_device *dev, uint64_t count, float *restrict v, float a,
                      const float *restrict w, float b)
{
    (void)dev;
    for (uint64_t i = 0; i < count; i++) {
        v[i] = a * v[i] + b * w[i];
    }
}

const struct kedge_ops kedge_ops_cpu = {
    .name = "cpu",
    .unified = true,
    .open = cpu_open,
    .close = cpu_close,
    .engine = cpu_engine,
    .alloc = cpu_alloc,
    .free = cpu_free,
    .upload = cpu_upload,
    .download = cpu_download,
    .copy = cpu_copy,
    .clear = cpu_clear,
    .sync = cpu_sync,
    .prepare = cpu_prepare,
    .moment = cpu_moment,
    .data_load = cpu_data_load,
    .data_free = cpu_data_free,
    .gather = cpu_gather,
    .dense_forward = kedge_cpu_dense_forward,
    .dense_backward = kedge_cpu_dense_backward,
    .conv2d_forward = kedge_cpu_conv2d_forward,
    .conv2d_backward = kedge_cpu_conv2d_backward,
    .maxpool_forward = kedge_cpu_maxpool_forward,
    .maxpool_backward = kedge_cpu_maxpool_backward,
    .avgpool_forward = kedge_cpu_avgpool_forward,
    .avgpool_backward = kedge_cpu_avgpool_backward,
    .pointwise_forward = kedge_cpu_pointwise_forward,
    .pointwise_backward = kedge_cpu_pointwise_backward,
    .dropout_forward = kedge_cpu_dropout_forward,
    .dropout_backward = kedge_cpu_dropout_backward,
    .norm_forward = kedge_cpu_norm_forward,
    .norm_backward = kedge_cpu_norm_backward,
    .embedding_forward = kedge_cpu_embedding_forward,
    .embedding_backward = kedge_cpu_embedding_backward,
    .lstm_forward = kedge_cpu_lstm_forward,
    .lstm_backward = kedge_cpu_lstm_backward,
    .cross_entropy = kedge_cpu_cross_entropy,
    .square_error = kedge_cpu_square_error,
    .take_loss = cpu_take_loss,
    .add = cpu_add,
    .blend = cpu_blend,
    .clip = kedge_cpu_clip,
};
