/* The module kedge-train-cuda.so: where it was built it is found, refuses another version, and without a
 * device says so instead of failing; where it was not, that is said. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "client/train/cuda_load.h"
#include "common/base/err.h"

START_TEST(found_or_told)
{
    char text[256] = "";
    const struct kedge_ops *ops = kedge_cuda_load(text, sizeof text);
#if defined(KEDGE_HAS_CUDA_MODULE)
    ck_assert_msg(ops != NULL, "%s", text);
    ck_assert_str_eq(ops->name, "cuda");
#else
    ck_assert_msg(ops || strstr(text, "no kedge-train-cuda.so"), "%s", text);
#endif
}
END_TEST

START_TEST(opens_or_says_why)
{
    char text[256] = "";
    const struct kedge_ops_config config = {1, 1, KEDGE_OPS_F32}, none = {0, 1, KEDGE_OPS_F32};
    const struct kedge_ops *ops = kedge_cuda_load(text, sizeof text);
    struct kedge_device *dev = NULL;
    if (ops) {
        ck_assert_int_eq(ops->open(&none, &dev, text, sizeof text), KEDGE_E_ARG);
        const int err = ops->open(&config, &dev, text, sizeof text);
        ck_assert_msg(err == KEDGE_OK || (err == KEDGE_E_DEVICE && strstr(text, "driver")), "%d: %s", err,
                      text);
        ck_assert(err == KEDGE_OK ? dev != NULL : dev == NULL);
        ops->close(dev);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("client/train/cuda_load");
    TCase *tc = tcase_create("load");
    tcase_add_test(tc, found_or_told);
    tcase_add_test(tc, opens_or_says_why);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
