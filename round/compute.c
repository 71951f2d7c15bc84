/* Opens the files, checks them once, then runs the pure kernels tile by tile. A tile of 64 Ki values keeps
 * the output buffer in the second-level cache and the sink's calls few; of encrypted files, which are
 * decrypted into memory, it has a chunk. */
#include "round/compute.h"

#include <math.h>
#include <string.h>

#include "aggregation/mixing.h"
#include "aggregation/quantise.h"
#include "common/base/mem.h"
#include "common/base/try.h"
#include "common/tensor/model.h"
#include "common/tensor/safetensors.h"
#include "grouping/flexcfl.h"
#include "round/compute_impl.h"
#include "round/shards.h"

enum { TILE = KEDGEI_TENSORS_TILE_MAX };

/* A simulation's vectors have no header: there is no file. */
int kedgei_write_header(const struct kedge_layout *layout, enum kedge_dtype dtype, struct kedge_sink sink)
{
    struct kedge_buf header;
    if (sink.values_only) {
        return KEDGE_OK;
    }
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

/* All weights are drawn in their order; those of a head are passed over, for sites begin with them. So a
 * tensor's first values do not depend on which others are shared. */
static int write_first(const struct kedge_job_spec *spec, const struct kedge_layout *whole, float *tile,
                       struct kedge_sink sink)
{
    const bool in_parts = kedge_job_spec_is_in_parts(spec);
    struct kedge_model_weights weights;
    kedge_model_weights_init(&weights, &spec->model, spec->seed);
    for (uint32_t i = 0; i < whole->count; i++) {
        const bool travels = !in_parts || kedge_part_has(&spec->share, whole, i);
        uint64_t left = whole->tensors[i].count;
        while (left > 0) {
            size_t n = kedge_model_weights_next(&weights, tile, left < TILE ? (size_t)left : TILE);
            int err = n == 0    ? KEDGE_E_BUG
                      : travels ? sink.write(sink.arg, kedge_view_of(tile, n * sizeof *tile))
                                : KEDGE_OK;
            if (err) {
                return err;
            }
            left -= n;
        }
    }
    return KEDGE_OK;
}

int kedge_compute_initial(const struct kedge_job_spec *spec, struct kedge_sink sink,
                          struct kedge_diag *reterr)
{
    struct kedge_layout layout, whole;
    if (spec->is_external) {
        return kedge_diag_set(reterr, KEDGE_E_ARG, "an external model has no first weights but those given");
    }
    int err = kedge_job_spec_whole_layout(spec, &whole, reterr);
    if (err) {
        return err;
    }
    err = kedge_job_spec_layout(spec, &layout, reterr);
    if (err) {
        kedge_layout_deinit(&whole);
        return err;
    }
    float *tile = kedge_mem_new(TILE, sizeof *tile);
    err = tile ? kedgei_write_header(&layout, KEDGE_DTYPE_F32, sink)
               : kedge_diag_set(reterr, KEDGE_E_NOMEM, "out of memory for the first model");
    if (!err) {
        err = write_first(spec, &whole, tile, sink);
    }
    kedge_mem_free(tile);
    kedge_layout_deinit(&layout);
    kedge_layout_deinit(&whole);
    return err;
}

/* Value by value, since a NaN that one model has would be in every later one: it must be found before the
 * model is taken, not after a mean. */
int kedge_compute_check_model(const struct kedge_layout *layout, const char *path, struct kedge_diag *reterr)
{
    const struct kedge_blob_at at = {.path = path};
    struct kedgei_tensors file;
    int err = kedgei_tensors_open(layout, KEDGE_DTYPE_F32, &at, sizeof at, 1, &file, reterr);
    if (err) {
        return err;
    }
    const float *w = file.values[0];
    for (uint64_t i = 0; i < layout->values_count && !err; i++) {
        if (!isfinite(w[i])) {
            err = kedge_diag_set(reterr, KEDGE_E_NOT_FINITE, "%s: value %llu is not finite", path,
                                 (unsigned long long)i);
        }
    }
    kedgei_tensors_close(&file);
    return err;
}

/* Is it of the kind that it shall be, to its last byte? */
static int check_form(struct kedgei_tensors *file, const struct kedge_compact *compact, struct kedge_diag *d)
{
    enum kedge_compact_kind want = compact ? compact->kind : KEDGE_COMPACT_NONE, got = file->compact[0].kind;
    if (got != want) {
        return kedge_diag_set(d, KEDGE_E_FORMAT, "%s: compression is \"%s\", the job's is \"%s\"",
                              file->paths[0], kedge_compact_name(got), kedge_compact_name(want));
    }
    return want == KEDGE_COMPACT_NONE
                   || kedgei_compact_is_read(file->layout, &file->files[0], &file->compact[0])
               ? KEDGE_OK
               : kedge_diag_set(d, KEDGE_E_FORMAT, "%s: its blocks do not end where it does", file->paths[0]);
}

static uint64_t count_some(const int32_t *values, size_t n)
{
    uint64_t count = 0;
    for (size_t i = 0; i < n; i++) {
        count += values[i] != 0;
    }
    return count;
}

/* What a site sent is checked once, before it is taken: form, bound of every value and, of a sparse update,
 * how many values there are. Kernels rely on the bound for sums that cannot overflow. */
int kedge_compute_check_update(const struct kedge_layout *layout, const struct kedge_blob_at *update,
                               const struct kedge_compact *compact, int32_t limit, struct kedge_diag *reterr)
{
    struct kedgei_tensors file;
    size_t n, bad;
    uint64_t some = 0;
    int err = kedgei_tensors_open(layout, KEDGE_DTYPE_I32, update, sizeof *update, 1, &file, reterr);
    if (err) {
        return err;
    }
    const uint64_t most = compact ? kedge_compact_entries_most(compact, layout->values_count) : UINT64_MAX;
    err = check_form(&file, compact, reterr);
    for (size_t first = 0; first < layout->values_count && !err; first += n) {
        n = kedgei_tensors_tile(&file, first);
        err = kedgei_tensors_seek(&file, 0, 1, first, n, reterr);
        if (err) {
            break;
        }
        const int32_t *values = file.tile[0];
        err = kedge_update_check(values, n, limit, &bad);
        if (err) {
            (void)kedge_diag_set(reterr, err, "%s: value %zu is %d, the job's bound allows at most %d",
                                 update->path, first + bad, values[bad], limit);
        }
        some += compact ? count_some(values, n) : 0;
        if (!err && some > most) {
            err =
                kedge_diag_set(reterr, KEDGE_E_BOUND, "%s: more than the %llu values that the job's share is",
                               update->path, (unsigned long long)most);
        }
    }
    kedgei_tensors_close(&file);
    return err;
}

/* ---- groups ---- */

typedef void nearest_part(struct kedge_nearest *n, const int32_t *update, const int32_t *const *directions,
                          size_t first, size_t len);

/* All of the update, tile by tile: an encrypted one is never whole in memory. */
static int pass_over(struct kedgei_tensors *update, const struct kedgei_tensors *directions,
                     nearest_part *part, struct kedge_nearest *nearest, struct kedge_diag *d)
{
    int err = KEDGE_OK;
    for (size_t first = 0, n = 0; first < update->layout->values_count && !err; first += n) {
        n = kedgei_tensors_tile(update, first);
        err = kedgei_tensors_seek(update, 0, 1, first, n, d);
        if (!err) {
            part(nearest, update->tile[0], (const int32_t *const *)directions->values, first, n);
        }
    }
    return err;
}

/* Two passes, since both vectors are scaled by their largest values: the first finds these, the second adds
 * up. */
int kedge_compute_nearest(const struct kedge_layout *layout, const struct kedge_blob_at *update,
                          const struct kedge_blob_at *of_groups, size_t groups, uint32_t *ret_group,
                          double *ret_cosine, struct kedge_diag *reterr)
{
    struct kedgei_tensors directions = {.count = 0}, one = {.count = 0};
    struct kedge_nearest nearest = {.groups = groups};
    if (groups == 0 || groups > KEDGE_GROUPS_MAX) {
        return kedge_diag_set(reterr, KEDGE_E_ARG, "%s: no groups to choose from", update->path);
    }
    int err = kedgei_tensors_open(layout, KEDGE_DTYPE_I32, update, sizeof *update, 1, &one, reterr);
    if (!err) {
        err = kedgei_tensors_open(layout, KEDGE_DTYPE_I32, of_groups, sizeof *of_groups, groups, &directions,
                                  reterr);
    }
    if (!err) {
        err = pass_over(&one, &directions, kedge_nearest_scan, &nearest, reterr);
    }
    if (!err) {
        err = pass_over(&one, &directions, kedge_nearest_add, &nearest, reterr);
    }
    if (!err) {
        err = kedge_nearest_end(&nearest, ret_group, ret_cosine);
        err = err ? kedge_diag_set(reterr, err, "%s: %s", update->path, kedge_strerror(err)) : KEDGE_OK;
    }
    kedgei_tensors_close(&directions);
    kedgei_tensors_close(&one);
    return err;
}

/* Sums of squares go through a fixed tree of additions (aggregation/reduce.h), in which the length of tiles
 * makes no difference. */
static int mixing_norms(const struct kedge_layout *layout, const struct kedgei_tensors *models, size_t groups,
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

/* Each model is moved towards all others, so all are made in one pass: a tile of each, one behind the
 * other. */
struct mix {
    struct kedge_mixing mixing;
    const struct kedgei_tensors *models;
    const bool *trained;
    size_t groups;
    const struct kedge_sink *sinks;
};

static size_t mix_len(void *arg, uint64_t first)
{
    const struct mix *m = arg;
    return tile_len(m->models->layout, (size_t)first);
}

static int mix_tile(void *arg, unsigned thread, uint64_t first, size_t n, void *out, struct kedge_diag *d)
{
    const struct mix *m = arg;
    float *tiles = out, *of_group[KEDGE_GROUPS_MAX] = {NULL};
    (void)thread;
    (void)d;
    for (size_t j = 0; j < m->groups; j++) {
        of_group[j] = tiles + j * TILE;
    }
    kedge_mixing_tile(&m->mixing, (const float *const *)m->models->values, (size_t)first, n, of_group);
    return KEDGE_OK;
}

static int put_mixed(void *arg, uint64_t first, size_t n, const void *out)
{
    const struct mix *m = arg;
    const float *tiles = out;
    (void)first;
    for (size_t j = 0; j < m->groups; j++) {
        if (m->trained[j]) {
            KEDGE_TRY(m->sinks[j].write(m->sinks[j].arg, kedge_view_of(tiles + j * TILE, n * sizeof *tiles)));
        }
    }
    return KEDGE_OK;
}

/* As the first of the sinks permits. */
static int run_mix(struct mix *m, struct kedge_diag *d)
{
    const uint64_t values = m->models->layout->values_count;
    const struct kedgei_tiles tiles = {.arg = m,
                                       .values = values,
                                       .tile_bytes = m->groups * TILE * sizeof(float),
                                       .length = mix_len,
                                       .make = mix_tile,
                                       .take = put_mixed};
    struct kedge_cut cut = {.threads = 1};
    for (size_t j = m->groups; j-- > 0;) {
        if (m->trained[j]) {
            cut = m->sinks[j].cut;
            KEDGE_TRY(kedgei_write_header(m->models->layout, KEDGE_DTYPE_F32, m->sinks[j]));
        }
    }
    return kedgei_shards_run(&cut, kedgei_shards_threads(&cut, values), &tiles, d);
}

int kedge_compute_mixing(const struct kedge_layout *layout, const struct kedge_blob_at *of_groups,
                         const bool *trained, size_t groups, double eta, const struct kedge_sink *sinks,
                         struct kedge_diag *reterr)
{
    struct kedgei_tensors models = {.count = 0};
    struct mix m = {.models = &models, .trained = trained, .groups = groups, .sinks = sinks};
    double norms[KEDGE_GROUPS_MAX];
    KEDGE_ASSERT(groups >= 1 && groups <= KEDGE_GROUPS_MAX);
    KEDGE_TRY(
        kedgei_tensors_open(layout, KEDGE_DTYPE_F32, of_groups, sizeof *of_groups, groups, &models, reterr));
    int err = mixing_norms(layout, &models, groups, norms);
    if (!err) {
        err = kedge_mixing_init(&m.mixing, norms, trained, groups, eta);
        err = err ? kedge_diag_set(reterr, err, "mixing of %zu groups: %s", groups, kedge_strerror(err))
                  : KEDGE_OK;
    }
    if (!err) {
        err = run_mix(&m, reterr);
    }
    kedgei_tensors_close(&models);
    return err;
}
