/* Targets: after each round that is evaluated the coordinator says what the evaluations came to, before it
 * opens another; where the first target is newly reached it releases the models that reached it, and where
 * the last one is the job ends. All of it follows from the evaluations that the tenants' ledgers hold under
 * the checkpoints before the statement, so a coordinator that ends a job early, goes on beyond its end, or
 * calls models useful that are not, is convicted. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "chain/audit/record.h"
#include "round/close/params.h"

static const struct kedgei_round *last_round(const struct kedgei_job *job)
{
    return job->round_count ? kedgei_round_at(job, job->round_count - 1) : NULL;
}

bool kedgei_is_at_target(const struct kedgei_job *job)
{
    return job->spec.target_count > 0 && job->tier == job->spec.target_count;
}

/* So many releases, one for each group, belong to what the last test says. */
static void check_releases(struct kedgei_audit *a, const struct kedgei_job *job,
                           const struct kedgei_fact *tested)
{
    const struct kedge_st_round_tested *t = tested->body;
    const bool releases = kedge_close_releases(&job->spec, job->tier_before, t->tier);
    if (job->tier_releases != (releases ? job->groups : 0)) {
        kedgei_error(&a->findings, KEDGE_AUDIT_TARGET, &a->main, tested->index,
                     "round %u: %u models are released with it, expected %u", t->round, job->tier_releases,
                     releases ? job->groups : 0);
    }
}

/* next: NULL when the job is closed. */
void kedgei_check_told(struct kedgei_audit *a, const struct kedgei_job *job, const struct kedgei_fact *next)
{
    const struct kedgei_round *round = last_round(job);
    if (!round || !round->step || (next && ((const struct kedge_st_round_opened *)next->body)->draw > 0)) {
        return;
    }
    const uint64_t at = next ? next->index : job->closed->index;
    if (round->tested) {
        check_releases(a, job, round->tested);
    } else if (kedge_job_spec_tests(&job->spec, round->number)) {
        kedgei_error(&a->findings, KEDGE_AUDIT_TARGET, &a->main, at,
                     "job \"%s\" goes on without saying what the evaluations of round %u came to", job->id.s,
                     round->number);
    }
    if (next && kedgei_is_at_target(job)) {
        kedgei_error(&a->findings, KEDGE_AUDIT_TARGET, &a->main, at,
                     "job \"%s\" had reached its last target, and opens another round", job->id.s);
    }
}

/* What is held follows from the statement's own counts and the one before; the counts themselves are held
 * against the ledgers once all are known. */
void kedgei_round_tested(struct kedgei_audit *a, struct kedgei_job *job, struct kedgei_fact *fact)
{
    const struct kedge_st_round_tested *t = fact->body;
    struct kedgei_findings *f = &a->findings;
    struct kedgei_round *round = job->round_count ? kedgei_round_at(job, job->round_count - 1) : NULL;
    if (!round || round->number != t->round || !round->step || round->tested
        || !kedge_job_spec_tests(&job->spec, t->round)) {
        kedgei_error(f, KEDGE_AUDIT_TARGET, &a->main, fact->index,
                     "round %u of job \"%s\" is not one whose evaluations are to be told here", t->round,
                     job->id.s);
        return;
    }
    if (!kedge_hash_eq(&fact->subject, &job->opened->subject)) {
        kedgei_error(f, KEDGE_AUDIT_TARGET, &a->main, fact->index, "names another spec");
    }
    round->tested = fact;
    job->tier_before = job->tier;
    job->tier_releases = 0;
    job->tier = kedge_close_test(&job->spec, t, &job->held);
    if (t->held != job->held.times[0] || t->held_last != job->held.times[1] || t->tier != job->tier) {
        kedgei_error(
            f, KEDGE_AUDIT_TARGET, &a->main, fact->index,
            "round %u: says %u targets reached, held %u and %u times; what it counts gives %u, %u and %u",
            t->round, t->tier, t->held, t->held_last, job->tier, job->held.times[0], job->held.times[1]);
    }
}

/* The models after the round that was tested, in the order of groups, behind what was said of it. */
void kedgei_check_tier_release(struct kedgei_audit *a, struct kedgei_job *job, const struct kedgei_fact *fact)
{
    const struct kedge_st_release *r = fact->body;
    const struct kedgei_round *round = last_round(job);
    char file[KEDGE_ST_NAME_MAX + 1];
    const struct kedge_st_step_group *row = round ? kedgei_step_group(round->step, r->group) : NULL;
    snprintf(file, sizeof file, "%s-g%u.safetensors", job->id.s, r->group);
    const struct kedgei_fact *tested = round ? round->tested : NULL;
    const bool follows = tested && fact->index == tested->index + 1 + job->tier_releases;
    if (!follows || r->round != round->number || r->tier != job->tier || r->group != job->tier_releases
        || !row || !kedge_hash_eq(&row->after, &fact->subject) || strcmp(file, r->file) != 0) {
        kedgei_error(&a->findings, KEDGE_AUDIT_TARGET, &a->main, fact->index,
                     "job \"%s\": no target was newly reached by the model of group %u after round %u",
                     job->id.s, r->group, r->round);
        return;
    }
    job->tier_releases++;
}

/* ---- counts ---- */

static void count_tenant(const struct kedgei_job *job, const struct kedgei_log *log, uint64_t end,
                         struct kedge_st_round_tested *io)
{
    char text[KEDGE_IDEM_KEY_MAX + 2];
    const size_t len = (size_t)snprintf(text, sizeof text, "evaluation/%s/%08u/", job->id.s, io->round);
    for (size_t i = kedgei_log_lower(log, kedge_view_of(text, len)); i < log->key_count; i++) {
        const struct kedgei_key_row *row = kedgei_key_at(log, i);
        if (row->key.len <= len || memcmp(row->key.ptr, text, len) != 0) {
            return;
        }
        const struct kedgei_fact *fact = kedgei_fact_at(log, row->index);
        if (row->index < end && fact->kind == KEDGE_ST_EVALUATION) {
            const struct kedge_st_evaluation *e = fact->body;
            io->evaluations++;
            io->samples += e->samples;
            io->correct += e->correct;
        }
    }
}

static void check_counts(struct kedgei_audit *a, const struct kedgei_job *job,
                         const struct kedgei_fact *tested)
{
    const struct kedge_st_round_tested *t = tested->body;
    struct kedge_st_round_tested found = {.round = t->round};
    for (uint32_t i = 0; i < job->spec.tenant_count; i++) {
        const struct kedgei_log *log = &a->tenants[job->tenants[i]];
        count_tenant(job, log, kedgei_anchored_before(log, tested->index), &found);
    }
    if (found.evaluations != t->evaluations || found.samples != t->samples || found.correct != t->correct) {
        kedgei_error(&a->findings, KEDGE_AUDIT_TARGET, &a->main, tested->index,
                     "round %u: counts %u evaluations, %" PRIu64 " of %" PRIu64
                     " right; the ledgers hold %u, %" PRIu64 " of %" PRIu64,
                     t->round, t->evaluations, t->correct, t->samples, found.evaluations, found.correct,
                     found.samples);
    }
}

void kedgei_check_tests(struct kedgei_audit *a)
{
    for (uint32_t j = 0; j < a->job_count; j++) {
        const struct kedgei_job *job = a->jobs[j];
        const bool is_whole = job->usable && !a->skipped && kedgei_job_whole(job);
        if (job->usable && !is_whole && job->spec.target_count > 0) {
            (void)KEDGEI_SKIP(a, decisions);
        }
        for (size_t r = 0; is_whole && r < job->round_count; r++) {
            const struct kedgei_round *round = kedgei_round_at(job, r);
            if (round->tested) {
                check_counts(a, job, round->tested);
            }
        }
    }
}
