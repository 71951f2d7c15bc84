/* Who of a round's candidates is selected, once more: the seed decides, among what the lists of
 * round-opened say of them.
 *
 * Which sites train is drawn from the job's seed over the candidates in order; so a coordinator that
 * prefers or avoids a site is found. What cannot be found is a candidate that it left out of its list. */
#include "chain/audit/facts/buffer.h"
#include "chain/audit/rounds/replay.h"
#include "common/base/mem.h"
#include "coordinator/core/coord.h"

/* An asynchronous round: *in becomes the candidates that were not at work. Sites still at work keep their
 * places, so only the free places are drawn, among those that are neither at work nor away. */
static void draw_free(const struct kedge_job_spec *spec, uint32_t round, struct kedgei_inputs *in,
                      uint32_t *scratch, bool *ret_selected)
{
    uint32_t places = 0;
    size_t count = 0;
    for (size_t i = 0; i < in->count; i++) {
        enum kedge_input_use use = in->items[i].row.use;
        places += use == KEDGE_USE_WORKING;
        if (use != KEDGE_USE_WORKING && use != KEDGE_USE_AWAY) {
            in->items[count++] = in->items[i];
        }
    }
    in->count = count;
    uint32_t draws = kedge_coord_draws(spec->sites_per_round, places, (uint32_t)count);
    if (draws > 0) { /* 0 would be all */
        kedge_coord_select(spec->seed, round, (uint32_t)count, draws, scratch, ret_selected);
    }
}

static void draw_charged(const struct kedge_job_spec *spec, uint32_t round, const struct kedgei_inputs *in,
                         uint32_t *scratch, bool *ret_selected)
{
    /* The third part of the scratch, which only rounds that make groups use, holds a byte for each. */
    uint8_t *weights = (uint8_t *)(scratch + 2 * in->count);
    for (size_t i = 0; i < in->count; i++) {
        weights[i] = (uint8_t)(in->items[i].row.weight & UINT8_MAX); /* verify says where one is none */
    }
    kedge_coord_select_charged(spec->seed, round, weights, (uint32_t)in->count, spec->sites_per_round,
                               scratch, ret_selected);
}

/* The root site's number among the candidates; their count: there is none, or it is missing (verify says so).
 */
static uint32_t root_of(const struct kedge_job_spec *spec, const struct kedgei_inputs *in)
{
    uint32_t i = 0;
    while (i < in->count && !kedge_job_spec_is_root(spec, in->items[i].place, &in->items[i].row.site)) {
        i++;
    }
    return i;
}

/* The draw depends on the kind of job, in the same order of questions as in the coordinator: groups are
 * made by quota, asynchronous jobs fill places, a root site is always in, charge weighs. */
void kedgei_replay_selection(const struct kedgei_replay *r, struct kedgei_decision *d,
                             struct kedgei_findings *f)
{
    const struct kedge_job_spec *spec = &d->job->spec;
    struct kedge_diag diag = {.err = KEDGE_OK};
    struct kedgei_inputs in = {.items = NULL};
    uint64_t at = d->round->opened->index;
    int err = kedgei_candidates_of(r->a, d->job, d->round, &in);
    uint32_t *scratch = kedge_mem_new(3 * in.count + 1, sizeof *scratch);
    uint32_t *tenant = scratch ? scratch + 2 * in.count : NULL;
    bool *selected = kedge_mem_new(in.count + 1, sizeof *selected);
    if (!err && (!scratch || !selected)) {
        err = KEDGE_E_NOMEM;
    }
    if (err) {
        kedgei_replay_failed(r, d, at, "candidates", err, &diag, f);
    } else if (d->round->pretrain) {
        for (size_t i = 0; i < in.count; i++) {
            tenant[i] = in.items[i].place;
        }
        kedge_coord_select_by_quota(spec->seed, d->round->number, tenant, (uint32_t)in.count,
                                    spec->pretrain_sites, scratch, selected);
    } else if (kedgei_job_is_asynchronous(d->job)) {
        draw_free(spec, d->round->number, &in, scratch, selected);
    } else if (root_of(spec, &in) < in.count) {
        kedge_coord_select_root(spec->seed, d->round->number, (uint32_t)in.count, root_of(spec, &in),
                                spec->sites_per_round, scratch, selected);
    } else if (spec->by_charge) {
        draw_charged(spec, d->round->number, &in, scratch, selected);
    } else {
        kedge_coord_select(spec->seed, d->round->number, (uint32_t)in.count, spec->sites_per_round, scratch,
                           selected);
    }
    for (size_t i = 0; i < in.count && !err; i++) {
        kedgei_replay_add_number(d, selected[i]);
        if (selected[i] != (in.items[i].row.use == KEDGE_USE_SELECTED)) {
            kedgei_error(
                f, KEDGE_AUDIT_REPLAY_SELECTION, &r->a->main, at,
                "job \"%s\", round %u: site \"%s\" of \"%s\" was%s selected, the seed says otherwise",
                d->job->id.s, d->round->number, in.items[i].row.site.s, spec->tenants[in.items[i].place].s,
                selected[i] ? " not" : "");
        }
    }
    kedgei_inputs_deinit(&in);
    kedge_mem_free(scratch);
    kedge_mem_free(selected);
}
