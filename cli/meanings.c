/* Arguments and options by name. A word means the same in most commands; a row that names a command, or a
 * noun with all its commands, comes before the one that names none. test_cli_usage asks for the meaning of
 * every word of every usage line. */
#include "cli/meanings.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *command, *word, *meaning;
} meanings[] = {
    {"anchor verify", "FILE", "evidence of an anchor, from STATE/anchors or an export"},
    {"anchor", "--timeout", "with --once: wait so long for the other chain"},
    {"anchor run", "--interval", "seconds between two time stamps (3,600)"},
    {"audit evidence", "FILE", "the evidence that a witness, a site or a copy kept"},
    {"audit explain", "MODEL", "a model file; its SHA-256 says which"},
    {"audit export", "--keys", "folder of the two private keys that sign the export; made when absent"},
    {"audit export", "--model", "only this released model, a file; may be given again"},
    {"audit export", "--out", "the new folder; made whole or not at all"},
    {"audit export", "--tenant", "also this tenant's own statements; may be given again"},
    {"audit timestamp-query", "CHECKPOINT", "a signed checkpoint, a file"},
    {"audit timestamp-query", "--out", "the file to write"},
    {"audit trust", "--out", "write the trust file there instead of on stdout"},
    {"audit verify-export", "FOLDER", "the export"},
    {"audit verify-export", "--keys", "folder with the exporter's public keys, from another source"},
    {"audit verify-model", "MODEL", "the folder or file that was signed"},
    {"audit verify-model", "--key", "the signer's public key (P-256, P-384 or P-521), PEM"},
    {"audit pack", "STATE", "the state folder; its coordinator may run"},
    {"audit pack", "OUT", "the new file: .tar, .tar.gz or .tar.zst"},
    {"audit pack", "--update-keys", "with the keys that open encrypted updates; else they stay sealed"},
    {"audit", "DIR", "the record: a folder, a tar archive, or one tenant's copy"},
    {"audit", "--tenant", "judge only this tenant's ledger and the main chain; may be given again"},
    {"audit", "--statements", "write every statement, one JSON object a line"},
    {"backup", "STATE", "the state folder; its coordinator may run"},
    {"backup", "OUT", "the new folder for the backup, with the private keys; made whole or not at all"},
    {"contact", "OPENING", "the file with the words and the random salt"},
    {"contact set", "--opening", "the new file for the words and the random salt (0600); it stays with you"},
    {"doctor", "DIR", "a coordinator's state folder or a site's folder, to be checked too"},
    {"events", "--job", "only events of this job"},
    {"events", "--tenant", "only events that this tenant may see"},
    {"events", "--from", "the number of the first event to print; without it all, the record's first"},
    {"events", "--follow", "go on with what comes, until Ctrl-C"},
    {"init", "DIR", "the new state folder"},
    {"job groups", "--svg", "draw the groups into this file"},
    {"job list", "--after", "go on after this job, in the order of names"},
    {"job list", "--limit", "a page of so many, in the order of names"},
    {"job list", "--since", "only jobs submitted at this time or later: 2026-11-28, or 2026-11-28T17:45:09Z"},
    {"job list", "--tenant", "only jobs of this tenant"},
    {"job list", "--name", "only jobs whose name fits, such as 'digits-*'"},
    {"job list", "--newest", "only the N newest of them"},
    {"job list", "--state-is", "only jobs in this state; active: all that go on, ended: all others"},
    {"job spec", "SPEC.json", "the spec to read, as submit would; no coordinator is asked"},
    {"job spec", "--schema", "the JSON Schema of job specs, for editors"},
    {"job plan", "PLAN.json", "devices and costs; no coordinator is asked"},
    {"job plan", "--rounds", "how many of the last rounds are looked at (10)"},
    {"job plan", "--job", "plan for the sites of this job, which has trained"},
    {"job clone", "--name", "the new job's name; else a number is put behind the old one, or counted up"},
    {"job clone", "--set",
     "change this key of the spec (model.inputs=4; null takes it out); may be given again"},
    {"job clone", "--submit", "submit the new spec; else it is printed"},
    {"job compare", "JOB_A", "a job, running or ended long ago"},
    {"job compare", "JOB_B", "the job to hold beside it"},
    {"job events", "--follow", "go on until the job has ended; with --format json each move is a line"},
    {"job events", "--from", "the number of the first move to tell of"},
    {"job logs", "--costs", "also what each round cost: bytes uploaded, seconds and joules of sites"},
    {"job logs", "--from", "the first round to tell of"},
    {"job stop", "--cancel", "end the job for good"},
    {"job model", "--out", "folder for the models (the current one)"},
    {"job model", "--group", "only the model of this group"},
    {"job model", "--wait", "wait so long for the cosignatures that a release needs"},
    {"job model", "--evidence",
     "also write the release's statement and inclusion proof (always with --connect)"},
    {"job model", "--unreleased", "with --connect: also models in use, which nothing proves yet"},
    {"login", "--key", "your private key: a tenant's admin key, or an operator's"},
    {"login", "--trust", "the logs' keys as you have them from elsewhere, for receipts"},
    {"login", "--profile", "the name under which it is kept (default)"},
    {"logout", "--profile", "the name under which it was kept (default)"},
    {"login", "URL", "where it listens: tls+tcp://HOST:PORT, or with its key behind a #"},
    {"predict", "MODEL", "a model file, from kedge job model"},
    {"predict", "DATA.csv", "the samples, one a line, as the job's sites have theirs"},
    {"predict", "--out", "write the predictions there instead of on stdout"},
    {"predict", "--probabilities", "a column for each class, too"},
    {"predict", "--label",
     "the column with the label, by name or number (the last, where there is one more)"},
    {"predict", "--ignore", "a column to leave out, by name or number; may be given again"},
    {"predict", "--train", "a file that was trained on, for standardized features and missing values"},
    {"predict", "--missing", "missing values: refuse (default), or mean, of --train"},
    {"predict", "--separator", "one character between fields (found out)"},
    {"predict", "--decimal", ", for 3,14 (.)"},
    {"predict", "--scale", "features are multiplied by it (1), as the site's policy says"},
    {"predict", "--spec", "the job's spec (MODEL with the ending .json)"},
    {"job wait", "--timeout", "give up after so long (exit code 3)"},
    {"key add", "--role", "admin (default), or recovery"},
    {"key revoke", "--role", "what kind of key it is: admin (default), or recovery"},
    {"key revoke", "KEY", "the public key in hex, as kedge key list shows it"},
    {"key", "--out", "write the statement instead of sending it, for others to sign"},
    {"key sign", "FILE", "the statement, from --out of another kedge key command"},
    {"key send", "FILE", "the signed statement"},
    {"key", "FILE", "the private key's file"},
    {"ledger erase", "--digest", "erase the update with this SHA-256; may be given again"},
    {"ledger erase", "--job", "erase the updates of this job"},
    {"ledger erase", "--rounds", "with --job: only these rounds"},
    {"ledger follow", "DIR", "the folder that kedge witness init made"},
    {"ledger follow", "--interval", "seconds between two looks (1)"},
    {"ledger position", "--entries", "how many entries may be appended before it is used (1,048,576)"},
    {"ledger prove", "--from", "prove growth from this size …"},
    {"ledger prove", "--to", "… to this size (the newest)"},
    {"ledger prune", "STATE", "the state folder; its coordinator is stopped"},
    {"ledger prune", "--job", "of this job only, which has ended"},
    {"ledger prune", "--keep-every", "keep the models of every N-th round"},
    {"ledger repair", "--from", "another copy: a state folder, or a log's folder"},
    {"ledger show", "--from", "the first entry to show"},
    {"ledger tiles", "--entries", "whether entries are written too, or hashes only"},
    {"ledger tiles", "--checkpoint", "a file with the signed checkpoint to publish, instead of the newest"},
    {"ledger verify", "--policy", "the witnesses whose cosignatures the checkpoint must have, a file"},
    {"ledger", "--out", "the file or folder to write"},
    {"ledger", "LOG", "main, or the name of a tenant"},
    {"ledger repair", "STATE", "the state folder with the damaged log; its coordinator is stopped"},
    {"ledger repair", "--mark-lost", "you vouch that no larger size than the copy's was ever signed"},
    {"poc", "DIR", "the folder for everything; the same one again goes on where it was"},
    {"poc", "--tenants", "organisations (3)"},
    {"poc", "--sites", "sites of each organisation (4)"},
    {"poc", "--groups", "groups of sites; 1 trains one model only"},
    {"poc", "--dataset", "the samples that are split over the sites"},
    {"poc", "--data", "own data of named clients, a site for each: .csv, .npz, .json, a folder"},
    {"poc", "--client", "own data: the column or array that names the clients (client)"},
    {"poc", "--label", "own data: the column or array of the labels (the last; y)"},
    {"poc", "--group", "own data: a column or array of true groups, for sites.csv"},
    {"poc", "--missing", "own data: missing values: refuse (default), drop, or mean"},
    {"poc", "--standardize", "own data: features by mean and deviation, per site or federated"},
    {"poc", "--insecure", "plain TCP on loopback, for measuring only"},
    {"reader add", "TENANT", "who may read: this tenant, its own log whole"},
    {"reader add", "--auditor", "who may read: an auditor, everything"},
    {"reader add", "--ttl", "how long the token is good (7,776,000, which is 90 days)"},
    {"restore", "BACKUP", "a folder that kedge backup made"},
    {"restore", "STATE", "the new state folder"},
    {"restore", "--former", "the former state folder: its marks say whether anything newer was signed"},
    {"restore", "--newest", "you vouch that nothing newer was signed, or that it is lost for good"},
    {"reader list", "TENANT", "only those that read as this tenant"},
    {"reader revoke", "--tenant", "whose it is, where several have one of this name"},
    {"reader revoke", "NAME", "the token's name, as kedge reader list shows it"},
    {"reader", "--name", "a name by which to find it again"},
    {"role grant", "NAME", "a name for the key's holder"},
    {"role grant", "--role", "operator: may do everything but roles; auditor: may only read"},
    {"role quorum", "N", "how many organisations; 0: none needs to approve"},
    {"role revoke", "KEY", "the public key in hex, as kedge role list shows it"},
    {"role", "FILE", "the proposal, from --propose"},
    {"sim", "SPEC.json", "the spec; docs/cli.md lists its keys"},
    {"sim", "--out", "keep results, plots and models there"},
    {"sim", "--export", "run nothing: write the job and its sites' samples into this folder"},
    {"sim", "--print-job", "run nothing: print the job that the spec stands for"},
    {"sim", "--resume", "go on with the results in --out"},
    {"sim", "--seeds", "with --compare: so many seeds, for a confidence interval"},
    {"site enroll", "--ttl", "how long the token is good (86,400, which is a day)"},
    {"site enroll", "--address", "where the site reaches the coordinator, tls+tcp://HOST:PORT"},
    {"site approve", "--wait", "wait so long for the site to use its token"},
    {"site label", "KEY=VALUE", "all labels that the site has from now on, at most 16"},
    {"site label", "--none", "it has none from now on"},
    {"site list", "TENANT", "only the sites of this tenant"},
    {"site rotate", "--only", "only this key, instead of both"},
    {"witness init", "DIR", "the new folder, which stays at the tenant"},
    {"witness init", "--name", "the name of its cosignatures, for when others are not to learn the tenant's"},
    {"witness policy", "FILE", "the policy file"},
    {"witness push", "--interval", "seconds after which what is cosigned is shown again (3,600)"},

    {"", "DIR", "the folder"},
    {"", "CHECKPOINT", "a signed checkpoint, a file"},
    {"", "FILE", "the file"},
    {"", "INDEX", "the entry's index, from 0"},
    {"", "JOB", "the job's name"},
    {"", "RECEIPT", "a receipt (tlog-proof), a file"},
    {"", "SITE", "the site's name"},
    {"", "SPEC.json", "the job spec (- for standard input); docs/job-spec.md lists its keys"},
    {"", "STATE_OR_FOLDER", "a state folder, a log's folder or one store; --state when absent"},
    {"tenant quota", "--sites",
     "sites that were ever enrolled, revoked ones too; 0: as every tenant (1,024)"},
    {"tenant quota", "--jobs", "jobs that go on and name the tenant; 0: any number"},
    {"tenant quota", "--tokens", "tokens for sites that were ever made; 0: as every tenant (10,000)"},
    {"tenant quota", "--statements-per-s", "updates and evaluations of its sites in a second; 0: any number"},
    {"tenant quota", "--bytes-per-s",
     "bytes that its sites upload in a second, 1024 and more; 0: any number"},
    {"viewer", "NAME", "a name for the key's holder; names are the tenant's own"},
    {"", "TENANT", "the organisation's name"},
    {"", "WITNESS", "the witness's name"},
    {"", "--admin-key", "private key of the tenant's admin; it goes nowhere else"},
    {"", "--adopt", "after a stop or a lost state: go on from what the contract has"},
    {"", "--all-tenants", "also every tenant's own statements"},
    {"", "--also-key", "a further admin key that signs; may be given again"},
    {"", "--anchor", "hold anchors to this chain, contract and account"},
    {"", "--authority", "who asked for it, for the record"},
    {"", "--blob-key", "a tenant's key of encrypted updates, for a copy that lacks it"},
    {"", "--blobs", "which files are copied: none, lists (default), or all"},
    {"", "--checkpoint", "the checkpoint that it is held to, a file"},
    {"", "--compare", "run these strategies, or variants of the spec, beside each other"},
    {"", "--connect", "address of a coordinator elsewhere"},
    {"", "--refusal", "a signed refusal to hold against the record; may be given again"},
    {"", "--contact", "an opening to hold to the ledger; may be given again"},
    {"", "--cost", "work that one guess costs: moderate (256 MiB), or small (64 MiB)"},
    {"", "--deployment", "the federation's name, in every log's origin"},
    {"", "--dry-run", "say what would be done, and do nothing"},
    {"", "--entry", "the statement's own bytes, a file"},
    {"", "--entry-out", "also write the statement's own bytes there"},
    {"", "--fast", "let Kedge's own curve arithmetic decide, without libsodium"},
    {"", "--initial-model", "the first weights, a canonical safetensors file"},
    {"", "--limit", "at most so many (50)"},
    {"", "--listen", "address on which sites are served"},
    {"", "--log", "the log's verifier key, as kedge ledger list --format json shows it"},
    {"", "--mixing", "how far groups' models move towards each other after a round (0)"},
    {"", "--model-inputs", "with --trainer: numbers of one sample"},
    {"", "--model-classes", "with --trainer: classes"},
    {"", "--new-key", "the new private key; made when absent"},
    {"", "--npz", "also write npz files, for NumPy"},
    {"", "--older-than", "erase updates that are older than so many days"},
    {"", "--once", "one step, then end"},
    {"", "--out", "the file to write; else it stands on stdout"},
    {"", "--partition", "how samples are split: in groups, overlapping, or alike"},
    {"", "--parts", "parts into which a site's data are divided for the plan (4)"},
    {"", "--plain-blobs", "leave updates on the disk as they are, not encrypted"},
    {"", "--processes", "processes that share the work (1)"},
    {"", "--propose", "write a proposal for organisations to approve, and change nothing"},
    {"", "--public", "the public key in hex, as kedge key public prints it"},
    {"", "--reason", "why, for the record"},
    {"", "--record", "read this record instead of asking the coordinator"},
    {"", "--recovery-key", "the tenant's recovery key, a file"},
    {"", "--report", "write a summary for people into this file, in Markdown"},
    {"", "--rounds", "rounds of training"},
    {"", "--rule", "how updates become one result, as in job specs"},
    {"", "--save-every", "rounds between two states from which a run goes on"},
    {"", "--seed", "decides weights, selection and groups"},
    {"", "--seen", "a checkpoint that somebody saw earlier; may be given again"},
    {"", "--server", "what the server does with an aggregate, as in job specs"},
    {"", "--server-key", "the coordinator's pinned key in hex, as kedge status shows it"},
    {"", "--signature", "the signature file"},
    {"", "--simd", "the vector instructions to use; the result is the same"},
    {"", "--site-folder", "the site's folder, with its kedge-client stopped"},
    {"", "--spec", "sign only if the job's spec is this file, byte for byte"},
    {"", "--statement-key", "the site's statement key in hex, as its device shows it"},
    {"", "--strategy", "how sites train and how updates weigh, as in job specs"},
    {"", "--submit-token", "a word of your choice: the same one again is the same job"},
    {"", "--text-file", "who answers for it, in words, a file"},
    {"", "--threads", "threads that work (as many as there are processors)"},
    {"", "--time", "the time that attestations state (that of the newest time stamp, else now)"},
    {"", "--timestamp", "an authority's reply to put into the export; may be given again"},
    {"", "--tls-key", "the TLS key in hex, as its device shows it"},
    {"", "--trainer", "absolute path of another trainer than kedge-train"},
    {"", "--trust", "the keys and checkpoints that you trust (kedge audit trust makes it)"},
    {"", "--tsa", "a time-stamping authority (RFC 3161)"},
    {"", "--tsa-ca", "certificates of the time-stamping authority, PEM"},
    {"", "--vkey", "the witness's verifier key"},
    {"", "--weights", "what samples, joules and time are worth (10,1,3)"},
};

enum { MEANING_COUNT = sizeof meanings / sizeof meanings[0] };

/* Whether a row's command is this one: "key sign" is one command, "key" all of the noun, "" every command. */
static bool is_about(const char *row, const struct kedge_command *cmd)
{
    size_t noun = strlen(cmd->noun);
    if (strncmp(row, cmd->noun, noun) != 0) {
        return row[0] == '\0';
    }
    return row[noun] == '\0' || (row[noun] == ' ' && strcmp(row + noun + 1, cmd->verb) == 0);
}

/* The row that names most wins: the command, then its noun, then any. */
const char *kedge_cli_meaning(const struct kedge_command *command, const char *word)
{
    const char *best = NULL;
    size_t best_len = 0;
    for (size_t i = 0; i < MEANING_COUNT; i++) {
        size_t len = strlen(meanings[i].command);
        bool fits = strcmp(meanings[i].word, word) == 0 && is_about(meanings[i].command, command);
        if (fits && (!best || len > best_len)) {
            best = meanings[i].meaning;
            best_len = len;
        }
    }
    return best;
}

/* A word that stands twice in a usage line ("--from" in two forms of ledger prove) has one meaning. */
static void add_word(struct kedge_cli_usage_word *words, size_t *count,
                     const struct kedge_cli_usage_word *word)
{
    for (size_t i = 0; i < *count; i++) {
        if (strcmp(words[i].name, word->name) == 0) {
            return;
        }
    }
    if (*count < KEDGE_CLI_WORDS_MAX) {
        words[(*count)++] = *word;
    }
}

/* The words of a usage line in their order: options, with the name of their value, and arguments, which are
 * written in capitals. Everything else is punctuation or a fixed choice ("yes|no") and needs no meaning. */
size_t kedge_cli_usage_words(const char *usage, struct kedge_cli_usage_word *ret)
{
    static const char around[] = " []()|", ends[] = " ])";
    size_t count = 0;
    for (const char *at = usage + strspn(usage, around); *at; at += strspn(at, around)) {
        struct kedge_cli_usage_word word = {.value = ""};
        bool is_option = strncmp(at, "--", 2) == 0;
        size_t len = is_option ? strcspn(at, ends) : strcspn(at, around);
        snprintf(word.name, sizeof word.name, "%.*s", (int)len, at);
        at += len;
        /* A value follows after one blank: "--out DIR", but "--npz [--evidence]" and "--once --interval" have
         * none. */
        if (is_option && at[0] == ' ' && strchr("-[(|", at[1]) == NULL) {
            size_t value = strcspn(at + 1, ends);
            snprintf(word.value, sizeof word.value, "%.*s", (int)value, at + 1);
            at += 1 + value;
        }
        if (is_option || isupper((unsigned char)word.name[0])) {
            add_word(ret, &count, &word);
        }
    }
    return count;
}
