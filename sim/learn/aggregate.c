/* From the updates of a round to the groups' next models, by the kernels and in the order of production:
 * weights of the strategy, the cap on a tenant's share, the robust rule, the server's step, mixing between
 * groups. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "aggregation/gram.h"
#include "aggregation/mean.h"
#include "aggregation/mixing.h"
#include "aggregation/norm.h"
#include "aggregation/quantise.h"
#include "aggregation/rule/rule.h"
#include "aggregation/share_cap.h"
#include "common/base/mem.h"
#include "sim/learn/regroup.h"
#include "strategy/blend.h"

/* The updates of one group, sorted by (tenant, site). Arrays of `room` elements. */
struct members {
    uint32_t count;
    uint32_t *item, *tenant;
    struct kedge_strategy_input *input;
    uint64_t *weight, *base;
    const int32_t **vector;
    struct kedge_mean_source *source;
    double *norm_sq;
    uint32_t *maxima;
    int64_t *gram;
};

static void members_deinit(struct members *m)
{
    kedge_mem_free(m->item);
    kedge_mem_free(m->tenant);
    kedge_mem_free(m->input);
    kedge_mem_free(m->weight);
    kedge_mem_free(m->base);
    kedge_mem_free(m->vector);
    kedge_mem_free(m->source);
    kedge_mem_free(m->norm_sq);
    kedge_mem_free(m->maxima);
    kedge_mem_free(m->gram);
}

static int members_init(struct members *m, uint32_t room)
{
    *m = (struct members){0};
    m->item = kedge_mem_new(room, sizeof *m->item);
    m->tenant = kedge_mem_new(room, sizeof *m->tenant);
    m->input = kedge_mem_new(room, sizeof *m->input);
    m->weight = kedge_mem_new(room, sizeof *m->weight);
    m->base = kedge_mem_new(room, sizeof *m->base);
    m->vector = kedge_mem_new(room, sizeof *m->vector);
    m->source = kedge_mem_new(room, sizeof *m->source);
    m->norm_sq = kedge_mem_new(room, sizeof *m->norm_sq);
    m->maxima = kedge_mem_new(room, sizeof *m->maxima);
    if (!m->item || !m->tenant || !m->input || !m->weight || !m->base || !m->vector || !m->source
        || !m->norm_sq || !m->maxima) {
        members_deinit(m);
        return KEDGE_E_NOMEM;
    }
    return KEDGE_OK;
}

/* Whether item a goes before item b. */
static bool goes_before(const struct kedgei_learn *l, uint32_t a, uint32_t b)
{
    const struct kedgei_learn_site *x = &l->sites[l->items[a].site], *y = &l->sites[l->items[b].site];
    return x->tenant != y->tenant ? x->tenant < y->tenant : l->items[a].site < l->items[b].site;
}

/* The group's updates that came. A strategy that takes the first one means the first one asked. */
static void collect(const struct kedgei_learn *l, uint32_t group, struct members *m)
{
    bool sorted = l->spec->job.strategy->weigh != kedge_weigh_first;
    m->count = 0;
    for (uint32_t i = 0; i < l->items_count; i++) {
        if (l->sites[l->items[i].site].group != group || kedgei_learn_result(l, i)->err) {
            continue;
        }
        uint32_t k = m->count++;
        for (; sorted && k > 0 && goes_before(l, i, m->item[k - 1]); k--) {
            m->item[k] = m->item[k - 1];
        }
        m->item[k] = i;
    }
    for (uint32_t k = 0; k < m->count; k++) {
        const struct kedgei_learn_result *r = kedgei_learn_result(l, m->item[k]);
        m->tenant[k] = l->sites[l->items[m->item[k]].site].tenant;
        m->vector[k] = kedgei_learn_vector(l, m->item[k], 0);
        m->input[k] = (struct kedge_strategy_input){.samples = r->samples,
                                                    .steps = r->steps,
                                                    .loss = r->loss_before,
                                                    .norm_sq = r->norm_sq,
                                                    .staleness = l->items[m->item[k]].staleness};
    }
}

/* The root update of a group is that of an item whose site is nobody's; NULL: it did not come. */
static const int32_t *root_of(const struct kedgei_learn *l, const float *model)
{
    for (uint32_t i = l->items_count; i-- > 0;) {
        if (l->items[i].site == l->n && l->items[i].base == model && !kedgei_learn_result(l, i)->err) {
            return kedgei_learn_vector(l, i, 0);
        }
    }
    return NULL;
}

/* Norms and inner products, the root's last. */
static int measure(const struct kedgei_learn *l, const struct kedge_rule *rule, struct members *m,
                   const float *model)
{
    int err = KEDGE_OK;
    uint32_t count = m->count + rule->needs_root;
    if (rule->needs_root) {
        m->vector[m->count] = root_of(l, model);
        if (!m->vector[m->count]) {
            return KEDGE_E_NOT_FOUND;
        }
    }
    for (uint32_t k = 0; k < count && rule->needs_norms; k++) {
        struct kedge_norm norm = {0};
        kedge_norm_add(&norm, m->vector[k], l->d);
        m->norm_sq[k] = kedge_norm_value(&norm);
    }
    if (rule->needs_gram) {
        kedge_mem_free(m->gram);
        m->gram = kedge_mem_new((size_t)count * count, sizeof *m->gram);
        err = m->gram ? kedge_gram(m->vector, count, l->d, m->maxima, m->gram) : KEDGE_E_NOMEM;
    }
    return err;
}

/* m->weight and *divisor by the strategy, the cap and the rule; *rule becomes the one that ran. */
static int weigh(const struct kedgei_learn *l, struct members *m, const float *model,
                 const struct kedge_rule **rule, uint64_t *divisor)
{
    const struct kedge_learn_spec *spec = l->spec;
    const struct kedge_rule_params params = spec->job.rule_params;
    bool is_mean = (*rule)->kind == KEDGE_RULE_MEAN;
    int err = l->spec->job.strategy->weigh(&spec->job.options, m->input, m->count, spec->job.learning_rate,
                                           m->weight, divisor);
    if (!err && !is_mean) {
        kedge_rule_base(*rule, m->weight, m->count, m->base);
        memcpy(m->weight, m->base, m->count * sizeof *m->weight);
    }
    if (!err && spec->job.tenant_share_max < KEDGE_SHARE_ONE) {
        uint64_t other = 1; /* where each has a vote the divisor plays no part */
        bool samples = is_mean || (*rule)->samples;
        err = kedge_strategy_cap(m->weight, m->tenant, m->count, spec->job.tenant_share_max,
                                 samples ? divisor : &other);
    }
    if (err || is_mean) {
        return err;
    }
    *rule = kedge_rule_effective(*rule, &params, m->weight, m->count);
    err = measure(l, *rule, m, model);
    memcpy(m->base, m->weight, m->count * sizeof *m->base);
    struct kedge_rule_inputs inputs = {.has_root = (*rule)->needs_root,
                                       .count = m->count,
                                       .weight = m->base,
                                       .divisor = *divisor,
                                       .scale_bits = l->spec->job.scale,
                                       .norm_sq = m->norm_sq,
                                       .gram = m->gram,
                                       .maxima = m->maxima};
    return err ? err : kedge_rule_weigh(*rule, &params, &inputs, m->weight, divisor);
}

/* The aggregate of a group's updates into l->next. */
static int aggregate(struct kedgei_learn *l, struct members *m, const float *model)
{
    const struct kedge_rule *rule = l->rule;
    const struct kedge_rule_params params = l->spec->job.rule_params;
    uint64_t divisor = 1, sum;
    int32_t limit = 0;
    bool any = false;
    int err = weigh(l, m, model, &rule, &divisor);
    if (err) {
        return err;
    }
    if (rule->kind == KEDGE_RULE_COORDINATE) {
        return kedge_rule_tile(rule, &params, model, m->vector, m->weight, m->count, 0, l->d,
                               l->spec->job.scale, l->next);
    }
    for (uint32_t k = 0; k < m->count; k++) {
        m->source[k] = (struct kedge_mean_source){.values = m->vector[k], .weight = m->weight[k]};
        any = any || m->weight[k] > 0;
    }
    if (!any) { /* a rule that trusts nobody leaves the model as it is */
        memcpy(l->next, model, l->d * sizeof *model);
        return KEDGE_OK;
    }
    err = kedge_scale_limit(l->spec->job.bound, l->spec->job.scale, &limit);
    err = err ? err : kedge_mean_weight_sum(m->source, m->count, limit, &sum);
    return err ? err
               : kedge_mean_tile(model, m->source, m->count, 0, l->d, l->spec->job.scale, divisor, l->next);
}

/* SCAFFOLD: the server's control and those of the sites that took part. */
static int move_controls(struct kedgei_learn *l, struct members *m)
{
    float *control = l->states[0];
    for (uint32_t k = 0; k < m->count; k++) {
        const int32_t *change = kedgei_learn_vector(l, m->item[k], 1);
        float *own = l->sites[l->items[m->item[k]].site].own;
        for (uint64_t i = 0; i < l->d; i++) {
            own[i] += (float)change[i] * (1.0f / (float)(UINT32_C(1) << l->spec->job.scale));
        }
        m->vector[k] = change;
    }
    return kedge_server_control_tile(control, m->vector, m->count, l->n, l->spec->job.scale, 0, l->d,
                                     control);
}

static int step_group(struct kedgei_learn *l, uint32_t group, struct members *m)
{
    const struct kedge_learn_spec *spec = l->spec;
    float *model = kedgei_learn_model(l, group), *states[KEDGE_SERVER_STATES_MAX] = {0};
    for (size_t k = 0; k < kedge_server_states(spec->job.server); k++) {
        states[k] = l->states[k] + (size_t)group * l->d;
    }
    int err = aggregate(l, m, model);
    /* this loop counts rounds from 0, jobs count theirs of training from 1 */
    const struct kedge_strategy_options now = kedge_server_options(&spec->job.options, l->line.round + 1);
    err = err ? err : kedge_server_step(spec->job.server, &now, model, l->next, states, l->d, model);
    return err || !spec->job.strategy->local->variate ? err : move_controls(l, m);
}

/* What a site keeps for itself of its training: Ditto's and a lone site's model, FeSEM's last one. */
int kedgei_learn_keep_own(struct kedgei_learn *l, uint32_t item)
{
    const struct kedge_strategy *s = l->spec->job.strategy;
    bool last = s->grouping == KEDGE_GROUPING_KIND_NEAREST;
    bool personal = s->local->has_own_model || s->local->has_head;
    if (!last && !personal) {
        return KEDGE_OK;
    }
    uint32_t site = l->items[item].site;
    int err = kedgei_learn_own(l, site, NULL);
    if (err) {
        return err;
    }
    float *own = l->sites[site].own;
    if (personal) {
        memcpy(own, kedgei_learn_vector(l, item, !s->local->sends_nothing), l->d * sizeof *own);
        return KEDGE_OK;
    }
    const int32_t *q = kedgei_learn_vector(l, item, 0);
    for (uint64_t i = 0; i < l->d; i++) {
        own[i] = l->items[item].base[i] + (float)q[i] * (1.0f / (float)(UINT32_C(1) << l->spec->job.scale));
    }
    return KEDGE_OK;
}

int kedgei_learn_auxiliary(struct kedgei_learn *l)
{
    const float *models[KEDGE_LEARN_GROUPS_MAX];
    for (uint32_t j = 0; j < l->groups; j++) {
        models[j] = kedgei_learn_model(l, j);
    }
    return kedge_auxiliary_tile(models, l->trained, l->groups, 0, l->d, l->aux);
}

/* Inter-group aggregation over the groups trained in this round, then the auxiliary model. */
static int mix(struct kedgei_learn *l)
{
    float *models[KEDGE_LEARN_GROUPS_MAX];
    double norms[KEDGE_LEARN_GROUPS_MAX] = {0};
    bool any = false;
    for (uint32_t j = 0; j < l->groups; j++) {
        struct kedge_reduce sum;
        models[j] = kedgei_learn_model(l, j);
        any = any || l->trained[j];
        kedge_reduce_init(&sum);
        kedge_sumsq_push(&sum, models[j], l->d);
        norms[j] = kedge_mixing_norm(&sum);
    }
    if (!any) {
        return KEDGE_OK;
    }
    if (l->spec->job.mixing > 0) {
        struct kedge_mixing mixing;
        int err = kedge_mixing_init(&mixing, norms, l->trained, l->groups, l->spec->job.mixing);
        if (err) {
            return err;
        }
        kedge_mixing_tile(&mixing, (const float *const *)models, 0, l->d, models);
    }
    return kedgei_learn_auxiliary(l);
}

int kedgei_learn_met(struct kedgei_learn *l, float *ret)
{
    const float *models[KEDGE_LEARN_GROUPS_MAX];
    uint64_t weight[KEDGE_LEARN_GROUPS_MAX] = {0};
    for (uint32_t i = 0; i < l->n; i++) {
        weight[l->sites[i].group] += l->sites[i].train_count;
    }
    for (uint32_t j = 0; j < l->groups; j++) {
        models[j] = kedgei_learn_model(l, j);
    }
    return kedge_blend_tile(models, weight, l->groups, 0, l->d, ret);
}

/* The edges meet: their models become one. */
static int meet(struct kedgei_learn *l, uint32_t round)
{
    if (l->spec->job.strategy->grouping != KEDGE_GROUPING_KIND_EDGE
        || (round + 1) % (uint32_t)l->spec->job.options.edge_rounds != 0) {
        return KEDGE_OK;
    }
    int err = kedgei_learn_met(l, l->next);
    for (uint32_t j = 0; j < l->groups && !err; j++) {
        memcpy(kedgei_learn_model(l, j), l->next, l->d * sizeof *l->next);
    }
    return err;
}

static int step_groups(struct kedgei_learn *l, struct members *m, uint32_t round)
{
    int err = KEDGE_OK;
    uint32_t groups = l->groups; /* those that a split makes have not trained */
    for (uint32_t j = 0; j < groups && !err; j++) {
        collect(l, j, m);
        l->trained[j] = m->count > 0;
        err = m->count > 0 ? step_group(l, j, m) : KEDGE_OK;
        if (!err && l->spec->job.strategy->grouping == KEDGE_GROUPING_KIND_SPLIT && m->count > 2) {
            err = kedgei_learn_split(l, round, j, m->item, m->count);
        }
    }
    return err;
}

int kedgei_learn_aggregate(struct kedgei_learn *l, uint32_t round)
{
    struct members m;
    int err = kedgei_learn_attack(l);
    err = err ? err : members_init(&m, l->items_count + 1);
    if (err) {
        return kedge_diag_set(l->reterr, err, "round %u: %s", round, kedge_strerror(err));
    }
    for (uint32_t i = 0; i < l->items_count && !err; i++) {
        err = kedgei_learn_result(l, i)->err ? KEDGE_OK : kedgei_learn_keep_own(l, i);
    }
    if (!l->spec->job.strategy->local->sends_nothing) {
        err = err ? err : step_groups(l, &m, round);
        err = err ? err : meet(l, round);
        err = err ? err : mix(l);
    }
    members_deinit(&m);
    return err ? kedge_diag_set(l->reterr, err, "round %u: the models: %s", round, kedge_strerror(err))
               : KEDGE_OK;
}
