#include "grouping/closest.h"

#include <math.h>

#include "aggregation/gram.h"
#include "grouping/picture.h"
#include "tests/fixtures/whole_updates.h"
#include "tests/unit/aggregation/support.h"

enum { D = 5000, GROUPS = 5 };
static float own[D], models[GROUPS][D];

static const float *pointers[GROUPS] = {models[0], models[1], models[2], models[3], models[4]};

START_TEST(tiles_change_nothing)
{
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct kedge_rng rng = new_stream(seed);
        fill_floats(&rng, own, D, 1.0);
        uint32_t want = 0;
        double least = INFINITY;
        for (uint32_t j = 0; j < GROUPS; j++) {
            fill_floats(&rng, models[j], D, 1.0);
            double sum = 0.0;
            for (size_t i = 0; i < D; i++) {
                sum += ((double)own[i] - (double)models[j][i]) * ((double)own[i] - (double)models[j][i]);
            }
            if (sum < least) {
                least = sum;
                want = j;
            }
        }
        double first = 0.0;
        for (size_t tile = KEDGE_REDUCE_BLOCK; tile <= 6 * KEDGE_REDUCE_BLOCK; tile += KEDGE_REDUCE_BLOCK) {
            struct kedge_closest c;
            uint32_t group = 99;
            double distance = 0.0;
            ck_assert_int_eq(kedge_closest_init(&c, GROUPS), KEDGE_OK);
            for (size_t at = 0; at < D; at += tile) {
                kedge_closest_push(&c, own, pointers, at, D - at < tile ? D - at : tile);
            }
            ck_assert_int_eq(kedge_closest_end(&c, &group, &distance), KEDGE_OK);
            ck_assert_uint_eq(group, want);
            ck_assert(fabs(distance - sqrt(least)) < 1e-10);
            first = first > 0.0 ? first : distance;
            ck_assert(distance == first); /* to the bit */
        }
    }
}
END_TEST

START_TEST(ties_and_infinities)
{
    struct kedge_closest c;
    uint32_t group = 99;
    double distance = -1.0;
    memset(own, 0, sizeof own);
    memset(models, 0, sizeof models);
    models[0][3] = 1.0f;
    ck_assert_int_eq(kedge_closest_init(&c, GROUPS), KEDGE_OK);
    kedge_closest_push(&c, own, pointers, 0, D);
    ck_assert_int_eq(kedge_closest_end(&c, &group, &distance), KEDGE_OK);
    ck_assert(group == 1 && distance == 0.0);
    models[1][0] = NAN;
    ck_assert_int_eq(kedge_closest_init(&c, 2), KEDGE_OK);
    kedge_closest_push(&c, own, pointers, 0, D);
    ck_assert_int_eq(kedge_closest_end(&c, &group, NULL), KEDGE_OK);
    ck_assert_uint_eq(group, 0);
    models[0][0] = NAN;
    ck_assert_int_eq(kedge_closest_init(&c, 2), KEDGE_OK);
    kedge_closest_push(&c, own, pointers, 0, D);
    ck_assert_int_eq(kedge_closest_end(&c, &group, NULL), KEDGE_E_NOT_FINITE);
    ck_assert_int_eq(kedge_closest_init(&c, 0), KEDGE_E_ARG);
    ck_assert_int_eq(kedge_closest_init(&c, KEDGE_GROUPS_MAX + 1), KEDGE_E_ARG);
}
END_TEST

/* Three kinds of updates in a plane: distances in the picture are those of the unit updates. */
START_TEST(a_picture_of_the_plane)
{
    enum { N = 7 };
    static const int32_t x[N][3] = {{1000, 0, 0}, {0, 1000, 0}, {0, 0, 500}, {2000, 0, 0},
                                    {0, 0, 0},    {0, 7, 0},    {0, 0, 3}};
    const int32_t *p[N];
    uint32_t maxima[N];
    int64_t gram[N * N];
    double xy[2 * N], share[2];
    for (size_t i = 0; i < N; i++) {
        p[i] = x[i];
    }
    ck_assert_int_eq(gram_of(p, N, 3, maxima, gram), KEDGE_OK);
    ck_assert_int_eq(kedge_picture(gram, maxima, N, xy, share), KEDGE_OK);
    ck_assert(fabs(share[0] + share[1] - 1.0) < 1e-12 && share[0] >= share[1]);
    ck_assert(xy[8] == 0.0 && xy[9] == 0.0);
    for (size_t i = 0; i < N; i++) {
        for (size_t j = 0; j < N; j++) {
            if (i != 4 && j != 4) {
                double dx = xy[2 * i] - xy[2 * j], dy = xy[2 * i + 1] - xy[2 * j + 1];
                double want = (x[i][0] > 0) == (x[j][0] > 0) && (x[i][1] > 0) == (x[j][1] > 0) ? 0.0 : 2.0;
                ck_assert(fabs(dx * dx + dy * dy - want) < 1e-12);
            }
        }
    }
    ck_assert_int_eq(kedge_picture(gram, maxima, 1, xy, NULL), KEDGE_OK); /* one: in the middle */
    ck_assert(xy[0] == 0.0 && xy[1] == 0.0);
    ck_assert_int_eq(kedge_picture(gram, maxima, 0, xy, NULL), KEDGE_E_ARG);
    const uint32_t zero[1] = {0};
    const int64_t nothing[1] = {0};
    ck_assert_int_eq(kedge_picture(nothing, zero, 1, xy, share), KEDGE_OK);
    ck_assert(xy[0] == 0.0 && share[0] == 0.0);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {tiles_change_nothing, ties_and_infinities, a_picture_of_the_plane, NULL};
    return run_tests("grouping/closest", tests);
}
