#include <check.h>
#include <string.h>

#include "job/job_spec.h"
#include "tests/fixtures/run.h"

#define HEAD                                                                                                \
    "{\"name\":\"job\",\"tenants\":[\"org-a\"],\"data\":\"d\",\"rounds\":9,\"model\":{\"preset\":\"mclr\"," \
    "\"inputs\":4,"                                                                                         \
    "\"classes\":2}"

/* A spec parses, but a job of it would not read the key. */
static const struct {
    const char *text, *says; /* NULL: it is read, or says nothing */
} unread[] = {
    {HEAD ",\"pretrain_steps\":7}",
     "\"pretrain_steps\": strategy \"fedavg\" does not read it: no site pre-trains"},
    {HEAD ",\"pretrain_steps\":50}", NULL},
    {HEAD
     ",\"grouping\":\"flexcfl\",\"groups\":2,\"pretrain_steps\":7,\"pretrain_sites\":9,\"migration_pause\":3,"
     "\"mixing\":\"0.1\"}",
     NULL},
    {HEAD ",\"pretrain_sites\":9,\"strategy\":\"ifca\",\"groups\":2}",
     "\"pretrain_sites\": strategy \"ifca\""},
    {HEAD ",\"strategy\":\"ifca\",\"groups\":2,\"mixing\":0.1}", NULL},
    {HEAD ",\"migration_pause\":2,\"strategy\":\"cfl\"}",
     "\"migration_pause\": strategy \"cfl\" does not read it"},
    {HEAD ",\"mixing\":\"0.05\"}", "\"mixing\": strategy \"fedavg\" does not read it: there is one model"},
    {HEAD ",\"mixing\":0}", NULL},
};

START_TEST(test_unread)
{
    struct kedge_job_spec s;
    struct kedge_diag d;
    d = (struct kedge_diag){.text = ""};
    ck_assert_msg(kedge_job_spec_parse(kedge_view_str(unread[_i].text), &s, &d) == KEDGE_OK, "%s", d.text);
    int err = kedge_job_spec_check_read(kedge_view_str(unread[_i].text), &s, &d);
    ck_assert_msg(err == (unread[_i].says ? KEDGE_E_FORMAT : KEDGE_OK), "%s: %s", unread[_i].text, d.text);
    ck_assert_msg(!err || strstr(d.text, unread[_i].says), "%s", d.text);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("chain job spec unread");
    TCase *t = tcase_create("unread");
    tcase_add_loop_test(t, test_unread, 0, sizeof unread / sizeof unread[0]);
    suite_add_tcase(s, t);
    return run_suite(s);
}
