/* The engine against a plain double-precision model: gradients by central differences, SGD, determinism. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/train/net_impl.h"
#include "common/base/rng.h"

enum { BATCH = 7, PARAMS_MAX = 200 };

struct problem {
    struct kedge_model_spec spec;
    uint64_t count;
    double l2;
    double w[PARAMS_MAX];
    float x[BATCH * 6];
    int32_t labels[BATCH];
};

/* The loss of net.h written down again, without BLAS: mean cross-entropy + l2 · Σ kernel². */
static double reference_loss(const struct problem *p, const double *w)
{
    double loss = 0;
    for (uint32_t r = 0; r < BATCH; r++) {
        double a[16] = {0}, z[16] = {0};
        const double *at = w;
        for (uint32_t i = 0; i < p->spec.layers[0].in; i++) {
            a[i] = (double)p->x[r * p->spec.layers[0].in + i];
        }
        for (uint32_t l = 0; l < p->spec.count; l++) {
            const struct kedge_layer *layer = &p->spec.layers[l];
            for (uint32_t o = 0; o < layer->out; o++) {
                z[o] = at[layer->in * layer->out + o];
                for (uint32_t i = 0; i < layer->in; i++) {
                    z[o] += at[o * layer->in + i] * a[i];
                }
            }
            for (uint32_t o = 0; o < layer->out; o++) {
                a[o] = layer->activation == KEDGE_ACTIVATION_RELU && z[o] < 0 ? 0 : z[o];
            }
            at += layer->in * layer->out + layer->out;
        }
        double sum = 0;
        for (uint32_t o = 0; o < kedge_model_outputs(&p->spec); o++) {
            sum += exp(a[o]);
        }
        loss += (log(sum) - a[p->labels[r]]) / BATCH;
    }
    const double *at = w;
    for (uint32_t l = 0; l < p->spec.count; l++) {
        for (uint32_t k = 0; k < p->spec.layers[l].in * p->spec.layers[l].out; k++) {
            loss += p->l2 * at[k] * at[k];
        }
        at += p->spec.layers[l].in * p->spec.layers[l].out + p->spec.layers[l].out;
    }
    return loss;
}

static void make_problem(int kind, struct problem *p)
{
    struct kedge_rng rng;
    memset(p, 0, sizeof *p);
    p->l2 = kind == 0 ? 0.0 : 0.05;
    p->spec.count = (uint32_t)kind % 3 + 1; /* mclr, one and two hidden layers */
    static const uint32_t widths[3][4] = {{6, 4}, {6, 5, 4}, {6, 8, 5, 4}};
    for (uint32_t l = 0; l < p->spec.count; l++) {
        p->spec.layers[l] = (struct kedge_layer){
            .type = KEDGE_LAYER_DENSE,
            .in = widths[kind % 3][l],
            .out = widths[kind % 3][l + 1],
            .activation = l + 1 < p->spec.count && kind < 3 ? KEDGE_ACTIVATION_RELU : KEDGE_ACTIVATION_NONE};
    }
    p->count = kedge_model_values_count(&p->spec);
    ck_assert_uint_le(p->count, PARAMS_MAX);
    kedge_rng_init(&rng, (uint64_t)kind, KEDGE_RNG_TEST, 0, 0);
    for (uint64_t i = 0; i < p->count; i++) {
        p->w[i] = (double)(float)(kedge_rng_unit(&rng) * 1.6 - 0.8);
    }
    for (uint32_t i = 0; i < BATCH * 6; i++) {
        p->x[i] = (float)(kedge_rng_unit(&rng) * 2 - 1);
    }
    for (uint32_t i = 0; i < BATCH; i++) {
        p->labels[i] = (int32_t)kedge_rng_below(&rng, 4);
    }
}

/* One step of rate 1/16 over the whole batch; returns its summed loss before the step. */
static double step(struct kedge_net *net, const struct problem *p, const struct kedge_proximal_term *bend)
{
    const struct kedge_net_rule rule = {.lr = 0.0625, .l2 = p->l2, .bend = bend};
    double loss = 0;
    kedge_net_run_step(net, p->x, p->labels, BATCH, &rule);
    ck_assert_int_eq(net->ops->take_loss(net->dev, &loss), KEDGE_OK);
    return loss;
}

/* The engine's gradient: what one step of rate 1/16 takes away, times 16. Its summed loss goes to
 * *ret_loss. */
static void engine_gradient(const struct problem *p, double *g, double *ret_loss)
{
    struct kedge_net *net;
    ck_assert_int_eq(kedge_net_new(&p->spec, BATCH, &net, NULL), KEDGE_OK);
    ck_assert_uint_eq(kedge_net_values_count(net), p->count);
    float *w = kedge_net_weights(net);
    for (uint64_t i = 0; i < p->count; i++) {
        w[i] = (float)p->w[i];
    }
    *ret_loss = step(net, p, NULL);
    for (uint64_t i = 0; i < p->count; i++) {
        g[i] = (p->w[i] - (double)w[i]) * 16;
    }
    kedge_net_free(net);
}

static void central_differences(struct problem *p, double *g)
{
    const double h = 1e-6;
    for (uint64_t i = 0; i < p->count; i++) {
        double w = p->w[i];
        p->w[i] = w + h;
        double above = reference_loss(p, p->w);
        p->w[i] = w - h;
        g[i] = (above - reference_loss(p, p->w)) / (2 * h);
        p->w[i] = w;
    }
}

/* Largest deviation in units of the largest component. */
static double deviation(const double *a, const double *b, uint64_t count)
{
    double worst = 0, scale = 0;
    for (uint64_t i = 0; i < count; i++) {
        worst = fmax(worst, fabs(a[i] - b[i]));
        scale = fmax(scale, fabs(b[i]));
    }
    return worst / scale;
}

/* F32 sums of a few dozen terms, differenced and multiplied by 16, agree to about 1e-5. */
static const double tolerance = 5e-5;

START_TEST(gradients_agree_with_central_differences)
{
    struct problem p;
    double engine[PARAMS_MAX], numeric[PARAMS_MAX], loss;
    make_problem(_i, &p);
    engine_gradient(&p, engine, &loss);
    central_differences(&p, numeric);
    double off = deviation(engine, numeric, p.count);
    ck_assert_msg(off < tolerance, "deviation %g", off);
    double l2 = p.l2;
    p.l2 = 0;
    ck_assert_double_eq_tol(loss / BATCH, reference_loss(&p, p.w), 1e-5);
    p.l2 = l2;
}
END_TEST

/* The tolerance is worth something: an error of 1 % in any one component of note is found. */
/* A bent step differs from a plain one by −lr · (pull · w − towards), whatever the gradient is. */
START_TEST(a_bend_adds_what_it_says)
{
    static const double pulls[3] = {0, 0.5, 2};
    struct problem p;
    float towards[PARAMS_MAX], plain[PARAMS_MAX];
    make_problem(_i, &p);
    for (int k = 0; k < 3; k++) {
        struct kedge_proximal_term bend = {.pull = pulls[k], .towards = towards};
        struct kedge_net *net;
        ck_assert_int_eq(kedge_net_new(&p.spec, BATCH, &net, NULL), KEDGE_OK);
        float *w = kedge_net_weights(net);
        for (uint64_t i = 0; i < p.count; i++) {
            towards[i] = (float)((double)(i % 7) / 7 - 0.4);
            w[i] = (float)p.w[i];
        }
        double loss = step(net, &p, NULL);
        memcpy(plain, w, p.count * sizeof *w);
        for (uint64_t i = 0; i < p.count; i++) {
            w[i] = (float)p.w[i];
        }
        double bent = step(net, &p, &bend);
        ck_assert_double_eq(loss, bent); /* the loss is that before the step, without the pull */
        for (uint64_t i = 0; i < p.count; i++) {
            double expected = (double)plain[i] - 0.0625 * (pulls[k] * p.w[i] - (double)towards[i]);
            ck_assert_double_eq_tol((double)w[i], expected, 1e-6);
        }
        kedge_net_free(net);
    }
}
END_TEST

START_TEST(a_planted_error_of_one_percent_is_found)
{
    struct problem p;
    double engine[PARAMS_MAX], numeric[PARAMS_MAX], loss, largest = 0;
    int planted = 0;
    make_problem(_i, &p);
    engine_gradient(&p, engine, &loss);
    central_differences(&p, numeric);
    for (uint64_t i = 0; i < p.count; i++) {
        largest = fmax(largest, fabs(numeric[i]));
    }
    for (uint64_t i = 0; i < p.count; i++) {
        double kept = engine[i];
        engine[i] *= 1.01;
        if (fabs(kept) > 0.05 * largest) {
            ck_assert_double_gt(deviation(engine, numeric, p.count), tolerance);
            planted++;
        }
        engine[i] = kept;
    }
    ck_assert_int_gt(planted, (int)p.count / 4);
    p.l2 *= 1.01; /* and so is one in the decay */
    central_differences(&p, numeric);
    ck_assert(p.l2 == 0 || deviation(engine, numeric, p.count) > tolerance);
}
END_TEST

static void load_digits(struct kedge_dataset *train, struct kedge_dataset *test)
{
    struct kedge_data_binding b = {.train = {.format = KEDGE_DATA_IDX,
                                             .path = "data/digits/digits-images.idx",
                                             .labels_path = "data/digits/digits-labels.idx",
                                             .scale = 0.0625},
                                   .split = 0.8};
    ck_assert_int_eq(kedge_data_binding_load(&b, train, test, NULL), KEDGE_OK);
}

static struct kedge_net *new_net(bool mlp)
{
    struct kedge_model_spec spec;
    struct kedge_net *net;
    ck_assert_int_eq(mlp ? kedge_model_mlp(64, 32, 10, &spec, NULL) : kedge_model_mclr(64, 10, &spec, NULL),
                     KEDGE_OK);
    ck_assert_int_eq(kedge_net_new(&spec, 128, &net, NULL), KEDGE_OK);
    kedge_model_init(&spec, 1, kedge_net_weights(net));
    return net;
}

START_TEST(digits_are_learnt)
{
    struct kedge_dataset train, test;
    struct kedge_evaluation before, after;
    struct kedge_train_result result;
    struct kedge_train_params params = {.epochs = 20, .batch = 10, .lr = 0.1, .l2 = 0.0001, .seed = 7};
    struct kedge_net *net = new_net(_i == 1);
    load_digits(&train, &test);
    ck_assert_int_eq(kedge_net_evaluate(net, &test, &before, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_net_train(net, &train, &params, &result, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_net_evaluate(net, &test, &after, NULL), KEDGE_OK);
    ck_assert_uint_eq(result.steps, 20 * 144);
    ck_assert_uint_eq(after.samples, 360);
    ck_assert_uint_lt(before.correct, 90);
    ck_assert_uint_gt(after.correct, 335); /* 93 % */
    ck_assert_double_lt(after.loss, 0.3);
    ck_assert_double_gt(before.loss, 2.0);
    ck_assert_double_lt(result.loss, 0.2);
    kedge_net_free(net);
    kedge_dataset_deinit(&train);
    kedge_dataset_deinit(&test);
}
END_TEST

static void train_once(const struct kedge_dataset *data, const struct kedge_train_params *params, float *out,
                       struct kedge_train_result *result)
{
    struct kedge_net *net = new_net(false);
    ck_assert_int_eq(kedge_net_train(net, data, params, result, NULL), KEDGE_OK);
    memcpy(out, kedge_net_weights(net), 650 * sizeof *out);
    kedge_net_free(net);
}

START_TEST(the_seed_decides_the_order)
{
    struct kedge_dataset train, test;
    struct kedge_train_result r;
    struct kedge_train_params params = {.epochs = 2, .batch = 10, .lr = 0.1, .seed = 7};
    float a[650], b[650];
    load_digits(&train, &test);
    train_once(&train, &params, a, &r);
    train_once(&train, &params, b, &r);
    ck_assert_mem_eq(a, b, sizeof a);
    params.seed = 8;
    train_once(&train, &params, b, &r);
    ck_assert_mem_ne(a, b, sizeof a);
    kedge_dataset_deinit(&train);
    kedge_dataset_deinit(&test);
}
END_TEST

/* 1,437 samples in batches of 10 make passes of 144 steps, the last of 7 samples. */
START_TEST(steps_are_exact_and_passes_reshuffle)
{
    struct kedge_dataset train, test;
    struct kedge_train_result r;
    struct kedge_train_params params = {.steps = 50, .batch = 10, .lr = 0.05, .seed = 3};
    float a[650], b[650];
    load_digits(&train, &test);
    ck_assert_uint_eq(train.n, 1437);
    train_once(&train, &params, a, &r);
    ck_assert_uint_eq(r.steps, 50);
    params.steps = 144;
    train_once(&train, &params, a, &r);
    params.steps = 145;
    train_once(&train, &params, b, &r);
    ck_assert_uint_eq(r.steps, 145);
    ck_assert_mem_ne(a, b, sizeof a);
    /* A single batch that holds everything: order does not matter but for rounding, and every step is a
     * pass. */
    struct kedge_dataset few;
    static const uint32_t rows[] = {1, 2, 3, 4};
    ck_assert_int_eq(kedge_dataset_pick(&train, rows, 4, &few), KEDGE_OK);
    params = (struct kedge_train_params){.steps = 5, .batch = 10, .lr = 0.05, .seed = 3};
    train_once(&few, &params, a, &r);
    ck_assert_uint_eq(r.steps, 5);
    kedge_dataset_deinit(&few);
    kedge_dataset_deinit(&train);
    kedge_dataset_deinit(&test);
}
END_TEST

/* What is held keeps its bytes, and the rest steps as it does beside it. */
START_TEST(held_weights_stay)
{
    struct kedge_dataset train, test;
    struct kedge_train_result r;
    struct kedge_train_range held = {600, 50}; /* of 650 */
    struct kedge_train_params params = {
        .steps = 1, .batch = 10, .lr = 0.1, .seed = 7, .held = &held, .held_count = 1};
    float first[650], some[650], all[650];
    struct kedge_net *net = new_net(false);
    memcpy(first, kedge_net_weights(net), sizeof first);
    kedge_net_free(net);
    load_digits(&train, &test);
    train_once(&train, &params, some, &r);
    params.held_count = 0;
    train_once(&train, &params, all, &r);
    ck_assert_mem_eq(some, all, 600 * sizeof *some);
    ck_assert_mem_eq(some + 600, first + 600, 50 * sizeof *some);
    ck_assert_mem_ne(all + 600, first + 600, 50 * sizeof *all);
    params.steps = 40;
    params.held_count = 1;
    params.momentum = 0.9;
    train_once(&train, &params, some, &r);
    ck_assert_uint_eq(r.steps, 40);
    ck_assert_mem_eq(some + 600, first + 600, 50 * sizeof *some);
    ck_assert_mem_ne(some, all, 600 * sizeof *some);
    kedge_dataset_deinit(&train);
    kedge_dataset_deinit(&test);
}
END_TEST

struct made {
    struct kedge_dataset_maker maker;
    const struct kedge_dataset *of;
    uint32_t calls, seen;
};

static void make_digits(const struct kedge_dataset_maker *maker, const uint32_t *indices, uint32_t count,
                        uint32_t after, float *out)
{
    struct made *m = (void *)(uintptr_t)maker;
    for (uint32_t i = count; i < count + after; i++) {
        ck_assert_uint_lt(indices[i], m->of->n);
    }
    m->calls++;
    m->seen += count;
    kedge_dataset_gather(m->of, indices, count, out);
}

START_TEST(rows_that_are_made_train_and_test_like_stored_ones)
{
    struct kedge_dataset train, test;
    struct kedge_train_result r, of_made;
    struct kedge_train_params params = {.epochs = 2, .batch = 10, .lr = 0.1, .seed = 7};
    struct kedge_evaluation e, e_made;
    struct kedge_net *net = new_net(true);
    float a[650], b[650];
    load_digits(&train, &test);
    struct made made = {.maker = {make_digits}, .of = &train};
    const struct kedge_dataset rows = {
        .n = train.n, .features = 64, .classes = 10, .labels = train.labels, .maker = &made.maker};
    train_once(&train, &params, a, &r);
    train_once(&rows, &params, b, &of_made);
    ck_assert_mem_eq(a, b, sizeof a);
    ck_assert_double_eq(r.loss, of_made.loss);
    ck_assert_uint_eq(made.seen, 2 * train.n); /* batch by batch, none twice in a pass */
    ck_assert_uint_eq(made.calls, 2 * 144);
    ck_assert_int_eq(kedge_net_evaluate(net, &train, &e, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_net_evaluate(net, &rows, &e_made, NULL), KEDGE_OK);
    ck_assert_double_eq(e.loss, e_made.loss);
    ck_assert_uint_eq(e.correct, e_made.correct);
    kedge_net_free(net);
    kedge_dataset_deinit(&train);
    kedge_dataset_deinit(&test);
}
END_TEST

/* What is no token number is found in made rows, too. */
static void make_thirds(const struct kedge_dataset_maker *maker, const uint32_t *indices, uint32_t count,
                        uint32_t after, float *out)
{
    (void)maker, (void)after;
    for (uint32_t i = 0; i < count; i++) {
        out[i] = indices[i] == 1 ? 3.0f : 0.0f;
    }
}

START_TEST(made_token_numbers_are_checked)
{
    static const struct kedge_dataset_maker maker = {make_thirds};
    int32_t labels[] = {0, 1};
    struct kedge_dataset rows = {.n = 2, .features = 1, .classes = 2, .labels = labels, .maker = &maker};
    const struct kedge_train_params params = {.epochs = 1, .batch = 2, .lr = 0.1};
    struct kedge_train_result r;
    struct kedge_diag diag = {0};
    struct kedge_net *net;
    static const struct kedge_model_spec spec = {
        .count = 3,
        .input = {1, {1}},
        .layers = {{.type = KEDGE_LAYER_EMBEDDING, .in = 3, .out = 2},
                   {.type = KEDGE_LAYER_FLATTEN},
                   {.type = KEDGE_LAYER_DENSE, .in = 2, .out = 2}}};
    ck_assert_int_eq(kedge_net_new(&spec, 2, &net, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_net_train(net, &rows, &params, &r, &diag), KEDGE_E_SHAPE);
    ck_assert_ptr_nonnull(strstr(diag.text, "sample 1, feature 0 is 3, but the embedding"));
    rows.n = 1;
    ck_assert_int_eq(kedge_net_train(net, &rows, &params, &r, NULL), KEDGE_OK);
    kedge_net_free(net);
}
END_TEST

START_TEST(what_does_not_fit_is_refused_by_name)
{
    struct kedge_dataset train, test;
    struct kedge_train_result r;
    struct kedge_diag diag = {0};
    struct kedge_train_params params = {.epochs = 1, .batch = 10, .lr = 0.1};
    struct kedge_model_spec spec;
    struct kedge_net *net;
    load_digits(&train, &test);
    ck_assert_int_eq(kedge_model_mclr(63, 10, &spec, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_net_new(&spec, 16, &net, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_net_train(net, &train, &params, &r, &diag), KEDGE_E_SHAPE);
    ck_assert_ptr_nonnull(strstr(diag.text, "samples of 64 features, but the model takes 63"));
    kedge_net_free(net);
    ck_assert_int_eq(kedge_model_mclr(64, 9, &spec, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_net_new(&spec, 16, &net, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_net_train(net, &train, &params, &r, &diag), KEDGE_E_SHAPE);
    ck_assert_ptr_nonnull(strstr(diag.text, "labels up to 9, but the model has 9 classes"));
    kedge_net_free(net);
    net = new_net(false);
    params.batch = 129;
    ck_assert_int_eq(kedge_net_train(net, &train, &params, &r, &diag), KEDGE_E_ARG);
    params.batch = 0;
    ck_assert_int_eq(kedge_net_train(net, &train, &params, &r, &diag), KEDGE_E_ARG);
    params = (struct kedge_train_params){.batch = 10, .lr = 0.1};
    ck_assert_int_eq(kedge_net_train(net, &train, &params, &r, &diag), KEDGE_E_ARG);
    kedge_net_free(net);
    ck_assert_int_eq(kedge_net_new(&spec, 0, &net, &diag), KEDGE_E_ARG);
    kedge_dataset_deinit(&train);
    kedge_dataset_deinit(&test);
}
END_TEST

/* One weight overflows in the last step, whose loss was 1; wherever it stands, it is seen. */
START_TEST(a_weight_that_is_not_finite_is_an_error)
{
    enum { FEATURES = 40 };
    const struct kedge_train_params params = {.steps = 1, .batch = 1, .lr = 10};
    const struct kedge_model_spec spec = {.count = 1,
                                          .loss = KEDGE_LOSS_SQUARE_ERROR,
                                          .layers = {{.type = KEDGE_LAYER_DENSE, .in = FEATURES, .out = 1}}};
    int32_t label = 1;
    struct kedge_train_result r;
    struct kedge_net *net;
    ck_assert_int_eq(kedge_net_new(&spec, 1, &net, NULL), KEDGE_OK);
    float x[FEATURES] = {0};
    const struct kedge_dataset row = {
        .n = 1, .features = FEATURES, .classes = 2, .labels = &label, .reals = x};
    memset(kedge_net_weights(net), 0, (FEATURES + 1) * sizeof(float));
    ck_assert_int_eq(kedge_net_train(net, &row, &params, &r, NULL), KEDGE_OK);
    for (uint32_t i = 0; i < FEATURES; i++) {
        struct kedge_diag diag = {0};
        memset(kedge_net_weights(net), 0, (FEATURES + 1) * sizeof(float));
        x[i] = 3e38f;
        ck_assert_int_eq(kedge_net_train(net, &row, &params, &r, &diag), KEDGE_E_NOT_FINITE);
        ck_assert_ptr_nonnull(strstr(diag.text, "weights are not finite"));
        x[i] = 0;
    }
    kedge_net_free(net);
}
END_TEST

START_TEST(divergence_is_an_error)
{
    struct kedge_dataset train, test;
    struct kedge_train_result r;
    struct kedge_diag diag = {0};
    struct kedge_train_params params = {.epochs = 3, .batch = 10, .lr = 1e6, .l2 = 1.0};
    struct kedge_net *net = new_net(true);
    load_digits(&train, &test);
    ck_assert_int_eq(kedge_net_train(net, &train, &params, &r, &diag), KEDGE_E_NOT_FINITE);
    ck_assert_ptr_nonnull(strstr(diag.text, "smaller learning rate"));
    kedge_net_free(net);
    kedge_dataset_deinit(&train);
    kedge_dataset_deinit(&test);
}
END_TEST

/* Jobs may have such models; they are refused before memory is taken, and by name. */
START_TEST(a_model_that_is_too_large_for_memory_is_refused)
{
    struct kedge_model_spec spec;
    struct kedge_net *net = NULL;
    struct kedge_diag diag = {0};
    ck_assert_int_eq(kedge_model_mclr((1 << 24) - 1, 129, &spec, NULL), KEDGE_OK);
    ck_assert_uint_gt(kedge_model_values_count(&spec), KEDGE_TRAIN_VALUES_MAX);
    ck_assert_int_eq(kedge_net_new(&spec, 1, &net, &diag), KEDGE_E_SHAPE);
    ck_assert_msg(strstr(diag.text, "trainer of your own") != NULL, "%s", diag.text);
    ck_assert_ptr_null(net);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("net");
    TCase *tc = tcase_create("net");
    kedge_train_set_threads(1);
    tcase_add_loop_test(tc, gradients_agree_with_central_differences, 0, 6);
    tcase_add_loop_test(tc, a_bend_adds_what_it_says, 0, 6);
    tcase_add_loop_test(tc, a_planted_error_of_one_percent_is_found, 0, 6);
    tcase_add_loop_test(tc, digits_are_learnt, 0, 2);
    tcase_add_test(tc, the_seed_decides_the_order);
    tcase_add_test(tc, steps_are_exact_and_passes_reshuffle);
    tcase_add_test(tc, held_weights_stay);
    tcase_add_test(tc, rows_that_are_made_train_and_test_like_stored_ones);
    tcase_add_test(tc, made_token_numbers_are_checked);
    tcase_add_test(tc, what_does_not_fit_is_refused_by_name);
    tcase_add_test(tc, a_weight_that_is_not_finite_is_an_error);
    tcase_add_test(tc, divergence_is_an_error);
    tcase_add_test(tc, a_model_that_is_too_large_for_memory_is_refused);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
