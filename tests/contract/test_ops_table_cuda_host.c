/* The contract of ops.h for the source of the CUDA back end, run on the processor (tests/fixtures/gpu_host):
 * threads and blocks ascending, descending and in three shuffled orders. What a device does is
 * scripts/gpu-check's to find out. */
#include "tests/fixtures/gpu_host/ops.h"

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
    const struct kedge_ops_config config = {sites, 1, KEDGE_OPS_F32};
    char text[OPS_TABLE_TEXT];
    unsigned long checks = 0;
    kedge_gpu_host.order = orders[which].order;
    kedge_gpu_host.seed = orders[which].seed;
    kedge_gpu_host.failed = NULL;
    kedge_gpu_host.has_blas = has_blas;
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

/* Significant bits of a product's operands, as enum kedge_ops_precision counts. */
static const struct {
    int bits;
    const char *engine;
} precisions[] = {
    {24, "cuda cublas emulated"}, {11, "cuda cublas tf32 emulated"}, {8, "cuda cublas bf16 emulated"}};

static double rounded(float v, int bits)
{
    int exponent;
    const double part = frexp((double)v, &exponent);
    return ldexp(nearbyint(ldexp(part, bits)), exponent - bits);
}

static void fill(struct kedge_rng *rng, float *to, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        to[i] = (float)(2 * kedge_rng_unit(rng) - 1);
    }
}

/* cuBLAS is asked for the precision that was asked for: operands are rounded, nothing else is. */
START_TEST(operands_are_rounded)
{
    enum { N = 3, IN = 33, OUT = 5 };
    const struct kedge_ops_config config = {1, 1, (enum kedge_ops_precision)_i};
    const struct kedge_ops_dense shape = {IN, OUT, false};
    const struct kedge_ops *ops = kedge_cuda_ops(KEDGE_CUDA_VERSION);
    float x[N * IN], w[OUT * IN], b[OUT], y[N * OUT];
    char text[128] = "";
    struct kedge_device *dev = NULL;
    struct kedge_rng rng;
    kedge_rng_init(&rng, 9, KEDGE_RNG_TEST, 0, 0);
    fill(&rng, x, N * IN);
    fill(&rng, w, OUT * IN);
    fill(&rng, b, OUT);
    kedge_gpu_host.order = KEDGE_GPU_ASCENDING;
    kedge_gpu_host.has_blas = true;
    ck_assert_msg(ops->open(&config, &dev, text, sizeof text) == KEDGE_OK, "%s", text);
    ck_assert_str_eq(ops->engine(dev), precisions[_i].engine);
    float *dx = ops->alloc(dev, sizeof x), *dw = ops->alloc(dev, sizeof w), *db = ops->alloc(dev, sizeof b),
          *dy = ops->alloc(dev, sizeof y);
    ck_assert(dx && dw && db && dy);
    ops->upload(dev, 0, dx, x, sizeof x);
    ops->upload(dev, 0, dw, w, sizeof w);
    ops->upload(dev, 0, db, b, sizeof b);
    ops->dense_forward(dev, &shape, N, dx, dw, db, dy);
    ck_assert_int_eq(ops->download(dev, 0, y, dy, sizeof y), KEDGE_OK);
    double most = 0;
    for (size_t at = 0; at < N * OUT; at++) {
        double want = (double)b[at % OUT], whole = want;
        for (size_t k = 0; k < IN; k++) {
            const float xv = x[at / OUT * IN + k], wv = w[at % OUT * IN + k];
            want += rounded(xv, precisions[_i].bits) * rounded(wv, precisions[_i].bits);
            whole += (double)xv * (double)wv;
        }
        ck_assert_msg(fabs((double)y[at] - want) <= 4e-6, "value %zu: %g, expected %g", at, (double)y[at],
                      want);
        most = fmax(most, fabs(whole - want));
    }
    ck_assert(_i == 0 ? most < 1e-12 : most > 1e-4); /* by far more than the tolerance */
    ops->close(dev);
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
    tcase_add_loop_test(tc, operands_are_rounded, 0, 3);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
