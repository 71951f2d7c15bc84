/* What a job says of the sites' data: names of classes, scales, metric. */
#include <check.h>
#include <string.h>

#include "job/job_spec.h"

#define HEAD "{\"name\":\"j\",\"tenants\":[\"org-a\"],\"data\":\"d\",\"rounds\":3,\"model\":"
#define CLASSES HEAD "{\"preset\":\"mclr\",\"inputs\":4,\"classes\":3}"
#define FEDERATED CLASSES ",\"standardize\":\"federated\""
#define LEARNT CLASSES ",\"classes\":\"federated\""
#define NUMBER HEAD "{\"loss\":\"mse\",\"layers\":[{\"type\":\"dense\",\"in\":4,\"out\":1}]}"
#define EXTERNAL                                                                                       \
    HEAD "\"external\",\"external\":{\"trainer\":\"t\",\"tensors\":[{\"name\":\"w\",\"shape\":[2]}]}," \
         "\"initial_model\":\"0123456789012345678901234567890123456789012345678901234567890123\""

static int parse(const char *text, struct kedge_job_spec *ret, struct kedge_diag *d)
{
    *d = (struct kedge_diag){.text = ""};
    return kedge_job_spec_parse(kedge_view_str(text), ret, d);
}

START_TEST(test_data)
{
    struct kedge_job_spec s;
    struct kedge_diag d;
    ck_assert_int_eq(parse(CLASSES "}", &s, &d), KEDGE_OK);
    ck_assert(s.classes_count == 0 && s.standardize == KEDGE_STANDARDIZE_UNSAID && !s.shows_loss);
    ck_assert(!kedge_job_spec_predicts_number(&s));
    ck_assert_int_eq(parse(CLASSES
                           ",\"classes\":[\"x\",\"yy\",\"z\"],\"standardize\":\"local\",\"metric\":\"loss\"}",
                           &s, &d),
                     KEDGE_OK);
    ck_assert_uint_eq(s.classes_count, 3);
    ck_assert_mem_eq(s.classes, "x\0yy\0z", 7);
    ck_assert(s.standardize == KEDGE_STANDARDIZE_LOCAL && s.shows_loss);
    ck_assert_int_eq(parse(CLASSES ",\"standardize\":\"none\",\"metric\":\"accuracy\"}", &s, &d), KEDGE_OK);
    ck_assert(s.standardize == KEDGE_STANDARDIZE_NONE && !s.shows_loss);
    ck_assert_int_eq(parse(FEDERATED "}", &s, &d), KEDGE_OK);
    ck_assert(s.standardize == KEDGE_STANDARDIZE_FEDERATED && s.model.standardize);
    ck_assert_int_eq(parse(LEARNT "}", &s, &d), KEDGE_OK);
    ck_assert(s.learns_classes && s.classes_count == 0 && !s.model.standardize);
    ck_assert_int_eq(parse(FEDERATED ",\"classes\":\"federated\",\"strategy\":\"fedprox\"}", &s, &d),
                     KEDGE_OK);
    ck_assert(s.learns_classes && s.model.standardize);
    ck_assert_int_eq(parse(NUMBER "}", &s, &d), KEDGE_OK);
    ck_assert(s.shows_loss && kedge_job_spec_predicts_number(&s));
    ck_assert_msg(parse(EXTERNAL ",\"metric\":\"loss\"}", &s, &d) == KEDGE_OK, "%s", d.text);
    ck_assert(s.shows_loss && !kedge_job_spec_predicts_number(&s));
}
END_TEST

/* What an update may name: as much as there are outputs, in the one round that asks. */
START_TEST(test_takes_classes)
{
    struct kedge_job_spec s;
    struct kedge_diag d;
    ck_assert_int_eq(parse(LEARNT "}", &s, &d), KEDGE_OK);
    ck_assert(kedge_job_spec_takes_classes(&s, 1, "a\0b\0c\0") && kedge_job_spec_takes_classes(&s, 1, "a\0"));
    ck_assert(!kedge_job_spec_takes_classes(&s, 1, "a\0b\0c\0d\0")
              && !kedge_job_spec_takes_classes(&s, 1, ""));
    ck_assert(kedge_job_spec_takes_classes(&s, 2, "") && !kedge_job_spec_takes_classes(&s, 2, "a\0"));
    ck_assert_int_eq(parse(CLASSES "}", &s, &d), KEDGE_OK);
    ck_assert(kedge_job_spec_takes_classes(&s, 1, "") && !kedge_job_spec_takes_classes(&s, 1, "a\0"));
}
END_TEST

static const struct {
    const char *text, *named;
} wrong[] = {
    {CLASSES ",\"classes\":\"a\"}", "\"classes\": expected a list of 2 to 1024 names, or \"federated\""},
    {LEARNT ",\"strategy\":\"fedadam\"}", "\"classes\": \"federated\" goes with strategy \"fedavg\""},
    {LEARNT ",\"compression\":{\"kind\":\"int8\"}}", "\"classes\": \"federated\" goes with strategy"},
    {LEARNT ",\"grouping\":\"flexcfl\",\"groups\":2}", "\"classes\": \"federated\" goes with strategy"},
    {"{\"name\":\"j\",\"tenants\":[\"org-a\"],\"data\":\"d\",\"rounds\":1,\"classes\":\"federated\","
     "\"model\":{\"preset\":\"mclr\",\"inputs\":4,\"classes\":3}}",
     "\"rounds\": expected 2 or more with \"classes\": \"federated\""},
    {NUMBER ",\"classes\":\"federated\"}",
     "\"classes\": a model of one output with \"loss\": \"mse\" predicts"},
    {EXTERNAL ",\"classes\":\"federated\"}", "\"classes\" does not go with \"model\": \"external\""},
    {CLASSES ",\"classes\":[\"a\",\"b\"]}", "\"classes\": 2 names, but the model has 3 outputs"},
    {CLASSES ",\"classes\":[\"a\",\"b\",\"a\"]}", "\"classes\": \"a\" is there twice"},
    {CLASSES ",\"classes\":[\"a\",\"b\",\"\"]}", "\"classes\": expected names of 1 to 127 bytes"},
    {CLASSES ",\"classes\":[\"a\",\"b\",\"c\\u001b\"]}", "\"classes\": expected names of 1 to 127 bytes"},
    {CLASSES ",\"classes\":[\"a\",\"b\",3]}", "\"classes\": expected names of 1 to 127 bytes"},
    {CLASSES ",\"standardize\":\"all\"}", "\"standardize\": expected \"none\", \"local\" or \"federated\""},
    {FEDERATED ",\"strategy\":\"fedadam\"}", "\"standardize\": \"federated\" goes with strategy \"fedavg\""},
    {FEDERATED ",\"rule\":\"median\",\"sites_per_round\":5}",
     "\"standardize\": \"federated\" goes with strategy"},
    {FEDERATED ",\"server\":\"momentum\"}", "\"standardize\": \"federated\" goes with strategy"},
    {FEDERATED ",\"compression\":{\"kind\":\"int8\"}}", "\"standardize\": \"federated\" goes with strategy"},
    {FEDERATED ",\"grouping\":\"flexcfl\",\"groups\":2}",
     "\"standardize\": \"federated\" goes with strategy"},
    {FEDERATED ",\"scale\":19}", "\"scale\": expected 20 or more"},
    {FEDERATED ",\"bound\":\"1\"}", "\"bound\" of at least 2"},
    {HEAD "{\"standardize\":true,\"layers\":[{\"type\":\"dense\",\"in\":4,\"out\":3}]}}",
     "\"standardize\": that is a key of the job"},
    {CLASSES ",\"metric\":\"f1\"}", "\"metric\": expected \"accuracy\" or \"loss\""},
    {NUMBER ",\"metric\":\"accuracy\"}",
     "\"metric\": a model of one output with \"loss\": \"mse\" predicts a number"},
    {NUMBER ",\"classes\":[\"a\",\"b\"]}",
     "\"classes\": a model of one output with \"loss\": \"mse\" predicts"},
    {EXTERNAL ",\"classes\":[\"a\",\"b\"]}", "\"classes\" does not go with \"model\": \"external\""},
    {EXTERNAL ",\"standardize\":\"local\"}", "\"standardize\" does not go with \"model\": \"external\""},
};

START_TEST(test_wrong)
{
    struct kedge_job_spec s;
    struct kedge_diag d;
    ck_assert_msg(parse(wrong[_i].text, &s, &d) != KEDGE_OK, "%s is taken", wrong[_i].text);
    ck_assert_msg(strstr(d.text, wrong[_i].named) != NULL, "%s: %s", wrong[_i].text, d.text);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("chain job spec data");
    TCase *t = tcase_create("data");
    tcase_add_test(t, test_data);
    tcase_add_test(t, test_takes_classes);
    tcase_add_loop_test(t, test_wrong, 0, sizeof wrong / sizeof wrong[0]);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
