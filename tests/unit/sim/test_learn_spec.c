/* SPEC.json of learning simulations: what is read, what is refused and how that is said, presets, variants.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/rng.h"
#include "sim/learn/spec/spec_json.h"

static struct kedge_learn_spec spec;
static struct kedge_diag diag;

static int parse(const char *text, const char *variant)
{
    diag = (struct kedge_diag){.text = ""};
    return kedge_learn_spec_parse(kedge_view_str(text), variant, &spec, &diag);
}

static void put(const struct kedge_learn_spec *s, struct kedge_buf *out)
{
    kedge_buf_init(out, 1 << 16);
    kedge_learn_spec_put(s, out);
    ck_assert_int_eq(out->err, KEDGE_OK);
}

/* What a job needs beside a world. */
#define JOB "\"rounds\":30,\"model\":{\"preset\":\"mclr\",\"inputs\":4,\"classes\":2}"
#define WORLD(text) "{" JOB ",\"world\":" text "}"
#define GROUPED ",\"strategy\":\"flexcfl\",\"groups\":2"

static const char whole[] =
    "{\"name\":\"all.keys\",\"seed\":\"18446744073709551615\"," JOB
    ",\"sites_per_round\":6,\"local_epochs\":5,\"batch\":4,\"learning_rate\":\"0.25\",\"l2\":0.001,"
    "\"strategy\":\"flexcfl\",\"options\":{\"server_lr\":0.5,\"most\":7},\"groups\":4,"
    "\"choose\":\"fixed\",\"pretrain_steps\":9,\"pretrain_sites\":32,\"regroup_every\":2,\"shift\":"
    "\"update\","
    "\"rule\":\"krum\",\"rule_fraction\":0.25,\"round_timeout_s\":30,\"quorum\":3,\"evaluate_every\":2,"
    "\"bound\":2047,\"scale\":20,\"server\":\"momentum\",\"local_momentum\":0.5,"
    "\"world\":{\"data\":{\"images\":\"/data/x\",\"partition\":\"dirichlet\",\"sites\":50,\"alpha\":\"0.5\"},"
    "\"planted\":3,\"tenants\":5,\"shift\":{\"kind\":\"rotate\",\"rate\":0.125},"
    "\"attack\":{\"kind\":\"backdoor\",\"share\":0.2,\"scale\":3},\"fail\":0.1,"
    "\"devices\":[{\"share\":3,\"samples_per_s\":10,\"bytes_per_s\":20,\"joules_per_sample\":0.5,"
    "\"joules_per_s\":2,\"available\":0.75},{\"share\":1}],"
    "\"through\":\"protocol\",\"faults\":true,\"trace\":\"days.csv\",\"trace_period_s\":86400}}";

START_TEST(test_every_key)
{
    ck_assert_msg(parse(whole, NULL) == KEDGE_OK, "%s", diag.text);
    const struct kedge_job_spec *job = &spec.job;
    ck_assert_str_eq(job->name.s, "all.keys");
    ck_assert(job->in_world && job->seed == UINT64_MAX && job->rounds == 30 && job->sites_per_round == 6);
    ck_assert(job->local_epochs == 5 && job->batch == 4 && job->learning_rate == 0.25 && job->l2 == 0.001);
    ck_assert_str_eq(job->strategy->name, "flexcfl");
    ck_assert(job->options.server_lr == 0.5 && job->options.most == 7);
    ck_assert(job->groups == 4 && job->choose == KEDGE_CHOOSE_FIXED && job->pretrain_steps == 9
              && job->pretrain_sites == 32 && job->regroup_every == 2
              && job->shift == KEDGE_SHIFT_TEST_UPDATE);
    ck_assert(strcmp(job->rule->name, "krum") == 0 && job->rule_params.fraction == 0.25);
    ck_assert(job->round_timeout_s == 30 && job->quorum == 3 && job->evaluate_every == 2
              && job->sites_min == 0);
    ck_assert(job->tenant_count == 5 && strcmp(job->tenants[4].s, "org-e") == 0);
    ck_assert_str_eq(job->data, "simulated");
    ck_assert_str_eq(spec.images, "/data/x");
    ck_assert(spec.partition == KEDGE_LEARN_DIRICHLET && spec.sites == 50 && spec.alpha == 0.5);
    ck_assert(spec.planted == 3 && spec.shift == KEDGE_LEARN_SHIFT_ROTATE && spec.shift_rate == 0.125);
    ck_assert(spec.attack == KEDGE_LEARN_ATTACK_BACKDOOR && spec.attackers == 0.2 && spec.attack_scale == 3);
    ck_assert(spec.fail == 0.1 && strcmp(spec.trace, "days.csv") == 0 && spec.trace_period_s == 86400);
    ck_assert(spec.device_count == 2 && spec.devices[0].share == 3 && spec.devices[0].available == 0.75);
    ck_assert(spec.devices[1].share == 1 && spec.devices[1].available == 1);
    ck_assert(spec.through == KEDGE_LEARN_THROUGH_PROTOCOL && spec.faults);
}
END_TEST

/* What is written reads back to the same spec, and equal specs give equal bytes. */
static void check_round_trip(const char *of)
{
    struct kedge_buf one, two;
    put(&spec, &one);
    kedge_buf_put_u8(&one, 0);
    ck_assert_msg(parse((const char *)one.ptr, NULL) == KEDGE_OK, "%s: %s\n%s", of, diag.text,
                  (const char *)one.ptr);
    put(&spec, &two);
    ck_assert_msg(one.len - 1 == two.len && memcmp(one.ptr, two.ptr, two.len) == 0, "%s", of);
    kedge_buf_deinit(&one);
    kedge_buf_deinit(&two);
}

START_TEST(test_round_trip)
{
    ck_assert_int_eq(parse(whole, NULL), KEDGE_OK);
    check_round_trip(whole);
    ck_assert_int_eq(parse(WORLD("{\"data\":{}}"), NULL), KEDGE_OK);
    check_round_trip("defaults");
}
END_TEST

/* The same of drawn specs: every preset, strategy and key that is drawn, as far as they go together. */
START_TEST(test_drawn_specs_read_back)
{
    static const char *const keys[] = {
        "\"rule\":\"median\"",
        "\"rule\":\"trimmed-mean\",\"rule_fraction\":0.2",
        "\"mixing\":0.25",
        "\"tenants\":[\"b\",\"a\",\"c\"]",
        "\"tenant_share_max\":0.5",
        "\"compression\":{\"kind\":\"topk\",\"share\":0.125}",
        "\"server\":\"adam\"",
        "\"evaluate_every\":0",
        "\"sites_per_round\":0",
        "\"shift\":\"counts\"",
        "\"sites_min\":3",
        "\"world\":{\"tenants\":3}",
        "\"world\":{\"planted\":4,\"through\":\"protocol\",\"faults\":true}",
        "\"world\":{\"attack\":{\"kind\":\"scale\",\"share\":0.1},\"fail\":0.25}",
        "\"world\":{\"shift\":{\"kind\":\"swap-part\"},\"trace\":\"t.csv\"}",
        "\"world\":{\"data\":{\"partition\":\"iid\"}}",
        "\"world\":{\"data\":{\"partition\":\"clients\",\"images\":\"x.csv\",\"steps\":[3,9]}}"};
    enum { KEYS = sizeof keys / sizeof keys[0] };
    struct kedge_rng rng;
    uint32_t read = 0;
    kedge_rng_init(&rng, 7, KEDGE_RNG_TEST, 0, 0);
    for (uint32_t i = 0; i < 400; i++) {
        char text[800];
        const struct kedge_strategy *s =
            kedge_strategy_at((size_t)kedge_rng_below(&rng, kedge_strategy_count()));
        const char *preset = kedge_learn_preset_at((size_t)kedge_rng_below(&rng, 11))->name;
        (void)snprintf(text, sizeof text, "{\"preset\":\"%s\",\"strategy\":\"%s\"", preset, s->name);
        for (uint64_t k = kedge_rng_below(&rng, 3); k > 0; k--) {
            size_t len = strlen(text);
            (void)snprintf(text + len, sizeof text - len, ",%s", keys[kedge_rng_below(&rng, KEYS)]);
        }
        (void)snprintf(text + strlen(text), sizeof text - strlen(text), "}");
        if (parse(text, NULL) == KEDGE_OK) {
            check_round_trip(text);
            read++;
        } else {
            ck_assert_msg(diag.text[0] != '\0', "%s", text);
        }
    }
    ck_assert_uint_ge(read, 130);
}
END_TEST

static const struct {
    const char *text;
    int err;
    const char *says;
} wrong[] = {
    {"", KEDGE_E_FORMAT, "JSON"},
    {"[]", KEDGE_E_FORMAT, "object"},
    {"{\"world\":{}} x", KEDGE_E_FORMAT, "JSON"},
    /* a job's keys are read as a job's */
    {"{\"world\":{}}", KEDGE_E_FORMAT, "\"model\" is missing"},
    {"{" JOB ",\"round\":1,\"world\":{}}", KEDGE_E_FORMAT, "unknown key \"round\""},
    {"{" JOB ",\"learning_rate\":0,\"world\":{}}", KEDGE_E_FORMAT, "\"learning_rate\": expected a number"},
    {"{" JOB ",\"strategy\":\"fedbest\",\"world\":{}}", KEDGE_E_FORMAT, "expected one of \"fedavg\""},
    {"{" JOB ",\"options\":{\"mu\":1},\"world\":{}}", KEDGE_E_FORMAT, "\"mu\""},
    {"{" JOB ",\"strategy\":\"fedavgm\",\"options\":{\"proximal\":0.5},\"world\":{}}", KEDGE_E_FORMAT,
     "\"proximal\": strategy \"fedavgm\""},
    {"{" JOB GROUPED ",\"options\":{\"regroup\":5},\"world\":{}}", KEDGE_E_FORMAT, "\"regroup\""},
    {"{" JOB ",\"rule_fraction\":0.2,\"world\":{}}", KEDGE_E_FORMAT, "rule \"mean\" has no use for it"},
    {"{" JOB ",\"groups\":2,\"world\":{}}", KEDGE_E_FORMAT, "\"groups\""},
    {"{" JOB ",\"pretrain_steps\":7,\"world\":{}}", KEDGE_E_FORMAT,
     "\"pretrain_steps\": strategy \"fedavg\""},
    {"{" JOB ",\"strategy\":\"ifca\",\"groups\":2,\"shift\":\"labels\",\"world\":{}}", KEDGE_E_FORMAT,
     "\"shift\""},
    {"{" JOB ",\"sites_per_round\":5,\"strategy\":\"scaffold\",\"control_sites\":9,\"world\":{}}",
     KEDGE_E_FORMAT, "of a world they are all sites"},
    {"{" JOB ",\"sites_per_round\":5,\"rule\":\"root-trust\",\"root_site\":\"a/b\",\"world\":{}}",
     KEDGE_E_FORMAT, "a world has one more site"},
    {"{" JOB ",\"tenants\":[\"a\"],\"world\":{\"tenants\":2}}", KEDGE_E_FORMAT, "leave one out"},
    /* the world */
    {WORLD("7"), KEDGE_E_FORMAT, "\"world\": expected an object"},
    {WORLD("{\"dat\":{}}"), KEDGE_E_FORMAT, "unknown key \"dat\" in \"world\""},
    {WORLD("{\"data\":7}"), KEDGE_E_FORMAT, "\"world.data\": expected an object"},
    {WORLD("{\"data\":{\"site\":7}}"), KEDGE_E_FORMAT, "unknown key \"site\" in \"world.data\""},
    {WORLD("{\"data\":{\"sites\":0}}"), KEDGE_E_FORMAT,
     "\"sites\" in \"world.data\": expected a whole number from 2 to 100000, found 0"},
    {WORLD("{\"data\":{\"sites\":1.5}}"), KEDGE_E_FORMAT, "found 1.5"},
    {WORLD("{\"data\":{\"partition\":\"ring\"}}"), KEDGE_E_FORMAT, "expected one of iid, dirichlet"},
    {WORLD("{\"data\":{\"leak\":1}}"), KEDGE_E_FORMAT,
     "\"leak\" in \"world.data\": expected true or false, found 1"},
    {WORLD("{\"data\":{\"images\":\"a\\u0007\"}}"), KEDGE_E_FORMAT, "control characters"},
    {WORLD("{\"data\":{\"images\":\"a\\u0000\"}}"), KEDGE_E_FORMAT, ""},
    {WORLD("{\"trace\":7}"), KEDGE_E_FORMAT, "\"trace\" in \"world\": expected text"},
    {WORLD("{\"trace\":\"t.csv\",\"trace_period_s\":-1}"), KEDGE_E_FORMAT, "expected a number from 0"},
    {WORLD("{\"fail\":1}"), KEDGE_E_FORMAT, "\"fail\""},
    {WORLD("{\"tenants\":129}"), KEDGE_E_FORMAT,
     "\"tenants\" in \"world\": expected a whole number from 1 to 128"},
    {WORLD("{\"devices\":{}}"), KEDGE_E_FORMAT, "\"devices\": expected a list"},
    {WORLD("{\"devices\":[{\"share\":0}]}"), KEDGE_E_FORMAT, "\"share\""},
    {WORLD("{\"devices\":[{\"speed\":1}]}"), KEDGE_E_FORMAT, "unknown key \"speed\" in \"world.devices\""},
    {WORLD("{\"devices\":[{},{},{},{},{},{},{},{},{}]}"), KEDGE_E_FORMAT, "1 to 8"},
    {WORLD("{\"data\":{\"partition\":\"clients\",\"standardize\":true}}"), KEDGE_E_FORMAT,
     "none, local, federated"},
    {WORLD("{\"data\":{\"partition\":\"clients\",\"steps\":[3,3]}}"), KEDGE_E_FORMAT,
     "in ascending order, found 3"},
    {WORLD("{\"data\":{\"partition\":\"clients\",\"steps\":7}}"), KEDGE_E_FORMAT, "\"steps\""},
    /* what nothing reads */
    {WORLD("{\"data\":{\"partition\":\"writers\",\"sites\":7}}"), KEDGE_E_FORMAT,
     "the data say which sites there are"},
    {WORLD("{\"data\":{\"partition\":\"iid\",\"alpha\":0.5}}"), KEDGE_E_FORMAT,
     "\"alpha\" in \"world.data\": it changes nothing: read by the partitions dirichlet and synthetic only"},
    {WORLD("{\"data\":{\"partition\":\"dirichlet\",\"beta\":2}}"), KEDGE_E_FORMAT,
     "\"beta\" in \"world.data\""},
    {WORLD("{\"data\":{\"per_site\":3}}"), KEDGE_E_FORMAT, "\"per_site\" in \"world.data\""},
    {WORLD("{\"data\":{\"leak\":true}}"), KEDGE_E_FORMAT, "\"leak\" in \"world.data\""},
    {WORLD("{\"data\":{\"client\":\"who\"}}"), KEDGE_E_FORMAT, "\"client\" in \"world.data\""},
    {WORLD("{\"data\":{\"missing\":\"drop\"}}"), KEDGE_E_FORMAT, "\"missing\" in \"world.data\""},
    {WORLD("{\"shift\":{\"rate\":0.5}}"), KEDGE_E_FORMAT, "\"rate\" in \"world.shift\""},
    {WORLD("{\"attack\":{\"scale\":3}}"), KEDGE_E_FORMAT, "there is no attack"},
    {WORLD("{\"faults\":true}"), KEDGE_E_FORMAT, "\"faults\" in \"world\""},
    {WORLD("{\"trace_period_s\":3}"), KEDGE_E_FORMAT, "there is no trace"},
    /* presets and variants */
    {"{\"preset\":\"mnist\"}", KEDGE_E_FORMAT, "\"preset\": expected one of mnist-1000-mclr"},
    {"{\"preset\":\"digits\",\"groups\":2}", KEDGE_E_FORMAT, "\"groups\""},
    {"{\"preset\":\"digits\",\"variants\":[]}", KEDGE_E_FORMAT, "\"variants\": expected an object"},
    {"{\"preset\":\"digits\",\"variants\":{\"a b\":{}}}", KEDGE_E_FORMAT, "expected a name"},
    {"{\"preset\":\"digits\",\"variants\":{\"a\":{\"preset\":\"digits\"}}}", KEDGE_E_FORMAT,
     "variant \"a\": "},
    {"{\"preset\":\"digits\",\"variants\":{\"a\":{\"rounds\":0}}}", KEDGE_E_FORMAT,
     "variant \"a\": job spec: \"rounds\""},
    {"{\"preset\":\"digits\",\"variants\":{\"a\":{\"strategy\":\"fedprox\",\"options\":{\"buffer\":3}}}}",
     KEDGE_E_FORMAT, "variant \"a\": job spec: \"options\": \"buffer\""},
    {"{\"preset\":\"digits\",\"variants\":{\"a\":{\"mixing\":0.5}}}", KEDGE_E_FORMAT,
     "variant \"a\": job spec: \"mixing\""},
    /* words of before there was a world */
    {"{\"data\":{}}", KEDGE_E_FORMAT, "\"data\" is now \"world\": {\"data\": …}"},
    {"{\"synthetic_updates\":true}", KEDGE_E_FORMAT, "is now \"world\": {\"planted\": …}"},
    {"{\"attackers\":0.1}", KEDGE_E_FORMAT, "is now \"world\": {\"attack\": {\"share\": …}}"},
    {"{\"fail\":0.1}", KEDGE_E_FORMAT, "\"fail\" is now \"world\": {\"fail\": …}"},
    {"{\"detector\":\"none\"}", KEDGE_E_FORMAT, "\"detector\" is now \"shift\""},
    {"{\"pretrain_scale\":20}", KEDGE_E_FORMAT, "\"pretrain_scale\" is now \"pretrain_sites\""},
    {"{\"deadline_s\":3}", KEDGE_E_FORMAT, "\"deadline_s\" is now \"round_timeout_s\""},
    {WORLD("{\"embedding\":\"plain\"}"), KEDGE_E_FORMAT, "\"embedding\" is now a strategy"},
    {WORLD("{\"as_released\":true}"), KEDGE_E_FORMAT, "\"as_released\" is now a strategy"},
};

START_TEST(test_wrong)
{
    memset(&spec, 0x5a, sizeof spec);
    ck_assert_msg(parse(wrong[_i].text, NULL) == wrong[_i].err, "%s", wrong[_i].text);
    ck_assert_msg(strstr(diag.text, wrong[_i].says) != NULL, "%s: %s", wrong[_i].text, diag.text);
    for (size_t i = 0; i < sizeof spec; i++) { /* nothing is half-applied */
        ck_assert_uint_eq(((const unsigned char *)&spec)[i], 0x5a);
    }
}
END_TEST

START_TEST(test_presets)
{
    uint32_t seen = 0;
    for (size_t i = 0; kedge_learn_preset_at(i); i++) {
        char text[256];
        snprintf(text, sizeof text, "{\"preset\":\"%s\",\"rounds\":11}", kedge_learn_preset_at(i)->name);
        ck_assert_msg(parse(text, NULL) == KEDGE_OK, "%s: %s", text, diag.text);
        ck_assert_uint_eq(spec.job.rounds, 11); /* the file's keys lie over the preset's */
        ck_assert(spec.job.local_epochs == 10 && spec.job.batch == 10 && spec.job.l2 == 0.001);
        seen++;
    }
    ck_assert_uint_ge(seen, 8);
    ck_assert_int_eq(parse("{\"preset\":\"mnist-1000-mclr\"}", "flexcfl"),
                     KEDGE_OK); /* clustering.md §2.11 */
    ck_assert(spec.sites == 1000 && spec.job.groups == 3 && spec.job.learning_rate == 0.03
              && spec.job.rounds == 300);
    ck_assert_uint_eq(kedge_model_values_count(&spec.job.model), 7850);
    ck_assert_int_eq(parse("{\"preset\":\"letters-fashion-mlp\"}", "flexcfl"), KEDGE_OK);
    ck_assert(spec.sites == 200 && spec.job.groups == 5 && spec.job.learning_rate == 0.003);
    ck_assert_uint_eq(kedge_model_values_count(&spec.job.model), 407050);
    ck_assert_int_eq(parse("{\"preset\":\"synthetic-1-1\"}", NULL), KEDGE_OK);
    ck_assert(spec.alpha == 1 && spec.beta == 1 && kedge_model_values_count(&spec.job.model) == 610);
}
END_TEST

START_TEST(test_variants)
{
    static const char text[] =
        "{" JOB ",\"strategy\":\"fedprox\",\"options\":{\"proximal\":0.25},\"groups\":2,"
        "\"variants\":{\"weak\":{\"options\":{\"proximal\":0.125}},\"static\":{"
        "\"strategy\":\"flexcfl\",\"shift\":\"none\"}},\"world\":{\"data\":{}}}";
    ck_assert_msg(parse(text, NULL) == KEDGE_OK, "%s", diag.text);
    ck_assert(spec.job.options.proximal == 0.25 && spec.job.groups == 1);
    ck_assert_int_eq(parse(text, "weak"), KEDGE_OK);
    ck_assert_str_eq(spec.job.strategy->name, "fedprox");
    ck_assert(spec.job.options.proximal == 0.125);
    ck_assert_int_eq(parse(text, "static"), KEDGE_OK); /* another strategy begins with its own options */
    ck_assert_str_eq(spec.job.strategy->name, "flexcfl");
    ck_assert(spec.job.options.proximal == spec.job.strategy->defaults.proximal && spec.job.groups == 2);
    ck_assert(spec.job.shift == KEDGE_SHIFT_TEST_NONE);
    ck_assert_int_eq(parse(text, "fedavg"), KEDGE_OK);
    ck_assert_str_eq(spec.job.strategy->name, "fedavg");
    check_round_trip("of a comparison"); /* so that a run can be repeated alone */
    ck_assert_int_eq(parse(text, "other"), KEDGE_E_NOT_FOUND);
    ck_assert(strstr(diag.text, "other: neither a variant") != NULL);
}
END_TEST

/* What several runs share counts for each as far as it reads it; what a variant says it must read. */
START_TEST(test_variants_share_what_the_file_has)
{
    static const char text[] =
        "{" JOB ",\"rule_fraction\":0.2,\"groups\":2,\"sites_per_round\":10,\"variants\":{"
        "\"plain\":{},\"median\":{\"rule\":\"trimmed-mean\"}},"
        "\"world\":{\"shift\":{\"rate\":0.5},\"data\":{}}}";
    static const char wrong_one[] = "{" JOB ",\"variants\":{\"wrong\":{\"staleness_max\":3}},\"world\":{}}";
    ck_assert_msg(parse(text, "plain") == KEDGE_OK, "%s", diag.text);
    ck_assert_msg(parse(text, "median") == KEDGE_OK, "%s", diag.text);
    ck_assert(spec.job.rule_params.fraction == 0.2 && spec.shift_rate == 0.05);
    for (size_t i = 0; i < kedge_strategy_count(); i++) {
        const char *name = kedge_strategy_at(i)->name;
        bool edges = strcmp(name, "hierarchical") == 0;        /* wants tenants */
        bool has_head = kedge_strategy_at(i)->local->has_head; /* wants layers */
        if (kedge_strategy_at(i)->local->has_base) {
            ck_assert(parse(text, name) != KEDGE_OK);
            ck_assert_msg(strstr(diag.text, "a simulation begins from its seed") != NULL, "%s", diag.text);
            continue;
        }
        ck_assert_msg((parse(text, name) == KEDGE_OK) == !(edges || has_head), "%s: %s", name, diag.text);
        ck_assert_msg(parse("{\"preset\":\"digits\",\"model\":{\"preset\":\"mlp\",\"inputs\":64,\"hidden\":6,"
                            "\"classes\":10},\"world\":{\"tenants\":2}}",
                            name)
                          == KEDGE_OK,
                      "%s: %s", name, diag.text);
        check_round_trip(name);
    }
    ck_assert_int_eq(parse(wrong_one, NULL), KEDGE_E_FORMAT);
    ck_assert_ptr_nonnull(strstr(diag.text, "variant \"wrong\": job spec: \"staleness_max\""));
    ck_assert_int_eq(parse("{\"preset\":\"letters-digits-mclr\"}", NULL),
                     KEDGE_OK); /* groups: the preset's */
}
END_TEST

/* Clients: what is written reads back, and has no number of sites. */
START_TEST(test_clients)
{
    struct kedge_buf one;
    ck_assert_msg(parse("{" JOB
                        ",\"world\":{\"data\":{\"partition\":\"clients\",\"images\":\"t.csv\",\"client\":"
                        "\"who\",\"label\":\"y\",\"group\":\"g\",\"step\":\"s\",\"truth\":\"g.csv\","
                        "\"missing\":\"mean\",\"standardize\":\"local\",\"steps\":[4,9]}}}",
                        NULL)
                      == KEDGE_OK,
                  "%s", diag.text);
    ck_assert(strcmp(spec.client, "who") == 0 && strcmp(spec.truth, "g.csv") == 0 && spec.sites == 0);
    ck_assert(spec.missing == KEDGE_CSV_MISSING_MEAN && spec.standardize == KEDGE_LEARN_STANDARDIZE_LOCAL);
    ck_assert(spec.steps.count == 2 && spec.steps.at[0] == 4 && spec.steps.at[1] == 9);
    put(&spec, &one);
    kedge_buf_put_u8(&one, 0);
    ck_assert_ptr_nonnull(strstr((const char *)one.ptr, "\"steps\": [4, 9]"));
    ck_assert_ptr_null(strstr((const char *)one.ptr, "\"sites\":"));
    ck_assert_msg(parse((const char *)one.ptr, NULL) == KEDGE_OK, "%s", diag.text);
    check_round_trip("clients");
    kedge_buf_deinit(&one);
}
END_TEST

START_TEST(test_is)
{
    ck_assert(kedge_learn_spec_is(kedge_view_str("{\"world\":{\"data\":{}}}")));
    ck_assert(kedge_learn_spec_is(kedge_view_str("{\"preset\":3}")));
    ck_assert(kedge_learn_spec_is(kedge_view_str("{\"world\":{\"planted\":3}}")));
    ck_assert(!kedge_learn_spec_is(kedge_view_str("{\"seeds\":2,\"rounds\":3}")));
    ck_assert(!kedge_learn_spec_is(kedge_view_str("{}")));
    ck_assert(!kedge_learn_spec_is(kedge_view_str("{\"world\"")));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("learn_spec");
    TCase *t = tcase_create("spec");
    tcase_add_test(t, test_every_key);
    tcase_add_test(t, test_round_trip);
    tcase_add_test(t, test_drawn_specs_read_back);
    tcase_add_loop_test(t, test_wrong, 0, sizeof wrong / sizeof wrong[0]);
    tcase_add_test(t, test_presets);
    tcase_add_test(t, test_variants);
    tcase_add_test(t, test_variants_share_what_the_file_has);
    tcase_add_test(t, test_clients);
    tcase_add_test(t, test_is);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
