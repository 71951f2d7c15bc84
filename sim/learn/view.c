/* What others may see of the sites after a round: who is in which group, how its model does there, and the
 * groups' models. */
#include <math.h>

#include "common/base/mem.h"
#include "sim/learn/engine.h"

int kedgei_learn_view_init(struct kedgei_learn *l)
{
    struct kedgei_learn_seen *v = &l->seen;
    *v = (struct kedgei_learn_seen){.group = kedge_mem_new(l->n, sizeof *v->group),
                                    .tenant = kedge_mem_new(l->n, sizeof *v->tenant),
                                    .truth = kedge_mem_new(l->n, sizeof *v->truth),
                                    .train = kedge_mem_new(l->n, sizeof *v->train),
                                    .test = kedge_mem_new(l->n, sizeof *v->test),
                                    .accuracy = kedge_mem_new(l->n, sizeof *v->accuracy)};
    if (!v->group || !v->tenant || !v->truth || !v->train || !v->test || !v->accuracy) {
        return kedge_diag_set(l->reterr, KEDGE_E_NOMEM, "no memory for %u sites", l->n);
    }
    for (uint32_t i = 0; i < l->n; i++) {
        v->tenant[i] = l->sites[i].tenant;
        v->train[i] = l->sites[i].train_count;
        v->test[i] = l->sites[i].test_count;
        v->accuracy[i] = (double)NAN;
    }
    return KEDGE_OK;
}

void kedgei_learn_view_deinit(struct kedgei_learn *l)
{
    kedge_mem_free(l->seen.group);
    kedge_mem_free(l->seen.tenant);
    kedge_mem_free(l->seen.truth);
    kedge_mem_free(l->seen.train);
    kedge_mem_free(l->seen.test);
    kedge_mem_free(l->seen.accuracy);
}

void kedgei_learn_view_forget(struct kedgei_learn *l)
{
    l->seen.evaluated = false;
    for (uint32_t i = 0; i < l->n; i++) {
        l->seen.accuracy[i] = (double)NAN;
    }
}

void kedgei_learn_view_evaluated(struct kedgei_learn *l, uint32_t count)
{
    l->seen.evaluated = true;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t site = l->plan[i].site;
        l->seen.accuracy[site] = (double)l->correct[site] / l->sites[site].test_count;
    }
}

int kedgei_learn_look(struct kedgei_learn *l, bool is_last)
{
    struct kedgei_learn_seen *s = &l->seen;
    if (!l->host->look) {
        return KEDGE_OK;
    }
    for (uint32_t i = 0; i < l->n; i++) {
        s->group[i] = l->sites[i].group;
        s->truth[i] = l->sites[i].truth;
    }
    const struct kedge_learn_view view = {.round = l->line.round,
                                          .is_last = is_last,
                                          .sites = l->n,
                                          .groups = l->groups,
                                          .names = l->pool.clients.names,
                                          .tenant = s->tenant,
                                          .truth = l->has_truth ? s->truth : NULL,
                                          .train = s->train,
                                          .test = s->test,
                                          .group = s->group,
                                          .accuracy = s->evaluated ? s->accuracy : NULL,
                                          .models = l->models};
    return l->host->look(l->host->arg, &view);
}
