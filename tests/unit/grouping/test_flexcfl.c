#include "grouping/flexcfl.h"

#include <math.h>

#include "grouping/kmeans.h"
#include "sim/learn/rand_index.h"
#include "tests/fixtures/whole_updates.h"
#include "tests/unit/aggregation/support.h"

static const uint64_t golden = UINT64_C(15535411732646986622);

enum { N = 60, D = 2003, M = 4 };

static int32_t updates[N][D];
static const int32_t *pointers[N];
static uint32_t truth[N];
static uint32_t group[N];
static double eigenvalues[N];
static double embedding[N * KEDGE_GROUPS_MAX];

static const struct kedge_flexcfl_params usual = {.edc = KEDGE_EDC_UNIT, .groups = M, .seed = 2077};

/* M random directions, each update one of them times a size of its own, plus noise of the same length. */
static void plant(uint64_t seed, int32_t noise)
{
    static int32_t direction[M][D];
    struct kedge_rng rng = new_stream(seed);
    for (int j = 0; j < M; j++) {
        fill_ints(&rng, direction[j], D, 1000);
    }
    for (int i = 0; i < N; i++) {
        truth[i] = (uint32_t)kedge_rng_below(&rng, M);
        int32_t size = 1 + (int32_t)kedge_rng_below(&rng, 900);
        for (int k = 0; k < D; k++) {
            updates[i][k] = size * (direction[truth[i]][k] + draw_int(&rng, noise));
        }
        pointers[i] = updates[i];
    }
}

static struct kedge_flexcfl_result group_all(const struct kedge_flexcfl_params *params, int err)
{
    struct kedge_flexcfl_result r = {.group = group, .eigenvalues = eigenvalues, .embedding = embedding};
    ck_assert_int_eq(group_of(pointers, N, D, params, &r), err);
    return r;
}

START_TEST(planted_groups_are_found)
{
    uint64_t hash[KEDGE_SIMD_LAST + 1];
    start_hashes(hash);
    for (uint64_t seed = 0; seed < 5; seed++) {
        plant(seed, 1000);
        FOR_EACH_SIMD(simd)
        {
            struct kedge_flexcfl_result r = group_all(&usual, KEDGE_OK);
            ck_assert_uint_eq(r.groups, M);
            ck_assert_uint_eq(r.used, N);
            ck_assert(kedge_rand_adjusted(truth, group, N) == 1.0);
            ck_assert(eigenvalues[M - 1] > 2.0 * eigenvalues[M]); /* the gap says how many */
            hash[simd] = fnv(hash[simd], group, sizeof group);
            hash[simd] = fnv(hash[simd], eigenvalues, sizeof eigenvalues);
            hash[simd] = fnv(hash[simd], embedding, sizeof(double) * N * M);
        }
    }
    FOR_EACH_SIMD(simd)
    {
        ck_assert_uint_eq(hash[simd], golden);
    }
    plant(1, 1000); /* the measure can fail */
    truth[3] = (truth[3] + 1) % M;
    (void)group_all(&usual, KEDGE_OK);
    ck_assert(kedge_rand_adjusted(truth, group, N) < 1.0);
}
END_TEST

/* Plain EDC finds them too when sizes are alike; one huge update may spoil it, never the unit-norm
 * variant. */
START_TEST(plain_variant)
{
    struct kedge_flexcfl_params plain = usual;
    plain.edc = KEDGE_EDC_PLAIN;
    plant(3, 300);
    for (int i = 0; i < N; i++) {
        int32_t most = (int32_t)kedge_max_abs(updates[i], D, 0);
        for (int k = 0; k < D; k++) {
            updates[i][k] = (int32_t)((int64_t)updates[i][k] * 100000 / most);
        }
    }
    (void)group_all(&plain, KEDGE_OK);
    ck_assert(kedge_rand_adjusted(truth, group, N) == 1.0);
    for (int k = 0; k < D; k++) { /* its noise now outweighs everybody's signal */
        updates[0][k] = (k % 2 ? 1 : -1) * (1 << 29) + updates[0][k];
    }
    struct kedge_flexcfl_result r = group_all(&plain, KEDGE_OK);
    ck_assert(eigenvalues[0] > 1e3 * eigenvalues[1]);
    ck_assert_uint_eq(r.groups, M);
}
END_TEST

/* With as many components as updates, every e_i has length 1, in both variants. */
START_TEST(full_embedding_has_unit_rows)
{
    enum { FEW = 12 };
    for (int edc = KEDGE_EDC_UNIT; edc <= KEDGE_EDC_PLAIN; edc++) {
        plant(4, 2000);
        struct kedge_flexcfl_params params = usual;
        params.edc = (enum kedge_edc)edc;
        params.groups = FEW;
        struct kedge_flexcfl_result r = {.group = group, .eigenvalues = eigenvalues, .embedding = embedding};
        ck_assert_int_eq(group_of(pointers, FEW, D, &params, &r), KEDGE_OK);
        double trace = 0.0;
        for (int i = 0; i < FEW; i++) {
            double sum = 0.0;
            for (int k = 0; k < FEW; k++) {
                sum += embedding[i * FEW + k] * embedding[i * FEW + k];
            }
            ck_assert(fabs(sum - 1.0) < 1e-12);
            trace += eigenvalues[i];
        }
        ck_assert(edc == KEDGE_EDC_PLAIN || fabs(trace - FEW) < 1e-12);
        for (int i = 0; i < FEW; i++) { /* dot products of rows are the cosines */
            uint32_t maxima[FEW];
            int64_t gram[FEW * FEW];
            double cosine[FEW * FEW];
            ck_assert_int_eq(gram_of(pointers, FEW, D, maxima, gram), KEDGE_OK);
            kedge_gram_cosine(gram, FEW, cosine);
            double dot = 0.0;
            for (int k = 0; k < FEW; k++) {
                dot += embedding[i * FEW + k] * embedding[k];
            }
            ck_assert(fabs(dot - cosine[i]) < 1e-12);
        }
    }
}
END_TEST

START_TEST(zero_updates_stay_out)
{
    plant(6, 500);
    memset(updates[0], 0, sizeof updates[0]);
    memset(updates[31], 0, sizeof updates[31]);
    struct kedge_flexcfl_result r = group_all(&usual, KEDGE_OK);
    ck_assert_uint_eq(r.used, N - 2);
    ck_assert_uint_eq(group[0], KEDGE_GROUP_NONE);
    ck_assert_uint_eq(group[31], KEDGE_GROUP_NONE);
    ck_assert_uint_eq(group[1], 0);
    ck_assert(eigenvalues[N - 1] == 0.0 && embedding[31 * M] == 0.0);
    truth[0] = truth[31] = KEDGE_GROUP_NONE;
    ck_assert(kedge_rand_adjusted(truth, group, N) == 1.0);
    for (int i = 3; i < N; i++) {
        memset(updates[i], 0, sizeof updates[i]);
    }
    r = group_all(&usual, KEDGE_OK); /* two are left: m falls to 2 */
    ck_assert(r.groups == 2 && r.used == 2 && group[1] == 0 && group[2] == 1 && embedding[1 * M + 2] == 0.0);
    memset(updates[1], 0, sizeof updates[1]);
    r = group_all(&usual, KEDGE_OK);
    ck_assert(r.groups == 1 && r.used == 1 && group[2] == 0);
    memset(updates[2], 0, sizeof updates[2]);
    (void)group_all(&usual, KEDGE_E_NO_DIRECTION);
}
END_TEST

START_TEST(failures)
{
    struct kedge_flexcfl_result r = {.group = group, .eigenvalues = eigenvalues, .embedding = embedding};
    struct kedge_flexcfl_params params = usual;
    plant(1, 10);
    ck_assert_int_eq(group_of(pointers, 0, D, &params, &r), KEDGE_E_ARG);
    ck_assert_int_eq(group_of(pointers, 513, D, &params, &r), KEDGE_E_ARG);
    params.groups = 0;
    (void)group_all(&params, KEDGE_E_ARG);
    params.groups = KEDGE_GROUPS_MAX + 1;
    (void)group_all(&params, KEDGE_E_ARG);
    params = usual;
    params.edc = (enum kedge_edc)7;
    (void)group_all(&params, KEDGE_E_ARG);
    const int64_t gram[4] = {5, 0, 0, 0};
    const uint32_t maxima[2] = {3, 3}; /* says non-zero where the matrix says zero */
    ck_assert_int_eq(kedge_flexcfl_group_gram(gram, maxima, 2, &usual, &r), KEDGE_E_ARG);
    long nth = 1;
    int err;
    do {
        kedge_mem_fail_at(nth++);
        err = group_of(pointers, N, D, &usual, &r);
        ck_assert(err == KEDGE_OK || err == KEDGE_E_NOMEM);
    } while (err && nth < 100);
    kedge_mem_fail_at(0);
    ck_assert_int_eq(err, KEDGE_OK);
    ck_assert_int_eq(nth, 3 + 9 + 1 + 5 + 2);
}
END_TEST

START_TEST(group_directions)
{
    static const int32_t a[] = {1, 2, -1, -2, INT32_MAX, INT32_MIN, 5, -5};
    static const int32_t b[] = {0, 1, 0, -1, INT32_MAX, INT32_MIN, 0, 0};
    static const int32_t two[] = {0, 2, 0, -2, INT32_MAX, INT32_MIN, 2, -2};
    static const int32_t three[] = {1, 2, -1, -2, INT32_MAX, INT32_MIN, 3, -3};
    const int32_t *members[] = {a, b, a};
    int32_t out[8];
    ck_assert_int_eq(kedge_direction_tile(members, 2, 0, 8, out), KEDGE_OK);
    ck_assert_mem_eq(out, two, sizeof out);
    ck_assert_int_eq(kedge_direction_tile(members, 3, 0, 8, out), KEDGE_OK);
    ck_assert_mem_eq(out, three, sizeof out);
    ck_assert_int_eq(kedge_direction_tile(members, 3, 6, 2, out), KEDGE_OK);
    ck_assert(out[0] == 3 && out[1] == -3);
    ck_assert_int_eq(kedge_direction_tile(members, 0, 0, 8, out), KEDGE_E_ARG);
    ck_assert_int_eq(kedge_direction_tile(members, KEDGE_SITES_MAX + 1, 0, 8, out), KEDGE_E_ARG);
}
END_TEST

/* Every update comes home: the direction of its own group is the nearest. */
static int nearest_of(const int32_t *update, const int32_t *const *of, size_t groups, uint32_t *ret_group,
                      double *ret_cosine)
{
    struct kedge_nearest n = {.groups = groups};
    for (size_t at = 0; at < D; at += 700) { /* in pieces, as updates are read */
        kedge_nearest_scan(&n, update + at, of, at, D - at < 700 ? D - at : 700);
    }
    for (size_t at = 0; at < D; at += 700) {
        kedge_nearest_add(&n, update + at, of, at, D - at < 700 ? D - at : 700);
    }
    return kedge_nearest_end(&n, ret_group, ret_cosine);
}

START_TEST(newcomers)
{
    static int32_t direction[M][D];
    static const int32_t zero[D];
    const int32_t *directions[M];
    plant(8, 1000);
    (void)group_all(&usual, KEDGE_OK);
    for (uint32_t j = 0; j < M; j++) {
        const int32_t *members[N];
        size_t count = 0;
        for (int i = 0; i < N; i++) {
            if (group[i] == j) {
                members[count++] = updates[i];
            }
        }
        directions[j] = direction[j];
        for (size_t at = 0; at < D; at += 700) {
            size_t n = D - at < 700 ? D - at : 700;
            ck_assert_int_eq(kedge_direction_tile(members, count, at, n, direction[j] + at), KEDGE_OK);
        }
    }
    FOR_EACH_SIMD(simd)
    {
        for (int i = 0; i < N; i++) {
            uint32_t nearest = 99;
            double cosine = 0.0;
            ck_assert_int_eq(nearest_of(updates[i], directions, M, &nearest, &cosine), KEDGE_OK);
            ck_assert_uint_eq(nearest, group[i]);
            ck_assert(cosine > 0.5 && cosine < 1.0);
        }
    }
    uint32_t nearest = 99;
    double cosine = 0.0;
    const int32_t *tied[] = {zero, direction[2], direction[1], direction[2]};
    ck_assert_int_eq(nearest_of(direction[2], tied, 4, &nearest, &cosine), KEDGE_OK);
    ck_assert_uint_eq(nearest, 1); /* the first of equals; the zero direction is passed over */
    ck_assert(fabs(cosine - 1.0) < 1e-15);
    for (int k = 0; k < D; k++) {
        updates[0][k] = -direction[2][k];
    }
    ck_assert_int_eq(nearest_of(updates[0], tied, 2, &nearest, &cosine), KEDGE_OK);
    ck_assert(nearest == 1 && cosine < -0.999); /* even the opposite one, when there is no other */
    const int32_t *none[] = {zero, zero};
    nearest = 99;
    ck_assert_int_eq(nearest_of(zero, directions, M, &nearest, NULL), KEDGE_E_NOT_FOUND);
    ck_assert_int_eq(nearest_of(updates[0], none, 2, &nearest, NULL), KEDGE_E_NOT_FOUND);
    ck_assert_uint_eq(nearest, 99);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {planted_groups_are_found,
                                  plain_variant,
                                  full_embedding_has_unit_rows,
                                  zero_updates_stay_out,
                                  failures,
                                  group_directions,
                                  newcomers,
                                  NULL};
    return run_tests("aggregation/flexcfl", tests);
}
