/* Reproducible randomness: one stream per purpose, keyed by (seed, purpose, a, b), so that selections and
 * simulations replay on any machine. xoshiro256** (Blackman & Vigna 2018) seeded by SplitMix64. Not for keys.
 * Pure. */
#ifndef KEDGE_COMMON_BASE_RNG_H
#define KEDGE_COMMON_BASE_RNG_H

#include <stddef.h>
#include <stdint.h>

struct kedge_rng {
    uint64_t s[4];
};

/* Purposes of streams: values are part of the record, never renumber. */
enum kedge_rng_purpose {
    KEDGE_RNG_SELECT = 1, /* a = round */
    KEDGE_RNG_KMEANS = 2, /* a = round, b = restart */
    KEDGE_RNG_INIT = 3,   /* initial weights */
    KEDGE_RNG_PRETRAIN = 4,
    KEDGE_RNG_TRAIN = 5, /* a = round, b = site */
    KEDGE_RNG_PARTITION = 6,
    KEDGE_RNG_JITTER = 7,
    KEDGE_RNG_SIM = 8,
    KEDGE_RNG_TEST = 9,
    KEDGE_RNG_GAP = 12,   /* a = round, b = reference set */
    KEDGE_RNG_PART = 14,  /* the samples of a planned part of a site's data */
    KEDGE_RNG_LEARN = 13, /* learning simulator: a = its stream · 2^32 + round, b = site */
};

void kedge_rng_init(struct kedge_rng *rng, uint64_t seed, enum kedge_rng_purpose purpose, uint64_t a,
                    uint64_t b);
uint64_t kedge_rng_u64(struct kedge_rng *rng);
/* Uniform in [0, n), n > 0, without bias (rejection). */
uint64_t kedge_rng_below(struct kedge_rng *rng, uint64_t n);
/* Uniform in [0, 1) with 53 bits. */
double kedge_rng_unit(struct kedge_rng *rng);
/* Fisher–Yates from the front: after it the first k of items[0..n) are a uniform sample in random order. */
void kedge_rng_sample(struct kedge_rng *rng, uint32_t *items, size_t n, size_t k);

#endif
