/* Who is in which group, between closes: pre-trainings for the groups that a close makes, newcomers, and
 * sites that come to a group before each training. Sites that pre-train are items of the round like those
 * that train. */
#include <math.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/base/rng.h"
#include "common/base/try.h"
#include "sim/learn/close.h"
#include "strategy/grouping.h"

/* ---- pre-training ---- */

void kedgei_learn_tell_bytes(struct kedgei_learn *l, uint64_t models_down, uint64_t models_up)
{
    l->line.bytes_down += models_down * l->shared * 4;
    l->line.bytes_up += models_up * l->shared * 4;
    l->line.updates += models_up;
}

void kedgei_learn_add_pretraining(struct kedgei_learn *l, uint32_t site, uint32_t job_round)
{
    KEDGE_ASSERT(l->items_count < l->items_max);
    l->items[l->items_count++] =
        (struct kedgei_learn_item){.site = site, .base = l->w0, .round = job_round, .pretrain = true};
    kedgei_learn_tell_bytes(l, 1, 1);
}

/* The site has its group by this update: by its data of now. */
static int keep_pretraining(struct kedgei_learn *l, uint32_t site, uint32_t job_round, const int32_t *update)
{
    struct kedgei_learn_site *s = &l->sites[site];
    kedgei_learn_note_labels(l, site, job_round);
    if (!l->keeps_updates) {
        return KEDGE_OK;
    }
    if (!s->pretraining) {
        s->pretraining = kedge_mem_new(l->d, sizeof *s->pretraining);
    }
    if (!s->pretraining) {
        return kedge_diag_set(l->reterr, KEDGE_E_NOMEM, "no memory for the update of site %u", site);
    }
    memcpy(s->pretraining, update, l->d * sizeof *update);
    return KEDGE_OK;
}

/* ---- groups that a close makes ---- */

/* So many sites pre-train, as items: as jobs draw, of all tenants alike. */
static int pretrain_some(struct kedgei_learn *l, uint32_t round, uint32_t count)
{
    const uint32_t n = l->n;
    uint32_t *tenant = kedge_mem_new(3 * (size_t)n, sizeof *tenant);
    bool *drawn = kedge_mem_new(n, sizeof *drawn);
    int err = tenant && drawn ? kedgei_learn_items_reserve(l, count) : KEDGE_E_NOMEM;
    l->items_count = 0;
    for (uint32_t i = 0; i < n && !err; i++) {
        tenant[i] = l->sites[l->names.order[i]].tenant;
    }
    if (!err) {
        kedge_coord_select_by_quota(l->job.seed, round, tenant, n, count, tenant + n, drawn);
    }
    for (uint32_t i = 0; i < n && !err; i++) {
        if (drawn[i]) {
            kedgei_learn_add_pretraining(l, l->names.order[i], round);
        }
    }
    kedge_mem_free(tenant);
    kedge_mem_free(drawn);
    return err ? err : kedgei_learn_train(l);
}

int kedgei_learn_make_groups(struct kedgei_learn *l, uint32_t job_round)
{
    const bool each = kedge_grouping_row(l->job.strategy->grouping)->each_makes_one;
    const uint32_t wanted = each ? l->job.groups : l->job.pretrain_sites;
    int err = pretrain_some(l, job_round, kedge_coord_pretrain_wanted(wanted, l->n));
    kedgei_learn_attack_pretraining(l);
    if (!err) {
        err = kedgei_learn_close(l, KEDGE_TASK_PRETRAIN, job_round);
    }
    for (uint32_t i = 0; i < l->items_count && !err; i++) {
        if (!kedgei_learn_result(l, i)->err) {
            err = keep_pretraining(l, l->items[i].site, job_round, kedgei_learn_vector(l, i, 0));
        }
    }
    return err;
}

/* ---- newcomers and those whose data shifted ---- */

/* RAC: anywhere. */
static uint32_t draw_group(const struct kedgei_learn *l, uint32_t site)
{
    struct kedge_rng rng;
    kedge_rng_init(&rng, l->job.seed, KEDGE_RNG_LEARN, kedgei_learn_stream(KEDGEI_LEARN_STREAM_JOIN, 0),
                   site);
    return (uint32_t)kedge_rng_below(&rng, l->groups);
}

static int assign(struct kedgei_learn *l, uint32_t site, uint32_t job_round, const int32_t *update)
{
    uint32_t group = 0;
    if (kedge_grouping_row(l->job.strategy->grouping)->by_chance) {
        group = draw_group(l, site);
    } else {
        KEDGE_TRY(kedgei_learn_nearest(l, site, update, NULL, &group));
    }
    kedgei_learn_move(l, site, group);
    l->sites[site].since = job_round;
    return keep_pretraining(l, site, job_round, update);
}

int kedgei_learn_take_in(struct kedgei_learn *l, uint32_t job_round)
{
    if (l->items_count == 0) {
        return KEDGE_OK;
    }
    KEDGE_TRY(kedgei_learn_train(l));
    kedgei_learn_attack_pretraining(l);
    for (uint32_t i = 0; i < l->items_count; i++) {
        if (!kedgei_learn_result(l, i)->err) { /* else all stays as it is */
            KEDGE_TRY(assign(l, l->items[i].site, job_round, kedgei_learn_vector(l, i, 0)));
        }
    }
    return KEDGE_OK;
}

/* Cold sites that are selected pre-train and join. */
static int newcomers(struct kedgei_learn *l)
{
    const uint32_t job_round = kedgei_learn_job_round(l->line.round);
    KEDGE_TRY(kedgei_learn_items_reserve(l, l->selected_count));
    l->items_count = 0;
    for (uint32_t i = 0; i < l->selected_count; i++) {
        if (l->sites[l->selected[i]].group == KEDGE_ROUND_NONE) {
            kedgei_learn_add_pretraining(l, l->selected[i], job_round);
        }
    }
    return kedgei_learn_take_in(l, job_round);
}

/* ---- before each training ---- */

/* The model with the least loss on the site's training data, ties to the lowest. */
static int choose_item(struct kedgei_learn *l, struct kedgei_learn_lane *lane, uint32_t index, void *out)
{
    struct kedgei_learn_choice *c = out;
    *c = (struct kedgei_learn_choice){.loss = (double)INFINITY};
    for (uint32_t j = 0; j < l->groups; j++) {
        double loss;
        KEDGE_TRY(kedgei_learn_loss(l, lane, l->selected[index], kedgei_learn_model(l, j), &loss));
        if (loss < c->loss) {
            c->loss = loss;
            c->group = j;
        }
    }
    return KEDGE_OK;
}

static int choose(struct kedgei_learn *l)
{
    const uint32_t count = l->selected_count;
    struct kedgei_learn_choice *choices = kedge_mem_new((size_t)count + 1, sizeof *choices);
    int err =
        choices ? kedgei_learn_spread(l, count, NULL, sizeof *choices, choose_item, choices) : KEDGE_E_NOMEM;
    for (uint32_t i = 0; i < count && !err; i++) {
        kedgei_learn_move(l, l->selected[i], choices[i].group);
        l->line.bytes_down +=
            (uint64_t)(l->groups - 1) * l->d * 4; /* the one trained is counted with the update */
    }
    kedge_mem_free(choices);
    return err;
}

/* The model nearest to the site's last one. */
static int go_nearest(struct kedgei_learn *l)
{
    for (uint32_t i = 0; i < l->selected_count; i++) {
        const uint32_t site = l->selected[i];
        const float *own = l->sites[site].own;
        uint32_t group = 0;
        KEDGE_TRY(kedgei_learn_nearest(l, site, NULL, own ? own : l->w0, &group));
        kedgei_learn_move(l, site, group);
    }
    return KEDGE_OK;
}

/* ---- */

/* First models: one, or one of its own for each group. */
static int begin_models(struct kedgei_learn *l)
{
    const bool apart = kedge_job_spec_has_model_per_group_at_start(&l->job);
    kedge_model_init(&l->job.model, l->job.seed, l->w0);
    memcpy(l->aux, l->w0, l->d * sizeof *l->aux);
    for (uint32_t j = 0; j < l->slots; j++) { /* independent beginnings where models are chosen by sites */
        kedge_model_init(&l->job.model, apart ? l->job.seed + j * UINT64_C(0x9e3779b97f4a7c15) : l->job.seed,
                         kedgei_learn_model(l, j));
    }
    l->groups = kedgei_learn_pretrains(l) ? 0 : kedge_job_spec_models(&l->job);
    l->at.groups = l->groups;
    for (uint32_t j = 0; j < l->groups; j++) {
        float *model = kedge_mem_new(l->d, sizeof *model);
        KEDGE_TRY_MEM(model);
        memcpy(model, kedgei_learn_model(l, j), l->d * sizeof *model);
        KEDGE_TRY(kedgei_vectors_give(&l->vectors, model, &l->at.group[j].model));
    }
    return KEDGE_OK;
}

int kedgei_learn_groups_init(struct kedgei_learn *l)
{
    const bool has_control = kedge_job_spec_has_control(&l->job);
    l->keeps_updates = kedgei_learn_pretrains(l) && (l->job.options.refresh > 0 || l->job.regroup_every > 0);
    l->slots = kedge_job_spec_groups_most(&l->job);
    l->models = kedge_mem_new((size_t)l->slots * l->d, sizeof *l->models);
    l->w0 = kedge_mem_new(l->d, sizeof *l->w0);
    l->aux = kedge_mem_new(l->d, sizeof *l->aux);
    l->next = kedge_mem_new(l->d, sizeof *l->next);
    l->control = has_control ? kedge_mem_new(l->d, sizeof *l->control) : NULL;
    if (!l->models || !l->w0 || !l->aux || !l->next || (has_control && !l->control)) {
        return kedge_diag_set(l->reterr, KEDGE_E_NOMEM, "no memory for %u models", l->slots);
    }
    for (uint32_t i = 0; i < l->n; i++) {
        l->sites[i].group = kedge_round_site_first(&l->job, l->sites[i].tenant).group;
    }
    int err = begin_models(l);
    return err ? kedge_diag_set(l->reterr, err, "no memory for %u models", l->slots) : KEDGE_OK;
}

int kedgei_learn_groups_start(struct kedgei_learn *l)
{
    return kedgei_learn_pretrains(l) ? kedgei_learn_make_groups(l, 0) : KEDGE_OK;
}

int kedgei_learn_groups_before(struct kedgei_learn *l)
{
    if (kedgei_learn_pretrains(l)) {
        int err = kedgei_learn_migrate(l);
        return err ? err : newcomers(l);
    }
    switch (kedge_job_spec_entry(&l->job)) {
    case KEDGE_ENTRY_CHOICE:
        return choose(l);
    case KEDGE_ENTRY_NEAREST:
        return go_nearest(l);
    case KEDGE_ENTRY_PRETRAIN: /* one model */
    case KEDGE_ENTRY_TOGETHER:
    case KEDGE_ENTRY_TENANT:
        break;
    }
    return KEDGE_OK;
}
