#include "cli/help.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { WORD_MAX = 32, NAME_LEN = 40, WORDS_MAX = 64, SLIPS_MAX = 2 };

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

/* ---- near words ---- */

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

static unsigned distance(const char *a, const char *b)
{
    unsigned row[3][WORD_MAX + 1];
    size_t n = strlen(a), m = strlen(b);
    if (n > WORD_MAX || m > WORD_MAX) {
        return WORD_MAX;
    }
    for (size_t j = 0; j <= m; j++) {
        row[0][j] = (unsigned)j;
    }
    for (size_t i = 1; i <= n; i++) {
        unsigned *now = row[i % 3];
        const unsigned *last = row[(i + 2) % 3], *before = row[(i + 1) % 3];
        now[0] = (unsigned)i;
        for (size_t j = 1; j <= m; j++) {
            now[j] = least(last[j - 1] + (a[i - 1] != b[j - 1]), least(last[j], now[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                now[j] = least(now[j], before[j - 2] + 1);
            }
        }
    }
    return row[n % 3][m];
}

const char *kedge_cli_nearest(const char *word, const char *const *words, size_t count)
{
    const char *best = NULL;
    unsigned slips = SLIPS_MAX + 1;
    for (size_t i = 0; i < count; i++) {
        unsigned d = distance(word, words[i]);
        if (d < slips && d < strlen(words[i])) {
            slips = d;
            best = words[i];
        }
    }
    return best;
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

/* The longest of the names: whatever is listed stands in the same columns. */
static int widest_name(void)
{
    size_t widest = 0;
    for (size_t i = 0; i < kedge_command_count; i++) {
        size_t len = strlen(name_of(&kedge_commands[i]).s);
        widest = len > widest ? len : widest;
    }
    return (int)widest;
}

static void print_rows(FILE *out, const char *noun)
{
    int width = widest_name();
    for (size_t i = 0; i < kedge_command_count; i++) {
        const struct kedge_command *cmd = &kedge_commands[i];
        if (!noun || strcmp(cmd->noun, noun) == 0) {
            fprintf(out, "  kedge %-*s  %s\n", width, name_of(cmd).s, cmd->help);
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
        fprintf(out, "\nkedge %s VERB -h tells the arguments of one.\n", noun);
        return;
    }
    fputs("kedge: federated training between organisations, with a record that a stranger can check.\n\n",
          out);
    print_rows(out, NULL);
    fputs(
        "\nkedge COMMAND -h tells its arguments; list may be written ls. All take --format json|text and\n"
        "--state DIR (or $KEDGE_STATE); a coordinator elsewhere: --connect URL --server-key HEX --key FILE.\n"
        "Exit codes: 0 done, 1 the answer is no, 2 usage, 3 cannot reach or read, or a wait ran out,\n"
        "4 refused by policy, 5 corrupt state, 70 bug, 130 interrupted.\n",
        out);
}

int kedge_cli_help(struct kedge_cli *c, const char *noun)
{
    if (!c->json) {
        print_help(stdout, noun);
        return 0;
    }
    return kedge_cli_ok(c, rows_json(noun));
}

int kedge_cli_command_help(struct kedge_cli *c, const struct kedge_command *cmd)
{
    if (!c->json) {
        printf("Usage: kedge %s%s%s\n%s.\n", name_of(cmd).s, cmd->arguments[0] ? " " : "", cmd->arguments,
               cmd->help);
        fputs(
            "Common options: --format json|text, --state DIR, --connect URL, --server-key HEX, --key FILE.\n",
            stdout);
        return 0;
    }
    return kedge_cli_ok(c, json_pack("{s:s,s:s,s:s}", "command", name_of(cmd).s, "arguments", cmd->arguments,
                                     "help", cmd->help));
}

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

int kedge_cli_unknown(struct kedge_cli *c)
{
    const char *words[WORDS_MAX], *noun = c->argv[0];
    if (kedge_cli_is_noun(noun)) {
        const char *verb = c->argv[1], *near = kedge_cli_nearest(verb, words, collect_words(noun, words));
        c->noun = noun;
        return near ? kedge_cli_usage(c, "unknown command \"%s %s\"; did you mean kedge %s %s?", noun,
                                      kedge_cli_word(verb).s, noun, near)
                    : kedge_cli_usage(c, "unknown command \"%s %s\"", noun, kedge_cli_word(verb).s);
    }
    const char *near = kedge_cli_nearest(noun, words, collect_words(NULL, words));
    const struct kedge_command *whole = find_by_verb(noun);
    if (near) {
        return kedge_cli_usage(c, "unknown command \"%s\"; did you mean kedge %s?", kedge_cli_word(noun).s,
                               near);
    }
    return whole ? kedge_cli_usage(c, "unknown command \"%s\"; did you mean kedge %s?",
                                   kedge_cli_word(noun).s, name_of(whole).s)
                 : kedge_cli_usage(c, "unknown command \"%s\"", kedge_cli_word(noun).s);
}

int kedge_cli_usage(struct kedge_cli *c, const char *format, ...)
{
    struct kedge_diag d = {.hint = ""};
    va_list ap;
    va_start(ap, format);
    vsnprintf(d.text, sizeof d.text, format, ap); /* of words that are cut already */
    va_end(ap);
    if (c->command) {
        (void)kedge_diag_hint(&d, "usage: kedge %s%s%s", name_of(c->command).s,
                              c->command->arguments[0] ? " " : "", c->command->arguments);
    } else if (c->noun) {
        (void)kedge_diag_hint(&d, "kedge %s -h lists its verbs", c->noun);
    } else {
        (void)kedge_diag_hint(&d, "kedge --help lists the commands");
    }
    return kedge_cli_fail(c, KEDGE_E_USAGE, &d);
}
