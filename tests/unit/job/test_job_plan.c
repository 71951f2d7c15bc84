/* The key "plan": what it reads, what it refuses, which rounds it plans, and which updates are of their part.
 */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "job/job_spec.h"
#include "tests/fixtures/run.h"

#define HEAD                                                                                          \
    "{\"name\":\"j\",\"tenants\":[\"a\"],\"model\":{\"preset\":\"mclr\",\"inputs\":4,\"classes\":3}," \
    "\"data\":\"d\",\"rounds\":5"

static struct kedge_job_spec spec;
static struct kedge_diag diag;
static char text[1024];

static int read(const char *more)
{
    snprintf(text, sizeof text, "%s%s}", HEAD, more);
    diag.text[0] = '\0';
    return kedge_job_spec_parse(kedge_view_str(text), &spec, &diag);
}

static void check_refused(const char *more, const char *words)
{
    ck_assert_int_eq(read(more), KEDGE_E_FORMAT);
    ck_assert_msg(strstr(diag.text, words), "%s: %s", more, diag.text);
}

static void check_weights(double data, double energy, double time, uint32_t least)
{
    ck_assert(spec.plan.is_on);
    ck_assert_double_eq(spec.plan.data, data);
    ck_assert_double_eq(spec.plan.energy, energy);
    ck_assert_double_eq(spec.plan.time, time);
    ck_assert_uint_eq(spec.plan.least, least);
}

START_TEST(test_read)
{
    ck_assert_int_eq(read(""), KEDGE_OK);
    ck_assert(!spec.plan.is_on && !kedge_job_spec_plans(&spec, 1));
    ck_assert_int_eq(read(",\"plan\":\"none\""), KEDGE_OK);
    ck_assert(!spec.plan.is_on);
    ck_assert_int_eq(kedge_job_spec_check_read(kedge_view_str(text), &spec, &diag), KEDGE_OK);
    ck_assert_int_eq(read(",\"plan\":\"auto\""), KEDGE_OK);
    check_weights(10, 1, 3, 10);
    ck_assert_int_eq(read(",\"plan\":{}"), KEDGE_OK);
    check_weights(10, 1, 3, 10);
    ck_assert_int_eq(read(",\"plan\":{\"data\":0,\"energy\":\"2.5\",\"time\":1000,\"least_percent\":1}"),
                     KEDGE_OK);
    check_weights(0, 2.5, 1000, 1);
}
END_TEST

START_TEST(test_refused)
{
    check_refused(",\"plan\":\"yes\"", "\"plan\": expected \"none\"");
    check_refused(",\"plan\":3", "\"plan\": expected \"none\"");
    check_refused(",\"plan\":{\"joules\":3}", "unknown key \"joules\"");
    check_refused(",\"plan\":{\"data\":-1}", "\"data\": expected a number from 0 to 1000");
    check_refused(",\"plan\":{\"time\":1001}", "\"time\": expected");
    check_refused(",\"plan\":{\"energy\":\"many\"}", "\"energy\": expected");
    check_refused(",\"plan\":{\"least_percent\":0}", "from 1 to 100");
    check_refused(",\"plan\":{\"least_percent\":101}", "from 1 to 100");
    check_refused(",\"plan\":{\"least_percent\":1.5}", "from 1 to 100");
    check_refused(",\"plan\":\"auto\",\"strategy\":\"fedbuff\"", "wait for nobody");
    static const char external[] =
        "{\"name\":\"j\",\"tenants\":[\"a\"],\"model\":\"external\",\"data\":\"d\",\"rounds\":5,"
        "\"external\":{\"trainer\":\"t\",\"tensors\":[{\"name\":\"w\",\"shape\":[2]}]},\"plan\":\"auto\"}";
    ck_assert_int_eq(kedge_job_spec_parse(kedge_view_str(external), &spec, &diag), KEDGE_E_FORMAT);
    ck_assert_msg(strstr(diag.text, "external"), "%s", diag.text);
}
END_TEST

START_TEST(test_rounds)
{
    ck_assert_int_eq(read(",\"plan\":\"auto\""), KEDGE_OK);
    ck_assert(!kedge_job_spec_plans(&spec, 0) && kedge_job_spec_plans(&spec, 1));
    ck_assert_int_eq(read(",\"plan\":\"auto\",\"classes\":\"federated\""), KEDGE_OK);
    ck_assert(!kedge_job_spec_plans(&spec, 1) && kedge_job_spec_plans(&spec, 2));
    ck_assert_int_eq(read(",\"plan\":\"auto\",\"standardize\":\"federated\""), KEDGE_OK);
    ck_assert(!kedge_job_spec_plans(&spec, 2) && kedge_job_spec_plans(&spec, 3));
}
END_TEST

START_TEST(test_parts)
{
    ck_assert_int_eq(read(""), KEDGE_OK);
    ck_assert(kedge_job_spec_takes_part(&spec, 1, 7, 0, 0));
    ck_assert(!kedge_job_spec_takes_part(&spec, 1, 7, 7, 0));
    ck_assert_int_eq(read(",\"plan\":\"auto\",\"classes\":\"federated\""), KEDGE_OK);
    ck_assert(kedge_job_spec_takes_part(&spec, 1, 7, 0, 0));
    ck_assert(kedge_job_spec_takes_part(&spec, 2, 100, 1000, 10));
    ck_assert(kedge_job_spec_takes_part(&spec, 2, 101, 1001, 10));
    ck_assert(kedge_job_spec_takes_part(&spec, 2, 1, 1, 1));
    ck_assert(kedge_job_spec_takes_part(&spec, 2, 1000, 1000, 100));
    ck_assert(!kedge_job_spec_takes_part(&spec, 2, 1000, 1000, 10));
    ck_assert(!kedge_job_spec_takes_part(&spec, 2, 99, 1000, 10));
    ck_assert(!kedge_job_spec_takes_part(&spec, 2, 1000, 0, 100)); /* of how many it must say */
    ck_assert(!kedge_job_spec_takes_part(&spec, 2, 0, 0, 10));
    ck_assert(!kedge_job_spec_takes_part(&spec, 2, 0, 1000, 0));
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("plan");
    tcase_add_test(c, test_read);
    tcase_add_test(c, test_refused);
    tcase_add_test(c, test_rounds);
    tcase_add_test(c, test_parts);
    Suite *s = suite_create("job/plan");
    suite_add_tcase(s, c);
    return run_suite(s);
}
