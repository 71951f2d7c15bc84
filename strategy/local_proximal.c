/* FedProx: gradient + proximal · (w − model given). */
#include "strategy/local.h"

static void plan_of(const struct kedge_strategy_options *options, struct kedge_local_plan *ret)
{
    ret->pull = options->proximal;
}

const struct kedge_local kedge_local_proximal = {.name = "proximal", .plan = plan_of};
