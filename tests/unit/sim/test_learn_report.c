/* Results of learning simulations over a stand-in for the engine: lines, summaries, the folder; runs that are
 * killed, resumed, stopped, shared out over processes. */
#include <check.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/mem.h"
#include "common/base/os/file.h"
#include "fake_engine.h"
#include "sim/learn/exchange_process.h"
#include "sim/learn/report/report_run.h"
#include "tests/fixtures/learn_spec.h"

static char scratch[64];
static struct kedge_learn_spec spec;
static struct kedge_diag diag;

static void set_up(void)
{
    snprintf(scratch, sizeof scratch, "/tmp/kedge-learn-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(scratch));
    learn_spec_default(&spec);
    spec.sites = 20;
    spec.job.rounds = 30;
    spec.job.sites_per_round = 5;
    diag = (struct kedge_diag){.text = ""};
    fake_runs = fake_began = fake_die_at = 0;
}

static void tear_down(void)
{
    ck_assert_int_eq(kedge_dir_remove(scratch), KEDGE_OK);
}

static const char *at(const char *name)
{
    static char paths[8][256];
    static size_t next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", scratch, name);
    return path;
}

static void read_all(const char *path, struct kedge_buf *ret)
{
    kedge_buf_init(ret, 1 << 24);
    ck_assert_msg(kedge_file_read(path, ret, &diag) == KEDGE_OK, "%s", diag.text);
}

static void ck_same_file(const char *a, const char *b)
{
    struct kedge_buf one, two;
    read_all(a, &one);
    read_all(b, &two);
    ck_assert_msg(kedge_view_eq(kedge_buf_view(&one), kedge_buf_view(&two)), "%s is not %s", a, b);
    kedge_buf_deinit(&one);
    kedge_buf_deinit(&two);
}

static struct kedge_learn_task task_to(const char *out)
{
    return (struct kedge_learn_task){.spec = &spec, .out = out, .processes = 1, .save_every = 4};
}

static void run(const struct kedge_learn_task *task, struct kedge_learn_result *ret)
{
    diag = (struct kedge_diag){.text = ""};
    ck_assert_msg(kedge_learn_report_run(task, ret, &diag) == KEDGE_OK, "%s", diag.text);
}

/* ---- lines ---- */

START_TEST(test_lines)
{
    struct kedge_learn_round r = {.round = 7,
                                  .virtual_s = 0.1,
                                  .bytes_up = UINT64_C(1) << 40,
                                  .accuracy = 0.25,
                                  .accuracy_sites = (double)NAN,
                                  .groups = 3,
                                  .members = {5, 0, 12},
                                  .digest = 0xabc};
    struct kedge_buf out;
    kedge_buf_init(&out, 4096);
    kedge_learn_put_json_line(&r, &out);
    kedge_buf_put_u8(&out, 0);
    const char *text = (const char *)out.ptr;
    ck_assert_ptr_nonnull(strstr(text, "{\"round\":7,\"virtual_s\":0.1,\"bytes_up\":1099511627776,"));
    ck_assert_ptr_nonnull(strstr(text, "\"accuracy\":0.25,\"accuracy_sites\":null,"));
    ck_assert_ptr_nonnull(strstr(text, "\"members\":[5,0,12],"));
    ck_assert_ptr_nonnull(strstr(text, "\"digest\":\"0000000000000abc\"}\n"));
    kedge_buf_clear(&out);
    kedge_learn_put_csv_head(&out);
    kedge_learn_put_csv_line(&r, &out);
    kedge_buf_put_u8(&out, 0);
    text = (const char *)out.ptr;
    ck_assert_ptr_nonnull(strstr(text, "round,virtual_s,bytes_up,"));
    ck_assert_ptr_nonnull(strstr(text, "\n7,0.1,1099511627776,0,0,0,0.25,,"));
    ck_assert_ptr_nonnull(strstr(text, ",5 0 12,0,0,0000000000000abc\n"));
    kedge_buf_deinit(&out);
}
END_TEST

START_TEST(test_summary)
{
    struct kedge_learn_round rounds[20];
    struct kedge_learn_summary s;
    memset(rounds, 0, sizeof rounds);
    for (uint32_t i = 0; i < 20; i++) {
        rounds[i].round = i;
        rounds[i].accuracy = i % 2 ? (double)NAN : 0.5 + 0.01 * i;
        rounds[i].accuracy_personal = (double)NAN;
        rounds[i].bytes_up = 10 * i;
        rounds[i].bytes_down = i;
    }
    rounds[4].accuracy = 0.9;
    rounds[19].digest = 17;
    kedge_learn_summarise(rounds, 20, &s);
    ck_assert_uint_eq(s.rounds, 20);
    ck_assert(s.value[KEDGE_LEARN_MEASURE_accuracy_max] == 0.9);
    ck_assert_uint_eq(s.round_of_max, 4);
    ck_assert(fabs(s.value[KEDGE_LEARN_MEASURE_accuracy_last] - (0.9 - 0.54 + 5.0 + 0.9) / 10) < 1e-12);
    ck_assert(isnan(s.value[KEDGE_LEARN_MEASURE_personal_max]));
    ck_assert(s.value[KEDGE_LEARN_MEASURE_bytes] == 209);
    ck_assert_uint_eq(s.digest, 17);
    kedge_learn_summarise(rounds, 0, &s);
    ck_assert(isnan(s.value[KEDGE_LEARN_MEASURE_accuracy_max]));
}
END_TEST

/* ---- saved bytes ---- */

START_TEST(test_saved)
{
    struct kedge_learn_round rounds[3] = {{.round = 1, .accuracy = (double)NAN, .members = {1, 2, 3}},
                                          {.round = 2, .joules = 0.1, .digest = 9},
                                          {.round = 3}};
    struct kedge_learn_saved s = {.spent_ms = 77,
                                  .rounds = rounds,
                                  .count = 3,
                                  .state = kedge_view_str("engine")},
                             t;
    struct kedge_buf out;
    kedge_buf_init(&out, 1 << 16);
    s.spec.b[5] = 1;
    kedge_learn_put_saved(&s, &out);
    ck_assert_int_eq(kedge_learn_read_saved(kedge_buf_view(&out), &t, &diag), KEDGE_OK);
    ck_assert(kedge_hash_eq(&t.spec, &s.spec) && !t.complete && t.spent_ms == 77 && t.count == 3);
    ck_assert(t.rounds[0].members[2] == 3 && isnan(t.rounds[0].accuracy) && t.rounds[1].joules == 0.1);
    ck_assert(t.rounds[1].digest == 9 && kedge_view_eq(t.state, s.state));
    kedge_mem_free(t.rounds);
    for (size_t i = 0; i < out.len; i++) { /* whatever is altered or cut is noticed */
        out.ptr[i] ^= 4;
        int err = kedge_learn_read_saved(kedge_buf_view(&out), &t, &diag);
        ck_assert_msg(err == KEDGE_E_CORRUPT || err == KEDGE_E_VERSION, "byte %zu: %d", i, err);
        out.ptr[i] ^= 4;
        ck_assert_int_ne(kedge_learn_read_saved(kedge_view_of(out.ptr, i), &t, &diag), KEDGE_OK);
    }
    kedge_buf_deinit(&out);
}
END_TEST

/* ---- runs ---- */

START_TEST(test_folder)
{
    struct kedge_learn_result r, again;
    struct kedge_learn_task task = task_to(at("out"));
    run(&task, &r);
    ck_assert(r.complete && !r.was_complete && r.count == 30);
    ck_assert(kedge_file_exists(at("out/rounds.jsonl")) && kedge_file_exists(at("out/spec.json")));
    ck_assert(kedge_file_exists(at("out/summary.json")));
    ck_assert_int_eq(kedge_learn_report_run(&task, &again, &diag), KEDGE_E_EXISTS);
    ck_assert_ptr_nonnull(strstr(diag.hint, "--resume"));
    task.resume = true; /* what is complete is read, not run */
    run(&task, &again);
    ck_assert(again.complete && again.was_complete && again.count == 30);
    ck_assert_uint_eq(fake_runs, 1);
    ck_assert_uint_eq(again.summary.digest, r.summary.digest);
    spec.job.seed = 2;
    ck_assert_int_eq(kedge_learn_report_run(&task, &again, &diag), KEDGE_E_STATE);
    ck_assert_ptr_nonnull(strstr(diag.text, "another spec"));
    kedge_learn_result_deinit(&r);
    kedge_learn_result_deinit(&again);
    spec.job.seed = 1;
    struct kedge_buf bytes;
    read_all(at("out/state.bin"), &bytes);
    bytes.ptr[bytes.len / 2] ^= 1;
    ck_assert_int_eq(kedge_file_write(at("out/state.bin"), kedge_buf_view(&bytes), 0600, &diag), KEDGE_OK);
    ck_assert_int_eq(kedge_learn_report_run(&task, &again, &diag), KEDGE_E_CORRUPT);
    kedge_buf_deinit(&bytes);
    spec.sites = 1; /* the spec is checked before anything is made */
    task.out = at("never");
    ck_assert_int_eq(kedge_learn_report_run(&task, &again, &diag), KEDGE_E_FORMAT);
    ck_assert(!kedge_file_exists(at("never")));
}
END_TEST

/* A run that is killed in round `die` and resumed writes what one that was not killed writes. */
static void kill_and_resume(uint32_t die, uint32_t processes)
{
    struct kedge_learn_result r, whole;
    struct kedge_learn_task task = task_to(at("whole"));
    int status;
    run(&task, &whole);
    task.out = at("killed");
    task.processes = processes;
    task.resume = true;
    pid_t pid = fork();
    if (pid == 0) {
        fake_die_at = die;
        _exit(kedge_learn_report_run(&task, &r, NULL) ? 1 : 0);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFSIGNALED(status));
    ck_assert(!kedge_file_exists(at("killed/summary.json")));
    run(&task, &r);
    ck_assert_uint_eq(r.resumed, die / 4 * 4);
    ck_assert(processes > 1 || fake_began == die / 4 * 4);
    ck_assert_uint_eq(r.count, 30);
    ck_same_file(at("whole/rounds.jsonl"), at("killed/rounds.jsonl"));
    ck_same_file(at("whole/rounds.csv"), at("killed/rounds.csv"));
    ck_same_file(at("whole/spec.json"), at("killed/spec.json"));
    ck_assert_int_eq(memcmp(&r.summary, &whole.summary, sizeof r.summary), 0);
    kedge_learn_result_deinit(&r);
    kedge_learn_result_deinit(&whole);
}

START_TEST(test_killed)
{
    static const uint32_t rounds[] = {1, 3, 4, 5, 18, 29};
    kill_and_resume(rounds[_i], 1);
}
END_TEST

START_TEST(test_killed_in_many)
{
    kill_and_resume(18, 3);
}
END_TEST

START_TEST(test_processes)
{
    struct kedge_learn_result one, many;
    struct kedge_learn_task task = task_to(at("one"));
    run(&task, &one);
    for (uint32_t n = 2; n <= 5; n++) {
        char name[64];
        snprintf(name, sizeof name, "many%u", n);
        task.out = at(name);
        task.processes = n;
        run(&task, &many);
        ck_assert(many.complete && many.count == 30);
        snprintf(name, sizeof name, "many%u/rounds.jsonl", n);
        ck_same_file(at("one/rounds.jsonl"), at(name));
        kedge_learn_result_deinit(&many);
    }
    kedge_learn_result_deinit(&one);
}
END_TEST

static bool stop_at(void *arg, const struct kedge_learn_round *round, bool again)
{
    return again || round->round < *(const uint32_t *)arg;
}

START_TEST(test_stopped)
{
    struct kedge_learn_result r, whole;
    uint32_t last = 13;
    struct kedge_learn_task task = task_to(at("whole"));
    run(&task, &whole);
    task = task_to(at("out"));
    task.processes = _i ? 3 : 1;
    task.on_round = stop_at;
    task.arg = &last;
    run(&task, &r);
    ck_assert(!r.complete && r.count == 14 && !kedge_file_exists(at("out/summary.json")));
    kedge_learn_result_deinit(&r);
    task.resume = true;
    last = 100;
    run(&task, &r);
    ck_assert(r.complete && r.resumed == 12);
    ck_same_file(at("whole/rounds.jsonl"), at("out/rounds.jsonl"));
    kedge_learn_result_deinit(&r);
    kedge_learn_result_deinit(&whole);
}
END_TEST

START_TEST(test_locked)
{
    struct kedge_learn_result r;
    struct kedge_learn_task task = task_to(at("out"));
    int ready[2], status;
    char c;
    ck_assert_int_eq(pipe(ready), 0);
    ck_assert_int_eq(kedge_dir_make(at("out"), 0700, &diag), KEDGE_OK);
    pid_t pid = fork();
    if (pid == 0) {
        int fd = kedge_file_lock(at("out/lock"), NULL);
        (void)!write(ready[1], fd >= 0 ? "y" : "n", 1);
        (void)pause();
        _exit(0);
    }
    ck_assert_int_eq(read(ready[0], &c, 1), 1);
    ck_assert_int_eq(c, 'y');
    ck_assert_int_eq(kedge_learn_report_run(&task, &r, &diag), KEDGE_E_LOCKED);
    ck_assert_int_eq(kill(pid, SIGKILL), 0);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    run(&task, &r);
    kedge_learn_result_deinit(&r);
    close(ready[0]);
    close(ready[1]);
}
END_TEST

/* Rows of any length, also beyond what a socket holds at once, in both directions. */
START_TEST(test_exchange)
{
    enum { SIZE = 4, MAX = 3 << 20 };
    struct kedge_learn_processes *p;
    ck_assert_int_eq(kedge_learn_processes_start(SIZE, &p, &diag), KEDGE_OK);
    const struct kedge_learn_exchange *x = kedge_learn_processes_exchange(p);
    uint8_t *mine = malloc(MAX), *rows = malloc((size_t)SIZE * MAX);
    uint64_t lens[SIZE];
    bool right = mine && rows;
    static const uint64_t sizes[][SIZE] = {
        {0, 0, 0, 0}, {1, 2, 3, 4}, {MAX, 0, MAX, 7}, {MAX, MAX, MAX, MAX}, {0, 0, 0, MAX}};
    for (size_t k = 0; k < 5 && right; k++) {
        memset(mine, (int)(k * 16 + x->rank), MAX);
        right = x->allgather(x->arg, mine, sizes[k][x->rank], rows, MAX, lens) == KEDGE_OK;
        for (uint32_t r = 0; r < SIZE && right; r++) {
            right = lens[r] == sizes[k][r];
            for (uint64_t i = 0; i < lens[r] && right; i++) {
                right = rows[(uint64_t)r * MAX + i] == k * 16 + r;
            }
        }
    }
    uint8_t fine = right, all[SIZE] = {0};
    bool told = x->allgather(x->arg, &fine, 1, all, 1, lens) == KEDGE_OK;
    bool rank0 = x->rank == 0;
    free(mine);
    free(rows);
    if (rank0) {
        ck_assert(told && all[0] && all[1] && all[2] && all[3]);
        ck_assert_int_eq(x->allgather(x->arg, all, 3, all, 2, lens), KEDGE_E_TOO_LONG);
    }
    kedge_learn_processes_end(p, KEDGE_OK);
}
END_TEST

/* Who is left when another is gone is told. */
START_TEST(test_peer_gone)
{
    struct kedge_learn_processes *p;
    uint8_t mine = 1, all[3];
    uint64_t lens[3];
    ck_assert_int_eq(kedge_learn_processes_start(3, &p, &diag), KEDGE_OK);
    const struct kedge_learn_exchange *x = kedge_learn_processes_exchange(p);
    if (x->rank == 2) {
        kedge_learn_processes_end(p, KEDGE_E_BUG);
    }
    int err = x->allgather(x->arg, &mine, 1, all, 1, lens);
    if (x->rank == 1) {
        kedge_learn_processes_end(p, err);
    }
    ck_assert_int_eq(err, KEDGE_E_IO);
    kedge_learn_processes_end(p, err);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("learn_report");
    TCase *t = tcase_create("report");
    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_add_test(t, test_lines);
    tcase_add_test(t, test_summary);
    tcase_add_test(t, test_saved);
    tcase_add_test(t, test_folder);
    tcase_add_loop_test(t, test_killed, 0, 6);
    tcase_add_test(t, test_killed_in_many);
    tcase_add_test(t, test_processes);
    tcase_add_loop_test(t, test_stopped, 0, 2);
    tcase_add_test(t, test_locked);
    tcase_add_test(t, test_exchange);
    tcase_add_test(t, test_peer_gone);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
