/* Blends: the weighted mean of whole models, where edges meet, groups join or are made anew.
 *
 * What edges weigh is exact whole numbers until the mean itself. Their sum is bounded before it is capped,
 * since kedge_share_cap multiplies them by a common factor. */
#include "round/meet.h"

#include "aggregation/share_cap.h"
#include "common/base/mem.h"
#include "common/base/try.h"
#include "round/compute_impl.h"
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

static int write_blend(const struct kedgei_tensors *models, const uint64_t *weight, float *tile,
                       struct kedge_sink sink)
{
    const uint64_t values = models->layout->values_count;
    KEDGE_TRY(kedgei_write_header(models->layout, KEDGE_DTYPE_F32, sink));
    for (size_t first = 0, n; first < values; first += n) {
        n = values - first < TILE ? (size_t)(values - first) : TILE;
        KEDGE_TRY(
            kedge_blend_tile((const float *const *)models->values, weight, models->count, first, n, tile));
        KEDGE_TRY(sink.write(sink.arg, kedge_view_of(tile, n * sizeof *tile)));
    }
    return KEDGE_OK;
}

int kedge_compute_blend(const struct kedge_layout *layout, const struct kedge_blob_at *of,
                        const uint64_t *weight, size_t edges, struct kedge_sink sink,
                        struct kedge_diag *reterr)
{
    struct kedgei_tensors models = {.count = 0};
    float *tile = kedge_mem_new(TILE, sizeof *tile);
    int err = tile ? kedgei_tensors_open(layout, KEDGE_DTYPE_F32, of, sizeof *of, edges, &models, reterr)
                   : kedge_diag_set(reterr, KEDGE_E_NOMEM, "out of memory for a model");
    if (!err) {
        err = write_blend(&models, weight, tile, sink);
    }
    kedgei_tensors_close(&models);
    kedge_mem_free(tile);
    return err;
}
