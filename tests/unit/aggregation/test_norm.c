#include "aggregation/norm.h"

#include "tests/unit/aggregation/support.h"

enum { N = 5003 };

static int32_t q[N];

static int128 whole(const struct kedge_norm *norm)
{
    ck_assert_uint_le(norm->low, UINT32_MAX);
    return ((int128)norm->high << 32) + norm->low;
}

/* Random values of all sizes and both extremes, against 128-bit sums; lengths around every step. */
START_TEST(sums_are_exact)
{
    struct kedge_rng rng = new_stream(21);
    static const size_t lengths[] = {0, 1, 7, 15, 16, 17, 31, 32, 33, 1000, N};
    for (int sort = 0; sort < 3; sort++) {
        for (size_t i = 0; i < N; i++) {
            const int32_t random = (int32_t)(uint32_t)(kedge_rng_u64(&rng) >> 32);
            q[i] = sort == 0 ? random : sort == 1 ? INT32_MIN : random >> kedge_rng_below(&rng, 31);
        }
        for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
            int128 expect = 0;
            for (size_t i = 0; i < lengths[l]; i++) {
                expect += (int128)q[i] * q[i];
            }
            FOR_EACH_SIMD(simd)
            {
                struct kedge_norm norm = {0, 0};
                kedge_norm_add(&norm, q, lengths[l]);
                ck_assert(whole(&norm) == expect);
                ck_assert(kedge_norm_value(&norm) == (double)norm.high * 4294967296.0 + (double)norm.low);
            }
        }
    }
}
END_TEST

START_TEST(parts_add_up)
{
    struct kedge_rng rng = new_stream(22);
    fill_ints(&rng, q, N, INT32_MAX);
    struct kedge_norm expect = {0, 0};
    kedge_norm_add(&expect, q, N);
    for (int run = 0; run < 20; run++) {
        struct kedge_norm tiled = {0, 0};
        struct kedge_norm joined = {0, 0};
        for (size_t at = 0; at < N;) {
            size_t n = 1 + (size_t)kedge_rng_below(&rng, 700);
            n = n < N - at ? n : N - at;
            struct kedge_norm part = {0, 0};
            kedge_norm_add(&tiled, q + at, n);
            kedge_norm_add(&part, q + at, n);
            kedge_norm_join(&joined, &part);
            at += n;
        }
        ck_assert(tiled.high == expect.high && tiled.low == expect.low);
        ck_assert(joined.high == expect.high && joined.low == expect.low);
    }
}
END_TEST

START_TEST(values)
{
    ck_assert(kedge_norm_value(&(struct kedge_norm){0, 0}) == 0.0);
    ck_assert(kedge_norm_value(&(struct kedge_norm){0, 25}) == 25.0);
    ck_assert(kedge_norm_value(&(struct kedge_norm){3, 1}) == 12884901889.0);
    struct kedge_norm four = {0, UINT32_MAX};
    kedge_norm_join(&four, &(struct kedge_norm){1, 1});
    ck_assert(four.high == 2 && four.low == 0);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {sums_are_exact, parts_add_up, values, NULL};
    return run_tests("aggregation/norm", tests);
}
