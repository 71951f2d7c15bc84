/* The main() of a Check suite of one case, and two helpers that every format test needs. */
#ifndef KEDGE_TESTS_UNIT_TENSOR_SUITE_H
#define KEDGE_TESTS_UNIT_TENSOR_SUITE_H

#include <check.h>
#include <string.h>

#include "common/base/diag.h"

/* The message must name the problem; `part` is a part of it. */
#define ASSERT_SAYS(diag, part) \
    ck_assert_msg(strstr((diag).text, (part)) != NULL, "expected \"%s\" in \"%s\"", (part), (diag).text)

static inline int run_suite(Suite *suite, TCase *tc)
{
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

#endif
