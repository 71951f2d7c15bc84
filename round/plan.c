/* From statements to the planner's whole numbers. What sites say is bounded here, once for coordinator and
 * auditor: seconds and joules end at 10^9, and a part that no plan gives makes an update say nothing. */
#include "round/plan.h"

#include <math.h>

#include "common/base/mem.h"
#include "common/base/try.h"

static uint64_t millionths(double amount)
{
    return (uint64_t)floor(fmin(amount, 1e9) * 1e6);
}

void kedge_round_cost_of(const struct kedge_job_spec *spec, const struct kedge_st_update *update,
                         struct kedge_round_cost *io)
{
    const bool is_possible = update->samples >= 1
                             && update->samples <= KEDGE_PLAN_SAMPLES_MAX / KEDGE_PERCENT_ALL
                             && update->data_samples >= update->samples
                             && update->data_samples <= update->samples * KEDGE_PERCENT_ALL;
    if (update->update_kind != KEDGE_TRAIN_TRAIN || !kedge_job_spec_plans(spec, update->round)) {
        return;
    }
    *io = (struct kedge_round_cost){.round = 0};
    if (is_possible) {
        const bool has_joules = update->energy_quality != KEDGE_ENERGY_UNKNOWN;
        *io = (struct kedge_round_cost){
            .round = update->round,
            .is = {.samples = update->data_samples,
                   .trained = update->samples,
                   .microseconds = millionths(update->seconds),
                   .microjoules = has_joules ? millionths(update->energy_joules) : 0,
                   .has_joules = has_joules}};
    }
}

bool kedge_round_cost_counts(const struct kedge_round_cost *cost, uint32_t round)
{
    return cost->round > 0 && cost->round < round && round - cost->round <= KEDGE_ROUND_COSTS_KEPT;
}

int kedge_round_plan(const struct kedge_job_spec *spec, uint32_t round, const struct kedge_round_cost *costs,
                     uint32_t count, uint32_t *ret_percent)
{
    const struct kedge_plan_weights weights = {(uint32_t)millionths(spec->plan.data),
                                               (uint32_t)millionths(spec->plan.energy),
                                               (uint32_t)millionths(spec->plan.time), spec->plan.least};
    struct kedge_plan_cost *known KEDGE_CLEANUP(kedge_mem_release) =
        kedge_mem_new((size_t)count + 1, sizeof *known);
    KEDGE_TRY_MEM(known);
    for (uint32_t i = 0; i < count; i++) {
        known[i] = kedge_round_cost_counts(&costs[i], round) ? costs[i].is : (struct kedge_plan_cost){0};
    }
    return kedge_plan_parts(&weights, known, count, ret_percent);
}
