/* The decisions that make models: aggregates, the server's step, mixing. */
#include <stdio.h>
#include <string.h>

#include "chain/audit/rounds/buffer.h"
#include "chain/audit/rounds/replay.h"
#include "chain/audit/rounds/weights.h"
#include "common/base/mem.h"
#include "round/regroup.h"
#include "round/step.h"

/* The updates of an aggregate; false when a row names no statement (verify says so). */
static bool put_inputs(const struct kedgei_replay *r, const struct kedgei_decision *d,
                       const struct kedgei_inputs *in, struct kedge_compute_input *inputs, uint64_t *recorded,
                       uint64_t *ret_sum)
{
    bool whole = true;
    *ret_sum = 0;
    for (size_t i = 0; i < in->count; i++) {
        const struct kedgei_input *item = &in->items[i];
        const struct kedgei_log *log = &r->a->tenants[d->job->tenants[item->place]];
        inputs[i].update = kedgei_input_at(item);
        inputs[i].tenant = item->place;
        inputs[i].is_root = kedge_job_spec_is_root(&d->job->spec, item->place, &item->row.site);
        whole = kedgei_weights_facts(log, &item->row, &inputs[i].facts) && whole;
        inputs[i].facts.staleness = kedgei_staleness(d->round->number, &item->row);
        recorded[i] = item->row.weight;
        *ret_sum += item->row.weight;
    }
    return whole;
}

/* Weights that follow from more than the sample counts are found again; the recorded ones must be these. */
static int weigh(const struct kedgei_replay *r, struct kedgei_decision *d, const struct kedgei_inputs *in,
                 const struct kedge_compute_input *inputs, const uint64_t *recorded,
                 struct kedge_compute_weights *weights, struct kedge_diag *diag, struct kedgei_findings *f)
{
    bool cold = d->round->pretrain;
    const struct kedge_st_aggregate *agg = d->fact->body;
    int err = kedge_compute_weigh(&d->job->spec, &d->job->layout, cold, inputs, in->count, weights, diag);
    if (err) {
        return err;
    }
    for (size_t i = 0; i < in->count; i++) {
        kedgei_replay_add_number(d, weights->weight[i]);
        if (weights->weight[i] != recorded[i]) {
            kedgei_error(
                f, KEDGE_AUDIT_REPLAY_AGGREGATE, &r->a->main, d->fact->index,
                "job \"%s\", round %u: update of site \"%s\" of \"%s\" is recorded with weight %llu, the "
                "updates give %llu",
                d->job->id.s, d->round->number, in->items[i].row.site.s,
                d->job->spec.tenants[in->items[i].place].s, (unsigned long long)recorded[i],
                (unsigned long long)weights->weight[i]);
        }
    }
    kedgei_replay_add_number(d, weights->divisor);
    struct kedge_rule_name name = kedge_job_spec_aggregate_rule(&d->job->spec, cold, weights->rule);
    if (strcmp(name.s, agg->rule) != 0) {
        kedgei_error(f, KEDGE_AUDIT_REPLAY_AGGREGATE, &r->a->main, d->fact->index,
                     "job \"%s\", round %u: rule \"%s\" is recorded, with these updates it is \"%s\"",
                     d->job->id.s, d->round->number, agg->rule, name.s);
    }
    return KEDGE_OK;
}

/* What was computed, if it was, against the model that the aggregate states; takes the hasher. */
static void judge_model(const struct kedgei_replay *r, struct kedgei_decision *d, const char *what, int err,
                        struct kedge_diag *diag, struct kedge_hasher *hasher, struct kedgei_findings *f)
{
    struct kedge_hash digest;
    if (err) {
        kedgei_replay_failed(r, d, d->fact->index, what, err, diag, f);
    } else {
        kedge_hasher_final(hasher, &digest);
        kedgei_replay_add(d, digest.b, sizeof digest.b);
        kedgei_replay_compare(r, d, KEDGE_AUDIT_REPLAY_AGGREGATE, d->fact->index, d->group, &digest,
                              &d->fact->subject, f);
    }
    kedge_hasher_free(hasher);
}

/* The mean of the former models of those whose updates made the group. */
static void replay_regrouped(const struct kedgei_replay *r, struct kedgei_decision *d,
                             struct kedgei_findings *f)
{
    const struct kedge_blobs *blobs = r->a->main.blobs;
    const struct kedge_st_job_opened *o = d->job->opened->body;
    const struct kedge_st_step *last = d->round[-1].step->body; /* a round of training: not the first */
    struct kedge_diag diag = {.err = KEDGE_OK};
    struct kedgei_inputs in = {.items = NULL};
    struct kedge_hasher *hasher = NULL;
    struct kedge_sink sink;
    char initial[KEDGE_PATH_MAX], paths[KEDGE_GROUPS_MAX][KEDGE_PATH_MAX];
    const char *former[KEDGE_GROUPS_MAX];
    int err = kedgei_inputs_read(r, d, &in, f);
    uint32_t *then = kedgei_inputs_then(r, d, &in), *group = kedge_mem_new(in.count + 1, sizeof *group);
    uint64_t *weight = kedge_mem_new(in.count + 1, sizeof *weight);
    err = err ? err : then && group && weight ? kedgei_replay_sink(&hasher, &sink) : KEDGE_E_NOMEM;
    err = err ? err : kedge_blobs_path(blobs, &o->initial_model, initial);
    for (size_t i = 0; group && weight && i < in.count; i++) {
        group[i] = in.items[i].row.group;
        weight[i] = in.items[i].row.weight; /* which verify has made again */
    }
    for (uint32_t g = 0; g < last->group_count && !err; g++) {
        former[g] = paths[g];
        err = kedge_blobs_path(blobs, &last->groups[g].after, paths[g]);
    }
    err = err ? err
              : kedge_compute_regrouped(&d->job->layout, former, last->group_count, initial, then, group,
                                        weight, in.count, d->group, sink, &diag);
    judge_model(r, d, "model of a new group", err, &diag, hasher, f);
    kedge_mem_free(in.items);
    kedge_mem_free(then);
    kedge_mem_free(group);
    kedge_mem_free(weight);
}

/* What is made again is hashed as ever, and kept. */
struct both {
    struct kedge_hasher *hasher;
    struct kedge_blob_writer *writer;
};

static int write_both(void *arg, struct kedge_view bytes)
{
    const struct both *b = arg;
    kedge_hasher_update(b->hasher, bytes);
    return kedge_blob_writer_write(b->writer, bytes, NULL);
}

void kedgei_replay_aggregate(const struct kedgei_replay *r, struct kedgei_decision *d,
                             struct kedgei_findings *f)
{
    if (kedgei_regroups(d->round)) {
        replay_regrouped(r, d, f);
        return;
    }
    const struct kedge_job_spec *spec = &d->job->spec;
    const struct kedge_st_aggregate *agg = d->fact->body;
    struct kedge_diag diag = {.err = KEDGE_OK};
    struct kedgei_inputs in = {.items = NULL};
    struct kedge_hasher *hasher = NULL;
    struct kedge_sink sink;
    char base[KEDGE_PATH_MAX];
    int err = kedgei_inputs_read(r, d, &in, f);
    struct kedge_compute_input *inputs = kedge_mem_new(in.count + 1, sizeof *inputs);
    uint64_t *recorded = kedge_mem_new(2 * in.count + 1, sizeof *recorded);
    struct kedge_compute_weights weights = {.rule = spec->rule, .weight = recorded};
    err = err ? err : inputs && recorded ? kedgei_replay_sink(&hasher, &sink) : KEDGE_E_NOMEM;
    if (!err) {
        bool whole = put_inputs(r, d, &in, inputs, recorded, &weights.divisor);
        bool plain = spec->rule->kind == KEDGE_RULE_MEAN && kedge_job_spec_weighs_samples(spec);
        if (!plain && whole) {
            weights.weight = recorded + in.count;
            err = weigh(r, d, &in, inputs, recorded, &weights, &diag, f);
        } else if (!plain) {
            err = KEDGE_E_CORRUPT;
        }
    }
    struct both both = {hasher, r->writer};
    if (r->writer) {
        sink = (struct kedge_sink){write_both, &both};
    }
    err = err ? err : kedge_blobs_path(r->a->main.blobs, &agg->base, base);
    err = err ? err
              : kedge_compute_aggregate(spec, &d->job->layout, base, inputs, in.count, &weights,
                                        d->job->limit, sink, &diag);
    judge_model(r, d, "aggregate", err, &diag, hasher, f);
    kedge_mem_free(in.items);
    kedge_mem_free(inputs);
    kedge_mem_free(recorded);
}

void kedgei_replay_server(const struct kedgei_replay *r, struct kedgei_decision *d, struct kedgei_findings *f)
{
    const struct kedge_st_step_group *g = kedgei_step_group(d->round->step, d->group);
    const struct kedge_blobs *blobs = r->a->main.blobs;
    struct kedge_diag diag = {.err = KEDGE_OK};
    struct kedge_hasher *hashers[2] = {NULL, NULL};
    struct kedge_sink sinks[2];
    struct kedge_hash digest;
    uint64_t at = d->round->step->index;
    char before[KEDGE_PATH_MAX], aggregate[KEDGE_PATH_MAX], state[KEDGE_PATH_MAX];
    int err = g ? kedge_blobs_path(blobs, &g->before, before) : KEDGE_E_NOT_FOUND;
    err = err ? err : kedge_blobs_path(blobs, &g->aggregate, aggregate);
    err = err ? err : kedge_blobs_path(blobs, &g->state_before, state);
    err = err ? err : kedgei_replay_sink(&hashers[0], &sinks[0]);
    err = err ? err : kedgei_replay_sink(&hashers[1], &sinks[1]);
    err = err ? err
          : kedge_job_spec_has_control(&d->job->spec)
              ? kedgei_replay_control(r, d, before, aggregate,
                                      kedge_hash_is_zero(&g->state_before) ? NULL : state, sinks[0], sinks[1],
                                      &diag, f)
              : kedge_compute_server(&d->job->spec, d->round->number, &d->job->layout, before, aggregate,
                                     kedge_hash_is_zero(&g->state_before) ? NULL : state, sinks[0], sinks[1],
                                     &diag);
    if (err) {
        kedgei_replay_failed(r, d, at, "server's step", err, &diag, f);
    } else {
        kedge_hasher_final(hashers[0], &digest);
        kedgei_replay_add(d, digest.b, sizeof digest.b);
        kedgei_replay_compare(r, d, KEDGE_AUDIT_REPLAY_STEP, at, d->group, &digest,
                              kedge_hash_is_zero(&g->stepped) ? &g->after : &g->stepped, f);
        kedge_hasher_final(hashers[1], &digest);
        kedgei_replay_add(d, digest.b, sizeof digest.b);
        kedgei_replay_compare(r, d, KEDGE_AUDIT_REPLAY_STEP, at, d->group, &digest, &g->state_after, f);
    }
    kedge_hasher_free(hashers[0]);
    kedge_hasher_free(hashers[1]);
}

void kedgei_replay_mixing(const struct kedgei_replay *r, struct kedgei_decision *d, struct kedgei_findings *f)
{
    const struct kedge_st_step *step = d->round->step->body;
    struct kedge_diag diag = {.err = KEDGE_OK};
    char paths[KEDGE_GROUPS_MAX][KEDGE_PATH_MAX];
    const char *models[KEDGE_GROUPS_MAX];
    bool trained[KEDGE_GROUPS_MAX];
    struct kedge_hasher *hashers[KEDGE_GROUPS_MAX] = {NULL};
    struct kedge_sink sinks[KEDGE_GROUPS_MAX];
    int err = KEDGE_OK;
    for (uint32_t g = 0; g < step->group_count && !err; g++) {
        models[g] = paths[g];
        trained[g] = d->round->aggregates[g] != NULL;
        const struct kedge_st_step_group *row = &step->groups[g];
        bool stepped = !kedge_hash_is_zero(&row->stepped);
        err = kedge_blobs_path(r->a->main.blobs, stepped ? &row->stepped : &row->aggregate, paths[g]);
        err = err ? err : kedgei_replay_sink(&hashers[g], &sinks[g]);
    }
    err = err ? err
              : kedge_compute_mixing(&d->job->layout, models, trained, step->group_count, d->job->spec.mixing,
                                     sinks, &diag);
    if (err) {
        kedgei_replay_failed(r, d, d->round->step->index, "mixing", err, &diag, f);
    }
    for (uint32_t g = 0; g < step->group_count; g++) {
        struct kedge_hash digest;
        if (!err && trained[g]) {
            kedge_hasher_final(hashers[g], &digest);
            kedgei_replay_add(d, digest.b, sizeof digest.b);
            kedgei_replay_compare(r, d, KEDGE_AUDIT_REPLAY_STEP, d->round->step->index, g, &digest,
                                  &step->groups[g].after, f);
        }
        kedge_hasher_free(hashers[g]);
    }
}
