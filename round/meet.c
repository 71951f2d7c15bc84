/* Blends: the weighted mean of whole models, where edges meet, groups join or are made anew.
 *
 * What edges weigh is exact whole numbers until the mean itself. Their sum is bounded before it is capped,
 * since kedge_share_cap multiplies them by a common factor. */
#include "round/meet.h"

#include "aggregation/share_cap.h"
#include "common/base/try.h"
#include "round/compute_impl.h"
#include "round/shards.h"
#include "strategy/blend.h"

enum { TILE = KEDGEI_TENSORS_TILE_MAX };

int kedge_compute_meeting_weights(const struct kedge_job_spec *spec, const uint64_t *since, size_t edges,
                                  uint64_t *ret_weight)
{
    struct kedge_share_input inputs[KEDGE_GROUPS_MAX];
    size_t n = 0;
    uint64_t sum = 0;
    for (size_t g = 0; g < edges && g < KEDGE_GROUPS_MAX; g++) {
        if (since[g] > KEDGE_SHARE_WEIGHT_MAX - sum) {
            return KEDGE_E_OVERFLOW;
        }
        sum += since[g];
        if (since[g] > 0) {
            inputs[n++] = (struct kedge_share_input){.tenant = (uint32_t)g, .weight = since[g]};
        }
    }
    if (n == 0) {
        return KEDGE_E_ARG;
    }
    int err = spec->tenant_share_max < KEDGE_SHARE_ONE ? kedge_share_cap(inputs, n, spec->tenant_share_max)
                                                       : KEDGE_OK;
    for (size_t g = 0, at = 0; g < edges && !err; g++) {
        ret_weight[g] = since[g] > 0 ? inputs[at++].weight : 0;
    }
    return err;
}

struct blend {
    const struct kedgei_tensors *models;
    const uint64_t *weight;
    struct kedge_sink sink;
};

static size_t tile_len(void *arg, uint64_t first)
{
    const uint64_t left = ((const struct blend *)arg)->models->layout->values_count - first;
    return left < TILE ? (size_t)left : TILE;
}

static int blend_tile(void *arg, unsigned thread, uint64_t first, size_t n, void *out, struct kedge_diag *d)
{
    const struct blend *b = arg;
    (void)thread;
    (void)d;
    return kedge_blend_tile((const float *const *)b->models->values, b->weight, b->models->count,
                            (size_t)first, n, out);
}

static int put_tile(void *arg, uint64_t first, size_t n, const void *out)
{
    const struct blend *b = arg;
    (void)first;
    return b->sink.write(b->sink.arg, kedge_view_of(out, n * sizeof(float)));
}

int kedge_compute_blend(const struct kedge_layout *layout, const struct kedge_blob_at *of,
                        const uint64_t *weight, size_t edges, struct kedge_sink sink,
                        struct kedge_diag *reterr)
{
    struct kedgei_tensors models = {.count = 0};
    struct blend b = {.models = &models, .weight = weight, .sink = sink};
    const struct kedgei_tiles tiles = {.arg = &b,
                                       .values = layout->values_count,
                                       .tile_bytes = TILE * sizeof(float),
                                       .length = tile_len,
                                       .make = blend_tile,
                                       .take = put_tile};
    KEDGE_TRY(kedgei_tensors_open(layout, KEDGE_DTYPE_F32, of, sizeof *of, edges, &models, reterr));
    int err = kedgei_write_header(layout, KEDGE_DTYPE_F32, sink);
    if (!err) {
        err = kedgei_shards_run(&sink.cut, kedgei_shards_threads(&sink.cut, layout->values_count), &tiles,
                                reterr);
    }
    kedgei_tensors_close(&models);
    return err;
}
