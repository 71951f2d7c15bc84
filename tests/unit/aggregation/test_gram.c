#include "aggregation/gram.h"

#include <math.h>

#include "tests/fixtures/whole_updates.h"
#include "tests/unit/aggregation/support.h"

static const uint64_t golden = UINT64_C(10377301181446042777);

/* q * 2047 / max to the nearest, ties to even, in whole numbers only. */
static int64_t scale_exactly(int64_t q, int64_t max)
{
    int64_t top = 2 * q * KEDGE_GRAM_ONE + max; /* floor((2 q 2047 + max) / (2 max)) rounds half up */
    int64_t down = top / (2 * max);
    down -= top % (2 * max) < 0;
    bool tie = top % (2 * max) == 0;
    return tie && down % 2 != 0 ? down - 1 : down;
}

START_TEST(largest_magnitude)
{
    static const struct {
        int32_t q[11];
        uint32_t seed;
        uint32_t expect;
    } cases[] = {
        {{0}, 0, 0},
        {{0}, 5, 5},
        {{1, -2, 3}, 0, 3},
        {{0, 0, 0, 0, 0, 0, 0, -9, 3, 4, 5}, 0, 9},
        {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, -9}, 3, 9},
        {{INT32_MIN, 3}, 0, 1u << 31},
        {{INT32_MAX, 3}, 0, INT32_MAX},
        {{4, -4}, 9, 9},
    };
    FOR_EACH_SIMD(simd)
    {
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            ck_assert_uint_eq(kedge_max_abs(cases[i].q, 11, cases[i].seed), cases[i].expect);
        }
        ck_assert_uint_eq(kedge_max_abs(NULL, 0, 4), 4);
    }
    enum { LONG = (1 << 14) + 77 }; /* found wherever it stands */
    int32_t *q = new_array(LONG, sizeof *q);
    FOR_EACH_SIMD(simd)
    {
        for (size_t n = LONG - 80; n <= LONG; n += 16) {
            for (size_t i = 0; i < n; i += i < n - 100 ? 401 : 1) {
                q[i] = -7;
                ck_assert_uint_eq(kedge_max_abs(q, n, 0), 7);
                q[i] = 0;
            }
        }
    }
    kedge_mem_free(q);
}
END_TEST

/* Values beside ties, ties themselves, extremes, random ones: equal to the arithmetic in whole
 * numbers. */
START_TEST(scaling_is_exact)
{
    static const uint32_t maxima[] = {1,     2,       3,        4094,      2047,    8188,
                                      65536, 1000003, 1u << 30, INT32_MAX, 1u << 31};
    enum { N = 4099 };
    static int32_t q[N];
    static int16_t x[N];
    struct kedge_rng rng = new_stream(2);
    for (size_t m = 0; m < sizeof maxima / sizeof *maxima; m++) {
        const int64_t max = maxima[m];
        for (int64_t i = 0; i < N; i++) {
            /* the point where the scaled value crosses a half, and its neighbours */
            int64_t half = (2 * (int64_t)kedge_rng_below(&rng, 2047) + 1) * max / (2 * KEDGE_GRAM_ONE);
            int64_t v = i % 4 == 3 ? (int64_t)kedge_rng_below(&rng, (uint64_t)max + 1) : half + i % 4 - 1;
            v = v < 0 ? 0 : v > max ? max : v;
            v = i % 2 && v <= INT32_MAX ? v : -v;
            q[i] = (int32_t)v;
        }
        FOR_EACH_SIMD(simd)
        {
            memset(x, 0x55, sizeof x);
            kedge_scale12(q, N, maxima[m], x);
            for (int i = 0; i < N; i++) {
                ck_assert_int_eq(x[i], scale_exactly(q[i], max));
            }
        }
    }
}
END_TEST

START_TEST(products_do_not_overflow)
{
    enum { N = 70001 };
    int16_t *a = new_array(N, sizeof *a);
    for (int i = 0; i < N; i++) {
        a[i] = i % 2 ? 2047 : -2047;
    }
    static const size_t sizes[] = {0, 1, 15, 16, 17, 511, 512, 513, 4095, 4096, 4097, 65536, N};
    FOR_EACH_SIMD(simd)
    {
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            ck_assert_int_eq(kedge_dot12(a, a, sizes[s]), (int64_t)sizes[s] * 2047 * 2047);
        }
        ck_assert_int_eq(kedge_dot12(a, a + 1, N - 1), -(int64_t)(N - 1) * 2047 * 2047);
    }
    kedge_mem_free(a);
}
END_TEST

enum { COUNT = 13, DIMENSION = 3001 };

static int32_t vectors[COUNT][DIMENSION];
static const int32_t *pointers[COUNT];

static void fill_vectors(void)
{
    struct kedge_rng rng = new_stream(3);
    for (int i = 0; i < COUNT; i++) {
        fill_ints(&rng, vectors[i], DIMENSION, 1 << (i + 4));
        pointers[i] = vectors[i];
    }
    memset(vectors[4], 0, sizeof vectors[4]);
    memset(vectors[12], 0, sizeof vectors[12]);
}

START_TEST(matches_direct_sums)
{
    static int64_t gram[COUNT * COUNT];
    uint32_t maxima[COUNT];
    fill_vectors();
    FOR_EACH_SIMD(simd)
    {
        ck_assert_int_eq(gram_of(pointers, COUNT, DIMENSION, maxima, gram), KEDGE_OK);
        for (int i = 0; i < COUNT; i++) {
            ck_assert_int_eq(maxima[i] == 0, i == 4 || i == 12);
            for (int j = 0; j < COUNT; j++) {
                int64_t sum = 0;
                for (int k = 0; k < DIMENSION && maxima[i] && maxima[j]; k++) {
                    sum += scale_exactly(vectors[i][k], maxima[i]) * scale_exactly(vectors[j][k], maxima[j]);
                }
                ck_assert_int_eq(gram[i * COUNT + j], sum);
            }
        }
        ck_assert_uint_eq(fnv(FNV_START, gram, sizeof gram), golden);
    }
}
END_TEST

START_TEST(tiles_add_up)
{
    static int64_t whole[COUNT * COUNT];
    static int64_t parts[COUNT * COUNT];
    uint32_t maxima[COUNT];
    fill_vectors();
    int16_t *scratch = new_array(kedge_gram_scratch(COUNT), sizeof *scratch);
    ck_assert_int_eq(gram_of(pointers, COUNT, DIMENSION, maxima, whole), KEDGE_OK);
    static const size_t steps[] = {1, 7, 16, 1000, 1024, 1025, 3000, 3001};
    for (size_t s = 0; s < sizeof steps / sizeof *steps; s++) {
        memset(parts, 0, sizeof parts);
        for (size_t at = 0; at < DIMENSION; at += steps[s]) {
            size_t n = DIMENSION - at < steps[s] ? DIMENSION - at : steps[s];
            ck_assert_int_eq(kedge_gram_tile(pointers, maxima, COUNT, at, n, scratch, parts), KEDGE_OK);
        }
        ck_assert_mem_eq(parts, whole, sizeof parts);
    }
    kedge_mem_free(scratch);
}
END_TEST

/* Every shape of the blocks' edges, and sums as large as a tile can make them: all values are extremes. */
START_TEST(every_count)
{
    static const size_t sizes[] = {1, 31, 32, 33, 1023, 1024, 1025, 2049, DIMENSION};
    static int64_t gram[COUNT * COUNT];
    uint32_t maxima[COUNT];
    for (int i = 0; i < COUNT; i++) {
        pointers[i] = vectors[i];
        for (int k = 0; k < DIMENSION; k++) {
            vectors[i][k] = (i >> k % 3 & 1) != 0 ? -(1 << i) : 1 << i;
        }
    }
    FOR_EACH_SIMD(simd)
    {
        for (size_t c = 1; c <= COUNT; c++) {
            const size_t n = sizes[c % (sizeof sizes / sizeof *sizes)];
            ck_assert_int_eq(gram_of(pointers, c, n, maxima, gram), KEDGE_OK);
            for (size_t i = 0; i < c * c; i++) {
                int64_t sum = 0;
                for (size_t k = 0; k < n; k++) {
                    const bool alike = (((i / c) ^ (i % c)) >> k % 3 & 1) == 0;
                    sum += alike ? 2047 * 2047 : -2047 * 2047;
                }
                ck_assert_int_eq(gram[i], sum);
            }
        }
    }
}
END_TEST

START_TEST(cosines)
{
    static const int64_t gram[] = {4, 2, 0, -6, /**/ 2, 4, 0, -3, /**/ 0, 0, 0, 0, /**/ -6, -3, 0, 9};
    double c[16];
    kedge_gram_cosine(gram, 4, c);
    static const double expect[] = {1, .5, 0, -1, /**/ .5, 1, 0, -.5, /**/ 0, 0, 0, 0, /**/ -1, -.5, 0, 1};
    for (int i = 0; i < 16; i++) {
        ck_assert(c[i] == expect[i]);
    }
}
END_TEST

START_TEST(failures)
{
    uint32_t maxima[COUNT];
    int64_t gram[COUNT * COUNT];
    fill_vectors();
    ck_assert_int_eq(gram_of(pointers, KEDGE_GRAM_VECTORS_MAX + 1, 1, maxima, gram), KEDGE_E_ARG);
    int err = kedge_gram_tile(pointers, maxima, KEDGE_GRAM_VECTORS_MAX + 1, 0, 1, NULL, gram);
    ck_assert_int_eq(err, KEDGE_E_ARG);
    kedge_mem_fail_at(1);
    ck_assert_int_eq(gram_of(pointers, COUNT, 1, maxima, gram), KEDGE_E_NOMEM);
    kedge_mem_fail_at(0);
    ck_assert_int_eq(gram_of(pointers, 0, 0, maxima, gram), KEDGE_OK);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {largest_magnitude,
                                  scaling_is_exact,
                                  products_do_not_overflow,
                                  matches_direct_sums,
                                  tiles_add_up,
                                  every_count,
                                  cosines,
                                  failures,
                                  NULL};
    return run_tests("aggregation/gram", tests);
}
