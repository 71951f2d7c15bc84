/* kedge job, tenant and site in front of a coordinator that says what the test wants: long jobs in pages,
 * refusals and their exit codes, and Ctrl-C while a command waits. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/base/os/clock.h"
#include "common/base/os/file.h"
#include "tests/fixtures/run.h"
#include "tests/unit/cli/fake.h"
#include "tests/unit/cli/support.h"

static struct fake fake;

static void set_up(uint32_t rounds, const char *end_state, int asked_until)
{
    make_scratch();
    fake = (struct fake){.rounds = rounds, .end_state = end_state, .asked_until = asked_until};
    ck_assert_int_eq(kedge("init %s", at("state")), 0); /* its keys are what receipts are held to */
    fake_open(&fake);
}

static void tear_down(void)
{
    fake_close();
    remove_scratch();
}

/* Lines of stdout that begin with `head` and a number that is one more each time; the last number. */
static unsigned long count_lines(const char *head, unsigned long first)
{
    unsigned long next = first;
    for (const char *line = out; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        const char *at_number = line + strspn(line, " ");
        if (strncmp(at_number, head, strlen(head)) != 0) {
            continue;
        }
        char *end;
        unsigned long n = strtoul(at_number + strlen(head), &end, 10);
        if (end != at_number + strlen(head)) {
            ck_assert_uint_eq(n, next);
            next++;
        }
    }
    return next - 1;
}

/* Answers hold at most 512 rounds. */
static const uint32_t lengths[] = {0, 1, 511, 512, 513, 1024, 1300};

START_TEST(test_logs_in_pages)
{
    json_t *root;
    uint32_t rounds = lengths[_i];
    set_up(rounds, "completed", 0);
    ck_assert_int_eq(kedge("job logs long --state %s", at("state")), 0);
    ck_assert_uint_eq(count_lines("round=", 1), rounds);
    ck_assert_int_eq(kedge("job logs long --from 200 --format json --state %s", at("state")), 0);
    ck_assert_uint_eq(json_array_size(json_object_get(data_of(&root), "history")),
                      rounds >= 200 ? rounds - 199 : 0);
    json_decref(root);
    ck_assert_int_eq(kedge("job show long --state %s", at("state")), 0);
    ck_assert_uint_eq(count_lines("", 1), rounds);
    tear_down();
}
END_TEST

START_TEST(test_watch_in_pages)
{
    json_t *root;
    uint32_t rounds = lengths[_i];
    set_up(rounds, "completed", 4);
    ck_assert_int_eq(kedge("job watch long --state %s", at("state")), 0);
    ck_assert_uint_eq(count_lines("", 1), rounds); /* each once, in order */
    ck_assert_ptr_nonnull(strstr(out, "Job long: completed"));
    atomic_store(&fake.asked, 0);
    ck_assert_int_eq(kedge("job watch long --format json --state %s", at("state")), 0);
    ck_assert_uint_eq(json_array_size(json_object_get(data_of(&root), "history")), rounds);
    json_decref(root);
    tear_down();
}
END_TEST

/* All pages, and what was made last comes last. */
START_TEST(test_list_in_pages)
{
    json_t *root;
    set_up(0, "completed", 0);
    fake.jobs = lengths[_i];
    ck_assert_int_eq(kedge("job list --format json --state %s", at("state")), 0);
    const json_t *jobs = json_object_get(data_of(&root), "jobs");
    ck_assert_uint_eq(json_array_size(jobs), lengths[_i]);
    for (uint32_t i = 0; i < lengths[_i]; i++) {
        char name[32];
        snprintf(name, sizeof name, "job-%04u", lengths[_i] - 1 - i);
        ck_assert_str_eq(json_string_value(json_object_get(json_array_get(jobs, i), "job")), name);
    }
    json_decref(root);
    tear_down();
}
END_TEST

/* A coordinator that tells of a next page without end is left. */
START_TEST(test_endless_pages)
{
    set_up(600, "completed", 0);
    fake.jobs = 1500;
    fake.stuck = true;
    ck_assert_int_ne(kedge("job list --state %s", at("state")), 0);
    ck_assert_ptr_nonnull(strstr(err_out, "same jobs again"));
    ck_assert_int_ne(kedge("job logs long --from 5 --state %s", at("state")), 0);
    ck_assert_ptr_nonnull(strstr(err_out, "same rounds again"));
    ck_assert_int_ne(kedge("job watch long --state %s", at("state")), 0);
    ck_assert_ptr_nonnull(strstr(err_out, "same rounds again"));
    tear_down();
}
END_TEST

START_TEST(test_wait)
{
    json_t *root;
    set_up(600, "completed", 3);
    ck_assert_int_eq(kedge("job wait long --format json --state %s", at("state")), 0);
    ck_assert_str_eq(json_string_value(json_object_get(data_of(&root), "state")), "completed");
    json_decref(root);
    ck_assert_uint_eq(atomic_load(&fake.last_from), UINT32_MAX); /* asks for no rounds */
    fake.end_state = "failed";
    ck_assert_int_eq(kedge("job wait long --state %s", at("state")), 1);
    fake.asked_until = -1;
    ck_assert_int_eq(kedge("job wait long --timeout 1 --state %s", at("state")), 3);
    ck_assert_ptr_nonnull(strstr(err_out, "has not ended within 1 seconds"));
    ck_assert_ptr_nonnull(strstr(err_out, "kedge job watch long"));
    tear_down();
}
END_TEST

/* Ctrl-C ends the watching, not the job, and says how to go on. */
static const struct {
    const char *line;
    int signal, code;
    const char *said;
} interrupts[] = {
    {"job watch long", SIGINT, 130, "again: kedge job watch long"},
    {"job wait long", SIGINT, 130, "again: kedge job wait long"},
    {"job wait long", SIGTERM, 143, "the job goes on"},
};

START_TEST(test_interrupt)
{
    struct kedge_process p;
    json_t *root;
    set_up(3, "completed", -1);
    kedge_begin(&p, "%s --format json --state %s", interrupts[_i].line, at("state"));
    for (int i = 0; i < 20000 && atomic_load(&fake.asked) < 2; i++) {
        kedge_os_sleep_ms(1);
    }
    ck_assert_int_ge(atomic_load(&fake.asked), 2);
    ck_assert_int_eq(kill(p.pid, interrupts[_i].signal), 0);
    ck_assert_int_eq(kedge_end(&p), interrupts[_i].code);
    ck_assert_msg(strstr(err_out, interrupts[_i].said) != NULL, "%s", err_out);
    const json_t *e = error_of(&root);
    ck_assert_str_eq(json_string_value(json_object_get(e, "code")), "CANCELLED");
    ck_assert_int_eq(json_integer_value(json_object_get(e, "exit_code")), interrupts[_i].code);
    json_decref(root);
    tear_down();
}
END_TEST

/* A bar is drawn over itself on a terminal, and nowhere else. */
static const struct {
    const char *terminal; /* TERM; NULL: stderr is a file */
    bool draws;
    unsigned short columns; /* that the terminal says, 0: none */
    const char *variable;   /* COLUMNS */
    const char *shows;
} screens[] = {
    {"xterm", true, 0, NULL, "["},
    {"xterm", true, 100, "40", "[########################]"},
    {"xterm", true, 40, NULL, "long 3/3 comp"},
    {"xterm", true, 0, "40", "long 3/3 comp"},
    {"xterm", true, 12, NULL, "long 3/3"},
    {"xterm", true, 1, NULL, ""},
    {"dumb", false, 0, NULL, NULL},
    {"", false, 0, NULL, NULL},
    {NULL, false, 0, NULL, NULL},
};

/* Each time it is drawn the line fits the screen, so that the next one covers it. */
static void check_lines(const char *said, size_t columns)
{
    size_t lines = 0;
    for (const char *line = said; (line = strstr(line, "\r\033[K")) != NULL; lines++) {
        line += strlen("\r\033[K");
        ck_assert_msg(strcspn(line, "\r\n\033") < columns, "%zu columns: %s", columns, line);
    }
    ck_assert_uint_gt(lines, 2);
}

START_TEST(test_progress)
{
    char said[8192];
    size_t len = 0;
    set_up(3, "completed", 4);
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    ck_assert(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
    int slave = open(ptsname(master), O_RDWR | O_NOCTTY); /* or what was written is lost when kedge ends */
    struct winsize size = {.ws_row = 10, .ws_col = screens[_i].columns};
    ck_assert_int_eq(ioctl(master, TIOCSWINSZ, &size), 0);
    ck_assert_int_eq(setenv("NO_COLOR", "1", 1), 0);
    if (screens[_i].variable) {
        ck_assert_int_eq(setenv("COLUMNS", screens[_i].variable, 1), 0);
    } else {
        ck_assert_int_eq(unsetenv("COLUMNS"), 0);
    }
    ck_assert_int_ge(slave, 0);
    if (screens[_i].terminal) {
        ck_assert_int_eq(setenv("TERM", screens[_i].terminal, 1), 0);
        stderr_to = ptsname(master);
    }
    ck_assert_int_eq(kedge("job watch long --state %s", at("state")), 0);
    struct pollfd waits = {.fd = master, .events = POLLIN};
    while (len + 1 < sizeof said && poll(&waits, 1, 100) == 1) {
        ssize_t got = read(master, said + len, sizeof said - 1 - len);
        ck_assert_int_gt(got, 0);
        len += (size_t)got;
    }
    said[len] = '\0';
    stderr_to = NULL;
    ck_assert_int_eq(strchr(said, '\033') != NULL, screens[_i].draws);
    if (screens[_i].draws) {
        size_t columns = screens[_i].variable && !size.ws_col ? 40 : size.ws_col ? size.ws_col : 80;
        check_lines(said, columns);
        ck_assert_msg(strstr(said, screens[_i].shows) != NULL, "%s", said);
    }
    ck_assert_ptr_null(strstr(said, "\033[3")); /* no colours */
    ck_assert_ptr_null(strstr(err_out, "\033"));
    ck_assert_ptr_null(strstr(out, "\033"));
    close(slave);
    close(master);
    tear_down();
}
END_TEST

/* What the coordinator answers is an answer: 1 what it does not know or cannot do, 2 what it finds wrong, 4
 * what it refuses; only its troubles are 3. */
static const struct {
    int refuse, code;
} refusals[] = {
    {KEDGE_E_NOT_FOUND, 1}, {KEDGE_E_NO_JOB, 1}, {KEDGE_E_EXISTS, 1},  {KEDGE_E_STATE, 1},
    {KEDGE_E_DENIED, 4},    {KEDGE_E_ARG, 2},    {KEDGE_E_BUSY, 3},    {KEDGE_E_DISK_FULL, 3},
    {KEDGE_E_FULL, 3},      {KEDGE_E_BUG, 70},   {KEDGE_E_CORRUPT, 5},
};
static const char *const questions[] = {
    "status",          "tenant list",          "site list",
    "site list org-z", "site enroll org-z s1", "job list",
    "job show j",      "job logs j",           "job model j --out %s",
    "job stop j",      "job stop j --cancel",  "job resume j",
    "audit trust",
};

START_TEST(test_refusals)
{
    json_t *root;
    set_up(0, "completed", 0);
    fake.refuse = refusals[_i].refuse;
    const size_t every = refusals[_i].refuse == KEDGE_E_BUSY ? 6 : 1; /* asked again for two seconds each */
    for (size_t q = 0; q < sizeof questions / sizeof questions[0]; q += every) {
        char line[LINE_LEN];
        bool with_folder = strstr(questions[q], "--out") != NULL;
        snprintf(line, sizeof line, "%.*s%s", (int)strcspn(questions[q], "%"), questions[q],
                 with_folder ? at("models") : "");
        int code = kedge("%s --format json --state %s", line, at("state"));
        ck_assert_msg(code == refusals[_i].code, "kedge %s, %s: exit %d", line,
                      kedge_err_code(refusals[_i].refuse), code);
        const json_t *e = error_of(&root);
        ck_assert_str_eq(json_string_value(json_object_get(e, "code")), kedge_err_code(refusals[_i].refuse));
        ck_assert_int_eq(json_integer_value(json_object_get(e, "exit_code")), code);
        ck_assert_uint_gt(strlen(json_string_value(json_object_get(e, "hint"))), 0);
        json_decref(root);
    }
    tear_down();
}
END_TEST

/* A key that was made for a tenant that there is already is nobody's; one whose fate is open is kept. */
START_TEST(test_key_of_a_refused_tenant)
{
    set_up(0, "completed", 0);
    fake.refuse = KEDGE_E_EXISTS;
    ck_assert_int_eq(kedge("tenant add org-a --admin-key %s --state %s", at("new.pem"), at("state")), 1);
    ck_assert(!kedge_file_exists(at("new.pem")));
    fake.refuse = KEDGE_E_BUSY;
    ck_assert_int_eq(kedge("tenant add org-a --admin-key %s --state %s", at("new.pem"), at("state")), 3);
    ck_assert(kedge_file_exists(at("new.pem")));
    fake.refuse = KEDGE_E_EXISTS; /* nor is one touched that was there before */
    ck_assert_int_eq(kedge("tenant add org-a --admin-key %s --state %s", at("new.pem"), at("state")), 1);
    ck_assert(kedge_file_exists(at("new.pem")));
    tear_down();
}
END_TEST

/* A spec that is fine here, refused there: wrong is usage, unknown tenants are a no. */
START_TEST(test_submit)
{
    set_up(0, "completed", 0);
    fake.receipt = FAKE_SHOWS_ERROR;
    put_file(at("spec.json"), "{\"name\":\"j\",\"tenants\":[\"org-z\"],\"data\":\"d\",\"rounds\":1,"
                              "\"model\":{\"preset\":\"mclr\",\"inputs\":4,\"classes\":3}}");
    fake.refuse = KEDGE_E_NOT_FOUND;
    ck_assert_int_eq(kedge("job submit %s --state %s", at("spec.json"), at("state")), 1);
    fake.refuse = KEDGE_E_FORMAT;
    ck_assert_int_eq(kedge("job submit %s --state %s", at("spec.json"), at("state")), 2);
    fake.refuse = KEDGE_E_DENIED;
    ck_assert_int_eq(kedge("job submit %s --state %s", at("spec.json"), at("state")), 4);
    fake.refuse = KEDGE_OK;
    fake.answer = "{\"job\":\"j\",\"state\":\"queued\",\"spec\":\"00\"}";
    ck_assert_int_eq(kedge("job submit %s --state %s", at("spec.json"), at("state")), 0);
    ck_assert_ptr_nonnull(strstr(out, "kedge job join j TENANT"));
    ck_assert_ptr_null(strstr(out, "so far"));
    put_file(at("spec.json"),
             "{\"name\":\"j\",\"tenants\":[\"org-z\"],\"data\":\"d\",\"rounds\":1,"
             "\"sites_per_round\":3,\"model\":{\"preset\":\"mclr\",\"inputs\":4,\"classes\":3}}");
    fake.answer =
        "{\"job\":\"j\",\"state\":\"queued\",\"spec\":\"00\",\"sites\":[{\"tenant\":\"org-z\",\"state\":"
        "\"active\"},{\"tenant\":\"org-z\",\"state\":\"revoked\"},{\"tenant\":\"org-a\",\"state\":\"active\"}"
        "]}";
    ck_assert_int_eq(kedge("job submit %s --state %s", at("spec.json"), at("state")), 0);
    ck_assert_ptr_nonnull(strstr(out, "\"sites_per_round\" is 3, but the job's tenants have 1 sites so far"));
    tear_down();
}
END_TEST

/* Names of 63 characters: tables still fit 100 columns, and JSON has them whole. */
#define LONG_NAME "a23456789-123456789-123456789-123456789-123456789-123456789-123"

static const struct {
    const char *line, *answer;
} tables[] = {
    {"tenant list",
     "{\"tenants\":[{\"tenant\":\"" LONG_NAME "\",\"sites\":12,\"ledger_size\":123456789,\"origin\":"
     "\"fl.example.org/" LONG_NAME "\",\"admin_key\":\"0123456789abcdef0123456789abcdef\"}]}"},
    {"site list",
     "{\"sites\":[{\"tenant\":\"" LONG_NAME "\",\"site\":\"" LONG_NAME "\",\"state\":\"revoked\","
     "\"last_seen_ms\":1700000000000,\"statement_key\":\"0123456789abcdef0123456789abcdef\"}]}"},
    {"job list",
     "{\"jobs\":[{\"job\":\"" LONG_NAME "\",\"state\":\"completed\",\"round\":1000000,\"rounds\":1000000,"
     "\"sites_online\":4096,\"reason\":\"TIMEOUT\"}]}"},
};

START_TEST(test_tables)
{
    json_t *root;
    set_up(0, "completed", 0);
    fake.answer = tables[_i].answer;
    ck_assert_int_eq(kedge("%s --state %s", tables[_i].line, at("state")), 0);
    ck_assert_ptr_nonnull(strstr(out, "…"));
    for (const char *line = out; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        size_t columns = 0;
        for (const char *c = line; *c && *c != '\n'; c++) {
            columns += ((unsigned char)*c & 0xc0) != 0x80;
        }
        ck_assert_msg(columns <= 100, "%zu columns: %.200s", columns, line);
    }
    ck_assert_int_eq(kedge("%s --format json --state %s", tables[_i].line, at("state")), 0);
    ck_assert_ptr_nonnull(strstr(out, LONG_NAME));
    json_decref((data_of(&root), root));
    tear_down();
}
END_TEST

/* ---- words ---- */

#define ROW(job, state, closed, created, more)                       \
    "{\"job\":\"" job "\",\"state\":\"" state "\",\"round\":" closed \
    ",\"rounds\":10,\"created_ms\":" created more "}"

/* What people look for: dates, progress, how many sites are there, why one failed; the newest last. */
START_TEST(test_list_words)
{
    static const char head[] =
        "job                       state            rounds  online  submitted          reason\n";
    static const char wine[] =
        "wine                      failed             2/10       -  2023-11-14 22:13Z  TIMEOUT\n";
    static const char cells[] =
        "cells                     training           2/10       3  2023-11-16 02:00Z\n";
    static const struct {
        const char *options;
        const char *rows[2];
    } lists[] = {{"", {wine, cells}},
                 {" --state-is active", {cells, ""}},
                 {" --state-is ended", {wine, ""}},
                 {" --state-is failed", {wine, ""}},
                 {" --name c*s", {cells, ""}},
                 {" --newest 1", {cells, ""}},
                 {" --newest 2", {wine, cells}},
                 {" --state-is completed", {"", ""}}};
    char expected[512];
    set_up(0, "completed", 0);
    fake.answer = "{\"jobs\":[" ROW(
        "cells", "training", "3", "1700100000000",
        ",\"sites_online\":3,\"round_open\":true") "," ROW("wine", "failed", "2", "1700000000000",
                                                           ",\"reason\":\"TIMEOUT\"") "]}";
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        snprintf(expected, sizeof expected, "%s%s%s", head, lists[i].rows[0], lists[i].rows[1]);
        ck_assert_int_eq(kedge("job list --state %s%s", at("state"), lists[i].options), 0);
        ck_assert_str_eq(out, expected);
    }
    ck_assert_int_eq(kedge("job list --state-is compelted --state %s", at("state")), 2);
    ck_assert_ptr_nonnull(strstr(err_out,
                                 "--state-is compelted: expected active, ended or a state; did you mean "
                                 "completed?"));
    static const struct {
        const char *options, *said;
    } wrong[] = {{"--since yesterday", "--since yesterday: expected a day such as"},
                 {"--since 2026-02-30", "--since 2026-02-30: expected a day"},
                 {"--limit 0", "--limit 0: expected a whole number from 1"},
                 {"--after A", "--after A: expected a name"},
                 {"--tenant a/b", "--tenant a/b: expected a name"},
                 {"--newest 3 --limit 2", "--newest looks at all jobs"}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        ck_assert_int_eq(kedge("job list %s --state %s", wrong[i].options, at("state")), 2);
        ck_assert_msg(strstr(err_out, wrong[i].said) != NULL, "%s: %s", wrong[i].options, err_out);
    }
    tear_down();
}
END_TEST

/* A page in the order of names, and how to go on. */
START_TEST(test_list_page)
{
    set_up(0, "completed", 0);
    fake.answer = "{\"jobs\":[" ROW("cells", "training", "3", "1700100000000", "") "," ROW(
        "wine", "failed", "2", "1700000000000", "") "],\"next\":\"zebra\"}";
    ck_assert_int_eq(kedge("job list --limit 1 --state %s", at("state")), 0);
    ck_assert(strstr(out, "cells") && !strstr(out, "wine") && strstr(out, "More: --after cells\n"));
    ck_assert_int_eq(kedge("job list --limit 2 --after aaa --state %s", at("state")), 0);
    ck_assert(strstr(out, "cells") < strstr(out, "wine") && strstr(out, "More: --after wine\n"));
    ck_assert_int_ne(kedge("job list --limit 3 --state %s", at("state")), 0); /* the same page for ever */
    ck_assert_ptr_nonnull(strstr(err_out, "again and again"));
    tear_down();
}
END_TEST

/* How long a reader's token is good for, as people say it; the token alone is on stdout. */
START_TEST(test_spans)
{
    static const struct {
        const char *option, *said;
    } spans[] = {{" --ttl 3600", " for an hour; to end it before:\n  kedge reader revoke abc\n"},
                 {" --ttl 7200", " for 2 hours; to end it before:"},
                 {" --ttl 86400", " for a day; to end it before:"},
                 {" --ttl 60", " for a minute; to end it before:"},
                 {" --ttl 90", " for 90 seconds; to end it before:"},
                 {" --ttl 1", " for 1 second; to end it before:"},
                 {"", " for 90 days; to end it before:"}};
    set_up(0, "completed", 0);
    fake.answer = "{\"token\":\"kedge-read-1.00\",\"name\":\"abc\"}";
    for (size_t i = 0; i < sizeof spans / sizeof spans[0]; i++) {
        ck_assert_int_eq(kedge("reader add acme --state %s%s", at("state"), spans[i].option), 0);
        ck_assert_str_eq(out, "kedge-read-1.00\n");
        ck_assert_msg(strstr(err_out, spans[i].said) != NULL, "%s", err_out);
    }
    tear_down();
}
END_TEST

/* Files need no "./": what is read and what is made lies where one stands. */
START_TEST(test_bare_names)
{
    static const char *const lines[] = {
        "init other",
        "key public log.pem",
        "reader add acme --out reader.token --state state",
        "site enroll acme s1 --out site.token --state state",
        "job list --receipts receipts --state state",
        "ledger tiles main --out tiles --state other",
    };
    static const char *const made[] = {"other", "reader.token", "site.token", "tiles"};
    char before[KEDGE_PATH_MAX];
    set_up(0, "completed", 0);
    fake.answer = "{\"token\":\"kedge-read-1.00\",\"name\":\"abc\",\"jobs\":[],\"trust\":{}}";
    put_file(at("spec.json"), "{\"name\":\"j\"}");
    ck_assert(getcwd(before, sizeof before) && chdir(scratch) == 0);
    ck_assert_int_eq(link("state/keys/log-main.pem", "log.pem"), 0);
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        int code = kedge("%s", lines[i]);
        ck_assert_msg(code == 0, "kedge %s: exit %d: %s", lines[i], code, err_out);
    }
    for (size_t i = 0; i < sizeof made / sizeof made[0]; i++) {
        ck_assert_msg(kedge_file_exists(at(made[i])), "%s", made[i]);
    }
    ck_assert_int_eq(kedge("job submit spec.json --state state"), 2);
    ck_assert_msg(strstr(err_out, "kedge: spec.json: job spec: \"tenants\" is missing") != NULL, "%s",
                  err_out);
    ck_assert_int_eq(chdir(before), 0);
    tear_down();
}
END_TEST

/* What a killed coordinator leaves of its door: a name at which nobody answers. */
static void leave_door(void)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    ck_assert_int_lt(snprintf(a.sun_path, sizeof a.sun_path, "%s", at("state/coordinator.ipc")),
                     (int)sizeof a.sun_path);
    ck_assert(fd >= 0 && bind(fd, (struct sockaddr *)&a, sizeof a) == 0);
    close(fd);
}

/* A start may take long: while a coordinator holds the lock of its store, a command waits for its door, be
 * there none yet or a dead one. It has waited longer than for a coordinator that is not there. */
START_TEST(test_waits_for_a_start)
{
    struct kedge_process p;
    make_scratch();
    fake = (struct fake){.end_state = "completed"};
    ck_assert_int_eq(kedge("init %s", at("state")), 0);
    ck_assert_int_eq(kedge_dir_make(at("state/coordinator.lmdb"), 0700, NULL), KEDGE_OK);
    if (_i == 1) {
        leave_door();
    }
    int lock = kedge_file_lock(at("state/coordinator.lmdb/kedge.lock"), NULL);
    ck_assert_int_ge(lock, 0);
    kedge_begin(&p, "job list --state %s", at("state"));
    kedge_os_sleep_ms(3500);
    fake_open(&fake);
    int code = kedge_end(&p);
    ck_assert_msg(code == 0, "exit %d: %s", code, err_out);
    close(lock);
    tear_down();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cli job");
    TCase *t = tcase_create("job");
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, test_logs_in_pages, 0, sizeof lengths / sizeof lengths[0]);
    tcase_add_loop_test(t, test_watch_in_pages, 0, sizeof lengths / sizeof lengths[0]);
    tcase_add_loop_test(t, test_list_in_pages, 0, sizeof lengths / sizeof lengths[0]);
    tcase_add_test(t, test_endless_pages);
    tcase_add_test(t, test_wait);
    tcase_add_loop_test(t, test_interrupt, 0, sizeof interrupts / sizeof interrupts[0]);
    tcase_add_loop_test(t, test_progress, 0, sizeof screens / sizeof screens[0]);
    tcase_add_loop_test(t, test_refusals, 0, sizeof refusals / sizeof refusals[0]);
    tcase_add_test(t, test_key_of_a_refused_tenant);
    tcase_add_test(t, test_submit);
    tcase_add_loop_test(t, test_waits_for_a_start, 0, 2);
    tcase_add_loop_test(t, test_tables, 0, sizeof tables / sizeof tables[0]);
    tcase_add_test(t, test_list_words);
    tcase_add_test(t, test_list_page);
    tcase_add_test(t, test_spans);
    tcase_add_test(t, test_bare_names);
    suite_add_tcase(s, t);
    return run_suite(s);
}
