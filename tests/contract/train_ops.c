#include "tests/contract/train_ops.h"

#include <check.h>
#include <math.h>
#include <string.h>

#include "client/train/net.h"
#include "client/train/philox.h"
#include "common/base/mem.h"
#include "common/base/rng.h"
#include "tests/fixtures/train_reference.h"

enum { BATCH = 5, PARAMS_MAX = 4096 };

static const struct kedge_ops *ops;
static double tolerance;

/* Each layer alone before a dense one, and some of them together. ReLU and max pooling have corners, which
 * random values stay away from by far more than the difference. */
static const char *const models[] = {
    "{\"layers\":[{\"type\":\"dense\",\"in\":6,\"out\":4}]}",
    "{\"layers\":[{\"type\":\"dense\",\"in\":6,\"out\":5,\"activation\":\"relu\"},{\"type\":\"dense\","
    "\"out\":4}]}",
    "{\"input\":[2,5,6],\"layers\":[{\"type\":\"conv2d\",\"out\":3,\"kernel\":3},{\"type\":\"flatten\"},"
    "{\"type\":\"dense\",\"out\":4}]}",
    "{\"input\":[3,6,5],\"layers\":[{\"type\":\"conv2d\",\"out\":9,\"kernel\":3,\"padding\":1,"
    "\"activation\":\"relu\"},{\"type\":\"conv2d\",\"out\":5,\"kernel\":2,\"stride\":2},{\"type\":"
    "\"flatten\"},"
    "{\"type\":\"dense\",\"out\":4}]}",
    "{\"input\":[2,7,8],\"layers\":[{\"type\":\"conv2d\",\"out\":17,\"kernel\":2},{\"type\":\"conv2d\","
    "\"out\":3,"
    "\"kernel\":4,\"stride\":3,\"padding\":2},{\"type\":\"flatten\"},{\"type\":\"dense\",\"out\":4}]}",
    "{\"input\":[1,6,18],\"layers\":[{\"type\":\"conv2d\",\"out\":4,\"kernel\":5,\"padding\":2,"
    "\"activation\":\"relu\"},{\"type\":\"maxpool\",\"kernel\":3,\"stride\":2},{\"type\":\"flatten\"},"
    "{\"type\":\"dense\",\"out\":4}]}",
    "{\"input\":[1,4,22],\"layers\":[{\"type\":\"conv2d\",\"out\":2,\"kernel\":3,\"padding\":1},"
    "{\"type\":\"maxpool\",\"kernel\":2},{\"type\":\"flatten\"},{\"type\":\"dense\",\"out\":4}]}",
    "{\"input\":[2,6,6],\"layers\":[{\"type\":\"conv2d\",\"out\":3,\"kernel\":1},{\"type\":\"avgpool\","
    "\"kernel\":3,"
    "\"stride\":2},{\"type\":\"flatten\"},{\"type\":\"dense\",\"out\":4}]}",
    "{\"layers\":[{\"type\":\"dense\",\"in\":6,\"out\":7},{\"type\":\"relu\"},{\"type\":\"dense\",\"out\":4}]"
    "}",
    "{\"layers\":[{\"type\":\"dense\",\"in\":6,\"out\":7},{\"type\":\"gelu\"},{\"type\":\"dense\",\"out\":4}]"
    "}",
    "{\"layers\":[{\"type\":\"dense\",\"in\":6,\"out\":7},{\"type\":\"tanh\"},{\"type\":\"dense\",\"out\":4}]"
    "}",
    "{\"layers\":[{\"type\":\"dense\",\"in\":6,\"out\":9},{\"type\":\"dropout\",\"rate\":\"0.4\"},"
    "{\"type\":\"dense\",\"out\":4}]}",
    "{\"layers\":[{\"type\":\"dense\",\"in\":6,\"out\":7},{\"type\":\"layernorm\"},{\"type\":\"dense\","
    "\"out\":4}]}",
    "{\"input\":[2,4,4],\"layers\":[{\"type\":\"conv2d\",\"out\":6,\"kernel\":2},{\"type\":\"groupnorm\","
    "\"groups\":3},{\"type\":\"flatten\"},{\"type\":\"dense\",\"out\":4}]}",
    "{\"input\":[2,3,3],\"layers\":[{\"type\":\"conv2d\",\"out\":2,\"kernel\":2},{\"type\":\"layernorm\"},"
    "{\"type\":\"flatten\"},{\"type\":\"dense\",\"out\":4}]}",
    "{\"input\":[6],\"layers\":[{\"type\":\"embedding\",\"in\":7,\"out\":3},{\"type\":\"flatten\"},"
    "{\"type\":\"dense\",\"out\":4}]}",
    "{\"input\":[6],\"layers\":[{\"type\":\"embedding\",\"in\":7,\"out\":3},{\"type\":\"lstm\",\"out\":5},"
    "{\"type\":\"dense\",\"out\":4}]}",
    "{\"input\":[4,3],\"layers\":[{\"type\":\"lstm\",\"out\":5,\"sequence\":true},{\"type\":\"layernorm\"},"
    "{\"type\":\"lstm\",\"out\":9},{\"type\":\"dense\",\"out\":4}]}",
    "{\"input\":[1,3],\"layers\":[{\"type\":\"lstm\",\"out\":5},{\"type\":\"dense\",\"out\":4}]}",
    "{\"loss\":\"mse\",\"layers\":[{\"type\":\"dense\",\"in\":6,\"out\":4},{\"type\":\"tanh\"}]}",
    "{\"loss\":\"mse\",\"layers\":[{\"type\":\"dense\",\"in\":6,\"out\":5},{\"type\":\"gelu\"},"
    "{\"type\":\"dense\",\"out\":1}]}",
    "{\"input\":[1,9,9],\"layers\":[{\"type\":\"dropout\",\"rate\":\"0.2\"},{\"type\":\"conv2d\",\"out\":4,"
    "\"kernel\":3},{\"type\":\"gelu\"},{\"type\":\"maxpool\",\"kernel\":2},{\"type\":\"groupnorm\","
    "\"groups\":2},"
    "{\"type\":\"flatten\"},{\"type\":\"dense\",\"out\":8,\"activation\":\"relu\"},{\"type\":\"dense\","
    "\"out\":4}]}",
};
enum { MODELS = sizeof models / sizeof models[0] };

struct problem {
    struct kedge_model_spec spec;
    uint64_t count;
    double w[PARAMS_MAX];
    float x[BATCH * REFERENCE_WIDTH_MAX];
    int32_t labels[BATCH];
    struct kedge_device *dev;
    struct kedge_net *net;
};

static void read_model(const char *text, struct kedge_model_spec *ret)
{
    static struct kedge_json_token tokens[1024];
    struct kedge_json doc;
    struct kedge_diag d = {.text = ""};
    ck_assert_int_eq(kedge_json_parse(kedge_view_str(text), tokens, 1024, &doc, &d), KEDGE_OK);
    int err = kedge_model_from_json(&doc, 0, ret, &d);
    ck_assert_msg(err == KEDGE_OK, "%s: %s", text, d.text);
}

static void open_problem(int which, struct problem *p)
{
    struct kedge_ops_config config = {.sites = 1, .threads = 1};
    struct kedge_rng rng;
    char text[256] = "";
    memset(p, 0, sizeof *p);
    read_model(models[which], &p->spec);
    p->count = kedge_model_values_count(&p->spec);
    ck_assert_uint_le(p->count, PARAMS_MAX);
    kedge_rng_init(&rng, (uint64_t)which, KEDGE_RNG_TEST, 0, 0);
    for (uint64_t i = 0; i < p->count; i++) {
        p->w[i] = (double)(float)(kedge_rng_unit(&rng) * 1.2 - 0.6);
    }
    bool tokens = p->spec.layers[0].type == KEDGE_LAYER_EMBEDDING;
    for (uint32_t i = 0; i < BATCH * kedge_model_inputs(&p->spec); i++) {
        p->x[i] = tokens ? (float)kedge_rng_below(&rng, p->spec.layers[0].in)
                         : (float)(kedge_rng_unit(&rng) * 2 - 1);
    }
    for (uint32_t i = 0; i < BATCH; i++) {
        p->labels[i] = (int32_t)kedge_rng_below(&rng, 4);
    }
    int err = ops->open(&config, &p->dev, text, sizeof text);
    ck_assert_msg(err == KEDGE_OK, "%s", text);
    ck_assert_int_eq(kedge_net_new_on(&p->spec, BATCH, ops, p->dev, &p->net, NULL), KEDGE_OK);
    ck_assert_uint_eq(kedge_net_values_count(p->net), p->count);
}

static void close_problem(struct problem *p)
{
    kedge_net_free(p->net);
    ops->close(p->dev);
}

/* One step by the engine's own way from data to weights; the weights before it are p->w. The mean loss. */
static double one_step(struct problem *p, struct kedge_train_params params)
{
    struct kedge_dataset data = {.n = BATCH,
                                 .features = kedge_model_inputs(&p->spec),
                                 .classes = 4,
                                 .labels = p->labels,
                                 .reals = p->x};
    struct kedge_train_result result;
    struct kedge_diag d = {.text = ""};
    for (uint64_t i = 0; i < p->count; i++) {
        kedge_net_weights(p->net)[i] = (float)p->w[i];
    }
    params.steps = params.steps ? params.steps : 1;
    params.batch = params.batch ? params.batch : BATCH;
    int err = kedge_net_train(p->net, &data, &params, &result, &d);
    ck_assert_msg(err == KEDGE_OK, "%s", d.text);
    return result.loss;
}

/* Samples in the order of the step, as kedge_net_train shuffles them: dropout goes by the place in a batch.
 */
static void reorder(struct problem *p, uint64_t seed)
{
    float x[BATCH * REFERENCE_WIDTH_MAX];
    int32_t labels[BATCH];
    uint32_t order[BATCH], width = kedge_model_inputs(&p->spec);
    struct kedge_rng rng;
    for (uint32_t i = 0; i < BATCH; i++) {
        order[i] = i;
    }
    kedge_rng_init(&rng, seed, KEDGE_RNG_PRETRAIN, 0, 0);
    kedge_rng_sample(&rng, order, BATCH, BATCH);
    memcpy(x, p->x, sizeof x);
    memcpy(labels, p->labels, sizeof labels);
    for (uint32_t i = 0; i < BATCH; i++) {
        memcpy(p->x + i * width, x + order[i] * width, width * sizeof *x);
        p->labels[i] = labels[order[i]];
    }
}

static const double rate = 0.0625, decay = 0.02;

static void engine_gradient(struct problem *p, double clip, double *g, double *ret_loss)
{
    struct kedge_train_params params = {.lr = rate, .l2 = decay, .seed = 11, .clip = clip};
    *ret_loss = one_step(p, params);
    for (uint64_t i = 0; i < p->count; i++) {
        g[i] = (p->w[i] - (double)kedge_net_weights(p->net)[i]) / rate;
    }
}

static void central_differences(struct problem *p, double l2, double *g)
{
    const double h = 1e-6;
    for (uint64_t i = 0; i < p->count; i++) {
        double w = p->w[i];
        p->w[i] = w + h;
        double above = reference_loss(&p->spec, p->w, p->x, p->labels, BATCH, l2, 11, 0);
        p->w[i] = w - h;
        g[i] = (above - reference_loss(&p->spec, p->w, p->x, p->labels, BATCH, l2, 11, 0)) / (2 * h);
        p->w[i] = w;
    }
}

static double deviation(const double *a, const double *b, uint64_t count)
{
    double worst = 0, scale = 0;
    for (uint64_t i = 0; i < count; i++) {
        worst = fmax(worst, fabs(a[i] - b[i]));
        scale = fmax(scale, fabs(b[i]));
    }
    return worst / scale;
}

/* Of every layer, by the fused step and by the stored gradient alike; and an error of 1 % in any tensor's
 * largest component would be found. */
START_TEST(gradients_agree_with_central_differences)
{
    static struct problem p;
    static double engine[PARAMS_MAX], numeric[PARAMS_MAX];
    double loss;
    open_problem(_i, &p);
    engine_gradient(&p, 0, engine, &loss);
    reorder(&p, 11);
    central_differences(&p, decay, numeric);
    double off = deviation(engine, numeric, p.count);
    ck_assert_msg(off < tolerance, "%s: deviation %g", models[_i], off);
    double expected = reference_loss(&p.spec, p.w, p.x, p.labels, BATCH, 0, 11, 0);
    ck_assert_double_eq_tol(loss, expected, 1e-5 * fmax(1, expected));
    struct kedge_layout layout;
    ck_assert_int_eq(kedge_model_layout(&p.spec, &layout, NULL), KEDGE_OK);
    for (uint32_t t = 0, found = 0; t < layout.count; t++) {
        uint64_t at = layout.tensors[t].offset / 4, most = at;
        for (uint64_t i = at; i < at + layout.tensors[t].count; i++) {
            most = fabs(numeric[i]) > fabs(numeric[most]) ? i : most;
        }
        double kept = engine[most];
        engine[most] *= 1.01;
        found += deviation(engine, numeric, p.count) > tolerance;
        engine[most] = kept;
        ck_assert_msg(found == t + 1, "%s: 1 %% of %s would be missed", models[_i], layout.tensors[t].name);
    }
    kedge_layout_deinit(&layout);
    close_problem(&p);
    open_problem(_i, &p);
    engine_gradient(&p, 1e9, engine, &loss); /* stored, not clipped */
    off = deviation(engine, numeric, p.count);
    ck_assert_msg(off < tolerance, "%s: stored: deviation %g", models[_i], off);
    close_problem(&p);
}
END_TEST

/* Evaluation drops nothing and steps nowhere. */
START_TEST(evaluation_agrees)
{
    static struct problem p;
    struct kedge_evaluation e;
    open_problem(_i, &p);
    struct kedge_dataset data = {
        .n = BATCH, .features = kedge_model_inputs(&p.spec), .classes = 4, .labels = p.labels, .reals = p.x};
    for (uint64_t i = 0; i < p.count; i++) {
        kedge_net_weights(p.net)[i] = (float)p.w[i];
    }
    ck_assert_int_eq(kedge_net_evaluate(p.net, &data, &e, NULL), KEDGE_OK);
    double expected = reference_loss(&p.spec, p.w, p.x, p.labels, BATCH, 0, UINT64_MAX, 0);
    ck_assert_double_eq_tol(e.loss, expected, 2e-5 * fmax(1, expected));
    for (uint64_t i = 0; i < p.count; i++) {
        ck_assert(kedge_net_weights(p.net)[i] == (float)p.w[i]);
    }
    close_problem(&p);
}
END_TEST

/* Seven steps, twice: the same bytes; another seed: others. */
START_TEST(a_seed_repeats_a_run)
{
    static struct problem p;
    static float first[PARAMS_MAX];
    struct kedge_train_params params = {
        .lr = 0.05, .batch = 2, .seed = 3, .steps = 7, .momentum = _i % 2 ? 0.5 : 0};
    open_problem(_i, &p);
    one_step(&p, params);
    memcpy(first, kedge_net_weights(p.net), p.count * sizeof *first);
    one_step(&p, params);
    ck_assert_mem_eq(first, kedge_net_weights(p.net), p.count * sizeof *first);
    params.seed = 4;
    one_step(&p, params);
    ck_assert_mem_ne(first, kedge_net_weights(p.net), p.count * sizeof *first);
    close_problem(&p);
}
END_TEST

/* Clipping, momentum and bends against the formulas, from gradients by central differences. */
START_TEST(rules_of_a_step_are_what_they_say)
{
    static struct problem p;
    static double g[PARAMS_MAX], v[PARAMS_MAX], w[PARAMS_MAX], start[PARAMS_MAX];
    static float towards[PARAMS_MAX];
    const double clip = 0.3, momentum = 0.8, pull = 0.25;
    open_problem(_i, &p);
    for (uint64_t i = 0; i < p.count; i++) {
        towards[i] = (float)((double)(i % 5) / 5 - 0.4);
    }
    struct kedge_train_params params = {.lr = 0.1,
                                        .l2 = decay,
                                        .seed = 11,
                                        .steps = 2,
                                        .momentum = momentum,
                                        .clip = clip,
                                        .bend = {pull, towards}};
    one_step(&p, params);
    memcpy(start, p.w, sizeof start);
    memset(v, 0, sizeof v);
    struct problem now = p;
    for (int step = 0; step < 2; step++) {
        double squares = 0;
        now = p; /* each pass has its own order, which matters to no sum without dropout */
        memcpy(now.w, p.w, sizeof now.w);
        central_differences(&now, 0, g);
        memcpy(w, p.w, sizeof w);
        for (uint64_t i = 0; i < p.count; i++) {
            squares += g[i] * g[i];
        }
        double scale = sqrt(squares) > clip ? clip / sqrt(squares) : 1;
        ck_assert_double_lt(scale, 1);  /* so that clipping is seen */
        uint64_t kernels = p.count - 4; /* of the one dense layer */
        for (uint64_t i = 0; i < p.count; i++) {
            double d = g[i] * scale + (i < kernels ? 2 * decay : 0) * w[i] + pull * w[i] - (double)towards[i];
            v[i] = momentum * v[i] + d;
            p.w[i] = w[i] - 0.1 * v[i];
        }
    }
    for (uint64_t i = 0; i < p.count; i++) {
        ck_assert_double_eq_tol((double)kedge_net_weights(p.net)[i], p.w[i], 1e-5);
    }
    close_problem(&p);
}
END_TEST

/* Ops that gradients do not show: memory, the counter-based stream as its authors print it. */
START_TEST(memory_goes_there_and_back)
{
    struct kedge_ops_config config = {.sites = 1, .threads = 1};
    struct kedge_device *dev;
    char text[256] = "";
    float out[100], in[100];
    ck_assert_int_eq(ops->open(&config, &dev, text, sizeof text), KEDGE_OK);
    float *a = ops->alloc(dev, sizeof in), *b = ops->alloc(dev, sizeof in);
    ck_assert(a && b);
    ck_assert_int_eq(ops->download(dev, 0, out, a, sizeof out), KEDGE_OK);
    for (int i = 0; i < 100; i++) {
        ck_assert(out[i] == 0.0f);
        in[i] = (float)i - 50;
    }
    ops->upload(dev, 0, a, in, sizeof in);
    ops->copy(dev, b, a, sizeof in);
    ops->clear(dev, a, 40);
    ops->add(dev, 100, b, a, 2.0f);
    ops->blend(dev, 100, a, 3.0f, b, -1.0f);
    ops->clip(dev, 100, b, 1e-3f);
    ck_assert_int_eq(ops->download(dev, 0, out, a, sizeof out), KEDGE_OK);
    for (int i = 0; i < 100; i++) {
        float v = i < 10 ? 0 : in[i], sum = in[i] + 2 * v;
        ck_assert_float_eq_tol(out[i], 3 * v - sum, 1e-5f);
    }
    ck_assert_int_eq(ops->download(dev, 0, out, b, sizeof out), KEDGE_OK);
    double squares = 0;
    for (int i = 0; i < 100; i++) {
        squares += (double)out[i] * (double)out[i];
    }
    ck_assert_double_eq_tol(sqrt(squares), 1e-3, 1e-8);
    (ops->free)(dev, a);
    (ops->free)(dev, NULL);
    ck_assert_int_eq(ops->sync(dev, text, sizeof text), KEDGE_OK);
    ops->close(dev); /* with b not freed */
}
END_TEST

/* Dropout's words are those of the stream at (place, layer, step) and the seed as key; again going back. */
START_TEST(dropout_draws_by_place_layer_and_step)
{
    enum { COUNT = 37, LAYER = 5 };
    const uint64_t seed = 0x123456789abcdef0u, step = 0x100000003u;
    const double share = 0.3;
    struct kedge_ops_config config = {.sites = 1, .threads = 1};
    struct kedge_ops_moment moment = {.seeds = &seed, .step = step};
    struct kedge_device *dev;
    char text[256] = "";
    float in[COUNT], out[COUNT], back[COUNT];
    ck_assert_int_eq(ops->open(&config, &dev, text, sizeof text), KEDGE_OK);
    float *x = ops->alloc(dev, sizeof in), *y = ops->alloc(dev, sizeof in), *dx = ops->alloc(dev, sizeof in);
    for (int i = 0; i < COUNT; i++) {
        in[i] = (float)i + 1;
    }
    ops->upload(dev, 0, x, in, sizeof in);
    ops->moment(dev, &moment);
    ops->dropout_forward(dev, share, LAYER, COUNT, x, y);
    ops->dropout_backward(dev, share, LAYER, COUNT, x, dx);
    ck_assert_int_eq(ops->download(dev, 0, out, y, sizeof out), KEDGE_OK);
    ck_assert_int_eq(ops->download(dev, 0, back, dx, sizeof back), KEDGE_OK);
    ck_assert_mem_eq(out, back, sizeof out);
    for (uint32_t i = 0, gone = 0; i < COUNT; i++) {
        uint32_t counter[4] = {i / 4, LAYER, (uint32_t)step, (uint32_t)(step >> 32)}, words[4];
        uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
        kedge_philox(counter, key, words);
        bool drops = (double)words[i % 4] < floor(share * 0x1p32);
        gone += drops;
        ck_assert_float_eq_tol(out[i], drops ? 0 : in[i] / 0.7f, 1e-4f);
        ck_assert(i + 1 < COUNT || (gone > 3 && gone < 20));
    }
    ops->close(dev);
}
END_TEST

int train_ops_suite(const struct kedge_ops *table, double most)
{
    ops = table;
    tolerance = most;
    Suite *suite = suite_create("train-ops");
    TCase *tc = tcase_create(table->name);
    tcase_set_timeout(tc, 300);
    tcase_add_loop_test(tc, gradients_agree_with_central_differences, 0, MODELS);
    tcase_add_loop_test(tc, evaluation_agrees, 0, MODELS);
    tcase_add_loop_test(tc, a_seed_repeats_a_run, 0, MODELS);
    tcase_add_loop_test(tc, rules_of_a_step_are_what_they_say, 0, 1);
    tcase_add_test(tc, memory_goes_there_and_back);
    tcase_add_test(tc, dropout_draws_by_place_layer_and_step);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed;
}
