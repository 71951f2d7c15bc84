/* Operations that make models: what each update weighs, the aggregate, the server's step, mixing, blends.
 *
 * Files of results are begun, written and ended through the host. `end` gets the error so far: after one it
 * throws the file away and returns that error, so each begun file is ended exactly once on every path. What
 * was made is told as a decision before it is used (operations_groups.c says why). */
#include <string.h>

#include "common/base/mem.h"
#include "common/base/try.h"
#include "common/tensor/safetensors.h"
#include "round/close/impl.h"
#include "round/control.h"
#include "round/meet.h"
#include "round/step.h"

/* A group's inputs in site order. */
struct gathered {
    struct kedge_compute_input *inputs;
    uint32_t *place; /* among the inputs of the close */
    uint64_t *weight;
    size_t count;
    bool lacks; /* one of their updates is gone */
};

static void gathered_deinit(struct gathered *g)
{
    kedge_mem_free(g->inputs);
    kedge_mem_free(g->place);
    kedge_mem_free(g->weight);
}

/* A group's inputs, in the order of the close's, which is site order: remainders of rounding under a
 * tenant's cap go by it, so an auditor has to gather in the same one. An asynchronous update may be of an
 * earlier round; how many rounds old it is, its staleness, is a fact of the list and not the site's to
 * state. other: a second group, whose inputs count likewise, or the same; chosen: an item for each of the
 * close's inputs, NULL: all count. Deinit also after an error. */
static int gather_of(const struct kedge_close *c, uint32_t group, uint32_t other, const bool *chosen,
                     struct gathered *g)
{
    *g = (struct gathered){.inputs = kedge_mem_new(c->input_count + 1, sizeof *g->inputs),
                           .place = kedge_mem_new(c->input_count + 1, sizeof *g->place),
                           .weight = kedge_mem_new(c->input_count + 1, sizeof *g->weight)};
    if (!g->inputs || !g->place || !g->weight) {
        return KEDGE_E_NOMEM;
    }
    for (size_t i = 0; i < c->input_count; i++) {
        const struct kedge_close_input *in = &c->inputs[i];
        if (in->left_out || (in->group != group && in->group != other) || (chosen && !chosen[i])) {
            continue;
        }
        g->lacks = g->lacks || in->is_gone;
        g->weight[g->count] = in->weight;
        g->place[g->count] = (uint32_t)i;
        g->inputs[g->count++] = (struct kedge_compute_input){.update = in->file,
                                                             .tenant = in->place,
                                                             .is_root = in->is_root,
                                                             .facts.samples = in->in.weight,
                                                             .facts.staleness = c->result->round - in->round};
    }
    return KEDGE_OK;
}

static int gather(const struct kedge_close *c, uint32_t group, struct gathered *g)
{
    return gather_of(c, group, group, NULL, g);
}

/* ---- weights ---- */

/* What statements say of steps and losses, where weights follow from more than sample counts. */
static int ask_statements(struct kedge_close *c, struct gathered *g)
{
    for (size_t i = 0; i < g->count; i++) {
        int err = c->host.facts(c->host.arg, &c->inputs[g->place[i]], &g->inputs[i].facts, c->d);
        if (err) {
            return err;
        }
    }
    return KEDGE_OK;
}

/* Where one of the updates is gone an auditor passes no layout. kedge_compute_weigh then still weighs by
 * what statements say, if the job's rule needs no vectors, and says KEDGE_E_NOT_FOUND if it does. */
static int find_weights(struct kedge_close *c, bool cold, struct gathered *g,
                        struct kedge_compute_weights *weights)
{
    bool asks = !cold && !kedge_job_spec_weighs_samples(c->spec);
    int err = asks ? ask_statements(c, g) : KEDGE_OK;
    if (err || g->count == 0) {
        return err;
    }
    return kedge_compute_weigh(c->spec, g->lacks ? NULL : c->layout, cold, g->inputs, g->count, weights,
                               c->d);
}

static int weigh(struct kedge_close *c, uint32_t group, bool cold, struct gathered *g,
                 struct kedge_compute_weights *weights)
{
    int err = find_weights(c, cold, g, weights);
    if (g->count == 0) {
        return err;
    }
    struct kedge_decision d = {.kind = KEDGE_DECISION_WEIGHTS,
                               .group = group,
                               .count = (uint32_t)g->count,
                               .input = g->place,
                               .weight = weights->weight,
                               .divisor = weights->divisor,
                               .rule = weights->rule};
    err = kedgei_decided(c, &d, err);
    weights->divisor = d.divisor;
    weights->rule = d.rule;
    return err;
}

/* The rule that runs may be another one than the spec's, where too few came for it (kedge_rule_effective).
 * Rule and divisor stay in the close, since aggregates are made in a later pass over the groups: lists with
 * all weights can be written first. */
int kedgei_weigh_group(struct kedge_close *c, uint32_t group, bool cold)
{
    struct gathered g;
    int err = gather(c, group, &g);
    struct kedge_compute_weights weights = {.rule = c->spec->rule, .weight = g.weight};
    if (!err) {
        err = weigh(c, group, cold, &g, &weights);
    }
    c->result->members[group] = (uint32_t)g.count;
    c->result->trained[group] = g.count > 0;
    c->rule[group] = weights.rule;
    c->divisor[group] = weights.divisor;
    for (size_t i = 0; !err && i < g.count; i++) {
        c->inputs[g.place[i]].weight = g.weight[i];
    }
    gathered_deinit(&g);
    return err ? kedge_diag_set(c->d, err, "weights of group %u: %s", group,
                                c->d->text[0] ? c->d->text : kedge_strerror(err))
               : KEDGE_OK;
}

/* ---- the aggregate ---- */

static int make_aggregate(struct kedge_close *c, uint32_t group, const struct gathered *g,
                          const struct kedge_compute_weights *weights, struct kedge_hash *ret)
{
    struct kedgei_paths base = {.count = 0};
    struct kedge_close_file file;
    if (g->lacks) {
        return KEDGE_E_NOT_FOUND;
    }
    KEDGE_TRY(kedgei_path_of(c, &base, &c->result->before[group]));
    KEDGE_TRY(kedgei_begin(c, KEDGE_DTYPE_F32, 1, &file));
    int err = kedge_compute_aggregate(c->spec, c->layout, &base.at[0], g->inputs, g->count, weights, c->limit,
                                      file.sink, c->d);
    return c->host.end(c->host.arg, &file, err, ret, c->d);
}

static int aggregate(struct kedge_close *c, uint32_t group)
{
    struct kedge_round_result *r = c->result;
    struct kedge_decision d = {.kind = KEDGE_DECISION_AGGREGATE, .group = group};
    struct gathered g;
    int err = gather(c, group, &g);
    if (!err && g.count > 0) {
        const struct kedge_compute_weights weights = {
            .rule = c->rule[group], .weight = g.weight, .divisor = c->divisor[group]};
        err = make_aggregate(c, group, &g, &weights, &d.vector);
        err = kedgei_decided(c, &d, err);
        r->aggregate[group] = d.vector;
    }
    gathered_deinit(&g);
    return err;
}

/* By the rule and the weights that the part would have had as a group. They are told of no list: what an
 * auditor compares is the model. */
static int make_part(struct kedge_close *c, uint32_t group, struct gathered *g, struct kedge_hash *ret)
{
    struct kedge_compute_weights weights = {.rule = c->spec->rule, .weight = g->weight};
    if (g->count == 0) {
        *ret = c->result->after[group];
        return KEDGE_OK;
    }
    int err = find_weights(c, false, g, &weights);
    return err ? err : make_aggregate(c, group, g, &weights, ret);
}

int kedgei_try_part(struct kedge_close *c, uint32_t group, const bool *chosen, uint32_t part,
                    struct kedge_hash *ret)
{
    struct kedge_decision d = {.kind = KEDGE_DECISION_TRIAL, .group = part};
    struct gathered g;
    int err = gather_of(c, group, group, chosen, &g);
    err = err ? err : make_part(c, group, &g, &d.vector);
    err = kedgei_decided(c, &d, err);
    *ret = d.vector;
    gathered_deinit(&g);
    return err;
}

/* By the job's rule over all of them, so that nobody counts for more, and no rule for less, than without the
 * cut. */
int kedgei_join_parts(struct kedge_close *c, uint32_t a, uint32_t b, struct kedge_hash *ret)
{
    struct kedge_decision d = {.kind = KEDGE_DECISION_JOIN, .group = a};
    struct gathered g;
    int err = gather_of(c, a, b, NULL, &g);
    err = err ? err : make_part(c, a, &g, &d.vector);
    err = kedgei_decided(c, &d, err);
    *ret = d.vector;
    gathered_deinit(&g);
    return err;
}

/* ---- the server's step ---- */

/* paths: of the model, the aggregate, and the state unless it begins with this step. SCAFFOLD's control
 * variate steps with the updates that made the aggregate, which are gathered once more for it. */
static int step_to(struct kedge_close *c, uint32_t group, const struct kedgei_paths *paths,
                   struct kedge_sink model, struct kedge_sink state)
{
    const struct kedge_blob_at *at = paths->at, *before = paths->count > 2 ? &at[2] : NULL;
    struct gathered g;
    if (!kedge_job_spec_has_control(c->spec)) {
        return kedge_compute_server(c->spec, c->result->round, c->layout, &at[0], &at[1], before, model,
                                    state, c->d);
    }
    int err = gather(c, group, &g);
    if (!err && g.lacks) {
        err = KEDGE_E_NOT_FOUND;
    } else if (!err) {
        err = kedge_compute_control_step(c->spec, c->layout, &at[0], &at[1], before, g.inputs, g.count, model,
                                         state, c->d);
    }
    gathered_deinit(&g);
    return err;
}

/* Two files are made in one run. Where the second cannot be begun the first has been, and is ended with
 * that error. */
static int make_step(struct kedge_close *c, uint32_t group, struct kedge_decision *d)
{
    struct kedge_round_result *r = c->result;
    bool begins = kedge_hash_is_zero(&r->state_before[group]);
    struct kedgei_paths paths = {.count = 0};
    struct kedge_close_file model, next;
    KEDGE_TRY(kedgei_path_of(c, &paths, &r->before[group]));
    KEDGE_TRY(kedgei_path_of(c, &paths, &r->aggregate[group]));
    if (!begins) {
        KEDGE_TRY(kedgei_path_of(c, &paths, &r->state_before[group]));
    }
    KEDGE_TRY(kedgei_begin(c, KEDGE_DTYPE_F32, 1, &model));
    int next_err = kedgei_begin(c, KEDGE_DTYPE_F32, kedge_server_states(c->spec->server), &next);
    int err = next_err ? next_err : step_to(c, group, &paths, model.sink, next.sink);
    err = c->host.end(c->host.arg, &model, err, &d->vector, c->d);
    return next_err ? err : c->host.end(c->host.arg, &next, err, &d->state, c->d);
}

static int step(struct kedge_close *c, uint32_t group)
{
    struct kedge_decision d = {.kind = KEDGE_DECISION_STEP, .group = group};
    int err = make_step(c, group, &d);
    err = kedgei_decided(c, &d, err);
    if (!err) {
        c->result->stepped[group] = d.vector;
        c->result->state_after[group] = d.state;
    }
    return err;
}

/* A group in which nobody trained keeps model and state, and its row in the step says so. The round in
 * which groups are made (cold) has no server's step: docs/record.md, "step". */
int kedgei_aggregate_group(struct kedge_close *c, uint32_t group, bool cold)
{
    struct kedge_round_result *r = c->result;
    r->aggregate[group] = r->before[group];
    r->state_after[group] = r->state_before[group];
    int err = aggregate(c, group);
    r->stepped[group] = r->aggregate[group];
    if (!err && !cold && r->trained[group] && kedge_server_states(c->spec->server) > 0) {
        err = step(c, group);
    }
    r->after[group] = r->stepped[group];
    return err;
}

/* ---- several models ---- */

/* Mixing moves each model towards all others, so all are made in one pass, in which each model is read
 * once. begun counts the groups whose files are begun, or that need none; those are ended, whatever fails. */
static int make_mix(struct kedge_close *c, struct kedge_hash *ret)
{
    const struct kedge_round_result *r = c->result;
    struct kedgei_paths models = {.count = 0};
    struct kedge_close_file files[KEDGE_GROUPS_MAX];
    struct kedge_sink sinks[KEDGE_GROUPS_MAX] = {{.arg = NULL}};
    uint32_t begun = 0;
    int err = KEDGE_OK;
    for (uint32_t g = 0; g < r->groups && !err; g++) {
        err = kedgei_path_of(c, &models, &r->stepped[g]);
    }
    while (begun < r->groups && !err) {
        err = r->trained[begun] ? kedgei_begin(c, KEDGE_DTYPE_F32, 1, &files[begun]) : KEDGE_OK;
        if (!err && r->trained[begun]) {
            sinks[begun] = files[begun].sink;
        }
        begun += err ? 0 : 1;
    }
    if (!err) {
        err = kedge_compute_mixing(c->layout, models.at, r->trained, r->groups, c->spec->mixing, sinks, c->d);
    }
    for (uint32_t g = 0; g < begun; g++) {
        err = r->trained[g] ? c->host.end(c->host.arg, &files[g], err, &ret[g], c->d) : err;
    }
    return err;
}

int kedgei_mix(struct kedge_close *c)
{
    struct kedge_round_result *r = c->result;
    struct kedge_hash mixed[KEDGE_GROUPS_MAX] = {{{0}}};
    const int made = make_mix(c, mixed);
    for (uint32_t g = 0; g < r->groups; g++) {
        if (r->trained[g]) {
            struct kedge_decision d = {.kind = KEDGE_DECISION_MIX, .group = g, .vector = mixed[g]};
            int err = kedgei_decided(c, &d, made);
            if (err) {
                return err;
            }
            r->after[g] = d.vector;
        }
    }
    return KEDGE_OK;
}

static int make_blend(struct kedge_close *c, const struct kedge_hash *models, const uint64_t *weight,
                      uint32_t count, struct kedge_hash *ret)
{
    struct kedgei_paths paths = {.count = 0};
    struct kedge_close_file file;
    for (uint32_t g = 0; g < count; g++) {
        KEDGE_TRY(kedgei_path_of(c, &paths, &models[g]));
    }
    KEDGE_TRY(kedgei_begin(c, KEDGE_DTYPE_F32, 1, &file));
    int err = kedge_compute_blend(c->layout, paths.at, weight, count, file.sink, c->d);
    return c->host.end(c->host.arg, &file, err, ret, c->d);
}

int kedgei_blend(struct kedge_close *c, enum kedge_decision_kind kind, uint32_t group,
                 const struct kedge_hash *models, const uint64_t *weight, uint32_t count,
                 struct kedge_hash *ret)
{
    uint64_t weights[KEDGE_GROUPS_MAX];
    struct kedge_decision d = {.kind = kind, .group = group, .count = count, .weight = weights};
    memcpy(weights, weight, count * sizeof *weights);
    int err = make_blend(c, models, weight, count, &d.vector);
    err = kedgei_decided(c, &d, err);
    if (!err) {
        *ret = d.vector;
    }
    return err;
}
