/* A crowd: a federation of up to a million sites, control plane only. The coordinator's core and, while a
 * site has something to do, that site's core, in virtual time and without faults; models are stood for by
 * hashes and signatures by a keyed hash. It shows that what a round costs depends on who takes part, not on
 * who could. (sim.h looks for faults and keeps every site and every statement.) Same spec, same digest. */
#ifndef KEDGE_SIM_CROWD_H
#define KEDGE_SIM_CROWD_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/diag.h"

struct kedge_crowd_spec {
    uint64_t seed;
    uint32_t tenants;         /* 1…100 */
    uint32_t sites;           /* of all tenants together, at least one each; at most KEDGE_CORE_SITES_MAX */
    uint32_t rounds;          /* 1…1000 */
    uint32_t sites_per_round; /* 1…sites, at most 100,000 */
};

struct kedge_crowd_outcome {
    bool holds;      /* every selected site's update was accepted and counted once, every receipt came */
    const char *why; /* static: the rule that was broken */
    uint64_t rounds, updates, events, virtual_ns;
    uint64_t digest; /* of everything that happened */
};

/* KEDGE_E_FORMAT: the key that is out of range. */
KEDGE_NODISCARD int kedge_crowd_spec_check(const struct kedge_crowd_spec *spec, struct kedge_diag *reterr);

/* Called after every round. */
typedef void kedge_crowd_progress(void *arg, uint32_t rounds);

/* KEDGE_OK also when a rule was broken: look at holds. Errors of kedge_crowd_spec_check; KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedge_crowd_run(const struct kedge_crowd_spec *spec, kedge_crowd_progress *progress,
                                    void *arg, struct kedge_crowd_outcome *ret, struct kedge_diag *reterr);

#endif
