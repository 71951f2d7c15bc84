/* FedProx: gradient + proximal · (w − model given) + pull · (w − auxiliary model). */
#include "strategy/local.h"

static void plan_of(const struct kedge_strategy_options *options, struct kedge_local_plan *ret)
{
    ret->pull = options->proximal;
    ret->pull_auxiliary = options->pull;
}

const struct kedge_local kedge_local_proximal = {.name = "proximal", .plan = plan_of};
