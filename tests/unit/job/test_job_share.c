/* Key "share" of a job spec: what travels of a model whose other layers stay at the sites. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "job/job_spec.h"

#define HEAD                                                                                             \
    "{\"name\":\"j\",\"tenants\":[\"org-a\",\"org-b\",\"org-c\"],\"data\":\"d\",\"rounds\":3,\"model\":" \
    "{\"preset\":\"mclr\",\"inputs\":4,\"classes\":3}"
#define HEADED(strategy)                                                                                 \
    "{\"name\":\"j\",\"tenants\":[\"org-a\"],\"data\":\"d\",\"rounds\":3,\"model\":{\"preset\":\"mlp\"," \
    "\"inputs\":4,\"hidden\":5,\"classes\":3},\"strategy\":\"" strategy "\""

static int parse(const char *text, struct kedge_job_spec *ret, struct kedge_diag *d)
{
    return kedge_job_spec_parse(kedge_view_str(text), ret, d);
}

/* What travels: the layout of all that the coordinator and auditors see. */
START_TEST(test_share)
{
    struct kedge_job_spec spec;
    struct kedge_layout layout, whole;
    struct kedge_diag d = {.text = ""};
    static const struct {
        const char *text;
        uint64_t values;
    } specs[] = {
        {HEADED("fedper") "}", 4 * 5 + 5},
        {HEADED("fedrep") ",\"options\":{\"head_epochs\":3}}", 4 * 5 + 5},
        {HEADED("fedper") ",\"share\":[\"1\"]}", 5 * 3 + 3},
        {HEADED("fedper") ",\"share\":[\"0.weight\"],\"grouping\":\"flexcfl\",\"groups\":2}", 4 * 5},
        {HEADED("fedper") ",\"server\":\"adam\",\"rule\":\"median\",\"sites_per_round\":4,"
                          "\"compression\":{\"kind\":\"int8\"}}",
         4 * 5 + 5},
    };
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
        ck_assert_msg(parse(specs[i].text, &spec, &d) == KEDGE_OK, "%s: %s", specs[i].text, d.text);
        ck_assert(kedge_job_spec_has_head(&spec));
        ck_assert_int_eq(kedge_job_spec_layout(&spec, &layout, &d), KEDGE_OK);
        ck_assert_int_eq(kedge_job_spec_whole_layout(&spec, &whole, &d), KEDGE_OK);
        ck_assert_uint_eq(layout.values_count, specs[i].values);
        ck_assert_uint_eq(whole.values_count, 4 * 5 + 5 + 5 * 3 + 3);
        kedge_layout_deinit(&layout);
        kedge_layout_deinit(&whole);
    }
    ck_assert_int_eq(parse(HEAD "}", &spec, &d), KEDGE_OK);
    ck_assert(!kedge_job_spec_has_head(&spec));
}
END_TEST

#define DIGEST "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define BASED(more) HEADED("adapters") ",\"initial_model\":\"" DIGEST "\"" more "}"
#define EXTERNAL                                                                                  \
    "{\"name\":\"j\",\"tenants\":[\"org-a\"],\"data\":\"d\",\"rounds\":3,\"model\":\"external\"," \
    "\"strategy\":\"adapters\",\"initial_model\":\"" DIGEST "\""
#define TENSORS                                                                                              \
    ",\"external\":{\"trainer\":\"t\",\"tensors\":[{\"name\":\"fc.w\",\"shape\":[100,80]},{\"name\":\"lora." \
    "a\","                                                                                                   \
    "\"shape\":[4,80]},{\"name\":\"lora.b\",\"shape\":[100,4]}]}"

/* Over a frozen base: the shared tensors alone travel, the spec's first weights are those of all. */
START_TEST(test_base)
{
    struct kedge_job_spec spec;
    struct kedge_layout layout, whole;
    struct kedge_diag d = {.text = ""};
    static const struct {
        const char *text;
        uint64_t values, all;
    } specs[] = {
        {BASED(",\"share\":[\"1\"]"), 5 * 3 + 3, 4 * 5 + 5 + 5 * 3 + 3},
        {BASED(",\"share\":[\"0.weight\"],\"grouping\":\"flexcfl\",\"groups\":2"), 4 * 5,
         4 * 5 + 5 + 5 * 3 + 3},
        {EXTERNAL TENSORS ",\"share\":[\"lora\"]}", 4 * 80 + 100 * 4, 100 * 80 + 4 * 80 + 100 * 4},
    };
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
        ck_assert_msg(parse(specs[i].text, &spec, &d) == KEDGE_OK, "%s: %s", specs[i].text, d.text);
        ck_assert(kedge_job_spec_has_base(&spec) && kedge_job_spec_is_in_parts(&spec));
        ck_assert(!kedge_job_spec_has_head(&spec) && spec.has_initial_model);
        ck_assert_int_eq(kedge_job_spec_layout(&spec, &layout, &d), KEDGE_OK);
        ck_assert_int_eq(kedge_job_spec_whole_layout(&spec, &whole, &d), KEDGE_OK);
        ck_assert_uint_eq(layout.values_count, specs[i].values);
        ck_assert_uint_eq(whole.values_count, specs[i].all);
        kedge_layout_deinit(&layout);
        kedge_layout_deinit(&whole);
    }
}
END_TEST

static const struct {
    const char *text, *said;
} wrong[] = {
    {BASED(""), "\"share\" is missing: strategy \"adapters\" needs the tensors that are trained"},
    {HEADED("adapters") ",\"share\":[\"1\"]}",
     "\"initial_model\" is missing: strategy \"adapters\" trains over"},
    {BASED(",\"share\":[\"2\"]"), "\"share\": the model has no tensor \"2\""},
    {BASED(",\"share\":[\"0\",\"1\"]"), "\"share\": all tensors are named"},
    {BASED(",\"share\":[]"), "\"share\": expected a list of tensors"},
    {BASED(",\"share\":[\"1\"],\"standardize\":\"federated\""),
     "goes with strategy \"fedavg\" or \"fedprox\""},
    {BASED(",\"share\":[\"1\"],\"options\":{\"head_epochs\":2}"), "takes none"},
    {EXTERNAL TENSORS "}", "\"share\" is missing"},
    {EXTERNAL ",\"share\":[\"lora\"]}", "\"external\": expected with \"model\": \"external\""},
    {EXTERNAL TENSORS ",\"share\":[\"lora.c\"]}", "the model has no tensor \"lora.c\""},
    {HEAD ",\"strategy\":\"fedper\"}", "\"share\": the model has one layer"},
    {HEAD ",\"share\":[\"0\"]}", "\"share\": strategy \"fedavg\" has no use for it"},
    {HEADED("fedper") ",\"share\":\"0\"}", "\"share\": expected a list of tensors"},
    {HEADED("fedper") ",\"share\":[]}", "\"share\": expected a list of tensors"},
    {HEADED("fedper") ",\"share\":[0]}", "\"share\": expected names of tensors"},
    {HEADED("fedper") ",\"share\":[\"0\\u0000x\"]}", "not valid JSON"},
    {HEADED("fedper") ",\"share\":[\"0\",\"0\"]}", "\"share\": \"0\" is there twice"},
    {HEADED("fedper") ",\"share\":[\"0\",\"1\"]}", "\"share\": all tensors are named"},
    {HEADED("fedper") ",\"share\":[\"0.wait\"]}", "\"share\": the model has no tensor \"0.wait\""},
    {HEADED("fedper") ",\"standardize\":\"federated\"}", "\"standardize\""},
    {HEADED("fedper") ",\"options\":{\"head_epochs\":2}}", "takes none"},
    {HEADED("fedrep") ",\"options\":{\"head_epochs\":-1}}", "expected a number from 0 to 10000"},
};
enum { WRONG = sizeof wrong / sizeof wrong[0] };

START_TEST(test_wrong)
{
    struct kedge_job_spec spec;
    struct kedge_diag d = {.text = ""};
    ck_assert_msg(parse(wrong[_i].text, &spec, &d) != KEDGE_OK, "%s", wrong[_i].text);
    ck_assert_msg(strstr(d.text, wrong[_i].said) != NULL, "%s: %s", wrong[_i].text, d.text);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("job share");
    TCase *t = tcase_create("share");
    tcase_add_test(t, test_share);
    tcase_add_test(t, test_base);
    tcase_add_loop_test(t, test_wrong, 0, WRONG);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? 1 : 0;
}
