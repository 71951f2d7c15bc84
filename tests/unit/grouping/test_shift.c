#include "grouping/shift.h"

#include <math.h>

#include "tests/unit/aggregation/support.h"

START_TEST(label_shares)
{
    const uint64_t a[4] = {10, 10, 0, 0}, b[4] = {0, 0, 5, 5}, grown[4] = {30, 30, 0, 0},
                   some[4] = {5, 10, 5, 0}, none[4] = {0};
    ck_assert(kedge_shift_labels(a, b, 4) == 1.0);
    ck_assert(kedge_shift_labels(a, grown, 4) == 0.0); /* size alone is no shift */
    ck_assert(fabs(kedge_shift_labels(a, some, 4) - 0.25) < 1e-15);
    ck_assert(kedge_shift_labels(a, some, 4) == kedge_shift_labels(some, a, 4));
    ck_assert(kedge_shift_labels(a, none, 4) == 1.0 && kedge_shift_labels(none, none, 4) == 0.0);
    ck_assert(0.25 > KEDGE_SHIFT_LABELS);
}
END_TEST

/* What the published test does, faults and all. */
START_TEST(counts_as_published)
{
    const uint64_t a[4] = {10, 10, 0, 0}, moved[4] = {0, 0, 10, 10}, fewer[4] = {8, 7, 0, 0},
                   less[4] = {9, 7, 0, 0};
    bool shifted = true;
    ck_assert_int_eq(kedge_shift_counts(a, moved, 4, 20, &shifted), KEDGE_OK);
    ck_assert(!shifted); /* blind */
    ck_assert_int_eq(kedge_shift_counts(a, fewer, 4, 20, &shifted), KEDGE_OK);
    ck_assert(shifted); /* (2 + 3) / 4 > 0.2 · 20 / 4 */
    ck_assert_int_eq(kedge_shift_counts(a, less, 4, 20, &shifted), KEDGE_OK);
    ck_assert(!shifted); /* 4 / 4 is the threshold */
    ck_assert_int_eq(kedge_shift_counts(a, a, 0, 20, &shifted), KEDGE_E_ARG);
    ck_assert_int_eq(kedge_shift_counts(a, a, KEDGE_SHIFT_CLASSES_MAX + 1, 20, &shifted), KEDGE_E_ARG);
}
END_TEST

START_TEST(drift_of_directions)
{
    const double c[9] = {1, .5, .5, .5, 1, .5, .5, .5, 1};
    const double still[3] = {1, 1, 1}, moved[3] = {1, .9, .75};
    ck_assert(kedge_group_drift(c, still, 3) == 0.0);
    ck_assert(fabs(kedge_group_drift(c, moved, 3) - 0.5) < 1e-15);
    ck_assert(kedge_group_drift(c, moved, 3) > KEDGE_DRIFT_MOST);
    ck_assert(kedge_group_drift(c, moved + 2, 1) == 0.0);
    const double same[4] = {1, 1, 1, 1};
    ck_assert(isinf(kedge_group_drift(same, moved + 1, 2)));
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {label_shares, counts_as_published, drift_of_directions, NULL};
    return run_tests("grouping/shift", tests);
}
