/* A strategy is a row of a table: what sites do, how groups come about, what an update weighs, how the server
 * steps. The parts are orthogonal, so that a robust rule (aggregation/rule/rule.h) or a server optimiser goes
 * with any grouping. What is a strategy's own stands in a file of its name. Coordinator, auditor and
 * simulator call the same functions: scalars of the round in, whole numbers out, vectors by tiles. How a
 * round uses a row: docs/modules/strategy.md. Pure, any thread. */
#ifndef KEDGE_STRATEGY_STRATEGY_H
#define KEDGE_STRATEGY_STRATEGY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "grouping/flexcfl.h"
#include "strategy/local.h"
#include "strategy/options.h"

/* How sites come to groups. */
enum kedge_grouping_kind {
    KEDGE_GROUPING_KIND_NONE,    /* one model */
    KEDGE_GROUPING_KIND_FLEXCFL, /* pre-training once, nearest direction, migration after shifts */
    KEDGE_GROUPING_KIND_CHOICE,  /* the site takes the model with the least loss (IFCA) */
    KEDGE_GROUPING_KIND_NEAREST, /* the model nearest to the site's last one (FeSEM) */
    KEDGE_GROUPING_KIND_SPLIT,   /* groups split in two when their updates disagree (CFL) */
    KEDGE_GROUPING_KIND_ONESHOT, /* linkage of last-layer updates after a pre-training (FedClust) */
    KEDGE_GROUPING_KIND_EDGE,    /* a group per tenant; they meet now and then (hierarchical) */
    KEDGE_GROUPING_KIND_RANDOM,  /* FlexCFL's ablation RAC: groups as FlexCFL's, newcomers at random */
    KEDGE_GROUPING_KIND_CENTRES, /* … RCC: each of m random sites' pre-training update is a direction */
};

/* What the server does with the mean update D of a group (server.h). */
enum kedge_server {
    KEDGE_SERVER_NONE, /* x ← x + D */
    KEDGE_SERVER_MOMENTUM,
    KEDGE_SERVER_ADAGRAD,
    KEDGE_SERVER_YOGI,
    KEDGE_SERVER_ADAM,
    KEDGE_SERVER_CONTROL, /* SCAFFOLD: x ← x + server_lr · D, c ← c + (participants / N) · mean change */
};

/* What is known of one update when its round closes. */
struct kedge_strategy_input {
    uint64_t samples, steps; /* ≥ 1, at most 2^31 − 1 */
    double loss;        /* mean loss of the model given on the site's training data, ≥ 0; q-FFL needs it */
    double rate;        /* learning rate of its steps, above 0, where sites have several; 0: they have one */
    double norm_sq;     /* ‖Δ‖² of the update's values (not scaled); q-FFL needs it */
    uint32_t staleness; /* rounds since the model that it began with was the newest; FedBuff needs it */
};

enum { KEDGE_WEIGHT_ONE = 1 << 20 }; /* the largest weight of rows whose weights are reals */

/* Whole-number weights: result = base + Σ weight · q / (divisor · 2^scale). A weight is a sample count (rows
 * that weigh by samples) or at most KEDGE_WEIGHT_ONE; with n updates and |q| ≤ limit the host checks
 * Σ weight · limit < 2^62. The divisor is at most 2^44. KEDGE_E_ARG: n is 0 or a number is out of range; then
 * nothing is written. */
typedef int kedge_strategy_weigh_fn(const struct kedge_strategy_options *options,
                                    const struct kedge_strategy_input *inputs, size_t n, double lr,
                                    uint64_t *weight, uint64_t *ret_divisor);

struct kedge_strategy {
    const char *name;                /* "fedprox" */
    const char *title;               /* "FedProx" */
    const char *what;                /* one line for people */
    const char *source;              /* paper */
    const char *uses;                /* names of the options that it reads, a blank between two */
    const struct kedge_local *local; /* what a site does with the model that it is given; never NULL */
    enum kedge_grouping_kind grouping;
    enum kedge_server server;
    bool asynchronous;    /* the server steps after `buffer` updates, with some still at work */
    bool everybody;       /* every site takes part in every round */
    bool needs_loss;      /* sites report the loss of the model given */
    bool comparison_only; /* for tables of a simulation, never for a job */
    /* FLEXCFL, RANDOM: what is passed to kedge_flexcfl_group_gram */
    enum kedge_edc edc;
    enum kedge_choose
        choose; /* FIXED: the spec's number of groups; else that is the least, `most` the most */
    kedge_strategy_weigh_fn *weigh;
    struct kedge_strategy_options defaults;
};

size_t kedge_strategy_count(void);
const struct kedge_strategy *kedge_strategy_at(size_t i);
/* NULL when there is none of this name. */
const struct kedge_strategy *kedge_strategy_find(const char *name);
/* Directions that moved by so much (kedge_group_drift) ask for new groups: KEDGE_DRIFT_MOST is what they may.
 */
bool kedge_strategy_drifted(double drift);
/* Whether the strategy reads this option: a spec that sets another is in error. */
bool kedge_strategy_uses(const struct kedge_strategy *strategy, const struct kedge_strategy_option *option);

/* Why updates of this strategy cannot come compact (aggregation/compact.h), under a rule that is the mean or
 * another; NULL: they can. sparse: only their largest values are sent. Static. */
const char *kedge_strategy_refuses_compact(const struct kedge_strategy *strategy, bool sparse, bool mean);

/* weigh functions; each stands in the file of its name, the first three in weigh.c */
kedge_strategy_weigh_fn kedge_weigh_samples; /* weight = samples, divisor = their sum */
kedge_strategy_weigh_fn kedge_weigh_equal;   /* weight 1, divisor n */
kedge_strategy_weigh_fn kedge_weigh_first;   /* 1 for the first, 0 for the others: a fault re-created */
kedge_strategy_weigh_fn kedge_weigh_fednova; /* samples / (steps · rate); the divisor is not the sum */
/* The same in a job, where who says that it made many steps lengthens everybody's: the sum goes as far as the
 * mean number of steps, but not above `medians` ≥ 1 times their median (of two in the middle the lower one).
 */
KEDGE_NODISCARD int kedge_weigh_fednova_bounded(const struct kedge_strategy_input *inputs, size_t n,
                                                double medians, uint64_t *weight, uint64_t *ret_divisor);
#define KEDGE_FEDNOVA_MEDIANS 16.0           /* of a job */
kedge_strategy_weigh_fn kedge_weigh_qffl;    /* loss^q; the divisor is not the sum */
kedge_strategy_weigh_fn kedge_weigh_fedbuff; /* 1 / √(1 + staleness) over n; the divisor is not the sum */

/* A cap on a tenant's share (aggregation/share_cap.h) of weights that a row gave, whose divisor may differ
 * from their sum: it changes in proportion to the sum, rounded down, at least 1. tenant[n]: below
 * KEDGE_SHARE_TENANTS_MAX; inputs of one tenant stand in the order of their sites' names. Errors of
 * kedge_share_cap, KEDGE_E_NOMEM; nothing is changed then. */
KEDGE_NODISCARD int kedge_strategy_cap(uint64_t *weight, const uint32_t *tenant, size_t n, uint32_t share_max,
                                       uint64_t *divisor);

#endif
