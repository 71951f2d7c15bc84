/* Jobs in the table: found, asked, and what is told of their rounds. Which jobs there are: job_table.c. */
#include "coordinator/daemon/jobs.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "common/base/os/log.h"
#include "coordinator/daemon/host.h"
#include "job/task_seed.h"

bool kedge_host_job_has_ended(const struct kedge_job *job)
{
    return job->state == KEDGE_JOB_COMPLETED || job->state == KEDGE_JOB_FAILED
           || job->state == KEDGE_JOB_CANCELLED;
}

bool kedge_host_job_is_told(const struct kedge_job *job)
{
    return job->state != KEDGE_JOB_PENDING && !job->unopened;
}

/* The slot of a job that is being submitted may still be that of the ended job before it in the
 * core, so the core is not asked for one that it was not told of: it would answer with the other job's
 * numbers. */
bool kedge_host_job_view(const struct kedge_host *h, const struct kedge_job *job,
                         struct kedge_coord_job_view *ret)
{
    return kedge_host_job_is_told(job) && kedge_coord_job(h->coord, job->slot, ret);
}

struct kedge_job *kedge_host_job_find(struct kedge_host *h, const struct kedge_id *id, bool ended_too)
{
    for (uint32_t i = 0; i < KEDGE_JOBS_MAX; i++) {
        struct kedge_job *job = &h->jobs[i];
        if (job->used && kedge_id_eq(&job->spec.name, id) && (ended_too || !kedge_host_job_has_ended(job))) {
            return job;
        }
    }
    return NULL;
}

void kedge_host_job_fault(struct kedge_job *job, const char *what, const char *format, ...)
{
    job->fault_of = what;
    va_list ap;
    va_start(ap, format);
    (void)vsnprintf(job->fault, sizeof job->fault, format, ap);
    va_end(ap);
}

/* A ring by round number: the newest KEDGE_HISTORY_MAX rounds are at hand, and older ones are read
 * from the record when somebody asks. Evaluations may come for a round whose place was given to a
 * later one meanwhile; they are durable in the ledger and only not counted here. */
struct kedge_round_history *kedge_job_history(struct kedge_job *job, uint32_t round, bool create)
{
    uint64_t rounds = (uint64_t)job->spec.rounds + 1;
    uint32_t cap = rounds < KEDGE_HISTORY_MAX ? (uint32_t)rounds : KEDGE_HISTORY_MAX;
    struct kedge_round_history *row = &job->history[round % cap];
    bool here = row->round == round && row->groups > 0;
    if (!here && !create) {
        return NULL;
    }
    if (!here && row->groups > 0 && row->round > round) {
        return NULL; /* its place is that of a later round by now */
    }
    if (!here) {
        kedge_history_begin(row, &job->spec, round);
    }
    return row;
}

/* A round is told only when its close is durable, with the numbers that the record has: the entry
 * of the step gives the size of the main chain, and the anchored sizes those of the tenants'
 * ledgers. So a restart computes the same row. */
void kedge_job_history_closed(struct kedge_host *h, struct kedge_job *job)
{
    struct kedge_round_history *row = kedge_job_history(job, job->round, false);
    char key[KEDGE_IDEM_KEY_MAX + 1];
    uint64_t step;
    snprintf(key, sizeof key, "step/%s/%08" PRIu32, job->spec.name.s, job->round);
    if (!row || row->main_size > 0
        || kedge_ledger_find(h->main.ledger, kedge_view_str(key), &step) != KEDGE_OK) {
        return;
    }
    row->main_size = row->statements = step + 1;
    for (uint32_t i = 0; i < job->params.tenant_count; i++) {
        row->statements += h->tenants[job->params.tenants[i]].anchored_size;
    }
    uint64_t ms = row->opened_ms > 0 && row->closed_ms > row->opened_ms ? row->closed_ms - row->opened_ms : 0;
    kedge_log(KEDGE_LOG_INFO, "round closed",
              "job=%s round=%" PRIu32 " accepted=%" PRIu32 " refused=%" PRIu32 " seconds=%" PRIu64
              ".%03" PRIu64,
              job->spec.name.s, row->round, row->accepted, row->refused, ms / 1000, ms % 1000);
}

void kedge_job_metric_add(struct kedge_job *job, const struct kedge_st_evaluation *ev)
{
    struct kedge_round_history *row = kedge_job_history(job, ev->round, true);
    if (row) {
        kedge_history_add_evaluation(row, ev);
    }
}

uint64_t kedge_job_task_seed(const struct kedge_job *job, uint32_t round, const struct kedge_id *site)
{
    return kedge_task_seed(job->spec.seed, round, site);
}

bool kedge_host_job_names(const struct kedge_job *job, uint32_t tenant)
{
    bool yes = false;
    for (uint32_t i = 0; i < job->params.tenant_count && !yes; i++) {
        yes = job->params.tenants[i] == tenant;
    }
    return yes;
}
