/* Targets in specs, and the rounds whose evaluations are told. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "job/job_spec.h"
#include "tests/fixtures/run.h"

static struct kedge_job_spec spec;
static struct kedge_diag diag;

static int read_with(const char *model, const char *more)
{
    char text[1024];
    snprintf(text, sizeof text,
             "{\"name\":\"j\",\"tenants\":[\"a\"],\"model\":%s,\"data\":\"d\",\"rounds\":9%s}", model, more);
    diag.text[0] = '\0';
    return kedge_job_spec_parse(kedge_view_str(text), &spec, &diag);
}

static int read(const char *more)
{
    return read_with("{\"preset\":\"mclr\",\"inputs\":4,\"classes\":3}", more);
}

START_TEST(test_taken)
{
    ck_assert_int_eq(read(""), KEDGE_OK);
    ck_assert_uint_eq(spec.target_count, 0);
    ck_assert(!kedge_job_spec_tests(&spec, 1));
    ck_assert_int_eq(read(",\"targets\":[\"0.8\",0.95],\"hold\":2,\"evaluate_every\":3"), KEDGE_OK);
    ck_assert(spec.target_count == 2 && spec.targets[0] == 800000 && spec.targets[1] == 950000);
    ck_assert_uint_eq(spec.hold, 2);
    for (uint32_t round = 0; round < 10; round++) { /* the last one ends the job anyway */
        ck_assert(kedge_job_spec_tests(&spec, round) == (round == 3 || round == 6));
    }
    ck_assert_int_eq(read(",\"targets\":[1]"), KEDGE_OK);
    ck_assert(spec.target_count == 1 && spec.targets[0] == 1000000 && spec.hold == 3);
}
END_TEST

static const struct {
    const char *text, *expected;
} refused[] = {
    {",\"targets\":[]", "one or two accuracies"},
    {",\"targets\":0.9", "one or two accuracies"},
    {",\"targets\":[0.1,0.2,0.3]", "one or two accuracies"},
    {",\"targets\":[0.9,0.9]", "the higher accuracy second"},
    {",\"targets\":[0.9,0.8]", "the higher accuracy second"},
    {",\"targets\":[0]", "a share above 0"},
    {",\"targets\":[1.5]", "a share above 0"},
    {",\"targets\":[\"x\"]", "a share above 0"},
    {",\"targets\":[0.9],\"hold\":0", "\"hold\""},
    {",\"hold\":2", "no such key without \"targets\""},
    {",\"targets\":[0.9],\"evaluate_every\":0", "nobody evaluates"},
    {",\"targets\":[0.9],\"metric\":\"loss\"", "the job's metric is the loss"},
    {",\"targets\":[0.9],\"strategy\":\"fedbuff\"", "wait for no evaluation"},
};

START_TEST(test_refused)
{
    ck_assert_int_eq(read(refused[_i].text), KEDGE_E_FORMAT);
    ck_assert_msg(strstr(diag.text, refused[_i].expected) != NULL, "%s", diag.text);
}
END_TEST

START_TEST(test_number)
{
    ck_assert_int_eq(read_with("{\"layers\":[{\"type\":\"dense\",\"in\":4,\"out\":1}],\"loss\":\"mse\"}",
                               ",\"targets\":[0.9]"),
                     KEDGE_E_FORMAT);
    ck_assert_msg(strstr(diag.text, "metric is the loss") != NULL, "%s", diag.text);
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("targets");
    tcase_add_test(c, test_taken);
    tcase_add_loop_test(c, test_refused, 0, sizeof refused / sizeof refused[0]);
    tcase_add_test(c, test_number);
    Suite *s = suite_create("job/targets");
    suite_add_tcase(s, c);
    return run_suite(s);
}
