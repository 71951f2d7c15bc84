/* kedge job events, compare and clone in front of a coordinator that says what the test wants: moves out of
 * turn, a spec that is not the one it names, pages without an end. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/bytes.h"
#include "crypto/hash.h"
#include "tests/fixtures/run.h"
#include "tests/unit/cli/fake.h"
#include "tests/unit/cli/support.h"

#define MOVE(n, from, to)                                                                             \
    "{\"sequence\":" n ",\"epoch\":1,\"from\":\"" from "\",\"to\":\"" to "\",\"cause\":\"progress\"," \
    "\"actor\":\"coordinator\",\"ms\":1700000000000}"
#define MOVES(state, more, events) \
    "{\"job\":\"j\",\"state\":\"" state "\",\"more\":" more ",\"events\":[" events "]}"

static struct fake fake;

static void set_up(const char *answer)
{
    make_scratch();
    fake = (struct fake){.answer = answer};
    ck_assert_int_eq(kedge("init %s", at("state")), 0);
    fake_open(&fake);
}

static void tear_down(void)
{
    fake_close();
    remove_scratch();
}

static const struct {
    const char *options, *answer;
    int code;
    const char *told, *said; /* on stdout, on stderr */
} rows[] = {
    {"", MOVES("completed", "false", MOVE("0", "pending", "queued") "," MOVE("1", "queued", "enrolling")), 0,
     "pending    queued     progress                coordinator", ""},
    {"--follow", MOVES("failed", "false", MOVE("0", "pending", "queued")), 0, "2023-11-14 22:13Z", ""},
    {"--from 7", MOVES("completed", "false", MOVE("7", "halted", "training")), 0, "   7  ", ""},
    {"", MOVES("completed", "false", ""), 0, "No moves from there on", ""},
    {"", MOVES("completed", "true", ""), 0, "No moves from there on",
     ""}, /* more, and none: no endless asking */
    {"", MOVES("completed", "false", MOVE("1", "pending", "queued")), 3, "",
     "tells move 1 where 0 was asked for"},
    {"", MOVES("completed", "false", MOVE("0", "pending", "queued") "," MOVE("0", "pending", "queued")), 3,
     "", "tells move 0 where 1 was asked for"},
    {"", MOVES("completed", "true", MOVE("0", "pending", "queued")), 3, "",
     "tells move 0 where 1 was asked for"},
    {"--follow", MOVES("training", "false", MOVE("0", "pending", "queued")), 3, "", "where 1 was asked for"},
    {"--follow --from 5", MOVES("completed", "false", MOVE("4", "pending", "queued")), 3, "",
     "tells move 4 where 5 was asked for"},
    {"--from x", "{}", 2, "", "--from x: expected a whole number"},
    {"k", "{}", 2, "", "one argument too many"},
};

START_TEST(test_events)
{
    set_up(rows[_i].answer);
    int code =
        kedge("job events j %s --state %s", rows[_i].options[0] ? rows[_i].options : "--from 0", at("state"));
    ck_assert_msg(code == rows[_i].code, "%d: exit %d: %s%s", _i, code, out, err_out);
    ck_assert_msg(strstr(out, rows[_i].told) != NULL, "%d: %s", _i, out);
    ck_assert_msg(strstr(err_out, rows[_i].said) != NULL, "%d: %s", _i, err_out);
    tear_down();
}
END_TEST

/* Each move is a line of its own, and nothing else is on stdout. */
START_TEST(test_events_as_lines)
{
    set_up(MOVES("completed", "false", MOVE("0", "pending", "queued") "," MOVE("1", "queued", "enrolling")));
    ck_assert_int_eq(kedge("job events j --follow --format json --state %s", at("state")), 0);
    const char *second = strchr(out, '\n');
    ck_assert(second && strncmp(out, "{\"sequence\":0,", 14) == 0
              && strncmp(second + 1, "{\"sequence\":1,", 14) == 0);
    ck_assert_uint_eq(strlen(strchr(second + 1, '\n')), 1);
    tear_down();
}
END_TEST

/* What is said to be the job's spec is held to the digest, and is read before anything comes of it. */
START_TEST(test_spec_of_another)
{
    static const char spec[] = "{\\\"name\\\":\\\"j\\\"}"; /* with the escapes of a JSON text */
    char answer[512], hex[KEDGE_HASH_HEX_LEN + 1];
    struct kedge_hash digest;
    kedge_sha256(kedge_view_str("{\"name\":\"j\"}"), &digest);
    kedge_hash_hex(&digest, hex);
    snprintf(answer, sizeof answer, "{\"job\":\"j\",\"spec\":\"%s\",\"digest\":\"%s\"}", spec, hex);
    set_up(answer);
    ck_assert_int_eq(kedge("job clone j --state %s", at("state")), 2); /* it lacks keys */
    ck_assert_msg(strstr(err_out, "is missing") != NULL, "%s", err_out);
    strchr(strstr(answer, "digest\":\""), ':')[2] ^= 1;
    static const char *const lines[] = {"clone j", "compare j k"};
    for (size_t i = 0; i < 2; i++) {
        ck_assert_int_eq(kedge("job %s --state %s", lines[i], at("state")), 3);
        ck_assert_msg(strstr(err_out, "has not the digest that it names") != NULL, "%s", err_out);
    }
    fake.answer = "{\"job\":\"j\"}";
    ck_assert_int_eq(kedge("job clone j --state %s", at("state")), 3);
    ck_assert_msg(strstr(err_out, "has no spec of job j") != NULL, "%s", err_out);
    tear_down();
}
END_TEST

START_TEST(test_wrong_usage)
{
    static const struct {
        const char *line, *said;
    } wrong[] = {
        {"compare j", "expected two jobs' names"},   {"compare j k l", "one argument too many"},
        {"compare J k", "expected two jobs' names"}, {"clone", "JOB: expected a job's name"},
        {"clone j k", "one argument too many"},      {"clone j --set", "--set: its value is missing"},
        {"events", "JOB: expected a job's name"}};
    set_up("{}");
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        int code = kedge("job %s --state %s", wrong[i].line, at("state"));
        ck_assert_msg(code == 2 && strstr(err_out, wrong[i].said), "%s: exit %d: %s", wrong[i].line, code,
                      err_out);
    }
    ck_assert_int_eq(atomic_load(&fake.asked), 0);
    tear_down();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cli jobs told");
    TCase *t = tcase_create("told");
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, test_events, 0, sizeof rows / sizeof rows[0]);
    tcase_add_test(t, test_events_as_lines);
    tcase_add_test(t, test_spec_of_another);
    tcase_add_test(t, test_wrong_usage);
    suite_add_tcase(s, t);
    return run_suite(s);
}
