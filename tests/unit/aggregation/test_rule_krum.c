/* Krum, multi-Krum and Bulyan against their definitions in whole numbers. Every update has one coordinate of
 * 2047, which is the largest, so that the Gram matrix and all distances are exact. */
#include "tests/unit/aggregation/rule_support.h"

enum { N_MAX = 24, D = 12, QUARTER = KEDGE_RULE_VOTE / 4 };

static struct updates u;
static bool taken_out[N_MAX];

static void draw_exact(struct kedge_rng *rng, size_t n, int32_t limit)
{
    draw_updates(rng, &u, n, D, limit);
    for (size_t k = 0; k < n; k++) {
        u.values[k][0] = KEDGE_GRAM_ONE;
        u.base[k] = KEDGE_RULE_VOTE;
        taken_out[k] = false;
    }
}

static int64_t distance(size_t a, size_t b)
{
    int64_t sum = 0;
    for (size_t i = 0; i < D; i++) {
        const int64_t d = (int64_t)u.values[a][i] - u.values[b][i];
        sum += d * d;
    }
    return sum;
}

static int compare_int64(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Distances to the `want` nearest quarters of votes of others. */
static int64_t score_of(size_t i, uint64_t want)
{
    static int64_t all[4 * N_MAX];
    size_t count = 0;
    for (size_t j = 0; j < u.count; j++) {
        for (uint64_t q = 0; j != i && !taken_out[j] && q < u.base[j] / QUARTER; q++) {
            all[count++] = distance(i, j);
        }
    }
    qsort(all, count, sizeof *all, compare_int64);
    int64_t sum = 0;
    for (size_t k = 0; k < want && k < count; k++) {
        sum += all[k];
    }
    return sum;
}

static uint64_t quarters(void)
{
    uint64_t sum = 0;
    for (size_t k = 0; k < u.count; k++) {
        sum += u.base[k] / QUARTER;
    }
    return sum;
}

/* Quarters of votes that the score of i takes. */
static uint64_t wanted(size_t i, uint64_t bad)
{
    return quarters() - 4 * bad - 4 - u.base[i] / QUARTER;
}

static void check_krum(const struct kedge_rule_params *params, uint64_t bad)
{
    size_t best = u.count;
    for (size_t i = 0; i < u.count; i++) {
        if (u.base[i] > 0
            && (best == u.count || score_of(i, wanted(i, bad)) < score_of(best, wanted(best, bad)))) {
            best = i;
        }
    }
    ck_assert_int_eq(weigh_updates(rule_of("krum"), params, &u, 0), KEDGE_OK);
    ck_assert_uint_eq(u.divisor, 1);
    for (size_t i = 0; i < u.count; i++) {
        ck_assert_msg(u.weight[i] == (i == best), "%zu of %zu, expected %zu", i, u.count, best);
    }
}

static void check_multi_krum(const struct kedge_rule_params *params, uint64_t bad)
{
    uint64_t expect[N_MAX] = {0};
    bool done[N_MAX] = {false};
    uint64_t left = quarters() - 4 * bad - 8;
    const uint64_t divisor = left;
    while (left > 0) {
        size_t best = u.count;
        for (size_t i = 0; i < u.count; i++) {
            if (!done[i] && u.base[i] > 0
                && (best == u.count || score_of(i, wanted(i, bad)) < score_of(best, wanted(best, bad)))) {
                best = i;
            }
        }
        done[best] = true;
        expect[best] = u.base[best] / QUARTER < left ? u.base[best] / QUARTER : left;
        left -= expect[best];
    }
    ck_assert_int_eq(weigh_updates(rule_of("multi-krum"), params, &u, 0), KEDGE_OK);
    ck_assert_uint_eq(u.divisor, divisor * QUARTER);
    for (size_t i = 0; i < u.count; i++) {
        ck_assert_uint_eq(u.weight[i], expect[i] * QUARTER);
    }
}

static void check_bulyan(const struct kedge_rule_params *params, uint64_t bad)
{
    for (size_t left = u.count; left > 2 * bad; left--) {
        const uint64_t others = left > bad + 3 ? left - bad - 2 : 1;
        size_t best = u.count;
        for (size_t i = 0; i < u.count; i++) {
            if (!taken_out[i] && (best == u.count || score_of(i, 4 * others) < score_of(best, 4 * others))) {
                best = i;
            }
        }
        taken_out[best] = true;
    }
    ck_assert_int_eq(weigh_updates(rule_of("bulyan"), params, &u, 0), KEDGE_OK);
    for (size_t i = 0; i < u.count; i++) {
        ck_assert_uint_eq(u.weight[i], taken_out[i] ? KEDGE_RULE_VOTE : 0);
    }
}

/* limit 1 makes many ties, which go to the lowest index. */
static const int32_t limits[] = {0, 1, 3, 2046};

START_TEST(one_vote_each)
{
    static const double fractions[] = {0, 0.1, 0.2, 0.3, 0.45};
    struct kedge_rng rng = new_stream(41);
    for (size_t n = 3; n <= N_MAX; n++) {
        for (size_t f = 0; f < 5; f++) {
            const struct kedge_rule_params params = {fractions[f], 0};
            const uint64_t bad = (uint64_t)(fractions[f] * (double)n + 1e-9);
            draw_exact(&rng, n, limits[(n + f) % 4]);
            if (n >= 2 * bad + 3) {
                check_krum(&params, bad);
                check_multi_krum(&params, bad);
            }
            if (n >= 4 * bad + 3) {
                check_bulyan(&params, bad);
            }
        }
    }
}
END_TEST

/* Quarters of votes, none among them, as a cap on shares leaves them. */
START_TEST(parts_of_votes)
{
    struct kedge_rng rng = new_stream(42);
    for (int run = 0; run < 60; run++) {
        draw_exact(&rng, 6 + (size_t)kedge_rng_below(&rng, N_MAX - 6), limits[run % 4]);
        for (size_t k = 0; k < u.count; k++) {
            u.base[k] = kedge_rng_below(&rng, 5) * QUARTER;
        }
        const uint64_t bad = quarters() / 4 / 5;
        const struct kedge_rule_params params = {0.2, 0};
        if (quarters() / 4 >= 2 * bad + 3) {
            const uint64_t f = quarters() * 200000 / 4000000;
            check_krum(&params, f);
            check_multi_krum(&params, f);
        } else {
            ck_assert_int_eq(weigh_updates(rule_of("krum"), &params, &u, 0), KEDGE_E_ARG);
        }
    }
}
END_TEST

/* Four near together, three near each other elsewhere: only with all seven votes do the four win; with the
 * four of one tenant capped to two votes, the three do. */
START_TEST(caps_decide)
{
    struct kedge_rng rng = new_stream(43);
    draw_exact(&rng, 7, 0);
    for (size_t k = 0; k < 7; k++) {
        u.values[k][1] = k < 4 ? 100 + (int32_t)k : -100 - (int32_t)k;
    }
    const struct kedge_rule_params params = {0.2, 0};
    ck_assert_int_eq(weigh_updates(rule_of("krum"), &params, &u, 0), KEDGE_OK);
    ck_assert_uint_eq(u.weight[0] + u.weight[1] + u.weight[2] + u.weight[3], 1);
    for (size_t k = 0; k < 4; k++) {
        u.base[k] = KEDGE_RULE_VOTE / 2;
    }
    ck_assert_int_eq(weigh_updates(rule_of("krum"), &params, &u, 0), KEDGE_OK);
    ck_assert_uint_eq(u.weight[5], 1);
}
END_TEST

START_TEST(bulyan_takes_whole_votes)
{
    struct kedge_rng rng = new_stream(44);
    const struct kedge_rule_params params = {0.2, 0};
    draw_exact(&rng, 9, 100);
    ck_assert_int_eq(weigh_updates(rule_of("bulyan"), &params, &u, 0), KEDGE_OK);
    u.base[3]--;
    ck_assert_int_eq(weigh_updates(rule_of("bulyan"), &params, &u, 0), KEDGE_E_ARG);
}
END_TEST

/* What 12 bits do not show counts as length: an update of one large value below which many others hide gets a
 * worse score for each of them, although its row of the Gram matrix stays the same. */
START_TEST(nothing_hides)
{
    struct kedge_rng rng = new_stream(45);
    const struct kedge_rule_params params = {0, 0};
    draw_exact(&rng, 5, 1000);
    for (size_t k = 0; k < 5; k++) {
        memset(u.values[k] + 1, 0, (D - 1) * sizeof u.values[k][0]);
        u.values[k][0] = 1 << 24; /* a step is 2^24 / 2047 = 8196: what is below half of it is not seen */
        u.values[k][1] = 10000 * ((int32_t)k - 2);
    }
    ck_assert_int_eq(weigh_updates(rule_of("krum"), &params, &u, 0), KEDGE_OK);
    ck_assert_uint_eq(u.weight[2], 1);
    for (size_t i = 2; i < D; i++) {
        u.values[2][i] = 4000;
    }
    ck_assert_int_eq(weigh_updates(rule_of("krum"), &params, &u, 0), KEDGE_OK);
    ck_assert_uint_eq(u.weight[2], 0);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        one_vote_each, parts_of_votes, caps_decide, bulyan_takes_whole_votes, nothing_hides, NULL};
    return run_tests("aggregation/rule_krum", tests);
}
