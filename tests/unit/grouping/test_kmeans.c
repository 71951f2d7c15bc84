#include "grouping/kmeans.h"

#include <math.h>

#include "sim/learn/rand_index.h"
#include "tests/unit/aggregation/support.h"

static const uint64_t golden = UINT64_C(18278668961505001953);

static const struct kedge_kmeans_params usual = {
    .seed = 42, .round = 0, .restarts = KEDGE_KMEANS_RESTARTS, .iterations_max = KEDGE_KMEANS_ITERATIONS};

START_TEST(separate_blobs)
{
    enum { N = 90, DIMS = 3 };
    double points[N * DIMS];
    uint32_t truth[N];
    uint32_t cluster[N];
    uint64_t hash = FNV_START;
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct kedge_rng rng = new_stream(seed);
        for (size_t i = 0; i < N; i++) {
            truth[i] = (uint32_t)kedge_rng_below(&rng, 4);
            for (size_t d = 0; d < DIMS; d++) {
                points[i * DIMS + d] = kedge_rng_unit(&rng) + 5.0 * (truth[i] >> d & 1u);
            }
        }
        struct kedge_kmeans_params params = usual;
        params.seed = seed;
        double inertia = -1.0;
        ck_assert_int_eq(kedge_kmeans(points, N, DIMS, 4, &params, cluster, &inertia), KEDGE_OK);
        ck_assert(kedge_rand_adjusted(truth, cluster, N) == 1.0);
        ck_assert(inertia > 0.0 && inertia < N * DIMS / 4.0);
        ck_assert_uint_eq(cluster[0], 0); /* numbered by the first member */
        hash = fnv(fnv(hash, cluster, sizeof cluster), &inertia, sizeof inertia);
    }
    ck_assert_uint_eq(hash, golden);
}
END_TEST

/* Every partition of seven points on a line into three: none has less inertia. */
START_TEST(finds_the_optimum_of_small_sets)
{
    for (uint64_t seed = 0; seed < 50; seed++) {
        struct kedge_rng rng = new_stream(seed);
        double x[7];
        for (int i = 0; i < 7; i++) {
            x[i] = kedge_rng_unit(&rng);
        }
        double least = 1e9;
        for (int code = 0; code < 2187; code++) {
            double sum[3] = {0};
            double square = 0.0;
            int members[3] = {0};
            for (int i = 0, rest = code; i < 7; i++, rest /= 3) {
                sum[rest % 3] += x[i];
                members[rest % 3]++;
                square += x[i] * x[i];
            }
            for (int c = 0; c < 3; c++) {
                square -= members[c] ? sum[c] * sum[c] / members[c] : 0.0;
            }
            least = fmin(least, square);
        }
        uint32_t cluster[7];
        double inertia;
        ck_assert_int_eq(kedge_kmeans(x, 7, 1, 3, &usual, cluster, &inertia), KEDGE_OK);
        ck_assert(fabs(inertia - least) < 1e-12);
    }
}
END_TEST

START_TEST(duplicates_and_k_equal_n)
{
    static const double same[6] = {1.0, 1.0, 1.0, 1.0, 1.0, 1.0};
    uint32_t cluster[6];
    double inertia;
    ck_assert_int_eq(kedge_kmeans(same, 6, 1, 4, &usual, cluster, &inertia), KEDGE_OK);
    uint32_t seen = 0;
    for (int i = 0; i < 6; i++) {
        ck_assert_uint_lt(cluster[i], 4);
        seen |= 1u << cluster[i];
    }
    ck_assert_uint_eq(seen, 15); /* no cluster is empty */
    ck_assert(inertia == 0.0);
    static const double apart[3] = {3.0, 1.0, 2.0};
    ck_assert_int_eq(kedge_kmeans(apart, 3, 1, 3, &usual, cluster, &inertia), KEDGE_OK);
    ck_assert(cluster[0] == 0 && cluster[1] == 1 && cluster[2] == 2 && inertia == 0.0);
    ck_assert_int_eq(kedge_kmeans(apart, 3, 1, 1, &usual, cluster, NULL), KEDGE_OK);
    ck_assert(cluster[0] == 0 && cluster[1] == 0 && cluster[2] == 0);
}
END_TEST

START_TEST(failures)
{
    double x[4] = {0.0, 1.0, 2.0, (double)INFINITY};
    uint32_t cluster[4] = {8, 8, 8, 8};
    struct kedge_kmeans_params params = usual;
    ck_assert_int_eq(kedge_kmeans(x, 4, 1, 2, &params, cluster, NULL), KEDGE_E_NOT_FINITE);
    ck_assert_int_eq(kedge_kmeans(x, 3, 1, 4, &params, cluster, NULL), KEDGE_E_ARG);
    ck_assert_int_eq(kedge_kmeans(x, 3, 1, 0, &params, cluster, NULL), KEDGE_E_ARG);
    ck_assert_int_eq(kedge_kmeans(x, 3, 0, 1, &params, cluster, NULL), KEDGE_E_ARG);
    params.restarts = 0;
    ck_assert_int_eq(kedge_kmeans(x, 3, 1, 2, &params, cluster, NULL), KEDGE_E_ARG);
    params = usual;
    params.iterations_max = 0;
    ck_assert_int_eq(kedge_kmeans(x, 3, 1, 2, &params, cluster, NULL), KEDGE_E_ARG);
    for (long nth = 1; nth <= 4; nth++) {
        kedge_mem_fail_at(nth);
        ck_assert_int_eq(kedge_kmeans(x, 3, 1, 2, &usual, cluster, NULL), KEDGE_E_NOMEM);
    }
    kedge_mem_fail_at(0);
    ck_assert_uint_eq(cluster[0], 8);
}
END_TEST

START_TEST(rand_index)
{
    static const uint32_t a[] = {0, 0, 1, 1, 2, 2};
    static const uint32_t renamed[] = {7, 7, 3, 3, 5, 5};
    static const uint32_t other[] = {0, 1, 0, 1, 0, 1};
    static const uint32_t merged[] = {0, 0, 1, 1, 1, 1};
    static const uint32_t one[] = {0, 0, 0, 0, 0, 0};
    ck_assert(kedge_rand_adjusted(a, renamed, 6) == 1.0);
    ck_assert(kedge_rand_adjusted(one, one, 6) == 1.0);
    ck_assert(kedge_rand_adjusted(a, one, 6) == 0.0);
    ck_assert(kedge_rand_adjusted(a, other, 6) < 0.0);
    /* pairs: together 3, only merged 4, apart 8: 2 * (3 * 8) / (3 * 8 + 7 * 12) = 4 / 9 */
    ck_assert(fabs(kedge_rand_adjusted(a, merged, 6) - 4.0 / 9.0) < 1e-15);
    ck_assert(kedge_rand_adjusted(a, one, 1) == 1.0);
    ck_assert(kedge_rand_adjusted(NULL, NULL, 0) == 1.0);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {separate_blobs,
                                  finds_the_optimum_of_small_sets,
                                  duplicates_and_k_equal_n,
                                  failures,
                                  rand_index,
                                  NULL};
    return run_tests("aggregation/kmeans", tests);
}
