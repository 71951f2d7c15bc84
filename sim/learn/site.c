#include <math.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/base/rng.h"
#include "common/base/try.h"
#include "sim/learn/engine.h"

enum { TURNS = 4, ROOT_SAMPLES = 100 };

static void draw_attackers(struct kedgei_learn *l)
{
    const struct kedge_learn_spec *spec = l->spec;
    uint32_t count =
        spec->attack == KEDGE_LEARN_ATTACK_NONE ? 0 : (uint32_t)lround(spec->attackers * (double)l->n);
    struct kedge_rng rng;
    for (uint32_t i = 0; i < l->n; i++) {
        l->selected[i] = i;
    }
    kedge_rng_init(&rng, spec->job.seed, KEDGE_RNG_LEARN,
                   kedgei_learn_stream(KEDGEI_LEARN_STREAM_ATTACKERS, 0), 0);
    kedge_rng_sample(&rng, l->selected, l->n, count);
    for (uint32_t i = 0; i < count && i < l->n; i++) {
        l->sites[l->selected[i]].attacker = true;
    }
}

/* Dealt out in turn the tenants of many partitions would be the planted kinds of sites: site i has the
 * classes that i modulo 10 says. */
static void draw_tenants(struct kedgei_learn *l)
{
    struct kedge_rng rng;
    for (uint32_t i = 0; i < l->n; i++) {
        l->selected[i] = i;
    }
    kedge_rng_init(&rng, l->spec->job.seed, KEDGE_RNG_LEARN,
                   kedgei_learn_stream(KEDGEI_LEARN_STREAM_TENANTS, 0), 0);
    kedge_rng_sample(&rng, l->selected, l->n, l->n);
    for (uint32_t i = 0; i < l->n; i++) {
        l->sites[l->selected[i]].tenant = i % l->spec->job.tenant_count;
    }
}

static void draw_devices(struct kedgei_learn *l)
{
    const struct kedge_learn_spec *spec = l->spec;
    struct kedge_rng rng;
    double all = 0;
    kedge_rng_init(&rng, spec->job.seed, KEDGE_RNG_LEARN, kedgei_learn_stream(KEDGEI_LEARN_STREAM_DEVICES, 0),
                   0);
    for (uint32_t k = 0; k < spec->device_count; k++) {
        all += spec->devices[k].share;
    }
    for (uint32_t i = 0; i < l->n; i++) {
        double at = kedge_rng_unit(&rng) * all;
        uint32_t k = 0;
        while (k + 1 < spec->device_count && at >= spec->devices[k].share) {
            at -= spec->devices[k++].share;
        }
        l->sites[i].device = k;
    }
}

/* Rows that no site is tested on, into rows; how many there are. */
static uint32_t find_untested(const struct kedgei_learn *l, bool *tested, uint32_t *rows)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < l->n; i++) {
        for (uint32_t k = 0; k < l->sites[i].test_count; k++) {
            tested[l->sites[i].test[k]] = true;
        }
    }
    for (uint32_t r = 0; r < l->pool.n; r++) {
        if (!tested[r]) {
            rows[count++] = r;
        }
    }
    return count;
}

/* What the server itself trains on, for rules that want a root update: some samples of all, of nobody's test.
 */
static int draw_root(struct kedgei_learn *l)
{
    struct kedgei_learn_site *root = &l->sites[l->n];
    struct kedge_rng rng;
    root->group = KEDGE_ROUND_NONE;
    if (!l->rule->needs_root) {
        return KEDGE_OK;
    }
    bool *tested = kedge_mem_new(l->pool.n, sizeof *tested);
    root->rows = root->train = kedge_mem_new(l->pool.n, sizeof *root->rows);
    if (!root->rows || !tested) {
        kedge_mem_free(tested);
        return kedge_diag_set(l->reterr, KEDGE_E_NOMEM, "no memory for root data");
    }
    uint32_t count = find_untested(l, tested, root->rows);
    kedge_mem_free(tested);
    root->train_count = root->train_all = count < ROOT_SAMPLES ? count : ROOT_SAMPLES;
    kedge_rng_init(&rng, l->spec->job.seed, KEDGE_RNG_LEARN, kedgei_learn_stream(KEDGEI_LEARN_STREAM_ROOT, 0),
                   0);
    kedge_rng_sample(&rng, root->rows, count, root->train_count);
    return KEDGE_OK;
}

/* How many kinds of sites there are where the seed plants them. */
static uint32_t planted_groups(const struct kedge_learn_spec *spec)
{
    return spec->planted ? spec->planted : TURNS;
}

int kedgei_learn_sites_init(struct kedgei_learn *l)
{
    l->n = l->partition.sites_count;
    l->sites = kedge_mem_new((size_t)l->n + 1, sizeof *l->sites); /* and the root's */
    l->selected = kedge_mem_new(l->n, sizeof *l->selected);
    l->correct = kedge_mem_new(l->n, sizeof *l->correct);
    l->share = kedge_mem_new(l->n, sizeof *l->share);
    l->plan = kedge_mem_new(l->n, sizeof *l->plan);
    l->chunks = kedge_mem_new(l->n, sizeof *l->chunks);
    if (!l->plan || !l->chunks || !l->sites || !l->selected || !l->correct || !l->share) {
        return kedge_diag_set(l->reterr, KEDGE_E_NOMEM, "no memory for %u sites", l->n);
    }
    for (uint32_t i = 0; i < l->n; i++) {
        const struct kedge_partition_site *p = &l->partition.sites[i];
        l->sites[i] = (struct kedgei_learn_site){
            .train = l->partition.order + p->begin,
            .test = l->partition.order + p->begin + p->train_count,
            .train_count = p->train_count,
            .train_all = p->train_count,
            .test_count = p->test_count,
            .turn = l->spec->partition == KEDGE_LEARN_ROTATED ? i % TURNS : 0,
            .truth = l->pool.clients.truth ? l->pool.clients.truth[i] : i % (planted_groups(l->spec)),
            .group = KEDGE_ROUND_NONE,
        };
    }
    KEDGE_TRY(draw_root(l));
    KEDGE_TRY(kedgei_learn_steps_init(l));
    draw_tenants(l);
    draw_attackers(l);
    draw_devices(l);
    return kedgei_learn_view_init(l);
}

void kedgei_learn_sites_deinit(struct kedgei_learn *l)
{
    for (uint32_t i = 0; i <= l->n && l->sites; i++) {
        kedge_mem_free(l->sites[i].own);
        kedge_mem_free(l->sites[i].control);
        kedge_mem_free(l->sites[i].pretraining);
        kedge_mem_free(l->sites[i].left);
        kedge_mem_free(l->sites[i].rows);
    }
    kedge_mem_free(l->sites);
    kedge_mem_free(l->whole);
    kedge_mem_free(l->selected);
    kedge_mem_free(l->correct);
    kedge_mem_free(l->share);
    kedge_mem_free(l->plan);
    kedge_mem_free(l->chunks);
    kedge_partition_deinit(&l->partition);
    kedgei_learn_steps_deinit(l);
    kedgei_learn_view_deinit(l);
}

static int make(struct kedgei_learn *l, uint32_t site, void **io)
{
    *io = *io ? *io : kedge_mem_new(l->d, 4);
    return *io ? KEDGE_OK
               : kedge_diag_set(l->reterr, KEDGE_E_NOMEM, "no memory for the model of site %u", site);
}

int kedgei_learn_own(struct kedgei_learn *l, uint32_t site)
{
    void *own = l->sites[site].own;
    int err = make(l, site, &own);
    l->sites[site].own = own;
    return err;
}

int kedgei_learn_control(struct kedgei_learn *l, uint32_t site)
{
    void *control = l->sites[site].control;
    int err = make(l, site, &control);
    l->sites[site].control = control;
    return err;
}

/* A vector of whole numbers times the unit of updates onto it; binary64, as jobs have it. */
static void add_units(const struct kedgei_learn *l, const float *base, const int32_t *q, float *ret)
{
    const double unit = 1.0 / (double)(UINT64_C(1) << l->job.scale);
    for (uint64_t i = 0; i < l->d; i++) {
        ret[i] = (float)((double)base[i] + (double)q[i] * unit);
    }
}

/* Its own model or a head, the last model that it trained, or its control variate. */
static int keep_of(struct kedgei_learn *l, uint32_t item)
{
    const struct kedge_local *local = l->job.strategy->local;
    const bool personal = local->has_own_model || local->has_head;
    const uint32_t site = l->items[item].site;
    const bool goes_near = kedge_job_spec_grouped_by(&l->job) == KEDGE_GROUPED_BY_TASK;
    struct kedgei_learn_site *s = &l->sites[site];
    if (local->variate) {
        const int32_t *change = kedgei_learn_vector(l, item, 1);
        for (uint64_t i = 0; i < l->d; i++) { /* within bounds: kedge_variate_change has looked */
            s->control[i] += change[i];
        }
    }
    if (!personal && !goes_near) {
        return KEDGE_OK;
    }
    KEDGE_TRY(kedgei_learn_own(l, site));
    if (personal) {
        memcpy(s->own, kedgei_learn_vector(l, item, !local->sends_nothing), l->d * sizeof *s->own);
    } else {
        add_units(l, l->items[item].base, kedgei_learn_vector(l, item, 0), s->own);
    }
    return KEDGE_OK;
}

int kedgei_learn_keep_own(struct kedgei_learn *l)
{
    for (uint32_t i = 0; i < l->items_count; i++) {
        KEDGE_TRY(kedgei_learn_result(l, i)->err ? KEDGE_OK : keep_of(l, i));
    }
    return KEDGE_OK;
}
