/* Targets of a job: which of them its sites' evaluations have reached. Pure.
 *
 * A model's accuracy on the sites' own test samples goes up and down from round to round, so a target counts
 * as reached only when so many evaluations in a row were at or above it; the first one below begins the count
 * anew, and what was reached is so no longer. Of two targets the first is where a job is useful and the last
 * where it ends (Ari et al., TRADL, HPEC 2019). Accuracies are compared as fractions of whole numbers: all
 * who compute it again come to the same. */
#ifndef KEDGE_COORDINATOR_SCHEDULE_TARGET_H
#define KEDGE_COORDINATOR_SCHEDULE_TARGET_H

#include <stdbool.h>
#include <stdint.h>

enum { KEDGE_SCHEDULE_TARGETS_MAX = 2 };

struct kedge_schedule_targets {
    uint32_t count;                                  /* 0: the job has none */
    uint32_t millionths[KEDGE_SCHEDULE_TARGETS_MAX]; /* ascending, 1 to 10^6 */
    uint32_t hold;                                   /* evaluations in a row, at least 1 */
};

struct kedge_schedule_held {
    uint32_t times[KEDGE_SCHEDULE_TARGETS_MAX]; /* how often in a row each was reached so far */
};

/* A round was evaluated: `correct` of `samples` test samples. No samples: nothing was learnt. Counts end at
 * `hold`. */
void kedge_schedule_tested(const struct kedge_schedule_targets *targets, uint64_t correct, uint64_t samples,
                           struct kedge_schedule_held *io);
/* How many of the targets are reached: 0 to count. The last one is the job's end. */
uint32_t kedge_schedule_tier(const struct kedge_schedule_targets *targets,
                             const struct kedge_schedule_held *held);

#endif
