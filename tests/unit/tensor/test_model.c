#include <math.h>

#include "common/base/mem.h"
#include "common/tensor/model.h"
#include "tests/unit/tensor/suite.h"

static int from_json(const char *text, struct kedge_model_spec *ret, struct kedge_diag *diag)
{
    static struct kedge_json_token tokens[1024];
    struct kedge_json doc;
    ck_assert_int_eq(kedge_json_parse(kedge_view_str(text), tokens, 1024, &doc, diag), KEDGE_OK);
    return kedge_model_from_json(&doc, 0, ret, diag);
}

START_TEST(presets_are_their_layers)
{
    struct kedge_model_spec a, b;
    ck_assert_int_eq(from_json("{\"preset\":\"mlp\",\"inputs\":784,\"hidden\":512,\"classes\":10}", &a, NULL),
                     KEDGE_OK);
    ck_assert_int_eq(
        from_json("{\"layers\":[{\"type\":\"dense\",\"in\":784,\"out\":512,\"activation\":\"relu\"},"
                  "{\"type\":\"dense\",\"in\":512,\"out\":10}]}",
                  &b, NULL),
        KEDGE_OK);
    ck_assert_mem_eq(&a, &b, sizeof a);
    ck_assert_uint_eq(kedge_model_values_count(&a), 407050);
    ck_assert_uint_eq(kedge_model_inputs(&a), 784);
    ck_assert_uint_eq(kedge_model_outputs(&a), 10);
    ck_assert_int_eq(from_json("{\"preset\":\"mclr\",\"inputs\":784,\"classes\":10}", &a, NULL), KEDGE_OK);
    ck_assert_uint_eq(kedge_model_values_count(&a), 7850);
}
END_TEST

START_TEST(json_reads_back)
{
    struct kedge_model_spec a, b;
    struct kedge_buf out;
    kedge_buf_init(&out, 4096);
    ck_assert_int_eq(kedge_model_mlp(64, 32, 10, &a, NULL), KEDGE_OK);
    kedge_model_put_json(&a, &out);
    kedge_buf_put_u8(&out, 0);
    ck_assert_int_eq(from_json((const char *)out.ptr, &b, NULL), KEDGE_OK);
    ck_assert_mem_eq(&a, &b, sizeof a);
    kedge_buf_deinit(&out);
}
END_TEST

static const struct {
    const char *text, *says;
} bad[] = {
    {"{}", "\"layers\""},
    {"[]", "expected an object"},
    {"{\"layers\":[]}", "1 to 64 layers"},
    {"{\"layers\":3}", "1 to 64 layers"},
    {"{\"layers\":[1]}", "layer 0: layer: expected an object"},
    {"{\"layers\":[{\"type\":\"conv\",\"in\":1,\"out\":1}]}", "\"type\": expected \"dense\""},
    {"{\"layers\":[{\"type\":\"dense\",\"in\":1}]}", "\"out\" is missing"},
    {"{\"layers\":[{\"type\":\"dense\",\"in\":0,\"out\":1}]}", "\"in\""},
    {"{\"layers\":[{\"type\":\"dense\",\"in\":1,\"out\":16777217}]}", "\"out\""},
    {"{\"layers\":[{\"type\":\"dense\",\"in\":\"1\",\"out\":1}]}", "expected a number"},
    {"{\"layers\":[{\"type\":\"dense\",\"in\":1,\"out\":1,\"bias\":true}]}", "unknown key \"bias\""},
    {"{\"layers\":[{\"type\":\"dense\",\"in\":1,\"out\":1,\"activation\":\"tanh\"}]}", "\"activation\""},
    {"{\"layers\":[{\"type\":\"dense\",\"in\":1,\"out\":1,\"activation\":\"relu\"}]}", "logits"},
    {"{\"layers\":[{\"type\":\"dense\",\"in\":4,\"out\":3},{\"type\":\"dense\",\"in\":4,\"out\":2}]}",
     "layer 1: \"in\" is 4, but layer 0 has \"out\" 3"},
    {"{\"layers\":[{\"type\":\"dense\",\"in\":65536,\"out\":65536}]}", "at most 2147483648"},
    {"{\"layers\":[{\"type\":\"dense\",\"in\":4,\"out\":3}],\"seed\":1}", "unknown key \"seed\""},
    {"{\"preset\":\"cnn\",\"inputs\":1,\"classes\":2}", "\"mclr\" or \"mlp\""},
    {"{\"preset\":\"mclr\",\"inputs\":4,\"hidden\":3,\"classes\":2}", "unknown key \"hidden\""},
    {"{\"preset\":\"mlp\",\"inputs\":4,\"classes\":2}", "\"hidden\" is missing"},
    {"{\"preset\":\"mclr\",\"inputs\":4,\"classes\":2,\"layers\":[]}", "unknown key \"layers\""},
};

START_TEST(bad_models_are_refused_by_name)
{
    struct kedge_model_spec spec;
    struct kedge_diag diag = {0};
    ck_assert_int_lt(from_json(bad[_i].text, &spec, &diag), 0);
    ASSERT_SAYS(diag, bad[_i].says);
}
END_TEST

START_TEST(tensors_are_named_as_in_a_pytorch_sequential)
{
    struct kedge_model_spec spec;
    struct kedge_layout l;
    ck_assert_int_eq(kedge_model_mlp(784, 128, 10, &spec, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_model_layout(&spec, &l, NULL), KEDGE_OK);
    static const struct {
        const char *name;
        uint32_t n;
        uint64_t dims[2];
    } expected[] = {
        {"0.weight", 2, {128, 784}}, {"0.bias", 1, {128}}, {"1.weight", 2, {10, 128}}, {"1.bias", 1, {10}}};
    ck_assert_uint_eq(l.count, 4);
    for (uint32_t i = 0; i < 4; i++) {
        ck_assert_str_eq(l.tensors[i].name, expected[i].name);
        ck_assert_uint_eq(l.tensors[i].dims_count, expected[i].n);
        ck_assert_uint_eq(l.tensors[i].dims[0], expected[i].dims[0]);
    }
    ck_assert_uint_eq(l.values_count, 101770);
    kedge_layout_deinit(&l);
}
END_TEST

START_TEST(first_weights_are_glorot_uniform_and_fixed_by_the_seed)
{
    struct kedge_model_spec spec;
    static float a[407050], b[407050];
    ck_assert_int_eq(kedge_model_mlp(784, 512, 10, &spec, NULL), KEDGE_OK);
    kedge_model_init(&spec, 2077, a);
    kedge_model_init(&spec, 2077, b);
    ck_assert_mem_eq(a, b, sizeof a);
    kedge_model_init(&spec, 2078, b);
    ck_assert_mem_ne(a, b, sizeof a);
    double limit = sqrt(6.0 / (784 + 512)), sum = 0, squares = 0, most = 0;
    for (int i = 0; i < 784 * 512; i++) {
        sum += (double)a[i];
        squares += (double)a[i] * (double)a[i];
        most = fmax(most, fabs((double)a[i]));
    }
    double n = 784 * 512;
    ck_assert_double_le(most, limit);
    ck_assert_double_ge(most, 0.999 * limit);
    ck_assert_double_le(fabs(sum / n), 5 * limit / sqrt(3 * n)); /* five standard errors */
    ck_assert_double_le(fabs(squares / n / (limit * limit / 3) - 1), 0.01);
    for (int i = 0; i < 512; i++) {
        ck_assert_float_eq(a[784 * 512 + i], 0.0f);
    }
    for (int i = 0; i < 10; i++) {
        ck_assert_float_eq(a[407040 + i], 0.0f);
    }
}
END_TEST

/* Part of the record: an auditor recomputes them, so they may never change. */
START_TEST(first_weights_never_change)
{
    struct kedge_model_spec spec;
    float w[5 * 4 + 5 + 5 * 3 + 3];
    static const float golden[] = {0x1.6d960a0000000p-2f, -0x1.36870a0000000p-3f, -0x1.e3626a0000000p-2f,
                                   -0x1.00bb420000000p-4f};
    ck_assert_int_eq(kedge_model_mlp(4, 5, 3, &spec, NULL), KEDGE_OK);
    kedge_model_init(&spec, 1, w);
    ck_assert_float_eq(w[0], golden[0]);
    ck_assert_float_eq(w[1], golden[1]);
    ck_assert_float_eq(w[25], golden[2]);
    ck_assert_float_eq(w[39], golden[3]);
    ck_assert_float_eq(w[42], 0.0f);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("model");
    tcase_add_test(tc, presets_are_their_layers);
    tcase_add_test(tc, json_reads_back);
    tcase_add_loop_test(tc, bad_models_are_refused_by_name, 0, sizeof bad / sizeof bad[0]);
    tcase_add_test(tc, tensors_are_named_as_in_a_pytorch_sequential);
    tcase_add_test(tc, first_weights_are_glorot_uniform_and_fixed_by_the_seed);
    tcase_add_test(tc, first_weights_never_change);
    return run_suite(suite_create("model"), tc);
}
