/* Sites trained together by the source of the CUDA back end on the processor: each gets what it would get
 * alone. */
#include "tests/fixtures/gpu_host/ops.h"

#include <check.h>

#include "client/train/sites.h"
#include "common/base/rng.h"

enum { SITES = 6, FEATURES = 12, CLASSES = 4, SAMPLES_MAX = 40, VALUES_MAX = 512, BATCH = 10 };

static const uint32_t samples[SITES] = {40, 7, 10, 23, 1, 31}; /* passes of 4, 1, 1, 3, 1, 4 steps */
static float values[SITES][SAMPLES_MAX * FEATURES];
static int32_t labels[SITES][SAMPLES_MAX];
static struct kedge_dataset data[SITES];
static float towards[SITES][VALUES_MAX], alone[VALUES_MAX], weights[SITES][VALUES_MAX],
    first[SITES][VALUES_MAX];
static struct kedge_model_spec spec;
static struct kedge_device *dev;
static const struct kedge_ops *ops;

static void set_up(void)
{
    const struct kedge_ops_config config = {SITES, 1, KEDGE_OPS_F32};
    struct kedge_rng rng;
    char text[128] = "";
    kedge_rng_init(&rng, 5, KEDGE_RNG_TEST, 0, 0);
    kedge_gpu_host.order = KEDGE_GPU_SHUFFLED;
    kedge_gpu_host.failed = NULL;
    ops = kedge_cuda_ops(KEDGE_CUDA_VERSION);
    ck_assert_int_eq(kedge_model_mlp(FEATURES, 9, CLASSES, &spec, NULL), KEDGE_OK);
    ck_assert_uint_le(kedge_model_values_count(&spec), VALUES_MAX);
    for (uint32_t s = 0; s < SITES; s++) {
        for (size_t i = 0; i < SAMPLES_MAX * FEATURES; i++) {
            values[s][i] = (float)(2 * kedge_rng_unit(&rng) - 1);
        }
        for (size_t i = 0; i < SAMPLES_MAX; i++) {
            labels[s][i] = (int32_t)kedge_rng_below(&rng, CLASSES);
        }
        for (size_t i = 0; i < VALUES_MAX; i++) {
            towards[s][i] = (float)(0.1 * kedge_rng_unit(&rng));
        }
        data[s] = (struct kedge_dataset){.n = samples[s],
                                         .features = FEATURES,
                                         .classes = CLASSES,
                                         .labels = labels[s],
                                         .reals = values[s]};
        kedge_model_init(&spec, s, first[s]);
    }
    ck_assert_msg(ops->open(&config, &dev, text, sizeof text) == KEDGE_OK, "%s", text);
}

static void tear_down(void)
{
    ops->close(dev);
    ck_assert_msg(!kedge_gpu_host.failed, "%s", kedge_gpu_host.failed);
}

/* On the processor's own back end. */
static struct kedge_train_result train_alone(uint32_t s, const struct kedge_train_params *params, bool bent)
{
    struct kedge_train_params mine = *params;
    struct kedge_train_result result = {0};
    struct kedge_net *net = NULL;
    struct kedge_diag diag = {.text = ""};
    ck_assert_int_eq(kedge_net_new(&spec, params->batch, &net, NULL), KEDGE_OK);
    memcpy(kedge_net_weights(net), first[s], kedge_net_values_count(net) * sizeof(float));
    mine.seed = 100 + s;
    mine.bend.towards = bent ? towards[s] : NULL;
    const int err = kedge_net_train(net, &data[s], &mine, &result, &diag);
    ck_assert_msg(err == KEDGE_OK, "%s", diag.text);
    memcpy(alone, kedge_net_weights(net), kedge_net_values_count(net) * sizeof(float));
    kedge_net_free(net);
    return result;
}

static void train_together(const struct kedge_train_params *params, bool bent,
                           struct kedge_site_work work[SITES])
{
    struct kedge_diag diag = {.text = ""};
    memcpy(weights, first, sizeof weights);
    for (uint32_t s = 0; s < SITES; s++) {
        work[s] = (struct kedge_site_work){
            .data = &data[s], .weights = weights[s], .towards = bent ? towards[s] : NULL, .seed = 100 + s};
    }
    const int err = kedge_sites_train(&spec, ops, dev, work, SITES, params, &diag);
    ck_assert_msg(err == KEDGE_OK, "%s", diag.text);
}

static void compare(const struct kedge_train_params *params, bool bent)
{
    struct kedge_site_work work[SITES];
    train_together(params, bent, work);
    for (uint32_t s = 0; s < SITES; s++) {
        const struct kedge_train_result result = train_alone(s, params, bent);
        double moved = 0;
        ck_assert_int_eq(work[s].err, KEDGE_OK);
        ck_assert_uint_eq(work[s].result.steps, result.steps);
        ck_assert_msg(fabs(work[s].result.loss - result.loss) <= 1e-5, "site %u: loss %g together, %g alone",
                      s, work[s].result.loss, result.loss);
        for (size_t i = 0; i < kedge_model_values_count(&spec); i++) {
            const double off = fabs((double)weights[s][i] - (double)alone[i]);
            ck_assert_msg(off <= 1e-5, "site %u, value %zu: %g together, %g alone", s, i,
                          (double)weights[s][i], (double)alone[i]);
            moved = fmax(moved, fabs((double)alone[i] - (double)first[s][i]));
        }
        ck_assert_double_gt(moved, 1e-3); /* by far more than the tolerance */
    }
}

START_TEST(each_gets_what_it_gets_alone)
{
    const struct kedge_train_params plain = {.epochs = 3, .batch = BATCH, .lr = 0.1, .l2 = 0.001};
    compare(&plain, false);
}
END_TEST

START_TEST(with_momentum_clipping_and_a_pull)
{
    const struct kedge_train_params all = {.epochs = 2,
                                           .batch = BATCH,
                                           .lr = 0.05,
                                           .l2 = 0.001,
                                           .momentum = 0.9,
                                           .clip = 0.5,
                                           .bend = {.pull = 0.2}};
    const struct kedge_train_params pulled = {.epochs = 2, .batch = BATCH, .lr = 0.05, .bend = {.pull = 0.2}};
    compare(&all, true);
    compare(&pulled, true);
}
END_TEST

START_TEST(so_many_steps)
{
    const struct kedge_train_params steps = {
        .steps = 70, .batch = BATCH, .lr = 0.05}; /* orders in two pieces */
    compare(&steps, false);
}
END_TEST

START_TEST(one_that_diverges_is_told_and_spoils_nobody)
{
    const struct kedge_train_params plain = {.epochs = 1, .batch = BATCH, .lr = 0.1};
    struct kedge_site_work work[SITES];
    first[2][0] = INFINITY;
    train_together(&plain, false, work);
    for (uint32_t s = 0; s < SITES; s++) {
        ck_assert_int_eq(work[s].err, s == 2 ? KEDGE_E_NOT_FINITE : KEDGE_OK);
    }
    (void)train_alone(3, &plain, false);
    ck_assert(fabs((double)weights[3][1] - (double)alone[1]) <= 1e-5);
}
END_TEST

START_TEST(what_does_not_fit_is_refused)
{
    const struct kedge_train_params none = {.batch = BATCH, .lr = 0.1},
                                    plain = {.epochs = 1, .batch = BATCH, .lr = 0.1};
    struct kedge_site_work work[SITES];
    struct kedge_dataset narrow = data[1];
    narrow.features--;
    train_together(&plain, false, work);
    ck_assert_int_eq(kedge_sites_train(&spec, ops, dev, work, SITES, &none, NULL), KEDGE_E_ARG);
    work[1].data = &narrow;
    ck_assert_int_eq(kedge_sites_train(&spec, ops, dev, work, SITES, &plain, NULL), KEDGE_E_ARG);
    work[1].data = &data[1];
    work[1].towards = towards[1];
    ck_assert_int_eq(kedge_sites_train(&spec, ops, dev, work, SITES, &plain, NULL), KEDGE_E_ARG);
}
END_TEST

/* What no table has would be read, and written, outside of it. */
START_TEST(a_token_that_no_table_has_is_refused)
{
    const struct kedge_train_params plain = {.epochs = 1, .batch = BATCH, .lr = 0.1};
    static const struct kedge_model_spec tokens = {
        .count = 3,
        .input = {1, {FEATURES}},
        .layers = {{.type = KEDGE_LAYER_EMBEDDING, .in = 3, .out = 1},
                   {.type = KEDGE_LAYER_FLATTEN},
                   {.type = KEDGE_LAYER_DENSE, .in = FEATURES, .out = 4}}};
    struct kedge_site_work work[SITES];
    struct kedge_diag diag = {.text = ""};
    train_together(&plain, false, work);
    for (uint32_t s = 0; s < SITES; s++) {
        for (size_t i = 0; i < SAMPLES_MAX * FEATURES; i++) {
            values[s][i] = (float)(i % 3);
        }
    }
    ck_assert_int_eq(kedge_sites_train(&tokens, ops, dev, work, SITES, &plain, &diag), KEDGE_OK);
    values[SITES - 1][FEATURES] = 3;
    ck_assert_int_eq(kedge_sites_train(&tokens, ops, dev, work, SITES, &plain, &diag), KEDGE_E_SHAPE);
    ck_assert_ptr_nonnull(
        strstr(diag.text, "sample 1, feature 0 is 3, but the embedding takes whole numbers"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("client/train/sites");
    TCase *tc = tcase_create("sites");
    tcase_set_timeout(tc, 0);
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, each_gets_what_it_gets_alone);
    tcase_add_test(tc, with_momentum_clipping_and_a_pull);
    tcase_add_test(tc, so_many_steps);
    tcase_add_test(tc, one_that_diverges_is_told_and_spoils_nobody);
    tcase_add_test(tc, what_does_not_fit_is_refused);
    tcase_add_test(tc, a_token_that_no_table_has_is_refused);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
