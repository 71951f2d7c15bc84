/* kedge: the command line of operators, tenants and auditors. One table of commands. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/cli.h"
#include "cli/help.h"
#include "cli/local.h"
#include "common/base/os/log.h"
#include "crypto/passphrase.h"

const struct kedge_command kedge_commands[] = {
    {"poc", "", kedge_cmd_poc,
     "DIR [--tenants N] [--sites N] [--rounds N] [--groups N] [--mixing RATE] [--strategy NAME] [--rule "
     "NAME] "
     "[--server NAME] [--seed N] "
     "[--dataset digits|mnist|fashion-mnist] [--partition iid|ring|planted] [--trainer FILE] "
     "[--model-inputs N --model-classes N] [--insecure] [--plain-blobs]",
     "a whole federation on this machine, as real processes over TLS"},
    {"init", "", kedge_cmd_init, "DIR [--deployment NAME] [--listen tls+tcp://HOST:PORT]",
     "make a coordinator's state folder"},
    {"status", "", kedge_cmd_status, "", "what the coordinator is and does"},
    {"tenant", "add", kedge_cmd_tenant_add, "TENANT --admin-key FILE",
     "add a tenant; FILE is made when absent"},
    {"tenant", "list", kedge_cmd_tenant_list, "", "tenants, their sites and ledgers"},
    {"site", "enroll", kedge_cmd_site_enroll, "TENANT SITE [--address URL] [--ttl SECONDS] [--out FILE]",
     "make a one-time token for a site"},
    {"site", "approve", kedge_cmd_site_approve,
     "TENANT SITE --admin-key FILE [--wait SECONDS] [--tls-key HEX] [--statement-key HEX]",
     "sign in a site that has used its token"},
    {"site", "list", kedge_cmd_site_list, "[TENANT]", "sites"},
    {"site", "revoke", kedge_cmd_site_revoke, "TENANT SITE --admin-key FILE [--reason TEXT]",
     "sign out a site, at once"},
    {"site", "rotate", kedge_cmd_site_rotate, "TENANT SITE --site-folder DIR [--only statement|tls]",
     "new keys for a site, on its device"},
    {"contact", "set", kedge_cmd_contact_set,
     "TENANT [SITE] --text-file FILE --opening FILE --admin-key FILE", "commit to who answers for it"},
    {"contact", "show", kedge_cmd_contact_show, "OPENING", "what an opening says"},
    {"contact", "forget", kedge_cmd_contact_forget, "OPENING", "destroy an opening: the ledger keeps noise"},
    {"role", "grant", kedge_cmd_role_grant, "NAME --role operator|auditor --public HEX [--propose FILE]",
     "let a TLS key ask from elsewhere"},
    {"role", "list", kedge_cmd_role_list, "", "operators and auditors, statement keys, quorum"},
    {"role", "revoke", kedge_cmd_role_revoke, "KEY [--reason TEXT] [--propose FILE]", "end a role, at once"},
    {"role", "quorum", kedge_cmd_role_quorum, "N [--propose FILE]",
     "how many organisations approve roles, statement keys and this"},
    {"role", "review", kedge_cmd_role_review, "FILE", "what a proposal would do, in words"},
    {"role", "approve", kedge_cmd_role_approve, "FILE --admin-key FILE",
     "sign a proposal for an organisation"},
    {"role", "submit", kedge_cmd_role_submit, "FILE", "put an approved proposal in force"},
    {"key", "list", kedge_cmd_key_list, "TENANT", "a tenant's admin keys and recovery key"},
    {"key", "add", kedge_cmd_key_add,
     "TENANT --admin-key FILE (--new-key FILE | --public HEX) [--role admin|recovery] [--also-key FILE]… "
     "[--out FILE]",
     "one more admin key, or the recovery key"},
    {"key", "rotate", kedge_cmd_key_rotate,
     "TENANT (--admin-key FILE | --recovery-key FILE) --new-key FILE [--out FILE]",
     "a new key in the place of one that you have"},
    {"key", "rotate-statement", kedge_cmd_key_rotate_statement, "[--reason TEXT] [--propose FILE]",
     "a new statement key for the coordinator, which goes on"},
    {"key", "revoke", kedge_cmd_key_revoke,
     "TENANT KEY --admin-key FILE [--also-key FILE]… [--role admin|recovery] [--reason TEXT] [--out FILE]",
     "an admin key that is lost or stolen"},
    {"key", "recover", kedge_cmd_key_recover,
     "TENANT --recovery-key FILE --new-key FILE [--reason TEXT] [--out FILE]",
     "one admin key in the place of all"},
    {"key", "sign", kedge_cmd_key_sign, "FILE --admin-key FILE", "add a signature to a statement about keys"},
    {"key", "send", kedge_cmd_key_send, "FILE", "send a statement about keys"},
    {"key", "protect", kedge_cmd_key_protect, "FILE [--cost moderate|small]",
     "seal a private key's file with a passphrase"},
    {"key", "unprotect", kedge_cmd_key_unprotect, "FILE", "make it a plain key again"},
    {"key", "public", kedge_cmd_key_public, "FILE", "the public key of a private key's file"},
    {"reader", "add", kedge_cmd_reader_add, "TENANT|--auditor [--name NAME] [--ttl SECONDS] [--out FILE]",
     "a token for reading logs over HTTPS"},
    {"reader", "list", kedge_cmd_reader_list, "", "such tokens; the secrets are not kept"},
    {"reader", "revoke", kedge_cmd_reader_revoke, "NAME", "end a token, at once"},
    {"job", "submit", kedge_cmd_job_submit, "SPEC.json [--submit-token T] [--initial-model FILE]",
     "submit a job"},
    {"job", "join", kedge_cmd_job_join, "JOB TENANT --admin-key FILE [--spec FILE]",
     "join a job for a tenant"},
    {"job", "list", kedge_cmd_job_list, "", "jobs"},
    {"job", "show", kedge_cmd_job_show, "JOB", "one job with its rounds"},
    {"job", "groups", kedge_cmd_job_groups, "JOB [--svg FILE] [--record DIR]",
     "groups of sites: who, how near, and every move"},
    {"job", "plan", kedge_cmd_job_plan,
     "PLAN.json | --job JOB [--record DIR] [--rounds N] [--parts N] [--weights DATA,ENERGY,TIME]",
     "how much data and energy devices should spend, and what that gives"},
    {"job", "watch", kedge_cmd_job_watch, "JOB", "live progress until the job ends"},
    {"job", "wait", kedge_cmd_job_wait, "JOB [--timeout SECONDS]",
     "wait for the end, silently; 0 completed, 1 not, 3 timeout"},
    {"job", "logs", kedge_cmd_job_logs, "JOB [--from ROUND]", "one line per round"},
    {"job", "stop", kedge_cmd_job_stop, "JOB [--cancel]", "halt a job (resume goes on), or end it for good"},
    {"job", "resume", kedge_cmd_job_resume, "JOB", "go on with a halted job"},
    {"job", "model", kedge_cmd_job_model, "JOB [--group G] [--out DIR] [--npz] [--evidence] [--wait SECONDS]",
     "take the models of a job, and what proves their release"},
    {"ledger", "list", kedge_cmd_ledger_list, "", "the logs of a state folder"},
    {"ledger", "show", kedge_cmd_ledger_show, "LOG [INDEX] [--from I] [--limit N]",
     "statements of a log (main or a tenant)"},
    {"ledger", "prove", kedge_cmd_ledger_prove,
     "LOG INDEX [--entry-out FILE] | LOG --from SIZE [--to SIZE] [--out FILE]",
     "a receipt (tlog-proof) or a consistency proof"},
    {"ledger", "verify", kedge_cmd_ledger_verify, "RECEIPT --log VKEY [--entry FILE] [--policy FILE]",
     "check a receipt offline"},
    {"ledger", "position", kedge_cmd_ledger_position, "TENANT [--entries N] [--out FILE]",
     "where a statement that is signed elsewhere may stand"},
    {"ledger", "tiles", kedge_cmd_ledger_tiles, "LOG --out DIR [--entries yes|no] [--checkpoint FILE]",
     "a log as static files, for other tools (tlog-tiles)"},
    {"ledger", "fsck", kedge_cmd_ledger_fsck, "[STATE_OR_FOLDER] [LOG]…",
     "look at every live bit of the logs and name each damage"},
    {"ledger", "repair", kedge_cmd_ledger_repair, "STATE LOG --from REPLICA_OR_BACKUP [--mark-lost]",
     "build a damaged log anew from another copy of it"},
    {"ledger", "erase", kedge_cmd_ledger_erase,
     "TENANT (--digest HEX… | --job JOB [--rounds A-B] | --older-than DAYS) --reason TEXT --admin-key FILE "
     "[--authority TEXT] [--dry-run]",
     "updates of a tenant go, the proofs stay"},
    {"ledger", "follow", kedge_cmd_ledger_follow,
     "DIR [--once] [--interval SECONDS] [--blobs none|lists|all]",
     "copy a tenant's ledger and the main chain, check and cosign them"},
    {"witness", "init", kedge_cmd_witness_init,
     "DIR TENANT WITNESS --trust FILE --connect URL --server-key HEX [--name KEYNAME]",
     "make a witness's folder and keys, at the tenant"},
    {"witness", "enroll", kedge_cmd_witness_enroll,
     "TENANT WITNESS --tls-key HEX --vkey VKEY --admin-key FILE", "sign in a witness"},
    {"witness", "list", kedge_cmd_witness_list, "", "witnesses and what they have cosigned"},
    {"witness", "policy", kedge_cmd_witness_policy, "FILE",
     "what a witness policy demands, and is its quorum safe?"},
    {"witness", "push", kedge_cmd_witness_push, "[--once] [--interval SECONDS]",
     "have witnesses elsewhere cosign the main chain"},
    {"witness", "revoke", kedge_cmd_witness_revoke, "TENANT WITNESS --admin-key FILE [--reason TEXT]",
     "sign out a witness, at once"},
    {"audit", "verify", kedge_cmd_audit_verify,
     "DIR --trust FILE [--seen CHECKPOINT]… [--tenant T]… [--tsa-ca CA.pem] [--anchor "
     "CHAIN:CONTRACT:ACCOUNT] "
     "[--blob-key TENANT=FILE]… [--contact OPENING]… [--threads N] [--fast] [--statements FILE] [--report "
     "FILE]",
     "check the whole record offline"},
    {"audit", "replay", kedge_cmd_audit_replay,
     "DIR --trust FILE [--seen CHECKPOINT]… [--tenant T]… [--tsa-ca CA.pem] [--anchor "
     "CHAIN:CONTRACT:ACCOUNT] "
     "[--blob-key TENANT=FILE]… [--contact OPENING]… [--threads N] [--fast] [--simd "
     "scalar|sse2|avx2|avx512|neon] "
     "[--statements "
     "FILE] [--report FILE]",
     "re-execute every decision"},
    {"audit", "explain", kedge_cmd_audit_explain,
     "MODEL DIR --trust FILE [--seen CHECKPOINT] [--tsa-ca CA.pem] [--anchor CHAIN:CONTRACT:ACCOUNT] "
     "[--threads N]",
     "where a model comes from, as a tree"},
    {"audit", "export", kedge_cmd_audit_export,
     "DIR --out FOLDER --trust FILE --keys FOLDER [--model FILE]… [--tenant T]… [--all-tenants] "
     "[--seen CHECKPOINT]… [--timestamp REPLY.tsr]… [--tsa-ca CA.pem] [--time T] [--threads N]",
     "standard provenance files of a verified record"},
    {"audit", "verify-export", kedge_cmd_audit_verify_export,
     "FOLDER --trust FILE [--keys FOLDER] [--tsa-ca CA.pem]", "check an export by itself"},
    {"audit", "verify-model", kedge_cmd_audit_verify_model, "MODEL --signature model.sig --key PUBLIC.pem",
     "check an OpenSSF model signature"},
    {"audit", "timestamp-query", kedge_cmd_audit_timestamp_query, "CHECKPOINT --out QUERY.tsq",
     "an RFC 3161 query over a checkpoint"},
    {"audit", "evidence", kedge_cmd_audit_evidence, "FILE --log VKEY",
     "does a file convict a log of two histories?"},
    {"audit", "trust", kedge_cmd_audit_trust, "[--out FILE]",
     "the keys that auditors need, from a running coordinator"},
    {"anchor", "run", kedge_cmd_anchor_run,
     "[--once [--timeout SECONDS]] [--adopt] [--tsa URL --tsa-ca CA.pem [--interval SECONDS]]",
     "anchor the main chain on another chain, or under time stamps"},
    {"anchor", "status", kedge_cmd_anchor_status, "", "what is anchored, under way, spent"},
    {"anchor", "deploy", kedge_cmd_anchor_deploy, "", "make the contract, once per chain"},
    {"anchor", "verify", kedge_cmd_anchor_verify, "FILE [--checkpoint NOTE [--log VKEY]] [--tsa-ca CA.pem]",
     "check the evidence of an anchor offline"},
    {"sim", "", kedge_cmd_sim,
     "SPEC.json [--out DIR] [--resume] [--compare A,B,…] [--seeds N] [--threads N] [--processes N] "
     "[--save-every ROUNDS] [--export DIR]",
     "a federation simulated: learning (a spec with data) or protocol"},
    {"doctor", "", kedge_cmd_doctor, "[DIR]", "check an installation and say how to mend it"},
};
const size_t kedge_command_count = sizeof kedge_commands / sizeof kedge_commands[0];

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
    c->position = kedge_cli_option(c, "position", NULL);
    kedge_passphrase_use_file(kedge_cli_option(c, "passphrase-file", NULL));
    kedge_passphrase_use_terminal();
    if (!c->json && strcmp(format, "text") != 0) {
        (void)kedge_cli_usage(c, "--format %s: expected json or text", kedge_cli_word(format).s);
        return false;
    }
    return true;
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
