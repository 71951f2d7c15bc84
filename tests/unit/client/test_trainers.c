/* "trainers" in policy.json: what an owner may say of trainers of their own, and what is refused. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/daemon/policy.h"

static const struct {
    const char *trainers, *says;
} wrong[] = {
    {"[]", "expected an object"},
    {"{\"../net\":{\"command\":[\"x\"]}}", "expected a name"},
    {"{\"net\":[\"x\"]}", "expected a name of"},
    {"{\"net\":{}}", "\"net\": \"command\""},
    {"{\"net\":{\"command\":[]}}", "command"},
    {"{\"net\":{\"command\":\"python3\"}}", "command"},
    {"{\"net\":{\"command\":[\"\"]}}", "words"},
    {"{\"net\":{\"command\":[7]}}", "words"},
    {"{\"net\":{\"command\":[\"x\\u0000y\"]}}", ""},
    {"{\"net\":{\"command\":[\"x\"],\"cmd\":1}}", "\"cmd\": expected no such key"},
    {"{\"net\":{\"command\":[\"x\"],\"seconds_max\":-1}}", "seconds_max"},
    {"{\"net\":{\"command\":[\"x\"],\"seconds_max\":604801}}", "seconds_max"},
    {"{\"net\":{\"command\":[\"x\"],\"files_max\":15}}", "files_max"},
    {"{\"net\":{\"command\":[\"x\"],\"processes_max\":-1}}", "processes_max"},
    {"{\"net\":{\"command\":[\"x\"],\"memory_max\":\"1\"}}", "memory_max"},
    {"{\"net\":{\"command\":[\"x\"],\"network\":1}}", "true or false"},
    {"{\"net\":{\"command\":[\"x\"],\"environment\":{\"A=B\":\"\"}}}", "environment"},
    {"{\"net\":{\"command\":[\"x\"],\"environment\":{\"1A\":\"\"}}}", "environment"},
    {"{\"net\":{\"command\":[\"x\"],\"environment\":{\"A\":7}}}", "environment"},
    {"{\"net\":{\"command\":[\"x\"],\"environment\":[]}}", "environment"},
};

static int parse(const char *trainers, struct kedge_site_policy *ret, struct kedge_diag *d)
{
    char text[8192];
    snprintf(text, sizeof text, "{\"trainers\":%s}", trainers);
    *d = (struct kedge_diag){.text = ""};
    return kedge_policy_parse(kedge_view_str(text), "policy.json", ret, d);
}

START_TEST(refused)
{
    struct kedge_site_policy p;
    struct kedge_diag d;
    ck_assert_msg(parse(wrong[_i].trainers, &p, &d) == KEDGE_E_FORMAT, "%s", wrong[_i].trainers);
    ck_assert_msg(strstr(d.text, wrong[_i].says) != NULL && strncmp(d.text, "policy.json", 11) == 0, "%s: %s",
                  wrong[_i].trainers, d.text);
}
END_TEST

START_TEST(taken)
{
    struct kedge_site_policy p;
    struct kedge_diag d;
    struct kedge_id name = {.s = "net-2"};
    ck_assert_msg(
        parse("{\"net\":{\"command\":[\"a\",\"\",\"b "
              "c\"]},\"net-2\":{\"command\":[\"/x\"],\"environment\":{\"A_1\":"
              "\"b=c\"},\"seconds_max\":9,\"memory_max\":1000,\"cpu_seconds_max\":7,\"file_bytes_max\":0,"
              "\"files_max\":16,\"processes_max\":0,\"network\":true,\"sandbox_required\":true}}",
              &p, &d)
            == KEDGE_OK,
        "%s", d.text);
    ck_assert_uint_eq(p.trainers.count, 2);
    const struct kedge_trainer_terms *t = kedge_trainers_find(&p.trainers, &name);
    ck_assert_ptr_nonnull(t);
    ck_assert_str_eq(t->command[0], "/x");
    ck_assert_ptr_null(t->command[1]);
    ck_assert_str_eq(t->environment[0], "A_1=b=c");
    ck_assert_ptr_null(t->environment[1]);
    ck_assert(t->seconds_max == 9 && t->memory_max == 1000 && t->cpu_seconds_max == 7
              && t->file_bytes_max == 0);
    ck_assert(t->files_max == 16 && t->network && t->sandbox_required && t->processes_max == 0);
    name = (struct kedge_id){.s = "net"};
    t = kedge_trainers_find(&p.trainers, &name);
    ck_assert_ptr_nonnull(t);
    ck_assert_str_eq(t->command[2], "b c");
    ck_assert(t->seconds_max == 0 && t->files_max == 256 && t->processes_max == 128
              && t->file_bytes_max == (uint64_t)4 << 30);
    ck_assert(!t->network && !t->sandbox_required && t->environment[0] == NULL);
    name = (struct kedge_id){.s = "other"};
    ck_assert_ptr_null(kedge_trainers_find(&p.trainers, &name));
    kedge_policy_deinit(&p);
    ck_assert_int_eq(kedge_policy_parse(kedge_view_str("{}"), "x", &p, &d), KEDGE_OK);
    ck_assert_ptr_null(kedge_trainers_find(&p.trainers, &name));
    ck_assert_uint_eq(p.model_bytes_max, (uint64_t)2 << 30);
    kedge_policy_deinit(&p);
}
END_TEST

/* As many trainers, words and variables as there may be, and one more. */
START_TEST(counted)
{
    struct kedge_site_policy p;
    struct kedge_diag d;
    const size_t most[3] = {KEDGE_TRAINERS_MAX, KEDGE_TRAINER_ARGS_MAX, KEDGE_TRAINER_ENV_MAX};
    for (size_t which = 0; which < 3; which++) {
        for (size_t n = most[which]; n <= most[which] + 1; n++) {
            char text[4096] = "{";
            size_t len = 1;
            len += (size_t)snprintf(text + len, sizeof text - len, "%s",
                                    which == 0   ? ""
                                    : which == 1 ? "\"t\":{\"command\":["
                                                 : "\"t\":{\"command\":[\"x\"],\"environment\":{");
            for (size_t i = 0; i < n; i++) {
                const char *comma = i ? "," : "";
                len += (size_t)(which == 0 ? snprintf(text + len, sizeof text - len,
                                                      "%s\"t%zu\":{\"command\":[\"x\"]}", comma, i)
                                : which == 1
                                    ? snprintf(text + len, sizeof text - len, "%s\"w\"", comma)
                                    : snprintf(text + len, sizeof text - len, "%s\"V%zu\":\"\"", comma, i));
            }
            snprintf(text + len, sizeof text - len, "%s", which == 0 ? "}" : which == 1 ? "]}}" : "}}}");
            int err = parse(text, &p, &d);
            ck_assert_msg((err == KEDGE_OK) == (n == most[which]), "%zu of kind %zu: %s", n, which, d.text);
            if (err == KEDGE_OK) {
                kedge_policy_deinit(&p);
            }
        }
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("client-trainers");
    TCase *t = tcase_create("policy");
    tcase_add_loop_test(t, refused, 0, sizeof wrong / sizeof wrong[0]);
    tcase_add_test(t, taken);
    tcase_add_test(t, counted);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
