/* "phases" and "trainable" of a trainer's request: what is read, and what is refused. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/train/task.h"

static int parse(const char *more, struct kedge_task *ret, struct kedge_diag *d)
{
    char line[2048];
    (void)snprintf(
        line, sizeof line,
        "{\"id\":\"1\",\"op\":\"train\",\"model\":{\"preset\":\"mclr\",\"inputs\":4,\"classes\":3},"
        "\"base\":\"b\",\"out\":\"o\",\"epochs\":1,\"lr\":\"0.1\",\"data\":{\"train\":{\"format\":\"csv\","
        "\"path\":\"x.csv\"}},%s}",
        more);
    return kedge_task_parse(kedge_view_str(line), true, ret, d);
}

static struct kedge_task task;

START_TEST(phases_are_read)
{
    struct kedge_diag d = {.text = ""};
    int err = parse("\"phases\":[{\"tensors\":[\"2.weight\",\"2.bias\"],\"epochs\":10},"
                    "{\"epochs\":1,\"tensors\":[\"0\"]}]",
                    &task, &d);
    ck_assert_msg(err == KEDGE_OK, "%s", d.text);
    ck_assert(task.phase_count == 2 && task.phases[0].epochs == 10 && task.phases[1].epochs == 1);
    ck_assert(task.phases[0].part.count == 2 && task.phases[1].part.count == 1);
    ck_assert_str_eq(task.phases[0].part.words, "2.weight");
    ck_assert_int_eq(parse("\"batch\":5", &task, &d), KEDGE_OK);
    ck_assert_uint_eq(task.phase_count, 0);
}
END_TEST

START_TEST(trainable_is_read)
{
    struct kedge_diag d = {.text = ""};
    ck_assert_msg(parse("\"trainable\":[\"1\",\"2.bias\"],\"steps\":4", &task, &d) == KEDGE_OK, "%s", d.text);
    ck_assert(task.trainable.count == 2 && task.phase_count == 0 && task.steps == 4);
    ck_assert_int_eq(parse("\"batch\":5", &task, &d), KEDGE_OK);
    ck_assert_uint_eq(task.trainable.count, 0);
    static const char *const bad[] = {
        "\"trainable\":{}",
        "\"trainable\":[]",
        "\"trainable\":[3]",
        "\"trainable\":[\"1\",\"1\"]",
        "\"trainable\":[\"1\"],\"personal\":\"f\"",
        "\"trainable\":[\"1\"],\"phases\":[{\"epochs\":1,\"tensors\":[\"a\"]}]",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        d.text[0] = '\0';
        ck_assert_msg(parse(bad[i], &task, &d) != KEDGE_OK, "%s", bad[i]);
        ck_assert_msg(strstr(d.text, "trainable") != NULL, "%s: %s", bad[i], d.text);
    }
}
END_TEST

START_TEST(others_are_refused)
{
#define ONE_PHASE "{\"epochs\":1,\"tensors\":[\"a\"]}"
    static const char *const bad[] = {
        "\"phases\":{}",
        "\"phases\":[]",
        "\"phases\":[3]",
        "\"phases\":[{\"epochs\":1}]",
        "\"phases\":[{\"epochs\":1,\"tensors\":[]}]",
        "\"phases\":[{\"epochs\":1,\"tensors\":[7]}]",
        "\"phases\":[{\"epochs\":0,\"tensors\":[\"0.bias\"]}]",
        "\"phases\":[{\"epochs\":1,\"tensors\":[\"0.bias\",\"0.bias\"]}]",
        "\"phases\":[{\"epochs\":1,\"tensors\":[\"0.bias\"],\"more\":1}]",
        "\"phases\":[" ONE_PHASE "," ONE_PHASE "," ONE_PHASE "," ONE_PHASE "," ONE_PHASE "]",
        "\"drift\":\"f\",\"phases\":[{\"epochs\":1,\"tensors\":[\"a\"]}]",
        "\"steps\":4,\"phases\":[{\"epochs\":1,\"tensors\":[\"0.bias\"]}]",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct kedge_diag d = {.text = ""};
        ck_assert_msg(parse(bad[i], &task, &d) != KEDGE_OK, "%s", bad[i]);
        ck_assert_msg(strstr(d.text, "phases") != NULL, "%s: %s", bad[i], d.text);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("train/phases");
    TCase *t = tcase_create("phases");
    tcase_add_test(t, phases_are_read);
    tcase_add_test(t, trainable_is_read);
    tcase_add_test(t, others_are_refused);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? 1 : 0;
}
