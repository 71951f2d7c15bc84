/* Help, made of the table of commands and their meanings; nothing here knows a command. test_cli_usage holds
 * that every word of every usage line has a meaning. */
#include "cli/help.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "cli/meanings.h"
#include "common/base/nearest.h"

/* A terminal of 100 columns, as for tables (output.c). */
enum {
    NAME_LEN = 40,
    WORDS_MAX = 64,
    COLUMNS = 100,
    USAGE_MAX = 1024,
    MEANING_COLUMN = 30 /* longer words push their meaning to the next line */
};

struct name {
    char s[NAME_LEN];
};

/* "job submit", "status" */
static struct name name_of(const struct kedge_command *cmd)
{
    struct name n;
    snprintf(n.s, sizeof n.s, "%s%s%s", cmd->noun, cmd->verb[0] ? " " : "", cmd->verb);
    return n;
}

/* ---- the table ---- */

bool kedge_cli_is_noun(const char *word)
{
    for (size_t i = 0; i < kedge_command_count; i++) {
        if (strcmp(kedge_commands[i].noun, word) == 0) {
            return true;
        }
    }
    return false;
}

/* A command of one word takes anything as its verb: the next word is its first argument. */
const struct kedge_command *kedge_cli_find(const char *noun, const char *verb)
{
    const char *wanted = strcmp(verb, "ls") == 0 ? "list" : verb;
    for (size_t i = 0; i < kedge_command_count; i++) {
        const struct kedge_command *cmd = &kedge_commands[i];
        if (strcmp(cmd->noun, noun) == 0 && (cmd->verb[0] == '\0' || strcmp(cmd->verb, wanted) == 0)) {
            return cmd;
        }
    }
    return NULL;
}

/* The longest of the names: every list stands in the same columns. */
static int widest_name(void)
{
    size_t widest = 0;
    for (size_t i = 0; i < kedge_command_count; i++) {
        size_t len = strlen(name_of(&kedge_commands[i]).s);
        widest = len > widest ? len : widest;
    }
    return (int)widest;
}

static void print_row(FILE *out, const struct kedge_command *cmd)
{
    fprintf(out, "  kedge %-*s  %s\n", widest_name(), name_of(cmd).s, cmd->help);
}

static void print_rows(FILE *out, const char *noun)
{
    for (size_t i = 0; i < kedge_command_count; i++) {
        if (strcmp(kedge_commands[i].noun, noun) == 0) {
            print_row(out, &kedge_commands[i]);
        }
    }
}

/* All commands, under a heading for each kind of reader. */
static void print_by_reader(FILE *out)
{
    static const char *const headings[KEDGE_AUDIENCES] = {
        [KEDGE_FOR_START] = "Start here",
        [KEDGE_FOR_OPERATE] = "You operate a federation",
        [KEDGE_FOR_TENANT] = "You are the admin of an organisation (tenant)",
        [KEDGE_FOR_WITNESS] = "Your organisation runs a witness",
        [KEDGE_FOR_DEVICE] = "You own a device (most is in kedge-client --help)",
        [KEDGE_FOR_AUDIT] = "You audit a record",
        [KEDGE_FOR_RESEARCH] = "You compare strategies before you train",
    };
    for (enum kedge_audience audience = KEDGE_FOR_START; audience < KEDGE_AUDIENCES; audience++) {
        bool begun = false;
        for (size_t i = 0; i < kedge_command_count; i++) {
            if (kedge_commands[i].audience == audience) {
                if (!begun) {
                    fprintf(out, "%s%s:\n", audience == KEDGE_FOR_START ? "" : "\n", headings[audience]);
                }
                begun = true;
                print_row(out, &kedge_commands[i]);
            }
        }
    }
}

static json_t *rows_json(const char *noun)
{
    json_t *rows = json_array();
    for (size_t i = 0; i < kedge_command_count; i++) {
        const struct kedge_command *cmd = &kedge_commands[i];
        if (!noun || strcmp(cmd->noun, noun) == 0) {
            json_array_append_new(rows, json_pack("{s:s,s:s,s:s}", "command", name_of(cmd).s, "arguments",
                                                  cmd->arguments, "help", cmd->help));
        }
    }
    return json_pack("{s:o}", "commands", rows);
}

static void print_help(FILE *out, const char *noun)
{
    if (noun) {
        print_rows(out, noun);
        fprintf(out, "\nkedge %s VERB -h explains each option and has an example.\n", noun);
        return;
    }
    fputs("kedge: federated training between organisations, with a record that a stranger can check.\n\n",
          out);
    print_by_reader(out);
    fputs("\nkedge COMMAND -h explains each option and has an example; list may be written ls.\n"
          "All take --format json|text and --state DIR (or $KEDGE_STATE); a coordinator elsewhere:\n"
          "--connect URL --server-key HEX --key FILE.\n"
          "Exit codes: 0 done, 1 the answer is no, 2 usage, 3 cannot reach or read, or a wait ran out,\n"
          "4 refused by policy, 5 corrupt state, 70 bug, 130 interrupted.\n",
          out);
}

/* Help that was asked for is an answer: stdout, exit code 0, and in JSON the same table for programs. Help
 * that was not asked for is a usage error (kedge_cli_nothing). */
int kedge_cli_help(struct kedge_cli *c, const char *noun)
{
    if (!c->json) {
        print_help(stdout, noun);
        return 0;
    }
    return kedge_cli_ok(c, rows_json(noun));
}

/* The usage line in lines of at most 100 columns, broken between words of the command. */
static void print_usage(const struct kedge_command *cmd)
{
    char usage[USAGE_MAX];
    snprintf(usage, sizeof usage, "Usage: kedge %s%s%s", name_of(cmd).s, cmd->arguments[0] ? " " : "",
             cmd->arguments);
    size_t column = 0, depth = 0;
    const char *at = usage;
    while (*at) {
        size_t len = 0; /* up to the next blank outside of brackets */
        for (; at[len] && (at[len] != ' ' || depth > 0); len++) {
            depth += (at[len] == '[' || at[len] == '(');
            depth -= (at[len] == ']' || at[len] == ')') && depth > 0;
        }
        bool breaks = column > 0 && column + 1 + len > COLUMNS;
        printf("%s%.*s", breaks ? "\n          " : column > 0 ? " " : "", (int)len, at);
        column = (breaks ? 10 : column + (column > 0)) + len;
        at += len + (at[len] == ' ');
    }
    printf("\n");
}

/* The usage line says which words there are, meanings.c what each means here. A word without a meaning is
 * printed bare; test_cli_usage sees to it that there is none. */
static void print_meanings(const struct kedge_command *cmd)
{
    struct kedge_cli_usage_word words[KEDGE_CLI_WORDS_MAX];
    char shown[KEDGE_CLI_WORDS_MAX][2 * KEDGE_CLI_WORD_LEN];
    size_t count = kedge_cli_usage_words(cmd->arguments, words);
    int width = 0;
    for (size_t i = 0; i < count; i++) {
        int len = snprintf(shown[i], sizeof shown[i], "%s%s%s", words[i].name, words[i].value[0] ? " " : "",
                           words[i].value);
        width = len > width && len <= MEANING_COLUMN ? len : width;
    }
    for (size_t i = 0; i < count; i++) {
        const char *meaning = kedge_cli_meaning(cmd, words[i].name);
        bool fits = strlen(shown[i]) <= (size_t)width; /* else the meaning has a line of its own */
        printf("  %-*s%s", width, shown[i], fits ? "  " : "\n");
        printf("%*s%s\n", fits ? 0 : width + 4, "", meaning ? meaning : "");
    }
}

int kedge_cli_command_help(struct kedge_cli *c, const struct kedge_command *cmd)
{
    if (!c->json) {
        print_usage(cmd);
        printf("%c%s.\n\n", toupper((unsigned char)cmd->help[0]), cmd->help + 1);
        print_meanings(cmd);
        printf("%sExample:\n  %s\n\n", cmd->arguments[0] ? "\n" : "", cmd->example);
        fputs(
            "Common options: --format json|text, --state DIR, --connect URL, --server-key HEX, --key FILE.\n",
            stdout);
        return 0;
    }
    struct kedge_cli_usage_word words[KEDGE_CLI_WORDS_MAX];
    json_t *options = json_array();
    size_t count = kedge_cli_usage_words(cmd->arguments, words);
    for (size_t i = 0; i < count; i++) {
        const char *meaning = kedge_cli_meaning(cmd, words[i].name);
        json_array_append_new(options, json_pack("{s:s,s:s,s:s}", "name", words[i].name, "value",
                                                 words[i].value, "meaning", meaning ? meaning : ""));
    }
    return kedge_cli_ok(c, json_pack("{s:s,s:s,s:s,s:o,s:s}", "command", name_of(cmd).s, "arguments",
                                     cmd->arguments, "help", cmd->help, "options", options, "example",
                                     cmd->example));
}

/* Nothing was asked for, which is a mistake of the command line: the list goes to stderr and the code is 2.
 */
int kedge_cli_nothing(struct kedge_cli *c, const char *noun)
{
    if (c->json) {
        c->noun = noun;
        return noun ? kedge_cli_usage(c, "%s: expected one of its verbs", noun)
                    : kedge_cli_usage(c, "expected a command");
    }
    if (noun) {
        fprintf(stderr, "kedge: %s: expected one of its verbs:\n", noun);
    }
    print_help(stderr, noun);
    return 2;
}

/* The verbs of a noun, or all nouns: a noun's commands stand together in the table. */
static size_t collect_words(const char *noun, const char **words)
{
    size_t count = 0;
    for (size_t i = 0; i < kedge_command_count && count < WORDS_MAX; i++) {
        const struct kedge_command *cmd = &kedge_commands[i];
        if (!noun) {
            if (count == 0 || strcmp(words[count - 1], cmd->noun) != 0) {
                words[count++] = cmd->noun;
            }
        } else if (strcmp(cmd->noun, noun) == 0) {
            words[count++] = cmd->verb;
        }
    }
    return count;
}

/* The command whose verb somebody wrote without its noun: "kedge submit". */
static const struct kedge_command *find_by_verb(const char *verb)
{
    const struct kedge_command *found = NULL;
    for (size_t i = 0; i < kedge_command_count; i++) {
        bool is_it = strcmp(kedge_commands[i].verb, verb) == 0;
        if (is_it && (!found || strcmp(kedge_commands[i].noun, "job") == 0)) { /* what most is said about */
            found = &kedge_commands[i];
        }
    }
    return found;
}

/* A suggestion is worth more than a list: first the nearest verb or noun by its letters, then the noun that
 * has this word as a verb ("kedge submit"). */
int kedge_cli_unknown(struct kedge_cli *c)
{
    const char *words[WORDS_MAX] = {NULL}, *noun = c->argv[0];
    if (kedge_cli_is_noun(noun)) {
        size_t verbs = collect_words(noun, words);
        const char *verb = c->argv[1], *near = kedge_nearest(verb, words, verbs);
        c->noun = noun;
        return near ? kedge_cli_usage(c, "unknown command \"%s %s\"; did you mean kedge %s %s?", noun,
                                      kedge_cli_word(verb).s, noun, near)
                    : kedge_cli_usage(c, "unknown command \"%s %s\"", noun, kedge_cli_word(verb).s);
    }
    size_t nouns = collect_words(NULL, words);
    const char *near = kedge_nearest(noun, words, nouns);
    const struct kedge_command *whole = find_by_verb(noun);
    if (near) {
        return kedge_cli_usage(c, "unknown command \"%s\"; did you mean kedge %s?", kedge_cli_word(noun).s,
                               near);
    }
    return whole ? kedge_cli_usage(c, "unknown command \"%s\"; did you mean kedge %s?",
                                   kedge_cli_word(noun).s, name_of(whole).s)
                 : kedge_cli_usage(c, "unknown command \"%s\"", kedge_cli_word(noun).s);
}
