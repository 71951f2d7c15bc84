/* What a site has of a model for itself, as kedge-client keeps it (client/daemon/update/kept.h): a model of
 * its own (Ditto), or the head of a model whose other layers travel (FedPer, FedRep). What a training made of
 * it counts once the update that came of the same training does. */
#include <string.h>

#include "common/base/mem.h"
#include "sim/protocol/impl.h"

static bool has_own(const struct kedgei_protocol *p)
{
    return p->job.strategy->local->has_own_model || kedge_job_spec_has_head(&p->job);
}

int kedgei_protocol_owns_init(struct kedgei_protocol *p)
{
    struct kedgei_learn *l = p->l;
    p->owns = has_own(p) ? kedge_mem_new(p->sites, sizeof *p->owns) : NULL;
    if (!has_own(p)) {
        return KEDGE_OK;
    }
    p->first = kedge_mem_new((size_t)l->d, sizeof *p->first);
    if (!p->owns || !p->first) {
        return kedge_diag_set(p->d, KEDGE_E_NOMEM, "no memory for the models of %u sites", p->sites);
    }
    kedge_model_init(&p->job.model, p->job.seed, p->first);
    for (uint32_t g = 0; g < l->slots;
         g++) { /* a site that has not trained yet is judged by the first head */
        memcpy(kedgei_learn_model(l, g) + l->shared, p->first + l->shared,
               (size_t)(l->d - l->shared) * sizeof *p->first);
    }
    return KEDGE_OK;
}

void kedgei_protocol_owns_deinit(struct kedgei_protocol *p)
{
    for (uint32_t i = 0; p->owns && i < p->sites; i++) {
        kedge_mem_free(p->owns[i].next);
    }
    kedge_mem_free(p->owns);
    kedge_mem_free(p->first);
}

int kedgei_protocol_own_next(const struct kedgei_protocol *p, uint32_t site, const float *values)
{
    const size_t n = (size_t)p->l->d;
    struct kedgei_own *own = &p->owns[site];
    own->next = own->next ? own->next : kedge_mem_new(n, sizeof *own->next);
    if (!own->next) {
        return KEDGE_E_NOMEM;
    }
    memcpy(own->next, values, n * sizeof *values);
    return KEDGE_OK;
}

int kedgei_protocol_own_settle(struct kedgei_protocol *p, const struct kedgei_update *u)
{
    struct kedgei_own *own = p->owns ? &p->owns[u->site] : NULL;
    if (!own || !own->next || !sim_same(&own->by, &u->digest)) {
        return KEDGE_OK;
    }
    int err = kedgei_learn_own(p->l, u->site, NULL);
    if (!err) {
        memcpy(p->l->sites[u->site].own, own->next, (size_t)p->l->d * sizeof *own->next);
    }
    return err;
}

void kedgei_protocol_join_head(const struct kedgei_protocol *p, uint32_t site, float *w)
{
    const struct kedgei_learn *l = p->l;
    if (l->shared < l->d) {
        const float *own = l->sites[site].own ? l->sites[site].own : p->first;
        memcpy(w + l->shared, own + l->shared, (size_t)(l->d - l->shared) * sizeof *w);
    }
}

int kedgei_protocol_train_own(const struct kedgei_protocol *p, uint32_t site, struct kedge_net *net,
                              const struct kedge_dataset *data, const float *base,
                              struct kedge_train_params params)
{
    const struct kedge_job_spec *job = &p->job;
    const double pull = kedge_local_plan(job->strategy->local, &job->options).personal_pull;
    const size_t n = (size_t)p->layout.values_count;
    const float *own = p->l->sites[site].own;
    struct kedge_train_result result;
    float *towards = kedge_mem_new(n, sizeof *towards);
    int err = towards ? KEDGE_OK : KEDGE_E_NOMEM;
    for (size_t i = 0; i < n && !err; i++) {
        towards[i] = (float)(pull * (double)base[i]);
    }
    params.bend = (struct kedge_proximal_term){pull, towards};
    if (!err) {
        memcpy(kedge_net_weights(net), own ? own : base, n * sizeof *base);
        err = kedge_net_train(net, data, &params, &result, NULL);
    }
    kedge_mem_free(towards);
    return err ? err : kedgei_protocol_own_next(p, site, kedge_net_weights(net));
}

int kedgei_protocol_train_phases(const struct kedgei_protocol *p, struct kedge_net *net,
                                 const struct kedge_dataset *data, struct kedge_train_params params,
                                 struct kedge_train_result *ret)
{
    const struct kedgei_learn *l = p->l;
    const struct kedge_train_range shared = {0, l->shared}, head = {l->shared, l->d - l->shared};
    const uint32_t epochs = kedge_local_plan(p->job.strategy->local, &p->job.options).head_epochs;
    struct kedge_train_params first = params;
    struct kedge_train_result one = {.steps = 0};
    first.epochs = epochs;
    first.held = &shared;
    first.held_count = params.held_count = 1;
    params.held = &head;
    params.seed += epochs > 0;
    int err = epochs > 0 ? kedge_net_train(net, data, &first, &one, NULL) : KEDGE_OK;
    err = err ? err : kedge_net_train(net, data, &params, ret, NULL);
    ret->steps += err ? 0 : one.steps;
    return err;
}
