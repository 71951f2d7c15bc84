/* The products of small batches against three plain loops in double, over every tile's edge. */
#include <check.h>
#include <math.h>
#include <stdio.h>

#include "client/train/small.h"
#include "common/base/mem.h"
#include "common/base/rng.h"

static const uint32_t rows[] = {1, 2, 3, 5, 10, 11, 32};
static const uint32_t outs[] = {1, 4, 5, 6, 10, 17};
static const uint32_t widths[] = {1, 7, 8, 9, 15, 16, 17, 33, 64, 100};
enum { ROWS = sizeof rows / sizeof rows[0], OUTS = sizeof outs / sizeof outs[0] };
enum { WIDTHS = sizeof widths / sizeof widths[0] };

/* Of its own size, so that a sanitizer sees a step beyond it. */
static float *new_random(struct kedge_rng *rng, size_t count)
{
    float *v = kedge_mem_new(count, sizeof *v);
    ck_assert_ptr_nonnull(v);
    for (size_t i = 0; i < count; i++) {
        v[i] = (float)(kedge_rng_unit(rng) * 2 - 1);
    }
    return v;
}

static void check_dots(uint32_t n, uint32_t out, uint32_t in)
{
    struct kedge_rng rng;
    kedge_rng_init(&rng, n, KEDGE_RNG_TEST, out, in);
    float *x = new_random(&rng, (size_t)n * in), *w = new_random(&rng, (size_t)out * in);
    float *z = new_random(&rng, (size_t)n * out);
    double *expected = kedge_mem_new((size_t)n * out, sizeof *expected);
    for (uint32_t r = 0; r < n; r++) {
        for (uint32_t o = 0; o < out; o++) {
            double s = (double)z[r * out + o];
            for (uint32_t k = 0; k < in; k++) {
                s += (double)x[r * in + k] * (double)w[o * in + k];
            }
            expected[r * out + o] = s;
        }
    }
    kedge_small_dots(n, out, in, x, w, z);
    for (uint32_t i = 0; i < n * out; i++) {
        ck_assert_msg(fabs((double)z[i] - expected[i]) < 1e-5, "%u × %u × %u: %u is %g, expected %g", n, out,
                      in, i, (double)z[i], expected[i]);
    }
    kedge_mem_free(x);
    kedge_mem_free(w);
    kedge_mem_free(z);
    kedge_mem_free(expected);
}

static void check_product(uint32_t n, uint32_t inner, uint32_t width, bool transposed, float keep)
{
    struct kedge_rng rng;
    kedge_rng_init(&rng, n, KEDGE_RNG_TEST, inner, width);
    float *a = new_random(&rng, (size_t)n * inner), *b = new_random(&rng, (size_t)inner * width);
    float *c = new_random(&rng, (size_t)n * width);
    double *expected = kedge_mem_new((size_t)n * width, sizeof *expected);
    uint32_t row_stride = transposed ? 1 : inner, inner_stride = transposed ? n : 1;
    for (uint32_t r = 0; r < n; r++) {
        for (uint32_t k = 0; k < width; k++) {
            double s = (double)keep * (double)c[r * width + k];
            for (uint32_t j = 0; j < inner; j++) {
                s += (double)a[r * row_stride + j * inner_stride] * (double)b[j * width + k];
            }
            expected[r * width + k] = s;
        }
    }
    if (keep == 0.0f) {
        c[0] = NAN; /* what c held does not matter */
    }
    kedge_small_product(n, inner, width, a, row_stride, inner_stride, b, keep, c);
    for (uint32_t i = 0; i < n * width; i++) {
        ck_assert_msg(fabs((double)c[i] - expected[i]) < 1e-5, "%u × %u × %u: %u is %g, expected %g", n,
                      inner, width, i, (double)c[i], expected[i]);
    }
    kedge_mem_free(a);
    kedge_mem_free(b);
    kedge_mem_free(c);
    kedge_mem_free(expected);
}

START_TEST(dot_products_agree)
{
    for (uint32_t o = 0; o < OUTS; o++) {
        for (uint32_t k = 0; k < WIDTHS; k++) {
            check_dots(rows[_i], outs[o], widths[k]);
        }
    }
}
END_TEST

START_TEST(products_agree)
{
    for (uint32_t o = 0; o < OUTS; o++) {
        for (uint32_t k = 0; k < WIDTHS; k++) {
            check_product(rows[_i], outs[o], widths[k], false, 0.0f);
            check_product(outs[o], rows[_i], widths[k], true, 0.999f);
        }
    }
}
END_TEST

/* Against exp and log in double, also far from 0 and with rows that end inside a vector. */
START_TEST(probabilities_agree)
{
    static const uint32_t classes[] = {1, 2, 7, 8, 9, 10, 16, 33, 100};
    static const float spreads[] = {0.01f, 3, 40, 200};
    for (size_t k = 0; k < sizeof classes / sizeof *classes; k++) {
        for (size_t p = 0; p < sizeof spreads / sizeof *spreads; p++) {
            uint32_t n = rows[_i], c = classes[k];
            struct kedge_rng rng;
            int32_t labels[32];
            double loss = 0;
            kedge_rng_init(&rng, n, KEDGE_RNG_TEST, c, p);
            float *z = new_random(&rng, (size_t)n * c);
            double *expected = kedge_mem_new((size_t)n * c, sizeof *expected);
            for (uint32_t r = 0; r < n; r++) {
                double sum = 0, most = -1e300;
                labels[r] = (int32_t)kedge_rng_below(&rng, c);
                for (uint32_t i = 0; i < c; i++) {
                    z[r * c + i] *= spreads[p];
                    most = fmax(most, (double)z[r * c + i]);
                }
                for (uint32_t i = 0; i < c; i++) {
                    expected[r * c + i] = exp((double)z[r * c + i] - most);
                    sum += expected[r * c + i];
                }
                for (uint32_t i = 0; i < c; i++) {
                    expected[r * c + i] /= sum;
                }
                loss += log(sum) + most - (double)z[r * c + (uint32_t)labels[r]];
            }
            double got = kedge_small_softmax(n, c, labels, z);
            ck_assert_double_eq_tol(got, loss, 1e-5 * (1 + fabs(loss)));
            for (uint32_t i = 0; i < n * c; i++) {
                ck_assert_double_eq_tol((double)z[i], expected[i], 1e-6);
            }
            z[0] = NAN;
            labels[0] = 0;
            ck_assert(isnan(kedge_small_softmax(1, c, labels, z)));
            kedge_mem_free(z);
            kedge_mem_free(expected);
        }
    }
}
END_TEST

int main(void)
{
    if (!kedge_small_is_available()) {
        printf("skipped: this processor has no AVX2\n");
        return 0;
    }
    Suite *suite = suite_create("small");
    TCase *tc = tcase_create("small");
    tcase_add_loop_test(tc, dot_products_agree, 0, ROWS);
    tcase_add_loop_test(tc, products_agree, 0, ROWS);
    tcase_add_loop_test(tc, probabilities_agree, 0, ROWS);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
