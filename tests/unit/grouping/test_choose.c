/* The number of groups, found; MADC; the noisy planted set. */
#include <math.h>

#include "grouping/flexcfl.h"
#include "grouping/kmeans.h"
#include "sim/learn/rand_index.h"
#include "tests/fixtures/whole_updates.h"
#include "tests/unit/aggregation/support.h"

enum { N = 60, D = 1000, MOST = 12 };

static const uint64_t golden_silhouette = UINT64_C(4135640838826448553);
static const uint64_t golden_madc = UINT64_C(6818201755809492880);

static int32_t updates[N][D];
static const int32_t *pointers[N];
static uint32_t truth[N], group[N];
static double eigenvalues[N], embedding[N * KEDGE_GROUPS_MAX];

/* groups random directions of length 1,000 per value, noise per value uniform up to `noise`, sizes 1…200. */
static void plant(uint64_t seed, size_t groups, int32_t noise)
{
    static int32_t direction[MOST][D];
    struct kedge_rng rng = new_stream(seed);
    for (size_t j = 0; j < groups; j++) {
        fill_ints(&rng, direction[j], D, 1000);
    }
    for (size_t i = 0; i < N; i++) {
        truth[i] = (uint32_t)(i % groups);
        int32_t size = 1 + (int32_t)kedge_rng_below(&rng, 200);
        for (size_t k = 0; k < D; k++) {
            updates[i][k] = size * (direction[truth[i]][k] + draw_int(&rng, noise));
        }
        pointers[i] = updates[i];
    }
}

static struct kedge_flexcfl_result find(const struct kedge_flexcfl_params *params)
{
    struct kedge_flexcfl_result r = {.group = group, .eigenvalues = eigenvalues, .embedding = embedding};
    ck_assert_int_eq(group_of(pointers, N, D, params, &r), KEDGE_OK);
    return r;
}

static uint64_t check_found(struct kedge_flexcfl_params params, int32_t noise, double rand_least)
{
    uint64_t hash = FNV_START;
    for (uint64_t seed = 0; seed < 6; seed++) {
        const size_t groups = 2 + (size_t)seed * 2 - (seed > 2); /* 2 4 6 7 9 11 */
        plant(seed, groups, noise);
        params.seed = seed;
        struct kedge_flexcfl_result r = find(&params);
        ck_assert_uint_eq(r.groups, groups);
        ck_assert(kedge_rand_adjusted(truth, group, N) >= rand_least);
        ck_assert(r.silhouette > 0.05 && r.silhouette <= 1.0);
        ck_assert(r.eigengap > 0.0);
        hash = fnv(fnv(hash, group, sizeof group), &r.silhouette, sizeof r.silhouette);
    }
    return hash;
}

static const struct kedge_flexcfl_params by_silhouette = {
    .groups = MOST, .groups_min = 2, .choose = KEDGE_CHOOSE_SILHOUETTE};

START_TEST(the_number_is_found)
{
    struct kedge_flexcfl_params p = by_silhouette;
    uint64_t hash = check_found(p, 1000, 1.0);
    ck_assert_uint_eq(hash, golden_silhouette);
    p.groups_min = 1;
    (void)check_found(p, 1000, 1.0);
    p.edc = KEDGE_EDC_MADC;
    hash = check_found(p, 1000, 1.0);
    ck_assert_uint_eq(hash, golden_madc);
    p.edc = KEDGE_EDC_UNIT;
    p.choose = KEDGE_CHOOSE_GAP;
    for (uint64_t seed = 0; seed < 3; seed++) {
        plant(seed, 2 + seed, 700);
        struct kedge_flexcfl_result r = find(&p);
        ck_assert_uint_eq(r.groups, 2 + seed);
        ck_assert(kedge_rand_adjusted(truth, group, N) == 1.0);
    }
}
END_TEST

/* Noise of three times the signal's length: cosines of 0.1 within a group. */
START_TEST(noisy_groups_are_found)
{
    (void)check_found(by_silhouette, 2500, 0.95);
}
END_TEST

START_TEST(no_structure_is_one_group)
{
    struct kedge_flexcfl_params p = by_silhouette;
    p.groups_min = 1;
    for (uint64_t seed = 0; seed < 6; seed++) {
        plant(seed, 1, seed % 2 ? 1000 : 30000); /* one direction, or nothing but noise */
        p.seed = seed;
        p.edc = seed < 3 ? KEDGE_EDC_UNIT : KEDGE_EDC_MADC;
        struct kedge_flexcfl_result r = find(&p);
        ck_assert_uint_eq(r.groups, 1);
        ck_assert(r.silhouette == 0.0);
    }
}
END_TEST

START_TEST(bounds_and_edges)
{
    struct kedge_flexcfl_params p = by_silhouette;
    plant(1, 6, 500);
    p.groups = 4;
    ck_assert_uint_eq(find(&p).groups, 4);
    p.groups = MOST;
    p.groups_min = 8;
    ck_assert_uint_eq(find(&p).groups, 8);
    p.groups_min = MOST;
    ck_assert_uint_eq(find(&p).groups, MOST);
    struct kedge_flexcfl_result r = {.group = group, .eigenvalues = eigenvalues, .embedding = embedding};
    p.groups_min = 2;
    ck_assert_int_eq(group_of(pointers, 1, D, &p, &r), KEDGE_OK); /* n < least */
    ck_assert_uint_eq(r.groups, 1);
    ck_assert_int_eq(group_of(pointers, 3, D, &p, &r), KEDGE_OK);
    ck_assert_uint_le(r.groups, 3);
    const struct kedge_flexcfl_params bad[] = {
        {.groups = 4, .choose = KEDGE_CHOOSE_SILHOUETTE},
        {.groups = 4, .groups_min = 5, .choose = KEDGE_CHOOSE_GAP},
        {.groups = 4, .groups_min = 2, .choose = KEDGE_CHOOSE_GAP, .edc = KEDGE_EDC_MADC},
        {.groups = 4, .edc = (enum kedge_edc)3},
        {.groups = 4, .choose = (enum kedge_choose)3, .groups_min = 1},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ck_assert_int_eq(group_of(pointers, N, D, &bad[i], &r), KEDGE_E_ARG);
    }
    double weight[N] = {0};
    struct kedge_flexcfl_params weighted = {.groups = 4, .weight = weight};
    ck_assert_int_eq(group_of(pointers, N, D, &weighted, &r), KEDGE_E_ARG);
    for (size_t i = 0; i < N; i++) {
        weight[i] = 1.0;
    }
    weighted.edc = KEDGE_EDC_MADC;
    ck_assert_int_eq(group_of(pointers, N, D, &weighted, &r), KEDGE_E_ARG);
    long nth = 1;
    int err;
    do {
        kedge_mem_fail_at(nth++);
        err = group_of(pointers, 8, D, &by_silhouette, &r);
    } while (err == KEDGE_E_NOMEM && nth < 300);
    kedge_mem_fail_at(0);
    ck_assert_int_eq(err, KEDGE_OK);
}
END_TEST

/* MADC with a fixed number, zero updates, and the order of arrival: linkage draws no random numbers, so
 * shuffled updates give the same partition. */
START_TEST(madc)
{
    struct kedge_flexcfl_params p = {.edc = KEDGE_EDC_MADC, .groups = 5};
    for (uint64_t seed = 0; seed < 5; seed++) {
        plant(20 + seed, 5, 1200);
        memset(updates[7], 0, sizeof updates[7]);
        struct kedge_rng rng = new_stream(seed);
        for (size_t i = 0; i < N; i++) {
            size_t j = i + (size_t)kedge_rng_below(&rng, N - i);
            const int32_t *keep = pointers[i];
            pointers[i] = pointers[j];
            pointers[j] = keep;
        }
        struct kedge_flexcfl_result r = find(&p);
        ck_assert_uint_eq(r.groups, 5);
        ck_assert_uint_eq(r.used, N - 1);
        ck_assert(r.inertia == 0.0);
        for (size_t i = 0; i < N; i++) {
            size_t which = (size_t)(pointers[i] - updates[0]) / D;
            truth[i] = which == 7 ? KEDGE_GROUP_NONE : (uint32_t)(which % 5);
            ck_assert((which == 7) == (group[i] == KEDGE_GROUP_NONE));
        }
        ck_assert(kedge_rand_adjusted(truth, group, N) == 1.0);
        ck_assert_uint_eq(group[pointers[0] == updates[7]], 0);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        the_number_is_found, noisy_groups_are_found, no_structure_is_one_group, bounds_and_edges, madc, NULL};
    return run_tests("grouping/choose", tests);
}
