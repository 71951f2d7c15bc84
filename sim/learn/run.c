#include <math.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/base/try.h"
#include "sim/learn/close.h"
#include "sim/learn/flight.h"
#include "sim/learn/state.h"
#include "sim/learn/together.h"

static void learn_deinit(struct kedgei_learn *l)
{
    kedgei_learn_flight_deinit(l);
    kedgei_learn_lanes_deinit(l);
    kedgei_learn_together_deinit(l);
    kedgei_learn_sites_deinit(l);
    kedgei_trace_deinit(&l->trace);
    kedgei_learn_pool_deinit(&l->pool);
    kedge_mem_free(l->models);
    kedge_mem_free(l->w0);
    kedge_mem_free(l->aux);
    kedge_mem_free(l->next);
    kedge_mem_free(l->control);
    kedgei_learn_close_deinit(l);
    kedge_mem_free(l->items);
    kedge_mem_free(l->results);
    kedge_mem_free(l->item_order);
    kedge_mem_free(l->order);
    kedge_mem_free(l->grouped);
}

/* Where the data say how many sites there are, only now is it known whether so many can be asked. */
static int check_sites(struct kedgei_learn *l)
{
    const struct kedge_learn_spec *spec = l->spec;
    uint32_t n = l->partition.sites_count;
    if (spec->job.sites_per_round > n && !spec->job.strategy->everybody) {
        return kedge_diag_set(l->reterr, KEDGE_E_FORMAT,
                              "\"sites_per_round\": %u, but the data have %u sites",
                              spec->job.sites_per_round, n);
    }
    if (spec->job.tenant_count > n) {
        return kedge_diag_set(l->reterr, KEDGE_E_FORMAT, "\"tenants\": %u, but the data have %u sites",
                              spec->job.tenant_count, n);
    }
    return KEDGE_OK;
}

static int check_model(struct kedgei_learn *l)
{
    uint32_t inputs = kedge_model_inputs(&l->spec->job.model),
             outputs = kedge_model_outputs(&l->spec->job.model);
    if (inputs != l->pool.features || outputs < l->pool.classes) {
        return kedge_diag_set(
            l->reterr, KEDGE_E_SHAPE,
            "model: %u inputs and %u outputs, but the samples have %u features and %u classes", inputs,
            outputs, l->pool.features, l->pool.classes);
    }
    return KEDGE_OK;
}

/* Samples of an evaluation in one pass: as many as the products of small batches are made for. */
static uint32_t chunk_of(const struct kedge_model_spec *model)
{
    struct kedge_model_shape shapes[KEDGE_LAYERS_MAX + 1];
    uint64_t widest = 1;
    kedge_model_shapes(model, shapes);
    for (uint32_t i = 0; i < model->count; i++) {
        uint64_t width = kedge_model_shape_width(&shapes[i + 1]);
        widest = width > widest ? width : widest;
    }
    uint32_t chunk = (uint32_t)(12288 / widest);
    return chunk < 1 ? 1 : chunk > KEDGEI_LEARN_CHUNK ? KEDGEI_LEARN_CHUNK : chunk;
}

/* The order is that of what needs what: sites need the partition, the close needs names of sites, groups and
 * flights need the close. */
static int learn_init(struct kedgei_learn *l)
{
    const struct kedge_learn_spec *spec = l->spec;
    KEDGE_TRY(kedgei_learn_pool_load(&l->pool, spec, &l->partition, l->reterr));
    KEDGE_TRY(check_model(l));
    KEDGE_TRY(check_sites(l));
    l->d = kedge_model_values_count(&spec->job.model);
    KEDGE_TRY(kedgei_learn_head_init(l));
    l->chunk = chunk_of(&spec->job.model);
    l->rule = spec->job.rule;
    l->has_truth = spec->partition == KEDGE_LEARN_ROTATED || spec->planted || l->pool.clients.truth != NULL;
    const struct kedge_local *local = spec->job.strategy->local;
    bool two = local->variate || local->has_head || (local->has_own_model && !local->sends_nothing);
    l->result_size = (sizeof(struct kedgei_learn_result) + (two ? 2 : 1) * l->d * 4 + 7) / 8 * 8;
    kedge_train_set_threads(1);
    KEDGE_TRY(kedgei_learn_sites_init(l));
    if (spec->trace[0]) {
        KEDGE_TRY(kedgei_trace_load(spec->trace, l->n, spec->device_count, spec->trace_period_s, &l->trace,
                                    l->reterr));
        l->has_trace = true;
    }
    l->order = kedge_mem_new(l->n ? l->n : 1, sizeof *l->order);
    if (!l->order) {
        return kedge_diag_set(l->reterr, KEDGE_E_NOMEM, "no memory for %u sites", l->n);
    }
    KEDGE_TRY(kedgei_learn_lanes_init(l));
    kedgei_learn_together_init(l);
    KEDGE_TRY(kedgei_learn_close_init(l));
    KEDGE_TRY(kedgei_learn_groups_init(l));
    KEDGE_TRY(kedgei_learn_grouped_init(l));
    return kedgei_learn_flight_init(l);
}

/* A round is told before it is saved: who stops there has seen the last round that counts. */
int kedgei_learn_rounds(struct kedgei_learn *l)
{
    const struct kedge_learn_host *host = l->host;
    uint32_t first = 0;
    if (host->resume) {
        KEDGE_TRY(kedgei_learn_resume(l, &first));
    } else {
        kedgei_learn_release(l, 0);
        KEDGE_TRY(kedgei_learn_groups_start(l));
    }
    for (uint32_t round = first; round < l->spec->job.rounds; round++) {
        KEDGE_TRY(kedgei_learn_round(l, round));
        const bool is_last = kedgei_learn_is_last(l);
        KEDGE_TRY(kedgei_learn_look(l, is_last));
        if (host->on_round && !host->on_round(host->arg, &l->line)) {
            break;
        }
        if (host->save && host->save_every > 0 && (round + 1) % host->save_every == 0) {
            KEDGE_TRY(kedgei_learn_save(l, round + 1));
        }
        if (is_last) {
            break;
        }
    }
    return KEDGE_OK;
}

int kedgei_learn_new(const struct kedge_learn_spec *spec, const struct kedge_learn_host *host,
                     struct kedge_diag *reterr, struct kedgei_learn **ret)
{
    KEDGE_TRY(kedge_learn_spec_check(spec, reterr));
    struct kedgei_learn *l = kedge_mem_new(1, sizeof *l);
    if (!l) {
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "no memory for a simulation");
    }
    l->spec = spec;
    l->host = host;
    l->reterr = reterr;
    int err = learn_init(l);
    if (err) {
        kedgei_learn_free(l);
        return err;
    }
    *ret = l;
    return KEDGE_OK;
}

void kedgei_learn_free(struct kedgei_learn *l)
{
    if (l) {
        learn_deinit(l);
        kedge_mem_free(l);
    }
}

int kedge_learn_run(const struct kedge_learn_spec *spec, const struct kedge_learn_host *host,
                    struct kedge_diag *reterr)
{
    if (spec->through == KEDGE_LEARN_THROUGH_PROTOCOL) {
        return kedge_diag_set(reterr, KEDGE_E_ARG, "through: kedge sim alone goes through \"protocol\"");
    }
    if (kedge_job_spec_tries(&spec->job)) {
        return kedge_diag_set(reterr, KEDGE_E_ARG,
                              "\"trial_every\": kedge sim alone tries groups, through the protocol");
    }
    struct kedgei_learn *l = NULL;
    KEDGE_TRY(kedgei_learn_new(spec, host, reterr, &l));
    int err = kedgei_learn_rounds(l);
    kedgei_learn_free(l);
    return err;
}
