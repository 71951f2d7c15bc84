#include "aggregation/quantise.h"

#include <math.h>

#include "tests/unit/aggregation/support.h"

static const uint64_t golden = UINT64_C(10482637327462877219);

START_TEST(limits)
{
    static const struct {
        double bound;
        unsigned bits;
        int err;
        int32_t limit;
    } cases[] = {
        {1.0, 24, KEDGE_OK, 1 << 24},
        {0.5, 0, KEDGE_E_OVERFLOW, 0}, /* ties to even: 0, nothing could be sent */
        {1.5, 0, KEDGE_OK, 2},
        {2.5, 0, KEDGE_OK, 2},
        {1.0, 30, KEDGE_OK, 1 << 30},
        {2147483647.0, 0, KEDGE_OK, INT32_MAX},
        {2147483647.25, 0, KEDGE_OK, INT32_MAX},
        {2147483647.5, 0, KEDGE_E_OVERFLOW, 0}, /* below 2^31, rounds to it */
        {2147483648.0, 0, KEDGE_E_OVERFLOW, 0},
        {2.0, 30, KEDGE_E_OVERFLOW, 0},
        {1e300, 3, KEDGE_E_OVERFLOW, 0},
        {1e-12, 30, KEDGE_E_OVERFLOW, 0},
        {1.0, 31, KEDGE_E_ARG, 0},
        {0.0, 20, KEDGE_E_ARG, 0},
        {-1.0, 20, KEDGE_E_ARG, 0},
        {(double)NAN, 20, KEDGE_E_ARG, 0},
        {(double)INFINITY, 20, KEDGE_E_ARG, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int32_t limit = -7;
        ck_assert_int_eq(kedge_scale_limit(cases[i].bound, cases[i].bits, &limit), cases[i].err);
        ck_assert_int_eq(limit, cases[i].err ? -7 : cases[i].limit);
    }
}
END_TEST

START_TEST(scale_check)
{
    const uint64_t most = (UINT64_C(1) << 62) - 1;
    ck_assert_int_eq(kedge_scale_check(1.0, 20, 0), KEDGE_OK);
    ck_assert_int_eq(kedge_scale_check(1.0, 20, most >> 20), KEDGE_OK);
    ck_assert_int_eq(kedge_scale_check(1.0, 20, (most >> 20) + 1), KEDGE_E_OVERFLOW);
    ck_assert_int_eq(kedge_scale_check(1.0, 0, most), KEDGE_OK);
    ck_assert_int_eq(kedge_scale_check(1.0, 0, most + 1), KEDGE_E_OVERFLOW);
    ck_assert_int_eq(kedge_scale_check(1.0, 0, UINT64_MAX), KEDGE_E_OVERFLOW);
    ck_assert_int_eq(kedge_scale_check(4.0, 30, 1), KEDGE_E_OVERFLOW);
    ck_assert_int_eq(kedge_scale_check(0.0, 30, 1), KEDGE_E_ARG);
}
END_TEST

START_TEST(rounds_half_to_even)
{
    static const float after[] = {0.5f, 1.5f, 2.5f, -0.5f, -1.5f, -2.5f, 0.25f, -0.75f, 3.0f};
    static const int32_t expect[] = {0, 2, 2, 0, -2, -2, 0, -1, 3};
    static const float before[9] = {0};
    FOR_EACH_SIMD(simd)
    {
        int32_t q[9];
        ck_assert_int_eq(kedge_quantise(before, after, 9, 0, 100.0, q, NULL), KEDGE_OK);
        for (int i = 0; i < 9; i++) {
            ck_assert_int_eq(q[i], expect[i]);
        }
    }
}
END_TEST

/* Against long double, and the digest that every compiler and path must give. */
START_TEST(matches_reference)
{
    enum { N = 1013 };
    static float before[N];
    static float after[N];
    static int32_t q[N];
    struct kedge_rng rng = new_stream(1);
    fill_floats(&rng, before, N, 1.0);
    fill_floats(&rng, after, N, 1.0);
    before[7] = 0x1p-149f; /* denormal */
    after[11] = before[11] + 0x1.8p-21f;
    FOR_EACH_SIMD(simd)
    {
        uint64_t hash = FNV_START;
        for (unsigned bits = 0; bits <= 29; bits++) {
            ck_assert_int_eq(kedge_quantise(before, after, N, bits, 2.0, q, NULL), KEDGE_OK);
            hash = fnv(hash, q, sizeof q);
            for (int i = 0; i < N; i++) {
                long double exact = (long double)after[i] - (long double)before[i];
                exact *= (long double)(1u << bits);
                long double off = fabsl(exact - (long double)q[i]);
                ck_assert(off <= 0.5L);
                ck_assert(off < 0.5L || q[i] % 2 == 0);
            }
        }
        ck_assert_uint_eq(hash, golden);
    }
}
END_TEST

/* Every position: the index is the lowest offender whatever the path. */
START_TEST(refuses_bad_values)
{
    enum { N = 37 };
    static const struct {
        float before;
        float after;
        int err;
    } bad[] = {
        {0.0f, 2.5f, KEDGE_E_BOUND},           {0.0f, -2.5f, KEDGE_E_BOUND},
        {-1.5f, 1.5f, KEDGE_E_BOUND},          {0.0f, NAN, KEDGE_E_NOT_FINITE},
        {NAN, 0.0f, KEDGE_E_NOT_FINITE},       {0.0f, INFINITY, KEDGE_E_NOT_FINITE},
        {0.0f, -INFINITY, KEDGE_E_NOT_FINITE}, {INFINITY, INFINITY, KEDGE_E_NOT_FINITE},
        {-3e38f, 3e38f, KEDGE_E_BOUND},
    };
    FOR_EACH_SIMD(simd)
    {
        for (size_t b = 0; b < sizeof bad / sizeof *bad; b++) {
            for (size_t at = 0; at < N; at++) {
                float before[N] = {0};
                float after[N] = {0};
                int32_t q[N];
                size_t index = 99;
                before[at] = bad[b].before;
                after[at] = bad[b].after;
                after[N - 1] = at == N - 1 ? after[at] : NAN; /* a later one must not be named */
                ck_assert_int_eq(kedge_quantise(before, after, N, 20, 2.0, q, &index), bad[b].err);
                ck_assert_uint_eq(index, at);
                ck_assert_int_eq(kedge_quantise(before, after, N, 20, 2.0, q, NULL), bad[b].err);
            }
        }
    }
}
END_TEST

START_TEST(bound_itself_is_allowed)
{
    const float before[5] = {0};
    const float after[5] = {2.0f, -2.0f, 2.0f, -2.0f, 2.0f};
    int32_t q[5];
    FOR_EACH_SIMD(simd)
    {
        ck_assert_int_eq(kedge_quantise(before, after, 5, 20, 2.0, q, NULL), KEDGE_OK);
        ck_assert_int_eq(q[3], -(2 << 20));
        ck_assert_int_eq(kedge_quantise(before, after, 0, 20, 2.0, q, NULL), KEDGE_OK);
        ck_assert_int_eq(kedge_quantise(before, after, 5, 31, 2.0, q, NULL), KEDGE_E_ARG);
    }
}
END_TEST

START_TEST(update_check)
{
    enum { N = 53 };
    static const int32_t bad[] = {101, -101, INT32_MAX, INT32_MIN};
    FOR_EACH_SIMD(simd)
    {
        int32_t q[N];
        for (size_t i = 0; i < N; i++) {
            q[i] = i % 2 ? 100 : -100;
        }
        ck_assert_int_eq(kedge_update_check(q, N, 100, NULL), KEDGE_OK);
        ck_assert_int_eq(kedge_update_check(q, 0, 0, NULL), KEDGE_OK);
        ck_assert_int_eq(kedge_update_check(q, N, -1, NULL), KEDGE_E_ARG);
        for (size_t at = 0; at < N; at++) {
            int32_t keep = q[at];
            size_t index = 99;
            q[at] = bad[at % 4];
            ck_assert_int_eq(kedge_update_check(q, N, 100, &index), KEDGE_E_BOUND);
            ck_assert_uint_eq(index, at);
            q[at] = keep;
        }
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {limits,
                                  scale_check,
                                  rounds_half_to_even,
                                  matches_reference,
                                  refuses_bad_values,
                                  bound_itself_is_allowed,
                                  update_check,
                                  NULL};
    return run_tests("aggregation/quantise", tests);
}
