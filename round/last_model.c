/* FeSEM: the group of a site is that whose model is the nearest to what the site trained last. No site
 * sends a model, so the last one is put together here from its base and its update, tile by tile, and is
 * never whole in memory. */
#include "round/last_model.h"

#include "common/base/mem.h"
#include "grouping/closest.h"
#include "round/compute_impl.h"

enum { TILE = KEDGEI_TENSORS_TILE_MAX };

struct last {
    const struct kedge_layout *layout;
    struct kedgei_tensors base, update, models; /* update: of no file where there is none */
    double unit;
    float *tile;
};

/* Values first … first + n − 1 of the last model; an encrypted update comes chunk by chunk. */
static int fill_tile(struct last *l, size_t first, size_t n, struct kedge_diag *d)
{
    const float *base = (const float *)l->base.values[0] + first;
    int err = KEDGE_OK;
    for (size_t at = 0; l->update.count == 0 && at < n; at++) {
        l->tile[at] = base[at];
    }
    for (size_t at = 0, len; l->update.count > 0 && at < n && !err; at += len) {
        size_t most = kedgei_tensors_tile(&l->update, first + at);
        len = most < n - at ? most : n - at;
        err = kedgei_tensors_seek(&l->update, 0, 1, first + at, len, d);
        const int32_t *q = err ? NULL : l->update.tile[0];
        for (size_t i = 0; i < len && !err; i++) {
            l->tile[at + i] = (float)((double)base[at + i] + (double)q[i] * l->unit);
        }
    }
    return err;
}

/* Where no distance is finite (a model that diverged) nothing can be compared, and the site is in group 0,
 * as docs/record.md has it, instead of failing the round. */
static int find(struct last *l, uint32_t *ret_group, double *ret_similarity, struct kedge_diag *d)
{
    struct kedge_closest closest;
    double distance = 0;
    int err = kedge_closest_init(&closest, l->models.count);
    for (size_t first = 0, n; first < l->layout->values_count && !err; first += n) {
        const float *models[KEDGE_GROUPS_MAX];
        n = l->layout->values_count - first < TILE ? (size_t)(l->layout->values_count - first) : TILE;
        err = fill_tile(l, first, n, d);
        for (size_t g = 0; g < l->models.count; g++) {
            models[g] = (const float *)l->models.values[g] + first;
        }
        if (!err) {
            kedge_closest_push(&closest, l->tile, models, 0, n);
        }
    }
    if (!err && kedge_closest_end(&closest, ret_group, &distance) != KEDGE_OK) {
        *ret_group = 0;
        *ret_similarity = 0;
        return KEDGE_OK;
    }
    *ret_similarity = 1 / (1 + distance);
    return err;
}

int kedge_compute_last_model(const struct kedge_job_spec *spec, const struct kedge_layout *layout,
                             const struct kedge_blob_at *base, const struct kedge_blob_at *update,
                             const struct kedge_blob_at *models, size_t groups, uint32_t *ret_group,
                             double *ret_similarity, struct kedge_diag *reterr)
{
    struct last l = {.layout = layout, .unit = 1.0 / (double)(UINT64_C(1) << spec->scale)};
    l.tile = kedge_mem_new(TILE, sizeof *l.tile);
    int err = l.tile ? kedgei_tensors_open(layout, KEDGE_DTYPE_F32, base, sizeof *base, 1, &l.base, reterr)
                     : kedge_diag_set(reterr, KEDGE_E_NOMEM, "out of memory for a last model");
    if (!err) {
        err = kedgei_tensors_open(layout, KEDGE_DTYPE_F32, models, sizeof *models, groups, &l.models, reterr);
    }
    if (!err && update) {
        err = kedgei_tensors_open(layout, KEDGE_DTYPE_I32, update, sizeof *update, 1, &l.update, reterr);
    }
    if (!err) {
        err = find(&l, ret_group, ret_similarity, reterr);
    }
    kedgei_tensors_close(&l.base);
    kedgei_tensors_close(&l.update);
    kedgei_tensors_close(&l.models);
    kedge_mem_free(l.tile);
    return err;
}
