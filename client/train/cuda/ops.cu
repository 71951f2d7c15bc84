/* The table of operations on a CUDA device. Written in what C and C++ have in common: nvcc takes it for a
 * device, a C compiler with tests/fixtures/gpu_host for the tests that run everywhere. */
#include "client/train/ops.h"

#include <stdio.h>
#include <string.h>

#include "client/train/cuda/data.h"
#include "client/train/cuda/images.h"
#include "client/train/cuda/layers.h"
#include "client/train/cuda/norms.h"
#include "client/train/cuda/points.h"
#include "client/train/cuda/sequence.h"
#include "client/train/cuda_load.h"

static void close_device(struct kedge_device *dev)
{
    if (dev) {
        (void)kedge_gpu_wait(&dev->stream);
        kedge_gpu_blas_close(dev);
        for (uint32_t i = 0; i < dev->blocks_count; i++) {
            kedge_gpu_free(dev->blocks[i].base);
        }
        for (uint32_t i = 0; i < KEDGE_GPU_TABLES_MAX; i++) {
            kedge_gpu_free(dev->tables[i].sets);
            kedge_mem_free(dev->tables[i].handles);
        }
        kedge_gpu_free(dev->now);
        kedge_gpu_free(dev->seeds);
        kedge_gpu_free(dev->counts);
        kedge_gpu_free(dev->loss);
        kedge_gpu_free(dev->partial);
        kedge_gpu_free(dev->parts);
        kedge_mem_free(dev->host_seeds);
        kedge_mem_free(dev->host_counts);
        kedge_gpu_close(&dev->stream);
        kedge_gpu_close(&dev->side);
        kedge_mem_free(dev);
    }
}

static int new_zeros(struct kedge_device *dev, void **ret, size_t bytes)
{
    const int status = kedge_gpu_new(ret, bytes);
    return status ? status : kedge_gpu_zero(&dev->stream, *ret, bytes);
}

/* All that does not depend on a net; 0 or the device's code. */
static int fill_device(struct kedge_device *dev)
{
    const size_t sites = dev->sites;
    int status = new_zeros(dev, (void **)&dev->now, sizeof *dev->now);
    status = status ? status : new_zeros(dev, (void **)&dev->seeds, sites * sizeof *dev->seeds);
    status = status ? status : new_zeros(dev, (void **)&dev->counts, sites * sizeof *dev->counts);
    status = status ? status : new_zeros(dev, (void **)&dev->loss, sites * sizeof *dev->loss);
    status =
        status ? status
               : new_zeros(dev, (void **)&dev->partial, sites * KEDGE_GPU_CLIP_BLOCKS * sizeof *dev->partial);
    for (uint32_t i = 0; i < KEDGE_GPU_TABLES_MAX && !status; i++) {
        status = kedge_gpu_new((void **)&dev->tables[i].sets, sites * sizeof *dev->tables[i].sets);
    }
    if (!status) { /* until a moment says otherwise every sample counts */
        memset(dev->host_counts, 0xff, sites * sizeof *dev->host_counts);
        status = kedge_gpu_put(&dev->stream, dev->counts, dev->host_counts, sites * sizeof *dev->host_counts);
    }
    return status ? status : kedge_gpu_wait(&dev->stream);
}

static int open_failed(struct kedge_device *dev, int err, char *text, size_t text_len, const char *why)
{
    close_device(dev);
    (void)snprintf(text, text_len, "%s", why);
    return err;
}

/* What an engine's name says, as enum kedge_ops_precision counts; before the device's, which may be long. */
static const char *const libraries[] = {" cublas", " cublas tf32", " cublas bf16"};

static int open_device(const struct kedge_ops_config *config, struct kedge_device **ret, char *text,
                       size_t text_len)
{
    if (config->sites == 0 || config->sites > KEDGE_GPU_SITES_MAX) {
        (void)snprintf(text, text_len, "%u sites at once, expected 1 to %d", config->sites,
                       KEDGE_GPU_SITES_MAX);
        return KEDGE_E_ARG;
    }
    const char *absent = kedge_gpu_absent();
    if (absent) {
        (void)snprintf(text, text_len, "%s", absent);
        return KEDGE_E_DEVICE;
    }
    struct kedge_device *dev = (struct kedge_device *)kedge_mem_new(1, sizeof *dev);
    if (!dev) {
        return open_failed(NULL, KEDGE_E_NOMEM, text, text_len, "no memory");
    }
    int status = kedge_gpu_open(&dev->stream);
    if (status) {
        kedge_mem_free(dev);
        return open_failed(NULL, KEDGE_E_DEVICE, text, text_len, kedge_gpu_text(status));
    }
    status = kedge_gpu_open(&dev->side);
    dev->sites = config->sites;
    dev->host_seeds = (uint64_t *)kedge_mem_new(dev->sites, sizeof *dev->host_seeds);
    dev->host_counts = (uint32_t *)kedge_mem_new(dev->sites, sizeof *dev->host_counts);
    bool has_memory = dev->host_seeds && dev->host_counts;
    for (uint32_t i = 0; i < KEDGE_GPU_TABLES_MAX; i++) {
        dev->tables[i].handles =
            (struct kedge_ops_data_handle **)kedge_mem_new(dev->sites, sizeof *dev->tables[i].handles);
        has_memory = has_memory && dev->tables[i].handles;
    }
    if (!has_memory) {
        return open_failed(dev, KEDGE_E_NOMEM, text, text_len, "no memory");
    }
    status = status ? status : fill_device(dev);
    if (status) {
        return open_failed(dev, KEDGE_E_DEVICE, text, text_len, kedge_gpu_text(status));
    }
    const enum kedge_ops_precision precision = kedge_gpu_rounds() ? config->precision : KEDGE_OPS_F32;
    kedge_gpu_blas_open(dev, precision);
    char name[64];
    kedge_gpu_name(name, sizeof name);
    (void)snprintf(dev->engine, sizeof dev->engine, "cuda%s %s", dev->blas ? libraries[precision] : "", name);
    *ret = dev;
    return KEDGE_OK;
}

static const char *engine(const struct kedge_device *dev)
{
    return dev->engine;
}

static void *alloc_block(struct kedge_device *dev, size_t bytes)
{
    const size_t each =
        (bytes + KEDGE_GPU_ALIGN) / KEDGE_GPU_ALIGN * KEDGE_GPU_ALIGN; /* one past the end is inside */
    void *base = NULL;
    if (dev->blocks_count == KEDGE_GPU_BLOCKS_MAX || each < bytes || each > SIZE_MAX / dev->sites
        || new_zeros(dev, &base, each * dev->sites) != 0) {
        return NULL;
    }
    struct kedge_gpu_memory *block = &dev->blocks[dev->blocks_count++];
    block->base = (char *)base;
    block->each = each;
    block->bytes = each * dev->sites;
    return base;
}

static void free_block(struct kedge_device *dev, void *p)
{
    for (uint32_t i = 0; i < dev->blocks_count && p; i++) {
        if (dev->blocks[i].base == (char *)p) {
            kedge_gpu_keep(dev, kedge_gpu_wait(&dev->stream));
            kedge_gpu_free(p);
            dev->blocks[i] = dev->blocks[--dev->blocks_count];
            return;
        }
    }
}

static void upload(struct kedge_device *dev, uint32_t site, void *to, const void *host, size_t bytes)
{
    char *at = (char *)to + site * kedge_gpu_apart(dev, to);
    kedge_gpu_keep(dev, kedge_gpu_put(&dev->stream, at, host, bytes));
}

static int download(struct kedge_device *dev, uint32_t site, void *host, const void *from, size_t bytes)
{
    const char *at = (const char *)from + site * kedge_gpu_apart(dev, from);
    kedge_gpu_keep(dev, kedge_gpu_wait(&dev->stream));
    kedge_gpu_keep(dev, kedge_gpu_get(&dev->stream, host, at, bytes));
    return kedge_gpu_result(dev);
}

static void copy(struct kedge_device *dev, void *to, const void *from, size_t bytes)
{
    const size_t to_apart = kedge_gpu_apart(dev, to), from_apart = kedge_gpu_apart(dev, from);
    for (uint32_t s = 0; s < dev->sites; s++) {
        kedge_gpu_keep(dev, kedge_gpu_copy(&dev->stream, (char *)to + s * to_apart,
                                           (const char *)from + s * from_apart, bytes));
    }
}

static void clear(struct kedge_device *dev, void *block, size_t bytes)
{
    const size_t apart = kedge_gpu_apart(dev, block);
    for (uint32_t s = 0; s < dev->sites; s++) {
        kedge_gpu_keep(dev, kedge_gpu_zero(&dev->stream, (char *)block + s * apart, bytes));
    }
}

static int sync_device(struct kedge_device *dev, char *text, size_t text_len)
{
    kedge_gpu_keep(dev, kedge_gpu_wait(&dev->stream));
    const int err = kedge_gpu_result(dev);
    if (err && text_len > 0) {
        (void)snprintf(text, text_len, "CUDA: %s",
                       dev->status ? kedge_gpu_text(dev->status) : kedge_strerror(err));
    }
    return err;
}

static int prepare(struct kedge_device *dev, const struct kedge_ops_layer *layers, uint32_t count,
                   uint32_t batch_max)
{
    size_t most = 0;
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t n = batch_max; n > 0; n /= 2) { /* fewer samples may mean more parts */
            const size_t parts = parts_of_layer(&layers[i], n, dev->sites);
            most = parts > most ? parts : most;
        }
    }
    kedge_gpu_keep(dev, kedge_gpu_wait(&dev->stream));
    kedge_gpu_free(dev->parts);
    dev->parts = NULL;
    dev->parts_count = 0;
    if (most > 0 && kedge_gpu_new((void **)&dev->parts, most * sizeof *dev->parts) != 0) {
        return KEDGE_E_NOMEM;
    }
    dev->parts_count = most;
    return kedge_gpu_result(dev);
}

/* ---- recordings ---- */

static void record_begin(struct kedge_device *dev)
{
    const int status = kedge_gpu_record(&dev->stream);
    kedge_gpu_keep(dev, status);
    dev->recording = status == 0;
}

/* What was recorded has not been done yet: it is now. */
static void *record_end(struct kedge_device *dev)
{
    kedge_gpu_graph graph = KEDGE_GPU_NO_GRAPH;
    if (!dev->recording) {
        return NULL;
    }
    dev->recording = false;
    int status = kedge_gpu_recorded(&dev->stream, &graph);
    status = status ? status : kedge_gpu_replay(&dev->stream, graph);
    kedge_gpu_keep(dev, status);
    return graph;
}

static void replay(struct kedge_device *dev, void *recording)
{
    kedge_gpu_keep(dev, kedge_gpu_replay(&dev->stream, (kedge_gpu_graph)recording));
}

static void record_free(struct kedge_device *dev, void *recording)
{
    if (recording) {
        kedge_gpu_keep(dev, kedge_gpu_wait(&dev->stream));
        kedge_gpu_forget((kedge_gpu_graph)recording);
    }
}

/* ---- the table ---- */

static const struct kedge_ops table = {
    .name = "cuda",
    .unified = false,
    .open = open_device,
    .close = close_device,
    .engine = engine,
    .alloc = alloc_block,
    .free = free_block,
    .upload = upload,
    .download = download,
    .copy = copy,
    .clear = clear,
    .sync = sync_device,
    .prepare = prepare,
    .moment = moment,
    .record_begin = record_begin,
    .record_end = record_end,
    .replay = replay,
    .record_free = record_free,
    .data_load = data_load,
    .data_free = data_free,
    .gather = gather,
    .dense_forward = dense_forward,
    .dense_backward = dense_backward,
    .conv2d_forward = conv2d_forward,
    .conv2d_backward = conv2d_backward,
    .maxpool_forward = maxpool_forward,
    .maxpool_backward = maxpool_backward,
    .avgpool_forward = avgpool_forward,
    .avgpool_backward = avgpool_backward,
    .pointwise_forward = pointwise_forward,
    .pointwise_backward = pointwise_backward,
    .dropout_forward = dropout_forward,
    .dropout_backward = dropout_backward,
    .norm_forward = norm_forward,
    .norm_backward = norm_backward,
    .embedding_forward = embedding_forward,
    .embedding_backward = embedding_backward,
    .lstm_forward = lstm_forward,
    .lstm_backward = lstm_backward,
    .cross_entropy = cross_entropy,
    .square_error = square_error,
    .take_loss = take_loss,
    .add = add,
    .blend = blend,
    .clip = clip,
};

KEDGE_EXPORT const struct kedge_ops *kedge_cuda_ops(uint32_t version)
{
    return version == KEDGE_CUDA_VERSION ? &table : NULL;
}
