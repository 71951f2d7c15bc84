/* Rules that weigh by length and by distance: norm clipping, root data, geometric median. */
#include "tests/unit/aggregation/rule_support.h"

enum { ONE = 1 << RULE_SCALE }; /* 1 in the model's units */

static struct updates u;

static void set_plane(size_t k, double x, double y)
{
    memset(u.values[k], 0, sizeof u.values[k]);
    u.values[k][0] = (int32_t)(x * ONE);
    u.values[k][1] = (int32_t)(y * ONE);
}

static void open_plane(size_t count)
{
    u.count = count;
    u.dimension = 2;
    memset(u.model, 0, sizeof u.model);
    for (size_t k = 0; k < count; k++) {
        u.base[k] = KEDGE_RULE_VOTE;
    }
}

/* ---- norm clipping ---- */

START_TEST(short_updates_stay)
{
    const struct kedge_rule *clip = rule_of("norm-clipping");
    const struct kedge_rule_params params = {0, 5};
    open_plane(3);
    static const uint64_t samples[] = {7, 300, 41};
    memcpy(u.base, samples, sizeof samples);
    for (size_t k = 0; k < 3; k++) {
        set_plane(k, 3, k == 1 ? -4 : 4);
    }
    ck_assert_int_eq(weigh_updates(clip, &params, &u, 348), KEDGE_OK);
    ck_assert_mem_eq(u.weight, samples, sizeof samples);
    ck_assert_uint_eq(u.divisor, 348);
    ck_assert_int_eq(weigh_updates(clip, &params, &u, 77), KEDGE_OK); /* a strategy's own divisor */
    ck_assert_uint_eq(u.divisor, 77);
}
END_TEST

START_TEST(long_updates_shrink)
{
    const struct kedge_rule_params params = {0, 2.5};
    open_plane(4);
    static const uint64_t samples[] = {10, 20, 30, 40};
    memcpy(u.base, samples, sizeof samples);
    set_plane(0, 3, 4);   /* half of it */
    set_plane(1, 0, -10); /* a quarter */
    set_plane(2, 1.5, 2); /* as it is */
    set_plane(3, 0, 0);
    ck_assert_int_eq(weigh_updates(rule_of("norm-clipping"), &params, &u, 100), KEDGE_OK);
    ck_assert_uint_eq(u.divisor, UINT64_C(4) << 20);
    static const double expect[] = {0.4 / 2, 0.8 / 4, 1.2, 1.6};
    for (size_t k = 0; k < 4; k++) {
        ck_assert_uint_eq(u.weight[k], (uint64_t)(expect[k] * (1 << 20)));
    }
}
END_TEST

/* Without a bound: the lower median of the lengths by weight. */
START_TEST(median_of_lengths)
{
    static const struct {
        uint64_t samples[4];
        double bound; /* of lengths 1, 2, 4, 8 */
    } cases[] = {
        {{1, 1, 1, 1}, 2}, {{1, 1, 1, 0}, 2}, {{3, 1, 1, 1}, 1},
        {{1, 1, 1, 9}, 8}, {{0, 1, 2, 1}, 4}, {{1, 1, 2, 2}, 4},
    };
    open_plane(4);
    for (size_t k = 0; k < 4; k++) {
        set_plane(k, 0, (double)(1 << k));
    }
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        const struct kedge_rule_params params = {0, 0};
        uint64_t sum = 0;
        memcpy(u.base, cases[c].samples, sizeof cases[c].samples);
        for (size_t k = 0; k < 4; k++) {
            sum += u.base[k];
        }
        ck_assert_int_eq(weigh_updates(rule_of("norm-clipping"), &params, &u, sum), KEDGE_OK);
        for (size_t k = 0; k < 4; k++) {
            const double length = (double)(1 << k);
            const double factor = length > cases[c].bound ? cases[c].bound / length : 1;
            const double expect = (double)u.base[k] * factor / (double)sum;
            const double got = (double)u.weight[k] / (double)u.divisor;
            ck_assert_msg(fabs(got - expect) < 1e-6, "case %zu, update %zu: %g, expected %g", c, k, got,
                          expect);
        }
    }
}
END_TEST

START_TEST(too_heavy)
{
    const struct kedge_rule_params params = {0, 1};
    open_plane(2);
    u.base[0] = u.base[1] = 1 << 30;
    set_plane(0, 3, 4);
    set_plane(1, 3, 4);
    ck_assert_int_eq(weigh_updates(rule_of("norm-clipping"), &params, &u, UINT64_C(1) << 31), KEDGE_OK);
    ck_assert_int_eq(weigh_updates(rule_of("norm-clipping"), &params, &u, 1), KEDGE_E_OVERFLOW);
}
END_TEST

/* Shares that add up to 2^21, as a strategy may give them: coarser, never an error, and no sum of weights
 * that 62 bits with any update cannot hold. */
START_TEST(heavy_shares)
{
    const struct kedge_rule_params params = {0, 1};
    open_plane(3);
    u.base[0] = u.base[1] = 1 << 20;
    u.base[2] = 1;
    for (size_t k = 0; k < 3; k++) {
        set_plane(k, 3, 4);
    }
    ck_assert_int_eq(weigh_updates(rule_of("norm-clipping"), &params, &u, 1), KEDGE_OK);
    ck_assert_uint_eq(u.divisor, 3 << 8); /* 3 · 2^20 halved until 2 · 2^20 of it are below 2^31 */
    ck_assert_uint_eq(u.weight[0], (3 << 28) / 5);
    ck_assert_uint_eq(u.weight[1], (3 << 28) / 5);
    ck_assert_uint_eq(u.weight[2], (3 << 8) / 5);
}
END_TEST

/* ---- root data ---- */

START_TEST(trust)
{
    const struct kedge_rule_params params = {0, 0};
    open_plane(6);
    set_plane(0, 2, 0);      /* as the root */
    set_plane(1, 8, 0);      /* four times as long */
    set_plane(2, -2, 0);     /* away */
    set_plane(3, 0, 2);      /* across */
    set_plane(4, 1, 1);      /* cosine sqrt(1/2), length sqrt(2) */
    set_plane(5, 0x1p-9, 0); /* 1024 times shorter: stretched 256 times only */
    set_plane(6, 2, 0);
    ck_assert_int_eq(weigh_updates(rule_of("root-trust"), &params, &u, 0), KEDGE_OK);
    static const double expect[] = {1, 0.25, 0, 0, 1, 256};
    for (size_t k = 0; k < 6; k++) {
        const double got = (double)u.weight[k] / KEDGE_RULE_VOTE;
        ck_assert_msg(fabs(got - expect[k]) < 2e-3 * expect[k] + 1e-6, "%zu: %g, expected %g", k, got,
                      expect[k]);
    }
    ck_assert(fabs((double)u.divisor / KEDGE_RULE_VOTE - (3 + sqrt(0.5))) < 2e-3);
}
END_TEST

START_TEST(nobody_is_trusted)
{
    const struct kedge_rule *rule = rule_of("root-trust");
    const struct kedge_rule_params params = {0, 0};
    open_plane(3);
    for (int sort = 0; sort < 2; sort++) {
        for (size_t k = 0; k < 3; k++) {
            set_plane(k, -1, 1);
        }
        set_plane(3, sort == 0 ? 0 : 1, 0);
        ck_assert_int_eq(weigh_updates(rule, &params, &u, 0), KEDGE_OK);
        ck_assert_uint_eq(u.weight[0] + u.weight[1] + u.weight[2], 0);
        ck_assert_uint_eq(u.divisor, 1);
        u.model[0] = 5;
        tile_updates(rule, &params, &u, 0, 2);
        ck_assert(u.out[0] == 5 && u.out[1] == 0);
    }
}
END_TEST

/* 511 updates of one value of 2^30 and 9,999 of 2^30 / 100 beside a flat root: in units of 2^-20 the sum
 * would pass 2^62. */
START_TEST(sums_fit)
{
    enum { N = KEDGE_RULE_VECTORS_MAX - 1, ALL = N + 1 };
    static int64_t gram[ALL * ALL];
    static uint64_t votes[N], weight[N];
    static uint32_t maxima[ALL];
    static double norm_sq[ALL];
    const int64_t one = KEDGE_GRAM_ONE * KEDGE_GRAM_ONE;
    for (size_t i = 0; i < ALL; i++) {
        for (size_t j = 0; j < ALL; j++) {
            gram[i * ALL + j] = (i == N && j == N ? 10000 : i == N || j == N ? 101 : 2) * one;
        }
        maxima[i] = i == N ? INT32_MAX : 1 << 30;
        norm_sq[i] = i == N ? 10000 * 0x1p62 : 2 * 0x1p60;
    }
    for (size_t i = 0; i < N; i++) {
        votes[i] = KEDGE_RULE_VOTE;
    }
    const struct kedge_rule_params params = {0, 0};
    const struct kedge_rule_inputs inputs = {N, votes, 1, 0, norm_sq, gram, maxima, true};
    uint64_t divisor = 0;
    ck_assert_int_eq(kedge_rule_weigh(rule_of("root-trust"), &params, &inputs, weight, &divisor), KEDGE_OK);
    int128 sum = 0;
    for (size_t i = 0; i < N; i++) {
        ck_assert_uint_gt(weight[i], 0);
        sum += (int128)weight[i] * maxima[i];
    }
    ck_assert(sum < (int128)1 << 62);
    ck_assert(sum > (int128)1 << 59); /* no coarser than need be */
    ck_assert((double)weight[0] * N * sqrt(norm_sq[0]) <= (double)divisor * sqrt(norm_sq[N]) * (1 + 1e-9));
}
END_TEST

/* ---- geometric median ---- */

static void check_centre(double x, double y, double tolerance)
{
    const struct kedge_rule *rule = rule_of("geometric-median");
    const struct kedge_rule_params params = {0, 0};
    ck_assert_int_eq(weigh_updates(rule, &params, &u, 1), KEDGE_OK);
    tile_updates(rule, &params, &u, 0, 2);
    const double off = hypot((double)u.out[0] - x, (double)u.out[1] - y);
    ck_assert_msg(off < tolerance, "(%g, %g), expected (%g, %g)", (double)u.out[0], (double)u.out[1], x, y);
}

START_TEST(known_centres)
{
    open_plane(3); /* on a line: the middle one, however far the last is */
    set_plane(0, -1, 1);
    set_plane(1, 0.5, 1);
    set_plane(2, 9, 1);
    check_centre(0.5, 1, 5e-3);
    set_plane(2, 30000, 1);
    check_centre(0.5, 1, 5e-3);
    set_plane(0, 0, 0); /* an angle of 120 degrees or more: that corner; less: Fermat's point */
    set_plane(1, 4, 0);
    set_plane(2, 2, 1);
    check_centre(2, 1, 5e-3);
    set_plane(2, 2, 2 * sqrt(3.0));
    check_centre(2, 2 / sqrt(3.0), 5e-3);
    open_plane(4); /* where the diagonals cross */
    set_plane(0, 0, 0);
    set_plane(1, 3, 3);
    set_plane(2, 4, 0);
    set_plane(3, 0, 4);
    check_centre(2, 2, 5e-3);
    for (size_t k = 1; k < 4; k++) {
        u.base[k] = KEDGE_RULE_VOTE / 4; /* less than half of the weight */
    }
    check_centre(0, 0, 5e-3);
}
END_TEST

/* 12 within a hundredth of 0 and 11 far away: begun at the mean, the iteration would still be on its way. */
START_TEST(far_updates)
{
    open_plane(23);
    for (size_t k = 0; k < 12; k++) {
        set_plane(k, k % 2 ? 0.01 : -0.01, k % 3 ? 0 : 0.001);
    }
    for (size_t k = 12; k < 23; k++) {
        set_plane(k, 30000, 0);
    }
    check_centre(0, 0, 24 * 0.01);
}
END_TEST

static double sum_distances(const double *z)
{
    double sum = 0;
    for (size_t k = 0; k < u.count; k++) {
        double square = 0;
        for (size_t i = 0; i < u.dimension; i++) {
            const double d = (double)u.values[k][i] / ONE - z[i];
            square += d * d;
        }
        sum += (double)u.base[k] * sqrt(square);
    }
    return sum;
}

/* No step in any direction lowers the sum of distances by more than what 12 bits and smoothing cost. */
START_TEST(least_sum_of_distances)
{
    const struct kedge_rule *rule = rule_of("geometric-median");
    const struct kedge_rule_params params = {0, 0};
    struct kedge_rng rng = new_stream(51);
    for (int run = 0; run < 30; run++) {
        double z[DIMENSION_MAX], moved[DIMENSION_MAX];
        draw_updates(&rng, &u, 1 + (size_t)kedge_rng_below(&rng, 20), 1 + (size_t)kedge_rng_below(&rng, 40),
                     ONE);
        memset(u.model, 0, sizeof u.model);
        memcpy(u.base, u.samples, sizeof u.base);
        ck_assert_int_eq(weigh_updates(rule, &params, &u, 1), KEDGE_OK);
        tile_updates(rule, &params, &u, 0, u.dimension);
        for (size_t i = 0; i < u.dimension; i++) {
            z[i] = (double)u.out[i];
        }
        const double sum = sum_distances(z);
        for (int step = 0; step < 200; step++) {
            const double size = pow(10, -(double)(step % 4));
            for (size_t i = 0; i < u.dimension; i++) {
                moved[i] = z[i] + size * (2 * kedge_rng_unit(&rng) - 1);
            }
            ck_assert(sum_distances(moved) > sum * (1 - 2e-3));
        }
    }
}
END_TEST

START_TEST(all_zero)
{
    const struct kedge_rule_params params = {0, 0};
    open_plane(4);
    for (size_t k = 0; k < 4; k++) {
        set_plane(k, 0, 0);
        u.base[k] = k + 1;
    }
    ck_assert_int_eq(weigh_updates(rule_of("geometric-median"), &params, &u, 1), KEDGE_OK);
    ck_assert_uint_gt(u.divisor, 0);
    set_plane(3, 1000, 0); /* 4 of 10 */
    check_centre(0, 0, 1);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {short_updates_stay,
                                  long_updates_shrink,
                                  median_of_lengths,
                                  too_heavy,
                                  heavy_shares,
                                  trust,
                                  nobody_is_trusted,
                                  sums_fit,
                                  known_centres,
                                  far_updates,
                                  least_sum_of_distances,
                                  all_zero,
                                  NULL};
    return run_tests("aggregation/rule_weights", tests);
}
