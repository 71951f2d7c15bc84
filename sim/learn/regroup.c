#include "sim/learn/regroup.h"

#include <string.h>

#include "aggregation/gram.h"
#include "common/base/limits.h"
#include "common/base/mem.h"
#include "common/base/rng.h"
#include "grouping/direction.h"
#include "grouping/merge.h"
#include "grouping/oneshot.h"
#include "grouping/quota.h"
#include "grouping/shift.h"
#include "strategy/blend.h"

enum {
    REGROUPINGS = KEDGE_ROUNDS_MAX
}; /* the "round" from which all groupings behind the first draw chance */

int kedgei_learn_signs_init(struct kedgei_learn_signs *s, uint32_t room)
{
    *s = (struct kedgei_learn_signs){.room = room};
    s->site = kedge_mem_new(room, sizeof *s->site);
    s->tenant = kedge_mem_new(room, sizeof *s->tenant);
    s->update = kedge_mem_new(room, sizeof *s->update);
    s->sign = kedge_mem_new(room, sizeof *s->sign);
    s->maxima = kedge_mem_new(room, sizeof *s->maxima);
    s->weight = kedge_mem_new(room, sizeof *s->weight);
    s->gram = kedge_mem_new((size_t)room * room, sizeof *s->gram);
    s->quota = kedge_mem_new(room, sizeof *s->quota);
    s->group = kedge_mem_new(room, sizeof *s->group);
    if (!s->site || !s->tenant || !s->update || !s->sign || !s->maxima || !s->weight || !s->gram || !s->quota
        || !s->group) {
        kedgei_learn_signs_deinit(s);
        return KEDGE_E_NOMEM;
    }
    return KEDGE_OK;
}

void kedgei_learn_signs_deinit(struct kedgei_learn_signs *s)
{
    kedge_mem_free(s->site);
    kedge_mem_free(s->tenant);
    kedge_mem_free(s->update);
    kedge_mem_free(s->sign);
    kedge_mem_free(s->maxima);
    kedge_mem_free(s->weight);
    kedge_mem_free(s->gram);
    kedge_mem_free(s->quota);
    kedge_mem_free(s->group);
    *s = (struct kedgei_learn_signs){0};
}

void kedgei_learn_signs_add(const struct kedgei_learn *l, struct kedgei_learn_signs *s, uint32_t site,
                            const int32_t *update)
{
    KEDGE_ASSERT(s->count < s->room);
    uint32_t k = s->count++, tenant = l->sites[site].tenant;
    for (; k > 0 && (s->tenant[k - 1] > tenant || (s->tenant[k - 1] == tenant && s->site[k - 1] > site));
         k--) {
        s->site[k] = s->site[k - 1];
        s->tenant[k] = s->tenant[k - 1];
        s->update[k] = s->update[k - 1];
        s->sign[k] = s->sign[k - 1];
    }
    s->site[k] = site;
    s->tenant[k] = tenant;
    s->update[k] = update;
    s->sign[k] = update + l->sign_first;
}

/* ---- clusters and directions ---- */

int kedgei_learn_cluster(struct kedgei_learn *l, struct kedgei_learn_signs *s, uint32_t round,
                         uint32_t *ret_groups)
{
    const struct kedge_strategy *strategy = l->spec->job.strategy;
    int err = kedge_gram(s->sign, s->count, l->d - l->sign_first, s->maxima, s->gram);
    size_t groups = 0;
    if (strategy->grouping == KEDGE_GROUPING_KIND_ONESHOT) {
        err = err ? err
                  : kedge_oneshot(s->gram, s->maxima, s->count, l->spec->job.options.link, l->slots, s->group,
                                  &groups);
        *ret_groups = (uint32_t)groups;
        return err;
    }
    double *values = kedge_mem_new(s->count, sizeof *values);
    uint32_t least, most;
    kedge_job_spec_groups(&l->spec->job, &least, &most);
    double *embedding = kedge_mem_new((size_t)s->count * most, sizeof *embedding);
    bool weighted = l->spec->job.strategy->edc == KEDGE_EDC_UNIT && l->spec->job.tenant_count > 1;
    struct kedge_flexcfl_params params = {.edc = l->spec->job.strategy->edc,
                                          .groups = most,
                                          .size_min = strategy->judge ? 3 : 1,
                                          .seed = l->spec->job.seed,
                                          .round = round,
                                          .choose = l->spec->job.choose,
                                          .groups_min = least,
                                          .judge = strategy->judge,
                                          .margin = strategy->margin,
                                          .faint = strategy->faint,
                                          .weight = weighted ? s->quota : NULL};
    struct kedge_flexcfl_result result = {.group = s->group, .eigenvalues = values, .embedding = embedding};
    err = err ? err : values && embedding ? KEDGE_OK : KEDGE_E_NOMEM;
    if (!err && weighted) {
        err = kedge_quota_weights(s->tenant, s->maxima, s->count, s->quota);
    }
    err = err ? err : kedge_flexcfl_group_gram(s->gram, s->maxima, s->count, &params, &result);
    *ret_groups = err ? 0 : (uint32_t)result.groups;
    kedge_mem_free(values);
    kedge_mem_free(embedding);
    return err;
}

int kedgei_learn_direct(struct kedgei_learn *l, const struct kedgei_learn_signs *s, uint32_t of,
                        uint32_t group)
{
    int32_t *out = l->directions + (size_t)group * l->d;
    const int32_t **member = kedge_mem_new(s->count, sizeof *member);
    uint32_t *tenant = kedge_mem_new(s->count, sizeof *tenant),
             *maxima = kedge_mem_new(s->count, sizeof *maxima), n = 0;
    int64_t *square = kedge_mem_new(s->count, sizeof *square);
    uint64_t *weight = kedge_mem_new(s->count, sizeof *weight);
    int err = member && tenant && maxima && square && weight ? KEDGE_OK : KEDGE_E_NOMEM;
    for (uint32_t i = 0; i < s->count && !err; i++) {
        if (s->group[i] == of) {
            member[n] = s->update[i];
            tenant[n] = s->tenant[i];
            maxima[n] = kedge_max_abs(s->update[i], l->d, 0);
            square[n++] = s->gram[(size_t)i * s->count + i];
        }
    }
    bool unit = l->spec->job.strategy->edc == KEDGE_EDC_UNIT && l->sign_first == 0;
    if (!err && n == 0) {
        memset(out, 0, l->d * sizeof *out);
    } else if (!err && unit) {
        err = kedge_quota_direction(tenant, square, n, KEDGE_QUOTA_SHARE_MAX, weight);
        err = err ? err : kedge_direction_unit_tile(member, maxima, weight, n, 0, l->d, out);
    } else if (!err) {
        err = kedge_direction_tile(member, n, 0, l->d, out);
    }
    kedge_mem_free(member);
    kedge_mem_free(tenant);
    kedge_mem_free(maxima);
    kedge_mem_free(square);
    kedge_mem_free(weight);
    return err;
}

/* ---- again ---- */

/* Sites with a group and an update, at most as many as a Gram matrix takes: a uniform sample where there are
 * more. */
static int gather_signs(struct kedgei_learn *l, struct kedgei_learn_signs *s)
{
    uint32_t count = 0;
    struct kedge_rng rng;
    for (uint32_t i = 0; i < l->n; i++) {
        if (l->sites[i].group != KEDGE_GROUP_NONE && l->sites[i].pretraining) {
            l->order[count++] = i;
        }
    }
    if (count == 0) {
        return KEDGE_E_NO_DIRECTION;
    }
    uint32_t take = count < KEDGE_GRAM_VECTORS_MAX ? count : KEDGE_GRAM_VECTORS_MAX;
    int err = kedgei_learn_signs_init(s, take);
    if (!err && take < count) {
        kedge_rng_init(&rng, l->spec->job.seed, KEDGE_RNG_LEARN,
                       kedgei_learn_stream(KEDGEI_LEARN_STREAM_COLD, REGROUPINGS), 1);
        kedge_rng_sample(&rng, l->order, count, take);
    }
    for (uint32_t i = 0; i < take && !err; i++) {
        kedgei_learn_signs_add(l, s, l->order[i], l->sites[l->order[i]].pretraining);
    }
    return err;
}

static void move_site(struct kedgei_learn *l, uint32_t site, uint32_t group)
{
    l->line.migrations += l->sites[site].group != group;
    l->sites[site].joined = l->sites[site].group != group ? l->line.round : l->sites[site].joined;
    l->sites[site].group = group;
}

/* Models of clusters that continue no group: means of the groups that their members come from. */
static int blend_new(struct kedgei_learn *l, const struct kedgei_learn_signs *s, uint32_t clusters,
                     const uint32_t *slot, const uint32_t *then)
{
    float *old = kedge_mem_new((size_t)l->slots * l->d, sizeof *old);
    const float *models[KEDGE_LEARN_GROUPS_MAX];
    int err = old ? KEDGE_OK : KEDGE_E_NOMEM;
    if (!err) {
        memcpy(old, l->models, (size_t)l->slots * l->d * sizeof *old);
    }
    for (uint32_t j = 0; j < l->slots; j++) {
        models[j] = old + (size_t)j * l->d;
    }
    for (uint32_t c = 0; c < clusters && !err; c++) {
        uint64_t from[KEDGE_LEARN_GROUPS_MAX] = {0};
        for (uint32_t i = 0; i < s->count; i++) {
            if (s->group[i] == c) {
                from[then[i]]++;
            }
        }
        if (from[slot[c]] == 0) { /* a number that nobody of it had */
            err = kedge_blend_tile(models, from, l->slots, 0, l->d, kedgei_learn_model(l, slot[c]));
            for (size_t k = 0; k < KEDGE_SERVER_STATES_MAX && !err; k++) {
                if (l->states[k]) {
                    memset(l->states[k] + (size_t)slot[c] * l->d, 0, l->d * sizeof(float));
                }
            }
        }
    }
    kedge_mem_free(old);
    return err;
}

/* Sites whose update was not among the signs take the nearest direction. */
static int move_others(struct kedgei_learn *l, const struct kedgei_learn_signs *s)
{
    int err = KEDGE_OK;
    for (uint32_t i = 0; i < l->n; i++) {
        l->sites[i].shifted = false; /* here: was among the signs */
    }
    for (uint32_t i = 0; i < s->count; i++) {
        l->sites[s->site[i]].shifted = s->group[i] != KEDGE_GROUP_NONE;
    }
    for (uint32_t i = 0; i < l->n && !err; i++) {
        if (l->sites[i].group != KEDGE_GROUP_NONE && l->sites[i].pretraining && !l->sites[i].shifted) {
            uint32_t group = kedgei_learn_find_group(l, i, l->sites[i].pretraining);
            move_site(l, i, group == KEDGE_GROUP_NONE ? l->sites[i].group : group);
        }
    }
    return err;
}

/* Chance draws alike each time: where no update came since, groups stay as they are. */
static int recluster(struct kedgei_learn *l, struct kedgei_learn_signs *s)
{
    uint32_t clusters = 0, slot[KEDGE_LEARN_GROUPS_MAX];
    uint32_t *then = kedge_mem_new(s->count, sizeof *then);
    int err = then ? kedgei_learn_cluster(l, s, REGROUPINGS, &clusters) : KEDGE_E_NOMEM;
    for (uint32_t i = 0; i < s->count && !err; i++) {
        then[i] = l->sites[s->site[i]].group;
    }
    err = err ? err : kedge_match(then, s->group, s->count, clusters, l->slots, slot, NULL);
    err = err ? err : blend_new(l, s, clusters, slot, then);
    bool used[KEDGE_LEARN_GROUPS_MAX] = {false};
    for (uint32_t c = 0; c < clusters && !err; c++) {
        used[slot[c]] = true;
        err = kedgei_learn_direct(l, s, c, slot[c]);
    }
    for (uint32_t j = 0; j < l->slots && !err; j++) {
        l->groups = used[j] && j >= l->groups ? j + 1 : l->groups;
        if (!used[j]) { /* a group without direction gets no members any more */
            memset(l->directions + (size_t)j * l->d, 0, l->d * sizeof *l->directions);
        }
    }
    for (uint32_t i = 0; i < s->count && !err; i++) {
        if (s->group[i] != KEDGE_GROUP_NONE) {
            move_site(l, s->site[i], slot[s->group[i]]);
        }
    }
    kedge_mem_free(then);
    return err ? err : move_others(l, s);
}

static int refresh(struct kedgei_learn *l, struct kedgei_learn_signs *s)
{
    int err = kedge_gram(s->sign, s->count, l->d - l->sign_first, s->maxima, s->gram);
    for (uint32_t i = 0; i < s->count; i++) {
        s->group[i] = l->sites[s->site[i]].group;
    }
    for (uint32_t j = 0; j < l->groups && !err; j++) {
        bool any = false;
        for (uint32_t i = 0; i < s->count; i++) {
            any = any || s->group[i] == j;
        }
        err = any ? kedgei_learn_direct(l, s, j, j) : KEDGE_OK; /* who lost all members keeps its direction */
    }
    return err;
}

/* Groups whose directions nearly coincide become one. */
static int merge(struct kedgei_learn *l)
{
    const int32_t *directions[KEDGE_LEARN_GROUPS_MAX];
    const float *models[KEDGE_LEARN_GROUPS_MAX];
    uint32_t maxima[KEDGE_LEARN_GROUPS_MAX], into[KEDGE_LEARN_GROUPS_MAX];
    int64_t gram[KEDGE_LEARN_GROUPS_MAX * KEDGE_LEARN_GROUPS_MAX];
    double cosine[KEDGE_LEARN_GROUPS_MAX * KEDGE_LEARN_GROUPS_MAX];
    uint64_t members[KEDGE_LEARN_GROUPS_MAX] = {0};
    size_t left;
    for (uint32_t j = 0; j < l->groups; j++) {
        directions[j] = l->directions + (size_t)j * l->d;
        models[j] = kedgei_learn_model(l, j);
    }
    for (uint32_t i = 0; i < l->n; i++) {
        if (l->sites[i].group != KEDGE_GROUP_NONE) {
            members[l->sites[i].group]++;
        }
    }
    int err = kedge_gram(directions, l->groups, l->d, maxima, gram);
    if (!err) {
        kedge_gram_cosine(gram, l->groups, cosine);
        err = kedge_merge(cosine, l->groups, l->spec->job.options.merge, into, &left);
    }
    for (uint32_t j = 0; j < l->groups && !err; j++) {
        uint64_t weight[KEDGE_LEARN_GROUPS_MAX] = {0};
        bool several = false, any = false;
        for (uint32_t k = 0; k < l->groups; k++) {
            weight[k] = into[k] == j ? members[k] : 0;
            several = several || (k != j && into[k] == j);
            any = any || weight[k];
        }
        if (several && any) {
            err = kedge_blend_tile(models, weight, l->groups, 0, l->d, kedgei_learn_model(l, j));
        }
    }
    for (uint32_t i = 0; i < l->n && !err; i++) {
        if (l->sites[i].group != KEDGE_GROUP_NONE) {
            move_site(l, i, into[l->sites[i].group]);
        }
    }
    for (uint32_t j = 0; j < l->groups && !err; j++) {
        if (into[j] != j) {
            memset(l->directions + (size_t)j * l->d, 0, l->d * sizeof *l->directions);
        }
    }
    return err;
}

static bool is_due(double every, uint32_t round)
{
    return every >= 1 && round > 0 && round % (uint32_t)every == 0;
}

int kedgei_learn_regroup(struct kedgei_learn *l, uint32_t round)
{
    const struct kedge_strategy_options *o = &l->spec->job.options;
    bool again = is_due(l->spec->job.regroup_every, round), estimate = is_due(o->refresh, round);
    struct kedgei_learn_signs s = {0};
    if (!again && !estimate) {
        return KEDGE_OK;
    }
    int err = gather_signs(l, &s);
    err = err ? err : again ? recluster(l, &s) : refresh(l, &s);
    kedgei_learn_signs_deinit(&s);
    err = err || o->merge >= 1 ? err : merge(l);
    return err ? kedge_diag_set(l->reterr, err, "round %u: groups: %s", round, kedge_strerror(err))
               : KEDGE_OK;
}
