/* Accuracies, clustering.md §2.9: every site's test samples by its group's current model. Sites of one model
 * stand together in chunks, so that the products are large. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"
#include "sim/learn/engine.h"

enum { CHUNK_SITES = 32, LAST_ROUNDS = 10, ROWS_AHEAD = 1 };

/* Which of a row of logits is largest, ties to the lowest. */
static uint32_t best_of(const float *z, uint32_t classes)
{
    uint32_t best = 0;
    for (uint32_t c = 1; c < classes; c++) {
        best = z[c] > z[best] ? c : best;
    }
    return best;
}

struct pass {
    struct kedgei_learn *l;
    struct kedgei_learn_lane *lane;
    uint32_t held;
    uint32_t *correct[KEDGEI_LEARN_CHUNK]; /* whose sample it is */
};

static void flush(struct pass *p)
{
    uint32_t classes = kedge_model_outputs(&p->l->spec->job.model);
    if (p->held == 0) {
        return;
    }
    const float *z = kedge_net_forward(p->lane->net, p->lane->x, p->held);
    for (uint32_t i = 0; i < p->held; i++, z += classes) {
        *p->correct[i] += best_of(z, classes) == (uint32_t)p->lane->labels[i];
    }
    p->held = 0;
}

static void push_site(struct pass *p, uint32_t site, uint32_t *correct)
{
    const struct kedgei_learn_site *s = &p->l->sites[site];
    for (uint32_t i = 0; i < s->test_count; i++) {
        if (i + ROWS_AHEAD < s->test_count) {
            kedgei_learn_pool_prefetch(&p->l->pool, s->test[i + ROWS_AHEAD]);
        }
        kedgei_learn_pool_row(&p->l->pool, s->test[i], s->turn,
                              p->lane->x + (size_t)p->held * p->l->pool.features);
        p->lane->labels[p->held] = p->l->pool.labels[s->test[i]];
        p->correct[p->held++] = correct;
        if (p->held == p->l->chunk) {
            flush(p);
        }
    }
}

static int evaluate_chunk(struct kedgei_learn *l, struct kedgei_learn_lane *lane, uint32_t item, void *out)
{
    const struct kedgei_learn_chunk *c = &l->chunks[item];
    uint32_t correct[CHUNK_SITES] = {0};
    struct pass p = {.l = l, .lane = lane};
    if (l->shared < l->d) { /* each site has layers of its own */
        for (uint32_t i = 0; i < c->count; i++) {
            uint32_t site = l->plan[c->first + i].site;
            memcpy(kedge_net_weights(lane->net), c->model, l->d * sizeof(float));
            kedgei_learn_head_join(l, site, kedge_net_weights(lane->net));
            push_site(&p, site, &correct[i]);
            flush(&p);
        }
    } else if (l->tuning) { /* each site has a model of its own */
        for (uint32_t i = 0; i < c->count; i++) {
            uint32_t site = l->plan[c->first + i].site;
            const int err = kedgei_learn_finetune(l, lane, site, c->model);
            if (!err) { /* a site whose model diverges gets nothing right */
                push_site(&p, site, &correct[i]);
                flush(&p);
            }
        }
    } else {
        memcpy(kedge_net_weights(lane->net), c->model, l->d * sizeof(float));
        for (uint32_t i = 0; i < c->count; i++) {
            push_site(&p, l->plan[c->first + i].site, &correct[i]);
        }
        flush(&p);
    }
    memcpy(out, correct, sizeof correct);
    return KEDGE_OK;
}

static int by_model(const void *a, const void *b)
{
    const struct kedgei_learn_plan *x = a, *y = b;
    if (x->model != y->model) {
        return x->order < y->order ? -1 : 1;
    }
    return x->site < y->site ? -1 : x->site > y->site;
}

/* l->plan[0 … count) → l->correct[site]. */
static int run_plan(struct kedgei_learn *l, uint32_t count, bool tuning)
{
    uint32_t chunks = 0;
    qsort(l->plan, count, sizeof *l->plan, by_model);
    for (uint32_t i = 0; i < count;) {
        struct kedgei_learn_chunk *c = &l->chunks[chunks++];
        uint32_t samples = 0;
        *c = (struct kedgei_learn_chunk){.model = l->plan[i].model, .first = i};
        while (i < count && l->plan[i].model == c->model && c->count < CHUNK_SITES
               && (c->count == 0 || samples + l->sites[l->plan[i].site].test_count <= l->chunk)) {
            samples += l->sites[l->plan[i++].site].test_count;
            c->count++;
        }
    }
    uint32_t(*correct)[CHUNK_SITES] = kedge_mem_new(chunks ? chunks : 1, sizeof *correct);
    if (!correct) {
        return kedge_diag_set(l->reterr, KEDGE_E_NOMEM, "no memory for an evaluation");
    }
    l->tuning = tuning;
    int err = kedgei_learn_spread(l, chunks, NULL, sizeof *correct, evaluate_chunk, correct);
    for (uint32_t k = 0; k < chunks && !err; k++) {
        for (uint32_t i = 0; i < l->chunks[k].count; i++) {
            l->correct[l->plan[l->chunks[k].first + i].site] = correct[k][i];
        }
    }
    kedge_mem_free(correct);
    return err;
}

static int compare_shares(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sums over the plan's sites: share of samples, mean and worst tenth of the sites' shares. */
static void sum_up(struct kedgei_learn *l, uint32_t count, double *ret_all, double *ret_mean,
                   double *ret_worst)
{
    uint64_t correct = 0, samples = 0;
    double mean = 0, worst = 0;
    uint32_t tenth = (count + 9) / 10;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t site = l->plan[i].site, n = l->sites[site].test_count;
        correct += l->correct[site];
        samples += n;
        l->share[i] = n ? (double)l->correct[site] / n : 0;
    }
    qsort(l->share, count, sizeof *l->share, compare_shares);
    for (uint32_t i = 0; i < count; i++) {
        mean += l->share[i];
        worst += i < tenth ? l->share[i] : 0;
    }
    *ret_all = samples ? (double)correct / (double)samples : (double)NAN;
    *ret_mean = count ? mean / count : (double)NAN;
    *ret_worst = count ? worst / tenth : (double)NAN;
}

/* By samples: how those that came in this round fare beside their groups. */
static double compare_newcomers(const struct kedgei_learn *l, uint32_t count, uint32_t round)
{
    uint64_t correct[KEDGE_LEARN_GROUPS_MAX] = {0}, samples[KEDGE_LEARN_GROUPS_MAX] = {0}, fresh = 0;
    double off = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct kedgei_learn_site *s = &l->sites[l->plan[i].site];
        correct[s->group] += l->correct[l->plan[i].site];
        samples[s->group] += s->test_count;
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct kedgei_learn_site *s = &l->sites[l->plan[i].site];
        if (s->joined == round && round > 0) {
            off += l->correct[l->plan[i].site]
                   - (double)s->test_count * (double)correct[s->group] / (double)samples[s->group];
            fresh += s->test_count;
        }
    }
    return fresh ? off / (double)fresh : (double)NAN;
}

static uint32_t plan_groups(struct kedgei_learn *l)
{
    uint32_t count = 0;
    bool grouped = kedge_job_spec_groups_most(&l->job) > 1;
    for (uint32_t i = 0; i < l->n; i++) {
        uint32_t group = grouped ? l->sites[i].group : 0;
        if (group != KEDGE_ROUND_NONE && l->sites[i].test_count > 0 && !l->sites[i].attacker) {
            l->plan[count++] = (struct kedgei_learn_plan){kedgei_learn_model(l, group), group, i};
        }
    }
    return count;
}

static uint32_t plan_one(struct kedgei_learn *l, const float *model, bool own)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < l->n; i++) {
        if (l->sites[i].test_count > 0 && !l->sites[i].attacker) {
            const float *m = own && l->sites[i].own ? l->sites[i].own : model;
            l->plan[count++] = (struct kedgei_learn_plan){m, m == model ? 0 : i + 1, i};
        }
    }
    return count;
}

/* Without training: how near the models are to what the sites look for. */
static void evaluate_planted(struct kedgei_learn *l)
{
    bool grouped = kedge_job_spec_groups_most(&l->job) > 1;
    double near[KEDGE_LEARN_GROUPS_MAX][KEDGE_LEARN_GROUPS_MAX], mean = 0, worst = 0;
    uint32_t count = 0;
    for (uint32_t j = 0; j < KEDGE_LEARN_GROUPS_MAX; j++) {
        for (uint32_t k = 0; k < KEDGE_LEARN_GROUPS_MAX; k++) {
            near[j][k] = -1; /* not known yet */
        }
    }
    for (uint32_t i = 0; i < l->n; i++) {
        uint32_t group = grouped ? l->sites[i].group : 0, truth = l->sites[i].truth;
        if (group != KEDGE_ROUND_NONE && !l->sites[i].attacker) {
            if (near[group][truth] < 0) {
                near[group][truth] = kedgei_learn_closeness(l, i, kedgei_learn_model(l, group));
            }
            l->share[count++] = near[group][truth];
        }
    }
    const uint32_t tenth = (count + 9) / 10;
    qsort(l->share, count, sizeof *l->share, compare_shares);
    for (uint32_t i = 0; i < count; i++) {
        mean += l->share[i];
        worst += i < tenth ? l->share[i] : 0;
    }
    l->line.accuracy = l->line.accuracy_sites = count ? mean / count : (double)NAN;
    l->line.accuracy_worst = count ? worst / tenth : (double)NAN;
    l->line.accuracy_auxiliary = l->line.accuracy;
}

/* How good the models are that sites use for themselves, where they have any. Who trains for it does so in
 * the last rounds only, which are those that are told of. */
static int evaluate_own(struct kedgei_learn *l, uint32_t round)
{
    const struct kedge_local *local = l->spec->job.strategy->local;
    struct kedge_learn_round *line = &l->line;
    const uint32_t rounds = l->spec->job.rounds;
    const bool chosen = l->asks_own && l->is_personal && round + LAST_ROUNDS >= rounds;
    const bool tuned = chosen || (local->is_judged_tuned && round + 1 == rounds);
    double mean;
    if (l->asks_own && !l->is_personal) {
        line->accuracy_personal = line->accuracy;
        line->accuracy_personal_worst = line->accuracy_worst;
    }
    if (!tuned && !local->sends_nothing && !local->has_own_model) {
        return KEDGE_OK;
    }
    const uint32_t count = tuned ? plan_groups(l) : plan_one(l, l->w0, true);
    int err = run_plan(l, count, tuned);
    sum_up(l, count, &line->accuracy_personal, &mean, &line->accuracy_personal_worst);
    return err;
}

int kedgei_learn_evaluate(struct kedgei_learn *l, uint32_t round)
{
    const struct kedge_strategy *strategy = l->spec->job.strategy;
    struct kedge_learn_round *line = &l->line;
    bool grouped = kedge_job_spec_groups_most(&l->job) > 1;
    double mean, worst;
    line->accuracy = line->accuracy_sites = line->accuracy_worst = (double)NAN;
    line->accuracy_auxiliary = line->accuracy_personal = line->backdoor = (double)NAN;
    line->newcomers = line->accuracy_personal_worst = (double)NAN;
    uint32_t last = l->spec->job.rounds - 1;
    kedgei_learn_view_forget(l);
    if (round < kedgei_learn_first_rounds(l) && round != last) {
        return KEDGE_OK; /* partial: sites without a group */
    }
    const uint32_t every = l->spec->job.evaluate_every;
    if (every == 0 || (round % every != 0 && round + LAST_ROUNDS < l->spec->job.rounds)) {
        return KEDGE_OK;
    }
    if (l->spec->planted) {
        evaluate_planted(l);
        return KEDGE_OK;
    }
    bool alone = strategy->local->sends_nothing,
         edges = kedge_job_spec_grouped_by(&l->job) == KEDGE_GROUPED_BY_PLACE;
    int err = edges ? kedgei_learn_meet(l, l->next) : KEDGE_OK;
    uint32_t count = alone || edges ? plan_one(l, alone ? l->w0 : l->next, alone) : plan_groups(l);
    err = err ? err : run_plan(l, count, false);
    sum_up(l, count, &line->accuracy, &line->accuracy_sites, &line->accuracy_worst);
    kedgei_learn_tested(l, err ? 0 : count);
    kedgei_learn_view_evaluated(l, count);
    line->accuracy_auxiliary = line->accuracy;
    if (!err && grouped && !edges) {
        line->newcomers = compare_newcomers(l, count, round);
        count = plan_one(l, l->aux, false);
        err = run_plan(l, count, false);
        sum_up(l, count, &line->accuracy_auxiliary, &mean, &worst);
    }
    err = err ? err : evaluate_own(l, round);
    return err ? err : kedgei_learn_backdoor(l, &line->backdoor);
}
