/* The learning simulator with a round's sites in one step of a device: what it makes is what the processor
 * makes, but for rounding; fewer at a time, a device without room and one that fails change nothing else. The
 * device is the CUDA back end's source on the processor. And nets with convolutions, on either. */
#include "tests/fixtures/gpu_host/ops.h"

#include <check.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/base/rng.h"
#include "common/tensor/json.h"
#include "sim/learn/learn.h"
#include "tests/fixtures/effort.h"
#include "tests/fixtures/learn_spec.h"

enum { LINES_MAX = 8, SIDE = 28, IMAGES = 400, CLASSES = 4 };

struct log {
    struct kedge_learn_round lines[LINES_MAX];
    uint32_t count, said;
    char line[600];
};

static bool on_round(void *arg, const struct kedge_learn_round *round)
{
    struct log *log = arg;
    ck_assert_uint_lt(log->count, LINES_MAX);
    log->lines[log->count++] = *round;
    return true;
}

static void on_say(void *arg, const char *line)
{
    struct log *log = arg;
    log->said++;
    (void)snprintf(log->line, sizeof log->line, "%s", line);
}

static void digits(struct kedge_learn_spec *s, const char *strategy)
{
    learn_spec_default(s);
    (void)snprintf(s->images, sizeof s->images, "%s", "data/digits/digits-images.idx");
    s->partition = KEDGE_LEARN_DIRICHLET; /* sites of unlike sizes */
    s->sites = 40;
    s->job.sites_per_round = 5;
    s->job.rounds = 2;
    s->job.local_epochs = 2;
    s->job.learning_rate = 0.05;
    s->job.pretrain_sites = 9;
    s->job.pretrain_steps = 7;
    kedge_learn_spec_set_tenants(s, 4);
    learn_spec_set_strategy(s, kedge_strategy_find(strategy));
    s->job.options.buffer = 3;
    ck_assert_int_eq(kedge_model_mclr(64, 10, &s->job.model, NULL), KEDGE_OK);
}

static void run(struct kedge_learn_spec *s, struct kedge_learn_host host, const struct kedge_ops *device,
                struct log *log)
{
    struct kedge_diag d = {.text = ""};
    *log = (struct log){.count = 0};
    host.threads = 2;
    host.on_round = on_round;
    host.say = on_say;
    host.arg = log;
    host.device = device;
    s->train_on = device ? KEDGE_LEARN_ON_CUDA : KEDGE_LEARN_ON_CPU;
    const int err = kedge_learn_run(s, &host, &d);
    ck_assert_msg(err == KEDGE_OK, "%s: %s", s->job.strategy->name, d.text);
    ck_assert_uint_eq(log->count, s->job.rounds);
    ck_assert_msg(!kedge_gpu_host.failed, "%s", kedge_gpu_host.failed);
}

static const struct kedge_ops *device_of(void)
{
    kedge_gpu_host.order = KEDGE_GPU_SHUFFLED;
    kedge_gpu_host.seed = 11;
    kedge_gpu_host.failed = NULL;
    kedge_gpu_host.launches = 0;
    return kedge_cuda_ops(KEDGE_CUDA_VERSION);
}

static void check_near(double a, double b, double tolerance, const char *what, const char *name)
{
    ck_assert_msg((isnan(a) && isnan(b)) || fabs(a - b) <= tolerance * (1 + fabs(b)),
                  "%s: %s: %g, expected %g", name, what, a, b);
}

static void check_alike(const struct log *a, const struct log *b, const char *name)
{
    for (uint32_t i = 0; i < b->count; i++) {
        const struct kedge_learn_round *x = &a->lines[i], *y = &b->lines[i];
        check_near(x->loss, y->loss, 1e-5, "loss", name);
        check_near(x->discrepancy, y->discrepancy, 1e-5, "discrepancy", name);
        check_near(x->accuracy, y->accuracy, 0.01, "accuracy", name);
        check_near(x->accuracy_personal, y->accuracy_personal, 0.01, "accuracy of own models", name);
        ck_assert_uint_eq(x->updates, y->updates);
        ck_assert_uint_eq(x->groups, y->groups);
    }
}

static void check_same(const struct log *a, const struct log *b)
{
    ck_assert_mem_eq(a->lines, b->lines, b->count * sizeof b->lines[0]);
}

static const char *const strategies[] = {"fedavg", "fedprox", "scaffold", "ditto",
                                         "local",  "fedbuff", "flexcfl",  "ifca"};
enum { STRATEGIES = sizeof strategies / sizeof strategies[0] };

START_TEST(together_is_as_one_by_one)
{
    struct kedge_learn_spec s;
    struct log alone, all, three;
    digits(&s, strategies[_i]);
    run(&s, (struct kedge_learn_host){.save_every = 0}, NULL, &alone);
    run(&s, (struct kedge_learn_host){.save_every = 0}, device_of(), &all);
    ck_assert_uint_gt(kedge_gpu_host.launches, 50);
    check_alike(&all, &alone, strategies[_i]);
    run(&s, (struct kedge_learn_host){.together_max = 3}, device_of(), &three);
    check_alike(&three, &alone, strategies[_i]);
    ck_assert_uint_eq(all.said + three.said, 0);
    /* it was the device that trained, where there is a common model to tell by */
    ck_assert(s.job.strategy->local->sends_nothing || all.lines[1].digest != alone.lines[1].digest);
}
END_TEST

/* Momentum of a server, attackers, turned images: what sites bring along is theirs. */
START_TEST(what_sites_bring_along_is_theirs)
{
    struct kedge_learn_spec s;
    struct log alone, all;
    digits(&s, "fedavg");
    s.partition = KEDGE_LEARN_ROTATED;
    s.attack = KEDGE_LEARN_ATTACK_LABEL_FLIP;
    s.attackers = 0.5;
    run(&s, (struct kedge_learn_host){.save_every = 0}, NULL, &alone);
    run(&s, (struct kedge_learn_host){.save_every = 0}, device_of(), &all);
    check_alike(&all, &alone, "turned and poisoned");
}
END_TEST

/* ---- devices that will not ---- */

static struct kedge_ops wrapped;
static uint32_t room, losses_left;

static void *alloc_small(struct kedge_device *dev, size_t bytes)
{
    return dev->sites > room ? NULL : kedge_cuda_ops(KEDGE_CUDA_VERSION)->alloc(dev, bytes);
}

static int open_none(const struct kedge_ops_config *config, struct kedge_device **ret, char *text,
                     size_t text_len)
{
    (void)config;
    (void)ret;
    (void)snprintf(text, text_len, "nobody home");
    return KEDGE_E_DEVICE;
}

static int take_no_loss(struct kedge_device *dev, double *ret)
{
    if (losses_left == 0) {
        return KEDGE_E_DEVICE;
    }
    losses_left--;
    return kedge_cuda_ops(KEDGE_CUDA_VERSION)->take_loss(dev, ret);
}

START_TEST(fewer_at_a_time_where_there_is_no_room)
{
    struct kedge_learn_spec s;
    struct log alone, small;
    digits(&s, "fedavg");
    wrapped = *device_of();
    wrapped.alloc = alloc_small;
    room = 2; /* of five */
    run(&s, (struct kedge_learn_host){.save_every = 0}, NULL, &alone);
    run(&s, (struct kedge_learn_host){.save_every = 0}, &wrapped, &small);
    check_alike(&small, &alone, "no room");
    ck_assert(small.said == 0 && small.lines[1].digest != alone.lines[1].digest);
    room = 0;
    run(&s, (struct kedge_learn_host){.save_every = 0}, &wrapped, &small);
    check_same(&small, &alone);
    ck_assert_uint_eq(small.said, 1);
}
END_TEST

START_TEST(without_a_device_it_is_said_once_and_nothing_else_changes)
{
    struct kedge_learn_spec s;
    struct log alone, other;
    digits(&s, "fedprox");
    run(&s, (struct kedge_learn_host){.save_every = 0}, NULL, &alone);
    wrapped = *device_of();
    wrapped.open = open_none;
    run(&s, (struct kedge_learn_host){.save_every = 0}, &wrapped, &other);
    check_same(&other, &alone);
    ck_assert_uint_eq(other.said, 1);
    ck_assert_str_eq(other.line, "CUDA is not used: nobody home; the sites train on the processor.");
    wrapped = *device_of();
    wrapped.take_loss = take_no_loss;
    losses_left = 0;
    run(&s, (struct kedge_learn_host){.save_every = 0}, &wrapped, &other);
    check_same(&other, &alone);
    ck_assert_uint_eq(other.said, 1);
    losses_left = 1000;
    run(&s, (struct kedge_learn_host){.save_every = 0}, &wrapped, &other);
    ck_assert(other.said == 0 && losses_left < 998);
    losses_left = 999 - losses_left; /* one less than it takes: in the last round */
    run(&s, (struct kedge_learn_host){.save_every = 0}, &wrapped, &other);
    check_alike(&other, &alone, "a device that fails later");
    ck_assert_uint_eq(other.said, 1);
}
END_TEST

/* ---- convolutions ---- */

static char folder[] = "/tmp/test-learn-together-XXXXXX";

static void put_file(const char *name, const uint8_t *head, size_t head_len, const uint8_t *body, size_t len)
{
    char path[128];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(head, 1, head_len, f), head_len);
    ck_assert_uint_eq(fwrite(body, 1, len, f), len);
    ck_assert_int_eq(fclose(f), 0);
}

/* Images of noise with a bar: lying or standing, thin or thick. */
static void put_images(void)
{
    static const uint8_t images_head[] = {0, 0, 8, 3,    0, 0, IMAGES >> 8, IMAGES & 255,
                                          0, 0, 0, SIDE, 0, 0, 0,           SIDE},
                         labels_head[] = {0, 0, 8, 1, 0, 0, IMAGES >> 8, IMAGES & 255};
    static uint8_t images[IMAGES][SIDE][SIDE], labels[IMAGES];
    struct kedge_rng rng;
    kedge_rng_init(&rng, 3, KEDGE_RNG_TEST, 0, 0);
    for (size_t i = 0; i < IMAGES; i++) {
        labels[i] = (uint8_t)kedge_rng_below(&rng, CLASSES);
        const size_t at = 4 + kedge_rng_below(&rng, 16), thick = labels[i] & 2 ? 6 : 2;
        for (size_t p = 0; p < (size_t)SIDE * SIDE; p++) {
            const size_t along = labels[i] & 1 ? p / SIDE : p % SIDE;
            images[i][p / SIDE][p % SIDE] =
                (uint8_t)(kedge_rng_below(&rng, 60) + (along >= at && along < at + thick ? 190 : 0));
        }
    }
    put_file("bars-images.idx", images_head, sizeof images_head, images[0][0], sizeof images);
    put_file("bars-labels.idx", labels_head, sizeof labels_head, labels, sizeof labels);
}

START_TEST(lenet_learns)
{
    struct kedge_learn_spec s;
    struct log log;
    learn_spec_default(&s);
    ck_assert_ptr_nonnull(mkdtemp(folder));
    put_images();
    (void)snprintf(s.images, sizeof s.images, "%s/bars-images.idx", folder);
    s.partition = KEDGE_LEARN_IID;
    s.sites = 8;
    s.job.sites_per_round = 4;
    s.job.rounds = LINES_MAX;
    s.job.local_epochs = 3;
    s.job.learning_rate = 0.05;
    ck_assert_int_eq(kedge_model_preset("lenet", CLASSES, &s.job.model, NULL), KEDGE_OK);
    run(&s, (struct kedge_learn_host){.save_every = 0}, NULL, &log);
    ck_assert_msg(log.lines[LINES_MAX - 1].accuracy > 0.9, "accuracy %g", log.lines[LINES_MAX - 1].accuracy);
    char path[128];
    (void)snprintf(path, sizeof path, "%s/bars-images.idx", folder);
    (void)unlink(path);
    (void)snprintf(path, sizeof path, "%s/bars-labels.idx", folder);
    (void)unlink(path);
    (void)rmdir(folder);
}
END_TEST

static const char small_net[] =
    "{\"input\":[1,8,8],\"layers\":[{\"type\":\"conv2d\",\"out\":4,\"kernel\":3,\"padding\":1,"
    "\"activation\":\"relu\"},{\"type\":\"maxpool\",\"kernel\":2},{\"type\":\"flatten\"},{\"type\":\"dense\","
    "\"out\":"
    "10}]}";

START_TEST(a_net_with_convolutions_together)
{
    struct kedge_json_token tokens[64];
    struct kedge_json doc;
    struct kedge_learn_spec s;
    struct log alone, all;
    digits(&s, "fedavg");
    ck_assert_int_eq(kedge_json_parse(kedge_view_str(small_net), tokens, 64, &doc, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_model_from_json(&doc, 0, &s.job.model, NULL), KEDGE_OK);
    s.job.sites_per_round = 3;
    s.job.local_epochs = 1;
    run(&s, (struct kedge_learn_host){.save_every = 0}, NULL, &alone);
    run(&s, (struct kedge_learn_host){.save_every = 0}, device_of(), &all);
    check_alike(&all, &alone, "convolutions");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sim/learn/together");
    TCase *tc = tcase_create("together");
    tcase_set_timeout(tc, 0);
    tcase_add_loop_test(tc, together_is_as_one_by_one, EFFORT(0, 3), EFFORT(STRATEGIES, 4));
    tcase_add_test(tc, what_sites_bring_along_is_theirs);
    tcase_add_test(tc, fewer_at_a_time_where_there_is_no_room);
    tcase_add_test(tc, without_a_device_it_is_said_once_and_nothing_else_changes);
    tcase_add_test(tc, lenet_learns);
    tcase_add_test(tc, a_net_with_convolutions_together);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
