#include "grouping/halves.h"

#include "aggregation/gram.h"
#include "tests/fixtures/whole_updates.h"
#include "tests/unit/aggregation/support.h"

enum { N = 24, D = 200 };

static double cosine[N * N];

/* All count the same. */
static const double *alike(void)
{
    static double weight[N];
    for (size_t i = 0; i < N; i++) {
        weight[i] = 1;
    }
    return weight;
}

/* Update i follows direction kind[i], with noise. */
static void plant(uint64_t seed, size_t n, const uint32_t *kind, int32_t noise)
{
    static int32_t updates[N][D], direction[4][D];
    static int64_t gram[N * N];
    uint32_t maxima[N];
    const int32_t *pointers[N];
    struct kedge_rng rng = new_stream(seed);
    for (size_t k = 0; k < 4; k++) {
        fill_ints(&rng, direction[k], D, 1000);
    }
    for (size_t i = 0; i < n; i++) {
        int32_t size = 1 + (int32_t)kedge_rng_below(&rng, 300);
        for (size_t d = 0; d < D; d++) {
            updates[i][d] = size * (direction[kind[i]][d] + draw_int(&rng, noise));
        }
        pointers[i] = updates[i];
    }
    ck_assert_int_eq(gram_of(pointers, n, D, maxima, gram), KEDGE_OK);
    kedge_gram_cosine(gram, n, cosine);
}

/* Planted kinds stay together, in any order, with a few of one kind and many of the other. */
START_TEST(two_kinds)
{
    for (uint64_t seed = 0; seed < 60; seed++) {
        uint32_t kind[N], part[N];
        size_t second = 0, want = 0;
        struct kedge_rng rng = new_stream(seed + 1000);
        for (size_t i = 0; i < N; i++) {
            kind[i] = kedge_rng_below(&rng, 4) == 0;
        }
        kind[0] = kind[1] = (uint32_t)(seed % 2);
        kind[2] = kind[3] = 1 - kind[0];
        for (size_t i = 0; i < N; i++) {
            want += kind[i] != kind[0];
        }
        plant(seed, N, kind, 900);
        ck_assert_int_eq(kedge_halves(cosine, alike(), N, part, &second), KEDGE_OK);
        ck_assert_uint_eq(second, want);
        for (size_t i = 0; i < N; i++) {
            ck_assert_uint_eq(part[i], kind[i] != kind[0]);
        }
    }
}
END_TEST

/* Of three kinds none is torn, and an outlier is no half. */
START_TEST(three_kinds)
{
    for (uint64_t seed = 0; seed < 30; seed++) {
        uint32_t kind[N], part[N], of_kind[3];
        size_t second = 0;
        for (size_t i = 0; i < N; i++) {
            kind[i] = (uint32_t)(i % 3);
        }
        plant(seed, N, kind, 500);
        ck_assert_int_eq(kedge_halves(cosine, alike(), N, part, &second), KEDGE_OK);
        for (size_t i = 0; i < N; i++) {
            of_kind[i % 3] = i < 3 ? part[i] : of_kind[i % 3];
            ck_assert_uint_eq(part[i], of_kind[i % 3]);
        }
        ck_assert(part[0] == 0 && (second == N / 3 || second == 2 * N / 3));
    }
}
END_TEST

START_TEST(an_outlier_is_no_half)
{
    size_t fewest = N;
    for (uint64_t seed = 0; seed < 30; seed++) {
        uint32_t kind[N] = {0}, part[N];
        size_t second = 0;
        kind[5] = 1;
        plant(seed, N, kind, 20000); /* hardly anything in common */
        ck_assert_int_eq(kedge_halves(cosine, alike(), N, part, &second), KEDGE_OK);
        fewest = second < fewest ? second : fewest;
        fewest = N - second < fewest ? N - second : fewest;
    }
    ck_assert_uint_ge(fewest, 4);
}
END_TEST

/* Sixteen sites of one tenant are of two kinds, the one site of each of eight tenants of two kinds besides.
 * Counted by sites the axis is the large tenant's, and the others stay together; counted by tenants, it is
 * theirs. */
START_TEST(many_sites_of_one_tenant)
{
    uint32_t torn[2] = {0, 0};
    for (uint64_t seed = 0; seed < 30; seed++) {
        uint32_t kind[N], part[2][N];
        double weight[N];
        size_t second = 0;
        for (size_t i = 0; i < N; i++) {
            kind[i] = i < 16 ? (uint32_t)(i % 2) : 2 + (uint32_t)(i % 2);
            weight[i] = i < 16 ? 1 : 16;
        }
        plant(seed, N, kind, 300);
        ck_assert_int_eq(kedge_halves(cosine, alike(), N, part[0], &second), KEDGE_OK);
        ck_assert_int_eq(kedge_halves(cosine, weight, N, part[1], &second), KEDGE_OK);
        for (size_t by = 0; by < 2; by++) {
            torn[by] += part[by][16] != part[by][17];
            for (size_t i = 18; i < N; i++) { /* none of their kinds is torn, however it is counted */
                ck_assert_uint_eq(part[by][i], part[by][i - 2]);
            }
        }
    }
    ck_assert_msg(torn[0] < 15 && torn[1] == 30, "%u, %u", torn[0], torn[1]);
}
END_TEST

START_TEST(nothing_to_tell_apart)
{
    uint32_t part[N];
    size_t second = 7;
    for (size_t i = 0; i < (size_t)N * N; i++) {
        cosine[i] = 1;
    }
    ck_assert_int_eq(kedge_halves(cosine, alike(), N, part, &second), KEDGE_OK);
    ck_assert(second == 0 && part[0] == 0 && part[N - 1] == 0);
    memset(cosine, 0, sizeof cosine);
    ck_assert_int_eq(kedge_halves(cosine, alike(), N, part, &second), KEDGE_OK);
    ck_assert_uint_eq(second, 0);
    ck_assert_int_eq(kedge_halves(cosine, alike(), 1, part, &second), KEDGE_OK);
    ck_assert(second == 0 && part[0] == 0);
    ck_assert_int_eq(kedge_halves(cosine, alike(), 0, part, &second), KEDGE_OK);
    ck_assert_uint_eq(second, 0);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        two_kinds, three_kinds, an_outlier_is_no_half, many_sites_of_one_tenant, nothing_to_tell_apart, NULL};
    return run_tests("grouping/halves", tests);
}
