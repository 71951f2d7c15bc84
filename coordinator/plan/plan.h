/* How much data and energy each site should spend in a round, and how often blocks (or anchors) are made: the
 * best mean reward per round under a model of latency, energy, charge and payment. Pure: no I/O, no clock;
 * the same numbers in give the same plan out.
 *
 * The model is that of blockchain-enabled federated learning by Hieu et al. ("Resource Management for
 * Blockchain-enabled Federated Learning", arXiv 2004.04104), whose published setting is
 * kedge_plan_setting_published(). A device of a round has a charge and a share of its processor; it trains on
 * `data` units and spends `energy` units, or does neither. Energy e·δ = τ·ν·d·f² decides the clock f, and so
 * the time ν·d/f; the round waits for the slowest.
 *
 * Deep reinforcement learning, which the paper uses, is not needed: the rate of blocks separates from the
 * rest; devices meet only in the time of the slowest, so that one pass over thresholds of time is exact for
 * any number of them; and what is left, charge kept for later, is one price per unit of energy, or for up to
 * four devices a dynamic programme. */
#ifndef KEDGE_COORDINATOR_PLAN_PLAN_H
#define KEDGE_COORDINATOR_PLAN_PLAN_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/diag.h"

enum {
    KEDGE_PLAN_LEVELS_MAX =
        8, /* of data, energy, charge and share: 1 to this many; charge and share have 0 beside them */
    KEDGE_PLAN_EXACT_MAX = 4,    /* devices of the dynamic programme */
    KEDGE_PLAN_STATES_MAX = 256, /* (levels + 1) to the power of devices, of charge, share and energy */
    KEDGE_PLAN_DEVICES_MAX = 1000000,
    KEDGE_PLAN_RATES_MAX = 64
};

struct kedge_plan_setting {
    uint32_t data_levels, energy_levels, charge_levels, share_levels;
    double cycles_per_unit;  /* ν: of the processor, per data unit */
    double capacitance;      /* τ: joules per cycle and square hertz */
    double joules_per_unit;  /* δ: of a unit of energy and charge */
    double hertz_per_share;  /* a share of s runs at up to s times this */
    double charge_per_round; /* ρ: units that arrive, a Poisson number's mean */
    double reward_per_data, cost_per_energy, cost_per_second; /* of a unit of each, in units of reward */
    /* The round's share of a chain of blocks: fixed seconds, and a queue with arrivals and a rate of service
     * to choose. */
    double fixed_seconds, arrivals_per_hour;
    uint32_t rate_least, rate_most; /* blocks per hour to choose from; above the arrivals */
    double block_seconds; /* a mean stay in the queue costs this over (rate - arrivals) in seconds */
    double block_payment; /* cost of a block over ln(1 + its place in the queue) */
};

/* What one device has, and what it shall do. data = energy = 0: it rests this round. */
struct kedge_plan_device {
    uint32_t charge, share; /* 0 to levels */
};
struct kedge_plan_choice {
    uint32_t data, energy;
    double seconds; /* of training */
};

/* Means per round in the long run. */
struct kedge_plan_value {
    double reward, data, energy, seconds;
};

/* The published setting: three levels each, weights 10, 1, latency_weight, 2 for three devices. */
struct kedge_plan_setting kedge_plan_setting_published(double latency_weight, double charge_per_round);
/* KEDGE_E_ARG with the field named. */
KEDGE_NODISCARD int kedge_plan_check(const struct kedge_plan_setting *setting, struct kedge_diag *reterr);

/* The rate with the least cost of waiting and payment, enumerated; ret_reward: what it adds to a round's
 * reward (negative). The setting must have passed the check; so for all below. */
uint32_t kedge_plan_rate(const struct kedge_plan_setting *setting, double *ret_reward);

/* The best choice of each device for this round alone, plus `price` times the expected charge that is left:
 * exact for any number of devices, O(n log n) in devices times options. Charges and shares above their levels
 * count as these. KEDGE_E_ARG (no or too many devices), KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedge_plan_round(const struct kedge_plan_setting *setting,
                                     const struct kedge_plan_device *devices, uint32_t count, double price,
                                     struct kedge_plan_choice *ret_choices);

/* What playing kedge_plan_round by `price` in every round is worth, by the stationary distribution over
 * charges, shares drawn evenly. KEDGE_E_ARG beyond KEDGE_PLAN_EXACT_MAX devices or KEDGE_PLAN_STATES_MAX
 * states; KEDGE_E_NOMEM; KEDGE_E_STATE when it does not settle. */
KEDGE_NODISCARD int kedge_plan_evaluate(const struct kedge_plan_setting *setting, uint32_t count,
                                        double price, struct kedge_plan_value *ret_value);
/* The price with the largest worth, by a search of one dimension; never worse than 0, and 0 where it is as
 * good. */
KEDGE_NODISCARD int kedge_plan_price(const struct kedge_plan_setting *setting, uint32_t count,
                                     double *ret_price, struct kedge_plan_value *ret_value);
/* The optimum of all ways to play: relative value iteration until the span of a sweep's changes is below
 * 1e-10 (Puterman, "Markov Decision Processes", 8.5.5). Errors as above. */
KEDGE_NODISCARD int kedge_plan_optimum(const struct kedge_plan_setting *setting, uint32_t count,
                                       double *ret_reward);

/* Seconds between anchors of a log that commits in batches: a statement waits half of them in the mean, which
 * costs cost_per_second each, and an anchor costs cost_per_anchor. 0 where waiting costs nothing or anchors
 * do. */
double kedge_plan_anchor_interval(double cost_per_anchor, double cost_per_second);

#endif
