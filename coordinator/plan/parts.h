/* Which part of its data each site of a round trains on, by what its last update says that training costs it.
 * Pure, and in whole numbers alone: an auditor makes the plan again, in any language, and must come to the
 * same.
 *
 * The worth of a round is data · (part of all samples) − energy · (part of the joules that all data cost)
 * − time · (its time, in parts of that which all data take), as in sites.h. Sites meet only in the time of
 * the slowest: for each time that a round may take every site takes the part that is worth most within it,
 * and the best of these times is the plan, exact for any number of sites. No site rests: from `least` on,
 * what it has is in the model. */
#ifndef KEDGE_COORDINATOR_PLAN_PARTS_H
#define KEDGE_COORDINATOR_PLAN_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/base/percent.h"

#define KEDGE_PLAN_SAMPLES_MAX ((uint64_t)1 << 53)
#define KEDGE_PLAN_AMOUNT_MAX ((uint64_t)1 << 50)
enum { KEDGE_PLAN_WEIGHT_MAX = 1000000000 }; /* 1,000, in millionths */

struct kedge_plan_weights {
    uint32_t data, energy, time; /* in millionths, at most KEDGE_PLAN_WEIGHT_MAX */
    uint32_t least;              /* percent, 1 to 100 */
};

/* What a site's last update says. trained 0: there is none, and the site trains on all that it has, so that
 * it is measured. */
struct kedge_plan_cost {
    uint64_t samples; /* that the site has, trained to KEDGE_PERCENT_ALL · trained */
    uint64_t trained; /* of these: what the rest was measured with; at most KEDGE_PLAN_SAMPLES_MAX / 100 */
    uint64_t microseconds, microjoules; /* at most KEDGE_PLAN_AMOUNT_MAX */
    bool has_joules;                    /* else it counts as the dearest that has: silence is no advantage */
};

/* What a part of its data takes a site: ⌈microseconds · samples of the part / trained⌉, microjoules alike; at
 * most 2^57. cost: with trained above 0. */
uint64_t kedge_plan_part_time(const struct kedge_plan_cost *cost, uint32_t percent);
uint64_t kedge_plan_part_energy(const struct kedge_plan_cost *cost, uint32_t percent);

/* ret_percent: one per site, `least` to 100. Among plans that are worth as much that of the shortest time
 * counts, in it the smallest part of each site. KEDGE_E_ARG: a number is out of range; KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedge_plan_parts(const struct kedge_plan_weights *weights,
                                     const struct kedge_plan_cost *costs, uint32_t count,
                                     uint32_t *ret_percent);

#endif
