/* Which batch size the next run should use, learnt from what earlier runs cost. Pure.
 *
 * A run trains to its target, or does not get there. Its cost is Zeus's, η · energy + (1 − η) · largest power
 * · time in joules (You, Chung, Chowdhury, NSDI'23), at the power cap that is best for its size: the caller's
 * affair. As Zeus does, this keeps sizes that reached the target, stops runs that have become too dear, and
 * plays what is left by Thompson sampling. Unlike Zeus it does not try all sizes: cost over size is a valley,
 * so only neighbours of the best one known are tried, later what lies farther, for a share of what is left;
 * and trying is bounded by a share of what the default would have cost (docs/modules/client-energy.md has
 * both on Zeus's own traces). */
#ifndef KEDGE_CLIENT_ENERGY_BATCH_H
#define KEDGE_CLIENT_ENERGY_BATCH_H

#include <stdint.h>

#include "common/base/diag.h"
#include "common/base/rng.h"

enum {
    KEDGE_BATCH_SIZES_MAX = 32,
    KEDGE_BATCH_WINDOW = 16 /* costs that are remembered of a size: older ones expire, for curves drift */
};

struct kedge_batch_options {
    double stop;      /* a run that costs more than this times the best known mean is stopped; above 1 */
    double explore;   /* what trying may cost more than the default has, as a share of what that would have
                         cost; 0: never   above it */
    double far_share; /* share of what is left for trying, savings included, that a size farther away may
                         cost */
    double far_worse; /* … which is not tried beyond a size whose mean is this many times the best one */
};
/* 1.5, 0.5, 0.1, 1.5. */
struct kedge_batch_options kedge_batch_defaults(void);

struct kedge_batch_size {
    uint32_t size, plays;
    bool fails;                      /* a run did not reach the target, or was stopped, before any that did */
    double cost[KEDGE_BATCH_WINDOW]; /* of runs that reached it, in turn */
};

/* What is known; plain values, to be kept over restarts. Set by kedge_batch_init. */
struct kedge_batch {
    struct kedge_batch_options options;
    struct kedge_batch_size sizes[KEDGE_BATCH_SIZES_MAX]; /* ascending */
    uint32_t count, start;                                /* the default's place */
    uint64_t runs, reached;                               /* stopped ones count as runs */
    double spent;
};

struct kedge_batch_choice {
    uint32_t place; /* of the size */
    double limit;   /* the run is stopped before its cost goes beyond; INFINITY: it is not */
};

/* sizes: ascending, without doubles; `start` is the place of the owner's default. KEDGE_E_ARG names what is
 * wrong. */
KEDGE_NODISCARD int kedge_batch_init(struct kedge_batch *b, const struct kedge_batch_options *options,
                                     const uint32_t *sizes, uint32_t count, uint32_t start,
                                     struct kedge_diag *reterr);
/* again: the run before was stopped or missed the target and is repeated: with the best size known, without
 * limit. The default comes first of all; where it fails, its neighbours. */
struct kedge_batch_choice kedge_batch_choose(const struct kedge_batch *b, bool again, struct kedge_rng *rng);
/* What the run cost, and whether it reached its target. Costs that are not above 0 or not finite are ignored.
 */
void kedge_batch_saw(struct kedge_batch *b, uint32_t place, double cost, bool reached);
/* Mean of the costs that are remembered of a size that has been played. */
double kedge_batch_mean(const struct kedge_batch *b, uint32_t place);
/* The place with the least mean cost; the default's before any run has reached the target. */
uint32_t kedge_batch_best(const struct kedge_batch *b);

#endif
