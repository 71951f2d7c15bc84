/* Plans: the part of its data that each opening gives its sites is what their own updates give, by the
 * coordinator's rule. So a coordinator that spares one site at the cost of another is convicted by what both
 * have signed. A plan is of all selected sites together: where a tenant's ledger is not here, it cannot be
 * made again. */
#include <inttypes.h>

#include "chain/audit/record.h"
#include "chain/audit/rounds/replay_inputs.h"
#include "common/base/mem.h"
#include "round/plan.h"

/* What the site has said last before that round, as long as that counts. */
static struct kedge_round_cost cost_of(const struct kedgei_audit *a, const struct kedgei_job *job,
                                       uint32_t round, const struct kedgei_input *in)
{
    const struct kedgei_log *log = &a->tenants[job->tenants[in->place]];
    struct kedge_round_cost cost = {.round = 0};
    for (uint32_t back = 1; back <= KEDGE_ROUND_COSTS_KEPT && back < round; back++) {
        const struct kedgei_fact *fact =
            kedgei_log_find(log, "update/%s/%08u/train/%s", job->id.s, round - back, in->row.site.s);
        if (fact && fact->kind == KEDGE_ST_UPDATE) {
            kedge_round_cost_of(&job->spec, fact->body, &cost);
            break;
        }
    }
    return cost;
}

static int check_opening(struct kedgei_audit *a, const struct kedgei_job *job,
                         const struct kedgei_round *round, const struct kedgei_inputs *in,
                         struct kedge_round_cost *costs, uint32_t *percent)
{
    uint32_t n = 0;
    for (size_t i = 0; i < in->count; i++) {
        if (in->items[i].row.use == KEDGE_USE_SELECTED) {
            costs[n++] = cost_of(a, job, round->number, &in->items[i]);
        }
    }
    const int err = kedge_round_plan(&job->spec, round->number, costs, n, percent);
    n = 0;
    for (size_t i = 0; i < in->count && !err; i++) {
        const struct kedge_input_row *row = &in->items[i].row;
        if (row->use != KEDGE_USE_SELECTED) {
            continue;
        }
        if (row->percent != percent[n]) {
            kedgei_error(&a->findings, KEDGE_AUDIT_PLAN, &a->main, round->opened->index,
                         "round %u gives \"%s\" of \"%s\" %" PRIu32
                         " percent of its data, by what its sites have "
                         "said it is %" PRIu32,
                         round->number, row->site.s, job->spec.tenants[in->items[i].place].s, row->percent,
                         percent[n]);
        }
        n++;
    }
    return err;
}

/* A list that cannot be read is told where inputs are checked. */
static int check_round(struct kedgei_audit *a, const struct kedgei_job *job, const struct kedgei_round *round)
{
    struct kedgei_inputs in = {.items = NULL};
    int err = kedgei_candidates_of(a, job, round, &in);
    if (err) {
        kedgei_inputs_deinit(&in);
        return err == KEDGE_E_NOMEM ? err : KEDGE_OK;
    }
    struct kedge_round_cost *costs = kedge_mem_new(in.count + 1, sizeof *costs);
    uint32_t *percent = kedge_mem_new(in.count + 1, sizeof *percent);
    err = costs && percent ? check_opening(a, job, round, &in, costs, percent) : KEDGE_E_NOMEM;
    kedge_mem_free(costs);
    kedge_mem_free(percent);
    kedgei_inputs_deinit(&in);
    return err;
}

int kedgei_check_plans(struct kedgei_audit *a)
{
    for (uint32_t j = 0; j < a->job_count; j++) {
        const struct kedgei_job *job = a->jobs[j];
        if (!job->usable || !job->spec.plan.is_on || job->round_count == 0) {
            continue;
        }
        if (!kedgei_job_whole(job)) {
            (void)KEDGEI_SKIP(a, decisions);
            continue;
        }
        for (size_t i = 0; i < kedgei_opening_count(job); i++) {
            const struct kedgei_round *round = kedgei_opening_at(job, i);
            if (!round->pretrain && kedge_job_spec_plans(&job->spec, round->number)) {
                const int err = check_round(a, job, round);
                if (err) {
                    return err;
                }
            }
        }
    }
    return KEDGE_OK;
}

void kedgei_check_part(const struct kedgei_job *job, const struct kedgei_log *log,
                       const struct kedgei_fact *update, const struct kedge_input_row *row,
                       struct kedgei_findings *f)
{
    const struct kedge_st_update *u = update->body;
    const uint32_t percent = row ? row->percent : 0;
    if (u->update_kind == KEDGE_TRAIN_TRAIN
        && !kedge_job_spec_takes_part(&job->spec, u->round, u->samples, u->data_samples, percent)) {
        kedgei_error(f, KEDGE_AUDIT_UPDATE, log, update->index,
                     "%" PRIu64 " samples of %" PRIu64
                     " are not the part that the round gives the site: %" PRIu32
                     " percent of its data (0: it is not planned)",
                     u->samples, u->data_samples, percent);
    }
}
