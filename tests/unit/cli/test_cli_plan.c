/* kedge job plan as its users meet it; the figures are those of tests/unit/coordinator/test_plan.c. */
#include <stdio.h>
#include <string.h>

#include "common/base/text.h"
#include "tests/fixtures/federation.h"
#include "tests/fixtures/run.h"
#include "tests/unit/cli/support.h"

#define THREE "{\"charge\": 3, \"share\": 3}, {\"charge\": 1, \"share\": 3}, {\"charge\": 0, \"share\": 3}"

START_TEST(the_published_setting)
{
    json_t *root;
    put_file(at("plan.json"), "{\"devices\": [" THREE "], \"anchor_cost\": 10}");
    ck_assert_int_eq(kedge("job plan %s", at("plan.json")), 0);
    ck_assert_ptr_nonnull(strstr(out, "7 blocks an hour"));
    ck_assert_ptr_nonnull(strstr(out, "an anchor every 60 seconds")); /* sqrt(2 * 10 / (3 / 540)) */
    ck_assert_ptr_nonnull(strstr(out, "100.0 %"));
    ck_assert_int_eq(kedge("job plan %s --format json", at("plan.json")), 0);
    const json_t *data = data_of(&root);
    ck_assert_double_eq_tol(json_number_value(json_object_get(data, "optimum")), 4.91176, 1e-4);
    ck_assert_int_eq(json_integer_value(json_object_get(data, "rate_per_hour")), 7);
    const json_t *devices = json_object_get(data, "devices");
    ck_assert_uint_eq(json_array_size(devices), 3);
    ck_assert_int_gt(json_integer_value(json_object_get(json_array_get(devices, 0), "data")), 0);
    ck_assert_int_eq(json_integer_value(json_object_get(json_array_get(devices, 2), "data")),
                     0); /* no charge */
    json_decref(root);
}
END_TEST

/* Where time is dear, charge has a price; more devices than the programme holds are planned by it all the
 * same. */
START_TEST(many_devices)
{
    static char text[8192];
    json_t *root;
    size_t len = (size_t)snprintf(
        text, sizeof text, "{\"cost_per_second\": 0.0222222, \"charge_per_round\": 0.3, \"devices\": [");
    for (int i = 0; i < 100; i++) {
        len += (size_t)snprintf(text + len, sizeof text - len, "%s{\"charge\": %d, \"share\": %d}",
                                i ? "," : "", i % 4, i / 4 % 4);
    }
    snprintf(text + len, sizeof text - len, "]}");
    put_file(at("many.json"), text);
    ck_assert_int_eq(kedge("job plan %s", at("many.json")), 0);
    ck_assert_ptr_nonnull(strstr(out, "per round of 3 devices"));
    ck_assert_ptr_nonnull(strstr(out, "and 60 more"));
    ck_assert_int_eq(kedge("job plan %s --format json", at("many.json")), 0);
    const json_t *data = data_of(&root);
    ck_assert_double_eq_tol(json_number_value(json_object_get(data, "optimum")), 1.01907, 1e-3);
    ck_assert_double_gt(json_number_value(json_object_get(data, "price")), 1);
    ck_assert_uint_eq(json_array_size(json_object_get(data, "devices")), 100);
    json_decref(root);
}
END_TEST

START_TEST(what_is_wrong_is_named)
{
    static const struct {
        const char *text, *named;
    } wrong[] = {
        {"{}", "devices"},
        {"{\"devices\": []}", "devices"},
        {"{\"devices\": [{\"charge\": 9, \"share\": 1}]}", "number 1"},
        {"{\"devices\": [{\"charge\": 1}]}", "number 1"},
        {"{\"devices\": [{\"charge\": 1, \"share\": 1}], \"prize\": 1}", "prize"},
        {"{\"devices\": [{\"charge\": 1, \"share\": 1}], \"data_levels\": 9}", "data_levels"},
        {"{\"devices\": [{\"charge\": 1, \"share\": 1}], \"cost_per_second\": \"a\"}", "cost_per_second"},
        {"{\"devices\": [{\"charge\": 1, \"share\": 1}], \"anchor_cost\": -1}", "anchor_cost"},
        {"{\"devices\": [{\"charge\": 1, \"share\": 1}], \"arrivals_per_hour\": 6}", "arrivals"},
        {"[", "JSON"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        put_file(at("wrong.json"), wrong[i].text);
        ck_assert_int_eq(kedge("job plan %s", at("wrong.json")), 2);
        ck_assert_msg(strstr(err_out, wrong[i].named) != NULL, "%s: %s", wrong[i].named, err_out);
    }
    ck_assert_int_eq(kedge("job plan"), 2);
    ck_assert_int_ne(kedge("job plan %s", at("absent.json")), 0);
    ck_assert_ptr_nonnull(strstr(err_out, "absent.json"));
}
END_TEST

/* Four sites that say what they took: the first measured its joules, the second modelled them, the others say
 * none. */
START_TEST(the_sites_of_a_job)
{
    json_t *root, *row;
    size_t i;
    fx_ungrouped(at("fx"), "\"rule\":\"mean\"", FX_JOULES);
    ck_assert_msg(kedge("job plan --job plain --record %s --format json", at("fx")) == 0, "%s", err_out);
    const json_t *data = data_of(&root), *sites = json_object_get(data, "sites"),
                 *plan = json_object_get(data, "plan");
    ck_assert_uint_eq(json_array_size(sites), 4);
    uint32_t known = 0;
    json_array_foreach(sites, i, row)
    {
        const char *quality = json_string_value(json_object_get(row, "energy_quality"));
        const double n = (double)json_integer_value(json_object_get(row, "samples")), place = n - 10;
        const double each = json_real_value(json_object_get(row, "seconds_per_sample"));
        ck_assert_double_eq_tol(each, 0.5 * (place + 1) / n, 1e-12);
        ck_assert_str_eq(quality, place < 0.5 ? "measured" : place < 1.5 ? "modelled" : "unknown");
        const json_t *joules = json_object_get(row, "joules_per_sample");
        ck_assert(place < 1.5 ? json_is_number(joules) : json_is_null(joules));
        known += place < 1.5;
    }
    ck_assert_uint_eq(known, 2);
    ck_assert(json_is_null(json_object_get(data, "other_seconds")));
    ck_assert_int_ge(json_integer_value(json_object_get(plan, "sites")), 1);
    json_decref(root);
    ck_assert_int_eq(kedge("job plan --job plain --record %s --weights 10,1,0", at("fx")), 0);
    static const char *const words[] = {"rounds 1 to 2",
                                        "joules of 1",
                                        "joules of 1 sites are modelled",
                                        "2 sites that say no joules",
                                        "uploads take no time",
                                        "all data:      4 sites, 46 samples, 2 seconds, >= 50 J, 2 of 4"};
    for (i = 0; i < sizeof words / sizeof words[0]; i++) {
        ck_assert_msg(strstr(out, words[i]) != NULL, "%s: %s", words[i], out);
    }
    ck_assert_int_eq(kedge("job plan --job plain --record %s --rounds 1 --parts 1", at("fx")), 0);
    ck_assert_ptr_nonnull(strstr(out, "rounds 2 to 2"));
    ck_assert_int_eq(kedge("job plan --job plain --record %s --rounds 1 --format json", at("fx")), 0);
    sites = json_object_get(data_of(&root), "sites");
    ck_assert_uint_eq(json_array_size(sites), 3); /* of four take part */
    json_array_foreach(sites, i, row)
    {
        ck_assert_int_eq(json_integer_value(json_object_get(row, "updates")), 1);
    }
    json_decref(root);
    ck_assert_int_eq(kedge("job plan --job other --record %s", at("fx")), 3);
    ck_assert_int_eq(kedge("job plan --job plain --record %s", at("nowhere")), 3);
    static const char *const wrong[] = {"--weights 1,2", "--weights 1,2,3,4", "--weights 1,-2,3", "--parts 0",
                                        "more",          "--job Q!"};
    for (i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        ck_assert_msg(kedge("job plan %s --job plain --record %s", wrong[i], at("fx")) == 2, "%s", wrong[i]);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cli/plan");
    TCase *tests = tcase_create("plan");
    tcase_set_timeout(tests, 120);
    tcase_add_unchecked_fixture(tests, make_scratch, remove_scratch);
    tcase_add_test(tests, the_published_setting);
    tcase_add_test(tests, many_devices);
    tcase_add_test(tests, what_is_wrong_is_named);
    tcase_add_test(tests, the_sites_of_a_job);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
