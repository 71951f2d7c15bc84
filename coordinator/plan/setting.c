/* The published setting (Hieu et al., arXiv 2004.04104), the bounds of any setting, and the parts
 * of the model that can be computed alone: the rate of blocks, the interval of anchors, the time of
 * training, the arrival of charge. */
#include <math.h>

#include "coordinator/plan/impl.h"

enum { TERMS_MAX = 200000 };

/* The paper divides each part of the reward by its largest value for three devices before it weighs
 * it. Here the quotients are folded into the costs once, so the planner itself knows no such
 * maxima. */
struct kedge_plan_setting kedge_plan_setting_published(double latency_weight, double charge_per_round)
{
    const double most_data = 9, most_energy = 9, most_seconds = 540,
                 most_payment = 2.955; /* of three devices */
    const double data_weight = 10, energy_weight = 1, payment_weight = 2;
    return (struct kedge_plan_setting){
        .data_levels = 3,
        .energy_levels = 3,
        .charge_levels = 3,
        .share_levels = 3,
        .cycles_per_unit = 1e10,
        .capacitance = 1e-28,
        .joules_per_unit = 1,
        .hertz_per_share = 0.6e9,
        .charge_per_round = charge_per_round,
        .reward_per_data = data_weight / most_data - payment_weight * 0.2 / most_payment,
        .cost_per_energy = energy_weight / most_energy,
        .cost_per_second = latency_weight / most_seconds,
        .fixed_seconds = 0.0193 + 0.05 + 0.01,
        .arrivals_per_hour = 4,
        .rate_least = 5,
        .rate_most = 8,
        .block_seconds = 60,
        .block_payment = payment_weight * 0.8 / most_payment,
    };
}

static int refuse(struct kedge_diag *d, const char *field, const char *expected)
{
    return kedge_diag_set(d, KEDGE_E_ARG, "plan: \"%s\": expected %s", field, expected);
}

/* Comparisons are written so that NaN fails them: a setting comes from a file. */
int kedge_plan_check(const struct kedge_plan_setting *setting, struct kedge_diag *reterr)
{
    const struct {
        const char *name;
        uint32_t value;
    } levels[] = {{"data_levels", setting->data_levels},
                  {"energy_levels", setting->energy_levels},
                  {"charge_levels", setting->charge_levels},
                  {"share_levels", setting->share_levels}};
    const struct {
        const char *name;
        double value;
        double least;
    } reals[] = {{"cycles_per_unit", setting->cycles_per_unit, 1e-300},
                 {"capacitance", setting->capacitance, 1e-300},
                 {"joules_per_unit", setting->joules_per_unit, 1e-300},
                 {"hertz_per_share", setting->hertz_per_share, 1e-300},
                 {"charge_per_round", setting->charge_per_round, 0},
                 {"reward_per_data", setting->reward_per_data, 0},
                 {"cost_per_energy", setting->cost_per_energy, 0},
                 {"cost_per_second", setting->cost_per_second, 0},
                 {"fixed_seconds", setting->fixed_seconds, 0},
                 {"arrivals_per_hour", setting->arrivals_per_hour, 0},
                 {"block_seconds", setting->block_seconds, 0},
                 {"block_payment", setting->block_payment, 0}};
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++) {
        if (levels[i].value < 1 || levels[i].value > KEDGE_PLAN_LEVELS_MAX) {
            return refuse(reterr, levels[i].name, "1 to 8");
        }
    }
    for (size_t i = 0; i < sizeof reals / sizeof reals[0]; i++) {
        if (!(reals[i].value >= reals[i].least && reals[i].value <= 1e300)) {
            return refuse(reterr, reals[i].name,
                          reals[i].least > 0 ? "a number above 0" : "a number that is not below 0");
        }
    }
    if (setting->charge_per_round > 100) {
        return refuse(reterr, "charge_per_round", "at most 100 units");
    }
    if (setting->rate_least < 1 || setting->rate_least > setting->rate_most
        || setting->rate_most - setting->rate_least >= KEDGE_PLAN_RATES_MAX) {
        return refuse(reterr, "rate_least", "1 to rate_most, which is at most 63 above it");
    }
    return setting->rate_least > setting->arrivals_per_hour
               ? KEDGE_OK
               : refuse(reterr, "rate_least", "more than the arrivals");
}

/* E[1 / ln(1 + m)], m geometric from 1 on: the place of a block in an M/M/1 queue as busy as `load`. */
static double mean_place(double load)
{
    double sum = 0, p = 1 - load;
    for (int m = 1; m <= TERMS_MAX && p > 1e-17; m++) {
        sum += p / log(1 + (double)m);
        p *= load;
    }
    return sum;
}

/* Nothing else depends on the rate of blocks, and there are at most 64 of them: all are tried. At
 * the first one *ret_reward is not read. */
uint32_t kedge_plan_rate(const struct kedge_plan_setting *setting, double *ret_reward)
{
    uint32_t best = setting->rate_least;
    for (uint32_t rate = setting->rate_least; rate <= setting->rate_most; rate++) {
        const double over = rate - setting->arrivals_per_hour;
        const double seconds = setting->fixed_seconds + setting->block_seconds / over;
        const double reward = -setting->cost_per_second * seconds
                              - setting->block_payment * mean_place(setting->arrivals_per_hour / rate);
        if (rate == setting->rate_least || reward > *ret_reward) {
            *ret_reward = reward;
            best = rate;
        }
    }
    return best;
}

/* With an interval of T seconds an anchor costs c/T per second and waiting costs w·T/2 in the mean;
 * the sum is least at the square root of 2c/w. */
double kedge_plan_anchor_interval(double cost_per_anchor, double cost_per_second)
{
    return cost_per_anchor > 0 && cost_per_second > 0 ? sqrt(2 * cost_per_anchor / cost_per_second) : 0;
}

/* Energy e·δ = τ·ν·d·f² gives the clock f; beyond what the share of the processor allows there is
 * no such choice. */
double kedgei_plan_seconds(const struct kedge_plan_setting *setting, uint32_t data, uint32_t energy,
                           uint32_t share)
{
    const double cycles = setting->cycles_per_unit * data;
    const double hertz = sqrt(setting->joules_per_unit * energy / (setting->capacitance * cycles));
    return hertz <= setting->hertz_per_share * share ? cycles / hertz : -1;
}

/* Poisson probabilities, each from the one before it. All that would fill the store beyond its top
 * counts for the top, so the last one is the rest and the sum is exactly 1. */
void kedgei_plan_arrivals(const struct kedge_plan_setting *setting, uint32_t left,
                          double ret_p[KEDGE_PLAN_LEVELS_MAX + 1])
{
    double rest = 1, p = exp(-setting->charge_per_round);
    for (uint32_t then = 0; then < setting->charge_levels; then++) {
        ret_p[then] = then < left ? 0 : p;
        rest -= ret_p[then];
        p *= then < left ? 1 : setting->charge_per_round / (then - left + 1);
    }
    ret_p[setting->charge_levels] = rest;
}

double kedgei_plan_left(const struct kedge_plan_setting *setting, uint32_t left)
{
    double p[KEDGE_PLAN_LEVELS_MAX + 1], mean = 0;
    kedgei_plan_arrivals(setting, left, p);
    for (uint32_t then = 0; then <= setting->charge_levels; then++) {
        mean += p[then] * then;
    }
    return mean;
}
