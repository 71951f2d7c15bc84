/* Maps the files, checks them once, then runs the pure kernels tile by tile. A tile of 64 Ki values keeps the
 * output buffer in the second-level cache and the sink's calls few. */
#include "chain/compute/compute.h"

#include <math.h>
#include <string.h>

#include "aggregation/flexcfl.h"
#include "aggregation/mean.h"
#include "aggregation/mixing.h"
#include "aggregation/quantise.h"
#include "common/base/mem.h"
#include "common/base/os/file.h"
#include "common/tensor/model.h"
#include "common/tensor/safetensors.h"

enum { TILE = 65536 };

struct tensor_file {
    struct kedge_map map;
    const void *values;
};

/* ptrs[i] = values of paths[i], all of one layout and type. */
struct tensor_files {
    struct tensor_file *files;
    const void **values;
    size_t count;
};

static int file_open(const struct kedge_layout *layout, enum kedge_dtype dtype, const char *path,
                     struct tensor_file *ret, struct kedge_diag *d)
{
    struct kedge_map map;
    struct kedge_layout got;
    uint64_t start;
    int err = kedge_map_open(path, &map, d);
    if (err) {
        return err;
    }
    err = kedge_safetensors_read(kedge_view_of(map.ptr, map.len), map.len, KEDGE_SAFETENSORS_CANONICAL, &got,
                                 &start, d);
    if (!err) {
        err = kedge_layout_check_same(layout, &got, dtype, d);
        kedge_layout_deinit(&got);
    }
    if (err) {
        kedge_map_close(&map);
        return kedge_diag_wrap(d, err, "%s", path);
    }
    *ret = (struct tensor_file){map, map.ptr + start};
    return KEDGE_OK;
}

static void files_close(struct tensor_files *f)
{
    for (size_t i = 0; i < f->count; i++) {
        kedge_map_close(&f->files[i].map);
    }
    kedge_mem_free(f->files);
    kedge_mem_free(f->values);
    *f = (struct tensor_files){NULL, NULL, 0};
}

/* paths with a stride, so that an array of structures whose first member is the path serves as well. */
static int files_open(const struct kedge_layout *layout, enum kedge_dtype dtype, const void *paths,
                      size_t stride, size_t count, struct tensor_files *ret, struct kedge_diag *d)
{
    struct tensor_files f = {kedge_mem_new(count, sizeof *f.files), kedge_mem_new(count, sizeof *f.values),
                             0};
    int err = f.files && f.values ? KEDGE_OK
                                  : kedge_diag_set(d, KEDGE_E_NOMEM, "out of memory for %zu files", count);
    for (size_t i = 0; i < count && !err; i++) {
        const char *path;
        memcpy(&path, (const char *)paths + i * stride, sizeof path);
        err = file_open(layout, dtype, path, &f.files[i], d);
        if (!err) {
            f.values[i] = f.files[i].values;
            f.count++;
        }
    }
    if (err) {
        files_close(&f);
        return err;
    }
    *ret = f;
    return KEDGE_OK;
}

static int write_header(const struct kedge_layout *layout, enum kedge_dtype dtype, struct kedge_sink sink)
{
    struct kedge_buf header;
    kedge_buf_init(&header, KEDGE_TENSOR_HEADER_MAX + 8);
    int err = kedge_safetensors_header(layout, dtype, &header);
    if (!err) {
        err = sink.write(sink.arg, kedge_buf_view(&header));
    }
    kedge_buf_deinit(&header);
    return err;
}

static size_t tile_len(const struct kedge_layout *layout, size_t first)
{
    uint64_t left = layout->values_count - first;
    return left < TILE ? (size_t)left : TILE;
}

int kedge_compute_initial(const struct kedge_job_spec *spec, struct kedge_sink sink,
                          struct kedge_diag *reterr)
{
    struct kedge_layout layout;
    int err = kedge_model_layout(&spec->model, &layout, reterr);
    if (err) {
        return err;
    }
    float *values = kedge_mem_new((size_t)layout.values_count, sizeof *values);
    err = values ? KEDGE_OK : kedge_diag_set(reterr, KEDGE_E_NOMEM, "out of memory for the first model");
    if (!err) {
        kedge_model_init(&spec->model, spec->seed, values);
        err = write_header(&layout, KEDGE_DTYPE_F32, sink);
    }
    if (!err) {
        err = sink.write(sink.arg, kedge_view_of(values, (size_t)layout.values_count * sizeof *values));
    }
    kedge_mem_free(values);
    kedge_layout_deinit(&layout);
    return err;
}

int kedge_compute_check_model(const struct kedge_layout *layout, const char *path, struct kedge_diag *reterr)
{
    struct tensor_file file;
    int err = file_open(layout, KEDGE_DTYPE_F32, path, &file, reterr);
    if (err) {
        return err;
    }
    const float *w = file.values;
    for (uint64_t i = 0; i < layout->values_count && !err; i++) {
        if (!isfinite(w[i])) {
            err = kedge_diag_set(reterr, KEDGE_E_NOT_FINITE, "%s: value %llu is not finite", path,
                                 (unsigned long long)i);
        }
    }
    kedge_map_close(&file.map);
    return err;
}

int kedge_compute_check_update(const struct kedge_layout *layout, const char *path, int32_t limit,
                               struct kedge_diag *reterr)
{
    struct tensor_file file;
    size_t at;
    int err = file_open(layout, KEDGE_DTYPE_I32, path, &file, reterr);
    if (err) {
        return err;
    }
    err = kedge_update_check(file.values, (size_t)layout->values_count, limit, &at);
    if (err) {
        (void)kedge_diag_set(reterr, err, "%s: value %zu is %d, the job's bound allows at most %d", path, at,
                             ((const int32_t *)file.values)[at], limit);
    }
    kedge_map_close(&file.map);
    return err;
}

int kedge_compute_mean(const struct kedge_layout *layout, const char *base_path,
                       const struct kedge_compute_source *sources, size_t count, unsigned scale,
                       int32_t limit, struct kedge_sink sink, uint64_t *ret_weight_sum,
                       struct kedge_diag *reterr)
{
    struct tensor_files updates = {NULL, NULL, 0};
    struct tensor_file base = {{NULL, 0}, NULL};
    uint64_t weight_sum = 0;
    struct kedge_mean_source *rows = kedge_mem_new(count, sizeof *rows);
    float *tile = kedge_mem_new(TILE, sizeof *tile);
    int err = rows && tile ? KEDGE_OK : kedge_diag_set(reterr, KEDGE_E_NOMEM, "out of memory for a mean");
    if (!err) {
        err = files_open(layout, KEDGE_DTYPE_I32, sources, sizeof *sources, count, &updates, reterr);
    }
    if (!err) {
        err = file_open(layout, KEDGE_DTYPE_F32, base_path, &base, reterr);
    }
    for (size_t i = 0; i < count && !err; i++) {
        rows[i] = (struct kedge_mean_source){updates.values[i], sources[i].weight};
    }
    if (!err) {
        err = kedge_mean_weight_sum(rows, count, limit, &weight_sum);
        err = err ? kedge_diag_set(reterr, err, "weights of %zu updates: %s", count, kedge_strerror(err))
                  : KEDGE_OK;
    }
    if (!err) {
        err = write_header(layout, KEDGE_DTYPE_F32, sink);
    }
    for (size_t first = 0; first < layout->values_count && !err; first += TILE) {
        size_t n = tile_len(layout, first);
        err = kedge_mean_tile(base.values, rows, count, first, n, scale, weight_sum, tile);
        if (!err) {
            err = sink.write(sink.arg, kedge_view_of(tile, n * sizeof *tile));
        }
    }
    files_close(&updates);
    kedge_map_close(&base.map);
    kedge_mem_free(rows);
    kedge_mem_free(tile);
    if (!err) {
        *ret_weight_sum = weight_sum;
    }
    return err;
}

int kedge_compute_groups(const struct kedge_layout *layout, const char *const *paths, size_t count,
                         const struct kedge_job_spec *spec, uint32_t *ret_group, uint32_t *ret_groups,
                         struct kedge_diag *reterr)
{
    struct tensor_files updates = {NULL, NULL, 0};
    struct kedge_flexcfl_params params = {
        .edc = KEDGE_EDC_UNIT, .groups = spec->groups, .size_min = 1, .seed = spec->seed, .round = 0};
    struct kedge_flexcfl_result result = {.group = kedge_mem_new(count, sizeof *result.group),
                                          .eigenvalues = kedge_mem_new(count, sizeof *result.eigenvalues),
                                          .embedding =
                                              kedge_mem_new(count * spec->groups, sizeof *result.embedding)};
    int err = result.group && result.eigenvalues && result.embedding
                  ? KEDGE_OK
                  : kedge_diag_set(reterr, KEDGE_E_NOMEM, "out of memory for grouping %zu updates", count);
    if (!err) {
        err = files_open(layout, KEDGE_DTYPE_I32, paths, sizeof *paths, count, &updates, reterr);
    }
    if (!err) {
        err = kedge_flexcfl_group((const int32_t *const *)updates.values, count, (size_t)layout->values_count,
                                  &params, &result);
        err = err ? kedge_diag_set(reterr, err, "grouping of %zu updates: %s", count, kedge_strerror(err))
                  : KEDGE_OK;
    }
    if (!err) {
        memcpy(ret_group, result.group, count * sizeof *ret_group);
        *ret_groups = (uint32_t)result.groups;
    }
    files_close(&updates);
    kedge_mem_free(result.group);
    kedge_mem_free(result.eigenvalues);
    kedge_mem_free(result.embedding);
    return err;
}

int kedge_compute_direction(const struct kedge_layout *layout, const char *const *paths, size_t count,
                            struct kedge_sink sink, struct kedge_diag *reterr)
{
    struct tensor_files updates = {NULL, NULL, 0};
    int32_t *tile = kedge_mem_new(TILE, sizeof *tile);
    int err = tile ? KEDGE_OK : kedge_diag_set(reterr, KEDGE_E_NOMEM, "out of memory for a direction");
    if (!err) {
        err = files_open(layout, KEDGE_DTYPE_I32, paths, sizeof *paths, count, &updates, reterr);
    }
    if (!err) {
        err = write_header(layout, KEDGE_DTYPE_I32, sink);
    }
    for (size_t first = 0; first < layout->values_count && !err; first += TILE) {
        size_t n = tile_len(layout, first);
        err = kedge_direction_tile((const int32_t *const *)updates.values, count, first, n, tile);
        if (!err) {
            err = sink.write(sink.arg, kedge_view_of(tile, n * sizeof *tile));
        }
    }
    files_close(&updates);
    kedge_mem_free(tile);
    return err;
}

int kedge_compute_nearest(const struct kedge_layout *layout, const char *update_path,
                          const char *const *direction_paths, size_t groups, uint32_t *ret_group,
                          double *ret_cosine, struct kedge_diag *reterr)
{
    struct tensor_files directions;
    struct tensor_file update;
    int err = file_open(layout, KEDGE_DTYPE_I32, update_path, &update, reterr);
    if (err) {
        return err;
    }
    err = files_open(layout, KEDGE_DTYPE_I32, direction_paths, sizeof *direction_paths, groups, &directions,
                     reterr);
    if (!err) {
        err = kedge_nearest_group(update.values, (const int32_t *const *)directions.values, groups,
                                  (size_t)layout->values_count, ret_group, ret_cosine);
        err = err ? kedge_diag_set(reterr, err, "%s: %s", update_path, kedge_strerror(err)) : KEDGE_OK;
        files_close(&directions);
    }
    kedge_map_close(&update.map);
    return err;
}

static int mixing_norms(const struct kedge_layout *layout, const struct tensor_files *models, size_t groups,
                        double *ret_norms)
{
    for (size_t j = 0; j < groups; j++) {
        struct kedge_reduce sumsq;
        kedge_reduce_init(&sumsq);
        const float *values = models->values[j];
        for (size_t first = 0; first < layout->values_count; first += TILE) {
            kedge_sumsq_push(&sumsq, values + first, tile_len(layout, first));
        }
        ret_norms[j] = kedge_mixing_norm(&sumsq);
    }
    return KEDGE_OK;
}

int kedge_compute_mixing(const struct kedge_layout *layout, const char *const *model_paths,
                         const bool *trained, size_t groups, double eta, const struct kedge_sink *sinks,
                         struct kedge_diag *reterr)
{
    struct tensor_files models = {NULL, NULL, 0};
    struct kedge_mixing mixing;
    double norms[KEDGE_GROUPS_MAX];
    float *out[KEDGE_GROUPS_MAX] = {NULL};
    KEDGE_ASSERT(groups >= 1 && groups <= KEDGE_GROUPS_MAX);
    float *tiles = kedge_mem_new(groups * TILE, sizeof *tiles);
    int err = tiles ? KEDGE_OK : kedge_diag_set(reterr, KEDGE_E_NOMEM, "out of memory for mixing");
    if (!err) {
        err = files_open(layout, KEDGE_DTYPE_F32, model_paths, sizeof *model_paths, groups, &models, reterr);
    }
    if (!err) {
        err = mixing_norms(layout, &models, groups, norms);
    }
    if (!err) {
        err = kedge_mixing_init(&mixing, norms, trained, groups, eta);
        err = err ? kedge_diag_set(reterr, err, "mixing of %zu groups: %s", groups, kedge_strerror(err))
                  : KEDGE_OK;
    }
    for (size_t j = 0; j < groups && !err; j++) {
        out[j] = tiles + j * TILE;
        err = trained[j] ? write_header(layout, KEDGE_DTYPE_F32, sinks[j]) : KEDGE_OK;
    }
    for (size_t first = 0; first < layout->values_count && !err; first += TILE) {
        size_t n = tile_len(layout, first);
        kedge_mixing_tile(&mixing, (const float *const *)models.values, first, n, out);
        for (size_t j = 0; j < groups && !err; j++) {
            err =
                trained[j] ? sinks[j].write(sinks[j].arg, kedge_view_of(out[j], n * sizeof **out)) : KEDGE_OK;
        }
    }
    files_close(&models);
    kedge_mem_free(tiles);
    return err;
}
