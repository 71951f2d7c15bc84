/* Models in two parts: what is shared travels, the head stays at the site (FedPer). FedRep trains in two
 * phases: the head alone, then what is shared. */
#include "strategy/local.h"

const struct kedge_local kedge_local_head = {.name = "head", .kept = "head", .has_head = true};

static void plan_of(const struct kedge_strategy_options *options, struct kedge_local_plan *ret)
{
    ret->head_epochs = (uint32_t)options->head_epochs;
}

const struct kedge_local kedge_local_head_first = {
    .name = "head-first", .kept = "head", .has_head = true, .is_head_first = true, .plan = plan_of};
