/* kedge: the command line of operators, tenants and auditors. Its commands are in commands.c. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/cli.h"
#include "cli/help.h"
#include "cli/local.h"
#include "cli/login/profile.h"
#include "common/base/os/log.h"
#include "crypto/passphrase.h"

/* The common options; false after a usage error. Taken before the command is known, wherever they stand on
 * the line; what remains belongs to the command. A passphrase is asked for only when a sealed key is opened,
 * so here it is only noted from where it may come. */
static bool take_common(struct kedge_cli *c)
{
    const char *format = kedge_cli_option(c, "format", "text");
    c->json = strcmp(format, "json") == 0;
    const char *state = getenv("KEDGE_STATE");
    state = kedge_cli_option(c, "state", state && state[0] ? state : NULL);
    c->state = state ? state : "kedge-state";
    c->connect = kedge_cli_option(c, "connect", NULL);
    c->server_key = kedge_cli_option(c, "server-key", NULL);
    c->key = kedge_cli_option(c, "key", NULL);
    c->admin_key = kedge_cli_option(c, "admin-key", NULL);
    c->position = kedge_cli_option(c, "position", NULL);
    c->trust = kedge_cli_option(c, "trust", NULL);
    c->receipts = kedge_cli_option(c, "receipts", NULL);
    kedge_passphrase_use_file(kedge_cli_option(c, "passphrase-file", NULL));
    kedge_passphrase_use_terminal();
    if (!c->json && strcmp(format, "text") != 0) {
        (void)kedge_cli_usage(c, "--format %s: expected json or text", kedge_cli_word(format).s);
        return false;
    }
    return kedge_profile_apply(c, state != NULL);
}

/* Answers carry arguments back in JSON, which is UTF-8; a file name of other bytes would have no place. An
 * empty word is a variable that somebody forgot to set: a folder without a name would be the root. */
static bool is_text(struct kedge_cli *c)
{
    for (int i = 0; i < c->argc; i++) {
        json_t *text = json_string(c->argv[i]);
        json_decref(text);
        if (!text) {
            (void)kedge_cli_usage(c, "argument %d is not UTF-8 text", i + 1);
            return false;
        }
        if (!c->argv[i][0]) {
            bool value = i > 0 && strncmp(c->argv[i - 1], "--", 2) == 0;
            (void)kedge_cli_usage(c, value ? "%s: its value is missing" : "an argument%s is empty",
                                  value ? c->argv[i - 1] : "");
            return false;
        }
    }
    return true;
}

/* Help wins over everything else on the line, so that "-h" can be added to a command that is written already.
 */
static bool take_help(struct kedge_cli *c)
{
    bool wanted = kedge_cli_flag(c, "help");
    for (int i = 0; i < c->argc && !wanted; i++) {
        wanted = strcmp(c->argv[i], "-h") == 0;
    }
    return wanted || (c->argc > 0 && strcmp(c->argv[0], "help") == 0);
}

/* Help about as much as was written: everything, a noun, or one command. */
static int help(struct kedge_cli *c)
{
    static char nothing[] = "";
    char *words[2] = {nothing, nothing};
    int count = 0;
    for (int i = 0; i < c->argc && count < 2; i++) {
        if (c->argv[i][0] != '-' && (i > 0 || strcmp(c->argv[i], "help") != 0)) {
            words[count++] = c->argv[i];
        }
    }
    if (count == 0) {
        return kedge_cli_help(c, NULL);
    }
    const struct kedge_command *command = kedge_cli_find(words[0], words[1]);
    if (command) {
        return kedge_cli_command_help(c, command);
    }
    if (kedge_cli_is_noun(words[0]) && count == 1) {
        return kedge_cli_help(c, words[0]);
    }
    c->argv = words;
    return kedge_cli_unknown(c);
}

/* Common options first, then help, then the command: the two words that name it are taken off, and its
 * function sees its own arguments only. Cryptography starts last, since help and usage errors need none. */
static int dispatch(struct kedge_cli *c)
{
    if (take_help(c)) {
        return help(c);
    }
    if (kedge_cli_flag(c, "version")) {
        kedge_cli_say(c, "kedge 0.1.0\n");
        return kedge_cli_ok(c, json_pack("{s:s}", "version", "0.1.0"));
    }
    if (c->argc == 0) {
        return kedge_cli_nothing(c, NULL);
    }
    c->command = kedge_cli_find(c->argv[0], c->argc > 1 ? c->argv[1] : "");
    if (!c->command) {
        if (c->argv[0][0] == '-' && !kedge_cli_no_options(c)) {
            return 2;
        }
        return c->argc == 1 && kedge_cli_is_noun(c->argv[0]) ? kedge_cli_nothing(c, c->argv[0])
                                                             : kedge_cli_unknown(c);
    }
    int words = c->command->verb[0] ? 2 : 1;
    c->argc -= words;
    c->argv += words;
    int err = kedge_crypto_init();
    return err ? kedge_cli_fail(c, err, NULL) : c->command->run(c);
}

/* What any command writes is its owner's alone (0077), a reader that closes the pipe is an error and not the
 * end, and passphrases are forgotten however the command ends. */
int main(int argc, char **argv)
{
    struct kedge_cli c = {.argc = argc > 0 ? argc - 1 : 0, .argv = argv + 1};
    umask(077);
    signal(SIGPIPE, SIG_IGN);
    kedge_log_init("kedge", KEDGE_LOG_WARN);
    int code = take_common(&c) && is_text(&c) ? dispatch(&c) : 2;
    kedge_passphrase_forget();
    return code;
}
