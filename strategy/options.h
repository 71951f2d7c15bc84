/* The numbers that a strategy may be given, one table for job specs, simulations and documents. All are reals
 * in a closed range, written as decimal strings wherever they decide a model. Which of them a strategy reads
 * stands in its row (strategy.h), as do the defaults. Pure. */
#ifndef KEDGE_STRATEGY_OPTIONS_H
#define KEDGE_STRATEGY_OPTIONS_H

#include <stddef.h>

#include "common/base/err.h"

/* name, least, largest, what it is. */
#define KEDGE_STRATEGY_OPTIONS(X)                                                                          \
    X(proximal, 0, 1000, "pull of local steps towards the model they began with (FedProx's mu)")           \
    X(personal, 0, 1000, "pull of a site's personal model towards its group's (Ditto's lambda)")           \
    X(head_epochs, 0, 10000, "passes over a site's head before those over what is shared (FedRep)")        \
    X(fairness, 0, 8, "exponent of the loss in an update's weight, in halves (q-FFL's q)")                 \
    X(server_lr, 0, 1000, "step of the server's optimiser (eta)")                                          \
    X(momentum, 0, 0.999999, "decay of the server's first moment (beta, beta_1)")                          \
    X(second_moment, 0, 0.999999, "decay of the server's second moment (beta_2)")                          \
    X(adaptivity, 0.000000001, 1000, "what the root of the second moment is kept above (tau)")             \
    X(settle, 0, 1000000, "round in which the server's step is half of server_lr, and so on; 0: it stays") \
    X(buffer, 1, 65536, "updates that the server waits for before it steps (FedBuff)")                     \
    X(split_mean, 0, 1000000,                                                                              \
      "a group may split when its mean update is shorter than this (CFL's epsilon_1)")                     \
    X(split_max, 0, 1000000, "… and its longest update longer than this (CFL's epsilon_2)")                \
    X(split_after, 0, 1000000, "… and this many rounds have closed")                                       \
    X(link, 0, 2, "distance (1 - cosine) below which groups of sites are joined (one-shot clustering)")    \
    X(edge_rounds, 1, 1000000, "rounds between two meetings of the edges (hierarchical)")                  \
    X(shift, 0, 1, "total variation of label shares above which a site looks for its group again")         \
    X(regroup, 0, 1000000, "rounds between two clusterings of the pre-training updates kept, 0: never")    \
    X(refresh, 0, 1000000, "rounds between two estimates of the groups' directions, 0: never")             \
    X(merge, 0, 1, "cosine of two groups' directions above which they become one, 1: never")               \
    X(trial_every, 0, 1000000, "rounds between two trials of which groups become one, 0: never")           \
    X(silhouette, 0, 1, "least silhouette at which a group is split in two, 1: never")                     \
    X(most, 1, 64, "most groups where their number is chosen; the job's number is the least")

struct kedge_strategy_options {
#define KEDGE_STRATEGY_OPTION_FIELD(name, least, largest, text) double name;
    KEDGE_STRATEGY_OPTIONS(KEDGE_STRATEGY_OPTION_FIELD)
#undef KEDGE_STRATEGY_OPTION_FIELD
};

struct kedge_strategy_option {
    const char *name;
    double least, largest;
    const char *text; /* one line for people */
    size_t offset;    /* of the double in struct kedge_strategy_options */
};

enum {
#define KEDGE_STRATEGY_OPTION_ONE(name, least, largest, text) +1
    KEDGE_STRATEGY_OPTION_COUNT = 0 KEDGE_STRATEGY_OPTIONS(KEDGE_STRATEGY_OPTION_ONE)
#undef KEDGE_STRATEGY_OPTION_ONE
};

/* Row i of KEDGE_STRATEGY_OPTION_COUNT, static. */
const struct kedge_strategy_option *kedge_strategy_option_at(size_t i);
/* The row of this name, NULL when there is none. */
const struct kedge_strategy_option *kedge_strategy_option_find(const char *name);
/* KEDGE_E_ARG when the value is out of the row's range or not finite; nothing is changed then. */
KEDGE_NODISCARD int kedge_strategy_option_set(struct kedge_strategy_options *options,
                                              const struct kedge_strategy_option *row, double value);
/* The row's value in options. */
double kedge_strategy_option_get(const struct kedge_strategy_options *options,
                                 const struct kedge_strategy_option *row);

#endif
