/* Files that an audit leaves: a line for each statement (--statements), a report for people (--report). What
 * others wrote stands in both files: control bytes never do, and in the report nothing of theirs is
 * markup. */
#include "cli/audit/audit_report.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "chain/audit/base/causes.h"
#include "chain/log/checkpoint.h"
#include "cli/audit/audit_anchors.h"
#include "cli/audit/audit_shown.h"
#include "common/base/mem.h"
#include "common/base/os/utc.h"
#include "common/base/try.h"

/* ---- statements ---- */

/* Written beside its name and renamed at the end: an auditor who finds the file knows that the audit came to
 * its end. */
int kedge_cli_statements_open(struct kedge_cli_statements *s, const char *path, bool trusted,
                              struct kedge_diag *d)
{
    *s = (struct kedge_cli_statements){.path = path, .trusted = trusted};
    int n = snprintf(s->partial, sizeof s->partial, "%s.partial", path);
    if (n < 0 || (size_t)n >= sizeof s->partial) {
        return kedge_diag_set(d, KEDGE_E_TOO_LONG, "--statements: the path is too long");
    }
    s->file = fopen(s->partial, "we");
    return s->file ? KEDGE_OK
                   : kedge_diag_set(d, kedge_errno(errno), "%s: cannot write: %s", path, strerror(errno));
}

static void put_hash(FILE *f, const char *name, const struct kedge_hash *h)
{
    char hex[KEDGE_HASH_HEX_LEN + 1];
    kedge_hash_hex(h, hex);
    fprintf(f, ",\"%s\":\"%s\"", name, hex);
}

/* "ok" says that every check of this entry and of what it names held; without a trust file nothing says whose
 * keys these are. */
static const char *verdict_of(const struct kedge_cli_statements *s, const struct kedge_audit_entry *e)
{
    if (strcmp(e->kind, "withheld") == 0 && !e->codes) {
        return "not-checked";
    }
    return e->codes ? "no" : s->trusted ? "ok" : "self-consistent";
}

/* Called for each entry, in the order of the logs, while the audit goes on: the file grows with the record
 * and is never in memory as a whole. */
int kedge_cli_statements_put(void *arg, const struct kedge_audit_entry *e)
{
    struct kedge_cli_statements *s = arg;
    FILE *f = s->file;
    /* Origins, kinds and codes need no escape: their alphabets have neither quotes nor control bytes. */
    fprintf(f, "{\"log\":\"%s\",\"index\":%" PRIu64 ",\"kind\":\"%s\"", e->log, e->index, e->kind);
    put_hash(f, "leaf", &e->leaf);
    if (e->has_subject) {
        put_hash(f, "subject", &e->subject);
    }
    fputs(",\"signers\":[", f);
    for (uint32_t i = 0; i < e->signer_count; i++) {
        char hex[KEDGE_HASH_HEX_LEN + 1];
        kedge_hash_hex(&e->signers[i], hex);
        fprintf(f, "%s\"%s\"", i ? "," : "", hex);
    }
    fprintf(f, "],\"verdict\":\"%s\",\"codes\":[", verdict_of(s, e));
    bool first = true;
    for (int c = 0; c < KEDGE_AUDIT_CODE_COUNT; c++) {
        if (e->codes >> c & 1) {
            fprintf(f, "%s\"%s\"", first ? "" : ",", kedge_audit_code_name((enum kedge_audit_code)c));
            first = false;
        }
    }
    fputs("]}\n", f);
    return ferror(f) ? KEDGE_E_IO : KEDGE_OK;
}

/* Synced before it is renamed: a file of that name is whole after a loss of power, too. */
int kedge_cli_statements_close(struct kedge_cli_statements *s, bool keep, struct kedge_diag *d)
{
    if (!s->file) {
        return KEDGE_OK;
    }
    bool written = fflush(s->file) == 0 && !ferror(s->file) && fsync(fileno(s->file)) == 0;
    written = fclose(s->file) == 0 && written;
    s->file = NULL;
    if (keep && written && rename(s->partial, s->path) == 0) {
        return KEDGE_OK;
    }
    int err = written ? kedge_errno(errno) : KEDGE_E_IO;
    (void)unlink(s->partial);
    return keep ? kedge_diag_set(d, err, "%s: cannot write", s->path) : KEDGE_OK;
}

/* ---- the report ---- */

/* Others' words: no control bytes, no markup. */
static void put_words(struct kedge_buf *out, const char *text)
{
    for (const char *p = text; *p; p++) {
        uint8_t c = (uint8_t)*p;
        if (strchr("\\`*_[]<>|#", c)) {
            kedge_buf_put_u8(out, '\\');
        }
        kedge_buf_put_u8(out, c < 0x20 || c == 0x7f ? '?' : c);
    }
}

/* A value is always others' or the caller's text and goes through put_words; the name is one of ours. */
static void put_row(struct kedge_buf *out, const char *name, const char *value)
{
    int blanks = (int)strspn(name, " ");
    kedge_buf_printf(out, "%.*s- %s: ", blanks, name, name + blanks);
    put_words(out, value);
    kedge_buf_put_str(out, "\n");
}

/* A name that begins with blanks is a row below the one before. */
static void put_digest(struct kedge_buf *out, const char *name, const struct kedge_hash *h)
{
    char hex[KEDGE_HASH_HEX_LEN + 1];
    int blanks = (int)strspn(name, " ");
    kedge_hash_hex(h, hex);
    kedge_buf_printf(out, "%.*s- %s: %s\n", blanks, name, name + blanks, hex);
}

static void put_key(struct kedge_buf *out, const char *what, const struct kedge_public_key *key)
{
    char hex[2 * KEDGE_KEY_LEN + 1];
    struct kedge_hash id;
    kedge_hex_encode(key->b, KEDGE_KEY_LEN, hex);
    kedge_public_key_hash(key, &id);
    kedge_buf_printf(out, "- %s: %s\n", what, hex);
    put_digest(out, "  SHA-256 of it", &id);
}

static void put_head(const struct kedge_cli_filing *f, struct kedge_buf *out)
{
    static const char *const verdicts[] = {
        "NOT VERIFIED. The findings below say where the record is not what it claims to be.",
        ("SELF-CONSISTENT ONLY. No trust file was given: nothing says whose keys these are, and anybody "
         "could have written this record."),
        ("VERIFIED. This copy is consistent and signed by the keys named below. What that shows, and what it "
         "does "
         "not, stands below.")};
    kedge_buf_printf(out, "# Audit of a Kedge record\n\n%s\n\n", verdicts[f->report->verdict]);
    put_row(out, "record", f->dir);
    put_row(out, "deployment", f->report->deployment);
    kedge_buf_printf(out, "- begun: %s (clock of the auditing machine)\n",
                     kedge_utc((int64_t)(f->unix_ms / 1000), KEDGE_UTC_RFC3339, "unknown").s);
    kedge_buf_printf(out, "- program: kedge 0.1.0, audit %s\n", f->report->replayed ? "replay" : "verify");
    kedge_buf_printf(
        out,
        "- what was done: logs, signatures, keys in force, order, input lists, totals, blobs and "
        "released models were checked%s\n",
        f->report->replayed ? "; every decision was executed again from its recorded inputs" : "");
    if (f->report->replayed) {
        put_digest(out, "digest of all results", &f->report->results);
    }
    kedge_buf_printf(out, "- signatures: %s\n",
                     f->report->fast ? "--fast: first pass only, not confirmed by libsodium"
                                     : "checked by libsodium");
    if (f->live) {
        kedge_buf_put_str(out, "- a coordinator was writing to the record meanwhile\n");
    }
}

/* Whose anchors outside count; whether anybody's do. out NULL: only that. */
static bool put_anchor_trust(const struct kedge_trust_anchors *t, struct kedge_buf *out)
{
    const struct kedge_anchor_kind *kind;
    bool any = false;
    for (size_t i = 0; (kind = kedge_anchor_kind_at(i)) != NULL; i++) {
        if (kind->is_named && kind->is_named(t)) {
            any = true;
            if (out) {
                kind->trust_tell(t, out);
            }
        }
    }
    return any;
}

/* The trust file is named with its SHA-256, so that a reader of the report can check by which keys it was
 * judged without having the folder of the auditor. */
static int put_trust(const struct kedge_cli_filing *f, struct kedge_buf *out, struct kedge_diag *d)
{
    kedge_buf_put_str(out, "\n## Trust anchors\n\n");
    if (!f->trust) {
        kedge_buf_put_str(out, put_anchor_trust(f->anchors, NULL) ? "No trust file.\n" : "None.\n");
        (void)put_anchor_trust(f->anchors, out);
        return KEDGE_OK;
    }
    struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit);
    struct kedge_hash digest;
    kedge_buf_init(&text, KEDGE_TRUST_FILE_MAX);
    KEDGE_TRY(kedge_file_read(f->trust_path, &text, d));
    kedge_sha256(kedge_buf_view(&text), &digest);
    put_row(out, "trust file", f->trust_path);
    put_digest(out, "  SHA-256 of it", &digest);
    put_key(out, "statement key of the coordinator", &f->trust->statement_key);
    put_key(out, "log key of the main chain", &f->trust->main_log.key);
    for (uint32_t t = 0; t < f->trust->tenant_count; t++) {
        const struct kedge_trust_tenant *row = &f->trust->tenants[t];
        put_row(out, "tenant", row->tenant.s);
        put_key(out, "admin key", &row->admin_key);
        put_key(out, "log key of its ledger", &row->log.key);
    }
    kedge_buf_printf(out, "- checkpoints seen earlier: %u in the trust file, %zu given besides\n",
                     f->trust->seen_count, f->seen_count);
    for (size_t i = 0; i < f->seen_count; i++) {
        put_row(out, "  checkpoint", f->seen[i]);
    }
    (void)put_anchor_trust(f->anchors, out);
    return KEDGE_OK;
}

static void put_logs(const struct kedge_audit_report *r, struct kedge_buf *out)
{
    kedge_buf_put_str(out, "\n## Logs\n");
    for (uint32_t i = 0; i < r->log_count; i++) {
        const struct kedge_audit_log *log = &r->logs[i];
        kedge_buf_put_str(out, "\n### ");
        put_words(out, log->origin);
        kedge_buf_printf(out, "\n\n- entries: %" PRIu64 ", of which %" PRIu64 " have a finding\n",
                         log->entries, log->flawed);
        if (log->head_size > 0) {
            kedge_buf_printf(out, "- newest checkpoint: of %" PRIu64 " entries\n", log->head_size);
            put_digest(out, "root of these entries", &log->head_root);
            put_digest(out, "SHA-256 of the signed checkpoint", &log->head_note);
        }
    }
    if (r->log_count == 0) {
        kedge_buf_put_str(out, "\nNot every log could be read, so none was judged.\n");
    }
}

static void put_counts(const struct kedge_audit_counts *n, struct kedge_buf *out)
{
    const struct {
        const char *name;
        uint64_t value;
    } rows[] = {{"entries", n->entries},
                {"stored checkpoints", n->heads},
                {"tenants' checkpoints in the main chain", n->checkpoints},
                {"entries not yet in the main chain", n->unanchored},
                {"signatures verified", n->signatures},
                {"jobs", n->jobs},
                {"jobs unfinished", n->jobs_unfinished},
                {"rounds", n->rounds},
                {"sites", n->sites},
                {"updates used", n->updates_used},
                {"updates turned away", n->updates_refused},
                {"blobs", n->blobs},
                {"bytes of blobs", n->blob_bytes},
                {"decisions re-executed", n->decisions},
                {"decisions not re-executed: updates encrypted, their keys not at hand", n->decisions_sealed},
                {"decisions that cannot be: updates erased by order", n->decisions_erased}};
    kedge_buf_put_str(out, "\n## Counts\n\n");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        kedge_buf_printf(out, "- %s: %" PRIu64 "\n", rows[i].name, rows[i].value);
    }
    for (int i = 0; i < KEDGE_ST_KIND_COUNT; i++) {
        if (n->statements[i] > 0) {
            kedge_buf_printf(out, "- statements \"%s\": %" PRIu64 "\n",
                             kedge_statement_kind_name((enum kedge_statement_kind)i), n->statements[i]);
        }
    }
}

static void put_cause(void *arg, const struct kedge_audit_finding *f, const char *follows)
{
    struct kedge_buf *out = arg;
    kedge_buf_put_str(out, "- ");
    put_words(out, f->where);
    kedge_buf_printf(out, " (%s): ", kedge_audit_code_name(f->code));
    put_words(out, f->text);
    kedge_buf_put_str(out, "\n");
    if (follows[0]) {
        kedge_buf_printf(out, "  - %s\n", follows);
    }
}

/* Causes, and how much can follow from each. */
static void put_findings(const struct kedge_audit_report *r, const uint32_t *cause,
                         enum kedge_audit_severity severity, uint64_t all, struct kedge_buf *out)
{
    uint64_t told = 0;
    for (uint32_t i = 0; i < r->finding_count; i++) {
        told += r->findings[i].severity == severity;
    }
    kedge_audit_each_cause(r, cause, severity, put_cause, out);
    if (all > told) {
        kedge_buf_printf(out, "- and %" PRIu64 " more; --statements names every entry\n", all - told);
    }
}

static int put_all_findings(const struct kedge_audit_report *r, struct kedge_buf *out)
{
    uint32_t *cause = kedge_mem_new((size_t)r->finding_count + 1, sizeof *cause);
    KEDGE_TRY_MEM(cause);
    kedge_audit_causes(r, cause);
    kedge_buf_put_str(out, r->error_count ? "\n## Findings\n\n" : "\n## Findings\n\nNone.\n");
    put_findings(r, cause, KEDGE_AUDIT_ERROR, r->error_count, out);
    kedge_buf_put_str(out, r->note_count ? "\n## Notes\n\n" : "\n## Notes\n\nNone.\n");
    put_findings(r, cause, KEDGE_AUDIT_NOTE, r->note_count, out);
    kedge_mem_free(cause);
    return KEDGE_OK;
}

/* Stands at the end of every report, also of one that verified: what no record can show, with what would show
 * it. */
static const char limits[] =
    "\n## What no audit of a record can tell\n\n"
    "- what sites train on: their data never leave them, and updates are taken as data\n"
    "- a site that the coordinator pretended not to see: only the site knows that it was there\n"
    "- entries cut off after the newest checkpoint that anybody kept: give checkpoints seen earlier\n";

/* In the order in which a person reads: the verdict, by whose keys, what was shown and what was not, then
 * logs, counts and findings. The whole report is made in memory, so a file of that name is never a part of
 * one. */
int kedge_cli_file_report(const struct kedge_cli_filing *f, const char *path, struct kedge_diag *d)
{
    struct kedge_buf out KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&out, 16 << 20);
    put_head(f, &out);
    KEDGE_TRY(put_trust(f, &out, d));
    struct kedge_audit_claims claims;
    KEDGE_TRY(kedge_audit_claims(f->report, &claims));
    kedge_cli_shown_file(&claims, put_words, &out);
    kedge_audit_claims_deinit(&claims);
    put_logs(f->report, &out);
    kedge_cli_anchors_file(f->report, put_words, &out);
    put_counts(&f->report->counts, &out);
    KEDGE_TRY(put_all_findings(f->report, &out));
    kedge_buf_put_str(&out, limits);
    if (out.err) {
        return kedge_diag_set(d, out.err, "%s: %s", path, kedge_strerror(out.err));
    }
    return kedge_file_write(path, kedge_buf_view(&out), 0644, d);
}
