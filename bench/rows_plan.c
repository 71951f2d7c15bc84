/* Rows of the planner: a price of charge against the exact programme, parts of data that are planned round by
 * round against it, and how long a thousand devices and four thousand sites take. */
#include <math.h>

#include "bench/rows.h"
#include "common/base/os/clock.h"
#include "common/base/rng.h"
#include "coordinator/plan/plan.h"
#include "tests/fixtures/plan_worlds.h"

enum { DEVICES = 1000, TIMES = 50, WORLDS = 120, ROUNDS = 20, SITES = 4096 };

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

/* As its test does: of 120 federations, whose costs move by up to a tenth between rounds. */
static double planned_parts(void)
{
    struct kedge_rng rng;
    double planned = 0, best = 0;
    kedge_rng_init(&rng, 7, KEDGE_RNG_TEST, 0, 0);
    for (int world = 0; world < WORLDS; world++) {
        const uint32_t count = 2 + (uint32_t)kedge_rng_below(&rng, 30);
        const struct kedge_plan_weights w = kedge_plan_world_weights(&rng);
        const struct kedge_plan_world_run run = kedge_plan_world_run(&rng, &w, count, ROUNDS, 0.1);
        planned += run.planned;
        best += run.best;
    }
    return 100 * planned / best;
}

static int plan_parts_of_many(double *ret_ms)
{
    static struct kedge_plan_cost costs[SITES];
    static uint32_t percent[SITES];
    const struct kedge_plan_weights w = {10000000, 1000000, 3000000, 1};
    struct kedge_rng rng;
    kedge_rng_init(&rng, 8, KEDGE_RNG_TEST, 0, 0);
    kedge_plan_world(&rng, costs, SITES);
    const uint64_t began = kedge_os_processor_ns();
    const int err = kedge_plan_parts(&w, costs, SITES, percent);
    *ret_ms = 1e-6 * (double)(kedge_os_processor_ns() - began);
    return err;
}

int kedge_row_plan(struct row rows[ROWS_MAX], int *ret_count)
{
    static const double settings[][2] = {{3, 1},  {3, 0.5},  {3, 0.3}, {3, 0.15},
                                         {12, 1}, {12, 0.5}, {12, 0.3}};
    const double target = 98, energy_target = 0.34, time_target = 10, many_target = 500;
    double worst = 100, per_unit = 0, ms = 0, many_ms = 0;
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
    err = err ? err : plan_parts_of_many(&many_ms);
    const double parts = planned_parts();
    rows[0] = (struct row){"planner", "% of optimum", worst, 100, target, true, worst >= target};
    rows[1] = (struct row){"planner-energy",         "per data unit", per_unit, 1, energy_target, false,
                           per_unit <= energy_target};
    rows[2] = (struct row){"planner-1000", "ms", ms, DEVICES, time_target, false, ms <= time_target};
    rows[3] = (struct row){"plan-parts", "% of optimum", parts, 100, target, true, parts >= target};
    rows[4] =
        (struct row){"plan-parts-4096", "ms", many_ms, SITES, many_target, false, many_ms <= many_target};
    *ret_count = 5;
    return err;
}
