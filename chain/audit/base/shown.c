/* The verdict "yes" alone says little: a holder of the keys can write a whole other record that is
 * consistent and signed. So the report is turned into claims, each with what shows it, and into what was
 * not shown, each with what would show it. Claims are made only from what the audit found; a record with
 * an error has none but that. */
#include "chain/audit/base/shown.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>

#include "common/base/mem.h"
#include "common/base/os/utc.h"
#include "common/base/try.h"

static const char *const level_names[KEDGE_AUDIT_LEVEL_COUNT] = {
    [KEDGE_AUDIT_CONSISTENT] = "consistent",
    [KEDGE_AUDIT_SIGNED] = "signed",
    [KEDGE_AUDIT_COMPLETE] = "complete-as-of",
    [KEDGE_AUDIT_REEXECUTED] = "models-re-executed",
};

const char *kedge_audit_level_name(enum kedge_audit_level level)
{
    return (unsigned)level < KEDGE_AUDIT_LEVEL_COUNT ? level_names[level] : "unknown";
}

/* Room for every claim that can be made is taken at once: two per source of completeness, six of the others.
 */
enum { OTHER_CLAIMS = 9 };

static struct kedge_audit_claim *add(struct kedge_audit_claims *c, enum kedge_audit_level level, bool shown)
{
    struct kedge_audit_claim *claim = &c->items[c->count++];
    claim->level = level;
    claim->shown = shown;
    return claim;
}

static void say_shown(struct kedge_audit_claims *c, enum kedge_audit_level level, const char *text)
{
    snprintf(add(c, level, true)->text, KEDGE_AUDIT_CLAIM_MAX, "%s", text);
}

static void say_missing(struct kedge_audit_claims *c, enum kedge_audit_level level, const char *text,
                        const char *how)
{
    struct kedge_audit_claim *claim = add(c, level, false);
    snprintf(claim->text, sizeof claim->text, "%s", text);
    snprintf(claim->how, sizeof claim->how, "%s", how);
}

/* ---- this copy ---- */

static void claim_consistent(const struct kedge_audit_report *r, struct kedge_audit_claims *c)
{
    if (r->verdict == KEDGE_AUDIT_NO) {
        say_missing(c, KEDGE_AUDIT_CONSISTENT, "that this copy agrees with itself: it does not",
                    "the findings name what is wrong");
        return;
    }
    say_shown(c, KEDGE_AUDIT_CONSISTENT,
              r->partial
                  ? "what this copy holds is consistent: its logs, lists, totals, files and models agree "
                    "with each other"
                  : "this copy is consistent: its logs, lists, totals, files and models agree with each "
                    "other, and every update in it counts exactly once");
    if (r->partial) {
        say_missing(c, KEDGE_AUDIT_CONSISTENT, "ledgers, lists and files that this copy does not hold",
                    "the coordinator's whole record");
    }
    if (r->counts.sealed > 0) {
        struct kedge_audit_claim *claim = add(c, KEDGE_AUDIT_CONSISTENT, false);
        snprintf(claim->text, sizeof claim->text, "the content of %" PRIu64 " encrypted updates",
                 r->counts.sealed);
        snprintf(claim->how, sizeof claim->how, "their tenants' keys: --blob-key TENANT=FILE");
    }
}

static void claim_signed(const struct kedge_audit_report *r, struct kedge_audit_claims *c)
{
    static const char by_whom[] = "who signed this: anybody could have written such a record";
    static const char trust[] = "--trust FILE with keys that you have from elsewhere (kedge audit trust)";
    if (r->verdict == KEDGE_AUDIT_NO) {
        return;
    }
    if (r->verdict == KEDGE_AUDIT_SELF_CONSISTENT) {
        say_missing(c, KEDGE_AUDIT_SIGNED, by_whom, trust);
        return;
    }
    say_shown(c, KEDGE_AUDIT_SIGNED,
              r->fast
                  ? "every statement and checkpoint in it is signed by the trusted keys, by this program's "
                    "own first pass"
                  : "every statement and checkpoint in it is signed by the trusted keys, as libsodium says");
    if (r->fast) {
        say_missing(c, KEDGE_AUDIT_SIGNED, "that libsodium accepts each of these signatures",
                    "the same without --fast");
    }
}

/* ---- what others saw ---- */

static void say_complete(const struct kedge_audit_report *r, uint32_t log, uint64_t entries,
                         const char *source, const char *who, struct kedge_audit_claims *c)
{
    const struct kedge_audit_log *l = &r->logs[log];
    struct kedge_audit_claim *claim = add(c, KEDGE_AUDIT_COMPLETE, true);
    claim->log = l->origin;
    claim->entries = entries;
    claim->of = l->entries;
    claim->source = source;
    snprintf(claim->text, sizeof claim->text,
             "complete as of checkpoint %" PRIu64 " of %s, %s: since then none of these entries was altered, "
             "added or taken away",
             entries, l->origin, who);
}

static void set_from(struct kedge_audit_claims *c, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(c->items[c->count - 1].from, sizeof c->items[0].from, format, args);
    va_end(args);
}

static void claim_seen(const struct kedge_audit_report *r, struct kedge_audit_claims *c)
{
    static const struct {
        const char *name, *who;
    } sources[KEDGE_AUDIT_SOURCE_COUNT] = {
        [KEDGE_AUDIT_BY_SEEN] = {"seen", "which was seen before"},
        [KEDGE_AUDIT_BY_TRUST_FILE] = {"trust-file", "which the trust file has"},
        [KEDGE_AUDIT_BY_WITNESSES] = {"witnesses", "which the witnesses of the trust file cosigned"},
    };
    for (uint32_t i = 0; i < r->evidence_count; i++) {
        const struct kedge_audit_evidence *e = &r->evidence[i];
        say_complete(r, e->log, e->size, sources[e->source].name, sources[e->source].who, c);
        set_from(c, "%s", e->from);
    }
}

static void claim_anchors(const struct kedge_audit_report *r, struct kedge_audit_claims *c)
{
    for (size_t i = kedge_anchor_kind_count(); i-- > 0;) {
        const struct kedge_anchor_kind *kind = kedge_anchor_kind_at(i);
        const struct kedge_audit_anchor *a = kedge_audit_anchor_newest(r, kind);
        if (!a || !a->claim.trusted || !a->claim.proven) {
            continue;
        }
        struct kedge_buf from KEDGE_CLEANUP(kedge_buf_deinit);
        kedge_buf_init(&from, 1024);
        say_complete(r, 0, a->claim.size, kind->source, kind->who, c);
        if (kind->from) {
            kind->from(&a->claim, kedge_utc(a->claim.time_s, KEDGE_UTC_RFC3339, "").s, &from);
        }
        set_from(c, "%.*s", (int)from.len, from.len ? (const char *)from.ptr : "");
    }
}

/* "--tsa-ca CA.pem or --anchor CHAIN:CONTRACT:ACCOUNT" */
static void put_options(struct kedge_buf *out)
{
    const char *between = "";
    for (size_t i = kedge_anchor_kind_count(); i-- > 0;) {
        const struct kedge_anchor_kind *kind = kedge_anchor_kind_at(i);
        if (kind->option) {
            kedge_buf_printf(out, "%s%s", between, kind->option_usage);
            between = " or ";
        }
    }
}

/* The main chain holds checkpoints of all tenants' ledgers: how far it is vouched for decides. What
 * nobody outside kept can be rewritten without a trace, so every claim of completeness names its outside
 * source. Coverage is the largest of them; for the entries beyond it the report says what is missing. */
static void claim_complete(const struct kedge_audit_report *r, struct kedge_audit_claims *c)
{
    static const char how[] =
        "--seen CHECKPOINT that a site, a tenant or you kept; witness_policy in the trust file; ";
    struct kedge_buf options KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&options, sizeof c->items->how);
    size_t first = c->count;
    uint64_t covered = 0;
    if (r->verdict == KEDGE_AUDIT_NO || r->log_count == 0) {
        return;
    }
    claim_seen(r, c);
    claim_anchors(r, c);
    for (size_t i = first; i < c->count; i++) {
        bool is_main = c->items[i].log == r->logs[0].origin;
        covered = is_main && c->items[i].entries > covered ? c->items[i].entries : covered;
    }
    if (covered >= r->logs[0].entries) {
        return;
    }
    struct kedge_audit_claim *claim = add(c, KEDGE_AUDIT_COMPLETE, false);
    claim->log = r->logs[0].origin;
    claim->entries = covered;
    claim->of = r->logs[0].entries;
    put_options(&options);
    snprintf(claim->how, sizeof claim->how, "%s%.*s", how, (int)options.len,
             options.len ? (const char *)options.ptr : "");
    if (covered == 0) {
        snprintf(
            claim->text, sizeof claim->text,
            "that nothing was left out: who holds the keys of the logs could have written another history");
    } else {
        snprintf(claim->text, sizeof claim->text,
                 "that entries %" PRIu64 " to %" PRIu64 " of %s stay: they are newer than that checkpoint",
                 covered, claim->of - 1, claim->log);
    }
}

/* ---- what follows from the inputs ---- */

/* Decisions that could not be repeated are subtracted from this claim and told by their reason, since for
 * keys that are elsewhere something can be done and for erased updates nothing can. */
static void claim_reexecuted(const struct kedge_audit_report *r, struct kedge_audit_claims *c)
{
    const struct kedge_audit_counts *n = &r->counts;
    if (r->verdict == KEDGE_AUDIT_NO) {
        return;
    }
    if (!r->replayed) {
        say_missing(c, KEDGE_AUDIT_REEXECUTED, "that the models are what the recorded updates give",
                    "kedge audit replay, with the same arguments");
        return;
    }
    if (n->decisions > 0) {
        struct kedge_audit_claim *claim = add(c, KEDGE_AUDIT_REEXECUTED, true);
        snprintf(claim->text, sizeof claim->text,
                 "models re-executed: %" PRIu64 " decisions give the recorded results bit for bit from their "
                 "recorded inputs",
                 n->decisions);
    }
    if (n->decisions_sealed > 0) {
        struct kedge_audit_claim *claim = add(c, KEDGE_AUDIT_REEXECUTED, false);
        snprintf(claim->text, sizeof claim->text,
                 "that %" PRIu64 " decisions follow from encrypted updates, whose keys are not here",
                 n->decisions_sealed);
        snprintf(claim->how, sizeof claim->how, "their tenants' keys: --blob-key TENANT=FILE");
    }
    if (n->decisions_erased > 0) {
        struct kedge_audit_claim *claim = add(c, KEDGE_AUDIT_REEXECUTED, false);
        snprintf(claim->text, sizeof claim->text,
                 "%" PRIu64 " decisions over updates that their tenants had erased", n->decisions_erased);
        snprintf(claim->how, sizeof claim->how, "nothing can any more");
    }
    if (r->partial) {
        say_missing(c, KEDGE_AUDIT_REEXECUTED, "decisions over inputs that this copy does not hold",
                    "the coordinator's whole record");
    }
}

/* The list is taken at its largest, so that adding a claim cannot fail and no claim can be lost. */
int kedge_audit_claims(const struct kedge_audit_report *report, struct kedge_audit_claims *ret)
{
    size_t most = (size_t)report->evidence_count + KEDGE_ANCHOR_KINDS_MAX + OTHER_CLAIMS;
    struct kedge_audit_claims c = {.items = kedge_mem_new(most, sizeof *c.items)};
    KEDGE_TRY_MEM(c.items);
    claim_consistent(report, &c);
    claim_signed(report, &c);
    claim_complete(report, &c);
    claim_reexecuted(report, &c);
    KEDGE_ASSERT(c.count <= most);
    *ret = c;
    return KEDGE_OK;
}

void kedge_audit_claims_deinit(struct kedge_audit_claims *claims)
{
    kedge_mem_free(claims->items);
    *claims = (struct kedge_audit_claims){.count = 0};
}

static json_t *claim_json(const struct kedge_audit_claim *claim)
{
    json_t *o = json_pack("{s:s,s:s}", "level", kedge_audit_level_name(claim->level), "text", claim->text);
    if (o && claim->log) {
        json_object_set_new(o, "log", json_string(claim->log));
        json_object_set_new(o, "entries", json_integer((json_int_t)claim->entries));
        json_object_set_new(o, "of", json_integer((json_int_t)claim->of));
    }
    if (o && claim->source) {
        json_object_set_new(o, "source", json_string(claim->source));
    }
    if (o && claim->from[0]) { /* a path need not be UTF-8 */
        json_t *from = json_string(claim->from);
        json_object_set_new(o, "from", from ? from : json_string("?"));
    }
    if (o && !claim->shown) {
        json_object_set_new(o, "how", json_string(claim->how));
    }
    return o;
}

json_t *kedge_audit_claims_json(const struct kedge_audit_claims *claims, bool shown)
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < claims->count; i++) {
        if (claims->items[i].shown == shown) {
            json_array_append_new(list, claim_json(&claims->items[i]));
        }
    }
    return list;
}
