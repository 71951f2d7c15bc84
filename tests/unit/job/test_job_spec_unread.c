#include <check.h>
#include <stdio.h>
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

/* A spec parses, but there would be no room for a file of the job's rounds: an update with a control variate,
 * or a state of the server, which have each tensor more than once and under longer names. The first close
 * would find it out, after a round of training. */
static const struct {
    const char *strategy;
    int tensors, name_len;
    const char *shape, *says; /* NULL: there is room */
} rooms[] = {
    {"\"fedavg\"", 1024, 4, "[2]", NULL},
    {"\"fedavg\"", 1, 127, "[262144,262144]", NULL},
    {"\"fedadam\"", 512, 4, "[2]", NULL},
    {"\"fedadam\"", 513, 4, "[2]",
     "\"server\": there is no room for the state of \"adam\", \"second_moment/"},
    {"\"fedadam\"", 1, 113, "[2]", NULL},
    {"\"fedadam\"", 1, 114, "[2]", "tensor name of 128 bytes"},
    {"\"fedadam\"", 1, 4, "[262144,131072]", NULL},
    {"\"fedadam\"", 1, 4, "[262144,131073]", "2^36"},
    {"\"fedavgm\"", 1024, 4, "[2]", NULL},
    {"\"fedavgm\"", 1, 119, "[2]", "\"momentum/"},
    {"\"scaffold\",\"control_sites\":2,\"sites_per_round\":2", 512, 4, "[2]", NULL},
    {"\"scaffold\",\"control_sites\":2,\"sites_per_round\":2", 513, 4, "[2]",
     "\"strategy\": there is no room"},
};

START_TEST(test_room)
{
    struct kedge_job_spec s;
    struct kedge_diag d = {.text = ""};
    struct kedge_buf text;
    kedge_buf_init(&text, KEDGE_SPEC_MAX);
    kedge_buf_printf(
        &text,
        "{\"name\":\"j\",\"tenants\":[\"a\"],\"data\":\"d\",\"rounds\":3,\"model\":\"external\","
        "\"initial_model\":\"%064d\",\"strategy\":%s,\"external\":{\"trainer\":\"t\",\"tensors\":[",
        7, rooms[_i].strategy);
    for (int i = 0; i < rooms[_i].tensors; i++) {
        kedge_buf_printf(&text, "%s{\"name\":\"%0*d\",\"shape\":%s}", i ? "," : "", rooms[_i].name_len, i,
                         rooms[_i].shape);
    }
    kedge_buf_put_str(&text, "]}}");
    ck_assert_int_eq(text.err, KEDGE_OK);
    ck_assert_msg(kedge_job_spec_parse(kedge_buf_view(&text), &s, &d) == KEDGE_OK, "%s", d.text);
    int err = kedge_job_spec_check_read(kedge_buf_view(&text), &s, &d);
    ck_assert_msg((err == KEDGE_OK) == !rooms[_i].says, "%d: %s", err, d.text);
    ck_assert_msg(!err || strstr(d.text, rooms[_i].says), "%s", d.text);
    kedge_buf_deinit(&text);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("chain job spec unread");
    TCase *t = tcase_create("unread");
    tcase_add_loop_test(t, test_unread, 0, sizeof unread / sizeof unread[0]);
    tcase_add_loop_test(t, test_room, 0, sizeof rooms / sizeof rooms[0]);
    suite_add_tcase(s, t);
    return run_suite(s);
}
