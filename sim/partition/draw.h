/* Random draws that the recipes of partitions need, each from a stream that the caller keeps. binary64 and
 * the C library's log, exp and sqrt: recipes cut what comes out to whole numbers of samples. Pure. */
#ifndef KEDGE_SIM_PARTITION_DRAW_H
#define KEDGE_SIM_PARTITION_DRAW_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/rng.h"

/* A stream of uniform numbers and the second normal of the last pair. */
struct kedge_draw {
    struct kedge_rng rng;
    double spare;
    bool has_spare;
};

void kedge_draw_init(struct kedge_draw *draw, uint64_t seed, enum kedge_rng_purpose purpose, uint64_t a,
                     uint64_t b);
/* Mean 0, variance 1, by Marsaglia's polar method. */
double kedge_draw_normal(struct kedge_draw *draw);
/* exp(mean + sigma · normal). */
double kedge_draw_lognormal(struct kedge_draw *draw, double mean, double sigma);
/* Gamma with the given shape > 0 and scale 1 (Marsaglia and Tsang 2000). */
double kedge_draw_gamma(struct kedge_draw *draw, double shape);
/* Shares that sum to 1, symmetric Dirichlet; alpha > 0. When every gamma underflows, one entry has it all. */
void kedge_draw_dirichlet(struct kedge_draw *draw, double alpha, double *shares, uint32_t count);

/* The Mersenne Twister MT19937 (Matsumoto and Nishimura 1998) with integer seeding, and the normals that
 * NumPy's legacy generator makes of it: published partitions were drawn so. */
struct kedge_mt19937 {
    uint32_t state[624];
    uint32_t at;
    double spare;
    bool has_spare;
};
void kedge_mt19937_init(struct kedge_mt19937 *mt, uint32_t seed);
uint32_t kedge_mt19937_u32(struct kedge_mt19937 *mt);
double kedge_mt19937_lognormal(struct kedge_mt19937 *mt, double mean, double sigma);

#endif
