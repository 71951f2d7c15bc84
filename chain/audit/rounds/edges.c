/* Hierarchical jobs: whose edge a site is at, and the rounds behind whose steps the edges meet. */
#include <stdio.h>
#include <string.h>

#include "chain/audit/rounds/replay.h"
#include "chain/audit/rounds/weights.h"
#include "common/base/mem.h"
#include "round/meet.h"

uint32_t kedgei_first_group(const struct kedgei_audit *a, const struct kedgei_job *job,
                            const struct kedgei_log *log)
{
    if (!kedge_job_spec_has_edges(&job->spec)) {
        return 0;
    }
    for (uint32_t i = 0; i < job->spec.tenant_count; i++) {
        if (job->tenants[i] != UINT32_MAX && &a->tenants[job->tenants[i]] == log) {
            return kedge_job_spec_edge(i);
        }
    }
    return 0; /* not of the job, which is said elsewhere */
}

bool kedgei_meets(const struct kedgei_job *job, const struct kedgei_round *round)
{
    return kedge_job_spec_meets(&job->spec, round->number);
}

void kedgei_check_meeting(struct kedgei_audit *a, const struct kedgei_job *job,
                          const struct kedgei_round *round, const struct kedgei_fact *fact)
{
    const struct kedge_st_step *s = fact->body;
    for (uint32_t g = 1; kedgei_meets(job, round) && g < s->group_count; g++) {
        if (!kedge_hash_eq(&s->groups[g].after, &s->groups[0].after)) {
            kedgei_error(&a->findings, KEDGE_AUDIT_STEP, &a->main, fact->index,
                         "group %u: the edges met and left with different models", g);
        }
    }
}

/* What the updates of one round add to their edges. */
static int add_round(const struct kedgei_replay *r, const struct kedgei_decision *d,
                     const struct kedgei_round *round, uint64_t *since, struct kedgei_findings *f)
{
    const struct kedgei_decision of = {.kind = KEDGEI_MEETING, .job = d->job, .round = round};
    struct kedgei_inputs in = {.items = NULL};
    int err = kedgei_inputs_read(r, &of, &in, f);
    for (size_t i = 0; i < in.count && !err; i++) {
        const struct kedge_input_row *row = &in.items[i].row;
        struct kedge_strategy_input facts;
        if (!kedgei_weights_facts(&r->a->tenants[d->job->tenants[in.items[i].place]], row, &facts)) {
            err = KEDGE_E_CORRUPT; /* it names no statement: verify says so */
        } else {
            since[row->group] += kedge_job_spec_meeting_share(&d->job->spec, row->weight, facts.samples);
        }
    }
    kedge_mem_free(in.items);
    return err;
}

/* The edges' weights: over all rounds since they met, this one included. */
static int weigh(const struct kedgei_replay *r, struct kedgei_decision *d, uint64_t *weight,
                 struct kedgei_findings *f)
{
    uint64_t since[KEDGE_GROUPS_MAX] = {0};
    const struct kedge_st_step *step = d->round->step->body;
    const struct kedgei_round *first = d->round;
    while (first > d->job->rounds && !kedgei_meets(d->job, first - 1)) {
        first--;
    }
    int err = KEDGE_OK;
    for (const struct kedgei_round *round = first; round <= d->round && !err; round++) {
        err = add_round(r, d, round, since, f);
    }
    err = err ? err : kedge_compute_meeting_weights(&d->job->spec, since, step->group_count, weight);
    for (uint32_t g = 0; g < step->group_count && !err; g++) {
        kedgei_replay_add_number(d, weight[g]);
    }
    return err;
}

void kedgei_replay_meeting(const struct kedgei_replay *r, struct kedgei_decision *d,
                           struct kedgei_findings *f)
{
    const struct kedge_st_step *step = d->round->step->body;
    struct kedge_diag diag = {.err = KEDGE_OK};
    char paths[KEDGE_GROUPS_MAX][KEDGE_PATH_MAX];
    const char *models[KEDGE_GROUPS_MAX];
    uint64_t weight[KEDGE_GROUPS_MAX];
    struct kedge_hasher *hasher = NULL;
    struct kedge_sink sink;
    struct kedge_hash digest;
    int err = weigh(r, d, weight, f);
    for (uint32_t g = 0; g < step->group_count && !err; g++) {
        const struct kedge_st_step_group *row = &step->groups[g];
        models[g] = paths[g];
        err = kedge_blobs_path(r->a->main.blobs,
                               kedge_hash_is_zero(&row->stepped) ? &row->aggregate : &row->stepped, paths[g]);
    }
    err = err ? err : kedgei_replay_sink(&hasher, &sink);
    err = err ? err : kedge_compute_blend(&d->job->layout, models, weight, step->group_count, sink, &diag);
    if (err) {
        kedgei_replay_failed(r, d, d->round->step->index, "meeting of the edges", err, &diag, f);
    } else {
        kedge_hasher_final(hasher, &digest);
        kedgei_replay_add(d, digest.b, sizeof digest.b);
        kedgei_replay_compare(r, d, KEDGE_AUDIT_REPLAY_STEP, d->round->step->index, 0, &digest,
                              &step->groups[0].after, f);
    }
    kedge_hasher_free(hasher);
}
