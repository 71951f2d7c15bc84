/* Which batch a site takes within one job, where nobody can wait for a whole training to end: an observation
 * is a block of rounds, its cost what the block used per useful sample. Pure; what is learnt outlives the
 * job.
 *
 * A sample in a larger batch teaches less: of b samples b · (φ + b₀) / (φ + b) are useful (Pollux, OSDI'21),
 * with φ the gradient noise scale S / G², S the variance of one sample's gradient and G² the square of the
 * mean one (McCandlish et al., 2018), here from squared lengths of gradients of two batches. The fall of the
 * loss decides nothing: it gets smaller while a job goes on, and would make what comes late look bad. */
#ifndef KEDGE_CLIENT_ENERGY_ROUNDS_H
#define KEDGE_CLIENT_ENERGY_ROUNDS_H

#include "client/energy/batch.h"
#include "client/energy/joules.h"

enum {
    KEDGE_ROUNDS_BLOCK = 3,         /* rounds of an observation */
    KEDGE_ROUNDS_NOISE_MIN = 4,     /* pairs of gradients before φ is believed */
    KEDGE_ROUNDS_NOISE_ENOUGH = 16, /* … and before they are asked for in every eighth block only */
    KEDGE_ROUNDS_NOISE_EVERY = 8,
    KEDGE_ROUNDS_FORGIVEN_MAX =
        8, /* rounds of another quality in a row that are left out; then all begins anew */
    KEDGE_ROUNDS_WHY_MAX = 96,
};

/* Sums of what pairs of gradients gave. */
struct kedge_noise {
    uint32_t pairs;
    double s, g2;
};
/* |g|² of a batch of `small` and of one of `large` samples, small < large. */
void kedge_noise_saw(struct kedge_noise *n, double small, double small_sq, double large, double large_sq);
/* φ in samples, 1/16 … 2^20; 0: not known yet. */
double kedge_noise_scale(const struct kedge_noise *n);
/* Part of a batch's samples that is useful beside those of a batch of `start`: above 1 for smaller ones. */
double kedge_noise_useful(double scale, double start, double batch);

/* What is remembered of one task; plain values, kept over restarts. */
struct kedge_rounds {
    uint8_t key[32];            /* model, data, sizes, learning rate: by the host */
    enum kedge_quality quality; /* of the costs; UNKNOWN: in seconds, for joules were */
    bool has_costs;
    struct kedge_batch batch;
    struct kedge_noise noise;
    double speed[KEDGE_BATCH_SIZES_MAX]; /* seconds per sample seen last; 0: none */
    double samples;                      /* that a round went through last; 0: none */
    uint32_t forgiven;
    bool again; /* the block before was given up */
    struct kedge_rounds_block {
        bool is_open;
        uint32_t place, rounds;
        double useful, cost, limit;
    } block;
};

struct kedge_rounds_ask {
    bool fixed;     /* the owner wants no choice: the start */
    double samples; /* that the round will go through; 0: as many as the last */
    double seconds; /* that it has; 0: not known */
};
struct kedge_rounds_choice {
    uint32_t place, size;
    bool wants_noise; /* a pair of gradients would help */
    char why[KEDGE_ROUNDS_WHY_MAX];
};

/* Errors of kedge_batch_init. */
KEDGE_NODISCARD int kedge_rounds_init(struct kedge_rounds *r, const struct kedge_batch_options *options,
                                      const uint32_t *sizes, uint32_t count, uint32_t start,
                                      struct kedge_diag *reterr);
/* For the next round. A size that would not be done in time is never taken: another that is, the nearest to
 * it, or the quickest. A block goes on until it is whole. */
struct kedge_rounds_choice kedge_rounds_choose(struct kedge_rounds *r, const struct kedge_rounds_ask *ask,
                                               struct kedge_rng *rng);
struct kedge_rounds_saw {
    uint32_t place;
    double samples, seconds; /* gone through, taken */
    struct kedge_joules joules;
    bool diverged;           /* the size breaks convergence: it is not taken again */
    bool skip;               /* an odd round (a power cap was tried): no observation */
    double eta, power_max_w; /* of Zeus's cost; where joules or the largest power are not known it is time */
};
void kedge_rounds_saw(struct kedge_rounds *r, const struct kedge_rounds_saw *saw);

#endif
