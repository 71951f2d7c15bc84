/* Inside of the kedge program: what its commands share. A command is a function and a row in commands.c. Only
 * main.c and help.c read that table; a command sees of it its own row. */
#ifndef KEDGE_CLI_CLI_H
#define KEDGE_CLI_CLI_H

#include <jansson.h>
#include <stdint.h>

#include "chain/statement/statement.h"
#include "common/base/diag.h"
#include "common/base/os/file.h"
#include "common/base/text.h"
#include "crypto/sign.h"

enum { KEDGE_CLI_KEYS_MAX = 4 };

/* Options that every command takes, and the command's own arguments in between. */
struct kedge_cli {
    bool json;              /* --format json */
    const char *state;      /* --state DIR, else $KEDGE_STATE, else "kedge-state" */
    const char *connect;    /* --connect URL: a coordinator elsewhere, instead of the state folder's door */
    const char *profile;    /* of `kedge login`, that says how to connect; NULL: none does */
    const char *server_key; /* --server-key HEX, with --connect */
    const char *key;        /* --key FILE: operator's TLS key, with --connect */
    const char *key_after;  /* the key to go on with once what is asked is done; NULL: the same */
    const char *admin_key;  /* --admin-key FILE */
    const char *position;   /* --position FILE: where in a tenant's ledger what is signed may stand */
    const char *trust;      /* --trust FILE: keys of logs, from elsewhere */
    const char *receipts;   /* --receipts DIR: where receipts are kept */
    bool receipts_untold;   /* a command of many, which says so itself */
    const struct kedge_command *command;
    const char *noun; /* of an unknown command: what its help is about */
    bool told;        /* the last error came from the coordinator, not from this machine */
    struct {
        const char *option, *file;
    } keys[KEDGE_CLI_KEYS_MAX]; /* private keys that were named; keys_used.h */
    unsigned key_count;
    int argc; /* what is left: positional arguments and the command's own options */
    char **argv;
};

/* Who a command is for first of all: kedge --help lists the commands by this. */
enum kedge_audience {
    KEDGE_FOR_START, /* anyone who tries Kedge for the first time */
    KEDGE_FOR_OPERATE,
    KEDGE_FOR_TENANT,
    KEDGE_FOR_WITNESS,
    KEDGE_FOR_DEVICE,
    KEDGE_FOR_AUDIT,
    KEDGE_FOR_RESEARCH,
    KEDGE_AUDIENCES
};

struct kedge_command {
    const char *noun, *verb;         /* "job", "submit"; verb "" for one-word commands */
    int (*run)(struct kedge_cli *c); /* returns the exit code */
    const char *arguments;           /* for the usage line */
    const char *help;                /* one line */
    enum kedge_audience audience;
    const char *example; /* a whole command line */
};

/* ---- arguments.c ---- */
/* "Usage: kedge NOUN VERB ARGUMENTS" on stderr and, in JSON, an error; returns 2. */
int kedge_cli_usage(struct kedge_cli *c, const char *format, ...) KEDGE_PRINTF(2, 3);
/* The value of "--NAME VALUE" or "--NAME=VALUE" among the arguments, taken out of them; fallback when absent
 * or without a value (kedge_cli_no_more says so then): a word that begins with "--" is one only after "=".
 */
const char *kedge_cli_option(struct kedge_cli *c, const char *name, const char *fallback);
/* True when "--NAME" is among the arguments; taken out. */
bool kedge_cli_flag(struct kedge_cli *c, const char *name);
/* A whole number option; false prints the usage error. */
bool kedge_cli_number(struct kedge_cli *c, const char *name, uint64_t least, uint64_t most, uint64_t fallback,
                      uint64_t *ret);

/* ---- token.c ---- */
/* The secret "token" of a coordinator's answer: as a line of stdout (of itself alone, but in JSON, where the
 * answer has it), or in the new file `out` (0600), whose name then stands in the answer in its place.
 * Negative kedge_err. */
KEDGE_NODISCARD int kedge_cli_token(const struct kedge_cli *c, json_t *answer, const char *out,
                                    struct kedge_diag *d);

/* ---- output.c ---- */
/* In JSON prints {"schema_version":1,"status":"ok","data":…}; steals data. Returns 0. */
int kedge_cli_ok(struct kedge_cli *c, json_t *data);
/* As kedge_cli_ok with another exit code: the answer is no, but there is an answer. NULL data, an answer that
 * could not be made, is a bug: 70. */
int kedge_cli_answer(struct kedge_cli *c, json_t *data, int code);
/* Prints the error and what to do next (stderr; JSON also on stdout); returns its exit code: kedge_exit_code,
 * but what the coordinator does not know is an answer, "no" (1), and what this machine keeps from us or is
 * not what it should be cannot be read (3). */
int kedge_cli_fail(struct kedge_cli *c, int err, const struct kedge_diag *d);
/* KEDGE_TRY of a command: tells what failed and leaves the command with its exit code. */
#define KEDGE_CLI_TRY(c, call, d)                     \
    do {                                              \
        int try_err = (call);                         \
        if (try_err) {                                \
            return kedge_cli_fail((c), try_err, (d)); \
        }                                             \
    } while (0)
/* The same with an exit code of one's own. */
int kedge_cli_fail_as(struct kedge_cli *c, int err, const struct kedge_diag *d, int code);
/* Text for people: to stdout, or to stderr when stdout belongs to JSON. What others wrote is in it: what
 * a terminal would obey is shown instead (kedge_char_show). */
void kedge_cli_say(const struct kedge_cli *c, const char *format, ...) KEDGE_PRINTF(2, 3);
/* The same to stderr, for what stands beside a file or a secret on stdout. */
void kedge_cli_say_aside(const char *format, ...) KEDGE_PRINTF(1, 2);

/* A word of the command line or of a file, for a message: its first 60 columns, and "…" when that is not all.
 */
struct kedge_cli_word {
    char s[4 * 60 + sizeof "…"];
};
struct kedge_cli_word kedge_cli_word(const char *text);

/* JSON text in ASCII to stdout; of ASCII's controls it may have DEL, which is written as an escape. */
void kedge_cli_put_ascii(struct kedge_view json);
/* Appends the JSON text of o (flags of json_dumpb). KEDGE_E_NOMEM, also for NULL. */
KEDGE_NODISCARD int kedge_cli_dump(const json_t *o, size_t flags, struct kedge_buf *ret);

struct kedge_column {
    const char *title;
    int width; /* negative: left-justified */
};
/* Tables that fit 100 columns: a head, then rows of `count` cells, at most 16. Longer cells push the row out;
 * where that leaves no room, the longest end in "…". */
void kedge_cli_head(const struct kedge_cli *c, const struct kedge_column *columns, size_t count);
void kedge_cli_row(const struct kedge_cli *c, const struct kedge_column *columns, size_t count,
                   const char *const *cells);
/* One line that is drawn over itself when stderr is a terminal: "label [#####....] 12/40 text"; elsewhere
 * (and with TERM=dumb) a plain line when there is something new, at most one in ten seconds. */
void kedge_cli_progress(const struct kedge_cli *c, const char *label, uint64_t done, uint64_t total,
                        const char *text);
void kedge_cli_progress_end(const struct kedge_cli *c);

/* ---- interrupt.c: Ctrl-C while a command waits ---- */
/* From now on the first SIGINT or SIGTERM is only noted; a second one ends the program. */
void kedge_cli_catch_interrupt(void);
bool kedge_cli_interrupted(void);
/* Sleeps, less when interrupted; true then. */
bool kedge_cli_pause(uint32_t ms);
/* Clock and waiting for those who take them as hooks: Unix time, and at most a second until then. arg is not
 * looked at. */
uint64_t kedge_cli_now_ms(void *arg);
void kedge_cli_wait_until(void *arg, uint64_t ms);
/* Says how to go on, as an error CANCELLED; returns 130 (SIGINT) or 143 (SIGTERM). */
int kedge_cli_interrupt_end(struct kedge_cli *c, const char *what, const char *format, ...)
    KEDGE_PRINTF(3, 4);

/* ---- ask.c ---- */
/* Asks the coordinator what appends to no log. Steals request; *ret_answer is the caller's. */
KEDGE_NODISCARD int kedge_cli_ask(struct kedge_cli *c, json_t *request, json_t **ret_answer,
                                  struct kedge_diag *d);
/* Text of a file argument, of a pipe, or with "-" of standard input; bounded. KEDGE_E_USAGE when it is empty.
 */
KEDGE_NODISCARD int kedge_cli_read_file(const char *path, size_t max, struct kedge_buf *ret,
                                        struct kedge_diag *d);

/* ---- admin.c ---- */
/* Asks the coordinator anything (by its ipc door or --connect), as kedge_cli_ask. Of what
 * appends to a log (receipt.h) the receipt is checked and kept before this returns KEDGE_OK: KEDGE_E_UNKNOWN
 * when nothing proves it. */
KEDGE_NODISCARD int kedge_cli_admin(struct kedge_cli *c, json_t *request, json_t **ret_answer,
                                    struct kedge_diag *d);
/* Reads the private key at path; with `create` makes one when the file is absent. */
KEDGE_NODISCARD int kedge_cli_key(const char *path, bool create, struct kedge_key_pair *ret,
                                  struct kedge_diag *d);
/* Signs a statement, in a tenant's with the position that it lacks (position.h); *ret_text is a JSON string
 * of the envelope. */
KEDGE_NODISCARD int kedge_cli_sign(struct kedge_cli *c, struct kedge_statement *st,
                                   const struct kedge_key_pair *key, json_t **ret_text, struct kedge_diag *d);

/* What tenants' admins do, for commands and for poc. */
KEDGE_NODISCARD int kedge_cli_tenant_add(struct kedge_cli *c, const struct kedge_id *tenant,
                                         const struct kedge_key_pair *admin, json_t **ret,
                                         struct kedge_diag *d);
KEDGE_NODISCARD int kedge_cli_site_sign_in(struct kedge_cli *c, const json_t *pending,
                                           const struct kedge_key_pair *admin, json_t **ret,
                                           struct kedge_diag *d);
/* agreed: digest of the spec that may be signed; NULL: any that the coordinator has. */
KEDGE_NODISCARD int kedge_cli_job_join(struct kedge_cli *c, const char *job, const struct kedge_id *tenant,
                                       const struct kedge_key_pair *admin, const struct kedge_hash *agreed,
                                       json_t **ret, struct kedge_diag *d);
/* Of a job that the tenant joined. reason: at most KEDGE_ST_REASON_MAX bytes. */
KEDGE_NODISCARD int kedge_cli_job_leave(struct kedge_cli *c, const char *job, const struct kedge_id *tenant,
                                        const struct kedge_key_pair *admin, const char *reason, json_t **ret,
                                        struct kedge_diag *d);

/* ---- show.c ---- */
/* The table of a job's rounds. */
void kedge_cli_show_rounds(const struct kedge_cli *c, const json_t *job, uint32_t from_round);
/* ---- job_troubles.c ---- */
/* Whom the open round waits for, and sites in trouble: a line each. */
void kedge_cli_show_troubles(const struct kedge_cli *c, const json_t *job);
/* The same for one who watches: what is new since the last answer, on lines of their own. */
struct kedge_cli_told {
    int64_t last_ms, round;
    bool halted;
    char waits[512];
};
void kedge_cli_watch_troubles(struct kedge_cli *c, const json_t *job, struct kedge_cli_told *told);
/* ---- show.c ---- */
/* Value helpers for answers: text of a member, "" when absent; number, 0 when absent. */
const char *kedge_cli_text(const json_t *o, const char *key);
int64_t kedge_cli_int(const json_t *o, const char *key);
double kedge_cli_real(const json_t *o, const char *key);
/* How many rounds of a job (an answer of job.list or job.show) are over: the one under way does not count. */
int64_t kedge_cli_finished_rounds(const json_t *job);
/* A time to live in words, such as "an hour", "90 minutes", "30 days", "3700 seconds". */
struct kedge_cli_span {
    char s[32];
};
struct kedge_cli_span kedge_cli_span(uint64_t seconds);

/* ---- commands ---- */
int kedge_cmd_init(struct kedge_cli *c);
int kedge_cmd_status(struct kedge_cli *c);
int kedge_cmd_events(struct kedge_cli *c);
int kedge_cmd_login(struct kedge_cli *c);
int kedge_cmd_logout(struct kedge_cli *c);
int kedge_cmd_whoami(struct kedge_cli *c);
int kedge_cmd_backup(struct kedge_cli *c);
int kedge_cmd_restore(struct kedge_cli *c);
int kedge_cmd_tenant_add(struct kedge_cli *c);
int kedge_cmd_tenant_list(struct kedge_cli *c);
int kedge_cmd_tenant_show(struct kedge_cli *c);
int kedge_cmd_tenant_quota(struct kedge_cli *c);
int kedge_cmd_tenant_suspend(struct kedge_cli *c);
int kedge_cmd_tenant_resume(struct kedge_cli *c);
int kedge_cmd_reader_add(struct kedge_cli *c);
int kedge_cmd_reader_list(struct kedge_cli *c);
int kedge_cmd_reader_revoke(struct kedge_cli *c);
int kedge_cmd_viewer_add(struct kedge_cli *c);
int kedge_cmd_viewer_list(struct kedge_cli *c);
int kedge_cmd_viewer_remove(struct kedge_cli *c);
int kedge_cmd_site_enroll(struct kedge_cli *c);
int kedge_cmd_site_approve(struct kedge_cli *c);
int kedge_cmd_site_list(struct kedge_cli *c);
int kedge_cmd_site_label(struct kedge_cli *c);
int kedge_cmd_site_revoke(struct kedge_cli *c);
int kedge_cmd_contact_set(struct kedge_cli *c);
int kedge_cmd_contact_show(struct kedge_cli *c);
int kedge_cmd_contact_forget(struct kedge_cli *c);
int kedge_cmd_site_rotate(struct kedge_cli *c);
int kedge_cmd_role_grant(struct kedge_cli *c);
int kedge_cmd_role_list(struct kedge_cli *c);
int kedge_cmd_role_revoke(struct kedge_cli *c);
int kedge_cmd_role_quorum(struct kedge_cli *c);
int kedge_cmd_role_review(struct kedge_cli *c);
int kedge_cmd_role_approve(struct kedge_cli *c);
int kedge_cmd_role_submit(struct kedge_cli *c);
int kedge_cmd_key_rotate_statement(struct kedge_cli *c);
int kedge_cmd_key_list(struct kedge_cli *c);
int kedge_cmd_key_add(struct kedge_cli *c);
int kedge_cmd_key_rotate(struct kedge_cli *c);
int kedge_cmd_key_revoke(struct kedge_cli *c);
int kedge_cmd_key_recover(struct kedge_cli *c);
int kedge_cmd_key_sign(struct kedge_cli *c);
int kedge_cmd_key_send(struct kedge_cli *c);
int kedge_cmd_key_protect(struct kedge_cli *c);
int kedge_cmd_key_unprotect(struct kedge_cli *c);
int kedge_cmd_key_public(struct kedge_cli *c);
int kedge_cmd_job_submit(struct kedge_cli *c);
int kedge_cmd_job_join(struct kedge_cli *c);
int kedge_cmd_job_leave(struct kedge_cli *c);
int kedge_cmd_job_groups(struct kedge_cli *c);
int kedge_cmd_job_plan(struct kedge_cli *c);
int kedge_cmd_job_spec(struct kedge_cli *c);
int kedge_cmd_job_list(struct kedge_cli *c);
int kedge_cmd_job_show(struct kedge_cli *c);
int kedge_cmd_job_watch(struct kedge_cli *c);
int kedge_cmd_job_wait(struct kedge_cli *c);
int kedge_cmd_job_logs(struct kedge_cli *c);
int kedge_cmd_job_events(struct kedge_cli *c);
int kedge_cmd_job_compare(struct kedge_cli *c);
int kedge_cmd_job_clone(struct kedge_cli *c);
int kedge_cmd_job_stop(struct kedge_cli *c);
int kedge_cmd_job_resume(struct kedge_cli *c);
int kedge_cmd_job_model(struct kedge_cli *c);
int kedge_cmd_ledger_list(struct kedge_cli *c);
int kedge_cmd_ledger_show(struct kedge_cli *c);
int kedge_cmd_ledger_prove(struct kedge_cli *c);
int kedge_cmd_ledger_verify(struct kedge_cli *c);
int kedge_cmd_ledger_position(struct kedge_cli *c);
int kedge_cmd_ledger_tiles(struct kedge_cli *c);
int kedge_cmd_ledger_fsck(struct kedge_cli *c);
int kedge_cmd_ledger_repair(struct kedge_cli *c);
int kedge_cmd_ledger_prune(struct kedge_cli *c);
int kedge_cmd_ledger_erase(struct kedge_cli *c);
int kedge_cmd_ledger_refusals(struct kedge_cli *c);
int kedge_cmd_ledger_follow(struct kedge_cli *c);
int kedge_cmd_witness_init(struct kedge_cli *c);
int kedge_cmd_witness_enroll(struct kedge_cli *c);
int kedge_cmd_witness_list(struct kedge_cli *c);
int kedge_cmd_witness_push(struct kedge_cli *c);
int kedge_cmd_witness_policy(struct kedge_cli *c);
int kedge_cmd_witness_revoke(struct kedge_cli *c);
int kedge_cmd_audit_verify(struct kedge_cli *c);
int kedge_cmd_audit_pack(struct kedge_cli *c);
int kedge_cmd_audit_replay(struct kedge_cli *c);
int kedge_cmd_audit_explain(struct kedge_cli *c);
int kedge_cmd_audit_evidence(struct kedge_cli *c);
int kedge_cmd_audit_trust(struct kedge_cli *c);
int kedge_cmd_audit_export(struct kedge_cli *c);
int kedge_cmd_audit_verify_export(struct kedge_cli *c);
int kedge_cmd_audit_verify_model(struct kedge_cli *c);
int kedge_cmd_audit_timestamp_query(struct kedge_cli *c);
int kedge_cmd_anchor_run(struct kedge_cli *c);
int kedge_cmd_anchor_status(struct kedge_cli *c);
int kedge_cmd_anchor_deploy(struct kedge_cli *c);
int kedge_cmd_anchor_verify(struct kedge_cli *c);
int kedge_cmd_poc(struct kedge_cli *c);
int kedge_cmd_sim(struct kedge_cli *c);
int kedge_cmd_predict(struct kedge_cli *c);
int kedge_cmd_doctor(struct kedge_cli *c);

#endif
