#include "grouping/split.h"

#include <math.h>

#include "aggregation/gram.h"
#include "grouping/flexcfl.h"
#include "grouping/oneshot.h"
#include "tests/fixtures/whole_updates.h"
#include "tests/unit/aggregation/support.h"

enum { N = 12, D = 300 };

static int32_t updates[N][D];
static uint32_t maxima[N];
static int64_t gram[N * N];

static void measure(size_t n)
{
    const int32_t *pointers[N];
    for (size_t i = 0; i < n; i++) {
        pointers[i] = updates[i];
    }
    ck_assert_int_eq(gram_of(pointers, n, D, maxima, gram), KEDGE_OK);
}

/* Update i follows direction i % kinds, with noise. */
static void plant(uint64_t seed, size_t n, size_t kinds, int32_t noise)
{
    int32_t direction[4][D];
    struct kedge_rng rng = new_stream(seed);
    for (size_t k = 0; k < kinds; k++) {
        fill_ints(&rng, direction[k], D, 1000);
    }
    for (size_t i = 0; i < n; i++) {
        int32_t size = 1 + (int32_t)kedge_rng_below(&rng, 300);
        for (size_t d = 0; d < D; d++) {
            updates[i][d] = size * (direction[i % kinds][d] + draw_int(&rng, noise));
        }
    }
    measure(n);
}

START_TEST(norms_are_those_of_the_updates)
{
    for (uint64_t seed = 0; seed < 20; seed++) {
        plant(seed, N, 3, 900);
        double square = 0.0, longest = 0.0, mean = 0.0, max = 0.0;
        for (size_t d = 0; d < D; d++) {
            double sum = 0.0;
            for (size_t i = 0; i < N; i++) {
                sum += (double)updates[i][d] / 1024.0;
            }
            square += (sum / N) * (sum / N);
        }
        for (size_t i = 0; i < N; i++) {
            double own = 0.0;
            for (size_t d = 0; d < D; d++) {
                own += (double)updates[i][d] / 1024.0 * ((double)updates[i][d] / 1024.0);
            }
            longest = own > longest ? own : longest;
        }
        ck_assert_int_eq(kedge_split_norms(gram, maxima, N, 10, &mean, &max), KEDGE_OK);
        ck_assert(fabs(mean - sqrt(square)) < 2e-3 * sqrt(square)); /* 12 bits */
        ck_assert(fabs(max - sqrt(longest)) < 2e-3 * sqrt(longest));
    }
    double mean, max;
    memset(updates, 0, sizeof updates); /* 3, 4 and its opposite */
    updates[0][0] = 3 << 8;
    updates[0][1] = 4 << 8;
    updates[1][0] = -(3 << 8);
    updates[1][1] = -(4 << 8);
    measure(2);
    ck_assert_int_eq(kedge_split_norms(gram, maxima, 2, 8, &mean, &max), KEDGE_OK);
    ck_assert(mean == 0.0 && fabs(max - 5.0) < 2e-3);
    ck_assert_int_eq(kedge_split_norms(gram, maxima, 0, 8, &mean, &max), KEDGE_E_ARG);
}
END_TEST

START_TEST(when_to_split)
{
    ck_assert(kedge_split_due(0.39, 1.61, 0.4, 1.6, 3));
    ck_assert(!kedge_split_due(0.4, 1.7, 0.4, 1.6, 3)); /* still moving together */
    ck_assert(!kedge_split_due(0.3, 1.6, 0.4, 1.6, 3)); /* all at rest */
    ck_assert(!kedge_split_due(0.3, 1.7, 0.4, 1.6, 2));
}
END_TEST

START_TEST(two_parts)
{
    for (uint64_t seed = 0; seed < 20; seed++) {
        uint32_t part[N];
        double clear = 0.0, vague = 0.0;
        plant(seed, N, 2, 800);
        ck_assert_int_eq(kedge_split(gram, maxima, N, part, &clear), KEDGE_OK);
        for (uint32_t i = 0; i < N; i++) {
            ck_assert_uint_eq(part[i], i % 2);
        }
        ck_assert(clear > 0.25);
        plant(seed, N, 1, 800);
        ck_assert_int_eq(kedge_split(gram, maxima, N, part, &vague), KEDGE_OK);
        ck_assert(vague < 0.2 && part[0] == 0);
        memset(updates[0], 0, sizeof updates[0]); /* no direction: with the first part */
        measure(N);
        ck_assert_int_eq(kedge_split(gram, maxima, N, part, NULL), KEDGE_OK);
        ck_assert(part[0] == 0 && part[1] == 0);
    }
    uint32_t part[N];
    memset(updates, 0, sizeof updates);
    updates[3][0] = 1;
    measure(N);
    ck_assert_int_eq(kedge_split(gram, maxima, N, part, NULL), KEDGE_E_NO_DIRECTION);
    ck_assert_int_eq(kedge_split(gram, maxima, 1, part, NULL), KEDGE_E_ARG);
}
END_TEST

START_TEST(one_shot)
{
    for (uint64_t seed = 0; seed < 20; seed++) {
        const size_t kinds = 1 + seed % 4;
        uint32_t group[N];
        size_t groups = 0;
        plant(seed, N, kinds, 500);
        ck_assert_int_eq(kedge_oneshot(gram, maxima, N, 0.5, 16, group, &groups), KEDGE_OK);
        ck_assert_uint_eq(groups, kinds);
        for (uint32_t i = 0; i < N; i++) {
            ck_assert_uint_eq(group[i], i % kinds);
        }
        ck_assert_int_eq(kedge_oneshot(gram, maxima, N, 0.5, 2, group, &groups), KEDGE_OK);
        ck_assert_uint_eq(groups, kinds < 2 ? kinds : 2); /* bounded */
        ck_assert_int_eq(kedge_oneshot(gram, maxima, N, 0.0, 16, group, &groups), KEDGE_OK);
        ck_assert_uint_eq(groups, N);
        memset(updates[1], 0, sizeof updates[1]);
        measure(N);
        ck_assert_int_eq(kedge_oneshot(gram, maxima, N, 2.0, 16, group, &groups), KEDGE_OK);
        ck_assert(groups == 1 && group[1] == KEDGE_GROUP_NONE && group[2] == 0);
    }
    uint32_t group[N];
    size_t groups;
    memset(updates, 0, sizeof updates);
    measure(N);
    ck_assert_int_eq(kedge_oneshot(gram, maxima, N, 0.5, 16, group, &groups), KEDGE_E_NO_DIRECTION);
    ck_assert_int_eq(kedge_oneshot(gram, maxima, N, (double)NAN, 16, group, &groups), KEDGE_E_ARG);
    ck_assert_int_eq(kedge_oneshot(gram, maxima, N, 0.5, KEDGE_GROUPS_MAX + 1, group, &groups), KEDGE_E_ARG);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {norms_are_those_of_the_updates, when_to_split, two_parts, one_shot, NULL};
    return run_tests("grouping/split", tests);
}
