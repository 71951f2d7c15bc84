/* Tenants' statements about jobs; and the table of updates by round, which inputs.c works on. */
#include <stdlib.h>
#include <string.h>

#include "chain/audit/record.h"
#include "common/base/mem.h"

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

static void check_joined(struct kedgei_audit *a, const struct kedgei_log *log, const struct kedgei_fact *fact)
{
    const struct kedge_st_job_joined *s = fact->body;
    const struct kedgei_job *job = usable_job(a, &a->findings, log, fact, &s->job);
    if (job && !kedge_hash_eq(&job->opened->subject, &fact->subject)) {
        kedgei_error(&a->findings, KEDGE_AUDIT_SPEC, log, fact->index, "joined job \"%s\" with another spec",
                     s->job.s);
    }
    if (job && !has_tenant(job, &log->tenant)) {
        kedgei_error(&a->findings, KEDGE_AUDIT_JOB, log, fact->index,
                     "joined job \"%s\", whose spec does not name it", s->job.s);
    }
}

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
    const struct kedgei_fact *assigned = kedgei_log_find(log, "group-assigned/%s/%s", e->job.s, e->site.s);
    uint32_t group = assigned ? ((const struct kedge_st_group_assigned *)assigned->body)->group : 0;
    bool grouped = job->spec.grouping != KEDGE_GROUPING_NONE;
    if (e->group != group || (grouped && (!assigned || assigned->index > fact->index))) {
        kedgei_error(&a->findings, KEDGE_AUDIT_GROUP, log, fact->index,
                     "site \"%s\" evaluated group %u, not its own", e->site.s, e->group);
    }
}

/* The pretrain update may be of an earlier round: a restart can come between it and the decision. */
static bool rests_on_update(const struct kedgei_job *job, const struct kedgei_log *log,
                            const struct kedgei_fact *fact)
{
    const struct kedge_st_group_assigned *g = fact->body;
    for (uint32_t r = g->round < job->round_count ? g->round : (uint32_t)job->round_count;; r--) {
        const struct kedgei_fact *update =
            kedgei_log_find(log, "update/%s/%08u/pretrain/%s", g->job.s, r, g->site.s);
        if (update && update->index < fact->index && kedge_hash_eq(&update->subject, &g->update)) {
            return true;
        }
        if (r == 0) {
            return false;
        }
    }
}

static void check_assigned(struct kedgei_audit *a, const struct kedgei_log *log,
                           const struct kedgei_fact *fact)
{
    const struct kedge_st_group_assigned *g = fact->body;
    const struct kedgei_job *job = usable_job(a, &a->findings, log, fact, &g->job);
    if (!job) {
        return;
    }
    if (!rests_on_update(job, log, fact)) {
        kedgei_error(&a->findings, KEDGE_AUDIT_GROUP, log, fact->index,
                     "group of site \"%s\": rests on no pretrain update of a round up to %u", g->site.s,
                     g->round);
    }
    if ((g->how == KEDGE_GROUP_COLD_START) != (g->round == 0)) {
        kedgei_error(&a->findings, KEDGE_AUDIT_GROUP, log, fact->index,
                     "group of site \"%s\" in round %u: cold start is round 0, newcomers are later",
                     g->site.s, g->round);
    }
    if (g->group >= job->groups || job->spec.grouping == KEDGE_GROUPING_NONE) {
        kedgei_error_if_settled(a, &a->findings, KEDGE_AUDIT_GROUP, log, fact->index,
                                "site \"%s\" given group %u, job \"%s\" has %u", g->site.s, g->group,
                                g->job.s, job->groups);
    }
    if (!kedgei_round_find(job, g->round) || (g->round == 0 && !kedgei_round_find(job, 0)->step)) {
        kedgei_error_if_settled(a, &a->findings, KEDGE_AUDIT_GROUP, log, fact->index,
                                "group of site \"%s\" from round %u, which has no result", g->site.s,
                                g->round);
    }
}

/* ---- updates by round ---- */

static void add_update(struct kedgei_audit *a, uint32_t tenant, struct kedgei_fact *fact)
{
    const struct kedge_st_update *u = fact->body;
    const struct kedgei_log *log = &a->tenants[tenant];
    const struct kedgei_job *job = usable_job(a, &a->findings, log, fact, &u->job);
    if (!job) {
        return;
    }
    if (!has_tenant(job, &log->tenant)) {
        kedgei_error(&a->findings, KEDGE_AUDIT_JOB, log, fact->index,
                     "update for job \"%s\", whose spec does not name \"%s\"", u->job.s, log->name);
        return;
    }
    if (!kedgei_round_find(job, u->round)) {
        kedgei_error_if_settled(a, &a->findings, KEDGE_AUDIT_UPDATE, log, fact->index,
                                "update for round %u of job \"%s\", which was not opened", u->round,
                                u->job.s);
        return;
    }
    uint32_t j = 0;
    while (a->jobs[j] != job) {
        j++;
    }
    a->updates[a->update_count++] = (struct kedgei_update){j, u->round, tenant, fact};
}

static int compare_updates(const void *pa, const void *pb)
{
    const struct kedgei_update *a = pa, *b = pb;
    int c = (a->job > b->job) - (a->job < b->job);
    c = c ? c : (a->round > b->round) - (a->round < b->round);
    c = c ? c : (a->tenant > b->tenant) - (a->tenant < b->tenant);
    return c ? c : (a->fact->index > b->fact->index) - (a->fact->index < b->fact->index);
}

static void give_rounds_their_updates(struct kedgei_audit *a)
{
    if (a->update_count > 1) {
        qsort(a->updates, a->update_count, sizeof *a->updates, compare_updates);
    }
    for (size_t i = 0; i < a->update_count; i++) {
        struct kedgei_round *round = kedgei_round_find(a->jobs[a->updates[i].job], a->updates[i].round);
        if (round->update_count++ == 0) {
            round->update_first = i;
        }
    }
}

int kedgei_check_tenants(struct kedgei_audit *a)
{
    a->updates = kedge_mem_new((size_t)a->counts.statements[KEDGE_ST_UPDATE] + 1, sizeof *a->updates);
    if (!a->updates) {
        return KEDGE_E_NOMEM;
    }
    for (uint32_t t = 0; t < a->tenant_count; t++) {
        const struct kedgei_log *log = &a->tenants[t];
        for (uint64_t i = 0; i < log->count; i++) {
            struct kedgei_fact *fact = &log->facts[i];
            if (fact->kind == KEDGE_ST_JOB_JOINED) {
                check_joined(a, log, fact);
            } else if (fact->kind == KEDGE_ST_UPDATE) {
                add_update(a, t, fact);
            } else if (fact->kind == KEDGE_ST_EVALUATION) {
                check_evaluation(a, log, fact);
            } else if (fact->kind == KEDGE_ST_GROUP_ASSIGNED) {
                check_assigned(a, log, fact);
            }
        }
    }
    give_rounds_their_updates(a);
    return KEDGE_OK;
}
