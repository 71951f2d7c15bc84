/* Which power cap, or how many threads, a round should run with: a table of what each level took, filled
 * within real rounds, and rules that choose from it. Pure. After Zeus (You, Chung, Chowdhury, NSDI'23):
 * levels from high to low, then the best by measured windows, never by bisection, for time is not monotone in
 * the cap. */
#ifndef KEDGE_CLIENT_ENERGY_PROFILE_H
#define KEDGE_CLIENT_ENERGY_PROFILE_H

#include <stdint.h>

#include "common/base/diag.h"

enum { KEDGE_PROFILE_LEVELS_MAX = 32, KEDGE_PROFILE_STEP_W = 25 };

enum kedge_profile_rule {
    KEDGE_RULE_POWER_COST,     /* least Zeus cost */
    KEDGE_RULE_POWER_ENERGY,   /* least energy */
    KEDGE_RULE_POWER_SLOWDOWN, /* least energy among levels whose time is at most so many times the highest's
                                */
    KEDGE_RULE_POWER_DEADLINE, /* least energy among levels that are done in time */
};

struct kedge_profile_level {
    double level;           /* watts, or threads */
    uint32_t windows;       /* that were long enough to be trusted */
    double seconds, joules; /* sums over them, per unit of work */
};

/* Of one device, model and batch; levels from high to low. Energies of one quality only. */
struct kedge_profile {
    uint32_t count;
    struct kedge_profile_level levels[KEDGE_PROFILE_LEVELS_MAX];
};

/* Watts from `found` down to `least` by 25 W, or threads from `found` down to `least` by one; the lowest is
 * `least`. KEDGE_E_ARG: least above found, or below 1. */
KEDGE_NODISCARD int kedge_profile_init(struct kedge_profile *p, bool watts, double found, double least);
/* A window of so many seconds and joules over `work` units of work; less than a second is not trusted. */
void kedge_profile_saw(struct kedge_profile *p, uint32_t level, double work, double seconds, double joules);

struct kedge_profile_options {
    enum kedge_profile_rule rule;
    double eta;          /* of the cost: 1 energy only, 0 time only */
    double power_max_w;  /* of the cost */
    double slowdown;     /* ≥ 1 */
    double work, time_s; /* units of the coming round, and the time that it has; time_s 0: no limit */
};
/* The level for the next round: the next one without a window, the highest first, if it will be in time; else
 * the rule's. Levels are not tried below one that took 1.5 times the least energy or, with `slowdown`, twice
 * over its bound. *ret_tries: it is a try. */
uint32_t kedge_profile_choose(const struct kedge_profile *p, const struct kedge_profile_options *o,
                              bool *ret_tries);
/* "cost", "energy", "deadline", "slowdown=1.1" (1 to 10). KEDGE_E_FORMAT. */
KEDGE_NODISCARD int kedge_profile_rule_parse(const char *text, enum kedge_profile_rule *ret,
                                             double *ret_slowdown);

#endif
