/* A trainer without a task is ended in the way that a well-behaved program expects, or else is made to end;
 * the next task starts it again. Real processes, in the sandbox of trainers. */
#include <check.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/daemon/energy/energy.h"
#include "client/daemon/trainer/trainer.h"
#include "common/base/os/clock.h"
#include "tests/fixtures/run.h"

enum { PATIENCE_MS = 1000, SCRIPT_MAX = 2048 };

/* Answers requests; what it does when its input has ended is to come. "started" has a line of each start. */
#define ANSWERS                                                                                      \
    "echo >> started\n"                                                                              \
    "answer() {\n"                                                                                   \
    "  id=${1#*'\"id\":\"'}\n"                                                                       \
    "  echo '{\"id\":\"'\"${id%%'\"'*}\"'\",\"status\":\"ok\",\"seconds\":\"0\",\"test_samples\":4," \
    "\"test_correct\":3,\"test_loss\":\"1.5\"}'\n"                                                   \
    "}\n"

static const char polite[] = ANSWERS "while read -r line; do answer \"$line\"; done\n"
                                     "echo saving >&2; echo input > ended\n";
static const char slow[] = ANSWERS "trap 'sleep 0.2; echo term > ended; exit 0' TERM\n"
                                   "while :; do read -r line && answer \"$line\"; sleep 0.01; done\n";
static const char deaf[] = ANSWERS "trap '' TERM\n"
                                   "while :; do read -r line && answer \"$line\"; sleep 0.01; done\n";

static struct kedge_site_host host;
static struct kedge_site_policy policy;
static struct kedge_job_spec spec;
static struct kedge_client_work work;

void kedge_client_energy_tick(struct kedge_client_work *w)
{
    (void)w;
}

static void begin(const char *script)
{
    char path[KEDGE_PATH_MAX + 16], text[2 * KEDGE_PATH_MAX];
    host = (struct kedge_site_host){.dir = "/tmp/kedge-own-idle-XXXXXX"};
    ck_assert_ptr_nonnull(mkdtemp(host.dir));
    snprintf(path, sizeof path, "%s/net.sh", host.dir);
    ck_assert_int_eq(kedge_file_write(path, kedge_view_str(script), 0755, NULL), KEDGE_OK);
    snprintf(path, sizeof path, "%s/trainers", host.dir);
    ck_assert_int_eq(kedge_dir_make(path, 0700, NULL), KEDGE_OK);
    snprintf(text, sizeof text,
             "{\"trainer_idle_seconds\":7,\"trainers\":{\"net\":{\"command\":[\"/bin/sh\",\"%s/net.sh\"],"
             "\"seconds_max\":60}}}",
             host.dir);
    ck_assert_int_eq(kedge_policy_parse(kedge_view_str(text), "policy.json", &policy, NULL), KEDGE_OK);
    spec = (struct kedge_job_spec){.is_external = true};
    memcpy(spec.external.trainer.s, "net", 4);
    work = (struct kedge_client_work){.h = &host, .policy = &policy, .spec = &spec};
    work.trainer.process = (struct kedge_process){.in_fd = -1, .out_fd = -1, .err_fd = -1};
    kedge_buf_init(&work.trainer.line, KEDGE_METRICS_LINE_MAX);
}

static void end(void)
{
    kedge_client_trainer_stop(&work);
    kedge_buf_deinit(&work.trainer.line);
    kedge_policy_deinit(&policy);
    ck_assert_int_eq(kedge_dir_remove(host.dir), KEDGE_OK);
}

static void ask(void)
{
    struct kedge_metrics m = {.test_samples = 0};
    struct kedge_diag d = {.text = ""};
    int err = kedge_client_ask(&work, 1, json_pack("{s:s}", "op", "evaluate"), false, true, &m, &d);
    ck_assert_msg(err == KEDGE_OK, "%s", d.text);
    ck_assert_uint_eq(m.test_correct, 3);
}

static const char *left(const char *name)
{
    static char text[64];
    char path[KEDGE_PATH_MAX + 64];
    struct kedge_buf b;
    kedge_buf_init(&b, sizeof text - 1);
    snprintf(path, sizeof path, "%s/trainers/net/%s", host.dir, name);
    int err = kedge_file_read(path, &b, NULL);
    snprintf(text, sizeof text, "%.*s", err ? 0 : (int)b.len, err ? "" : (const char *)b.ptr);
    kedge_buf_deinit(&b);
    return text;
}

static bool runs(pid_t pid)
{
    return kill(pid, 0) == 0;
}

START_TEST(the_owner_says_how_long)
{
    struct kedge_site_policy p;
    struct kedge_diag d;
    ck_assert_int_eq(kedge_policy_parse(kedge_view_str("{}"), "x", &p, &d), KEDGE_OK);
    ck_assert_uint_eq(p.trainer_idle_seconds, 300);
    ck_assert_int_eq(kedge_policy_parse(kedge_view_str("{\"trainer_idle_seconds\":604801}"), "x", &p, &d),
                     KEDGE_E_FORMAT);
    ck_assert_msg(strstr(d.text, "expected a whole number from 0 to 604800") != NULL, "%s", d.text);
}
END_TEST

/* The end of its input is enough; meanwhile nothing is due before its time. */
START_TEST(polite_ends_at_the_end_of_its_input)
{
    begin(polite);
    ck_assert_uint_eq(kedge_client_trainer_deadline_ns(&work), KEDGE_TIME_NEVER);
    const uint64_t before = kedge_os_now_ns();
    ask();
    const pid_t pid = work.trainer.process.pid;
    const uint64_t due = kedge_client_trainer_deadline_ns(&work);
    ck_assert(due >= before + UINT64_C(7000000000) && due <= kedge_os_now_ns() + UINT64_C(7000000000));
    ck_assert_int_eq(atomic_load(&work.trainer_pid), pid);
    kedge_client_trainer_end_idle(&work, 20 * PATIENCE_MS);
    ck_assert_str_eq(left("ended"), "input\n");
    ck_assert_str_eq(work.trainer.said, "saving");
    ck_assert(work.trainer.process.pid == 0 && atomic_load(&work.trainer_pid) == 0 && !runs(pid));
    ck_assert_uint_eq(kedge_client_trainer_deadline_ns(&work), KEDGE_TIME_NEVER);
    ask(); /* started again, and then kept */
    ask();
    ck_assert_str_eq(left("started"), "\n\n");
    end();
}
END_TEST

START_TEST(slow_ends_by_sigterm)
{
    begin(slow);
    ask();
    kedge_client_trainer_end_idle(&work, 3 * PATIENCE_MS);
    ck_assert_str_eq(left("ended"), "term\n");
    ask();
    ck_assert_str_eq(left("started"), "\n\n");
    end();
}
END_TEST

START_TEST(deaf_is_killed)
{
    begin(deaf);
    ask();
    const pid_t pid = work.trainer.process.pid;
    kedge_client_trainer_end_idle(&work, 20);
    ck_assert(work.trainer.process.pid == 0 && !runs(pid));
    ask();
    ck_assert_str_eq(left("started"), "\n\n");
    end();
}
END_TEST

/* The daemon ends, too: nobody waits for what has time. */
START_TEST(not_waited_for_at_the_end)
{
    begin(deaf);
    ask();
    const uint64_t before = kedge_os_now_ns();
    atomic_store(&work.abort_serial, UINT64_MAX);
    kedge_client_trainer_end_idle(&work, 60000);
    ck_assert(kedge_os_now_ns() - before < UINT64_C(30000000000));
    end();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("client/daemon/trainer_idle");
    TCase *tc = tcase_create("processes");
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, the_owner_says_how_long);
    tcase_add_test(tc, polite_ends_at_the_end_of_its_input);
    tcase_add_test(tc, slow_ends_by_sigterm);
    tcase_add_test(tc, deaf_is_killed);
    tcase_add_test(tc, not_waited_for_at_the_end);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
