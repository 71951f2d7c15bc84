/* One round for the sites of a job, by what their own statements say that training costs them. The
 * three parts of the worth (data, energy, time) have different units; each is divided by what a
 * round with all data would have, so weights are plain numbers. */
#include "coordinator/plan/sites.h"

#include <math.h>

#include "common/base/mem.h"
#include "common/base/try.h"
#include "coordinator/plan/impl.h"

/* What makes the three parts of the worth numbers without a unit. */
struct whole {
    double samples, joules, seconds;
    double dearest; /* joules per sample, 0: none is known */
};

static bool is_fine(const struct kedge_plan_site *s)
{
    return s->samples > 0 && s->samples <= 1e15 && s->seconds_per_sample > 0 && s->seconds_per_sample <= 1e9
           && s->other_seconds >= 0 && s->other_seconds <= 1e9
           && (isnan(s->joules_per_sample) || (s->joules_per_sample >= 0 && s->joules_per_sample <= 1e15));
}

static int check(const struct kedge_plan_terms *t, const struct kedge_plan_site *sites, uint32_t count,
                 struct kedge_diag *d)
{
    const double weights[] = {t->data_weight, t->energy_weight, t->time_weight};
    if (count < 1 || count > KEDGE_PLAN_SITES_MAX || t->parts < 1 || t->parts > KEDGE_PLAN_PARTS_MAX) {
        return kedge_diag_set(d, KEDGE_E_ARG, "plan: expected 1 to %d sites and 1 to %d parts of data",
                              KEDGE_PLAN_SITES_MAX, KEDGE_PLAN_PARTS_MAX);
    }
    for (int i = 0; i < 3; i++) {
        if (!(weights[i] >= 0 && weights[i] <= 1e6)) {
            return kedge_diag_set(d, KEDGE_E_ARG, "plan: expected weights of 0 to 1000000");
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!is_fine(&sites[i])) {
            return kedge_diag_set(d, KEDGE_E_ARG,
                                  "plan: site %u: samples, seconds or joules are out of range", i + 1);
        }
    }
    return KEDGE_OK;
}

static double seconds_of(const struct kedge_plan_site *s, double part)
{
    return part > 0 ? s->other_seconds + part * s->samples * s->seconds_per_sample : 0;
}

/* A site that does not tell its energy counts as the dearest of those that do: otherwise silence
 * would be an advantage. */
static struct whole sum_up(const struct kedge_plan_site *sites, uint32_t count)
{
    struct whole w = {.samples = 0};
    for (uint32_t i = 0; i < count; i++) {
        w.dearest = fmax(w.dearest, isnan(sites[i].joules_per_sample) ? 0 : sites[i].joules_per_sample);
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct kedge_plan_site *s = &sites[i];
        w.samples += s->samples;
        w.joules += s->samples * (isnan(s->joules_per_sample) ? w.dearest : s->joules_per_sample);
        w.seconds = fmax(w.seconds, seconds_of(s, 1));
    }
    return w;
}

/* Its part of the worth, but the time: that belongs to the slowest, and kedgei_plan_pick takes care
 * of it. */
static double gain_of(const struct kedge_plan_terms *t, const struct whole *w,
                      const struct kedge_plan_site *s, double part)
{
    const double each = isnan(s->joules_per_sample) ? w->dearest : s->joules_per_sample;
    const double energy = w->joules > 0 ? part * s->samples * each / w->joules : 0;
    return t->data_weight * part * s->samples / w->samples - t->energy_weight * energy;
}

static void add(struct kedge_plan_round_cost *c, const struct kedge_plan_site *s, double part)
{
    const bool known = !isnan(s->joules_per_sample);
    c->sites += part > 0;
    c->unknown += part > 0 && !known;
    c->samples += part * s->samples;
    c->joules += known ? part * s->samples * s->joules_per_sample : 0;
    c->seconds = fmax(c->seconds, seconds_of(s, part));
}

int kedge_plan_sites(const struct kedge_plan_terms *terms, const struct kedge_plan_site *sites,
                     uint32_t count, struct kedge_plan_share *ret_shares,
                     struct kedge_plan_round_cost *ret_cost, struct kedge_diag *reterr)
{
    KEDGE_TRY(check(terms, sites, count, reterr));
    const struct whole w = sum_up(sites, count);
    const size_t each = (size_t)terms->parts + 1;
    struct kedgei_plan_option *options KEDGE_CLEANUP(kedge_mem_release) =
        kedge_mem_new(count * each, sizeof *options);
    double *best KEDGE_CLEANUP(kedge_mem_release) = kedge_mem_new(count, sizeof *best);
    size_t *picked KEDGE_CLEANUP(kedge_mem_release) = kedge_mem_new(count, sizeof *picked);
    struct kedge_plan_round_cost cost = {.worth = 0};
    KEDGE_TRY_MEM(options && best && picked);
    for (size_t i = 0; i < count * each; i++) {
        const uint32_t site = (uint32_t)(i / each), data = (uint32_t)(i % each);
        const double part = (double)data / terms->parts;
        options[i] = (struct kedgei_plan_option){.device = site,
                                                 .gain = gain_of(terms, &w, &sites[site], part),
                                                 .seconds = seconds_of(&sites[site], part),
                                                 .data = data};
    }
    cost.worth = kedgei_plan_pick(options, count * each, count, terms->time_weight / w.seconds, best, picked);
    for (uint32_t i = 0; i < count; i++) {
        const struct kedgei_plan_option *o = &options[picked[i]];
        const double part = (double)o->data / terms->parts;
        ret_shares[i] =
            (struct kedge_plan_share){o->data, part * sites[i].samples, o->seconds,
                                      o->data > 0 ? part * sites[i].samples * sites[i].joules_per_sample : 0};
        add(&cost, &sites[i], part);
    }
    *ret_cost = cost;
    return KEDGE_OK;
}

void kedge_plan_sites_all(const struct kedge_plan_terms *terms, const struct kedge_plan_site *sites,
                          uint32_t count, uint32_t parts, struct kedge_plan_round_cost *ret_cost)
{
    const struct whole w = sum_up(sites, count);
    const double part = (double)parts / terms->parts;
    struct kedge_plan_round_cost cost = {.worth = 0};
    for (uint32_t i = 0; i < count; i++) {
        cost.worth += gain_of(terms, &w, &sites[i], part);
        add(&cost, &sites[i], part);
    }
    cost.worth -= terms->time_weight * cost.seconds / w.seconds;
    *ret_cost = cost;
}
