#include "aggregation/mean.h"

#include <math.h>

#include "tests/unit/aggregation/support.h"

enum { SCALE_BITS = 20, SOURCES_MAX = 19, N_MAX = 9001 };

static const uint64_t golden = UINT64_C(15211816793402358114);

static int32_t values[SOURCES_MAX][N_MAX];
static float base[N_MAX];
static float out[N_MAX];
static float expect[N_MAX];

static void fill_sources(struct kedge_mean_source *sources, uint64_t weight_most, uint64_t seed)
{
    struct kedge_rng rng = new_stream(seed);
    fill_floats(&rng, base, N_MAX, 3.0);
    for (int k = 0; k < SOURCES_MAX; k++) {
        fill_ints(&rng, values[k], N_MAX, 1 << 21);
        sources[k].values = values[k];
        sources[k].weight = 1 + kedge_rng_below(&rng, weight_most);
    }
}

static uint64_t add_weights(const struct kedge_mean_source *sources, size_t count)
{
    uint64_t sum;
    ck_assert_int_eq(kedge_mean_weight_sum(sources, count, 1 << 21, &sum), KEDGE_OK);
    return sum;
}

START_TEST(by_hand)
{
    static const int32_t a[3] = {1 << 20, -(1 << 20), 3};
    static const int32_t b[3] = {-(1 << 20), -(1 << 20), 0};
    static const float start[3] = {1.0f, 2.0f, 0.0f};
    const struct kedge_mean_source sources[] = {{a, 3}, {b, 1}};
    float w[3];
    FOR_EACH_SIMD(simd)
    {
        ck_assert_int_eq(kedge_mean_tile(start, sources, 2, 0, 3, SCALE_BITS, 4, w), KEDGE_OK);
        ck_assert(w[0] == 1.5f && w[1] == 1.0f && w[2] == 0x1.2p-19f);
    }
}
END_TEST

/* The definition, with the sum in 128 bits. */
static void make_expected(const struct kedge_mean_source *sources, size_t count, size_t n,
                          uint64_t weight_sum)
{
    for (size_t i = 0; i < n; i++) {
        int128 sum = 0;
        for (size_t k = 0; k < count; k++) {
            sum += (int128)sources[k].weight * sources[k].values[i];
        }
        ck_assert(sum < (int128)1 << 62 && sum > -((int128)1 << 62));
        double divisor = (double)weight_sum * 0x1p20;
        expect[i] = (float)((double)base[i] + (double)(int64_t)sum / divisor);
    }
}

START_TEST(matches_reference)
{
    static const uint64_t weights[] = {1, 5000, (UINT64_C(1) << 31) - 1, UINT64_C(1) << 33};
    static const size_t sizes[] = {0,   1,   15,  16,  17,  31,  255,  256, 257,
                                   383, 384, 400, 511, 513, 997, 4097, 9001};
    struct kedge_mean_source sources[SOURCES_MAX];
    uint64_t hash[KEDGE_SIMD_LAST + 1];
    start_hashes(hash);
    for (size_t w = 0; w < 4; w++) {
        fill_sources(sources, weights[w], w);
        for (size_t count = 1; count <= SOURCES_MAX; count++) {
            uint64_t sum = add_weights(sources, count);
            make_expected(sources, count, N_MAX, sum);
            for (size_t s = count % 3; s < sizeof sizes / sizeof *sizes; s += 3) {
                FOR_EACH_SIMD(simd)
                {
                    size_t n = sizes[s];
                    memset(out, 0x7b, sizeof out);
                    int err = kedge_mean_tile(base, sources, count, 0, n, SCALE_BITS, sum, out);
                    ck_assert_int_eq(err, KEDGE_OK);
                    ck_assert_mem_eq(out, expect, n * sizeof *out);
                    for (size_t i = n; i < n + 16 && i < N_MAX; i++) {
                        ck_assert_mem_eq(&out[i], "\x7b\x7b\x7b\x7b", 4); /* guard behind */
                    }
                    hash[simd] = fnv(hash[simd], out, n * sizeof *out);
                }
            }
        }
    }
    FOR_EACH_SIMD(simd)
    {
        ck_assert_uint_eq(hash[simd], golden);
    }
}
END_TEST

/* Extreme values: the conversion to double rounds as the processor's, also near 2^62 and for wrapped
 * sums. */
START_TEST(extreme_values)
{
    static const int32_t edge[] = {INT32_MAX, INT32_MIN, -1, 1, 0, INT32_MAX - 1, INT32_MIN + 1, 1 << 30};
    static const uint64_t weight[] = {0, 1, 3, (1u << 31) - 1, 1u << 30, 1234567891};
    static int32_t v[2][64];
    for (int i = 0; i < 64; i++) {
        v[0][i] = edge[i % 8];
        v[1][i] = edge[i / 8];
    }
    float zero[64] = {0};
    for (size_t a = 0; a < 6; a++) {
        for (size_t b = 0; b < 6; b++) {
            const struct kedge_mean_source sources[] = {
                {v[0], weight[a]}, {v[1], weight[b]}, {v[1], weight[a]}};
            FOR_EACH_SIMD(simd)
            {
                float got[64];
                ck_assert_int_eq(kedge_mean_tile(zero, sources, 3, 0, 64, 0, 1, got), KEDGE_OK);
                for (int i = 0; i < 64; i++) {
                    uint64_t sum = (uint64_t)((int64_t)v[0][i] * (int64_t)weight[a]);
                    sum += (uint64_t)((int64_t)v[1][i] * (int64_t)weight[b]);
                    sum += (uint64_t)((int64_t)v[1][i] * (int64_t)weight[a]);
                    ck_assert(got[i] == (float)(double)(int64_t)sum);
                }
            }
        }
    }
}
END_TEST

START_TEST(in_place_and_no_source)
{
    struct kedge_mean_source sources[SOURCES_MAX];
    fill_sources(sources, 100, 5);
    uint64_t sum = add_weights(sources, 11);
    make_expected(sources, 11, N_MAX, sum);
    FOR_EACH_SIMD(simd)
    {
        memcpy(out, base, sizeof out);
        ck_assert_int_eq(kedge_mean_tile(out, sources, 11, 0, N_MAX, SCALE_BITS, sum, out), KEDGE_OK);
        ck_assert_mem_eq(out, expect, sizeof out);
        memset(out, 0, sizeof out);
        ck_assert_int_eq(kedge_mean_tile(base, NULL, 0, 0, N_MAX, SCALE_BITS, 1, out), KEDGE_OK);
        ck_assert_mem_eq(out, base, sizeof out);
    }
}
END_TEST

START_TEST(arguments)
{
    static const int32_t one[1] = {1};
    struct kedge_mean_source sources[] = {{one, 5}, {one, 7}};
    float w[1] = {9.0f};
    uint64_t sum = 77;
    ck_assert_int_eq(kedge_mean_tile(base, sources, 2, 0, 1, SCALE_BITS, 0, w), KEDGE_E_ARG);
    ck_assert_int_eq(kedge_mean_tile(base, sources, 2, 0, 1, 31, 12, w), KEDGE_E_ARG);
    ck_assert_int_eq(kedge_mean_tile(base, sources, 2, 0, 1, 1, (UINT64_C(1) << 62) + 1, w), KEDGE_E_ARG);
    ck_assert(w[0] == 9.0f);
    ck_assert_int_eq(kedge_mean_weight_sum(sources, 2, 0, &sum), KEDGE_E_ARG);
    ck_assert_int_eq(kedge_mean_weight_sum(sources, 0, 1, &sum), KEDGE_E_ARG);
    sources[0].weight = ((UINT64_C(1) << 62) - 1) / 1000 - 7;
    ck_assert_int_eq(kedge_mean_weight_sum(sources, 2, 1001, &sum), KEDGE_E_OVERFLOW);
    sources[1].weight = UINT64_MAX;
    ck_assert_int_eq(kedge_mean_weight_sum(sources, 2, 1, &sum), KEDGE_E_OVERFLOW);
    ck_assert_uint_eq(sum, 77);
    sources[1].weight = 7;
    ck_assert_int_eq(kedge_mean_weight_sum(sources, 2, 1000, &sum), KEDGE_OK);
    ck_assert_uint_eq(sum, ((UINT64_C(1) << 62) - 1) / 1000);
}
END_TEST

/* Quotients just between two floats: a division that is off by its last bit, as by a reciprocal, breaks the
 * tie. What is averaged comes out again, whatever the weight. */
START_TEST(ties_between_floats)
{
    enum { N = 320 };
    static const float zero[N];
    for (int32_t i = 0; i < N; i++) {
        values[0][i] = ((1 << 24) + 2 * i * 7919 + 1) * (i % 2 == 0 ? 1 : -1); /* odd, of 25 bits */
    }
    FOR_EACH_SIMD(simd)
    {
        for (uint64_t weight = 1; weight < 200; weight++) {
            const struct kedge_mean_source source = {values[0], weight};
            ck_assert_int_eq(kedge_mean_tile(zero, &source, 1, 0, N, 0, weight, out), KEDGE_OK);
            for (size_t i = 0; i < N; i++) {
                const float tied = (float)values[0][i];
                ck_assert_msg(memcmp(&out[i], &tied, sizeof tied) == 0, "%s: weight %u: %.9g, not %.9g",
                              kedge_simd_name(simd), (unsigned)weight, (double)out[i], (double)tied);
            }
        }
    }
}
END_TEST

/* A result that goes past the caches: the same bytes as in small pieces, whatever it stands on. */
START_TEST(large_results)
{
    enum { N = (1 << 20) + 77, SOURCES = 3, SHIFTS = 9 };
    struct kedge_mean_source sources[SOURCES];
    struct kedge_rng rng = new_stream(21);
    float *start = new_array(N, sizeof *start);
    float *pieces = new_array(N, sizeof *pieces);
    float *whole = new_array(N + SHIFTS, sizeof *whole);
    uint64_t sum = 0;
    fill_floats(&rng, start, N, 2.0);
    for (size_t k = 0; k < SOURCES; k++) {
        int32_t *q = new_array(N, sizeof *q);
        fill_ints(&rng, q, N, 1 << 20);
        sources[k] = (struct kedge_mean_source){.values = q, .weight = 100 + k};
        sum += sources[k].weight;
    }
    for (size_t at = 0, n; at < N; at += n) {
        n = N - at < 4099 ? N - at : 4099;
        ck_assert_int_eq(kedge_mean_tile(start, sources, SOURCES, at, n, SCALE_BITS, sum, pieces + at),
                         KEDGE_OK);
    }
    FOR_EACH_SIMD(simd)
    {
        for (size_t shift = 0; shift < SHIFTS; shift += 1 + shift / 2) {
            float *to = whole + shift;
            ck_assert_int_eq(kedge_mean_tile(start, sources, SOURCES, 0, N, SCALE_BITS, sum, to), KEDGE_OK);
            ck_assert_mem_eq(to, pieces, N * sizeof *to);
            memset(whole, 0x7b, (N + SHIFTS) * sizeof *whole);
        }
        memcpy(whole, start, N * sizeof *whole); /* in place */
        ck_assert_int_eq(kedge_mean_tile(whole, sources, SOURCES, 0, N, SCALE_BITS, sum, whole), KEDGE_OK);
        ck_assert_mem_eq(whole, pieces, N * sizeof *whole);
    }
    for (size_t k = 0; k < SOURCES; k++) {
        kedge_mem_free((void *)(uintptr_t)sources[k].values);
    }
    kedge_mem_free(start);
    kedge_mem_free(pieces);
    kedge_mem_free(whole);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {ties_between_floats,    by_hand,   matches_reference, extreme_values,
                                  in_place_and_no_source, arguments, large_results,     NULL};
    return run_tests("aggregation/mean", tests);
}
