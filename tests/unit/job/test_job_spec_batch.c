/* "batch": "auto": what sites choose from, what an update may state, and what is refused. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "job/job_spec.h"
#include "tests/fixtures/run.h"

#define HEAD                                                                         \
    "{\"name\":\"j\",\"tenants\":[\"org-a\"],\"data\":\"d\",\"rounds\":3,\"model\":" \
    "{\"preset\":\"mclr\",\"inputs\":4,\"classes\":3},\"learning_rate\":\"0.1\""
#define AUTO HEAD ",\"batch\":\"auto\",\"strategy\":\"fednova\""

static struct kedge_job_spec s;
static struct kedge_diag d;

static int parse(const char *text)
{
    d = (struct kedge_diag){.text = ""};
    return kedge_job_spec_parse(kedge_view_str(text), &s, &d);
}

START_TEST(sizes_and_rates)
{
    uint32_t sizes[KEDGE_SPEC_BATCHES_MAX], start = 99;
    ck_assert_msg(parse(AUTO "}") == KEDGE_OK, "%s", d.text);
    ck_assert(s.batch_auto && s.batch == 16 && s.rate_rule == KEDGE_RATE_SQRT);
    ck_assert_uint_eq(kedge_job_spec_batches(&s, sizes, &start), 7);
    ck_assert(sizes[0] == 4 && sizes[6] == 256 && start == 2);
    ck_assert_double_eq_tol(kedge_job_spec_rate(&s, 64), 0.2, 1e-15);
    ck_assert_int_eq(
        parse(AUTO
              ",\"batch_start\":24,\"batch_least\":2,\"batch_most\":100,\"learning_rate_rule\":\"linear\"}"),
        KEDGE_OK);
    ck_assert_uint_eq(kedge_job_spec_batches(&s, sizes, &start), 6); /* halves while they are whole */
    ck_assert(sizes[0] == 3 && sizes[3] == 24 && sizes[4] == 48 && start == 3);
    ck_assert_double_eq_tol(kedge_job_spec_rate(&s, 12), 0.05, 1e-15);
    ck_assert_int_eq(
        parse(AUTO
              ",\"batch_start\":1,\"batch_most\":65536,\"weight_max\":1000,\"learning_rate_rule\":\"none\"}"),
        KEDGE_OK);
    ck_assert_uint_eq(kedge_job_spec_batches(&s, sizes, &start), KEDGE_SPEC_BATCHES_MAX);
    ck_assert(sizes[16] == 65536 && start == 0);
    ck_assert_double_eq_tol(kedge_job_spec_rate(&s, 65536), 0.1, 1e-15);
    ck_assert_int_eq(parse(HEAD ",\"batch\":32}"), KEDGE_OK);
    ck_assert(!s.batch_auto && kedge_job_spec_batches(&s, sizes, &start) == 1 && sizes[0] == 32
              && start == 0);
    ck_assert(kedge_job_spec_takes_batch(&s, 10, 1000, 7, 3)); /* a fixed one binds nobody by this */
}
END_TEST

/* 11 samples in one pass: 3 steps of 4, 1 of 16. */
START_TEST(what_an_update_may_state)
{
    ck_assert_int_eq(parse(AUTO "}"), KEDGE_OK);
    ck_assert(kedge_job_spec_takes_batch(&s, 11, 3, 4, 0.05)
              && kedge_job_spec_takes_batch(&s, 11, 1, 16, 0.1));
    ck_assert(!kedge_job_spec_takes_batch(&s, 11, 4, 4, 0.05)
              && !kedge_job_spec_takes_batch(&s, 11, 2, 16, 0.1));
    ck_assert(!kedge_job_spec_takes_batch(&s, 11, 1, 5, 0.1)
              && !kedge_job_spec_takes_batch(&s, 11, 1, 16, 0.2));
    ck_assert(!kedge_job_spec_takes_batch(&s, 11, 1, 512, 0.1)
              && !kedge_job_spec_takes_batch(&s, 11, 1, 2, 0.1));
    ck_assert(kedge_job_spec_takes(&s, 11, 3, 0) && !kedge_job_spec_takes(&s, 11, 4, 0));
}
END_TEST

START_TEST(what_is_refused)
{
    static const struct {
        const char *text, *names;
    } cases[] = {
        {HEAD ",\"batch\":\"auto\"}", "fedavg"},
        {HEAD ",\"batch\":\"auto\",\"strategy\":\"scaffold\",\"control_sites\":2,\"sites_per_round\":2}",
         "scaffold"},
        {HEAD ",\"batch\":\"auto\",\"strategy\":\"fednova\",\"rule\":\"median\",\"sites_per_round\":3}",
         "median"},
        {HEAD ",\"batch\":\"many\"}", "batch"},
        {HEAD ",\"batch\":0}", "batch"},
        {HEAD ",\"batch\":65537}", "batch"},
        {HEAD ",\"batch\":8,\"batch_most\":16}", "batch_most"},
        {HEAD ",\"learning_rate_rule\":\"sqrt\"}", "learning_rate_rule"},
        {AUTO ",\"learning_rate_rule\":\"cubic\"}", "learning_rate_rule"},
        {AUTO ",\"batch_least\":17}", "batch_start"},
        {AUTO ",\"batch_most\":8}", "batch_start"},
        {AUTO ",\"batch_least\":1,\"weight_max\":2000000}", "weight_max"},
        {AUTO ",\"local_epochs\":5}", "weight_max"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ck_assert_msg(parse(cases[i].text) == KEDGE_E_FORMAT, "case %zu", i);
        ck_assert_msg(strstr(d.text, cases[i].names) != NULL, "case %zu: %s", i, d.text);
    }
    ck_assert_int_eq(parse(cases[0].text), KEDGE_E_FORMAT);
    ck_assert_ptr_nonnull(strstr(d.hint, "fednova"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("job_spec_batch");
    TCase *tests = tcase_create("batch");
    tcase_add_test(tests, sizes_and_rates);
    tcase_add_test(tests, what_an_update_may_state);
    tcase_add_test(tests, what_is_refused);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
