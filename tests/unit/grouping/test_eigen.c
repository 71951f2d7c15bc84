#include "grouping/eigen.h"

#include <math.h>

#include "tests/unit/aggregation/support.h"

static const uint64_t golden = UINT64_C(1370919906787088900);

enum { N_MAX = 64 };

static double matrix[N_MAX * N_MAX];
static double copy[N_MAX * N_MAX];
static double values[N_MAX];
static double vectors[N_MAX * N_MAX];

static void fill_symmetric(size_t n, uint64_t seed)
{
    struct kedge_rng rng = new_stream(seed);
    for (size_t i = 0; i < n; i++) {
        for (size_t j = i; j < n; j++) {
            matrix[i * n + j] = 2.0 * kedge_rng_unit(&rng) - 1.0;
            matrix[j * n + i] = matrix[i * n + j];
        }
    }
    memcpy(copy, matrix, n * n * sizeof *copy);
}

/* Largest entry of A v - lambda v and of V V' - 1. */
static double measure_residual(const double *a, size_t n)
{
    double worst = 0.0;
    for (size_t k = 0; k < n; k++) {
        const double *v = vectors + k * n;
        for (size_t i = 0; i < n; i++) {
            double image = 0.0;
            double dot = 0.0;
            for (size_t j = 0; j < n; j++) {
                image += a[i * n + j] * v[j];
                dot += vectors[i * n + j] * v[j];
            }
            worst = fmax(worst, fabs(image - values[k] * v[i]));
            worst = fmax(worst, fabs(dot - (i == k ? 1.0 : 0.0)));
        }
    }
    return worst;
}

START_TEST(known_pairs)
{
    double a[4] = {2.0, 1.0, 1.0, 2.0}; /* 3 with (1, 1), 1 with (1, -1), each over sqrt 2 */
    ck_assert_int_eq(kedge_eigen_symmetric(a, 2, values, vectors), KEDGE_OK);
    ck_assert(fabs(values[0] - 3.0) < 1e-15 && fabs(values[1] - 1.0) < 1e-15);
    const double h = sqrt(0.5);
    ck_assert(fabs(vectors[0] - h) < 1e-15 && fabs(vectors[1] - h) < 1e-15);
    ck_assert(fabs(fabs(vectors[2]) - h) < 1e-15 && fabs(vectors[2] + vectors[3]) < 1e-15);
    double one[1] = {-5.0};
    ck_assert_int_eq(kedge_eigen_symmetric(one, 1, values, vectors), KEDGE_OK);
    ck_assert(values[0] == -5.0 && vectors[0] == 1.0);
    ck_assert_int_eq(kedge_eigen_symmetric(one, 0, values, vectors), KEDGE_OK);
}
END_TEST

START_TEST(ties_keep_their_order)
{
    double a[9] = {2.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 5.0};
    ck_assert_int_eq(kedge_eigen_symmetric(a, 3, values, vectors), KEDGE_OK);
    static const double expect_values[3] = {5.0, 2.0, 2.0};
    static const double expect[9] = {0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0};
    for (int i = 0; i < 9; i++) {
        ck_assert(vectors[i] == expect[i]);
        ck_assert(values[i / 3] == expect_values[i / 3]);
    }
}
END_TEST

START_TEST(residuals)
{
    static const size_t sizes[] = {2, 3, 5, 17, 60, 64};
    uint64_t hash = FNV_START;
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        const size_t n = sizes[s];
        fill_symmetric(n, s);
        ck_assert_int_eq(kedge_eigen_symmetric(matrix, n, values, vectors), KEDGE_OK);
        ck_assert(measure_residual(copy, n) < 1e-13);
        for (size_t k = 0; k < n; k++) {
            ck_assert(k == 0 || values[k] <= values[k - 1]);
            double top = 0.0;
            for (size_t j = 0; j < n; j++) {
                top = fabs(vectors[k * n + j]) > fabs(top) ? vectors[k * n + j] : top;
            }
            ck_assert(top > 0.0);
        }
        hash = fnv(hash, values, n * sizeof *values);
        hash = fnv(hash, vectors, n * n * sizeof *vectors);
        copy[1] += 0.01; /* the measure would notice another matrix */
        ck_assert(measure_residual(copy, n) > 1e-4);
    }
    ck_assert_uint_eq(hash, golden);
}
END_TEST

START_TEST(low_rank_and_scales)
{
    static const double scales[] = {1e-120, 1.0, 1e120};
    const size_t n = 40;
    for (size_t s = 0; s < 3; s++) {
        struct kedge_rng rng = new_stream(9);
        double x[2][40];
        for (size_t i = 0; i < n; i++) {
            x[0][i] = kedge_rng_unit(&rng);
            x[1][i] = kedge_rng_unit(&rng);
        }
        for (size_t i = 0; i < n; i++) {
            for (size_t j = 0; j < n; j++) {
                matrix[i * n + j] = scales[s] * (x[0][i] * x[0][j] + x[1][i] * x[1][j]);
                copy[i * n + j] = matrix[i * n + j] / scales[s];
            }
        }
        ck_assert_int_eq(kedge_eigen_symmetric(matrix, n, values, vectors), KEDGE_OK);
        for (size_t k = 0; k < n; k++) {
            values[k] /= scales[s];
            ck_assert(k < 2 ? values[k] > 0.1 : fabs(values[k]) < 1e-13);
        }
        ck_assert(measure_residual(copy, n) < 1e-12);
    }
}
END_TEST

/* Only the upper triangle counts. */
START_TEST(reads_the_upper_triangle)
{
    fill_symmetric(12, 4);
    ck_assert_int_eq(kedge_eigen_symmetric(matrix, 12, values, vectors), KEDGE_OK);
    uint64_t hash = fnv(fnv(FNV_START, values, 12 * sizeof *values), vectors, 144 * sizeof *vectors);
    fill_symmetric(12, 4);
    for (size_t i = 0; i < 12; i++) {
        for (size_t j = 0; j < i; j++) {
            matrix[i * 12 + j] = (double)NAN;
        }
    }
    ck_assert_int_eq(kedge_eigen_symmetric(matrix, 12, values, vectors), KEDGE_OK);
    ck_assert_uint_eq(fnv(fnv(FNV_START, values, 12 * sizeof *values), vectors, 144 * sizeof *vectors), hash);
}
END_TEST

START_TEST(failures)
{
    double a[4] = {1.0, (double)NAN, 0.0, 1.0};
    double out[4] = {7.0, 7.0, 7.0, 7.0};
    ck_assert_int_eq(kedge_eigen_symmetric(a, 2, out, out), KEDGE_E_NOT_FINITE);
    double huge[4] = {1e200, 0.0, 0.0, 1.0};
    ck_assert_int_eq(kedge_eigen_symmetric(huge, 2, out, out), KEDGE_E_NOT_FINITE);
    double fine[4] = {1.0, 0.0, 0.0, 1.0};
    kedge_mem_fail_at(1);
    ck_assert_int_eq(kedge_eigen_symmetric(fine, 2, out, out), KEDGE_E_NOMEM);
    kedge_mem_fail_at(0);
    ck_assert(out[0] == 7.0 && out[3] == 7.0);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {known_pairs,
                                  ties_keep_their_order,
                                  residuals,
                                  low_rank_and_scales,
                                  reads_the_upper_triangle,
                                  failures,
                                  NULL};
    return run_tests("aggregation/eigen", tests);
}
