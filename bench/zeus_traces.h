/* The traces that Zeus's authors published (examples/research_reproducibility of ml-energy/zeus): what an
 * epoch took with each batch and power cap, and how many epochs each batch needed. */
#ifndef KEDGE_BENCH_ZEUS_TRACES_H
#define KEDGE_BENCH_ZEUS_TRACES_H

#include <stdbool.h>
#include <stdint.h>

#include "client/energy/batch.h"

enum { ZEUS_RUNS_MAX = 64, ZEUS_ROWS = 24 }; /* rows: six trainings on four kinds of GPU */

struct zeus_size {
    uint32_t batch;
    double epochs[ZEUS_RUNS_MAX]; /* 0: the target was not reached within the limit */
    uint32_t runs;
    bool powered;
    double cost, energy, time; /* of an epoch at the cap that costs least */
    double first;              /* mean cost of an epoch over caps */
    uint32_t caps;
    double top_time, top_power; /* at the highest cap */
    double best_cost, sum_cost;
    uint32_t top_cap;
};
struct zeus_task {
    struct zeus_size sizes[KEDGE_BATCH_SIZES_MAX]; /* ascending; those of which both are known */
    uint32_t count, start;                         /* the default's place */
    double cap_most;                               /* W */
    double limit;                                  /* epochs */
};

/* False, with a word to stderr, when the traces are not there (KEDGE_ZEUS_TRACES names their folder). */
bool zeus_load(uint32_t row, struct zeus_task *ret);
/* A recorded training at the default batch, the first device and its highest cap: seconds until it reached a
 * first target (the recorded one that is nearest to a goal of its own) and the last. */
struct zeus_curve {
    double first_s, last_s;
};
/* All that reached both, at most so many. 0, with a word to stderr, when the traces are not there. */
uint32_t zeus_curves(struct zeus_curve *ret, uint32_t most);
double zeus_mean_epochs(const struct zeus_size *s); /* 0: none reached the target */

#endif
