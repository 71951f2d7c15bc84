#include "strategy/local.h"

const struct kedge_local kedge_local_sgd = {.name = "sgd"};

struct kedge_local_plan kedge_local_plan(const struct kedge_local *local,
                                         const struct kedge_strategy_options *options)
{
    struct kedge_local_plan plan = {.pull = 0};
    if (local->plan) {
        local->plan(options, &plan);
    }
    return plan;
}
