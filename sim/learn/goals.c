/* A job's budget and targets in a simulation: what a round's updates are charged, what its evaluations say,
 * and whether another round follows. By the functions that a coordinator asks, over the simulation's own
 * numbers: seconds and joules of its devices, samples of its sites. Pre-trainings take no time here and are
 * charged nothing; what is evaluated counts, whenever that is (with "evaluate_every" above 1 other rounds
 * than a job's are). */
#include <stdio.h>

#include "coordinator/schedule/budget.h"
#include "round/close/close.h"
#include "round/close/params.h"
#include "sim/learn/engine.h"

uint64_t kedgei_learn_charge(struct kedgei_learn *l)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < l->items_count && l->job.budget.unit != KEDGE_JOB_BUDGET_NONE; i++) {
        const uint32_t site = l->items[i].site;
        if (site != l->n && kedgei_learn_result(l, i)->err == KEDGE_OK) {
            const uint64_t cost = kedge_job_spec_charge(&l->job, true, kedgei_learn_joules(l, site),
                                                        kedgei_learn_seconds(l, site));
            sum = kedge_schedule_sum(sum, cost);
        }
    }
    return sum;
}

void kedgei_learn_tested(struct kedgei_learn *l, uint32_t count)
{
    struct kedge_st_round_tested t = {.evaluations = count};
    for (uint32_t i = 0; i < count && l->job.target_count > 0; i++) {
        t.samples += l->sites[l->plan[i].site].test_count;
        t.correct += l->correct[l->plan[i].site];
    }
    if (l->job.target_count > 0) {
        l->tier = kedge_close_test(&l->job, &t, &l->held);
    }
}

static void say(struct kedgei_learn *l, const char *what)
{
    char line[128];
    snprintf(line, sizeof line, "ends after round %u: %s", l->line.round, what);
    if (l->host->say) {
        l->host->say(l->host->arg, line);
    }
}

bool kedgei_learn_is_last(struct kedgei_learn *l)
{
    if (l->line.round + 1 >= l->spec->job.rounds) {
        return true;
    }
    const bool is_there = l->job.target_count > 0 && l->tier == l->job.target_count;
    const bool is_spent = kedge_close_exceeds_budget(&l->at, NULL, &l->job);
    if (is_there || is_spent) {
        say(l, is_there ? "its last target is reached" : "its budget has no room for another");
    }
    return is_there || is_spent;
}
