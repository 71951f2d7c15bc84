/* The contract of ops.h for the source of the CUDA back end, run on the processor (client/train/cuda/host.h):
 * threads and blocks ascending, descending and in three shuffled orders. What a device does is
 * scripts/gpu-check's to find out. */
#define KEDGE_GPU_HOST 1
#include "client/train/cuda/ops.cu" /* NOLINT: this source is tested */

#include <check.h>

#include "tests/contract/ops_table.h"
#include "tests/fixtures/effort.h"

static const struct {
    enum kedge_gpu_order order;
    uint64_t seed;
} orders[] = {{KEDGE_GPU_ASCENDING, 0},
              {KEDGE_GPU_DESCENDING, 0},
              {KEDGE_GPU_SHUFFLED, 1},
              {KEDGE_GPU_SHUFFLED, 2},
              {KEDGE_GPU_SHUFFLED, 3}};
enum { ORDERS = sizeof orders / sizeof *orders };

static void check_in_order(int which, uint32_t sites, bool has_blas)
{
    const struct kedge_ops_config config = {sites, 1, has_blas};
    char text[OPS_TABLE_TEXT];
    unsigned long checks = 0;
    kedge_gpu_host.order = orders[which].order;
    kedge_gpu_host.seed = orders[which].seed;
    kedge_gpu_host.failed = NULL;
    const char *bad = ops_table_check(kedge_cuda_ops(KEDGE_CUDA_VERSION), &config, 1, text, &checks);
    ck_assert_msg(!bad, "order %d: %s", which, bad);
    ck_assert_msg(!kedge_gpu_host.failed, "order %d: %s", which, kedge_gpu_host.failed);
    ck_assert_uint_gt(checks, 100);
}

START_TEST(one_site)
{
    check_in_order(_i, 1, false);
}
END_TEST

START_TEST(sites_together)
{
    check_in_order(_i, 3, false);
}
END_TEST

/* What stands around cuBLAS, with a product in C in its place. */
START_TEST(with_blas)
{
    check_in_order(_i, 1, true);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("client/train/cuda on the processor");
    TCase *tc = tcase_create("contract");
    tcase_set_timeout(tc, 0);
    tcase_add_loop_test(tc, one_site, EFFORT(0, 2), EFFORT(ORDERS, 3));
    tcase_add_loop_test(tc, sites_together, EFFORT(0, 3), EFFORT(ORDERS, 4));
    tcase_add_loop_test(tc, with_blas, 2, 3);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
