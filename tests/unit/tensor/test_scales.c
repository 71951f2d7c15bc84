/* What models know of their inputs: digits hold values from 2^-40 to 2^40, and averages of digits are
 * averages of values, also once an update has rounded them to units of 2^-20. */
#include "common/tensor/scales.h"

#include <math.h>
#include <stdio.h>

#include "common/tensor/model.h"
#include "tests/unit/tensor/suite.h"

enum { INPUTS = 7, FLOATS = 2 * KEDGE_SCALES_DIGITS * INPUTS + 1 };
static const double values[2][INPUTS] = {{0, 1, -2.5, 654.889, 1.7e9, 3.8e-9, -1e12},
                                         {0, 3, 2.5, 650.000004, 1.7e9 + 1, 4e-9, 1e12}};

/* Two sites of 1 and 3 samples, each as its update has it. */
static void average(float out[FLOATS], const double a[INPUTS], const double b[INPUTS])
{
    float one[FLOATS], other[FLOATS];
    uint32_t bad;
    memcpy(one, out, sizeof one);
    memcpy(other, out, sizeof other);
    ck_assert_int_eq(kedge_scales_advance(one, INPUTS, a, &bad), KEDGE_OK);
    ck_assert_int_eq(kedge_scales_advance(other, INPUTS, b, &bad), KEDGE_OK);
    for (int i = 0; i < FLOATS; i++) {
        double q = nearbyint(((double)one[i] - (double)out[i]) * 0x1p20);
        double r = nearbyint(((double)other[i] - (double)out[i]) * 0x1p20);
        ck_assert_double_le(fabs(q), 0x1p21);
        ck_assert_double_le(fabs(r), 0x1p21);
        out[i] = (float)((double)out[i] + (q + 3 * r) / 4 * 0x1p-20);
    }
}

START_TEST(averages_of_digits_are_averages_of_values)
{
    float scales[FLOATS] = {0};
    double mean, deviation;
    ck_assert_uint_eq(kedge_scales_count(INPUTS), FLOATS);
    ck_assert_uint_eq(kedge_scales_stage(scales, INPUTS), 0);
    kedge_scales_get(scales, INPUTS, 3, &mean, &deviation);
    ck_assert(mean == 0 && deviation == 1);
    average(scales, values[0], values[1]);
    ck_assert_uint_eq(kedge_scales_stage(scales, INPUTS), 1);
    for (uint32_t i = 0; i < INPUTS; i++) {
        double expected = (values[0][i] + 3 * values[1][i]) / 4;
        kedge_scales_get(scales, INPUTS, i, &mean, &deviation);
        ck_assert_double_eq_tol(mean, expected, fabs(expected) * 1e-6 + 0x1p-40);
        ck_assert(deviation == 1);
    }
    static const double squares[INPUTS] = {0, 4, 1e-6, 351.5 * 351.5, 25, 1e-30, 1e10};
    average(scales, squares, squares);
    ck_assert_uint_eq(kedge_scales_stage(scales, INPUTS), 2);
    for (uint32_t i = 0; i < INPUTS; i++) {
        kedge_scales_get(scales, INPUTS, i, &mean, &deviation);
        bool constant = i == 0 || i == 5 || i == 6 || i == 4; /* or as good as that beside its mean */
        double expected = i == 4 ? 5 : i == 6 ? 1e5 : constant ? 1 : sqrt(squares[i]);
        ck_assert_double_eq_tol(deviation, expected, expected * 1e-5);
    }
}
END_TEST

START_TEST(values_without_a_place_are_named)
{
    float scales[FLOATS] = {0}, before[FLOATS];
    double big[INPUTS] = {0};
    uint32_t bad = 0;
    memcpy(before, scales, sizeof before);
    big[4] = 0x1p41;
    ck_assert_int_eq(kedge_scales_advance(scales, INPUTS, big, &bad), KEDGE_E_FORMAT);
    ck_assert_uint_eq(bad, 4);
    big[4] = NAN;
    ck_assert_int_eq(kedge_scales_advance(scales, INPUTS, big, &bad), KEDGE_E_FORMAT);
    ck_assert_mem_eq(scales, before, sizeof before);
}
END_TEST

/* Behind the layers' tensors, zero at first; the layers' first weights are as without them, however cut. */
START_TEST(they_are_tensors_behind_the_layers)
{
    struct kedge_model_spec plain, with, again;
    struct kedge_layout layout;
    struct kedge_buf text;
    struct kedge_json_token tokens[64];
    struct kedge_json doc;
    float a[8], b[8 + 8 * 3 + 1], c[8 + 8 * 3 + 1];
    ck_assert_int_eq(kedge_model_mclr(3, 2, &plain, NULL), KEDGE_OK);
    with = plain;
    with.standardize = true;
    ck_assert(!kedge_model_same(&plain, &with));
    ck_assert_uint_eq(kedge_model_values_count(&with), 8 + 25);
    ck_assert_int_eq(kedge_model_layout(&with, &layout, NULL), KEDGE_OK);
    ck_assert_uint_eq(layout.count, 5);
    ck_assert_uint_eq(layout.values_count, 8 + 25);
    ck_assert_str_eq(layout.tensors[2].name, "standardize.mean");
    ck_assert_str_eq(layout.tensors[4].name, "standardize.stage");
    kedge_layout_deinit(&layout);
    kedge_model_init(&plain, 5, a);
    struct kedge_model_weights w;
    kedge_model_weights_init(&w, &with, 5);
    size_t n = 0, got;
    while ((got = kedge_model_weights_next(&w, b + n, 7 < 33 - n ? 7 : 33 - n)) > 0) {
        n += got;
    }
    ck_assert_uint_eq(n, 33);
    kedge_model_init(&with, 5, c);
    ck_assert_mem_eq(a, b, sizeof a);
    ck_assert_mem_eq(b, c, sizeof c);
    for (int i = 8; i < 33; i++) {
        ck_assert_float_eq(b[i], 0);
    }
    kedge_buf_init(&text, 1024);
    kedge_model_put_json(&with, &text);
    ck_assert_int_eq(kedge_json_parse(kedge_buf_view(&text), tokens, 64, &doc, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_model_from_json(&doc, 0, &again, NULL), KEDGE_OK);
    ck_assert(kedge_model_same(&with, &again));
    kedge_buf_deinit(&text);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("scales");
    tcase_add_test(tc, averages_of_digits_are_averages_of_values);
    tcase_add_test(tc, values_without_a_place_are_named);
    tcase_add_test(tc, they_are_tensors_behind_the_layers);
    return run_suite(suite_create("scales"), tc);
}
