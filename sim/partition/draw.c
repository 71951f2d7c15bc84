/* Random numbers of other than equal distribution. They are made here and not by a library, whose next
 * version may make others of the same seed: what a seed deals is part of the results that are compared. */
#include "sim/partition/draw.h"

#include <math.h>

void kedge_draw_init(struct kedge_draw *draw, uint64_t seed, enum kedge_rng_purpose purpose, uint64_t a,
                     uint64_t b)
{
    *draw = (struct kedge_draw){0};
    kedge_rng_init(&draw->rng, seed, purpose, a, b);
}

double kedge_draw_normal(struct kedge_draw *draw)
{
    if (draw->has_spare) {
        draw->has_spare = false;
        return draw->spare;
    }
    double x, y, r;
    do { /* ends with probability π/4 in each turn */
        x = 2.0 * kedge_rng_unit(&draw->rng) - 1.0;
        y = 2.0 * kedge_rng_unit(&draw->rng) - 1.0;
        r = x * x + y * y;
    } while (r >= 1.0 || r == 0.0);
    double f = sqrt(-2.0 * log(r) / r);
    draw->spare = f * x;
    draw->has_spare = true;
    return f * y;
}

double kedge_draw_lognormal(struct kedge_draw *draw, double mean, double sigma)
{
    return exp(mean + sigma * kedge_draw_normal(draw));
}

/* Shapes below 1 are drawn as shape + 1 and brought back by the power of a uniform number (Marsaglia and
 * Tsang 2000, section 8), since the method itself needs 1 or more. The uniform numbers are taken from 1
 * downwards: 0 must not come, for its logarithm is not finite. */
double kedge_draw_gamma(struct kedge_draw *draw, double shape)
{
    double boost = 1.0;
    if (shape < 1.0) {
        boost = pow(1.0 - kedge_rng_unit(&draw->rng), 1.0 / shape);
        shape += 1.0;
    }
    double d = shape - 1.0 / 3.0, c = 1.0 / sqrt(9.0 * d);
    for (;;) { /* accepts more than 95 in 100 */
        double x = kedge_draw_normal(draw), v = 1.0 + c * x;
        if (v <= 0.0) {
            continue;
        }
        v = v * v * v;
        double u = 1.0 - kedge_rng_unit(&draw->rng);
        if (log(u) < 0.5 * x * x + d - d * v + d * log(v)) {
            return boost * d * v;
        }
    }
}

/* Gamma numbers divided by their sum. With a small alpha all of them may be too small for a double: then one
 * class has everything, which is what such a distribution tends to. The winner is drawn in any case, so that
 * the place in the stream does not depend on what the numbers were. */
void kedge_draw_dirichlet(struct kedge_draw *draw, double alpha, double *shares, uint32_t count)
{
    double sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        shares[i] = kedge_draw_gamma(draw, alpha);
        sum += shares[i];
    }
    uint32_t winner = (uint32_t)kedge_rng_below(&draw->rng, count);
    for (uint32_t i = 0; i < count; i++) {
        shares[i] = sum > 0 ? shares[i] / sum : i == winner ? 1.0 : 0.0;
    }
}

enum { MT_N = 624, MT_M = 397 };

void kedge_mt19937_init(struct kedge_mt19937 *mt, uint32_t seed)
{
    *mt = (struct kedge_mt19937){.at = MT_N};
    mt->state[0] = seed;
    for (uint32_t i = 1; i < MT_N; i++) {
        uint32_t last = mt->state[i - 1];
        mt->state[i] = 1812433253u * (last ^ last >> 30) + i;
    }
}

static void mt_refill(struct kedge_mt19937 *mt)
{
    for (uint32_t i = 0; i < MT_N; i++) {
        uint32_t y = (mt->state[i] & 0x80000000u) | (mt->state[(i + 1) % MT_N] & 0x7fffffffu);
        mt->state[i] = mt->state[(i + MT_M) % MT_N] ^ y >> 1 ^ ((y & 1) ? 0x9908b0dfu : 0);
    }
    mt->at = 0;
}

uint32_t kedge_mt19937_u32(struct kedge_mt19937 *mt)
{
    if (mt->at == MT_N) {
        mt_refill(mt);
    }
    uint32_t y = mt->state[mt->at++];
    y ^= y >> 11;
    y ^= y << 7 & 0x9d2c5680u;
    y ^= y << 15 & 0xefc60000u;
    return y ^ y >> 18;
}

/* Uniform in [0, 1), 53 bits of two outputs. */
static double mt19937_unit(struct kedge_mt19937 *mt)
{
    uint32_t high = kedge_mt19937_u32(mt) >> 5, low = kedge_mt19937_u32(mt) >> 6;
    return ((double)high * 67108864.0 + (double)low) / 9007199254740992.0;
}

double kedge_mt19937_lognormal(struct kedge_mt19937 *mt, double mean, double sigma)
{
    if (mt->has_spare) {
        mt->has_spare = false;
        return exp(mean + sigma * mt->spare);
    }
    double x, y, r;
    do {
        x = 2.0 * mt19937_unit(mt) - 1.0;
        y = 2.0 * mt19937_unit(mt) - 1.0;
        r = x * x + y * y;
    } while (r >= 1.0 || r == 0.0);
    double f = sqrt(-2.0 * log(r) / r);
    mt->spare = f * x;
    mt->has_spare = true;
    return exp(mean + sigma * f * y);
}
