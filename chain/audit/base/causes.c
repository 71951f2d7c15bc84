/* One changed byte of an entry makes later checkpoints, anchors and rounds wrong as well, so a report can
 * have hundreds of findings with one cause. This file sorts them by a table of which code can follow from
 * which. It says "can follow" and hides nothing: a wrong choice here costs a reader some time and never a
 * finding. */
#include "chain/audit/base/causes.h"

#include <stdio.h>
#include <string.h>

/* ---- which codes explain which ---- */

enum scope {
    SAME_LOG, /* the cause is in the log that the consequence is about */
    ANY_LOG,  /* rounds and anchors join all logs */
};

#define BIT(code) (UINT64_C(1) << KEDGE_AUDIT_##code)
/* An entry that is not what was appended; a log that lacks entries, has others, or has tables of its own. */
#define ENTRY (BIT(STATEMENT) | BIT(SIGNATURE))
#define LOG (ENTRY | BIT(LEDGER) | BIT(TRUNCATED) | BIT(FORK))
#define FILES (BIT(BLOB_MISSING) | BIT(BLOB_DIGEST))
/* Who was no site, or no longer. */
#define STRANGER (BIT(SITE_UNKNOWN) | BIT(SITE_REVOKED) | BIT(KEY) | BIT(KEY_REVOKED))
/* What the main chain says of rounds, each built on those before it. */
#define LISTED (BIT(LIST) | BIT(ROW) | BIT(TOTALS))

/* A row says which codes can follow from which. A cause never follows from its consequence, over however many
 * rows (a test walks them). That a model is not what its inputs give is a cause of its own: only inputs that
 * are themselves damaged explain it. */
static const struct rule {
    uint64_t follow, from;
    enum scope scope;
} rules[] = {
    {BIT(SIGNATURE), BIT(KEY), SAME_LOG},
    {BIT(SITE_UNKNOWN), ENTRY | BIT(KEY), SAME_LOG},
    {BIT(NOT_JOINED) | BIT(CANDIDATE) | BIT(NOT_SELECTED), LOG | STRANGER, ANY_LOG},
    /* of a log: its own trees, checkpoints and tables, and what others saw of it */
    {BIT(LEDGER) | BIT(TRUNCATED), ENTRY, ANY_LOG},
    {BIT(FORK), ENTRY | BIT(LEDGER) | BIT(TRUNCATED), ANY_LOG},
    {BIT(IDEMPOTENCY) | BIT(HEAD), LOG | BIT(DOUBLED), SAME_LOG},
    {BIT(KEY_REVOKED), BIT(DOUBLED), SAME_LOG},
    {BIT(POSITION) | BIT(CHECKPOINT) | BIT(ANCHOR) | BIT(COSIGNED), LOG, ANY_LOG},
    {BIT(NOT_FINAL) | BIT(NOT_ANCHORED), BIT(COSIGNED) | BIT(ANCHOR) | LOG, ANY_LOG},
    /* of rounds */
    {BIT(SPEC), FILES, ANY_LOG},
    {BIT(ROUND) | BIT(BASE) | BIT(JOB), LOG | BIT(SPEC), ANY_LOG},
    {BIT(LIST), LOG | FILES | BIT(SPEC) | BIT(ROUND), ANY_LOG},
    {BIT(ROW) | BIT(TOTALS), LOG | BIT(SPEC) | BIT(LIST) | BIT(ROUND), ANY_LOG},
    {BIT(ROW_DOUBLED) | BIT(UNLISTED), LOG | BIT(SPEC) | BIT(ROUND) | BIT(LIST) | BIT(ROW), ANY_LOG},
    {BIT(AGGREGATE), LOG | BIT(SPEC) | BIT(ROUND), ANY_LOG},
    {BIT(STEP), LOG | BIT(SPEC) | BIT(ROUND) | BIT(AGGREGATE), ANY_LOG},
    {BIT(RELEASE) | BIT(UPDATE) | BIT(EVALUATION) | BIT(GROUP),
     LOG | BIT(SPEC) | BIT(ROUND) | BIT(AGGREGATE) | BIT(STEP), ANY_LOG},
    {BIT(JOB), BIT(ROUND) | BIT(AGGREGATE) | BIT(STEP), ANY_LOG},
    {BIT(BASE), BIT(GROUP), SAME_LOG},
    {BIT(MODEL_FILE), LOG | BIT(RELEASE), ANY_LOG},
    /* of files */
    {BIT(BLOB_CONTENT), FILES | BIT(SPEC), ANY_LOG},
    {BIT(BLOB_UNREFERENCED), LOG | BIT(SPEC) | LISTED | BIT(ROUND) | BIT(JOB), ANY_LOG},
    /* of what is computed again */
    {BIT(REPLAY_SELECTION) | BIT(REPLAY_GROUPING) | BIT(REPLAY_NEWCOMER) | BIT(REPLAY_FAILED),
     LOG | FILES | STRANGER | LISTED | BIT(SPEC) | BIT(ROUND) | BIT(CANDIDATE) | BIT(BLOB_CONTENT), ANY_LOG},
    {BIT(REPLAY_INITIAL) | BIT(REPLAY_DIRECTION) | BIT(REPLAY_AGGREGATE) | BIT(REPLAY_STEP),
     BIT(BLOB_DIGEST) | BIT(BLOB_CONTENT) | BIT(SPEC), ANY_LOG},
};

/* ---- what a finding is about ---- */

/* "org-a" of "org-a[12]", "org-a checkpoint 3" and "tenants/org-a/blobs/…"; "main" of those of the main
 * chain. */
static struct kedge_view log_of(const struct kedge_audit_finding *f)
{
    static const char tenants[] = "tenants/";
    const char *name = f->where;
    if (strncmp(name, tenants, sizeof tenants - 1) == 0) {
        name += sizeof tenants - 1;
    }
    return kedge_view_of(name, strcspn(name, "[ /"));
}

/* A checkpoint without a signature explains nothing: only entries do, and whole logs. */
static bool can_be_cause(const struct kedge_audit_finding *f)
{
    return f->severity == KEDGE_AUDIT_ERROR && (f->code != KEDGE_AUDIT_SIGNATURE || strchr(f->where, '['));
}

static bool explains(const struct kedge_audit_finding *cause, const struct kedge_audit_finding *f)
{
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        const struct rule *r = &rules[i];
        if ((r->follow >> f->code & 1) && (r->from >> cause->code & 1)
            && (r->scope == ANY_LOG || kedge_view_eq(log_of(cause), log_of(f)))) {
            return true;
        }
    }
    return false;
}

/* What is said of an entry that nobody had a right to: all else that is wrong with it. */
static bool is_of_stranger(const struct kedge_audit_finding *cause, const struct kedge_audit_finding *f)
{
    return (STRANGER >> cause->code & 1) && !((STRANGER | ENTRY) >> f->code & 1)
           && strcmp(cause->where, f->where) == 0;
}

/* A finding in the same log is the better explanation than one in another, an earlier one than a later. */
static uint32_t find_cause(const struct kedge_audit_report *r, uint32_t of)
{
    const struct kedge_audit_finding *f = &r->findings[of];
    uint32_t found = of;
    for (uint32_t i = 0; i < r->finding_count; i++) {
        const struct kedge_audit_finding *c = &r->findings[i];
        if (i == of || !can_be_cause(c) || !(explains(c, f) || is_of_stranger(c, f))) {
            continue;
        }
        if (kedge_view_eq(log_of(c), log_of(f))) {
            return i;
        }
        found = found == of ? i : found;
    }
    return found;
}

enum {
    STAGES = 16,    /* more than causes that can stand in a row */
    KIND_SHOWN = 3, /* causes of one code in one log; of more the first stands for them */
};

/* Each pass doubles how far back an entry points, so 16 of them suffice for any chain of causes; the
 * bound holds even if the table had a circle by mistake. */
static void go_to_first(const struct kedge_audit_report *r, uint32_t *cause)
{
    for (int n = 0; n < STAGES; n++) {
        for (uint32_t i = 0; i < r->finding_count; i++) {
            cause[i] = cause[cause[i]];
        }
    }
}

/* The first cause of that kind, when so many stand before this one that the reader has seen enough of
 * them. Three are shown, because a fourth of the same kind in the same log tells its reader nothing new. */
static uint32_t stand_in(const struct kedge_audit_report *r, const uint32_t *cause, uint32_t of)
{
    const struct kedge_audit_finding *f = &r->findings[of];
    uint32_t first = of, seen = 0;
    for (uint32_t i = 0; i < of; i++) {
        const struct kedge_audit_finding *c = &r->findings[i];
        if (cause[i] == i && c->severity == f->severity && c->code == f->code
            && kedge_view_eq(log_of(c), log_of(f))) {
            first = first == of ? i : first;
            seen++;
        }
    }
    return seen >= KIND_SHOWN ? first : of;
}

/* In two steps: first each finding goes to its first cause, then causes of one kind are gathered under
 * the first of them. The other order would send consequences to a cause that only stands for others. */
void kedge_audit_causes(const struct kedge_audit_report *r, uint32_t *ret_cause)
{
    for (uint32_t i = 0; i < r->finding_count; i++) {
        ret_cause[i] = r->findings[i].severity == KEDGE_AUDIT_ERROR ? find_cause(r, i) : i;
    }
    go_to_first(r, ret_cause);
    for (uint32_t i = 0; i < r->finding_count; i++) {
        if (ret_cause[i] == i && r->findings[i].severity == KEDGE_AUDIT_ERROR) {
            ret_cause[i] = stand_in(r, ret_cause, i);
        }
    }
    go_to_first(r, ret_cause);
}

/* ---- telling ---- */

/* "2 more like it; 7 findings can follow from this: 4 head, 3 checkpoint" */
static void describe(const struct kedge_audit_report *r, const uint32_t *cause, uint32_t of, char *out,
                     size_t room)
{
    uint32_t counts[KEDGE_AUDIT_CODE_COUNT] = {0}, all = 0;
    for (uint32_t i = 0; i < r->finding_count; i++) {
        if (i != of && cause[i] == of) {
            counts[r->findings[i].code]++;
            all++;
        }
    }
    uint32_t like = counts[r->findings[of].code];
    counts[r->findings[of].code] = 0; /* no code follows from itself */
    all -= like;
    out[0] = '\0';
    int at = like > 0 ? snprintf(out, room, "%u more like it%s", like, all > 0 ? "; " : "") : 0;
    if (all > 0) {
        at += snprintf(out + at, room - (size_t)at, "%u finding%s can follow from this:", all,
                       all == 1 ? "" : "s");
    }
    const char *between = "";
    for (int c = 0; c < KEDGE_AUDIT_CODE_COUNT; c++) {
        if (counts[c] > 0 && (size_t)at < room) {
            at += snprintf(out + at, room - (size_t)at, "%s %u %s", between, counts[c],
                           kedge_audit_code_name((enum kedge_audit_code)c));
            between = ",";
        }
    }
}

void kedge_audit_each_cause(const struct kedge_audit_report *r, const uint32_t *cause,
                            enum kedge_audit_severity severity, kedge_audit_put_cause *put, void *arg)
{
    char follows[KEDGE_AUDIT_CODE_COUNT * 32 + 64];
    for (uint32_t i = 0; i < r->finding_count; i++) {
        if (cause[i] == i && r->findings[i].severity == severity) {
            describe(r, cause, i, follows, sizeof follows);
            put(arg, &r->findings[i], follows);
        }
    }
}
