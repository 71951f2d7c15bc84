#include "grouping/regroup.h"

#include "grouping/kmeans.h"
#include "tests/unit/aggregation/support.h"

enum { N = 40, D = 400, KINDS = 4 };

static int32_t updates[N][D];
static uint32_t maxima[N], truth[N], now[N], then[N];
static int64_t gram[N * N];

/* Update i is of kind kind(i). */
static void plant(uint64_t seed, size_t kinds)
{
    static int32_t direction[KINDS][D];
    const int32_t *p[N];
    struct kedge_rng rng = new_stream(seed);
    for (size_t k = 0; k < KINDS; k++) {
        fill_ints(&rng, direction[k], D, 1000);
    }
    for (size_t i = 0; i < N; i++) {
        truth[i] = (uint32_t)(i % kinds);
        for (size_t d = 0; d < D; d++) {
            updates[i][d] = direction[truth[i]][d] + draw_int(&rng, 600);
        }
        p[i] = updates[i];
    }
    ck_assert_int_eq(kedge_gram(p, N, D, maxima, gram), KEDGE_OK);
}

static const struct kedge_flexcfl_params usual = {
    .groups = 8, .groups_min = 2, .choose = KEDGE_CHOOSE_SILHOUETTE, .judge = true, .size_min = 2, .seed = 3};

/* Groups 5, 2, 9 and 0 go on under their numbers, with their models. */
START_TEST(groups_go_on)
{
    static const uint32_t numbers[KINDS] = {5, 2, 9, 0};
    struct kedge_regroup r;
    plant(1, KINDS);
    for (size_t i = 0; i < N; i++) {
        then[i] = i == 7 ? KEDGE_GROUP_NONE : i == 8 ? 2 : numbers[truth[i]]; /* 7 is cold, 8 was wrong */
    }
    ck_assert_int_eq(kedge_regroup_gram(gram, maxima, N, &usual, then, 16, now, &r), KEDGE_OK);
    ck_assert_uint_eq(r.groups, KINDS);
    ck_assert_uint_eq(r.kept, N - 2);
    ck_assert(r.silhouette > 0.2);
    size_t used = 0;
    for (size_t j = 0; j < KEDGE_GROUPS_MAX; j++) {
        used += r.used[j];
        for (size_t k = 0; k < KEDGE_GROUPS_MAX; k++) {
            ck_assert((r.from[j][k] > 0) == (j == k && r.used[j]));
        }
    }
    ck_assert_uint_eq(used, KINDS);
    for (size_t i = 0; i < N; i++) {
        ck_assert_uint_eq(now[i], numbers[truth[i]]);
    }
}
END_TEST

/* One old group of everybody becomes four: one keeps the number, the others begin from its model. */
START_TEST(a_group_falls_apart)
{
    struct kedge_regroup r;
    plant(2, KINDS);
    for (size_t i = 0; i < N; i++) {
        then[i] = 0;
    }
    ck_assert_int_eq(kedge_regroup_gram(gram, maxima, N, &usual, then, 8, now, &r), KEDGE_OK);
    ck_assert_uint_eq(r.groups, KINDS);
    ck_assert(kedge_rand_adjusted(now, truth, N) == 1.0);
    for (size_t j = 0; j < KINDS; j++) { /* numbers 0 … 3, the least that are free */
        ck_assert(r.used[j] && r.from[j][0] == N / KINDS);
    }
    /* two kinds are left: the others' numbers are free again, cold sites only bring no model */
    plant(2, 2);
    for (size_t i = 0; i < N; i++) {
        then[i] = truth[i] == 0 ? 3 : KEDGE_GROUP_NONE;
    }
    ck_assert_int_eq(kedge_regroup_gram(gram, maxima, N, &usual, then, 8, now, &r), KEDGE_OK);
    ck_assert(r.groups == 2 && r.used[3] && r.used[0] && now[0] == 3 && now[1] == 0);
    for (size_t k = 0; k < KEDGE_GROUPS_MAX; k++) {
        ck_assert(r.from[0][k] == 0);
    }
}
END_TEST

START_TEST(bad_arguments)
{
    struct kedge_regroup r = {.groups = 77};
    plant(3, 2);
    ck_assert_int_eq(kedge_regroup_gram(gram, maxima, N, &usual, then, 7, now, &r), KEDGE_E_ARG);
    ck_assert_int_eq(kedge_regroup_gram(gram, maxima, N, &usual, then, 17, now, &r), KEDGE_E_ARG);
    ck_assert_int_eq(kedge_regroup_gram(gram, maxima, 0, &usual, then, 8, now, &r), KEDGE_E_ARG);
    then[0] = 8;
    ck_assert_int_eq(kedge_regroup_gram(gram, maxima, N, &usual, then, 8, now, &r), KEDGE_E_ARG);
    then[0] = 0;
    long nth = 1;
    int err;
    do {
        kedge_mem_fail_at(nth++);
        err = kedge_regroup_gram(gram, maxima, N, &usual, then, 8, now, &r);
        ck_assert(err == KEDGE_OK || (err == KEDGE_E_NOMEM && r.groups == 77));
    } while (err && nth < 500);
    kedge_mem_fail_at(0);
    ck_assert_int_eq(err, KEDGE_OK);
    ck_assert_uint_eq(r.groups, 2);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {groups_go_on, a_group_falls_apart, bad_arguments, NULL};
    return run_tests("grouping/regroup", tests);
}
