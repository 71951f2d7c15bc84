/* round-opened, aggregate and step: what they say by themselves and against each other. Their lists are
 * inputs.c's, the groups of a step step.c's. */
#include <stdio.h>
#include <string.h>

#include "chain/audit/facts/buffer.h"
#include "chain/audit/record.h"
#include "common/base/mem.h"
#include "coordinator/core/coord.h"
#include "strategy/server.h"

static struct kedgei_round *last_round(const struct kedgei_job *job)
{
    return job->round_count ? kedgei_round_at(job, job->round_count - 1) : NULL;
}

/* Each round names the main chain it was opened on. So the chain's past is fixed again and again by its
 * own entries, and later ones cannot be exchanged without all rounds after them. */
static void check_main_root(struct kedgei_audit *a, const struct kedgei_fact *fact)
{
    const struct kedge_st_round_opened *o = fact->body;
    struct kedge_hash root;
    if (o->main_size > fact->index) {
        kedgei_error(&a->findings, KEDGE_AUDIT_ROUND, &a->main, fact->index,
                     "names a main chain of %llu entries, this is entry %llu",
                     (unsigned long long)o->main_size, (unsigned long long)fact->index);
        return;
    }
    kedgei_log_root(&a->main, o->main_size, &root);
    if (!kedge_hash_eq(&root, &o->main_root)) {
        kedgei_error(&a->findings, KEDGE_AUDIT_FORK, &a->main, fact->index,
                     "the first %llu entries are not those that this round was opened on",
                     (unsigned long long)o->main_size);
    }
}

/* The kind that the job gives its next round (coordinator/core/kind.c). The function is the coordinator's
 * own: which rounds make groups anew follows from the spec and from what the step before found. */
static bool is_pretrain(const struct kedgei_job *job, const struct kedgei_round *last, uint32_t number)
{
    const struct kedge_coord_job_params params = {.rounds = job->spec.rounds,
                                                  .groups = kedge_job_spec_groups_most(&job->spec),
                                                  .regroup_every = job->spec.regroup_every};
    enum kedge_task_kind prior = !last            ? KEDGE_TASK_NONE
                                 : last->pretrain ? KEDGE_TASK_PRETRAIN
                                                  : KEDGE_TASK_TRAIN;
    return kedge_coord_round_kind(&params, number, prior, last && kedgei_drifted(last))
           == KEDGE_TASK_PRETRAIN;
}

static void check_opened(struct kedgei_audit *a, const struct kedgei_job *job,
                         const struct kedgei_round *round, const struct kedgei_fact *fact)
{
    const struct kedge_st_round_opened *o = fact->body;
    struct kedgei_findings *f = &a->findings;
    if ((o->round_kind == KEDGE_TRAIN_PRETRAIN) != round->pretrain) {
        kedgei_error(f, KEDGE_AUDIT_ROUND, &a->main, fact->index, "round %u has the wrong kind",
                     round->number);
    }
    if (o->seed != job->spec.seed) {
        kedgei_error(f, KEDGE_AUDIT_ROUND, &a->main, fact->index, "the seed is not the spec's");
    }
    if (!kedge_hash_eq(&fact->subject, &job->opened->subject)) {
        kedgei_error(f, KEDGE_AUDIT_ROUND, &a->main, fact->index, "names another spec");
    }
    uint64_t candidates = 0;
    for (uint32_t t = 0; t < o->tenant_count; t++) {
        candidates += o->tenants[t].candidates;
    }
    if (candidates < job->spec.sites_least) {
        kedgei_error(f, KEDGE_AUDIT_ROUND, &a->main, fact->index,
                     "round %u opens with %llu candidates, its job demands %u", round->number,
                     (unsigned long long)candidates, job->spec.sites_least);
    }
    check_main_root(a, fact);
}

/* Another opening of the open round. What came to it before would be of sites that this one may not have
 * selected, and older than it: inputs.c says so. A round that too few sites could take part in is drawn
 * again under the same number. The former opening is kept aside, because its selection is replayed as
 * well. */
static int draw_again(struct kedgei_audit *a, struct kedgei_job *job, struct kedgei_fact *fact)
{
    const struct kedge_st_round_opened *o = fact->body;
    struct kedgei_round *round = last_round(job);
    const struct kedge_st_round_opened *before = round ? round->opened->body : NULL;
    if (!before || round->step || round->aggregate_count > 0 || o->round != round->number
        || o->draw != before->draw + 1 || kedgei_job_is_asynchronous(job)) {
        kedgei_error(&a->findings, KEDGE_AUDIT_ROUND, &a->main, fact->index,
                     "round %u of job \"%s\", draw %u: that round is not open, or not at that draw", o->round,
                     job->id.s, o->draw);
        return KEDGE_OK;
    }
    if (!kedgei_scratch_room(&a->scratch, &job->replaced, &job->replaced_cap, job->replaced_count, 4,
                             sizeof *job->replaced)) {
        return kedgei_scratch_error(&a->scratch, &a->diag);
    }
    round = last_round(job); /* it may have moved */
    KEDGE_ASSERT(job->replaced && round);
    job->replaced[job->replaced_count++] = (struct kedgei_round){.number = round->number,
                                                                 .pretrain = round->pretrain,
                                                                 .replaced = true,
                                                                 .grouped_in = round->grouped_in,
                                                                 .opened = round->opened};
    round->opened = fact;
    check_opened(a, job, round, fact);
    return KEDGE_OK;
}

/* Rounds have no gaps and never overlap in the main chain; with that, `round[-1]` is the round before
 * everywhere in the auditor. A round that does not fit is told and not taken in. */
int kedgei_round_opened(struct kedgei_audit *a, struct kedgei_job *job, struct kedgei_fact *fact)
{
    const struct kedge_st_round_opened *o = fact->body;
    if (o->draw > 0) {
        return draw_again(a, job, fact);
    }
    const struct kedgei_round *last = last_round(job);
    struct kedgei_findings *f = &a->findings;
    bool grouped = kedge_job_spec_grouped_by(&job->spec) == KEDGE_GROUPED_BY_PRETRAIN;
    uint32_t number = last ? last->number + 1 : grouped ? 0 : 1;
    if (o->round != number || o->round > job->spec.rounds || (last && !last->step)) {
        kedgei_error(f, KEDGE_AUDIT_ROUND, &a->main, fact->index, "round %u of job \"%s\", expected %s %u",
                     o->round, job->id.s, last && !last->step ? "first the step of round" : "round",
                     last && !last->step ? last->number : number);
        return KEDGE_OK;
    }
    if (!kedgei_scratch_room(&a->scratch, &job->rounds, &job->round_cap, job->round_count, 16,
                             sizeof *job->rounds)) {
        return kedgei_scratch_error(&a->scratch, &a->diag);
    }
    KEDGE_ASSERT(job->rounds);
    bool pretrain = is_pretrain(job, last_round(job), number); /* `last` may have moved */
    last = last_round(job);
    job->rounds[job->round_count++] = (struct kedgei_round){.number = number,
                                                            .pretrain = pretrain,
                                                            .grouped_in = pretrain ? number
                                                                          : last   ? last->grouped_in
                                                                                   : 0,
                                                            .opened = fact};
    check_opened(a, job, &job->rounds[job->round_count - 1], fact);
    return KEDGE_OK;
}

/* The open round that the statement belongs to, or NULL with a finding. */
static struct kedgei_round *open_round(struct kedgei_audit *a, struct kedgei_job *job,
                                       const struct kedgei_fact *fact, uint32_t number,
                                       enum kedge_audit_code code)
{
    struct kedgei_round *round = last_round(job);
    if (!round || round->number != number || round->step) {
        kedgei_error(&a->findings, code, &a->main, fact->index, "round %u of job \"%s\" is not open", number,
                     job->id.s);
        return NULL;
    }
    return round;
}

/* The spec's rule, or that which runs where updates are too few for it: inputs.c knows how many there
 * are. A robust rule needs a least number of updates, below which the median runs in its place. How many
 * there were is known from the lists only, so both names pass here, and rounds/weights.c says which it
 * had to be. */
static void check_rule(struct kedgei_audit *a, const struct kedgei_job *job, const struct kedgei_round *round,
                       const struct kedgei_fact *fact)
{
    const struct kedge_st_aggregate *g = fact->body;
    const struct kedge_rule *rule = job->spec.rule;
    struct kedge_rule_name name = kedge_job_spec_aggregate_rule(&job->spec, round->pretrain, rule);
    if (round->kept) {
        snprintf(name.s, sizeof name.s, "%s", KEDGE_RULE_KEPT);
    } else if (kedgei_regroups(round)) {
        snprintf(name.s, sizeof name.s, "%s", KEDGE_RULE_RECLUSTER);
    }
    bool fits = strcmp(g->rule, name.s) == 0;
    if (!fits && !kedgei_regroups(round) && !round->kept && rule->kind != KEDGE_RULE_MEAN) {
        struct kedge_rule_name other =
            kedge_job_spec_aggregate_rule(&job->spec, round->pretrain, kedge_rule_find("median"));
        fits = strcmp(g->rule, other.s) == 0;
    }
    if (!fits || g->scale != job->spec.scale) {
        kedgei_error(&a->findings, KEDGE_AUDIT_AGGREGATE, &a->main, fact->index,
                     "rule \"%s\", scale %u; expected \"%s\", %u", g->rule, g->scale, name.s,
                     job->spec.scale);
    }
}

/* Aggregates of a round ascend by group, each once. Sums are compared with those of the tenants' lines; a
 * wrap of 64 bits cannot make a wrong sum right, for every line is bounded by itself. */
void kedgei_round_aggregate(struct kedgei_audit *a, struct kedgei_job *job, struct kedgei_fact *fact)
{
    const struct kedge_st_aggregate *g = fact->body;
    struct kedgei_findings *f = &a->findings;
    struct kedgei_round *round = open_round(a, job, fact, g->round, KEDGE_AUDIT_AGGREGATE);
    if (!round) {
        return;
    }
    round->kept = round->pretrain && round->number > 0 && kedgei_rule_keeps(g->rule);
    uint32_t most = round->kept       ? 1 /* the lists of all */
                    : round->pretrain ? kedge_job_spec_groups_most(&job->spec)
                                      : job->groups;
    bool ascending = true;
    for (uint32_t k = g->group; k < KEDGE_GROUPS_MAX; k++) {
        ascending = ascending && !round->aggregates[k];
    }
    if (g->group >= most || !ascending) {
        kedgei_error(f, KEDGE_AUDIT_AGGREGATE, &a->main, fact->index,
                     "group %u: expected groups below %u, ascending, each once", g->group, most);
        return;
    }
    round->aggregates[g->group] = fact;
    round->aggregate_count++;
    check_rule(a, job, round, fact);
    struct kedge_hash base;
    if (kedgei_model_before(job, round, g->group, &base) && !kedge_hash_eq(&base, &g->base)) {
        kedgei_error(f, KEDGE_AUDIT_BASE, &a->main, fact->index, "not based on the model of group %u",
                     g->group);
    }
    if (round->kept && !kedge_hash_eq(&g->base, &fact->subject)) {
        kedgei_error(f, KEDGE_AUDIT_AGGREGATE, &a->main, fact->index,
                     "keeps the groups, and changes a model");
    }
    uint64_t weight = 0, count = 0;
    for (uint32_t t = 0; t < g->tenant_count; t++) {
        weight += g->tenants[t].weight_sum; /* at most 128 · 2^62: wraps, but then differs */
        count += g->tenants[t].accepted;
        a->counts.updates_refused += g->tenants[t].refused;
        if (g->tenants[t].weight_sum > KEDGE_ST_WEIGHT_SUM_MAX) {
            kedgei_error(f, KEDGE_AUDIT_TOTALS, &a->main, fact->index,
                         "weight sum of tenant %u is out of range", t);
        }
        if (!(a->skipped ? kedgei_job_names(job, &g->tenants[t].id)
                         : kedgei_job_tenant(a, job, &g->tenants[t].id) != NULL)) {
            kedgei_error(f, KEDGE_AUDIT_AGGREGATE, &a->main, fact->index, "tenant %u is not of this job", t);
        }
    }
    if (weight != g->weight_sum || count != g->count || (g->count == 0) != round->kept) {
        kedgei_error(f, KEDGE_AUDIT_TOTALS, &a->main, fact->index,
                     "states %u inputs of weight %llu, its tenants add up to %llu of %llu", g->count,
                     (unsigned long long)g->weight_sum, (unsigned long long)count,
                     (unsigned long long)weight);
    }
    a->counts.updates_used += g->count;
}

/* How many groups it is about. Those that are made got an aggregate each, numbered from 0; parts that are cut
 * off come behind the others. */
static uint32_t groups_of_step(struct kedgei_audit *a, const struct kedgei_job *job,
                               const struct kedgei_round *round, const struct kedgei_fact *fact)
{
    const struct kedge_st_step *s = fact->body;
    uint32_t groups = job->groups;
    if (kedgei_makes_groups(round)) {
        groups = round->aggregate_count ? round->aggregate_count : 1;
    }
    for (uint32_t g = 0; kedgei_makes_groups(round) && g < groups; g++) {
        if (!round->aggregates[g]) {
            kedgei_error(&a->findings, KEDGE_AUDIT_STEP, &a->main, fact->index,
                         "group %u of %u has no aggregate", g, groups);
        }
    }
    for (uint32_t g = 0; !round->pretrain && g < s->group_count; g++) {
        groups += g == groups && s->groups[g].split_of > 0 && g < kedge_job_spec_groups_most(&job->spec);
    }
    return groups;
}

/* A step of another number of groups than expected is not taken in: the round then counts as open, and
 * everything that would follow from a wrong count is not reported one by one. */
void kedgei_round_step(struct kedgei_audit *a, struct kedgei_job *job, struct kedgei_fact *fact)
{
    const struct kedge_st_step *s = fact->body;
    struct kedgei_findings *f = &a->findings;
    struct kedgei_round *round = open_round(a, job, fact, s->round, KEDGE_AUDIT_STEP);
    if (!round) {
        return;
    }
    const bool lists_kept = round->kept;
    round->kept = round->pretrain && round->number > 0 && kedgei_rule_keeps(s->rule);
    if (round->aggregate_count > 0 && lists_kept != round->kept) {
        kedgei_error(f, KEDGE_AUDIT_STEP, &a->main, fact->index,
                     "round %u: either its aggregates or its step say that groups stay", s->round);
    }
    if (round->kept) { /* sites are in the groups in which they were */
        round->grouped_in = round > job->rounds ? round[-1].grouped_in : 0;
    }
    if (round->aggregate_count == 0 && !round->kept) {
        kedgei_error(f, KEDGE_AUDIT_STEP, &a->main, fact->index, "round %u has a step but no aggregate",
                     s->round);
    }
    uint32_t groups = groups_of_step(a, job, round, fact);
    if (s->group_count != groups) {
        kedgei_error(f, KEDGE_AUDIT_STEP, &a->main, fact->index, "%u groups, expected %u", s->group_count,
                     groups);
        return;
    }
    job->groups = groups;
    round->step = fact;
    kedgei_check_step(a, job, round);
    if (fact->has_classes != kedge_job_spec_asks_classes(&job->spec, s->round)) {
        kedgei_error(f, KEDGE_AUDIT_STEP, &a->main, fact->index, "names of classes are %s",
                     fact->has_classes ? "stated where the round asks for none" : "missing");
    }
}

/* ---- rounds that were to make groups anew ---- */

/* Fewer updates than groups, or than the job's quorum, make no groups, unless no more sites were
 * selected. Groups that are made from fewer updates than there were groups would be chance; the rule is
 * the coordinator's (coordinator/core/round.c). */
static uint64_t wanted(const struct kedgei_job *job, const struct kedgei_round *round)
{
    const struct kedge_st_round_opened *o = round->opened->body;
    const struct kedge_st_step *last = round > job->rounds && round[-1].step ? round[-1].step->body : NULL;
    uint64_t selected = 0, least = job->spec.quorum;
    for (uint32_t t = 0; t < o->tenant_count; t++) {
        selected += o->tenants[t].selected;
    }
    least = last && last->group_count > least ? last->group_count : least;
    return least < selected ? least : selected;
}

void kedgei_check_enough(const struct kedgei_audit *a, const struct kedgei_job *job,
                         const struct kedgei_round *round, struct kedgei_findings *f)
{
    if (a->skipped || !kedgei_job_whole(job) || !round->pretrain || round->number == 0 || !round->step) {
        return;
    }
    if (round->kept != (round->update_count < wanted(job, round))) {
        kedgei_error(f, KEDGE_AUDIT_ROUND, &a->main, round->step->index,
                     "round %u of job \"%s\" %s: %zu sites pre-trained, new groups want %llu", round->number,
                     job->id.s, round->kept ? "keeps the groups" : "makes groups anew", round->update_count,
                     (unsigned long long)wanted(job, round));
    }
}
