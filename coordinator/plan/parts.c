/* The plan of a round in whole numbers. Each term of the worth is rounded down to a unit of 2^-20 millionths
 * before it is added, so sums are the same in any order and a tie is a tie for everybody. */
#include "coordinator/plan/parts.h"

#include <stdlib.h>

#include "common/base/mem.h"
#include "common/base/try.h"

__extension__ typedef unsigned __int128 wide;

enum { SCALE_BITS = 20 };
static const uint64_t amount_most = (uint64_t)1 << 57;

/* What makes the three terms numbers without a unit. */
struct whole {
    wide samples, energy;
    uint64_t time;
    const struct kedge_plan_cost *dearest; /* per sample; NULL: no site tells its joules */
};

struct option {
    uint64_t time;
    int64_t gain; /* without the time, which only the slowest decides */
    uint32_t site, percent;
};

static bool is_fine(const struct kedge_plan_cost *c)
{
    return c->trained == 0
           || (c->trained <= KEDGE_PLAN_SAMPLES_MAX / KEDGE_PERCENT_ALL && c->samples >= c->trained
               && c->samples <= c->trained * KEDGE_PERCENT_ALL && c->microseconds <= KEDGE_PLAN_AMOUNT_MAX
               && (!c->has_joules || c->microjoules <= KEDGE_PLAN_AMOUNT_MAX));
}

static uint64_t amount_of(const struct kedge_plan_cost *rate, uint64_t amount, uint64_t samples)
{
    const wide all = ((wide)amount * samples + rate->trained - 1) / rate->trained;
    return all < amount_most ? (uint64_t)all : amount_most;
}

uint64_t kedge_plan_part_time(const struct kedge_plan_cost *cost, uint32_t percent)
{
    return amount_of(cost, cost->microseconds, kedge_percent_of(cost->samples, percent));
}

uint64_t kedge_plan_part_energy(const struct kedge_plan_cost *cost, uint32_t percent)
{
    return amount_of(cost, cost->microjoules, kedge_percent_of(cost->samples, percent));
}

/* The joules that count in the plan: a site's own, else those of the dearest for as many samples. */
static uint64_t energy_of(const struct whole *w, const struct kedge_plan_cost *c, uint32_t percent)
{
    const struct kedge_plan_cost *rate = c->has_joules ? c : w->dearest;
    return rate ? amount_of(rate, rate->microjoules, kedge_percent_of(c->samples, percent)) : 0;
}

static bool is_dearer(const struct kedge_plan_cost *a, const struct kedge_plan_cost *b)
{
    return (wide)a->microjoules * b->trained > (wide)b->microjoules * a->trained;
}

static struct whole sum_up(const struct kedge_plan_cost *costs, uint32_t count)
{
    struct whole w = {.samples = 0};
    for (uint32_t i = 0; i < count; i++) {
        if (costs[i].trained > 0 && costs[i].has_joules && (!w.dearest || is_dearer(&costs[i], w.dearest))) {
            w.dearest = &costs[i];
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        if (costs[i].trained == 0) {
            continue;
        }
        const uint64_t time = kedge_plan_part_time(&costs[i], KEDGE_PERCENT_ALL);
        w.samples += costs[i].samples;
        w.energy += energy_of(&w, &costs[i], KEDGE_PERCENT_ALL);
        w.time = time > w.time ? time : w.time;
    }
    return w;
}

/* weight · amount / whole in units; at most 2^107 before the division (parts.h has the ranges). */
static int64_t term(uint32_t weight, uint64_t amount, wide whole)
{
    return whole == 0 ? 0 : (int64_t)((((wide)weight * amount) << SCALE_BITS) / whole);
}

static int cmp_time(const void *a, const void *b)
{
    const struct option *x = a, *y = b;
    return (x->time > y->time) - (x->time < y->time);
}

/* Walks up the times: each site keeps its best option so far, and where all have one the sum less the price
 * of the time is looked at as soon as no other option has the same time. Returns the best time. */
static uint64_t best_time(const struct option *options, size_t option_count, uint32_t sites,
                          const struct kedge_plan_weights *weights, const struct whole *w, bool *has,
                          int64_t *best)
{
    int64_t sum = 0, most = INT64_MIN;
    uint64_t ret = 0;
    uint32_t missing = sites;
    for (size_t i = 0; i < option_count; i++) {
        const struct option *o = &options[i];
        if (!has[o->site] || o->gain > best[o->site]) {
            missing -= !has[o->site];
            sum += o->gain - (has[o->site] ? best[o->site] : 0);
            has[o->site] = true;
            best[o->site] = o->gain;
        }
        const bool is_last = i + 1 == option_count || options[i + 1].time > o->time;
        const int64_t worth = sum - term(weights->time, o->time, w->time);
        if (missing == 0 && is_last && worth > most) {
            most = worth;
            ret = o->time;
        }
    }
    return ret;
}

static void put_options(const struct kedge_plan_weights *weights, const struct kedge_plan_cost *cost,
                        const struct whole *w, uint32_t site, struct option *ret)
{
    for (uint32_t p = weights->least; p <= KEDGE_PERCENT_ALL; p++) {
        const uint64_t samples = kedge_percent_of(cost->samples, p);
        *ret++ = (struct option){.time = kedge_plan_part_time(cost, p),
                                 .gain = term(weights->data, samples, w->samples)
                                         - term(weights->energy, energy_of(w, cost, p), w->energy),
                                 .site = site,
                                 .percent = p};
    }
}

static int check(const struct kedge_plan_weights *w, const struct kedge_plan_cost *costs, uint32_t count)
{
    if (w->data > KEDGE_PLAN_WEIGHT_MAX || w->energy > KEDGE_PLAN_WEIGHT_MAX
        || w->time > KEDGE_PLAN_WEIGHT_MAX || w->least < 1 || w->least > KEDGE_PERCENT_ALL) {
        return KEDGE_E_ARG;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!is_fine(&costs[i])) {
            return KEDGE_E_ARG;
        }
    }
    return KEDGE_OK;
}

int kedge_plan_parts(const struct kedge_plan_weights *weights, const struct kedge_plan_cost *costs,
                     uint32_t count, uint32_t *ret_percent)
{
    KEDGE_TRY(check(weights, costs, count));
    const struct whole w = sum_up(costs, count);
    const size_t each = KEDGE_PERCENT_ALL - weights->least + 1;
    struct option *options KEDGE_CLEANUP(kedge_mem_release) =
        kedge_mem_new(count * each + 1, sizeof *options);
    int64_t *best KEDGE_CLEANUP(kedge_mem_release) = kedge_mem_new((size_t)count + 1, sizeof *best);
    bool *has KEDGE_CLEANUP(kedge_mem_release) = kedge_mem_new((size_t)count + 1, sizeof *has);
    KEDGE_TRY_MEM(options && best && has);
    size_t n = 0;
    uint32_t sites = 0;
    for (uint32_t i = 0; i < count; i++) {
        ret_percent[i] = KEDGE_PERCENT_ALL;
        if (costs[i].trained > 0) {
            put_options(weights, &costs[i], &w, i, &options[n]);
            n += each;
            sites++;
        }
    }
    if (sites == 0) {
        return KEDGE_OK;
    }
    qsort(options, n, sizeof *options, cmp_time);
    const uint64_t time = best_time(options, n, sites, weights, &w, has, best);
    /* Of each site the best within that time, the smallest part among equals. */
    for (uint32_t i = 0; i < count; i++) {
        has[i] = false;
    }
    for (size_t i = 0; i < n && options[i].time <= time; i++) {
        const struct option *o = &options[i];
        const bool is_better = !has[o->site] || o->gain > best[o->site]
                               || (o->gain == best[o->site] && o->percent < ret_percent[o->site]);
        if (is_better) {
            has[o->site] = true;
            best[o->site] = o->gain;
            ret_percent[o->site] = o->percent;
        }
    }
    return KEDGE_OK;
}
