/* What an owner is shown, and when a device counts as idle. */
#include <check.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utime.h>

#include "client/daemon/idle.h"
#include "client/daemon/status.h"
#include "common/base/os/clock.h"
#include "common/base/os/file.h"

#define NS_PER_S UINT64_C(1000000000)

static struct kedge_view of(const char *text)
{
    return kedge_view_str(text);
}

START_TEST(status_round_trip)
{
    struct kedge_status s = {.server = "tls+tcp://h:1",
                             .engine = "kedge-train 1 cpu",
                             .fallback = "no device",
                             .pid = 7,
                             .since_ms = 1000,
                             .written_ms = 9000,
                             .connected = true,
                             .trainers = {4711, 0, 4712},
                             .trainer_idle_seconds = 300};
    struct kedge_site_task task = {.round = 3, .kind = KEDGE_SITE_TRAIN, .group = KEDGE_SITE_NONE};
    struct kedge_site_task other = {.round = 8, .kind = KEDGE_SITE_TRAIN, .group = 1};
    struct kedge_site_memory memory = {.enrolled = true};
    struct kedge_buf text, said;
    char line[KEDGE_STATUS_TEXT_MAX];
    json_t *o = NULL;
    memcpy(s.tenant.s, "acme", 5);
    memcpy(s.site.s, "plant", 6);
    memcpy(task.job.s, "first", 6);
    memcpy(other.job.s, "second", 7);
    s.view = (struct kedge_site_view){.state = KEDGE_SITE_TRAINING,
                                      .task = &task,
                                      .memory = &memory,
                                      .tasks = 5,
                                      .work_count = 2,
                                      .works = {{.state = KEDGE_SITE_TRAINING, .task = &task},
                                                {.state = KEDGE_SITE_TRAINING, .task = &other}}};
    s.works_wait[1] = "memory: 1 of 1 bytes are in use by job first (memory_all)";
    for (uint32_t i = 0; i < KEDGE_STATUS_LAST_MAX + 3; i++) {
        kedge_status_note(&s, &(struct kedge_status_outcome){.at_ms = 5000,
                                                             .job = task.job,
                                                             .round = i,
                                                             .kind = KEDGE_SITE_EVALUATE,
                                                             .note = KEDGE_SITE_NOTE_DROPPED,
                                                             .err = KEDGE_E_ROUND_CLOSED});
    }
    kedge_status_note(&s, &(struct kedge_status_outcome){.at_ms = 6000,
                                                         .job = task.job,
                                                         .round = 11,
                                                         .kind = KEDGE_SITE_TRAIN,
                                                         .note = KEDGE_SITE_NOTE_FAILED,
                                                         .err = KEDGE_E_TRAINER,
                                                         .detail = "/d/my.csv: line 7: column 2: \x1b\xff"});
    kedge_status_line(&s, line);
    ck_assert_str_eq(line, "training job=first round=3; waiting job=second round=8");
    kedge_buf_init(&text, KEDGE_STATUS_FILE_MAX);
    kedge_buf_init(&said, 65536);
    ck_assert_int_eq(kedge_status_encode(&s, &text), KEDGE_OK);
    ck_assert_int_eq(kedge_status_decode(kedge_buf_view(&text), "status.json", &o, NULL), KEDGE_OK);
    ck_assert_uint_eq(json_array_size(json_object_get(o, "last")), KEDGE_STATUS_LAST_MAX);
    ck_assert_int_eq(kedge_status_tell(o, true, 9000, &said), KEDGE_OK);
    kedge_buf_put(&said, "", 1);
    const char *words = (const char *)said.ptr;
    ck_assert_msg(strstr(words, "acme/plant at tls+tcp://h:1: training (process 7, for 8 s)"), "%s", words);
    ck_assert(strstr(words, "task: job first, round 3, train: training\n"));
    ck_assert(strstr(words, "task: job second, round 8, train: waits, memory: 1 of 1 bytes"));
    ck_assert(strstr(words,
                     "last: job first, round 11, train: failed, 3 s ago: /d/my.csv: line 7: column 2: ??\n"));
    ck_assert(strstr(words, "      job first, round 10, evaluate: dropped, 4 s ago: round closed\n"));
    ck_assert(strstr(words, "connection: there; no answer yet\n"));
    ck_assert(strstr(words, "since it started: 5 tasks, 0 receipts"));
    ck_assert(strstr(words, "\ntrained by: kedge-train 1 cpu; no device\n"));
    ck_assert(strstr(words, "\ntrainer: process 4711 and 4712; one without a task for 300 s is ended"));
    json_decref(o);
    kedge_buf_deinit(&text);
    kedge_buf_deinit(&said);
}
END_TEST

/* Nothing has come for more than a minute over a connection that nobody has ended. */
START_TEST(a_silent_connection)
{
    static const struct {
        const char *text, *words;
    } rows[] = {{"{\"schema_version\":1,\"connected\":true,\"answered_ms\":100000}",
                 "connection: there; last answer 9 s"},
                {"{\"schema_version\":1,\"connected\":true,\"answered_ms\":9000}",
                 "connection: there, but the coordinator does not answer; last answer 100 s ago"},
                {"{\"schema_version\":1,\"connected\":true,\"answered_ms\":9000,\"waits_for\":\"night\"}",
                 "connection: there; last answer 100 s"}, /* it does not ask */
                {"{\"schema_version\":1,\"connected\":false,\"answered_ms\":9000}",
                 "connection: none, it is dialled again; last answer 100 s ago"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct kedge_buf said;
        json_t *o = NULL;
        kedge_buf_init(&said, 65536);
        ck_assert_int_eq(kedge_status_decode(of(rows[i].text), "x", &o, NULL), KEDGE_OK);
        ck_assert_int_eq(kedge_status_tell(o, true, 109000, &said), KEDGE_OK);
        kedge_buf_put(&said, "", 1);
        ck_assert_msg(strstr((const char *)said.ptr, rows[i].words) != NULL, "%s", (const char *)said.ptr);
        json_decref(o);
        kedge_buf_deinit(&said);
    }
}
END_TEST

START_TEST(status_of_others)
{
    static const char *const bad[] = {"", "[]", "{}", "{\"schema_version\":2}", "{\"schema_version\":1"};
    struct kedge_buf said;
    struct kedge_diag d;
    json_t *o = NULL;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ck_assert_int_eq(kedge_status_decode(of(bad[i]), "x/status.json", &o, &d), KEDGE_E_FORMAT);
        ck_assert(strncmp(d.text, "x/status.json: ", 15) == 0);
    }
    ck_assert_int_eq(
        kedge_status_decode(of("{\"schema_version\":1,\"state\":\"a\\u001b[2J\",\"last\":7,\"task\":[1]}"),
                            "x", &o, NULL),
        KEDGE_OK);
    kedge_buf_init(&said, 65536);
    ck_assert_int_eq(kedge_status_tell(o, false, 1, &said), KEDGE_OK);
    ck_assert_ptr_null(memchr(said.ptr, '\x1b', said.len)); /* no escapes for the terminal */
    json_decref(o);
    kedge_buf_deinit(&said);
}
END_TEST

START_TEST(idle_rules)
{
    static const char *const bad[] = {"[]", "{\"cpu\":1}", "{\"cpu_percent\":0}", "{\"cpu_percent\":101}",
                                      "{\"input_s\":\"9\"}"};
    struct kedge_idle_rules r = {1, 2};
    struct kedge_diag d;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        json_t *v = json_loads(bad[i], 0, NULL);
        ck_assert_int_eq(kedge_idle_parse(v, "p", &r, &d), KEDGE_E_FORMAT);
        ck_assert(strstr(d.text, "p: \"idle\": "));
        json_decref(v);
    }
    ck_assert_int_eq(kedge_idle_parse(NULL, "p", &r, NULL), KEDGE_OK);
    ck_assert(r.cpu_percent == 0 && r.input_s == 0);
}
END_TEST

START_TEST(ticks)
{
    struct kedge_idle_ticks t = {1, 1};
    ck_assert(kedge_idle_read_ticks(of("cpu  10 20 30 400 50 6 7 8 0 0\ncpu0 1 2\n"), &t));
    ck_assert_uint_eq(t.busy, 10 + 30 + 6 + 7 + 8);
    ck_assert_uint_eq(t.all, 531);
    static const char *const bad[] = {"", "cpu0 1 2 3 4 5 6 7 8", "cpu  1 2 3 4 5 6 7",
                                      "cpu  1 2 3 4 5 6 7 -8", "cpu  1 2 3 99999999999999999999 5 6 7 8"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ck_assert(!kedge_idle_read_ticks(of(bad[i]), &t));
    }
    ck_assert_uint_eq(t.all, 531);
}
END_TEST

static void put(const char *root, const char *name, const char *text)
{
    char path[KEDGE_PATH_MAX];
    ck_assert_int_eq(kedge_path_join(path, root, name), KEDGE_OK);
    ck_assert_int_eq(kedge_file_write(path, of(text), 0600, NULL), KEDGE_OK);
}

/* A fake device: processors that get busy, a terminal at which somebody types. */
START_TEST(idle_device)
{
    char root[] = "/tmp/kedge-test-idle-XXXXXX", path[KEDGE_PATH_MAX], why[KEDGE_IDLE_TEXT_MAX];
    struct kedge_idle idle = {.rules = {.cpu_percent = 20, .input_s = 600}};
    struct utimbuf long_ago = {.actime = 1000, .modtime = 1000};
    ck_assert_ptr_nonnull(mkdtemp(root));
    static const char *const folders[] = {"proc", "dev/pts"};
    for (size_t i = 0; i < 2; i++) {
        ck_assert_int_eq(kedge_path_join(path, root, folders[i]), KEDGE_OK);
        ck_assert_int_eq(kedge_dir_make(path, 0700, NULL), KEDGE_OK);
    }
    kedge_idle_ask(&idle, root, 1 * NS_PER_S, why);
    ck_assert(strstr(why, "not known"));
    put(root, "proc/stat", "cpu  0 0 0 1000 0 0 0 0\n");
    put(root, "dev/pts/0", "");
    ck_assert_int_eq(kedge_path_join(path, root, "dev/pts/0"), KEDGE_OK);
    ck_assert_int_eq(utime(path, &long_ago), 0);
    kedge_idle_ask(&idle, root, 10 * NS_PER_S, why);
    ck_assert(strstr(why, "not known"));
    put(root, "proc/stat", "cpu  10 900 0 1090 0 0 0 0\n"); /* 1 % and niced work */
    kedge_idle_ask(&idle, root, 20 * NS_PER_S, why);
    ck_assert_str_eq(why, "");
    put(root, "proc/stat", "cpu  110 900 0 1190 0 0 0 0\n"); /* 50 % … */
    kedge_idle_ask(&idle, root, 21 * NS_PER_S, why);
    ck_assert_str_eq(why, ""); /* … not looked at yet */
    kedge_idle_ask(&idle, root, 26 * NS_PER_S, why);
    ck_assert_str_eq(why, "others use 50 % of the processors, at most 20 % (idle)");
    put(root, "proc/stat", "cpu  110 900 0 2190 0 0 0 0\n");
    ck_assert_int_eq(utime(path, NULL), 0); /* now */
    kedge_idle_ask(&idle, root, 40 * NS_PER_S, why);
    ck_assert(strstr(why, "somebody is at a terminal"));
    ck_assert_int_eq(kedge_dir_remove(root), KEDGE_OK);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("owner");
    TCase *tc = tcase_create("all");
    tcase_add_test(tc, status_round_trip);
    tcase_add_test(tc, status_of_others);
    tcase_add_test(tc, a_silent_connection);
    tcase_add_test(tc, idle_rules);
    tcase_add_test(tc, ticks);
    tcase_add_test(tc, idle_device);
    suite_add_tcase(s, tc);
    SRunner *runner = srunner_create(s);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
