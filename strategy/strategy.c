/* The table. Defaults: clustering.md of the references and the papers named. */
#include "strategy/strategy.h"

#include <string.h>

static const struct kedge_strategy rows[] = {
    {.name = "fedavg",
     .title = "FedAvg",
     .what = "mean of the updates, weighted by samples",
     .source = "McMahan et al., AISTATS 2017",
     .weigh = kedge_weigh_samples,
     .defaults = {.server_lr = 1, .adaptivity = 0.001, .buffer = 1, .edge_rounds = 1, .choice = 1}},
    {.name = "fedprox",
     .title = "FedProx",
     .what = "FedAvg whose sites are pulled back to the model that they began with",
     .source = "Li et al., MLSys 2020",
     .local = KEDGE_LOCAL_PROXIMAL,
     .weigh = kedge_weigh_samples,
     .defaults =
         {.proximal = 1, .server_lr = 1, .adaptivity = 0.001, .buffer = 1, .edge_rounds = 1, .choice = 1}},
    {.name = "flexcfl",
     .title = "FlexCFL",
     .what = "groups by the direction of a short pre-training; sites move when their data shift",
     .source = "Duan et al., IEEE TPDS 33(11), 2022",
     .grouping = KEDGE_GROUPING_KIND_FLEXCFL,
     .weigh = kedge_weigh_samples,
     .defaults = {.server_lr = 1, .adaptivity = 0.001, .buffer = 1, .edge_rounds = 1, .choice = 1}},
};

size_t kedge_strategy_count(void)
{
    return sizeof rows / sizeof rows[0];
}

const struct kedge_strategy *kedge_strategy_at(size_t i)
{
    KEDGE_ASSERT(i < kedge_strategy_count());
    return &rows[i];
}

const struct kedge_strategy *kedge_strategy_find(const char *name)
{
    for (size_t i = 0; i < kedge_strategy_count(); i++) {
        if (strcmp(rows[i].name, name) == 0) {
            return &rows[i];
        }
    }
    return NULL;
}
