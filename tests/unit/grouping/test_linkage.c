#include "grouping/linkage.h"

#include <math.h>

#include "grouping/distance.h"
#include "tests/unit/aggregation/support.h"

enum { N = 24 };

/* From the definition: distances between clusters from those between their points, every time. */
static double naive_distance(const double *d, size_t n, const uint32_t *of, uint32_t a, uint32_t b,
                             enum kedge_linkage linkage)
{
    double most = -1.0, least = INFINITY, sum = 0.0, pairs = 0.0;
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < n; j++) {
            if (of[i] == a && of[j] == b) {
                double x = d[i < j ? i * n + j : j * n + i];
                most = x > most ? x : most;
                least = x < least ? x : least;
                sum += x;
                pairs += 1.0;
            }
        }
    }
    return linkage == KEDGE_LINKAGE_COMPLETE ? most : linkage == KEDGE_LINKAGE_SINGLE ? least : sum / pairs;
}

static size_t naive(const double *d, size_t n, enum kedge_linkage linkage,
                    const struct kedge_linkage_cut *cut, uint32_t *cluster)
{
    uint32_t of[N]; /* by first member */
    size_t left = n;
    for (size_t i = 0; i < n; i++) {
        of[i] = (uint32_t)i;
    }
    while (left > cut->least) {
        uint32_t best_a = 0, best_b = 0;
        double best = INFINITY;
        for (uint32_t a = 0; a < n; a++) {
            for (uint32_t b = a + 1; b < n && of[a] == a; b++) {
                double x = of[b] == b ? naive_distance(d, n, of, a, b, linkage) : INFINITY;
                if (x < best) {
                    best = x;
                    best_a = a;
                    best_b = b;
                }
            }
        }
        if (left <= cut->most && best > cut->cut) {
            break;
        }
        for (size_t i = 0; i < n; i++) {
            of[i] = of[i] == best_b ? best_a : of[i];
        }
        left--;
    }
    uint32_t next = 0;
    for (size_t i = 0; i < n; i++) {
        cluster[i] = of[i] == i ? next++ : cluster[of[i]];
    }
    return left;
}

static void compare(const double *d, size_t n, enum kedge_linkage linkage,
                    const struct kedge_linkage_cut *cut)
{
    uint32_t want[N], got[N];
    size_t clusters = 0;
    size_t left = naive(d, n, linkage, cut, want);
    ck_assert_int_eq(kedge_linkage(d, n, linkage, cut, got, &clusters), KEDGE_OK);
    ck_assert_uint_eq(clusters, left);
    ck_assert_mem_eq(got, want, n * sizeof *want);
}

START_TEST(equals_the_definition)
{
    double d[N * N];
    for (uint64_t seed = 0; seed < 100; seed++) {
        struct kedge_rng rng = new_stream(seed);
        const size_t n = 1 + (size_t)kedge_rng_below(&rng, N);
        for (int linkage = KEDGE_LINKAGE_COMPLETE; linkage <= KEDGE_LINKAGE_SINGLE; linkage++) {
            bool ties = linkage != KEDGE_LINKAGE_AVERAGE && seed % 2 == 0; /* means of ties round */
            for (size_t i = 0; i < n * n; i++) {
                d[i] = ties ? (double)kedge_rng_below(&rng, 5) : kedge_rng_unit(&rng);
            }
            size_t least = 1 + (size_t)kedge_rng_below(&rng, n);
            size_t most = least + (size_t)kedge_rng_below(&rng, n);
            const struct kedge_linkage_cut cut = {
                .least = least, .most = most, .cut = ties ? 2.0 : kedge_rng_unit(&rng)};
            compare(d, n, (enum kedge_linkage)linkage, &cut);
        }
    }
}
END_TEST

START_TEST(ties_go_to_the_first)
{
    /* a square: four sides of length 1 */
    const double d[16] = {0, 1, 2, 1, 1, 0, 1, 2, 2, 1, 0, 1, 1, 2, 1, 0};
    static const uint32_t two[4] = {0, 0, 1, 1}, all[4] = {0, 0, 0, 0}, none[4] = {0, 1, 2, 3};
    uint32_t cluster[4];
    size_t clusters = 0;
    struct kedge_linkage_cut cut = {.least = 2, .most = 2};
    ck_assert_int_eq(kedge_linkage(d, 4, KEDGE_LINKAGE_COMPLETE, &cut, cluster, &clusters), KEDGE_OK);
    ck_assert_mem_eq(cluster, two, sizeof two);
    cut = (struct kedge_linkage_cut){.least = 1, .most = 4, .cut = 1.0};
    ck_assert_int_eq(kedge_linkage(d, 4, KEDGE_LINKAGE_COMPLETE, &cut, cluster, &clusters), KEDGE_OK);
    ck_assert_mem_eq(cluster, two,
                     sizeof two); /* the cut itself still joins, complete stops at the diagonal */
    ck_assert_int_eq(kedge_linkage(d, 4, KEDGE_LINKAGE_SINGLE, &cut, cluster, &clusters), KEDGE_OK);
    ck_assert_mem_eq(cluster, all, sizeof all);
    ck_assert_uint_eq(clusters, 1);
    cut.cut = 0.5;
    ck_assert_int_eq(kedge_linkage(d, 4, KEDGE_LINKAGE_SINGLE, &cut, cluster, &clusters), KEDGE_OK);
    ck_assert_mem_eq(cluster, none, sizeof none);
    /* 1 and 3 join; then 0 is as far from them as from 2, and they come first */
    const double late[16] = {0, 3, 2, 2, 3, 0, 5, 1, 2, 5, 0, 5, 2, 1, 5, 0};
    static const uint32_t first[4] = {0, 0, 1, 0};
    cut = (struct kedge_linkage_cut){.least = 2, .most = 2};
    ck_assert_int_eq(kedge_linkage(late, 4, KEDGE_LINKAGE_SINGLE, &cut, cluster, &clusters), KEDGE_OK);
    ck_assert_mem_eq(cluster, first, sizeof first);
    cut = (struct kedge_linkage_cut){.least = 1, .most = 4, .cut = 0.5};
    cut.most = 3;
    ck_assert_int_eq(kedge_linkage(d, 4, KEDGE_LINKAGE_SINGLE, &cut, cluster, &clusters), KEDGE_OK);
    ck_assert_uint_eq(clusters, 3);
}
END_TEST

START_TEST(bad_arguments)
{
    double d[4] = {0, NAN, 0, 0};
    uint32_t cluster[2] = {7, 7};
    size_t clusters = 9;
    struct kedge_linkage_cut cut = {.least = 1, .most = 1};
    ck_assert_int_eq(kedge_linkage(d, 2, KEDGE_LINKAGE_SINGLE, &cut, cluster, &clusters), KEDGE_E_NOT_FINITE);
    d[1] = 1.0;
    d[2] = NAN; /* the lower triangle is not read */
    ck_assert_int_eq(kedge_linkage(d, 2, KEDGE_LINKAGE_SINGLE, &cut, cluster, &clusters), KEDGE_OK);
    ck_assert_uint_eq(clusters, 1);
    ck_assert_int_eq(kedge_linkage(d, 0, KEDGE_LINKAGE_SINGLE, &cut, cluster, &clusters), KEDGE_E_ARG);
    cut.least = 2;
    ck_assert_int_eq(kedge_linkage(d, 2, KEDGE_LINKAGE_SINGLE, &cut, cluster, &clusters), KEDGE_E_ARG);
    cut = (struct kedge_linkage_cut){.least = 1, .most = 2, .cut = NAN};
    ck_assert_int_eq(kedge_linkage(d, 2, KEDGE_LINKAGE_SINGLE, &cut, cluster, &clusters), KEDGE_E_ARG);
    cut.cut = 0;
    for (long nth = 1; nth <= 4; nth++) {
        kedge_mem_fail_at(nth);
        ck_assert_int_eq(kedge_linkage(d, 2, KEDGE_LINKAGE_SINGLE, &cut, cluster, &clusters), KEDGE_E_NOMEM);
    }
    kedge_mem_fail_at(0);
}
END_TEST

/* Four updates: C = 1 .8 .2 0 / .8 1 .3 .1 / .2 .3 1 .9 / 0 .1 .9 1 */
START_TEST(distances_by_hand)
{
    const double c[16] = {1, .8, .2, 0, .8, 1, .3, .1, .2, .3, 1, .9, 0, .1, .9, 1};
    double d[16];
    kedge_distance_madc(c, 4, d);
    ck_assert(fabs(d[0 * 4 + 1] - (0.1 + 0.1) / 2) < 1e-15);
    ck_assert(fabs(d[0 * 4 + 2] - (0.5 + 0.9) / 2) < 1e-15);
    ck_assert(fabs(d[3 * 4 + 2] - (0.2 + 0.2) / 2) < 1e-15);
    ck_assert(d[2 * 4 + 0] == d[0 * 4 + 2] && d[5] == 0.0);
    kedge_distance_madc(c, 2, d); /* rows of two: {1, .8}, {.2, 0} */
    ck_assert(fabs(d[1] - 0.2) < 1e-15);
    kedge_distance_cosine(c, 4, d);
    ck_assert(fabs(d[3] - 1.0) < 1e-15 && fabs(d[4] - 0.2) < 1e-15);
    const double over[4] = {1, 1 + 0x1p-50, 1, 1};
    kedge_distance_cosine(over, 2, d);
    ck_assert(d[1] == 0.0);
    const double points[6] = {0, 0, 3, 4, 6, 8};
    kedge_distance_points(points, 3, 2, d);
    ck_assert(d[1] == 5.0 && d[2] == 10.0 && d[7] == 5.0);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {equals_the_definition, ties_go_to_the_first, bad_arguments,
                                  distances_by_hand, NULL};
    return run_tests("grouping/linkage", tests);
}
