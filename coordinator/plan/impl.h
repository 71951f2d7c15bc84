/* What the files of the planner share. */
#ifndef KEDGE_COORDINATOR_PLAN_IMPL_H
#define KEDGE_COORDINATOR_PLAN_IMPL_H

#include "coordinator/plan/plan.h"

/* One way for one device to spend a round. */
struct kedgei_plan_option {
    double gain, seconds; /* of the round: reward without the time, which only the slowest decides */
    uint32_t device;
    uint32_t data, energy;
};

/* Seconds of training on data units with energy units; negative where the share does not reach the clock. */
double kedgei_plan_seconds(const struct kedge_plan_setting *setting, uint32_t data, uint32_t energy,
                           uint32_t share);
/* Mean of min(left + a Poisson number, charge_levels). */
double kedgei_plan_left(const struct kedge_plan_setting *setting, uint32_t left);
/* P(min(left + a Poisson number, charge_levels) = then), for then = 0 to charge_levels. */
void kedgei_plan_arrivals(const struct kedge_plan_setting *setting, uint32_t left,
                          double ret_p[KEDGE_PLAN_LEVELS_MAX + 1]);
/* One option per device, so that the sum of gains less the cost of the longest seconds is largest; every
 * device has an option. Sorts the options; ret_picked[device] says which. Returns the sum; best: scratch, one
 * per device. */
double kedgei_plan_pick(struct kedgei_plan_option *options, size_t option_count, uint32_t devices,
                        double cost_per_second, double *best, size_t *ret_picked);

#endif
