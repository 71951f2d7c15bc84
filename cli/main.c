/* kedge: the command line of operators, tenants and auditors. One table of commands. */
#include <locale.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/cli.h"
#include "common/base/os/log.h"

static const struct kedge_command commands[] = {
    {"poc", "", kedge_cmd_poc,
     "DIR [--tenants N] [--sites N] [--rounds N] [--dataset digits|mnist|fashion-mnist] [--help]",
     "a whole federation on this machine, as real processes over TLS"},
    {"init", "", kedge_cmd_init, "DIR [--deployment NAME] [--listen tls+tcp://HOST:PORT]",
     "make a coordinator's state folder"},
    {"status", "", kedge_cmd_status, "", "what the coordinator is and does"},
    {"tenant", "add", kedge_cmd_tenant_add, "TENANT --admin-key FILE",
     "add a tenant; FILE is made when absent"},
    {"tenant", "list", kedge_cmd_tenant_list, "", "tenants, their sites and ledgers"},
    {"site", "enroll", kedge_cmd_site_enroll, "TENANT SITE [--address URL] [--ttl SECONDS] [--out FILE]",
     "make a one-time token for a site"},
    {"site", "approve", kedge_cmd_site_approve, "TENANT SITE --admin-key FILE [--wait SECONDS]",
     "sign in a site that has used its token"},
    {"site", "list", kedge_cmd_site_list, "[TENANT]", "sites"},
    {"site", "revoke", kedge_cmd_site_revoke, "TENANT SITE --admin-key FILE [--reason TEXT]",
     "sign out a site, at once"},
    {"job", "submit", kedge_cmd_job_submit, "SPEC.json [--submit-token T] [--initial-model FILE]",
     "submit a job"},
    {"job", "join", kedge_cmd_job_join, "JOB TENANT --admin-key FILE", "join a job for a tenant"},
    {"job", "list", kedge_cmd_job_list, "", "jobs"},
    {"job", "show", kedge_cmd_job_show, "JOB", "one job with its rounds"},
    {"job", "watch", kedge_cmd_job_watch, "JOB", "live progress until the job ends"},
    {"job", "wait", kedge_cmd_job_wait, "JOB [--timeout SECONDS]",
     "wait for the end, silently; 0 completed, 1 not, 3 timeout"},
    {"job", "logs", kedge_cmd_job_logs, "JOB [--from ROUND]", "one line per round"},
    {"job", "stop", kedge_cmd_job_stop, "JOB [--cancel]", "halt a job (resume goes on), or end it for good"},
    {"job", "resume", kedge_cmd_job_resume, "JOB", "go on with a halted job"},
    {"job", "model", kedge_cmd_job_model, "JOB [--group G] [--out DIR] [--npz]", "take the models of a job"},
    {"ledger", "list", kedge_cmd_ledger_list, "", "the logs of a state folder"},
    {"ledger", "show", kedge_cmd_ledger_show, "LOG [INDEX] [--from I] [--limit N]",
     "statements of a log (main or a tenant)"},
    {"ledger", "prove", kedge_cmd_ledger_prove, "LOG INDEX | LOG --from SIZE [--to SIZE]",
     "a receipt (tlog-proof) or a consistency proof"},
    {"ledger", "verify", kedge_cmd_ledger_verify, "RECEIPT --log VKEY [--entry FILE]",
     "check a receipt offline"},
    {"audit", "verify", kedge_cmd_audit_verify, "DIR --trust FILE [--seen CHECKPOINT]… [--threads N]",
     "check the whole record offline"},
    {"audit", "replay", kedge_cmd_audit_replay, "DIR --trust FILE [--threads N]",
     "re-execute every decision"},
    {"audit", "trust", kedge_cmd_audit_trust, "[--out FILE]",
     "the keys that auditors need, from a running coordinator"},
    {"sim", "", kedge_cmd_sim, "SPEC.json", "a simulated federation: same cores, virtual time"},
    {"doctor", "", kedge_cmd_doctor, "[DIR]", "check an installation and say how to mend it"},
};
enum { COMMANDS = sizeof commands / sizeof commands[0] };

static int print_help(FILE *out)
{
    fputs("kedge: federated training between organisations, with a record that a stranger can check.\n\n",
          out);
    for (size_t i = 0; i < COMMANDS; i++) {
        char name[32];
        snprintf(name, sizeof name, "%s %s", commands[i].noun, commands[i].verb);
        fprintf(out, "  kedge %-14s %s\n", name, commands[i].help);
    }
    fputs("\nkedge COMMAND -h tells its arguments. All take --format json|text and --state DIR (or "
          "$KEDGE_STATE);\n"
          "a coordinator elsewhere: --connect URL --server-key HEX --key FILE.\n"
          "Exit codes: 0 done, 1 the answer is no, 2 usage, 3 cannot reach or read, 4 refused by policy,\n"
          "5 corrupt state, 70 bug.\n",
          out);
    return out == stdout ? 0 : 2;
}

static void print_command_help(const struct kedge_command *cmd)
{
    printf("Usage: kedge %s%s%s %s\n%s.\n", cmd->noun, cmd->verb[0] ? " " : "", cmd->verb, cmd->arguments,
           cmd->help);
    fputs("Common options: --format json|text, --state DIR, --connect URL, --server-key HEX, --key FILE.\n",
          stdout);
}

int kedge_cli_usage(struct kedge_cli *c, const char *format, ...)
{
    struct kedge_diag d = {.hint = ""};
    va_list ap;
    va_start(ap, format);
    vsnprintf(d.text, sizeof d.text, format, ap);
    va_end(ap);
    if (c->command) {
        (void)kedge_diag_hint(&d, "usage: kedge %s%s%s %s", c->command->noun, c->command->verb[0] ? " " : "",
                              c->command->verb, c->command->arguments);
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

const char *kedge_cli_option(struct kedge_cli *c, const char *name, const char *fallback)
{
    size_t len = strlen(name);
    for (int i = 0; i < c->argc; i++) {
        char *word = c->argv[i];
        if (strncmp(word, "--", 2) != 0 || strncmp(word + 2, name, len) != 0) {
            continue;
        }
        if (word[2 + len] == '=') {
            take_out(c, i, 1);
            return word + 3 + len;
        }
        if (word[2 + len] == '\0' && i + 1 < c->argc) {
            const char *value = c->argv[i + 1];
            take_out(c, i, 2);
            return value;
        }
    }
    return fallback;
}

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
        (void)kedge_cli_usage(c, "--%s: expected a whole number from %llu to %llu", name,
                              (unsigned long long)least, (unsigned long long)most);
        return false;
    }
    *ret = v;
    return true;
}

static const struct kedge_command *find_command(int argc, char **argv, int *ret_words)
{
    for (size_t i = 0; i < COMMANDS && argc > 0; i++) {
        const struct kedge_command *cmd = &commands[i];
        bool one = cmd->verb[0] == '\0';
        if (strcmp(cmd->noun, argv[0]) != 0) {
            continue;
        }
        if (one
            || (argc > 1
                && (strcmp(cmd->verb, argv[1]) == 0
                    || (strcmp(cmd->verb, "list") == 0 && strcmp(argv[1], "ls") == 0)))) {
            *ret_words = one ? 1 : 2;
            return cmd;
        }
    }
    return NULL;
}

/* The common options; false after a usage error. */
static bool take_common(struct kedge_cli *c)
{
    const char *format = kedge_cli_option(c, "format", "text");
    c->json = strcmp(format, "json") == 0;
    const char *state = getenv("KEDGE_STATE");
    c->state = kedge_cli_option(c, "state", state && state[0] ? state : "kedge-state");
    c->connect = kedge_cli_option(c, "connect", NULL);
    c->server_key = kedge_cli_option(c, "server-key", NULL);
    c->key = kedge_cli_option(c, "key", NULL);
    c->admin_key = kedge_cli_option(c, "admin-key", NULL);
    if (!c->json && strcmp(format, "text") != 0) {
        (void)kedge_cli_usage(c, "--format: expected json or text");
        return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    struct kedge_cli c = {.argc = argc - 1, .argv = argv + 1};
    int words = 0;
    umask(077);
    signal(SIGPIPE, SIG_IGN);
    kedge_log_init("kedge", KEDGE_LOG_WARN);
    if (argc < 2) {
        return print_help(stderr);
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
        return print_help(stdout);
    }
    if (strcmp(argv[1], "--version") == 0) {
        puts("kedge 0.1.0");
        return 0;
    }
    if (!take_common(&c)) {
        return 2;
    }
    c.command = find_command(c.argc, c.argv, &words);
    if (!c.command) {
        return kedge_cli_usage(&c, "unknown command \"%.40s%s%.40s\"", c.argc > 0 ? c.argv[0] : "",
                               c.argc > 1 ? " " : "", c.argc > 1 ? c.argv[1] : "");
    }
    c.argc -= words;
    c.argv += words;
    for (int i = 0; i < c.argc; i++) {
        if (strcmp(c.argv[i], "-h") == 0 || strcmp(c.argv[i], "--help") == 0) {
            print_command_help(c.command);
            return 0;
        }
    }
    int err = kedge_crypto_init();
    return err ? kedge_cli_fail(&c, err, NULL) : c.command->run(&c);
}
