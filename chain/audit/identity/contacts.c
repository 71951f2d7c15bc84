/* Who answers for whom: a statement about a site stands behind its enrolment, and openings that the auditor
 * was shown are what the ledger commits to. That an opening is not shown says nothing: its holder may have
 * destroyed it, and is allowed to. */
#include <stdio.h>

#include "chain/audit/record.h"

static void check_statement(struct kedgei_audit *a, const struct kedgei_log *log,
                            const struct kedgei_fact *fact)
{
    const struct kedge_st_contact *c = fact->body;
    if (!c->about.s[0]) {
        return;
    }
    const struct kedgei_fact *site = kedgei_log_find(log, "site-enrolled/%s", c->about.s);
    if (!site || site->index > fact->index) {
        kedgei_error(&a->findings, KEDGE_AUDIT_SITE_UNKNOWN, log, fact->index,
                     "names who answers for site \"%s\", which was not enrolled before", c->about.s);
    }
}

static const struct kedgei_log *find_tenant(const struct kedgei_audit *a, const struct kedge_id *tenant)
{
    for (uint32_t t = 0; t < a->tenant_count; t++) {
        if (kedge_id_eq(&a->tenants[t].tenant, tenant)) {
            return &a->tenants[t];
        }
    }
    return NULL;
}

static void check_opening(struct kedgei_audit *a, size_t i)
{
    const struct kedge_contact *c = &a->options.contacts[i];
    const struct kedgei_log *log = find_tenant(a, &c->tenant);
    struct kedge_hash commitment;
    char where[KEDGE_AUDIT_WHERE_MAX], hex[KEDGE_HASH_HEX_LEN + 1];
    kedge_contact_commitment(c, &commitment);
    kedge_hash_hex(&commitment, hex);
    snprintf(where, sizeof where, "--contact %zu", i + 1);
    const struct kedgei_fact *fact = log ? kedgei_log_find(log, "contact/%s", hex) : NULL;
    const struct kedge_st_contact *st = fact ? fact->body : NULL;
    if (!st || !kedge_id_eq(&st->about, &c->about)) {
        kedgei_find(&a->findings, KEDGE_AUDIT_ERROR, KEDGE_AUDIT_CONTACT, where,
                    "%s has no commitment to this text about %s%s", c->tenant.s,
                    c->about.s[0] ? "site " : "the tenant", c->about.s);
        return;
    }
    kedgei_find(&a->findings, KEDGE_AUDIT_NOTE, KEDGE_AUDIT_CONTACT, where,
                "opens %s[%llu]: who answers for %s%s", log->name, (unsigned long long)fact->index,
                c->about.s[0] ? "site " : "the tenant", c->about.s);
}

int kedgei_check_contacts(struct kedgei_audit *a)
{
    for (uint32_t t = 0; t < a->tenant_count && a->counts.statements[KEDGE_ST_CONTACT] > 0; t++) {
        const struct kedgei_log *log = &a->tenants[t];
        for (uint64_t i = 0; i < log->count; i++) {
            const struct kedgei_fact *fact = kedgei_fact_at(log, i);
            if (fact->kind == KEDGE_ST_CONTACT) {
                check_statement(a, log, fact);
            }
        }
    }
    for (size_t i = 0; i < a->options.contact_count; i++) {
        check_opening(a, i);
    }
    return KEDGE_OK;
}
