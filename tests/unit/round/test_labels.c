/* The numbers by which the core knows labels. */
#include <check.h>

#include "crypto/hash.h"
#include "round/close/params.h"
#include "tests/fixtures/run.h"

START_TEST(numbers_ascend)
{
    struct kedge_coord_label numbers[KEDGE_LABEL_COUNT_MAX], other[KEDGE_LABEL_COUNT_MAX];
    ck_assert_uint_eq(kedge_close_labels(kedge_view_str(""), numbers), 0);
    ck_assert_uint_eq(kedge_close_labels(kedge_view_str("a=1 b=2 c=3 d=4 e=5 f=6"), numbers), 6);
    for (int i = 1; i < 6; i++) {
        ck_assert_int_lt(kedge_coord_label_cmp(&numbers[i - 1], &numbers[i]), 0);
        ck_assert_int_gt(kedge_coord_label_cmp(&numbers[i], &numbers[i - 1]), 0);
    }
    ck_assert_uint_eq(kedge_close_labels(kedge_view_str("c=3"), other), 1);
    int found = 0;
    for (int i = 0; i < 6; i++) {
        found += kedge_coord_label_cmp(&numbers[i], &other[0]) == 0;
    }
    ck_assert_int_eq(found, 1);
}
END_TEST

/* Two labels that share 64 bits of their hashes can be looked for: a number has more of them, and all of it
 * is the hash's. */
START_TEST(numbers_are_wide)
{
    struct kedge_coord_label numbers[KEDGE_LABEL_COUNT_MAX];
    struct kedge_hash hash;
    ck_assert_uint_eq(kedge_close_labels(kedge_view_str("zone=eu"), numbers), 1);
    kedge_sha256(kedge_view_str("zone=eu"), &hash);
    ck_assert_uint_ge(sizeof numbers[0], 16);
    ck_assert_mem_eq(&numbers[0], hash.b, sizeof numbers[0]);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("round-labels");
    TCase *t = tcase_create("labels");
    tcase_add_test(t, numbers_ascend);
    tcase_add_test(t, numbers_are_wide);
    suite_add_tcase(s, t);
    return run_suite(s);
}
