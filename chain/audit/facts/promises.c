/* Deadlines: a job that has one is opened only after it was admitted, and each admission and refusal follows
 * from the spec and from what the main chain, up to the size that the statement names, says of the jobs that
 * were promised one before. So a coordinator that favours a job, forgets a promise, or refuses one that there
 * is room for is convicted. That it looked when it says so is its word. */
#include <inttypes.h>
#include <string.h>

#include "chain/audit/record.h"
#include "common/base/mem.h"
#include "common/base/try.h"
#include "round/close/promise.h"

static const struct kedge_st_job_admission *body_of(const struct kedgei_fact *fact)
{
    return fact->body;
}

static struct kedgei_admission *find(struct kedgei_audit *a, const struct kedge_id *job)
{
    for (uint32_t i = 0; i < a->admission_count; i++) {
        if (kedge_id_eq(&body_of(a->admissions[i].fact)->job, job)) {
            return &a->admissions[i];
        }
    }
    return NULL;
}

/* ---- what the record says of those before ---- */

/* The time of a round's first opening; 0: it is not there. */
static uint64_t opened_ms(const struct kedgei_job *job, const struct kedgei_round *round)
{
    const struct kedge_st_round_opened *o = round->opened->body;
    for (size_t i = 0; i < job->replaced_count && o->draw > 0; i++) {
        const struct kedge_st_round_opened *r = job->replaced[i].opened->body;
        o = r->round == o->round && r->draw == 0 ? r : o;
    }
    return o->time_ms;
}

/* Its rounds up to that size. */
static void take_rounds(const struct kedgei_job *job, uint64_t size, struct kedge_promise *io)
{
    for (size_t i = 0; i < job->round_count; i++) {
        const struct kedgei_round *round = kedgei_round_at(job, i);
        if (!round->step || round->step->index >= size || round->number == 0) {
            continue;
        }
        const uint64_t from = opened_ms(job, round);
        const uint64_t to = ((const struct kedge_st_step *)round->step->body)->time_ms;
        io->round = round->number;
        kedge_schedule_charge(&io->times, to > from ? to - from : 0);
    }
}

static uint32_t take_promises(const struct kedgei_audit *a, const struct kedge_st_job_admission *s,
                              struct kedge_promise *ret)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < a->admission_count && count < KEDGE_ST_PROMISES_MAX; i++) {
        const struct kedgei_admission *other = &a->admissions[i];
        const struct kedge_st_job_admission *said = body_of(other->fact);
        const struct kedgei_job *job = other->job;
        const struct kedge_job_spec *spec = other->spec ? other->spec : &job->spec;
        const bool ended = job && job->closed && job->closed->index < s->main_size;
        if (said->deadline_ms <= s->time_ms || ended || (job && !job->usable)) {
            continue;
        }
        struct kedge_promise *p = &ret[count++];
        *p = (struct kedge_promise){
            .spec = spec, .round_ms = said->round_ms, .deadline_ms = said->deadline_ms};
        if (job) {
            take_rounds(job, s->main_size, p);
        }
    }
    return count;
}

/* ---- the decision once more ---- */

static int decide(struct kedgei_audit *a, const struct kedgei_fact *fact, const struct kedge_job_spec *spec)
{
    const struct kedge_st_job_admission *s = body_of(fact);
    struct kedge_promise *promises = kedge_mem_new(KEDGE_ST_PROMISES_MAX, sizeof *promises);
    struct kedge_st_job_admission again = {
        .job = s->job, .main_size = s->main_size, .guard_ms = s->guard_ms, .time_ms = s->time_ms};
    KEDGE_TRY_MEM(promises);
    const uint32_t count = take_promises(a, s, promises);
    const enum kedge_statement_kind kind = kedge_close_promise(spec, promises, count, &again);
    kedge_mem_free(promises);
    if (again.queued != s->queued || !kedge_hash_eq(&again.queue, &s->queue)) {
        kedgei_error(&a->findings, KEDGE_AUDIT_JOB, &a->main, fact->index,
                     "job \"%s\": decided beside %u jobs with deadlines; the record has %u, or other ones",
                     s->job.s, s->queued, again.queued);
    } else if (again.round_ms != s->round_ms || again.round_from != s->round_from
               || again.deadline_ms != s->deadline_ms) {
        kedgei_error(&a->findings, KEDGE_AUDIT_JOB, &a->main, fact->index,
                     "job \"%s\": rounds of %" PRIu64 " ms until %" PRIu64 ", expected %" PRIu64
                     " and %" PRIu64,
                     s->job.s, s->round_ms, s->deadline_ms, again.round_ms, again.deadline_ms);
    } else if (kind != (enum kedge_statement_kind)fact->kind || again.share != s->share
               || again.too_large != s->too_large || again.earliest_ms != s->earliest_ms) {
        kedgei_error(&a->findings, KEDGE_AUDIT_JOB, &a->main, fact->index,
                     "job \"%s\": %s, share %u, earliest %" PRIu64
                     "; what it names gives %s, %u and %" PRIu64,
                     s->job.s, kedge_statement_kind_name((enum kedge_statement_kind)fact->kind), s->share,
                     s->earliest_ms, kedge_statement_kind_name(kind), again.share, again.earliest_ms);
    }
    return KEDGE_OK;
}

static int keep(struct kedgei_audit *a, struct kedgei_fact *fact, struct kedge_job_spec *spec)
{
    struct kedgei_admission *rows =
        kedge_mem_resize(a->admissions, (size_t)a->admission_count + 1, sizeof *rows);
    KEDGE_TRY_MEM(rows);
    a->admissions = rows;
    rows[a->admission_count++] = (struct kedgei_admission){.fact = fact, .spec = spec};
    return KEDGE_OK;
}

static int read_spec(const struct kedgei_audit *a, const struct kedge_hash *digest,
                     struct kedge_job_spec *ret, struct kedge_diag *d)
{
    struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&text, KEDGE_SPEC_MAX);
    KEDGE_TRY(kedge_blobs_read(a->main.blobs, digest, &text, d));
    return kedge_job_spec_parse(kedge_buf_view(&text), ret, d);
}

/* Where it looked: nothing was decided from there on, or that would not have been counted. */
static void check_place(struct kedgei_audit *a, const struct kedgei_fact *fact)
{
    const struct kedge_st_job_admission *s = body_of(fact);
    const struct kedgei_fact *last =
        a->admission_count > 0 ? a->admissions[a->admission_count - 1].fact : NULL;
    if (s->main_size > fact->index || (last && last->index >= s->main_size)) {
        kedgei_error(&a->findings, KEDGE_AUDIT_JOB, &a->main, fact->index,
                     "job \"%s\": looks at the first %" PRIu64
                     " entries, which are not those before it or leave an admission out",
                     s->job.s, s->main_size);
    }
}

static int check(struct kedgei_audit *a, struct kedgei_fact *fact, struct kedge_job_spec *spec)
{
    const struct kedge_st_job_admission *s = body_of(fact);
    struct kedge_diag d = {.text = ""};
    const int err = read_spec(a, &fact->subject, spec, &d);
    if (err == KEDGE_E_NOMEM) {
        return err;
    }
    if (err) {
        if (!(err == KEDGE_E_NOT_FOUND && KEDGEI_SKIP(a, specs))) {
            kedgei_error(&a->findings, KEDGE_AUDIT_SPEC, &a->main, fact->index, "spec of job \"%s\": %s",
                         s->job.s, d.text[0] ? d.text : kedge_strerror(err));
        }
        return KEDGE_OK;
    }
    if (!kedge_id_eq(&spec->name, &s->job) || spec->deadline_s == 0) {
        kedgei_error(&a->findings, KEDGE_AUDIT_JOB, &a->main, fact->index,
                     "the spec is that of job \"%s\", with a deadline of %" PRIu32 " s", spec->name.s,
                     spec->deadline_s);
        return KEDGE_OK;
    }
    check_place(a, fact);
    return KEDGEI_SKIP(a, decisions) ? KEDGE_OK : decide(a, fact, spec); /* other jobs may be withheld */
}

int kedgei_check_admission(struct kedgei_audit *a, struct kedgei_fact *fact)
{
    const struct kedge_st_job_admission *s = body_of(fact);
    if (find(a, &s->job) || kedgei_job_find(a, &s->job)) {
        kedgei_error(&a->findings, KEDGE_AUDIT_JOB, &a->main, fact->index,
                     "job \"%s\" is decided on, and was admitted or opened before", s->job.s);
        return KEDGE_OK;
    }
    struct kedge_job_spec *spec = kedge_mem_new(1, sizeof *spec);
    KEDGE_TRY_MEM(spec);
    int err = check(a, fact, spec);
    if (!err && fact->kind == KEDGE_ST_JOB_ADMITTED) {
        err = keep(a, fact, spec);
        spec = err ? spec : NULL;
    }
    kedge_mem_free(spec);
    return err;
}

void kedgei_check_promised(struct kedgei_audit *a, struct kedgei_job *job)
{
    struct kedgei_admission *admission = find(a, &job->id);
    const bool is_same = admission && kedge_hash_eq(&admission->fact->subject, &job->opened->subject);
    const bool is_right = (job->spec.deadline_s > 0) == is_same;
    /* to a copy that asked before the job was opened its admission is not shown */
    if (!is_right && (admission || !KEDGEI_SKIP(a, decisions))) {
        kedgei_error(&a->findings, KEDGE_AUDIT_JOB, &a->main, job->opened->index, "job \"%s\" %s", job->id.s,
                     is_same ? "was admitted to a deadline, and its spec has none"
                             : "has a deadline, and no job-admitted of its spec stands before it");
    }
    if (admission) {
        admission->job = job;
    }
    if (is_same) { /* from here on the job's own */
        kedge_mem_free(admission->spec);
        admission->spec = NULL;
    }
}

void kedgei_admissions_deinit(struct kedgei_audit *a)
{
    for (uint32_t i = 0; i < a->admission_count; i++) {
        kedge_mem_free(a->admissions[i].spec);
    }
    kedge_mem_free(a->admissions);
}
