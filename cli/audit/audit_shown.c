/* What an audit has shown and what it has not, with what would show it. An auditor's sentence is only worth
 * as much as its limits, so a verdict is never printed without them. */
#include "cli/audit/audit_shown.h"

const char *kedge_cli_signatures_by(const struct kedge_audit_report *r)
{
    return r->fast ? "first-pass" : "libsodium";
}

/* The number of tenants is one less than that of logs: the main chain is a log and no tenant. */
static void say_verdict(const struct kedge_cli *c, const struct kedge_audit_report *r)
{
    const struct kedge_audit_counts *n = &r->counts;
    unsigned tenants = n->logs > 0 ? n->logs - 1 : 0;
    uint64_t statements = 0;
    for (int i = 0; i < KEDGE_ST_KIND_COUNT; i++) {
        statements += n->statements[i];
    }
    switch (r->verdict) {
    case KEDGE_AUDIT_YES:
        kedge_cli_say(
            c,
            "Verified: this copy is consistent and signed by the trusted keys: %llu statements of %u "
            "tenant%s in %u job%s.\n",
            (unsigned long long)statements, tenants, tenants == 1 ? "" : "s", n->jobs,
            n->jobs == 1 ? "" : "s");
        break;
    case KEDGE_AUDIT_SELF_CONSISTENT:
        kedge_cli_say(
            c, "Self-consistent only: without --trust FILE (see: kedge audit trust) nothing says whose "
               "keys these are, so anybody could have written this record.\n");
        break;
    case KEDGE_AUDIT_NO:
        kedge_cli_say(c, "NOT verified: %llu finding%s.\n", (unsigned long long)r->error_count,
                      r->error_count == 1 ? "" : "s");
        break;
    }
}

static void say_claim(const struct kedge_cli *c, const struct kedge_audit_claim *claim)
{
    if (!claim->shown) {
        kedge_cli_say(c, "Not shown: %s. What would show it: %s.\n", claim->text, claim->how);
    } else if (claim->from[0]) {
        kedge_cli_say(c, "Shown: %s (%s).\n", claim->text, claim->from);
    } else {
        kedge_cli_say(c, "Shown: %s.\n", claim->text);
    }
}

/* What was shown comes first and what was not comes after it. Where the verdict is "no" neither is told:
 * claims about a record that does not hold would be read as if some of it did. */
void kedge_cli_shown_say(const struct kedge_cli *c, const struct kedge_audit_report *r,
                         const struct kedge_audit_claims *claims)
{
    say_verdict(c, r);
    for (int shown = 1; shown >= 0 && r->verdict != KEDGE_AUDIT_NO; shown--) {
        for (size_t i = 0; i < claims->count; i++) {
            if (claims->items[i].shown == (shown == 1)) {
                say_claim(c, &claims->items[i]);
            }
        }
    }
}

/* The caller's put_words escapes what others wrote, as the format of the file demands. */
static void put_list(const struct kedge_audit_claims *claims, bool shown,
                     void (*put_words)(struct kedge_buf *out, const char *text), struct kedge_buf *out)
{
    bool any = false;
    for (size_t i = 0; i < claims->count; i++) {
        const struct kedge_audit_claim *claim = &claims->items[i];
        if (claim->shown != shown) {
            continue;
        }
        any = true;
        kedge_buf_printf(out, "- %s: ", kedge_audit_level_name(claim->level));
        put_words(out, claim->text);
        if (claim->from[0]) {
            kedge_buf_put_str(out, " (");
            put_words(out, claim->from);
            kedge_buf_put_str(out, ")");
        }
        if (!shown) {
            kedge_buf_put_str(out, "; what would show it: ");
            put_words(out, claim->how);
        }
        kedge_buf_put_str(out, "\n");
    }
    kedge_buf_put_str(out, any ? "" : "Nothing.\n");
}

void kedge_cli_shown_file(const struct kedge_audit_claims *claims,
                          void (*put_words)(struct kedge_buf *out, const char *text), struct kedge_buf *out)
{
    kedge_buf_put_str(out, "\n## What was shown\n\n");
    put_list(claims, true, put_words, out);
    kedge_buf_put_str(out, "\n## What was not shown\n\n");
    put_list(claims, false, put_words, out);
}
