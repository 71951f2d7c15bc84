/* Arithmetic modulo p = 2^255 - 19 on five limbs of 51 bits, for public values only: it takes the same time
 * for all inputs where that costs nothing, and nobody may rely on it. Internal to this room.
 *
 * Bounds: `tight` limbs are below 2^51 + 2^13 (results of mul, square, carry), a sum of two of them is below
 * 2^53, a difference below 2^54. mul and square take limbs below 2^54: 77 products of 108 bits fit into 115,
 * and what is carried into 64. */
#ifndef KEDGE_CRYPTO_FIELD25519_H
#define KEDGE_CRYPTO_FIELD25519_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "common/base/bytes.h"

__extension__ typedef unsigned __int128 kedgei_u128;

struct kedgei_fe {
    uint64_t v[5];
};

#define KEDGEI_FE_MASK ((UINT64_C(1) << 51) - 1)

static inline struct kedgei_fe kedgei_fe_small(uint64_t x)
{
    return (struct kedgei_fe){{x, 0, 0, 0, 0}};
}

/* Tight or sums of two tight ones. */
static inline struct kedgei_fe kedgei_fe_add(const struct kedgei_fe *a, const struct kedgei_fe *b)
{
    struct kedgei_fe r;
    for (int i = 0; i < 5; i++) {
        r.v[i] = a->v[i] + b->v[i];
    }
    return r;
}

/* a below 2^53.5; b below 2^53 - 76, so that 4p - b is positive limb by limb. */
static inline struct kedgei_fe kedgei_fe_sub(const struct kedgei_fe *a, const struct kedgei_fe *b)
{
    const uint64_t four_p0 = 4 * (KEDGEI_FE_MASK - 18), four_p = 4 * KEDGEI_FE_MASK;
    struct kedgei_fe r = {{a->v[0] + four_p0 - b->v[0]}};
    for (int i = 1; i < 5; i++) {
        r.v[i] = a->v[i] + four_p - b->v[i];
    }
    return r;
}

/* Sums of products to tight limbs. */
static inline struct kedgei_fe kedgei_fe_fold(kedgei_u128 r0, kedgei_u128 r1, kedgei_u128 r2, kedgei_u128 r3,
                                              kedgei_u128 r4)
{
    struct kedgei_fe r;
    r1 += (uint64_t)(r0 >> 51);
    r2 += (uint64_t)(r1 >> 51);
    r3 += (uint64_t)(r2 >> 51);
    r4 += (uint64_t)(r3 >> 51);
    uint64_t low = ((uint64_t)r0 & KEDGEI_FE_MASK) + 19 * (uint64_t)(r4 >> 51);
    r.v[0] = low & KEDGEI_FE_MASK;
    r.v[1] = ((uint64_t)r1 & KEDGEI_FE_MASK) + (low >> 51);
    r.v[2] = (uint64_t)r2 & KEDGEI_FE_MASK;
    r.v[3] = (uint64_t)r3 & KEDGEI_FE_MASK;
    r.v[4] = (uint64_t)r4 & KEDGEI_FE_MASK;
    return r;
}

static inline struct kedgei_fe kedgei_fe_mul(const struct kedgei_fe *f, const struct kedgei_fe *g)
{
    const uint64_t *a = f->v, *b = g->v;
    const uint64_t b1 = 19 * b[1], b2 = 19 * b[2], b3 = 19 * b[3], b4 = 19 * b[4]; /* 2^255 = 19 */
#define P(x, y) ((kedgei_u128)(x) * (y))
    return kedgei_fe_fold(P(a[0], b[0]) + P(a[1], b4) + P(a[2], b3) + P(a[3], b2) + P(a[4], b1),
                          P(a[0], b[1]) + P(a[1], b[0]) + P(a[2], b4) + P(a[3], b3) + P(a[4], b2),
                          P(a[0], b[2]) + P(a[1], b[1]) + P(a[2], b[0]) + P(a[3], b4) + P(a[4], b3),
                          P(a[0], b[3]) + P(a[1], b[2]) + P(a[2], b[1]) + P(a[3], b[0]) + P(a[4], b4),
                          P(a[0], b[4]) + P(a[1], b[3]) + P(a[2], b[2]) + P(a[3], b[1]) + P(a[4], b[0]));
}

static inline struct kedgei_fe kedgei_fe_square(const struct kedgei_fe *f)
{
    const uint64_t *a = f->v;
    const uint64_t a0 = 2 * a[0], a1 = 2 * a[1], a3 = 19 * a[3], a4 = 19 * a[4];
    return kedgei_fe_fold(P(a[0], a[0]) + P(a1, a4) + P(2 * a[2], a3),
                          P(a0, a[1]) + P(2 * a[2], a4) + P(a[3], a3),
                          P(a0, a[2]) + P(a[1], a[1]) + P(2 * a[3], a4),
                          P(a0, a[3]) + P(a1, a[2]) + P(a[4], a4), P(a0, a[4]) + P(a1, a[3]) + P(a[2], a[2]));
#undef P
}

/* z^(2^n). */
static inline struct kedgei_fe kedgei_fe_squares(const struct kedgei_fe *z, unsigned n)
{
    struct kedgei_fe r = *z;
    while (n-- > 0) {
        r = kedgei_fe_square(&r);
    }
    return r;
}

/* z^(2^250 - 1), and z^11 on the way. */
static inline struct kedgei_fe kedgei_fe_ones_250(const struct kedgei_fe *z, struct kedgei_fe *ret_11)
{
    struct kedgei_fe two = kedgei_fe_square(z), eight = kedgei_fe_squares(&two, 2),
                     nine = kedgei_fe_mul(&eight, z);
    *ret_11 = kedgei_fe_mul(&nine, &two);
    struct kedgei_fe t = kedgei_fe_square(ret_11), n5 = kedgei_fe_mul(&t, &nine); /* n5: 2^5 - 1 */
    t = kedgei_fe_squares(&n5, 5);
    struct kedgei_fe n10 = kedgei_fe_mul(&t, &n5);
    t = kedgei_fe_squares(&n10, 10);
    struct kedgei_fe n20 = kedgei_fe_mul(&t, &n10);
    t = kedgei_fe_squares(&n20, 20);
    struct kedgei_fe n40 = kedgei_fe_mul(&t, &n20);
    t = kedgei_fe_squares(&n40, 10);
    struct kedgei_fe n50 = kedgei_fe_mul(&t, &n10);
    t = kedgei_fe_squares(&n50, 50);
    struct kedgei_fe n100 = kedgei_fe_mul(&t, &n50);
    t = kedgei_fe_squares(&n100, 100);
    struct kedgei_fe n200 = kedgei_fe_mul(&t, &n100);
    t = kedgei_fe_squares(&n200, 50);
    return kedgei_fe_mul(&t, &n50);
}

/* z^(p - 2) = 1/z; 0 for 0. p - 2 = 2^5 (2^250 - 1) + 11. */
static inline struct kedgei_fe kedgei_fe_invert(const struct kedgei_fe *z)
{
    struct kedgei_fe eleven, t = kedgei_fe_ones_250(z, &eleven);
    t = kedgei_fe_squares(&t, 5);
    return kedgei_fe_mul(&t, &eleven);
}

/* z^((p - 5) / 8), where (p - 5) / 8 = 2^2 (2^250 - 1) + 1: for square roots, RFC 8032 section 5.1.3. */
static inline struct kedgei_fe kedgei_fe_root_power(const struct kedgei_fe *z)
{
    struct kedgei_fe eleven, t = kedgei_fe_ones_250(z, &eleven);
    t = kedgei_fe_squares(&t, 2);
    return kedgei_fe_mul(&t, z);
}

/* Little-endian, the highest bit ignored; the value may be p or a little more. */
static inline struct kedgei_fe kedgei_fe_decode(const uint8_t b[32])
{
    uint64_t w[4];
    for (int i = 0; i < 4; i++) {
        w[i] = 0;
        for (int k = 7; k >= 0; k--) {
            w[i] = w[i] << 8 | b[8 * i + k];
        }
    }
    return (struct kedgei_fe){{w[0] & KEDGEI_FE_MASK, (w[0] >> 51 | w[1] << 13) & KEDGEI_FE_MASK,
                               (w[1] >> 38 | w[2] << 26) & KEDGEI_FE_MASK,
                               (w[2] >> 25 | w[3] << 39) & KEDGEI_FE_MASK, w[3] >> 12 & KEDGEI_FE_MASK}};
}

/* The one value below p, little-endian. Takes limbs below 2^54. */
static inline void kedgei_fe_encode(const struct kedgei_fe *a, uint8_t ret[32])
{
    struct kedgei_fe r = *a;
    for (int pass = 0; pass < 2; pass++) { /* below 2^255 + 19, limbs below 2^51 */
        for (int i = 0; i < 4; i++) {
            r.v[i + 1] += r.v[i] >> 51;
            r.v[i] &= KEDGEI_FE_MASK;
        }
        r.v[0] += 19 * (r.v[4] >> 51);
        r.v[4] &= KEDGEI_FE_MASK;
    }
    uint64_t over = 19; /* whether value + 19 reaches 2^255, that is, value ≥ p */
    for (int i = 0; i < 5; i++) {
        over = (r.v[i] + over) >> 51;
    }
    r.v[0] += 19 * over;
    for (int i = 0; i < 4; i++) {
        r.v[i + 1] += r.v[i] >> 51;
        r.v[i] &= KEDGEI_FE_MASK;
    }
    r.v[4] &= KEDGEI_FE_MASK;
    const uint64_t w[4] = {r.v[0] | r.v[1] << 51, r.v[1] >> 13 | r.v[2] << 38, r.v[2] >> 26 | r.v[3] << 25,
                           r.v[3] >> 39 | r.v[4] << 12};
    for (int i = 0; i < 32; i++) {
        ret[i] = (uint8_t)(w[i / 8] >> (8 * (i % 8)));
    }
}

static inline bool kedgei_fe_eq(const struct kedgei_fe *a, const struct kedgei_fe *b)
{
    uint8_t x[32], y[32];
    kedgei_fe_encode(a, x);
    kedgei_fe_encode(b, y);
    return memcmp(x, y, sizeof x) == 0;
}

#endif
