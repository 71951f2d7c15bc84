/* Grouping: sorting makes the order of arrival irrelevant, sizes of updates do not matter to the
 * unit-norm variant, a flipped eigenvector changes no distance, the result agrees with plain arithmetic
 * on the vectors themselves. */
#include <math.h>

#include "grouping/eigen.h"
#include "grouping/flexcfl.h"
#include "grouping/kmeans.h"
#include "sim/learn/rand_index.h"
#include "tests/fixtures/whole_updates.h"
#include "tests/unit/aggregation/support.h"

enum { N_MAX = 40, D = 700, SEEDS = 25 };

struct site {
    uint32_t id;
    uint32_t truth;
    int32_t values[D];
};

struct outcome {
    uint32_t group[N_MAX];
    double eigenvalues[N_MAX];
    double embedding[N_MAX * KEDGE_GROUPS_MAX];
};

static struct site sites[N_MAX];

static size_t plant(struct kedge_rng *rng, size_t m)
{
    static int32_t direction[KEDGE_GROUPS_MAX][D];
    const size_t n = 3 * m + (size_t)kedge_rng_below(rng, N_MAX - 3 * m);
    for (size_t j = 0; j < m; j++) {
        fill_ints(rng, direction[j], D, 1000);
    }
    for (size_t i = 0; i < n; i++) {
        sites[i].id = (uint32_t)i;
        sites[i].truth = (uint32_t)(i % m);
        int32_t size = 1 + (int32_t)kedge_rng_below(rng, 500);
        for (size_t k = 0; k < D; k++) {
            sites[i].values[k] = size * (direction[i % m][k] + draw_int(rng, 700));
        }
    }
    return n;
}

static void run(const struct site *const *order, size_t n, const struct kedge_flexcfl_params *params,
                struct outcome *outcome)
{
    const int32_t *pointers[N_MAX];
    for (size_t i = 0; i < n; i++) {
        pointers[i] = order[i]->values;
    }
    memset(outcome, 0, sizeof *outcome);
    struct kedge_flexcfl_result r = {
        .group = outcome->group, .eigenvalues = outcome->eigenvalues, .embedding = outcome->embedding};
    ck_assert_int_eq(group_of(pointers, n, D, params, &r), KEDGE_OK);
    ck_assert(params->choose != KEDGE_CHOOSE_FIXED || r.groups == params->groups);
}

static int compare_sites(const void *a, const void *b)
{
    const struct site *x = *(const struct site *const *)a;
    const struct site *y = *(const struct site *const *)b;
    return (x->id > y->id) - (x->id < y->id);
}

START_TEST(order_of_arrival_does_not_matter)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct kedge_rng rng = new_stream(seed);
        const size_t m = 2 + (size_t)kedge_rng_below(&rng, 5);
        const size_t n = plant(&rng, m);
        const bool choose = seed % 2; /* then the number is to be found too */
        const struct kedge_flexcfl_params params = {.groups = choose ? m + 3 : m,
                                                    .groups_min = choose,
                                                    .choose =
                                                        choose ? KEDGE_CHOOSE_SILHOUETTE : KEDGE_CHOOSE_FIXED,
                                                    .edc = seed % 4 == 3 ? KEDGE_EDC_MADC : KEDGE_EDC_UNIT,
                                                    .seed = seed};
        const struct site *order[N_MAX];
        uint32_t truth[N_MAX];
        for (size_t i = 0; i < n; i++) {
            order[i] = &sites[i];
            truth[i] = sites[i].truth;
        }
        struct outcome first;
        run(order, n, &params, &first);
        ck_assert(kedge_rand_adjusted(truth, first.group, n) == 1.0);
        for (int turn = 0; turn < 3; turn++) {
            for (size_t i = 0; i < n; i++) { /* arrive in any order */
                size_t j = i + (size_t)kedge_rng_below(&rng, n - i);
                const struct site *keep = order[i];
                order[i] = order[j];
                order[j] = keep;
            }
            struct outcome other;
            run(order, n, &params, &other); /* unsorted: the same partition, perhaps other bits */
            for (size_t i = 0; i < n; i++) {
                truth[i] = order[i]->truth;
            }
            ck_assert(kedge_rand_adjusted(truth, other.group, n) == 1.0);
            qsort(order, n, sizeof *order, compare_sites);
            run(order, n, &params, &other);
            ck_assert_mem_eq(&other, &first, sizeof first);
        }
    }
}
END_TEST

/* Doubling, or any exact multiple, gives the same bits under unit norm. */
START_TEST(size_of_updates_does_not_matter)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct kedge_rng rng = new_stream(100 + seed);
        const size_t n = plant(&rng, 3);
        const struct kedge_flexcfl_params params = {.groups = 3, .seed = seed};
        const struct site *order[N_MAX];
        for (size_t i = 0; i < n; i++) {
            order[i] = &sites[i];
        }
        struct outcome before;
        struct outcome after;
        run(order, n, &params, &before);
        for (size_t i = 0; i < n; i++) {
            int32_t factor = 1 + (int32_t)kedge_rng_below(&rng, 1000);
            for (size_t k = 0; k < D; k++) {
                sites[i].values[k] *= factor;
            }
        }
        run(order, n, &params, &after);
        ck_assert_mem_eq(&before, &after, sizeof before);
    }
}
END_TEST

static double distance(const double *a, const double *b, size_t dims)
{
    double sum = 0.0;
    for (size_t k = 0; k < dims; k++) {
        sum += (a[k] - b[k]) * (a[k] - b[k]);
    }
    return sum;
}

/* Mirroring axes of the embedding changes no squared distance by a bit, hence no clustering. */
START_TEST(signs_do_not_matter)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct kedge_rng rng = new_stream(200 + seed);
        enum { M = 5 };
        const size_t n = plant(&rng, M);
        const struct kedge_flexcfl_params params = {.groups = M, .seed = seed};
        const struct site *order[N_MAX];
        for (size_t i = 0; i < n; i++) {
            order[i] = &sites[i];
        }
        struct outcome a;
        run(order, n, &params, &a);
        double mirrored[N_MAX * M];
        for (size_t i = 0; i < n * M; i++) {
            mirrored[i] = (seed >> (i % M) & 1) != 0 ? -a.embedding[i] : a.embedding[i];
        }
        for (size_t i = 0; i < n; i++) {
            for (size_t j = 0; j < n; j++) {
                double plain = distance(a.embedding + i * M, a.embedding + j * M, M);
                ck_assert(plain == distance(mirrored + i * M, mirrored + j * M, M));
            }
        }
        uint32_t group[N_MAX];
        const struct kedge_kmeans_params kmeans = {
            .seed = seed, .restarts = KEDGE_KMEANS_RESTARTS, .iterations_max = KEDGE_KMEANS_ITERATIONS};
        ck_assert_int_eq(kedge_kmeans(mirrored, n, M, M, &kmeans, group, NULL), KEDGE_OK);
        ck_assert_mem_eq(group, a.group, n * sizeof *group);
    }
}
END_TEST

/* The decomposition itself: e_i[k] must equal the cosine of update i with u_k = (sum_i v_k[i] x_i) /
 * sqrt(lambda_k), the k-th left singular vector written out in full length. */
START_TEST(equals_direct_decomposition)
{
    enum { M = 4 };
    struct kedge_rng rng = new_stream(300);
    const size_t n = plant(&rng, M);
    const struct kedge_flexcfl_params params = {.groups = M, .seed = 1};
    const struct site *order[N_MAX];
    static double unit[N_MAX][D];
    for (size_t i = 0; i < n; i++) {
        order[i] = &sites[i];
        int16_t scaled[D];
        kedge_scale12(sites[i].values, D, kedge_max_abs(sites[i].values, D, 0), scaled);
        double sum = 0.0;
        for (size_t k = 0; k < D; k++) {
            sum += (double)scaled[k] * (double)scaled[k];
        }
        for (size_t k = 0; k < D; k++) {
            unit[i][k] = (double)scaled[k] / sqrt(sum);
        }
    }
    struct outcome a;
    run(order, n, &params, &a);
    for (size_t k = 0; k < M; k++) {
        double u[D] = {0};
        double length = 0.0;
        for (size_t c = 0; c < D; c++) {
            for (size_t i = 0; i < n; i++) {
                /* v_k[i] = e_i[k] / sqrt(lambda_k) */
                u[c] += (a.embedding[i * M + k] / a.eigenvalues[k]) * unit[i][c];
            }
            length += u[c] * u[c];
        }
        ck_assert(fabs(length - 1.0) < 1e-10);
        for (size_t i = 0; i < n; i++) {
            double cosine = 0.0;
            for (size_t c = 0; c < D; c++) {
                cosine += u[c] * unit[i][c];
            }
            ck_assert(fabs(cosine - a.embedding[i * M + k]) < 1e-10);
        }
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {order_of_arrival_does_not_matter, size_of_updates_does_not_matter,
                                  signs_do_not_matter, equals_direct_decomposition, NULL};
    return run_tests("property/aggregation/grouping", tests);
}
