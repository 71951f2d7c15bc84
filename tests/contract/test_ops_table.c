/* The contract of ops.h for the processor's table. */
#include <check.h>

#include "client/train/ops.h"
#include "tests/contract/ops_table.h"

START_TEST(processor)
{
    const struct kedge_ops_config config = {1, 1, KEDGE_OPS_F32};
    char text[OPS_TABLE_TEXT];
    unsigned long checks = 0;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        const char *bad = ops_table_check(&kedge_ops_cpu, &config, seed, text, &checks);
        ck_assert_msg(!bad, "%s", bad);
        ck_assert_uint_gt(checks, 100);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("client/train/ops.h on the processor");
    TCase *tc = tcase_create("contract");
    tcase_set_timeout(tc, 0);
    tcase_add_test(tc, processor);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
