/* Parts of the training set: so many, each once, the same ones for the same seed and others for another; and
 * all of them after a while. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "client/train/part.h"
#include "common/base/mem.h"
#include "tests/fixtures/run.h"

enum { MANY = 1000 };

START_TEST(test_counts)
{
    static const struct {
        uint32_t n, percent, count;
    } cases[] = {{1, 1, 1}, {3, 34, 2}, {3, 33, 1}, {100, 7, 7}, {101, 7, 8}, {MANY, 99, 990}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint32_t *rows = NULL, count = 0;
        bool has[MANY] = {false};
        ck_assert_int_eq(kedge_train_part(5, cases[i].percent, cases[i].n, &rows, &count, NULL), KEDGE_OK);
        ck_assert_uint_eq(count, cases[i].count);
        for (uint32_t k = 0; k < count; k++) {
            ck_assert(rows[k] < cases[i].n && !has[rows[k]]);
            has[rows[k]] = true;
        }
        kedge_mem_free(rows);
    }
}
END_TEST

START_TEST(test_all)
{
    static const uint32_t percents[] = {0, 100};
    for (size_t i = 0; i < 2; i++) {
        uint32_t *rows = NULL, count = 0;
        ck_assert_int_eq(kedge_train_part(5, percents[i], MANY, &rows, &count, NULL), KEDGE_OK);
        ck_assert(rows == NULL && count == MANY);
    }
    uint32_t *rows = NULL, count = 1;
    ck_assert_int_eq(kedge_train_part(5, 50, 0, &rows, &count, NULL), KEDGE_OK);
    ck_assert(rows == NULL && count == 0);
}
END_TEST

START_TEST(test_seeds)
{
    bool has[MANY] = {false};
    uint32_t *first = NULL, *again = NULL, count = 0, seen = 0;
    ck_assert_int_eq(kedge_train_part(7, 20, MANY, &first, &count, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_train_part(7, 20, MANY, &again, &count, NULL), KEDGE_OK);
    ck_assert_int_eq(memcmp(first, again, count * sizeof *first), 0);
    kedge_mem_free(first);
    kedge_mem_free(again);
    for (uint64_t seed = 0; seed < 40; seed++) { /* of 1,000 about 0.13 are in none of 40 fifths */
        uint32_t *rows = NULL;
        ck_assert_int_eq(kedge_train_part(seed, 20, MANY, &rows, &count, NULL), KEDGE_OK);
        for (uint32_t k = 0; k < count; k++) {
            seen += !has[rows[k]];
            has[rows[k]] = true;
        }
        kedge_mem_free(rows);
        ck_assert_uint_ge(seen, seed == 0 ? 200 : 300);
    }
    ck_assert_uint_ge(seen, MANY - 3);
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("part");
    tcase_add_test(c, test_counts);
    tcase_add_test(c, test_all);
    tcase_add_test(c, test_seeds);
    Suite *s = suite_create("train/part");
    suite_add_tcase(s, c);
    return run_suite(s);
}
