/* Files and answers that are not what they should be, for every reader of the command line: a clear error
 * that names them, the code that docs/cli.md says, and neither a hang nor a crash. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/mem.h"
#include "common/base/os/file.h"
#include "common/base/text.h"
#include "tests/fixtures/run.h"
#include "tests/unit/cli/fake.h"
#include "tests/unit/cli/support.h"

enum { DEEP = 3000, NOT_DEEP_ENOUGH_FOR_JANSSON = 100 };

/* {"a":[[[…]]]}, valid JSON. */
static void put_nested(const char *path, size_t levels)
{
    struct kedge_buf text;
    kedge_buf_init(&text, 1 << 20);
    kedge_buf_put_str(&text, "{\"a\":");
    for (size_t i = 0; i < 2 * levels; i++) {
        kedge_buf_put_u8(&text, i < levels ? '[' : ']');
    }
    kedge_buf_put_str(&text, "}");
    ck_assert_int_eq(text.err, KEDGE_OK);
    ck_assert_int_eq(kedge_file_write(path, kedge_buf_view(&text), 0600, NULL), KEDGE_OK);
    kedge_buf_deinit(&text);
}

/* Where a file stands, the command that reads it (of words with an @ the rest is below the scratch folder),
 * and the code when the file is none. */
static const struct {
    const char *file, *words[6];
    int code;
} readers[] = {
    {"f", {"job", "submit", "@f", "--state", "@state"}, 2},
    {"f", {"sim", "@f"}, 2},
    {"f", {"audit", "verify", "@state", "--trust", "@f"}, 3},
    {"state/config.json", {"audit", "verify", "@state"}, 1},
    {"state/config.json", {"ledger", "list", "--state", "@state"}, 3},
    {"state/config.json", {"ledger", "show", "main", "--state", "@state"}, 3},
    {"state/config.json", {"doctor", "@state"}, 1},
    {"site/site.json", {"doctor", "@site"}, 1},
    {"site/policy.json", {"doctor", "@site"}, 1},
    {"poc/poc.json", {"poc", "@poc"}, 3},
};
enum { READERS = sizeof readers / sizeof readers[0] };

static int read_it(size_t i)
{
    char line[LINE_LEN] = "";
    for (size_t w = 0; w < 6 && readers[i].words[w]; w++) {
        const char *word = readers[i].words[w];
        size_t used = strlen(line);
        snprintf(line + used, sizeof line - used, "%s%s", w ? " " : "", word[0] == '@' ? at(word + 1) : word);
    }
    return kedge("%s", line);
}

static void make_folders(void)
{
    make_scratch();
    ck_assert_int_eq(kedge("init %s", at("state")), 0);
    ck_assert_int_eq(mkdir(at("site"), 0700), 0);
    ck_assert_int_eq(mkdir(at("poc"), 0700), 0);
    put_file(at("site/site.json"), "{}");
}

START_TEST(test_nested)
{
    static const size_t depths[] = {DEEP, NOT_DEEP_ENOUGH_FOR_JANSSON};
    for (size_t d = 0; d < 2; d++) {
        make_folders();
        put_nested(at(readers[_i].file), depths[d]);
        int code = read_it((size_t)_i);
        ck_assert_msg(code == readers[_i].code, "%s: exit %d; %s%s", readers[_i].words[0], code, out,
                      err_out);
        const char *said = strstr(out, "nested deeper than 16 levels");
        said = said ? said : strstr(err_out, "nested deeper than 16 levels");
        ck_assert_msg(said != NULL, "%s: %s%s", readers[_i].words[0], out, err_out);
        remove_scratch();
    }
}
END_TEST

static const struct {
    const char *text, *said;
} contents[] = {
    {"", "empty"},
    {" \n", "empty"},
    {"[]", "expected a JSON object"},
    {"{\"a\":1,\"a\":2}", "duplicate"},
    {"{\"a\":\"\x80\"}", "not valid JSON"},
    {"\x7f"
     "ELF",
     "not valid JSON"},
};

START_TEST(test_contents)
{
    for (size_t k = 0; k < sizeof contents / sizeof contents[0]; k++) {
        make_folders();
        put_file(at(readers[_i].file), contents[k].text);
        int code = read_it((size_t)_i);
        ck_assert_msg(code == readers[_i].code, "%s: exit %d; %s%s", readers[_i].words[0], code, out,
                      err_out);
        ck_assert_msg(strstr(out, contents[k].said) || strstr(err_out, contents[k].said), "%s: %s%s",
                      readers[_i].words[0], out, err_out);
        const char *name =
            strrchr(readers[_i].file, '/') ? strrchr(readers[_i].file, '/') + 1 : readers[_i].file;
        ck_assert_msg(strstr(out, name) || strstr(err_out, name), "%s names no file: %s%s",
                      readers[_i].words[0], out, err_out);
        remove_scratch();
    }
}
END_TEST

START_TEST(test_folder_and_too_long)
{
    make_folders();
    (void)remove(at(readers[_i].file));
    ck_assert_int_eq(mkdir(at(readers[_i].file), 0700), 0);
    int code = read_it((size_t)_i), expected = readers[_i].code == 2 ? 3 : readers[_i].code;
    ck_assert_msg(code == expected, "%s: exit %d; %s%s", readers[_i].words[0], code, out, err_out);
    ck_assert_msg(strstr(out, "directory") || strstr(err_out, "directory"), "%s", err_out);
    remove_scratch();
    make_folders();
    char *big = kedge_mem_new(2 << 20, 1);
    ck_assert_ptr_nonnull(big);
    memset(big, ' ', (2 << 20) - 1);
    put_file(at(readers[_i].file), big);
    kedge_mem_free(big);
    code = read_it((size_t)_i);
    ck_assert_msg(code == readers[_i].code, "%s: exit %d; %s%s", readers[_i].words[0], code, out, err_out);
    ck_assert_msg(strstr(out, "longer than") || strstr(err_out, "longer than"), "%s%s", out, err_out);
    remove_scratch();
}
END_TEST

/* Keys: no file of keys, whatever it is, is an answer. */
START_TEST(test_keys)
{
    static const char *const lines[] = {"tenant add a --admin-key %s", "site approve a b --admin-key %s",
                                        "job join j a --admin-key %s"};
    make_scratch();
    put_file(at("garbage"), "\x7f"
                            "ELF");
    put_file(at("empty"), "");
    ck_assert_int_eq(chmod(at("garbage"), 0600) + chmod(at("empty"), 0600), 0);
    ck_assert_int_eq(mkdir(at("folder"), 0700), 0);
    static const char *const files[] = {"garbage", "empty", "folder"};
    for (size_t i = 0; i < 3; i++) {
        char line[LINE_LEN];
        snprintf(line, sizeof line, "%.*s%s", (int)strcspn(lines[_i], "%"), lines[_i], at(files[i]));
        ck_assert_int_eq(kedge("%s --state %s", line, at("none")), 3);
        ck_assert_ptr_nonnull(strstr(err_out, at(files[i])));
        ck_assert_ptr_nonnull(strstr(err_out, "private key"));
    }
    remove_scratch();
}
END_TEST

/* A coordinator's answer is somebody else's text, too. */
START_TEST(test_answers)
{
    static const char *const lines[] = {"status", "tenant list", "job list", "job show j", "audit trust"};
    struct fake fake = {.answer = "{\"jobs\":[{\"job\":\"\\u001b[2Jj\",\"state\":\"\\u009b2Jx\\u202ey\"}]}"};
    make_scratch();
    fake_open(&fake);
    ck_assert_int_eq(kedge("job list --state %s", at("state")), 0);
    ck_assert_ptr_nonnull(strstr(out, "\\x1b[2Jj")); /* and the terminal keeps what it shows */
    ck_assert_ptr_nonnull(strstr(out, "\\u009b2Jx\\u202ey"));
    ck_assert(kedge_text_is_plain_lines(kedge_view_str(out)));
    ck_assert_int_eq(kedge("job list --format json --state %s", at("state")), 0);
    ck_assert(strstr(out, "\\u009B2Jx\\u202Ey") && kedge_text_is_plain_lines(kedge_view_str(out)));
    ck_assert_ptr_null(strchr(out, '\033'));
    char nested[2 * NOT_DEEP_ENOUGH_FOR_JANSSON + 8];
    snprintf(nested, sizeof nested, "{\"a\":%0*d}", 2 * NOT_DEEP_ENOUGH_FOR_JANSSON, 0);
    for (char *c = strchr(nested, '0'), *half = c + NOT_DEEP_ENOUGH_FOR_JANSSON; *c == '0'; c++) {
        *c = c < half ? '[' : ']';
    }
    fake.answer = nested;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        ck_assert_int_eq(kedge("%s --state %s", lines[i], at("state")), 3);
        ck_assert_ptr_nonnull(strstr(err_out, "answer of the coordinator: nested deeper than 16 levels"));
    }
    fake_close();
    remove_scratch();
}
END_TEST

/* What stands beside an answer, or in a file that a browser opens, is somebody else's text as well. */
START_TEST(test_beside_answers)
{
    static const char *const bad_tokens[] = {"", "a\\u001b[2Jb", "a\\u202eb", "a b", "a\\nb", "\\u009bx"};
    struct fake fake = {.answer = NULL};
    char answer[1024];
    make_scratch();
    fake_open(&fake);
    for (size_t i = 0; i < sizeof bad_tokens / sizeof bad_tokens[0]; i++) {
        snprintf(answer, sizeof answer, "{\"token\":\"%s\"}", bad_tokens[i]);
        fake.answer = answer;
        ck_assert_int_eq(kedge("reader add --auditor --state %s", at("state")), 3);
        ck_assert_str_eq(out, "");
        ck_assert_int_eq(kedge("site enroll acme s1 --out %s --state %s", at("token"), at("state")), 3);
        ck_assert(!kedge_file_exists(at("token")));
    }
    fake.answer = "{\"token\":\"good\",\"name\":\"\\u009b2Jx\\u202ey\"}";
    ck_assert_int_eq(kedge("reader add --auditor --state %s", at("state")), 0);
    ck_assert_str_eq(out, "good\n");
    ck_assert_ptr_nonnull(strstr(err_out, "revoke \\u009b2Jx\\u202ey"));
    fake.answer = "{\"deployment\":\"\\u202ed\",\"statement_key\":\"\\u001b[8mk\\u007f\",\"tenants\":"
                  "[{\"tenant\":\"\\u2028t\",\"admin_key\":\"\\u009bk\"}]}";
    ck_assert_int_eq(kedge("audit trust --state %s", at("state")), 0);
    ck_assert_ptr_nonnull(strstr(err_out, "statement key of \\u202ed: \\x1b[8mk\\x7f"));
    ck_assert_ptr_nonnull(strstr(err_out, "admin key of \\u2028t: \\u009bk"));
    ck_assert(kedge_text_is_plain_lines(kedge_view_str(err_out)));
    ck_assert(kedge_text_is_plain_lines(kedge_view_str(out)));
    fake.answer =
        "{\"job\":\"<script>\",\"groups\":[{\"group\":0,\"sites\":1}],\"sites\":[{\"tenant\":\"a&b\","
        "\"site\":\"</title>\",\"how\":\"\\u202e\\\"\",\"update\":\"placed\"}]}";
    ck_assert_int_eq(kedge("job groups j --svg %s --state %s", at("j.svg"), at("state")), 0);
    ck_assert(has_text(at("j.svg"), "Groups of job &#60;script&#62; after round"));
    ck_assert(has_text(at("j.svg"),
                       "<title>a&#38;b/&#60;/title&#62;: group 0 since round 0 (\\u202e&#34;)</title>"));
    fake_close();
    remove_scratch();
}
END_TEST

/* Sites whose updates are alike lie at one place: in the picture each has its own, and none lies on a
 * diamond. */
START_TEST(test_dots_lie_apart)
{
    enum { SITES = 60 };
    static char answer[SITES * 128];
    struct fake fake = {.answer = answer};
    struct kedge_buf svg;
    double x[SITES + 8], y[SITES + 8];
    size_t n = 0,
           at_byte = (size_t)snprintf(answer, sizeof answer,
                                      "{\"job\":\"j\",\"groups\":[{\"group\":0,\"sites\":%d,\"x\":\"0.5\","
                                      "\"y\":\"0\"}],\"sites\":[",
                                      SITES);
    for (int i = 0; i < SITES; i++) {
        at_byte +=
            (size_t)snprintf(answer + at_byte, sizeof answer - at_byte,
                             "%s{\"tenant\":\"t\",\"site\":\"s%d\",\"update\":\"placed\",\"x\":\"0.5\","
                             "\"y\":\"0\"}",
                             i ? "," : "", i);
    }
    snprintf(answer + at_byte, sizeof answer - at_byte, "]}");
    make_scratch();
    fake_open(&fake);
    ck_assert_int_eq(kedge("job groups j --svg %s --state %s", at("j.svg"), at("state")), 0);
    kedge_buf_init(&svg, 1 << 20);
    ck_assert_int_eq(kedge_file_read(at("j.svg"), &svg, NULL), KEDGE_OK);
    kedge_buf_put_u8(&svg, 0);
    for (const char *c = strstr((const char *)svg.ptr, "<circle cx"); c; c = strstr(c + 1, "<circle cx")) {
        ck_assert_uint_lt(n, SITES + 8);
        char *end;
        x[n] = strtod(c + strlen("<circle cx=\""), &end);
        ck_assert_int_eq(strncmp(end, "\" cy=\"", 6), 0);
        y[n] = strtod(end + 6, NULL);
        for (size_t i = 0; i < n; i++) {
            ck_assert_double_gt((x[n] - x[i]) * (x[n] - x[i]) + (y[n] - y[i]) * (y[n] - y[i]), 100);
        }
        n++;
    }
    ck_assert_uint_eq(n, SITES + 1); /* and one in the legend */
    ck_assert(has_text(at("j.svg"), "60 dots are moved aside"));
    ck_assert(has_text(at("j.svg"), "prefers-color-scheme:dark"));
    kedge_buf_deinit(&svg);
    fake_close();
    remove_scratch();
}
END_TEST

/* Words of any length: what is cut says so, and what was expected is there all the same. */
START_TEST(test_long_words)
{
    static const struct {
        const char *line;
        int code;
        const char *said;
    } rows[] = {
        {"job logs j --from", 2, "…: expected a whole number"},
        {"job list", 2, "argument too many: \""},
        {"--format", 2, "…: expected json or text"},
        {"nonsense", 2, "unknown command"},
        {"audit replay d --simd", 2, "…: expected scalar"},
        {"poc d --mixing", 2, "…: expected a number"},
        {"poc d --partition", 2, "…: expected iid"},
        {"poc d --dataset", 3, "./scripts/get-data"},
        {"job", 2, "kedge job -h lists its verbs"},
        {"poc", 2, "its whole path is longer than 85 bytes"},
    };
    char word[1001];
    make_scratch();
    memset(word, 'x', sizeof word - 1);
    word[sizeof word - 1] = '\0';
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int code = kedge("%s %s", rows[i].line, word);
        ck_assert_msg(code == rows[i].code, "%s: exit %d; %s", rows[i].line, code, err_out);
        ck_assert_msg(strstr(err_out, rows[i].said) != NULL, "%s", err_out);
    }
    word[500] = '\0'; /* a folder's name stands whole in the message and in what to do */
    ck_assert_int_eq(kedge("status --state /%s", word), 3);
    ck_assert_ptr_nonnull(strstr(err_out, word));
    ck_assert_ptr_nonnull(strstr(strstr(err_out, word) + 1, word));
    ck_assert_ptr_nonnull(strstr(err_out, "; or name another --state\n"));
    remove_scratch();
}
END_TEST

/* What the coordinator is to open is looked at before it is asked. */
START_TEST(test_initial_model)
{
    struct fake fake = {.answer = "{\"job\":\"j\",\"state\":\"queued\",\"spec\":\"00\"}"};
    make_scratch();
    ck_assert_int_eq(kedge("init %s", at("state")), 0);
    fake_open(&fake);
    put_file(at("spec.json"), "{\"name\":\"j\",\"tenants\":[\"a\"],\"data\":\"d\",\"rounds\":1,"
                              "\"model\":{\"preset\":\"mclr\",\"inputs\":4,\"classes\":3}}");
    ck_assert_int_eq(mkfifo(at("pipe"), 0600) + mkdir(at("folder"), 0700), 0);
    static const char *const wrong[] = {"pipe", "folder", "absent"};
    for (size_t i = 0; i < 3; i++) {
        ck_assert_int_eq(
            kedge("job submit %s --initial-model %s --state %s", at("spec.json"), at(wrong[i]), at("state")),
            3);
        ck_assert_ptr_nonnull(strstr(err_out, at(wrong[i])));
    }
    ck_assert_int_eq(fake.asked, 0);
    fake.receipt = FAKE_SHOWS_ERROR;
    ck_assert_int_eq(
        kedge("job submit %s --initial-model %s --state %s", at("spec.json"), at("spec.json"), at("state")),
        0);
    fake_close();
    remove_scratch();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cli input");
    TCase *t = tcase_create("input");
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, test_nested, 0, READERS);
    tcase_add_loop_test(t, test_contents, 0, READERS);
    tcase_add_loop_test(t, test_folder_and_too_long, 0, READERS);
    tcase_add_loop_test(t, test_keys, 0, 3);
    tcase_add_test(t, test_answers);
    tcase_add_test(t, test_beside_answers);
    tcase_add_test(t, test_dots_lie_apart);
    tcase_add_test(t, test_long_words);
    tcase_add_test(t, test_initial_model);
    suite_add_tcase(s, t);
    return run_suite(s);
}
