/* One round for any number of devices: who trains on how much, so that the reward less the cost of
 * the time is largest.
 *
 * Devices depend on each other only by the time of the slowest. So a limit on the time is tried for
 * each time that some option takes: within the limit everybody takes the best option of its own,
 * and the limit costs what it costs. Sorted by time, all limits are tried in one walk, in which
 * each device keeps the best option so far. That is exact, and n log n in the number of options. */
#include <stdlib.h>

#include "common/base/mem.h"
#include "coordinator/plan/impl.h"

/* A total order, so that the outcome depends on nothing but the numbers: qsort may leave equal
 * elements in any order, and a plan must be the same on every machine. */
static int compare(const void *a, const void *b)
{
    const struct kedgei_plan_option *x = a, *y = b;
    if (x->seconds < y->seconds || x->seconds > y->seconds) {
        return x->seconds < y->seconds ? -1 : 1;
    }
    if (x->device != y->device) {
        return x->device < y->device ? -1 : 1;
    }
    if (x->data != y->data) {
        return x->data < y->data ? -1 : 1;
    }
    return (x->energy > y->energy) - (x->energy < y->energy);
}

/* The first walk finds the best limit and its worth; only then is it known which options belong to
 * it, and a second walk over those picks them. A limit counts only where all devices have some
 * option within it, and only at the last of several options with the same time. */
double kedgei_plan_pick(struct kedgei_plan_option *options, size_t option_count, uint32_t devices,
                        double cost_per_second, double *best, size_t *ret_picked)
{
    double sum = 0, most = 0;
    uint32_t met = 0;
    size_t within = 0; /* options that the best time allows */
    qsort(options, option_count, sizeof *options, compare);
    for (uint32_t i = 0; i < devices; i++) {
        ret_picked[i] = option_count;
    }
    for (size_t k = 0; k < option_count; k++) {
        const struct kedgei_plan_option *o = &options[k];
        const bool is_first = ret_picked[o->device] == option_count;
        if (is_first || o->gain > best[o->device]) {
            sum += o->gain - (is_first ? 0 : best[o->device]);
            best[o->device] = o->gain;
            ret_picked[o->device] = k;
            met += is_first;
        }
        const bool is_last = k + 1 == option_count || options[k + 1].seconds > o->seconds;
        const double worth = sum - cost_per_second * o->seconds;
        if (met == devices && is_last && (within == 0 || worth > most)) {
            most = worth;
            within = k + 1;
        }
    }
    for (uint32_t i = 0; i < devices; i++) {
        ret_picked[i] = option_count;
    }
    for (size_t k = 0; k < within; k++) {
        const uint32_t i = options[k].device;
        if (ret_picked[i] == option_count || options[k].gain > options[ret_picked[i]].gain) {
            ret_picked[i] = k;
        }
    }
    return most;
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* The ways of a device to spend the round; resting is one. A choice that the device's share of the
 * processor cannot reach is none. What is left of the charge has a worth of its own (price), which
 * is what makes a plan look beyond this round. */
static size_t list_options(const struct kedge_plan_setting *setting, const struct kedge_plan_device *device,
                           uint32_t number, const double *worth_left, struct kedgei_plan_option *out)
{
    const uint32_t charge = least(device->charge, setting->charge_levels);
    const uint32_t share = least(device->share, setting->share_levels);
    size_t count = 0;
    out[count++] = (struct kedgei_plan_option){.device = number, .gain = worth_left[charge]};
    for (uint32_t e = 1; e <= least(charge, setting->energy_levels); e++) {
        for (uint32_t d = 1; d <= setting->data_levels; d++) {
            const double seconds = kedgei_plan_seconds(setting, d, e, share);
            if (seconds >= 0) {
                const double gain = setting->reward_per_data * d - setting->cost_per_energy * e;
                out[count++] = (struct kedgei_plan_option){.device = number,
                                                           .gain = gain + worth_left[charge - e],
                                                           .seconds = seconds,
                                                           .data = d,
                                                           .energy = e};
            }
        }
    }
    return count;
}

int kedge_plan_round(const struct kedge_plan_setting *setting, const struct kedge_plan_device *devices,
                     uint32_t count, double price, struct kedge_plan_choice *ret_choices)
{
    if (count == 0 || count > KEDGE_PLAN_DEVICES_MAX) {
        return KEDGE_E_ARG;
    }
    const size_t most = 1 + (size_t)setting->data_levels * setting->energy_levels;
    struct kedgei_plan_option *options = kedge_mem_new(count * most, sizeof *options);
    double *best = kedge_mem_new(count, sizeof *best);
    size_t *picked = kedge_mem_new(count, sizeof *picked);
    double worth_left[KEDGE_PLAN_LEVELS_MAX + 1];
    int err = options && best && picked ? KEDGE_OK : KEDGE_E_NOMEM;
    for (uint32_t left = 0; left <= setting->charge_levels; left++) {
        worth_left[left] = price * kedgei_plan_left(setting, left);
    }
    size_t total = 0;
    for (uint32_t i = 0; i < count && !err; i++) {
        total += list_options(setting, &devices[i], i, worth_left, options + total);
    }
    if (!err) {
        (void)kedgei_plan_pick(options, total, count, setting->cost_per_second, best, picked);
    }
    for (uint32_t i = 0; i < count && !err; i++) {
        const struct kedgei_plan_option *o = &options[picked[i]];
        ret_choices[i] = (struct kedge_plan_choice){o->data, o->energy, o->seconds};
    }
    kedge_mem_free(options);
    kedge_mem_free(best);
    kedge_mem_free(picked);
    return err;
}
