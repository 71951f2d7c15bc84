/* Clients that the data name themselves (sim/partition/clients.h), and data that change at given rounds. */
#include <string.h>

#include "client/train/standardize.h"
#include "common/base/mem.h"
#include "common/base/try.h"
#include "common/tensor/dataset.h"
#include "sim/learn/engine.h"

static int check_steps(const struct kedge_learn_spec *spec, const struct kedge_clients *c,
                       struct kedge_diag *reterr)
{
    if (c->steps == spec->steps.count + 1) {
        return KEDGE_OK;
    }
    return kedge_diag_set(
        reterr, KEDGE_E_FORMAT,
        "\"steps\": %u rounds, but the data have %u steps after the first: name the round in which "
        "each begins",
        spec->steps.count, c->steps - 1);
}

/* A client's training samples, copied. */
static int pick(const struct kedge_clients *c, const struct kedge_partition *p, uint32_t site,
                struct kedge_dataset *ret)
{
    const struct kedge_dataset all = {
        .n = c->n, .features = c->features, .labels = c->labels, .reals = c->x, .scale = 1};
    uint32_t n;
    const uint32_t *rows = kedge_partition_train(p, site, &n);
    return kedge_dataset_pick(&all, rows, n, ret);
}

/* One of a job's two rounds that find scales: every site measures what is next and puts it into its copy of
 * the model's tensors, which are averaged by samples (client/train/standardize.h). */
static int find_scales(const struct kedge_clients *c, const struct kedge_partition *p, float *scales,
                       double *sums, float *own, double *found, struct kedge_diag *reterr)
{
    uint64_t count = kedge_scales_count(c->features);
    double samples = 0;
    memset(sums, 0, count * sizeof *sums);
    for (uint32_t u = 0; u < p->sites_count; u++) {
        struct kedge_dataset train = {.n = 0}, none = {.n = 0, .features = c->features};
        uint32_t bad;
        int err = pick(c, p, u, &train);
        err = err ? kedge_diag_set(reterr, err, "no memory for its samples")
                  : kedge_standardize_data(scales, c->features, &train, &none, found, reterr);
        double n = (double)train.n;
        kedge_dataset_deinit(&train);
        memcpy(own, scales, count * sizeof *own);
        if (!err && kedge_scales_advance(own, c->features, found, &bad) != KEDGE_OK) {
            err = kedge_diag_set(reterr, KEDGE_E_FORMAT,
                                 "feature %u: its values are too large to be standardized", bad + 1);
        }
        if (err) {
            return kedge_diag_wrap(reterr, err, "client \"%.60s\"", c->names[u]);
        }
        for (uint64_t k = 0; k < count; k++) {
            sums[k] += n * (double)own[k];
        }
        samples += n;
    }
    for (uint64_t k = 0; k < count; k++) {
        scales[k] = (float)(sums[k] / samples);
    }
    return KEDGE_OK;
}

/* All samples by the mean and deviation over the training samples of all clients. */
static int standardize_together(struct kedge_clients *c, const struct kedge_partition *p,
                                struct kedge_diag *reterr)
{
    uint64_t count = kedge_scales_count(c->features);
    float *scales KEDGE_CLEANUP(kedge_mem_release) = kedge_mem_new(count, 2 * sizeof *scales);
    double *sums KEDGE_CLEANUP(kedge_mem_release) =
        kedge_mem_new(count + 2 * (uint64_t)c->features, sizeof *sums);
    KEDGE_TRY(scales && sums ? KEDGE_OK
                             : kedge_diag_set(reterr, KEDGE_E_NOMEM, "no memory for scales of %u features",
                                              c->features));
    for (int stage = 0; stage < KEDGE_SCALES_STAGES; stage++) {
        KEDGE_TRY(find_scales(c, p, scales, sums, scales + count, sums + count, reterr));
    }
    double *means = sums + count, *deviations = means + c->features;
    for (uint32_t f = 0; f < c->features; f++) {
        kedge_scales_get(scales, c->features, f, &means[f], &deviations[f]);
    }
    struct kedge_dataset all = {
        .n = c->n, .features = c->features, .reals = c->x, .scale = 1, .storage = c->x};
    return kedge_dataset_scale(&all, means, deviations, reterr);
}

/* Missing values and scales, once it is known who trains on what. */
static int prepare(struct kedge_clients *c, const struct kedge_learn_spec *spec,
                   const struct kedge_partition *p, struct kedge_diag *reterr)
{
    int err = kedge_clients_prepare(c, p, spec->missing == KEDGE_CSV_MISSING_MEAN,
                                    spec->standardize == KEDGE_LEARN_STANDARDIZE_LOCAL, reterr);
    return err || spec->standardize != KEDGE_LEARN_STANDARDIZE_FEDERATED ? err
                                                                         : standardize_together(c, p, reterr);
}

int kedgei_learn_clients_load(struct kedgei_learn_pool *pool, const struct kedge_learn_spec *spec,
                              struct kedge_partition *ret_partition, struct kedge_diag *reterr)
{
    const struct kedge_clients_source source = {.path = spec->images,
                                                .client = spec->client,
                                                .label = spec->label,
                                                .group = spec->group,
                                                .step = spec->step,
                                                .truth = spec->truth,
                                                .missing = spec->missing};
    struct kedge_clients *c = &pool->clients;
    struct kedge_partition partition;
    KEDGE_TRY(kedge_clients_load(&source, c, reterr));
    KEDGE_TRY(check_steps(spec, c, reterr));
    KEDGE_TRY(kedge_clients_deal(c, 0, spec->job.seed, &partition, reterr));
    int err = prepare(c, spec, &partition, reterr);
    if (err) {
        kedge_partition_deinit(&partition);
        return err;
    }
    pool->n = pool->train_n = c->n;
    pool->features = c->features;
    pool->classes = c->classes;
    pool->reals = c->x;
    pool->labels = c->labels;
    c->x = NULL;
    c->labels = NULL;
    *ret_partition = partition;
    return KEDGE_OK;
}

int kedgei_learn_steps_init(struct kedgei_learn *l)
{
    uint32_t count = l->spec->steps.count;
    l->steps = kedge_mem_new(count + 1, sizeof *l->steps);
    if (!l->steps) {
        return kedge_diag_set(l->reterr, KEDGE_E_NOMEM, "no memory for %u steps", count);
    }
    for (uint32_t k = 0; k < count; k++) {
        int err = kedge_clients_deal(&l->pool.clients, k + 1, l->spec->job.seed, &l->steps[k], l->reterr);
        if (err) {
            return err;
        }
        l->steps_count++;
    }
    return KEDGE_OK;
}

void kedgei_learn_steps_deinit(struct kedgei_learn *l)
{
    for (uint32_t k = 0; k < l->steps_count; k++) {
        kedge_partition_deinit(&l->steps[k]);
    }
    kedge_mem_free(l->steps);
}

/* A part that the step does not have stays as it is. */
static void take_step(struct kedgei_learn *l, const struct kedge_partition *step)
{
    for (uint32_t i = 0; i < l->n; i++) {
        const struct kedge_partition_site *p = &step->sites[i];
        struct kedgei_learn_site *s = &l->sites[i];
        if (p->train_count > 0) {
            s->train = step->order + p->begin;
            s->train_count = s->train_all = p->train_count;
        }
        if (p->test_count > 0) {
            s->test = step->order + p->begin + p->train_count;
            s->test_count = p->test_count;
        }
    }
}

void kedgei_learn_step(struct kedgei_learn *l, uint32_t round)
{
    for (uint32_t k = 0; k < l->steps_count; k++) {
        if (l->spec->steps.at[k] == round) {
            take_step(l, &l->steps[k]);
        }
    }
}
