/* SPEC.json of learning simulations: what is read, what is refused and how that is said, presets, variants.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static const char whole[] =
    "{\"name\":\"all.keys\",\"seed\":\"18446744073709551615\",\"model\":{\"preset\":\"mlp\",\"inputs\":4,"
    "\"hidde"
    "n\":3,\"classes\":2},\"rounds\":7,\"sites_per_round\":6,\"local_epochs\":5,\"batch\":4,\"learning_rate"
    "\":\"0.25\",\"l2\":0.001,\"strategy\":\"fedprox\",\"options\":{\"proximal\":0.5,\"buffer\":1},"
    "\"groups\":4,"
    "\"choose\":\"silhouette\",\"pretrain_steps\":9,\"pretrain_sites\":32,\"mixing\":0.1,\"regroup_every\":"
    "2,\"shift\":\"update\",\"rule\":\"krum\",\"rule_fraction\":0.25,\"tenant_share_max\":0.5,\"round_"
    "timeout_"
    "s\":30,\"quorum\":3,\"evaluate_every\":2,\"world\":{\"data\":{\"images\":\"/data/"
    "x\",\"partition\":\"diric"
    "hlet\",\"sites\":50,\"alpha\":0.5,\"beta\":\"1\",\"per_site\":2,\"leak\":false},\"planted\":true,"
    "\"tenants\":5,\"shift\":{\"kind\":\"rotate\",\"rate\":0.125},"
    "\"attack\""
    ":{\"kind\":\"inner-product\",\"share\":0.2,\"scale\":3},\"fail\":0.1,\"devices\":[{\"share\":3,"
    "\"samples_"
    "per_s\":10,\"bytes_per_s\":20,\"joules_per_sample\":0.5,\"joules_per_s\":2,\"available\":0.75},{\"sh"
    "are\":1}],\"through\":\"protocol\",\"faults\":true,\"trace\":\"days.csv\",\"trace_period_s\":86400}}";

START_TEST(test_every_key)
{
    ck_assert_msg(parse(whole, NULL) == KEDGE_OK, "%s", diag.text);
    ck_assert_str_eq(spec.name, "all.keys");
    ck_assert_uint_eq(spec.seed, UINT64_MAX);
    ck_assert_str_eq(spec.images, "/data/x");
    ck_assert_int_eq(spec.partition, KEDGE_LEARN_DIRICHLET);
    ck_assert_uint_eq(spec.sites, 50);
    ck_assert(spec.alpha == 0.5 && spec.beta == 1 && spec.per_site == 2 && !spec.leak
              && spec.synthetic_updates);
    ck_assert(spec.model.count == 2 && spec.model.layers[0].out == 3);
    ck_assert(spec.rounds == 7 && spec.sites_per_round == 6 && spec.epochs == 5 && spec.batch == 4);
    ck_assert(spec.lr == 0.25 && spec.l2 == 0.001);
    ck_assert_str_eq(spec.strategy->name, "fedprox");
    ck_assert(spec.options.proximal == 0.5 && spec.options.buffer == 1);
    ck_assert(spec.groups == 4 && spec.choose_groups && spec.pretrain_steps == 9
              && spec.pretrain_sites == 32);
    ck_assert(spec.mixing == 0.1 && spec.regroup_every == 2);
    ck_assert_int_eq(spec.detector, KEDGE_LEARN_DETECT_UPDATE);
    ck_assert_str_eq(spec.rule, "krum");
    ck_assert(spec.rule_fraction == 0.25 && spec.tenants == 5 && spec.tenant_share_max == 0.5);
    ck_assert(spec.shift_rate == 0.125);
    ck_assert_int_eq(spec.shift, KEDGE_LEARN_SHIFT_ROTATE);
    ck_assert_int_eq(spec.attack, KEDGE_LEARN_ATTACK_INNER_PRODUCT);
    ck_assert(spec.attackers == 0.2 && spec.attack_scale == 3 && spec.fail == 0.1 && spec.deadline_s == 30);
    ck_assert_str_eq(spec.trace, "days.csv");
    ck_assert(spec.trace_period_s == 86400);
    ck_assert_uint_eq(spec.device_count, 2);
    ck_assert(spec.devices[0].share == 3 && spec.devices[0].available == 0.75);
    ck_assert(spec.devices[1].share == 1 && spec.devices[1].available == 1);
    ck_assert_uint_eq(spec.evaluate_every, 2);
    ck_assert(spec.through == KEDGE_LEARN_THROUGH_PROTOCOL && spec.faults && spec.quorum == 3);
}
END_TEST

/* Keys that are newer than results: a run that has no use for them keeps its name. */
START_TEST(test_new_keys_are_quiet)
{
    struct kedge_buf one;
    ck_assert_int_eq(parse("{\"world\":{\"data\":{}}}", NULL), KEDGE_OK);
    put(&spec, &one);
    kedge_buf_put_u8(&one, 0);
    ck_assert_ptr_null(strstr((const char *)one.ptr, "through"));
    ck_assert_ptr_null(strstr((const char *)one.ptr, "quorum"));
    ck_assert_ptr_null(strstr((const char *)one.ptr, "compression"));
    ck_assert_ptr_null(strstr((const char *)one.ptr, "missing"));
    ck_assert_ptr_null(strstr((const char *)one.ptr, "standardize"));
    kedge_buf_deinit(&one);
    ck_assert_int_eq(
        parse("{\"compression\":{\"kind\":\"topk-int8\",\"share\":0.02,\"carry\":0},\"world\":{\"data\":{}}}",
              NULL),
        KEDGE_OK);
    put(&spec, &one);
    kedge_buf_put_u8(&one, 0);
    ck_assert_ptr_nonnull(
        strstr((const char *)one.ptr, "\"compression\":{\"kind\":\"topk-int8\",\"share\":"));
    spec.compression_share = spec.compression_carry = 0.5;
    ck_assert_int_eq(parse((const char *)one.ptr, NULL), KEDGE_OK); /* what was written is read */
    ck_assert_int_eq(spec.compression, KEDGE_COMPACT_TOPK_INT8);
    ck_assert_double_eq(spec.compression_share, 0.02);
    ck_assert_double_eq(spec.compression_carry, 0);
    kedge_buf_deinit(&one);
    ck_assert_int_eq(parse("{\"world\":{\"data\":{},\"through\":\"job-rounds\"}}", NULL), KEDGE_OK);
    put(&spec, &one);
    kedge_buf_put_u8(&one, 0);
    ck_assert_ptr_nonnull(strstr((const char *)one.ptr, "\"through\":\"job-rounds\""));
    kedge_buf_deinit(&one);
}
END_TEST

/* What is written reads back to the same spec, and equal specs give equal bytes. */
START_TEST(test_round_trip)
{
    struct kedge_buf one, two;
    ck_assert_int_eq(parse(whole, NULL), KEDGE_OK);
    put(&spec, &one);
    kedge_buf_put_u8(&one, 0);
    ck_assert_msg(parse((const char *)one.ptr, NULL) == KEDGE_OK, "%s", diag.text);
    put(&spec, &two);
    ck_assert_uint_eq(one.len - 1, two.len);
    ck_assert_int_eq(memcmp(one.ptr, two.ptr, two.len), 0);
    ck_assert_int_eq(parse("{\"world\":{\"data\":{}}}", NULL), KEDGE_OK);
    kedge_buf_deinit(&two);
    put(&spec, &two);
    ck_assert(one.len - 1 != two.len || memcmp(one.ptr, two.ptr, two.len) != 0);
    kedge_buf_deinit(&one);
    kedge_buf_deinit(&two);
}
END_TEST

static const struct {
    const char *text;
    int err;
    const char *says;
} wrong[] = {
    {"", KEDGE_E_FORMAT, "JSON"},
    {"[]", KEDGE_E_FORMAT, "spec: expected a JSON object"},
    {"{\"world\":{}} x", KEDGE_E_FORMAT, "JSON"},
    {"{\"world\":{\"data\":7}}", KEDGE_E_FORMAT, "\"world.data\": expected an object, found 7"},
    {"{\"world\":{\"data\":{\"site\":7}}}", KEDGE_E_FORMAT, "unknown key \"site\" in \"world.data\""},
    {"{\"world\":{\"data\":{\"sites\":0}}}", KEDGE_E_FORMAT,
     "\"sites\" in \"world.data\": expected a whole number from 1 to 100000, found 0"},
    {"{\"world\":{\"data\":{\"sites\":1.5}}}", KEDGE_E_FORMAT, "found 1.5"},
    {"{\"world\":{\"data\":{\"sites\":[1]}}}", KEDGE_E_FORMAT, "\"sites\""},
    {"{\"world\":{\"data\":{\"partition\":\"ring\"}}}", KEDGE_E_FORMAT, "expected one of iid, dirichlet"},
    {"{\"world\":{\"data\":{\"leak\":1}}}", KEDGE_E_FORMAT,
     "\"leak\" in \"world.data\": expected true or false, found 1"},
    {"{\"world\":{\"data\":{\"images\":\"a\\u0007\"}}}", KEDGE_E_FORMAT, "control characters"},
    {"{\"world\":{\"data\":{\"images\":\"a\\u0000\"}}}", KEDGE_E_FORMAT, "\"images\""},
    {"{\"round\":1}", KEDGE_E_FORMAT, "unknown key \"round\""},
    {"{\"rounds\":null}", KEDGE_E_FORMAT, "\"rounds\""},
    {"{\"rounds\":1,\"rounds\":2}", KEDGE_E_FORMAT, "rounds"},
    {"{\"seed\":\"18446744073709551616\"}", KEDGE_E_FORMAT, "\"seed\": expected a whole number from 0 to"},
    {"{\"seed\":-1}", KEDGE_E_FORMAT, "\"seed\""},
    {"{\"world\":{\"trace\":7}}", KEDGE_E_FORMAT, "\"trace\" in \"world\": expected text"},
    {"{\"world\":{\"trace\":\"t.csv\",\"trace_period_s\":-1}}", KEDGE_E_FORMAT,
     "\"trace_period_s\" in \"world\": expected a number"},
    {"{\"learning_rate\":0}", KEDGE_E_FORMAT, "\"learning_rate\": expected a number above 0 to 1000"},
    {"{\"learning_rate\":\"fast\"}", KEDGE_E_FORMAT, "found \"fast\""},
    {"{\"rule_fraction\":0.5}", KEDGE_E_FORMAT, "\"rule_fraction\": expected a number from 0 to below 0.5"},
    {"{\"tenant_share_max\":1.01}", KEDGE_E_FORMAT, "\"tenant_share_max\""},
    {"{\"world\":{\"fail\":1}}", KEDGE_E_FORMAT, "\"fail\""},
    {"{\"l2\":1e999}", KEDGE_E_FORMAT, "\"l2\""},
    {"{\"strategy\":\"fedbest\"}", KEDGE_E_FORMAT, "\"strategy\": expected one of fedavg"},
    {"{\"strategy\":3}", KEDGE_E_FORMAT, "\"strategy\""},
    {"{\"options\":{\"mu\":1}}", KEDGE_E_FORMAT, "unknown key \"mu\" in \"options\""},
    {"{\"options\":{\"momentum\":1}}", KEDGE_E_FORMAT,
     "\"momentum\" in \"options\": expected a number from 0"},
    {"{\"options\":[]}", KEDGE_E_FORMAT, "\"options\": expected an object"},
    {"{\"model\":{\"preset\":\"cnn\"}}", KEDGE_E_FORMAT, "\"model\""},
    {"{\"world\":{\"devices\":{}}}", KEDGE_E_FORMAT, "\"devices\": expected a list"},
    {"{\"world\":{\"devices\":[{\"share\":0}]}}", KEDGE_E_FORMAT, "\"share\""},
    {"{\"world\":{\"devices\":[{\"speed\":1}]}}", KEDGE_E_FORMAT, "unknown key \"speed\" in \"devices\""},
    {"{\"world\":{\"devices\":[{},{},{},{},{},{},{},{},{}]}}", KEDGE_E_FORMAT, "at most 8"},
    {"{\"preset\":\"mnist\"}", KEDGE_E_FORMAT, "\"preset\": expected one of mnist-1000-mclr"},
    {"{\"name\":\"Ünd so\"}", KEDGE_E_FORMAT, "\"name\""},
    {"{\"shift\":true}", KEDGE_E_FORMAT, "\"shift\": expected one of none, labels"},
    {"{\"world\":{\"embedding\":\"plain\"}}", KEDGE_E_FORMAT, "\"embedding\" is now a strategy"},
    {"{\"variants\":[]}", KEDGE_E_FORMAT, "\"variants\": expected an object"},
    {"{\"variants\":{\"a b\":{}}}", KEDGE_E_FORMAT, "expected a name"},
    {"{\"variants\":{\"a\":{\"preset\":\"mnist-1000-mclr\"}}}", KEDGE_E_FORMAT, "variant \"a\": unknown key"},
    {"{\"variants\":{\"a\":{\"rounds\":0}}}", KEDGE_E_FORMAT, "variant \"a\": \"rounds\""},
    /* words of before there was a world */
    {"{\"data\":{}}", KEDGE_E_FORMAT, "\"data\" is now \"world\": {\"data\": …}"},
    {"{\"synthetic_updates\":true}", KEDGE_E_FORMAT, "is now \"world\": {\"planted\": true}"},
    {"{\"attackers\":0.1}", KEDGE_E_FORMAT, "is now \"world\": {\"attack\": {\"share\": …}}"},
    {"{\"detector\":\"none\"}", KEDGE_E_FORMAT, "\"detector\" is now \"shift\""},
    {"{\"pretrain_scale\":20}", KEDGE_E_FORMAT, "\"pretrain_scale\" is now \"pretrain_sites\""},
    {"{\"deadline_s\":3}", KEDGE_E_FORMAT, "\"deadline_s\" is now \"round_timeout_s\""},
    {"{\"world\":{\"dat\":{}}}", KEDGE_E_FORMAT, "unknown key \"dat\" in \"world\""},
    {"{\"world\":7}", KEDGE_E_FORMAT, "\"world\": expected an object, found 7"},
    {"{\"shift\":\"swap-all\"}", KEDGE_E_FORMAT, "\"shift\": expected one of none, labels"},
    /* what nothing reads */
    {"{\"strategy\":\"fedavgm\",\"options\":{\"proximal\":0.5}}", KEDGE_E_FORMAT,
     "\"proximal\" in \"options\": strategy \"fedavgm\" does not read it"},
    {"{\"options\":{\"momentum\":0.5}}", KEDGE_E_FORMAT,
     "\"momentum\" in \"options\": strategy \"fedavg\" does not read it"},
    {"{\"variants\":{\"a\":{\"strategy\":\"fedprox\",\"options\":{\"buffer\":3}}}}", KEDGE_E_FORMAT,
     "variant \"a\": \"buffer\" in \"options\": strategy \"fedprox\" does not read it"},
    {"{\"world\":{\"data\":{\"partition\":\"writers\",\"sites\":7}}}", KEDGE_E_FORMAT,
     "\"sites\" in \"world.data\": found 7, but the data say which sites there are: leave it out"},
    {"{\"world\":{\"data\":{\"partition\":\"iid\",\"alpha\":0.5}}}", KEDGE_E_FORMAT,
     "\"alpha\" in \"world.data\": found 0.5, but read by the partitions dirichlet and synthetic only"},
    {"{\"world\":{\"data\":{\"partition\":\"dirichlet\",\"beta\":2}}}", KEDGE_E_FORMAT,
     "\"beta\" in \"world.data\": found 2"},
    {"{\"world\":{\"data\":{\"per_site\":3}}}", KEDGE_E_FORMAT, "\"per_site\" in \"world.data\": found 3"},
    {"{\"world\":{\"data\":{\"leak\":true}}}", KEDGE_E_FORMAT, "\"leak\" in \"world.data\": found true"},
    {"{\"world\":{\"data\":{\"partition\":\"clients\",\"sites\":1000}}}", KEDGE_E_FORMAT,
     "\"sites\" in \"world.data\": found 1000, but the data say which sites there are: leave it out"},
    {"{\"world\":{\"data\":{\"client\":\"who\"}}}", KEDGE_E_FORMAT,
     "\"client\" in \"world.data\": found \"who\", but read by"},
    {"{\"world\":{\"data\":{\"missing\":\"drop\"}}}", KEDGE_E_FORMAT,
     "\"missing\" in \"world.data\": found \"drop\", but read by"},
    {"{\"world\":{\"data\":{\"standardize\":\"local\"}}}", KEDGE_E_FORMAT,
     "\"standardize\" in \"world.data\": found \"local\", but"},
    {"{\"world\":{\"data\":{\"partition\":\"clients\",\"standardize\":true}}}", KEDGE_E_FORMAT,
     "\"standardize\" in \"world.data\": expected one of none, local, federated"},
    {"{\"world\":{\"data\":{\"steps\":[3]}}}", KEDGE_E_FORMAT,
     "\"steps\" in \"world.data\": found [3], but read by"},
    {"{\"world\":{\"data\":{\"partition\":\"clients\",\"steps\":[3,3]}}}", KEDGE_E_FORMAT,
     "\"steps\" in \"world.data\": expected a list of at most 15 rounds from 1, in ascending order, found 3"},
    {"{\"world\":{\"data\":{\"partition\":\"clients\",\"steps\":7}}}", KEDGE_E_FORMAT,
     "\"steps\" in \"world.data\": expected"},
    {"{\"world\":{\"shift\":{\"rate\":0.5}}}", KEDGE_E_FORMAT,
     "\"rate\" in \"world.shift\": found 0.5, but read with"},
    {"{\"world\":{\"attack\":{\"scale\":3}}}", KEDGE_E_FORMAT,
     "\"scale\" in \"world.attack\": found 3, but there is no attack"},
    {"{\"rule_fraction\":0.2}", KEDGE_E_FORMAT, "\"rule_fraction\": found 0.2, but the \"rule\" is the mean"},
    {"{\"tenant_share_max\":0.5}", KEDGE_E_FORMAT,
     "\"tenant_share_max\": found 0.5, but there is one tenant"},
    {"{\"world\":{\"as_released\":true}}", KEDGE_E_FORMAT, "\"as_released\" is now a strategy"},
    {"{\"world\":{\"faults\":true}}", KEDGE_E_FORMAT, "\"faults\" in \"world\": found true, but read with"},
    {"{\"quorum\":2,\"world\":{\"through\":\"job-rounds\"}}", KEDGE_E_FORMAT,
     "\"quorum\": found 2, but read with"},
    {"{\"groups\":2}", KEDGE_E_FORMAT, "\"groups\": found 2, but this strategy makes no groups"},
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
        ck_assert_uint_eq(spec.rounds, 11); /* the file's keys lie over the preset's */
        ck_assert(spec.epochs == 10 && spec.batch == 10 && spec.l2 == 0.001);
        seen++;
    }
    ck_assert_uint_ge(seen, 8);
    ck_assert_int_eq(parse("{\"preset\":\"mnist-1000-mclr\"}", NULL), KEDGE_OK); /* clustering.md §2.11 */
    ck_assert(spec.sites == 1000 && spec.groups == 3 && spec.lr == 0.03 && spec.rounds == 300);
    ck_assert_uint_eq(kedge_model_values_count(&spec.model), 7850);
    ck_assert_int_eq(parse("{\"preset\":\"letters-fashion-mlp\"}", NULL), KEDGE_OK);
    ck_assert(spec.sites == 200 && spec.groups == 5 && spec.lr == 0.003);
    ck_assert_uint_eq(kedge_model_values_count(&spec.model), 407050);
    ck_assert_int_eq(parse("{\"preset\":\"synthetic-1-1\"}", NULL), KEDGE_OK);
    ck_assert(spec.alpha == 1 && spec.beta == 1 && kedge_model_values_count(&spec.model) == 610);
}
END_TEST

START_TEST(test_variants)
{
    static const char text[] = "{\"strategy\":\"fedprox\",\"options\":{\"proximal\":0.25},\"groups\":2,"
                               "\"variants\":{\"weak\":{\"options\":{\"proximal\":0.125}},\"static\":{"
                               "\"strategy\":\"flexcfl\",\"shift\":\"none\"}},\"world\":{\"data\":{}}}";
    ck_assert_int_eq(parse(text, NULL), KEDGE_OK);
    ck_assert(spec.options.proximal == 0.25);
    ck_assert_int_eq(parse(text, "weak"), KEDGE_OK);
    ck_assert_str_eq(spec.strategy->name, "fedprox");
    ck_assert(spec.options.proximal == 0.125);
    ck_assert_int_eq(parse(text, "static"), KEDGE_OK); /* another strategy begins with its own options */
    ck_assert_str_eq(spec.strategy->name, "flexcfl");
    ck_assert(spec.options.proximal == spec.strategy->defaults.proximal && spec.groups == 2);
    ck_assert_int_eq(parse(text, "fedavg"), KEDGE_OK);
    ck_assert_str_eq(spec.strategy->name, "fedavg");
    ck_assert_int_eq(parse(text, "other"), KEDGE_E_NOT_FOUND);
    ck_assert(strstr(diag.text, "other: neither a variant") != NULL);
}
END_TEST

/* A key that one of the variants reads may stand in the file, but not in another variant. */
START_TEST(test_variants_read_what_the_file_has)
{
    static const char text[] = "{\"rule_fraction\":0.2,\"groups\":2,\"variants\":{\"plain\":{},\"median\":{"
                               "\"rule\":\"median\"},\"wrong\":{\"quorum\":3}},\"world\":{\"data\":{}}}";
    ck_assert_msg(parse(text, "plain") == KEDGE_OK, "%s", diag.text);
    ck_assert_msg(parse(text, "median") == KEDGE_OK, "%s", diag.text);
    ck_assert_msg(parse(text, "flexcfl") == KEDGE_OK, "%s", diag.text);
    ck_assert_int_eq(parse(text, "wrong"), KEDGE_E_FORMAT);
    ck_assert_ptr_nonnull(strstr(diag.text, "\"quorum\": found 3"));
    ck_assert_int_eq(parse("{\"preset\":\"letters-digits-mclr\"}", NULL),
                     KEDGE_OK); /* groups: the preset's */
}
END_TEST

/* Clients: what is written reads back, and has no number of sites. */
START_TEST(test_clients)
{
    struct kedge_buf one, two;
    ck_assert_msg(parse("{\"world\":{\"data\":{\"partition\":\"clients\",\"images\":\"t.csv\",\"client\":"
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
    ck_assert_ptr_nonnull(strstr((const char *)one.ptr, "\"steps\":[4,9]"));
    ck_assert_ptr_null(strstr((const char *)one.ptr, "\"sites\":"));
    ck_assert_msg(parse((const char *)one.ptr, NULL) == KEDGE_OK, "%s", diag.text);
    put(&spec, &two);
    ck_assert(one.len - 1 == two.len && memcmp(one.ptr, two.ptr, two.len) == 0);
    kedge_buf_deinit(&one);
    kedge_buf_deinit(&two);
}
END_TEST

START_TEST(test_is)
{
    ck_assert(kedge_learn_spec_is(kedge_view_str("{\"world\":{\"data\":{}}}")));
    ck_assert(kedge_learn_spec_is(kedge_view_str("{\"preset\":3}")));
    ck_assert(kedge_learn_spec_is(kedge_view_str("{\"world\":{\"planted\":true}}")));
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
    tcase_add_test(t, test_new_keys_are_quiet);
    tcase_add_loop_test(t, test_wrong, 0, sizeof wrong / sizeof wrong[0]);
    tcase_add_test(t, test_presets);
    tcase_add_test(t, test_variants);
    tcase_add_test(t, test_variants_read_what_the_file_has);
    tcase_add_test(t, test_clients);
    tcase_add_test(t, test_is);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
