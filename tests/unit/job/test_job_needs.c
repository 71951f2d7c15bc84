/* Labels that a job needs of its sites. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "job/job_spec.h"
#include "tests/fixtures/run.h"

static struct kedge_job_spec spec;
static struct kedge_diag diag;

static int read(const char *more)
{
    char text[4096];
    snprintf(text, sizeof text,
             "{\"name\":\"j\",\"tenants\":[\"a\"],\"model\":{\"preset\":\"mclr\",\"inputs\":4,\"classes\":3},"
             "\"data\":\"d\",\"rounds\":9%s}",
             more);
    diag.text[0] = '\0';
    return kedge_job_spec_parse(kedge_view_str(text), &spec, &diag);
}

START_TEST(test_taken)
{
    ck_assert_int_eq(read(""), KEDGE_OK);
    ck_assert_str_eq(spec.needs.text, "");
    ck_assert_int_eq(read(",\"needs\":[\"zone=eu\",\"gpu=h100\"]"), KEDGE_OK);
    ck_assert_str_eq(spec.needs.text, "gpu=h100 zone=eu");
}
END_TEST

static const struct {
    const char *text, *expected;
} refused[] = {
    {",\"needs\":[]", "a list of labels"},
    {",\"needs\":\"gpu=h100\"", "a list of labels"},
    {",\"needs\":[7]", "expected a label"},
    {",\"needs\":[\"gpu\"]", "expected a label"},
    {",\"needs\":[\"GPU=h100\"]", "expected a label"},
    {",\"needs\":[\"gpu=h100\\u0000\"]", "job spec"},
    {",\"needs\":[\"gpu=a100\",\"gpu=h100\"]", "one label of each key"},
    {",\"needs\":[\"a=1\",\"b=1\",\"c=1\",\"d=1\",\"e=1\",\"f=1\",\"g=1\",\"h=1\",\"i=1\",\"j=1\",\"k=1\","
     "\"l=1\","
     "\"m=1\",\"n=1\",\"o=1\",\"p=1\",\"q=1\"]",
     "at most 16"},
    {",\"needs\":[\"gpu=h100\"],\"rule\":\"root-trust\",\"root_site\":\"a/s\",\"sites_min\":2,\"quorum\":2",
     "the root site"},
};

START_TEST(test_refused)
{
    ck_assert_int_ne(read(refused[_i].text), KEDGE_OK);
    ck_assert_msg(strstr(diag.text, refused[_i].expected) != NULL, "%s", diag.text);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("job-needs");
    TCase *t = tcase_create("needs");
    tcase_add_test(t, test_taken);
    tcase_add_loop_test(t, test_refused, 0, sizeof refused / sizeof refused[0]);
    suite_add_tcase(s, t);
    return run_suite(s);
}
