/* Who is in which group: FlexCFL's cold start, its newcomers and migrations, and the choices of IFCA and
 * FeSEM. Sites that pre-train are items of the round like those that train. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "aggregation/gram.h"
#include "aggregation/mean.h"
#include "common/base/mem.h"
#include "common/base/rng.h"
#include "grouping/closest.h"
#include "sim/learn/regroup.h"

static bool is_flexcfl(enum kedge_grouping_kind kind)
{
    return kind == KEDGE_GROUPING_KIND_FLEXCFL || kind == KEDGE_GROUPING_KIND_RANDOM
           || kind == KEDGE_GROUPING_KIND_CENTRES || kind == KEDGE_GROUPING_KIND_ONESHOT;
}

/* ---- pre-training ---- */

void kedgei_learn_tell_bytes(struct kedgei_learn *l, uint64_t models_down, uint64_t models_up)
{
    l->line.bytes_down += models_down * l->shared * 4;
    l->line.bytes_up += models_up * l->shared * 4;
    l->line.updates += models_up;
}

void kedgei_learn_add_pretraining(struct kedgei_learn *l, uint32_t site)
{
    KEDGE_ASSERT(l->items_count < l->items_max);
    l->items[l->items_count++] = (struct kedgei_learn_item){
        .site = site, .base = l->w0, .stream = l->sites[site].pretrained++, .pretrain = true};
    kedgei_learn_tell_bytes(l, 1, 1);
}

static int keep_pretraining(struct kedgei_learn *l, uint32_t site, const int32_t *update)
{
    struct kedgei_learn_site *s = &l->sites[site];
    if (!s->pretraining) {
        s->pretraining = kedge_mem_new(l->d, sizeof *s->pretraining);
    }
    if (!s->pretraining) {
        return kedge_diag_set(l->reterr, KEDGE_E_NOMEM, "no memory for the update of site %u", site);
    }
    memcpy(s->pretraining, update, l->d * sizeof *update);
    return KEDGE_OK;
}

static bool wants_updates(const struct kedgei_learn *l)
{
    return l->spec->job.shift == KEDGE_SHIFT_TEST_UPDATE || l->keeps_updates;
}

/* ---- directions ---- */

/* A group's first model: w0 and the mean of its members' updates. */
static int start_model(struct kedgei_learn *l, uint32_t group, const struct kedgei_learn_signs *signs)
{
    struct kedge_mean_source *sources = kedge_mem_new(signs->count, sizeof *sources);
    uint32_t count = 0;
    int err = sources ? KEDGE_OK : KEDGE_E_NOMEM;
    for (uint32_t i = 0; i < signs->count && !err; i++) {
        if (signs->group[i] == group) {
            sources[count++] = (struct kedge_mean_source){.values = signs->update[i], .weight = 1};
        }
    }
    err = err ? err
              : kedge_mean_tile(l->w0, sources, count, 0, l->d, l->spec->job.scale, count,
                                kedgei_learn_model(l, group));
    kedge_mem_free(sources);
    return err;
}

static void join(struct kedgei_learn *l, uint32_t site, uint32_t group)
{
    l->sites[site].joined = l->sites[site].group != group ? l->line.round : l->sites[site].joined;
    l->sites[site].group = group;
    kedgei_learn_count_labels(l, site, l->sites[site].counts);
}

/* ---- cold start ---- */

static int compare_ids(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* A uniform sample of sites, in order, into the items. */
static int pretrain_sample(struct kedgei_learn *l, uint32_t round, uint32_t count)
{
    struct kedge_rng rng;
    uint32_t *ids = kedge_mem_new(l->n, sizeof *ids);
    int err = ids ? kedgei_learn_items_reserve(l, count) : KEDGE_E_NOMEM;
    for (uint32_t i = 0; i < l->n && !err; i++) {
        ids[i] = i;
    }
    l->items_count = 0;
    if (!err) {
        kedge_rng_init(&rng, l->spec->job.seed, KEDGE_RNG_LEARN,
                       kedgei_learn_stream(KEDGEI_LEARN_STREAM_COLD, round), 0);
        kedge_rng_sample(&rng, ids, l->n, count);
        qsort(ids, count, sizeof *ids, compare_ids);
    }
    for (uint32_t i = 0; i < count && !err; i++) {
        kedgei_learn_add_pretraining(l, ids[i]);
    }
    kedge_mem_free(ids);
    return err ? err : kedgei_learn_train(l);
}

/* From the updates that came to directions, models and members. */
static int cold_start(struct kedgei_learn *l, uint32_t round, struct kedgei_learn_signs *signs)
{
    bool centres = l->spec->job.strategy->grouping == KEDGE_GROUPING_KIND_CENTRES;
    for (uint32_t i = 0; i < l->items_count; i++) {
        if (!kedgei_learn_result(l, i)->err) {
            kedgei_learn_signs_add(l, signs, l->items[i].site, kedgei_learn_vector(l, i, 0));
        }
    }
    int err = signs->count ? KEDGE_OK : KEDGE_E_NO_DIRECTION;
    if (!err && centres) { /* each is a group */
        err = kedge_gram(signs->sign, signs->count, l->d, signs->maxima, signs->gram);
        l->groups = signs->count;
        for (uint32_t i = 0; i < signs->count; i++) {
            signs->group[i] = i;
        }
    } else {
        err = err ? err : kedgei_learn_cluster(l, signs, round, &l->groups);
    }
    for (uint32_t j = 0; j < l->groups && !err; j++) {
        err = start_model(l, j, signs);
        err = err ? err : kedgei_learn_direct(l, signs, j, j);
    }
    l->asked_count = 0;
    for (uint32_t i = 0; i < signs->count && !err; i++) {
        uint32_t site = signs->site[i];
        if (signs->group[i] != KEDGE_GROUP_NONE) {
            join(l, site, signs->group[i]);
        }
        l->asked[l->asked_count++] = site;
        err = wants_updates(l) ? keep_pretraining(l, site, signs->update[i]) : KEDGE_OK;
    }
    return err ? err : kedgei_learn_repeat(l);
}

static int flexcfl_start(struct kedgei_learn *l, uint32_t round)
{
    bool centres = l->spec->job.strategy->grouping == KEDGE_GROUPING_KIND_CENTRES;
    uint32_t wanted = centres ? l->spec->job.groups : l->spec->job.pretrain_sites;
    uint32_t count = wanted > 0 && wanted < l->n ? wanted : l->n;
    struct kedgei_learn_signs signs = {0};
    count = count < KEDGE_GRAM_VECTORS_MAX ? count : KEDGE_GRAM_VECTORS_MAX;
    int err = kedgei_learn_signs_init(&signs, count);
    err = err ? err : pretrain_sample(l, round, count);
    kedgei_learn_attack_pretraining(l);
    err = err ? err : cold_start(l, round, &signs);
    kedgei_learn_signs_deinit(&signs);
    for (uint32_t j = 0; j < l->groups && !err; j++) {
        l->trained[j] = true; /* for the first auxiliary model */
    }
    l->cold_started = !err;
    return err ? kedge_diag_set(l->reterr, err, "groups at the start: %s", kedge_strerror(err)) : KEDGE_OK;
}

/* ---- newcomers and those whose data shifted ---- */

uint32_t kedgei_learn_find_group(const struct kedgei_learn *l, uint32_t site, const int32_t *update)
{
    const int32_t *directions[KEDGE_LEARN_GROUPS_MAX];
    uint32_t group;
    if (l->spec->job.strategy->grouping == KEDGE_GROUPING_KIND_RANDOM) {
        struct kedge_rng rng;
        kedge_rng_init(&rng, l->spec->job.seed, KEDGE_RNG_LEARN,
                       kedgei_learn_stream(KEDGEI_LEARN_STREAM_JOIN, 0), site);
        return (uint32_t)kedge_rng_below(&rng, l->groups);
    }
    for (uint32_t j = 0; j < l->groups; j++) {
        directions[j] = l->directions + (size_t)j * l->d + l->sign_first;
    }
    return kedge_nearest_group(update + l->sign_first, directions, l->groups, l->d - l->sign_first, &group,
                               NULL)
               ? KEDGE_GROUP_NONE
               : group;
}

int kedgei_learn_assign(struct kedgei_learn *l, uint32_t site, const int32_t *update)
{
    uint32_t before = l->sites[site].group, group = kedgei_learn_find_group(l, site, update);
    if (group != KEDGE_GROUP_NONE) {
        l->line.migrations += before != KEDGE_GROUP_NONE && before != group;
        join(l, site, group);
    }
    return wants_updates(l) ? keep_pretraining(l, site, update) : KEDGE_OK;
}

/* Cold sites that are selected pre-train and join. */
static int newcomers(struct kedgei_learn *l)
{
    int err = kedgei_learn_items_reserve(l, l->selected_count);
    l->items_count = l->asked_count = 0;
    for (uint32_t i = 0; i < l->selected_count && !err; i++) {
        if (l->sites[l->selected[i]].group == KEDGE_GROUP_NONE) {
            l->asked[l->asked_count++] = l->selected[i];
            kedgei_learn_add_pretraining(l, l->selected[i]);
        }
    }
    err = err || l->items_count == 0 ? err : kedgei_learn_train(l);
    kedgei_learn_attack_pretraining(l);
    for (uint32_t i = 0; i < l->items_count && !err; i++) {
        if (!kedgei_learn_result(l, i)->err) { /* else it stays cold */
            err = kedgei_learn_assign(l, l->items[i].site, kedgei_learn_vector(l, i, 0));
        }
    }
    return err || l->asked_count == 0 ? err : kedgei_learn_repeat(l);
}

/* ---- IFCA and FeSEM ---- */

/* The model with the least loss on the site's training data, ties to the lowest. */
static int choose_item(struct kedgei_learn *l, struct kedgei_learn_lane *lane, uint32_t index, void *out)
{
    struct kedgei_learn_choice *c = out;
    *c = (struct kedgei_learn_choice){.loss = (double)INFINITY};
    for (uint32_t j = 0; j < l->groups; j++) {
        double loss;
        int err = kedgei_learn_loss(l, lane, l->asked[index], kedgei_learn_model(l, j), &loss);
        if (err) {
            return err;
        }
        if (loss < c->loss) {
            c->loss = loss;
            c->group = j;
        }
    }
    return KEDGE_OK;
}

static int choose(struct kedgei_learn *l)
{
    struct kedgei_learn_choice *choices = kedge_mem_new(l->asked_count ? l->asked_count : 1, sizeof *choices);
    int err = choices ? kedgei_learn_spread(l, l->asked_count, NULL, sizeof *choices, choose_item, choices)
                      : KEDGE_E_NOMEM;
    for (uint32_t i = 0; i < l->asked_count && !err; i++) {
        uint32_t before = l->sites[l->asked[i]].group;
        l->line.migrations += before != KEDGE_GROUP_NONE && before != choices[i].group;
        join(l, l->asked[i], choices[i].group);
        l->line.bytes_down +=
            (uint64_t)(l->groups - 1) * l->d * 4; /* the one trained is counted with the update */
    }
    kedge_mem_free(choices);
    return err;
}

/* The model nearest to the site's last one. */
static int go_nearest(struct kedgei_learn *l)
{
    const float *models[KEDGE_LEARN_GROUPS_MAX];
    int err = KEDGE_OK;
    for (uint32_t j = 0; j < l->groups; j++) {
        models[j] = kedgei_learn_model(l, j);
    }
    for (uint32_t i = 0; i < l->asked_count && !err; i++) {
        struct kedgei_learn_site *s = &l->sites[l->asked[i]];
        struct kedge_closest c;
        uint32_t group = 0;
        err = kedge_closest_init(&c, l->groups);
        if (!err) {
            kedge_closest_push(&c, s->own ? s->own : l->w0, models, 0, l->d);
            err = kedge_closest_end(&c, &group, NULL);
        }
        if (!err) {
            l->line.migrations += s->group != KEDGE_GROUP_NONE && s->group != group;
            join(l, l->asked[i], group);
        }
    }
    return err;
}

/* ---- */

int kedgei_learn_groups_init(struct kedgei_learn *l)
{
    const struct kedge_learn_spec *spec = l->spec;
    enum kedge_grouping_kind kind = spec->job.strategy->grouping;
    l->keeps_updates =
        kind == KEDGE_GROUPING_KIND_FLEXCFL && (spec->job.options.refresh > 0 || spec->job.regroup_every > 0);
    if (kind == KEDGE_GROUPING_KIND_ONESHOT) { /* the last layer's kernel and biases */
        const struct kedge_layer *last = &spec->job.model.layers[spec->job.model.count - 1];
        l->sign_first = l->d - ((uint64_t)last->in + 1) * last->out;
    }
    const uint32_t most = kedge_job_spec_groups_most(&spec->job);
    l->slots = kind == KEDGE_GROUPING_KIND_NONE   ? 1
               : kind == KEDGE_GROUPING_KIND_EDGE ? spec->job.groups
               : kind == KEDGE_GROUPING_KIND_SPLIT || spec->through == KEDGE_LEARN_THROUGH_PROTOCOL
                   ? KEDGE_LEARN_GROUPS_MAX
                   : most;
    l->models = kedge_mem_new((size_t)l->slots * l->d, sizeof *l->models);
    l->w0 = kedge_mem_new(l->d, sizeof *l->w0);
    l->aux = kedge_mem_new(l->d, sizeof *l->aux);
    l->next = kedge_mem_new(l->d, sizeof *l->next);
    l->directions_count = is_flexcfl(kind) ? l->slots * l->d : 0;
    l->directions = kedge_mem_new(l->directions_count + 1, sizeof *l->directions);
    bool has_states = true;
    for (size_t k = 0; k < kedge_server_states(spec->job.server); k++) {
        l->states[k] = kedge_mem_new((size_t)l->slots * l->d, sizeof(float));
        has_states = has_states && l->states[k];
    }
    if (!l->models || !l->w0 || !l->aux || !l->next || !l->directions || !has_states) {
        return kedge_diag_set(l->reterr, KEDGE_E_NOMEM, "no memory for %u models", l->slots);
    }
    kedge_model_init(&spec->job.model, spec->job.seed, l->w0);
    memcpy(l->aux, l->w0, l->d * sizeof *l->aux);
    l->groups = is_flexcfl(kind) ? 0 : kind == KEDGE_GROUPING_KIND_SPLIT ? 1 : l->slots;
    bool several = kind == KEDGE_GROUPING_KIND_CHOICE || kind == KEDGE_GROUPING_KIND_NEAREST;
    for (uint32_t j = 0; j < l->slots; j++) { /* independent beginnings where models are chosen by sites */
        kedge_model_init(&spec->job.model,
                         several ? spec->job.seed + j * UINT64_C(0x9e3779b97f4a7c15) : spec->job.seed,
                         kedgei_learn_model(l, j));
    }
    for (uint32_t i = 0; i < l->n; i++) {
        bool fixed = kind == KEDGE_GROUPING_KIND_NONE || kind == KEDGE_GROUPING_KIND_SPLIT;
        l->sites[i].group = fixed                              ? 0
                            : kind == KEDGE_GROUPING_KIND_EDGE ? kedge_job_spec_edge(l->sites[i].tenant)
                                                               : KEDGE_GROUP_NONE;
    }
    return KEDGE_OK;
}

int kedgei_learn_groups_start(struct kedgei_learn *l)
{
    return is_flexcfl(l->spec->job.strategy->grouping) && !l->cold_started ? flexcfl_start(l, 0) : KEDGE_OK;
}

int kedgei_learn_groups_before(struct kedgei_learn *l, uint32_t round)
{
    enum kedge_grouping_kind kind = l->spec->job.strategy->grouping;
    if (is_flexcfl(kind)) {
        int err = kedgei_learn_regroup(l, round);
        err = err ? err : kedgei_learn_migrate(l);
        return err ? err : newcomers(l);
    }
    if (kind != KEDGE_GROUPING_KIND_CHOICE && kind != KEDGE_GROUPING_KIND_NEAREST) {
        return KEDGE_OK;
    }
    int err = kedgei_learn_ask_again(l, round);
    return err ? err : kind == KEDGE_GROUPING_KIND_CHOICE ? choose(l) : go_nearest(l);
}
