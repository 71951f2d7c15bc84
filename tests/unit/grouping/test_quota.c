/* Many sites of one tenant must not decide the groups of the others. */
#include "grouping/quota.h"

#include <math.h>

#include "aggregation/gram.h"
#include "aggregation/share_cap.h"
#include "grouping/direction.h"
#include "grouping/flexcfl.h"
#include "grouping/kmeans.h"
#include "sim/learn/rand_index.h"
#include "tests/fixtures/whole_updates.h"
#include "tests/unit/aggregation/support.h"

enum { TENANTS = 6, D = 600, N_MAX = 200 };

/* One site after the other: to the tenant that has given the least and has more, ties to the first. */
START_TEST(quota_is_dealt_out_in_turn)
{
    for (uint64_t seed = 0; seed < 300; seed++) {
        struct kedge_rng rng = new_stream(seed);
        uint64_t available[TENANTS], take[TENANTS], want[TENANTS] = {0};
        const size_t tenants = 1 + (size_t)kedge_rng_below(&rng, TENANTS);
        for (size_t t = 0; t < tenants; t++) {
            available[t] = kedge_rng_below(&rng, 3) == 0 ? 0 : kedge_rng_below(&rng, 20);
        }
        const uint64_t n = kedge_rng_below(&rng, 60);
        for (uint64_t left = n; left > 0;) {
            size_t least = tenants;
            for (size_t t = 0; t < tenants; t++) {
                if (want[t] < available[t] && (least == tenants || want[t] < want[least])) {
                    least = t;
                }
            }
            if (least == tenants) {
                break;
            }
            want[least]++;
            left--;
        }
        ck_assert_int_eq(kedge_quota(available, tenants, n, take), KEDGE_OK);
        ck_assert_mem_eq(take, want, tenants * sizeof *take);
    }
    const uint64_t huge[2] = {UINT64_MAX, UINT64_MAX};
    uint64_t take[2];
    ck_assert_int_eq(kedge_quota(huge, 2, UINT64_MAX - 1, take), KEDGE_OK);
    ck_assert(take[0] == UINT64_MAX / 2 && take[1] == UINT64_MAX / 2);
    ck_assert_int_eq(kedge_quota(huge, 0, 1, take), KEDGE_E_ARG);
    ck_assert_int_eq(kedge_quota(huge, 2, UINT64_MAX, take), KEDGE_E_ARG);
}
END_TEST

START_TEST(weights_of_tenants)
{
    const uint32_t tenant[6] = {0, 0, 0, 1, 2, 2}, maxima[6] = {1, 0, 1, 1, 1, 1};
    double w[6];
    ck_assert_int_eq(kedge_quota_weights(tenant, maxima, 6, w), KEDGE_OK);
    ck_assert(w[0] == 0.5 && w[1] == 1.0 && w[2] == 0.5 && w[3] == 1.0 && w[4] == 0.5);
    const uint32_t bad[1] = {KEDGE_SHARE_TENANTS_MAX};
    ck_assert_int_eq(kedge_quota_weights(bad, maxima, 1, w), KEDGE_E_ARG);
}
END_TEST

static int32_t updates[N_MAX][D];
static uint32_t tenant[N_MAX];

static double dot(const int32_t *a, const int32_t *b)
{
    double sum = 0.0;
    for (size_t k = 0; k < D; k++) {
        sum += (double)a[k] * (double)b[k];
    }
    return sum;
}

static double cosine(const int32_t *a, const int32_t *b)
{
    return dot(a, b) / sqrt(dot(a, a)) / sqrt(dot(b, b));
}

/* The direction of members 0 … n − 1 under rule 3. */
static void make_direction(size_t n, int32_t *out)
{
    static int16_t scaled[D];
    const int32_t *members[N_MAX] = {0};
    uint32_t maxima[N_MAX];
    int64_t square[N_MAX];
    uint64_t weight[N_MAX];
    for (size_t i = 0; i < n; i++) {
        members[i] = updates[i];
        maxima[i] = kedge_max_abs(updates[i], D, 0);
        kedge_scale12(updates[i], D, maxima[i], scaled);
        square[i] = kedge_dot12(scaled, scaled, D);
    }
    ck_assert_int_eq(kedge_quota_direction(tenant, square, n, KEDGE_QUOTA_SHARE_MAX, weight), KEDGE_OK);
    double all = 0.0, own[TENANTS] = {0};
    for (size_t i = 0; i < n; i++) {
        all += (double)weight[i] * sqrt((double)square[i]);
        own[tenant[i]] += (double)weight[i] * sqrt((double)square[i]);
    }
    for (size_t t = 0; t < TENANTS; t++) { /* no tenant has more than a third of the length */
        ck_assert(own[t] <= all * (0.333333 + 1e-4));
    }
    int32_t parts[D];
    ck_assert_int_eq(kedge_direction_unit_tile(members, maxima, weight, n, 0, D, out), KEDGE_OK);
    for (size_t at = 0; at < D; at += 7) { /* any range gives the same */
        size_t len = D - at < 7 ? D - at : 7;
        ck_assert_int_eq(kedge_direction_unit_tile(members, maxima, weight, n, at, len, parts + at),
                         KEDGE_OK);
    }
    ck_assert_mem_eq(parts, out, sizeof parts);
}

/* Five honest tenants, two sites each, around one direction; the sixth has up to 180 sites and sends what it
 * likes: the opposite, something at a right angle, of any size. The stated bound holds; without the rule it
 * does not. */
START_TEST(a_direction_is_not_captured)
{
    double worst = 1.0, worst_plain = 1.0;
    for (uint64_t seed = 0; seed < 24; seed++) {
        struct kedge_rng rng = new_stream(seed);
        int32_t aim[D], evil[D], honest[D], direction[D], plain[D];
        double mean[D] = {0}, length = 0.0;
        fill_ints(&rng, aim, D, 1000);
        fill_ints(&rng, evil, D, 1000);
        const size_t n = 10 + 1 + (size_t)kedge_rng_below(&rng, 180);
        const int32_t *members[N_MAX] = {0};
        for (size_t i = 0; i < n; i++) {
            members[i] = updates[i];
            tenant[i] = i < 10 ? (uint32_t)(i / 2) : 5;
            int32_t size = i < 10 ? 1 + (int32_t)kedge_rng_below(&rng, 100) : seed % 3 == 0 ? 1 : 100000;
            for (size_t k = 0; k < D; k++) {
                int32_t turned = seed % 2 ? -aim[k] : evil[k];
                updates[i][k] = size * (i < 10 ? aim[k] + draw_int(&rng, 300) : turned);
            }
        }
        for (size_t i = 0; i < 10; i++) {
            for (size_t k = 0; k < D; k++) {
                mean[k] += (double)updates[i][k] / sqrt(dot(updates[i], updates[i])) / 10.0;
            }
        }
        for (size_t k = 0; k < D; k++) {
            length += mean[k] * mean[k];
            honest[k] = (int32_t)(mean[k] * 1e7);
        }
        make_direction(n, direction);
        ck_assert_int_eq(kedge_direction_tile(members, n, 0, D, plain), KEDGE_OK);
        double sine = 0.3334 / ((1 - 0.3334) * sqrt(length)), bound = sqrt(1 - sine * sine);
        double c = cosine(direction, honest);
        ck_assert(c >= bound - 1e-3);
        worst = c < worst ? c : worst;
        worst_plain = cosine(plain, honest) < worst_plain ? cosine(plain, honest) : worst_plain;
    }
    ck_assert(worst > 0.85);
    ck_assert(worst_plain < -0.9); /* the attack is one */
}
END_TEST

static size_t groups_of_honest(const struct kedge_flexcfl_params *params, size_t n, double *ret_rand)
{
    static double eigenvalues[N_MAX], embedding[N_MAX * KEDGE_GROUPS_MAX];
    uint32_t group[N_MAX], truth[N_MAX], found[N_MAX];
    const int32_t *p[N_MAX] = {0};
    size_t honest = 0;
    for (size_t i = 0; i < n; i++) {
        p[i] = updates[i];
    }
    struct kedge_flexcfl_result r = {.group = group, .eigenvalues = eigenvalues, .embedding = embedding};
    ck_assert_int_eq(group_of(p, n, D, params, &r), KEDGE_OK);
    for (size_t i = 0; i < n; i++) {
        if (tenant[i] != 5) {
            truth[honest] = (uint32_t)(i % 3);
            found[honest++] = group[i];
        }
    }
    *ret_rand = kedge_rand_adjusted(truth, found, honest);
    return r.groups;
}

/* Three kinds of honest sites, thirty of them; 120 sites of one tenant spread over three directions of their
 * own. Rules 1 and 2 keep the honest kinds apart; without them the three groups go to the sybils. */
START_TEST(sybils_do_not_take_the_groups)
{
    int kept = 0, lost = 0;
    enum { HONEST = 30, SYBILS = 120, RUNS = 8 };
    for (uint64_t seed = 0; seed < RUNS; seed++) {
        struct kedge_rng rng = new_stream(100 + seed);
        int32_t kind[6][D];
        for (size_t k = 0; k < 6; k++) {
            fill_ints(&rng, kind[k], D, 1000);
        }
        for (size_t i = 0; i < HONEST + SYBILS; i++) {
            tenant[i] = i < HONEST ? (uint32_t)(i / 6) : 5;
            for (size_t d = 0; d < D; d++) {
                updates[i][d] = kind[i % 3 + (i < HONEST ? 0 : 3)][d] + draw_int(&rng, i < HONEST ? 600 : 10);
            }
        }
        double rand = 0.0;
        struct kedge_flexcfl_params p = {.groups = 3, .seed = seed};
        (void)groups_of_honest(&p, HONEST + SYBILS, &rand);
        lost += rand < 0.9;
        uint64_t available[TENANTS] = {6, 6, 6, 6, 6, SYBILS}, take[TENANTS];
        ck_assert_int_eq(kedge_quota(available, TENANTS, 36, take), KEDGE_OK);
        ck_assert_uint_eq(take[5], 6);
        double weight[N_MAX];
        uint32_t maxima[N_MAX];
        for (size_t i = 0; i < HONEST + 6; i++) {
            maxima[i] = 1;
        }
        ck_assert_int_eq(kedge_quota_weights(tenant, maxima, HONEST + 6, weight), KEDGE_OK);
        p.weight = weight;
        (void)groups_of_honest(&p, HONEST + 6, &rand);
        kept += rand >= 0.95;
        for (size_t i = 0; i < HONEST + SYBILS; i++) { /* weights alone do it too */
            maxima[i] = 1;
        }
        ck_assert_int_eq(kedge_quota_weights(tenant, maxima, HONEST + SYBILS, weight), KEDGE_OK);
        (void)groups_of_honest(&p, HONEST + SYBILS, &rand);
        kept += rand >= 0.95;
    }
    ck_assert_int_eq(kept, 2 * RUNS);
    ck_assert_int_eq(lost, RUNS);
}
END_TEST

START_TEST(bad_arguments)
{
    const int64_t square[2] = {4, 9}, none[2] = {0, 0}, minus[2] = {-1, 4};
    const uint32_t two[2] = {0, 1}, far[2] = {0, 128}, maxima[2] = {1, 0};
    uint64_t weight[2] = {7, 7};
    ck_assert_int_eq(kedge_quota_direction(two, none, 2, 333333, weight), KEDGE_E_NO_DIRECTION);
    ck_assert_int_eq(kedge_quota_direction(two, minus, 2, 333333, weight), KEDGE_E_ARG);
    ck_assert_int_eq(kedge_quota_direction(far, square, 2, 333333, weight), KEDGE_E_ARG);
    ck_assert_int_eq(kedge_quota_direction(two, square, 2, 0, weight), KEDGE_E_ARG);
    kedge_mem_fail_at(1);
    ck_assert_int_eq(kedge_quota_direction(two, square, 2, 333333, weight), KEDGE_E_NOMEM);
    kedge_mem_fail_at(0);
    ck_assert(weight[0] == 7);
    ck_assert_int_eq(kedge_quota_direction(two, square, 2, 333333, weight), KEDGE_OK);
    ck_assert(weight[0] == 1 << 20 && weight[1] == 699051); /* two thirds */
    const int32_t a[2] = {3, -3}, b[2] = {0, 0};
    const int32_t *members[2] = {a, b};
    int32_t out[2];
    ck_assert_int_eq(kedge_direction_unit_tile(members, maxima, weight, 2, 0, 2, out), KEDGE_E_ARG);
    const uint32_t right[2] = {3, 0};
    weight[1] = 0; /* b is left out: 2^12 times the scaled a */
    ck_assert_int_eq(kedge_direction_unit_tile(members, right, weight, 2, 0, 2, out), KEDGE_OK);
    ck_assert(out[0] == 4096 * 2047 && out[1] == -4096 * 2047);
    weight[0] = (1 << 20) + 1;
    ck_assert_int_eq(kedge_direction_unit_tile(members, maxima, weight, 2, 0, 2, out), KEDGE_E_ARG);
    weight[0] = 0;
    ck_assert_int_eq(kedge_direction_unit_tile(members, maxima, weight, 2, 0, 2, out), KEDGE_E_ARG);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        quota_is_dealt_out_in_turn,    weights_of_tenants, a_direction_is_not_captured,
        sybils_do_not_take_the_groups, bad_arguments,      NULL};
    return run_tests("grouping/quota", tests);
}
