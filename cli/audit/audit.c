/* kedge audit: what a stranger can say about a record. The judging is chain/audit's; here is the asking and
 * the telling. */
#include "chain/audit/audit.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "aggregation/simd.h"
#include "chain/audit/base/causes.h"
#include "chain/audit/files/archive.h"
#include "chain/state/in_use.h"
#include "cli/audit/audit_anchors.h"
#include "cli/audit/audit_blob_keys.h"
#include "cli/audit/audit_report.h"
#include "cli/audit/audit_shown.h"
#include "cli/ledger/refusals.h"
#include "cli/local.h"
#include "cli/sites/contact.h"
#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "common/base/try.h"

enum { THREADS_MAX = 64, TENANTS_MAX = 64 };

struct question {
    const char *dir, *given, *trust_path; /* dir: where the record lies; given: what the command line names */
    const char *seen[KEDGE_TRUST_SEEN_MAX];
    size_t seen_count;
    bool replay;
    const char *statements_path, *report_path;
    struct kedge_id tenants[TENANTS_MAX];
    struct kedge_cli_anchors anchors;
    struct kedge_cli_blob_keys blob_keys;
    struct kedge_cli_contacts contacts;
    struct kedge_cli_refusals refusals;
    struct kedge_audit_options options;
};

static void show_progress(void *arg, const char *what, uint64_t done, uint64_t total)
{
    kedge_cli_progress(arg, "auditing", done, total, what);
}

/* --simd NAME: which instructions the arithmetic takes; the results are the same. False after a usage error.
 */
static bool take_simd(struct kedge_cli *c)
{
    const char *name = kedge_cli_option(c, "simd", NULL);
    if (!name) {
        return true;
    }
    for (enum kedge_simd simd = KEDGE_SIMD_SCALAR; simd <= KEDGE_SIMD_LAST; simd++) {
        if (strcmp(name, kedge_simd_name(simd)) == 0) {
            if (kedge_simd_set(simd) == KEDGE_OK) {
                return true;
            }
            (void)kedge_cli_usage(c, "--simd %s: this processor has no such instructions", name);
            return false;
        }
    }
    (void)kedge_cli_usage(c, "--simd %s: expected scalar, sse2, avx2, avx512 or neon",
                          kedge_cli_word(name).s);
    return false;
}

/* --tenant T: the copy holds these tenants' ledgers only. False after a usage error. */
static bool take_tenants(struct kedge_cli *c, struct question *q, size_t *ret_count)
{
    const char *name;
    while ((name = kedge_cli_option(c, "tenant", NULL)) != NULL) {
        if (*ret_count == TENANTS_MAX) {
            (void)kedge_cli_usage(c, "--tenant: at most %d", TENANTS_MAX);
            return false;
        }
        if (kedge_id_from(kedge_view_str(name), &q->tenants[(*ret_count)++]) != KEDGE_OK) {
            (void)kedge_cli_usage(c, "--tenant %s: not a tenant's name", kedge_cli_word(name).s);
            return false;
        }
    }
    return true;
}

/* False after a usage error. All options are read, and wrong ones refused, before the record is opened. The
 * trust file's name is one of the common options (main.c). */
static bool take_question(struct kedge_cli *c, struct question *q)
{
    uint64_t threads;
    const char *seen;
    q->trust_path = c->trust;
    q->statements_path = kedge_cli_option(c, "statements", NULL);
    q->report_path = kedge_cli_option(c, "report", NULL);
    while ((seen = kedge_cli_option(c, "seen", NULL)) != NULL) {
        if (q->seen_count == KEDGE_TRUST_SEEN_MAX) {
            (void)kedge_cli_usage(c, "--seen: at most %d checkpoints", KEDGE_TRUST_SEEN_MAX);
            return false;
        }
        q->seen[q->seen_count++] = seen;
    }
    size_t tenants = 0;
    bool fast = kedge_cli_flag(c, "fast");
    if (!kedge_cli_blob_keys_take(c, &q->blob_keys) || !kedge_cli_contacts_take(c, &q->contacts)
        || !kedge_cli_refusals_take(c, &q->refusals)) {
        return false;
    }
    if (!kedge_cli_anchors_take(c, &q->anchors) || !take_tenants(c, q, &tenants)
        || !kedge_cli_number(c, "threads", 1, THREADS_MAX, 0, &threads) || (q->replay && !take_simd(c))
        || !kedge_cli_no_more(c, 1)) {
        return false;
    }
    q->options = (struct kedge_audit_options){.threads = (uint32_t)threads,
                                              .tenants = q->tenants,
                                              .tenant_count = tenants,
                                              .fast = fast,
                                              .anchors = &q->anchors.trust,
                                              .blob_keys = q->blob_keys.items,
                                              .blob_key_count = q->blob_keys.count,
                                              .contacts = q->contacts.items,
                                              .contact_count = q->contacts.count,
                                              .refusals = q->refusals.paths,
                                              .refusal_count = q->refusals.count,
                                              .progress = show_progress,
                                              .progress_arg = c};
    q->dir = q->given = kedge_cli_argument(c, 0);
    if (!q->dir) {
        (void)kedge_cli_usage(c, "DIR is missing: the folder with the record, or a tar archive of it");
    }
    return q->dir != NULL;
}

/* A record that is being written is read with locks, and what is on its way is no fault. */
static void look_for_coordinator(struct question *q)
{
    char state[KEDGE_PATH_MAX];
    bool runs = kedge_cli_coordinator_runs(q->dir);
    if (!runs && kedge_path_join(state, q->dir, "state") == KEDGE_OK) {
        runs = kedge_cli_coordinator_runs(state);
    }
    q->options.beside_coordinator = runs;
    q->options.live = runs;
}

/* ---- telling ---- */

static void say_count(const struct kedge_cli *c, const char *name, uint64_t count, const char *more)
{
    static const struct kedge_column columns[] = {{"", -28}, {"", 12}, {"", -40}};
    char number[24];
    snprintf(number, sizeof number, "%llu", (unsigned long long)count);
    const char *cells[] = {name, number, more};
    kedge_cli_row(c, columns, 3, cells);
}

/* Counts first and findings after them: what was looked at bounds what "no finding" can mean. Rows that most
 * records have no use for are left out while they are 0. */
static void say_counts(const struct kedge_cli *c, const struct kedge_audit_report *r)
{
    const struct kedge_audit_counts *n = &r->counts;
    char more[64] = "";
    say_count(c, "logs", n->logs, "main chain and one ledger per tenant");
    say_count(c, "entries", n->entries, "");
    for (int i = 0; i < KEDGE_ST_KIND_COUNT; i++) {
        if (n->statements[i] > 0) {
            char name[40];
            snprintf(name, sizeof name, "  %s", kedge_statement_kind_name((enum kedge_statement_kind)i));
            say_count(c, name, n->statements[i], "");
        }
    }
    say_count(c, "  tenants' checkpoints", n->checkpoints, "in the main chain");
    say_count(c, "stored checkpoints", n->heads, "");
    say_count(c, "signatures verified", n->signatures,
              r->fast ? "--fast: first pass only" : "checked by libsodium");
    if (n->unanchored > 0) {
        say_count(c, "not yet in the main chain", n->unanchored, "entries after a tenant's last checkpoint");
    }
    if (n->jobs_unfinished > 0) {
        snprintf(more, sizeof more, "%u unfinished", n->jobs_unfinished);
    }
    say_count(c, "jobs", n->jobs, more);
    say_count(c, "rounds", n->rounds, "");
    say_count(c, "sites", n->sites, "");
    say_count(c, "updates used", n->updates_used, "");
    say_count(c, "updates turned away", n->updates_refused, "");
    snprintf(more, sizeof more, "%.1f MB", (double)n->blob_bytes / 1e6);
    say_count(c, "blobs", n->blobs, more);
    if (r->replayed) {
        say_count(c, "decisions re-executed", n->decisions, "");
    }
    if (n->pruned > 0) {
        snprintf(more, sizeof more, "%llu made again", (unsigned long long)n->rebuilt);
        say_count(c, "models pruned", n->pruned, r->replayed ? more : "intermediate ones, by the operator");
    }
    if (n->decisions_sealed > 0) {
        say_count(c, "sealed, not re-executed", n->decisions_sealed,
                  "decisions over encrypted updates: their keys are not here");
    }
    if (n->statements[KEDGE_ST_ERASED] > 0) {
        say_count(c, "not to be replayed", n->decisions_erased,
                  "decisions over updates that were erased by order");
    }
}

static void say_cause(void *arg, const struct kedge_audit_finding *f, const char *follows)
{
    const struct kedge_cli *c = arg;
    kedge_cli_say(c, "%s%s: %s [%s]\n", f->severity == KEDGE_AUDIT_NOTE ? "note: " : "", f->where, f->text,
                  kedge_audit_code_name(f->code));
    if (follows[0]) {
        kedge_cli_say(c, "  %s\n", follows);
    }
}

/* Causes; what can follow from each is counted below it. `cause`: of kedge_audit_causes. */
static void say_findings(struct kedge_cli *c, const struct kedge_audit_report *r, const uint32_t *cause)
{
    kedge_audit_each_cause(r, cause, KEDGE_AUDIT_ERROR, say_cause, c);
    kedge_audit_each_cause(r, cause, KEDGE_AUDIT_NOTE, say_cause, c);
    if (r->error_count + r->note_count > r->finding_count) {
        kedge_cli_say(c, "… and %llu more\n",
                      (unsigned long long)(r->error_count + r->note_count - r->finding_count));
    }
}

static void say_verdict(const struct kedge_cli *c, const struct kedge_audit_report *r,
                        const struct kedge_audit_claims *claims)
{
    const struct kedge_audit_counts *n = &r->counts;
    kedge_cli_shown_say(c, r, claims);
    if (r->replayed && n->decisions_sealed > 0) {
        kedge_cli_say(
            c,
            "Sealed: %llu decisions were not re-executed, for they are over encrypted updates whose keys are "
            "not here.\n",
            (unsigned long long)n->decisions_sealed);
    }
    if (r->replayed && r->verdict != KEDGE_AUDIT_NO && n->decisions > 0) {
        kedge_cli_say(c,
                      "Replayed: %llu decisions, re-executed from their recorded inputs, gave the recorded "
                      "results bit for bit.\n",
                      (unsigned long long)n->decisions);
    }
    if (r->replayed && n->decisions_erased > 0) {
        kedge_cli_say(
            c, "Not replayed: %llu decisions, named above, over updates that their tenants had erased.\n",
            (unsigned long long)n->decisions_erased);
    }
    if (r->replayed) {
        char hex[KEDGE_HASH_HEX_LEN + 1];
        kedge_hash_hex(&r->results, hex);
        kedge_cli_say(c, "Digest of all results: %s\n", hex);
    }
}

static json_t *counts_json(const struct kedge_audit_counts *n)
{
    json_t *kinds = json_object();
    for (int i = 0; i < KEDGE_ST_KIND_COUNT; i++) {
        json_object_set_new(kinds, kedge_statement_kind_name((enum kedge_statement_kind)i),
                            json_integer((json_int_t)n->statements[i]));
    }
    json_t *o = json_object();
    const struct {
        const char *name;
        uint64_t value;
    } rows[] = {{"logs", n->logs},
                {"jobs", n->jobs},
                {"jobs_unfinished", n->jobs_unfinished},
                {"sites", n->sites},
                {"entries", n->entries},
                {"heads", n->heads},
                {"checkpoints", n->checkpoints},
                {"rounds", n->rounds},
                {"updates_used", n->updates_used},
                {"updates_refused", n->updates_refused},
                {"blobs", n->blobs},
                {"blob_bytes", n->blob_bytes},
                {"unanchored", n->unanchored},
                {"signatures", n->signatures},
                {"decisions", n->decisions},
                {"models_pruned", n->pruned},
                {"models_rebuilt", n->rebuilt},
                {"decisions_sealed", n->decisions_sealed},
                {"decisions_erased", n->decisions_erased},
                {"sealed", n->sealed}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        json_object_set_new(o, rows[i].name, json_integer((json_int_t)rows[i].value));
    }
    json_object_set_new(o, "statements", kinds);
    return o;
}

/* Findings keep their order and name their cause by its index in this list, so a reader can rebuild the tree
 * that say_findings prints. */
static json_t *report_json(const struct kedge_audit_report *r, const struct kedge_audit_claims *claims,
                           const uint32_t *cause)
{
    static const char *const verdicts[] = {"no", "self-consistent", "yes"};
    json_t *findings = json_array();
    for (uint32_t i = 0; i < r->finding_count; i++) {
        const struct kedge_audit_finding *f = &r->findings[i];
        json_t *row =
            json_pack("{s:s,s:s,s:s,s:s}", "severity", f->severity == KEDGE_AUDIT_NOTE ? "note" : "error",
                      "code", kedge_audit_code_name(f->code), "where", f->where, "text", f->text);
        if (row && cause[i] != i) {
            json_object_set_new(row, "can_follow_from", json_integer(cause[i]));
        }
        json_array_append_new(findings, row);
    }
    json_t *data =
        json_pack("{s:s,s:b,s:s,s:o,s:o,s:o,s:I,s:I,s:o,s:o}", "verdict", verdicts[r->verdict], "replayed",
                  r->replayed, "signatures", kedge_cli_signatures_by(r), "shown",
                  kedge_audit_claims_json(claims, true), "not_shown", kedge_audit_claims_json(claims, false),
                  "counts", counts_json(&r->counts), "errors", (json_int_t)r->error_count, "notes",
                  (json_int_t)r->note_count, "findings", findings, "anchors", kedge_cli_anchors_json(r));
    if (r->replayed && data) {
        char hex[KEDGE_HASH_HEX_LEN + 1];
        kedge_hash_hex(&r->results, hex);
        json_object_set_new(data, "results", json_string(hex));
    }
    return data;
}

/* ---- verify, replay ---- */

/* All that keeps the auditor from judging is "cannot read", unless memory ran out or a call was wrong. */
static int fail(struct kedge_cli *c, int err, const struct kedge_diag *d)
{
    int code = kedge_exit_code(err);
    return kedge_cli_fail_as(c, err, d, code == 1 || code == 4 ? 3 : code);
}

/* Errors of JSON do not name the file, errors of the file system do: the name is put before those that lack
 * it. */
static int read_trust(const struct question *q, struct kedge_trust *ret, struct kedge_diag *d)
{
    int err = q->trust_path ? kedge_trust_read(q->trust_path, ret, d) : KEDGE_OK;
    if (err && !strstr(d->text, q->trust_path)) {
        (void)kedge_diag_wrap(d, err, "%s", q->trust_path);
    }
    return err;
}

/* The audit itself, and the files that were asked for. Whatever ends the audit, the file of statements is
 * closed and takes its final name only when the audit came to an end: half a list would be read as a whole
 * one. The report is written last because it tells the verdict. */
static int judge(struct kedge_cli *c, const struct question *q, const struct kedge_trust *trust,
                 struct kedge_audit_report *report, struct kedge_diag *d)
{
    struct kedge_cli_statements lines = {.file = NULL};
    struct kedge_audit_options options = q->options;
    struct kedge_cli_filing filing = {.dir = q->given,
                                      .trust_path = q->trust_path,
                                      .seen = q->seen,
                                      .seen_count = q->seen_count,
                                      .live = q->options.live,
                                      .unix_ms = kedge_os_unix_ms(),
                                      .anchors = &q->anchors.trust,
                                      .trust = trust,
                                      .report = report};
    if (q->statements_path) {
        KEDGE_TRY(kedge_cli_statements_open(&lines, q->statements_path, trust != NULL, d));
        options.each = kedge_cli_statements_put;
        options.each_arg = &lines;
    }
    int err = (q->replay ? kedge_audit_replay : kedge_audit_verify)(q->dir, trust, q->seen, q->seen_count,
                                                                    &options, report, d);
    kedge_cli_progress_end(c);
    int written = kedge_cli_statements_close(&lines, !err, d);
    KEDGE_TRY(err);
    if (!written && q->report_path) {
        written = kedge_cli_file_report(&filing, q->report_path, d);
    }
    if (written) {
        kedge_audit_report_deinit(report);
    }
    return written;
}

/* What is wrong with a plain copy of a coordinator at work reads like what is wrong with a forged record. */
static bool is_torn_copy(const struct question *q)
{
    char state[KEDGE_PATH_MAX];
    return kedge_cli_find_state(q->dir, state, NULL) == KEDGE_OK
           && kedge_in_use_look(state) == KEDGE_IN_USE_ELSEWHERE;
}

/* A folder as it is, an archive unpacked for as long as it takes. */
static int judge_record(struct kedge_cli *c, struct question *q, const struct kedge_trust *trust,
                        struct kedge_audit_report *report, bool *ret_torn, struct kedge_diag *d)
{
    static struct kedge_unpacked unpacked;
    if (!kedge_archive_is(q->given)) {
        look_for_coordinator(q);
        *ret_torn = is_torn_copy(q);
        return judge(c, q, trust, report, d);
    }
    kedge_cli_progress(c, "unpacking", 0, 0, q->given);
    int err = kedge_archive_unpack(q->given, NULL, &unpacked, d);
    kedge_cli_progress_end(c);
    if (err) {
        return err;
    }
    q->dir = unpacked.dir;
    *ret_torn = is_torn_copy(q);
    err = judge(c, q, trust, report, d);
    int removed = kedge_archive_remove(&unpacked, err ? NULL : d);
    if (!err && removed) {
        kedge_audit_report_deinit(report);
    }
    return err ? err : removed;
}

/* Text for people and the answer in JSON are made from the same report. The exit code is the verdict: 0 for
 * "yes", 1 for everything less, and 3 where a replay had to leave decisions out because updates are sealed:
 * this is not "no", but it is not "yes" either. */
static int tell(struct kedge_cli *c, const struct question *q, struct kedge_audit_report *report,
                bool torn_copy)
{
    struct kedge_audit_claims claims;
    uint32_t *cause = kedge_mem_new((size_t)report->finding_count + 1, sizeof *cause);
    int err = cause ? kedge_audit_claims(report, &claims) : KEDGE_E_NOMEM;
    if (err) {
        kedge_mem_free(cause);
        kedge_audit_report_deinit(report);
        return fail(c, err, NULL);
    }
    kedge_audit_causes(report, cause);
    if (q->options.live) {
        kedge_cli_say(c, "A coordinator is writing to this record: this is its state right now.\n");
    }
    say_counts(c, report);
    say_findings(c, report, cause);
    say_verdict(c, report, &claims);
    if (torn_copy && report->verdict == KEDGE_AUDIT_NO) {
        kedge_cli_say(
            c, "This folder was copied while its coordinator ran, file by file: such a copy does not "
               "hold together, and what is\nfound in it speaks of the copying, not of the record. Ask for "
               "one that `kedge backup` or `kedge audit pack` made.\n");
    }
    kedge_cli_anchors_say(c, report);
    bool sealed = report->replayed && report->counts.decisions_sealed > 0;
    int code = report->verdict != KEDGE_AUDIT_YES ? 1 : sealed ? 3 : 0; /* 3: it could not be read */
    json_t *data = report_json(report, &claims, cause);
    if (report->refusal_count > 0) {
        json_object_set_new(data, "refusals", kedge_cli_refusals_json(&q->refusals, report));
    }
    if (torn_copy) {
        json_object_set_new(data, "copied_while_in_use", json_true());
    }
    kedge_audit_claims_deinit(&claims);
    kedge_mem_free(cause);
    kedge_audit_report_deinit(report);
    return kedge_cli_answer(c, data, code);
}

/* The trust file is read before the record: what costs a second fails before what costs an hour. */
static int audit(struct kedge_cli *c, bool replay)
{
    struct kedge_diag d = {.text = ""};
    struct question q = {.replay = replay};
    struct kedge_trust trust = {.tenant_count = 0};
    struct kedge_audit_report report;
    bool torn_copy = false;
    if (!take_question(c, &q)) {
        return 2;
    }
    int err = read_trust(&q, &trust, &d);
    if (err) {
        return fail(c, err, &d);
    }
    err = kedge_cli_anchors_merge(&q.anchors, q.trust_path ? &trust : NULL, &d);
    if (!err) {
        err = judge_record(c, &q, q.trust_path ? &trust : NULL, &report, &torn_copy, &d);
    }
    kedge_cli_anchors_deinit(&q.anchors);
    if (q.trust_path) {
        kedge_trust_deinit(&trust);
    }
    if (err) {
        return fail(c, err, &d);
    }
    return tell(c, &q, &report, torn_copy);
}

int kedge_cmd_audit_verify(struct kedge_cli *c)
{
    return audit(c, false);
}

int kedge_cmd_audit_replay(struct kedge_cli *c)
{
    return audit(c, true);
}

/* ---- trust ---- */

/* On stderr: stdout may be the trust file itself. */
static void say_fingerprints(const json_t *trust)
{
    size_t i;
    json_t *t;
    kedge_cli_say_aside(
        "\nThese keys come from the coordinator, whom an auditor need not trust. Compare them with what the\n"
        "tenants and the operator tell over another channel before you rely on them:\n"
        "  statement key of %s: %s\n",
        kedge_cli_text(trust, "deployment"), kedge_cli_text(trust, "statement_key"));
    json_array_foreach(json_object_get(trust, "tenants"), i, t)
    {
        kedge_cli_say_aside("  admin key of %s: %s\n", kedge_cli_text(t, "tenant"),
                            kedge_cli_text(t, "admin_key"));
    }
}

/* The coordinator fills in the trust file that will later judge it. That is a convenience and no proof, so
 * the fingerprints are always printed for comparison over another channel. */
int kedge_cmd_audit_trust(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_trust check;
    json_t *trust = NULL;
    const char *out = kedge_cli_option(c, "out", NULL);
    if (!kedge_cli_no_more(c, 0)) {
        return 2;
    }
    int err = kedge_cli_admin(c, json_pack("{s:s}", "verb", "trust"), &trust, &d);
    if (!err && (out || !c->json)) {
        err = kedge_cli_put_json(trust, out, &d);
    }
    if (!err && out) { /* what audit verify would not read is worth nothing */
        err = kedge_trust_read(out, &check, &d);
        if (!err) {
            kedge_trust_deinit(&check);
        }
    }
    if (err) {
        json_decref(trust);
        return kedge_cli_fail(c, err, &d);
    }
    if (out) {
        kedge_cli_say(c, "%s: keys of %s\n", out, kedge_cli_text(trust, "deployment"));
    }
    say_fingerprints(trust);
    return kedge_cli_ok(c, trust);
}
