/* The inner loops of every vector width that this processor runs, and layers wide enough for their blocks,
 * against the same sums in double precision. */
#include <check.h>
#include <math.h>
#include <string.h>

#include "client/train/ops.h"
#include "client/train/philox.h"
#include "client/train/tile.h"
#include "common/base/mem.h"
#include "common/base/rng.h"

static const struct kedge_tiles *const widths[] = {&kedge_tiles_base, &kedge_tiles_avx2, &kedge_tiles_avx512};

static bool runs_here(int i)
{
#if defined(__x86_64__)
    bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    return i == 0 || (avx2 && (i == 1 || __builtin_cpu_supports("avx512f")));
#else
    return i == 0;
#endif
}

static float *noise(struct kedge_rng *rng, size_t count)
{
    float *p = kedge_mem_new_lines(count, sizeof *p);
    ck_assert_ptr_nonnull(p);
    for (size_t i = 0; i < count; i++) {
        p[i] = (float)(kedge_rng_unit(rng) * 2 - 1);
    }
    return p;
}

/* Windows of every number of pixels and places up to two tiles, of one to nine vectors of channels. */
static void try_windows(const struct kedge_tiles *t, uint32_t pixels, uint32_t places, uint32_t vecs,
                        uint32_t stride)
{
    struct kedge_rng rng;
    enum { ROWS = 3 };
    uint32_t offset[32], width = pixels * stride + 40, ld = vecs * t->lanes;
    kedge_rng_init(&rng, pixels, KEDGE_RNG_TEST, places, vecs);
    for (uint32_t k = 0; k < places; k++) {
        offset[k] = (uint32_t)kedge_rng_below(&rng, 40);
    }
    struct kedge_tile_windows r = {places, ld, offset, stride, width, ROWS, pixels, (uint64_t)pixels * ld};
    float *x = noise(&rng, (size_t)width * ROWS + 40), *w = noise(&rng, (size_t)places * ld);
    float *dy = noise(&rng, (size_t)ROWS * pixels * ld), *out = noise(&rng, (size_t)pixels * ld);
    float *dw = noise(&rng, (size_t)places * ld), *before = kedge_mem_new(places, ld * sizeof *before);
    memcpy(before, dw, (size_t)places * ld * sizeof *dw);
    t->forward(&r, x, w, out);
    t->weights(&r, x, dy, dw);
    for (uint32_t c = 0; c < ld; c++) {
        for (uint32_t p = 0; p < pixels; p++) {
            double sum = 0;
            for (uint32_t k = 0; k < places; k++) {
                sum += (double)x[offset[k] + p * stride] * (double)w[k * ld + c];
            }
            ck_assert_double_eq_tol((double)out[p * ld + c], sum, 1e-5);
        }
        for (uint32_t k = 0; k < places; k++) {
            double sum = (double)before[k * ld + c];
            for (uint32_t p = 0; p < ROWS * pixels; p++) {
                sum +=
                    (double)x[p / pixels * width + offset[k] + p % pixels * stride] * (double)dy[p * ld + c];
            }
            ck_assert_double_eq_tol((double)dw[k * ld + c], sum, 5e-5);
        }
    }
    void *const all[] = {x, w, dy, out, dw, before};
    for (int i = 0; i < 6; i++) {
        kedge_mem_free(all[i]);
    }
}

START_TEST(windows_of_all_sizes)
{
    if (!runs_here(_i)) {
        return;
    }
    for (uint32_t n = 1; n <= 29; n++) {
        try_windows(widths[_i], n, 30 - n, n % 9 + 1, n % 4 == 0 ? 2 : 1);
    }
}
END_TEST

START_TEST(products_of_all_sizes)
{
    struct kedge_rng rng;
    if (!runs_here(_i)) {
        return;
    }
    const struct kedge_tiles *t = widths[_i];
    kedge_rng_init(&rng, 1, KEDGE_RNG_TEST, 0, 0);
    for (uint32_t n = 1; n <= 23; n++) {
        uint32_t inner = 24 - n, width = 3 * t->lanes + n;
        float *a = noise(&rng, (size_t)inner * n), *b = noise(&rng, (size_t)inner * width);
        float *c = noise(&rng, (size_t)n * width), *z = noise(&rng, (size_t)n * inner);
        double *cs = kedge_mem_new((size_t)n * width, sizeof *cs);
        for (uint32_t i = 0; i < n * width; i++) {
            cs[i] = n % 3 ? 0.5 * (double)c[i] : 0;
            for (uint32_t j = 0; j < inner; j++) {
                cs[i] += (double)a[j * n + i / width] * (double)b[j * width + i % width];
            }
        }
        struct kedge_tile_product p = {n, inner, width, a, b, b, 2 * t->lanes, width, n % 3 ? 0.5f : 0.0f, c};
        t->product(&p);
        for (uint32_t i = 0; i < n * width; i++) {
            ck_assert_double_eq_tol((double)c[i], cs[i], 1e-5);
        }
        float *before = kedge_mem_new((size_t)n * inner, sizeof *before);
        memcpy(before, z, (size_t)n * inner * sizeof *z);
        t->dots(n, inner, width, c, b, z); /* c[n][width] · b[inner][width]ᵀ */
        for (uint32_t i = 0; i < n * inner; i++) {
            double sum = (double)before[i];
            for (uint32_t k = 0; k < width; k++) {
                sum += (double)c[i / inner * width + k] * (double)b[i % inner * width + k];
            }
            ck_assert_double_eq_tol((double)z[i], sum, 1e-4);
        }
        void *const all[] = {a, b, c, z, cs, before};
        for (int i = 0; i < 6; i++) {
            kedge_mem_free(all[i]);
        }
    }
}
END_TEST

/* A dense layer beyond the caches, whose kernel goes by blocks, and as it is where BLAS has it: the same. */
START_TEST(large_kernels_go_by_blocks)
{
    enum { IN = 2050, OUT = 2047, N = 49 };
    static const uint32_t batches[] = {1, 10, 13, 48, 49};
    struct kedge_ops_config config = {.sites = 1, .threads = 1};
    struct kedge_ops_layer layer = {.kind = KEDGE_OPS_DENSE, .as.dense = {IN, OUT, false}};
    struct kedge_device *dev;
    struct kedge_rng rng;
    char text[256];
    uint32_t n = batches[_i];
    kedge_rng_init(&rng, n, KEDGE_RNG_TEST, 0, 0);
    ck_assert_int_eq(kedge_ops_cpu.open(&config, &dev, text, sizeof text), KEDGE_OK);
    ck_assert_int_eq(kedge_ops_cpu.prepare(dev, &layer, 1, N), KEDGE_OK);
    float *x = noise(&rng, (size_t)n * IN), *w = noise(&rng, (size_t)IN * OUT), *b = noise(&rng, OUT);
    float *y = noise(&rng, (size_t)n * OUT), *dy = noise(&rng, (size_t)n * OUT);
    float *dx = noise(&rng, (size_t)n * IN), *old = kedge_mem_new((size_t)IN * OUT, sizeof *old);
    float *error = kedge_mem_new((size_t)n * OUT, sizeof *error);
    struct kedge_ops_step step = {0.75f, 0.5f, -0.25f};
    memcpy(old, w, sizeof *w * IN * OUT);
    memcpy(error, dy, sizeof *dy * n * OUT);
    kedge_ops_cpu.dense_forward(dev, &layer.as.dense, n, x, w, b, y);
    kedge_ops_cpu.dense_backward(dev, &layer.as.dense, n, x, y, dy, w, dx, &step, w, b);
    for (uint32_t probe = 0; probe < 500; probe++) { /* of each result, the edges among them */
        uint32_t o = probe < 4 ? probe % 2 * (OUT - 1) : (uint32_t)kedge_rng_below(&rng, OUT);
        uint32_t i = probe < 4 ? probe / 2 * (IN - 1) : (uint32_t)kedge_rng_below(&rng, IN);
        uint32_t r = (uint32_t)kedge_rng_below(&rng, n);
        double back = 0, kernel = 0.75 * (double)old[(size_t)o * IN + i];
        for (uint32_t k = 0; k < OUT; k++) {
            back += (double)error[(size_t)r * OUT + k] * (double)old[(size_t)k * IN + i];
        }
        for (uint32_t k = 0; k < n; k++) {
            kernel -= 0.25 * (double)error[(size_t)k * OUT + o] * (double)x[(size_t)k * IN + i];
        }
        ck_assert_double_eq_tol((double)dx[(size_t)r * IN + i], back, 1e-3);
        ck_assert_double_eq_tol((double)w[(size_t)o * IN + i], kernel, 1e-4);
    }
    void *const all[] = {x, w, b, y, dy, dx, old, error};
    for (int i = 0; i < 8; i++) {
        kedge_mem_free(all[i]);
    }
    kedge_ops_cpu.close(dev);
}
END_TEST

/* The first two known answers of Random123's philox4x32 with ten rounds. */
START_TEST(philox_gives_its_known_answers)
{
    static const uint32_t none[4] = {0}, all[4] = {~0u, ~0u, ~0u, ~0u};
    static const uint32_t known[2][4] = {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
                                         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}};
    uint32_t out[4];
    kedge_philox(none, none, out);
    ck_assert_mem_eq(out, known[0], sizeof out);
    kedge_philox(all, all, out);
    ck_assert_mem_eq(out, known[1], sizeof out);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tile");
    TCase *tc = tcase_create("tile");
    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, windows_of_all_sizes, 0, 3);
    tcase_add_loop_test(tc, products_of_all_sizes, 0, 3);
    tcase_add_loop_test(tc, large_kernels_go_by_blocks, 0, 5);
    tcase_add_test(tc, philox_gives_its_known_answers);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
