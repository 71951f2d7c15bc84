/* Data sets on the device, and the batches that are read from them there: a replayed step needs nothing from
 * the host but the moment. */
#ifndef KEDGE_CLIENT_TRAIN_CUDA_DATA_H
#define KEDGE_CLIENT_TRAIN_CUDA_DATA_H

#include "client/train/cuda/losses.h"

struct kedge_gpu_gather {
    const struct kedge_gpu_set *sets; /* one per site */
    const uint32_t *order;
    uint32_t n, features, sites;
    float *x;
    int32_t *labels;
    size_t order_site, x_site, labels_site;
    const struct kedge_gpu_now *now;
    const uint32_t *counts;
};

KEDGE_KERNEL(gather_kernel, struct kedge_gpu_gather)
{
    const size_t at = kedge_gpu_block() * KEDGE_GPU_THREADS + kedge_gpu_thread();
    const size_t each = (size_t)a.n * a.features;
    if (at >= each * a.sites) {
        return;
    }
    const size_t site = at / each, row = at % each / a.features, column = at % a.features;
    const struct kedge_gpu_set *set = &a.sets[site];
    const bool counts = row < kedge_gpu_samples(a.counts, site, a.n);
    const size_t from = counts ? a.order[site * a.order_site + a.now->at + row] : 0;
    float v = 0.0f;
    if (counts) {
        const size_t place = from * set->stride + column;
        v = set->bytes ? (float)set->bytes[place] * set->scale : set->reals[place];
    }
    a.x[site * a.x_site + row * a.features + column] = v;
    if (column == 0) {
        a.labels[site * a.labels_site + row] = counts ? set->labels[from] : 0;
    }
}

struct kedge_gpu_moment {
    struct kedge_gpu_now now, *to;
};

KEDGE_KERNEL(moment_kernel, struct kedge_gpu_moment)
{
    if (kedge_gpu_block() == 0 && kedge_gpu_thread() == 0) {
        *a.to = a.now;
    }
}

static void moment(struct kedge_device *dev, const struct kedge_ops_moment *m)
{
    bool seeds = false, counts = false;
    for (uint32_t s = 0; s < dev->sites; s++) {
        const uint32_t count = m->counts ? m->counts[s] : UINT32_MAX;
        const uint64_t seed = m->seeds ? m->seeds[s] : 0;
        seeds = seeds || dev->host_seeds[s] != seed;
        counts = counts || dev->host_counts[s] != count;
        dev->host_seeds[s] = seed;
        dev->host_counts[s] = count;
    }
    if (seeds) {
        kedge_gpu_keep(dev, kedge_gpu_put(&dev->stream, dev->seeds, dev->host_seeds,
                                          dev->sites * sizeof *dev->host_seeds));
    }
    if (counts) {
        kedge_gpu_keep(dev, kedge_gpu_put(&dev->stream, dev->counts, dev->host_counts,
                                          dev->sites * sizeof *dev->host_counts));
    }
    struct kedge_gpu_moment a;
    a.now.step = m->step;
    a.now.at = m->at;
    a.to = dev->now;
    KEDGE_LAUNCH_FLAT(&dev->stream, moment_kernel, 1, a);
}

static void data_free(struct kedge_device *dev, struct kedge_ops_data_handle *data)
{
    if (data) {
        for (uint32_t i = 0; i < KEDGE_GPU_TABLES_MAX; i++) { /* no table may name it any more */
            struct kedge_gpu_table *table = &dev->tables[i];
            for (uint32_t s = 0; table->is_used && s < dev->sites; s++) {
                table->is_used = table->handles[s] != data;
            }
        }
        kedge_gpu_keep(dev, kedge_gpu_wait(&dev->stream));
        kedge_gpu_free(data->values);
        kedge_gpu_free(data->labels);
        kedge_mem_free(data);
    }
}

static struct kedge_ops_data_handle *data_load(struct kedge_device *dev, uint32_t site,
                                               const struct kedge_ops_data *d)
{
    const size_t each = d->bytes ? sizeof *d->bytes : sizeof *d->reals;
    const size_t bytes = d->rows > 0 ? ((size_t)(d->rows - 1) * d->stride + d->features) * each : 0;
    struct kedge_ops_data_handle *h = (struct kedge_ops_data_handle *)kedge_mem_new(1, sizeof *h);
    if (!h || site >= dev->sites) {
        kedge_mem_free(h);
        return NULL;
    }
    const void *values = d->bytes ? (const void *)d->bytes : (const void *)d->reals;
    int status = kedge_gpu_new(&h->values, bytes);
    status = status ? status : kedge_gpu_new(&h->labels, d->rows * sizeof *d->labels);
    if (status) {
        kedge_gpu_free(h->values);
        kedge_mem_free(h);
        return NULL;
    }
    kedge_gpu_keep(dev, kedge_gpu_put(&dev->stream, h->values, values, bytes));
    kedge_gpu_keep(dev, kedge_gpu_put(&dev->stream, h->labels, d->labels, d->rows * sizeof *d->labels));
    h->set.bytes = d->bytes ? (const uint8_t *)h->values : NULL;
    h->set.reals = d->bytes ? NULL : (const float *)h->values;
    h->set.labels = (const int32_t *)h->labels;
    h->set.rows = d->rows;
    h->set.features = d->features;
    h->set.stride = d->stride;
    h->set.scale = d->scale;
    return h;
}

/* The sets of these handles side by side on the device; written on a stream of its own, so that a recording
 * has it already. NULL: not written. */
static const struct kedge_gpu_set *sets_of(struct kedge_device *dev,
                                           struct kedge_ops_data_handle *const *data)
{
    for (uint32_t i = 0; i < KEDGE_GPU_TABLES_MAX; i++) {
        const struct kedge_gpu_table *t = &dev->tables[i];
        if (t->is_used && memcmp(t->handles, data, dev->sites * sizeof(*data)) == 0) {
            return t->sets;
        }
    }
    struct kedge_gpu_table *t = NULL;
    for (uint32_t i = 0; i < KEDGE_GPU_TABLES_MAX && !t; i++) {
        t = dev->tables[i].is_used ? NULL : &dev->tables[i];
    }
    struct kedge_gpu_set *sets =
        t ? (struct kedge_gpu_set *)kedge_mem_new(dev->sites, sizeof *sets) : (struct kedge_gpu_set *)NULL;
    if (!sets) {
        dev->error = dev->error ? dev->error : KEDGE_E_NOMEM;
        return NULL;
    }
    for (uint32_t s = 0; s < dev->sites; s++) {
        sets[s] = data[s]->set;
    }
    kedge_gpu_keep(dev, kedge_gpu_put(&dev->side, t->sets, sets, dev->sites * sizeof *sets));
    kedge_gpu_keep(dev, kedge_gpu_wait(&dev->side));
    kedge_mem_free(sets);
    memcpy(t->handles, data, dev->sites * sizeof(*data));
    t->is_used = true;
    return t->sets;
}

static void gather(struct kedge_device *dev, struct kedge_ops_data_handle *const *data, const uint32_t *order,
                   uint32_t n, float *x, int32_t *labels)
{
    struct kedge_gpu_gather a;
    memset(&a, 0, sizeof a);
    a.sets = sets_of(dev, data);
    if (!a.sets) {
        return;
    }
    a.order = order;
    a.order_site = kedge_gpu_apart(dev, order) / sizeof *order;
    a.n = n;
    a.features = data[0]->set.features;
    a.sites = dev->sites;
    a.x = x;
    a.x_site = kedge_gpu_ref(dev, x).site;
    a.labels = labels;
    a.labels_site = kedge_gpu_apart(dev, labels) / sizeof *labels;
    a.now = dev->now;
    a.counts = dev->counts;
    KEDGE_LAUNCH_FLAT(&dev->stream, gather_kernel, (size_t)n * a.features * a.sites, a);
}

#endif
