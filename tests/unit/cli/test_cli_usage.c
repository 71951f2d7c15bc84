/* The command line as a stranger meets it: every verb with right and wrong words; what it says, how it ends,
 * and that JSON is one object whatever happens. Nothing here needs a coordinator. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/os/file.h"
#include "tests/fixtures/run.h"
#include "tests/unit/cli/support.h"

enum { COMMANDS_MAX = 128, NAME_LEN = 32, WIDTH_MAX = 100 + 4 /* "…" is three bytes */ };

static char names[COMMANDS_MAX][NAME_LEN];
static size_t name_count;

/* The commands that kedge --help lists: a name, two spaces or more, its help. */
static void read_names(void)
{
    name_count = 0;
    ck_assert_int_eq(kedge("--help"), 0);
    for (const char *line = out; line && name_count < COMMANDS_MAX; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, "  kedge ", 8) == 0) {
            const char *name = line + 8, *gap = strstr(name, "  ");
            ck_assert(gap && gap < line + strcspn(line, "\n") && gap - name < NAME_LEN);
            snprintf(names[name_count++], NAME_LEN, "%.*s", (int)(gap - name), name);
        }
    }
    ck_assert_uint_gt(name_count, 20);
    ck_assert_uint_lt(name_count, COMMANDS_MAX);
}

/* Whether the help that was printed last lists a command. */
static bool is_listed(const char *name)
{
    char row[NAME_LEN + 16];
    snprintf(row, sizeof row, "  kedge %s  ", name);
    return strstr(out, row) != NULL;
}

/* The nouns: the first words of names of two. */
static size_t read_nouns(char ret_nouns[COMMANDS_MAX][NAME_LEN])
{
    size_t count = 0;
    for (size_t i = 0; i < name_count; i++) {
        char noun[NAME_LEN];
        snprintf(noun, sizeof noun, "%.*s", (int)strcspn(names[i], " "), names[i]);
        bool is_there = false; /* --help lists a noun's commands under several headings */
        for (size_t n = 0; n < count; n++) {
            is_there = is_there || strcmp(ret_nouns[n], noun) == 0;
        }
        if (strchr(names[i], ' ') && !is_there) {
            memcpy(ret_nouns[count++], noun, sizeof noun);
        }
    }
    return count;
}

/* ---- help ---- */

/* Of the help that JSON has: every argument and option means something, and the example is a command line of
 * this command that has no other options. */
static void check_meanings(const char *name, const json_t *help)
{
    const json_t *options = json_object_get(help, "options"), *o;
    const char *arguments = json_string_value(json_object_get(help, "arguments")),
               *example = json_string_value(json_object_get(help, "example"));
    size_t i, len = strlen(name);
    ck_assert_msg((arguments[0] == '\0') == (json_array_size(options) == 0), "kedge %s %s", name, arguments);
    json_array_foreach(options, i, o)
    {
        const char *word = json_string_value(json_object_get(o, "name"));
        ck_assert_msg(json_string_length(json_object_get(o, "meaning")) > 0, "kedge %s: what is %s?", name,
                      word);
    }
    ck_assert_msg(strncmp(example, "kedge ", 6) == 0 && strncmp(example + 6, name, len) == 0, "%s", example);
    for (const char *at = strstr(example, " --"); at; at = strstr(at + 1, " --")) {
        char option[NAME_LEN];
        snprintf(option, sizeof option, "%.*s", (int)strcspn(at + 1, " "), at + 1);
        bool is_common = strcmp(option, "--state") == 0 || strcmp(option, "--format") == 0;
        ck_assert_msg(is_common || strstr(arguments, option), "kedge %s has no %s", name, option);
    }
}

START_TEST(test_help_of_each)
{
    json_t *root;
    make_scratch();
    read_names();
    for (size_t i = 0; i < name_count; i++) {
        char first[LINE_LEN], usage[LINE_LEN];
        ck_assert_int_eq(kedge("%s -h", names[i]), 0);
        ck_assert(strncmp(out, "Usage: kedge ", 13) == 0);
        ck_assert_ptr_nonnull(strstr(out, "\nExample:\n  kedge "));
        ck_assert_int_eq(err_out[0], '\0');
        snprintf(first, sizeof first, "%.*s", (int)strcspn(out, "\n"), out);
        ck_assert_int_ne(first[strlen(first) - 1], ' ');
        ck_assert_int_eq(kedge("help %s", names[i]), 0);
        ck_assert(strncmp(out, first, strlen(first)) == 0);
        ck_assert_int_eq(kedge("%s --help --format json", names[i]), 0);
        const json_t *help = data_of(&root);
        ck_assert_str_eq(json_string_value(json_object_get(help, "command")), names[i]);
        check_meanings(names[i], help);
        const char *arguments = json_string_value(json_object_get(help, "arguments"));
        snprintf(usage, sizeof usage, "\n  usage: kedge %s%s%s\n", names[i], arguments[0] ? " " : "",
                 arguments);
        json_decref(root);
        ck_assert_int_eq(kedge("%s --zzzzzzzz", names[i]), 2); /* the next step is that usage, whole */
        ck_assert_msg(strstr(err_out, usage), "%s", err_out);
    }
    remove_scratch();
}
END_TEST

START_TEST(test_help_of_nouns)
{
    static char nouns[COMMANDS_MAX][NAME_LEN];
    json_t *root;
    make_scratch();
    read_names();
    size_t noun_count = read_nouns(nouns);
    ck_assert_uint_gt(noun_count, 4);
    for (size_t n = 0; n < noun_count; n++) {
        static const char *const forms[] = {"%s --help", "%s -h", "help %s"};
        for (size_t f = 0; f < 3; f++) {
            char line[NAME_LEN + 16];
            snprintf(line, sizeof line, f == 0 ? "%s --help" : f == 1 ? "%s -h" : "help %s", nouns[n]);
            ck_assert_msg(kedge("%s", line) == 0, "kedge %s", forms[f]);
            for (size_t i = 0; i < name_count; i++) {
                size_t len = strlen(nouns[n]);
                bool of_noun = strncmp(names[i], nouns[n], len) == 0 && names[i][len] == ' ';
                ck_assert_int_eq(is_listed(names[i]), of_noun);
            }
        }
        ck_assert_int_eq(kedge("%s", nouns[n]), 2); /* alone it is not enough */
        ck_assert_int_eq(out[0], '\0');
        ck_assert_ptr_nonnull(strstr(err_out, nouns[n]));
        ck_assert_int_eq(kedge("%s --format json", nouns[n]), 2);
        ck_assert_str_eq(json_string_value(json_object_get(error_of(&root), "code")), "USAGE");
        json_decref(root);
    }
    ck_assert_int_eq(kedge("--help --format json"), 0);
    const json_t *all = json_object_get(data_of(&root), "commands");
    ck_assert_uint_eq(json_array_size(all), name_count);
    json_decref(root);
    ck_assert_int_eq(kedge("--format json"), 2);
    json_decref((error_of(&root), root));
    remove_scratch();
}
END_TEST

/* Lists are also ls. */
START_TEST(test_ls)
{
    make_scratch();
    read_names();
    size_t lists = 0;
    for (size_t i = 0; i < name_count; i++) {
        char *verb = strstr(names[i], " list");
        if (verb) {
            lists++;
            ck_assert_int_eq(kedge("%s -h", names[i]), 0);
            char usage[LINE_LEN];
            snprintf(usage, sizeof usage, "%.*s", (int)strcspn(out, "\n"), out);
            snprintf(verb, 4, " ls");
            ck_assert_int_eq(kedge("%s -h", names[i]), 0);
            ck_assert(strncmp(out, usage, strlen(usage)) == 0);
        }
    }
    ck_assert_uint_gt(lists, 2);
    remove_scratch();
}
END_TEST

/* Tables and help fit 100 columns. */
START_TEST(test_widths)
{
    make_scratch();
    read_names();
    for (size_t i = 0; i <= name_count; i++) {
        ck_assert_int_eq(i < name_count ? kedge("%s --help", names[i]) : kedge("--help"), 0);
        for (const char *line = out; *line; line += strcspn(line, "\n") + (strchr(line, '\n') != NULL)) {
            ck_assert_msg(strcspn(line, "\n") <= WIDTH_MAX, "%.*s", (int)strcspn(line, "\n"), line);
        }
    }
    remove_scratch();
}
END_TEST

/* By who reads: each heading once, in this order, each above a command that its reader looks for. */
START_TEST(test_headings)
{
    static const char *const groups[][2] = {
        {"\n\nStart here:\n  kedge poc ", "\n  kedge doctor "},
        {"\n\nYou operate a federation:\n  kedge init ", "\n  kedge job submit "},
        {"\n\nYou are the admin of an organisation (tenant):\n", "\n  kedge site approve "},
        {"\n\nYour organisation runs a witness:\n", "\n  kedge witness init "},
        {"\n\nYou own a device (most is in kedge-client --help):\n", "\n  kedge site rotate "},
        {"\n\nYou audit a record:\n", "\n  kedge audit verify "},
        {"\n\nYou compare strategies before you train:\n", "\n  kedge sim "},
    };
    make_scratch();
    ck_assert_int_eq(kedge("--help"), 0);
    const char *at_group = out;
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
        const char *head = strstr(at_group, groups[i][0]), *end = head ? strstr(head + 2, "\n\n") : NULL;
        const char *row = head ? strstr(head, groups[i][1]) : NULL;
        ck_assert_msg(head && end && row && row < end, "%s, %s in: %s", groups[i][0], groups[i][1], out);
        at_group = end;
    }
    ck_assert(strncmp(at_group, "\n\nkedge COMMAND -h explains each option", 25) == 0);
    remove_scratch();
}
END_TEST

/* ---- wrong words ---- */

/* Each names what is wrong, and what to do next. */
static const struct {
    const char *line;
    int code;
    const char *said;
} wrong[] = {
    {"jb list", 2, "did you mean kedge job?"},
    {"stauts", 2, "did you mean kedge status?"},
    {"job lst", 2, "did you mean kedge job list?"},
    {"job sumbit x.json", 2, "did you mean kedge job submit?"},
    {"audit verfy", 2, "did you mean kedge audit verify?"},
    {"submit x.json", 2, "did you mean kedge job submit?"},
    {"nonsense", 2, "unknown command \"nonsense\""},
    {"job nonsense", 2, "kedge job -h lists its verbs"},
    {"job nonsense -h", 2, "unknown command \"job nonsense\""},
    {"--nonsense", 2, "unknown option --nonsense"},
    {"-x", 2, "unknown option -x"},
    {"job list --fromat json", 2, "did you mean --format?"},
    {"job list --format", 2, "--format: its value is missing"},
    {"job list --format xml", 2, "--format xml: expected json or text"},
    {"job list extra", 2, "one argument too many: \"extra\""},
    {"job list -x", 2, "unknown option -x"},
    {"job logs j --frm 3", 2, "did you mean --from?"},
    {"job logs j --from", 2, "--from: its value is missing"},
    {"job logs j --from --format json", 2, "--from: its value is missing"},
    {"job logs j --from x", 2, "--from x: expected a whole number"},
    {"job logs j --from -1", 2, "--from -1: expected a whole number"},
    {"job logs j --from 1 --from 2", 2, "--from: expected once"},
    {"job logs", 2, "JOB: expected a job's name"},
    {"job logs J", 2, "JOB: expected a job's name"},
    {"job model j --npz=1", 2, "--npz takes no value"},
    {"job model j --npz --npz", 2, "--npz: expected once"},
    {"job wait j --timeout 99999999999", 2, "--timeout"},
    {"job submit", 2, "SPEC.json is missing"},
    {"job submit /nonexistent.json", 3, "/nonexistent.json"},
    {"job submit /", 3, "Is a directory"},
    {"job join j", 2, "expected JOB and TENANT"},
    {"job join j org-a", 2, "--admin-key FILE is missing"},
    {"job show j", 3, "start it: kedge-coordinator"},
    {"job ls", 3, "no coordinator is running here"},
    {"status", 3, "no coordinator is running here"},
    {"status --connect tls+tcp://127.0.0.1:1", 2, "--connect needs --server-key"},
    {"tenant add", 2, "TENANT: expected a name"},
    {"tenant add Org", 2, "TENANT: expected a name"},
    {"tenant list", 3, "no coordinator is running here"},
    {"site enroll org-a", 2, "SITE: expected a name"},
    {"site enroll org-a s --address h:7443", 2, "--address h:7443: expected where"},
    {"site enroll org-a s --address tls+tcp://h:0", 2, "--address tls+tcp://h:0: expected where"},
    {"site enroll org-a s --address tls+tcp://h:70000", 2, "expected where the site finds"},
    {"site enroll org-a s --ttl 0", 2, "--ttl 0: expected a whole number from 1"},
    {"site approve org-a s", 2, "--admin-key FILE is missing"},
    {"site approve org-a s --admin-key /nonexistent.pem", 3, "/nonexistent.pem"},
    {"site list", 3, "no coordinator is running here"},
    {"site revoke org-a", 2, "SITE: expected a name"},
    {"init", 2, "DIR is missing"},
    {"init a b", 2, "one argument too many: \"b\""},
    {"init a --listen tcp://1.2.3.4:5", 2, "--listen: expected an address"},
    {"init a --listen tls+tcp://:7443", 2, "--listen: expected an address"},
    {"init a --listen tls+tcp://h:", 2, "--listen: expected an address"},
    {"init a --listen tls+tcp://h:http", 2, "--listen: expected an address"},
    {"init a --listen tls+tcp://h:65536", 2, "--listen: expected an address"},
    {"init ", 2, "an argument is empty"},
    {"poc ", 2, "an argument is empty"},
    {"doctor ", 2, "an argument is empty"},
    {"job show j ", 2, "an argument is empty"},
    {"job logs j --from=", 2, "--from: its value is missing"},
    {"init a --deployment ", 2, "--deployment: its value is missing"},
    {"ledger list", 3, "kedge init"},
    {"ledger show", 2, "LOG is missing"},
    {"ledger prove main", 2, "expected either INDEX"},
    {"ledger verify r", 2, "expected RECEIPT and --log VKEY"},
    {"audit verify", 2, "DIR is missing"},
    {"audit verify /nonexistent", 3, "no record here"},
    {"audit verify . --trust /nonexistent.json", 3, "/nonexistent.json"},
    {"audit trust", 3, "no coordinator is running here"},
    {"poc", 2, "DIR is missing"},
    {"poc d --tenants 0", 2, "--tenants 0: expected a whole number from 1 to 16"},
    {"poc d --model-inputs 5", 2, "--model-inputs and --model-classes belong together"},
    {"poc d --trainer rel", 2, "--trainer: expected an absolute path"},
    {"poc d --trainer /nonexistent", 2, "--trainer /nonexistent: expected a program"},
    {"poc d --trainer /", 2, "--trainer /: expected a program"},
    {"poc d --mixing 1.2.3", 2, "--mixing 1.2.3: expected a number from 0 to 1000"},
    {"poc d --mixing 1001", 2, "--mixing 1001: expected a number from 0 to 1000"},
    {"poc d --mixing -1", 2, "--mixing -1: expected a number from 0 to 1000"},
    {"poc d --frobnicate", 2, "unknown option --frobnicate"},
    {"poc d --client who", 2, "belong to --data PATH, which is missing"},
    {"poc d --missing drop", 2, "belong to --data PATH, which is missing"},
    {"poc d --data x.csv --dataset digits", 2, "--dataset: not with --data, whose clients are the sites"},
    {"poc d --data x.csv --partition iid", 2, "--partition: not with --data"},
    {"poc d --data x.csv --missing guess", 2, "--missing guess: expected refuse, drop or mean"},
    {"poc d --data x.csv --standardize yes", 2, "--standardize yes: expected none, local or federated"},
    {"poc d --data /nonexistent.csv", 3, "/nonexistent.csv: not found"},
    {"role quorum", 2, "N: expected how many organisations approve, 0 to 14"},
    {"role quorum 15", 2, "N: expected how many organisations approve, 0 to 14"},
    {"role quorum 2 3", 2, "one argument too many"},
    {"role review", 2, "FILE: expected a proposal that --propose made"},
    {"role review /nonexistent", 3, "/nonexistent"},
    {"role approve docs/cli.md --admin-key /nonexistent", 3, "docs/cli.md: "},
    {"role submit /nonexistent", 3, "/nonexistent"},
    {"key rotate-statement org-a", 2, "one argument too many"},
    {"site rotate org-a s1 --site-folder /tmp --only both", 2, "--only both: expected statement or tls"},
    {"site rotate org-a s1 --site-folder /tmp --out x", 2, "--out"},
    {"sim", 2, "SPEC.json is missing"},
    {"sim /nonexistent.json", 3, "/nonexistent.json"},
    {"doctor /nonexistent", 3, "neither a state folder"},
    {"doctor a b", 2, "one argument too many"},
};

START_TEST(test_wrong)
{
    json_t *root;
    make_scratch();
    const char *line = wrong[_i].line, *state = at("none");
    int code = kedge("%s --state %s", line, state);
    ck_assert_msg(code == wrong[_i].code, "kedge %s: exit %d; %s", line, code, err_out);
    ck_assert_msg(strstr(err_out, wrong[_i].said) != NULL, "kedge %s: %s", line, err_out);
    ck_assert_msg(strncmp(err_out, "kedge: ", 7) == 0 && strstr(err_out, "\n  ") != NULL,
                  "kedge %s says no next step: %s", line, err_out);
    if (strstr(line, "--format")) {
        remove_scratch();
        return;
    }
    ck_assert_int_eq(out[0], '\0');
    ck_assert_int_eq(kedge("--format json %s --state %s", line, state), code);
    const json_t *e = error_of(&root);
    ck_assert_int_eq(json_integer_value(json_object_get(e, "exit_code")), code);
    ck_assert_uint_gt(strlen(json_string_value(json_object_get(e, "hint"))), 0);
    const char *message = json_string_value(json_object_get(e, "message"));
    const char *hint = json_string_value(json_object_get(e, "hint"));
    ck_assert(strstr(message, wrong[_i].said) || strstr(hint, wrong[_i].said));
    json_decref(root);
    remove_scratch();
}
END_TEST

/* ---- files ---- */

static const struct {
    const char *text;
    const char *said;
} specs[] = {
    {"", "the file is empty"},
    {"\n", "empty, expected a JSON object"},
    {"{\"name\": \"j\"", "line 1"},
    {"[]", "expected a JSON object"},
    {"{\"name\": \"j\", \"modl\": 1}", "unknown key \"modl\""},
    {"{\"name\": \"j\"}", "\"tenants\" is missing"},
};

START_TEST(test_spec)
{
    make_scratch();
    put_file(at("spec.json"), specs[_i].text);
    ck_assert_int_eq(kedge("job submit %s --state %s", at("spec.json"), at("none")), 2);
    ck_assert_msg(strstr(err_out, specs[_i].said) != NULL, "%s", err_out);
    ck_assert_ptr_nonnull(strstr(err_out, "spec.json"));
    ck_assert_ptr_null(strstr(err_out, "line -1"));
    remove_scratch();
}
END_TEST

/* What this user may not read cannot be read: 3, nothing a policy refused. Root may read everything. */
START_TEST(test_unreadable)
{
    make_scratch();
    put_file(at("spec.json"), "{}");
    ck_assert_int_eq(chmod(at("spec.json"), 0), 0);
    if (access(at("spec.json"), R_OK) == 0) {
        printf("skipped: this user may read everything\n");
    } else {
        ck_assert_int_eq(kedge("job submit %s --state %s", at("spec.json"), at("none")), 3);
        ck_assert_int_eq(kedge("sim %s", at("spec.json")), 3);
    }
    put_file(at("key.pem"), "x"); /* a key that others may read is not read either */
    ck_assert_int_eq(chmod(at("key.pem"), 0644), 0);
    ck_assert_int_eq(kedge("site approve a b --admin-key %s --state %s", at("key.pem"), at("none")), 3);
    ck_assert_ptr_nonnull(strstr(err_out, "chmod 600"));
    remove_scratch();
}
END_TEST

START_TEST(test_arguments_are_text)
{
    json_t *root;
    make_scratch();
    ck_assert_int_eq(kedge("init %s/\xff --format json", scratch), 2);
    ck_assert_ptr_nonnull(strstr(json_string_value(json_object_get(error_of(&root), "message")), "UTF-8"));
    json_decref(root);
    ck_assert_int_eq(kedge("init %s/\xc3\xbc --format json", scratch), 0);
    json_decref((data_of(&root), root));
    ck_assert_int_eq(kedge("init %s/\xc3\xbc --format json", scratch), 1); /* there is one */
    json_decref((error_of(&root), root));
    remove_scratch();
}
END_TEST

/* What cannot work leaves no folder behind, whose settings would hold from then on. */
START_TEST(test_poc_leaves_nothing)
{
    make_scratch();
    ck_assert_int_eq(kedge("poc %s --dataset nosuch", at("d")), 3);
    ck_assert_ptr_nonnull(strstr(err_out, "data set \"nosuch\" is not here"));
    ck_assert_int_eq(kedge("poc %s --partition foo", at("d")), 2);
    ck_assert_ptr_nonnull(strstr(err_out, "expected iid, ring or planted"));
    ck_assert(!kedge_file_exists(at("d")));
    remove_scratch();
}
END_TEST

/* Own clients that cannot be sites: the file and place are named, and there is no folder. */
START_TEST(test_poc_clients_wrong)
{
    static const struct {
        const char *file, *text, *options, *says;
        int code;
    } bad_clients[] = {
        {"t.csv", "client,a,y\nu,1,0\nu,2,1\nv,x,0\n", "",
         "t.csv: line 4, column 2 (\"a\"): found \"x\", expected a number; take columns that are no numbers "
         "out of the file",
         3},
        {"t.csv", "client,a,y\nu,1,0\nu,,1\nv,1,0\n", "", "t.csv: line 3, column 2 (\"a\")", 3},
        {"t.csv", "client,a,y\nu,1,0\nu,2,1\nv,1,0\n", "", "client \"v\": 1 samples for training and 0 for",
         3},
        {"t.csv", "client,a,y\nu,1,0\nu,2,1\n", " --sites 2",
         "t.csv: 1 clients, but --tenants 1 with --sites 2", 2},
        {"t.csv", "client,a,y\nu,1,0\nu,2,1\n", " --tenants 3", "t.csv: 1 clients, but --tenants 3", 2},
        {"t.csv", "client,a,y\nu,1,0\nu,2,1\n", " --groups 2",
         "--groups 2: expected at most as many as sites, 1", 2},
        {"t.csv", "client,a,y\nu,1,.5\nu,2,1.5\n", "",
         "the labels are reals, but clients' labels are classes", 3},
        {"t.csv", "who,a,y\nu,1,0\nu,2,1\n", "", "t.csv: line 1: no column is named \"client\"", 3},
        {"t.json", "{\"user_data\":{}} x", "", "t.json: byte 18: expected the end of the file", 3},
        {"t.json", "{\"users\":[\"u\"],\"user_data\":{\"u\":{\"x\":[1,2],\"y\":[0,1]}}}", " --missing mean",
         "t.json holds no CSV file", 3},
        {"t.csv", "client,a,y\nu,1,0\nu,2,1\n", " --strategy nosuch",
         "\"strategy\": \"nosuch\": expected one of", 2},
        {"t.csv", "client,a,y\nu,1,0\nu,2,1\n", " --standardize federated --server adam",
         "\"standardize\": \"federated\" goes with", 2},
    };
    make_scratch();
    for (size_t i = 0; i < sizeof bad_clients / sizeof bad_clients[0]; i++) {
        ck_assert_int_eq(
            kedge_file_write(at(bad_clients[i].file), kedge_view_str(bad_clients[i].text), 0600, NULL), 0);
        int code = kedge("poc %s --data %s%s", at("d"), at(bad_clients[i].file), bad_clients[i].options);
        ck_assert_msg(code == bad_clients[i].code && strstr(err_out, bad_clients[i].says), "row %zu: %d: %s",
                      i, code, err_out);
    }
    ck_assert_int_eq(kedge_dir_make(at("h"), 0700, NULL) | kedge_dir_make(at("h/u"), 0700, NULL), 0);
    ck_assert_int_eq(kedge_file_write(at("h/u/data.csv"), kedge_view_str("a,y\n1,0\n2,1\n"), 0600, NULL), 0);
    ck_assert_int_eq(kedge_file_write(at("h/u/data-1.csv"), kedge_view_str("a,y\n1,0\n2,1\n"), 0600, NULL),
                     0);
    ck_assert_int_eq(kedge("poc %s --data %s", at("d"), at("h")), 2);
    ck_assert_ptr_nonnull(strstr(err_out, "has data of later steps (train-1.csv and so on)"));
    ck_assert(!kedge_file_exists(at("d")));
    remove_scratch();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cli usage");
    TCase *t = tcase_create("usage");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, test_help_of_each);
    tcase_add_test(t, test_help_of_nouns);
    tcase_add_test(t, test_ls);
    tcase_add_test(t, test_widths);
    tcase_add_test(t, test_headings);
    tcase_add_loop_test(t, test_wrong, 0, sizeof wrong / sizeof wrong[0]);
    tcase_add_loop_test(t, test_spec, 0, sizeof specs / sizeof specs[0]);
    tcase_add_test(t, test_unreadable);
    tcase_add_test(t, test_arguments_are_text);
    tcase_add_test(t, test_poc_leaves_nothing);
    tcase_add_test(t, test_poc_clients_wrong);
    suite_add_tcase(s, t);
    return run_suite(s);
}
