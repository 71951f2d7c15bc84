/* Streams are part of the record: these values never change. They follow from the definitions of SplitMix64
 * and xoshiro256** and the keying in rng.c; an independent model of both made the table. */
#include "common/base/rng.h"

#include <math.h>
#include <string.h>

#include "tests/unit/base/check.h"

START_TEST(xoshiro_from_known_state)
{
    /* State 1,2,3,4: first outputs as published with many implementations of xoshiro256** 1.0. */
    static const uint64_t expected[] = {
        11520u, 0u, 1509978240u, 1215971899390074240u, 1216172134540287360u, 607988272756665600u};
    struct kedge_rng rng = {{1, 2, 3, 4}};
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        ck_assert(kedge_rng_u64(&rng) == expected[i]);
    }
}
END_TEST

struct golden {
    uint64_t seed, a, b;
    enum kedge_rng_purpose purpose;
    uint64_t first[3];
};

static const struct golden golden[] = {
    {0x0000000000000000u,
     0x0000000000000000u,
     0x0000000000000000u,
     KEDGE_RNG_TEST,
     {0x84985d983b5373e1u, 0xa227f4915255c145u, 0x8851431163a67e43u}},
    {0x0000000000000001u,
     0x0000000000000000u,
     0x0000000000000000u,
     KEDGE_RNG_TEST,
     {0x59ff78c867369804u, 0x57279eea84e67985u, 0x72f791b5d3a22c81u}},
    {0x000000000000002au,
     0x0000000000000003u,
     0x0000000000000000u,
     KEDGE_RNG_SELECT,
     {0x5cbd2a8525e094d2u, 0x432f210674680060u, 0x00d5c5fd2cafc4b0u}},
    {0x000000000000002au,
     0x0000000000000003u,
     0x0000000000000011u,
     KEDGE_RNG_TRAIN,
     {0x944b6a105be82833u, 0x33665eaaded11e35u, 0x95e14f6d96d17f47u}},
    {0xffffffffffffffffu,
     0xffffffffffffffffu,
     0xffffffffffffffffu,
     KEDGE_RNG_PARTITION,
     {0xa4b8aee9d7b005e8u, 0x39a91a181f056b0bu, 0xc07dd40146af8da4u}},
    {0x123456789abcdef0u,
     0x0000000000000001u,
     0x0000000000000002u,
     KEDGE_RNG_SIM,
     {0x39f43e658e858f1bu, 0x2806832387b7cfdfu, 0xb4dc8b378bf001c7u}},
};

START_TEST(streams_are_fixed)
{
    for (size_t i = 0; i < sizeof golden / sizeof golden[0]; i++) {
        const struct golden *g = &golden[i];
        struct kedge_rng rng;
        kedge_rng_init(&rng, g->seed, g->purpose, g->a, g->b);
        for (size_t k = 0; k < 3; k++) {
            uint64_t v = kedge_rng_u64(&rng);
            ck_assert_msg(v == g->first[k], "row %zu value %zu: 0x%016llx", i, k, (unsigned long long)v);
        }
    }
}
END_TEST

START_TEST(streams_differ_by_every_key)
{
    struct kedge_rng base, other;
    kedge_rng_init(&base, 7, KEDGE_RNG_TEST, 8, 9);
    uint64_t v = kedge_rng_u64(&base);
    kedge_rng_init(&other, 6, KEDGE_RNG_TEST, 8, 9);
    ck_assert(kedge_rng_u64(&other) != v);
    kedge_rng_init(&other, 7, KEDGE_RNG_SIM, 8, 9);
    ck_assert(kedge_rng_u64(&other) != v);
    kedge_rng_init(&other, 7, KEDGE_RNG_TEST, 9, 9);
    ck_assert(kedge_rng_u64(&other) != v);
    kedge_rng_init(&other, 7, KEDGE_RNG_TEST, 8, 8);
    ck_assert(kedge_rng_u64(&other) != v);
    kedge_rng_init(&other, 7, KEDGE_RNG_TEST, 9, 8); /* a and b are not exchangeable */
    ck_assert(kedge_rng_u64(&other) != v);
}
END_TEST

START_TEST(below_is_in_range_and_even)
{
    enum { DRAWS = 60000, SIDES = 6 };
    struct kedge_rng rng;
    kedge_rng_init(&rng, 1, KEDGE_RNG_TEST, 0, 0);
    unsigned seen[SIDES] = {0};
    for (int i = 0; i < DRAWS; i++) {
        uint64_t v = kedge_rng_below(&rng, SIDES);
        ck_assert_uint_lt(v, SIDES);
        seen[v]++;
    }
    double chi2 = 0;
    for (int i = 0; i < SIDES; i++) {
        double d = (double)seen[i] - (double)DRAWS / SIDES;
        chi2 += d * d / ((double)DRAWS / SIDES);
    }
    ck_assert_double_lt(chi2, 20.5); /* 5 degrees of freedom: P = 0.001 */

    /* 3·2^62: with v % n and no rejection the lowest third would come twice as often. */
    unsigned low = 0;
    for (int i = 0; i < DRAWS; i++) {
        uint64_t n = (uint64_t)3 << 62;
        low += kedge_rng_below(&rng, n) < n / 3 ? 1 : 0;
    }
    ck_assert_double_lt(fabs((double)low / DRAWS - 1.0 / 3), 0.01);
    for (int i = 0; i < 100; i++) {
        ck_assert_uint_eq(kedge_rng_below(&rng, 1), 0);
        ck_assert(kedge_rng_below(&rng, UINT64_MAX) < UINT64_MAX);
    }
}
END_TEST

START_TEST(unit_is_half_open_with_53_bits)
{
    struct kedge_rng rng;
    kedge_rng_init(&rng, 2, KEDGE_RNG_TEST, 0, 0);
    double sum = 0;
    for (int i = 0; i < 100000; i++) {
        double v = kedge_rng_unit(&rng);
        ck_assert(v >= 0 && v < 1);
        ck_assert(v * 0x1p53 == floor(v * 0x1p53));
        sum += v;
    }
    ck_assert_double_lt(fabs(sum / 100000 - 0.5), 0.004);
}
END_TEST

START_TEST(sample_is_a_permutation_and_even)
{
    enum { N = 5, DRAWS = 24000 };
    unsigned pairs[N][N] = {{0}};
    struct kedge_rng rng;
    kedge_rng_init(&rng, 3, KEDGE_RNG_TEST, 0, 0);
    for (int i = 0; i < DRAWS; i++) {
        uint32_t items[N] = {0, 1, 2, 3, 4};
        kedge_rng_sample(&rng, items, N, 2);
        unsigned mask = 0;
        for (size_t k = 0; k < N; k++) {
            mask |= 1u << items[k];
        }
        ck_assert_uint_eq(mask, 31);
        pairs[items[0]][items[1]]++;
    }
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < N; j++) { /* each ordered pair 1,200 times, ± 5 standard deviations */
            ck_assert(i == j ? pairs[i][j] == 0 : pairs[i][j] > 1030 && pairs[i][j] < 1370);
        }
    }
    uint32_t items[3] = {7, 8, 9};
    kedge_rng_sample(&rng, items, 3, 0);
    ck_assert(items[0] == 7 && items[1] == 8 && items[2] == 9);
    kedge_rng_sample(&rng, items, 3, 100); /* k beyond n shuffles all */
    ck_assert_uint_eq(items[0] + items[1] + items[2], 24);
    kedge_rng_sample(&rng, NULL, 0, 5);
}
END_TEST

START_TEST(sample_is_fixed)
{
    static const uint32_t expected[8] = {2, 7, 0, 1, 3, 4, 5, 6};
    uint32_t items[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    struct kedge_rng rng;
    kedge_rng_init(&rng, 42, KEDGE_RNG_SELECT, 3, 0);
    kedge_rng_sample(&rng, items, 8, 8);
    ck_assert_mem_eq(items, expected, sizeof items);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {xoshiro_from_known_state,
                                  streams_are_fixed,
                                  streams_differ_by_every_key,
                                  below_is_in_range_and_even,
                                  unit_is_half_open_with_53_bits,
                                  sample_is_a_permutation_and_even,
                                  sample_is_fixed};
    return run_suite("base/rng", tests, sizeof tests / sizeof tests[0]);
}
