/* Rows of the planner: a price of charge against the exact programme, and how long a thousand devices take.
 */
#include <math.h>

#include "bench/rows.h"
#include "common/base/os/clock.h"
#include "common/base/rng.h"
#include "coordinator/plan/plan.h"

enum { DEVICES = 1000, TIMES = 50 };

static int plan_many(double *ret_ms)
{
    static struct kedge_plan_device devices[DEVICES];
    static struct kedge_plan_choice choices[DEVICES];
    const struct kedge_plan_setting s = kedge_plan_setting_published(12, 0.5);
    struct kedge_rng rng;
    kedge_rng_init(&rng, 1, KEDGE_RNG_TEST, 0, 0);
    for (int i = 0; i < DEVICES; i++) {
        devices[i] = (struct kedge_plan_device){(uint32_t)kedge_rng_below(&rng, s.charge_levels + 1),
                                                (uint32_t)kedge_rng_below(&rng, s.share_levels + 1)};
    }
    const uint64_t began = kedge_os_processor_ns();
    int err = 0;
    for (int i = 0; i < TIMES && !err; i++) {
        err = kedge_plan_round(&s, devices, DEVICES, 1, choices);
    }
    *ret_ms = 1e-6 * (double)(kedge_os_processor_ns() - began) / TIMES;
    return err;
}

int kedge_row_plan(struct row rows[ROWS_MAX], int *ret_count)
{
    static const double settings[][2] = {{3, 1},  {3, 0.5},  {3, 0.3}, {3, 0.15},
                                         {12, 1}, {12, 0.5}, {12, 0.3}};
    const double target = 98, energy_target = 0.34, time_target = 10;
    double worst = 100, per_unit = 0, ms = 0;
    int err = 0;
    for (size_t i = 0; i < sizeof settings / sizeof settings[0] && !err; i++) {
        const struct kedge_plan_setting s = kedge_plan_setting_published(settings[i][0], settings[i][1]);
        struct kedge_plan_value value;
        double optimum = 0, price;
        err = kedge_plan_optimum(&s, 3, &optimum);
        err = err ? err : kedge_plan_price(&s, 3, &price, &value);
        worst = err ? worst : fmin(worst, 100 * value.reward / optimum);
        per_unit = i == 0 && !err ? value.energy / value.data : per_unit;
    }
    err = err ? err : plan_many(&ms);
    rows[0] = (struct row){"planner", "% of optimum", worst, 100, target, true, worst >= target};
    rows[1] = (struct row){"planner-energy",         "per data unit", per_unit, 1, energy_target, false,
                           per_unit <= energy_target};
    rows[2] = (struct row){"planner-1000", "ms", ms, DEVICES, time_target, false, ms <= time_target};
    *ret_count = 3;
    return err;
}
