/* A plan for sites of which is known what training costs them, as their update statements say it: how much of
 * its data each should train on in a round. Pure. One step, exact for any number of sites: sites meet only in
 * the time of the slowest (plan.h has the same walk for devices of a model). */
#ifndef KEDGE_COORDINATOR_PLAN_SITES_H
#define KEDGE_COORDINATOR_PLAN_SITES_H

#include <stdint.h>

#include "common/base/diag.h"

enum { KEDGE_PLAN_SITES_MAX = 100000, KEDGE_PLAN_PARTS_MAX = 100 };

struct kedge_plan_site {
    double samples;            /* in a round with all of its data, above 0 */
    double seconds_per_sample; /* above 0 */
    double joules_per_sample;  /* NaN: not known, which is never taken for 0 */
    double other_seconds;      /* upload and all else that does not grow with the data, not below 0 */
};

/* The worth of a round is data_weight · (part of all samples) − energy_weight · (part of the joules that all
 * of them cost) − time_weight · (its time, in parts of that of a round with all data): three numbers without
 * a unit. */
struct kedge_plan_terms {
    uint32_t parts; /* of its data a site trains on 0, 1 … or all of so many, at most KEDGE_PLAN_PARTS_MAX */
    double data_weight, energy_weight, time_weight;
};

struct kedge_plan_share {
    uint32_t parts; /* 0: it rests */
    double samples, seconds;
    double joules; /* NaN: not known */
};
struct kedge_plan_round_cost {
    double worth, samples, seconds; /* seconds: of the slowest */
    double joules;                  /* of the sites that are known */
    uint32_t sites, unknown;        /* that train; of these, whose joules are not known */
};

/* ret_shares: one per site. A site whose joules are not known counts in the worth as the dearest that is
 * known does per sample, so that it is not preferred for that. KEDGE_E_ARG names what is out of range;
 * KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedge_plan_sites(const struct kedge_plan_terms *terms,
                                     const struct kedge_plan_site *sites, uint32_t count,
                                     struct kedge_plan_share *ret_shares,
                                     struct kedge_plan_round_cost *ret_cost, struct kedge_diag *reterr);
/* What the round costs in which every site trains on so many parts of its data. */
void kedge_plan_sites_all(const struct kedge_plan_terms *terms, const struct kedge_plan_site *sites,
                          uint32_t count, uint32_t parts, struct kedge_plan_round_cost *ret_cost);

#endif
