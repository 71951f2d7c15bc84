/* The high-water file: one spelling only, and what it allows. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chain/store/ledger_impl.h"

#define HEX "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

static char dir[64], path[96];

static void set_up(void)
{
    snprintf(dir, sizeof dir, "/tmp/kedge-mark-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/mark", dir);
}

static void tear_down(void)
{
    ck_assert_int_eq(kedge_dir_remove(dir), KEDGE_OK);
}

START_TEST(accepts_one_spelling)
{
    static const struct {
        const char *content;
        int err;
    } cases[] = {
        {"kedge high-water 1\nlog.example/a\n7\n" HEX "\n", KEDGE_OK},
        {"kedge high-water 1\nlog.example/b\n7\n" HEX "\n", KEDGE_E_STATE},
        {"kedge high-water 2\nlog.example/a\n7\n" HEX "\n", KEDGE_E_CORRUPT},
        {"kedge high-water 1\nlog.example/a\n07\n" HEX "\n", KEDGE_E_CORRUPT},
        {"kedge high-water 1\nlog.example/a\n-7\n" HEX "\n", KEDGE_E_CORRUPT},
        {"kedge high-water 1\nlog.example/a\n9223372036854775808\n" HEX "\n", KEDGE_E_CORRUPT},
        {"kedge high-water 1\nlog.example/a\n7\n" HEX, KEDGE_E_CORRUPT},
        {"kedge high-water 1\nlog.example/a\n7\n" HEX "\n\n", KEDGE_E_CORRUPT},
        {"kedge high-water 1\r\nlog.example/a\n7\n" HEX "\n", KEDGE_E_CORRUPT},
        {"kedge high-water 1\nlog.example/a\n7\nE3" HEX "\n", KEDGE_E_CORRUPT},
        {"kedge high-water 1\nlog.example/a\n7\n", KEDGE_E_CORRUPT},
        {"", KEDGE_E_CORRUPT},
    };
    set_up();
    struct kedgei_high_water mark;
    struct kedge_diag d = {0};
    ck_assert_int_eq(kedgei_high_water_read(path, "log.example/a", &mark, &d), KEDGE_E_NOT_FOUND);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ck_assert_int_eq(kedge_file_write(path, kedge_view_str(cases[i].content), 0600, NULL), KEDGE_OK);
        mark.size = 99;
        ck_assert_int_eq(kedgei_high_water_read(path, "log.example/a", &mark, &d), cases[i].err);
        ck_assert_uint_eq(mark.size, cases[i].err ? 99 : 7);
        ck_assert(!cases[i].err || strstr(d.text, path));
    }
    tear_down();
}
END_TEST

START_TEST(allows_only_what_extends_it)
{
    set_up();
    struct kedge_hash root = {{1}}, other = {{2}};
    const char *origin = "log.example/a";
    ck_assert_int_eq(kedgei_high_water_allows(path, origin, 0, &root, NULL), KEDGE_OK); /* none yet */
    ck_assert_int_eq(kedgei_high_water_write(path, origin, 5, &root, NULL), KEDGE_OK);
    struct kedgei_high_water mark;
    ck_assert_int_eq(kedgei_high_water_read(path, origin, &mark, NULL), KEDGE_OK);
    ck_assert_uint_eq(mark.size, 5);
    ck_assert(kedge_hash_eq(&mark.root, &root));
    static const struct {
        uint64_t size;
        bool same_root;
        int err;
    } cases[] = {{4, true, KEDGE_E_CORRUPT},
                 {4, false, KEDGE_E_CORRUPT},
                 {5, true, KEDGE_OK},
                 {5, false, KEDGE_E_FORK},
                 {6, false, KEDGE_OK}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ck_assert_int_eq(
            kedgei_high_water_allows(path, origin, cases[i].size, cases[i].same_root ? &root : &other, NULL),
            cases[i].err);
    }
    ck_assert_int_eq(kedgei_high_water_allows(path, "log.example/b", 9, &root, NULL), KEDGE_E_STATE);
    tear_down();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store high water");
    TCase *t = tcase_create("high water");
    tcase_add_test(t, accepts_one_spelling);
    tcase_add_test(t, allows_only_what_extends_it);
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
