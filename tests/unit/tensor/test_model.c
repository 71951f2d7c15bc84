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
    ck_assert(kedge_model_same(&a, &b));
    ck_assert_uint_eq(kedge_model_values_count(&a), 407050);
    ck_assert_uint_eq(kedge_model_inputs(&a), 784);
    ck_assert_uint_eq(kedge_model_outputs(&a), 10);
    ck_assert_int_eq(from_json("{\"preset\":\"mclr\",\"inputs\":784,\"classes\":10}", &a, NULL), KEDGE_OK);
    ck_assert_uint_eq(kedge_model_values_count(&a), 7850);
}
END_TEST

/* The literature's counts of parameters, and that what is written reads back. */
static const struct {
    const char *text;
    uint64_t values, inputs, outputs;
} presets[] = {
    {"{\"preset\":\"lenet\"}", 61706, 784, 10},
    {"{\"preset\":\"lenet\",\"classes\":47}", 61706 + 37 * 85, 784, 47},
    {"{\"preset\":\"femnist-cnn\"}", 6603710, 784, 62},
    {"{\"preset\":\"cifar-cnn\"}", 1387786, 3072, 10},

    {"{\"preset\":\"char-lstm\"}", 819920, 80, 80},
};

START_TEST(presets_have_the_shapes_of_the_literature)
{
    struct kedge_model_spec a, b;
    struct kedge_buf out;
    ck_assert_int_eq(from_json(presets[_i].text, &a, NULL), KEDGE_OK);
    ck_assert_uint_eq(kedge_model_values_count(&a), presets[_i].values);
    ck_assert_uint_eq(kedge_model_inputs(&a), presets[_i].inputs);
    ck_assert_uint_eq(kedge_model_outputs(&a), presets[_i].outputs);
    kedge_buf_init(&out, 4096);
    kedge_model_put_json(&a, &out);
    kedge_buf_put_u8(&out, 0);
    ck_assert_int_eq(from_json((const char *)out.ptr, &b, NULL), KEDGE_OK);
    ck_assert(kedge_model_same(&a, &b));
    kedge_buf_deinit(&out);
}
END_TEST

/* Every kind of layer, with what may be left out left out, and again as it is written. */
START_TEST(layers_of_all_kinds_read_back)
{
    static const char *const texts[] = {
        "{\"input\":[3,9,8],\"loss\":\"mse\",\"layers\":["
        "{\"type\":\"conv2d\",\"out\":6,\"kernel\":3,\"stride\":2,\"padding\":1,\"activation\":\"relu\"},"
        "{\"type\":\"groupnorm\",\"groups\":3},{\"type\":\"gelu\"},{\"type\":\"maxpool\",\"kernel\":2},"
        "{\"type\":\"avgpool\",\"kernel\":2,\"stride\":1},{\"type\":\"relu\"},"
        "{\"type\":\"dropout\",\"rate\":\"0.25\"},{\"type\":\"flatten\"},{\"type\":\"dense\",\"out\":4},"
        "{\"type\":\"layernorm\"},{\"type\":\"tanh\"}]}",
        "{\"input\":[7],\"layers\":[{\"type\":\"embedding\",\"in\":5,\"out\":3},"
        "{\"type\":\"layernorm\"},{\"type\":\"lstm\",\"out\":4,\"sequence\":true},"
        "{\"type\":\"lstm\",\"out\":2},{\"type\":\"dense\",\"out\":5}]}"};
    static const uint64_t values[] = {3 * 6 * 9 + 6 + 12 + 6 * 4 + 4 + 8,
                                      15 + 6 + 16 * (3 + 4 + 2) + 8 * (4 + 2 + 2) + 15};
    struct kedge_model_spec a, b;
    struct kedge_layout layout;
    struct kedge_diag d = {.text = ""};
    struct kedge_buf out;
    int err = from_json(texts[_i], &a, &d);
    ck_assert_msg(err == KEDGE_OK, "%s", d.text);
    ck_assert_uint_eq(kedge_model_values_count(&a), values[_i]);
    ck_assert_int_eq(kedge_model_layout(&a, &layout, NULL), KEDGE_OK);
    ck_assert_uint_eq(layout.values_count, values[_i]);
    kedge_layout_deinit(&layout);
    kedge_buf_init(&out, 4096);
    kedge_model_put_json(&a, &out);
    kedge_buf_put_u8(&out, 0);
    ck_assert_int_eq(from_json((const char *)out.ptr, &b, NULL), KEDGE_OK);
    ck_assert(kedge_model_same(&a, &b));
    b.layers[6].rate = 0.26;
    b.layers[3].last = !b.layers[3].last;
    ck_assert(!kedge_model_same(&a, &b));
    kedge_buf_deinit(&out);
}
END_TEST

/* Biases are zero but at forget gates, scales of norms one. */
START_TEST(first_weights_of_other_layers)
{
    struct kedge_model_spec a;
    float w[7 * 3 + 6 + 8 * 5 + 16 + 2 * 3 + 3];
    ck_assert_int_eq(from_json("{\"input\":[4],\"layers\":[{\"type\":\"embedding\",\"in\":7,\"out\":3},"
                               "{\"type\":\"layernorm\"},{\"type\":\"lstm\",\"out\":2},"
                               "{\"type\":\"dense\",\"out\":3}]}",
                               &a, NULL),
                     KEDGE_OK);
    ck_assert_uint_eq(kedge_model_values_count(&a), sizeof w / sizeof w[0]);
    kedge_model_init(&a, 5, w);
    for (int i = 0; i < 3; i++) {
        ck_assert_float_eq(w[21 + i], 1.0f);
        ck_assert_float_eq(w[24 + i], 0.0f);
    }
    for (int i = 0; i < 16; i++) { /* bias_ih i f g o of two units each, bias_hh */
        ck_assert_float_eq(w[27 + 40 + i], i == 2 || i == 3 ? 1.0f : 0.0f);
    }
    ck_assert_double_le(fabs((double)w[0]), sqrt(6.0 / 10));
    ck_assert(w[0] != 0.0f && w[27] != 0.0f && w[83] != 0.0f);
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
    ck_assert(kedge_model_same(&a, &b));
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
    {"{\"layers\":[{\"type\":\"conv2d\",\"in\":1,\"out\":1,\"kernel\":3}]}", "\"input\" is missing"},
    {"{\"input\":[1,2],\"layers\":[{\"type\":\"conv2d\",\"in\":1,\"out\":1,\"kernel\":3}]}",
     "takes an image [channels, height, width]"},
    {"{\"input\":[1,2,2],\"layers\":[{\"type\":\"conv2d\",\"out\":1,\"kernel\":3}]}",
     "\"kernel\" is 3, but the height only 2"},
    {"{\"input\":[1,9,9],\"layers\":[{\"type\":\"conv2d\",\"out\":1,\"kernel\":16}]}", "\"kernel\""},
    {"{\"input\":[1,9,9],\"layers\":[{\"type\":\"conv2d\",\"out\":1,\"kernel\":2,\"padding\":2}]}",
     "\"padding\" is 2, expected 0 to 1"},
    {"{\"input\":[1,9,9],\"layers\":[{\"type\":\"conv2d\",\"out\":1,\"kernel\":2,\"stride\":0}]}",
     "\"stride\""},
    {"{\"input\":[1,9,9],\"layers\":[{\"type\":\"dense\",\"out\":2}]}", "\"in\""},
    {"{\"input\":[1,9,9],\"layers\":[{\"type\":\"dense\",\"in\":81,\"out\":2}]}", "flatten first"},
    {"{\"input\":[1,9,9],\"layers\":[{\"type\":\"conv2d\",\"out\":2,\"kernel\":2}]}", "expected a vector"},
    {"{\"input\":[1,9,9],\"layers\":[{\"type\":\"flatten\"}]}", "no parameters"},
    {"{\"input\":[5000,5000],\"layers\":[{\"type\":\"flatten\"}]}", "\"input\""},
    {"{\"input\":[16777216,16777216,16777216],\"layers\":[{\"type\":\"flatten\"}]}", "\"input\""},
    {"{\"input\":[],\"layers\":[{\"type\":\"flatten\"}]}", "\"input\""},
    {"{\"input\":[0],\"layers\":[{\"type\":\"flatten\"}]}", "\"input\""},
    {"{\"input\":[1.5],\"layers\":[{\"type\":\"flatten\"}]}", "\"input\""},
    {"{\"input\":[\"4\"],\"layers\":[{\"type\":\"flatten\"}]}", "\"input\""},
    {"{\"input\":[1,4000,4000],\"layers\":[{\"type\":\"conv2d\",\"out\":9,\"kernel\":1}]}",
     "values for a sample"},
    {"{\"input\":[4096],\"layers\":[{\"type\":\"embedding\",\"in\":9,\"out\":4097}]}", "values for a sample"},
    {"{\"input\":[4],\"layers\":[{\"type\":\"dense\",\"in\":4,\"out\":4},{\"type\":\"embedding\",\"in\":9,"
     "\"out\":2},"
     "{\"type\":\"flatten\"},{\"type\":\"dense\",\"out\":2}]}",
     "layer 1: an embedding takes the samples' own token numbers"},
    {"{\"input\":[4],\"layers\":[{\"type\":\"dropout\",\"rate\":\"0.5\"},"
     "{\"type\":\"embedding\",\"in\":9,\"out\":2},{\"type\":\"flatten\"},{\"type\":\"dense\",\"out\":2}]}",
     "layer 1: an embedding takes the samples' own token numbers"},
    {"{\"input\":[4],\"layers\":[{\"type\":\"lstm\",\"in\":4,\"out\":2}]}", "takes a sequence"},
    {"{\"input\":[2,4],\"layers\":[{\"type\":\"lstm\",\"in\":3,\"out\":2}]}",
     "\"in\" is 3, but its input has 4"},
    {"{\"input\":[4],\"layers\":[{\"type\":\"dropout\",\"rate\":\"1\"},{\"type\":\"dense\",\"out\":2}]}",
     "\"rate\""},
    {"{\"input\":[4],\"layers\":[{\"type\":\"dropout\",\"rate\":true},{\"type\":\"dense\",\"out\":2}]}",
     "\"rate\""},
    {"{\"input\":[4,1,1],\"layers\":[{\"type\":\"groupnorm\",\"groups\":3},{\"type\":\"flatten\"}]}",
     "does not divide 4 channels"},
    {"{\"input\":[4],\"layers\":[{\"type\":\"relu\",\"out\":4},{\"type\":\"dense\",\"out\":2}]}",
     "unknown key \"out\""},
    {"{\"loss\":\"hinge\",\"layers\":[{\"type\":\"dense\",\"in\":1,\"out\":1}]}", "\"loss\""},
    {"{\"preset\":\"lenet\",\"inputs\":784}", "unknown key \"inputs\""},
    {"{\"preset\":\"lenet\",\"classes\":0}", "\"classes\""},
    {"{\"preset\":\"a name of more than thirty-two characters\"}", "\"preset\""},
    {"{\"layers\":[{\"type\":\"dense\",\"in\":1}]}", "\"out\" is missing"},
    {"{\"layers\":[{\"type\":\"dense\",\"in\":0,\"out\":1}]}", "\"in\""},
    {"{\"layers\":[{\"type\":\"dense\",\"in\":1,\"out\":16777217}]}", "\"out\""},
    {"{\"layers\":[{\"type\":\"dense\",\"in\":\"1\",\"out\":1}]}", "expected a number"},
    {"{\"layers\":[{\"type\":\"dense\",\"in\":1,\"out\":1,\"bias\":true}]}", "unknown key \"bias\""},
    {"{\"layers\":[{\"type\":\"dense\",\"in\":1,\"out\":1,\"activation\":\"tanh\"}]}", "\"activation\""},
    {"{\"layers\":[{\"type\":\"dense\",\"in\":1,\"out\":1,\"activation\":\"relu\"}]}", "logits"},
    {"{\"layers\":[{\"type\":\"dense\",\"in\":4,\"out\":3},{\"type\":\"dense\",\"in\":4,\"out\":2}]}",
     "layer 1: \"in\" is 4, but layer 0 has \"out\" 3"},
    {"{\"layers\":[{\"type\":\"dense\",\"in\":16777216,\"out\":4096}]}", "at most 68719476736"},
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

/* Models of every kind of tensor; pieces of one value, primes, and more than all. */
static const struct {
    const char *text;
    size_t piece;
} cuts[] = {
    {"{\"preset\":\"mlp\",\"inputs\":61,\"hidden\":32,\"classes\":10}", 1},
    {"{\"preset\":\"mlp\",\"inputs\":61,\"hidden\":32,\"classes\":10}", 7},
    {"{\"preset\":\"mlp\",\"inputs\":61,\"hidden\":32,\"classes\":10}", 61 * 32}, /* as long as a tensor */
    {"{\"preset\":\"mlp\",\"inputs\":61,\"hidden\":32,\"classes\":10}", 61 * 32 + 1},
    {"{\"preset\":\"lenet\"}", 1},
    {"{\"preset\":\"lenet\"}", 997},
    {"{\"preset\":\"lenet\"}", 100000},
    {"{\"preset\":\"char-lstm\"}", 1},
    {"{\"preset\":\"char-lstm\"}", 4099},
    {"{\"input\":[2,9,8],\"layers\":[{\"type\":\"relu\"},{\"type\":\"conv2d\",\"out\":6,\"kernel\":3},"
     "{\"type\":\"groupnorm\",\"groups\":3},{\"type\":\"flatten\"},{\"type\":\"dense\",\"out\":4},"
     "{\"type\":\"layernorm\"},{\"type\":\"tanh\"}]}",
     13},
};

START_TEST(first_weights_are_the_same_however_they_are_cut)
{
    struct kedge_model_spec spec;
    struct kedge_model_weights w;
    ck_assert_int_eq(from_json(cuts[_i].text, &spec, NULL), KEDGE_OK);
    size_t count = (size_t)kedge_model_values_count(&spec), at = 0, piece = cuts[_i].piece, n;
    float *whole = kedge_mem_new(count, sizeof *whole), *part = kedge_mem_new(piece, sizeof *part);
    ck_assert(whole && part);
    kedge_model_init(&spec, 11, whole);
    kedge_model_weights_init(&w, &spec, 11);
    bool same = true; /* no assertion per value: each is a message to the runner */
    while (same && (n = kedge_model_weights_next(&w, part, piece)) > 0) {
        same =
            n == (piece < count - at ? piece : count - at) && memcmp(part, whole + at, n * sizeof *part) == 0;
        at += same ? n : 0;
    }
    ck_assert_msg(same, "the piece from value %zu is another", at);
    ck_assert_uint_eq(at, count);
    ck_assert_uint_eq(kedge_model_weights_next(&w, part, piece), 0);
    kedge_mem_free(whole);
    kedge_mem_free(part);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("model");
    tcase_add_test(tc, presets_are_their_layers);
    tcase_add_loop_test(tc, presets_have_the_shapes_of_the_literature, 0, sizeof presets / sizeof presets[0]);
    tcase_add_loop_test(tc, layers_of_all_kinds_read_back, 0, 2);
    tcase_add_test(tc, first_weights_of_other_layers);
    tcase_add_test(tc, json_reads_back);
    tcase_add_loop_test(tc, bad_models_are_refused_by_name, 0, sizeof bad / sizeof bad[0]);
    tcase_add_test(tc, tensors_are_named_as_in_a_pytorch_sequential);
    tcase_add_test(tc, first_weights_are_glorot_uniform_and_fixed_by_the_seed);
    tcase_add_test(tc, first_weights_never_change);
    tcase_add_loop_test(tc, first_weights_are_the_same_however_they_are_cut, 0, sizeof cuts / sizeof cuts[0]);
    return run_suite(suite_create("model"), tc);
}
