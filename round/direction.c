/* The direction of a group, by tiles in three passes: how large the updates are, how long, and their mean. */
#include <math.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/base/try.h"
#include "grouping/direction.h"
#include "grouping/quota.h"
#include "round/compute_impl.h"

enum { TILE = KEDGEI_TENSORS_TILE_MAX, HELD = KEDGEI_TENSORS_HELD_MAX };

/* The caller's tables, an item for each update, zeroed. */
struct sizes {
    uint32_t *maxima;
    int64_t *square; /* squared length of the scaled update (gram.h) */
    uint64_t *weight;
    int16_t *scratch; /* of a tile */
};

/* Two passes: the largest values first, for the length is that of the update after it was scaled by them,
 * as in a Gram matrix. Both are exact integers, so no order of tiles changes a weight. */
static int measure(struct kedgei_tensors *t, size_t sign_first, const struct sizes *s, struct kedge_diag *d)
{
    int err = KEDGE_OK;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t first = sign_first, n; first < t->layout->values_count && !err; first += n) {
            n = kedgei_tensors_tile(t, first);
            err = kedgei_tensors_seek(t, 0, t->count, first, n, d);
            for (size_t i = 0; i < t->count && !err; i++) {
                if (pass == 0) {
                    s->maxima[i] = kedge_max_abs(t->tile[i], n, s->maxima[i]);
                } else if (s->maxima[i] > 0) {
                    kedge_scale12(t->tile[i], n, s->maxima[i], s->scratch);
                    s->square[i] += kedge_dot12(s->scratch, s->scratch, n);
                }
            }
        }
    }
    return err;
}

/* Zeros in front of what sites are grouped by, so that cosines do not see it. Weights divide each update by
 * its length (kedge_quota_direction): otherwise the site with the longest update would decide, and length
 * is what a hostile site chooses freely. */
static int write_direction(struct kedgei_tensors *t, size_t sign_first, const struct sizes *s, int32_t *tile,
                           struct kedge_sink sink, struct kedge_diag *d)
{
    KEDGE_TRY(kedgei_write_header(t->layout, KEDGE_DTYPE_I32, sink));
    memset(tile, 0, TILE * sizeof *tile);
    for (size_t first = 0, n; first < sign_first; first += n) {
        n = sign_first - first < TILE ? sign_first - first : TILE;
        KEDGE_TRY(sink.write(sink.arg, kedge_view_of(tile, n * sizeof *tile)));
    }
    for (size_t first = sign_first, n; first < t->layout->values_count; first += n) {
        n = kedgei_tensors_tile(t, first);
        KEDGE_TRY(kedgei_tensors_seek(t, 0, t->count, first, n, d));
        KEDGE_TRY(kedge_direction_unit_tile((const int32_t *const *)t->tile, s->maxima, s->weight, t->count,
                                            0, n, tile));
        KEDGE_TRY(sink.write(sink.arg, kedge_view_of(tile, n * sizeof *tile)));
    }
    return KEDGE_OK;
}

/* What each update weighs: s->weight. */
static int find_weights(struct kedgei_tensors *updates, const struct kedge_compute_sites *members,
                        const struct kedge_job_spec *spec, size_t sign_first, const struct sizes *s,
                        struct kedge_diag *d)
{
    const uint32_t share = spec->tenant_share_max < KEDGE_QUOTA_SHARE_MAX ? (uint32_t)spec->tenant_share_max
                                                                          : KEDGE_QUOTA_SHARE_MAX;
    if (updates->sealed_count > HELD) {
        return kedge_diag_set(d, KEDGE_E_ARG, "a direction of %zu updates, at most %d", updates->count, HELD);
    }
    KEDGE_TRY(measure(updates, sign_first, s, d));
    int err = kedge_quota_direction(members->tenant, s->square, updates->count, share, s->weight);
    return err ? kedge_diag_set(d, err, "direction of %zu updates: %s", updates->count, kedge_strerror(err))
               : KEDGE_OK;
}

int kedge_compute_direction(const struct kedge_layout *layout, const struct kedge_compute_sites *members,
                            const struct kedge_job_spec *spec, struct kedge_sink sink,
                            struct kedge_diag *reterr)
{
    const size_t count = members->count, sign_first = (size_t)kedge_job_spec_sign_first(spec, layout);
    struct kedgei_tensors updates = {.count = 0};
    struct sizes s = {.maxima = kedge_mem_new(count, sizeof *s.maxima),
                      .square = kedge_mem_new(count, sizeof *s.square),
                      .weight = kedge_mem_new(count, sizeof *s.weight),
                      .scratch = kedge_mem_new(TILE, sizeof *s.scratch)};
    int32_t *tile = kedge_mem_new(TILE, sizeof *tile);
    bool has_memory = s.maxima && s.square && s.weight && s.scratch && tile;
    int err = has_memory ? KEDGE_OK : kedge_diag_set(reterr, KEDGE_E_NOMEM, "out of memory for a direction");
    if (!err) {
        err = kedgei_tensors_open(layout, KEDGE_DTYPE_I32, members->files, sizeof *members->files, count,
                                  &updates, reterr);
    }
    if (!err) {
        err = find_weights(&updates, members, spec, sign_first, &s, reterr);
    }
    if (!err) {
        err = write_direction(&updates, sign_first, &s, tile, sink, reterr);
    }
    kedgei_tensors_close(&updates);
    kedge_mem_free(s.maxima);
    kedge_mem_free(s.square);
    kedge_mem_free(s.weight);
    kedge_mem_free(s.scratch);
    kedge_mem_free(tile);
    return err;
}

/* A group that is made of zero updates alone is there all the same and must have a direction in the record:
 * the zero vector, written as a file like any other. */
int kedge_compute_made_direction(const struct kedge_layout *layout, const struct kedge_compute_sites *members,
                                 const struct kedge_job_spec *spec, struct kedge_sink sink,
                                 struct kedge_diag *reterr)
{
    int err = kedge_compute_direction(layout, members, spec, sink, reterr);
    if (err != KEDGE_E_NO_DIRECTION) {
        return err;
    }
    int32_t *tile = kedge_mem_new(TILE, sizeof *tile);
    const struct sizes no_sizes = {.maxima = NULL};
    struct kedgei_tensors none = {.layout = layout};
    err = tile ? write_direction(&none, (size_t)layout->values_count, &no_sizes, tile, sink, reterr)
               : kedge_diag_set(reterr, KEDGE_E_NOMEM, "out of memory for a direction");
    kedge_mem_free(tile);
    return err;
}
