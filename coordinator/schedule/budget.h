/* Budgets of jobs: may the next round open? Pure: numbers in, a yes or no.
 *
 * What a round takes is known when it is over, so a budget is kept by an estimate from above: the most that
 * one of the last KEDGE_SCHEDULE_COSTS rounds took. The next round opens if so much is left. So a job takes
 * more than it has by less than one round, whatever rounds cost. How often: where they cost alike but for
 * chance, the next one is above all k before it with a probability of at most 1/(k + 1). Of 10,000 drawn jobs
 * with rounds of which one in 16 is four times as long (test_schedule_budget) 14 % take more than they have,
 * and 1.2 mean rounds are left in the mean; with the last round alone for an estimate it is 25 % and 0.6
 * rounds. The mean of the eight and two standard deviations do as the largest does, and would need roots,
 * which all who compute it again must round alike. Before any round was measured there is no estimate: the
 * first one opens.
 *
 * Numbers are in units of the caller's; sums end at KEDGE_SCHEDULE_MOST, so that no input wraps them. */
#ifndef KEDGE_COORDINATOR_SCHEDULE_BUDGET_H
#define KEDGE_COORDINATOR_SCHEDULE_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

enum { KEDGE_SCHEDULE_COSTS = 8 };
#define KEDGE_SCHEDULE_MOST ((uint64_t)1 << 62)

struct kedge_schedule_book {
    uint64_t spent;                       /* by all rounds */
    uint64_t costs[KEDGE_SCHEDULE_COSTS]; /* of the last rounds, the newest first; 0: there was none */
};

/* a + b, at most KEDGE_SCHEDULE_MOST. */
uint64_t kedge_schedule_sum(uint64_t a, uint64_t b);
/* A round is over that took so much. */
void kedge_schedule_charge(struct kedge_schedule_book *io, uint64_t cost);
/* What the next round may take; 0 before any has taken something. */
uint64_t kedge_schedule_estimate(const struct kedge_schedule_book *book);
/* The next round may open, of a job that may spend `most`. Where nothing is left it may not, whatever rounds
 * take. */
bool kedge_schedule_fits(const struct kedge_schedule_book *book, uint64_t most);

#endif
