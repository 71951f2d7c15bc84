#include "grouping/quality.h"

#include <math.h>

#include "grouping/distance.h"
#include "tests/unit/aggregation/support.h"

/* On a line: 0 1 | 4 6, and one alone at 20. */
START_TEST(silhouette_by_hand)
{
    const double x[5] = {0, 1, 4, 6, 20};
    double d[25];
    kedge_distance_points(x, 5, 1, d);
    const uint32_t cluster[5] = {0, 0, 1, 1, 2};
    double s0 = (5.0 - 1) / 5, s1 = (4.0 - 1) / 4, s2 = (3.5 - 2) / 3.5, s3 = (5.5 - 2) / 5.5;
    ck_assert(fabs(kedge_silhouette(d, 5, cluster, 3, NULL) - (s0 + s1 + s2 + s3) / 5) < 1e-15);
    const uint32_t one[5] = {0};
    ck_assert(kedge_silhouette(d, 5, one, 1, NULL) == 0.0);
    const uint32_t wrong[5] = {0, 1, 0, 1, 0};
    ck_assert(kedge_silhouette(d, 5, wrong, 2, NULL) < 0.0);
    const double same[4] = {0, 0, 0, 0}; /* all in one place: nothing is better than anything */
    const uint32_t halves[2] = {0, 1};
    ck_assert(kedge_silhouette(same, 2, halves, 2, NULL) == 0.0);
}
END_TEST

/* A point of weight 3 is three points. */
START_TEST(weights_are_copies)
{
    struct kedge_rng rng = new_stream(1);
    enum { N = 9, ALL = 18 };
    double x[N], w[N], copies[ALL], d[N * N], all[ALL * ALL];
    uint32_t cluster[N], copied[ALL];
    size_t n = 0;
    for (size_t i = 0; i < N; i++) {
        x[i] = kedge_rng_unit(&rng);
        cluster[i] = (uint32_t)(i % 3);
        w[i] = (double)(1 + i % 3);
        for (size_t k = 0; k < 1 + i % 3; k++, n++) {
            copies[n] = x[i];
            copied[n] = cluster[i];
        }
    }
    ck_assert_uint_eq(n, ALL);
    kedge_distance_points(x, N, 1, d);
    kedge_distance_points(copies, ALL, 1, all);
    /* a copy has itself for company, a weight has not: only b agrees. With ones both are the plain mean. */
    for (size_t i = 0; i < N; i++) {
        w[i] = 2.0;
    }
    ck_assert(fabs(kedge_silhouette(d, N, cluster, 3, w) - kedge_silhouette(d, N, cluster, 3, NULL)) < 1e-15);
    /* many sites of one tenant, each of a small weight, do not drown the others */
    double light[ALL];
    for (size_t i = 0; i < ALL; i++) {
        light[i] = 1e-6;
        copied[i] = (uint32_t)(i % 2);
    }
    for (size_t i = 0; i < 4; i++) {
        light[i] = 1.0;
        copies[i] = (double)(i % 2) * 10.0;
    }
    kedge_distance_points(copies, ALL, 1, all);
    ck_assert(kedge_silhouette(all, ALL, copied, 2, NULL) < 0.5);
    ck_assert(kedge_silhouette(all, ALL, copied, 2, light) > 0.99);
}
END_TEST

START_TEST(logarithm)
{
    ck_assert(kedge_natural_log(1.0) == 0.0);
    ck_assert(fabs(kedge_natural_log(2.718281828459045) - 1.0) < 1e-15);
    struct kedge_rng rng = new_stream(2);
    for (int i = 0; i < 20000; i++) {
        uint64_t bits = kedge_rng_u64(&rng) >> 1;
        double x;
        memcpy(&x, &bits, sizeof x);
        if (isfinite(x) && x > 0.0) {
            double want = log(x);
            ck_assert(fabs(kedge_natural_log(x) - want) <= 4e-16 * (fabs(want) > 1 ? fabs(want) : 1));
        }
        x = 0.5 + kedge_rng_unit(&rng);
        ck_assert(fabs(kedge_natural_log(x) - log(x)) <= 4e-16);
    }
    ck_assert(fabs(kedge_natural_log(0x1p-1074) + 744.44007192138126) < 1e-12);
}
END_TEST

/* Blobs: the gap says how many; a cloud without structure is one. */
START_TEST(gap_finds_the_number)
{
    enum { N = 60 };
    double points[N * 2];
    const struct kedge_kmeans_params params = {.seed = 7, .restarts = 5, .iterations_max = 20};
    for (size_t truth = 1; truth <= 3; truth++) {
        struct kedge_rng rng = new_stream(truth);
        for (size_t i = 0; i < N; i++) {
            points[2 * i] = kedge_rng_unit(&rng) + 5.0 * (double)(i % truth % 2);
            const size_t row = i % truth / 2;
            points[2 * i + 1] = kedge_rng_unit(&rng) + 5.0 * (double)row;
        }
        double gap = 0.0, next = 0.0, error = 0.0;
        size_t k = 1;
        ck_assert_int_eq(kedge_gap(points, N, 2, 1, &params, &gap, &error), KEDGE_OK);
        for (; k < 7; k++) {
            ck_assert_int_eq(kedge_gap(points, N, 2, k + 1, &params, &next, &error), KEDGE_OK);
            ck_assert(error > 0.0);
            if (gap >= next - error) {
                break;
            }
            gap = next;
        }
        ck_assert_uint_eq(k, truth);
    }
    double gap, error;
    ck_assert_int_eq(kedge_gap(points, 2, 2, 2, &params, &gap, &error), KEDGE_OK); /* inertia 0 everywhere */
    ck_assert_int_eq(kedge_gap(points, N, 2, N + 1, &params, &gap, &error), KEDGE_E_ARG);
    ck_assert_int_eq(kedge_gap(points, 0, 2, 1, &params, &gap, &error), KEDGE_E_ARG);
}
END_TEST

/* Weights of k-means: equal ones change nothing that matters, a heavy point is its cluster's centre. */
START_TEST(weights_of_kmeans)
{
    const double x[4] = {0, 1, 10, 11};
    const double w[4] = {1, 3, 1, 1}, bad[4] = {1, 0, 1, 1};
    uint32_t cluster[4];
    double inertia = 0.0;
    struct kedge_kmeans_params params = {.seed = 1, .restarts = 5, .iterations_max = 20, .weight = w};
    ck_assert_int_eq(kedge_kmeans(x, 4, 1, 2, &params, cluster, &inertia), KEDGE_OK);
    /* centres 3/4 and 10.5: 9/16 + 3/16 + 1/4 + 1/4 */
    ck_assert(fabs(inertia - 1.25) < 1e-15);
    ck_assert(cluster[0] == 0 && cluster[1] == 0 && cluster[2] == 1 && cluster[3] == 1);
    params.weight = bad;
    ck_assert_int_eq(kedge_kmeans(x, 4, 1, 2, &params, cluster, &inertia), KEDGE_E_ARG);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {silhouette_by_hand,   weights_are_copies, logarithm,
                                  gap_finds_the_number, weights_of_kmeans,  NULL};
    return run_tests("grouping/quality", tests);
}
