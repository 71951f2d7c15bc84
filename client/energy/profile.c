/* Which power level, or how many threads, costs least: a table of levels with what work took at each.
 * profile.h is the contract.
 *
 * Levels are tried from the highest down, one a round, and the descent ends where it stops paying: when
 * energy is well above the least seen, or the next level would be late by half as much time again. Time and
 * energy are kept per unit of work, since rounds differ in length; a window of less than a second is too
 * short for most meters. */
#include "client/energy/profile.h"

#include <math.h>
#include <string.h>

#include "common/base/text.h"

static const double window_least_s = 1, dear = 1.5, try_slower = 1.5;

int kedge_profile_init(struct kedge_profile *p, bool watts, double found, double least)
{
    const double step = watts ? KEDGE_PROFILE_STEP_W : 1;
    if (!(least >= 1) || !(found >= least) || !isfinite(found)) {
        return KEDGE_E_ARG;
    }
    *p = (struct kedge_profile){.count = 0};
    while (p->count < KEDGE_PROFILE_LEVELS_MAX && found - p->count * step > least) {
        p->levels[p->count].level = found - p->count * step;
        p->count++;
    }
    if (p->count < KEDGE_PROFILE_LEVELS_MAX) {
        p->levels[p->count++].level = least;
    }
    return KEDGE_OK;
}

void kedge_profile_saw(struct kedge_profile *p, uint32_t level, double work, double seconds, double joules)
{
    if (level >= p->count || !(seconds >= window_least_s) || !(work > 0) || !(joules > 0)
        || !isfinite(joules)) {
        return;
    }
    struct kedge_profile_level *l = &p->levels[level];
    l->windows++;
    l->seconds += seconds / work;
    l->joules += joules / work;
}

static double time_of(const struct kedge_profile_level *l)
{
    return l->seconds / l->windows;
}

static double energy_of(const struct kedge_profile_level *l)
{
    return l->joules / l->windows;
}

static double cost_of(const struct kedge_profile_level *l, const struct kedge_profile_options *o)
{
    return o->rule == KEDGE_RULE_POWER_COST
               ? o->eta * energy_of(l) + (1 - o->eta) * o->power_max_w * time_of(l)
               : energy_of(l);
}

static bool is_allowed(const struct kedge_profile *p, uint32_t i, const struct kedge_profile_options *o)
{
    const struct kedge_profile_level *l = &p->levels[i];
    if (l->windows == 0) {
        return false;
    }
    if (o->rule == KEDGE_RULE_POWER_SLOWDOWN && i > 0
        && (p->levels[0].windows == 0 || time_of(l) > o->slowdown * time_of(&p->levels[0]))) {
        return false;
    }
    return i == 0 || !(o->time_s > 0) || time_of(l) * o->work <= o->time_s;
}

/* The first level without a window, where it is worth one; count: none is. */
static uint32_t find_try(const struct kedge_profile *p, const struct kedge_profile_options *o)
{
    double least = (double)INFINITY;
    for (uint32_t i = 0; i < p->count; i++) {
        const struct kedge_profile_level *l = &p->levels[i];
        if (l->windows == 0) {
            const struct kedge_profile_level *above = i > 0 ? l - 1 : NULL;
            const bool late = above && o->time_s > 0 && try_slower * time_of(above) * o->work > o->time_s;
            return late ? p->count : i;
        }
        least = fmin(least, energy_of(l));
        const bool slow =
            o->rule == KEDGE_RULE_POWER_SLOWDOWN && time_of(l) > 2 * o->slowdown * time_of(&p->levels[0]);
        if (energy_of(l) > dear * least || slow) {
            return p->count;
        }
    }
    return p->count;
}

uint32_t kedge_profile_choose(const struct kedge_profile *p, const struct kedge_profile_options *o,
                              bool *ret_tries)
{
    const uint32_t next = find_try(p, o);
    *ret_tries = next < p->count;
    if (*ret_tries) {
        return next;
    }
    uint32_t best = 0;
    for (uint32_t i = 0; i < p->count; i++) {
        if (is_allowed(p, i, o)
            && (p->levels[best].windows == 0 || !is_allowed(p, best, o)
                || cost_of(&p->levels[i], o) < cost_of(&p->levels[best], o))) {
            best = i;
        }
    }
    return best;
}

int kedge_profile_rule_parse(const char *text, enum kedge_profile_rule *ret, double *ret_slowdown)
{
    static const char slow[] = "slowdown=";
    double value;
    if (strcmp(text, "cost") == 0) {
        *ret = KEDGE_RULE_POWER_COST;
    } else if (strcmp(text, "energy") == 0) {
        *ret = KEDGE_RULE_POWER_ENERGY;
    } else if (strcmp(text, "deadline") == 0) {
        *ret = KEDGE_RULE_POWER_DEADLINE;
    } else if (strncmp(text, slow, sizeof slow - 1) == 0
               && kedge_real_decode(kedge_view_str(text + sizeof slow - 1), &value) == KEDGE_OK && value >= 1
               && value <= 10) {
        *ret = KEDGE_RULE_POWER_SLOWDOWN;
        *ret_slowdown = value;
    } else {
        return KEDGE_E_FORMAT;
    }
    return KEDGE_OK;
}
