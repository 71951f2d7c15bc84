/* Words of the command line: options by name, what is left by place. What a command knows is read off its
 * usage line, so that a message about an option cannot disagree with the page. */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/keys_used.h"
#include "cli/local.h"
#include "common/base/nearest.h"

enum { OPTION_LEN = 40, OPTIONS_MAX = 32, ADDRESS_MAX = 255 };

/* Options of every command; all but the first take what it takes to reach a coordinator. */
static const char common_options[] =
    "--format F --state DIR --profile NAME --connect URL --server-key HEX --key FILE "
    "--admin-key FILE --position FILE --trust FILE --receipts DIR "
    "--passphrase-file FILE --help";

/* Every mistake on the command line ends here, so that each of them names the line that would be right: that
 * of the command when it is known, the list of verbs or of commands otherwise. */
int kedge_cli_usage(struct kedge_cli *c, const char *format, ...)
{
    struct kedge_diag d = {.hint = ""};
    va_list ap;
    va_start(ap, format);
    vsnprintf(d.text, sizeof d.text, format, ap); /* of words that are cut already */
    va_end(ap);
    if (c->command) {
        const struct kedge_command *cmd = c->command;
        (void)kedge_diag_hint(&d, "usage: kedge %s%s%s%s%s", cmd->noun, cmd->verb[0] ? " " : "", cmd->verb,
                              cmd->arguments[0] ? " " : "", cmd->arguments);
    } else if (c->noun) {
        (void)kedge_diag_hint(&d, "kedge %s -h lists its verbs", c->noun);
    } else {
        (void)kedge_diag_hint(&d, "kedge --help lists the commands");
    }
    return kedge_cli_fail(c, KEDGE_E_USAGE, &d);
}

static void take_out(struct kedge_cli *c, int at, int count)
{
    for (int i = at; i + count < c->argc; i++) {
        c->argv[i] = c->argv[i + count];
    }
    c->argc -= count;
}

/* Options are taken out of the words as they are read, in any order and anywhere, so what is left at the end
 * is either an argument or unknown (kedge_cli_no_more). A value that begins with two dashes counts as
 * missing: "--out --json" is a forgotten value much more often than a file of that name, for which
 * "--out=--json" is left. */
const char *kedge_cli_option(struct kedge_cli *c, const char *name, const char *fallback)
{
    size_t len = strlen(name);
    for (int i = 0; i < c->argc; i++) {
        char *word = c->argv[i];
        if (strncmp(word, "--", 2) != 0 || strncmp(word + 2, name, len) != 0) {
            continue;
        }
        if (word[2 + len] == '=' && word[3 + len] == '\0') {
            continue; /* without a value, as below */
        }
        if (word[2 + len] == '=') {
            take_out(c, i, 1);
            kedge_cli_note_key(c, name, word + 3 + len);
            return word + 3 + len;
        }
        bool has_value = i + 1 < c->argc && c->argv[i + 1][0] && strncmp(c->argv[i + 1], "--", 2) != 0;
        if (word[2 + len] == '\0' && has_value) {
            const char *value = c->argv[i + 1];
            take_out(c, i, 2);
            kedge_cli_note_key(c, name, value);
            return value;
        }
    }
    return fallback;
}

/* An option that has a value elsewhere is not a flag: "--once=yes" stays among the words and is refused by
 * kedge_cli_no_more with "takes no value". */
bool kedge_cli_flag(struct kedge_cli *c, const char *name)
{
    for (int i = 0; i < c->argc; i++) {
        if (strncmp(c->argv[i], "--", 2) == 0 && strcmp(c->argv[i] + 2, name) == 0) {
            take_out(c, i, 1);
            return true;
        }
    }
    return false;
}

bool kedge_cli_number(struct kedge_cli *c, const char *name, uint64_t least, uint64_t most, uint64_t fallback,
                      uint64_t *ret)
{
    const char *text = kedge_cli_option(c, name, NULL);
    uint64_t v = fallback;
    if (text && (kedge_decimal_decode(kedge_view_str(text), most, &v) != KEDGE_OK || v < least)) {
        (void)kedge_cli_usage(c, "--%s %s: expected a whole number from %llu to %llu", name,
                              kedge_cli_word(text).s, (unsigned long long)least, (unsigned long long)most);
        return false;
    }
    *ret = v;
    return true;
}

const char *kedge_cli_argument(const struct kedge_cli *c, int i)
{
    return i < c->argc ? c->argv[i] : NULL;
}

bool kedge_cli_is_address(const char *url, uint64_t port_min)
{
    static const char scheme[] = "tls+tcp://";
    uint64_t port;
    bool begins = strncmp(url, scheme, sizeof scheme - 1) == 0;
    const char *host = begins ? url + sizeof scheme - 1 : NULL, *colon = begins ? strrchr(host, ':') : NULL;
    return colon && colon != host && strlen(url) <= ADDRESS_MAX
           && kedge_decimal_decode(kedge_view_str(colon + 1), UINT16_MAX, &port) == KEDGE_OK
           && port >= port_min;
}

/* ---- what is left that nobody took ---- */

struct option {
    char name[OPTION_LEN]; /* with its dashes */
    bool has_value;
};

/* Appends the options that stand in a usage line, "[--wait SECONDS] [--npz]": the known options of a command
 * are those of its own usage, and there is no second list that could lack one. */
static size_t read_options(const char *usage, struct option *out, size_t count)
{
    for (const char *at = strstr(usage, "--"); at && count < OPTIONS_MAX; at = strstr(at, "--")) {
        size_t len = strcspn(at, " ]");
        snprintf(out[count].name, OPTION_LEN, "%.*s", (int)len, at);
        out[count].has_value = at[len] == ' ' && at[len + 1] != '-' && at[len + 1] != '[';
        count++;
        at += len;
    }
    return count;
}

/* Says what is wrong with an option that nobody took. There are four cases: it is known and takes no value
 * but has one; it is known and its value is missing; it is known and was taken once already; it is not known,
 * and the nearest known name is offered. */
static int refuse_option(struct kedge_cli *c, int at)
{
    struct option options[OPTIONS_MAX];
    const char *names[OPTIONS_MAX], *word = c->argv[at];
    size_t count = c->command ? read_options(c->command->arguments, options, 0) : 0;
    char name[OPTION_LEN];
    count = read_options(common_options, options, count);
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word, "="), word);
    for (size_t i = 0; i < count; i++) {
        names[i] = options[i].name;
        if (strcmp(options[i].name, name) != 0) {
            continue;
        }
        if (!options[i].has_value && strchr(word, '=')) {
            return kedge_cli_usage(c, "%s takes no value", name);
        }
        const char *value = strchr(word, '=');
        bool last = value ? value[1] == '\0' : at + 1 == c->argc || strncmp(c->argv[at + 1], "--", 2) == 0;
        return kedge_cli_usage(
            c, options[i].has_value && last ? "%s: its value is missing" : "%s: expected once", name);
    }
    const char *near = kedge_nearest(name, names, count);
    return near ? kedge_cli_usage(c, "unknown option %s; did you mean %s?", name, near)
                : kedge_cli_usage(c, "unknown option %s", kedge_cli_word(word).s);
}

/* A single dash with a letter is an option as well ("-n"); a dash alone is standard input and "-5" a number.
 */
bool kedge_cli_no_options(struct kedge_cli *c)
{
    for (int i = 0; i < c->argc; i++) {
        const char *word = c->argv[i];
        if (word[0] == '-' && (word[1] == '-' || isalpha((unsigned char)word[1]))) {
            (void)refuse_option(c, i);
            return false;
        }
    }
    return true;
}

bool kedge_cli_no_more(struct kedge_cli *c, int arguments_max)
{
    if (!kedge_cli_no_options(c)) {
        return false;
    }
    if (c->argc > arguments_max) {
        (void)kedge_cli_usage(c, "one argument too many: \"%s\"", kedge_cli_word(c->argv[arguments_max]).s);
        return false;
    }
    return true;
}
