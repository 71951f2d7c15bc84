/* Budgets in specs, and what an update is charged: by hand, to the millionth. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "job/job_spec.h"
#include "tests/fixtures/run.h"

#define HEAD                                                                                          \
    "{\"name\":\"j\",\"tenants\":[\"a\"],\"model\":{\"preset\":\"mclr\",\"inputs\":4,\"classes\":3}," \
    "\"data\":\"d\","                                                                                 \
    "\"rounds\":3,\"round_timeout_s\":100"

static struct kedge_job_spec spec;
static struct kedge_diag diag;

static int read(const char *more)
{
    char text[1024];
    snprintf(text, sizeof text, "%s%s}", HEAD, more);
    diag.text[0] = '\0';
    return kedge_job_spec_parse(kedge_view_str(text), &spec, &diag);
}

static uint64_t charge(double joules, double seconds)
{
    return kedge_job_spec_charge(&spec, !isnan(joules), joules, seconds);
}

START_TEST(test_none)
{
    ck_assert_int_eq(read(""), KEDGE_OK);
    ck_assert_uint_eq(kedge_job_spec_budget(&spec), 0);
    ck_assert_uint_eq(charge(5, 5), 0);
}
END_TEST

START_TEST(test_joules)
{
    ck_assert_int_eq(read(",\"budget\":{\"joules\":\"2.5\",\"watts\":20}"), KEDGE_OK);
    ck_assert_uint_eq(kedge_job_spec_budget(&spec), 2500000);
    ck_assert_uint_eq(charge(1.5, 2), 1500000);
    ck_assert_uint_eq(charge(0, 2), 0);
    ck_assert_uint_eq(charge(0.0000001, 2), 1);          /* rounded up */
    ck_assert_uint_eq(charge(41, 2), 40000000);          /* more than 20 W nobody counts as drawing … */
    ck_assert_uint_eq(charge(NAN, 2), 40000000);         /* … and who does not know, that */
    ck_assert_uint_eq(charge(1e300, 1e300), 2000000000); /* for a round's time at most */
    ck_assert_uint_eq(charge(NAN, 100.5), 2000000000);
    ck_assert_int_eq(read(",\"budget\":{\"joules\":1}"), KEDGE_OK);
    ck_assert_uint_eq(charge(NAN, 1), 1000000000);
}
END_TEST

START_TEST(test_site_minutes)
{
    ck_assert_int_eq(read(",\"budget\":{\"site_minutes\":90}"), KEDGE_OK);
    ck_assert_uint_eq(kedge_job_spec_budget(&spec), 90000000);
    ck_assert_uint_eq(charge(1e9, 30), 500000);
    ck_assert_uint_eq(charge(NAN, 60), 1000000);
    ck_assert_uint_eq(charge(NAN, 1e9), 1666667);
}
END_TEST

START_TEST(test_money)
{
    ck_assert_int_eq(read(",\"budget\":{\"money\":1,\"per_joule\":0.25,\"per_site_minute\":3,\"watts\":100}"),
                     KEDGE_OK);
    ck_assert_uint_eq(charge(8, 60), 5000000);
    ck_assert_uint_eq(charge(NAN, 60), 1503000000);
    ck_assert_int_eq(read(",\"budget\":{\"money\":1000000000000,\"per_joule\":1e6,\"watts\":1e6}"), KEDGE_OK);
    ck_assert_uint_eq(charge(NAN, 100), UINT64_C(1) << 62); /* sums end there, too */
    ck_assert_uint_eq(kedge_job_spec_budget(&spec), UINT64_C(1000000000000000000));
}
END_TEST

/* Rounds of an asynchronous job overlap: an update may be of a task some rounds ago. */
START_TEST(test_asynchronous)
{
    ck_assert_int_eq(read(",\"strategy\":\"fedbuff\",\"staleness_max\":2,\"budget\":{\"site_minutes\":90}"),
                     KEDGE_OK);
    ck_assert_uint_eq(charge(NAN, 240), 4000000);
    ck_assert_uint_eq(charge(NAN, 1000), 5000000);
}
END_TEST

static const struct {
    const char *text, *expected;
} refused[] = {
    {"3", "an object like"},
    {"{}", "expected one of"},
    {"{\"joules\":1,\"money\":2}", "expected one of"},
    {"{\"joule\":1}", "unknown key \"joule\""},
    {"{\"joules\":0}", "\"joules\": expected a number from 1e-06 to 1e+12"},
    {"{\"joules\":\"nan\"}", "expected a number"},
    {"{\"joules\":1e13}", "expected a number"},
    {"{\"joules\":-1}", "expected a number"},
    {"{\"joules\":[1]}", "expected a number"},
    {"{\"joules\":1,\"watts\":0}", "\"watts\": expected"},
    {"{\"joules\":1,\"per_joule\":2}", "are prices"},
    {"{\"site_minutes\":1,\"watts\":2}", "nothing is charged for joules"},
    {"{\"money\":1}", "needs a price"},
    {"{\"money\":1,\"per_joule\":0,\"per_site_minute\":0}", "needs a price"},
    {"{\"money\":1,\"per_joule\":-1}", "expected a number"},
};

START_TEST(test_refused)
{
    char text[256];
    snprintf(text, sizeof text, ",\"budget\":%s", refused[_i].text);
    ck_assert_int_eq(read(text), KEDGE_E_FORMAT);
    ck_assert_msg(strstr(diag.text, refused[_i].expected) != NULL, "%s", diag.text);
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("budget");
    tcase_add_test(c, test_none);
    tcase_add_test(c, test_joules);
    tcase_add_test(c, test_site_minutes);
    tcase_add_test(c, test_money);
    tcase_add_test(c, test_asynchronous);
    tcase_add_loop_test(c, test_refused, 0, sizeof refused / sizeof refused[0]);
    Suite *s = suite_create("job/budget");
    suite_add_tcase(s, c);
    return run_suite(s);
}
