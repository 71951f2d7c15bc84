/* CFL's cut of one group: the test by norms, and the parts (grouping/split.h).
 *
 * The Gram matrix bounds how many updates can decide. Where a round has more, the first ones in site order
 * are cut, and each of the others goes with the part whose mean it is nearer to, in two passes over the
 * files: kedge_nearest wants the largest values of all vectors before it scales them. */
#include "round/split.h"

#include <string.h>

#include "aggregation/gram.h"
#include "common/base/mem.h"
#include "common/base/try.h"
#include "grouping/flexcfl.h"
#include "grouping/split.h"
#include "round/compute_impl.h"

enum { TILE = KEDGEI_TENSORS_TILE_MAX };

bool kedge_compute_split_is_open(const struct kedge_job_spec *spec, uint32_t round)
{
    return kedge_job_spec_grouped_by(spec) == KEDGE_GROUPED_BY_CUT
           && (double)round >= spec->options.split_after;
}

/* The two parts of the updates that decide, and where each of the others is nearer. */
struct places {
    struct kedgei_tensors t;
    size_t known;
    uint32_t *part;           /* of all */
    struct kedge_nearest *to; /* of the others */
    const int32_t **members;  /* room for those that decide */
    int32_t *mean[2];         /* of a tile */
};

/* The means of both parts, of the tile that was sought. They are made anew in each pass, tile by tile: kept
 * whole they would cost the memory of two models. */
static int mean_tile(struct places *p, size_t n)
{
    int err = KEDGE_OK;
    for (uint32_t of = 0; of < 2 && !err; of++) {
        size_t count = 0;
        for (size_t i = 0; i < p->known; i++) {
            if (p->part[i] == of) {
                p->members[count++] = p->t.tile[i];
            }
        }
        err = kedge_direction_tile(p->members, count, 0, n, p->mean[of]);
    }
    return err;
}

typedef void pass_fn(struct kedge_nearest *n, const int32_t *update, const int32_t *const *directions,
                     size_t first, size_t len);

static int pass_over(struct places *p, size_t count, pass_fn *pass, struct kedge_diag *d)
{
    const int32_t *const means[2] = {p->mean[0], p->mean[1]};
    for (size_t first = 0, n; first < p->t.layout->values_count; first += n) {
        n = kedgei_tensors_tile(&p->t, first);
        KEDGE_TRY(kedgei_tensors_seek(&p->t, 0, p->known, first, n, d));
        KEDGE_TRY(mean_tile(p, n));
        for (size_t i = p->known; i < count; i++) {
            KEDGE_TRY(kedgei_tensors_seek(&p->t, i, i + 1, first, n, d));
            pass(&p->to[i - p->known], p->t.tile[i], means, 0, n);
        }
    }
    return KEDGE_OK;
}

/* part[known … count): by the nearer mean; part 0 where the update has no direction. Each of the others is
 * decided by itself, so how many there are changes nothing for the rest. */
static int place_others(const struct kedge_layout *layout, const struct kedge_blob_at *files, size_t known,
                        size_t count, uint32_t *part, struct kedge_diag *d)
{
    struct places p = {
        .known = known,
        .part = part,
        .to = kedge_mem_new(count - known, sizeof *p.to),
        .members = kedge_mem_new(known, sizeof *p.members),
        .mean = {kedge_mem_new(TILE, sizeof *p.mean[0]), kedge_mem_new(TILE, sizeof *p.mean[0])}};
    bool has_memory = p.to && p.members && p.mean[0] && p.mean[1];
    int err = has_memory ? KEDGE_OK : kedge_diag_set(d, KEDGE_E_NOMEM, "out of memory for two parts");
    for (size_t i = 0; i < count - known && !err; i++) {
        p.to[i].groups = 2;
    }
    if (!err) {
        err = kedgei_tensors_open(layout, KEDGE_DTYPE_I32, files, sizeof *files, count, &p.t, d);
    }
    if (!err) {
        err = pass_over(&p, count, kedge_nearest_scan, d);
    }
    if (!err) {
        err = pass_over(&p, count, kedge_nearest_add, d);
    }
    for (size_t i = known; i < count && !err; i++) {
        if (kedge_nearest_end(&p.to[i - known], &part[i], NULL) != KEDGE_OK) {
            part[i] = 0;
        }
    }
    kedgei_tensors_close(&p.t);
    kedge_mem_free(p.to);
    kedge_mem_free(p.members);
    kedge_mem_free(p.mean[0]);
    kedge_mem_free(p.mean[1]);
    return err;
}

int kedge_compute_split(const struct kedge_layout *layout, const struct kedge_job_spec *spec,
                        const struct kedge_blob_at *files, size_t count, uint32_t *part, bool *ret_cut,
                        struct kedge_diag *reterr)
{
    const struct kedge_strategy_options *o = &spec->options;
    const size_t known = count < KEDGE_GRAM_VECTORS_MAX ? count : KEDGE_GRAM_VECTORS_MAX;
    uint32_t *maxima = NULL;
    int64_t *gram = NULL;
    double mean = 0, most = 0;
    *ret_cut = false;
    for (size_t i = 0; i < count; i++) {
        part[i] = 0;
    }
    if (count < 2) {
        return KEDGE_OK; /* nothing to cut, nor to measure */
    }
    int err = kedgei_gram_of_files(layout, files, known, &gram, &maxima, reterr);
    if (!err) {
        err = kedge_split_norms(gram, maxima, known, spec->scale, &mean, &most);
    }
    bool is_due = !err && kedge_split_due(mean, most, o->split_mean, o->split_max, count);
    err = is_due ? kedge_split(gram, maxima, known, part, NULL) : err;
    *ret_cut = is_due && !err;
    err = err == KEDGE_E_NO_DIRECTION ? KEDGE_OK : err; /* nothing to cut by */
    if (*ret_cut && known < count) {
        err = place_others(layout, files, known, count, part, reterr);
    }
    *ret_cut = *ret_cut && !err;
    kedge_mem_free(gram);
    kedge_mem_free(maxima);
    return err && reterr && !reterr->text[0]
               ? kedge_diag_set(reterr, err, "cutting %zu updates: %s", count, kedge_strerror(err))
               : err;
}
