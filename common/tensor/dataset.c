#include "common/tensor/dataset.h"

#include <string.h>

#include "common/base/mem.h"
#include "common/base/rng.h"
#include "common/tensor/csv.h"
#include "common/tensor/dataset_impl.h"
#include "common/tensor/idx.h"
#include "common/tensor/npz.h"

/* The held-out samples of a split must be the same in every task, or test data would be trained on. */
static const uint64_t split_seed = 0x73706c6974; /* "split" */

void kedge_dataset_deinit(struct kedge_dataset *ds)
{
    kedge_mem_free(ds->labels);
    kedge_mem_free(ds->storage);
    *ds = (struct kedge_dataset){0};
}

static void scale_bytes(const uint8_t *restrict in, size_t count, float scale, float *restrict out)
{
    for (size_t i = 0; i < count; i++) {
        out[i] = (float)in[i] * scale;
    }
}

void kedge_dataset_gather(const struct kedge_dataset *ds, const uint32_t *indices, uint32_t count, float *out)
{
    size_t width = ds->features, stride = ds->stride ? ds->stride : width;
    for (uint32_t i = 0; i < count; i++) {
        size_t row = indices ? indices[i] : i;
        if (ds->bytes) {
            scale_bytes(ds->bytes + row * stride, width, ds->scale, out + i * width);
        } else {
            memcpy(out + i * width, ds->reals + row * stride, width * sizeof *out);
        }
    }
}

float kedge_dataset_value(const struct kedge_dataset *ds, uint32_t row, uint32_t feature)
{
    size_t at = (size_t)row * (ds->stride ? ds->stride : ds->features) + feature;
    return ds->bytes ? (float)ds->bytes[at] * ds->scale : ds->reals[at];
}

static void count_classes(struct kedge_dataset *ds)
{
    int32_t most = 0;
    for (uint32_t i = 0; i < ds->n; i++) {
        most = ds->labels[i] > most ? ds->labels[i] : most;
    }
    ds->classes = (uint32_t)most + 1;
}

int kedge_dataset_pick(const struct kedge_dataset *ds, const uint32_t *indices, uint32_t count,
                       struct kedge_dataset *ret)
{
    size_t value = ds->bytes ? sizeof(uint8_t) : sizeof(float), width = ds->features * value;
    size_t stride = ds->stride ? ds->stride * value : width;
    struct kedge_dataset out = {.n = count, .features = ds->features, .scale = ds->scale};
    uint8_t *rows = kedge_mem_new(count, width);
    const uint8_t *from = ds->bytes ? ds->bytes : (const uint8_t *)ds->reals;
    out.labels = kedge_mem_new(count, sizeof *out.labels);
    out.storage = rows;
    if (!rows || !out.labels) {
        kedge_dataset_deinit(&out);
        return KEDGE_E_NOMEM;
    }
    for (uint32_t i = 0; i < count; i++) {
        memcpy(rows + i * width, from + indices[i] * stride, width);
        out.labels[i] = ds->labels[indices[i]];
    }
    out.bytes = ds->bytes ? rows : NULL;
    out.reals = ds->bytes ? NULL : out.storage;
    count_classes(&out);
    *ret = out;
    return KEDGE_OK;
}

static int load_idx_labels(const char *path, uint32_t n, int32_t **ret, struct kedge_diag *reterr)
{
    uint8_t *file;
    size_t len;
    struct kedge_idx idx;
    int err = kedge_data_file_read(path, &file, &len, reterr);
    if (err) {
        return err;
    }
    err = kedge_idx_read(kedge_view_of(file, len), &idx, reterr);
    if (!err && (idx.dims_count != 1 || idx.dims[0] != n)) {
        err = kedge_diag_set(reterr, KEDGE_E_FORMAT,
                             "%u dimensions, %u labels: expected one dimension, %u labels "
                             "(one for each image)",
                             idx.dims_count, idx.dims[0], n);
    }
    int32_t *labels = err ? NULL : kedge_mem_new(n, sizeof *labels);
    if (!err && !labels) {
        err = kedge_diag_set(reterr, KEDGE_E_NOMEM, "no memory for %u labels", n);
    }
    for (uint32_t i = 0; i < n && !err; i++) {
        labels[i] = idx.data[i];
    }
    kedge_mem_free(file);
    if (err) {
        return kedge_diag_wrap(reterr, err, "%s", path);
    }
    *ret = labels;
    return KEDGE_OK;
}

static int load_idx(const struct kedge_data_source *source, struct kedge_dataset *ds,
                    struct kedge_diag *reterr)
{
    uint8_t *file;
    size_t len;
    struct kedge_idx idx;
    int err = kedge_data_file_read(source->path, &file, &len, reterr);
    if (err) {
        return err;
    }
    ds->storage = file;
    err = kedge_idx_read(kedge_view_of(file, len), &idx, reterr);
    if (!err && (idx.dims_count < 2 || idx.count / idx.dims[0] > UINT32_MAX)) {
        err =
            kedge_diag_set(reterr, KEDGE_E_FORMAT,
                           "one dimension: expected images (samples, rows, columns); are these the labels?");
    }
    if (err) {
        return kedge_diag_wrap(reterr, err, "%s", source->path);
    }
    ds->n = idx.dims[0];
    ds->features = (uint32_t)(idx.count / idx.dims[0]);
    ds->bytes = idx.data;
    ds->scale = (float)source->scale;
    return load_idx_labels(source->labels_path, ds->n, &ds->labels, reterr);
}

static void scale_reals(float *x, size_t count, float scale)
{
    for (size_t i = 0; i < count; i++) {
        x[i] *= scale;
    }
}

static int load_csv(const struct kedge_data_source *source, struct kedge_dataset *ds,
                    struct kedge_diag *reterr)
{
    uint8_t *file;
    size_t len;
    struct kedge_csv csv;
    int err = kedge_data_file_read(source->path, &file, &len, reterr);
    if (err) {
        return err;
    }
    err = kedge_csv_read(kedge_view_of(file, len), source->y, &csv, reterr);
    kedge_mem_free(file);
    if (err) {
        return kedge_diag_wrap(reterr, err, "%s", source->path);
    }
    scale_reals(csv.x, (size_t)csv.rows * csv.features, (float)source->scale);
    ds->n = csv.rows;
    ds->features = csv.features;
    ds->labels = csv.labels;
    ds->storage = csv.x;
    ds->reals = csv.x;
    ds->scale = 1.0f;
    return KEDGE_OK;
}

static int take_npz_features(struct kedge_npy *x, double scale, struct kedge_dataset *ds,
                             struct kedge_diag *reterr)
{
    uint64_t n = x->dims_count > 0 ? x->dims[0] : 0;
    if (x->dims_count < 2 || n > UINT32_MAX || x->count / n > UINT32_MAX) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "%u dimensions: expected samples × features",
                              x->dims_count);
    }
    ds->n = (uint32_t)n;
    ds->features = (uint32_t)(x->count / n);
    ds->scale = x->type == KEDGE_NPY_U1 ? (float)scale : 1.0f;
    ds->storage = kedge_mem_new(x->count, x->type == KEDGE_NPY_U1 ? 1 : sizeof(float));
    if (!ds->storage) {
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "no memory for %llu values",
                              (unsigned long long)x->count);
    }
    if (x->type == KEDGE_NPY_U1) {
        memcpy(ds->storage, x->data, x->count);
        ds->bytes = ds->storage;
        return KEDGE_OK;
    }
    int err = kedge_npy_to_f32(x, ds->storage, reterr);
    scale_reals(ds->storage, err ? 0 : x->count, (float)scale);
    ds->reals = ds->storage;
    return err;
}

static int take_npz_labels(const struct kedge_npy *y, struct kedge_dataset *ds, struct kedge_diag *reterr)
{
    if (y->count != ds->n) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "%llu labels, expected %u (one for each sample)",
                              (unsigned long long)y->count, ds->n);
    }
    ds->labels = kedge_mem_new(ds->n, sizeof *ds->labels);
    return ds->labels ? kedge_npy_to_labels(y, KEDGE_CSV_LABEL_MAX, ds->labels, reterr)
                      : kedge_diag_set(reterr, KEDGE_E_NOMEM, "no memory for %u labels", ds->n);
}

static int load_npz_arrays(const struct kedge_npz *npz, const struct kedge_data_source *source,
                           struct kedge_dataset *ds, struct kedge_diag *reterr)
{
    struct kedge_npy array;
    int err = kedge_npz_read(npz, source->x, &array, reterr);
    if (err) {
        return err;
    }
    err = take_npz_features(&array, source->scale, ds, reterr);
    kedge_npy_deinit(&array);
    if (err) {
        return kedge_diag_wrap(reterr, err, "array \"%s\"", source->x);
    }
    err = kedge_npz_read(npz, source->y, &array, reterr);
    if (err) {
        return err;
    }
    err = take_npz_labels(&array, ds, reterr);
    kedge_npy_deinit(&array);
    return err ? kedge_diag_wrap(reterr, err, "array \"%s\"", source->y) : KEDGE_OK;
}

static int load_npz(const struct kedge_data_source *source, struct kedge_dataset *ds,
                    struct kedge_diag *reterr)
{
    uint8_t *file;
    size_t len;
    struct kedge_npz npz;
    int err = kedge_data_file_read(source->path, &file, &len, reterr);
    if (err) {
        return err;
    }
    err = kedge_npz_open(kedge_view_of(file, len), &npz, reterr);
    if (!err) {
        err = load_npz_arrays(&npz, source, ds, reterr);
        kedge_npz_close(&npz);
    }
    kedge_mem_free(file);
    return err ? kedge_diag_wrap(reterr, err, "%s", source->path) : KEDGE_OK;
}

int kedge_dataset_load(const struct kedge_data_source *source, struct kedge_dataset *ret,
                       struct kedge_diag *reterr)
{
    struct kedge_dataset ds = {0};
    int err = KEDGE_E_BUG;
    switch (source->format) {
    case KEDGE_DATA_IDX:
        err = load_idx(source, &ds, reterr);
        break;
    case KEDGE_DATA_CSV:
        err = load_csv(source, &ds, reterr);
        break;
    case KEDGE_DATA_NPZ:
        err = load_npz(source, &ds, reterr);
        break;
    case KEDGE_DATA_TEXT:
        err = kedge_dataset_load_text(source, &ds, reterr);
        break;
    }
    if (err) {
        kedge_dataset_deinit(&ds);
        return err;
    }
    count_classes(&ds);
    *ret = ds;
    return KEDGE_OK;
}

static int split(const struct kedge_dataset *all, double share, struct kedge_dataset *train,
                 struct kedge_dataset *test, struct kedge_diag *reterr)
{
    uint32_t kept = (uint32_t)((double)all->n * share);
    if (all->n < 2) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "\"split\" needs at least 2 samples, found %u", all->n);
    }
    kept = kept == 0 ? 1 : kept == all->n ? all->n - 1 : kept;
    if (all->stride > 0) {
        return kedge_dataset_split_text(all, kept, train, test, reterr);
    }
    uint32_t *order = kedge_mem_new(all->n, sizeof *order);
    if (!order) {
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "no memory for %u samples", all->n);
    }
    for (uint32_t i = 0; i < all->n; i++) {
        order[i] = i;
    }
    struct kedge_rng rng;
    kedge_rng_init(&rng, split_seed, KEDGE_RNG_PARTITION, all->n, 0);
    kedge_rng_sample(&rng, order, all->n, all->n);
    int err = kedge_dataset_pick(all, order, kept, train);
    if (!err) {
        err = kedge_dataset_pick(all, order + kept, all->n - kept, test);
        if (err) {
            kedge_dataset_deinit(train);
        }
    }
    kedge_mem_free(order);
    return err ? kedge_diag_set(reterr, err, "no memory for %u samples", all->n) : KEDGE_OK;
}

int kedge_data_binding_load(const struct kedge_data_binding *binding, struct kedge_dataset *train,
                            struct kedge_dataset *test, struct kedge_diag *reterr)
{
    struct kedge_dataset all, other = {0};
    int err = kedge_dataset_load(&binding->train, &all, reterr);
    if (err) {
        return kedge_diag_wrap(reterr, err, "train data");
    }
    if (!binding->has_test && binding->split < 1.0) {
        err = split(&all, binding->split, train, test, reterr);
        kedge_dataset_deinit(&all);
        return err;
    }
    if (binding->has_test) {
        err = kedge_dataset_load(&binding->test, &other, reterr);
        if (!err && other.features != all.features) {
            err = kedge_diag_set(reterr, KEDGE_E_SHAPE, "%u features, but the train data have %u",
                                 other.features, all.features);
            kedge_dataset_deinit(&other);
        }
        if (err) {
            kedge_dataset_deinit(&all);
            return kedge_diag_wrap(reterr, err, "test data");
        }
    }
    *train = all;
    *test = other;
    return KEDGE_OK;
}
