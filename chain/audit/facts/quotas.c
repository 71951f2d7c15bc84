/* quota-set: what the operator lets a tenant have. Numbers of a tenant's quotas follow each other. Of what a
 * quota limits, the record shows how many sites were enrolled; how fast statements came, and how many tokens
 * were made, it does not show. */
#include "chain/audit/record.h"

/* The tenant's quota that comes next after that entry of the main chain, or NULL. */
static const struct kedgei_fact *next_quota(const struct kedgei_log *main, uint64_t from,
                                            const struct kedge_hash *id)
{
    for (uint64_t i = from; i < main->count; i++) {
        const struct kedgei_fact *fact = kedgei_fact_at(main, i);
        if (fact->kind == KEDGE_ST_QUOTA_SET
            && kedge_hash_eq(&((const struct kedge_st_quota_set *)fact->body)->id, id)) {
            return fact;
        }
    }
    return NULL;
}

/* An enrolment is judged by a quota when it surely came after it and before the next one: it is not covered
 * by the tenant's first checkpoint after the quota, and is covered by the last one before the next. */
static void check_sites(struct kedgei_audit *a, const struct kedgei_log *log, const struct kedgei_fact *fact,
                        const struct kedgei_fact *next)
{
    const struct kedge_st_quota_set *q = fact->body;
    const uint64_t from = kedgei_anchored_after(log, fact->index);
    const uint64_t to = next ? kedgei_anchored_before(log, next->index) : log->count;
    uint32_t sites = 0;
    for (uint64_t i = 0; i < to && i < log->count && q->sites > 0; i++) {
        if (kedgei_fact_at(log, i)->kind != KEDGE_ST_SITE_ENROLLED) {
            continue;
        }
        sites++;
        if (i >= from && sites > q->sites) {
            kedgei_error(&a->findings, KEDGE_AUDIT_MISPLACED, log, i, "site %u, where the quota is %u", sites,
                         q->sites);
        }
    }
}

void kedgei_check_quotas(struct kedgei_audit *a)
{
    const struct kedgei_log *main = &a->main;
    for (uint32_t t = 0; t < a->tenant_count && a->counts.statements[KEDGE_ST_QUOTA_SET] > 0; t++) {
        const struct kedgei_log *log = &a->tenants[t];
        const struct kedgei_fact *fact = next_quota(main, 0, &log->salted), *next = NULL;
        for (uint64_t number = 1; fact; number++, fact = next) {
            const struct kedge_st_quota_set *q = fact->body;
            next = next_quota(main, fact->index + 1, &log->salted);
            if (q->number != number) {
                kedgei_error(&a->findings, KEDGE_AUDIT_MISPLACED, main, fact->index,
                             "quota %llu of \"%s\", expected number %llu", (unsigned long long)q->number,
                             log->name, (unsigned long long)number);
            }
            check_sites(a, log, fact, next);
        }
    }
}
