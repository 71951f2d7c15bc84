/* "sites_per_round" as a number and as a range. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "job/job_spec.h"
#include "tests/fixtures/run.h"

static struct kedge_job_spec spec;
static struct kedge_diag diag;

static int read(const char *more)
{
    char text[1024];
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
    ck_assert(spec.sites_per_round == 0 && spec.sites_least == 0 && spec.sites_min == 1);
    ck_assert_int_eq(read(",\"sites_per_round\":7,\"sites_min\":3"), KEDGE_OK);
    ck_assert(spec.sites_per_round == 7 && spec.sites_least == 0 && spec.sites_min == 3);
    ck_assert_int_eq(read(",\"sites_per_round\":[2,8]"), KEDGE_OK);
    ck_assert(spec.sites_per_round == 8 && spec.sites_least == 2 && spec.sites_min == 2);
    ck_assert_int_eq(read(",\"sites_per_round\":[4096,4096]"), KEDGE_OK);
}
END_TEST

static const struct {
    const char *text, *expected;
} refused[] = {
    {",\"sites_per_round\":4097", "0 to 4096 sites"},
    {",\"sites_per_round\":-1", "0 to 4096 sites"},
    {",\"sites_per_round\":\"7\"", "0 to 4096 sites"},
    {",\"sites_per_round\":[2]", "0 to 4096 sites"},
    {",\"sites_per_round\":[0,8]", "0 to 4096 sites"},
    {",\"sites_per_round\":[8,2]", "0 to 4096 sites"},
    {",\"sites_per_round\":[2,4097]", "0 to 4096 sites"},
    {",\"sites_per_round\":[2,8,9]", "0 to 4096 sites"},
    {",\"sites_per_round\":[2,8],\"sites_min\":2", "beside a range"},
    {",\"sites_per_round\":[2,8],\"strategy\":\"fedbuff\"", "keeps no sites"},
    {",\"sites_per_round\":[2,8],\"rule\":\"root-trust\",\"root_site\":\"a/s\",\"quorum\":2", ""},
};

START_TEST(test_refused)
{
    ck_assert_int_ne(read(refused[_i].text), KEDGE_OK);
    ck_assert_msg(strstr(diag.text, refused[_i].expected) != NULL, "%s", diag.text);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("job-cohort");
    TCase *t = tcase_create("cohort");
    tcase_add_test(t, test_taken);
    tcase_add_loop_test(t, test_refused, 0, sizeof refused / sizeof refused[0]);
    suite_add_tcase(s, t);
    return run_suite(s);
}
