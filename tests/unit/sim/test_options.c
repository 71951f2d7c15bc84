/* Every strategy against every option: one that the strategy reads changes what is learnt, any other is
 * refused, and changes nothing where it is put past the refusal. So nothing is ignored in silence. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/base/text.h"
#include "sim/learn/spec/spec_json.h"
#include "sim/protocol/protocol.h"
#include "tests/fixtures/effort.h"
#include "tests/fixtures/learn_spec.h"
#include "tests/fixtures/run.h"

/* A world in which every option has something to do: few updates until a group parts, groups that are
 * estimated, joined and cut, labels that change place. */
static const struct {
    const char *option;
    double base, other;
} values[] = {
    {"proximal", 0.5, 5},     {"personal", 0.5, 5},   {"head_epochs", 2, 1},       {"fairness", 1, 3},
    {"server_lr", 0.5, 0.25}, {"momentum", 0.9, 0.1}, {"second_moment", 0.9, 0.1}, {"adaptivity", 0.001, 0.1},
    {"settle", 4, 1},         {"buffer", 3, 5},       {"split_mean", 1000, 0.001}, {"split_max", 0, 1000},
    {"split_after", 2, 4},    {"link", 0.2, 2},       {"edge_rounds", 2, 3},       {"shift", 0.1, 1},
    {"regroup", 4, 3},        {"refresh", 2, 3},      {"merge", 0.1, 0.99},        {"silhouette", 0.01, 0.99},
    {"most", 4, 2},           {"trial_every", 2, 5},
};
enum { VALUES = sizeof values / sizeof values[0] };

struct outcome {
    uint64_t digest;
    double personal, loss;
    uint32_t migrations;
};

static bool on_round(void *arg, const struct kedge_learn_round *round)
{
    struct outcome *o = arg;
    *o = (struct outcome){round->digest, round->accuracy_personal, round->loss, round->migrations};
    return true;
}

static bool is_same(const struct outcome *a, const struct outcome *b)
{
    return a->digest == b->digest && a->migrations == b->migrations
           && memcmp(&a->personal, &b->personal, sizeof a->personal) == 0
           && memcmp(&a->loss, &b->loss, sizeof a->loss) == 0;
}

static int run(const struct kedge_learn_spec *s, struct outcome *ret, struct kedge_diag *d)
{
    struct kedge_learn_host host = {.threads = 1, .on_round = on_round, .arg = ret};
    return kedge_protocol_run(s, &host, d);
}

static void set(struct kedge_learn_spec *s, size_t i, double value)
{
    const struct kedge_strategy_option *row = kedge_strategy_option_find(values[i].option);
    ck_assert_msg(row && kedge_strategy_option_set(&s->job.options, row, value) == KEDGE_OK, "%s",
                  values[i].option);
}

/* All sites have the same mixture then, so that groups are alike. */
static bool is_about_likeness(size_t option)
{
    return strcmp(values[option].option, "merge") == 0 || strcmp(values[option].option, "refresh") == 0
           || strcmp(values[option].option, "trial_every") == 0;
}

/* Without the other one at its base the option has nothing to do. */
static bool needs(size_t option, const char *other)
{
    static const char *const pairs[][2] = {
        {"merge", "refresh"},          {"refresh", "merge"},        {"silhouette", "refresh"},
        {"most", "refresh"},           {"most", "silhouette"},      {"split_mean", "split_max"},
        {"split_mean", "split_after"}, {"split_max", "split_mean"}, {"split_max", "split_after"},
        {"split_after", "split_mean"}, {"split_after", "split_max"}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        if (strcmp(pairs[i][0], values[option].option) == 0 && strcmp(pairs[i][1], other) == 0) {
            return true;
        }
    }
    return false;
}

static void make_spec(const struct kedge_strategy *strategy, size_t option, struct kedge_learn_spec *s)
{
    learn_spec_default(s);
    (void)snprintf(s->images, sizeof s->images, "%s", "data/digits/digits-images.idx");
    s->partition = is_about_likeness(option) ? KEDGE_LEARN_IID : KEDGE_LEARN_SHARDS;
    s->sites = 12;
    s->job.sites_per_round = strategy->everybody ? 0 : 6;
    s->job.rounds = 8;
    s->job.local_epochs = 1;
    s->job.learning_rate = 0.05;
    s->job.groups = 2;
    s->job.pretrain_sites =
        strategy->choose == KEDGE_CHOOSE_MOST || strategy->choose == KEDGE_CHOOSE_ONE ? 12 : 8;
    s->job.pretrain_steps = 5;
    kedge_learn_spec_set_tenants(s, 2);
    s->shift = KEDGE_LEARN_SHIFT_SWAP_ALL;
    s->shift_rate = 0.5;
    s->job.evaluate_every = 8;
    learn_spec_set_strategy(s, strategy);
    s->job.options = strategy->defaults;
    ck_assert_int_eq(strategy->local->has_head ? kedge_model_mlp(64, 6, 10, &s->job.model, NULL)
                                               : kedge_model_mclr(64, 10, &s->job.model, NULL),
                     KEDGE_OK);
    if (strategy->choose == KEDGE_CHOOSE_ONE && strcmp(values[option].option, "most") == 0) {
        s->job.sites_per_round = 12; /* who is asked often finds more than two kinds */
        s->job.local_epochs = 4;
        s->job.options.trial_every = 1;
        s->job.rounds = 12;
        s->shift = KEDGE_LEARN_SHIFT_NONE;
    }
    for (size_t i = 0; i < VALUES; i++) {
        if (i == option || needs(option, values[i].option)) {
            set(s, i, values[i].base);
        }
    }
}

static int parse(const struct kedge_strategy *strategy, size_t i, struct kedge_diag *d)
{
    static struct kedge_learn_spec spec;
    char text[400];
    (void)snprintf(text, sizeof text,
                   "{\"preset\":\"digits\",\"world\":{\"tenants\":2,\"through\":\"protocol\"},%s\"strategy\":"
                   "\"%s\",\"options\":{%s\"%s\":%g}}",
                   strategy->local->has_head ? "\"model\":{\"preset\":\"mlp\",\"inputs\":64,\"hidden\":6,"
                                               "\"classes\":10},"
                                             : "",
                   strategy->name,
                   strcmp(values[i].option, "merge") == 0 || strcmp(values[i].option, "silhouette") == 0
                       ? "\"refresh\":5,"
                       : "",
                   values[i].option, values[i].other);
    return kedge_learn_spec_parse(kedge_view_str(text), NULL, &spec, d);
}

START_TEST(an_option_works_or_is_refused)
{
    const struct kedge_strategy *strategy = kedge_strategy_at((size_t)_i);
    for (size_t i = 0; i < VALUES; i++) {
        const struct kedge_strategy_option *row = kedge_strategy_option_find(values[i].option);
        struct kedge_diag d = {.text = ""};
        struct kedge_learn_spec spec;
        struct outcome base, other;
        if (!kedge_strategy_uses(strategy, row)) {
            ck_assert_msg(parse(strategy, i, &d) == KEDGE_E_FORMAT && strstr(d.text, " takes "),
                          "%s: \"%s\": %s", strategy->name, values[i].option, d.text);
            continue;
        }
        ck_assert_msg(parse(strategy, i, &d) == KEDGE_OK, "%s: %s", strategy->name, d.text);
        make_spec(strategy, i, &spec);
        ck_assert_msg(run(&spec, &base, &d) == KEDGE_OK, "%s: \"%s\": %s", strategy->name, values[i].option,
                      d.text);
        set(&spec, i, values[i].other);
        ck_assert_msg(run(&spec, &other, &d) == KEDGE_OK, "%s: %s", strategy->name, d.text);
        ck_assert_msg(!is_same(&base, &other), "%s: \"%s\" changes nothing", strategy->name,
                      values[i].option);
    }
}
END_TEST

/* The same of the jobs that the specs stand for, through the state machines. */
START_TEST(an_option_of_a_job_works_or_is_refused)
{
    const struct kedge_strategy *strategy = kedge_strategy_at((size_t)_i);
    uint32_t taken = 0;
    for (size_t i = 0; i < VALUES; i++) {
        struct kedge_diag d = {.text = ""};
        struct kedge_learn_spec spec;
        struct outcome base, other;
        if (!kedge_strategy_uses(strategy, kedge_strategy_option_find(values[i].option))) {
            continue;
        }
        make_spec(strategy, i, &spec);
        spec.through = KEDGE_LEARN_THROUGH_PROTOCOL;
        spec.job.quorum = strategy->asynchronous ? 3 : spec.sites;
        int err = run(&spec, &base, &d);
        ck_assert_msg(err == KEDGE_OK || (err == KEDGE_E_FORMAT && d.text[0]), "%s: %s", strategy->name,
                      d.text);
        if (err) {
            continue; /* refused by name */
        }
        taken++;
        set(&spec, i, values[i].other);
        ck_assert_msg(run(&spec, &other, &d) == KEDGE_OK, "%s: %s", strategy->name, d.text);
        ck_assert_msg(!is_same(&base, &other), "%s: \"%s\" is taken and changes nothing", strategy->name,
                      values[i].option);
    }
    ck_assert(taken > 0 || strategy->comparison_only || !strategy->uses[0]);
}
END_TEST

START_TEST(every_option_has_a_row)
{
    ck_assert_uint_eq(VALUES, KEDGE_STRATEGY_OPTION_COUNT);
    for (size_t i = 0; i < VALUES; i++) {
        for (size_t k = 0; k < i; k++) {
            ck_assert_str_ne(values[i].option, values[k].option);
        }
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("options");
    TCase *t = tcase_create("options");
    int first = EFFORT(0, 18), last = EFFORT((int)kedge_strategy_count(), 21); /* cfl, fedclust, flexcfl */
    tcase_set_timeout(t, 120);
    tcase_add_test(t, every_option_has_a_row);
    tcase_add_loop_test(t, an_option_works_or_is_refused, first, last);
    tcase_add_loop_test(t, an_option_of_a_job_works_or_is_refused, first, last);
    suite_add_tcase(s, t);
    return run_suite(s);
}
