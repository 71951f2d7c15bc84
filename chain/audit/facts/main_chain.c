/* The main chain in order: tenants' checkpoints, jobs and their rounds. What a statement must be is in
 * docs/record.md "Main chain". */
#include <stdio.h>
#include <string.h>

#include "aggregation/quantise.h"
#include "chain/audit/record.h"
#include "common/base/mem.h"
#include "common/base/try.h"

/* ---- checkpoints ---- */

static int add_place(struct kedgei_audit *a, struct kedgei_log *log, uint64_t main_index, uint64_t size)
{
    if (!kedgei_scratch_room(&a->scratch, &log->anchors, &log->anchor_cap, log->anchor_count, 16,
                             sizeof *log->anchors)) {
        return kedgei_scratch_error(&a->scratch, &a->diag);
    }
    log->anchors[log->anchor_count++] = (struct kedgei_place){main_index, size};
    return KEDGE_OK;
}

/* Sizes of a tenant's checkpoints must not fall. Fewer entries than were anchored is a ledger that was
 * cut off, another root one that was written anew; in both cases the main chain, which others hold, is
 * the evidence. Places are kept for searches by order (anchored_before). */
static int check_anchor(struct kedgei_audit *a, const struct kedgei_fact *fact)
{
    const struct kedgei_anchor *anchor = fact->body;
    struct kedgei_findings *f = &a->findings;
    struct kedge_hash root;
    if (anchor->tenant >= a->tenant_count) {
        if (!KEDGEI_SKIP(a, anchors)) {
            kedgei_error(f, KEDGE_AUDIT_TENANT_MISSING, &a->main, fact->index,
                         "checkpoint of a log that is not here");
        }
        return KEDGE_OK;
    }
    struct kedgei_log *log = &a->tenants[anchor->tenant];
    uint64_t last = log->anchor_count ? log->anchors[log->anchor_count - 1].size : 0;
    a->counts.checkpoints++;
    if (anchor->size < last || anchor->size == 0) {
        kedgei_error(f, KEDGE_AUDIT_CHECKPOINT, &a->main, fact->index,
                     "checkpoint of \"%s\" at size %llu after one at size %llu", log->name,
                     (unsigned long long)anchor->size, (unsigned long long)last);
        return KEDGE_OK;
    }
    if (anchor->size > log->count) {
        kedgei_error(f, KEDGE_AUDIT_TRUNCATED, &a->main, fact->index,
                     "ledger of \"%s\" had %llu entries when it was anchored here, now it has %llu",
                     log->name, (unsigned long long)anchor->size, (unsigned long long)log->count);
        return KEDGE_OK;
    }
    kedgei_log_root(log, anchor->size, &root);
    if (!kedge_hash_eq(&root, &anchor->root)) {
        kedgei_error(f, KEDGE_AUDIT_FORK, &a->main, fact->index,
                     "the first %llu entries of \"%s\" are not those that were anchored here",
                     (unsigned long long)anchor->size, log->name);
    }
    return add_place(a, log, fact->index, anchor->size);
}

/* ---- jobs ---- */

/* The group's model after the last step, the first model when there was none. */
static bool model_last(const struct kedgei_job *job, uint32_t group, struct kedge_hash *ret)
{
    size_t n = job->round_count;
    while (n > 0 && !kedgei_round_at(job, n - 1)->step) {
        n--;
    }
    const struct kedge_st_step_group *g =
        n > 0 ? kedgei_step_group(kedgei_round_at(job, n - 1)->step, group) : NULL;
    *ret = g ? g->after : kedgei_first_model(job, group);
    return g != NULL || (n == 0 && group < kedge_job_spec_models(&job->spec));
}

static int load_spec(const struct kedgei_audit *a, struct kedgei_job *job, struct kedge_diag *d)
{
    struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&text, KEDGE_SPEC_MAX);
    int err = kedge_blobs_read(a->main.blobs, &job->opened->subject, &text, d);
    if (err == KEDGE_E_NOT_FOUND) {
        return kedge_diag_set(d, err, "its blob is missing");
    }
    if (err) {
        return err;
    }
    KEDGE_TRY(kedge_job_spec_parse(kedge_buf_view(&text), &job->spec, d));
    KEDGE_TRY(kedge_job_spec_layout(&job->spec, &job->layout, d));
    return kedge_job_spec_update_layout(&job->spec, &job->layout, &job->update_layout, d);
}

/* The spec is the contract of everything that follows, so a job whose spec cannot be read is not judged
 * at all beyond this finding: every further one would be a guess. */
static bool read_spec(struct kedgei_audit *a, struct kedgei_job *job)
{
    struct kedge_diag d = {.err = KEDGE_OK};
    int err = load_spec(a, job, &d);
    if (!err) {
        job->usable = true;
        err = kedge_scale_limit(job->spec.bound, job->spec.scale, &job->limit);
        (void)kedge_diag_set(&d, err, "bound and scale do not fit");
    }
    a->findings.nomem = a->findings.nomem || err == KEDGE_E_NOMEM;
    if (err && !(err == KEDGE_E_NOT_FOUND && KEDGEI_SKIP(a, specs))) {
        kedgei_error(&a->findings, KEDGE_AUDIT_SPEC, &a->main, job->opened->index, "spec of job \"%s\": %s",
                     job->id.s, d.text[0] ? d.text : kedge_strerror(err));
    }
    return !err;
}

/* The main chain names tenants by salted ids. A job must have just the tenants of its spec, or a list
 * could be filed under a tenant that nobody looks at. */
static void check_job_tenants(struct kedgei_audit *a, struct kedgei_job *job)
{
    const struct kedge_st_job_opened *o = job->opened->body;
    uint32_t found = 0, here = 0;
    for (uint32_t i = 0; i < job->spec.tenant_count; i++) {
        job->tenants[i] = UINT32_MAX;
        for (uint32_t t = 0; t < a->tenant_count; t++) {
            if (kedge_id_eq(&a->tenants[t].tenant, &job->spec.tenants[i])) {
                job->tenants[i] = t;
            }
        }
        here += job->tenants[i] != UINT32_MAX;
        if (job->tenants[i] == UINT32_MAX && !a->skipped) {
            kedgei_error(&a->findings, KEDGE_AUDIT_TENANT_MISSING, &a->main, job->opened->index,
                         "job \"%s\": the ledger of tenant \"%s\" is not here", job->id.s,
                         job->spec.tenants[i].s);
        }
    }
    for (uint32_t i = 0; i < o->tenant_count; i++) {
        found += kedgei_job_tenant(a, job, &o->tenants[i]) != NULL;
    }
    if (o->tenant_count != job->spec.tenant_count || found != (a->skipped ? here : o->tenant_count)) {
        kedgei_error(&a->findings, KEDGE_AUDIT_JOB, &a->main, job->opened->index,
                     "job \"%s\": the salted tenants are not those of its spec", job->id.s);
    }
}

/* The spec's first weights are the first model, or the base of which that is a part; replay shows that. */
static void check_initial(struct kedgei_audit *a, const struct kedgei_job *job)
{
    const struct kedge_st_job_opened *o = job->opened->body;
    const bool has_base = kedge_job_spec_has_base(&job->spec);
    const struct kedge_hash *named = has_base ? &o->base_model : &o->initial_model;
    if (job->spec.has_initial_model && !kedge_hash_eq(&job->spec.initial_model, named)) {
        kedgei_error(&a->findings, KEDGE_AUDIT_JOB, &a->main, job->opened->index,
                     "job \"%s\": the %s is not the spec's", job->id.s, has_base ? "base" : "first model");
    }
    if (!has_base && !kedge_hash_is_zero(&o->base_model)) {
        kedgei_error(&a->findings, KEDGE_AUDIT_JOB, &a->main, job->opened->index,
                     "job \"%s\": states a base, and its spec has none", job->id.s);
    }
}

/* The job is kept even if its spec is bad, so that its later entries are known to belong to it. */
static int open_job(struct kedgei_audit *a, struct kedgei_fact *fact)
{
    const struct kedge_st_job_opened *o = fact->body;
    if (kedgei_job_find(a, &o->job)) {
        return KEDGE_OK; /* doubled, which is said already */
    }
    struct kedgei_job *job = kedge_mem_new(1, sizeof *job);
    struct kedgei_job **jobs =
        kedge_mem_resize(a->jobs, (size_t)a->job_count + 1, sizeof(struct kedgei_job *));
    if (jobs) {
        a->jobs = jobs;
    }
    if (!job || !jobs) {
        kedge_mem_free(job);
        return KEDGE_E_NOMEM;
    }
    a->jobs[a->job_count++] = job;
    job->scratch = &a->scratch;
    job->id = o->job;
    job->opened = fact;
    job->groups = 1;
    if (!read_spec(a, job)) {
        return KEDGE_OK;
    }
    job->groups = kedge_job_spec_models(&job->spec);
    if (!kedge_id_eq(&job->spec.name, &job->id)) {
        kedgei_error(&a->findings, KEDGE_AUDIT_SPEC, &a->main, fact->index, "spec of job \"%s\" names \"%s\"",
                     job->id.s, job->spec.name.s);
    }
    if (o->parameters != job->layout.values_count) {
        kedgei_error(&a->findings, KEDGE_AUDIT_JOB, &a->main, fact->index,
                     "job \"%s\": %llu parameters, its spec has %llu", job->id.s,
                     (unsigned long long)o->parameters, (unsigned long long)job->layout.values_count);
    }
    check_initial(a, job);
    kedgei_check_promised(a, job);
    check_job_tenants(a, job);
    kedgei_check_first_models(a, job);
    return KEDGE_OK;
}

/* One file for each group, in order, of the last round, and the very model of the last step: a
 * coordinator must not release another model than the record leads to. */
static void check_release(struct kedgei_audit *a, struct kedgei_job *job, struct kedgei_fact *fact)
{
    const struct kedge_st_release *r = fact->body;
    char file[KEDGE_ST_NAME_MAX + 1];
    struct kedge_hash model;
    snprintf(file, sizeof file, "%s-g%u.safetensors", job->id.s, r->group);
    uint32_t last = job->round_count ? kedgei_round_at(job, job->round_count - 1)->number : 0;
    if (r->group >= job->groups || job->releases[r->group]) {
        kedgei_error(&a->findings, KEDGE_AUDIT_RELEASE, &a->main, fact->index,
                     "release of group %u; job \"%s\" has %u groups, each released once", r->group, job->id.s,
                     job->groups);
        return;
    }
    bool ascending = true;
    for (uint32_t g = r->group; g < KEDGE_GROUPS_MAX; g++) {
        ascending = ascending && !job->releases[g];
    }
    if (!ascending) {
        kedgei_error(&a->findings, KEDGE_AUDIT_RELEASE, &a->main, fact->index,
                     "release of group %u behind a later group's", r->group);
    }
    job->releases[r->group] = fact;
    if (strcmp(file, r->file) != 0) {
        kedgei_error(&a->findings, KEDGE_AUDIT_RELEASE, &a->main, fact->index, "file \"%s\", expected \"%s\"",
                     r->file, file);
    }
    if (job->round_count && !kedgei_round_at(job, job->round_count - 1)->step) {
        kedgei_error(&a->findings, KEDGE_AUDIT_RELEASE, &a->main, fact->index, "round %u is still open",
                     last);
    }
    if (r->round != last) {
        kedgei_error(&a->findings, KEDGE_AUDIT_RELEASE, &a->main, fact->index,
                     "of round %u, the last round is %u", r->round, last);
    }
    if (model_last(job, r->group, &model) && !kedge_hash_eq(&model, &fact->subject)) {
        kedgei_error(&a->findings, KEDGE_AUDIT_RELEASE, &a->main, fact->index,
                     "another model than group %u had after the last step", r->group);
    }
}

/* A job that was called completed must have all its rounds and a release for each group. */
static void close_job(struct kedgei_audit *a, struct kedgei_job *job, struct kedgei_fact *fact)
{
    const struct kedge_st_job_closed *c = fact->body;
    size_t n = job->round_count;
    if (n > 0 && !kedgei_round_at(job, n - 1)->step) {
        n--; /* a round that a cancelled job left open */
    }
    uint32_t rounds = n > 0 ? kedgei_round_at(job, n - 1)->number : 0;
    job->closed = fact;
    if (!kedge_hash_eq(&fact->subject, &job->opened->subject)) {
        kedgei_error(&a->findings, KEDGE_AUDIT_JOB, &a->main, fact->index, "job-closed names another spec");
    }
    /* A job that ended early names the round that it stood at, which may not have begun or closed. */
    uint32_t most = c->outcome == KEDGE_OUTCOME_COMPLETED ? rounds : rounds + 1;
    if (c->rounds < rounds || c->rounds > most) {
        kedgei_error(&a->findings, KEDGE_AUDIT_JOB, &a->main, fact->index,
                     "states round %u, the chain has %u", c->rounds, rounds);
    }
    if (c->outcome != KEDGE_OUTCOME_COMPLETED) {
        return;
    }
    kedgei_check_told(a, job, NULL);
    if (n != job->round_count || (rounds != job->spec.rounds && !kedgei_is_at_target(job))) {
        kedgei_error(&a->findings, KEDGE_AUDIT_JOB, &a->main, fact->index,
                     "job \"%s\" is called completed after round %u of %u", job->id.s, rounds,
                     job->spec.rounds);
    }
    for (uint32_t g = 0; g < job->groups; g++) {
        if (!job->releases[g]) {
            kedgei_error(&a->findings, KEDGE_AUDIT_RELEASE, &a->main, fact->index,
                         "job \"%s\" is completed, but group %u has no release", job->id.s, g);
        }
    }
}

/* ---- in order ---- */

static const struct kedge_id *job_id(const struct kedgei_fact *fact)
{
    switch (fact->kind) {
    case KEDGE_ST_JOB_OPENED:
        return &((const struct kedge_st_job_opened *)fact->body)->job;
    case KEDGE_ST_ROUND_OPENED:
        return &((const struct kedge_st_round_opened *)fact->body)->job;
    case KEDGE_ST_AGGREGATE:
        return &((const struct kedge_st_aggregate *)fact->body)->job;
    case KEDGE_ST_STEP:
        return &((const struct kedge_st_step *)fact->body)->job;
    case KEDGE_ST_ROUND_TESTED:
        return &((const struct kedge_st_round_tested *)fact->body)->job;
    case KEDGE_ST_RELEASE:
        return &((const struct kedge_st_release *)fact->body)->job;
    case KEDGE_ST_JOB_CLOSED:
        return &((const struct kedge_st_job_closed *)fact->body)->job;
    default:
        return NULL;
    }
}

/* Closing a round or a job is one transaction: behind an aggregate stands the next one or the step,
 * behind a release the next one or job-closed. A chain that is cut between the two was torn out of a
 * transaction, which no crash can do. */
static void check_batch(struct kedgei_audit *a, uint64_t i)
{
    const struct kedgei_fact *fact = kedgei_fact_at(&a->main, i);
    const struct kedgei_fact *next = i + 1 < a->main.count ? fact + 1 : NULL;
    bool release = fact->kind == KEDGE_ST_RELEASE;
    int last = release ? KEDGE_ST_JOB_CLOSED : KEDGE_ST_STEP;
    if (next && (next->kind == fact->kind || next->kind == last)) {
        const struct kedge_id *id = job_id(next);
        if (id && kedge_id_eq(id, job_id(fact))) {
            return;
        }
    }
    kedgei_error(&a->findings, release ? KEDGE_AUDIT_RELEASE : KEDGE_AUDIT_AGGREGATE, &a->main, i,
                 "behind it stands neither another %s nor the %s of its job: the closing is not whole",
                 kedge_statement_kind_name((enum kedge_statement_kind)fact->kind),
                 kedge_statement_kind_name((enum kedge_statement_kind)last));
}

/* Entries of a job that is closed or was never opened are named, and nothing is concluded from them. */
static int check_entry(struct kedgei_audit *a, struct kedgei_fact *fact)
{
    const struct kedge_id *id = job_id(fact);
    if (fact->kind == KEDGEI_FACT_CHECKPOINT) {
        return check_anchor(a, fact);
    }
    if (fact->kind == KEDGE_ST_JOB_OPENED) {
        return open_job(a, fact);
    }
    if (fact->kind == KEDGE_ST_JOB_ADMITTED || fact->kind == KEDGE_ST_JOB_REFUSED) {
        return kedgei_check_admission(a, fact);
    }
    if (!id) {
        return KEDGE_OK;
    }
    struct kedgei_job *job = kedgei_job_find(a, id);
    if (!job || job->closed) {
        kedgei_error(&a->findings, KEDGE_AUDIT_JOB, &a->main, fact->index, "%s of job \"%s\", which is %s",
                     kedge_statement_kind_name((enum kedge_statement_kind)fact->kind), id->s,
                     job ? "closed" : "not open");
        return KEDGE_OK;
    }
    if (!job->usable) {
        return KEDGE_OK; /* without its spec nothing can be said, which is said already */
    }
    if (fact->kind == KEDGE_ST_ROUND_OPENED) {
        kedgei_check_told(a, job, fact);
        return kedgei_round_opened(a, job, fact);
    }
    if (fact->kind == KEDGE_ST_AGGREGATE) {
        check_batch(a, fact->index);
        kedgei_round_aggregate(a, job, fact);
    } else if (fact->kind == KEDGE_ST_STEP) {
        kedgei_round_step(a, job, fact);
    } else if (fact->kind == KEDGE_ST_ROUND_TESTED) {
        kedgei_round_tested(a, job, fact);
    } else if (fact->kind == KEDGE_ST_RELEASE && ((const struct kedge_st_release *)fact->body)->tier > 0) {
        kedgei_check_tier_release(a, job, fact);
    } else if (fact->kind == KEDGE_ST_RELEASE) {
        check_batch(a, fact->index);
        check_release(a, job, fact);
    } else {
        close_job(a, job, fact);
    }
    return KEDGE_OK;
}

int kedgei_check_main(struct kedgei_audit *a)
{
    int err = KEDGE_OK;
    for (uint64_t i = 0; i < a->main.count && !err; i++) {
        err = check_entry(a, kedgei_fact_at(&a->main, i));
    }
    for (uint32_t j = 0; j < a->job_count; j++) {
        const struct kedgei_job *job = a->jobs[j];
        a->counts.jobs++;
        a->counts.rounds += job->round_count;
        if (!job->closed) {
            a->counts.jobs_unfinished++;
            kedgei_find(&a->findings, KEDGE_AUDIT_NOTE, KEDGE_AUDIT_JOB_UNFINISHED, job->id.s,
                        "no job-closed yet, after %zu rounds; what is there is judged", job->round_count);
        }
    }
    for (uint32_t t = 0; t < a->tenant_count; t++) {
        a->counts.unanchored += a->tenants[t].count - kedgei_anchored_before(&a->tenants[t], KEDGEI_NEVER);
    }
    return err;
}
