/* What people write differently and mean alike, and what they mistype. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "job/job_spec.h"
#include "tests/fixtures/run.h"

#define HEAD                                                                         \
    "{\"name\":\"j\",\"tenants\":[\"org-a\"],\"data\":\"d\",\"rounds\":3,\"model\":" \
    "{\"preset\":\"mclr\",\"inputs\":4,\"classes\":3}"

static struct kedge_diag d;

static int parse(const char *text, struct kedge_job_spec *ret)
{
    d = (struct kedge_diag){.text = ""};
    return kedge_job_spec_parse(kedge_view_str(text), ret, &d);
}

/* Numbers with and without quotes, and tenants in any order, are the same job. */
START_TEST(test_spellings)
{
    static const char quoted[] =
        HEAD ",\"seed\":\"7\",\"learning_rate\":\"0.1\",\"l2\":\"1e-05\",\"bound\":\"8\"}",
                      bare[] = HEAD ",\"seed\":7,\"learning_rate\":0.1,\"l2\":1e-5,\"bound\":8}";
    struct kedge_job_spec a, b;
    char text[1024];
    ck_assert_msg(parse(quoted, &a) == KEDGE_OK, "%s", d.text);
    ck_assert_msg(parse(bare, &b) == KEDGE_OK, "%s", d.text);
    ck_assert(a.seed == 7 && b.seed == 7 && a.learning_rate == b.learning_rate && a.l2 == b.l2
              && b.bound == 8);
    ck_assert_int_ne(parse(HEAD ",\"seed\":-1}", &b), KEDGE_OK);
    ck_assert_int_ne(parse(HEAD ",\"l2\":-0.1}", &b), KEDGE_OK);
    snprintf(text, sizeof text,
             "{\"name\":\"j\",\"tenants\":[\"c\",\"a\",\"b\"],\"model\":{\"preset\":\"mclr\",\"inputs\":64,"
             "\"classes\":10},\"data\":\"d\",\"rounds\":1}");
    ck_assert_msg(parse(text, &b) == KEDGE_OK, "%s", d.text);
    ck_assert_uint_eq(b.tenant_count, 3);
    ck_assert(strcmp(b.tenants[0].s, "a") == 0 && strcmp(b.tenants[1].s, "b") == 0
              && strcmp(b.tenants[2].s, "c") == 0);
    ck_assert_int_ne(parse(HEAD ",\"learnin_rate\":1}", &b), KEDGE_OK);
    ck_assert_str_eq(d.hint, "did you mean \"learning_rate\"?");
    ck_assert_int_ne(parse(HEAD ",\"world\":{}}", &b), KEDGE_OK);
    ck_assert_ptr_nonnull(strstr(d.text, "\"world\": only simulations have one"));
    ck_assert_ptr_nonnull(strstr(d.hint, "--print-job"));
    ck_assert_int_ne(parse(HEAD ",\"compression\":{\"knd\":\"int8\"}}", &b), KEDGE_OK);
    ck_assert_str_eq(d.hint, "did you mean \"kind\"?");
    ck_assert_int_ne(
        parse("{\"name\":\"j\",\"tenants\":[\"a\"],\"data\":\"d\",\"rounds\":3,\"model\":\"external\","
              "\"external\":{\"trainr\":\"x\"}}",
              &b),
        KEDGE_OK);
    ck_assert_str_eq(d.hint, "did you mean \"trainer\"?");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("job_spec_spelling");
    TCase *tests = tcase_create("spelling");
    tcase_add_test(tests, test_spellings);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
