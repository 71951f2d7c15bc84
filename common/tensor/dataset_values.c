/* A data set in memory: values, targets, a choice of its samples. */
#include <string.h>

#include "common/base/mem.h"
#include "common/tensor/dataset_impl.h"

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

/* Bytes are scaled here, batch by batch, and never all at once. */
void kedge_dataset_gather(const struct kedge_dataset *ds, const uint32_t *indices, uint32_t count, float *out)
{
    size_t width = ds->features, stride = ds->stride ? ds->stride : width;
    for (uint32_t i = 0; i < count && ds->maker; i++) {
        const uint32_t row = indices ? indices[i] : i;
        ds->maker->make(ds->maker, &row, 1, 0, out + i * width);
    }
    for (uint32_t i = 0; i < count && !ds->maker; i++) {
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

float kedge_dataset_target(const struct kedge_dataset *ds, uint32_t row)
{
    float target = (float)ds->labels[row];
    if (ds->is_real) {
        memcpy(&target, &ds->labels[row], sizeof target);
    }
    return target;
}

/* In place: a real and a label have the same size. By memcpy through a local, since C does not
 * allow to read one type's object as the other's. */
int32_t *kedgei_reals_as_labels(float *reals, uint32_t n)
{
    int32_t *labels = (int32_t *)(void *)reals;
    for (uint32_t i = 0; i < n; i++) {
        float v = reals[i];
        int32_t bits;
        memcpy(&bits, &v, sizeof bits);
        labels[i] = bits;
    }
    return labels;
}

/* What the labels of a set say: largest label + 1. */
void kedgei_dataset_count_classes(struct kedge_dataset *ds)
{
    int32_t most = ds->is_real ? -1 : 0;
    for (uint32_t i = 0; i < ds->n && !ds->is_real; i++) {
        most = ds->labels[i] > most ? ds->labels[i] : most;
    }
    ds->classes = (uint32_t)most + 1;
}

/* The chosen rows as a set of its own, so that the original can be freed. */
int kedge_dataset_pick(const struct kedge_dataset *ds, const uint32_t *indices, uint32_t count,
                       struct kedge_dataset *ret)
{
    size_t value = ds->bytes ? sizeof(uint8_t) : sizeof(float), width = ds->features * value;
    size_t stride = ds->stride ? ds->stride * value : width;
    struct kedge_dataset out = {
        .n = count, .features = ds->features, .scale = ds->scale, .is_real = ds->is_real};
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
    kedgei_dataset_count_classes(&out);
    *ret = out;
    return KEDGE_OK;
}

void kedgei_loaded_deinit(struct kedgei_loaded *loaded)
{
    kedge_dataset_deinit(&loaded->ds);
    kedge_csv_deinit(&loaded->csv);
}
