/* Budgets: what each step says that its round's updates are charged is what their statements give, and no
 * round was opened that the budget had no room for. So a coordinator that spends more than the tenants signed
 * for is convicted by its own steps, also by who holds one tenant's ledger only: the sums are checked where
 * all of the job's ledgers are here, the rule of openings always. */
#include <inttypes.h>

#include "chain/audit/facts/buffer.h"
#include "chain/audit/record.h"
#include "common/base/mem.h"
#include "coordinator/schedule/budget.h"

static uint64_t charge_of(const struct kedgei_job *job, const struct kedge_st_update *u)
{
    return kedge_job_spec_charge(&job->spec, u->energy_quality != KEDGE_ENERGY_UNKNOWN, u->energy_joules,
                                 u->seconds);
}

/* The round whose close covers the update: that of its task, or where rounds overlap a later one.
 * round_count: none does yet. */
static size_t closing_round(const struct kedgei_job *job, size_t r, const struct kedgei_log *log,
                            const struct kedgei_fact *update)
{
    if (!kedgei_job_is_asynchronous(job)) {
        return r;
    }
    for (; r < job->round_count; r++) {
        const struct kedgei_fact *step = kedgei_round_at(job, r)->step;
        if (!step || update->index < kedgei_anchored_before(log, step->index)) {
            break;
        }
    }
    return r;
}

static void add_charges(const struct kedgei_audit *a, const struct kedgei_job *job, uint64_t *sums)
{
    for (size_t r = 0; r < job->round_count; r++) {
        const size_t first = kedgei_round_at(job, r)->update_first,
                     count = kedgei_round_at(job, r)->update_count;
        for (size_t k = 0; k < count; k++) {
            const struct kedgei_update *row = kedgei_update_at(a, first + k);
            const size_t at = closing_round(job, r, &a->tenants[row->tenant], row->fact);
            if (at < job->round_count) {
                sums[at] = kedge_schedule_sum(sums[at], charge_of(job, row->fact->body));
            }
        }
    }
}

static void check_step_charges(struct kedgei_audit *a, const struct kedgei_round *round, const uint64_t *sum,
                               const struct kedge_schedule_book *before)
{
    const struct kedge_st_step *s = round->step->body;
    const uint64_t spent = kedge_schedule_sum(before->spent, s->charged);
    if (sum && s->charged != *sum) {
        kedgei_error(&a->findings, KEDGE_AUDIT_BUDGET, &a->main, round->step->index,
                     "round %u: charges %" PRIu64 ", its updates add up to %" PRIu64, round->number,
                     s->charged, *sum);
    }
    if (s->spent != spent) {
        kedgei_error(&a->findings, KEDGE_AUDIT_BUDGET, &a->main, round->step->index,
                     "round %u: says that %" PRIu64 " are spent, its steps add up to %" PRIu64, round->number,
                     s->spent, spent);
    }
}

/* sums: by round; NULL: not all updates are here. */
static void check_job(struct kedgei_audit *a, const struct kedgei_job *job, const uint64_t *sums)
{
    const uint64_t budget = kedge_job_spec_budget(&job->spec);
    struct kedge_schedule_book book = {.spent = 0};
    for (size_t r = 0; r < job->round_count; r++) {
        const struct kedgei_round *round = kedgei_round_at(job, r);
        if (budget > 0 && !kedge_schedule_fits(&book, budget)) {
            kedgei_error(&a->findings, KEDGE_AUDIT_BUDGET, &a->main, round->opened->index,
                         "round %u is opened, of %" PRIu64 " millionths of %s %" PRIu64
                         " are spent, and a round took "
                         "up to %" PRIu64,
                         round->number, budget, kedge_job_budget_unit_name(job->spec.budget.unit), book.spent,
                         kedge_schedule_estimate(&book));
        }
        if (round->step) {
            check_step_charges(a, round, sums ? &sums[r] : NULL, &book);
            kedge_schedule_charge(&book, ((const struct kedge_st_step *)round->step->body)->charged);
        }
    }
}

int kedgei_check_budgets(struct kedgei_audit *a)
{
    for (uint32_t j = 0; j < a->job_count; j++) {
        const struct kedgei_job *job = a->jobs[j];
        if (!job->usable || job->round_count == 0) {
            continue;
        }
        const bool is_whole = !a->skipped && kedgei_job_whole(job);
        if (!is_whole && job->spec.budget.unit != KEDGE_JOB_BUDGET_NONE) {
            (void)KEDGEI_SKIP(a, decisions);
        }
        uint64_t *sums = is_whole ? kedge_mem_new(job->round_count, sizeof *sums) : NULL;
        if (is_whole && !sums) {
            return KEDGE_E_NOMEM;
        }
        if (is_whole) {
            add_charges(a, job, sums);
        }
        check_job(a, job, sums);
        kedge_mem_free(sums);
    }
    return KEDGE_OK;
}
