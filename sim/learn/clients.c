/* Clients that the data name themselves (sim/partition/clients.h), and data that change at given rounds. */
#include <string.h>

#include "common/base/mem.h"
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

int kedgei_learn_clients_load(struct kedgei_learn_pool *pool, const struct kedge_learn_spec *spec,
                              struct kedge_partition *ret_partition, struct kedge_diag *reterr)
{
    const struct kedge_clients_source source = {.path = spec->images,
                                                .client = spec->client,
                                                .label = spec->label,
                                                .group = spec->group,
                                                .step = spec->step,
                                                .truth = spec->truth};
    struct kedge_clients *c = &pool->clients;
    int err = kedge_clients_load(&source, c, reterr);
    if (err) {
        return err;
    }
    pool->n = pool->train_n = c->n;
    pool->features = c->features;
    pool->classes = c->classes;
    pool->reals = c->x;
    pool->labels = c->labels;
    c->x = NULL;
    c->labels = NULL;
    err = check_steps(spec, c, reterr);
    return err ? err : kedge_clients_deal(c, 0, spec->seed, ret_partition, reterr);
}

int kedgei_learn_steps_init(struct kedgei_learn *l)
{
    uint32_t count = l->spec->steps.count;
    l->steps = kedge_mem_new(count + 1, sizeof *l->steps);
    if (!l->steps) {
        return kedge_diag_set(l->reterr, KEDGE_E_NOMEM, "no memory for %u steps", count);
    }
    for (uint32_t k = 0; k < count; k++) {
        int err = kedge_clients_deal(&l->pool.clients, k + 1, l->spec->seed, &l->steps[k], l->reterr);
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

uint32_t kedgei_learn_steps_most(const struct kedgei_learn *l)
{
    uint32_t most = 0;
    for (uint32_t k = 0; k < l->steps_count; k++) {
        for (uint32_t i = 0; i < l->n; i++) {
            uint32_t n = l->steps[k].sites[i].train_count;
            most = n > most ? n : most;
        }
    }
    return most;
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
