/* What every Check program of common/base ends with: run one suite, exit by its result. */
#ifndef KEDGE_TESTS_UNIT_BASE_CHECK_H
#define KEDGE_TESTS_UNIT_BASE_CHECK_H

#include <check.h>
#include <stddef.h>
#include <stdlib.h>

/* Runs the tests of one suite in this process (CK_FORK=no by kedge_test); returns main's exit status. */
static inline int run_suite(const char *name, const TTest *const *tests, size_t count)
{
    Suite *suite = suite_create(name);
    TCase *tcase = tcase_create(name);
    tcase_set_timeout(tcase, 60);
    for (size_t i = 0; i < count; i++) {
        tcase_add_test(tcase, tests[i]);
    }
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif
