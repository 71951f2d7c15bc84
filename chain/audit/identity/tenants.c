/* Tenants' statements about jobs; and the table of updates by round, which inputs.c works on. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "chain/audit/record.h"
#include "common/base/try.h"

static struct kedgei_job *usable_job(const struct kedgei_audit *a, struct kedgei_findings *f,
                                     const struct kedgei_log *log, const struct kedgei_fact *fact,
                                     const struct kedge_id *id)
{
    struct kedgei_job *job = kedgei_job_find(a, id);
    if (!job) {
        kedgei_error_if_settled(a, f, KEDGE_AUDIT_JOB, log, fact->index,
                                "%s of job \"%s\", which is not open",
                                kedge_statement_kind_name((enum kedge_statement_kind)fact->kind), id->s);
    }
    return job && job->usable ? job : NULL;
}

static bool has_tenant(const struct kedgei_job *job, const struct kedge_id *tenant)
{
    for (uint32_t i = 0; i < job->spec.tenant_count; i++) {
        if (kedge_id_eq(&job->spec.tenants[i], tenant)) {
            return true;
        }
    }
    return false;
}

/* A tenant joins a job that waits for its place, too. If that ends there, nothing can come of it: all else
 * that is said of a job that was not opened is wrong. */
static void check_joined(struct kedgei_audit *a, const struct kedgei_log *log, const struct kedgei_fact *fact)
{
    const struct kedge_st_job_joined *s = fact->body;
    const struct kedgei_job *job = kedgei_job_find(a, &s->job);
    if (!job) {
        char where[KEDGE_AUDIT_WHERE_MAX];
        snprintf(where, sizeof where, "%s[%" PRIu64 "]", log->name, fact->index);
        kedgei_find(&a->findings, KEDGE_AUDIT_NOTE, KEDGE_AUDIT_JOB_UNFINISHED, where,
                    "joined job \"%s\", which is not open: it waits, or ended before it was", s->job.s);
    }
    job = job && job->usable ? job : NULL;
    if (job && !kedge_hash_eq(&job->opened->subject, &fact->subject)) {
        kedgei_error(&a->findings, KEDGE_AUDIT_SPEC, log, fact->index, "joined job \"%s\" with another spec",
                     s->job.s);
    }
    if (job && !has_tenant(job, &log->tenant)) {
        kedgei_error(&a->findings, KEDGE_AUDIT_JOB, log, fact->index,
                     "joined job \"%s\", whose spec does not name it", s->job.s);
    }
}

/* A tenant leaves a job that it has joined, and names the spec that it joined. */
static void check_left(struct kedgei_audit *a, const struct kedgei_log *log, const struct kedgei_fact *fact)
{
    const struct kedge_st_job_left *s = fact->body;
    const struct kedgei_fact *joined = kedgei_log_find(log, "job-joined/%s", s->job.s);
    if (!joined || joined->index > fact->index) {
        kedgei_error(&a->findings, KEDGE_AUDIT_NOT_JOINED, log, fact->index,
                     "left job \"%s\", which it had not joined", s->job.s);
    } else if (!kedge_hash_eq(&joined->subject, &fact->subject)) {
        kedgei_error(&a->findings, KEDGE_AUDIT_SPEC, log, fact->index, "left job \"%s\" with another spec",
                     s->job.s);
    }
}

bool kedgei_has_left(const struct kedgei_log *log, const struct kedge_id *job, uint64_t before)
{
    const struct kedgei_fact *left = kedgei_log_find(log, "job-left/%s", job->s);
    return left && left->index < before;
}

/* Whether the group was the site's at some time since this round closed: it may have changed while the
 * evaluation was under way. Where the round made groups anew its number means one of those. Lower bound:
 * what was anchored when the round's step was stated. An assignment that the close itself made comes
 * after that, so the search begins after it. */
static bool was_in_group(const struct kedgei_log *log, const struct kedge_st_evaluation *e,
                         const struct kedgei_round *round, uint64_t index)
{
    uint64_t least = round->step ? kedgei_anchored_before(log, round->step->index) : index;
    const struct kedgei_fact *stated =
        kedgei_regroups(round)
            ? kedgei_log_find(log, "group-assigned/%s/%s/%08u/close", e->job.s, e->site.s, e->round)
            : NULL;
    least = stated && stated->index >= least ? stated->index + 1 : least;
    return kedgei_group_was(log, &e->job, &e->site, least < index ? least : index, index, e->group);
}

/* What a site evaluated must be the model that its group had after that round, and the group its own, by
 * whichever rule the job gives groups: assignments, the site's own choice, or the tenant's. Evaluations
 * decide trials of groups, so a site must not be able to speak for a group that it is not in. */
static void check_evaluation(struct kedgei_audit *a, const struct kedgei_log *log,
                             const struct kedgei_fact *fact)
{
    const struct kedge_st_evaluation *e = fact->body;
    const struct kedgei_job *job = usable_job(a, &a->findings, log, fact, &e->job);
    const struct kedgei_fact *joined = kedgei_log_find(log, "job-joined/%s", e->job.s);
    if (!job) {
        return;
    }
    if (!joined || joined->index > fact->index) {
        kedgei_error(&a->findings, KEDGE_AUDIT_NOT_JOINED, log, fact->index,
                     "evaluation in job \"%s\", which is not joined", e->job.s);
    }
    if (kedgei_has_left(log, &e->job, fact->index)) {
        kedgei_error(&a->findings, KEDGE_AUDIT_NOT_JOINED, log, fact->index,
                     "evaluation in job \"%s\", which the tenant had left", e->job.s);
    }
    const struct kedgei_round *round = kedgei_round_find(job, e->round);
    const struct kedge_st_step_group *g = round ? kedgei_step_group(round->step, e->group) : NULL;
    if (!g) {
        kedgei_error_if_settled(a, &a->findings, KEDGE_AUDIT_EVALUATION, log, fact->index,
                                "evaluation of round %u, group %u, which has no result", e->round, e->group);
    } else if (!kedge_hash_eq(&g->after, &fact->subject)) {
        kedgei_error(&a->findings, KEDGE_AUDIT_EVALUATION, log, fact->index,
                     "evaluation of another model than group %u had after round %u", e->group, e->round);
    }
    if (e->samples == 0 || e->correct > e->samples) {
        kedgei_error(&a->findings, KEDGE_AUDIT_EVALUATION, log, fact->index, "%llu of %llu samples correct",
                     (unsigned long long)e->correct, (unsigned long long)e->samples);
    }
    bool grouped = kedge_job_spec_states_groups(&job->spec);
    bool together = round && kedgei_unsplit_at_close(job, log, e, round, fact->index);
    bool is_own = together  ? true
                  : grouped ? round && was_in_group(log, e, round, fact->index)
                  : kedge_job_spec_grouped_by(&job->spec) == KEDGE_GROUPED_BY_UPDATE
                      ? kedgei_choice_matches(a, round, log, e, fact->index)
                      : e->group == kedgei_first_group(a, job, log);
    if (!is_own) {
        kedgei_error(&a->findings, KEDGE_AUDIT_GROUP, log, fact->index,
                     "site \"%s\" evaluated group %u, not its own", e->site.s, e->group);
    }
}

/* ---- updates by round ---- */

/* The round of an update; NULL, with a finding when `f` is given, for one of no round. Called twice for
 * each update, first with findings and to count, then without to place it: the same tests must come to
 * the same answer. */
static struct kedgei_round *round_of(const struct kedgei_audit *a, struct kedgei_findings *f, uint32_t tenant,
                                     const struct kedgei_fact *fact, uint32_t *ret_job)
{
    const struct kedge_st_update *u = fact->body;
    const struct kedgei_log *log = &a->tenants[tenant];
    const struct kedgei_job *job = f ? usable_job(a, f, log, fact, &u->job) : kedgei_job_find(a, &u->job);
    if (!job || !job->usable) {
        return NULL;
    }
    struct kedgei_round *round = kedgei_round_find(job, u->round);
    if (!has_tenant(job, &log->tenant)) {
        if (f) {
            kedgei_error(f, KEDGE_AUDIT_JOB, log, fact->index,
                         "update for job \"%s\", whose spec does not name \"%s\"", u->job.s, log->name);
        }
        return NULL;
    }
    if (!round && f) {
        kedgei_error_if_settled(a, f, KEDGE_AUDIT_UPDATE, log, fact->index,
                                "update for round %u of job \"%s\", which was not opened", u->round,
                                u->job.s);
    }
    uint32_t j = 0;
    while (a->jobs[j] != job) {
        j++;
    }
    *ret_job = j;
    return round;
}

/* Rounds have been told how many updates they have: each gets its part of the table. Counting first and
 * filling afterwards gives one table in the order of rounds without sorting, and each round's task then
 * reads only its own stretch. */
static int give_rounds_their_updates(struct kedgei_audit *a)
{
    size_t count = 0;
    for (uint32_t j = 0; j < a->job_count; j++) {
        for (size_t r = 0; r < a->jobs[j]->round_count; r++) {
            struct kedgei_round *round = kedgei_round_at(a->jobs[j], r);
            round->update_first = count;
            count += round->update_count;
            round->update_count = 0;
        }
    }
    a->updates = kedgei_scratch_new(&a->scratch, count + 1, sizeof *a->updates);
    if (!a->updates) {
        return kedgei_scratch_error(&a->scratch, &a->diag);
    }
    a->update_count = count;
    for (uint32_t t = 0; t < a->tenant_count; t++) {
        const struct kedgei_log *log = &a->tenants[t];
        for (uint64_t i = 0; i < log->count; i++) {
            struct kedgei_fact *fact = kedgei_fact_at(log, i);
            uint32_t j;
            struct kedgei_round *round =
                fact->kind == KEDGE_ST_UPDATE ? round_of(a, NULL, t, fact, &j) : NULL;
            if (round) {
                *kedgei_update_at(a, round->update_first + round->update_count++) =
                    (struct kedgei_update){j, round->number, t, fact};
            }
        }
    }
    return KEDGE_OK;
}

int kedgei_check_tenants(struct kedgei_audit *a)
{
    KEDGE_TRY(kedgei_trained_collect(a));
    for (uint32_t t = 0; t < a->tenant_count; t++) {
        const struct kedgei_log *log = &a->tenants[t];
        for (uint64_t i = 0; i < log->count; i++) {
            struct kedgei_fact *fact = kedgei_fact_at(log, i);
            if (fact->kind == KEDGE_ST_JOB_JOINED) {
                check_joined(a, log, fact);
            } else if (fact->kind == KEDGE_ST_JOB_LEFT) {
                check_left(a, log, fact);
            } else if (fact->kind == KEDGE_ST_UPDATE) {
                uint32_t j;
                struct kedgei_round *round = round_of(a, &a->findings, t, fact, &j);
                if (round) {
                    round->update_count++;
                }
            } else if (fact->kind == KEDGE_ST_EVALUATION) {
                check_evaluation(a, log, fact);
            } else if (fact->kind == KEDGE_ST_GROUP_ASSIGNED) {
                const struct kedge_st_group_assigned *g = fact->body;
                const struct kedgei_job *job = usable_job(a, &a->findings, log, fact, &g->job);
                if (job) {
                    kedgei_check_assigned(a, job, log, fact);
                }
            }
        }
    }
    return give_rounds_their_updates(a);
}
