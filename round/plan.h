/* The plan of a round: what the record says that training takes the selected sites, and what part of its data
 * each trains on. Coordinator and auditor make it alike, of statements alone. Pure. */
#ifndef KEDGE_ROUND_PLAN_H
#define KEDGE_ROUND_PLAN_H

#include "chain/statement/statement.h"
#include "coordinator/plan/parts.h"
#include "job/job_spec.h"

/* Rounds for which counts what a site has said; a site of which is known less trains on all of its data. */
enum { KEDGE_ROUND_COSTS_KEPT = 32 };

struct kedge_round_cost {
    uint32_t round; /* of the update that says so; 0: none does */
    struct kedge_plan_cost is;
};

/* A training update of a planned round takes the place of what was known; of other rounds and jobs nothing
 * changes. One whose counts cannot be is as one that was never sent. */
void kedge_round_cost_of(const struct kedge_job_spec *spec, const struct kedge_st_update *update,
                         struct kedge_round_cost *io);
/* Whether a plan of that round looks at it. */
bool kedge_round_cost_counts(const struct kedge_round_cost *cost, uint32_t round);
/* Parts of the selected sites of a planned round (kedge_job_spec_plans), in percent. KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedge_round_plan(const struct kedge_job_spec *spec, uint32_t round,
                                     const struct kedge_round_cost *costs, uint32_t count,
                                     uint32_t *ret_percent);

#endif
