/* Ditto: SGD, then the site's own model with a pull towards the one given. */
#include "strategy/local.h"

static void plan_of(const struct kedge_strategy_options *options, struct kedge_local_plan *ret)
{
    ret->personal_pull = options->personal;
}

const struct kedge_local kedge_local_ditto = {
    .name = "ditto", .kept = "personal", .has_own_model = true, .plan = plan_of};
